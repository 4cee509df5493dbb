"""Bar panels: final values, grouped by one value of the curves, one bar per method or setting in each group.

A published number with an ``x`` is a star on a bar, one without a dotted line.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fedrepro.plotting import naming, panel_axes, style, sweep
from fedrepro.plotting.panel_axes import ROOM, Entry, Prepared, Room
from fedrepro.plotting.series import FigureData
from fedrepro.spec import layout, panels
from fedrepro.spec.model import Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STAR: dict[str, Any] = {"color": "white", "markeredgecolor": style.BLACK, "markersize": 11}
HATCHES = ("", "//", "..", "xx", "\\\\", "++")


def prepare(panel: Panel, source: FigureData, room: Room = ROOM) -> Prepared:
    """Prepare a bar panel."""
    name, bars = panels.swept(panel), sweep.read(panel, source)
    groups, labels = layout.groups(panel.curves, name), [line.label for line in bars]
    fills = [_fill(line.look, i) for i, line in enumerate(bars)]
    stars = [item for item in panel.published if "x" in item]
    rest = replace(panel, published=tuple(item for item in panel.published if item not in stars))
    width = 0.8 / max(len(bars), 1)

    def place(label: str, group: str) -> float:
        return groups.index(group) + (labels.index(label) - (len(bars) - 1) / 2) * width

    def draw(ax: Axes, title: str) -> None:
        panel_axes.finish(ax, panel, title, room=room)
        for line, fill in zip(bars, fills, strict=True):
            x, (y, low, high) = np.array([place(line.label, group) for group in line.groups]), line.arrays()
            error = {"elinewidth": 1.2, "capsize": 2.5, "ecolor": style.BLACK}
            ax.bar(x, y, 0.92 * width, yerr=np.stack([y - low, high - y]), error_kw=error, label=line.label, **fill)
        for item in stars:
            ax.plot([place(str(item["label"]), str(item["x"]))], [item["y"]], "*", zorder=5, **STAR)
        panel_axes.draw_published(ax, rest)
        ax.set_xticks(range(len(groups)), [naming.text(group, panel.curves, kinds=(name,)) for group in groups])
        ax.grid(False, axis="x")
        panel_axes.set_limits(ax, panel, room)

    entries = [Entry(line.legend, {**fill, "patch": True}) for line, fill in zip(bars, fills, strict=True)]
    entries += [Entry("paper", {"marker": "*", "linestyle": "none", **STAR})] if stars else []
    entries += panel_axes.published_entries(rest)
    absent = "" if sweep.shown(bars) else "no results"
    return Prepared((room.width, room.height), tuple(entries), sweep.notes(bars), absent=absent, draw=draw)


def _fill(look: style.Look, place: int) -> dict[str, Any]:
    return {"facecolor": look.color, "edgecolor": "white", "hatch": HATCHES[place % len(HATCHES)]}
