"""Small rating data, and the completion problem written out densely, for the tests of paper ``fedmc``."""

from __future__ import annotations

import numpy as np

from fedrepro.datasets.types import Ratings
from fedrepro.problems.completion.problem import Completion


def ratings(users=23, items=17, count=160, seed=0, values=(1.0, 2.0, 3.0, 4.0, 5.0)):
    """Distinct pairs drawn at random, item 0 and user 0 rated once, item ``items - 1`` never."""
    rng = np.random.default_rng(seed)
    pairs = rng.choice((users - 1) * (items - 2), size=count - 2, replace=False)
    user = np.append(1 + pairs // (items - 2), [0, 1]).astype(np.int32)
    item = np.append(1 + pairs % (items - 2), [1, 0]).astype(np.int32)
    order = rng.permutation(count)
    return Ratings(user[order], item[order], rng.choice(np.array(values), size=count), users, items)


def small(p=4, seed=0, data=None, kind=Completion, **parameters):
    """A problem of p clients on ``ratings``."""
    data = ratings(seed=seed) if data is None else data
    client = np.random.default_rng(seed + 1).permutation(np.arange(data.users) % p)
    return kind(data, client, **{"r": 3, "lam": 0.03, "gam": 0.02, **parameters})


def dense(problem, test=False):
    """(M, mask): ratings in the problem's scale at the observed entries, rows x items."""
    buckets = problem.test if test else problem.train
    M, mask = np.zeros((problem.rows, problem.n)), np.zeros((problem.rows, problem.n), dtype=bool)
    rows = np.repeat(np.arange(problem.rows), np.diff(buckets.ptr))
    M[rows, buckets.index] = problem.levels[buckets.code]
    mask[rows, buckets.index] = True
    return M, mask


class Dense:
    """f_i and its gradients, client by client, in plain matrix products. V and W are (n, r) as in the package."""

    def __init__(self, problem):
        self.p = problem.p
        M, mask = dense(problem)
        self.clients = [problem.client(i) for i in range(problem.p)]
        self.M = [M[c] for c in self.clients]
        self.mask = [mask[c] for c in self.clients]

    def residual(self, i, U, W):
        return self.mask[i] * (U @ W.T - self.M[i])

    def f(self, i, U, W):
        return 0.5 * np.sum(self.residual(i, U, W) ** 2)

    def grad_U(self, i, U, W):
        return self.residual(i, U, W) @ W

    def grad_V(self, i, U, W):
        return self.residual(i, U, W).T @ U

    def split(self, U):
        return [U[c].copy() for c in self.clients]


def soft(X, tau):
    """The soft threshold, fedmc (72)."""
    return np.maximum(np.abs(X) - tau, 0.0) * np.sign(X)


def after(states, k):
    """The state after k rounds."""
    for _ in range(k + 1):
        state = next(states)
    return state
