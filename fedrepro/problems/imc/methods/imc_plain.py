r"""FedAvg for matrix completion without side information: the baseline of the simulation of ``perfedsi``.

Problem: :math:`\min L(U, V)` (``fedrepro.problems.imc``) without Z. The paper says only "solving the original problem
(vanilla FedAvg)". There are three readings (discrepancy perfedsi.12):

* ``N1``: factorize L* itself, :math:`U V^T` with a row of V for each client: the same program with Z = I. V is averaged
  like any parameter, so row m, which only client m moves, moves by that client's step over the number of clients drawn;
* ``N2``: the same, but row m of V stays with client m and moves in full;
* ``N3``: one vector u for all clients, no personalisation: U (d, 1), V fixed at 1.

Source: perfedsi Appendix C.4; docs/derivations/imc-instances.md#without-side-information.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from fedrepro.errors import ParameterError
from fedrepro.ledger import Ledger
from fedrepro.parameters import OneOf
from fedrepro.problems.imc.factor_averaging import FactorAveraging, local_steps
from fedrepro.problems.imc.problem import IMC, State
from fedrepro.registry import add_method
from fedrepro.seeds import Rng, streams

READINGS = ("N1", "N2", "N3")


@dataclass(frozen=True)
class IMCPlain(FactorAveraging):
    """FedAvg without side information, with the parameters of ``FactorAveraging`` and the reading.

    reading : reading of the paper's "vanilla FedAvg": ``N1``, L* factorized with V averaged; ``N2``, row m of V stays
    with client m; ``N3``, one vector u for all clients.

    >>> import numpy as np
    >>> from fedrepro import IMC, IMCPlain, Instance, run
    >>> rng = np.random.default_rng(0)
    >>> U, V, Z = rng.standard_normal((6, 2)), rng.standard_normal((3, 2)), rng.standard_normal((8, 3))
    >>> observed = np.array([rng.permutation(6)[:4] for _ in range(8)])
    >>> problem = IMC(Instance(U, V, Z, observed))
    >>> history = run(IMCPlain(reading="N1", eta=0.05, tau=2), problem, rounds=200)
    >>> bool(history["error"][-1] < history["error"][0])
    True
    """

    reading: Annotated[str, OneOf(*READINGS)] = "N1"

    def __post_init__(self) -> None:
        """Raise ParameterError where a value cannot work."""
        super().__post_init__()
        if self.replacement and self.reading == "N2":
            raise ParameterError("replacement", "row m stays with client m in reading N2, which cannot take part twice")

    def rounds(
        self, problem: IMC, rng: Rng, *, ledger: Ledger | None = None, init: Any = None, clients: Any = None
    ) -> Iterator[State]:
        """Yield the state at the initial point and after every round; one object, updated in place.

        init : a ``Start`` or (U, V), (d, r) and (M, r), with N3 (d, 1) and (1, 1). clients : (rounds, m) ids,
        instead of draws.
        """
        self.check(M=problem.M)
        ledger = Ledger() if ledger is None else ledger
        draws = streams(rng)
        state = self._start(problem, init, draws.other)
        sent, kind = (state.U.size, "U") if self.reading != "N1" else (state.U.size + state.V.size, "U, V")
        yield state
        for drawn, items in self.draws(problem, draws, clients):
            m = len(drawn)
            ledger.down(sent, kind=kind, clients=m)
            z, targets = state.Z[drawn], problem.L[items, drawn[:, None]]
            Us, g = local_steps(state.U, state.V, z, items, targets, self.eta, learn_V=self.reading != "N3")
            ledger.up(sent, kind=kind, clients=m)
            state.U = Us.mean(axis=0)
            if self.reading != "N3":
                state.V = state.V + z.T @ g / (m if self.reading == "N1" else 1)
            yield state
            if not np.isfinite(state.U).all():
                return

    def _start(self, problem: IMC, init: Any, rng: Rng) -> State:
        if self.reading == "N3":
            U, V = problem.start(init, (problem.d, 1), (1, 1), rng)
            return State(U, np.ones_like(V), np.ones((problem.M, 1)))
        U, V = problem.start(init, (problem.d, problem.r), (problem.M, problem.r), rng)
        return State(U, V, np.eye(problem.M))


add_method(
    "imc-plain",
    IMCPlain,
    "FedAvg on the factors of L* itself, in three readings of the paper",
    label="FedAvg without side information",
    papers=("perfedsi",),
    look=("blue", "p"),
)
