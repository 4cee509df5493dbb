"""fedrepro: does this federated method do what its paper says?

From Python, a problem is held in memory and a method runs on it::

    from fedrepro import Clustering, FedMGS, run
    history = run(FedMGS(m=3, Q1=10, Q2=100), Clustering(X, client, K=5), rounds=60)

From the command line, ``fedrepro run SPEC`` computes a figure and ``fedrepro plot`` draws it.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_WHERE = {
    "Clustering": "fedrepro.problems.clustering",
    "FedMAvg": "fedrepro.algorithms.clustering.fedmavg",
    "FedMGS": "fedrepro.algorithms.clustering.fedmgs",
    "FedPALM": "fedrepro.algorithms.clustering.fedpalm",
    "History": "fedrepro.runs.drive",
    "run": "fedrepro.runs.drive",
}
__all__ = ["__version__", *_WHERE]


def __getattr__(name: str) -> Any:
    """Import on first use, so that the command line starts without the numerical libraries."""
    if name in _WHERE:
        return getattr(importlib.import_module(_WHERE[name]), name)
    raise AttributeError(f"module 'fedrepro' has no attribute '{name}'")
