"""Panels over a swept parameter: the final value of each curve against its parameter, one line per method.

Options: ``parameter`` (its name, where x is ``parameter``), ``final`` (the mean over the last so many records of a
trial; 1 by default), ``average``, ``lines``, ``xlabel``, ``ylabel`` as for curves. Error bars reach from the smallest
to the largest trial for up to 3 trials, else one sd.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fedrepro.plotting import curves, data, style
from fedrepro.plotting.data import Entry, Prepared, Source
from fedrepro.spec.model import Curve, Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as MplFigure


@dataclass(frozen=True)
class Finals:
    """The final values of one curve over trials; ``count`` of all its runs, of which ``bad`` diverged or failed."""

    centre: float
    low: float
    high: float
    spread: str
    bad: str = ""


def finals(panel: Panel, curve: Curve, source: Source) -> Finals:
    """Centre and spread over the healthy trials, nan without one; ``bad`` says what became of the others."""
    runs = data.trials(source, curve, panel)
    values = np.array([data.final(t, int(panel.options.get("final", 1))) for t in runs])
    values = values[np.isfinite(values)]
    diverged = sum(t.status == "diverged" for t in runs)
    failed = sum(t.status == "failed" for t in runs)
    bad = data.count("diverged", diverged, len(runs)) + data.count("failed", failed, len(runs))
    if not runs:
        bad = ", no results"
    if values.size == 0:
        return Finals(np.nan, np.nan, np.nan, "", bad or ", no value")
    centre, low, high, spread = data.spread(values[:, None], str(panel.options.get("average", "mean")))
    return Finals(float(centre[0]), float(low[0]), float(high[0]), spread, bad)


def group_by(panel: Panel, without: str) -> dict[str, list[Curve]]:
    """The moving curves of a panel, in the spec's order, by their method and what tells them apart at one ``without``.

    A value that only moves along with ``without`` (gamma = 10 lambda in a sweep over lambda) starts no new group.
    """
    moving = [c for c in panel.curves if c.role != "level"]
    rivals: dict[tuple[str, str], list[Curve]] = {}
    for curve in moving:
        method = "" if without == "algorithm" else curve.setting.algorithm
        rivals.setdefault((method, repr(data.value_of(curve, without))), []).append(curve)
    telling: dict[str, list[str]] = {}
    for (method, _), members in rivals.items():
        names = dict.fromkeys(name for c in members for name in c.select if name not in style.UNTOLD)
        differ = [n for n in names if len({repr(c.select.get(n)) for c in members}) > 1 and n != without]
        telling[method] = list(dict.fromkeys([*telling.get(method, []), *differ]))
    groups: dict[str, list[Curve]] = {}
    for curve in moving:
        method = "" if without == "algorithm" else curve.setting.algorithm
        parts = [data.text_of(curve, "algorithm")] if method else []
        parts += [data.text_of(curve, n) for n in telling[method] if curve.select.get(n) is not None]
        groups.setdefault(" ".join(parts), []).append(curve)
    return groups


def prepare(panel: Panel, source: Source) -> Prepared:
    """Work out a panel over a swept parameter."""
    name = data.swept(panel)
    groups = group_by(panel, name)
    levels = [line for line in curves.read(panel, source) if line.level]
    looks = style.looks([members[0] for members in groups.values()])
    values = {c.label + c.setting.series: data.value_of(c, name) for g in groups.values() for c in g}
    order = _positions(list(values.values()))
    results = {label: [finals(panel, c, source) for c in members] for label, members in groups.items()}
    entries, notes = [], []
    for (label, members), look in zip(groups.items(), looks, strict=True):
        pairs = zip(members, results[label], strict=True)
        bad = "; ".join(f"{data.value_of(c, name)}{f.bad}" for c, f in pairs if f.bad)
        entries.append(Entry(f"{label} ({bad})" if bad else label, {**look.line(), **look.points()}))
        notes += [f"bars: {f.spread}" for f in results[label] if f.spread]
    entries += [curves.entry(line) for line in levels]

    def paint(fig: MplFigure, spec: Any, title: str) -> list[Axes]:
        ax = fig.add_subplot(spec)
        curves.finish(ax, panel, title)
        for (label, members), look in zip(groups.items(), looks, strict=True):
            x = np.array([order(data.value_of(c, name)) for c in members])
            _draw(ax, x, results[label], look, label)
        for line in levels:
            curves.draw_line(ax, line, 0)
        curves.draw_published(ax, panel)
        _ticks(ax, sorted({order(v) for v in values.values()}), order.names)
        curves.set_limits(ax, panel)
        if not any(np.isfinite(f.centre) for group in results.values() for f in group):
            curves.nothing(ax)
        return [ax]

    return Prepared(curves.SIZE, paint, (*entries, *curves.published_entries(panel)), tuple(notes))


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
    scaled = np.log10(places) if ax.get_xscale() == "log" and min(places) > 0 else np.array(places)
    if len(places) > 1 and np.diff(scaled).min() < 0.07 * (scaled[-1] - scaled[0]):
        return
    ax.set_xticks(places, names or [f"{v:g}" for v in places])
    ax.minorticks_off()


def _draw(ax: Axes, x: np.ndarray, group: list[Finals], look: style.Look, label: str) -> None:
    y, low, high = (np.array([getattr(f, name) for f in group]) for name in ("centre", "low", "high"))
    keep = np.argsort(x, kind="stable")
    keep = keep[np.isfinite(y[keep])]
    x, y, low, high = x[keep], y[keep], low[keep], high[keep]
    ax.errorbar(
        x, y, yerr=np.stack([y - low, high - y]), capsize=3, elinewidth=1.2, label=label, **look.line(), **look.points()
    )
