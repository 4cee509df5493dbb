"""Curves as data for interactive pictures: every axis and every trial, thinned so that a figure's file is small.

The mean, the band and the trials of a curve share their rounds; places along another axis are means over trials.
If a figure has more numbers than ``LARGEST`` allows, fewer rounds are stored: always the first and the last, half of
them with even spacing and half with equal factors.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedrepro.plotting import naming, series, style
from fedrepro.plotting.series import FigureData
from fedrepro.report.pictures import lighter
from fedrepro.results.by_run import Rows
from fedrepro.spec import axes
from fedrepro.spec.axes import Axis, Reads
from fedrepro.spec.model import Curve, Panel
from fedrepro.spec.panels import CurvesOptions

LARGEST = 120_000
"""Approximate limit of the characters in a figure's file."""

EACH = 7
"""Characters of a number in the file."""

FEWEST, MOST = 25, 160
"""Smallest (if the curve has as many) and largest number of rounds stored of a curve."""

SPREAD = Axis("time_spread", "time (s): what the run took, spread evenly over its rounds", Reads.TIMING)
"""Time of runs without timings: drawn, and labelled as an estimate."""

COSTS = ("round", "uplink_scalars", "uplink_bits")
"""Axes that all results have."""


@dataclass(frozen=True)
class Records:
    """The records of a curve's trials: ``rounds`` (k,), ``values`` (trials, k), each axis (k,)."""

    rounds: np.ndarray
    values: np.ndarray
    numbers: tuple[int, ...]
    statuses: tuple[str, ...]
    along: Mapping[str, np.ndarray]


def explorable(panel: Panel) -> bool:
    """Return whether a panel's curves run along an axis."""
    return panel.kind == "curves" and axes.of(panel).along


def axes_of(panel: Panel, source: FigureData) -> list[Axis]:
    """Return the axes that a panel's x can be switched to, its own first."""
    clocks = {c.setting.series for c in panel.curves} <= set(source.sidecar.timing)
    time = ["seconds"] if clocks else []
    names = dict.fromkeys([panel.x, *COSTS, *time])
    spread = [] if clocks or not source.sidecar.seconds_per_run else [SPREAD]
    return [*(axes.find(panel, name) for name in names), *spread]


def records(source: FigureData, curve: Curve, panel: Panel, wanted: Iterable[Axis], metric: str = "") -> Records | None:
    """Return the records of a curve's trials, or None. A trial that ended early keeps its last value."""
    name, runs = curve.setting.series, source.runs
    rows = {n: runs.rows(name, n, metric or panel.y) for n in runs.trials(name)}
    parts = {n: part for n, part in rows.items() if part["round"].size}
    if not parts:
        return None
    rounds = np.unique(np.concatenate([part["round"] for part in parts.values()]))
    values = np.stack([_aligned(part, part["value"], rounds) for part in parts.values()])
    along = {axis.name: _mean_place(source, curve, panel, axis, parts, rounds) for axis in wanted}
    return Records(rounds, values, tuple(parts), tuple(runs.status(name, n) for n in parts), along)


def _aligned(part: Rows, values: np.ndarray, rounds: np.ndarray) -> np.ndarray:
    at = np.searchsorted(part["round"], rounds, side="right") - 1
    return np.where(at >= 0, values[np.maximum(at, 0)], np.nan)


def _mean_place(
    source: FigureData, curve: Curve, panel: Panel, axis: Axis, parts: Mapping[int, Rows], rounds: np.ndarray
) -> np.ndarray:
    """Return the places of the rounds on an axis: means over the trials with known places."""
    if axis is SPREAD:
        took = source.sidecar.seconds_per_run.get(curve.setting.series, ())
        last = max(float(rounds[-1]), 1.0)
        return rounds / last * (float(np.mean(took)) if took else math.nan)
    places = [_aligned(part, series.along(source, curve, panel, axis, n, part), rounds) for n, part in parts.items()]
    stacked = np.stack(places)
    known = np.isfinite(stacked)
    counts = known.sum(axis=0)
    summed = np.where(known, stacked, 0.0).sum(axis=0)
    return np.where(counts > 0, summed / np.maximum(counts, 1), np.nan)


def kept(count: int, most: int) -> np.ndarray:
    """Return the indices of at most ``most`` of ``count`` records, with the first and the last."""
    if count <= most:
        return np.arange(count)
    even = np.linspace(0, count - 1, most - most // 2)
    early = np.geomspace(1, count, most // 2) - 1
    return np.unique(np.rint(np.concatenate([even, early])).astype(int))


def by_panel(source: FigureData, panels: Sequence[Panel]) -> dict[str, Any]:
    """Return titles, axes and curves by panel, as the page's script reads them."""
    shown = [panel for panel in panels if explorable(panel)]
    read = {panel.id: [records(source, c, panel, axes_of(panel, source)) for c in panel.curves] for panel in shown}
    numbers = sum(4 + len(curve.along) + len(curve.numbers) for curves in read.values() for curve in curves if curve)
    most = int(np.clip(LARGEST / EACH / max(numbers, 1), FEWEST, MOST))
    return {panel.id: _panel(source, panel, read[panel.id], most) for panel in shown if any(read[panel.id])}


def _panel(source: FigureData, panel: Panel, read: Sequence[Records | None], most: int) -> dict[str, Any]:
    options = CurvesOptions.of(panel)
    drawn = zip(panel.curves, naming.legends(panel, source.figure), style.looks(panel.curves), read, strict=True)
    x = axes.of(panel)
    return {
        "title": naming.plain(panel.title),
        "x": panel.x,
        "y": naming.plain(options.ylabel or axes.metric_label(panel, panel.y)),
        "xscale": panel.xscale,
        "yscale": panel.yscale,
        "axes": [
            [a.name, naming.plain((options.xlabel if a.name == x.name else "") or a.label)]
            for a in axes_of(panel, source)
        ],
        "curves": [
            _curve(panel, curve, naming.plain(name), look, recorded, most)
            for curve, name, look, recorded in drawn
            if recorded
        ],
        "published": _published(panel),
    }


def _curve(panel: Panel, curve: Curve, name: str, look: style.Look, recorded: Records, most: int) -> dict[str, Any]:
    level = curve.role == "level"
    at = np.array([recorded.rounds.size - 1]) if level else kept(recorded.rounds.size, most)
    healthy = [i for i, status in enumerate(recorded.statuses) if status == "ok"]
    values = recorded.values[:, at]
    centre, low, high, band = values[0] * np.nan, values[0] * np.nan, values[0] * np.nan, ""
    if healthy:
        how = CurvesOptions.of(panel).average
        centre, low, high, band = series.spread(values[healthy], how, panel.yscale == "log")
    first = CurvesOptions.of(panel).starts_at if panel.x == "round" else 0
    places = {n: _short(x[at] + (first if n == "round" else 0), 7) for n, x in recorded.along.items()}
    trials = [] if len(recorded.numbers) == 1 and healthy else [_short(v, 4) for v in values]
    bad = {s: recorded.statuses.count(s) for s in ("diverged", "failed") if s in recorded.statuses}
    return {
        "series": curve.setting.series,
        "name": name + "".join(f", {n} of {len(recorded.numbers)} {s}" for s, n in bad.items()),
        "color": [look.color, lighter(look.color)],
        "dash": _dash(look.dash),
        "level": level,
        "x": places,
        "y": _short(centre, 6),
        "low": _short(low, 5) if band else [],
        "high": _short(high, 5) if band else [],
        "band": band,
        "trials": trials,
        "numbers": list(recorded.numbers),
        "healthy": len(healthy),
    }


def _dash(dash: Any) -> str:
    """Convert a dash of matplotlib to one of plotly."""
    if isinstance(dash, str):
        return {"solid": "solid", "dashed": "dash", "dotted": "dot", "dashdot": "dashdot"}.get(dash, "solid")
    return ",".join(f"{1.7 * part:g}px" for part in dash[1] or ()) or "solid"


def _short(values: np.ndarray, digits: int) -> list[float | None]:
    """Return numbers with so many digits; None for what is not finite, because JSON has no such numbers."""
    return [None if not math.isfinite(v) else _number(v, digits) for v in values.tolist()]


def _number(value: float, digits: int) -> float | int:
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def _published(panel: Panel) -> list[dict[str, Any]]:
    """Return the paper's numbers that the panel draws: points, and levels without x."""
    numbers = []
    for item in panel.published:
        if "y" in item:
            y = np.atleast_1d(item["y"]).tolist()
            x = np.atleast_1d(item["x"]).tolist() if "x" in item else []
            numbers.append({"x": x, "y": y, "name": naming.plain(f"paper: {item.get('label', '')}".rstrip(": "))})
    return numbers


def table(panel: Mapping[str, Any]) -> list[list[str]]:
    """Return the stored points of a panel's curves as rows for a file, the header first."""
    names = [name for name, _ in panel["axes"]]
    rows = [["curve", *names, "mean", "low", "high", "band", "trials"]]
    for curve in panel["curves"]:
        for i, y in enumerate(curve["y"]):
            places = [curve["x"][name][i] for name in names]
            band = [curve["low"][i], curve["high"][i]] if curve["band"] else [None, None]
            cells = ["" if v is None else f"{v}" for v in (*places, y, *band)]
            rows.append([curve["name"], *cells, curve["band"], str(curve["healthy"])])
    return rows
