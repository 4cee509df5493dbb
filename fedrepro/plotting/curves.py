"""Panels of curves: mean over trials against rounds, communication or time, with the papers' published numbers.

``y_limits`` decides what the y axis shows. A strip above the panel names the curves that leave it, and how far.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fedrepro.plotting import lines, naming, panel_axes, style
from fedrepro.plotting.lines import Line
from fedrepro.plotting.panel_axes import LABELS, ROOM, Prepared, Room
from fedrepro.plotting.series import FigureData, Trial
from fedrepro.plotting.y_limits import Frame, frame
from fedrepro.spec import axes
from fedrepro.spec.axes import Reads
from fedrepro.spec.model import Panel
from fedrepro.spec.panels import CurvesOptions

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

CROSS: dict[str, Any] = {"marker": "x", "markersize": 8.5, "markeredgewidth": 2.0, "linestyle": "none", "zorder": 6}
MOST_TIMED = 6
"""Largest number of curves over time that are drawn with bands, which are wide because times differ between trials."""
STRIP = 0.165
"""Height in inches of a line of the strip above a panel that names the curves that leave it."""

Leaving = tuple[Line, str]
"""A curve that leaves the frame, and its text in the strip."""


def prepare(panel: Panel, source: FigureData, room: Room = ROOM) -> Prepared:
    """Prepare a panel of curves along an axis."""
    drawn = lines.read(panel, source)
    alike = [other for other in source.figure.panels if other is not panel and _same_curves(panel, other)]
    limits = _common(
        frame(drawn, panel), [frame(lines.read(other, source), other) for other in alike if _same_y(panel, other)]
    )
    banded = axes.of(panel).reads is not Reads.TIMING or len(drawn) <= MOST_TIMED
    leaving = _leaving(drawn, limits, panel)
    widths = [style.width(f"▲ {text}", room.tiny) + 0.2 for _, text in leaving]
    rows = style.rows_of(widths, room.width - LABELS) if room.above else []
    strip = [[leaving[i] for i in row] for row in rows]

    def draw(ax: Axes, title: str) -> None:
        panel_axes.finish(ax, panel, title, above=STRIP * len(strip), room=room)
        gone = _spiky(drawn, limits)
        for i, line in enumerate(drawn):
            lines.draw(ax, line, i, len(drawn), band=banded and i not in gone, thin=i in gone)
        panel_axes.draw_published(ax, panel)
        if limits and limits.top is not None:
            ax.set_ylim(limits.bottom, limits.top)
        if limits and limits.near and panel.xlim[0] is None and panel.xscale == "log":
            ax.set_xlim(left=_first_inside(drawn, ax))
        panel_axes.set_limits(ax, panel, room)
        _mark_leaving(ax, leaving)
        _name_leaving(ax, strip, room.tiny)
        _mark_diverged(ax, drawn)

    named = [replace(line, label=line.name) if alike and not line.empty else line for line in drawn]
    entries = (*(lines.entry(line) for line in named), *panel_axes.published_entries(panel))
    size = (room.width, room.height + STRIP * len(strip))
    notes = tuple(_notes(panel, drawn, limits, leaving, room.above))
    notes += tuple(
        f"{panel.id}: {line.label}" for line, other in zip(drawn, named, strict=True) if line.label != other.label
    )
    moving = [line for line in drawn if not line.level] or drawn
    absent = "; ".join(dict.fromkeys(line.empty for line in moving)) if all(line.empty for line in moving) else ""
    tall = 0.8 + STRIP * len(strip)
    return Prepared(size, entries, notes, decoration=tall, absent=absent, draw=draw)


def _same_curves(panel: Panel, other: Panel) -> bool:
    """Return whether the curves of two panels are named alike, so that they can share a legend."""
    return other.kind == "curves" and [c.label for c in other.curves] == [c.label for c in panel.curves]


def _same_y(panel: Panel, other: Panel) -> bool:
    """Return whether two panels show the same numbers over different axes."""
    same = [c.setting.series for c in other.curves] == [c.setting.series for c in panel.curves]
    return same and (other.y, other.yscale, other.ylim) == (panel.y, panel.yscale, panel.ylim) and axes.of(other).along


def _common(own: Frame | None, others: Sequence[Frame | None]) -> Frame | None:
    """Return the frame with the limits that show what any of the panels shows."""
    every = [f for f in (own, *others) if f is not None and f.bottom is not None and f.top is not None]
    if own is None or own.top is None or len(every) <= len(others):
        return own
    return replace(own, bottom=min(float(f.bottom or 0.0) for f in every), top=max(float(f.top or 0.0) for f in every))


def _spiky(drawn: Sequence[Line], limits: Frame | None) -> list[int]:
    """Return the curves that leave the frame more than once, which would hide the others."""
    top = limits.top if limits is not None else None
    if limits is None or top is None:
        return []
    averages = {i: a.mean > top for i in limits.leaving if (a := drawn[i].average) is not None}
    return [i for i, above in averages.items() if int((above[1:] & ~above[:-1]).sum()) > 1]


def _first_inside(drawn: Sequence[Line], ax: Axes) -> float:
    """Return the left end of a log axis: a little before the first curve enters the frame."""
    bottom, top = ax.get_ylim()
    inside = [a.x[(a.mean >= bottom) & (a.mean <= top)] for line in drawn if (a := line.average) and not line.level]
    first = min((float(x[0]) for x in inside if x.size), default=ax.get_xlim()[0])
    return max(0.6 * first, ax.get_xlim()[0])


def _notes(
    panel: Panel, drawn: Sequence[Line], limits: Frame | None, leaving: Sequence[Leaving], above: bool
) -> list[str]:
    """Return notes for the footer. above : whether the curves that leave the panel are named above it."""
    timed = axes.of(panel).reads is Reads.TIMING
    spiky = _spiky(drawn, limits)
    shown = [line for i, line in enumerate(drawn) if i not in spiky]
    shown = [] if timed and len(drawn) > MOST_TIMED else shown
    bands = {line.name: a.spread for line in shown if (a := line.average) and a.spread}
    kinds = list(dict.fromkeys(bands.values()))
    notes = [f"band: {kind}" for kind in kinds]
    if len(kinds) > 1:
        named = {kind: ", ".join(name for name, band in bands.items() if band == kind) for kind in kinds}
        notes = [f"{panel.id}: band of {named[kind]}: {kind}" for kind in kinds]
    if CurvesOptions.of(panel).average.startswith("median"):
        notes.append("line: median of the trials")
    notes += ["thin lines: the trials"] if any(line.trials for line in drawn) else []
    if timed and len(drawn) > MOST_TIMED:
        notes.append(f"{panel.id}: without bands, which would overlap")
    notes += [f"{panel.id}: {line.name} from {line.fewer}" for line in drawn if line.fewer]
    if any(line.strays for line in drawn):
        notes.append("×: diverged")
    if leaving:
        notes.append("▲: leaves the frame" + (", with its largest value" if above else ""))
    if spiky:
        notes.append("thin, without band: leaves the frame repeatedly")
    notes += [] if above else [f"▲ {text}" for _, text in leaving]
    if limits and limits.near:
        notes.append("the first rounds leave the frame")
    if timed:
        notes.append("times are those of the machine that ran it")
    return notes


# -- curves that leave the frame ---------------------------------------------------------------------------------------


def _leaving(drawn: Sequence[Line], limits: Frame | None, panel: Panel) -> list[Leaving]:
    """Return the curves that leave the frame, with name, largest value, and the end value if that is outside."""
    leaving = []
    top = limits.top if limits and limits.top is not None else panel.ylim[1]
    for i in limits.leaving if limits else ():
        average = drawn[i].average
        assert average is not None
        text = f"{drawn[i].name}: up to {_amount(average.mean.max())}"
        if top is not None and average.mean[-1] > top:
            text += f", ends at {_amount(average.mean[-1])}"
        leaving.append((drawn[i], text))
    return leaving


def _amount(value: float) -> str:
    return f"{value:,.0f}" if 1e3 <= value < 1e6 else naming.value(float(f"{value:.3g}"))


def _mark_leaving(ax: Axes, leaving: Sequence[Leaving]) -> None:
    """Draw an arrowhead at the top edge where each curve has its largest value."""
    top = ax.get_ylim()[1]
    left, right = ax.get_xlim()
    for line, _ in leaving:
        average = line.average
        if average is not None:
            x = float(np.clip(average.x[int(np.argmax(average.mean))], left, right))
            ax.plot([x], [top], "^", color=line.look.color, markersize=8, clip_on=False, zorder=7)


def _name_leaving(ax: Axes, strip: Sequence[Sequence[Leaving]], size: float) -> None:
    """Draw the strip between title and panel: an arrowhead in each curve's colour, and its text."""
    from matplotlib.offsetbox import AnnotationBbox, HPacker, TextArea, VPacker

    if not strip:
        return

    def named(line: Line, text: str) -> Artist:
        head = TextArea("▲", textprops={"color": line.look.color, "fontsize": size})
        words = TextArea(text, textprops={"color": style.BLACK, "fontsize": size})
        return HPacker(children=[head, words], pad=0, sep=2, align="baseline")

    strips: list[Artist] = [
        HPacker(children=[named(*item) for item in row], pad=0, sep=8, align="baseline") for row in strip
    ]
    box = VPacker(children=strips, pad=0, sep=2, align="left")
    ax.add_artist(
        AnnotationBbox(
            box, (0, 1), xycoords="axes fraction", xybox=(0, 8), boxcoords="offset points",
            box_alignment=(0, 0), frameon=False, pad=0, annotation_clip=False,
        )
    )  # fmt: skip


def _mark_diverged(ax: Axes, drawn: Sequence[Line]) -> None:
    """Draw a cross at the last finite value of each diverged trial, or where it finally leaves the axes."""
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
