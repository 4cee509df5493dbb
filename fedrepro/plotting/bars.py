"""Bar panels: final values, grouped by one value of the curves, one bar per method or setting in each group.

A published number with an ``x`` is a star on a bar, one without a dotted line.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fedrepro.plotting import naming, panel_axes, series, style
from fedrepro.plotting.panel_axes import ROOM, Entry, Prepared, Room
from fedrepro.plotting.series import FigureData
from fedrepro.spec import layout, panels
from fedrepro.spec.model import Panel
from fedrepro.spec.panels import BarsOptions

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STAR: dict[str, Any] = {"color": "white", "markeredgecolor": style.BLACK, "markersize": 11}
HATCHES = ("", "//", "..", "xx", "\\\\", "++")


def prepare(panel: Panel, source: FigureData, room: Room = ROOM) -> Prepared:
    """Prepare a bar panel."""
    name, options = panels.swept(panel), BarsOptions.of(panel)
    bars, groups = layout.lines(panel.curves, name), layout.groups(panel.curves, name)
    looks = style.looks([members[0] for members in bars.values()])
    results = {
        label: {
            layout.group(c, name): series.finals(source, c, panel, last=options.final, how=options.average)
            for c in members
        }
        for label, members in bars.items()
    }
    entries = []
    called = naming.texts(results, panel.curves)
    for i, (name_, finals) in enumerate(zip(called, results.values(), strict=True)):
        bad = "; ".join(f"{group}{f.bad}" for group, f in finals.items() if f.bad)
        entries.append(Entry(f"{name_} ({bad})" if bad else name_, _face(looks[i], i)))
    stars = [item for item in panel.published if "x" in item]
    if stars:
        entries.append(Entry("paper", {"marker": "*", "linestyle": "none", **STAR}))
    rest = replace(panel, published=tuple(item for item in panel.published if item not in stars))
    entries += panel_axes.published_entries(rest)
    spreads = [f"bars: {f.spread}" for finals in results.values() for f in finals.values() if f.spread]
    thick = 0.8 / max(len(bars), 1)

    def place(label: str, group: str) -> float:
        return groups.index(group) + (list(bars).index(label) - (len(bars) - 1) / 2) * thick

    def draw(ax: Axes, title: str) -> None:
        panel_axes.finish(ax, panel, title, room=room)
        for i, (label, finals) in enumerate(results.items()):
            x = np.array([place(label, group) for group in finals])
            y, low, high = (np.array([getattr(f, n) for f in finals.values()]) for n in ("centre", "low", "high"))
            face = {k: v for k, v in _face(looks[i], i).items() if k != "patch"}
            error = {"elinewidth": 1.2, "capsize": 2.5, "ecolor": style.BLACK}
            ax.bar(x, y, 0.92 * thick, yerr=np.stack([y - low, high - y]), error_kw=error, label=label, **face)
        for item in stars:
            ax.plot([place(str(item["label"]), str(item["x"]))], [item["y"]], "*", zorder=5, **STAR)
        panel_axes.draw_published(ax, rest)
        ax.set_xticks(range(len(groups)), [naming.text(group, panel.curves, kinds=(name,)) for group in groups])
        ax.grid(False, axis="x")
        panel_axes.set_limits(ax, panel, room)

    shown = any(np.isfinite(f.centre) for finals in results.values() for f in finals.values())
    absent = "" if shown else "no results"
    size, paint = (room.width, room.height), panel_axes.in_cell(draw)
    return Prepared(size, paint, tuple(entries), tuple(spreads), absent=absent, draw=draw)


def _face(look: style.Look, place: int) -> dict[str, Any]:
    return {"facecolor": look.color, "edgecolor": "white", "hatch": HATCHES[place % len(HATCHES)], "patch": True}
