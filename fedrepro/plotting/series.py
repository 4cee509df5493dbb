"""From the rows of a result table to the numbers that are drawn: trials, averages over trials, final values."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from fedrepro import registry
from fedrepro.claims.judge import Known
from fedrepro.errors import UserError
from fedrepro.results.by_run import Rows, Runs, at_rounds
from fedrepro.results.schema import Sidecar, Timing
from fedrepro.spec import axes, panels
from fedrepro.spec.axes import Axis, Reads
from fedrepro.spec.model import Curve, Figure, Panel

if TYPE_CHECKING:
    import pandas as pd


SERIAL = "serial_seconds"
"""The axis of the time that nodes take one after another; every other axis of time has them side by side."""


@dataclass(frozen=True)
class FigureData:
    """What a figure is drawn from: its spec, its tidy results, their sidecar, and the points of scatter panels."""

    figure: Figure
    frame: pd.DataFrame
    sidecar: Sidecar = field(default_factory=Sidecar)
    points: pd.DataFrame | None = None

    @functools.cached_property
    def known(self) -> Known:
        """What panels and claims look up in the frame, each once."""
        return Known(self.frame)

    @property
    def runs(self) -> Runs:
        """The rows of the frame by run."""
        return self.known.runs

    def of(self, figure: Figure, sidecar: Sidecar) -> FigureData:
        """The same results as another figure shows them, with what is known of them."""
        made = FigureData(figure, self.frame, sidecar, self.points)
        vars(made)["known"] = self.known
        return made

    def in_short(self) -> FigureData:
        """The same results without what was measured: one row a run, which says what became of it."""
        rows = self.frame.drop_duplicates(["series", "trial"])
        return FigureData(self.figure, rows.reset_index(drop=True), self.sidecar)

    def stands_in(self, curves: Iterable[Curve]) -> str:
        """`` (stand-in)`` where all these curves come from surrogate data, else nothing."""
        standing = set(self.sidecar.stand_ins)
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


def trials(source: FigureData, curve: Curve, panel: Panel, *, x: str = "round", metric: str = "") -> list[Trial]:
    """All trials of a curve in the results, the failed ones with empty arrays, by trial number."""
    name, runs, axis = curve.setting.series, source.runs, axes.find(panel, x)
    result = []
    for number in runs.trials(name):
        status, part = runs.status(name, number), runs.rows(name, number, metric or panel.y)
        xs, ys = along(source, curve, panel, axis, number, part), part["value"]
        keep = np.isfinite(xs) & np.isfinite(ys)
        xs, ys = xs[keep], ys[keep]
        last = np.append(xs[1:] > xs[:-1], True)[: xs.size]  # of several records at one x, the last
        result.append(Trial(number, status, xs[last], ys[last]))
    return result


def along(source: FigureData, curve: Curve, panel: Panel, axis: Axis, trial: int, rows: Rows) -> np.ndarray:
    """Where the ``rows`` of one trial lie on an axis; nan where the results do not say."""
    rounds = np.asarray(rows["round"], dtype=float)
    if axis.reads is Reads.COLUMN:
        total = np.sum([rows[name] for name in axis.columns], axis=0)
        return total / panels.variables(panel) if axis.divided else total
    if axis.reads is Reads.TIMING:
        clock = source.sidecar.timing.get(curve.setting.series, {}).get(trial, Timing((), ()))
        seconds = clock.serial if axis.name == SERIAL else clock.seconds
        if not seconds:
            return np.full(rounds.size, np.nan)
        return np.interp(rounds, clock.rounds, seconds)
    return at_rounds(source.runs.rows(curve.setting.series, trial, axis.name), rounds)  # another metric of the same run


def collapsed(curve: Curve, panel: Panel) -> str:
    """What a legend adds to a curve whose rounds are one map in place of T steps, where the panel's axis is time."""
    if axes.of(panel).reads is not Reads.TIMING:
        return ""
    setting = curve.setting
    method, data = registry.methods().get(setting.algorithm), registry.datasets().get(setting.dataset)
    if method is None or data is None:  # results of something that is no longer registered
        return ""
    try:
        facts = data.make(**setting.dataset_params).shape()
    except UserError:  # a file of the user's own that is no longer there
        return ""
    return " (T steps as one map)" if method.cls(**setting.params).collapsed(**facts) else ""


def spread(
    values: np.ndarray, average: str = "mean", log: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray, str]:
    """Centre, low, high over the first axis, and what the band is: min to max for up to 3 trials, else one sd.

    ``mean-sd`` makes it one sd for two and three trials too.
    A band of +-1 sd around the mean that would reach 0 or below while every trial is positive ends at the smallest
    trial instead, since a log axis has no place for it; on such an axis (``log``) it never reaches below that, because
    a little above 0 is as far away there. Medians always go with min to max.
    """
    n = values.shape[0]
    if average == "median":
        centre = np.median(values, axis=0)
    else:
        centre = values.mean(axis=0)
    low, high = values.min(axis=0), values.max(axis=0)
    if n == 1:
        return centre, centre, centre, ""
    if average == "median" or (n <= 3 and average != "mean-sd"):
        return centre, low, high, "min–max"
    sd = values.std(axis=0, ddof=1)
    too_low = (low > 0) & (centre - sd <= (low if log else 0.0))
    return centre, np.where(too_low, low, centre - sd), centre + sd, "±1 sd"


def average(runs: Sequence[Trial], how: str = "mean", log: bool = False) -> Average | None:
    """Average of the healthy trials at every x any of them has; None without a healthy trial.

    A trial that stopped early keeps its last value from there on; between its records it is interpolated (trials of one
    setting record the same rounds, so this matters for time axes only).
    """
    healthy = [t for t in runs if t.status == "ok" and t.x.size]
    if not healthy:
        return None
    grid = np.unique(np.concatenate([t.x for t in healthy]))
    values = np.stack([np.interp(grid, t.x, t.y) for t in healthy])
    return Average(grid, *spread(values, how, log))


def final(trial: Trial, last: int = 1) -> float:
    """The mean of the last ``last`` records of a healthy trial, else nan."""
    return float(trial.y[-last:].mean()) if trial.status == "ok" and trial.y.size else float("nan")


@dataclass(frozen=True)
class Finals:
    """The final values of one curve over trials: centre, spread, and in words what became of the other trials."""

    centre: float
    low: float
    high: float
    spread: str
    bad: str = ""


def finals(source: FigureData, curve: Curve, panel: Panel, *, last: int = 1, how: str = "mean") -> Finals:
    """Centre and spread over the healthy trials of their means over the ``last`` records; nan without one."""
    runs = trials(source, curve, panel)
    values = np.array([final(t, last) for t in runs])
    values = values[np.isfinite(values)]
    bad = trouble(runs)
    if not runs:
        bad = ", no results"
    if values.size == 0:
        return Finals(np.nan, np.nan, np.nan, "", bad or ", no value")
    centre, low, high, band = spread(values[:, None], how)
    return Finals(float(centre[0]), float(low[0]), float(high[0]), band, bad)


def lost(runs: Sequence[Trial]) -> list[str]:
    """How a cell says that some trials diverged or failed: ``2 of 4 diverged``."""
    return [f"{n} of {len(runs)} {s}" for s in ("diverged", "failed") if (n := sum(t.status == s for t in runs))]


def trouble(runs: Sequence[Trial]) -> str:
    """How a legend says that some trials, or all, diverged or failed."""
    text = ""
    for status in ("diverged", "failed"):
        n = sum(t.status == status for t in runs)
        if n:
            text += f", {status}" if n == len(runs) else f" ({n} of {len(runs)} {status})"
    return text
