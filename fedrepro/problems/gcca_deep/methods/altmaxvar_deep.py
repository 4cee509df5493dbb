r"""AltMaxVar-Deep: deep MAX-VAR GCCA by alternating minimization; every message in full precision.

.. math::  \min_{\theta_1, \dots, \theta_I,\ G}\ \sum_{i=1}^I \tfrac12 \|\mathcal{Q}(X_i; \theta_i) - G\|_F^2
           \quad\text{subject to}\quad G^\top G = I_K,\ 1^\top G = 0

A round: node i trains its network on its view with target G (8a) and sends Q(X_i; theta_i); the server computes G, the
polar factor of their centred sum (8b), (15), (16), and sends it. It equals CuteMaxVar-Deep without compression, to the
last bit.

Source: Shrestha and Fu, Sec. V-B.1 (the deep baseline, of the objective of Benton et al., 2019).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fedrepro.compression.compressors import Identity
from fedrepro.ledger import Ledger
from fedrepro.multiview import federated
from fedrepro.problems.gcca_deep import deep_nodes
from fedrepro.problems.gcca_deep.problem import DeepGCCA
from fedrepro.registry import add_method
from fedrepro.seeds import Rng


@dataclass(frozen=True)
class AltMaxVarDeep(deep_nodes.DeepParameters):
    """AltMaxVar-Deep; its parameters are those of ``DeepParameters`` (Sec. V-B.2).

    >>> import numpy as np
    >>> from fedrepro import AltMaxVarDeep, DeepGCCA, run
    >>> rng = np.random.default_rng(0)
    >>> views = [rng.standard_normal((24, 3)) for _ in range(2)]
    >>> problem = DeepGCCA(views, K=2, labels=np.arange(24) % 2)
    >>> history = run(AltMaxVarDeep(hidden=(4,), T=1, b=12), problem, rounds=3, metrics=["cost"])
    >>> history["cost"].shape, history.state.G.shape
    ((4,), (24, 2))
    """

    def rounds(
        self, problem: DeepGCCA, rng: Rng, *, ledger: Ledger | None = None, init: Any = None, clients: Any = None
    ) -> Iterator[federated.State]:
        """Yield the state at the initial point and after every round; ``init`` as for ``CuteMaxVarDeep``."""
        return deep_nodes.rounds(self, federated.Sending(Identity(), Identity()), problem, rng, ledger, init)


add_method(
    "altmaxvar-deep",
    AltMaxVarDeep,
    "federated deep MAX-VAR GCCA by alternating minimization, every message in full precision",
    label="AltMaxVar-Deep",
    papers=("gcca",),
    look=("blue", "v"),
)
