"""The measures that the theorems bound, against the papers' formulas, projections and proximal steps written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import fedrepro
from fedrepro.problems.clustering.problem import Clustering
from fedrepro.problems.clustering.state import State
from fedrepro.problems.completion.problem import Completion
from fedrepro.problems.completion.problem_steps import STEPS, StepCompletion
from fedrepro.problems.completion.state import State as Factors
from fedrepro.runs.compute.drive import run

from .completion_cases import Dense, small, soft
from .naive_clustering import Naive, instance, top

GAPS = ("gap_h", "gap_w", "gap_w_averaging", "moves_h", "moves_w", "phi", "zeta", "curvature_spread")


def naive(n: Naive, W: np.ndarray, H: np.ndarray) -> dict[str, float]:
    """fedmf (18), (19), (21), (22) and fedc (75), client by client."""
    G = sum(n.omega[p] * n.grad_W(p, W, H[:, n.own[p]]) for p in range(n.P))
    L_W, gap_h, moves_h, apart, local = top(2 / n.N * H @ H.T), 0.0, 0.0, [], []
    for p in range(n.P):
        Hp = H[:, n.own[p]]
        L = top(n.A(p, W))
        c = 1.02 / 2 * L
        step = Hp - np.maximum(0.0, Hp - n.grad_H(p, W, Hp) / c)
        gap_h += n.omega[p] * c**2 * np.sum(step**2)
        moves_h += n.omega[p] * L * np.sum(step**2)
        apart.append(np.linalg.norm(n.grad_W(p, W, Hp) - G))
        local.append(top(n.B(p, Hp)))
    sharing, averaging = 1.002 / 2 * L_W, 5.0 * L_W
    step = W - n.clip(W - G / sharing)
    return {
        "gap_h": gap_h,
        "gap_w": sharing**2 * np.sum(step**2),
        "gap_w_averaging": averaging**2 * np.sum((W - n.clip(W - G / averaging)) ** 2),
        "moves_h": moves_h,
        "moves_w": L_W * np.sum(step**2),
        "phi": np.linalg.norm(G),
        "zeta": max(apart),
        "curvature_spread": max(local) / min(local),
    }


def state_of(problem: Clustering, W: np.ndarray, H: np.ndarray, kept: bool) -> State:
    state = problem.start((W, H), np.random.default_rng(0))
    if kept:
        problem.refresh(state)
        problem.XW(state)
    return state


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("seed", [1, 2])
def test_the_gaps_are_their_formulas_whatever_a_state_keeps(form: Any, kept: bool, seed: int) -> None:
    X, client, W, H = instance(seed, zeros=0.3)
    n = Naive(X, client, 3, rho=0.02, nu=0.01)
    assert len(set(np.bincount(client))) > 1  # clients of different sizes
    W[0, 0], H[:, ::4] = n.hi + 1.0, 0.0  # where the projections bind
    problem = Clustering(form(X), client, K=3, rho=0.02, nu=0.01)
    state = state_of(problem, W, H, kept)
    values = problem.measure(state, GAPS)
    for name, value in naive(n, W, H).items():
        assert values[name] == pytest.approx(value, rel=1e-10), name
    assert (state.XW is None, state.XH is None) == (not kept, not kept)  # measuring fills nothing


def test_the_bounds_of_W_count() -> None:
    X, client, W, H = instance(3)
    problem, n = Clustering(X, client, K=3), Naive(X, client, 3)
    W = np.full_like(W, n.hi)
    state = state_of(problem, W, 1e-3 * H, False)  # the fit is far below X: W wants to grow and may not
    values = problem.measure(state, GAPS)
    assert values["gap_w"] == values["gap_w_averaging"] == values["moves_w"] == 0.0
    assert values["phi"] > 0.0


def test_the_gaps_vanish_at_a_stationary_point_and_measuring_changes_no_run() -> None:
    X, client, W, H = instance(4)
    problem = Clustering(X, client, K=3, rho=0.02, nu=0.01)
    method = fedrepro.FedMGS(Q1=20, Q2=20)
    seen = run(method, problem, 3000, init=(W, H), metrics=("objective", *GAPS), record_every=1000)
    alone = run(method, problem, 3000, init=(W, H), metrics=("objective",), record_every=1000)
    assert (seen["objective"] == alone["objective"]).all()
    for name in ("gap_h", "gap_w", "gap_w_averaging", "moves_h", "moves_w"):
        assert seen[name][-1] < 1e-16 * seen[name][0], name
    assert seen["zeta"][-1] > 0.0  # clients' own gradients do not vanish


@pytest.mark.parametrize("method", [fedrepro.FedMAvg(m=2, Q2=3), fedrepro.FedMGS(m=2), fedrepro.FedMAvg(Q2=3)])
def test_measuring_gaps_changes_no_bit_of_a_run(method: Any) -> None:
    X, client, *_ = instance(5, N=200)
    problem = Clustering(X, client, K=3)
    seen, alone = (run(method, problem, 6, metrics=names, keep=True) for names in (GAPS, ("rho",)))
    assert seen.states is not None
    assert alone.states is not None
    for a, b in zip(seen.states, alone.states, strict=True):
        assert (a.W == b.W).all()
        assert (a.H == b.H).all()


def test_nothing_moves_where_everything_is_zero() -> None:
    X, client, W, H = instance(6)
    problem = Clustering(X, client, K=3, rho=0.0, nu=0.0, w_min="zero")
    values = problem.measure(state_of(problem, 0 * W, 0 * H, False), GAPS)
    assert np.isnan(values.pop("curvature_spread"))
    assert set(values.values()) == {0.0}


# Completion


def point(problem: Completion, seed: int) -> Factors:
    rng = np.random.default_rng(seed)
    U, V = rng.standard_normal((problem.rows, problem.r)), rng.standard_normal((problem.n, problem.r))
    V[::2, 1] = 0.0
    return Factors(U, V, W=rng.standard_normal((problem.p, problem.n, problem.r)))


def naive_gap(problem: Completion, state: Factors) -> float:
    """fedmc (19), (51) in dense products, with the least subgradient of every entry."""
    d, lam, gam, V = Dense(problem), problem.lam, problem.gam, state.V
    total, to_V = 0.0, np.zeros_like(V)
    for i, U in enumerate(d.split(state.U)):
        W = V if state.W is None else state.W[i]
        L = np.linalg.norm(W.T @ W)
        moved = L * U - d.grad_U(i, U, W)
        U = moved / (L + lam) if problem.reg == "l2" else soft(moved / L, lam / L)
        total += np.sum(least(d.grad_U(i, U, V), U, lam, problem.reg) ** 2) / d.p**2
        to_V += d.grad_V(i, U, V) / d.p
    return float(total + np.sum(least(to_V, V, gam, problem.reg) ** 2))


def least(g: np.ndarray, x: np.ndarray, weight: float, reg: str) -> np.ndarray:
    """The point of least size of g + weight [-1, 1] where x = 0, and the gradient elsewhere."""
    if reg == "l2":
        return g + weight * x
    low, high = g + weight * np.where(x > 0, 1.0, -1.0), g + weight * np.where(x < 0, -1.0, 1.0)
    return np.clip(0.0, low, high)


@pytest.mark.parametrize("reg", ["l2", "l1"])
@pytest.mark.parametrize("copies", [True, False])
def test_the_gap_of_completion_is_its_formula(reg: str, copies: bool) -> None:
    problem = small(reg=reg, lam=1.5, gam=0.7)
    state = point(problem, 1)
    if not copies:
        state.W = None
    kept = state.U.copy(), state.V.copy()
    assert problem.measure(state, ("gap",))["gap"] == pytest.approx(naive_gap(problem, state), rel=1e-10)
    assert np.array_equal(state.U, kept[0])
    assert np.array_equal(state.V, kept[1])


@pytest.mark.parametrize("reg", ["l2", "l1"])
def test_the_gap_of_completion_vanishes_at_a_stationary_point(reg: str) -> None:
    problem = small(reg=reg, lam=0.3, gam=0.1)
    history = run(fedrepro.FedMCADMM(m=2, N=10), problem, 8000, metrics=("gap",), record_every=4000, record_dense=0)
    assert history["gap"][-1] < 1e-12 * history["gap"][0]


def test_the_scale_of_beta_is_the_largest_curvature_squared_over_the_smallest() -> None:
    problem = small()
    state = point(problem, 2)
    L = [np.linalg.norm(U.T @ U) for U in Dense(problem).split(state.U)]
    assert problem.measure(state, ("beta_scale",))["beta_scale"] == pytest.approx(max(L) ** 2 / min(L), rel=1e-12)
    state.U[problem.client(1)] = 0.0
    assert problem.measure(state, ("beta_scale",))["beta_scale"] == pytest.approx(1e12 * max(L[0], *L[2:]) ** 2)


@pytest.mark.parametrize("reg", ["l2", "l1"])
@pytest.mark.parametrize("inner", [1, 4])
def test_the_steps_of_completion_are_those_of_the_next_round(reg: str, inner: int) -> None:
    problem = small(kind=StepCompletion, reg=reg, lam=0.3, gam=0.1, inner=inner)
    method, names = fedrepro.FedMCADMM(m=problem.p, N=inner, beta=2.0), tuple(STEPS)
    before: Factors | None = None
    seen: dict[str, float] = {}
    for number, state in enumerate(method.rounds(problem, np.random.default_rng(0))):
        assert state.W is not None
        if before is not None and before.W is not None:
            assert seen["moves_v"] == pytest.approx(np.sum((state.V - before.V) ** 2), rel=1e-9)
            moved = {"moves_u": np.sum((state.U - before.U) ** 2), "moves_w": np.sum((state.W - before.W) ** 2)}
            for name, length in moved.items():  # N steps move at most N times the sum of their squared lengths
                assert seen[name] == pytest.approx(length, rel=1e-9) if inner == 1 else seen[name] > length / inner
        assert problem.measure(state, ("apart",))["apart"] == pytest.approx(np.sum((state.W - state.V) ** 2), rel=1e-12)
        kept = state.U.copy(), state.V.copy(), state.W.copy()
        seen = problem.measure(state, names)
        assert all(map(np.array_equal, kept, (state.U, state.V, state.W)))
        before = Factors(*kept[:2], W=kept[2])
        if number == 6:
            break
    assert seen["apart"] > 0.0


def test_steps_need_local_copies_and_leave_the_other_metrics_as_they_are() -> None:
    problem, usual = small(kind=StepCompletion), small()
    state = point(problem, 3)
    state.Y, state.beta = np.zeros_like(state.W), 1.0
    others = ("objective", "gap", "nnz")
    assert {n: v for n, v in problem.measure(state, (*others, "apart")).items() if n in others} == usual.measure(
        state, others
    )
    state.W = None
    assert np.isnan(problem.measure(state, ("moves_u",))["moves_u"])
