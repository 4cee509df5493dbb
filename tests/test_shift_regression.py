"""The regression toy of perfedsi Appendix B: its risks, its methods against their limits, what is sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedrepro.datasets.biased_regression import Biased, BiasedRegression
from fedrepro.errors import ParameterError, UserError
from fedrepro.problems.shift import problem as shift
from fedrepro.problems.shift.methods.gradient_descent import ShiftAveraging
from fedrepro.problems.shift.methods.least_squares import ShiftExact
from fedrepro.problems.shift.problem import Shift
from fedrepro.runs.compute import drive

METRICS = tuple(shift.METRICS)


def data(seed: int = 0, **parameters: Any) -> Biased:
    return BiasedRegression(**parameters).load(rng=np.random.default_rng(seed))


def risk(method: Any, problem: Shift, rounds: int = 300, metric: str = "excess_risk") -> float:
    return float(drive.run(method, problem, rounds, metrics=METRICS)[metric][-1])


def test_biases_have_standard_deviation_one_and_side_information_tells_them() -> None:
    made = data()
    assert made.b.std() == pytest.approx(1.0)
    weights, rest, *_ = np.linalg.lstsq(made.z, made.b, rcond=None)
    np.testing.assert_allclose(made.z @ weights, made.b, atol=1e-12)
    made = data(informative=False)
    weights, rest, *_ = np.linalg.lstsq(made.z, made.b, rcond=None)
    assert rest[0] > 50  # of 100 = M


def test_excess_risk_is_the_loss_beyond_the_best() -> None:
    """A large sample of fresh data agrees with the formula of Appendix B."""
    rng = np.random.default_rng(0)
    problem = Shift(data(M=5, d=3, k=2), sigma_b=1.5)
    state = problem.state(rng.standard_normal(4))
    x = rng.standard_normal((400_000, 3))
    excess = []
    for m in range(5):
        best, guess = x @ problem.theta + problem.b[m], x @ state.theta + state.c[m]
        excess.append(0.5 * np.mean((guess - best) ** 2))
    assert problem.measure(state, ("excess_risk",))["excess_risk"] == pytest.approx(np.mean(excess), rel=0.01)


@pytest.mark.parametrize("sigma_b", [0.0, 0.5, 4.0])
def test_the_theory_line_is_half_the_variance(sigma_b: float) -> None:
    problem = Shift(data(), sigma_b=sigma_b)
    history = drive.run(ShiftExact("theory"), problem, 5, metrics=METRICS)
    assert len(history["excess_risk"]) == 1
    assert history["excess_risk"][0] == pytest.approx(0.5 * sigma_b**2, abs=1e-12)
    assert history["half_variance"][0] == pytest.approx(0.5 * sigma_b**2, abs=1e-12)


@pytest.mark.parametrize(("side", "solution"), [(False, "global"), (True, "side")])
def test_fedavg_with_one_local_step_of_all_clients_ends_at_least_squares(side: bool, solution: str) -> None:
    problem = Shift(data(M=30, n=40))
    exact = next(ShiftExact(solution).rounds(problem, np.random.default_rng()))
    state = drive.run(ShiftAveraging(side=side, tau=1, m=None, eta=0.5), problem, 1500, metrics=METRICS).state
    np.testing.assert_allclose(state.theta, exact.theta, atol=1e-9)
    np.testing.assert_allclose(state.c, exact.c, atol=1e-9)


def test_least_squares_is_a_minimum_of_the_paper_s_objective() -> None:
    problem = Shift(data(M=6, n=8, d=3, k=2))
    for side, solution in ((False, "global"), (True, "side")):
        A, y = problem.design(side), problem.y
        p = np.linalg.lstsq(A.reshape(48, -1), y.ravel(), rcond=None)[0]
        state = next(ShiftExact(solution).rounds(problem, np.random.default_rng()))
        np.testing.assert_allclose(state.theta, p[:3], atol=1e-12)
        lowest = np.square(A @ p - y).sum()
        for step in 1e-3 * np.eye(len(p)):
            assert min(np.square(A @ (p + s * step) - y).sum() for s in (-1, 1)) > lowest


def test_a_round_is_the_mean_of_gradient_steps() -> None:
    problem = Shift(data(M=4, n=6, d=3, k=2))
    clients = [[0, 2], [3, 1]]
    history = drive.run(
        ShiftAveraging(side=True, m=2, tau=3, eta=0.2), problem, 2, clients=clients, metrics=METRICS, keep=True
    )
    p, A = np.zeros(6), problem.design(True)
    for drawn in clients:
        results = []
        for m in drawn:
            q = p.copy()
            for _ in range(3):
                q = q - 0.2 * A[m].T @ (A[m] @ q - problem.y[m]) / 6
            results.append(q)
        p = np.mean(results, axis=0)
    np.testing.assert_allclose(history.state.theta, p[:3], rtol=1e-12)
    np.testing.assert_allclose(history.state.c, p[3] + problem.z @ p[4:], rtol=1e-12)


def test_without_noise_side_information_and_enough_samples_recover_everything() -> None:
    problem = Shift(data(n=30, noise=0.0), sigma_b=2.0)
    assert risk(ShiftExact("side"), problem) < 1e-24
    assert risk(ShiftExact("local"), problem) < 1e-24
    assert risk(ShiftExact("global"), problem) == pytest.approx(2.0, rel=0.05)


def test_side_information_of_zeros_is_fedavg() -> None:
    made = data()
    made.z[:] = 0
    runs = [drive.run(ShiftAveraging(side=side), Shift(made), 20, metrics=METRICS) for side in (False, True)]
    np.testing.assert_allclose(runs[0]["excess_risk"], runs[1]["excess_risk"], rtol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_the_figure_s_claims(seed: int) -> None:
    """docs/derivations/shift-regression.md: no-z risk within 10 % of Var(b)/2; PerFedSI small and flat in sigma_b."""
    made = data(seed)
    with_z = [risk(ShiftAveraging(side=True), Shift(made, sigma_b=s)) for s in (0.0, 0.5, 1.0, 2.0, 4.0)]
    without = [risk(ShiftAveraging(), Shift(made, sigma_b=s)) for s in (1.0, 2.0, 4.0)]
    np.testing.assert_allclose(without, [0.5, 2.0, 8.0], rtol=0.1)
    assert max(with_z) < 0.02
    assert max(with_z) / min(with_z) < 1.5


def test_side_information_that_tells_nothing_brings_nothing() -> None:
    problem = Shift(data(informative=False), sigma_b=2.0)
    assert risk(ShiftAveraging(side=True), problem) > 0.8 * risk(ShiftAveraging(), problem)


@pytest.mark.parametrize("clients", [100, 1000])
def test_with_least_squares_each_parameter_costs_half_the_noise_variance_over_all_samples(clients: int) -> None:
    """docs/derivations/shift-regression.md: (d + 1) and (d + k + 1) parameters, equal biases, n = 50."""
    means = {"global": 0.0, "side": 0.0}
    for seed in range(20):
        problem = Shift(data(seed, M=clients, n=50), sigma_b=0.0)
        for solution in means:
            means[solution] += risk(ShiftExact(solution), problem) / 20
    one = 0.5 * 0.5**2 / (clients * 50)
    for solution, parameters in (("global", 21), ("side", 26)):
        spread = one * np.sqrt(2 * parameters / 20)  # of the mean of 20 chi-squared numbers
        assert means[solution] == pytest.approx(one * parameters, abs=4 * spread)


@pytest.mark.parametrize(("side", "size"), [(False, 21), (True, 26)])
def test_messages_carry_parameters_and_never_side_information(side: bool, size: int) -> None:
    history = drive.run(ShiftAveraging(side=side), Shift(data()), 4, metrics=METRICS)
    assert history.ledger.by_kind == {"downlink:parameters": 4 * 20 * size, "uplink:parameters": 4 * 20 * size}


def test_exact_solutions_send_nothing_and_stop() -> None:
    for solution in ("global", "side", "local", "theory"):
        history = drive.run(ShiftExact(solution), Shift(data()), 5, metrics=METRICS)
        assert len(history.rounds) == 1
        assert history.ledger.by_kind == {}


def test_a_stored_problem_is_the_same(tmp_path: Path) -> None:
    made = data()
    Shift.prepare(tmp_path, made, None, {"sigma_b": 2.0})
    runs = [
        drive.run(ShiftAveraging(side=True), p, 5, metrics=METRICS)
        for p in (Shift.stored(tmp_path, {"sigma_b": 2.0}), Shift(made, sigma_b=2.0))
    ]
    assert runs[0]["excess_risk"].tobytes() == runs[1]["excess_risk"].tobytes()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ShiftAveraging(eta=-1), "eta: must be a number greater than 0, not -1"),
        (lambda: ShiftAveraging(m=101).check(M=100), "m: must be at most the number of clients M = 100, not 101"),
        (lambda: ShiftExact("best"), "solution: must be one of global, side, local, theory, not 'best'"),
        (lambda: Shift(data(), sigma_b=-1.0), "sigma_b: must be a number of at least 0, not -1.0"),
        (lambda: data(M=1), "M: must be an integer of at least 2, not 1"),
    ],
)
def test_parameters_that_cannot_work_say_why(call: Any, message: str) -> None:
    with pytest.raises(ParameterError) as caught:
        call()
    assert str(caught.value) == message


def test_explicit_starts_and_clients_must_fit() -> None:
    problem = Shift(data())
    with pytest.raises(UserError, match=r"^init: must have shape \(21,\), not \(3,\)$"):
        drive.run(ShiftAveraging(), problem, 1, init=np.ones(3), metrics=METRICS)
    with pytest.raises(UserError, match=r"^clients: must be integers of shape \(rounds, m = 20\), not int64 \(1, 2\)$"):
        drive.run(ShiftAveraging(), problem, 1, clients=[[0, 1]], metrics=METRICS)
