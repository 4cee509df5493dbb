"""Read finished runs back from a figure's CSV, so that they are neither computed again nor lost.

The CSV contains every number of a run to the last bit; the sidecar names the runs and contains everything else.
"""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Container, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fedrepro.ledger import COUNTS
from fedrepro.results.consistency import follows_plan
from fedrepro.results.read import (
    as_written,
    content,
    points_file,
    read_sidecar,
    results_file,
)
from fedrepro.results.schema import Sidecar
from fedrepro.runs.compute.record import Record
from fedrepro.runs.compute.run import Run
from fedrepro.runs.identity.plan import Plan
from fedrepro.runs.storage.store import Store
from fedrepro.runs.storage.validity import kept, runs_in


def restore(plan: Plan, number: int, store: Store, root: Path, only: Container[str] | None = None) -> int:
    """Copy the runs in a figure's results into the store if it lacks them; return how many were copied.

    only : identities of the runs to copy (None: all). Results that differ from what was written (an edited or reordered
    CSV, runs that are not those of the plan) are ignored.
    """
    wanted = {run: base for run, base in kept(plan, number, root).items() if only is None or run in only}
    lacking = {run: base for run, base in wanted.items() if not store.has(run)}
    aliases = {setting.series: setting.names["dataset"] for setting in plan.figures[number].settings()}
    restored = 0
    for base in dict.fromkeys(lacking.values()):
        sidecar, table = read_sidecar(base), results_file(base)
        if sidecar is None or table is None or not (as_written(base, sidecar) and follows_plan(sidecar)):
            continue
        there = runs_in(base, sidecar, plan, number)  # by several identities, if a check compared it with other code
        names = {there[run]: run for run, place in lacking.items() if place == base}
        for series, trial, record in _records(sidecar, table, base, aliases, names):
            run = names[series, trial]
            if _fits(record, plan.runs[run], trial):
                store.write(run, record)
                restored += 1
    return restored


def _fits(record: Record, run: Run, trial: int) -> bool:
    """Return whether a record can be that of the run that the sidecar names."""
    return run.trial == trial and list(record.metrics) == list(run.setting.metrics)


def records(sidecar: Sidecar, table: Path, base: Path) -> dict[tuple[str, int], Record]:
    """Return the finished runs in a CSV, by series and trial."""
    return {(series, trial): record for series, trial, record in _records(sidecar, table, base, {})}


def _records(
    sidecar: Sidecar,
    table: Path,
    place: Path,
    aliases: Mapping[str, str],
    only: Container[tuple[str, int]] | None = None,
) -> Iterator[tuple[str, int, Record]]:
    reasons = {(note.series, note.trial): note.why for note in sidecar.diverged}
    artifacts = _artifacts(points_file(place))
    lines = io.StringIO(content(table).decode())
    at = {name: place for place, name in enumerate(next(csv.reader(lines), []))}
    rows = csv.reader(lines if only is None else _lines(lines, at, only))
    for (series, text), group in itertools.groupby(rows, key=lambda row: (row[at["series"]], row[at["trial"]])):
        trial = int(text)
        measurements = list(group)
        if measurements[0][at["status"]] == "failed":
            continue
        metrics: dict[str, list[float]] = {}
        for row in measurements:
            metrics.setdefault(row[at["metric"]], []).append(float(row[at["value"]]))
        first = next(iter(metrics))
        rounds = [row for row in measurements if row[at["metric"]] == first]
        timing = sidecar.timing.get(series, {}).get(trial)
        seconds = timing.seconds if timing is not None and timing.seconds else [float("nan")] * len(rounds)
        yield (
            series,
            trial,
            Record(
                meta={
                    "status": measurements[0][at["status"]],
                    "reason": reasons.get((series, trial), ""),
                    "setup_scalars": sidecar.setup_scalars.get(series, 0),
                    "by_kind": {},
                    "seconds": _seconds(sidecar, series, trial),
                    "serial": list(timing.serial) if timing is not None else [],
                    "series": series,
                    "trial": trial,
                    "size": sidecar.sizes.get(aliases.get(series, ""), {}),
                },
                rounds=np.array([int(row[at["round"]]) for row in rounds], dtype=np.int64),
                counts=np.array([[int(row[at[name]]) for name in COUNTS] for row in rounds], dtype=np.int64),
                metrics={name: np.array(values) for name, values in metrics.items()},
                seconds=np.array(seconds, dtype=np.float64),
                artifacts=artifacts.get((series, trial), {}),
            ),
        )


def _lines(lines: Iterable[str], at: Mapping[str, int], only: Container[tuple[str, int]]) -> Iterator[str]:
    """Yield the lines of the runs in ``only``.

    All lines of a run begin with the same columns, up to its trial. The columns after that contain no commas.
    """
    after = len(at) - 1 - at["trial"]
    for start, group in itertools.groupby(lines, key=lambda line: line.rsplit(",", after)[0]):
        row = next(csv.reader([start]))
        if (row[at["series"]], int(row[at["trial"]])) in only:
            yield from group


def _seconds(sidecar: Sidecar, series: str, trial: int) -> float:
    """Return the seconds of one run; the sidecar lists those of the finished trials, in order."""
    listed = sidecar.seconds_per_run.get(series, ())
    runs = sidecar.runs.get(series) or ("?",) * len(listed)
    place = sum(bool(run) for run in runs[: trial - 1])
    return float(listed[place]) if place < len(listed) else 0.0


def _artifacts(path: Path | None) -> dict[tuple[str, int], dict[str, np.ndarray]]:
    """Return the arrays of a points file by series and trial, each (elements, numbers)."""
    if path is None:
        return {}
    arrays: dict[tuple[str, int], dict[str, np.ndarray]] = {}
    rows = csv.reader(io.StringIO(content(path).decode()))
    next(rows)
    for (series, trial, name), group in itertools.groupby(rows, key=lambda row: tuple(row[:3])):
        arrays.setdefault((series, int(trial)), {})[name] = np.array([[_number(v) for v in row[4:]] for row in group])
    return arrays


def _number(text: str) -> Any:
    try:
        return int(text)
    except ValueError:
        return text == "True" if text in ("True", "False") else float(text)
