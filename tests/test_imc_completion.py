"""Inductive matrix completion: the instances, the local steps against the paper's formulas, messages, convergence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedrepro.datasets import imc_instances as instances
from fedrepro.datasets.imc_instances import Instance, RandomInstance, conditioning
from fedrepro.errors import ParameterError, UserError
from fedrepro.problems.imc.factor_averaging import local_steps
from fedrepro.problems.imc.methods.imc_perfedsi import IMCPerFedSI
from fedrepro.problems.imc.methods.imc_plain import IMCPlain
from fedrepro.problems.imc.problem import IMC
from fedrepro.runs.compute import drive


def instance(seed: int = 0, **parameters: Any) -> Instance:
    return RandomInstance(**parameters).load(rng=np.random.default_rng(seed))


# -- instances ---------------------------------------------------------------------------------------------------------


def test_an_instance_is_what_appendix_c4_draws() -> None:
    made = instance()
    np.testing.assert_allclose(made.U.T @ made.U, np.eye(2), atol=1e-14)
    np.testing.assert_allclose(made.V.T @ made.V, np.eye(2), atol=1e-14)
    np.testing.assert_allclose(np.linalg.norm(made.Z, axis=1), 1.0, atol=1e-14)
    assert made.observed.shape == (20, 5)
    assert all(len(set(row)) == 5 and set(row) <= set(range(16)) for row in made.observed.tolist())
    assert made.facts["lam_min"] >= 0.1


def test_about_half_of_the_random_instances_are_well_posed() -> None:
    conditionings = np.array([instance(seed, well_posed=False).facts["lam_min"] for seed in range(1000)])
    assert 0.41 < (conditionings >= 0.1).mean() < 0.53  # discrepancy perfedsi.14
    assert 0.06 < (conditionings < 1e-10).mean() < 0.13  # some determine nothing


def test_conditioning_is_the_least_curvature_along_directions_that_matter() -> None:
    made = instance(3)
    r, parts = 2, [made.U, made.V]
    rows, columns = made.observed, np.arange(20)[:, None]

    def predictions(flat: np.ndarray) -> np.ndarray:
        U, V = flat[:32].reshape(16, 2), flat[32:].reshape(4, 2)
        return (U @ V.T @ made.Z.T)[rows, columns].ravel()

    flat = np.concatenate([part.ravel() for part in parts])
    steps = 1e-6 * np.eye(40)
    J = np.array([(predictions(flat + s) - predictions(flat - s)) / 2e-6 for s in steps]).T
    eigenvalues = np.sort(np.linalg.eigvalsh(J.T @ J))
    np.testing.assert_allclose(eigenvalues[: r * r], 0.0, atol=1e-8)
    assert conditioning(made.U, made.V, made.Z, made.observed) == pytest.approx(eigenvalues[r * r], rel=1e-6)


def test_an_item_nobody_sees_cannot_be_recovered() -> None:
    made = instance(1)
    hidden = np.where(made.observed == 0, (made.observed.max(axis=1, keepdims=True) + 1) % 15 + 1, made.observed)
    assert conditioning(made.U, made.V, made.Z, hidden) < 1e-20
    assert made.facts["lam_min"] > 0.1


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"r": 5}, "r: must be at most d = 16 and k = 4, not 5"),
        ({"per_client": 17}, "per_client: must be at most the number of items d = 16, not 17"),
        ({"per_client": 1}, "per_client: 20 clients with 1 entries each see 20 numbers, but M* has 36; use more"),
        ({"least": 5.0}, "least: no instance reached 5 in 20 draws; lower it or set well_posed: false"),
        ({"well_posed": 1}, "well_posed: must be true or false, not 1"),
    ],
)
def test_instances_that_cannot_be_drawn_say_why(
    parameters: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(instances, "_DRAWS", 20)
    with pytest.raises(ParameterError) as caught:
        instance(**parameters)
    assert str(caught.value) == message


# -- local steps -------------------------------------------------------------------------------------------------------


def transcribed(U: np.ndarray, V: np.ndarray, z: np.ndarray, column: np.ndarray, items: list[int], eta: float) -> Any:
    """perfedsi (11) and (12), one client, as they are printed."""
    U, V = U.copy(), V.copy()
    for i in items:
        e = U[i] @ (V.T @ z) - column[i]
        U[i], V = U[i] - eta * e * (V.T @ z), V - eta * e * np.outer(z, U[i])
    return U, V


@pytest.mark.parametrize("scale", [1.0, 1.7])
def test_local_steps_are_the_paper_s(scale: float) -> None:
    rng = np.random.default_rng(0)
    problem = IMC(instance())
    U, V, z = rng.standard_normal((16, 2)), rng.standard_normal((4, 2)), scale * problem.Z[:3]
    items = rng.integers(0, 16, size=(3, 25))
    Us, g = local_steps(U, V, z, items, problem.L[items, np.arange(3)[:, None]], 0.3)
    for m in range(3):
        own_U, own_V = transcribed(U, V, z[m], problem.L[:, m], items[m].tolist(), 0.3)
        np.testing.assert_allclose(Us[m], own_U, rtol=1e-10)
        np.testing.assert_allclose(V + np.outer(z[m], g[m]), own_V, rtol=1e-10)


def test_the_mean_step_over_all_items_is_the_gradient_over_d() -> None:
    """docs/derivations/imc-step.md: the step lacks the factor d. Finite differences of the client's own loss."""
    rng = np.random.default_rng(1)
    problem = IMC(instance())
    U, V, z, column = rng.standard_normal((16, 2)), rng.standard_normal((4, 2)), problem.Z[0], problem.L[:, 0]
    items = np.arange(16)[:, None]
    Us, g = local_steps(U, V, np.tile(z, (16, 1)), items, column[items], 1.0)

    def loss(U: np.ndarray, V: np.ndarray) -> float:
        return float(0.5 * np.square(U @ (V.T @ z) - column).sum())

    h, step = 1e-6, np.zeros((16, 2))
    for i, j in ((0, 0), (7, 1), (15, 0)):
        step[:] = 0
        step[i, j] = h
        slope = (loss(U + step, V) - loss(U - step, V)) / (2 * h)
        assert (U - Us.mean(axis=0))[i, j] == pytest.approx(slope / 16, rel=1e-6, abs=1e-9)
    step = np.zeros((4, 2))
    step[2, 1] = h
    slope = (loss(U, V + step) - loss(U, V - step)) / (2 * h)
    assert -np.outer(z, g.mean(axis=0))[2, 1] == pytest.approx(slope / 16, rel=1e-6)


def by_hand(problem: IMC, U: np.ndarray, V: np.ndarray, Z: np.ndarray, draws: Any, reading: str) -> Any:
    """Rounds of ``imc-perfedsi`` (reading "z") or ``imc-plain`` with loops."""
    for clients, items in draws:
        pairs = [
            transcribed(U, V, Z[m], problem.L[:, m], row, 1.0) for m, row in zip(clients, items.tolist(), strict=True)
        ]
        U = np.mean([pair[0] for pair in pairs], axis=0)
        if reading == "N2":
            V = V.copy()
            for m, (_, own) in zip(clients, pairs, strict=True):
                V[m] = own[m]
        else:
            V = np.mean([pair[1] for pair in pairs], axis=0)
    return U, V


@pytest.mark.parametrize("reading", ["z", "N1", "N2"])
def test_rounds_are_averages_of_local_steps(reading: str) -> None:
    problem = IMC(instance())
    method = IMCPerFedSI(tau=7) if reading == "z" else IMCPlain(tau=7, reading=reading)
    history = drive.run(method, problem, 6, rng=np.random.default_rng(5), init=problem.initial(1), metrics=("error",))
    from fedrepro.seeds import streams

    draws = method.draws(problem, streams(np.random.default_rng(5)), None)
    Z = problem.Z if reading == "z" else np.eye(20)
    U0, V0 = problem.start(problem.initial(1), (16, 2), (Z.shape[1], 2), np.random.default_rng())
    U, V = by_hand(problem, U0, V0, Z, [next(draws) for _ in range(6)], reading)
    np.testing.assert_allclose(history.state.U, U, rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(history.state.V, V, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("reading", ["z", "N1"])
def test_a_client_drawn_twice_takes_part_as_two(reading: str) -> None:
    """perfedsi Assumption C.1: every client of a round is drawn from all of them (discrepancy perfedsi.23)."""
    from fedrepro.seeds import streams

    problem = IMC(instance())
    kind = IMCPerFedSI if reading == "z" else IMCPlain
    method = kind(tau=7, m=8, replacement=True)
    history = drive.run(method, problem, 6, rng=np.random.default_rng(5), init=problem.initial(1), metrics=("error",))
    draws = method.draws(problem, streams(np.random.default_rng(5)), None)
    rounds = [next(draws) for _ in range(6)]
    assert any(len(set(clients.tolist())) < 8 for clients, _ in rounds)
    Z = problem.Z if reading == "z" else np.eye(20)
    U0, V0 = problem.start(problem.initial(1), (16, 2), (Z.shape[1], 2), np.random.default_rng())
    U, V = by_hand(problem, U0, V0, Z, rounds, reading)
    np.testing.assert_allclose(history.state.U, U, rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(history.state.V, V, rtol=1e-9, atol=1e-14)


def test_n3_is_one_vector_for_all_clients() -> None:
    problem = IMC(instance())
    state = drive.run(IMCPlain(reading="N3"), problem, 50, metrics=("error",)).state
    columns = state.U @ state.V.T @ state.Z.T
    assert (columns == columns[:, :1]).all()
    assert state.V.tolist() == [[1.0]]


def test_rotating_the_factors_changes_no_prediction() -> None:
    problem = IMC(instance())
    U, V = problem.start(problem.initial(0), (16, 2), (4, 2), np.random.default_rng())
    Q = np.linalg.qr(np.random.default_rng(0).standard_normal((2, 2)))[0]
    errors = [
        drive.run(IMCPerFedSI(), problem, 30, rng=np.random.default_rng(1), init=init, metrics=("error",))["error"]
        for init in ((U, V), (U @ Q, V @ Q))
    ]
    np.testing.assert_allclose(*errors, rtol=1e-10)


# -- convergence: the claims of the figure -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [2, 5])
def test_with_side_information_convergence_is_linear_to_machine_precision(seed: int) -> None:
    problem = IMC(instance(seed))
    error = drive.run(IMCPerFedSI(), problem, 3000, trial=seed, metrics=("error",))["error"]
    assert error[-1] < 1e-12
    between = np.flatnonzero((error < 1e-1) & (error > 1e-12))
    assert np.corrcoef(between, np.log10(error[between]))[0, 1] ** 2 > 0.98


@pytest.mark.parametrize("reading", ["N1", "N2", "N3"])
def test_without_side_information_most_instances_are_not_recovered(reading: str) -> None:
    """perfedsi Fig. 3: a third of the instances creep below 0.1, so only the median is meaningful."""
    method, given = IMCPlain(reading=reading), {"metrics": ("error",), "record_every": 1000}
    final = [drive.run(method, IMC(instance(s)), 1000, trial=s, **given)["error"][-1] for s in range(7)]
    assert np.median(final) > 0.1
    assert min(final) > 1e-6


@pytest.mark.parametrize(("method", "rounds"), [(IMCPerFedSI(), 600), (IMCPlain(reading="N2"), 600)])
def test_with_fresh_entries_both_converge(method: Any, rounds: int) -> None:
    """The failure is one of sample count, not of optimization (discrepancy perfedsi.18)."""
    problem = IMC(instance(2), fresh=True)
    assert drive.run(method, problem, rounds, trial=2, metrics=("error",))["error"][-1] < 1e-12


def test_the_figure_s_draws_are_determined_without_side_information_too() -> None:
    """docs/derivations/imc-instances.md#without-side-information: L* is isolated, but worse conditioned than M*."""
    for trial in range(1, 21):
        made = of_the_figure(trial)
        alone = conditioning(made.U, made.Z @ made.V, np.eye(20), made.observed)
        assert 1e-3 < alone < 0.2 * made.facts["lam_min"]


def of_the_figure(trial: int) -> Instance:
    """The well-posed instance of a trial of perfedsi Fig. 3 at the paper tier."""
    from fedrepro.runs.compute.execute import data_of
    from fedrepro.spec.read import load

    from .conftest import ROOT

    setting = load(ROOT / "experiments" / "perfedsi" / "fig3.yaml", "paper").panels[0].curves[0].setting
    return data_of(setting, trial)[0]


def observed_loss(problem: IMC, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Gradient and Hessian of 1/2 the mean square error on the entries seen, at the factors x, one after the other."""
    (d, r), M, k = problem.U.shape, problem.M, problem.k
    U, V = x[: d * r].reshape(d, r), x[d * r :].reshape(k, r)
    client, item = np.repeat(np.arange(M), problem.items.shape[1]), problem.items.ravel()
    e = np.einsum("nr,nr->n", U[item], (problem.Z @ V)[client]) - problem.L[item, client]
    J = np.zeros((e.size, d * r + k * r))
    by_U = J[:, : d * r].reshape(e.size, d, r)
    by_U[np.arange(e.size), item] = (problem.Z @ V)[client]
    J[:, d * r :] = (problem.Z[client][:, :, None] * U[item][:, None, :]).reshape(e.size, -1)
    cross = np.zeros((d, r, k, r))
    for n in range(e.size):
        for a in range(r):
            cross[item[n], a, :, a] += e[n] * problem.Z[client[n]]
    H = J.T @ J
    H[: d * r, d * r :] += cross.reshape(d * r, k * r)
    H[d * r :, : d * r] += cross.reshape(d * r, k * r).T
    return J.T @ e / e.size, H / e.size


def test_trial_17_ends_in_a_local_minimum_and_a_shorter_step_does_not() -> None:
    """discrepancy perfedsi.24, docs/derivations/imc-instances.md#a-local-minimum-on-a-well-posed-instance."""
    made = of_the_figure(17)
    problem = IMC(made)
    assert problem.lam_min > 0.3
    end = drive.run(IMCPerFedSI(), problem, 3000, trial=17, metrics=("error",), record_every=1000).state
    x = np.concatenate([end.U.ravel(), end.V.ravel()])
    for _ in range(60):  # Newton steps, cautious at first, on the directions that change the prediction
        g, H = observed_loss(problem, x)
        values, vectors = np.linalg.eigh(H)
        curved = np.abs(values) > 1e-9
        step = vectors[:, curved] @ (vectors[:, curved].T @ g / np.abs(values[curved]))
        x = x - step * min(1.0, 0.1 / np.linalg.norm(step))
    g, H = observed_loss(problem, x)
    values = np.linalg.eigvalsh(H)
    assert np.linalg.norm(g) < 1e-15
    assert np.abs(values[:4]).max() < 1e-15  # rescaling (U, V) changes nothing
    assert values[4] > 1e-4  # and every other direction goes up
    U, V = x[:32].reshape(16, 2), x[32:].reshape(4, 2)
    assert np.linalg.norm(U @ V.T @ problem.Z.T - problem.L) > 0.5 * problem.norm
    for method in (IMCPerFedSI(eta=0.5), IMCPerFedSI(tau=5), IMCPerFedSI(m=20)):
        assert drive.run(method, problem, 2000, trial=17, metrics=("error",), record_every=1000)["error"][-1] < 1e-9
    fresh = drive.run(IMCPerFedSI(), IMC(made, fresh=True), 400, trial=17, init=(U, V), metrics=("error",))
    assert fresh["error"][-1] < 1e-12


def test_fixed_clients_look_at_their_own_entries_only() -> None:
    made = instance(4)
    spoiled = IMC(made)
    outside = np.ones((16, 20), dtype=bool)
    outside[made.observed, np.arange(20)[:, None]] = False
    spoiled.L = np.where(outside, 99.0, spoiled.L)
    runs = [drive.run(IMCPerFedSI(), p, 40, trial=1, metrics=("lam_min",)).state for p in (IMC(made), spoiled)]
    np.testing.assert_array_equal(runs[0].U, runs[1].U)


def test_the_error_is_of_all_entries_and_the_observed_one_of_those_seen() -> None:
    made = instance()
    problem = IMC(made)
    history = drive.run(IMCPerFedSI(), problem, 3, metrics=("error", "observed_error", "loss"))
    true, ours = (U @ V.T @ made.Z.T for U, V in ((made.U, made.V), (history.state.U, history.state.V)))
    off, seen = (ours - true) ** 2, np.zeros(true.shape, dtype=bool)
    for m, items in enumerate(made.observed):
        seen[items, m] = True
    assert history["error"][-1] == pytest.approx(np.sqrt(off.sum() / (true**2).sum()))
    assert history["observed_error"][-1] == pytest.approx(np.sqrt(off[seen].sum() / (true[seen] ** 2).sum()))
    assert history["loss"][-1] == pytest.approx(off.sum() / (2 * problem.M))


# -- messages, replay, errors ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "kind", "size"),
    [
        (IMCPerFedSI(), "U, V", 16 * 2 + 4 * 2),
        (IMCPlain(), "U, V", 16 * 2 + 20 * 2),
        (IMCPlain(reading="N2"), "U", 16 * 2),
        (IMCPlain(reading="N3"), "U", 16),
    ],
)
def test_messages_carry_the_factors_and_never_side_information(method: Any, kind: str, size: int) -> None:
    history = drive.run(method, IMC(instance()), 3, metrics=("error",))
    assert history.ledger.by_kind == {f"downlink:{kind}": 3 * 4 * size, f"uplink:{kind}": 3 * 4 * size}
    assert history.ledger.setup_scalars == 0


def test_a_run_is_repeated_exactly_and_clients_can_be_given() -> None:
    problem = IMC(instance())
    runs = [drive.run(IMCPerFedSI(m=2), problem, 20, trial=3, metrics=("error",)) for _ in range(2)]
    assert runs[0]["error"].tobytes() == runs[1]["error"].tobytes()
    given = drive.run(IMCPerFedSI(m=2), problem, 2, clients=[[0, 1], [4, 5]], metrics=("error",))
    assert len(given["error"]) == 3
    with pytest.raises(UserError, match=r"^clients: must be integers of shape \(rounds, m = 2\), not int64 \(1, 3\)$"):
        drive.run(IMCPerFedSI(m=2), problem, 1, clients=[[0, 1, 2]], metrics=("error",))
    with pytest.raises(UserError, match=r"^clients: ids must lie between 0 and 19$"):
        drive.run(IMCPerFedSI(m=2), problem, 1, clients=[[0, 20]], metrics=("error",))


def test_methods_draw_the_same_clients() -> None:
    from fedrepro.seeds import streams

    problem = IMC(instance())
    for first, second in zip(
        IMCPerFedSI().draws(problem, streams(np.random.default_rng(0)), None),
        IMCPlain(reading="N3").draws(problem, streams(np.random.default_rng(0)), None),
        strict=False,
    ):
        np.testing.assert_array_equal(first[0], second[0])
        np.testing.assert_array_equal(first[1], second[1])
        break


def test_a_step_too_large_ends_as_diverged() -> None:
    history = drive.run(IMCPerFedSI(eta=50.0), IMC(instance()), 200, metrics=("error",))
    assert len(history["error"]) < 201
    assert IMC.diverged({"error": history["error"]}) == f"error is not finite at record {len(history['error']) - 1}"
    assert IMC.diverged({"error": np.array([1.0, 2.0])}) is None


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: IMCPerFedSI(eta=0.0), "eta: must be a number greater than 0, not 0.0"),
        (lambda: IMCPerFedSI(tau=0), "tau: must be an integer of at least 1, not 0"),
        (lambda: IMCPlain(reading="N4"), "reading: must be one of N1, N2, N3, not 'N4', did you mean 'N3'?"),
        (lambda: IMCPerFedSI(m=30).check(M=20), "m: must be at most the number of clients M = 20, not 30"),
        (lambda: IMC(instance(), init=0), "init: must be a number greater than 0, not 0"),
        (
            lambda: IMCPlain(reading="N2", replacement=True),
            "replacement: row m stays with client m in reading N2, which cannot take part twice",
        ),
    ],
)
def test_parameters_that_cannot_work_say_why(call: Any, message: str) -> None:
    with pytest.raises(ParameterError) as caught:
        call()
    assert str(caught.value) == message


def test_explicit_factors_must_fit() -> None:
    with pytest.raises(UserError, match=r"^init: U and V must have shapes \(16, 2\) and \(4, 2\)"):
        drive.run(IMCPerFedSI(), IMC(instance()), 1, init=(np.ones((16, 2)), np.ones((5, 2))), metrics=("error",))


def test_a_start_near_the_truth_is_the_truth_and_the_same_entries() -> None:
    near, far = IMC(instance(), init=0.01, truth=True), IMC(instance(), init=0.01)
    shapes = (16, 2), (4, 2)
    rng = np.random.default_rng(0)
    begun = near.start(near.initial(3), *shapes, rng)
    for part, drawn, true in zip(begun, far.start(far.initial(3), *shapes, rng), (near.U, near.V), strict=True):
        np.testing.assert_allclose(part - true, drawn, atol=1e-15)
    history = drive.run(IMCPerFedSI(), near, 0, init=near.initial(3), metrics=("error",))
    assert history["error"][0] < 0.05
    with pytest.raises(UserError, match=r"^truth: a method without side information learns other matrices"):
        drive.run(IMCPlain(), near, 1, init=near.initial(0), metrics=("error",))


def test_a_stored_problem_is_the_same(tmp_path: Path) -> None:
    made = instance()
    IMC.prepare(tmp_path, made, None, {})
    stored, memory = IMC.stored(tmp_path, {"fresh": True}), IMC(made, fresh=True)
    runs = [drive.run(IMCPerFedSI(), p, 10, metrics=("error", "loss", "lam_min")) for p in (stored, memory)]
    assert runs[0]["loss"].tobytes() == runs[1]["loss"].tobytes()
    np.testing.assert_allclose(runs[0]["loss"], (runs[0]["error"] * stored.norm) ** 2 / 40)
    assert runs[0]["lam_min"][0] == made.facts["lam_min"]
