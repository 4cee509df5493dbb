"""From the rows of a result table to the numbers that are drawn: trials, averages over trials, final values."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fedrepro import registry
from fedrepro.claims.judge import Known
from fedrepro.errors import UserError
from fedrepro.results import consistency, staleness
from fedrepro.results.by_run import Rows, Runs, at_rounds
from fedrepro.results.read import points, stem, with_results
from fedrepro.results.schema import Sidecar, Timing
from fedrepro.spec import axes, panels
from fedrepro.spec.axes import Axis, Reads
from fedrepro.spec.model import Curve, Figure, Panel

if TYPE_CHECKING:
    import pandas as pd


SERIAL = "serial_seconds"
"""The time axis on which nodes run one after another; on the other one they run in parallel."""


@dataclass(frozen=True)
class FigureData:
    """The data of a figure: its spec, its tidy results, their sidecar, and the points of scatter panels.

    stale : what has changed since the results were computed.
    """

    figure: Figure
    frame: pd.DataFrame
    sidecar: Sidecar = field(default_factory=Sidecar)
    points: pd.DataFrame | None = None
    stale: tuple[str, ...] = ()

    @functools.cached_property
    def known(self) -> Known:
        """Values in the frame for panels and claims, each computed once."""
        return Known(self.frame)

    @property
    def runs(self) -> Runs:
        """The rows of the frame by run."""
        return self.known.runs

    @classmethod
    def read(cls, path: Path, tier: str, root: Path, sets: Sequence[str] = ()) -> FigureData:
        """Return the results of a spec's figure below ``root``. Raises UserError if it has none."""
        ((figure, frame, sidecar),) = with_results([path], tier, root, True, sets)
        arrays, stale = points(stem(root, figure), sidecar), staleness.stale(figure, sidecar, root)
        source = cls(figure, frame, sidecar, arrays, stale)
        if stand_ins := consistency.stand_ins(sidecar, source.runs, figure.settings()):  # the CSV alone may say so
            return source.of(figure, replace(sidecar, stand_ins=tuple(stand_ins)))
        return source

    def of(self, figure: Figure, sidecar: Sidecar) -> FigureData:
        """Return the same results for another figure, with the values already computed."""
        made = FigureData(figure, self.frame, sidecar, self.points, self.stale)
        vars(made)["known"] = self.known
        return made

    def in_short(self) -> FigureData:
        """Return the same results without measurements: one row per run, with its status."""
        rows = self.frame.drop_duplicates(["series", "trial"])
        return FigureData(self.figure, rows.reset_index(drop=True), self.sidecar, stale=self.stale)

    def stands_in(self, curves: Iterable[Curve]) -> str:
        """Return `` (stand-in)`` if all these curves use stand-in data, else ``''``."""
        return " (stand-in)" if all(c.setting.dataset in self.sidecar.stand_ins for c in curves) else ""


@dataclass(frozen=True)
class Trial:
    """The finite measurements of one run: ``status`` is ``ok``, ``diverged`` or ``failed``; x increases strictly."""

    number: int
    status: str
    x: np.ndarray
    y: np.ndarray


@dataclass(frozen=True)
class Average:
    """Mean (or median) over trials at each x; ``spread`` names the band ``low`` .. ``high``, '' if there is none."""

    x: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    spread: str


def trials(source: FigureData, curve: Curve, panel: Panel, *, x: str = "round", metric: str = "") -> list[Trial]:
    """Return all trials of a curve in the results, ordered by number; failed ones have empty arrays."""
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
    """Return the positions of the ``rows`` of one trial on an axis; nan if the results do not contain them."""
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
    """Return the note in the legend on a curve that computes T steps as one map, if the panel's axis is time."""
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
    """Return centre, low and high over the first axis, and the band's name: min to max for up to 3 trials, else one sd.

    With ``mean-sd`` the band is one sd for two and three trials too; with ``median`` it is always min to max, with
    ``median-trials`` there is none. A band of one sd that would reach 0 or less although all trials are positive ends
    at the smallest trial, because a log axis cannot show it. On a log axis it never extends below the smallest trial.
    """
    n = values.shape[0]
    centre = np.median(values, axis=0) if average.startswith("median") else values.mean(axis=0)
    low, high = values.min(axis=0), values.max(axis=0)
    if n == 1 or average == "median-trials":
        return centre, centre, centre, ""
    if average == "median" or (n <= 3 and average != "mean-sd"):
        return centre, low, high, "min–max"
    sd = values.std(axis=0, ddof=1)
    too_low = (low > 0) & (centre - sd <= (low if log else 0.0))
    return centre, np.where(too_low, low, centre - sd), centre + sd, "±1 sd"


def average(runs: Sequence[Trial], how: str = "mean", log: bool = False) -> Average | None:
    """Return the average of the healthy trials at every x of any of them; None without a healthy trial.

    A trial that stopped early keeps its last value; between records a trial is interpolated. Trials of one setting
    record the same rounds, so this only affects time axes.
    """
    healthy = [t for t in runs if t.status == "ok" and t.x.size]
    if not healthy:
        return None
    grid = np.unique(np.concatenate([t.x for t in healthy]))
    values = np.stack([np.interp(grid, t.x, t.y) for t in healthy])
    return Average(grid, *spread(values, how, log))


def final(trial: Trial, last: int = 1) -> float:
    """Return the mean of the last ``last`` records of a healthy trial, else nan."""
    return float(trial.y[-last:].mean()) if trial.status == "ok" and trial.y.size else float("nan")


@dataclass(frozen=True)
class Finals:
    """The final values of one curve over trials: centre, spread, and a text on the other trials."""

    centre: float
    low: float
    high: float
    spread: str
    bad: str = ""


def finals(source: FigureData, curve: Curve, panel: Panel, *, last: int = 1, how: str = "mean") -> Finals:
    """Return centre and spread over healthy trials of their means over the ``last`` records; nan without one."""
    runs = trials(source, curve, panel)
    values = np.array([final(t, last) for t in runs])
    values = values[np.isfinite(values)]
    bad = trouble(runs) if runs else ", no results"
    if values.size == 0:
        return Finals(np.nan, np.nan, np.nan, "", bad or ", no value")
    centre, low, high, band = spread(values[:, None], how)
    return Finals(float(centre[0]), float(low[0]), float(high[0]), band, bad)


def lost(runs: Sequence[Trial]) -> list[str]:
    """Return texts of a cell on trials that diverged or failed: ``2 of 4 diverged``."""
    return [f"{n} of {len(runs)} {s}" for s in ("diverged", "failed") if (n := sum(t.status == s for t in runs))]


def trouble(runs: Sequence[Trial]) -> str:
    """Return the text of a legend on trials that diverged or failed."""
    statuses = {t.status for t in runs}
    if len(statuses) == 1 and "ok" not in statuses:
        return f", {statuses.pop()}"
    return "".join(f" ({text})" for text in lost(runs))
