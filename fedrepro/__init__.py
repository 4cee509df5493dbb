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
    "Clustering": "fedrepro.problems.clustering.problem",
    "Completion": "fedrepro.problems.completion.problem",
    "SplitCompletion": "fedrepro.problems.completion.problem_split",
    "GCCA": "fedrepro.problems.gcca.problem",
    "DeepGCCA": "fedrepro.problems.gcca_deep.problem",
    "IMC": "fedrepro.problems.imc.problem",
    "ObservedIMC": "fedrepro.problems.imc.problem_observed",
    "Personal": "fedrepro.problems.personal.problem",
    "PersonalSide": "fedrepro.problems.personal.problem_given_side",
    "Regression": "fedrepro.problems.shift.problem_regression",
    "Shift": "fedrepro.problems.shift.problem",
    "BEL": "fedrepro.problems.clustering.methods.bel",
    "CAL": "fedrepro.problems.clustering.methods.cal",
    "FedMAvg": "fedrepro.problems.clustering.methods.fedmavg",
    "FedMGS": "fedrepro.problems.clustering.methods.fedmgs",
    "FedPALM": "fedrepro.problems.clustering.methods.fedpalm",
    "KMeansPlusPlus": "fedrepro.problems.clustering.methods.kmeans",
    "KMeansParallel": "fedrepro.problems.clustering.methods.kmeans_parallel",
    "FedMAvgQuantized": "fedrepro.problems.clustering.methods.quantized",
    "FedMGSQuantized": "fedrepro.problems.clustering.methods.quantized",
    "CentralizedSNCP": "fedrepro.problems.clustering.methods.sncp",
    "FedMAvgSNCP": "fedrepro.problems.clustering.methods.sncp",
    "FedMGSSNCP": "fedrepro.problems.clustering.methods.sncp",
    "TSNE": "fedrepro.problems.clustering.methods.tsne",
    "ALS": "fedrepro.problems.completion.methods.als",
    "FedMAvgMC": "fedrepro.problems.completion.methods.fedmavg_mc",
    "FedMCADMM": "fedrepro.problems.completion.methods.fedmc_admm",
    "AltMaxVar": "fedrepro.problems.gcca.methods.altmaxvar",
    "CuteMaxVar": "fedrepro.problems.gcca.methods.cutemaxvar",
    "MVLSA": "fedrepro.problems.gcca.methods.mvlsa",
    "Optimal": "fedrepro.problems.gcca.methods.optimal",
    "AltMaxVarDeep": "fedrepro.problems.gcca_deep.methods.altmaxvar_deep",
    "CuteMaxVarDeep": "fedrepro.problems.gcca_deep.methods.cutemaxvar_deep",
    "RawView": "fedrepro.problems.gcca_deep.methods.raw_view",
    "IMCPerFedSI": "fedrepro.problems.imc.methods.imc_perfedsi",
    "IMCPlain": "fedrepro.problems.imc.methods.imc_plain",
    "PersonalAveraging": "fedrepro.problems.personal.methods.averaging",
    "Ditto": "fedrepro.problems.personal.methods.ditto",
    "PerFedSIConcat": "fedrepro.problems.personal.methods.perfedsi",
    "PerFedSIMask": "fedrepro.problems.personal.methods.perfedsi",
    "ShiftAveraging": "fedrepro.problems.shift.methods.gradient_descent",
    "ShiftExact": "fedrepro.problems.shift.methods.least_squares",
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
