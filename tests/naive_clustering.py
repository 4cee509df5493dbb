"""The papers' algorithms, transcribed: plain loops over clients, samples as columns, nothing cached.

Everything is in the order of the papers: X (M, N), W (M, K), H (K, N); ``client`` contains the client of each column.
rho and nu are relative to ||X||^2 / N. Slow on purpose; the tests compare the package with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fedrepro.runs.compute.drive import History


def top(A: np.ndarray) -> float:
    """Largest eigenvalue of a symmetric matrix."""
    return float(np.linalg.eigvalsh((A + A.T) / 2).max())


@dataclass
class Naive:
    """One instance of the problem with absolute penalties and the box (docs/derivations/clustering-problem.md)."""

    X: np.ndarray
    client: np.ndarray
    K: int
    rho: float = 1e-8
    nu: float = 1e-10
    lo: float = -np.inf
    own: list[np.ndarray] = field(init=False)

    def __post_init__(self) -> None:
        self.M, self.N = self.X.shape
        self.P = int(self.client.max()) + 1
        self.own = [np.flatnonzero(self.client == p) for p in range(self.P)]
        self.omega = np.array([len(j) / self.N for j in self.own])
        self.unit = float(np.sum(self.X**2)) / self.N
        self.lo = float(self.X.min()) if self.lo == -np.inf else self.lo
        self.hi = float(self.X.max())

    def clip(self, W: np.ndarray) -> np.ndarray:
        """The projection on the box."""
        return np.minimum(np.maximum(W, self.lo), self.hi)

    def F(self, W: np.ndarray, H: np.ndarray) -> float:
        """The objective, term by term."""
        total = np.sum((self.X - W @ H) ** 2) / self.N
        for h in H.T:
            total += self.rho * self.unit / 2 * (h.sum() ** 2 - h @ h) + self.nu * self.unit / 2 * (h @ h)
        return float(total)

    def F_p(self, p: int, W: np.ndarray, Hp: np.ndarray) -> float:
        """Client p's cost."""
        R = 0.0
        for h in Hp.T:
            R += self.rho * self.unit / 2 * (h.sum() ** 2 - h @ h) + self.nu * self.unit / 2 * (h @ h)
        return float(np.sum((self.X[:, self.own[p]] - W @ Hp) ** 2) / len(self.own[p]) + R / self.omega[p])

    def A(self, p: int, W: np.ndarray) -> np.ndarray:
        """The Hessian of F_p in a column of H_p."""
        rho, nu, Np = self.rho * self.unit, self.nu * self.unit, len(self.own[p])
        return 2 / Np * W.T @ W + self.N / Np * (rho * np.ones((self.K, self.K)) + (nu - rho) * np.eye(self.K))

    def B(self, p: int, Hp: np.ndarray) -> np.ndarray:
        """The Hessian of F_p in a row of W."""
        return 2 / len(self.own[p]) * Hp @ Hp.T

    def grad_H(self, p: int, W: np.ndarray, Hp: np.ndarray) -> np.ndarray:
        """Gradient of F_p in H_p."""
        return self.A(p, W) @ Hp - 2 / len(self.own[p]) * W.T @ self.X[:, self.own[p]]

    def grad_W(self, p: int, W: np.ndarray, Hp: np.ndarray) -> np.ndarray:
        """Gradient of F_p in W."""
        return W @ self.B(p, Hp) - 2 / len(self.own[p]) * self.X[:, self.own[p]] @ Hp.T

    def h_steps(self, p: int, W: np.ndarray, Hp: np.ndarray, steps: int, gamma: float = 1.02) -> np.ndarray:
        """Projected gradient steps on H_p."""
        c = gamma / 2 * top(self.A(p, W))
        for _ in range(steps):
            Hp = np.maximum(0.0, Hp - self.grad_H(p, W, Hp) / c)
        return Hp


def fedmgs(
    n: Naive, W: np.ndarray, H: np.ndarray, rounds: int, Q1: int, Q2: int, draws: list[list[int]] | None = None
) -> list[tuple[np.ndarray, np.ndarray]]:
    """fedmf Algorithm 2."""
    W, H = W.copy(), H.copy()
    path = [(W.copy(), H.copy())]
    for s in range(rounds):
        for p in range(n.P) if draws is None else draws[s]:
            H[:, n.own[p]] = n.h_steps(p, W, H[:, n.own[p]], Q1)
        d = 1.002 / 2 * top(2 / n.N * H @ H.T)
        for _ in range(Q2):
            grad = sum(n.omega[p] * n.grad_W(p, W, H[:, n.own[p]]) for p in range(n.P))
            W = n.clip(W - grad / d)
        path.append((W.copy(), H.copy()))
    return path


def fedmavg(
    n: Naive,
    W: np.ndarray,
    H: np.ndarray,
    Q2: list[int],
    Q1: int,
    gamma2: float = 5.0,
    draws: list[list[int]] | None = None,
    pcp: bool = False,
    repeat: bool = False,
    linear: bool = False,
    local: bool = False,
) -> list[tuple[np.ndarray, np.ndarray]]:
    """fedmf Algorithm 1; ``Q2`` of every round, ``draws`` the clients drawn (None for all, weighted by omega)."""
    W, H = W.copy(), H.copy()
    path = [(W.copy(), H.copy())]
    for s in range(1, len(Q2) + 1):
        drawn = list(range(n.P)) if draws is None else draws[s - 1]
        for p in sorted(set(drawn)) if pcp else range(n.P):
            times = drawn.count(p) if pcp and repeat else 1
            H[:, n.own[p]] = n.h_steps(p, W, H[:, n.own[p]], times * Q1)
        L_W = top(2 / n.N * H @ H.T)
        total = np.zeros_like(W)
        for p in drawn:
            Hp = H[:, n.own[p]]
            d = gamma2 * (top(n.B(p, Hp)) if local else L_W) * (s + 1 if linear else 1)
            V = W
            for _ in range(Q2[s - 1]):
                V = V - n.grad_W(p, V, Hp) / d
            total += V * (n.omega[p] if draws is None else 1 / len(drawn))
        W = n.clip(total)
        path.append((W.copy(), H.copy()))
    return path


def fedpalm(n: Naive, W: np.ndarray, H: np.ndarray, rounds: int, Q: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """fedmf Remark 1 with the step sizes of the authors' program."""
    W, H = W.copy(), H.copy()
    path = [(W.copy(), H.copy())]
    for _ in range(rounds):
        total = np.zeros_like(W)
        for p in range(n.P):
            V, Hp = W, H[:, n.own[p]]
            for _ in range(Q // 2):
                Hp = n.h_steps(p, V, Hp, 1)
                V = n.clip(V - n.grad_W(p, V, Hp) / (1.02 / 2 * top(n.B(p, Hp))))
            H[:, n.own[p]] = Hp
            total += n.omega[p] * V
        W = total
        path.append((W.copy(), H.copy()))
    return path


def instance(
    seed: int, M: int = 7, N: int = 40, K: int = 3, P: int = 5, zeros: float = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """X, client, W0, H0: clusters with noise, clients of uneven sizes in random order, a share of zero entries."""
    rng = np.random.default_rng(seed)
    X = np.maximum(rng.random((M, K))[:, rng.integers(K, size=N)] * 3 + 0.4 * rng.standard_normal((M, N)), 0.05)
    X *= rng.random((M, N)) >= zeros
    client = np.concatenate((np.arange(P), rng.choice(P, size=N - P, p=rng.dirichlet(np.ones(P)))))
    return X, rng.permutation(client), rng.random((M, K)), rng.random((K, N))


def compare(history: History, path: list[tuple[np.ndarray, np.ndarray]], n: Naive, rel: float = 1e-10) -> None:
    """Every round of a kept history against a naive path: objective, W and H."""
    assert history.states is not None
    assert len(history.states) == len(path)
    for value, state, (W, H) in zip(history["objective"], history.states, path, strict=True):
        np.testing.assert_allclose(state.W, W, rtol=rel, atol=rel * max(1.0, np.abs(W).max()))
        np.testing.assert_allclose(state.H, H, rtol=rel, atol=rel * max(1.0, np.abs(H).max()))
        np.testing.assert_allclose(value, n.F(W, H) / n.unit, rtol=rel)
