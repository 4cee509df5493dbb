r"""FedMGS: federated matrix factorization by gradient sharing (the paper ``fedc`` calls it FedCGds).

Problem: :math:`\min F(W, H)` over :math:`W_{min} \le W \le W_{max}, H \ge 0` (``fedrepro.problems.clustering``).
Because :math:`\nabla_W F = W G_1 - G_2` with :math:`G_1 = (2/N) \sum_p H_p H_p^T` and
:math:`G_2 = (2/N) \sum_p X_p H_p^T`, the server can take many projected steps on W without seeing data (fedmf (29)).
A round s, fedmf Algorithm 2, fedc Algorithm 2:

    the server draws m clients uniformly without replacement and sends them W            M K numbers each, down
    each drawn client:  Q1 times  H_p <- max(0, H_p - grad_H F_p(W, H_p) / c_p)          fedmf (28)
                        sends what its H_p H_p^T and X_p H_p^T have become               M K + K^2 numbers each, up
    the server:         Q2 times  W <- clip(W - (W G1 - G2) / d)                         fedmf (30)

with c_p = gamma1/2 lambda_max(A_p) and d = gamma2/2 lambda_max((2/N) H H^T), computed once per round. The papers print
1/2 lambda_max; the theorems require a factor above 1, and the authors' program uses 1.02 and 1.002. With m = P this is
centralized alternating minimization, with the same numbers for every partition. F never increases.

Source: fedmf sections IV and V-A; fedc section IV; docs/derivations/clustering-problem.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from fedrepro.errors import UserError
from fedrepro.ledger import Ledger
from fedrepro.parameters import AtMost, Number, Whole
from fedrepro.problems.clustering import descent
from fedrepro.problems.clustering.problem import Clustering, parts, passing
from fedrepro.problems.clustering.state import State
from fedrepro.protocols import Cost, Method, Work
from fedrepro.registry import add_method
from fedrepro.seeds import Rng


@dataclass(frozen=True)
class FedMGS(Method):
    """Parameters of FedMGS.

    m : clients per round, 1 .. P; None for all. Q1 : H steps per client and round.
    Q2 : W steps of the server per round. gamma1 : safety factor of the H step's c_p.
    gamma2 : safety factor of the W step's d.

    Q1 = Q2 = 1 with m = P is plain gradient sharing (fedmf, references [13], [14]).

    >>> import numpy as np
    >>> from fedrepro import Clustering, FedMGS, run
    >>> X = np.random.default_rng(0).random((5, 60))
    >>> problem = Clustering(X, np.arange(60) % 4, K=3)
    >>> history = run(FedMGS(m=2, Q1=5, Q2=10), problem, rounds=10)
    >>> bool((np.diff(history["objective"]) <= 0).all())  # it never rises
    True
    >>> int(history["uplink_scalars"][1])  # 2 clients send 5 x 3 and 3 x 3 numbers each
    48
    """

    m: Annotated[int | None, Whole(), AtMost("P", "clients")] = None
    Q1: Annotated[int, Whole()] = 10
    Q2: Annotated[int, Whole()] = 100
    gamma1: Annotated[float, Number(least=1.0)] = 1.02
    gamma2: Annotated[float, Number(least=1.0)] = 1.002

    @staticmethod
    def cost(params: Mapping[str, Any], facts: Mapping[str, Any]) -> Cost:
        """Both products with the drawn clients' samples, Q1 H steps and Q2 W steps; X H^T of all at the start."""
        P, N, m = facts["P"], facts["N"], descent.at_work(facts, params["m"])
        rows, blocks = N * m / P, parts(facts, m)
        moving = Work(flops=6.0 * rows * facts["K"] ** 2, calls=35.0 * blocks + 150.0)
        steps = descent.H_steps(facts, rows, params["Q1"], blocks) + descent.W_steps(facts, params["Q2"])
        start = passing(facts, N) + Work(singles=10.0 * N * facts["K"], calls=150.0)
        return Cost(start, passing(facts, rows, 2) + moving + steps, descent.state_bytes(facts))

    def rounds(
        self, problem: Clustering, rng: Rng, *, ledger: Ledger | None = None, init: Any = None, clients: Any = None
    ) -> Iterator[State]:
        """Yield the state at the initial point and after every round; one object, updated in place.

        init : (W0, H0), (M, K) and (K, N). clients : (rounds, m) ids, instead of draws; the run ends after them.
        """
        M, K, P = problem.M, problem.K, problem.P
        self.check(P=P)
        ledger = Ledger() if ledger is None else ledger
        state = problem.start(init, rng)
        problem.refresh(state)
        ledger.up(M * K + K * K, kind="G1, G2", clients=P, setup=True)  # statistics of H^0 (Algorithm 2, input)
        yield state
        for active in self._active(rng, P, clients):
            m = P if active is None else active.size
            ledger.down(M * K, kind="W", clients=m)
            if active is None:
                descent.update_all(problem, state, self.gamma1, self.Q1, share=True)  # fedmf (28)
            else:
                descent.update_some(problem, state, self.gamma1, active, self.Q1)
            ledger.up(M * K + K * K, kind="H H^T, X H^T", clients=m)
            assert state.XH is not None
            d = 0.5 * self.gamma2 * descent.lambda_max(state.HH)  # fedmf V-A; d^s times N/2, as G1 and G2 are here
            descent.descend_W(problem, state.W, state.HH, state.XH, d, self.Q2)  # fedmf (30)
            state.XW = None
            yield state
            if not descent.finite(state):
                return

    def _active(self, rng: Rng, P: int, clients: Any) -> Iterator[np.ndarray | None]:
        replayed = descent.replayed(clients, self.m, P)
        if self.m is None or self.m >= P:
            while True:
                yield None
        for drawn in descent.drawn_once(rng, self.m, P) if replayed is None else replayed:
            active, times = descent.distinct(drawn)
            if times.max() > 1:
                raise UserError("clients: FedMGS draws without replacement, but a round names a client twice")
            yield active


add_method(
    "fedmgs",
    FedMGS,
    "Gradient sharing with Q1 client and Q2 server steps, m clients per round",
    label="FedMGS",
    papers=("fedmf",),
    look=("vermillion", "s"),
)
add_method("fedcgds", FedMGS, "FedMGS under its name in fedc", label="FedCGds", papers=("fedc",))
