"""The published numbers of panels of curves, each beside the nearest curve of ours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fedrepro.plotting import lines, series
from fedrepro.plotting.series import Source
from fedrepro.spec import axes
from fedrepro.spec.model import Panel


@dataclass(frozen=True)
class Published:
    """A published number of a panel of curves beside the nearest curve of ours there."""

    panel: str
    label: str
    x: float | None
    value: float
    ours: float
    curve: str
    standing: bool = False  # ours is on a stand-in, so that a difference says nothing


def published(source: Source) -> Iterator[Published]:
    """The published numbers of panels of curves, each with our nearest curve (tables hold theirs themselves)."""
    for panel in source.figure.panels:
        if panel.kind != "curves" or not axes.of(panel).along:
            continue
        for item in panel.published:
            if "y" not in item:
                continue
            places = np.atleast_1d(item["x"]).tolist() if "x" in item else [None]
            for x, y in zip(places, np.atleast_1d(item["y"]).tolist(), strict=True):
                ours, curve = _nearest(source, panel, x, float(y))
                standing = bool(source.stands_in([c for c in panel.curves if c.label == curve]))
                yield Published(panel.id, str(item.get("label", "")), x, float(y), ours, curve, standing)


def _nearest(source: Source, panel: Panel, x: float | None, y: float) -> tuple[float, str]:
    """Value and label of the curve nearest to (x, y), or to the level y at its end; nan where there is none."""
    best, label, distance = float("nan"), "", float("inf")
    for curve in panel.curves:
        level = curve.role == "level"
        runs = series.trials(source, curve, panel, x="round" if level else panel.x)
        average = series.average([lines.counted(run, panel) for run in runs])
        if average is None or level != (x is None) or (x is not None and not average.x[0] <= x <= average.x[-1]):
            continue
        ours = float(average.mean[-1] if x is None else np.interp(x, average.x, average.mean))
        log = panel.yscale == "log" and ours > 0 and y > 0
        far = abs(np.log(ours / y)) if log else abs(ours - y)
        if far < distance:
            best, label, distance = ours, curve.label, far
    return best, label
