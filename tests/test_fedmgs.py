"""FedMGS: the algorithm transcribed, its invariances, its descent, its messages."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from fedrepro import registry
from fedrepro.datasets.imc_instances import RandomInstance
from fedrepro.errors import ParameterError, UserError
from fedrepro.problems.clustering import descent
from fedrepro.problems.clustering import problem as clustering
from fedrepro.problems.clustering.methods.fedmgs import FedMGS
from fedrepro.problems.clustering.problem import Clustering
from fedrepro.problems.imc.problem import IMC
from fedrepro.runs.compute.drive import run

from .naive_clustering import Naive, compare, fedmgs, instance

DRAWS = [[4, 1], [0, 2], [1, 3], [3, 4], [2, 1], [0, 4]]


@pytest.mark.parametrize(("Q1", "Q2"), [(1, 1), (3, 1), (1, 4), (10, 20)])
@pytest.mark.parametrize(("rho", "nu"), [(1e-8, 1e-10), (0.02, 0.003)])
def test_full_participation_is_the_box_of_the_paper(Q1: int, Q2: int, rho: float, nu: float) -> None:
    X, client, W0, H0 = instance(1)
    naive = Naive(X, client, 3, rho, nu)
    history = run(FedMGS(Q1=Q1, Q2=Q2), Clustering(X, client, K=3, rho=rho, nu=nu), 6, init=(W0, H0), keep=True)
    compare(history, fedmgs(naive, W0, H0, 6, Q1, Q2), naive)


@pytest.mark.parametrize("gathered", [True, False])
@pytest.mark.parametrize(("Q1", "Q2"), [(1, 1), (4, 7)])
def test_partial_participation_is_the_box_of_the_paper(
    Q1: int, Q2: int, gathered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clustering, "_SMALL_BYTES", 1e9 if gathered else 0)
    X, client, W0, H0 = instance(2)
    naive = Naive(X, client, 3, 0.01)
    problem = Clustering(X, client, K=3, rho=0.01)
    history = run(FedMGS(m=2, Q1=Q1, Q2=Q2), problem, 6, init=(W0, H0), clients=np.array(DRAWS), keep=True)
    compare(history, fedmgs(naive, W0, H0, 6, Q1, Q2, DRAWS), naive)


def test_a_lower_bound_above_the_data_is_kept() -> None:
    X, client, W0, H0 = instance(3)
    naive = Naive(X, client, 3, lo=0.8)
    history = run(FedMGS(Q2=5), Clustering(X, client, K=3, w_min=0.8), 4, init=(W0, H0), keep=True)
    compare(history, fedmgs(naive, W0, H0, 4, 10, 5), naive)
    assert history.state.W.min() == 0.8


def test_blocks_of_samples_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    X, client, W0, H0 = instance(4, N=400, P=5)
    whole = run(FedMGS(), Clustering(X, client, K=3), 5, init=(W0, H0))
    monkeypatch.setattr(clustering, "_BLOCK_BYTES", 1)  # 64 rows, the least there is
    problem = Clustering(X, client, K=3)
    assert len(problem.blocks()) == 7
    cut = run(FedMGS(), problem, 5, init=(W0, H0))
    np.testing.assert_allclose(cut.state.H, whole.state.H, rtol=1e-11, atol=1e-13)


def test_with_all_clients_every_partition_gives_the_same_run() -> None:
    X, client, W0, H0 = instance(5, N=60)
    rng = np.random.default_rng(0)
    partitions = [client, rng.permutation(client), np.arange(60) % 7, np.arange(60), None]
    runs = [run(FedMGS(Q1=4, Q2=9), Clustering(X, c, K=3), 8, init=(W0, H0)) for c in partitions]
    for other in runs[1:]:
        np.testing.assert_allclose(other["objective"], runs[0]["objective"], rtol=1e-12)
        np.testing.assert_allclose(other.state.H, runs[0].state.H, rtol=1e-9, atol=1e-12)


def test_one_step_each_is_projected_gradient_descent_on_the_whole() -> None:
    X, client, W0, H0 = instance(6)
    n = Naive(X, client, 3)
    history = run(FedMGS(Q1=1, Q2=1), Clustering(X, client, K=3), 1, init=(W0, H0))
    # fedmf (27), with the gradient of F itself: no clients anywhere
    unit = np.sum(X**2) / 40
    A = 2 * W0.T @ W0 + 40 * (1e-8 * unit * np.ones((3, 3)) + (1e-10 - 1e-8) * unit * np.eye(3))
    H = np.maximum(0, H0 - (A @ H0 - 2 * W0.T @ X) / (1.02 / 2 * np.linalg.eigvalsh(A)[-1]))
    L = 2 / 40 * np.linalg.eigvalsh(H @ H.T)[-1]
    W = n.clip(W0 - 2 / 40 * (W0 @ H @ H.T - X @ H.T) / (1.002 / 2 * L))
    np.testing.assert_allclose(history.state.H, H, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(history.state.W, W, rtol=1e-11)


@given(
    seed=st.integers(0, 2**16),
    Q1=st.integers(1, 12),
    Q2=st.integers(1, 12),
    m=st.integers(1, 5),
    rho=st.sampled_from([0.0, 1e-8, 1e-2, 1.0]),
    w_min=st.sampled_from(["data_min", "zero", 0.3]),
)
@settings(max_examples=60, deadline=None)
def test_the_objective_never_rises(seed: int, Q1: int, Q2: int, m: int, rho: float, w_min: str | float) -> None:
    X, client, W0, H0 = instance(seed)
    problem = Clustering(X, client, K=3, rho=rho, w_min=w_min)
    W0 = np.clip(W0, problem.w_min, problem.w_max)  # descent holds from a feasible point on
    F = run(FedMGS(m=m, Q1=Q1, Q2=Q2), problem, 12, trial=seed, init=(W0, H0))["objective"]
    assert (np.diff(F) <= 1e-13 * F[:-1]).all()


@pytest.mark.parametrize("m", [None, 2])
def test_sparse_samples_give_the_run_of_dense_ones(m: int | None) -> None:
    X, client, W0, H0 = instance(7, N=50, zeros=0.7)
    dense = run(FedMGS(m=m), Clustering(X, client, K=3), 6, init=(W0, H0))
    for form in (sparse.csc_matrix, sparse.csr_matrix, sparse.csc_array):
        thin = run(FedMGS(m=m), Clustering(form(X), client, K=3), 6, init=(W0, H0))
        np.testing.assert_allclose(thin["objective"], dense["objective"], rtol=1e-12)
        np.testing.assert_allclose(thin.state.H, dense.state.H, rtol=1e-9, atol=1e-12)


def test_idle_clients_keep_their_assignments_to_the_last_bit() -> None:
    X, client, W0, H0 = instance(8)
    history = run(FedMGS(m=2), Clustering(X, client, K=3), 1, init=(W0, H0), clients=[[1, 3]])
    idle = ~np.isin(client, [1, 3])
    np.testing.assert_array_equal(history.state.H[:, idle], H0[:, idle])
    assert not np.array_equal(history.state.H[:, ~idle], H0[:, ~idle])


def test_statistics_formed_afresh_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    X, client, W0, H0 = instance(9)
    kept = run(FedMGS(m=2), Clustering(X, client, K=3), 10, init=(W0, H0))
    monkeypatch.setattr(descent, "_LOST_AT_MOST", 0.0)
    fresh = run(FedMGS(m=2), Clustering(X, client, K=3), 10, init=(W0, H0))
    assert kept.state.lost > 0
    assert fresh.state.lost == 0
    np.testing.assert_allclose(fresh["objective"], kept["objective"], rtol=1e-12)


def test_a_badly_scaled_start_leaves_no_rounding_behind() -> None:
    X, client, W0, H0 = instance(10)
    history = run(FedMGS(m=2, Q1=50), Clustering(X, client, K=3), 60, init=(W0, 1e7 * H0), keep=True)
    assert history.states is not None
    assert min(state.lost for state in history.states[1:]) == 0.0  # HH shrank by 1e14 and was formed afresh
    Hs = history.state.Hs
    np.testing.assert_allclose(history.state.HH, Hs.T @ Hs, rtol=1e-11, atol=1e-11 * np.trace(Hs.T @ Hs))


def test_rho_set_between_rounds_is_in_force_from_the_next_round() -> None:
    X, client, W0, H0 = instance(11)
    schedule = [1e-8, 0.01, 0.05]
    W, H, values = W0, H0, []
    for rho in schedule:
        naive = Naive(X, client, 3, rho)
        W, H = fedmgs(naive, W, H, 1, 4, 5)[-1]
        values.append(naive.F(W, H) / naive.unit)
    problem = Clustering(X, client, K=3)
    states = FedMGS(Q1=4, Q2=5).rounds(problem, np.random.default_rng(0), init=(W0, H0))
    objectives = []
    state = next(states)
    for rho in schedule:
        state.rho = rho
        state = next(states)
        objectives.append(problem.objective(state))
    np.testing.assert_allclose(objectives, values, rtol=1e-11)
    np.testing.assert_allclose(state.H, H, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("m", [None, 2])
def test_the_ledger_counts_what_the_paper_counts(m: int | None) -> None:
    X, client, W0, H0 = instance(12)
    M, K, P, rounds = 7, 3, 5, 9
    history = run(FedMGS(m=m), Clustering(X, client, K=K), rounds, init=(W0, H0))
    active, s = (P if m is None else m), np.arange(rounds + 1)
    np.testing.assert_array_equal(history["uplink_scalars"], s * active * (M * K + K * K))  # fedmf V-A, fedc V-A
    np.testing.assert_array_equal(history["uplink_bits"], 32 * s * active * (M * K + K * K))
    np.testing.assert_array_equal(history["downlink_scalars"], s * active * M * K)
    assert history.ledger.setup_scalars == P * (M * K + K * K)


def test_fewer_clients_are_a_part_of_more_and_a_run_can_be_replayed() -> None:
    draws = {
        m: [set(d) for d in itertools.islice(descent.drawn_once(np.random.default_rng(3), m, 8), 20)] for m in (2, 5)
    }
    assert all(small < large for small, large in zip(draws[2], draws[5], strict=True))
    assert {len(d) for d in draws[5]} == {5}
    assert set().union(*draws[2]) == set(range(8))
    X, client, W0, H0 = instance(13)
    problem = Clustering(X, client, K=3)
    own = run(FedMGS(m=2), problem, 6, rng=np.random.default_rng(4), init=(W0, H0))
    clients = np.array(list(itertools.islice(descent.drawn_once(np.random.default_rng(4), 2, 5), 6)))
    again = run(FedMGS(m=2), problem, 6, init=(W0, H0), clients=clients)
    np.testing.assert_array_equal(again["objective"], own["objective"])
    other = run(FedMGS(m=2), problem, 6, rng=np.random.default_rng(5), init=(W0, H0))
    assert (other["objective"][1:] != own["objective"][1:]).any()


def test_zero_factors_stay_where_they_are() -> None:
    X, client, W0, H0 = instance(14)
    problem = Clustering(X, client, K=3, rho=0.0, nu=0.0, w_min="zero")
    history = run(FedMGS(), problem, 2, init=(0 * W0, 0 * H0))
    assert not history.state.W.any()
    assert not history.state.H.any()
    np.testing.assert_array_equal(history["objective"], 1.0)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"Q1": 0}, "Q1: must be an integer of at least 1, not 0"),
        ({"Q2": 2.5}, "Q2: must be an integer of at least 1, not 2.5"),
        ({"m": True}, "m: must be an integer of at least 1, not True"),
        ({"gamma1": 0.9}, "gamma1: must be a number of at least 1, not 0.9"),
        ({"gamma2": float("nan")}, "gamma2: must be a number of at least 1, not nan"),
    ],
)
def test_bad_parameters_are_refused(values: dict[str, object], message: str) -> None:
    with pytest.raises(ParameterError) as error:
        FedMGS(**values)  # type: ignore[arg-type]
    assert str(error.value) == message


def test_bad_draws_are_refused() -> None:
    X, client, W0, H0 = instance(15)
    problem = Clustering(X, client, K=3)
    for m, clients, message in (
        (2, [[1, 1]], "clients: FedMGS draws without replacement, but a round names a client twice"),
        (2, [[1, 5]], "clients: ids must lie between 0 and 4"),
        (2, [[1, 2, 3]], "clients: must be integers of shape (rounds, m = 2), not int64 (1, 3)"),
        (None, [[1, 2]], "clients: every client takes part in every round (m = P): there is no draw to replay"),
    ):
        with pytest.raises(UserError) as error:
            run(FedMGS(m=m), problem, 1, init=(W0, H0), clients=clients)
        assert str(error.value) == message
    with pytest.raises(UserError, match="gives the draws of 1 rounds, but 2 rounds were asked for"):
        run(FedMGS(m=2), problem, 2, init=(W0, H0), clients=[[1, 2]])
    with pytest.raises(ParameterError, match="m: must be at most the number of clients P = 5, not 6"):
        run(FedMGS(m=6), problem, 1, init=(W0, H0))
    with pytest.raises(UserError, match="FedMGS solves the problem 'clustering', not 'imc'"):
        run(FedMGS(), IMC(RandomInstance().load(rng=np.random.default_rng(0))), 1)
    FedMGS(m=6).check(P=None, N=3, M=4, K=None)
    numpys = FedMGS(m=np.int64(2), Q1=np.int64(3))  # type: ignore[arg-type]
    assert run(numpys, problem, 1, init=(W0, H0))["objective"] == pytest.approx(
        run(FedMGS(m=2, Q1=3), problem, 1, init=(W0, H0))["objective"]
    )


def test_both_papers_names_make_the_same_method() -> None:
    names = registry.methods()
    assert names["fedmgs"].make(Q1=3) == names["fedcgds"].make(Q1=3) == FedMGS(Q1=3)
    assert (names["fedmgs"].papers, names["fedcgds"].papers) == (("fedmf",), ("fedc",))
