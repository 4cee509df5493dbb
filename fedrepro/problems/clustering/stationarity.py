r"""Distance of a point of the clustering problem from a stationary point: the measures that the theorems bound.

With :math:`H_p^+ = [H_p - \nabla_{H_p} F_p / c_p]_+` and :math:`W^+ = [W - \nabla_W F / d]_{W_{min}}^{W_{max}}`

.. math::
    G_H = \sum_p \omega_p c_p^2 \|H_p - H_p^+\|_F^2, \qquad G_W = d^2 \|W - W^+\|_F^2,

fedmf (21), (22), and :math:`\sum_p \omega_p L_{H_p} \|H_p - H_p^+\|_F^2` in fedc (15), (75),
:math:`L_W \|W - W^+\|_F^2` in fedc (75). Both are zero exactly at stationary points. Here
``c_p = GAMMA_H/2 lambda_max(A_p)``, and ``d`` is a multiple of ``L_W = lambda_max((2/N) H H^T)``, which is at most the
L_W of the theorems (discrepancy fedmf.37). The factors are those of the authors' program for every method, so that
methods and step sizes can be compared (c ||H - H^+|| does not decrease with c, so a larger factor is a stricter
measure).

The measures use W^T X, X H^T, W^T W, H H^T and H_p H_p^T; X - W H is never formed. The pair (W, H) at the end of a
round is the point at which the next round starts: G_H is the first term of that round's sum, and G_W is the term that
one more W step would add. Products that a state does not keep are computed and discarded, so measuring changes no run.

Source: fedmf (18), (19), (21), (22), Theorem 1, Theorem 2; fedc (15), (75);
docs/derivations/clustering-problem.md#stationarity.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from fedrepro.problems.clustering import passes
from fedrepro.problems.clustering.passes import Pass
from fedrepro.problems.clustering.sample_rows import Rows
from fedrepro.problems.clustering.state import State


class Objective(Protocol):
    """The members of ``Clustering`` that the measures use."""

    X: Any
    K: int
    M: int
    N: int
    P: int
    nu: float
    norm2: float
    w_min: float
    w_max: float
    sizes: np.ndarray
    starts: np.ndarray

    def blocks(self, clients: Sequence[int] | np.ndarray | None = None) -> list[Rows]:
        """The samples of some clients, or of all, in parts."""

    def grams(self, state: State, clients: Sequence[int] | np.ndarray) -> np.ndarray:
        """H_p H_p^T of each client, (clients, K, K)."""


GAMMA_H = 1.02
"""c_p = GAMMA_H/2 lambda_max(A_p): the theorems require a factor above 1; this is the authors' program's.

fedmf Theorem 1 prints the largest lambda_max of all rounds instead of that of A_p; its proof holds with either.
"""

GAMMA_SHARING = 1.002
"""d = GAMMA_SHARING/2 L_W: fedmf Theorem 2, fedc Theorem 3, the factor of the authors' program."""

GAMMA_AVERAGING = 5.0
"""d = GAMMA_AVERAGING L_W: fedmf Theorem 1, the factor of the authors' program."""


def steps_H(problem: Objective, state: State) -> tuple[np.ndarray, float]:
    """||H_p - H_p^+||_F^2 of every client, (P,), and lambda = N_p lambda_max(A_p), the same for all of them."""
    K, size = problem.K, problem.norm2
    A = 2.0 * (state.W.T @ state.W) + size * (state.rho * np.ones((K, K)) + (problem.nu - state.rho) * np.eye(K))
    top = _lambda_max(A)
    if not top > 0.0:  # W, rho and nu are zero: so is the gradient
        return np.zeros(problem.P), top
    c, XW = 0.5 * GAMMA_H * top, _XW(problem, state)
    moved = np.empty(problem.N)
    for part in problem.blocks():  # N_p cancels in the step, so all clients' samples are stepped alike
        H = state.Hs[part]
        D = H - np.maximum(H - (H @ A - 2.0 * XW[part]) / c, 0.0)
        moved[part] = np.einsum("nk,nk->n", D, D)
    return np.add.reduceat(moved, problem.starts[:-1]), top


def gap_H(problem: Objective, state: State) -> float:
    """G_H of fedmf (21). omega_p c_p^2 = c^2 / (N N_p) with c = N_p c_p."""
    moved, top = steps_H(problem, state)
    return float((0.5 * GAMMA_H * top) ** 2 / problem.N * (moved / problem.sizes).sum())


def moves_H(problem: Objective, state: State) -> float:
    """sum_p omega_p L_{H_p} ||H_p - H_p^+||_F^2, fedc (15), (75). omega_p L_{H_p} = lambda / N for every client."""
    moved, top = steps_H(problem, state)
    return float(top / problem.N * moved.sum())


def step_W(problem: Objective, state: State, factor: float) -> tuple[float, float]:
    """||W - W^+||_F^2 at d = ``factor`` L_W, and L_W."""
    L_W = 2.0 / problem.N * _lambda_max(state.HH)
    if not L_W > 0.0:  # H is zero: so is the gradient
        return 0.0, L_W
    moved = state.W - gradient_W(problem, state) / (factor * L_W)
    D = state.W - np.clip(moved, problem.w_min, problem.w_max)
    return float(np.vdot(D, D)), L_W


def gap_W(problem: Objective, state: State, factor: float) -> float:
    """G_W of fedmf (22) at d = ``factor`` L_W."""
    moved, L_W = step_W(problem, state, factor)
    return (factor * L_W) ** 2 * moved


def moves_W(problem: Objective, state: State) -> float:
    """L_W ||W - W^+||_F^2 of fedc (75), at d = GAMMA_SHARING/2 L_W."""
    moved, L_W = step_W(problem, state, 0.5 * GAMMA_SHARING)
    return L_W * moved


def gradient_W(problem: Objective, state: State) -> np.ndarray:
    """grad_W F = (2/N) (W H H^T - X H^T), (M, K)."""
    XH = _XH(problem, state.Hs, None) if state.XH is None else state.XH
    return 2.0 / problem.N * (state.W @ state.HH - XH)


def phi(problem: Objective, state: State) -> float:
    """||grad_W F||_F at this point; phi of fedmf (19) bounds it everywhere."""
    return float(np.linalg.norm(gradient_W(problem, state)))


def zeta(problem: Objective, state: State) -> float:
    """max_p ||grad_W F_p - grad_W F||_F at this point; zeta of fedmf (18) bounds it everywhere."""
    mean, largest = gradient_W(problem, state), 0.0
    for p in range(problem.P):
        HH = problem.grams(state, [p])[0]
        own = 2.0 / problem.sizes[p] * (state.W @ HH - _XH(problem, state.Hs, p))
        largest = max(largest, float(np.linalg.norm(own - mean)))
    return largest


def curvature_spread(problem: Objective, state: State) -> float:
    """max_p lambda_max(B_p) / min_p lambda_max(B_p), NaN if some client's H is zero.

    It is at most the ratio of the bounds on L_{W_p} of fedmf (17) over all clients and rounds, for which Theorem 1
    requires gamma2 >= Q2 sqrt(2 (7 + 4 ratio^2)), with the Q2 of round 1.
    """
    local = np.linalg.eigvalsh(problem.grams(state, range(problem.P)))[:, -1] / problem.sizes
    return float(local.max() / local.min()) if local.min() > 0.0 else float("nan")


def _lambda_max(A: np.ndarray) -> float:
    return float(np.linalg.eigvalsh(A)[-1]) if np.isfinite(A).all() else float("nan")


def _XW(problem: Objective, state: State) -> np.ndarray:
    """X^T W, (N, K); the state is left as it is."""
    if state.XW is not None:
        return state.XW
    XW = np.empty((problem.N, problem.K))

    def keep(part: slice, T: np.ndarray) -> None:
        XW[part] = T

    passes.go(problem.X, [Pass(problem.blocks(), keep, state.W)])
    return XW


def _XH(problem: Objective, Hs: np.ndarray, client: int | None) -> np.ndarray:
    """X H^T, (M, K), or X_p H_p^T of one client."""
    XH = np.zeros((problem.M, problem.K))
    parts = problem.blocks(None if client is None else [client])
    passes.go(problem.X, [Pass(parts, lambda part, _: Hs[part], out=XH)])
    return XH
