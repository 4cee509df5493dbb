"""Code shared by panels of every kind: prepared panels, and axes with labels, limits and reference lines.

A published number or reference line ``{"y", "label"}`` is a horizontal line, ``{"x", "label"}`` a vertical one, ``{"x",
"y", "label"}`` a star (or several, if x and y are lists); the key ``algorithm`` gives it that method's colour.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fedrepro.plotting import naming, style
from fedrepro.spec import axes, panels
from fedrepro.spec.model import Panel
from fedrepro.spec.panels import AxesOptions, BarsOptions, CurvesOptions

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import XAxis, YAxis
    from matplotlib.figure import Figure as MplFigure

SIZE = (4.3, 3.4)
"""Width and height in inches of a panel with axes."""


@dataclass(frozen=True)
class Room:
    """Width and height of a panel with its labels in inches, and the sizes of normal and smallest letters in points.

    above : whether text can be written above the axes; otherwise it becomes a note.
    """

    width: float = SIZE[0]
    height: float = SIZE[1]
    font: float = style.FONT
    tiny: float = style.TINY
    above: bool = True


ROOM = Room()
"""The room of a panel in a figure."""

LINE = 0.17
"""Height in inches of a line of a panel's title or axis label."""

LABELS = 0.75
"""Inches of a panel's width, and of its height, that the axis labels need."""


@dataclass(frozen=True)
class Entry:
    """One entry of a legend: its text and the keyword arguments of its sample line (None: no sample)."""

    label: str
    line: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Lines:
    """Lines of a panel's long title and labels that its size has no room for."""

    above: int = 0
    below: int = 0
    left: int = 0


@dataclass(frozen=True)
class Prepared:
    """A panel that is ready to draw before the layout is known.

    size : width and height in inches, with labels. decoration : the height of title and axis labels. lines : of long
    texts, beyond the size. title_width : of the title in inches if not that of the panel. notes : facts that the footer
    states once for the whole figure. absent : why there is nothing to show, which a line of the figure then states.
    draw(ax, title) draws a panel with one pair of axes, paint_all(fig, spec, title) any other into a gridspec cell.
    """

    size: tuple[float, float]
    entries: tuple[Entry, ...] = ()
    notes: tuple[str, ...] = ()
    decoration: float = 0.8
    absent: str = ""
    lines: Lines = Lines()
    title_width: float = 0.0
    draw: Callable[[Axes, str], None] | None = None
    paint_all: Callable[[MplFigure, Any, str], None] | None = None

    def paint(self, fig: MplFigure, spec: Any, title: str) -> None:
        """Draw the panel into a gridspec cell."""
        if self.paint_all is not None:
            self.paint_all(fig, spec, title)
        elif self.draw is not None:
            self.draw(fig.add_subplot(spec), title)


def options_of(panel: Panel) -> AxesOptions:
    """Return the options of a panel with one pair of axes."""
    return BarsOptions.of(panel) if panel.kind == "bars" else CurvesOptions.of(panel)


# -- published numbers and reference lines -----------------------------------------------------------------------------


def heights(panel: Panel) -> list[float]:
    """Return the y of every published number and reference line that has one."""
    items = (*panel.published, *options_of(panel).lines)
    return [float(v) for item in items if "y" in item for v in np.atleast_1d(item["y"])]


DOTTED: tuple[Any, ...] = ((0, (0.01, 2.2)), (0, (0.01, 4.4)), (0, (0.01, 1.8, 0.01, 4.4)))
DASHED: tuple[Any, ...] = ("-.", (0, (9.0, 2.0, 1.3, 2.0, 1.3, 2.0)), (0, (3.0, 2.0, 1.3, 2.0, 1.3, 2.0, 1.3, 2.0)))
STARS: tuple[Any, ...] = ("*", (4, 1, 0), (8, 1, 0), (6, 1, 0), "P")
"""Dashes of published numbers and of reference lines, and markers of published points, one per text in turn."""


def published_style(panel: Panel) -> list[tuple[Mapping[str, Any], dict[str, Any], str]]:
    """Return each published number (dotted) and reference line (dash-dotted) with its style and legend text."""
    result = []
    for items, prefix, dashes in ((panel.published, "paper: ", DOTTED), (options_of(panel).lines, "", DASHED)):
        seen: dict[bool, list[str]] = {False: [], True: []}
        for item in items:
            label = str(item.get("label", "")).removeprefix("published").lstrip(", ")
            point = "x" in item and "y" in item
            known = seen[point]
            known += [label] if label not in known else []
            place, color = known.index(label), _published_color(panel, item, label)
            look: dict[str, Any] = {"color": color, "linestyle": dashes[place % len(dashes)], "linewidth": 1.6}
            look |= {"linewidth": 2.6, "dash_capstyle": "round"} if dashes is DOTTED else {}
            if point:
                look = {"color": color, "linestyle": "none", "marker": STARS[place % len(STARS)], "markersize": 10}
                look |= {"markeredgecolor": "white", "markeredgewidth": 0.7}
            result.append((item, look, f"{prefix}{naming.symbols(label)}".strip().rstrip(":")))
    return result


def _published_color(panel: Panel, item: Mapping[str, Any], label: str) -> str:
    """Return the colour of the method that it names, or of the curve whose label is the start of its label."""
    if "algorithm" in item:
        return style.method(str(item["algorithm"]))[0]
    looks = style.looks(panel.curves)
    named = {c.label: look.color for c, look in zip(panel.curves, looks, strict=True)}
    matching = [name for name in named if re.match(rf"{re.escape(name)}(?!\w)", label)]
    return named[max(matching, key=len)] if matching else style.FAINT


def published_entries(panel: Panel) -> list[Entry]:
    """Return the legend entries of the published numbers, each text once."""
    entries = {label: Entry(label, look) for _, look, label in published_style(panel)}
    return list(entries.values())


def _above_ours(look: Mapping[str, Any]) -> dict[str, Any]:
    """Return the style of a horizontal line that stays visible on a line of ours: above it, its dots edged in white."""
    from matplotlib.patheffects import Normal, Stroke

    edged = [Stroke(linewidth=look["linewidth"] + 1.6, foreground="white"), Normal()]
    return {**look, "zorder": 2.6, "path_effects": edged}


def draw_published(ax: Axes, panel: Panel) -> None:
    """Draw the published numbers and reference lines of a panel."""
    for item, look, label in published_style(panel):
        if "x" in item and "y" in item:
            ax.plot(np.atleast_1d(item["x"]), np.atleast_1d(item["y"]), label=label, zorder=5, **look)
        elif "y" in item:
            ax.axhline(float(item["y"]), label=label, **_above_ours(look))
        elif "x" in item:
            ax.axvline(float(item["x"]), label=label, zorder=1.8, **look)


# -- axes --------------------------------------------------------------------------------------------------------------


def finish(ax: Axes, panel: Panel, title: str, above: float = 0.0, room: Room = ROOM) -> None:
    """Set scales, axis labels and title of a panel. above : inches to leave free between panel and title."""
    ax.set_xscale(panel.xscale)
    ax.set_yscale(panel.yscale)
    ax.set_xlabel(_wrap(_x_label(panel), room.width, room))
    ax.set_ylabel(_wrap(_y_label(panel), room.height, room))
    set_title(ax, title, room.width, above)


def _x_label(panel: Panel) -> str:
    """Return the spec's own label, or that of the axis, or the symbol of the swept parameter."""
    axis = axes.of(panel)
    own = options_of(panel).xlabel
    return naming.symbols(own) or (axis.label if axis.along else naming.symbol(panels.swept(panel)))


def _y_label(panel: Panel) -> str:
    """Return the spec's own label, or that of the metric."""
    return options_of(panel).ylabel or axes.metric_label(panel, panel.y)


def _wrap(label: str, inches: float, room: Room) -> str:
    return style.wrap(label, inches - LABELS, room.font)


def set_title(ax: Axes, title: str, inches: float, above: float = 0.0) -> None:
    """Write the panel title above the left corner."""
    if title:
        ax.set_title(wrapped_title(title, inches), loc="left", pad=9 + 72 * above + 3 * (above > 0))


def wrapped_title(title: str, inches: float) -> str:
    """Return a panel title in lines that fit above a panel of this width."""
    return style.wrap(title, inches - 0.7, 10.0)


def with_room(prepared: Prepared, panel: Panel, title: str) -> Prepared:
    """Return a panel with room for the lines of its title after the second and of its labels after the first."""
    width, height = prepared.size
    above = max(wrapped_title(title, prepared.title_width or width).count("\n") - 1, 0)
    left = below = 0
    if prepared.draw is not None:
        left = _wrap(_y_label(panel), height, ROOM).count("\n")
        below = _wrap(_x_label(panel), width, ROOM).count("\n")
    return replace(prepared, size=(width + LINE * left, height), lines=Lines(above, below, left))


def set_limits(ax: Axes, panel: Panel, room: Room = ROOM) -> None:
    """Set the spec's own limits, and readable tick labels on axes of large numbers and on short log axes."""
    if panel.xlim != (None, None):
        ax.set_xlim(*panel.xlim)
    if panel.ylim != (None, None):
        ax.set_ylim(*panel.ylim)
    far = ax.get_xlim()[1]
    if panel.xscale == "linear" and axes.of(panel).along and far >= 1e5:
        power = int(np.floor(np.log10(far)))
        ax.xaxis.set_major_formatter(lambda value, _: f"{value / 10.0**power:.4g}")
        ax.set_xlabel(_wrap(f"{_x_label(panel)} / $10^{{{power}}}$", room.width, room))
    if panel.xscale == "linear" and panel.x == "round":
        ax.locator_params(axis="x", integer=True)
    if panel.yscale == "log":
        _plain_ticks(ax.yaxis, *ax.get_ylim(), ax.set_ylim)
    if panel.xscale == "log" and axes.of(panel).along:
        _plain_ticks(ax.xaxis, *ax.get_xlim(), ax.set_xlim)


def plain_numbers(axis: XAxis | YAxis) -> None:
    """Set the numbers on a linear axis as text, which looks like a formula and takes a tenth of its time.

    The power of ten at the end of the axis stays a formula.
    """
    from matplotlib.ticker import ScalarFormatter

    class Plain(ScalarFormatter):
        def __call__(self, x: float, pos: int | None = None) -> str:
            return super().__call__(x, pos).removeprefix("$\\mathdefault{").removesuffix("}$")

    if type(axis.get_major_formatter()) is ScalarFormatter:
        axis.set_major_formatter(Plain())


def _plain_ticks(axis: XAxis | YAxis, first: float, last: float, keep: Callable[[float, float], Any]) -> None:
    """Use plain numbers, and enough of them, on a log axis of less than two decades."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, NullLocator

    if first <= 0 or last / first >= 100:
        return
    if last / first < 10:
        axis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
        axis.set_minor_locator(NullLocator())
    else:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter(lambda value, _: f"{value:.6g}")
    keep(first, last)
