r"""CuteMaxVar: federated MAX-VAR GCCA that sends only quantized changes, in both directions.

.. math::  \min_{Q_1, \dots, Q_I,\ G^\top G = I_K}\ \sum_{i=1}^I \tfrac12 \|X_i Q_i - G\|_F^2

Node i holds X_i (J, N_i), Q_i (N_i, K) and an estimate Ghat of G; the server holds G (J, K) and estimates Mhat_i of
M_i = X_i Q_i. A round:

1. node i takes T (stochastic) gradient steps on 1/2 ||X_i Q_i - Ghat||_F^2 (11), step alpha_i = 1/lambda_max(X_i'X_i);
2. it sends C(X_i Q_i - Mhat_i) (12), and both ends add it to Mhat_i (13);
3. the server computes G, the polar factor of sum_i Mhat_i + G / alpha_G (15), (16);
4. it sends C(G - Ghat) (17), and all ends add it to Ghat.

Source: Shrestha and Fu, Algorithm 1;
docs/derivations/error-feedback.md and docs/derivations/gcca-steps.md.

The loop is in ``multiview.federated``, the linear node in ``linear_nodes``, the compressor C in ``compression``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from fedrepro.compression.compressors import BITS, SCALES, SHARES
from fedrepro.ledger import Ledger
from fedrepro.multiview import federated
from fedrepro.parameters import AtMost, Number, Whole
from fedrepro.problems.gcca import linear_nodes
from fedrepro.problems.gcca.problem import GCCA
from fedrepro.protocols import Method
from fedrepro.registry import add_method
from fedrepro.seeds import Rng


@dataclass(frozen=True)
class CuteMaxVar(Method):
    """CuteMaxVar for the linear problem, by default without minibatches.

    The paper leaves T, rho, center and the factors of the gradient open, or its program differs: the defaults are
    chosen in discrepancy gcca.2, gcca.3, gcca.9 and gcca.11.

    q : bits per entry; None sends in full, and the method is AltMaxVar.
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
    error_feedback : whether to send C(X_i Q_i - Mhat_i) instead of only the change since the last round.
    directions : ``both``, or ``uplink``: G is sent in full and nodes train on the exact G (discrepancy gcca.13).
    u : the divisor u of (20), at least 1, or ``bound`` (Fact 1).
    compressor : ``quantizer``, or ``top-k``, which sends the largest entries in full (not in the paper).
    kept : share of the entries that top-k sends.
    randn_std : deviation of a ``randn`` start; None for 1/sqrt(J)
        (docs/derivations/initial-points.md#gcca).

    >>> import numpy as np
    >>> from fedrepro import GCCA, CuteMaxVar, run
    >>> rng = np.random.default_rng(0)
    >>> common = rng.standard_normal((40, 2))
    >>> views = [common @ rng.standard_normal((2, 5)) + 0.1 * rng.standard_normal((40, 5)) for _ in range(3)]
    >>> problem = GCCA(views, K=2)
    >>> history = run(CuteMaxVar(q=3, T=10, m=5), problem, rounds=30, metrics=["ratio"])
    >>> bool(history["ratio"][-1] < 1.1)  # cost over the optimum, with 3 bits a number
    True
    """

    q: Annotated[int | None, BITS] = 3
    T: Annotated[int, Whole()] = 10
    b: Annotated[int | None, Whole()] = None
    start: Annotated[str, linear_nodes.STARTS] = "warm"
    m: Annotated[int, Whole(), AtMost("N", "columns"), AtMost("rank", "rows or columns of a view")] = 10
    rho: Annotated[float, Number(least=0.0)] = 0.0
    unbiased: bool = True
    step: Annotated[float, Number(above=0.0)] = 1.0
    center: Annotated[str, federated.CENTERINGS] = "none"
    error_feedback: bool = True
    directions: Annotated[str, federated.DIRECTIONS] = "both"
    u: Annotated[float | str, SCALES] = 1.0
    compressor: Annotated[str, federated.COMPRESSORS] = "quantizer"
    kept: Annotated[float, SHARES] = 0.1
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
        """Yield the state at the initial point and after every round, without end. All nodes take part in every round.

        ``init``: ``Factors``, an explicit initial point, or ``RandomStart`` (both of
        ``fedrepro.problems.gcca.problem``).
        """
        return linear_nodes.rounds(self, self._sending(), problem, rng, ledger, init)

    def _sending(self) -> federated.Sending:
        return federated.sending(self.q, self.compressor, self.kept, self.u, self.directions, self.error_feedback)


add_method(
    "cutemaxvar",
    CuteMaxVar,
    "federated MAX-VAR GCCA; quantized changes both ways, error feedback, optional proximal server step",
    label="CuteMaxVar",
    papers=("gcca",),
    look=("vermillion", "^"),
)
