r"""MAX-VAR GCCA of the rank-m truncations of the views: the method MVLSA, and the warm start of the federated methods.

With the truncated SVD :math:`X_i \approx A_i S_i B_i^\top` (A_i: (J, m)) and a ridge r,
:math:`T_i = (S_i^2 (r I + S_i^2)^{-1})^{1/2}`; see ``fedrepro.problems.gcca.methods.mvlsa``.

Source: Rastogi, Van Durme and Arora, Multiview LSA, NAACL 2015; Shrestha and Fu, Sec. III-C.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fedrepro.errors import ParameterError
from fedrepro.ledger import Clock
from fedrepro.multiview.aligned_views import View, decomposing, leading
from fedrepro.problems.gcca.problem import GCCA
from fedrepro.protocols import Work


def mvlsa(problem: GCCA, m: int, r: float = 0.0, clock: Clock | None = None) -> tuple[np.ndarray, list[np.ndarray]]:
    """G (J, K) and Q_i (N_i, K) of the rank-m problem with ridge r.

    A node sends A_i T_i (J, m), receives G, and keeps S_i and B_i. The problem keeps the last result, because all
    methods with a warm start need the same one; the clock adds its time to each of them. Raises ParameterError unless
    K <= m <= the rank of every view.
    """
    if m < problem.K:
        raise ParameterError("m", f"must be at least K = {problem.K}, not {m}")
    clock = Clock() if clock is None else clock
    G, Q = clock.once(problem.kept, "mvlsa", (m, r), lambda: _solve(problem, m, r, clock))
    return G, list(Q)


def _solve(problem: GCCA, m: int, r: float, clock: Clock) -> tuple[np.ndarray, list[np.ndarray]]:
    def sends(view: View) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        A, s = view.left_svd(m)
        w = np.square(s) / (r + np.square(s))  # T_i^2
        return A * np.sqrt(w), A, s, w

    def receives(view: View, part: tuple[np.ndarray, ...]) -> np.ndarray:
        _, A, s, w = part
        return view.transposed_product(A @ ((w / np.square(s))[:, None] * (A.T @ G)))  # B = X'A S^-1

    parts = clock.each(sends, problem.views)
    _, G = leading(np.hstack([AT for AT, *_ in parts]), problem.K)
    return G, clock.each(receives, problem.views, parts)


def truncating(facts: Mapping[str, Any], m: int) -> Work:
    """The work of the rank-m truncation of all views, and of the eigenvectors of its I m columns."""
    J, N, views, density = facts["J"], facts["N"], facts["I"], facts.get("density")
    columns = m * views
    joined = Work(flops=2.0 * J * columns * min(J, columns) + 10.0 * min(J, columns) ** 3, calls=100.0)
    return views * decomposing(J, N, density, m) + joined
