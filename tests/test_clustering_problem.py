"""The clustering problem: its formulas against direct ones, its storage, its measures, its errors."""

from __future__ import annotations

import itertools
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import fedrepro
from fedrepro import registry
from fedrepro.datasets.types import Samples
from fedrepro.errors import ParameterError, UserError
from fedrepro.problems.clustering import labels
from fedrepro.problems.clustering.methods.fedmavg import FedMAvg
from fedrepro.problems.clustering.methods.fedmgs import FedMGS
from fedrepro.problems.clustering.problem import Clustering
from fedrepro.problems.clustering.state import State
from fedrepro.runs.compute.drive import run

from .naive_clustering import Naive, instance


def start(problem: Clustering, W0: np.ndarray, H0: np.ndarray) -> State:
    return problem.start((W0, H0), np.random.default_rng(0))


# Formulas


def test_the_gradients_of_the_transcription_are_those_of_its_cost() -> None:
    X, client, W0, H0 = instance(1)
    n = Naive(X, client, 3, 0.05, 0.02)
    rng = np.random.default_rng(0)
    for p in range(n.P):
        Hp = H0[:, n.own[p]]
        dW, dH = rng.standard_normal(W0.shape), rng.standard_normal(Hp.shape)
        t = 1e-6
        slope_W = (n.F_p(p, W0 + t * dW, Hp) - n.F_p(p, W0 - t * dW, Hp)) / (2 * t)
        slope_H = (n.F_p(p, W0, Hp + t * dH) - n.F_p(p, W0, Hp - t * dH)) / (2 * t)
        assert slope_W == pytest.approx(np.sum(n.grad_W(p, W0, Hp) * dW), rel=1e-6)
        assert slope_H == pytest.approx(np.sum(n.grad_H(p, W0, Hp) * dH), rel=1e-6)
    assert sum(n.omega[p] * n.F_p(p, W0, H0[:, n.own[p]]) for p in range(n.P)) == pytest.approx(n.F(W0, H0), rel=1e-12)


@pytest.mark.parametrize("form", [np.asarray, sparse.csc_matrix])
@pytest.mark.parametrize("given", ["XW", "XH"])
def test_the_objective_is_the_formula(form: type, given: str) -> None:
    X, client, W0, H0 = instance(2, zeros=0.4)
    naive = Naive(X, client, 3, 0.05, 0.02)
    problem = Clustering(form(X), client, K=3, rho=0.05, nu=0.02)
    state = start(problem, W0, H0)
    if given == "XH":
        problem.refresh(state)
    values = problem.measure(state, ("objective", "objective_raw", "rho"))
    assert values["objective_raw"] == pytest.approx(naive.F(W0, H0), rel=1e-13)
    assert values["objective"] == pytest.approx(40 * naive.F(W0, H0) / np.sum(X**2), rel=1e-13)
    assert values["rho"] == 0.05


def test_absolute_penalties_are_the_formulas_own_numbers() -> None:
    X, client, W0, H0 = instance(3)
    problem = Clustering(X, client, K=3, rho=0.3, nu=0.2, relative=False)
    plain = np.sum((X - W0 @ H0) ** 2) / 40 + 0.15 * np.sum(H0.sum(0) ** 2 - np.sum(H0**2, 0)) + 0.1 * np.sum(H0**2)
    assert problem.measure(start(problem, W0, H0), ("objective_raw",))["objective_raw"] == pytest.approx(
        plain, rel=1e-13
    )


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_a_near_perfect_fit_is_measured_to_full_accuracy(form: type) -> None:
    rng = np.random.default_rng(0)
    W, H = rng.random((9, 3)), rng.random((3, 30))
    E = 1e-9 * rng.standard_normal((9, 30))
    problem = Clustering(form(W @ H + E), K=3, rho=0.0, nu=0.0)
    state = start(problem, W, H)
    exact = np.sum(E**2) / np.sum((W @ H + E) ** 2)
    assert exact < 1e-17  # beyond the reach of the expanded square
    assert problem.objective(state) == pytest.approx(exact, rel=1e-5)


def test_curvature_ratio_is_the_largest_local_over_the_global_one() -> None:
    X, client, W0, H0 = instance(4)
    n = Naive(X, client, 3)
    problem = Clustering(X, client, K=3)
    local = [np.linalg.eigvalsh(n.B(p, H0[:, n.own[p]]))[-1] for p in range(n.P)]
    ratio = max(local) / np.linalg.eigvalsh(2 / n.N * H0 @ H0.T)[-1]
    assert problem.curvature_ratio(start(problem, W0, H0)) == pytest.approx(ratio, rel=1e-12)
    assert Clustering(X, K=3).curvature_ratio(start(Clustering(X, K=3), W0, H0)) == pytest.approx(1.0)
    assert np.isnan(problem.curvature_ratio(start(problem, W0, 0 * H0)))


# Storage and order


def test_assignments_come_back_in_the_callers_order() -> None:
    X, client, W0, H0 = instance(5)
    problem = Clustering(X, client, K=3)
    np.testing.assert_array_equal(start(problem, W0, H0).H, H0)
    for p in range(problem.P):
        np.testing.assert_array_equal(problem.samples(problem.client(p)).T, X[:, client == p])
    assert problem.sizes.tolist() == np.bincount(client).tolist()
    np.testing.assert_array_equal(problem.found(start(problem, W0, H0)), H0.argmax(axis=0))


def test_the_authors_initial_point_does_not_depend_on_the_partition() -> None:
    X, client, _, _ = instance(6)
    W0, H0 = Clustering(X, client, K=3).initial(4)
    for other in (None, np.arange(40) % 3, np.arange(40)[::-1].copy()):
        again = Clustering(X, other, K=3).initial(4)
        np.testing.assert_array_equal(again[0], W0)
        np.testing.assert_array_equal(again[1], H0)
    draw = np.random.RandomState(4)
    a = np.sqrt(np.mean(np.abs(X)) / 3)
    np.testing.assert_allclose(W0, a * draw.rand(7, 3), rtol=1e-14)
    np.testing.assert_allclose(H0, (a * draw.rand(40, 3)).T, rtol=1e-14)


def test_without_an_initial_point_a_run_starts_at_one_drawn_from_its_generator() -> None:
    X, client, _, _ = instance(7)
    problem = Clustering(X, client, K=3)
    first, again, other = (next(FedMGS().rounds(problem, np.random.default_rng(s))).W.copy() for s in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    assert first.min() >= 0
    assert first.max() < np.sqrt(problem.abs_mean / 3)


def test_ordered_samples_are_not_copied() -> None:
    rows = np.random.default_rng(0).random((30, 6))
    client = np.repeat([0, 1, 2], 10)
    assert np.shares_memory(Clustering(rows.T, client, K=2).X, rows)
    assert not np.shares_memory(Clustering(rows.T, client[::-1], K=2).X, rows)
    thin = sparse.csc_matrix(rows.T)
    before = thin.data.copy()
    assert np.shares_memory(Clustering(thin, client, K=2).X.data, thin.data)
    Clustering(thin, client[::-1], K=2)
    np.testing.assert_array_equal(thin.data, before)


@pytest.mark.parametrize(
    "form", [np.asarray, np.asfortranarray, sparse.csc_matrix, lambda X: (10 * X).astype(np.uint8)]
)
def test_a_stored_problem_is_the_one_in_memory(form: Callable[[Any], Any], tmp_path: Path) -> None:
    X, client, W0, H0 = instance(8, zeros=0.3)
    X = form(X)
    classes = np.random.default_rng(0).integers(3, size=40)
    Clustering.prepare(tmp_path, Samples(X, classes, 3), client, {})
    stored, held = Clustering.stored(tmp_path, {"rho": 1e-3}), Clustering(X, client, labels=classes, rho=1e-3)
    assert (stored.K, stored.P, stored.M, stored.N) == (held.K, held.P, held.M, held.N) == (3, 5, 7, 40)
    assert (stored.norm2, stored.abs_mean, stored.w_min, stored.w_max) == (
        held.norm2,
        held.abs_mean,
        held.w_min,
        held.w_max,
    )
    names = ("objective", "accuracy")
    for method in (FedMGS(m=2), FedMAvg()):
        a, b = (run(method, p, 4, init=(W0, H0), metrics=names) for p in (stored, held))
        for name in names:
            np.testing.assert_array_equal(a[name], b[name])
        np.testing.assert_array_equal(a.state.H, b.state.H)


def test_stored_samples_are_mapped_and_cannot_be_written(tmp_path: Path) -> None:
    X, client, _, _ = instance(9)
    Clustering.prepare(tmp_path, Samples(X, None, 4), client, {})
    problem = Clustering.stored(tmp_path, {})
    assert isinstance(problem.X.base, np.memmap)
    assert not problem.X.flags.writeable
    np.testing.assert_array_equal(np.load(tmp_path / "rows.npy"), X.T[np.argsort(client, kind="stable")])
    (tmp_path / "thin").mkdir()
    Clustering.prepare(tmp_path / "thin", Samples(sparse.csc_matrix(X), None, 4), client, {})
    thin = Clustering.stored(tmp_path / "thin", {}).X
    assert not thin.data.flags.writeable
    assert thin.nnz == X.size


def test_a_run_needs_little_more_memory_than_its_data(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.random((600, 3000))
    problem = Clustering(X, rng.integers(30, size=3000), K=4)
    init = problem.initial(1)
    for method in (FedMGS(m=3), FedMGS(), FedMAvg(m=3), FedMAvg(), FedMAvg(m=3, participation="pcp")):
        tracemalloc.start()
        states = method.rounds(problem, np.random.default_rng(0), init=init)
        peaks = []
        for _ in range(8):
            problem.objective(next(states))
            peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert peaks[-1] < 0.3 * X.nbytes
        # Nothing grows over rounds: keeping W of each (19 kB) would show; 32 kB is what Python's own caches may take.
        assert peaks[-1] <= 1.05 * peaks[3] + 32_768


def test_sparse_samples_are_never_made_dense(tmp_path: Path) -> None:
    X = sparse.random(2000, 6000, density=0.002, format="csc", random_state=0)
    client = np.random.default_rng(0).integers(20, size=6000)
    tracemalloc.start()
    problem = Clustering(X, client, K=3)
    run(FedMAvg(m=4), problem, 3)
    run(FedMGS(m=4), problem, 3)
    Clustering.prepare(tmp_path, Samples(X, None, 3), client, {})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.06 * 8 * 2000 * 6000


# Labels


def test_labels_are_read_off_the_largest_entry_ties_to_the_first() -> None:
    Hs = np.array([[0.0, 2.0, 1.0], [3.0, 3.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 1e-9]])
    assert labels.from_rows(Hs).tolist() == [1, 0, 0, 2]


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=25),
)
@settings(max_examples=60, deadline=None)
def test_accuracy_is_the_best_one_to_one_map(pairs: list[tuple[int, int]]) -> None:
    true, clusters = (np.array(column) for column in zip(*pairs, strict=True))
    best = max(np.mean(np.array(to)[clusters] == true) for to in itertools.permutations(range(5)))
    assert labels.accuracy(true, clusters) == pytest.approx(best)
    assert labels.purity(true, clusters) == pytest.approx(
        sum(np.bincount(true[clusters == c]).max() for c in np.unique(clusters)) / len(true)
    )


def test_scores_do_not_depend_on_the_clusters_names_and_are_one_for_the_truth() -> None:
    rng = np.random.default_rng(0)
    true = rng.integers(4, size=200)
    clusters = np.where(rng.random(200) < 0.7, true, rng.integers(4, size=200))
    renamed = np.array([2, 0, 3, 1])[clusters]
    for score in labels.SCORES.values():
        assert score(true, renamed) == pytest.approx(score(true, clusters))
        assert score(true, np.array([3, 1, 0, 2])[true]) == pytest.approx(1.0)
    assert abs(labels.ari(true, rng.integers(4, size=200))) < 0.05
    assert abs(labels.ami(true, rng.integers(4, size=200))) < 0.05


def test_label_metrics_and_artifacts_use_the_callers_labels() -> None:
    X, client, W0, H0 = instance(10)
    names = np.array(["b", "a", "c"])[H0.argmax(axis=0)]
    problem = Clustering(X, client, labels=names)
    state = start(problem, W0, H0)
    assert problem.K == 3
    assert set(problem.measure(state, tuple(labels.SCORES)).values()) == {1.0}
    kept = problem.artifacts(state, ("found", "labels", "W", "H"))
    np.testing.assert_array_equal(np.array(["a", "b", "c"])[kept["labels"]], names)
    np.testing.assert_array_equal(kept["found"], H0.argmax(axis=0))
    np.testing.assert_array_equal(kept["H"], H0)


# Running, divergence, registration


def test_use_from_python_in_six_lines() -> None:
    X, client, W0, H0 = instance(11)
    problem = fedrepro.Clustering(X, client, K=3, labels=H0.argmax(axis=0))
    draws = [[0, 1, 2]] * 60
    h = fedrepro.run(fedrepro.FedMGS(m=3, Q1=10, Q2=100), problem, rounds=60, init=(W0, H0), clients=draws)
    assert h["objective"].shape == (61,)
    assert (h.state.W.shape, h.state.H.shape) == ((7, 3), (3, 40))
    assert h["objective"][0] == pytest.approx(problem.objective(start(problem, W0, H0)))
    assert h.rounds.tolist() == list(range(61))
    with pytest.raises(KeyError, match="'accuracy' was not recorded \\(recorded: objective, uplink_scalars"):
        h["accuracy"]
    kept = fedrepro.run(fedrepro.FedMAvg(), problem, 3, metrics=("accuracy", "objective"), keep=True)
    assert kept.states is not None
    assert [problem.objective(s) for s in kept.states] == kept["objective"].tolist()
    assert kept["accuracy"].shape == (4,)
    np.testing.assert_array_equal(fedrepro.run(fedrepro.FedMAvg(), problem, 0).state.W, problem.initial(1)[0])


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"objective": [1.0, 300.0, 0.4]}, None),
        ({"objective": [1.0, np.nan, 0.4]}, "objective is not finite in round 1"),
        ({"objective": [1.0, 0.9], "accuracy": [0.5, np.inf]}, "accuracy is not finite in round 1"),
        ({"objective": [1.0, 0.5, 1.25]}, "objective is 1.25 in round 2, above 1 at the start"),
        ({"objective": [1.0, 2.0], "round": [0, 50]}, "objective is 2 in round 50, above 1 at the start"),
        ({"objective": [0.9, 0.9]}, None),
        ({"accuracy": [0.5, 0.2]}, None),
        ({"objective": []}, None),
    ],
)
def test_divergence_is_told_from_a_transient(values: dict[str, list[float]], reason: str | None) -> None:
    assert Clustering.diverged({name: np.array(column) for name, column in values.items()}) == reason


@pytest.mark.parametrize(
    ("objective", "reason"),
    [
        ([0.9, 0.4, 4.0], None),
        ([0.9, 0.4, np.nan], "objective is not finite in round 2"),
        ([0.9, np.inf, 0.5], "objective is not finite in round 1"),
        ([0.9, 0.4, 1.0], "objective is 1 in round 2, above 0.9 at the start"),  # H = 0
        (
            [1.2, 0.4, 1.0],
            "H is zero everywhere in round 2: is X mostly negative? Shift it, or give another initial point",
        ),
        ([0.9], None),
        ([], None),
    ],
)
def test_where_rho_rises_an_objective_above_its_start_is_no_divergence(
    objective: list[float], reason: str | None
) -> None:
    assert Clustering.raised({"objective": np.array(objective)}) == reason


def test_the_problem_is_registered_with_its_functions(tmp_path: Path) -> None:
    entry = registry.problems()["clustering"]
    X, client, _, _ = instance(12)
    entry.cls.prepare(tmp_path, Samples(X, None, 3), client, dict(entry.parameters))
    problem = entry.cls.stored(tmp_path, dict(entry.parameters))
    init = problem.initial(2)
    state = next(FedMGS().rounds(problem, np.random.default_rng(0), init=init))
    assert set(problem.measure(state, ("objective", "rho"))) == {"objective", "rho"}
    assert entry.data_kind == "samples"
    assert set(entry.default_metrics) <= set(entry.metrics)


# Errors


def small(**changes: object) -> Clustering:
    X = np.arange(1.0, 13.0).reshape(3, 4)
    return Clustering(**{"X": X, "K": 2, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"X": np.zeros((3, 4))}, "X: is zero everywhere, so there is nothing to factorize"),
        ({"X": np.array([[1.0, np.nan, 2.0]])}, "X: sample 1 (counted from 0) contains a value that is not finite"),
        (
            {"X": np.full((1, 3), 1e200)},
            "X: its values are so large that their squares overflow; divide it by its largest value",
        ),
        (
            {"X": np.full((1, 3), 1e154)},
            "X: its values are so large that their squares overflow; divide it by its largest value",
        ),
        ({"X": np.ones(5)}, "X: must be a matrix with one column per sample, not of shape (5,)"),
        ({"X": np.ones((2, 2)) * 1j}, "X: must contain real numbers, not complex128"),
        ({"X": [[1.0]]}, "X: must be a NumPy array or a scipy.sparse matrix, not list"),
        (
            {"client": [0, 0, 2, 2]},
            "client: client 1 of 0 to 2 has no samples; number the clients 0 to P-1 without gaps",
        ),
        ({"client": [0, 1]}, "client: must contain one client id for each of the 4 samples, not shape (2,)"),
        ({"client": [0, 1, -1, 1]}, "client: ids must be the integers 0 to P-1"),
        ({"labels": [0, 1]}, "labels: must contain one label for each of the 4 samples, not shape (2,)"),
        ({"K": None}, "K: give the number of clusters: these samples have no labels to count"),
        ({"K": 0}, "K: must be an integer of at least 1, not 0"),
        ({"rho": -1}, "rho: must be a number of at least 0, not -1"),
        ({"w_min": "min"}, "w_min: must be a number or 'data_min' or 'zero', not 'min', did you mean 'data_min'?"),
        ({"w_min": 20}, "w_min: must not exceed the largest entry of X, 12; it is 20"),
        ({"relative": "yes"}, "relative: must be true or false, not 'yes'"),
    ],
)
def test_bad_input_gives_one_clear_error(changes: dict[str, object], message: str) -> None:
    with pytest.raises(UserError) as error:
        small(**changes)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("init", "message"),
    [
        ((np.ones((3, 3)), np.ones((2, 4))), "init: W0 must have shape (3, 2), not (3, 3)"),
        ((np.ones((3, 2)), np.ones((4, 2))), "init: H0 must have shape (2, 4), not (4, 2)"),
        ((np.full((3, 2), np.inf), np.ones((2, 4))), "init: W0 contains values that are not finite"),
        ((np.ones((3, 2)), -np.ones((2, 4))), "init: H0 must not be negative"),
    ],
)
def test_a_bad_initial_point_is_refused(init: tuple[np.ndarray, np.ndarray], message: str) -> None:
    with pytest.raises(UserError) as error:
        run(FedMGS(), small(), 1, init=init)
    assert str(error.value) == message


def test_one_metric_may_be_named_without_a_list() -> None:
    alone, listed = (run(FedMGS(), small(), 1, metrics=metrics) for metrics in ("objective", ["objective"]))
    assert list(alone.values) == list(listed.values)
    with pytest.raises(UserError, match=r"metrics: .* does not measure 'objectiv', did you mean 'objective'\?"):
        run(FedMGS(), small(), 1, metrics="objectiv")


def test_bad_measures_checks_and_rounds_are_refused() -> None:
    problem = small()
    with pytest.raises(UserError) as error:
        run(FedMGS(), problem, 1, metrics=("accuracy",))
    assert str(error.value) == "the metric 'accuracy' needs the samples' true labels, and this dataset has none"
    with pytest.raises(UserError, match=r"metrics: .* does not measure 'objectiv', did you mean 'objective'\?"):
        run(FedMGS(), problem, 1, metrics=("objectiv",))
    with pytest.raises(UserError, match=r"method: FedMGS is a class, not a method with parameters; write FedMGS\(\)"):
        run(FedMGS, problem, 1)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="artifacts: must be one of W, H, found, labels, embedding, not 'X'"):
        problem.artifacts(next(FedMGS().rounds(problem, np.random.default_rng(0))), ("X",))
    with pytest.raises(UserError, match="rounds: must be an integer of at least 0, not -1"):
        run(FedMGS(), problem, -1)
    with pytest.raises(ParameterError, match="K: must be at most the number of samples N = 4, not 5"):
        Clustering.check({"K": 5}, {"N": 4})
    with pytest.raises(ParameterError, match="init: must be one of authors, not 'random'"):
        Clustering.check({"init": "random"}, {})
    Clustering.check({}, {"N": None, "K": None})
