r"""FedMAvg for matrix completion: the baseline of the paper ``fedmc``, in three readings of its text and program.

Problem: :math:`\min F(U, V)` with squared l2 regularisers (``fedrepro.problems.completion``). A round k, section 5.2:

    the server sends V to all p clients                                                     n r numbers each, down
    every client:  Q1 times  U_i <- U_i - [ P(U_i V - M_i) V^T + lam U_i ] / c^k
    the m clients of S_k, drawn without replacement:
                   W_i = V;  Q2 times  W_i <- W_i - [ U_i^T P(U_i W_i - M_i)/p + gam W_i ] / d_i
                   and send W_i                                                             n r numbers each, up
    the server:    V <- (1/m) sum over S_k of W_i

In the text every client computes W_i; those outside S_k are discarded, so this code does not compute them. The text
does not define c^k. With lambda_max of the r x r Gram matrices V V^T and U_i^T U_i, ``reading`` is one of

    literal    c^k = c lambda_max(V V^T),      d_i = d lambda_max(U_i^T U_i)
               as printed, with the c of FedMAvg's own program (discrepancy fedmf.1)
    scaled     c^k = c lambda_max(V V^T),      d_i = d lambda_max(U_i^T U_i) / p
               FedMAvg's own convention: the curvature has the same factor 1/p as its gradient
    released   c^k = p lambda_max(V V^T) / 2,  d_i = d lambda_max(U_i^T U_i),  and gam W_i is divided by p as well

with c = 0.51 and d = 5. In the literal reading the W step is 1/p of the usual step, because the gradient is divided by
p and the curvature is not; in the released program the same holds for U.

``broadcast=False`` is another property of the released program: V is averaged but never sent back. Every client
continues from its own W_i, also in its U steps, and all p clients take W steps; V is only measured.

Source: fedmc section 5.2; discrepancy fedmc.9, discrepancy fedmc.10, discrepancy fedmc.11.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from fedrepro.errors import ParameterError
from fedrepro.ledger import Ledger
from fedrepro.parameters import AtMost, Number, OneOf, Whole
from fedrepro.problems.completion.problem import Completion, bucketing, client_draws
from fedrepro.problems.completion.state import State
from fedrepro.protocols import Cost, Method, Work
from fedrepro.registry import add_method
from fedrepro.seeds import Rng, streams


@dataclass(frozen=True)
class FedMAvgMC(Method):
    """Parameters of FedMAvg for completion.

    m : clients averaged per round, 1 .. p. Q1 : U steps per client and round. Q2 : W steps per client and round.
    reading : reading of the step sizes: ``literal``, d_i as printed, and c^k, which the paper does not define, as in
    FedMAvg's own program; ``scaled``, with the 1/p of the gradient in the curvature too; ``released``, as in the
    authors' program. c : factor of the U step's c^k; ``released`` has none. d : factor of the W step's d_i. broadcast :
    whether V is sent back to the clients; otherwise each client continues from its own W_i.

    >>> import numpy as np
    >>> from fedrepro import Completion, Ratings, FedMAvgMC, run
    >>> user, item = np.divmod(np.arange(96), 8)
    >>> data = Ratings(user, item, 1.0 + (user + item) % 5, users=12, items=8)
    >>> problem = Completion(data, np.arange(12) % 3, r=2, lam=0.1, gam=0.1, init=0.5)
    >>> history = run(FedMAvgMC(m=2, Q1=5, Q2=5, reading="released"), problem, rounds=20)
    >>> bool(history["objective"][-1] < history["objective"][0])
    True
    >>> history.ledger.uplink_scalars == 20 * 2 * 8 * 2  # rounds, clients, items, rank
    True
    """

    m: Annotated[int, Whole(), AtMost("P", "clients")] = 10
    Q1: Annotated[int, Whole()] = 10
    Q2: Annotated[int, Whole()] = 10
    reading: Annotated[str, OneOf("literal", "scaled", "released")] = "literal"
    c: Annotated[float, Number(above=0.0)] = 0.51
    d: Annotated[float, Number(above=0.0)] = 5.0
    broadcast: bool = True

    @staticmethod
    def cost(params: Mapping[str, Any], facts: Mapping[str, Any]) -> Cost:
        """U steps of all clients, and W steps of the drawn ones, or of all without broadcast."""
        users, items, P, size = facts["users"], facts["items"], facts["P"], facts["items"] * facts["r"]
        at_work = min(params["m"], P) if params["broadcast"] else P
        U = bucketing(facts, 1.0, users, params["Q1"])
        W = bucketing(facts, at_work / P, at_work * items, params["Q2"])
        memory = 24.0 * (users * facts["r"] + size) + 8.0 * size * at_work
        return Cost(Work(singles=3.0 * size * P, calls=500.0), U + W + Work(calls=60.0 * at_work), memory, ("numba",))

    def rounds(
        self, problem: Completion, rng: Rng, *, ledger: Ledger | None = None, init: Any = None, clients: Any = None
    ) -> Iterator[State]:
        """Yield the state at the initial point and after every round; one object, updated in place.

        init : (U0, V0), (users, r) and (n, r). clients : the ids of each round, instead of draws.
        ``state.W`` contains the clients' own W_i if V is not broadcast. Raises ParameterError for l1 regularisers.
        """
        self.check(P=problem.p)
        if problem.reg != "l2":
            raise ParameterError("reg", "FedMAvg is a gradient method and needs reg: l2; use fedmc-admm for l1")
        ledger = Ledger() if ledger is None else ledger
        draw = streams(rng)
        state, size = problem.start(init, draw.other), problem.n * problem.r
        if not self.broadcast:
            state.W = np.repeat(state.V[None], problem.p, axis=0)
            ledger.down(size, kind="V", clients=problem.p, setup=True)
        yield state
        for S in client_draws(draw.clients, self.m, problem.p, clients):
            with np.errstate(over="ignore", invalid="ignore"):
                if self.broadcast:
                    ledger.down(size, kind="V", clients=problem.p)
                    sent = self._averaging(problem, state, S)
                else:
                    sent = self._isolated(problem, state, S)
                state.V[:] = sum(sent) / len(S)
            ledger.up(size, kind="W_i", clients=len(S))
            state.work += 0.5 * (self.Q1 + self.Q2)
            yield state
            if not np.isfinite(state.V).all():
                return

    def _averaging(self, problem: Completion, state: State, S: list[int]) -> list[np.ndarray]:
        """U steps of all clients against V, then W_i of the clients S, each from V."""
        step = self._U_step(problem, state.V)
        problem.each(lambda rows: self._U_steps(problem, state.U, rows, state.V, step), problem.blocks(problem.train))

        def train_client(i: int) -> np.ndarray:
            W = state.V.copy()
            self._W_steps(problem, state.U, i, W)
            return W

        return problem.each(train_client, S)

    def _isolated(self, problem: Completion, state: State, S: list[int]) -> list[np.ndarray]:
        """U and W steps of all clients, each in its own W_i."""
        copies = state.W
        assert copies is not None

        def train_client(i: int) -> None:
            W = copies[i]
            self._U_steps(problem, state.U, problem.client(i), W, self._U_step(problem, W))
            self._W_steps(problem, state.U, i, W)

        problem.each(train_client, range(problem.p))
        return [copies[i] for i in S]

    def _U_step(self, problem: Completion, V: np.ndarray) -> float:
        """1 / c^k."""
        top = _lambda_max(V)
        return 2.0 / (problem.p * top) if self.reading == "released" else 1.0 / (self.c * top)

    def _U_steps(self, problem: Completion, U: np.ndarray, rows: slice, V: np.ndarray, step: float) -> None:
        """U <- U - step [ P(U V - M) V^T + lam U ], Q1 times on the given rows, in place."""
        from fedrepro.problems.completion.kernels import steps

        steps(U[rows], V, *problem.by_user(rows), N=self.Q1, alpha=1.0 - step * problem.lam, delta=step)

    def _W_steps(self, problem: Completion, U: np.ndarray, i: int, W: np.ndarray) -> None:
        """W <- W - [ U_i^T P(U_i W - M_i)/p + gam W ] / d_i, Q2 times, in place."""
        from fedrepro.problems.completion.kernels import steps

        Ui, p = U[problem.client(i)], problem.p
        d = self.d * _lambda_max(Ui) / (p if self.reading == "scaled" else 1)
        gam = problem.gam / p if self.reading == "released" else problem.gam
        steps(W, Ui, *problem.by_item(i), N=self.Q2, alpha=1.0 - gam / d, delta=1.0 / (p * d))


def _lambda_max(A: np.ndarray) -> float:
    """lambda_max(A^T A), at least 1e-12; NaN if A is not finite."""
    from fedrepro.problems.completion.kernels import gram

    G = gram(A)
    return max(float(np.linalg.eigvalsh(G)[-1]), 1e-12) if np.isfinite(G).all() else float("nan")


add_method(
    "fedmavg-mc",
    FedMAvgMC,
    "Model averaging for completion: W steps as printed, U steps as in FedMAvg's program",
    label="FedMAvg",
    papers=("fedmc",),
)
add_method(
    "fedmavg-mc-scaled",
    FedMAvgMC,
    "Model averaging for completion, W steps scaled like their gradient",
    label="FedMAvg (scaled steps)",
    papers=("fedmc",),
    preset={"reading": "scaled"},
)
add_method(
    "fedmavg-mc-released",
    FedMAvgMC,
    "Model averaging as the released program runs it: no broadcast, U steps divided by p",
    label="FedMAvg (released program)",
    papers=("fedmc",),
    preset={"reading": "released", "broadcast": False},
)
