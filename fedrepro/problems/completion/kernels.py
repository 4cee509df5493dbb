"""Kernels over the observed entries of a low-rank model; they read ratings and form no dense matrix.

A *bucket* contains the observed entries of one row x (r,) of a factor: the rows of the other factor P (k, r) it meets
and the observed values. Buckets are stored one after the other: bucket t is ``index[ptr[t]:ptr[t + 1]]`` with values
``levels[code[...]]``, so that a rating takes one byte (four if there are more than 256 values), and a change of the
rating scale changes only ``levels``. With

    G_t = sum_e P[index_e] P[index_e]^T   (r, r),      b_t = sum_e value_e P[index_e]   (r,),

the gradient of 1/2 sum_e (value_e - <x, P[index_e]>)^2 is G_t x - b_t. Buckets by user (P = V or W_i) serve the U
steps, buckets by item (P = U_i) the W steps.

The number of multiplications decides between two equivalent computations. Forming G_t and b_t costs (r^2 + 3r)/2 per
entry, once; after that a step costs r^2 per bucket and reads no rating. Evaluating the residual costs 2r per entry and
step. So N steps use the Gram form unless 4N < r + 3 (:func:`uses_gram`).

All kernels release the interpreter lock and process every bucket separately, in an order that depends only on the
bucket. The results are the same bits for any distribution of the buckets over threads.

Source: fedmc sections 4.1 and 5.2; docs/derivations/admm-reduction.md.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

LANES = 64
"""Buckets (or entries) processed together: a constant loop that is long enough for the compiler to vectorize it."""

SHORT = 16
"""Up to so many entries the Gram matrix is summed entry by entry, beyond in blocks of LANES."""

_FUSED = {"contract"}
_ANY_ORDER = {"contract", "reassoc", "nsz"}  # lets a sum become a vector sum

in_order = njit(nogil=True, cache=True, fastmath=_FUSED)
any_order = njit(nogil=True, cache=True, fastmath=_ANY_ORDER)
# Helpers are inlined: a separate function would come from another compilation in the process that compiles than in
# processes that load the cache, and could round differently there.
in_order_part = njit(nogil=True, cache=True, fastmath=_FUSED, forceinline=True)
any_order_part = njit(nogil=True, cache=True, fastmath=_ANY_ORDER, forceinline=True)


def uses_gram(N: int, r: int) -> bool:
    """Whether N steps at rank r cost fewer multiplications through G_t than through the residual (see above)."""
    return r + 3 <= 4 * N


@any_order_part
def _add_block(packed, block, r):
    """Add the products of the rows of ``block`` (r + 1, LANES), of which row r contains the values, to ``packed``."""
    k = 0
    for a in range(r + 1):
        for b in range(min(a + 1, r)):
            s = 0.0
            for q in range(LANES):
                s += block[a, q] * block[b, q]
            packed[k] += s
            k += 1


@in_order_part
def _sum_bucket(packed, block, P, index, code, levels, lo, hi):
    """packed = the lower triangle of G by rows, then b, over the entries lo .. hi-1: r(r+1)/2 + r numbers."""
    r = P.shape[1]
    packed[:] = 0.0
    e = lo
    while hi - e > SHORT:
        count = min(LANES, hi - e)
        for q in range(count):
            j = index[e + q]
            for a in range(r):
                block[a, q] = P[j, a]
            block[r, q] = levels[code[e + q]]
        for a in range(r + 1):
            for q in range(count, LANES):
                block[a, q] = 0.0
        _add_block(packed, block, r)
        e += count
    for f in range(e, hi):
        j = index[f]
        k = 0
        for a in range(r):
            w = P[j, a]
            for b in range(a + 1):
                packed[k] += w * P[j, b]
                k += 1
        x = levels[code[f]]
        for b in range(r):
            packed[k] += x * P[j, b]
            k += 1


@in_order_part
def _lane_steps(x, g, A, q, alpha, delta, scale, tau, N):
    """N steps on LANES buckets side by side; arrays (r, LANES), A (r(r+1)/2 + r, LANES)."""
    r = x.shape[0]
    tail = r * (r + 1) // 2
    for _ in range(N):
        for a in range(r):
            for s in range(LANES):
                g[a, s] = -A[tail + a, s]
        k = 0
        for a in range(r):
            for b in range(a):
                for s in range(LANES):
                    g[a, s] += A[k, s] * x[b, s]
                for s in range(LANES):
                    g[b, s] += A[k, s] * x[a, s]
                k += 1
            for s in range(LANES):
                g[a, s] += A[k, s] * x[a, s]
            k += 1
        for a in range(r):
            for s in range(LANES):
                x[a, s] = scale * (alpha * x[a, s] + q[a, s] - delta * g[a, s])
        if tau > 0.0:
            for a in range(r):
                for s in range(LANES):
                    v = x[a, s]
                    x[a, s] = math.copysign(max(abs(v) - tau, 0.0), v)


@in_order_part
def _unobserved(X, t, Q, alpha, scale, tau, N):
    """The same N steps for a bucket without entries, where every coordinate is a separate scalar recurrence.

    Without a threshold x_N = a^N x + scale q (1 + a + ... + a^(N-1)) with a = scale alpha; the geometric sum is added
    up, not divided out, because 1 - a may be as small as rounding.
    """
    a = scale * alpha
    power, total = 1.0, 0.0
    for _ in range(N):
        total += power
        power *= a
    for b in range(X.shape[1]):
        q = Q[t, b] if Q.shape[0] > 0 else 0.0
        if tau == 0.0:
            X[t, b] = power * X[t, b] + scale * q * total
        else:
            v = X[t, b]
            for _ in range(N):
                v = scale * (alpha * v + q)
                v = math.copysign(max(abs(v) - tau, 0.0), v)
            X[t, b] = v


@in_order
def gram_steps(X, P, ptr, index, code, levels, Q, alpha, delta, scale, tau, N):
    """The steps of :func:`steps` through G_t and b_t."""
    r = X.shape[1]
    packed = np.empty(r * (r + 1) // 2 + r)
    block = np.empty((r + 1, LANES))
    A = np.zeros((packed.size, LANES))
    x = np.zeros((r, LANES))
    q = np.zeros((r, LANES))
    g = np.empty((r, LANES))
    member = np.empty(LANES, np.int64)
    filled = 0
    for t in range(X.shape[0]):
        if ptr[t] == ptr[t + 1]:
            _unobserved(X, t, Q, alpha, scale, tau, N)
        else:
            _sum_bucket(packed, block, P, index, code, levels, ptr[t], ptr[t + 1])
            for k in range(packed.size):
                A[k, filled] = packed[k]
            for a in range(r):
                x[a, filled] = X[t, a]
                if Q.shape[0] > 0:
                    q[a, filled] = Q[t, a]
            member[filled] = t
            filled += 1
        if filled == LANES or (filled > 0 and t == X.shape[0] - 1):
            _lane_steps(x, g, A, q, alpha, delta, scale, tau, N)
            for s in range(filled):
                for a in range(r):
                    X[member[s], a] = x[a, s]
            filled = 0


@in_order
def residual_steps(X, P, ptr, index, code, levels, Q, alpha, delta, scale, tau, N):
    """The steps of :func:`steps` with the residual evaluated in every step."""
    r = X.shape[1]
    g = np.empty(r)
    for t in range(X.shape[0]):
        lo, hi = ptr[t], ptr[t + 1]
        if lo == hi:
            _unobserved(X, t, Q, alpha, scale, tau, N)
            continue
        for _ in range(N):
            g[:] = 0.0
            for e in range(lo, hi):
                j = index[e]
                res = -levels[code[e]]
                for a in range(r):
                    res += X[t, a] * P[j, a]
                for a in range(r):
                    g[a] += res * P[j, a]
            for a in range(r):
                q = Q[t, a] if Q.shape[0] > 0 else 0.0
                v = scale * (alpha * X[t, a] + q - delta * g[a])
                if tau > 0.0:
                    v = math.copysign(max(abs(v) - tau, 0.0), v)
                X[t, a] = v


_NO_Q = np.empty((0, 1))


def steps(X, P, ptr, index, code, levels, *, N, alpha=1.0, delta=1.0, scale=1.0, tau=0.0, Q=None):
    """Take N first-order steps on every row of X, in place: the update of all methods on the completion problem.

        x_t <- soft( scale * (alpha x_t + q_t - delta (G_t x_t - b_t)), tau )

    X : (k, r), one row per bucket; P : (l, r) the other factor; ptr : (k + 1,) int64; index, code : the entries;
    levels : (values,) float64; Q : (k, r) or None for 0; tau >= 0 the soft threshold; N >= 0 steps.
    """
    kernel = gram_steps if uses_gram(N, X.shape[1]) else residual_steps
    q = _NO_Q if Q is None else Q
    kernel(X, P, ptr, index, code, levels, q, float(alpha), float(delta), float(scale), float(tau), N)


@in_order_part
def _cholesky_solve(C, y, r):
    """Solve C x = y for symmetric C (lower triangle given) in place; False where a pivot is not positive."""
    for a in range(r):
        for b in range(a + 1):
            s = C[a, b]
            for k in range(b):
                s -= C[a, k] * C[b, k]
            if a > b:
                C[a, b] = s / C[b, b]
            elif s > 0.0:
                C[a, a] = math.sqrt(s)
            else:
                return False
        s = y[a]
        for k in range(a):
            s -= C[a, k] * y[k]
        y[a] = s / C[a, a]
    for a in range(r - 1, -1, -1):
        s = y[a]
        for k in range(a + 1, r):
            s -= C[k, a] * y[k]
        y[a] = s / C[a, a]
    return True


@in_order
def _solve_rows(X, P, ptr, index, code, levels, Q, delta, mu):
    r = X.shape[1]
    packed = np.empty(r * (r + 1) // 2 + r)
    block = np.empty((r + 1, LANES))
    C = np.empty((r, r))
    y = np.empty(r)
    failed = 0
    for t in range(X.shape[0]):
        if ptr[t] == ptr[t + 1]:
            for a in range(r):
                X[t, a] = Q[t, a] / mu if Q.shape[0] > 0 else 0.0
            continue
        _sum_bucket(packed, block, P, index, code, levels, ptr[t], ptr[t + 1])
        k = 0
        for a in range(r):
            for b in range(a + 1):
                C[a, b] = delta * packed[k]
                k += 1
            C[a, a] += mu
        for a in range(r):
            y[a] = delta * packed[k] + (Q[t, a] if Q.shape[0] > 0 else 0.0)
            k += 1
        if _cholesky_solve(C, y, r):
            for a in range(r):
                X[t, a] = y[a]
        else:
            failed += 1
    return failed


def solve_rows(X, P, ptr, index, code, levels, *, mu, delta=1.0, Q=None):
    """Replace every row of X by the solution of (delta G_t + mu I) x = delta b_t + q_t; shapes as in :func:`steps`.

    mu > 0. Returns the number of rows whose matrix is not positive definite in floating point; they are unchanged.
    """
    return int(_solve_rows(X, P, ptr, index, code, levels, _NO_Q if Q is None else Q, float(delta), float(mu)))


@any_order
def squared_residuals(out, X, P, ptr, index, code, levels):
    """out[t] = sum over bucket t of (value - <x_t, P[index]>)^2, with X (k, r), P (l, r), out (k,)."""
    r = X.shape[1]
    for t in range(X.shape[0]):
        total = 0.0
        for e in range(ptr[t], ptr[t + 1]):
            j = index[e]
            res = -levels[code[e]]
            for a in range(r):
                res += X[t, a] * P[j, a]
            total += res * res
        out[t] = total


@any_order
def gram(X):
    """X^T X (r, r), summed over the rows of X (k, r) in a fixed order."""
    k, r = X.shape
    packed = np.zeros(r * (r + 1) // 2 + r)
    block = np.zeros((r + 1, LANES))
    for start in range(0, k, LANES):
        count = min(LANES, k - start)
        for a in range(r):
            for q in range(count):
                block[a, q] = X[start + q, a]
            for q in range(count, LANES):
                block[a, q] = 0.0
        _add_block(packed, block, r)
    out = np.empty((r, r))
    c = 0
    for a in range(r):
        for b in range(a + 1):
            out[a, b] = packed[c]
            out[b, a] = packed[c]
            c += 1
    return out
