"""Lines of a panel: average over trials with its band, level, and diverged trials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fedrepro.plotting import naming, series, style
from fedrepro.plotting.panel_axes import Entry
from fedrepro.plotting.series import Average, FigureData, Trial
from fedrepro.spec import axes
from fedrepro.spec.axes import Reads
from fedrepro.spec.model import Curve, Figure, Panel
from fedrepro.spec.panels import CurvesOptions

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKS = 0.17
"""Distance between markers along a line, as a fraction of the panel's diagonal."""

BAND = 0.18
"""Opacity of a band among at most three."""


@dataclass(frozen=True)
class Line:
    """One curve: its average (None without a healthy trial) and its diverged trials.

    name : its name for readers. label : the name with remarks and what became of its trials. empty : why there is no
    line. fewer : its number of trials, if other curves have more. begins : the first value of each healthy trial, even
    if the axes cannot show it. trials : those drawn as thin lines instead of a band.
    """

    curve: Curve
    look: style.Look
    name: str
    label: str
    average: Average | None
    strays: tuple[Trial, ...]
    empty: str = ""
    fewer: str = ""
    begins: Sequence[float] = ()
    trials: tuple[Trial, ...] = ()

    @property
    def level(self) -> bool:
        """Whether it is a horizontal line at its final value, for a method without rounds."""
        return self.curve.role == "level"

    def values(self) -> list[np.ndarray]:
        """Return the sequences that are drawn: the average and the diverged trials."""
        return [a for a in (*([self.average.mean] if self.average else []), *(t.y for t in self.strays)) if a.size]


def read(panel: Panel, source: FigureData) -> list[Line]:
    """Return the line of every curve of the panel; a curve without results keeps its entry in the legend."""
    how = CurvesOptions.of(panel).average
    x = panel.x if axes.of(panel).along else "round"
    runs = [series.trials(source, c, panel, x="round" if c.role == "level" else x) for c in panel.curves]
    looks = style.looks(panel.curves)
    legends = zip(naming.legends(panel, source.figure), panel.curves, strict=True)
    names = [(name, series.collapsed(c, panel)) for name, c in legends]
    wanted = _wanted(panel, source.figure, max((len(r) for r in runs), default=0))
    return [_line(panel, *parts, how) for parts in zip(panel.curves, looks, names, runs, wanted, strict=True)]


def _wanted(panel: Panel, figure: Figure, most: int) -> list[int]:
    """Return how many trials each curve should have. most : those of the curve with the most."""
    if not figure.more:
        return [most] * len(panel.curves)
    return [min(most, figure.trials_of(curve.setting.series)) for curve in panel.curves]


def _line(
    panel: Panel, curve: Curve, look: style.Look, names: tuple[str, str], runs: list[Trial], wanted: int, how: str
) -> Line:
    log = panel.yscale == "log"
    name, remark = names
    begins = [float(t.y[0]) for t in runs if t.status == "ok" and t.y.size]
    runs = [_visible(counted(t, panel), panel.xscale == "log" and curve.role != "level", log) for t in runs]
    if curve.role == "level":
        runs = [replace(t, x=t.x[-1:] * 0, y=t.y[-1:]) for t in runs]
    strays = tuple(t for t in runs if t.status == "diverged")
    average = series.average(runs, how, log)
    strays_drawn = tuple(t for t in strays if t.x.size)
    if average is None and not strays_drawn:
        why = _why_empty(runs, panel)
        return Line(curve, look, name, f"{name}{remark}: {why}", None, (), why)
    fewer = f"{len(runs)} of {wanted} trials" if len(runs) < wanted else ""
    thin = tuple(t for t in runs if t.status == "ok" and t.x.size) if how == "median-trials" else ()
    return Line(curve, look, name, name + remark + series.trouble(runs), average, strays_drawn, "", fewer, begins, thin)


def counted(trial: Trial, panel: Panel) -> Trial:
    """Return the trial with its rounds numbered from the option ``starts_at``."""
    first = CurvesOptions.of(panel).starts_at if panel.x == "round" else 0
    return replace(trial, x=trial.x + first) if first else trial


def _visible(trial: Trial, logx: bool, logy: bool) -> Trial:
    keep = np.ones(trial.x.size, dtype=bool)
    if logx:
        keep &= trial.x > 0
    if logy:
        keep &= trial.y > 0
    return replace(trial, x=trial.x[keep], y=trial.y[keep])


def _why_empty(runs: Sequence[Trial], panel: Panel) -> str:
    if not runs:
        return "no results"
    statuses = {t.status for t in runs}
    if len(statuses) == 1 and statuses != {"ok"}:
        return statuses.pop()
    if axes.of(panel).reads is Reads.TIMING:
        return "no times"
    return "nothing to draw"


def draw(ax: Axes, line: Line, place: int, among: int = 1, *, band: bool = True, thin: bool = False) -> None:
    """Draw one curve: band, mean with sparse markers, and each diverged trial as a thin line.

    band : with its band, if it has one. thin : as a thin line behind the others. place : its index, which staggers the
    markers. among : the number of curves; with more curves bands are fainter.
    """
    look, average = line.look, line.average
    if line.level:
        if average is not None:
            _draw_level(ax, line, average)
        return
    for trial in line.strays:
        ax.plot(trial.x, trial.y, linewidth=1.0 if average else 1.7, **look.line(), zorder=2.5)
    if average is None:
        return
    for trial in line.trials:
        ax.plot(trial.x, trial.y, color=look.color, linewidth=0.5, alpha=min(0.45, 12 / len(line.trials)), zorder=1.7)
    if average.spread and band:
        ax.fill_between(
            average.x, average.low, average.high, color=look.color, alpha=BAND / max(1.0, among / 3), linewidth=0
        )
    every = (0.03 + 0.045 * (place % 4), MARKS) if average.x.size > 10 else None
    behind = {"linewidth": 0.9, "markersize": 4.0, "zorder": 1.9} if thin else {}
    ax.plot(average.x, average.mean, **(look.line() | look.points() | behind), markevery=every, label=line.label)


def _draw_level(ax: Axes, line: Line, average: Average) -> None:
    if average.spread:
        ax.axhspan(average.low[-1], average.high[-1], color=line.look.color, alpha=0.12, linewidth=0)
    ax.axhline(average.mean[-1], label=line.label, **_level_style(line.look))


def _level_style(look: style.Look) -> dict[str, Any]:
    return {"color": look.color, "linestyle": (0, (8, 2.2)), "linewidth": 1.5}


def entry(line: Line) -> Entry:
    """Return the legend entry of a curve."""
    if line.empty:
        return Entry(line.label)
    if line.level:
        return Entry(line.label, _level_style(line.look))
    if line.average is None:
        return Entry(line.label, {**line.look.line(), "marker": "x", "markeredgewidth": 2.0, "markersize": 7})
    return Entry(line.label, {**line.look.line(), **line.look.points()})
