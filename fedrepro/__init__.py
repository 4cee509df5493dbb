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

_DEFINED_IN = {
    "Samples": "fedrepro.datasets.types",
    "Ratings": "fedrepro.datasets.types",
    "Views": "fedrepro.datasets.types",
    "Images": "fedrepro.datasets.types",
    "SplitRatings": "fedrepro.datasets.own_types",
    "ClientImages": "fedrepro.datasets.own_types",
    "Entries": "fedrepro.datasets.own_types",
    "Measured": "fedrepro.datasets.own_types",
    "Instance": "fedrepro.datasets.imc_instances",
    "Biased": "fedrepro.datasets.biased_regression",
    "Ledger": "fedrepro.ledger",
    "History": "fedrepro.runs.compute.drive",
    "run": "fedrepro.runs.compute.drive",
    "load": "fedrepro.results.frame",
    "Method": "fedrepro.protocols",
    "Problem": "fedrepro.protocols",
}
"""Public names and their modules; the classes of problems and methods are taken from the registry."""


def _registered() -> dict[str, Any]:
    """Return the classes of all problems and methods, by name."""
    from fedrepro import registry

    entries: list[Any] = [*registry.problems().values(), *registry.methods().values()]
    return {entry.cls.__name__: entry.cls for entry in entries}


def __getattr__(name: str) -> Any:
    """Import on first use, so that the command line starts without the numerical libraries."""
    if name == "__all__":
        return ["__version__", *_registered(), *_DEFINED_IN]
    if name in _DEFINED_IN:
        return getattr(importlib.import_module(_DEFINED_IN[name]), name)
    if name[:1].isupper() and name in (classes := _registered()):
        return classes[name]
    raise AttributeError(f"module 'fedrepro' has no attribute '{name}'")


def __dir__() -> list[str]:
    """Return all public names, imported or not."""
    return sorted({*globals(), "__all__", *_registered(), *_DEFINED_IN})
