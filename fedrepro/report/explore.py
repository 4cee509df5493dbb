"""Curves as data for pictures that can be explored: every axis, every trial, thinned so that a figure's file is small.

A curve is kept at the same recorded rounds for its mean, its band and its trials; along another axis than rounds these
lie where the mean over trials of that axis is at the round. Where a figure has more numbers than ``LARGEST`` allows,
fewer rounds are kept, the first and the last always, half of them spaced evenly and half by equal factors.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedrepro.plotting import naming, series, style
from fedrepro.plotting.series import FigureData
from fedrepro.report.pictures import lifted
from fedrepro.results.by_run import Rows
from fedrepro.spec import axes
from fedrepro.spec.axes import Axis, Reads
from fedrepro.spec.model import Curve, Panel
from fedrepro.spec.panels import CurvesOptions

LARGEST = 120_000
"""About how many characters the file of a figure may have."""

EACH = 7
"""Characters of a number in it."""

FEWEST, MOST = 25, 160
"""Rounds that are kept of a curve, at least (of as many as it has) and at most."""

SPREAD = Axis("time_spread", "time (s): what the run took, spread evenly over its rounds", Reads.TIMING)
"""Time where no clock was kept along the run: drawn, and said to be an estimate."""

COSTS = ("round", "uplink_scalars", "uplink_bits")
"""The axes that every result has."""


@dataclass(frozen=True)
class Records:
    """What the finished trials of one curve recorded: ``rounds`` (k,), ``values`` (trials, k), each axis (k,)."""

    rounds: np.ndarray
    values: np.ndarray
    numbers: tuple[int, ...]
    statuses: tuple[str, ...]
    along: Mapping[str, np.ndarray]


def explorable(panel: Panel) -> bool:
    """Whether a panel's curves run along an axis."""
    return panel.kind == "curves" and axes.of(panel).along


def axes_of(panel: Panel, source: FigureData) -> list[Axis]:
    """The axes between which a panel's x can be switched, its own first."""
    clocks = {c.setting.series for c in panel.curves} <= set(source.sidecar.timing)
    time = ["seconds"] if clocks else []
    names = dict.fromkeys([panel.x, *COSTS, *time])
    spread = [] if clocks or not source.sidecar.seconds_per_run else [SPREAD]
    return [*(axes.find(panel, name) for name in names), *spread]


def records(source: FigureData, curve: Curve, panel: Panel, wanted: Iterable[Axis], metric: str = "") -> Records | None:
    """What a curve's trials recorded; None where there is nothing. A trial that ended early keeps its last value."""
    name, runs = curve.setting.series, source.runs
    found = {n: runs.rows(name, n, metric or panel.y) for n in runs.trials(name)}
    parts = {n: part for n, part in found.items() if part["round"].size}
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
    """Where the rounds lie on an axis: the mean over the trials of which the results say it."""
    if axis is SPREAD:
        took = source.sidecar.seconds_per_run.get(curve.setting.series, ())
        last = max(float(rounds[-1]), 1.0)
        return rounds / last * (float(np.mean(took)) if took else math.nan)
    found = [_aligned(part, series.along(source, curve, panel, axis, n, part), rounds) for n, part in parts.items()]
    stacked = np.stack(found)
    there = np.isfinite(stacked)
    counts = there.sum(axis=0)
    summed = np.where(there, stacked, 0.0).sum(axis=0)
    return np.where(counts > 0, summed / np.maximum(counts, 1), np.nan)


def kept(count: int, most: int) -> np.ndarray:
    """Which of ``count`` records are kept where ``most`` may be: their indices, the first and the last among them."""
    if count <= most:
        return np.arange(count)
    even = np.linspace(0, count - 1, most - most // 2)
    early = np.geomspace(1, count, most // 2) - 1
    return np.unique(np.rint(np.concatenate([even, early])).astype(int))


def data(source: FigureData, panels: Sequence[Panel]) -> dict[str, Any]:
    """By panel: its titles, axes and curves, as the script of the page reads them."""
    shown = [panel for panel in panels if explorable(panel)]
    read = {panel.id: [records(source, c, panel, axes_of(panel, source)) for c in panel.curves] for panel in shown}
    numbers = sum((4 + len(one.along) + len(one.numbers)) for found in read.values() for one in found if one)
    most = int(np.clip(LARGEST / EACH / max(numbers, 1), FEWEST, MOST))
    return {panel.id: _panel(source, panel, read[panel.id], most) for panel in shown if any(read[panel.id])}


def _panel(source: FigureData, panel: Panel, found: Sequence[Records | None], most: int) -> dict[str, Any]:
    options = CurvesOptions.of(panel)
    drawn = zip(panel.curves, naming.legends(panel, source.figure), style.looks(panel.curves), found, strict=True)
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
            _curve(panel, curve, naming.plain(name), look, one, most) for curve, name, look, one in drawn if one
        ],
        "published": _published(panel),
    }


def _curve(panel: Panel, curve: Curve, name: str, look: style.Look, one: Records, most: int) -> dict[str, Any]:
    level = curve.role == "level"
    at = np.array([one.rounds.size - 1]) if level else kept(one.rounds.size, most)
    healthy = [i for i, status in enumerate(one.statuses) if status == "ok"]
    values = one.values[:, at]
    centre, low, high, band = values[0] * np.nan, values[0] * np.nan, values[0] * np.nan, ""
    if healthy:
        how = CurvesOptions.of(panel).average
        centre, low, high, band = series.spread(values[healthy], how, panel.yscale == "log")
    first = CurvesOptions.of(panel).starts_at if panel.x == "round" else 0
    places = {n: _short(x[at] + (first if n == "round" else 0), 7) for n, x in one.along.items()}
    trials = [] if len(one.numbers) == 1 and healthy else [_short(v, 4) for v in values]
    bad = {s: one.statuses.count(s) for s in ("diverged", "failed") if s in one.statuses}
    return {
        "series": curve.setting.series,
        "name": name + "".join(f", {n} of {len(one.numbers)} {s}" for s, n in bad.items()),
        "color": [look.color, lifted(look.color)],
        "dash": _dash(look.dash),
        "level": level,
        "x": places,
        "y": _short(centre, 6),
        "low": _short(low, 5) if band else [],
        "high": _short(high, 5) if band else [],
        "band": band,
        "trials": trials,
        "numbers": list(one.numbers),
        "healthy": len(healthy),
    }


def _dash(dash: Any) -> str:
    """A dash of matplotlib as plotly has it."""
    if isinstance(dash, str):
        return {"solid": "solid", "dashed": "dash", "dotted": "dot", "dashdot": "dashdot"}.get(dash, "solid")
    return ",".join(f"{1.7 * part:g}px" for part in dash[1] or ()) or "solid"


def _short(values: np.ndarray, digits: int) -> list[float | None]:
    """Numbers to so many digits; what is not finite has no place in JSON."""
    return [None if not math.isfinite(v) else _number(v, digits) for v in values.tolist()]


def _number(value: float, digits: int) -> float | int:
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def _published(panel: Panel) -> list[dict[str, Any]]:
    """The paper's numbers that are drawn in the panel: points, and levels without x."""
    found = []
    for item in panel.published:
        if "y" in item:
            y = np.atleast_1d(item["y"]).tolist()
            x = np.atleast_1d(item["x"]).tolist() if "x" in item else []
            found.append({"x": x, "y": y, "name": naming.plain(f"paper: {item.get('label', '')}".rstrip(": "))})
    return found


def table(panel: Mapping[str, Any]) -> list[list[str]]:
    """The kept points of a panel's curves as rows, the header first, for a file."""
    names = [name for name, _ in panel["axes"]]
    rows = [["curve", *names, "mean", "low", "high", "band", "trials"]]
    for curve in panel["curves"]:
        for i, y in enumerate(curve["y"]):
            places = [curve["x"][name][i] for name in names]
            band = [curve["low"][i], curve["high"][i]] if curve["band"] else [None, None]
            cells = ["" if v is None else f"{v}" for v in (*places, y, *band)]
            rows.append([curve["name"], *cells, curve["band"], str(curve["healthy"])])
    return rows
