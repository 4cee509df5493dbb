r"""FedPALM: the naive federated method that fedmf Remark 1 compares FedMAvg with (FedCPALM in the paper ``fedc``).

Problem: :math:`\min \sum_p \omega_p F_p(W, H_p)` over :math:`W_{min} \le W \le W_{max}, H \ge 0`
(``fedrepro.problems.clustering``). In a round every client runs Q/2 proximal alternating linearized steps on its own
cost, H_p and W_p in turn, and the server averages:

    every client receives W and sets W_p = W                                             M K numbers each, down
    Q/2 times:  H_p <- max(0, H_p - grad_H F_p(W_p, H_p) / c_p)                          fedmf (15)
                W_p <- clip(W_p - grad_W F_p(W_p, H_p) / d_p)                            fedmf (16)
    every client sends W_p                                                               M K numbers each, up
    the server:  W <- sum_p omega_p W_p                                                  inside the box already

with c_p = gamma/2 lambda_max(A_p) and d_p = gamma/2 lambda_max(B_p), recomputed at every inner step for the current
local iterate, as in the authors' program (the paper writes one d for all clients, discrepancy fedmf.25).

Source: fedmf Remark 1; fedc Remark 1; docs/derivations/clustering-problem.md.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from fedrepro.errors import ParameterError
from fedrepro.ledger import Ledger
from fedrepro.parameters import Number, Whole
from fedrepro.problems.clustering.descent import descend_H, finite, h_step, lambda_max, state_bytes
from fedrepro.problems.clustering.problem import Clustering, passing
from fedrepro.problems.clustering.sample_rows import take
from fedrepro.problems.clustering.state import State
from fedrepro.protocols import Cost, Method, Work
from fedrepro.registry import add_method
from fedrepro.seeds import Rng


@dataclass(frozen=True)
class FedPALM(Method):
    """Parameters of FedPALM.

    Q : local steps per round, H and W steps together: even, at least 2. gamma : safety factor of both steps.
    stop : the run ends after a round with ||W_new - W|| < stop ||W|| (Frobenius norms); None for no such end. The
    default is the program's (discrepancy fedmf.31).

    >>> import numpy as np
    >>> from fedrepro import Clustering, FedPALM, run
    >>> labels = np.arange(60) % 3
    >>> X = np.eye(5, 3)[:, labels] + 0.1 * np.random.default_rng(0).random((5, 60))
    >>> problem = Clustering(X, np.arange(60) % 4, K=3, labels=labels)
    >>> history = run(FedPALM(Q=2), problem, rounds=100)
    >>> bool(history["objective"][-1] < history["objective"][0])
    True
    >>> history.state.W.shape, history.state.H.shape
    ((5, 3), (3, 60))
    """

    Q: Annotated[int, Whole(2)] = 2
    gamma: Annotated[float, Number(least=1.0)] = 1.02
    stop: Annotated[float | None, Number(least=0.0)] = 1e-4

    meets: ClassVar[bool] = False  # other runs would evict a client's samples from the cache

    def __post_init__(self) -> None:
        """Raise ParameterError where a value cannot work."""
        super().__post_init__()
        if self.Q % 2:
            raise ParameterError("Q", f"must be even (Q/2 steps on H, Q/2 on W), not {self.Q}")

    @staticmethod
    def cost(params: Mapping[str, Any], facts: Mapping[str, Any]) -> Cost:
        """Q/2 times two products with each client's samples, which stay in the cache, and the steps."""
        P, N, M, K, times = facts["P"], facts["N"], facts["M"], facts["K"], params["Q"] / 2
        products = dataclasses.replace(passing(facts, N, 2) * times, bytes=8.0 * N * M)
        steps = Work(flops=times * 2.0 * (N * K * K + 2.0 * P * M * K * K), calls=60.0 * P * times + 30.0 * P)
        return Cost(Work(calls=100.0), products + steps + Work(singles=2.0 * P * M * K * times), state_bytes(facts))

    def rounds(
        self, problem: Clustering, rng: Rng, *, ledger: Ledger | None = None, init: Any = None, clients: Any = None
    ) -> Iterator[State]:
        """Yield the state at the initial point and after every round; one object, updated in place.

        init : (W0, H0), (M, K) and (K, N). All clients take part in every round: ``clients`` must be None.
        """
        if clients is not None:
            raise ParameterError("clients", "every client takes part in every round: there is no draw to replay")
        ledger = Ledger() if ledger is None else ledger
        state = problem.start(init, rng)
        yield state
        while True:
            ledger.down(problem.M * problem.K, kind="W", clients=problem.P)
            change = self._round(problem, state)
            ledger.up(problem.M * problem.K, kind="W_p", clients=problem.P)
            yield state
            if not finite(state) or (self.stop is not None and change < self.stop):
                return

    def _round(self, problem: Clustering, state: State) -> float:
        """All clients' local steps and the average; returns ||W_new - W|| / ||W||."""
        average = np.zeros_like(state.W)
        state.XH = np.zeros_like(state.W)
        for p in range(problem.P):
            part = problem.client(p)
            V, XH = self._client(problem, take(problem.X, part), state.Hs[part], state.W, state.rho)
            average += problem.omega[p] * V.T
            state.XH += XH.T
        state.HH, state.XW = state.Hs.T @ state.Hs, None
        size = float(np.linalg.norm(state.W))
        change = float(np.linalg.norm(average - state.W))
        state.W[...] = average
        return change / size if size > 0 else float("inf")

    def _client(
        self, problem: Clustering, X: Any, H: np.ndarray, W: np.ndarray, rho: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """One client's Q/2 steps on its samples X, (n, M), and H, (n, K), in place; returns W_p^T and H^T X, (K, M).

        X stays in the cache during all steps. W_p is stored transposed, as V, which makes both products with X faster.
        """
        V, moved, step = np.array(W.T, order="C"), np.empty(W.T.shape), np.zeros(W.T.shape)
        eye, d = np.eye(problem.K), 0.0
        for _ in range(self.Q // 2):
            S, a = h_step(problem, V.T, rho, self.gamma)
            descend_H(H, a * np.asarray(X @ V.T), S, 1)  # fedmf (15)
            HH = H.T @ H
            d = 0.5 * self.gamma * lambda_max(HH)  # d_p times N_p/2, as HH and XH are here
            if d == 0.0:  # H is zero: so is the gradient of W
                continue
            step = np.asarray((H / d).T @ X)
            np.matmul(eye - HH / d, V, out=moved)  # fedmf (16)
            moved += step
            np.clip(moved, problem.w_min, problem.w_max, out=V)
        return V, d * step


add_method(
    "fedpalm",
    FedPALM,
    "Naive: Q/2 alternating steps on each client's own problem, then the average",
    label="FedPALM",
    papers=("fedmf",),
    look=("green", "^"),
)
add_method(
    "fedcpalm",
    FedPALM,
    "Naive: Q/2 alternating steps on each client's own problem, then the average",
    label="FedCPALM",
    papers=("fedc",),
)
