r"""CuteMaxVar-Deep: federated deep MAX-VAR GCCA that sends only quantized changes, in both directions.

.. math::  \min_{\theta_1, \dots, \theta_I,\ G}\ \sum_{i=1}^I \tfrac12 \|\mathcal{Q}(X_i; \theta_i) - G\|_F^2
           \quad\text{subject to}\quad G^\top G = I_K,\ 1^\top G = 0

Node i holds X_i (J, N_i), a network theta_i and an estimate Ghat of G; the server holds G (J, K) and estimates Mhat_i
of M_i = Q(X_i; theta_i). A round:

1. node i trains its network on 1/2 ||Q(X_i; theta_i) - Ghat||_F^2 (11) by minibatches and Adam;
2. it sends C(M_i - Mhat_i) (12), M_i over all rows with running batch-norm statistics; both ends add it to Mhat_i (13);
3. the server computes G, the polar factor of the centred sum of Mhat_i, plus G / alpha_G (15), (16);
4. it sends C(G - Ghat) (17), and all ends add it to Ghat.

Source: Shrestha and Fu, Algorithm 1 and Sec. V-B;
docs/derivations/error-feedback.md.

The federated loop is in ``multiview.federated``, the node in ``deep_nodes``, the compressor C in ``compression``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from fedrepro.compression.compressors import BITS, SCALES, SHARES
from fedrepro.ledger import Ledger
from fedrepro.multiview import federated
from fedrepro.problems.gcca_deep import deep_nodes
from fedrepro.problems.gcca_deep.problem import DeepGCCA
from fedrepro.registry import add_method
from fedrepro.seeds import Rng


@dataclass(frozen=True)
class CuteMaxVarDeep(deep_nodes.DeepParameters):
    """CuteMaxVar-Deep, with the parameters of ``DeepParameters`` and those of the messages (Sec. V-B).

    q : bits per entry; None sends in full, and the method is AltMaxVar-Deep.
    error_feedback : whether to send C(M_i - Mhat_i) instead of only the change since the last round.
    directions : ``both``, or ``uplink``: G is sent in full and nodes train on the exact G, as the released program for
        EHR does (discrepancy gcca.13).
    u : the divisor u of (20), at least 1, or ``bound`` (Fact 1).
    compressor : ``quantizer``, or ``top-k``, which sends the largest entries in full (not in the paper).
    kept : share of the entries that top-k sends.

    >>> import numpy as np
    >>> from fedrepro import CuteMaxVarDeep, DeepGCCA, run
    >>> rng = np.random.default_rng(0)
    >>> views = [rng.standard_normal((24, 3)) for _ in range(2)]
    >>> problem = DeepGCCA(views, K=2, labels=np.arange(24) % 2)
    >>> history = run(CuteMaxVarDeep(hidden=(4,), T=1, b=12, q=3), problem, rounds=3, metrics=["cost"])
    >>> bool(history["uplink_bits"][-1] < 32 * history["uplink_scalars"][-1])
    True
    """

    q: Annotated[int | None, BITS] = 3
    error_feedback: bool = True
    directions: Annotated[str, federated.DIRECTIONS] = "both"
    u: Annotated[float | str, SCALES] = 1.0
    compressor: Annotated[str, federated.COMPRESSORS] = "quantizer"
    kept: Annotated[float, SHARES] = 0.1

    def rounds(
        self, problem: DeepGCCA, rng: Rng, *, ledger: Ledger | None = None, init: Any = None, clients: Any = None
    ) -> Iterator[federated.State]:
        """Yield the state at the initial point and after every round, without end. All nodes take part in every round.

        ``init``: ``NetStart`` of ``fedrepro.problems.gcca_deep.problem``, or one network per view
        (``fedrepro.nets.mlp``).
        """
        return deep_nodes.rounds(self, self._sending(), problem, rng, ledger, init)

    def _sending(self) -> federated.Sending:
        return federated.sending(self.q, self.compressor, self.kept, self.u, self.directions, self.error_feedback)


add_method(
    "cutemaxvar-deep",
    CuteMaxVarDeep,
    "federated deep MAX-VAR GCCA; quantized changes both ways, error feedback, a network at every node",
    label="CuteMaxVar-Deep",
    papers=("gcca",),
    look=("vermillion", "^"),
)
