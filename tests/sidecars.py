"""Sidecars for results that a test writes by hand, as ``fedrepro run`` writes them, but without hashes."""

from __future__ import annotations

from typing import Any

import pandas as pd

from fedrepro.results.consistency import recorded
from fedrepro.results.schema import Sidecar
from fedrepro.spec.model import Figure


def consistent(figure: Figure, frame: pd.DataFrame, /, **facts: Any) -> Sidecar:
    """A sidecar that agrees with the figure and the rows of the CSV, with some facts replaced."""
    trials = frame.groupby("series")["trial"].max()
    datasets = {setting.dataset for setting in figure.settings()}
    agreeing = {
        "figure": f"{figure.paper}/{figure.figure}",
        "tier": figure.tier,
        "csv_sha256": "0" * 64,
        "complete": False,
        "runs": {name: [f"{name} {trial}" for trial in range(1, int(last) + 1)] for name, last in trials.items()},
        "datasets": [{"dataset": name, "state": "none needed"} for name in sorted(datasets)],
        "settings": [recorded(setting) for setting in figure.settings()],
    }
    return Sidecar.parse({"schema": 2, **agreeing, **facts})
