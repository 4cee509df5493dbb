"""Kernels over observed entries against the same sums written densely, and their limits."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from fedrepro.problems.completion import bucket_kernels as bucketing
from fedrepro.problems.completion import kernels as observed

LEVELS = np.array([-1.5, 0.25, 2.0, 3.5])


def buckets(counts, others, seed=0):
    """Buckets with the given numbers of entries, the dense values and mask, and the kernel arrays."""
    rng = np.random.default_rng(seed)
    index = [np.sort(rng.choice(others, size=c, replace=False)) for c in counts]
    code = [rng.integers(0, LEVELS.size, size=c) for c in counts]
    M, mask = np.zeros((len(counts), others)), np.zeros((len(counts), others), dtype=bool)
    for t, (j, c) in enumerate(zip(index, code, strict=True)):
        M[t, j], mask[t, j] = LEVELS[c], True
    arrays = (
        np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
        np.concatenate(index).astype(np.uint16),
        np.concatenate(code).astype(np.uint8),
        LEVELS.copy(),
    )
    for array in arrays:
        array.flags.writeable = False
    return M, mask, arrays


# empty buckets, one entry, both sides of SHORT and LANES, more than two blocks; more buckets than one lane block
COUNTS = [0, 1, 2, 15, 16, 17, 63, 64, 65, 80, 81, 150, 0] + [3, 0, 7] * 45


def factors(r, others=160, seed=1):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((len(COUNTS), r)), rng.standard_normal((others, r))


def dense_steps(X, P, M, mask, Q, alpha, delta, scale, tau, N):
    X = X.copy()
    for _ in range(N):
        grad = (mask * (X @ P.T - M)) @ P
        X = scale * (alpha * X + (0 if Q is None else Q) - delta * grad)
        X = np.maximum(np.abs(X) - tau, 0.0) * np.sign(X)
    return X


@pytest.mark.parametrize("r", [1, 2, 5, 8, 13])
@pytest.mark.parametrize("with_q", [False, True])
@pytest.mark.parametrize("tau", [0.0, 0.05])
@pytest.mark.parametrize("N", [0, 1, 3, 10])
def test_both_routes_take_the_dense_steps(r, with_q, tau, N):
    M, mask, arrays = buckets(COUNTS, 160)
    X, P = factors(r)
    Q = np.random.default_rng(2).standard_normal(X.shape) if with_q else None
    L = np.linalg.norm(P.T @ P)
    settings = (0.9 * L, 0.7, 1.0 / (L + 0.3), tau)
    expected = dense_steps(X, P, M, mask, Q, *settings, N)
    q = np.empty((0, 1)) if Q is None else Q
    for kernel in (observed.gram_steps, observed.residual_steps):
        got = X.copy()
        kernel(got, P, *arrays, q, *settings, N)
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12)
    got = X.copy()
    alpha, delta, scale, tau = settings
    observed.steps(got, P, *arrays, N=N, alpha=alpha, delta=delta, scale=scale, tau=tau, Q=Q)
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12)


def test_the_route_is_chosen_by_counting_multiplications():
    for r in range(1, 60):
        for N in range(1, 20):
            gram, residual = (r * r + 3 * r) / 2, 2 * r * N  # an entry
            assert observed.uses_gram(N, r) == (gram <= residual)
    assert observed.uses_gram(10, 13)
    assert not observed.uses_gram(1, 5)


def test_a_bucket_does_not_depend_on_its_neighbours():
    _, _, arrays = buckets(COUNTS, 160)
    X, P = factors(5)
    whole = X.copy()
    observed.steps(whole, P, *arrays, N=10, alpha=300.0, scale=1 / 301.0)
    for a, b in ((0, 3), (3, 70), (70, len(COUNTS))):
        part = X[a:b].copy()
        observed.steps(part, P, arrays[0][a : b + 1], *arrays[1:], N=10, alpha=300.0, scale=1 / 301.0)
        assert part.tobytes() == whole[a:b].tobytes()


@pytest.mark.parametrize("beta", [1e-14, 1e-3, 1.0, 1e6])
def test_an_unobserved_bucket_follows_its_scalar_recurrence(beta):
    """docs/derivations/admm-reduction.md#w-step; 1 - a is as small as rounding for the smallest beta."""
    ell, N = 2.0, 30
    rng = np.random.default_rng(3)
    w, v, y = rng.standard_normal((3, 4, 5))
    got = w.copy()
    arrays = (np.zeros(5, np.int64), np.empty(0, np.uint16), np.empty(0, np.uint8), LEVELS)
    for array in arrays:
        array.flags.writeable = False
    observed.steps(got, np.ones((2, 5)), *arrays, N=N, alpha=ell, scale=1 / (ell + beta), Q=beta * v - y)
    expected = w.copy()
    for _ in range(N):
        expected = (ell * expected + beta * v - y) / (ell + beta)
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-13)


def test_row_solves_are_exact():
    M, mask, arrays = buckets(COUNTS, 160)
    X, P = factors(6)
    Q = np.random.default_rng(4).standard_normal(X.shape)
    for q, delta, mu in ((None, 1.0, 1e-3), (Q, 0.01, 0.4)):
        got = X.copy()
        assert observed.solve_rows(got, P, *arrays, mu=mu, delta=delta, Q=q) == 0
        for t in range(len(COUNTS)):
            A = delta * (P * mask[t][:, None]).T @ P + mu * np.eye(6)
            b = delta * P.T @ (mask[t] * M[t]) + (0 if q is None else q[t])
            np.testing.assert_allclose(got[t], np.linalg.solve(A, b), rtol=1e-9, atol=1e-11)


def test_a_row_that_cannot_be_solved_is_counted_and_left():
    _, _, arrays = buckets([1, 3], 8)
    X = np.ones((2, 3))
    P = np.array([[1.0, 1.0, 1.0]] * 8)
    assert observed.solve_rows(X, P, *arrays, mu=1e-300) == 2
    np.testing.assert_array_equal(X, 1.0)


def test_squared_residuals_and_gram():
    M, mask, arrays = buckets(COUNTS, 160)
    for r in (1, 5, 9):
        X, P = factors(r)
        out = np.empty(len(COUNTS))
        observed.squared_residuals(out, X, P, *arrays)
        np.testing.assert_allclose(out, np.sum((mask * (M - X @ P.T)) ** 2, axis=1), rtol=1e-13, atol=1e-13)
        np.testing.assert_allclose(observed.gram(X), X.T @ X, rtol=1e-13, atol=1e-12)


def test_wide_ids_and_many_values_take_the_same_steps():
    """Four-byte ids and codes are another compilation of the same kernels."""
    _, _, arrays = buckets(COUNTS, 160)
    wide = (arrays[0], arrays[1].astype(np.uint32), arrays[2].astype(np.uint32), arrays[3])
    for array in wide:
        array.flags.writeable = False
    X, P = factors(4)
    first, second = X.copy(), X.copy()
    observed.steps(first, P, *arrays, N=5, alpha=300.0, scale=1 / 300.0)
    observed.steps(second, P, *wide, N=5, alpha=300.0, scale=1 / 300.0)
    np.testing.assert_allclose(first, second, rtol=0, atol=1e-14)


def test_proximal_steps_never_raise_the_local_objective():
    """With L = ||P^T P||_F the steps (66) and (71) are descent steps on f + R."""
    M, mask, arrays = buckets(COUNTS, 160)
    X, P = factors(5)
    L = np.linalg.norm(P.T @ P)
    for lam, l1 in ((0.5, False), (2.0, True)):
        Y, last = X.copy(), np.full(len(COUNTS), np.inf)
        for _ in range(12):
            penalty = lam * np.abs(Y).sum(axis=1) if l1 else 0.5 * lam * (Y**2).sum(axis=1)
            value = 0.5 * np.sum((mask * (M - Y @ P.T)) ** 2, axis=1) + penalty
            assert (value <= last + 1e-9).all()
            last = value
            if l1:
                observed.steps(Y, P, *arrays, N=1, delta=1 / L, tau=lam / L)
            else:
                observed.steps(Y, P, *arrays, N=1, alpha=L, scale=1 / (L + lam))


def test_layout_sorts_buckets_and_finds_pairs_met_twice():
    user, item = np.array([2, 0, 2, 1, 2, 0], np.int32), np.array([5, 1, 0, 3, 2, 0], np.int32)
    code, row_of = np.array([0, 1, 2, 3, 4, 5], np.uint8), np.array([1, -1, 0])  # user 1 is left out
    ptr = np.zeros(3, np.int64)
    bucketing.count_rows(row_of, user, ptr)
    index, codes = np.empty(5, np.uint16), np.empty(5, np.uint8)
    assert bucketing.fill_rows(row_of, user, item, code, ptr, index, codes) == (-1, -1)
    assert ptr.tolist() == [0, 3, 5]
    assert index.tolist() == [0, 2, 5, 0, 1]
    assert codes.tolist() == [2, 4, 0, 5, 1]
    item[4] = 5
    assert bucketing.fill_rows(row_of, user, item, code, ptr, index, codes) == (0, 5)


PROGRAM = """
import hashlib, numpy as np
from fedrepro.problems.completion import kernels as observed
rng = np.random.default_rng(0)
counts = rng.integers(0, 90, size=200)
ptr = np.concatenate(([0], np.cumsum(counts)))
index, code = rng.integers(0, 100, ptr[-1]).astype(np.uint16), rng.integers(0, 5, ptr[-1]).astype(np.uint8)
levels = np.arange(1.0, 6.0)
X, P = rng.random((200, 5)), rng.random((100, 5))
observed.steps(X, P, ptr, index, code, levels, N=10, alpha=90.0, scale=1 / 90.0)
G = observed.gram(X)
print(hashlib.sha256(X.tobytes() + G.tobytes()).hexdigest())
"""


@pytest.mark.slow
def test_the_process_that_compiles_and_those_that_load_the_cache_agree_to_the_bit(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    run = [sys.executable, "-c", textwrap.dedent(PROGRAM)]
    first, second = (
        subprocess.run(run, env=environment, capture_output=True, text=True, check=True).stdout for _ in range(2)
    )
    assert first == second
    assert len(first.strip()) == 64
