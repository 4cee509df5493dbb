r"""FedMC-ADMM: federated matrix completion by a linearized ADMM over randomly chosen clients.

Problem: :math:`\min \frac1p \sum_i [f_i(U_i, W_i) + R_i(U_i)] + R(V)` subject to :math:`W_i = V`
(``fedrepro.problems.completion``, fedmc (3)), through its augmented Lagrangian (4), (5) with penalty :math:`\beta`.
A round k, Algorithm 1:

    the server draws S_k, m of p clients without replacement, and sends V          n r numbers each, down
    each client i in S_k:
        L = ||W_i W_i^T||_F;      N times  U_i <- prox_{R_i/L}( U_i - grad_U f_i(U_i, W_i) / L )                  (14)
        l = ||U_i^T U_i||_F / p;  N times  W_i <- ( l W_i + beta V - grad_V f_i(U_i, W_i)/p - Y_i ) / (l + beta)  (15)
        Y_i <- Y_i + beta (W_i - V)                                                                               (13)
        and sends (W_i, Y_i)                                                       2 n r numbers each, up
    the server:  V <- argmin R(V) + sum over all p clients of -<Y_i, V> + beta/2 ||W_i - V||^2                    (16)

Clients that are not drawn do not change, and their last (W_i, Y_i) remain in the server's sum. U is updated with the
client's own W_i of its last round, not with V. The server needs only Z_i = W_i + Y_i/beta; ``sends="sum"`` counts this
message of n r numbers instead of the paper's pair (the iterates are the same). Before round 1 every client receives V^0
and sends its Y_i^0 (unless it is zero): the paper counts rounds only and does not mention this setup, and the ledger
counts it separately.

``W_step="exact"`` replaces the N steps (15) by the minimiser over W_i of the augmented Lagrangian (Remark 4.1, (11)):
one r x r solve for every item the client has observed.

beta: the paper gives no value. Its effect depends on l. ``beta="auto"`` is c times the median over all clients of
||U_i^T U_i||_F / p after one U phase from the initial point, for which every client sends one number (discrepancy
fedmc.6). The proof requires beta above the larger (the paper prints the smaller) of two bounds (discrepancy fedmc.20).

Source: fedmc sections 4.1, 5.2, 5.3; docs/derivations/admm-reduction.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

import numpy as np

from fedrepro.errors import ParameterError
from fedrepro.ledger import Ledger
from fedrepro.parameters import AtMost, Number, OneOf, Whole
from fedrepro.problems.completion.problem import Completion, bucketing, client_draws
from fedrepro.problems.completion.state import State
from fedrepro.protocols import Cost, Method, Work
from fedrepro.registry import add_method
from fedrepro.seeds import Rng, streams

T = TypeVar("T")

_REFRESH = 50
"""Rounds after which the server's running sum is recomputed, so that rounding errors do not accumulate."""


@dataclass(frozen=True)
class FedMCADMM(Method):
    """Parameters of FedMC-ADMM.

    m : clients per round, 1 .. p. N : inner steps on U and on W. beta : penalty, or
    ``auto``, c times the median over the clients of ||U_i^T U_i||_F / p. c : factor of ``auto``.
    W_step : ``linearized``, N steps (15), or ``exact``, the minimiser (11).
    Y0 : the initial dual: ``gradient`` for -(1/p) grad_V f_i(U_i^0, V^0), as in Algorithm 1, or ``zero``.
    eps : least value of ||W_i W_i^T||_F and ||U_i^T U_i||_F.
    sends : the counted uplink message: ``pair``, W_i and Y_i as in the paper, or ``sum``, W_i + Y_i/beta.

    >>> import numpy as np
    >>> from fedrepro import Completion, Ratings, FedMCADMM, run
    >>> user, item = np.divmod(np.arange(96), 8)
    >>> data = Ratings(user, item, 1.0 + (user + item) % 5, users=12, items=8)
    >>> problem = Completion(data, np.arange(12) % 3, r=2, lam=0.1, gam=0.1, init=0.5)
    >>> history = run(FedMCADMM(m=2, N=5), problem, rounds=20)
    >>> bool(history["objective"][-1] < history["objective"][0])
    True
    """

    m: Annotated[int, Whole(), AtMost("P", "clients")] = 10
    N: Annotated[int, Whole()] = 10
    beta: Annotated[float | str, Number(above=0.0, words=("auto",))] = 1.0
    c: Annotated[float, Number(above=0.0)] = 0.3
    W_step: Annotated[str, OneOf("linearized", "exact")] = "linearized"
    Y0: Annotated[str, OneOf("gradient", "zero")] = "gradient"
    eps: Annotated[float, Number(above=0.0)] = 1e-12
    sends: Annotated[str, OneOf("pair", "sum")] = "pair"

    @staticmethod
    def cost(params: Mapping[str, Any], facts: Mapping[str, Any]) -> Cost:
        """U and W steps of the drawn clients, and a few passes over their W_i and Y_i (at the start over all)."""
        users, items, P, r = facts["users"], facts["items"], facts["P"], facts["r"]
        m, size = min(params["m"], P), items * r
        U = bucketing(facts, m / P, users * m / P, params["N"])
        W = bucketing(facts, m / P, m * items, params["N"] if params["W_step"] == "linearized" else 0.4 * r)
        start = Work(singles=5.0 * P * size + facts["ratings"] * 2.0 * r, calls=30.0 * P)
        passes = Work(singles=12.0 * m * size + 2.0 * P * size / 50.0, calls=80.0 * m)
        return Cost(start, U + W + passes, 8.0 * size * (2.0 * P + m) + 24.0 * users * r, ("numba",))

    def rounds(
        self, problem: Completion, rng: Rng, *, ledger: Ledger | None = None, init: Any = None, clients: Any = None
    ) -> Iterator[State]:
        """Yield the state at the initial point and after every round; one object, updated in place.

        init : (U0, V0), (users, r) and (n, r). clients : the ids of each round, instead of draws.
        """
        self.check(P=problem.p)
        ledger = Ledger() if ledger is None else ledger
        draw = streams(rng)
        state, size = problem.start(init, draw.other), problem.n * problem.r
        state.W, state.Y = self._start(problem, state, ledger)
        state.beta = self._penalty(problem, state, ledger)
        total = _server_sum(state)
        yield state
        for k, S in enumerate(client_draws(draw.clients, self.m, problem.p, clients), start=1):
            ledger.down(size, kind="V", clients=len(S))
            with np.errstate(over="ignore", invalid="ignore"):
                for change in _at_nodes(problem, ledger, lambda i: self._client(problem, state, i), S):
                    total += change
                if k % _REFRESH == 0:
                    total = _server_sum(state)
                state.V[:] = _server(problem, total, state.beta)
            if self.sends == "pair":
                ledger.up(size, kind="W_i", clients=len(S))
                ledger.up(size, kind="Y_i", clients=len(S))
            else:
                ledger.up(size, kind="W_i + Y_i/beta", clients=len(S))
            state.work += self.N if self.W_step == "linearized" else 0.5 * (self.N + 1)
            yield state
            if not np.isfinite(state.V).all():
                return

    def _start(self, problem: Completion, state: State, ledger: Ledger) -> tuple[np.ndarray, np.ndarray]:
        """W_i^0 = V^0 and Y_i^0 of all clients, (p, n, r) each. Algorithm 1, Input."""
        from fedrepro.problems.completion.kernels import steps

        ledger.down(state.V.size, kind="V", clients=problem.p, setup=True)
        W = np.repeat(state.V[None], problem.p, axis=0)
        if self.Y0 == "zero":
            return W, np.zeros_like(W)
        Y = W.copy()

        def set_dual(i: int) -> None:  # Y_i <- 0 Y_i - (1/p) grad_V f_i(U_i, .) at V: one step with alpha = 0
            steps(Y[i], state.U[problem.client(i)], *problem.by_item(i), N=1, alpha=0.0, delta=1.0 / problem.p)

        _at_nodes(problem, ledger, set_dual, range(problem.p))
        ledger.up(state.V.size, kind="Y_i", clients=problem.p, setup=True)
        return W, Y

    def _penalty(self, problem: Completion, state: State, ledger: Ledger) -> float:
        """beta, measured if it is ``"auto"``; the state is not changed."""
        if not isinstance(self.beta, str):
            return float(self.beta)

        def curvature_of(i: int) -> float:
            U = state.U[problem.client(i)].copy()
            self._U_steps(problem, i, U, state.V)
            return self._curvature(U) / problem.p

        ledger.up(1, kind="curvature", clients=problem.p, setup=True)
        return self.c * float(np.median(_at_nodes(problem, ledger, curvature_of, range(problem.p))))

    def _curvature(self, A: np.ndarray) -> float:
        """||A^T A||_F, at least eps. fedmc (12)."""
        from fedrepro.problems.completion.kernels import gram

        return max(float(np.linalg.norm(gram(A))), self.eps)

    def _U_steps(self, problem: Completion, i: int, U: np.ndarray, W: np.ndarray) -> None:
        """fedmc (14): N steps on U_i with W, in place."""
        from fedrepro.problems.completion.kernels import steps

        L, data = self._curvature(W), problem.by_user(problem.client(i))
        if problem.reg == "l2":
            steps(U, W, *data, N=self.N, alpha=L, scale=1.0 / (L + problem.lam))  # (66)
        else:
            steps(U, W, *data, N=self.N, delta=1.0 / L, tau=problem.lam / L)  # (71)

    def _client(self, problem: Completion, state: State, i: int) -> np.ndarray:
        """One round of client i, in place; returns the change of W_i + Y_i/beta."""
        from fedrepro.problems.completion.kernels import solve_rows, steps

        assert state.W is not None
        assert state.Y is not None
        assert state.beta is not None
        U, V, W, Y, beta, p = state.U[problem.client(i)], state.V, state.W[i], state.Y[i], state.beta, problem.p
        change = -(W + Y / beta)
        self._U_steps(problem, i, U, W)
        if self.W_step == "linearized":
            ell = self._curvature(U) / p  # (12)
            pull = {"alpha": ell, "scale": 1.0 / (ell + beta), "Q": beta * V - Y}
            steps(W, U, *problem.by_item(i), N=self.N, delta=1.0 / p, **pull)  # (67)
        elif solve_rows(W, U, *problem.by_item(i), mu=beta, delta=1.0 / p, Q=beta * V - Y):  # (11), Remark 4.1
            raise ParameterError("beta", f"is too small for the exact W step to be solved: {beta:g}")
        Y += beta * (W - V)  # (13)
        change += W + Y / beta
        return change


def _at_nodes(problem: Completion, ledger: Ledger, work: Callable[[int], T], S: Sequence[int]) -> list[T]:
    """The results of ``work`` for every client of S; each client is a node of the ledger's clock."""
    with ledger.clock.nodes() as at:

        def timed(i: int) -> T:
            with at(i):
                return work(i)

        return problem.each(timed, S)


def _server_sum(state: State) -> np.ndarray:
    """sum over all clients of W_i + Y_i/beta, in the order of the clients."""
    assert state.W is not None
    assert state.Y is not None
    total = np.zeros_like(state.V)
    for W, Y in zip(state.W, state.Y, strict=True):
        total += W + Y / state.beta
    return total


def _server(problem: Completion, total: np.ndarray, beta: float) -> np.ndarray:
    """fedmc (16), given the sum of W_i + Y_i/beta."""
    p = problem.p
    if problem.reg == "l2":
        return beta * total / (p * beta + problem.gam)  # (68)
    mean, tau = total / p, problem.gam / (p * beta)
    return np.sign(mean) * np.maximum(np.abs(mean) - tau, 0.0)  # (73), (72)


add_method(
    "fedmc-admm",
    FedMCADMM,
    "Linearized ADMM on clients drawn at random, as the paper states it",
    label="FedMC-ADMM",
    papers=("fedmc",),
    look=("orange", "D"),
)
add_method(
    "fedmc-admm-exact",
    FedMCADMM,
    "FedMC-ADMM with the W step of Remark 4.1, solved item by item",
    label="FedMC-ADMM, exact W step",
    papers=("fedmc",),
    preset={"W_step": "exact"},
)
add_method(
    "fedmc-admm-released",
    FedMCADMM,
    "FedMC-ADMM with the released program's penalty, dual start and floor",
    label="FedMC-ADMM (released program)",
    papers=("fedmc",),
    preset={"beta": 10000.0, "Y0": "zero", "eps": 0.0001},
)
