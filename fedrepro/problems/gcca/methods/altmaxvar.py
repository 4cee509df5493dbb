r"""AltMaxVar: alternating minimization for MAX-VAR GCCA; every message in full precision.

.. math::  \min_{Q_1, \dots, Q_I,\ G^\top G = I_K}\ \sum_{i=1}^I \tfrac12 \|X_i Q_i - G\|_F^2

A round: node i takes T (stochastic) gradient steps on (3a) and sends X_i Q_i; the server computes G, the polar factor
of their sum (3b), (9), (10), and sends it. It equals CuteMaxVar without compression, to the last bit.

Source: Fu et al., Scalable and flexible multiview MAX-VAR canonical correlation analysis, IEEE TSP 65(16), 2017, as
used by Shrestha and Fu, Sec. II-A and V-A.2; docs/derivations/altmaxvar-cost.md.

The paper's text uses the full gradient, except for Fig. 9; the authors' code uses CuteMaxVar's minibatches, except for
Figs. 3 and 6 (discrepancy gcca.4): set b.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from fedrepro.compression.compressors import Identity
from fedrepro.ledger import Ledger
from fedrepro.multiview import federated
from fedrepro.parameters import AtMost, Number, Whole
from fedrepro.problems.gcca import linear_nodes
from fedrepro.problems.gcca.problem import GCCA
from fedrepro.protocols import Method
from fedrepro.registry import add_method
from fedrepro.seeds import Rng


@dataclass(frozen=True)
class AltMaxVar(Method):
    """AltMaxVar, with the parameters of ``CuteMaxVar`` except those of the compression.

    T : gradient steps per node and round.
    b : rows per minibatch, 1 .. J, drawn without replacement; None for the full gradient. b = J computes the full
        gradient at the cost of a minibatch of all rows (for time axes).
    start : ``warm``, the MVLSA solution of rank m; ``randn``, Q_i normal with deviation ``randn_std`` and G the polar
        factor of sum_i X_i Q_i; ``randn-raw``, the same Q_i and G iid N(0, 1), not orthonormal, as in the authors'
        code.
    m : rank of the warm start, K <= m <= rank of every view.
    rho : 1 / alpha_G, the weight of the proximal term; 0 for none (discrepancy gcca.3).
    unbiased : whether the stochastic gradient has the factor J / b (discrepancy gcca.9).
    step : alpha_i in units of 1 / lambda_max; 2 is the gradient of ||.||^2 without its half
        (discrepancy gcca.9).
    center : what is centred: ``none``; ``sum``, the server's sum, as in (15) (discrepancy gcca.11); ``estimate``,
        Mhat_i at both ends.
    randn_std : deviation of a ``randn`` start; None for 1/sqrt(J)
        (docs/derivations/initial-points.md#gcca).

    >>> import numpy as np
    >>> from fedrepro import GCCA, AltMaxVar, run
    >>> rng = np.random.default_rng(0)
    >>> common = rng.standard_normal((40, 2))
    >>> views = [common @ rng.standard_normal((2, 5)) + 0.1 * rng.standard_normal((40, 5)) for _ in range(3)]
    >>> problem = GCCA(views, K=2)
    >>> history = run(AltMaxVar(T=10, m=5), problem, rounds=30, metrics=["ratio"])
    >>> bool(history["ratio"][-1] < 1.01)  # cost over the optimum
    True
    """

    T: Annotated[int, Whole()] = 10
    b: Annotated[int | None, Whole()] = None
    start: Annotated[str, linear_nodes.STARTS] = "warm"
    m: Annotated[int, Whole(), AtMost("N", "columns"), AtMost("rank", "rows or columns of a view")] = 10
    rho: Annotated[float, Number(least=0.0)] = 0.0
    unbiased: bool = True
    step: Annotated[float, Number(above=0.0)] = 1.0
    center: Annotated[str, federated.CENTERINGS] = "none"
    randn_std: Annotated[float | None, Number(above=0.0)] = None

    def check(self, *, J: int | None = None, N: int | None = None, K: int | None = None, **_: Any) -> None:
        """Raise ParameterError if the parameters cannot work for views (J, N) and K."""
        linear_nodes.check_shape(self, J, N, K)

    def collapsed(self, **facts: Any) -> bool:
        """Whether one map computes the T full gradients of a round: dense views of at most 512 columns."""
        return linear_nodes.collapsed(self, facts)

    cost = staticmethod(linear_nodes.cost)

    def rounds(
        self, problem: GCCA, rng: Rng, *, ledger: Ledger | None = None, init: Any = None, clients: Any = None
    ) -> Iterator[federated.State]:
        """Yield the state at the initial point and after every round, without end; ``init`` as for ``CuteMaxVar``."""
        return linear_nodes.rounds(self, federated.Sending(Identity(), Identity()), problem, rng, ledger, init)


add_method(
    "altmaxvar",
    AltMaxVar,
    "federated MAX-VAR GCCA by alternating minimization, every message in full precision",
    label="AltMaxVar",
    papers=("gcca",),
    look=("blue", "v"),
)
