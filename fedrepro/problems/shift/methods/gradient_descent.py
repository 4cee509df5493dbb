r"""FedAvg and PerFedSI on the regression toy: one linear model for all clients, without and with side information.

Problem: perfedsi (8) with w = 0 (FedAvg), or the display after it, with an added offset c (PerFedSI):

.. math:: \min \frac{1}{2Mn} \sum_m \sum_j (\langle \theta, x_{mj} \rangle + c + \langle w, z_m \rangle - y_{mj})^2

A round: m clients, drawn without replacement, take tau full-batch gradient steps on their own losses from the server's
parameters; the server averages the results. z_m is never sent.

Source: perfedsi Appendix B and section 2; docs/derivations/shift-regression.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from fedrepro.errors import UserError
from fedrepro.ledger import Ledger
from fedrepro.parameters import AtMost, Number, Whole
from fedrepro.problems.shift.problem import Shift, State
from fedrepro.protocols import Cost, Method, Work
from fedrepro.registry import add_method
from fedrepro.seeds import Rng, streams


@dataclass(frozen=True)
class ShiftAveraging(Method):
    """Parameters of FedAvg and PerFedSI.

    side : whether z is an input. eta : step size. tau : local steps per client and round. m : clients per round, 1 ..
    M; None for all.

    >>> import numpy as np
    >>> from fedrepro import Biased, Shift, ShiftAveraging, run
    >>> rng = np.random.default_rng(0)
    >>> x, z = rng.standard_normal((6, 4, 3)), rng.standard_normal((6, 2))
    >>> data = Biased(x, 0.1 * rng.standard_normal((6, 4)), rng.standard_normal(3), z @ [1.0, 0.5], z)
    >>> problem = Shift(data, sigma_b=2.0)
    >>> without, beside = (run(ShiftAveraging(side=s, m=3), problem, rounds=100)["excess_risk"] for s in (False, True))
    >>> bool(beside[-1] < without[-1])  # z determines the biases here
    True
    """

    side: bool = False
    eta: Annotated[float, Number(above=0.0)] = 0.1
    tau: Annotated[int, Whole()] = 5
    m: Annotated[int | None, Whole(), AtMost("M", "clients")] = 20

    def rounds(
        self, problem: Shift, rng: Rng, *, ledger: Ledger | None = None, init: Any = None, clients: Any = None
    ) -> Iterator[State]:
        """Yield the state at the initial point and after every round.

        init : parameters (d + 1,), with side information (d + 1 + k,). clients : (rounds, m) ids, instead of
        draws; the run ends after them.
        """
        self.check(M=problem.M)
        ledger = Ledger() if ledger is None else ledger
        A = problem.design(self.side)
        p = problem.start(init, A.shape[2])
        m = problem.M if self.m is None else self.m
        yield problem.state(p)
        for drawn in self._draws(rng, m, problem.M, clients):
            ledger.down(p.size, kind="parameters", clients=m)
            local, own, y = np.repeat(p[None], m, axis=0), A[drawn], problem.y[drawn]
            for _ in range(self.tau):
                e = np.matmul(own, local[:, :, None])[:, :, 0] - y
                local -= self.eta / problem.n * np.matmul(e[:, None], own)[:, 0]
            ledger.up(p.size, kind="parameters", clients=m)
            p = local.mean(axis=0)
            yield problem.state(p)
            if not np.isfinite(p).all():
                return

    @staticmethod
    def cost(params: Mapping[str, Any], facts: Mapping[str, Any]) -> Cost:
        """The cost of steps with small products, and of copying the clients' designs once per round."""
        m = facts["M"] if params["m"] is None else params["m"]
        local_step = Work(singles=2.0 * m * facts["N"], calls=16.0)
        return Cost(Work(calls=100.0), params["tau"] * local_step + Work(singles=2.0 * m * facts["N"], calls=60.0), 1e6)

    def _draws(self, rng: Rng, m: int, M: int, clients: Any) -> Iterator[np.ndarray]:
        if clients is not None:
            draws = np.asarray(clients)
            if draws.ndim != 2 or draws.shape[1] != m or draws.dtype.kind not in "iu":
                raise UserError(
                    f"clients: must be integers of shape (rounds, m = {m}), not {draws.dtype} {draws.shape}"
                )
            yield from draws
            return
        draw = streams(rng).clients
        while True:
            yield draw.permutation(M)[:m]


add_method(
    "shift-fedavg",
    ShiftAveraging,
    "FedAvg on the regression toy, one model for all clients",
    label="FedAvg",
    papers=("perfedsi",),
    preset={"side": False},
)
add_method(
    "shift-perfedsi",
    ShiftAveraging,
    "FedAvg on the regression toy, with side information as inputs (Model 1)",
    label="PerFedSI",
    papers=("perfedsi",),
    preset={"side": True},
)
