"""K-means++, K-means||, BEL and CAL against their papers; sums of weights, limits and messages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from fedrepro import registry, seeds
from fedrepro.errors import ParameterError
from fedrepro.ledger import Ledger
from fedrepro.problems.clustering import lloyd
from fedrepro.problems.clustering.methods import cal
from fedrepro.problems.clustering.methods.bel import BEL
from fedrepro.problems.clustering.methods.cal import CAL, kmeans_minus
from fedrepro.problems.clustering.methods.kmeans import KMeansPlusPlus
from fedrepro.problems.clustering.methods.kmeans_parallel import KMeansParallel
from fedrepro.problems.clustering.problem import Clustering
from fedrepro.runs.compute.drive import run

NAMES = ("kmeans++", "kmeans||", "kmeans||-released", "bel", "bel-released", "cal", "cal-released")


def data(seed: int = 0, M: int = 6, N: int = 240, K: int = 4, spread: float = 0.3) -> tuple[np.ndarray, np.ndarray]:
    """X (M, N) around K centres, and the labels."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(K, size=N)
    return np.maximum(4 * rng.random((M, K))[:, labels] + spread * rng.standard_normal((M, N)), 0.0), labels


def problem(P: int = 6, sparse_: bool = False, seed: int = 0, **kw: Any) -> Clustering:
    """Samples of ``data`` with clients of uneven sizes."""
    X, labels = data(seed, **kw)
    rng = np.random.default_rng(seed + 1)
    client = rng.permutation(np.r_[np.arange(P), rng.choice(P, X.shape[1] - P, p=rng.dirichlet(2 * np.ones(P)))])
    return Clustering(sparse.csc_matrix(X) if sparse_ else X, client, K=int(labels.max()) + 1, labels=labels)


def make(name: str, **params: Any) -> Any:
    """The named method, with few outliers for CAL."""
    return registry.methods()[name].make(**({"z": 12} if name.startswith("cal") else {}), **params)


def stream(seed: int = 0) -> np.random.Generator:
    """The random generator of a baseline in trial ``seed``."""
    return seeds.streams(np.random.default_rng(seed)).other


def cost(X: Any, centres: np.ndarray) -> float:
    """The K-means cost, one distance at a time; rows are samples."""
    dense = X.toarray() if sparse.issparse(X) else X
    return float(sum(min(float(((x - c) ** 2).sum()) for c in centres) for x in dense))


# What all of them have in common


@pytest.mark.parametrize("name", NAMES)
def test_one_state_whose_objective_is_the_k_means_cost(name: str) -> None:
    work = problem()
    history = run(make(name), work, 5, trial=3, metrics=("objective", "accuracy"))
    state = history.state
    assert list(history.rounds) == [0]
    assert sorted(np.unique(state.H)) == [0.0, 1.0]
    np.testing.assert_array_equal(state.H.sum(axis=0), np.ones(work.N))
    penalty = 0.5 * work.nu * work.N
    assert history["objective"][0] == pytest.approx(cost(work.X, state.W.T) / work.norm2 + penalty, rel=1e-10)
    assert history["accuracy"][0] > 0.5


@pytest.mark.parametrize("name", NAMES)
def test_a_trial_can_be_repeated_and_another_one_differs(name: str) -> None:
    work = problem(spread=1.5)
    centres = [run(make(name), work, 0, trial=seed).state.W for seed in (1, 1, 2)]
    np.testing.assert_array_equal(centres[0], centres[1])
    assert not np.array_equal(centres[0], centres[2])


@pytest.mark.parametrize("name", NAMES)
def test_sparse_samples_give_what_dense_ones_give(name: str) -> None:
    dense, thin = (run(make(name), problem(sparse_=sparse_), 0, trial=2, metrics=("accuracy",)) for sparse_ in (0, 1))
    np.testing.assert_array_equal(dense.state.H, thin.state.H)
    np.testing.assert_allclose(dense.state.W, thin.state.W, rtol=1e-9, atol=1e-12)
    assert dense.ledger.totals() == thin.ledger.totals()


@pytest.mark.parametrize("name", NAMES)
def test_one_client_is_enough(name: str) -> None:
    X, labels = data()
    assert run(make(name), Clustering(X, labels=labels), 0, metrics=("accuracy",))["accuracy"][0] > 0.5


@pytest.mark.parametrize("name", NAMES)
def test_clients_with_fewer_samples_than_clusters_and_equal_samples_are_no_trouble(name: str) -> None:
    few = Clustering(np.eye(5)[:, :3], [0, 0, 1], K=3)
    values = {"z": 0} if name.startswith("cal") else {}
    history = run(registry.methods()[name].make(**values), few, 0)
    assert np.isfinite(history["objective"]).all()
    same = Clustering(np.ones((3, 40)), np.arange(40) % 4, K=3)
    assert run(make(name), same, 0)["objective"][0] == pytest.approx(0.0, abs=1e-7)


@pytest.mark.parametrize("name", NAMES)
def test_there_is_no_draw_to_replay(name: str) -> None:
    with pytest.raises(ParameterError, match=r"^clients: every client takes part once: there is no draw to replay$"):
        run(make(name), problem(), 1, clients=[[0]])


@pytest.mark.parametrize("name", NAMES)
def test_what_the_ledger_holds_is_what_was_sent(name: str) -> None:
    work, ledger = problem(), Ledger()
    method = make(name, **({"lloyd": 0} if name == "kmeans||" else {}))
    M, K, P = work.M, work.K, work.P
    if name == "kmeans++":
        up, down = 0, 0
    elif name.startswith("kmeans"):
        C = method.candidates(work, stream_after_seed(), Ledger())[0].size
        up, down = C * M + method.passes * P + C * P, C * M * P + method.passes * P + K * M * P
    elif name.startswith("bel"):
        n = method.coreset(work, stream_after_seed(), Ledger())[1].size
        up, down = P + n * (M + 1), P + K * M * P
    else:
        n = method.summaries(work, stream_after_seed(), Ledger())[1].size
        up, down = n * (M + 1), K * M * P
    method.centres(work, stream(), ledger)
    assert (ledger.uplink_scalars, ledger.downlink_scalars) == (up, down)
    assert (ledger.uplink_bits, ledger.downlink_bits) == (32 * up, 32 * down)


def stream_after_seed() -> np.random.Generator:
    draw = stream()
    lloyd.random_state(draw)
    return draw


# The shared parts


@pytest.mark.parametrize("sparse_", [False, True])
def test_nearest_is_the_nearest_and_the_first_of_equals(sparse_: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    X, _ = data(N=50)
    points, centres = X.T.copy(), X.T[[3, 9, 3, 30]].copy()
    points[7] = 0.0
    where, d2 = lloyd.nearest(sparse.csr_matrix(points) if sparse_ else points, centres)
    brute = ((points[:, None, :] - centres[None]) ** 2).sum(axis=2)
    np.testing.assert_array_equal(where, brute.argmin(axis=1))
    np.testing.assert_allclose(d2, brute.min(axis=1), atol=1e-12)
    assert where[3] == 0
    monkeypatch.setattr(lloyd, "_BLOCK_ENTRIES", 8)  # blocks of two points
    again, far = lloyd.nearest(points, centres)
    np.testing.assert_array_equal(again, where)
    np.testing.assert_allclose(far, d2, atol=1e-12)


def test_a_weight_is_so_many_equal_points() -> None:
    X, _ = data(N=30)
    weights = np.random.default_rng(1).integers(0, 4, size=30)
    start = X.T[[0, 8, 20]].copy()
    weighted = lloyd._lloyd(X.T[weights > 0], 3, 0, weights[weights > 0].astype(float), start, 1)
    repeated = lloyd._lloyd(np.repeat(X.T, weights, axis=0), 3, 0, None, start, 1)
    np.testing.assert_allclose(weighted, repeated, rtol=1e-10)


def test_k_means_plus_plus_does_not_depend_on_the_partition() -> None:
    X, labels = data(spread=1.0)
    clients = (None, np.arange(240) % 7, np.random.default_rng(3).permutation(np.arange(240) % 3))
    states = [run(KMeansPlusPlus(), Clustering(X, c, labels=labels), 0, trial=4).state for c in clients]
    for state in states[1:]:
        np.testing.assert_array_equal(state.W, states[0].W)
        np.testing.assert_array_equal(state.H, states[0].H)


def test_more_starts_are_not_worse() -> None:
    work = problem(spread=1.2)
    once, often = (run(KMeansPlusPlus(n), work, 0, trial=5)["objective"][0] for n in (1, 20))
    assert often <= once


# K-means||


def test_with_every_sample_a_candidate_k_means_parallel_is_k_means_on_all() -> None:
    X, labels = data(spread=1.0)
    work = Clustering(X, labels=labels)
    whole = KMeansParallel(oversampling=1e9, passes=1, lloyd=0)
    candidates, weights = whole.candidates(work, stream(), Ledger())
    np.testing.assert_array_equal(candidates, np.arange(240))
    np.testing.assert_array_equal(weights, np.ones(240))
    for seed in range(4):
        both = [run(method, work, 0, trial=seed).state for method in (whole, KMeansPlusPlus())]
        np.testing.assert_allclose(both[0].W, both[1].W, rtol=1e-9)
        np.testing.assert_array_equal(both[0].H, both[1].H)


@pytest.mark.parametrize("sampling", ["independent", "exact"])
def test_candidates_are_distinct_and_weigh_the_samples_nearest_to_them(sampling: str) -> None:
    work = problem(spread=1.0)
    method = KMeansParallel(oversampling=1.5, passes=4, sampling=sampling)
    candidates, weights = method.candidates(work, stream(), Ledger())
    assert (np.diff(candidates) > 0).all()
    if sampling == "exact":
        assert candidates.size == 1 + 4 * 6
    where, _ = lloyd.nearest(work.X, work.X[candidates])
    np.testing.assert_array_equal(weights, np.bincount(where, minlength=candidates.size))
    assert weights.sum() == work.N


def test_a_sample_joins_with_probability_in_proportion_to_its_squared_distance() -> None:
    d2 = np.array([0.0, 1.0, 2.0, 5.0, 8.0])
    draw, method = np.random.default_rng(0), KMeansParallel()
    times = np.zeros(5)
    for _ in range(4000):
        times[method._sample(draw, d2, 1.6)] += 1
    share = 1.6 * d2 / 16  # 0, .1, .2, .5, .8
    np.testing.assert_allclose(times / 4000, share, atol=5 * np.sqrt(0.25 / 4000))
    assert times[0] == 0
    assert KMeansParallel(sampling="exact")._sample(draw, d2, 9.0).tolist() == [1, 2, 3, 4]


def test_lloyd_goes_on_over_the_clients_until_no_centre_moves() -> None:
    work = problem(spread=1.5)
    start, once, whole = (run(KMeansParallel(lloyd=n), work, 0, trial=2) for n in (0, 1, 500))
    by_hand = [work.X[start.state.Hs[:, k] == 1].mean(axis=0) for k in range(work.K)]
    np.testing.assert_allclose(once.state.W.T, by_hand, rtol=1e-12)
    M, K, P = work.M, work.K, work.P
    assert once.ledger.uplink_scalars - start.ledger.uplink_scalars == P * (K * M + K)
    assert once.ledger.downlink_scalars - start.ledger.downlink_scalars == P * K * M
    fixed = [work.X[whole.state.Hs[:, k] == 1].mean(axis=0) for k in range(work.K)]
    np.testing.assert_allclose(whole.state.W.T, fixed, rtol=1e-12)
    assert start["objective"][0] > once["objective"][0] > whole["objective"][0]


# BEL


def test_the_weights_of_one_cluster_by_hand() -> None:
    near, S = np.array([0, 0, 0, 1, 1]), np.array([0, 1, 3])  # |P_b| = 3, 2
    w = np.array([2.0, 2.5, 0.5])  # 4.5 drawn from the first cluster, 0.5 from the second
    kept = {name: BEL(negative=name, seeding="plain").weigh(near, 2, S, w) for name in ("keep", "clip", "rescale")}
    np.testing.assert_allclose(np.concatenate(kept["keep"]), [2, 2.5, 0.5, -1.5, 1.5])
    np.testing.assert_allclose(np.concatenate(kept["clip"]), [2, 2.5, 0.5, 0, 1.5])
    np.testing.assert_allclose(np.concatenate(kept["rescale"]), [4 / 3, 5 / 3, 0.5, 0, 1.5])


@pytest.mark.parametrize("negative", ["rescale", "clip", "keep"])
def test_the_weights_of_the_coreset_add_up(negative: str) -> None:
    work = problem(spread=1.0)
    method = BEL(t=0.3, negative=negative, seeding="plain")
    points, weights = method.coreset(work, stream(), Ledger())
    assert points.shape == (weights.size, work.M)
    assert (weights.min() < 0) == (negative == "keep")
    if negative == "clip":
        assert weights.sum() > work.N + 1
    else:
        assert weights.sum() == pytest.approx(work.N, rel=1e-12)
    dropped = BEL(t=0.02, negative="keep", seeding="plain", variant="released")
    assert dropped.coreset(work, stream(), Ledger())[1].sum() < work.N - 1  # clients without samples send nothing


def test_a_sample_of_the_coreset_weighs_the_mean_cost_of_t_over_its_own() -> None:
    """w_q = sum of all costs / (t m_q), whatever client it comes from; a centre weighs what is left of its cluster."""
    work, method, draw = problem(P=3, spread=1.0), BEL(t=0.3, n_init=2, negative="keep", seeding="plain"), stream()
    local = [method._local(work, p, lloyd.random_state(draw)) for p in range(3)]
    points, weights = method.coreset(work, stream(), Ledger())
    costs, t = np.array([m.sum() for _, _, m in local]), 72
    at = 0
    for (B, near, _), drawn in zip(local, method.shares(costs, t), strict=True):
        S, w_S = points[at : at + drawn], weights[at : at + drawn]
        distances = np.square(S[:, None] - B[None]).sum(axis=2)
        np.testing.assert_allclose(w_S, costs.sum() / (t * distances.min(axis=1)))
        w_B = weights[at + drawn : at + drawn + len(B)]
        for b in range(len(B)):
            assert w_B[b] == pytest.approx((near == b).sum() - w_S[distances.argmin(axis=1) == b].sum())
        at += drawn + len(B)
    assert at == len(weights)


def test_samples_are_shared_out_by_cost_and_none_is_lost() -> None:
    costs = np.array([0.0, 1.0, 2.0, 4.0, 0.0, 3.1])
    exact = 50 * costs / costs.sum()
    given = BEL().shares(costs, 50)
    assert given.sum() == 50
    assert (np.abs(given - exact) < 1).all()
    np.testing.assert_array_equal(BEL(variant="released").shares(costs, 50), np.floor(exact))
    assert not BEL().shares(np.zeros(3), 50).any()


def test_the_coreset_costs_what_the_samples_cost_in_the_mean() -> None:
    work, draw = problem(spread=1.0), stream()
    centres = work.X[[0, 50, 100, 150]]
    method = BEL(t=0.3, n_init=1, negative="keep", seeding="plain")
    costs = []
    for _ in range(80):
        points, weights = method.coreset(work, draw, Ledger())
        costs.append(float(weights @ lloyd.nearest(points, centres)[1]))
    error = np.std(costs) / np.sqrt(len(costs))
    assert np.mean(costs) == pytest.approx(cost(work.X, centres), abs=5 * error)
    assert error < 0.02 * np.mean(costs)


def test_with_at_most_k_samples_at_a_client_the_coreset_is_all_samples() -> None:
    X, labels = data(spread=1.0)
    work = Clustering(X, np.arange(240) % 60, labels=labels)  # 4 samples each, K = 4
    points, weights = BEL().coreset(work, stream(), Ledger())
    np.testing.assert_array_equal(points, work.X)
    np.testing.assert_array_equal(weights, np.ones(240))


def test_negative_weights_need_seeds_drawn_without_them() -> None:
    with pytest.raises(ParameterError) as error:
        BEL(negative="keep")
    assert str(error.value) == "seeding: must be plain where negative is keep: no seed is drawn by a weight below 0"


# CAL


def naive_summary(
    X: np.ndarray, K: int, t: float, draw: np.random.Generator, alpha: float, beta: float
) -> dict[int, float]:
    """Algorithms 1 and 2, transcribed: the weight of each point of the summary, by its row in X."""
    distance = lambda i, j: float(((X[i] - X[j]) ** 2).sum())  # noqa: E731
    left, S = list(range(len(X))), []
    size = int(alpha * max(np.log(len(X)), K))
    while len(left) > 8 * t:
        S_i = {left[i] for i in draw.integers(len(left), size=size)}
        to_S = {x: min(distance(x, y) for y in S_i) for x in left}
        radius = sorted(to_S.values())[int(np.ceil(beta * len(left))) - 1]
        left = [x for x in left if to_S[x] > radius]
        S += sorted(S_i)
    rest = sorted(set(range(len(X))) - set(S) - set(left))
    more = max(0, len(left) - len(S)) if rest else 0
    both = sorted({*S, *((rest[i] for i in draw.integers(len(rest), size=more)) if more else ())})
    weights = dict.fromkeys([*both, *left], 0.0)
    for x in left:
        weights[x] = 1.0
    for x in set(range(len(X))) - set(left):
        weights[min(both, key=lambda y: (distance(x, y), y))] += 1
    return weights


@pytest.mark.parametrize("t", [0.0, 1.0, 3.0, 6.0])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_summary_is_the_one_of_the_paper(t: float, seed: int) -> None:
    X = data(seed, N=90, K=2, spread=0.8)[0].T
    rows, weights = CAL().summary(X, 2, t, np.random.default_rng(seed))
    expected = naive_summary(X, 2, t, np.random.default_rng(seed), 2.0, 0.45)
    assert dict(zip(rows.tolist(), weights, strict=True)) == expected
    assert len(expected) == rows.size
    if t == 6.0:  # X_r is larger than S: the summary was augmented
        _, _, X_r = CAL()._grow(X, 2, t, np.random.default_rng(seed))
        assert rows.size > 1.6 * X_r.size


@pytest.mark.parametrize("sites", ["random", "any"])
def test_the_weights_of_the_summaries_add_up_to_the_samples(sites: str) -> None:
    work = problem(spread=1.0)
    for variant in ("original", "released"):
        _, weights = CAL(z=4, sites=sites, variant=variant).summaries(work, stream(), Ledger())
        assert weights.sum() == work.N if variant == "original" else weights.sum() <= work.N
        assert (weights >= 0).all()


def test_a_client_with_few_samples_sends_them_as_they_are() -> None:
    X = data(N=40)[0].T
    rows, weights = CAL().summary(X, 4, 5.0, np.random.default_rng(0))
    np.testing.assert_array_equal(rows, np.arange(40))
    np.testing.assert_array_equal(weights, np.ones(40))
    work = problem(spread=1.0)
    points, _ = CAL(z=100, sites="any").summaries(work, stream(), Ledger())
    np.testing.assert_array_equal(points, work.X)


def test_the_released_augmentation_loses_what_went_to_the_points_it_drops() -> None:
    X = data(1, N=90, K=2, spread=0.8)[0].T
    rows, weights = CAL(variant="released").summary(X, 2, 6.0, np.random.default_rng(1))
    _, _, X_r = CAL(variant="released")._grow(X, 2, 6.0, np.random.default_rng(1))
    assert rows.size < 90
    assert set(X_r) <= set(rows.tolist())
    assert weights.sum() < 90


def test_k_means_with_outliers_leaves_the_farthest_weight_out() -> None:
    X = data(N=60, K=3)[0].T
    far = np.array([[90.0] * 6, [-80.0] * 6, [70.0, -70.0] * 3])
    points, weights = np.vstack([X, far]), np.r_[2 * np.ones(60), np.ones(3)]
    centres = min(
        (kmeans_minus(points, weights, 3, 3.0, seed, "weighted") for seed in range(8)), key=lambda c: cost(X, c)
    )
    clean = min((lloyd.kmeans(X, 3, seed) for seed in range(8)), key=lambda c: cost(X, c))
    np.testing.assert_allclose(np.sort(centres, axis=0), np.sort(clean, axis=0), rtol=1e-9)
    # a point may lose part of its weight: of 0, 1 and 10 with weight 2 each, a weight of 3 is left out
    left = kmeans_minus(np.array([[0.0], [1.0], [10.0]]), 2 * np.ones(3), 1, 3.0, 0, "weighted")
    assert left[0, 0] in (pytest.approx(1 / 3), pytest.approx(2 / 3))


def test_k_means_with_outliers_never_raises_its_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    X, z = data(N=80, spread=1.5)[0].T, 6
    weights = np.random.default_rng(0).integers(1, 4, size=80).astype(float)
    costs = []
    for steps in range(12):
        monkeypatch.setattr(cal, "_MOST_STEPS", steps)
        d2 = lloyd.nearest(X, kmeans_minus(X, weights, 4, z, 1, "weighted"))[1]
        far = np.argsort(-d2)
        costs.append(float(d2[far] @ np.clip(np.cumsum(weights[far]) - z, 0, weights[far])))
    assert (np.diff(costs) <= 1e-9).all()
    assert costs[-1] < costs[0]


def test_without_outliers_the_second_level_is_weighted_k_means() -> None:
    work = problem(spread=1.0)
    centres = [run(CAL(z=0, second=second), work, 0, trial=1).state.W for second in ("k-means--", "k-means")]
    np.testing.assert_array_equal(*centres)


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("kmeans++", {"n_init": 0}, "n_init: must be an integer of at least 1, not 0"),
        ("kmeans||", {"oversampling": 0}, "oversampling: must be a number greater than 0, not 0"),
        ("kmeans||", {"passes": 0}, "passes: must be an integer of at least 1, not 0"),
        ("kmeans||", {"sampling": "exactly"}, "sampling: must be one of independent, exact, not 'exactly', "
         "did you mean 'exact'?"),
        ("kmeans||", {"seeding": "none"}, "seeding: must be one of weighted, plain, not 'none'"),
        ("bel", {"t": 0}, "t: must be a number greater than 0, not 0"),
        ("bel", {"negative": "drop"}, "negative: must be one of rescale, clip, keep, not 'drop'"),
        ("bel", {"variant": "release"}, "variant: must be one of original, released, not 'release', "
         "did you mean 'released'?"),
        ("cal", {"z": -1}, "z: must be an integer of at least 0, not -1"),
        ("cal", {"beta": 0.5}, "beta: must be less than 0.5, not 0.5"),
        ("cal", {"beta": 0.2}, "beta: must be a number of at least 0.25, not 0.2"),
        ("cal", {"sites": "all"}, "sites: must be one of random, any, not 'all'"),
        ("cal", {"second": "kmeans"}, "second: must be one of k-means--, k-means, not 'kmeans', "
         "did you mean 'k-means'?"),
    ],
)  # fmt: skip
def test_values_that_cannot_work_are_named(name: str, values: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError) as error:
        registry.methods()[name].make(**values)
    assert str(error.value) == message


def test_more_outliers_than_samples_are_refused() -> None:
    with pytest.raises(ParameterError, match=r"^z: must be less than the number of samples N = 240, not 256$"):
        run(CAL(), problem(), 0)
    CAL().check(N=257, P=3)
