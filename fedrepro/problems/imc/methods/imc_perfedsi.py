r"""PerFedSI on inductive matrix completion: FedAvg on U and V, clients' predictions :math:`U V^T z_m`.

Problem: :math:`\min L(U, V)` (``fedrepro.problems.imc``), an instance of Model 2 (perfedsi (4)) with
:math:`G(e_i) = U^T e_i`, :math:`W(z) = V^T z` and a sum for H. A round: the server sends U and V to m clients, drawn
uniformly, by default without replacement. Each takes tau steps (``factor_averaging``) and sends both back, and the
server averages them. z_m is never sent.

Source: perfedsi section 3 and Appendix C.1 (section 3 says C.3), C.4; docs/derivations/imc-step.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedrepro.ledger import Ledger
from fedrepro.problems.imc.factor_averaging import FactorAveraging, local_steps
from fedrepro.problems.imc.problem import IMC, State
from fedrepro.registry import add_method
from fedrepro.seeds import Rng, streams


@dataclass(frozen=True)
class IMCPerFedSI(FactorAveraging):
    """PerFedSI on the problem ``imc``, with the parameters of ``FactorAveraging``.

    >>> import numpy as np
    >>> from fedrepro import IMC, IMCPerFedSI, Instance, run
    >>> rng = np.random.default_rng(0)
    >>> U, V, Z = rng.standard_normal((6, 2)), rng.standard_normal((3, 2)), rng.standard_normal((8, 3))
    >>> observed = np.array([rng.permutation(6)[:4] for _ in range(8)])
    >>> problem = IMC(Instance(U, V, Z, observed))
    >>> history = run(IMCPerFedSI(eta=0.05, tau=2), problem, rounds=200)
    >>> bool(history["error"][-1] < history["error"][0])
    True
    """

    def rounds(
        self, problem: IMC, rng: Rng, *, ledger: Ledger | None = None, init: Any = None, clients: Any = None
    ) -> Iterator[State]:
        """Yield the state at the initial point and after every round; one object, updated in place.

        init : a ``Start`` or (U, V), (d, r) and (k, r). clients : (rounds, m) ids, instead of draws.
        """
        self.check(M=problem.M)
        ledger = Ledger() if ledger is None else ledger
        draws = streams(rng)
        U, V = problem.start(init, (problem.d, problem.r), (problem.k, problem.r), draws.other)
        state = State(U, V, problem.Z)
        yield state
        for drawn, items in self.draws(problem, draws, clients):
            m = len(drawn)
            ledger.down(U.size + V.size, kind="U, V", clients=m)
            z = problem.Z[drawn]
            Us, g = local_steps(state.U, state.V, z, items, problem.L[items, drawn[:, None]], self.eta)
            ledger.up(U.size + V.size, kind="U, V", clients=m)
            state.U = Us.mean(axis=0)
            state.V = state.V + z.T @ g / m  # the mean of V + z_m g_m^T
            yield state
            if not np.isfinite(state.U).all():
                return


add_method(
    "imc-perfedsi",
    IMCPerFedSI,
    "FedAvg on the factors of M*, with the clients' side information",
    label="PerFedSI",
    papers=("perfedsi",),
)
