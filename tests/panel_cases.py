"""Made-up curves, panels, figures and their results, for tests of drawing and of what is checked before it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fedrepro.plotting import figure as drawing
from fedrepro.plotting import tables
from fedrepro.plotting.series import FigureData
from fedrepro.results.schema import Sidecar
from fedrepro.spec.model import Curve, Figure, Panel, Setting


def curve(algorithm: str, label: str, role: str = "curve", dataset: str = "mnist", **params: object) -> Curve:
    series = " ".join([algorithm, *(f"{k}={v}" for k, v in params.items()), "@", dataset])
    setting = Setting(
        series=series,
        problem="clustering",
        problem_params={},
        dataset=dataset,
        dataset_params={},
        partition="similarity",
        partition_params={"P": 100},
        algorithm=algorithm,
        params=params,
        rounds=500,
        record_every=5,
        record_dense=20,
        metrics=("objective", "accuracy"),
        names={"dataset": dataset, "partition": "noniid"},
    )
    select = {**params, "dataset": dataset, "algorithm": algorithm, "series": series, "label": label}
    return Curve(label, setting, select, role)


def panel(id: str, *lines: Curve, **changes: object) -> Panel:
    given = {"title": "", "kind": "curves", "x": "round", "y": "objective", "xscale": "linear", "yscale": "linear"}
    given |= {"xlim": (None, None), "ylim": (None, None), "curves": lines, **changes}
    return Panel(id=id, **given)  # type: ignore[arg-type]


def figure(*panels: Panel, **changes: object) -> Figure:
    given = {
        "paper": "fedc",
        "figure": "fig5",
        "title": "FedCAvg and FedCGds on MNIST",
        "tier": "paper",
        "path": "x.yaml",
    }
    given |= {"source": "Federated Clustering via Matrix Factorization Models, Fig. 5", "trials": 3}
    given |= {"wanted_trials": 3, "paper_trials": 3}
    return Figure(panels=panels, claims=(), **{**given, **changes})  # type: ignore[arg-type]


def rows(line: Curve, trial: int, rounds, values, metric: str = "objective", status: str = "ok", cost: int = 40000):
    rounds = np.asarray(rounds)
    table = pd.DataFrame({"round": rounds, "value": values, "metric": metric})
    fixed = {"series": line.setting.series, "algorithm": line.setting.algorithm, "trial": trial, "status": status}
    table = table.assign(parameters="", dataset=line.setting.dataset, partition="noniid", **fixed)
    for way, factor in (("uplink_scalars", 1), ("uplink_bits", 32), ("downlink_scalars", 1), ("downlink_bits", 32)):
        table[way] = rounds * cost * factor
    return table


def build(shown: Figure, frame: pd.DataFrame, sidecar: Sidecar, points: pd.DataFrame | None = None) -> Any:
    return drawing.build_from(FigureData(shown, frame, sidecar, points))


def draw(
    shown: Figure, frame: pd.DataFrame, sidecar: Sidecar, stem: Path, formats: tuple[str, ...] = ("png", "pdf"),
    points: pd.DataFrame | None = None,
) -> list[Path]:  # fmt: skip
    return drawing.draw(FigureData(shown, frame, sidecar, points), stem, formats)


def cells(shown: Figure, panel: Panel, frame: pd.DataFrame, sidecar: Sidecar | None = None) -> pd.DataFrame:
    return tables.cells_of(FigureData(shown, frame, sidecar or Sidecar()), panel)
