"""Panels of curves: mean over trials against rounds, communication or time, with the papers' published numbers.

Options of such a panel: ``variables`` (the divisor of ``bits_per_variable``), ``average`` (``mean`` or ``median`` over
trials), ``lines`` (reference lines ``{"y": 1.5, "label": "..."}`` that are no published numbers), ``zoom`` (y limits
from what lies beyond this share of the x axis, so that the first steep fall does not flatten the rest), ``xlabel`` and
``ylabel``. A panel whose ``x`` is a swept parameter is drawn by ``sweep``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fedrepro.errors import ParameterError
from fedrepro.plotting import data, style
from fedrepro.plotting.data import Average, Entry, Prepared, Source, Trial
from fedrepro.spec.model import Curve, Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as MplFigure

SIZE = (4.3, 3.4)
MARKS = 0.17
"""Distance between markers along a line, as a fraction of the panel's diagonal."""
CROSS: dict[str, Any] = {"marker": "x", "markersize": 8.5, "markeredgewidth": 2.0, "linestyle": "none", "zorder": 6}


@dataclass(frozen=True)
class Line:
    """One curve worked out: its average (None without a healthy trial) and its diverged trials."""

    curve: Curve
    look: style.Look
    label: str
    average: Average | None
    strays: tuple[Trial, ...]
    empty: bool = False

    @property
    def level(self) -> bool:
        """A method without rounds: a horizontal line at its final value."""
        return self.curve.role == "level"

    def values(self) -> list[np.ndarray]:
        """The sequences that are drawn: the average and the diverged trials."""
        return [a for a in (*([self.average.mean] if self.average else []), *(t.y for t in self.strays)) if a.size]


@dataclass(frozen=True)
class Limits:
    """y limits that cut off the curves ``clipped`` so that they do not flatten the others."""

    bottom: float
    top: float
    clipped: frozenset[int] = frozenset()


def prepare(panel: Panel, source: Source) -> Prepared:
    """Work out a panel of curves (or of final values over a swept parameter)."""
    if not data.runs_along(panel):
        from fedrepro.plotting import sweep

        return sweep.prepare(panel, source)
    if panel.x == "bits_per_variable":
        data.variables(panel)
    lines = read(panel, source)
    limits = robust_limits(lines, panel)
    near = zoomed(lines, panel, limits)
    limits = near or limits
    if limits:
        lines = [_say_clipped(line) if i in limits.clipped else line for i, line in enumerate(lines)]
    notes = [f"band: {a.spread}" for a in (line.average for line in lines) if a and a.spread]
    if panel.options.get("average") == "median":
        notes.append("line: median of the trials")
    if any(line.strays for line in lines):
        notes.append("×: diverged")
    if limits and any("▲" in line.label for line in lines):
        notes.append("▲: leaves the axis (largest value in the legend)")
    if near:
        notes.append("the first rounds leave the frame")
    if panel.x == "seconds":
        notes.append("times are those of the machine that ran it")

    def paint(fig: MplFigure, spec: Any, title: str) -> list[Axes]:
        ax = fig.add_subplot(spec)
        finish(ax, panel, title)
        for i, line in enumerate(lines):
            draw_line(ax, line, i)
        draw_published(ax, panel)
        if limits:
            ax.set_ylim(limits.bottom, limits.top)
            _mark_clipped(ax, lines, limits)
        set_limits(ax, panel)
        _mark_diverged(ax, lines)
        if all(line.empty for line in lines):
            nothing(ax)
        return [ax]

    return Prepared(SIZE, paint, (*(entry(line) for line in lines), *published_entries(panel)), tuple(notes))


def read(panel: Panel, source: Source) -> list[Line]:
    """Every curve of the panel with its average; a curve without results keeps its place in the legend."""
    how = str(panel.options.get("average", "mean"))
    x = panel.x if data.runs_along(panel) else "round"
    runs = [data.trials(source, c, panel, x="round" if c.role == "level" else x) for c in panel.curves]
    most = max((len(r) for r in runs), default=0)
    looks = style.looks(panel.curves)
    return [_line(panel, curve, look, r, most, how) for curve, look, r in zip(panel.curves, looks, runs, strict=True)]


def _line(panel: Panel, curve: Curve, look: style.Look, runs: list[Trial], most: int, how: str) -> Line:
    log = panel.yscale == "log"
    runs = [_visible(t, panel.xscale == "log" and curve.role != "level", log) for t in runs]
    if curve.role == "level":
        runs = [replace(t, x=t.x[-1:] * 0, y=t.y[-1:]) for t in runs]
    strays = tuple(t for t in runs if t.status == "diverged")
    failed = sum(t.status == "failed" for t in runs)
    average = data.average(runs, how)
    strays_drawn = tuple(t for t in strays if t.x.size)
    if average is None and not strays_drawn:
        return Line(curve, look, f"{curve.label}: {_why_empty(runs, panel)}", None, (), empty=True)
    label = curve.label + data.count("diverged", len(strays), len(runs))
    label += data.count("failed", failed, len(runs))
    if len(runs) < most:
        label += f" ({len(runs)} of {most} trials)"
    return Line(curve, look, label, average, strays_drawn)


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
    if panel.x == "seconds":
        return "no times"
    return "nothing to draw"


def _say_clipped(line: Line) -> Line:
    assert line.average is not None
    peak = line.average.mean.max()
    return replace(line, label=f"{line.label} (▲ to {f'{peak:,.0f}' if 1e3 <= peak < 1e6 else f'{peak:.3g}'})")


def robust_limits(lines: Sequence[Line], panel: Panel) -> Limits | None:
    """y limits where a blow-up would flatten the other curves; None where matplotlib's own limits serve.

    The core is what lies between the curves' starts, ends and minima (their median start; an end above 50 times that
    is no part of it). A curve is clipped where it rises above the core by more than three times the core's height,
    measured on the axis' own scale, or on a log axis by a factor of more than 50. If every curve does so, it is not a
    blow-up but the shape of the data, and nothing is clipped unless it exceeds 50 times its start.
    """
    if panel.ylim[1] is not None or panel.yscale not in ("linear", "log"):
        return None
    log = panel.yscale == "log"
    moving = [i for i, line in enumerate(lines) if not line.level and line.values()]
    levels = [float(line.average.mean[-1]) for line in lines if line.level and line.average]
    known = [float(v) for item in _marks(panel) for v in np.atleast_1d(item["y"])]
    if not moving:
        return None
    start = float(np.median([lines[i].values()[0][0] for i in moving]))
    ceiling = 50 * start if start > 0 else np.inf
    ends = [float(a.mean[-1]) for i in moving if (a := lines[i].average) and a.mean[-1] <= ceiling]
    lows = [float(values.min()) for i in moving for values in lines[i].values()]
    core = np.array([start, *ends, *lows, *levels, *(v for v in known if v > 0 or not log)])
    scaled = np.log10(core) if log else core
    low, high = float(scaled.min()), float(scaled.max())
    if high <= low:
        return None
    reach = 3 * (high - low)
    bound = high + (min(reach, np.log10(50)) if log else reach)

    def peak(i: int) -> float:
        top = max(float(values.max()) for values in lines[i].values())
        return float(np.log10(top)) if log else top

    blown = [i for i in moving if peak(i) > bound]
    calm = [peak(i) for i in moving if i not in blown]
    far = any(max(v.max() for v in lines[i].values()) > ceiling for i in blown)
    if not blown or (not calm and not far):
        return None
    middles = [float(np.median(a.mean)) for i in blown if (a := lines[i].average)]
    middles = [float(np.log10(m)) if log else m for m in middles]
    top = max([high, *calm, *(m for m in middles if m <= bound)])
    pad = 0.06 * (top - low)
    ends_at = np.array([low - pad, top + pad])
    bottom, top = (10**ends_at if log else ends_at).tolist()
    clipped = [i for i in blown if (a := lines[i].average) and a.mean.max() > top]
    return Limits(bottom, top, frozenset(clipped))


def zoomed(lines: Sequence[Line], panel: Panel, robust: Limits | None) -> Limits | None:
    """y limits from what the curves do after ``options.zoom``, a share of the x axis between 0 and 1.

    The steep fall of the first rounds then leaves the frame, so that the curves can be told apart where they are
    compared. None without the option, with ``ylim``, or where nothing is left to show.
    """
    share = panel.options.get("zoom")
    if share is not None and (not isinstance(share, float) or not 0 < share < 1):
        raise ParameterError(
            "zoom", f"panel '{panel.id}': zoom is a share of the x axis between 0 and 1, not {share!r}"
        )
    averages = [line.average for line in lines if line.average is not None and not line.level and line.average.x.size]
    if share is None or panel.ylim != (None, None) or not averages:
        return None
    start = float(share) * max(float(a.x.max()) for a in averages)
    late = [a.mean[a.x >= start] for a in averages]
    levels = [line.average.mean[-1:] for line in lines if line.level and line.average]
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


def draw_line(ax: Axes, line: Line, place: int) -> None:
    """Draw one curve: band, mean with sparse markers, and each diverged trial as a thin line of its own."""
    look, average = line.look, line.average
    if line.level:
        if average is not None:
            _draw_level(ax, line, average)
        return
    for trial in line.strays:
        ax.plot(trial.x, trial.y, linewidth=1.0 if average else 1.7, **look.line(), zorder=2.5)
    if average is None:
        return
    if average.spread:
        ax.fill_between(average.x, average.low, average.high, color=look.color, alpha=0.16, linewidth=0)
    every = (0.03 + 0.045 * (place % 4), MARKS) if average.x.size > 10 else None
    ax.plot(average.x, average.mean, **look.line(), **look.points(), markevery=every, label=line.label)


def _draw_level(ax: Axes, line: Line, average: Average) -> None:
    if average.spread:
        ax.axhspan(average.low[-1], average.high[-1], color=line.look.color, alpha=0.12, linewidth=0)
    ax.axhline(average.mean[-1], label=line.label, **_level_style(line.look))


def _level_style(look: style.Look) -> dict[str, Any]:
    return {"color": look.color, "linestyle": (0, (8, 2.2)), "linewidth": 1.5}


def entry(line: Line) -> Entry:
    """The legend entry of a curve."""
    if line.empty:
        return Entry(line.label)
    if line.level:
        return Entry(line.label, _level_style(line.look))
    if line.average is None:
        return Entry(line.label, {**line.look.line(), "marker": "x", "markeredgewidth": 2.0, "markersize": 7})
    return Entry(line.label, {**line.look.line(), **line.look.points()})


def _mark_clipped(ax: Axes, lines: Sequence[Line], limits: Limits) -> None:
    for i in limits.clipped:
        average = lines[i].average
        if average is not None:
            peak = average.x[int(np.argmax(average.mean))]
            color = lines[i].look.color
            ax.plot([peak], [limits.top], "^", color=color, markersize=8, clip_on=False, zorder=7)


def _mark_diverged(ax: Axes, lines: Sequence[Line]) -> None:
    """A cross at the last finite value of each diverged trial, or where it leaves the axes for good."""
    bottom, top = ax.get_ylim()
    for line in lines:
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


def _marks(panel: Panel) -> list[Mapping[str, Any]]:
    return [item for item in (*panel.published, *panel.options.get("lines", ())) if "y" in item]


def published_style(panel: Panel) -> list[tuple[Mapping[str, Any], dict[str, Any], str]]:
    """Each published number and reference line with its style and legend text.

    ``{"y", "label"}`` is a horizontal dotted line, ``{"x", "label"}`` a vertical one, ``{"x", "y", "label"}`` a star
    (or several, where x and y are lists); an ``algorithm`` among its keys lends its colour.
    """
    result = []
    for items, prefix, dash in ((panel.published, "paper: ", ":"), (panel.options.get("lines", ()), "", "-.")):
        for item in items:
            color = style.method(str(item["algorithm"]))[0] if "algorithm" in item else style.FAINT
            look: dict[str, Any] = {"color": color, "linestyle": dash, "linewidth": 1.6}
            if "x" in item and "y" in item:
                look = {"color": color, "linestyle": "none", "marker": "*", "markersize": 10}
                look |= {"markeredgecolor": "white", "markeredgewidth": 0.7}
            result.append((item, look, f"{prefix}{item.get('label', '')}".strip().rstrip(":")))
    return result


def published_entries(panel: Panel) -> list[Entry]:
    """Legend entries of the published numbers, each text once."""
    entries = {label: Entry(label, look) for _, look, label in published_style(panel)}
    return list(entries.values())


def draw_published(ax: Axes, panel: Panel) -> None:
    """Draw the published numbers and reference lines of a panel."""
    for item, look, label in published_style(panel):
        if "x" in item and "y" in item:
            ax.plot(np.atleast_1d(item["x"]), np.atleast_1d(item["y"]), label=label, zorder=5, **look)
        elif "y" in item:
            ax.axhline(float(item["y"]), label=label, zorder=1.8, **look)
        elif "x" in item:
            ax.axvline(float(item["x"]), label=label, zorder=1.8, **look)


def finish(ax: Axes, panel: Panel, title: str) -> None:
    """Scales, axis labels and title of a panel."""
    ax.set_xscale(panel.xscale)
    ax.set_yscale(panel.yscale)
    ax.set_xlabel(_wrap(data.axis_label(panel, "x"), SIZE[0]))
    ax.set_ylabel(_wrap(data.axis_label(panel, "y"), SIZE[1]))
    set_title(ax, title, SIZE[0])


def _wrap(label: str, inches: float) -> str:
    return style.wrap(label, inches - 0.75, style.FONT)


def set_title(ax: Axes, title: str, inches: float) -> None:
    """Panel title above the left corner."""
    if title:
        ax.set_title(style.wrap(title, inches - 0.7, 10.0), loc="left", pad=9)


def set_limits(ax: Axes, panel: Panel) -> None:
    """The spec's own limits, and tick labels a reader can read on axes of large numbers and on short log axes."""
    if panel.xlim != (None, None):
        ax.set_xlim(*panel.xlim)
    if panel.ylim != (None, None):
        ax.set_ylim(*panel.ylim)
    far = ax.get_xlim()[1]
    if panel.xscale == "linear" and data.runs_along(panel) and far >= 1e5:
        power = int(np.floor(np.log10(far)))
        ax.xaxis.set_major_formatter(lambda value, _: f"{value / 10.0**power:.4g}")
        ax.set_xlabel(_wrap(f"{data.axis_label(panel, 'x')} / $10^{{{power}}}$", SIZE[0]))
    if panel.yscale == "log":
        _plain_ticks(ax)


def _plain_ticks(ax: Axes) -> None:
    """On a log axis of less than two decades: numbers as they are, and enough of them."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, NullLocator

    bottom, top = ax.get_ylim()
    if bottom <= 0 or top / bottom >= 100:
        return
    if top / bottom < 10:
        ax.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
        ax.yaxis.set_minor_locator(NullLocator())
    else:
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.yaxis.set_minor_formatter(NullFormatter())
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:.4g}")
    ax.set_ylim(bottom, top)


def nothing(ax: Axes) -> None:
    """Say in an empty panel that there is nothing to show."""
    ax.text(0.5, 0.5, "no results", transform=ax.transAxes, ha="center", va="center", fontsize=13, color=style.FAINT)
