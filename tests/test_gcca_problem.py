"""The GCCA problem: its exact optimum by independent routes, its metrics by brute force, and what it refuses."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from threadpoolctl import threadpool_limits

from fedrepro.datasets.types import Views
from fedrepro.errors import ParameterError, UserError
from fedrepro.multiview import maxvar
from fedrepro.problems.gcca import problem as gcca
from fedrepro.problems.gcca.methods.altmaxvar import AltMaxVar
from fedrepro.problems.gcca.methods.optimal import Optimal
from fedrepro.problems.gcca.problem import GCCA, RandomStart
from fedrepro.problems.gcca.truncated_views import mvlsa
from fedrepro.spec.read import load as load_spec

from . import panel_cases
from .conftest import ROOT


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """As runs are computed."""
    with threadpool_limits(1):
        yield


def views(J=40, widths=(6, 5, 7), D=4, nu=0.3, seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((J, D))
    return [Z @ rng.standard_normal((D, N)) + nu * rng.standard_normal((J, N)) for N in widths]


def sparse_views(J=300, widths=(40, 50, 45), density=0.1, seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((J, 8)) * (rng.random((J, 8)) < 0.3)
    made = []
    for N in widths:
        X = Z @ (rng.standard_normal((8, N)) * (rng.random((8, N)) < 0.2))
        made.append(sparse.csr_matrix(X + 0.2 * rng.standard_normal((J, N)) * (rng.random((J, N)) < density)))
    return made


def dense(X):
    return X.toarray() if sparse.issparse(X) else np.asarray(X)


def projector(matrices):
    """P = sum_i X_i X_i^+, explicitly."""
    return sum(X @ np.linalg.pinv(X) for X in matrices)


def value_of(matrices, K):
    eigenvalues = np.linalg.eigvalsh(projector(matrices))[::-1]
    return (len(matrices) * K - eigenvalues[:K].sum()) / 2


@pytest.mark.parametrize(
    "matrices",
    [views(), views(J=12), views(J=300, widths=(3, 3)), views(widths=(5,) * 9), views(nu=1e-4)],
    ids=["three", "fewer rows than columns", "two", "nine", "little noise"],
)
@pytest.mark.parametrize("K", [1, 3])
def test_the_optimum_is_that_of_the_explicit_projector(matrices, K):
    problem = GCCA(matrices, K)
    best = problem.optimum
    # a projector on the columns of X is known to about eps cond(X), by whatever route and on whatever machine
    rounding = 16 * np.finfo(float).eps * sum(np.linalg.cond(X) for X in matrices)
    assert rounding < 1e-9
    assert best.value == pytest.approx(value_of(matrices, K), abs=rounding)
    np.testing.assert_allclose(best.G.T @ best.G, np.eye(K), atol=1e-12)
    assert problem.cost(problem.representations(best.Q), best.G) == pytest.approx(best.value, abs=rounding)
    assert problem.stationarity(problem.representations(best.Q), best.G) < 1e-8
    eigenvalues, U = np.linalg.eigh(projector(matrices))
    if eigenvalues[-K] - eigenvalues[-K - 1] > 1e-6:  # else the subspace is not determined
        assert problem.subspace(U[:, -K:]) < 1e-6


def test_the_subspace_distance_is_the_sine_of_the_largest_angle():
    problem = GCCA(views(), 2)
    U = np.linalg.eigh(projector(views()))[1]
    turned = np.column_stack([U[:, -1], np.cos(0.3) * U[:, -2] + np.sin(0.3) * U[:, 0]])
    rotation = np.array([[0.6, -0.8], [0.8, 0.6]])  # of the basis: no matter
    assert problem.subspace(turned @ rotation) == pytest.approx(np.sin(0.3), rel=1e-9)
    assert problem.subspace(U[:, :2]) == pytest.approx(1.0)


def test_no_other_point_is_better():
    problem = GCCA(views(), 2)
    rng = np.random.default_rng(1)
    for _ in range(50):
        G = np.linalg.qr(rng.standard_normal((problem.J, 2)))[0]
        Q = [np.linalg.lstsq(view.X, G, rcond=None)[0] for view in problem.views]
        assert problem.cost(problem.representations(Q), G) >= problem.optimum.value


def test_one_view_costs_nothing():
    problem = GCCA(views(widths=(6,)), 3)
    assert problem.optimum.value < 1e-14
    np.testing.assert_allclose(problem.optimum.eigenvalues, 1.0)


def test_K_equal_to_N_spans_every_view():
    X = views(widths=(4,))[0]
    mixed = [X, X @ np.diag([1.0, 2.0, 3.0, 4.0]), X @ np.random.default_rng(3).standard_normal((4, 4))]
    problem = GCCA(mixed, 4)  # three bases of one space
    assert problem.optimum.value < 1e-12
    np.testing.assert_allclose(problem.optimum.G @ problem.optimum.G.T, X @ np.linalg.pinv(X), atol=1e-10)


def test_independent_views_share_nothing_but_chance():
    rng = np.random.default_rng(0)
    problem = GCCA([rng.standard_normal((4000, 3)) for _ in range(3)], 2)
    assert problem.optimum.value == pytest.approx(2.0, abs=0.15)  # lambda = 1: (3 * 2 - 2) / 2


def test_the_optimum_does_not_depend_on_the_bases_or_the_order_of_views():
    matrices = views()
    rng = np.random.default_rng(5)
    other = [X @ (np.eye(X.shape[1]) + 0.3 * rng.standard_normal((X.shape[1],) * 2)) for X in matrices[::-1]]
    assert GCCA(other, 3).optimum.value == pytest.approx(GCCA(matrices, 3).optimum.value, abs=1e-11)


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("lanczos", [False, True])
def test_sparse_views_have_the_optimum_of_the_same_dense_views(lanczos, mixed, monkeypatch):
    if lanczos:
        monkeypatch.setattr(maxvar, "LANCZOS", 60)
    matrices = sparse_views()
    # empty columns, and two equal ones: no Cholesky factor
    matrices[0] = sparse.hstack([matrices[0], sparse.csr_matrix((300, 2))]).tocsr()
    matrices[1] = sparse.hstack([matrices[1], matrices[1][:, :1]]).tocsr()
    dense = [X.toarray() for X in matrices]
    problem = GCCA([*matrices[:2], dense[2]] if mixed else matrices, 3)
    best = problem.optimum
    assert best.value == pytest.approx(value_of(dense, 3), abs=1e-9)
    np.testing.assert_allclose(best.G.T @ best.G, np.eye(3), atol=1e-9)
    assert problem.cost([X @ Q for X, Q in zip(dense, best.Q, strict=True)], best.G) == pytest.approx(best.value)
    assert (best.Q[0][-2:] == 0).all()


def test_a_wide_sparse_view_says_what_to_do_instead(monkeypatch):
    monkeypatch.setattr(maxvar, "WIDEST", 30)
    with pytest.raises(ParameterError) as caught:
        _ = GCCA(sparse_views(), 2).optimum
    assert str(caught.value) == (
        "optimum: the exact optimum needs sparse views of at most 30 columns, not 40; set optimum: false and take "
        "the value of a long altmaxvar run as reference"
    )


def test_a_sparse_view_with_repeated_entries_is_their_sum():
    X = sparse_views()[0].tocoo()
    again = sparse.coo_matrix((np.r_[X.data, X.data], (np.r_[X.row, X.row], np.r_[X.col, X.col])), shape=X.shape)
    rows = np.argsort(again.row, kind="stable")
    pointer = np.r_[0, np.cumsum(np.bincount(again.row, minlength=X.shape[0]))]
    repeated = sparse.csr_matrix((again.data[rows], again.col[rows], pointer), shape=X.shape)
    problem = GCCA([repeated, X.tocsr()], 2)
    np.testing.assert_allclose(problem.views[0].X.toarray(), 2 * X.toarray())
    assert problem.optimum.value < 1e-10  # the same space twice
    assert repeated.nnz == 2 * X.nnz


@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize("small", [4, 1000])
def test_the_spectrum_of_a_view(as_sparse, small, monkeypatch):
    from fedrepro.multiview import aligned_views

    monkeypatch.setattr(aligned_views, "SMALL", small)  # Lanczos, or a dense decomposition
    for shape in ((60, 20), (20, 60)):
        X = sparse_views(J=shape[0], widths=(shape[1],), density=0.5)[0]
        view = aligned_views.View(X if as_sparse else X.toarray())
        U, s, _ = np.linalg.svd(X.toarray(), full_matrices=False)
        np.testing.assert_allclose(view.top(3), s[:3] ** 2, rtol=1e-9)
        assert view.largest == pytest.approx(s[0] ** 2, rel=1e-9)
        A, values = view.left_svd(3)
        np.testing.assert_allclose(values, s[:3], rtol=1e-9)
        np.testing.assert_allclose(A @ A.T, U[:, :3] @ U[:, :3].T, atol=1e-7)


def test_MVLSA_is_the_explicit_projector_of_the_truncated_views():
    matrices, m, K = views(), 4, 2
    problem = GCCA(matrices, K)
    P = 0
    for X in matrices:
        U = np.linalg.svd(X)[0][:, :m]
        P = P + U @ U.T
    G, Q = mvlsa(problem, m)
    U = np.linalg.eigh(P)[1][:, -K:]
    np.testing.assert_allclose(G @ G.T, U @ U.T, atol=1e-10)
    for X, Q_i in zip(matrices, Q, strict=True):
        A, s, Bt = np.linalg.svd(X, full_matrices=False)
        np.testing.assert_allclose(Q_i, Bt[:m].T @ np.diag(1 / s[:m]) @ A[:, :m].T @ G, atol=1e-10)


def test_MVLSA_of_full_rank_is_the_optimum():
    problem = GCCA(views(widths=(6, 6, 6)), 3)
    G, Q = mvlsa(problem, 6)
    assert problem.cost(problem.representations(Q), G) == pytest.approx(problem.optimum.value, abs=1e-12)


def test_the_ridge_of_MVLSA():
    matrices, r = views(), 3.0
    G, Q = mvlsa(GCCA(matrices, 2), 5, r)
    P = 0
    for X in matrices:
        A, s, _ = np.linalg.svd(X, full_matrices=False)
        P = P + A[:, :5] @ np.diag(s[:5] ** 2 / (r + s[:5] ** 2)) @ A[:, :5].T
    U = np.linalg.eigh(P)[1][:, -2:]
    np.testing.assert_allclose(G @ G.T, U @ U.T, atol=1e-10)
    X = matrices[1]  # rank 5: no truncation, and Q is ridge regression
    np.testing.assert_allclose(Q[1], np.linalg.solve(X.T @ X + r * np.eye(5), X.T @ G), atol=1e-10)


def test_centring_makes_the_common_representation_centred():
    matrices = [X + 5.0 for X in views()]
    problem = GCCA(matrices, 2, center=True)
    assert problem.optimum.value == pytest.approx(value_of([X - X.mean(axis=0) for X in matrices], 2), abs=1e-12)
    np.testing.assert_allclose(problem.optimum.G.sum(axis=0), 0, atol=1e-10)


# ---- metrics -------------------------------------------------------------------------------------------------------


def test_stationarity_is_the_norm_of_the_gradients_by_differences_of_the_cost():
    """In every Q_i, and in G with the symmetric multiplier of G'G = I that leaves least."""
    problem, rng = GCCA(views(), 2), np.random.default_rng(3)
    Q, G = [rng.standard_normal((n, 2)) for n in (6, 5, 7)], np.linalg.qr(rng.standard_normal((40, 2)))[0]

    def slopes(point):
        """Of the cost, by central differences, exact for a quadratic."""
        gradient = np.empty(point.shape)
        for at in np.ndindex(*point.shape):
            kept, ends = point[at], []
            for h in (0.5, -0.5):
                point[at] = kept + h
                ends.append(problem.cost(problem.representations(Q), G))
            point[at], gradient[at] = kept, ends[0] - ends[1]
        return gradient

    squares = sum(np.sum(slopes(own) ** 2) for own in Q)
    symmetric = [np.array(S) for S in ([[1, 0], [0, 0]], [[0, 0], [0, 1]], [[0, 1], [1, 0]])]
    directions = np.stack([(G @ S).ravel() for S in symmetric], axis=1)
    squares += np.linalg.lstsq(directions, slopes(G).ravel(), rcond=None)[1][0]
    stationarity = problem.stationarity(problem.representations(Q), G)
    assert stationarity == pytest.approx(np.sqrt(squares), rel=1e-9)


def test_metrics_by_hand():
    X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    problem = GCCA([X, 2 * X], 1)
    state = next(AltMaxVar().rounds(problem, np.random.default_rng(0), init=gcca.Factors([np.ones((2, 1))] * 2)))
    M = [np.array([[1.0], [1.0], [2.0]]), np.array([[2.0], [2.0], [4.0]])]
    G = np.array([[1.0], [1.0], [2.0]]) / np.sqrt(6)
    np.testing.assert_allclose(state.G, G)
    values = problem.measure(state, ("cost", "optimum", "consensus", "lag", "stationarity"))
    root = np.sqrt(6)
    assert values["cost"] == pytest.approx(((root - 1) ** 2 + (2 * root - 1) ** 2) / 2)
    assert values["optimum"] == pytest.approx(0, abs=1e-14)
    assert values["consensus"] == pytest.approx(np.sqrt(2 * 0.25 * 6 / (6 + 24)))
    assert values["lag"] == 0
    gradients = [X.T @ (M[0] - G), 2 * X.T @ (M[1] - G)]  # in G: 2 G - M_1 - M_2 is a multiple of G
    assert values["stationarity"] == pytest.approx(np.sqrt(sum(np.sum(g**2) for g in gradients)))


def test_the_measured_cost_is_that_of_the_true_representations():
    problem = GCCA(views(), 2)
    for r, state in enumerate(AltMaxVar(m=3).rounds(problem, np.random.default_rng(0))):
        cost = sum(0.5 * np.sum((v.X @ Q - state.G) ** 2) for v, Q in zip(problem.views, state.Q, strict=True))
        values = problem.measure(state, ("cost", "ratio"))
        assert values["cost"] == pytest.approx(cost, rel=1e-12)
        assert values["ratio"] == pytest.approx(cost / value_of(views(), 2), rel=1e-9)
        if r == 3:
            break


def naive_alignment(Z):
    def share(i, m):
        hits = 0
        for p in range(len(Z[i])):
            d = [np.sum((Z[i][p] - Z[m][q]) ** 2) for q in range(len(Z[m]))]
            hits += all(d[p] <= other for other in d)
        return hits / len(Z[i])

    pairs = [(i, m) for i in range(len(Z)) for m in range(len(Z)) if i != m]
    return np.mean([share(*p) for p in pairs]), np.mean([share(i, m) for i, m in pairs if i < m])


def test_alignment_accuracy_is_that_of_the_definition():
    rng = np.random.default_rng(0)
    Z = [rng.integers(-2, 3, size=(30, 2)).astype(float) for _ in range(3)]  # many ties
    Z[1][:15] = Z[0][:15]
    both, one_way = gcca.alignment_accuracy(Z)
    expected = naive_alignment(Z)
    assert (both, one_way) == pytest.approx(expected)
    assert both != one_way


def test_alignment_of_equal_and_of_reversed_views():
    Z = np.random.default_rng(0).standard_normal((2500, 3))  # more rows than a block
    assert gcca.alignment_accuracy([Z, Z]) == (1.0, 1.0)
    assert gcca.alignment_accuracy([Z, Z[::-1]])[0] < 0.01
    with pytest.raises(UserError, match="at least two"):
        gcca.alignment_accuracy([Z])


def test_alignment_is_measured_on_rows_no_method_saw():
    matrices = views(J=90, nu=0.05)
    problem = GCCA(matrices, 3, test=30)
    assert problem.J == 60
    state = next(Optimal().rounds(problem, np.random.default_rng(0)))
    Z = [X[60:] @ Q for X, Q in zip(matrices, state.Q, strict=True)]
    values = problem.measure(state, ("ac", "ac_one_way"))
    assert (values["ac"], values["ac_one_way"]) == pytest.approx(naive_alignment(Z))
    assert values["ac"] > 0.8
    with pytest.raises(ParameterError, match="test: the alignment accuracy needs held-out rows"):
        GCCA(matrices, 3).alignment(state.Q)


def test_bits_per_variable_and_compression_ratio_are_the_papers_arithmetic():
    assert gcca.bits_per_variable(np.array([0, 1, 18]), 3).tolist() == [32, 35, 86]
    assert gcca.bits_per_variable(1, 32) == 64
    assert gcca.bits_per_variable(0, 3, code_offset=True) == 35
    fall = np.array([2.0 * 0.9**r for r in range(60)])
    level = 2.0 * 0.9**16.5  # first below at index 17: the paper's R = 18
    assert gcca.rounds_to(fall, level) == 18
    assert gcca.rounds_to(fall, level, base=0) == 17
    assert gcca.rounds_to(fall, 0.0) == float("inf")
    optimum = level / 1.5
    for q, shift, ratio in ((3, 0, 0.90625), (4, 0, 0.875), (5, 0, 0.84375), (4, 1, 0.868055555)):
        cost = np.concatenate([[2.0] * shift, fall])
        assert gcca.compression_ratio(cost, np.concatenate([fall, [0] * shift]), optimum, q) == pytest.approx(ratio)
    never = np.full(60, 2.0)
    assert np.isnan(gcca.compression_ratio(never, fall, optimum, 2))
    each = gcca.compression_ratio(np.stack([fall, never]), np.stack([fall, fall]), optimum, 3, per_trial=True)
    assert each[0] == pytest.approx(0.90625)
    assert np.isnan(each[1])


def test_a_compression_ratio_counts_rounds_and_not_records():
    rounds = np.array([0, 1, 2, 20, 40])
    assert gcca.rounds_to([9.0, 8.0, 7.0, 3.0, 1.0], 3.0, rounds=rounds) == 41, "below 3 first at round 40"
    assert gcca.rounds_to([9.0, 8.0, 7.0, 3.0, 1.0], 3.5, rounds=rounds, base=0) == 20
    quantized, full = [9.0, 8.0, 7.0, 6.0, 1.0], [9.0, 8.0, 7.0, 1.0, 1.0]
    ratio = gcca.compression_ratio(quantized, full, 2.0, 4, rounds=rounds)
    assert ratio == pytest.approx(1 - 4 * 41 / (32 * 21))


def results(figure, costs, optima):
    """Tidy rows of every setting of a figure: ``costs`` (rounds,) a trial and the optimum, by the setting's ``q``."""
    rows = []
    for setting in figure.settings():
        q = setting.params.get("q")
        for trial, (cost, optimum) in enumerate(zip(costs[q], optima[q], strict=True), start=1):
            for metric, values in (("cost", cost), ("optimum", 0 * cost + optimum), ("ratio", cost / optimum)):
                rows.append(
                    pd.DataFrame(
                        {
                            "series": setting.series, "trial": trial, "status": "ok", "round": setting.recorded,
                            "metric": metric, "value": values[setting.recorded],
                        }
                    )
                )  # fmt: skip
    return pd.concat(rows, ignore_index=True)


def test_table_1_reads_its_ratios_off_averaged_curves():
    """The released program's rule, and an example in which the mean of the trials' own ratios is another number."""
    figure = load_spec(ROOT / "experiments" / "gcca" / "table1.yaml", "paper")
    r = np.arange(figure.settings()[0].rounds + 1)
    fall = [100 * 0.8**r, 100 * 0.9**r]  # mean cost below 1.5: 2, 3 ... at rounds 34 and later
    costs = {None: fall, 2: [1.0 + 9 * r, 9.0 + r], 3: fall, 4: [np.append(c[:1], c[:-1]) for c in fall]}
    costs[5] = [100 * 0.99**r, 100 * 0.99**r]  # below 3 only after round 100, where every 20th is recorded
    optima = {None: [1.0, 3.0], 2: [1.0, 3.0], 3: [1.0, 3.0], 4: [1.0, 3.0], 5: [2.0, 4.0]}
    frame = results(figure, costs, optima)
    common, fresh, _ = figure.panels

    def counted(q, level):
        recorded = np.array(figure.settings()[0].recorded)
        return next(int(k) + 1 for k in recorded if np.mean([c[k] for c in costs[q]]) < level)

    for panel, level in ((common, 1.5 * 2.0), (fresh, 1.5 * 3.0)):  # AltMaxVar's mean optimum; that of q = 5
        cells = panel_cases.cells(figure, panel, frame)
        ours = [1 - q * counted(q, level) / (32 * counted(None, level)) for q in (3, 4, 5)]
        assert cells["mean"].tolist()[2:] == pytest.approx(ours)
        assert cells["mean"].iloc[0] == 0
        assert cells["status"].tolist() == ["ok", "never gets there", "ok", "ok", "ok"]
        assert cells["sd"].isna().all(), "a ratio of averages has no spread over trials"
        assert cells["published"].tolist()[2:] == [0.9062, 0.8681, 0.8438]
    assert counted(5, 3.0) == 361


def test_trials_without_their_counterpart_do_not_count_in_a_compression_ratio():
    figure = load_spec(ROOT / "experiments" / "gcca" / "table1.yaml", "paper")
    r = np.arange(figure.settings()[0].rounds + 1)
    fall, slow = 100 * 0.8**r, 100 * 0.9**r
    costs = {q: [fall, slow] for q in (None, 2, 4, 5)} | {3: [fall]}
    optima = {q: [1.0, 1.0] for q in (None, 2, 4, 5)} | {3: [1.0]}
    cells = panel_cases.cells(figure, figure.panels[0], results(figure, costs, optima))
    three, four = cells.iloc[2], cells.iloc[3]
    assert three["mean"] == pytest.approx(1 - 3 / 32), "AltMaxVar's first trial alone"
    assert (three["trials"], four["trials"]) == (1, 2)
    empty = panel_cases.cells(figure, figure.panels[0], results(figure, costs, optima).iloc[:0])
    assert set(empty["status"]) == {"no results"}


def test_a_diverged_run_is_one_whose_cost_is_not_finite():
    assert GCCA.diverged({"cost": np.array([1.0, 900.0])}) is None
    assert GCCA.diverged({"cost": np.array([1.0, np.nan])}) == "the cost is not finite at recorded point 1"
    assert GCCA.diverged({"ac": np.array([1.0])}) is None


# ---- files ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [views, sparse_views])
@pytest.mark.parametrize("test", [None, 10])
def test_what_is_prepared_is_what_is_opened(make, test, tmp_path):
    parameters = {"K": 2, "test": test, "center": make is views}
    matrices = make()
    GCCA.prepare(tmp_path, Views(matrices, None, {"test": 5}), None, parameters)
    opened = GCCA.stored(tmp_path, parameters)
    direct = GCCA(matrices, 2, center=make is views, test=5 if test is None else 10)
    assert opened.J == direct.J == matrices[0].shape[0] - (5 if test is None else 10)
    assert opened._optimum is not None
    assert opened.optimum.value == direct.optimum.value
    J = opened.J
    for X, seen, held_out in zip(matrices, opened.views, opened.test_views, strict=True):
        mean = X[:J].mean(axis=0) if make is views else 0.0  # of the rows to train on, for the others too
        for view, rows in ((seen, X[:J]), (held_out, X[J:])):
            np.testing.assert_allclose(dense(view.X), dense(rows) - mean, rtol=1e-12, atol=1e-14)
    runs = []
    for problem in (opened, direct):
        states = AltMaxVar(m=4, b=20).rounds(problem, np.random.default_rng(0), init=RandomStart(1))
        last = [next(states) for _ in range(4)][-1]
        runs.append((last.G.tobytes(), problem.measure(last, tuple(gcca.METRICS))))
    assert runs[0] == runs[1]


def test_without_an_optimum_nothing_is_solved(tmp_path, monkeypatch):
    monkeypatch.setattr(maxvar, "WIDEST", 30)
    GCCA.prepare(tmp_path, Views(sparse_views(), None, {}), None, {"K": 2, "optimum": False})
    problem = GCCA.stored(tmp_path, {"K": 2, "optimum": False})
    state = next(AltMaxVar(m=4).rounds(problem, np.random.default_rng(0)))
    assert problem.measure(state, ("cost",))["cost"] > 0


def test_the_random_start_is_the_same_for_whoever_asks():
    assert RandomStart(3).Q(1, 5, 2).tobytes() == RandomStart(3).Q(1, 5, 2).tobytes()
    assert RandomStart(3).Q(1, 5, 2).tobytes() != RandomStart(4).Q(1, 5, 2).tobytes()
    assert RandomStart(3).Q(0, 5, 2).tobytes() != RandomStart(3).Q(1, 5, 2).tobytes()
    assert GCCA(views(), 2).initial(7) == RandomStart(7)


def test_the_callers_arrays_are_left_alone():
    matrices = views()
    before = [X.copy() for X in matrices]
    problem = GCCA(matrices, 2, center=True)
    for _, _state in zip(range(3), AltMaxVar(m=3).rounds(problem, np.random.default_rng(0)), strict=False):
        pass
    matrices[0][0, 0] += 1.0  # still writable
    matrices[0][0, 0] = before[0][0, 0]
    assert all((X == Y).all() for X, Y in zip(matrices, before, strict=True))


# ---- what is refused -----------------------------------------------------------------------------------------------


def changed(index, change):
    matrices = views()
    matrices[index] = change(matrices[index])
    return matrices


def with_entry(X, row, column, value):
    X = X.copy()
    X[row, column] = value
    return X


@pytest.mark.parametrize(
    ("matrices", "message"),
    [
        ([], "views: there must be at least one"),
        (
            changed(1, lambda X: X[:-1]),
            "views: every view must have the same samples as its rows, in the same order, but they have 40, 39 and "
            "40 rows",
        ),
        (changed(1, lambda X: X[:, 0]), "view 2 of 3: must be a matrix with one row per sample, not of shape (40,)"),
        (changed(0, lambda X: X.astype(str)), "view 1 of 3: must contain real numbers, not <U32"),
        (
            changed(2, lambda X: with_entry(X, 3, 1, np.nan)),
            "view 3 of 3: row 3, column 1 (counted from 0) is not a finite number",
        ),
        (
            changed(2, lambda X: sparse.csr_matrix(with_entry(X, 3, 1, np.inf))),
            "view 3 of 3: row 3, column 1 (counted from 0) is not a finite number",
        ),
        (
            changed(1, np.zeros_like),
            "view 2 of 3: is zero everywhere, so there is nothing to correlate; leave it out",
        ),
        (
            changed(1, lambda X: sparse.csr_matrix(X.shape)),
            "view 2 of 3: is zero everywhere, so there is nothing to correlate; leave it out",
        ),
        (
            changed(0, lambda X: np.column_stack([X, np.full(len(X), 2.0)])),
            "view 1 of 3: column 6 (counted from 0) has the same value in every row; a constant column carries no "
            "information; leave it out",
        ),
        (
            changed(0, lambda X: sparse.csr_matrix(np.column_stack([np.ones(len(X)), X, np.ones(len(X))]))),
            "view 1 of 3: column 0 (counted from 0) has the same value in every row, as do 1 others; a constant column "
            "carries no information; leave it out",
        ),
    ],
)
def test_bad_views_are_told(matrices, message):
    with pytest.raises(UserError) as caught:
        GCCA(matrices, 2)
    assert str(caught.value) == message


def low_rank(X):
    U, s, Vt = np.linalg.svd(X, full_matrices=False)
    return (U[:, :2] * s[:2]) @ Vt[:2]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: GCCA(views(), 0), "K: must be an integer of at least 1, not 0"),
        (lambda: GCCA(views(), 6), "K: must be at most the rank of every view, not 6: view 2 of 3 has rank 5"),
        (
            lambda: GCCA(changed(2, low_rank), 3),
            "K: must be at most the rank of every view, not 3: view 3 of 3 has rank 2",
        ),
        (
            lambda: GCCA(changed(2, lambda X: sparse.csr_matrix(low_rank(X))), 3),
            "K: must be at most the rank of every view, not 3: view 3 of 3 has rank 2",
        ),
        (lambda: GCCA(views(), 2, test=40), "test: must be fewer than the 40 rows there are, not 40"),
        (lambda: GCCA(views(), 2, test=-1), "test: must be an integer of at least 0, not -1"),
        (lambda: GCCA(views(), 2, center=1), "center: must be true or false, not 1"),
        (
            lambda: GCCA(sparse_views(), 2, center=True),
            "center: would fill view 1 of 3, which is sparse; set it to false or give dense views",
        ),
        (lambda: GCCA.check({"K": 9}, {"N": 8}), "K: must be at most the number of columns of a view, 8, not 9"),
        (lambda: GCCA.check({"K": 9}, {"J": 8, "N": 25}), "K: must be at most the number of rows, 8, not 9"),
        (lambda: GCCA.check({"test": 9}, {"J": 9, "N": 25}), "test: must be fewer than the 9 rows there are, not 9"),
        (lambda: mvlsa(GCCA(views(), 3), 2), "m: must be at least K = 3, not 2"),
        (lambda: mvlsa(GCCA(views(), 3), 6), "m: must be at most the rank of every view, not 6"),
    ],
)  # fmt: skip
def test_bad_parameters_are_told(call, message):
    with pytest.raises(ParameterError) as caught:
        call()
    assert str(caught.value) == message


def test_rows_that_the_data_hold_back_count_among_those_there_are(tmp_path):
    """J of a shape counts the rows to train with; a problem with ``test`` splits all of them again."""
    path = tmp_path / "held.yaml"
    path.write_text("""\
paper: beyond
figure: held
problem: {name: gcca, K: 5, test: 60}
trials: 1
rounds: 1
dataset: {name: europarl, languages: [de, fr], train: 50, test: 60, features: 64}
panels: {a: {title: x, y: cost, curves: [{algorithm: altmaxvar}]}}
""")
    (setting,) = load_spec(path, "quick", ["problem.test=109"]).settings()
    assert setting.problem_params["test"] == 109
    with pytest.raises(UserError, match="test must be fewer than the 110 rows there are, not 110"):
        load_spec(path, "quick", ["problem.test=110"])
    with pytest.raises(UserError, match="K must be at most the number of rows, 50, not 51"):
        load_spec(path, "quick", ["problem.test=null", "problem.K=51"])
