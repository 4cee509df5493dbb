"""From the rows of a result table to the numbers that are drawn: trials, averages over trials, final values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from fedrepro import registry
from fedrepro.errors import ParameterError, nearest
from fedrepro.spec.model import Curve, Figure, Panel

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as MplFigure

AXES = {
    "round": "communication round",
    "uplink_scalars": "communication cost (real numbers sent up)",
    "uplink_bits": "communication cost (bits sent up)",
    "downlink_scalars": "real numbers sent down",
    "downlink_bits": "bits sent down",
    "bits_per_variable": "bits per variable, up and down",
    "seconds": "time (s)",
}
"""The x axes every curve has; else ``panel.x`` names a metric, or a swept parameter (see ``swept``)."""


@dataclass(frozen=True)
class Source:
    """What a figure is drawn from: its spec, its tidy results, their sidecar, and the points of scatter panels."""

    figure: Figure
    frame: pd.DataFrame
    sidecar: Mapping[str, Any] = field(default_factory=dict)
    points: pd.DataFrame | None = None

    def stands_in(self, curves: Iterable[Curve]) -> str:
        """`` (stand-in)`` where all these curves come from surrogate data, else nothing."""
        standing = set(self.sidecar.get("stand_ins", ()))
        return " (stand-in)" if all(c.setting.dataset in standing for c in curves) else ""


@dataclass(frozen=True)
class Trial:
    """The finite measurements of one run: ``status`` is ``ok``, ``diverged`` or ``failed``; x strictly increases."""

    number: int
    status: str
    x: np.ndarray
    y: np.ndarray


@dataclass(frozen=True)
class Average:
    """Mean (or median) over trials at each x; ``spread`` names the band ``low`` .. ``high``, '' where there is none."""

    x: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    spread: str


def trials(source: Source, curve: Curve, panel: Panel, *, x: str = "round", metric: str = "") -> list[Trial]:
    """All trials of a curve in the results, the failed ones with empty arrays, by trial number."""
    frame = source.frame
    rows = frame[frame["series"] == curve.setting.series]
    result = []
    for number in sorted(rows["trial"].unique().tolist()):
        part = rows[rows["trial"] == number]
        status = str(part["status"].iloc[0])
        part = part[part["metric"] == (metric or panel.y)].sort_values("round", kind="stable")
        xs = _axis(source, curve, panel, x, int(number), part)
        ys = part["value"].to_numpy(dtype=float)
        keep = np.isfinite(xs) & np.isfinite(ys)
        xs, ys = xs[keep], ys[keep]
        last = np.append(xs[1:] > xs[:-1], True)[: xs.size]  # of several records at one x, the last
        result.append(Trial(int(number), status, xs[last], ys[last]))
    return result


def _axis(source: Source, curve: Curve, panel: Panel, x: str, trial: int, rows: pd.DataFrame) -> np.ndarray:
    if x == "bits_per_variable":
        bits = rows["uplink_bits"].to_numpy(dtype=float) + rows["downlink_bits"].to_numpy(dtype=float)
        return bits / variables(panel)
    if x == "seconds":
        runs = source.sidecar.get("timing", {}).get(curve.setting.series, {})
        clock = runs.get(str(trial), runs.get(trial))
        if clock is None or len(clock["round"]) == 0:
            return np.full(len(rows), np.nan)
        return np.interp(rows["round"].to_numpy(dtype=float), clock["round"], clock["seconds"])
    if x not in AXES:  # another metric of the same run
        frame = source.frame
        own = frame[(frame["series"] == curve.setting.series) & (frame["trial"] == trial) & (frame["metric"] == x)]
        return own.set_index("round")["value"].reindex(rows["round"]).to_numpy(dtype=float)
    return rows[x].to_numpy(dtype=float)


def runs_along(panel: Panel) -> bool:
    """Whether the x axis is one that every curve runs along: one of ``AXES``, or a metric of the panel's problem."""
    problem = registry.problems().get(panel.curves[0].setting.problem) if panel.curves else None
    return panel.x in AXES or (problem is not None and panel.x in problem.metrics)


def variables(panel: Panel) -> float:
    """The number by which bits are divided on the axis ``bits_per_variable``: ``options.variables``."""
    value = panel.options.get("variables")
    if not isinstance(value, (int, float)) or value <= 0:
        raise ParameterError("variables", f"panel '{panel.id}' counts bits_per_variable: give options.variables > 0")
    return float(value)


def spread(values: np.ndarray, average: str = "mean") -> tuple[np.ndarray, np.ndarray, np.ndarray, str]:
    """Centre, low, high over the first axis, and what the band is: min to max for up to 3 trials, else one sd.

    A band of +-1 sd around the mean that would reach 0 or below while every trial is positive ends at the smallest
    trial instead, since a log axis has no place for it. Medians always go with min to max.
    """
    n = values.shape[0]
    if average == "median":
        centre = np.median(values, axis=0)
    else:
        centre = values.mean(axis=0)
    low, high = values.min(axis=0), values.max(axis=0)
    if n == 1:
        return centre, centre, centre, ""
    if n <= 3 or average == "median":
        return centre, low, high, "min–max"
    sd = values.std(axis=0, ddof=1)
    below = np.where((low > 0) & (centre - sd <= 0), low, centre - sd)
    return centre, below, centre + sd, "±1 sd"


def average(runs: Sequence[Trial], how: str = "mean") -> Average | None:
    """Average of the healthy trials at every x any of them has; None without a healthy trial.

    A trial that stopped early keeps its last value from there on; between its records it is interpolated (trials of one
    setting record the same rounds, so this matters for time axes only).
    """
    healthy = [t for t in runs if t.status == "ok" and t.x.size]
    if not healthy:
        return None
    grid = np.unique(np.concatenate([t.x for t in healthy]))
    values = np.stack([np.interp(grid, t.x, t.y) for t in healthy])
    return Average(grid, *spread(values, how))


def final(trial: Trial, last: int = 1) -> float:
    """The mean of the last ``last`` records of a healthy trial, else nan."""
    return float(trial.y[-last:].mean()) if trial.status == "ok" and trial.y.size else float("nan")


def swept(panel: Panel) -> str:
    """The name of the swept parameter of a panel: ``options.parameter`` where x is ``parameter``, else x itself."""
    if panel.x != "parameter":
        return panel.x
    if not panel.options.get("parameter"):
        raise ParameterError("parameter", f"panel '{panel.id}' has x: parameter; name it in options.parameter")
    return str(panel.options["parameter"])


def values_of(curve: Curve) -> dict[str, Any]:
    """Everything a curve can be told by: what the spec selects it by, then fields and parameters of its setting."""
    setting = curve.setting
    fields = {"algorithm": setting.algorithm, "dataset": setting.dataset, "partition": setting.partition}
    places = (
        curve.select,
        setting.names,
        fields,
        setting.params,
        setting.dataset_params,
        setting.partition_params,
        setting.problem_params,
        {"label": curve.label, "rounds": setting.rounds, "problem": setting.problem},
    )
    return {name: value for place in reversed(places) for name, value in place.items()}


def value_of(curve: Curve, name: str) -> Any:
    """One of ``values_of``; raises ParameterError where the curve has no such value."""
    values = values_of(curve)
    if name not in values:
        raise ParameterError(name, f"curve '{curve.label}' has no value of that name{nearest(name, values)}")
    return values[name]


def text_of(curve: Curve, name: str) -> str:
    """``value_of`` for a reader: an algorithm by its label, a dataset or label as it is, a parameter as ``m=10``."""
    value = value_of(curve, name)
    if name == "algorithm":
        entry = registry.algorithms().get(str(value))
        return entry.label if entry else str(value)
    if name in ("dataset", "partition", "label"):
        return str(value)
    return f"{name}={value}"


def axis_label(panel: Panel, way: str) -> str:
    """The label of the x or y axis: the spec's own, the axis' or metric's registered one, else the name."""
    own = panel.options.get(f"{way}label")
    if own:
        return str(own)
    if way == "x":
        return AXES.get(panel.x) or (metric_label(panel, panel.x) if runs_along(panel) else swept(panel))
    return metric_label(panel, panel.y)


def metric_label(panel: Panel, metric: str) -> str:
    """The registered label of a metric of the panel's problem, else its name."""
    problem = registry.problems().get(panel.curves[0].setting.problem) if panel.curves else None
    entry = problem.metrics.get(metric) if problem else None
    return entry.label if entry else metric


@dataclass(frozen=True)
class Entry:
    """One line of a legend: its text and the keyword arguments of the sample line beside it (none: no sample)."""

    label: str
    line: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Prepared:
    """A panel worked out and ready to paint, before the layout is known.

    size : width and height in inches, with labels; decoration : the part of the height that is title and axis labels.
    notes : facts the footer states once for the whole figure. paint(fig, spec, title) draws into a gridspec cell and
    returns the axes it made.
    """

    size: tuple[float, float]
    paint: Callable[[MplFigure, Any, str], list[Axes]]
    entries: tuple[Entry, ...] = ()
    notes: tuple[str, ...] = ()
    decoration: float = 0.8


def count(status: str, n: int, total: int) -> str:
    """How a legend says that ``n`` of ``total`` trials diverged or failed."""
    if n == 0:
        return ""
    return f", {status}" if n == total else f" ({n} of {total} {status})"
