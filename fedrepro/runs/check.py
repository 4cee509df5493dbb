"""Compares kept results with what today's code computes on this machine, on a sample of their runs.

A run is computed from its start until its share of the time is spent. Its rounds are the first rounds of the whole run,
so the recorded rounds among them must equal those in the CSV.
"""

from __future__ import annotations

import contextlib
import dataclasses
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from threadpoolctl import threadpool_limits

from fedrepro import registry
from fedrepro.errors import UserError
from fedrepro.ledger import COUNTS
from fedrepro.protocols import Method
from fedrepro.results.checks import CLOSE, Check, Compared, read, write
from fedrepro.results.read import content_hash, read_sidecar, results_file, stem
from fedrepro.results.schema import Sidecar
from fedrepro.runs.compute import execute
from fedrepro.runs.compute.drive import drive, randomness
from fedrepro.runs.compute.record import Record
from fedrepro.runs.identity.plan import Plan
from fedrepro.runs.predict import timings as predict
from fedrepro.runs.run import Run
from fedrepro.runs.storage import restore
from fedrepro.runs.storage.validity import recorded
from fedrepro.runs.storage.write import made
from fedrepro.spec.model import Figure, Setting

LEAST = 0.5
"""Least time per run, in seconds, whatever its share."""


@dataclass(frozen=True)
class Kept:
    """A figure's results, with today's run for each of their runs that can be computed on this machine."""

    number: int
    figure: Figure
    base: Path
    table: Path
    sidecar: Sidecar
    runs: tuple[Run, ...]

    @property
    def name(self) -> str:
        """``paper/figure``."""
        return f"{self.figure.paper}/{self.figure.figure}"


def kept(plan: Plan, number: int, root: Path) -> Kept | None:
    """Return the results of the plan's ``number``-th figure that can be checked; None if it has no results.

    Raises UserError if none of its runs can be checked: the spec has changed, the data are absent or have changed, or
    the CSV is not the file that was written.
    """
    figure = plan.figures[number]
    base = stem(root, figure)
    sidecar, table = read_sidecar(base), results_file(base)
    name = f"{figure.paper}/{figure.figure}"
    if sidecar is None or table is None:
        return None
    if sidecar.csv_sha256 != content_hash(table):
        raise UserError(f"{name}: {table} is not the file that was written; restore it with git")
    known = {(data.dataset, data.fingerprint) for data in sidecar.datasets if data.state != "none needed"}
    same = unchanged(figure, sidecar)
    checkable = []
    for series, setting in same.items():
        source = plan.source(setting)
        if source.state == "none needed" or (source.dataset, source.fingerprint) in known:
            today = {run.trial: run for run in plan.by_figure[number][series]}
            trials = (t for t, run in enumerate(sidecar.runs.get(series, ()), start=1) if run)
            checkable += [dataclasses.replace(today[t], setting=setting) for t in trials if t in today]
    if not checkable:
        why = "the spec changed" if not same else "the data they were computed on are not here"
        why = why if sidecar.runs else "the sidecar is of a version that names no runs"
        raise UserError(f"{name}: none of its runs can be checked, {why}")
    return Kept(number, figure, base, table, sidecar, tuple(checkable))


def unchanged(figure: Figure, sidecar: Sidecar) -> dict[str, Setting]:
    """Return the settings of a figure that its results contain with the same parameters, by series."""
    before = {str(facts.get("series")): facts for facts in sidecar.settings}
    return {s.series: s for s in figure.settings() if before.get(s.series) == recorded(s)}


def sample(of: Sequence[Kept], seed: int) -> Iterator[tuple[Kept, Run]]:
    """Yield the runs of some results in random order, first one run per method and figure."""
    draw = random.Random(seed)
    first: list[tuple[Kept, Run]] = []
    rest: list[tuple[Kept, Run]] = []
    for results in of:
        mixed = list({run.id: run for run in results.runs}.values())  # a run that two series share, once
        draw.shuffle(mixed)
        seen: set[str] = set()
        for run in mixed:
            (rest if run.setting.algorithm in seen else first).append((results, run))
            seen.add(run.setting.algorithm)
    draw.shuffle(first)
    draw.shuffle(rest)
    yield from first
    yield from rest


def check(
    of: Sequence[Kept],
    seconds: float,
    seed: int,
    timings: predict.Timings,
    on_run: Callable[[Kept, Run, Compared], None] = lambda kept, run, compared: None,
) -> dict[int, Check]:
    """Compute runs of these results again for about ``seconds`` and store the outcome; returned by figure number.

    The time is shared equally among the sampled runs that are predicted to fit, including the making of their data.
    ``on_run`` is called with each comparison.
    """
    began = time.monotonic()
    outcomes: dict[int, list[Compared]] = {results.number: [] for results in of}
    todo = _fitting(list(sample(of, seed)), seconds, timings)
    records: dict[int, dict[tuple[str, int], Record]] = {}
    with tempfile.TemporaryDirectory(prefix="fedrepro-check-") as folder:
        for place, (results, run) in enumerate(todo):
            left = seconds - (time.monotonic() - began)
            if left <= 0.0:
                break
            if results.number not in records:
                records[results.number] = restore.records(results.sidecar, results.table, results.base)
            record = records[results.number].get((run.setting.series, run.trial))
            if record is None:
                continue
            compared = _compared(run, record, Path(folder), max(LEAST, left / (len(todo) - place)))
            outcomes[results.number].append(compared)
            on_run(results, run, compared)
    return {results.number: _keep(results, outcomes[results.number]) for results in of if outcomes[results.number]}


def _fitting(order: list[tuple[Kept, Run]], seconds: float, timings: predict.Timings) -> list[tuple[Kept, Run]]:
    """Return the runs whose data and least time fit into ``seconds``; no run takes most of it."""
    chosen, spent = [], 0.0
    problems: set[str] = set()
    most = seconds / min(len({results.number for results, _ in order}), 8)
    for results, run in order:
        takes = min(LEAST, timings.seconds(run)) + timings.compiling([run])
        takes += 0.0 if run.problem_id in problems else timings.making([run])
        if takes <= most and spent + takes <= seconds:
            spent += takes
            problems.add(run.problem_id)
            chosen.append((results, run))
    return sorted(chosen, key=lambda pair: pair[1].problem_id)


def _keep(checked: Kept, compared: Sequence[Compared]) -> Check:
    today = {(run.setting.series, run.trial): run.id for run in checked.runs}
    done = Check(
        results=checked.sidecar.csv_sha256,
        runs={
            series: tuple(today.get((series, trial), "") for trial in range(1, len(runs) + 1))
            for series, runs in checked.sidecar.runs.items()
        },
        methods=tuple(sorted({run.setting.algorithm for run in checked.runs})),
        compared=tuple(compared),
        made=made(checked.figure.settings()),
    )
    with contextlib.suppress(UserError):  # a damaged check file is replaced
        done = done.merged(read(checked.base))
    write(checked.base, done)
    return done


def _compared(run: Run, record: Record, scratch: Path, seconds: float) -> Compared:
    setting = run.setting
    method = registry.methods()[setting.algorithm].cls(**setting.params)
    problem = execute.opened(run, scratch)
    with threadpool_limits(limits=1):
        history = drive(
            cast(Method, _Limited(method, time.monotonic() + seconds)),
            problem,
            setting.rounds,
            rng=randomness(setting.problem, run.trial),
            init=problem.initial(run.trial),
            metrics=setting.metrics,
            record_every=setting.record_every,
            record_dense=setting.record_dense,
        )
    here = {round_: i for i, round_ in enumerate(history.rounds.tolist())}
    worst, start, where, values, last = 0.0, None, "", 0, 0
    for i, round_ in enumerate(record.rounds.tolist()):
        if round_ not in here:
            continue
        last = round_
        for name, kept_value, value in _pairs(record, i, history, here[round_]):
            values += 1
            deviation = _deviation(kept_value, value)
            worst = max(worst, deviation)
            if deviation > CLOSE and start is None:
                start, where = round_, name
    return Compared(
        setting.series, run.trial, setting.algorithm, last, int(record.rounds[-1]), values, worst, start, where
    )


def _pairs(record: Record, i: int, history: Any, j: int) -> Iterator[tuple[str, float, float]]:
    for k, name in enumerate(COUNTS):
        yield name, float(record.counts[i][k]), float(history[name][j])
    for name, kept_values in record.metrics.items():
        yield name, float(kept_values[i]), float(history[name][j])


def _deviation(a: float, b: float) -> float:
    """Return |a - b| / max(|a|, |b|): 0 if they are equal or both NaN, infinite if only one is finite."""
    if a == b or (np.isnan(a) and np.isnan(b)):
        return 0.0
    deviation = abs(a - b) / max(abs(a), abs(b))
    return deviation if np.isfinite(deviation) else float("inf")


class _Limited:
    """A method that stops when its time is over, after at least one round."""

    def __init__(self, method: Any, until: float) -> None:
        self.method, self.until, self.one_shot = method, until, method.one_shot

    def rounds(self, *args: Any, **kwargs: Any) -> Iterator[Any]:
        """Yield the method's states until then."""
        for number, state in enumerate(self.method.rounds(*args, **kwargs)):
            yield state
            if number and time.monotonic() > self.until:
                return
