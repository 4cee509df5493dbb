r"""Distance of a point of the completion problem from a stationary point: the measure that fedmc Theorem 4.8 bounds.

.. math::
    \mathrm{dist}(0, \partial\Phi(\bar U, V))^2 = \sum_i \Big\| \tfrac1p [\nabla_U f_i(\bar U_i, V) + r_i] \Big\|_F^2
        + \Big\| \tfrac1p \sum_i \nabla_V f_i(\bar U_i, V) + r \Big\|_F^2,

with the subgradients :math:`r_i \in \partial R_i(\bar U_i), r \in \partial R(V)` that minimize it. :math:`\bar U_i`
is U_i after one step (14) of client i with its local copy W_i (with V if the method has no copies): fedmc (19), for all
clients, drawn or not. The paper's measure includes constraint sets of U and V; its experiments have none, and neither
does this code.

Source: fedmc (14), (19), (51), Theorem 4.7, Theorem 4.8.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from fedrepro.problems.completion.state import State


class Objective(Protocol):
    """The members of ``Completion`` that the measures use."""

    p: int
    reg: str
    lam: float
    gam: float

    def client(self, i: int) -> slice:
        """The rows of client i."""

    def by_user(self, rows: slice) -> tuple[np.ndarray, ...]:
        """The training ratings of some rows, user by user."""

    def by_item(self, i: int) -> tuple[np.ndarray, ...]:
        """The training ratings of client i, item by item."""


LEAST = 1e-12
"""Least value of the curvatures ||W_i W_i^T||_F and ||U_i^T U_i||_F, as in the method."""


def gap(problem: Objective, state: State) -> float:
    """dist(0, d Phi(Ubar, V))^2, fedmc (51); inf or NaN where the state is not finite."""
    from fedrepro.problems.completion.kernels import steps

    p, V = problem.p, state.V
    to_V = np.zeros_like(V)
    total = 0.0
    for i in range(p):
        rows = problem.client(i)
        U = stepped(problem, i, state.U[rows], V if state.W is None else state.W[i])
        to_U, own = U.copy(), V.copy()
        steps(to_U, V, *problem.by_user(rows), N=1, alpha=0.0, scale=-1.0)  # grad_U f_i(Ubar_i, V)
        steps(own, U, *problem.by_item(i), N=1, alpha=0.0, scale=-1.0)  # grad_V f_i(Ubar_i, V)
        total += float(np.sum(_least(to_U, U, problem.lam, problem.reg) ** 2)) / p**2
        to_V += own
    return total + float(np.sum(_least(to_V / p, V, problem.gam, problem.reg) ** 2))


def stepped(problem: Objective, i: int, U: np.ndarray, W: np.ndarray) -> np.ndarray:
    """Ubar_i: one step (14) of client i from U, (m_i, r), against W, (n, r). fedmc (19)."""
    from fedrepro.problems.completion.kernels import gram, steps

    L, out = max(float(np.linalg.norm(gram(W))), LEAST), U.copy()
    if problem.reg == "l2":
        shrink = {"alpha": L, "scale": 1.0 / (L + problem.lam)}  # (66)
    else:
        shrink = {"delta": 1.0 / L, "tau": problem.lam / L}  # (71)
    steps(out, W, *problem.by_user(problem.client(i)), N=1, **shrink)
    return out


def beta_scale(problem: Objective, state: State) -> float:
    """max_i L_{U_i}^2 / min_i L_{U_i} with L_{U_i} = ||U_i^T U_i||_F, at least LEAST.

    Over the rounds of a run the largest of these is at most Lbar_U^2 / Lunder_U of fedmc (34); with m of p clients
    drawn alike the second bound of Theorem 4.7 on beta is 8 (8 + N) / m times that.
    """
    from fedrepro.problems.completion.kernels import gram

    L = [max(float(np.linalg.norm(gram(state.U[problem.client(i)]))), LEAST) for i in range(problem.p)]
    return max(L) ** 2 / min(L)


def _least(g: np.ndarray, x: np.ndarray, weight: float, reg: str) -> np.ndarray:
    """The element of g + d R(x) of least norm, entry by entry, R = weight/2 ||.||^2 or weight ||.||_1."""
    if reg == "l2":
        return g + weight * x
    at_zero = np.sign(g) * np.maximum(np.abs(g) - weight, 0.0)
    return np.where(x != 0.0, g + weight * np.sign(x), at_zero)
