"""Linear nodes of federated GCCA, their initial points, and the code shared by CuteMaxVar and AltMaxVar.

Source: Shrestha and Fu, eq. (3a), (11), Sec. III-C.1 and III-C.3; step size of Sec. V-A.4;
docs/derivations/gcca-steps.md, docs/derivations/initial-points.md#gcca.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from fedrepro.errors import ParameterError, UserError
from fedrepro.ledger import Ledger
from fedrepro.multiview import federated
from fedrepro.multiview.aligned_views import View
from fedrepro.parameters import OneOf
from fedrepro.problems.gcca.problem import GCCA, Factors, RandomStart, multiplying
from fedrepro.problems.gcca.truncated_views import mvlsa, truncating
from fedrepro.protocols import Cost, Work
from fedrepro.seeds import Rng, streams

STARTS = OneOf("warm", "randn", "randn-raw")
AFFINE = 512
"""For dense views of at most this many columns, one affine map computes all T full-gradient steps of a round."""


class LinearNode:
    """A node with a view X (J, N) and Q (N, K), M = X Q: T gradient steps on 1/2 ||X Q - G||_F^2 per round, eq. (11).

    b : rows per minibatch, drawn from ``rng`` without replacement in every step; None for the full gradient.
    step : alpha in units of 1 / lambda_max(X'X). unbiased : the factor J / b that makes the stochastic gradient
    unbiased (Fact 3, discrepancy gcca.9).
    """

    def __init__(
        self,
        view: View,
        Q: np.ndarray,
        rng: Rng,
        *,
        T: int,
        b: int | None,
        step: float,
        unbiased: bool,
    ) -> None:
        self.view = view
        self._Q = np.array(Q, dtype=np.float64, order="C")
        self._rng = rng
        self.T, self.b = T, b
        self.alpha = step / view.largest  # Sec. V-A.4
        self._batch_alpha = self.alpha * (view.J / b if b is not None and unbiased else 1.0)
        self._columns = (0,) * self._Q.shape[1]
        self._map: tuple[np.ndarray, np.ndarray] | None = None
        if b is None and collapses(view.sparse, view.N):
            self._map = affine_steps(view.X.T @ view.X, self.alpha, T)

    def represent(self) -> np.ndarray:
        """M = X Q."""
        return self.view.product(self._Q)

    def parameters(self) -> np.ndarray:
        """Q; later updates do not change the array."""
        return self._Q

    def update(self, G: np.ndarray) -> None:
        """T steps Q <- Q - alpha (J/b) X_F'(X_F Q - G_F), or with all rows."""
        from fedrepro.multiview import minibatch as kernels

        view = self.view
        if self._map is not None:
            A, B = self._map
            self._Q = A @ self._Q + B @ (view.X.T @ G)
            return
        Q = self._Q.copy()
        if self.b is not None:
            U = self._rng.random((self.T, self.b))
            if view.sparse:
                data, indices, indptr = view.parts
                kernels.sparse_steps(data, indices, indptr, G, Q, U, self._batch_alpha, self._columns)
            else:
                kernels.dense_steps(view.X, G, Q, U, self._batch_alpha, self._columns)
        elif view.sparse:
            data, indices, indptr = view.parts
            kernels.sparse_full_steps(data, indices, indptr, G, Q, self.T, self.alpha, self._columns)
        else:
            for _ in range(self.T):
                Q -= self.alpha * (view.X.T @ (view.X @ Q - G))
        self._Q = Q


def collapses(sparse: bool, N: int) -> bool:
    """Whether T full-gradient steps on a view of N columns are computed by one map."""
    return not sparse and N <= AFFINE


def affine_steps(gram: np.ndarray, alpha: float, T: int) -> tuple[np.ndarray, np.ndarray]:
    """A, B such that T steps Q <- Q - alpha (gram Q - X'G) end at A Q + B X'G.

    With E = I - alpha gram: A = E^T, B = alpha (I + E + ... + E^(T-1)).
    """
    E = np.eye(len(gram)) - alpha * gram
    A, B = np.eye(len(gram)), np.zeros_like(gram)
    for _ in range(T):
        B = alpha * np.eye(len(gram)) + E @ B
        A = E @ A
    return A, B


def rounds(
    method: Any, sending: federated.Sending, problem: GCCA, rng: Rng, ledger: Ledger | None, init: Any
) -> Iterator[federated.State]:
    """Run CuteMaxVar or AltMaxVar, given by their parameters ``method``, on a problem; see ``federated_rounds``."""
    federated.batch_within(method.b, problem.J)
    ledger = Ledger() if ledger is None else ledger
    drawn = streams(rng)
    Q, G = starting_point(problem, method, drawn.other, ledger, init)

    def node(view: View, Q_i: np.ndarray, stream: Rng) -> LinearNode:
        return LinearNode(view, Q_i, stream, T=method.T, b=method.b, step=method.step, unbiased=method.unbiased)

    nodes = ledger.clock.each(node, problem.views, Q, drawn.minibatch.spawn(problem.I))
    return federated.federated_rounds(
        nodes, sending, rng=drawn.compressor, ledger=ledger, G=G, rho=method.rho, center=method.center
    )


def starting_point(
    problem: GCCA, method: Any, rng: Rng, ledger: Ledger, init: Any
) -> tuple[list[np.ndarray], np.ndarray | None]:
    """Q_i^(0) and G^(0) (None: the polar factor of sum_i X_i Q_i, eq. (9)), Sec. III-C.1.

    ``init`` : explicit ``Factors``, which override ``method.start``, or ``RandomStart``.
    """
    K = problem.K
    if isinstance(init, Factors):
        return _explicit(problem, init)
    if init is not None and not isinstance(init, RandomStart):
        raise UserError(
            f"init: must be Factors or RandomStart (fedrepro.problems.gcca.problem), not {type(init).__name__}"
        )
    if method.start == "warm":
        ledger.up(problem.J * method.m, kind="A", clients=problem.I, setup=True)  # one round of O(J m), Sec. III-C.1
        G, Q = mvlsa(problem, method.m, clock=ledger.clock)
        return Q, G
    draws = init if init is not None else RandomStart(int(rng.integers(2**62)))
    deviation = 1.0 / np.sqrt(problem.J) if method.randn_std is None else method.randn_std
    Q = [deviation * draws.Q(i, view.N, K) for i, view in enumerate(problem.views)]
    return Q, draws.G(problem.J, K) if method.start == "randn-raw" else None


def _explicit(problem: GCCA, init: Factors) -> tuple[list[np.ndarray], np.ndarray | None]:
    Q = [np.asarray(Q_i, dtype=np.float64) for Q_i in init.Q]
    G = None if init.G is None else np.asarray(init.G, dtype=np.float64)
    expected = [(N, problem.K) for N in problem.N]
    if [Q_i.shape for Q_i in Q] != expected:
        raise UserError(f"init: Q must have shapes {expected}, not {[Q_i.shape for Q_i in Q]}")
    if G is not None and G.shape != (problem.J, problem.K):
        raise UserError(f"init: G must have shape {(problem.J, problem.K)}, not {G.shape}")
    return Q, G


def collapsed(method: Any, facts: Mapping[str, Any]) -> bool:
    """Whether one map computes the steps of all nodes, given the columns N of the views and a density if sparse."""
    N = facts.get("N")
    widest = max(N) if isinstance(N, Sequence) else N
    return method.b is None and widest is not None and collapses("density" in facts, widest)


def check_shape(method: Any, J: int | None, N: int | None, K: int | None) -> None:
    """Raise ParameterError if parameters cannot work for views (J, N) and K."""
    if J is not None:
        federated.batch_within(method.b, J)
    if method.start != "warm":
        return
    if K is not None and method.m < K:
        raise ParameterError("m", f"must be at least K = {K} for a warm start, not {method.m}")
    if N is not None and method.m > N:
        raise ParameterError("m", f"must be at most the number of columns of a view, {N}, not {method.m}")


def cost(params: Mapping[str, Any], facts: Mapping[str, Any]) -> Cost:
    """The cost of CuteMaxVar and AltMaxVar: the steps of ``LinearNode`` and the messages."""
    J, N, K, views, T, b = facts["J"], facts["N"], facts["K"], facts["I"], params["T"], params["b"]
    density = facts.get("density")
    start = views * (multiplying(facts) + Work(calls=300.0))
    if b is not None:  # rows are drawn and visited one by one
        own = Work(singles=T * (b * N * (density or 0.5) * K * 2.0 + 2.0 * J + 4.0 * b), calls=20.0)
        own += Work(singles=T * K * min(N, b * N * (density or 1.0)))
    elif density is not None:
        own = Work(singles=T * K * (J * N * density * 2.0 + N))
    elif collapses(False, N):
        start += Work(flops=views * (4.0 * T * N**3 + 2.0 * J * N * N))
        own = Work(flops=2.0 * N * K * (J + 2.0 * N))
    else:
        own = Work(flops=4.0 * T * J * N * K, bytes=16.0 * T * J * N)
    warm = params["start"] == "warm"
    memory = 8.0 * (J * K * (7.0 * views + 10.0) + 4.0 * N * K * views)
    memory += 20.0 * J * params["m"] * views if warm else 0.0
    numba = ("numba",) if b is not None or density is not None or federated.compresses(params) else ()
    round_ = views * (own + multiplying(facts)) + federated.exchanging(params, facts)
    return Cost(start, round_, memory, numba, truncating(facts, params["m"]) if warm else Work())
