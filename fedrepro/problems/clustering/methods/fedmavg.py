r"""FedMAvg: federated matrix factorization by model averaging (the paper ``fedc`` calls it FedCAvg).

Problem: :math:`\min \sum_p \omega_p F_p(W, H_p)` over :math:`W_{min} \le W \le W_{max}, H \ge 0`
(``fedrepro.problems.clustering``). A round s, fedmf Algorithm 1, fedc Algorithm 1:

    the server draws m clients with replacement, Pr(p) = omega_p
    the server sends W to each active client                                             M K numbers each, down
    each active client:  Q1 times  H_p <- max(0, H_p - grad_H F_p(W, H_p) / c_p)         fedmf (11)
                         V = W;  Q2 times  V <- V - grad_W F_p(V, H_p) / d               fedmf (13), no projection
    each drawn client sends W_p = V, once for each time it was drawn                     M K numbers each, up
    the server:          W <- clip((1/m) sum over the draws of W_p)                      fedmf (9), (10)

With m = P no clients are drawn and W <- clip(sum_p omega_p W_p) (fedmf (8), Corollary 1). ``participation``: with
``pcc`` (partial client communication) all P clients are active, with ``pcp`` only the drawn ones. Q2 is constant, or
diminishes as floor(Qhat/s) + 1. Steps: c_p = gamma1/2 lambda_max(A_p), and d = gamma2 L_W with
L_W = lambda_max((2/N) H H^T) for the H of all clients after the Q1 steps. L_W is assumed to be known (an oracle: the
papers count no message for it); ``d_mode="local"`` uses lambda_max(B_p) of each client instead. The local loop is
stable if max_p lambda_max(B_p) < 2 gamma2 L_W (the metric ``curvature_ratio``). gamma2 = 5 is the authors' value;
Theorem 1 requires a larger one.

The local loop is linear and unprojected, so it is evaluated in closed form: W_p = W + (2/N_p X_p H_p^T - W B_p) M_p
with M_p = sum_{i<Q2} (I - B_p/d)^i / d. The weighted sum of all W_p needs one product of X with the blocks
H_p^T M_p, whatever Q2 and P.

Source: fedmf sections III and V-A; fedc section III; docs/derivations/local-loop.md (the closed form) and
docs/derivations/clustering-problem.md (step sizes, stability).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from fedrepro.errors import ParameterError
from fedrepro.ledger import Ledger
from fedrepro.parameters import AtMost, Number, OneOf, Whole, whole
from fedrepro.problems.clustering import descent
from fedrepro.problems.clustering.passes import Pass
from fedrepro.problems.clustering.problem import Clustering, parts, passing
from fedrepro.problems.clustering.state import State
from fedrepro.protocols import Cost, Method, Work
from fedrepro.registry import add_method
from fedrepro.seeds import Rng


@dataclass(frozen=True)
class FedMAvg(Method):
    """Parameters of FedMAvg.

    m : uploads per round, 1 .. P; None for all clients. Q1 : H steps per client and round.
    Q2 : local W steps per round, at least 1; None if Qhat is given. Qhat : sets Q2 = floor(Qhat/s) + 1 in round s; None
    if Q2 is given, and 10 if neither is.
    participation : the clients that take H steps: ``pcc``, all P clients, or ``pcp``, only the drawn ones.
    pcp_repeat : with pcp, a client drawn r times takes r Q1 H steps, as in the authors' program, instead of Q1.
    gamma1 : safety factor of the H step's c_p. gamma2 : factor of the W step's d.
    d_schedule : ``constant``, or ``linear`` for d = gamma2 (s + 1) L_W (fedc, Theorem 1, with gamma2 = 1).
    d_mode : ``global`` for L_W of all clients' H, ``local`` for lambda_max(B_p) of each client (discrepancy fedmf.6).

    >>> import numpy as np
    >>> from fedrepro import Clustering, FedMAvg, run
    >>> X = np.random.default_rng(0).random((5, 60))
    >>> problem = Clustering(X, np.arange(60) % 4, K=3)
    >>> history = run(FedMAvg(m=2, Q1=5, Q2=1), problem, rounds=10)
    >>> bool(history["objective"][-1] < history["objective"][0])
    True
    >>> int(history["uplink_scalars"][1])  # 2 clients send 5 x 3 numbers each
    30
    """

    m: Annotated[int | None, Whole(), AtMost("P", "clients")] = None
    Q1: Annotated[int, Whole()] = 10
    Q2: Annotated[int | None, Whole()] = None
    Qhat: Annotated[int | None, Whole()] = None
    participation: Annotated[str, OneOf("pcc", "pcp")] = "pcc"
    pcp_repeat: bool = False
    gamma1: Annotated[float, Number(least=1.0)] = 1.02
    gamma2: Annotated[float, Number(above=0.0)] = 5.0
    d_schedule: Annotated[str, OneOf("constant", "linear")] = "constant"
    d_mode: Annotated[str, OneOf("global", "local")] = "global"

    def __post_init__(self) -> None:
        """Raise ParameterError if a value cannot work."""
        super().__post_init__()
        if self.Q2 is not None and self.Qhat is not None:
            raise ParameterError("Q2", "give Q2 (constant) or Qhat (diminishing), not both")
        if self.Q2 is not None:
            whole("Q2", self.Q2)
        elif self.Qhat is None:
            object.__setattr__(self, "Qhat", 10)

    @staticmethod
    def cost(params: Mapping[str, Any], facts: Mapping[str, Any]) -> Cost:
        """W^T X and H steps of the active clients; X H^T and an eigendecomposition for each drawn client."""
        P, N, K, m = facts["P"], facts["N"], facts["K"], descent.at_work(facts, params["m"])
        drawn = P if m >= P else P * (1.0 - (1.0 - 1.0 / P) ** m)
        moved = P if params["participation"] == "pcc" else drawn
        steps = descent.H_steps(facts, N * moved / P, params["Q1"], parts(facts, moved))
        averaging = Work(flops=60.0 * drawn * K**3 + 4.0 * N * drawn / P * K * K, calls=18.0 * drawn + 150.0)
        products = passing(facts, N * moved / P) + passing(facts, N * drawn / P)
        return Cost(Work(singles=10.0 * N * K, calls=100.0), steps + averaging + products, descent.state_bytes(facts))

    def local_length(self, s: int) -> int:
        """Q2 of round s = 1, 2, ... (fedmf, section III-A, "Diminishing Q2")."""
        return self.Q2 if self.Q2 is not None else self.Qhat // s + 1  # type: ignore[operator]

    def rounds(
        self, problem: Clustering, rng: Rng, *, ledger: Ledger | None = None, init: Any = None, clients: Any = None
    ) -> Iterator[State]:
        """Yield the state at the initial point and after every round; one object, updated in place.

        init : (W0, H0), (M, K) and (K, N). clients : (rounds, m) ids, instead of draws; the run ends after them.
        """
        self.check(P=problem.P)
        ledger = Ledger() if ledger is None else ledger
        state = problem.start(init, rng)
        yield state
        for s, (ids, times, weights) in enumerate(self._draws(problem, rng, clients), start=1):
            active = problem.P if self.participation == "pcc" else ids.size
            ledger.down(problem.M * problem.K, kind="W", clients=active)
            if self.participation == "pcc" or ids.size == problem.P:
                descent.update_all(problem, state, self.gamma1, self.Q1, share=False)  # fedmf (11), all clients
            else:
                steps = {int(p): self.Q1 * (int(r) if self.pcp_repeat else 1) for p, r in zip(ids, times, strict=True)}
                descent.update_some(problem, state, self.gamma1, ids, steps)
            self._average(problem, state, s, ids, weights)
            ledger.up(problem.M * problem.K, kind="W_p", clients=int(times.sum()))
            yield state
            if not descent.finite(state):
                return

    def _draws(
        self, problem: Clustering, rng: Rng, clients: Any
    ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """For each round: the clients drawn, how often each was drawn, and its weight in the average."""
        P = problem.P
        replayed = descent.replayed(clients, self.m, P)
        if self.m is None or self.m >= P:
            yield from itertools.repeat((np.arange(P), np.ones(P, dtype=np.intp), problem.omega))
        assert self.m is not None
        for drawn in descent.drawn_again(rng, self.m, problem.omega) if replayed is None else replayed:
            ids, times = descent.distinct(drawn)
            yield ids, times, times / self.m

    def _average(self, problem: Clustering, state: State, s: int, ids: np.ndarray, weights: np.ndarray) -> None:
        """W <- clip(sum_p weight_p W_p), with every W_p in closed form. fedmf (13), then (8) or (10)."""
        scale = 2.0 / problem.sizes[ids]
        B = scale[:, None, None] * problem.grams(state, ids)
        M = descent.local_steps(B, self._step(problem, state, s, B), self.local_length(s))
        # sum_p w_p W_p = W (I - sum_p w_p B_p M_p) + sum_p X_p (H_p^T w_p (2/N_p) M_p), as the weights sum to 1
        with np.errstate(over="ignore", invalid="ignore"):
            V = state.W - state.W @ np.einsum("p,pij,pjk->ik", weights, B, M, optimize=True)
            mixed = (weights * scale)[:, None, None] * M
            Y = np.empty_like(state.Hs)
            for p, mix in zip(ids, mixed, strict=True):
                np.matmul(state.Hs[problem.client(p)], mix, out=Y[problem.client(p)])
            joint = problem.small or ids.size == problem.P
            blocks = problem.blocks(ids) if joint else [problem.client(p) for p in ids]
            problem.over(Pass(blocks, lambda part, _: Y[part], out=V))
            np.clip(V, problem.w_min, problem.w_max, out=state.W)
        state.XW = None

    def _step(self, problem: Clustering, state: State, s: int, B: np.ndarray) -> np.ndarray | float:
        """d of round s, for all clients or for each; 1 if a curvature is zero (then W_p = W for any d)."""
        growth = self.gamma2 * (s + 1 if self.d_schedule == "linear" else 1)
        if self.d_mode == "local":
            curvature = np.linalg.eigvalsh(B)[:, -1]
            return np.where(curvature > 0, growth * curvature, 1.0)
        L_W = 2.0 / problem.N * descent.lambda_max(state.HH)
        return growth * L_W if L_W > 0 else 1.0


add_method(
    "fedmavg",
    FedMAvg,
    "Model averaging after Q1 H steps and Q2 local W steps, m uploads per round",
    label="FedMAvg",
    papers=("fedmf",),
    look=("blue", "o"),
)
add_method(
    "fedcavg",
    FedMAvg,
    "FedMAvg with full participation, as in fedc",
    label="FedCAvg",
    papers=("fedc",),
    preset={"m": None},
)
add_method(
    "fedcavg-literal",
    FedMAvg,
    "FedCAvg with d = L_W, the printed lambda_max(H H^T) in our scaling; unstable where clients differ",
    label="FedCAvg (d as printed)",
    papers=("fedc",),
    preset={"m": None, "gamma2": 1.0},
)
