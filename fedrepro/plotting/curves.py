"""Panels of curves: mean over trials against rounds, communication or time, with the papers' published numbers.

The y limits keep a blow-up from flattening the other curves, and with the option ``zoom`` the first steep fall too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fedrepro.plotting import canvas, lines
from fedrepro.plotting.canvas import Prepared
from fedrepro.plotting.lines import Line
from fedrepro.plotting.series import Source, Trial
from fedrepro.spec import axes
from fedrepro.spec.axes import Reads
from fedrepro.spec.model import Panel
from fedrepro.spec.panels import CurvesOptions

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as MplFigure

CROSS: dict[str, Any] = {"marker": "x", "markersize": 8.5, "markeredgewidth": 2.0, "linestyle": "none", "zorder": 6}


@dataclass(frozen=True)
class Limits:
    """y limits that cut off the curves ``clipped`` so that they do not flatten the others."""

    bottom: float
    top: float
    clipped: frozenset[int] = frozenset()


def prepare(panel: Panel, source: Source) -> Prepared:
    """Work out a panel of curves along an axis."""
    drawn = lines.read(panel, source)
    limits = robust_limits(drawn, panel)
    near = zoomed(drawn, panel, limits)
    limits = near or limits
    if limits:
        drawn = [_say_clipped(line) if i in limits.clipped else line for i, line in enumerate(drawn)]

    def paint(fig: MplFigure, spec: Any, title: str) -> list[Axes]:
        ax = fig.add_subplot(spec)
        canvas.finish(ax, panel, title)
        for i, line in enumerate(drawn):
            lines.draw(ax, line, i)
        canvas.draw_published(ax, panel)
        if limits:
            ax.set_ylim(limits.bottom, limits.top)
            _mark_clipped(ax, drawn, limits)
        canvas.set_limits(ax, panel)
        _mark_diverged(ax, drawn)
        if all(line.empty for line in drawn):
            canvas.nothing(ax)
        return [ax]

    entries = (*(lines.entry(line) for line in drawn), *canvas.published_entries(panel))
    return Prepared(canvas.SIZE, paint, entries, tuple(_notes(panel, drawn, limits, near is not None)))


def _notes(panel: Panel, drawn: Sequence[Line], limits: Limits | None, near: bool) -> list[str]:
    """What the footer must say of the panel."""
    notes = [f"band: {a.spread}" for a in (line.average for line in drawn) if a and a.spread]
    if CurvesOptions.of(panel).average == "median":
        notes.append("line: median of the trials")
    if any(line.strays for line in drawn):
        notes.append("×: diverged")
    if limits and any("▲" in line.label for line in drawn):
        notes.append("▲: leaves the axis (largest value in the legend)")
    if near:
        notes.append("the first rounds leave the frame")
    if axes.of(panel).reads is Reads.TIMING:
        notes.append("times are those of the machine that ran it")
    return notes


def _say_clipped(line: Line) -> Line:
    assert line.average is not None
    peak = line.average.mean.max()
    return replace(line, label=f"{line.label} (▲ to {f'{peak:,.0f}' if 1e3 <= peak < 1e6 else f'{peak:.3g}'})")


def robust_limits(drawn: Sequence[Line], panel: Panel) -> Limits | None:
    """y limits where a blow-up would flatten the other curves; None where matplotlib's own limits serve.

    The core is what lies between the curves' starts, ends and minima (their median start; an end above 50 times that
    is no part of it). A curve is clipped where it rises above the core by more than three times the core's height,
    measured on the axis' own scale, or on a log axis by a factor of more than 50. If every curve does so, it is not a
    blow-up but the shape of the data, and nothing is clipped unless it exceeds 50 times its start.
    """
    if panel.ylim[1] is not None or panel.yscale not in ("linear", "log"):
        return None
    log = panel.yscale == "log"
    moving = [i for i, line in enumerate(drawn) if not line.level and line.values()]
    levels = [float(line.average.mean[-1]) for line in drawn if line.level and line.average]
    known = canvas.heights(panel)
    if not moving:
        return None
    start = float(np.median([drawn[i].values()[0][0] for i in moving]))
    ceiling = 50 * start if start > 0 else np.inf
    ends = [float(a.mean[-1]) for i in moving if (a := drawn[i].average) and a.mean[-1] <= ceiling]
    lows = [float(values.min()) for i in moving for values in drawn[i].values()]
    core = np.array([start, *ends, *lows, *levels, *(v for v in known if v > 0 or not log)])
    scaled = np.log10(core) if log else core
    low, high = float(scaled.min()), float(scaled.max())
    if high <= low:
        return None
    reach = 3 * (high - low)
    bound = high + (min(reach, np.log10(50)) if log else reach)

    def peak(i: int) -> float:
        top = max(float(values.max()) for values in drawn[i].values())
        return float(np.log10(top)) if log else top

    blown = [i for i in moving if peak(i) > bound]
    calm = [peak(i) for i in moving if i not in blown]
    far = any(max(v.max() for v in drawn[i].values()) > ceiling for i in blown)
    if not blown or (not calm and not far):
        return None
    middles = [float(np.median(a.mean)) for i in blown if (a := drawn[i].average)]
    middles = [float(np.log10(m)) if log else m for m in middles]
    top = max([high, *calm, *(m for m in middles if m <= bound)])
    pad = 0.06 * (top - low)
    ends_at = np.array([low - pad, top + pad])
    bottom, top = (10**ends_at if log else ends_at).tolist()
    clipped = [i for i in blown if (a := drawn[i].average) and a.mean.max() > top]
    return Limits(bottom, top, frozenset(clipped))


def zoomed(drawn: Sequence[Line], panel: Panel, robust: Limits | None) -> Limits | None:
    """y limits from what the curves do beyond the option ``zoom``, a share of the x axis.

    The steep fall of the first rounds then leaves the frame, so that the curves can be told apart where they are
    compared. None without the option, with ``ylim``, or where nothing is left to show.
    """
    share = CurvesOptions.of(panel).zoom
    averages = [line.average for line in drawn if line.average is not None and not line.level and line.average.x.size]
    if share is None or panel.ylim != (None, None) or not averages:
        return None
    start = share * max(float(a.x.max()) for a in averages)
    late = [a.mean[a.x >= start] for a in averages]
    levels = [line.average.mean[-1:] for line in drawn if line.level and line.average]
    shown = np.concatenate([*late, *levels])
    if robust is not None:
        shown = shown[shown <= robust.top]
    if shown.size < 2 or shown.min() >= shown.max():
        return None
    log = panel.yscale == "log"
    low, high = (float(np.log10(v)) if log else float(v) for v in (shown.min(), shown.max()))
    pad = 0.06 * (high - low)
    bottom, top = (10**v if log else v for v in (low - pad, high + pad))
    return Limits(bottom, top, robust.clipped if robust else frozenset())


def _mark_clipped(ax: Axes, drawn: Sequence[Line], limits: Limits) -> None:
    for i in limits.clipped:
        average = drawn[i].average
        if average is not None:
            peak = average.x[int(np.argmax(average.mean))]
            color = drawn[i].look.color
            ax.plot([peak], [limits.top], "^", color=color, markersize=8, clip_on=False, zorder=7)


def _mark_diverged(ax: Axes, drawn: Sequence[Line]) -> None:
    """A cross at the last finite value of each diverged trial, or where it leaves the axes for good."""
    bottom, top = ax.get_ylim()
    for line in drawn:
        for trial in () if line.level else line.strays:
            x, y = _end(trial, bottom, top, ax.get_yscale() == "log")
            ax.plot([x], [y], color=line.look.color, clip_on=False, **CROSS)
    ax.set_ylim(bottom, top)


def _end(trial: Trial, bottom: float, top: float, log: bool) -> tuple[float, float]:
    inside = np.flatnonzero((trial.y >= bottom) & (trial.y <= top))
    if inside.size == 0 or inside[-1] == trial.y.size - 1:
        return float(trial.x[-1]), float(np.clip(trial.y[-1], bottom, top))
    i = int(inside[-1])
    edge = top if trial.y[i + 1] > top else bottom
    a, b, c = (np.log10(v) if log else v for v in (trial.y[i], trial.y[i + 1], edge))
    return float(trial.x[i] + (trial.x[i + 1] - trial.x[i]) * (c - a) / (b - a)), float(edge)
