"""Panels of curves: mean over trials against rounds, communication or time, with the papers' published numbers.

``y_limits`` decides what the y axis shows. A strip above the panel names the curves that leave it, and how far.
"""

from __future__ import annotations

from collections.abc import Sequence
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
STRIP = 0.165
"""Height in inches of a line of the strip above a panel that names the curves that leave it."""

Leaving = tuple[Line, str]
"""A curve that leaves the frame, and its text in the strip."""


def prepare(panel: Panel, source: FigureData, room: Room = ROOM) -> Prepared:
    """Prepare a panel of curves along an axis."""
    drawn = lines.read(panel, source)
    limits = frame(drawn, panel)
    leaving = _leaving(drawn, limits, panel)
    widths = [style.width(f"▲ {text}", room.tiny) + 0.2 for _, text in leaving]
    rows = style.rows_of(widths, room.width - LABELS) if room.above else []
    strip = [[leaving[i] for i in row] for row in rows]

    def draw(ax: Axes, title: str) -> None:
        panel_axes.finish(ax, panel, title, above=STRIP * len(strip), room=room)
        for i, line in enumerate(drawn):
            lines.draw(ax, line, i, len(drawn))
        panel_axes.draw_published(ax, panel)
        if limits and limits.top is not None:
            ax.set_ylim(limits.bottom, limits.top)
        panel_axes.set_limits(ax, panel, room)
        _mark_leaving(ax, leaving)
        _name_leaving(ax, strip, room.tiny)
        _mark_diverged(ax, drawn)

    entries = (*(lines.entry(line) for line in drawn), *panel_axes.published_entries(panel))
    size = (room.width, room.height + STRIP * len(strip))
    notes = tuple(_notes(panel, drawn, limits, leaving, room.above))
    moving = [line for line in drawn if not line.level] or drawn
    absent = "; ".join(dict.fromkeys(line.empty for line in moving)) if all(line.empty for line in moving) else ""
    tall = 0.8 + STRIP * len(strip)
    return Prepared(size, entries, notes, decoration=tall, absent=absent, draw=draw)


def _notes(
    panel: Panel, drawn: Sequence[Line], limits: Frame | None, leaving: Sequence[Leaving], above: bool
) -> list[str]:
    """Return notes for the footer. above : whether the curves that leave the panel are named above it."""
    bands = {line.name: a.spread for line in drawn if (a := line.average) and a.spread}
    kinds = list(dict.fromkeys(bands.values()))
    notes = [f"band: {kind}" for kind in kinds]
    if len(kinds) > 1:
        named = {kind: ", ".join(name for name, band in bands.items() if band == kind) for kind in kinds}
        notes = [f"{panel.id}: band of {named[kind]}: {kind}" for kind in kinds]
    if CurvesOptions.of(panel).average == "median":
        notes.append("line: median of the trials")
    notes += [f"{panel.id}: {line.name} from {line.fewer}" for line in drawn if line.fewer]
    if any(line.strays for line in drawn):
        notes.append("×: diverged")
    if leaving:
        notes.append("▲: leaves the frame" + (", with its largest value" if above else ""))
    notes += [] if above else [f"▲ {text}" for _, text in leaving]
    if limits and limits.near:
        notes.append("the first rounds leave the frame")
    if axes.of(panel).reads is Reads.TIMING:
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
