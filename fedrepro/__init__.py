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
    "Completion": "fedrepro.problems.completion",
    "SplitCompletion": "fedrepro.problems.completion_split",
    "GCCA": "fedrepro.problems.gcca",
    "DeepGCCA": "fedrepro.problems.gcca_deep",
    "IMC": "fedrepro.problems.imc",
    "ObservedIMC": "fedrepro.problems.imc_observed",
    "Personal": "fedrepro.problems.personal",
    "PersonalSide": "fedrepro.problems.personal_side",
    "Regression": "fedrepro.problems.regression",
    "Shift": "fedrepro.problems.shift",
    "BEL": "fedrepro.algorithms.clustering.bel",
    "CAL": "fedrepro.algorithms.clustering.cal",
    "FedMAvg": "fedrepro.algorithms.clustering.fedmavg",
    "FedMGS": "fedrepro.algorithms.clustering.fedmgs",
    "FedPALM": "fedrepro.algorithms.clustering.fedpalm",
    "KMeansPlusPlus": "fedrepro.algorithms.clustering.kmeans",
    "KMeansParallel": "fedrepro.algorithms.clustering.kmeans_parallel",
    "FedMAvgQuantized": "fedrepro.algorithms.clustering.quantized",
    "FedMGSQuantized": "fedrepro.algorithms.clustering.quantized",
    "CentralizedSNCP": "fedrepro.algorithms.clustering.sncp",
    "FedMAvgSNCP": "fedrepro.algorithms.clustering.sncp",
    "FedMGSSNCP": "fedrepro.algorithms.clustering.sncp",
    "TSNE": "fedrepro.algorithms.clustering.tsne",
    "ALS": "fedrepro.algorithms.completion.als",
    "FedMAvgMC": "fedrepro.algorithms.completion.fedmavg_mc",
    "FedMCADMM": "fedrepro.algorithms.completion.fedmc_admm",
    "AltMaxVar": "fedrepro.algorithms.gcca.altmaxvar",
    "CuteMaxVar": "fedrepro.algorithms.gcca.cutemaxvar",
    "MVLSA": "fedrepro.algorithms.gcca.mvlsa",
    "Optimal": "fedrepro.algorithms.gcca.optimal",
    "AltMaxVarDeep": "fedrepro.algorithms.gcca_deep.altmaxvar_deep",
    "CuteMaxVarDeep": "fedrepro.algorithms.gcca_deep.cutemaxvar_deep",
    "RawView": "fedrepro.algorithms.gcca_deep.raw_view",
    "IMCPerFedSI": "fedrepro.algorithms.imc.imc_perfedsi",
    "IMCPlain": "fedrepro.algorithms.imc.imc_plain",
    "PersonalAveraging": "fedrepro.algorithms.personal.averaging",
    "Ditto": "fedrepro.algorithms.personal.ditto",
    "PerFedSIConcat": "fedrepro.algorithms.personal.perfedsi",
    "PerFedSIMask": "fedrepro.algorithms.personal.perfedsi",
    "ShiftAveraging": "fedrepro.algorithms.shift.gradient_descent",
    "ShiftExact": "fedrepro.algorithms.shift.least_squares",
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
    "History": "fedrepro.runs.drive",
    "run": "fedrepro.runs.drive",
    "Method": "fedrepro.protocols",
    "Problem": "fedrepro.protocols",
}
"""Public names: where they are defined. A test names what is registered and missing here."""

__all__ = ["__version__", *_WHERE]


def __getattr__(name: str) -> Any:
    """Import on first use, so that the command line starts without the numerical libraries."""
    if name in _WHERE:
        return getattr(importlib.import_module(_WHERE[name]), name)
    raise AttributeError(f"module 'fedrepro' has no attribute '{name}'")


def __dir__() -> list[str]:
    """What there is, imported or not."""
    return sorted({*globals(), *__all__})
