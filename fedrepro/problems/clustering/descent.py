"""The H and W steps shared by the methods on the clustering problem, and the statistics that they update.

Step sizes are gamma/2 times a Lipschitz constant of the current iterate (FedMAvg's d: gamma2 times the constant), fixed
during a round; FedPALM recomputes them at every inner step (docs/derivations/clustering-problem.md#step-sizes).
Rows of ``Hs`` are columns of H (see ``fedrepro.problems.clustering``), so ``A H`` is written ``Hs A`` for symmetric A.

Source: fedmf (6), (11), (28), (30) and section V-A; fedc Algorithm 2; docs/derivations/local-loop.md.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from fedrepro.errors import ParameterError, UserError
from fedrepro.problems.clustering.passes import Pass
from fedrepro.problems.clustering.problem import Clustering
from fedrepro.problems.clustering.sample_rows import Rows
from fedrepro.problems.clustering.state import State
from fedrepro.protocols import Work
from fedrepro.seeds import Rng, streams

_LOST_AT_MOST = 1e3
"""HH and XH are recomputed once updates add up to this many times trace(HH), so rounding errors stay below 1e-12."""

_ROWS = 512
"""Rows per block of steps: they stay in the cache over all steps, and BLAS does not split such small products."""


def lambda_max(A: np.ndarray) -> float:
    """Largest eigenvalue of a symmetric matrix; NaN if an entry is not finite."""
    return float(np.linalg.eigvalsh(A)[-1]) if np.isfinite(A).all() else float("nan")


def h_step(problem: Clustering, W: np.ndarray, rho: float, gamma: float) -> tuple[np.ndarray, float]:
    """S and a of an H step, H <- max(0, S H + a W^T X), which are the same for every client.

    A_p and the linear term both carry 1/N_p, and c_p = gamma/2 lambda_max(A_p) with them, so N_p cancels
    (docs/derivations/clustering-problem.md#the-h-step-does-not-know-the-partition). With
    N rho = (relative rho) ||X||^2, N_p A_p = 2 W^T W + N rho 1 1^T + N (nu - rho) I.
    """
    K, size = problem.K, problem.norm2
    A = 2.0 * (W.T @ W) + size * (rho * np.ones((K, K)) + (problem.nu - rho) * np.eye(K))
    c = 0.5 * gamma * lambda_max(A)  # fedmf V-A: c_p^s, with the safety factor the theorems ask for
    if c == 0.0:  # W, rho and nu are zero: the gradient vanishes
        return np.eye(K), 0.0
    return np.eye(K) - A / c, 2.0 / c


def descend_H(H: np.ndarray, T: np.ndarray, S: np.ndarray, steps: int) -> None:
    """Apply H <- max(0, S H + T) ``steps`` times, in place; rows are samples. fedmf (6), (11), (28)."""
    moved = np.empty((min(_ROWS, len(H)), H.shape[1]))
    for first in range(0, len(H), _ROWS):
        rows, term = H[first : first + _ROWS], T[first : first + _ROWS]
        out = moved[: len(rows)]
        for _ in range(steps):
            np.matmul(rows, S, out=out)
            out += term
            np.maximum(out, 0.0, out=rows)


def descend_W(problem: Clustering, W: np.ndarray, G1: np.ndarray, G2: np.ndarray, d: float, steps: int) -> None:
    """Apply W <- clip(W - (W G1 - G2) / d) ``steps`` times, in place. fedmf (30)."""
    if d == 0.0:  # H is zero: so are G1 and G2
        return
    S = np.eye(problem.K) - G1 / d
    moved = np.empty((min(_ROWS, problem.M), problem.K))
    for first in range(0, problem.M, _ROWS):
        rows, term = W[first : first + _ROWS], G2[first : first + _ROWS] / d
        out = moved[: len(rows)]
        for _ in range(steps):
            np.matmul(rows, S, out=out)
            out += term
            np.clip(out, problem.w_min, problem.w_max, out=rows)


def update_all(problem: Clustering, state: State, gamma: float, Q1: int, *, share: bool) -> None:
    """Take Q1 H steps of every client and update HH.

    ``share`` : also update XH, which the clients send, while a block of X is still in the cache from W^T X.
    """
    S, a = h_step(problem, state.W, state.rho, gamma)
    state.XH, XW = np.zeros((problem.M, problem.K)) if share else None, state.XW

    def step(part: slice, T: Any) -> np.ndarray:
        descend_H(state.Hs[part], a * (T if XW is None else XW[part]), S, Q1)
        return state.Hs[part]

    problem.over(Pass(problem.blocks(), step, state.W if XW is None else None, state.XH))
    state.HH, state.lost = state.Hs.T @ state.Hs, 0.0


def update_some(
    problem: Clustering, state: State, gamma: float, clients: np.ndarray, steps: int | Mapping[int, int]
) -> None:
    """Take H steps of ``clients`` (increasing ids) and add their changes to HH and XH.

    Other clients are read only if HH and XH have to be computed anew. ``steps`` is one number for all clients, or a
    number for each. fedc, Algorithm 2: differences U_p and V_p.
    """
    S, a = h_step(problem, state.W, state.rho, gamma)
    parts = [(part, count) for ids, count in _alike(problem, clients, steps) for part in problem.blocks(ids)]
    if state.XH is None:
        problem.refresh(state)
    assert state.XH is not None
    counts, XW = {_first(part): count for part, count in parts}, state.XW

    def step(part: Rows, T: Any) -> np.ndarray:
        H = state.Hs[part]  # a view for a slice, a copy for row numbers
        before = H.copy()
        descend_H(H, a * (T if XW is None else XW[part]), S, counts[_first(part)])
        if not isinstance(part, slice):
            state.Hs[part] = H
        old, new = before.T @ before, H.T @ H
        state.HH += new - old
        state.lost += float(np.trace(old) + np.trace(new))
        return H - before

    problem.over(Pass([part for part, _ in parts], step, state.W if XW is None else None, state.XH))
    if state.lost > _LOST_AT_MOST * float(np.trace(state.HH)):
        problem.refresh(state)


def _alike(
    problem: Clustering, clients: np.ndarray, steps: int | Mapping[int, int]
) -> list[tuple[np.ndarray | list[int], int]]:
    """Groups of clients with the same number of steps, and this number."""
    if not isinstance(steps, Mapping):
        return [(clients, steps)]
    if not problem.small:
        return [([int(p)], steps[int(p)]) for p in clients]
    counts = np.array([steps[int(p)] for p in clients])
    return [(clients[counts == count], int(count)) for count in np.unique(counts)]


def _first(part: Rows) -> int:
    return int(part.start if isinstance(part, slice) else part[0])


def local_steps(B: np.ndarray, d: np.ndarray | float, steps: int) -> np.ndarray:
    """sum_{i < steps} (I - B_p/d_p)^i / d_p for each B_p: the closed form of ``steps`` unprojected W steps.

    V <- V - (V B - G)/d from V = W gives W + (G - W B) times this matrix. With B = U diag(lambda) U^T and
    x = lambda/d it is U diag((1 - (1 - x)^steps) / lambda) U^T, with steps/d where lambda = 0.
    B : (clients, K, K), symmetric, positive semidefinite; d : (clients,) or a number, positive.
    """
    values, U = np.linalg.eigh(B)
    d = np.broadcast_to(np.asarray(d, dtype=np.float64), (len(B),))[:, None]
    x = values / d
    small = x < 0.5  # log1p keeps the digits of 1 - (1 - x)^steps where x is small
    with np.errstate(over="ignore", invalid="ignore"):
        near = -np.expm1(steps * np.log1p(-np.where(small, x, 0.0)))
        far = 1.0 - (1.0 - np.where(small, 1.0, x)) ** steps
        ratio = np.where(small, near, far) / np.where(x == 0.0, 1.0, x)
        g = np.where(x == 0.0, float(steps), ratio) / d
        return (U * g[:, None, :]) @ U.transpose(0, 2, 1)


def H_steps(facts: Mapping[str, Any], rows: float, steps: float, parts: float = 0.0) -> Work:
    """The work of ``steps`` steps on H of ``rows`` samples in ``parts`` blocks (0: as few as possible)."""
    K, parts = facts["K"], parts or rows / _ROWS + 1.0
    return Work(flops=2.0 * rows * K * K * steps, singles=0.1 * rows * K * steps, calls=3.0 * parts * steps)


def W_steps(facts: Mapping[str, Any], steps: float) -> Work:
    """The work of ``descend_W``."""
    M, K = facts["M"], facts["K"]
    return Work(flops=2.0 * M * K * K * steps, singles=0.3 * M * K * steps, calls=5.0 * (M / _ROWS + 1.0) * steps)


def at_work(facts: Mapping[str, Any], m: int | None) -> float:
    """The number of clients of a round: m, or all."""
    return float(facts["P"] if m is None else min(m, facts["P"]))


def state_bytes(facts: Mapping[str, Any]) -> float:
    """Bytes of a run: H, W^T X, H0 and similar arrays, and a block of products."""
    return 8.0 * facts["K"] * (7.0 * facts["N"] + 10.0 * facts["M"]) + 2e6


def finite(state: State) -> bool:
    """Whether W is finite; a method ends after yielding a state with a W that is not."""
    return bool(np.isfinite(state.W).all())


def replayed(clients: Any, m: int | None, P: int) -> Iterator[np.ndarray] | None:
    """The checked clients of each round, (rounds, m) ids; None if ``clients`` is None."""
    if clients is None:
        return None
    if m is None or m >= P:
        raise ParameterError("clients", "every client takes part in every round (m = P): there is no draw to replay")
    draws = np.asarray(clients)
    if draws.ndim != 2 or draws.shape[1] != m or draws.dtype.kind not in "iu":
        raise UserError(f"clients: must be integers of shape (rounds, m = {m}), not {draws.dtype} {draws.shape}")
    if draws.size and (draws.min() < 0 or draws.max() >= P):
        raise UserError(f"clients: ids must lie between 0 and {P - 1}")
    return iter(draws)


def drawn_once(rng: Rng, m: int, P: int) -> Iterator[np.ndarray]:
    """m clients per round, uniform without replacement; the same generator draws a subset for a smaller m."""
    draw = streams(rng).clients
    for _ in itertools.count():
        yield draw.permutation(P)[:m]


def drawn_again(rng: Rng, m: int, omega: np.ndarray) -> Iterator[np.ndarray]:
    """m clients per round, independent, Pr(p) = omega_p; the same generator draws a subset for a smaller m."""
    draw, edges = streams(rng).clients, np.cumsum(omega)
    edges[-1] = 1.0
    for _ in itertools.count():
        yield np.searchsorted(edges, draw.random(omega.size)[:m], side="right")


def distinct(clients: Sequence[int] | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct ids in increasing order, and their counts."""
    return np.unique(np.asarray(clients), return_counts=True)
