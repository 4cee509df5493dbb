"""Linear algebra of MAX-VAR GCCA: the exact optimum, and the server's step from estimates of all X_i Q_i.

The leading eigenvectors of P = sum_i X_i X_i^+ span the optimum; they are computed without forming P.

Source: Shrestha and Fu, Sec. II-A; docs/derivations/maxvar-optimum.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from fedrepro.errors import ParameterError
from fedrepro.multiview.aligned_views import EPS, View, leading

WIDEST = 6000
"""Most columns of a sparse view for the exact optimum, which needs an (N_i, N_i) Cholesky factor per view."""

LANCZOS = 900
"""Lanczos vectors for the exact optimum of sparse views, whose leading eigenvalues are close together (all near I)."""


@dataclass(frozen=True)
class Optimum:
    """The global optimum: ``value`` = v*, G (J, K), Q (N_i, K each), and the K leading ``eigenvalues`` of P."""

    value: float
    G: np.ndarray
    Q: list[np.ndarray]
    eigenvalues: np.ndarray


def solve(views: Sequence[View], K: int) -> Optimum:
    """The exact optimum from P = W W' with W = [U_1 ... U_I] and U_i an orthonormal basis of the range of X_i.

    lambda_k(P) is the square of the k-th singular value of W, and G consists of the left singular vectors. A J x J
    matrix is formed only if J is the smaller side of W. U_i of a dense view comes from its thin SVD. If a view is
    sparse, U_i = X_i L^-T with L L' = X_i'X_i is applied without being formed, and Lanczos computes the singular
    values.
    """
    bases: list[Any] = [_SparseBasis(view) if view.sparse else _DenseBasis(view) for view in views]
    if any(view.sparse for view in views):
        values, G = _lanczos(bases, K)
    else:
        values, G = leading(np.hstack([basis.U for basis in bases]), K)
    value = max(0.0, 0.5 * (len(views) * K - float(values.sum())))  # v* = (I K - sum_k lambda_k(P)) / 2
    return Optimum(value, G, [basis.coefficients(G) for basis in bases], values)


class _DenseBasis:
    """U of the thin SVD of a dense view."""

    def __init__(self, view: View) -> None:
        U, s, Vt = scipy.linalg.svd(view.X, full_matrices=False)
        r = int((s > EPS * max(view.X.shape) * s[0]).sum())
        self.U, self._back, self.size = U[:, :r], Vt[:r].T / s[:r], r

    def times(self, v: np.ndarray) -> np.ndarray:
        """U v."""
        return np.asarray(self.U @ v)

    def transposed_times(self, y: np.ndarray) -> np.ndarray:
        """U'y."""
        return np.asarray(self.U.T @ y)

    def coefficients(self, G: np.ndarray) -> np.ndarray:
        """X^+ G."""
        return np.asarray(self._back @ (self.U.T @ G))


class _SparseBasis:
    """U = X B with orthonormal columns for a sparse X: B = L^-T, or V S^-1 if X'X is (nearly) singular."""

    def __init__(self, view: View) -> None:
        if view.N > WIDEST:
            raise ParameterError(
                "optimum",
                f"the exact optimum needs sparse views of at most {WIDEST} columns, not {view.N}; set optimum: false "
                "and take the value of a long altmaxvar run as reference",
            )
        self.X = view.X
        gram = (self.X.T @ self.X).toarray()
        self.used = np.flatnonzero(np.diagonal(gram) > 0)  # columns that are not empty
        gram = gram[np.ix_(self.used, self.used)]
        self.L, self.B = _cholesky(gram), np.empty((0, 0))
        self.size = int(self.used.size)
        if self.L is None:
            values, V = scipy.linalg.eigh(gram)
            kept = values > EPS * max(self.X.shape) * values[-1]
            self.B, self.size = V[:, kept] / np.sqrt(values[kept]), int(kept.sum())

    def times(self, v: np.ndarray) -> np.ndarray:
        """X B v."""
        return np.asarray(self.X @ self._wide(v))

    def transposed_times(self, y: np.ndarray) -> np.ndarray:
        """B'X'y."""
        narrow = np.asarray(self.X.T @ y)[self.used]
        if self.L is not None:
            return np.asarray(scipy.linalg.solve_triangular(self.L, narrow, lower=True, check_finite=False))
        return np.asarray(self.B.T @ narrow)

    def coefficients(self, G: np.ndarray) -> np.ndarray:
        """X^+ G = B B'X'G (with empty rows for empty columns)."""
        return self._wide(self.transposed_times(G))

    def _wide(self, v: np.ndarray) -> np.ndarray:
        """B v, with zeros for the empty columns."""
        wide = np.zeros((self.X.shape[1], *v.shape[1:]))
        if self.L is not None:
            wide[self.used] = scipy.linalg.solve_triangular(self.L, v, lower=True, trans="T", check_finite=False)
        else:
            wide[self.used] = self.B @ v
        return wide


def _cholesky(gram: np.ndarray) -> np.ndarray | None:
    """L with L L' = gram, or None if gram is too close to singular."""
    try:
        L = scipy.linalg.cholesky(gram, lower=True)
    except scipy.linalg.LinAlgError:
        return None
    pivots = np.diagonal(L)
    return L if pivots.min() > 1e-5 * pivots.max() else None


def _lanczos(bases: Sequence[Any], K: int) -> tuple[np.ndarray, np.ndarray]:
    """The leading eigenvalues and eigenvectors of W W', with W applied and never formed."""
    from scipy.sparse.linalg import LinearOperator, eigsh

    ends = np.cumsum([0, *(basis.size for basis in bases)]).tolist()
    size = ends[-1]

    def times(v: np.ndarray) -> np.ndarray:
        return np.asarray(sum(basis.times(v[a:b]) for basis, a, b in zip(bases, ends[:-1], ends[1:], strict=True)))

    def gram(v: np.ndarray) -> np.ndarray:
        y = times(v)
        return np.concatenate([basis.transposed_times(y) for basis in bases])

    if size <= LANCZOS:
        values, vectors = scipy.linalg.eigh(gram(np.eye(size)), subset_by_index=[size - K, size - 1])
    else:
        values, vectors = eigsh(
            LinearOperator((size, size), matvec=gram, dtype=np.float64),
            k=K,
            which="LA",
            v0=np.random.default_rng(0).standard_normal(size),  # fixed, so that the optimum repeats
            ncv=min(size - 1, max(LANCZOS, 4 * K)),
            tol=1e-9,
        )
        order = np.argsort(values)
        values, vectors = values[order], vectors[:, order]
    return values[::-1], np.ascontiguousarray((times(vectors) / np.sqrt(values))[:, ::-1])


# The server's step


def polar(Y: np.ndarray) -> np.ndarray:
    """U V' of the thin SVD of Y (J, K): the matrix with orthonormal columns nearest to Y, eq. (9), (16).

    Computed as Y (Y'Y)^(-1/2) where Y'Y is well conditioned (error about 1e-16 times the ratio of its extreme
    eigenvalues, at most 1e-11), otherwise by the SVD. The result is not finite if Y is not.
    """
    gram = Y.T @ Y
    if not np.isfinite(gram).all():
        return np.full_like(Y, np.nan)
    values, V = np.linalg.eigh(gram)
    if values[0] > 1e-5 * values[-1]:
        return np.asarray(Y @ ((V / np.sqrt(values)) @ V.T))
    U, _, Vt = np.linalg.svd(Y, full_matrices=False)
    return np.asarray(U @ Vt)


def server_step(estimates: Sequence[np.ndarray], G: np.ndarray | None, rho: float, center: bool) -> np.ndarray:
    """G of eq. (14): the polar factor of Y = sum_i (I - 11'/J) Mhat_i + rho G, eq. (15), (16).

    estimates : Mhat_i, (J, K) each. G : the current one; None before round 1, eq. (9), (10), discrepancy gcca.7.
    rho : 1 / alpha_G. center : whether to apply the centring matrix.
    """
    Y = np.array(estimates[0])
    for estimate in estimates[1:]:
        Y += estimate
    if center:
        Y -= Y.mean(axis=0)
    if rho > 0 and G is not None:
        Y += rho * G
    return polar(Y)
