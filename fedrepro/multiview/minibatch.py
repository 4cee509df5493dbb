"""Compiled loops of a linear GCCA node: stochastic gradient steps on the rows of a dense or sparse view, eq. (11).

The last argument ``columns`` of each kernel is any tuple of length K. Its length is part of its type, so the compiler
knows the length of the loops over the K columns (a third of the time on sparse rows).

Source: Shrestha and Fu, eq. (11), Sec. III-C.3; docs/derivations/gcca-steps.md.
"""

from __future__ import annotations

import numba
import numpy as np

# Sums may be reordered (to use vector instructions); the order is fixed once compiled, so results repeat to the bit.
_jit = numba.njit(cache=True, fastmath={"reassoc", "contract", "nsz"})


LANES = 32
"""Minibatches are padded with zeros to a multiple of this, so that vector loops have no remainder."""


@numba.njit(cache=True)
def draw_rows(rows: np.ndarray, chosen: np.ndarray, u: np.ndarray) -> None:
    """Put b = len(u) different rows of 0 .. J-1, drawn uniformly by the uniforms ``u``, into rows[:b] in order.

    ``rows``: (J,) integers and ``chosen``: (J,) booleans, both overwritten. The first b steps of a Fisher-Yates
    shuffle. The drawn rows are visited in ascending order, which uses the cache better and does not change the sum.
    """
    J = rows.size
    for j in range(J):
        rows[j] = j
        chosen[j] = False
    for j in range(u.size):
        other = j + int(u[j] * (J - j))
        rows[j], rows[other] = rows[other], rows[j]
        chosen[rows[j]] = True
    count = 0
    for j in range(J):
        if chosen[j]:
            rows[count] = j
            count += 1


@_jit
def dense_steps(X: np.ndarray, G: np.ndarray, Q: np.ndarray, U: np.ndarray, step: float, columns: tuple) -> None:
    """T = len(U) steps Q <- Q - step X_F'(X_F Q - G_F) in place, F drawn afresh by each row of ``U`` (T, b)."""
    K = len(columns)
    T, b = U.shape
    J, N = X.shape
    rows, chosen = np.empty(J, np.int32), np.empty(J, np.bool_)
    width = -(-b // LANES) * LANES
    XF, R, gradient = np.zeros((N, width)), np.zeros((K, width)), np.empty((N, K))
    for t in range(T):
        draw_rows(rows, chosen, U[t])
        for j in range(b):
            row = rows[j]
            for n in range(N):
                XF[n, j] = X[row, n]
        for k in range(K):
            for j in range(b):
                R[k, j] = -G[rows[j], k]
        for n in range(N):
            x = XF[n]
            for k in range(K):
                q, r = Q[n, k], R[k]
                for j in range(width):
                    r[j] += q * x[j]
        for n in range(N):
            x = XF[n]
            for k in range(K):
                r = R[k]
                total = 0.0
                for j in range(width):
                    total += x[j] * r[j]
                gradient[n, k] = total
        for n in range(N):
            for k in range(K):
                Q[n, k] -= step * gradient[n, k]


@_jit
def _add_gradient(data, indices, indptr, row, G, Q, r, gradient, columns):
    """Add x'(x Q - G_row) of one sparse row x to ``gradient``."""
    K = len(columns)
    for k in range(K):
        r[k] = -G[row, k]
    for p in range(indptr[row], indptr[row + 1]):
        x, n = data[p], indices[p]
        for k in range(K):
            r[k] += x * Q[n, k]
    for p in range(indptr[row], indptr[row + 1]):
        x, n = data[p], indices[p]
        for k in range(K):
            gradient[n, k] += x * r[k]


@_jit
def sparse_steps(
    data: np.ndarray,
    indices: np.ndarray,
    indptr: np.ndarray,
    G: np.ndarray,
    Q: np.ndarray,
    U: np.ndarray,
    step: float,
    columns: tuple,
) -> None:
    """``dense_steps`` for a CSR view."""
    K = len(columns)
    T, b = U.shape
    J, N = indptr.size - 1, Q.shape[0]
    rows, chosen = np.empty(J, np.int32), np.empty(J, np.bool_)
    r, gradient = np.empty(K), np.zeros((N, K))
    for t in range(T):
        draw_rows(rows, chosen, U[t])
        entries = 0
        for j in range(b):
            _add_gradient(data, indices, indptr, rows[j], G, Q, r, gradient, columns)
            entries += indptr[rows[j] + 1] - indptr[rows[j]]
        if entries > N:
            for n in range(N):
                for k in range(K):
                    Q[n, k] -= step * gradient[n, k]
                    gradient[n, k] = 0.0
        else:  # few of many columns were touched: visit those, a second visit finds zero
            for j in range(b):
                for p in range(indptr[rows[j]], indptr[rows[j] + 1]):
                    n = indices[p]
                    for k in range(K):
                        Q[n, k] -= step * gradient[n, k]
                        gradient[n, k] = 0.0


@_jit
def sparse_full_steps(
    data: np.ndarray,
    indices: np.ndarray,
    indptr: np.ndarray,
    G: np.ndarray,
    Q: np.ndarray,
    T: int,
    step: float,
    columns: tuple,
) -> None:
    """T steps Q <- Q - step X'(X Q - G) in place with all rows of a CSR view."""
    K = len(columns)
    J, N = indptr.size - 1, Q.shape[0]
    r, gradient = np.empty(K), np.empty((N, K))
    for _ in range(T):
        gradient[:] = 0.0
        for row in range(J):
            _add_gradient(data, indices, indptr, row, G, Q, r, gradient, columns)
        for n in range(N):
            for k in range(K):
                Q[n, k] -= step * gradient[n, k]


@_jit
def sparse_product(
    data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, Q: np.ndarray, columns: tuple
) -> np.ndarray:
    """X Q for a CSR view X."""
    K = len(columns)
    J = indptr.size - 1
    M, r = np.empty((J, K)), np.empty(K)
    for row in range(J):
        for k in range(K):
            r[k] = 0.0
        for p in range(indptr[row], indptr[row + 1]):
            x, n = data[p], indices[p]
            for k in range(K):
                r[k] += x * Q[n, k]
        for k in range(K):
            M[row, k] = r[k]
    return M
