"""Bar panels: final values, grouped by one selected value (``panel.x``, or ``options.parameter`` where x is
``parameter``), one bar per method or setting in each group.

Options: ``final``, ``average``, ``ylabel``, ``xlabel`` as for sweeps. Published numbers: ``{"x": group, "label": bar,
"y": number}`` draws a star on that bar; ``{"y", "label"}`` a dotted line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fedrepro.errors import ParameterError, nearest
from fedrepro.plotting import curves, data, style, sweep
from fedrepro.plotting.data import Entry, Prepared, Source
from fedrepro.spec.model import Curve, Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as MplFigure

STAR: dict[str, Any] = {"color": "white", "markeredgecolor": style.BLACK, "markersize": 11}
HATCHES = ("", "//", "..", "xx", "\\\\", "++")


def prepare(panel: Panel, source: Source) -> Prepared:
    """Work out a bar panel."""
    bars = sweep.group_by(panel, data.swept(panel))
    looks = style.looks([members[0] for members in bars.values()])
    groups = list(dict.fromkeys(_group(c, panel) for members in bars.values() for c in members))
    results = {
        label: {_group(c, panel): sweep.finals(panel, c, source) for c in members} for label, members in bars.items()
    }
    entries = []
    for i, (label, found) in enumerate(results.items()):
        bad = "; ".join(f"{group}{f.bad}" for group, f in found.items() if f.bad)
        entries.append(Entry(f"{label} ({bad})" if bad else label, _face(looks[i], i)))
    stars = [item for item in panel.published if "x" in item and "y" in item]
    for item in stars:
        _check(item, list(bars), groups)
    if stars:
        entries.append(Entry("paper", {"marker": "*", "linestyle": "none", **STAR}))
    rest = replace(panel, published=tuple(item for item in panel.published if item not in stars))
    entries += curves.published_entries(rest)
    spreads = [f"bars: {f.spread}" for found in results.values() for f in found.values() if f.spread]
    thick = 0.8 / max(len(bars), 1)

    def place(label: str, group: str) -> float:
        return groups.index(group) + (list(bars).index(label) - (len(bars) - 1) / 2) * thick

    def paint(fig: MplFigure, spec: Any, title: str) -> list[Axes]:
        ax = fig.add_subplot(spec)
        curves.finish(ax, panel, title)
        for i, (label, found) in enumerate(results.items()):
            x = np.array([place(label, group) for group in found])
            y, low, high = (np.array([getattr(f, n) for f in found.values()]) for n in ("centre", "low", "high"))
            face = {k: v for k, v in _face(looks[i], i).items() if k != "patch"}
            error = {"elinewidth": 1.2, "capsize": 2.5, "ecolor": style.BLACK}
            ax.bar(x, y, 0.92 * thick, yerr=np.stack([y - low, high - y]), error_kw=error, label=label, **face)
        for item in stars:
            ax.plot([place(str(item["label"]), str(item["x"]))], [item["y"]], "*", zorder=5, **STAR)
        curves.draw_published(ax, rest)
        ax.set_xticks(range(len(groups)), groups)
        ax.grid(False, axis="x")
        curves.set_limits(ax, panel)
        if not any(np.isfinite(f.centre) for found in results.values() for f in found.values()):
            curves.nothing(ax)
        return [ax]

    return Prepared(curves.SIZE, paint, tuple(entries), tuple(spreads))


def _group(curve: Curve, panel: Panel) -> str:
    name = data.swept(panel)
    return data.text_of(curve, name) if name == "algorithm" else str(data.value_of(curve, name))


def _check(item: Mapping[str, Any], bars: list[str], groups: list[str]) -> None:
    for name, valid in (("label", bars), ("x", groups)):
        text = str(item.get(name, ""))
        if text not in valid:
            known = ", ".join(f"'{v}'" for v in valid)
            raise ParameterError("published", f"no bar has {name} '{text}'{nearest(text, valid)} (there are {known})")


def _face(look: style.Look, place: int) -> dict[str, Any]:
    return {"facecolor": look.color, "edgecolor": "white", "hatch": HATCHES[place % len(HATCHES)], "patch": True}
