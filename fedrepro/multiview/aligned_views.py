"""A dense or sparse view at its node: products, largest singular values, rank and checks."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from fedrepro.arrays import structure, unmasked
from fedrepro.errors import ParameterError, UserError
from fedrepro.protocols import Work

EPS = float(np.finfo(np.float64).eps)
SMALL = 256
"""A sparse view with a side of at most this size and at most 2^24 entries is decomposed as a dense one."""


class View:
    """X (J, N): a dense float64 array in C order, or a scipy.sparse CSR matrix.

    Arrays that already have this form are not copied, and they are never changed. ``largest`` is lambda_max(X'X),
    computed at its first use unless it is given.
    """

    def __init__(self, X: Any, largest: float | None = None) -> None:
        if scipy.sparse.issparse(X):
            X = scipy.sparse.csr_matrix(X, dtype=np.float64)
            if not X.has_canonical_format:
                X = X.copy()
                X.sum_duplicates()
            self.parts = tuple(read_only(a) for a in (X.data, X.indices, X.indptr))
            self.X: Any = scipy.sparse.csr_matrix(self.parts, shape=X.shape)
        else:
            self.parts = ()
            self.X = read_only(np.ascontiguousarray(X, dtype=np.float64))
        self._largest = largest

    @property
    def sparse(self) -> bool:
        """Whether X is a CSR matrix."""
        return scipy.sparse.issparse(self.X)

    @property
    def J(self) -> int:
        """Rows."""
        return int(self.X.shape[0])

    @property
    def N(self) -> int:
        """Columns."""
        return int(self.X.shape[1])

    @property
    def largest(self) -> float:
        """lambda_max(X'X)."""
        if self._largest is None:
            self._largest = float(self.top(1)[0])
        return self._largest

    def product(self, Q: np.ndarray) -> np.ndarray:
        """X Q for Q (N, K): a new (J, K) array."""
        if not self.sparse:
            return np.asarray(self.X @ Q)
        from fedrepro.multiview.minibatch import sparse_product

        data, indices, indptr = self.parts
        return np.asarray(sparse_product(data, indices, indptr, np.ascontiguousarray(Q), (0,) * Q.shape[1]))

    def transposed_product(self, R: np.ndarray) -> np.ndarray:
        """X'R for R (J, K): (N, K)."""
        return np.asarray(self.X.T @ R)

    def top(self, count: int) -> np.ndarray:
        """The ``count`` largest eigenvalues of X'X, largest first (fewer if X has fewer columns or rows)."""
        if self._decomposed_densely(count):
            return np.square(scipy.linalg.svdvals(self._dense())[:count])
        return np.sort(self._eigsh(count, vectors=False))[::-1].clip(min=0.0)

    def left_svd(self, m: int) -> tuple[np.ndarray, np.ndarray]:
        """A (J, m) and s (m,) of the rank-m truncated SVD X ~ A diag(s) B'; B = X'A diag(1/s).

        Raises ParameterError if m exceeds the rank of X.
        """
        if self._decomposed_densely(m):
            A, s, _ = scipy.linalg.svd(self._dense(), full_matrices=False)
            A, s = A[:, :m], s[:m]
        else:
            values, vectors = self._eigsh(m, vectors=True)
            order = np.argsort(values)[::-1]
            s, vectors = np.sqrt(values[order].clip(min=0.0)), vectors[:, order]
            A = vectors if self._wide else np.asarray(self.X @ vectors) / np.where(s > 0, s, 1.0)
        if s.size < m or s[-1] <= EPS * max(self.X.shape) * s[0]:
            raise ParameterError("m", f"must be at most the rank of every view, not {m}")
        return np.ascontiguousarray(A), s

    @property
    def _wide(self) -> bool:
        return self.J < self.N

    def _decomposed_densely(self, count: int) -> bool:
        side = min(self.X.shape)
        return not self.sparse or side <= count + 1 or (side <= SMALL and self.J * self.N <= 2**24)

    def _dense(self) -> np.ndarray:
        return np.asarray(self.X.toarray() if self.sparse else self.X)

    def _eigsh(self, count: int, vectors: bool) -> Any:
        """The ``count`` largest eigenvalues of the smaller of X'X and XX'; from a fixed start."""
        from scipy.sparse.linalg import LinearOperator, eigsh

        size = min(self.X.shape)
        outer, inner = (self.X, self.X.T) if self._wide else (self.X.T, self.X)
        operator = LinearOperator((size, size), matvec=lambda v: outer @ (inner @ v), dtype=np.float64)
        start = np.random.default_rng(0).standard_normal(size)
        return eigsh(operator, k=count, which="LA", v0=start, return_eigenvectors=vectors)

    def check_rank(self, name: str, K: int) -> None:
        """Raise ParameterError unless the rank of X is at least K; sets ``largest``."""
        values = self.top(K)
        self._largest = float(values[0])
        share = EPS * max(self.X.shape)  # of a singular value to the largest, as in numpy's matrix_rank
        least = share**2 if self._decomposed_densely(K) else share  # Lanczos: good to eps times the largest eigenvalue
        rank = int((values > least * values[0]).sum())
        if rank < K:
            raise ParameterError("K", f"must be at most the rank of every view, not {K}: {name} has rank {rank}")


def decomposing(J: float, N: float, density: float | None, count: int) -> Work:
    """The work of the ``count`` leading singular vectors of a view: an SVD, or Lanczos if it is sparse."""
    if density is None or min(J, N) <= max(SMALL, count + 1):
        return Work(flops=14.0 * J * N * min(J, N), calls=100.0)
    count_of_products, side = 9.0 * max(2 * count + 1, 20), min(J, N)
    product = Work(singles=2.0 * J * N * density + 4.0 * J, flops=4.0 * side * max(2 * count + 1, 20), calls=30.0)
    return count_of_products * product


def leading(W: np.ndarray, K: int) -> tuple[np.ndarray, np.ndarray]:
    """The K largest eigenvalues of W W', largest first, and their eigenvectors (J, K), from the smaller side of W."""
    J, columns = W.shape
    if columns >= J:
        values, vectors = scipy.linalg.eigh(W @ W.T, subset_by_index=[J - K, J - 1])
        return values[::-1], np.ascontiguousarray(vectors[:, ::-1])
    values, vectors = scipy.linalg.eigh(W.T @ W, subset_by_index=[columns - K, columns - 1])
    return values[::-1], np.ascontiguousarray((W @ (vectors / np.sqrt(values)))[:, ::-1])


def read_only(array: np.ndarray) -> np.ndarray:
    """A read-only view of a plain array."""
    array = np.asarray(array).view()
    array.flags.writeable = False
    return array


def check_views(views: Any) -> list[Any]:
    """The views as a list of matrices of finite numbers with the same rows; raises UserError if they are not."""
    for i, X in enumerate(views, start=1):
        unmasked(**{f"view {i}": X})
        structure(f"view {i}", X)
    views = [X if scipy.sparse.issparse(X) else np.asarray(X) for X in views]
    if not views:
        raise UserError("views: there must be at least one")
    for i, X in enumerate(views):
        if X.ndim != 2 or 0 in X.shape:
            raise UserError(f"{_name(views, i)}: must be a matrix with one row per sample, not of shape {X.shape}")
        if X.dtype.kind not in "fiub":
            raise UserError(f"{_name(views, i)}: must contain real numbers, not {X.dtype}")
    rows = [X.shape[0] for X in views]
    if len(set(rows)) > 1:
        raise UserError(
            "views: every view must have the same samples as its rows, in the same order, but they have "
            f"{', '.join(map(str, rows[:-1]))} and {rows[-1]} rows"
        )
    for i, X in enumerate(views):
        _check_finite(_name(views, i), X)
    return [scipy.sparse.csr_matrix(X) if scipy.sparse.issparse(X) else X for X in views]


def check_columns(views: list[Any]) -> None:
    """Raise UserError if a view is zero or has a constant column, which correlates with nothing."""
    for i, X in enumerate(views):
        if not np.any(X.data if scipy.sparse.issparse(X) else X):
            raise UserError(f"{_name(views, i)}: is zero everywhere, so there is nothing to correlate; leave it out")
        columns = constant_columns(X)
        if columns.size:
            others = f", as do {columns.size - 1} others" if columns.size > 1 else ""
            raise UserError(
                f"{_name(views, i)}: column {columns[0]} (counted from 0) has the same value in every row{others}; "
                "a constant column carries no information; leave it out"
            )


def _name(views: list[Any], i: int) -> str:
    return f"view {i + 1} of {len(views)}"


def _check_finite(name: str, X: Any) -> None:
    if np.isfinite(X.data if scipy.sparse.issparse(X) else X).all():
        return
    if scipy.sparse.issparse(X):
        X = X.tocoo()
        first = int(np.flatnonzero(~np.isfinite(X.data))[0])
        row, column = int(X.row[first]), int(X.col[first])
    else:
        row, column = (int(v) for v in np.argwhere(~np.isfinite(X))[0])
    raise UserError(f"{name}: row {row}, column {column} (counted from 0) is not a finite number")


def constant_columns(X: Any) -> np.ndarray:
    """Columns with the same value in all (two or more) rows, except for the empty columns of a sparse matrix."""
    if X.shape[0] < 2:
        return np.empty(0, dtype=np.intp)
    if not scipy.sparse.issparse(X):
        return np.flatnonzero(X.max(axis=0) == X.min(axis=0))
    csc = scipy.sparse.csc_matrix(X)
    full = np.flatnonzero(np.diff(csc.indptr) == X.shape[0])
    return np.array([n for n in full if np.ptp(csc.data[csc.indptr[n] : csc.indptr[n + 1]]) == 0], dtype=np.intp)
