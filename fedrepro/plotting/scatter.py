"""Scatter panels: one small picture per curve, the same group in the same colour and shape in all of them.

The points come from ``<figure>.points.csv``. Either it has the columns series, trial, index, x, y, group; or it
contains arrays that runs have stored (series, trial, array, index, v0, v1 ...): the option ``xy`` names the one with
the coordinates in v0 and v1, ``group`` the one with the groups (by default v2 of the coordinates, or none). Points
without coordinates are left out. Aligned groups are renamed, one to one, to the groups of another grouping of the same
points with which they share most points.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fedrepro.plotting import naming, panel_axes, series, style
from fedrepro.plotting.panel_axes import Entry, Prepared
from fedrepro.plotting.series import FigureData
from fedrepro.spec import axes, panels
from fedrepro.spec.model import Curve, Panel
from fedrepro.spec.panels import ScatterOptions

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as MplFigure

SIDE = 2.75


def prepare(panel: Panel, source: FigureData) -> Prepared:
    """Prepare a scatter panel."""
    every = list(zip(panel.curves, clouds(panel, source), strict=True))
    lacking = [naming.legend(curve, panel) for curve, points in every if points is None]
    drawn = [(curve, points) for curve, points in every if points is not None]
    groups = _by_size([c["group"] for _, c in drawn])
    across = min(ScatterOptions.of(panel).columns, max(len(drawn), 1))
    down = -(-len(drawn) // across)
    shown = sorted({int(c["trial"].iloc[0]) for _, c in drawn})
    notes = (f"points: trial {', '.join(map(str, shown))}",) if shown else ()
    titles = [_title(panel, curve, c, source) for curve, c in drawn]

    def paint(fig: MplFigure, spec: Any, title: str) -> None:
        title = panel_axes.wrapped_title(title, size[0])
        head = 0.2 * (title.count("\n") + 1) if title else 0.01
        grid = spec.subgridspec(1 + down, across, height_ratios=[head, *[SIDE] * down])
        strip = fig.add_subplot(grid[0, :])
        strip.set_axis_off()
        strip.text(0, 0, title, fontsize=10, va="bottom", transform=strip.transAxes)
        for i, ((_, points), text) in enumerate(zip(drawn, titles, strict=True)):
            ax = fig.add_subplot(grid[1 + i // across, i % across])
            ax.set_title(text, fontsize=style.SMALL)
            _paint(ax, points, groups)

    size = (SIDE * across + 0.3, (SIDE + 0.4) * down + 0.25)
    absent = "" if shown else "no results"
    entries = tuple(Entry(f"{name}: no results") for name in lacking)
    return Prepared(size, entries, notes, 0.4 * down + 0.05, absent, paint_all=paint)


def _by_size(columns: Sequence[pd.Series]) -> list[Any]:
    """Return the groups, those with most points in all pictures first, which get the colours that differ most."""
    sizes: dict[Any, int] = {}
    for column in columns:
        for group, count in column.value_counts().items():
            sizes[group] = sizes.get(group, 0) + int(count)
    return sorted(sizes, key=lambda group: (-sizes[group], group))


def clouds(panel: Panel, source: FigureData) -> list[pd.DataFrame | None]:
    """Return the points of every curve (index, x, y, group), aligned if the panel has the option."""
    clouds = [cloud(panel, curve, source) for curve in panel.curves]
    wanted = ScatterOptions.of(panel).align
    if not wanted or source.points is None:
        return clouds
    labels = [c.label for c in panel.curves]
    arrays = set(source.points["array"]) if "array" in source.points else set()
    if wanted not in labels and wanted not in arrays:
        raise panels.no_grouping(panel, wanted, sorted(arrays))
    result = []
    for curve, points in zip(panel.curves, clouds, strict=True):
        base = clouds[labels.index(wanted)] if wanted in labels else _array(panel, curve, source, wanted)
        if points is not None and base is not None and points is not base:
            points = align(points, base.rename(columns={"v0": "group"}) if "v0" in base else base)
        result.append(points)
    return result


def cloud(panel: Panel, curve: Curve, source: FigureData) -> pd.DataFrame | None:
    """Return the points of one curve in one trial by index (columns index, x, y, group); None if there are none."""
    if source.points is None or "array" not in source.points:
        return _rows(panel, curve, source.points)
    options = ScatterOptions.of(panel)
    if not options.xy:
        raise panels.no_coordinates(panel)
    giver = panels.embedding(panel, curve)
    points = _array(panel, giver, source, options.xy)
    if points is None:
        return None
    points = points.rename(columns={"v0": "x", "v1": "y", "v2": "group"})
    points = points.dropna(subset=["x", "y"])  # samples without coordinates
    shown = (giver is curve and options.truth) or options.group
    if shown:
        groups = _array(panel, curve, source, shown)
        if groups is None:
            return None
        points = points.drop(columns="group", errors="ignore")
        points = points.merge(groups[["trial", "index", "v0"]], on=["trial", "index"]).rename(columns={"v0": "group"})
    if "group" not in points or points["group"].isna().all():
        points = points.assign(group=0)
    return points[["trial", "index", "x", "y", "group"]]


def _array(panel: Panel, curve: Curve, source: FigureData, name: str) -> pd.DataFrame | None:
    points = source.points
    return None if points is None else _rows(panel, curve, points[points["array"] == name])


def _rows(panel: Panel, curve: Curve, points: pd.DataFrame | None) -> pd.DataFrame | None:
    """Return the rows of one curve and one trial in the order of their indices."""
    if points is None:
        return None
    points = points[points["series"] == curve.setting.series]
    if points.empty:
        return None
    points = points[points["trial"] == (ScatterOptions.of(panel).trial or points["trial"].min())]
    return None if points.empty else points.sort_values("index", kind="stable").reset_index(drop=True)


def align(points: pd.DataFrame, base: pd.DataFrame) -> pd.DataFrame:
    """Return ``points`` with each group renamed to the group of ``base`` that shares most points (by index) with it.

    The assignment is one to one; groups in excess get numbers of their own.
    """
    import pandas as pd
    from scipy.optimize import linear_sum_assignment

    both = base[["index", "group"]].merge(points[["index", "group"]], on="index", suffixes=("_base", ""))
    theirs, ours = sorted(set(base["group"])), sorted(set(points["group"]))
    shared = pd.crosstab(both["group"], both["group_base"]).reindex(index=ours, columns=theirs, fill_value=0)
    rows, columns = linear_sum_assignment(shared, maximize=True)
    names = {ours[i]: theirs[j] for i, j in zip(rows, columns, strict=True)}
    spare = (g for g in range(len(ours) + len(theirs)) if g not in theirs)
    names |= {own: next(spare) for own in ours if own not in names}
    return points.assign(group=[names[g] for g in points["group"]])


def has_score(panel: Panel, curve: Curve) -> bool:
    """Return whether the picture of a curve has a score: not without the option, nor for the true groups."""
    options = ScatterOptions.of(panel)
    shows_truth = bool(options.truth) and panels.embedding(panel, curve) is curve
    return bool(options.score) and not shows_truth


def _title(panel: Panel, curve: Curve, points: pd.DataFrame, source: FigureData) -> str:
    text = style.wrap(naming.legend(curve, panel), SIDE - 0.2, style.SMALL)
    if not has_score(panel, curve):
        return text
    score = ScatterOptions.of(panel).score
    for trial in series.trials(source, curve, panel, metric=score):
        value = series.final(trial)
        if trial.number == int(points["trial"].iloc[0]) and np.isfinite(value):
            return f"{text}\n{axes.metric_label(panel, score)} {value:#.3g}"
    return text


def _paint(ax: Axes, points: pd.DataFrame, groups: list[Any]) -> None:
    ax.set_xticks([])
    ax.set_yticks([])
    ax.set_box_aspect(1)  # also if others of the row have no results
    for side in ("top", "right"):
        ax.spines[side].set_visible(True)
    size = float(np.clip(14000 / len(points), 3.0, 18.0))
    for place, group in enumerate(groups):
        part = points[points["group"] == group]
        color, marker = style.group(place)
        x, y = part["x"], part["y"]
        ax.scatter(x, y, s=size, c=color, marker=marker, linewidths=0, alpha=0.9, label=str(group))
