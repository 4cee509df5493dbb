"""Panels of curves over a swept parameter: the final value of each curve against its parameter, one line per method.

Error bars reach from the smallest to the largest trial for up to 3 trials, else one sd.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fedrepro.plotting import lines, naming, panel_axes, series, style
from fedrepro.plotting.panel_axes import ROOM, Entry, Prepared, Room
from fedrepro.plotting.series import FigureData, Finals
from fedrepro.spec import layout, panels
from fedrepro.spec.layout import value_of
from fedrepro.spec.model import Panel
from fedrepro.spec.panels import CurvesOptions

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def prepare(panel: Panel, source: FigureData, room: Room = ROOM) -> Prepared:
    """Work out a panel over a swept parameter."""
    name, options = panels.swept(panel), CurvesOptions.of(panel)
    found = layout.lines(panel.curves, name)
    groups = dict(zip(naming.texts(found, panel.curves), found.values(), strict=True))
    levels = [line for line in lines.read(panel, source) if line.level]
    looks = style.looks([members[0] for members in groups.values()])
    values = {c.label + c.setting.series: value_of(c, name) for g in groups.values() for c in g}
    order = _positions(list(values.values()))
    results = {
        label: [series.finals(source, c, panel, last=options.final, how=options.average) for c in members]
        for label, members in groups.items()
    }
    entries, notes = [], []
    for (label, members), look in zip(groups.items(), looks, strict=True):
        pairs = zip(members, results[label], strict=True)
        bad = "; ".join(f"{value_of(c, name)}{f.bad}" for c, f in pairs if f.bad)
        entries.append(Entry(f"{label} ({bad})" if bad else label, {**look.line(), **look.points()}))
        notes += [f"bars: {f.spread}" for f in results[label] if f.spread]
    entries += [lines.entry(line) for line in levels]

    def draw(ax: Axes, title: str) -> None:
        panel_axes.finish(ax, panel, title, room=room)
        for (label, members), look in zip(groups.items(), looks, strict=True):
            x = np.array([order(value_of(c, name)) for c in members])
            _draw(ax, x, results[label], look, label)
        for line in levels:
            lines.draw(ax, line, 0)
        panel_axes.draw_published(ax, panel)
        _ticks(ax, sorted({order(v) for v in values.values()}), order.names)
        panel_axes.set_limits(ax, panel, room)

    shown = any(np.isfinite(f.centre) for group in results.values() for f in group)
    absent = "" if shown or any(not line.empty for line in levels) else "no results"
    entries += panel_axes.published_entries(panel)
    size, paint = (room.width, room.height), panel_axes.in_cell(draw)
    return Prepared(size, paint, tuple(entries), tuple(notes), absent=absent, draw=draw)


@dataclass(frozen=True)
class _Positions:
    names: tuple[str, ...] = ()

    def __call__(self, value: Any) -> float:
        return float(self.names.index(str(value)) if self.names else value)


def _positions(values: list[Any]) -> _Positions:
    """Numbers stand where they are; other values (texts, lists, truth values) get places 0, 1, 2 ... by first use."""
    if all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values):
        return _Positions()
    return _Positions(tuple(dict.fromkeys(str(v) for v in values)))


def _ticks(ax: Axes, places: list[float], names: tuple[str, ...]) -> None:
    """Ticks at the parameter's values, unless some of them are too close together to be labelled."""
    scaled = np.log10(places) if ax.get_xscale() == "log" and min(places, default=0) > 0 else np.array(places)
    if len(places) > 1 and np.diff(scaled).min() < 0.07 * (scaled[-1] - scaled[0]):
        return
    ax.set_xticks(places, names or [naming.value(v) for v in places])
    ax.minorticks_off()


def _draw(ax: Axes, x: np.ndarray, group: list[Finals], look: style.Look, label: str) -> None:
    y, low, high = (np.array([getattr(f, name) for f in group]) for name in ("centre", "low", "high"))
    keep = np.argsort(x, kind="stable")
    keep = keep[np.isfinite(y[keep])]
    x, y, low, high = x[keep], y[keep], low[keep], high[keep]
    ax.errorbar(
        x, y, yerr=np.stack([y - low, high - y]), capsize=3, elinewidth=1.2, label=label, **look.line(), **look.points()
    )
