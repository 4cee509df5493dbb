"""Panels of curves over a swept parameter: the final value of each curve against its parameter, one line per method.

Error bars reach from the smallest to the largest trial for up to 3 trials, else one sd. ``read`` is shared with bars.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fedrepro.plotting import lines, naming, panel_axes, series, style
from fedrepro.plotting.panel_axes import ROOM, Entry, Prepared, Room
from fedrepro.plotting.series import FigureData, Finals
from fedrepro.spec import layout, panels
from fedrepro.spec.layout import value_of
from fedrepro.spec.model import Curve, Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class SweptLine:
    """The final values of curves that differ in the swept parameter: a line, or the bars of one colour.

    label : its text in ``spec.layout``. name : its text for a reader. finals, groups : the final value of each curve,
    and its value of the parameter as a text.
    """

    label: str
    name: str
    look: style.Look
    curves: Sequence[Curve]
    finals: Sequence[Finals]
    groups: Sequence[str]

    @property
    def legend(self) -> str:
        """The name, and what became of trials without a final value."""
        bad = "; ".join(
            f"{group}{final.bad}" for group, final in zip(self.groups, self.finals, strict=True) if final.bad
        )
        return f"{self.name} ({bad})" if bad else self.name

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the final values and the ends of their error bars."""
        y, low, high = (np.array([getattr(f, end) for f in self.finals]) for end in ("centre", "low", "high"))
        return y, low, high


def read(panel: Panel, source: FigureData) -> list[SweptLine]:
    """Return the lines of a panel over a swept parameter."""
    swept, options = panels.swept(panel), panel_axes.options_of(panel)
    members = layout.lines(panel.curves, swept)
    names = naming.texts(members, panel.curves)
    looks = style.looks([curves[0] for curves in members.values()])
    finals = [
        [series.finals(source, c, panel, last=options.final, how=options.average) for c in curves]
        for curves in members.values()
    ]
    groups = [[layout.group(c, swept) for c in curves] for curves in members.values()]
    parts = zip(members, names, looks, members.values(), finals, groups, strict=True)
    return [SweptLine(*line) for line in parts]


def notes(swept: Sequence[SweptLine]) -> tuple[str, ...]:
    """Return notes on the error bars for the footer."""
    return tuple(f"bars: {final.spread}" for line in swept for final in line.finals if final.spread)


def shown(swept: Sequence[SweptLine]) -> bool:
    """Return whether there is any final value."""
    return any(np.isfinite(final.centre) for line in swept for final in line.finals)


def prepare(panel: Panel, source: FigureData, room: Room = ROOM) -> Prepared:
    """Prepare a panel over a swept parameter."""
    name, swept = panels.swept(panel), read(panel, source)
    levels = [line for line in lines.read(panel, source) if line.level]
    values = [value_of(c, name) for line in swept for c in line.curves]
    numeric = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values)
    texts = [] if numeric else list(dict.fromkeys(map(str, values)))

    def place(value: Any) -> float:
        """Return a number itself; other values (texts, lists, truth values) have places 0, 1, 2 ... by first use."""
        return float(value if numeric else texts.index(str(value)))

    def draw(ax: Axes, title: str) -> None:
        panel_axes.finish(ax, panel, title, room=room)
        for line in swept:
            _draw(ax, np.array([place(value_of(c, name)) for c in line.curves]), line)
        for level in levels:
            lines.draw(ax, level, 0)
        panel_axes.draw_published(ax, panel)
        _ticks(ax, sorted(set(map(place, values))), [naming.VALUES.get((name, text), text) for text in texts])
        panel_axes.set_limits(ax, panel, room)

    entries = [Entry(line.legend, {**line.look.line(), **line.look.points()}) for line in swept]
    entries += [*map(lines.entry, levels), *panel_axes.published_entries(panel)]
    absent = "" if shown(swept) or any(not line.empty for line in levels) else "no results"
    return Prepared((room.width, room.height), tuple(entries), notes(swept), absent=absent, draw=draw)


def _ticks(ax: Axes, places: list[float], texts: list[str]) -> None:
    """Set ticks at the parameter's values, unless some of them are too close together to be labelled."""
    scaled = np.log10(places) if ax.get_xscale() == "log" and min(places, default=0) > 0 else np.array(places)
    if len(places) > 1 and np.diff(scaled).min() < 0.07 * (scaled[-1] - scaled[0]):
        return
    ax.set_xticks(places, texts or [naming.value(v) for v in places])
    ax.minorticks_off()


def _draw(ax: Axes, x: np.ndarray, line: SweptLine) -> None:
    y, low, high = line.arrays()
    keep = np.argsort(x, kind="stable")
    keep = keep[np.isfinite(y[keep])]
    x, y, low, high = x[keep], y[keep], low[keep], high[keep]
    look = {**line.look.line(), **line.look.points()}
    ax.errorbar(x, y, yerr=np.stack([y - low, high - y]), capsize=3, elinewidth=1.2, label=line.name, **look)
