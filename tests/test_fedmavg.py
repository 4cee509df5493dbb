"""FedMAvg: the algorithm transcribed, the closed form of the local loop, participation, its messages."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from fedrepro import registry
from fedrepro.errors import ParameterError
from fedrepro.problems.clustering import descent
from fedrepro.problems.clustering import problem as clustering
from fedrepro.problems.clustering.methods.fedmavg import FedMAvg
from fedrepro.problems.clustering.problem import Clustering
from fedrepro.runs.compute.drive import run

from .naive_clustering import Naive, compare, fedmavg, instance

DRAWS = [[4, 1, 1], [0, 0, 0], [1, 3, 0], [3, 4, 3], [2, 1, 4]]


@pytest.mark.parametrize("Q1", [1, 6])
@pytest.mark.parametrize(("given", "Q2"), [({"Q2": 1}, [1] * 5), ({"Q2": 8}, [8] * 5), ({"Qhat": 7}, [8, 4, 3, 2, 2])])
@pytest.mark.parametrize(("rho", "nu"), [(1e-8, 1e-10), (0.02, 0.003)])
def test_full_participation_is_the_box_of_the_paper(
    Q1: int, given: dict[str, Any], Q2: list[int], rho: float, nu: float
) -> None:
    X, client, W0, H0 = instance(1)
    naive = Naive(X, client, 3, rho, nu)
    history = run(FedMAvg(Q1=Q1, **given), Clustering(X, client, K=3, rho=rho, nu=nu), 5, init=(W0, H0), keep=True)
    compare(history, fedmavg(naive, W0, H0, Q2, Q1), naive)


@pytest.mark.parametrize(
    ("method", "naive_options"),
    [
        ({}, {}),
        ({"participation": "pcp"}, {"pcp": True}),
        ({"participation": "pcp", "pcp_repeat": True}, {"pcp": True, "repeat": True}),
        ({"d_schedule": "linear", "gamma2": 1.5}, {"linear": True, "gamma2": 1.5}),
        ({"d_mode": "local", "gamma2": 1.0}, {"local": True, "gamma2": 1.0}),
        ({"d_mode": "local", "participation": "pcp"}, {"local": True, "pcp": True}),
    ],
)
@pytest.mark.parametrize("gathered", [True, False])
def test_drawn_clients_are_averaged_as_in_the_box(
    method: dict[str, Any], naive_options: dict[str, Any], gathered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clustering, "_SMALL_BYTES", 1e9 if gathered else 0)
    X, client, W0, H0 = instance(2)
    naive = Naive(X, client, 3, 0.01)
    problem = Clustering(X, client, K=3, rho=0.01)
    history = run(FedMAvg(m=3, Q1=4, Q2=6, **method), problem, 5, init=(W0, H0), clients=DRAWS, keep=True)
    compare(history, fedmavg(naive, W0, H0, [6] * 5, 4, draws=DRAWS, **naive_options), naive)


def test_a_blow_up_that_recovers_is_followed_exactly() -> None:
    X, client, W0, H0 = instance(3)
    X[:, client == 0] *= 6  # one client far above the others: its local loop is unstable
    naive = Naive(X, client, 3)
    history = run(FedMAvg(Q2=12, gamma2=1.0), Clustering(X, client, K=3), 6, init=(W0, H0), keep=True)
    path = fedmavg(naive, W0, H0, [12] * 6, 10, gamma2=1.0)
    assert history["objective"].max() > 2 * history["objective"][0]
    compare(history, path, naive, rel=1e-8)


@given(
    seed=st.integers(0, 2**16),
    steps=st.integers(1, 60),
    rank=st.integers(0, 4),
    gamma=st.floats(0.6, 20.0),
)
@settings(max_examples=80, deadline=None)
def test_the_closed_form_of_the_local_loop_is_the_loop(seed: int, steps: int, rank: int, gamma: float) -> None:
    rng = np.random.default_rng(seed)
    H, G, W = rng.random((4, rank)), rng.standard_normal((6, 4)), rng.standard_normal((6, 4))
    B = H @ H.T * 10.0 ** rng.integers(-6, 6)
    d = gamma * max(np.linalg.eigvalsh(B)[-1], 1e-12)
    V = W
    for _ in range(steps):
        V = V - (V @ B - G) / d
    closed = W + (G - W @ B) @ descent.local_steps(B[None], d, steps)[0]
    np.testing.assert_allclose(closed, V, rtol=1e-9, atol=1e-10 * np.abs(V).max())


def test_a_long_local_loop_solves_the_local_least_squares() -> None:
    rng = np.random.default_rng(0)
    H = rng.random((3, 50))
    B = H @ H.T
    M = descent.local_steps(B[None], np.linalg.eigvalsh(B)[-1], 10**7)[0]
    np.testing.assert_allclose(M, np.linalg.inv(B), rtol=1e-10)


def test_with_all_clients_and_one_step_every_partition_gives_the_same_run() -> None:
    X, client, W0, H0 = instance(4, N=60)
    partitions = [client, np.arange(60) % 7, np.arange(60), None]
    runs = [run(FedMAvg(Q1=4, Q2=1), Clustering(X, c, K=3), 8, init=(W0, H0)) for c in partitions]
    for other in runs[1:]:
        np.testing.assert_allclose(other["objective"], runs[0]["objective"], rtol=1e-12)
        np.testing.assert_allclose(other.state.H, runs[0].state.H, rtol=1e-9, atol=1e-12)
    longer = [run(FedMAvg(Q1=4, Q2=9), Clustering(X, c, K=3), 8, init=(W0, H0))["objective"][-1] for c in partitions]
    assert len({round(v, 6) for v in longer}) > 1  # the invariance is a matter of Q2 = 1


@pytest.mark.parametrize("options", [{}, {"m": 3}, {"m": 3, "participation": "pcp"}])
def test_sparse_samples_give_the_run_of_dense_ones(options: dict[str, Any]) -> None:
    X, client, W0, H0 = instance(5, N=50, zeros=0.7)
    runs = [
        run(FedMAvg(Q2=4, **options), Clustering(form, client, K=3), 6, init=(W0, H0))
        for form in (X, sparse.csc_matrix(X))
    ]
    np.testing.assert_allclose(runs[1]["objective"], runs[0]["objective"], rtol=1e-12)
    np.testing.assert_allclose(runs[1].state.H, runs[0].state.H, rtol=1e-9, atol=1e-12)


def test_idle_clients_move_under_pcc_and_rest_under_pcp() -> None:
    X, client, W0, H0 = instance(6)
    problem, clients = Clustering(X, client, K=3), [[1, 3]]
    made = {
        kind: run(FedMAvg(m=2, participation=kind, d_mode="local"), problem, 1, init=(W0, H0), clients=clients).state
        for kind in ("pcc", "pcp")
    }
    idle = ~np.isin(client, [1, 3])
    np.testing.assert_array_equal(made["pcp"].H[:, idle], H0[:, idle])
    assert (made["pcc"].H[:, idle] != H0[:, idle]).any(axis=0).all()
    # with steps of their own the drawn clients do not see the others: the first average is the same
    np.testing.assert_allclose(made["pcc"].W, made["pcp"].W, rtol=1e-12)
    np.testing.assert_allclose(made["pcc"].H[:, ~idle], made["pcp"].H[:, ~idle], rtol=1e-12, atol=1e-14)


def test_measuring_or_not_does_not_change_a_run() -> None:
    X, client, W0, H0 = instance(7)
    problem = Clustering(X, client, K=3)
    for method in (FedMAvg(m=2), FedMAvg(), FedMAvg(m=2, participation="pcp")):
        often = run(method, problem, 6, init=(W0, H0))
        once = run(method, problem, 6, init=(W0, H0), metrics=())
        np.testing.assert_allclose(once.state.W, often.state.W, rtol=1e-12)
        assert problem.objective(once.state) == pytest.approx(often["objective"][-1], rel=1e-12)


def test_fewer_draws_are_the_first_of_more_and_follow_the_sizes() -> None:
    omega = np.array([0.5, 0.3, 0.2])
    few, more = (list(itertools.islice(descent.drawn_again(np.random.default_rng(1), m, omega), 8000)) for m in (1, 2))
    assert all(a[0] == b[0] for a, b in zip(few, more, strict=True))
    shares = np.bincount(np.concatenate(more), minlength=3) / 16000
    np.testing.assert_allclose(shares, omega, atol=4 * np.sqrt(0.25 / 16000))
    pairs = np.mean([a == b for a, b in more])  # independent: Pr(same) = sum omega^2
    assert pairs == pytest.approx(float(omega @ omega), abs=4 * np.sqrt(0.25 / 8000))


@pytest.mark.parametrize(("participation", "receivers"), [("pcc", [5] * 5), ("pcp", [2, 1, 3, 2, 3])])
def test_the_ledger_counts_every_draw_and_everybody_who_needs_w(participation: str, receivers: list[int]) -> None:
    X, client, W0, H0 = instance(8)
    M, K, m = 7, 3, 3
    method = FedMAvg(m=m, participation=participation)
    history = run(method, Clustering(X, client, K=K), 5, init=(W0, H0), clients=DRAWS)
    np.testing.assert_array_equal(history["uplink_scalars"], np.arange(6) * m * M * K)  # fedmf V-A
    np.testing.assert_array_equal(history["downlink_scalars"], np.concatenate(([0], np.cumsum(receivers))) * M * K)


def test_the_ledger_of_full_participation_is_the_papers_formula() -> None:
    X, client, W0, H0 = instance(9)
    history = run(FedMAvg(), Clustering(X, client, K=3), 4, init=(W0, H0))
    np.testing.assert_array_equal(history["uplink_scalars"], np.arange(5) * 5 * 7 * 3)  # fedc V-A: M K P s
    np.testing.assert_array_equal(history["downlink_scalars"], history["uplink_scalars"])
    assert history.ledger.setup_scalars == 0


def test_an_overflow_ends_the_run_with_a_state_that_says_so() -> None:
    X, client, W0, H0 = instance(10)
    X[:, client == 0] *= 30
    problem = Clustering(X, client, K=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        history = run(FedMAvg(Q2=5000, gamma2=0.05), problem, 20, init=(W0, H0))
    assert len(history.rounds) < 21
    assert not np.isfinite(history["objective"][-1])


def test_clients_whose_assignments_are_zero_send_w_unchanged() -> None:
    X, client, W0, H0 = instance(11)
    X[:, client == 2] = 0.0
    H0[:, client == 2] = 0.0
    problem = Clustering(X, client, K=3, rho=0.0, w_min="zero")
    naive = Naive(X, client, 3, 0.0, lo=0.0)
    history = run(FedMAvg(Q2=3), problem, 3, init=(W0, H0), keep=True)
    compare(history, fedmavg(naive, W0, H0, [3] * 3, 10), naive)
    local = run(FedMAvg(m=1, Q2=3, d_mode="local"), problem, 1, init=(W0, H0), clients=[[2]])
    np.testing.assert_allclose(local.state.W, problem_clip(problem, W0), rtol=1e-15)
    assert not run(FedMAvg(), problem, 1, init=(0 * W0, 0 * H0)).state.W.any()


def problem_clip(problem: Clustering, W: np.ndarray) -> np.ndarray:
    return np.clip(W, problem.w_min, problem.w_max)


def test_rho_set_between_rounds_is_in_force_from_the_next_round() -> None:
    X, client, W0, H0 = instance(12)
    W, H = W0, H0
    problem = Clustering(X, client, K=3)
    states = FedMAvg(Q1=4, Q2=3).rounds(problem, np.random.default_rng(0), init=(W0, H0))
    state = next(states)
    for rho in (0.01, 0.05):
        state.rho = rho
        state = next(states)
        naive = Naive(X, client, 3, rho)
        W, H = fedmavg(naive, W, H, [3], 4)[-1]
        assert problem.objective(state) == pytest.approx(naive.F(W, H) / naive.unit, rel=1e-11)
    np.testing.assert_allclose(state.H, H, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"Q2": 3, "Qhat": 5}, "Q2: give Q2 (constant) or Qhat (diminishing), not both"),
        ({"Qhat": 0}, "Qhat: must be an integer of at least 1, not 0"),
        ({"participation": "all"}, "participation: must be one of pcc, pcp, not 'all'"),
        ({"pcp_repeat": 1}, "pcp_repeat: must be true or false, not 1"),
        ({"gamma2": 0}, "gamma2: must be a number greater than 0, not 0"),
        ({"d_mode": "oracle"}, "d_mode: must be one of global, local, not 'oracle'"),
        ({"d_schedule": "linar"}, "d_schedule: must be one of constant, linear, not 'linar', did you mean 'linear'?"),
    ],
)
def test_bad_parameters_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError) as error:
        FedMAvg(**values)
    assert str(error.value) == message


def test_local_length_is_constant_or_diminishes() -> None:
    assert [FedMAvg(Q2=4).local_length(s) for s in (1, 2, 100)] == [4, 4, 4]
    assert [FedMAvg(Qhat=10).local_length(s) for s in (1, 2, 3, 10, 11, 500)] == [11, 6, 4, 2, 1, 1]
    assert FedMAvg().Qhat == 10


def test_the_names_preset_what_they_say() -> None:
    names = registry.methods()
    assert names["fedmavg"].make(m=10, Q2=3) == FedMAvg(m=10, Q2=3)
    assert names["fedcavg"].make() == FedMAvg(m=None, gamma2=5.0)
    assert names["fedcavg-literal"].make(Qhat=400) == FedMAvg(Qhat=400, gamma2=1.0)
    with pytest.raises(ParameterError, match="m: must be at most the number of clients P = 5, not 6"):
        FedMAvg(m=6).check(P=5)
