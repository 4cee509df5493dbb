"""The published numbers of panels of curves, each with our nearest curve."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fedrepro.plotting import lines, series
from fedrepro.plotting.series import Average, FigureData
from fedrepro.spec import axes
from fedrepro.spec.model import Curve, Panel


@dataclass(frozen=True)
class Published:
    """A published number of a panel of curves, with our nearest curve."""

    panel: str
    label: str
    x: float | None
    value: float
    ours: float
    curve: str
    standing: bool = False  # ours is on a stand-in, so the difference has no meaning

    @property
    def cells(self) -> tuple[str, ...]:
        """Its row of a table: panel, label, x, the paper's value, ours, the difference, our nearest curve."""
        x = "end" if self.x is None else f"{self.x:g}"
        ours = "none there" if np.isnan(self.ours) else f"{self.ours:.4g}"
        comparable = self.value and np.isfinite(self.ours) and not self.standing
        off = f"{100 * (self.ours / self.value - 1):+.0f} %" if comparable else ""
        return self.panel, self.label, x, f"{self.value:.4g}", ours, off, self.curve


def published(source: FigureData) -> Iterator[Published]:
    """Yield the published numbers of panels of curves, each with our nearest curve (tables contain their own)."""
    for panel in source.figure.panels:
        if panel.kind != "curves" or not axes.of(panel).along or not any("y" in item for item in panel.published):
            continue
        averages = [_average(source, panel, curve) for curve in panel.curves]
        for item in panel.published:
            if "y" not in item:
                continue
            places = np.atleast_1d(item["x"]).tolist() if "x" in item else [None]
            for x, y in zip(places, np.atleast_1d(item["y"]).tolist(), strict=True):
                ours, curve = _nearest(panel, averages, x, float(y))
                standing = bool(source.stands_in([c for c in panel.curves if c.label == curve]))
                yield Published(panel.id, str(item.get("label", "")), x, float(y), ours, curve, standing)


def _average(source: FigureData, panel: Panel, curve: Curve) -> Average | None:
    """Return a curve as it is drawn."""
    runs = series.trials(source, curve, panel, x="round" if curve.role == "level" else panel.x)
    return series.average([lines.counted(run, panel) for run in runs])


def _nearest(panel: Panel, averages: Sequence[Average | None], x: float | None, y: float) -> tuple[float, str]:
    """Return value and label of the curve nearest to (x, y), or to the level y at its end; nan if there is none."""
    best, label, distance = float("nan"), "", float("inf")
    for curve, average in zip(panel.curves, averages, strict=True):
        level = curve.role == "level"
        if average is None or level != (x is None) or (x is not None and not average.x[0] <= x <= average.x[-1]):
            continue
        ours = float(average.mean[-1] if x is None else np.interp(x, average.x, average.mean))
        log = panel.yscale == "log" and ours > 0 and y > 0
        far = abs(np.log(ours / y)) if log else abs(ours - y)
        if far < distance:
            best, label, distance = ours, curve.label, far
    return best, label
