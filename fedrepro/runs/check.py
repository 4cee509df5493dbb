"""Whether kept results are what today's code gives on this machine: some of their runs are computed again and compared.

A run is computed from its start for as long as its share of the time lasts: its rounds are those of the whole run, so
the recorded ones among them must come out as they stand in the CSV.
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
"""Seconds a run is given at least, whatever its share."""


@dataclass(frozen=True)
class Kept:
    """A figure's results, with today's run for each that they hold and that can be computed here."""

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
    """The results of the plan's ``number``-th figure that can be checked; None where there are none.

    Raises UserError where results are there but cannot be: of another spec, on data that is absent or another, or not
    the file that was written.
    """
    figure = plan.figures[number]
    base = stem(root, figure)
    sidecar, table = read_sidecar(base), results_file(base)
    name = f"{figure.paper}/{figure.figure}"
    if sidecar is None or table is None:
        return None
    if sidecar.csv_sha256 != content_hash(table):
        raise UserError(f"{name}: {table} is not the file that was written; restore it with git")
    known = {(one.dataset, one.fingerprint) for one in sidecar.datasets if one.state != "none needed"}
    same = unchanged(figure, sidecar)
    found = []
    for series, setting in same.items():
        source = plan.source(setting)
        if source.state == "none needed" or (source.dataset, source.fingerprint) in known:
            today = {run.trial: run for run in plan.by_figure[number][series]}
            held = (t for t, run in enumerate(sidecar.runs.get(series, ()), start=1) if run)
            found += [dataclasses.replace(today[t], setting=setting) for t in held if t in today]
    if not found:
        why = "the spec changed" if not same else "the data they were computed on are not here"
        why = why if sidecar.runs else "the sidecar is of a version that names no runs"
        raise UserError(f"{name}: none of its runs can be checked, {why}")
    return Kept(number, figure, base, table, sidecar, tuple(found))


def unchanged(figure: Figure, sidecar: Sidecar) -> dict[str, Setting]:
    """The settings of a figure that its results have with the very same parameters, by series."""
    before = {str(facts.get("series")): facts for facts in sidecar.settings}
    return {s.series: s for s in figure.settings() if before.get(s.series) == recorded(s)}


def sample(of: Sequence[Kept], seed: int) -> Iterator[tuple[Kept, Run]]:
    """The runs of some results in random order: one of every method of every figure first."""
    draw = random.Random(seed)
    first: list[tuple[Kept, Run]] = []
    rest: list[tuple[Kept, Run]] = []
    for one in of:
        mixed = list({run.id: run for run in one.runs}.values())  # a run that two series share once
        draw.shuffle(mixed)
        seen: set[str] = set()
        for run in mixed:
            (rest if run.setting.algorithm in seen else first).append((one, run))
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
    told: Callable[[Kept, Run, Compared], None] = lambda kept, run, compared: None,
) -> dict[int, Check]:
    """Compute runs of these results again for about so many seconds and keep what came of it; by figure's number.

    A run's share of the time is that of all runs of the sample that are predicted to fit, its data's making counted.
    """
    began = time.monotonic()
    found: dict[int, list[Compared]] = {one.number: [] for one in of}
    todo = _fitting(list(sample(of, seed)), seconds, timings)
    records: dict[int, dict[tuple[str, int], Record]] = {}
    with tempfile.TemporaryDirectory(prefix="fedrepro-check-") as folder:
        for place, (one, run) in enumerate(todo):
            left = seconds - (time.monotonic() - began)
            if left <= 0.0:
                break
            if one.number not in records:
                records[one.number] = restore.records(one.sidecar, one.table, one.base)
            record = records[one.number].get((run.setting.series, run.trial))
            if record is None:
                continue
            compared = _compared(run, record, Path(folder), max(LEAST, left / (len(todo) - place)))
            found[one.number].append(compared)
            told(one, run, compared)
    return {one.number: _keep(one, found[one.number]) for one in of if found[one.number]}


def _fitting(order: list[tuple[Kept, Run]], seconds: float, timings: predict.Timings) -> list[tuple[Kept, Run]]:
    """The runs whose data can be made in the time that is left, each with its least time; none takes most of it."""
    chosen, spent = [], 0.0
    problems: set[str] = set()
    most = seconds / min(len({one.number for one, _ in order}), 8)
    for one, run in order:
        takes = min(LEAST, timings.seconds(run)) + timings.compiling([run])
        takes += 0.0 if run.problem_id in problems else timings.making([run])
        if takes <= most and spent + takes <= seconds:
            spent += takes
            problems.add(run.problem_id)
            chosen.append((one, run))
    return sorted(chosen, key=lambda pair: pair[1].problem_id)


def _keep(one: Kept, compared: Sequence[Compared]) -> Check:
    today = {(run.setting.series, run.trial): run.id for run in one.runs}
    done = Check(
        results=one.sidecar.csv_sha256,
        runs={
            series: tuple(today.get((series, trial), "") for trial in range(1, len(runs) + 1))
            for series, runs in one.sidecar.runs.items()
        },
        methods=tuple(sorted({run.setting.algorithm for run in one.runs})),
        compared=tuple(compared),
        made=made(one.figure.settings()),
    )
    with contextlib.suppress(UserError):  # a damaged one is written anew
        done = done.merged(read(one.base))
    write(one.base, done)
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
    """|a - b| over the larger of both; 0 where they are equal (or both not a number), infinite where one is not."""
    if a == b or (np.isnan(a) and np.isnan(b)):
        return 0.0
    found = abs(a - b) / max(abs(a), abs(b))
    return found if np.isfinite(found) else float("inf")


class _Limited:
    """A method that ends once its time is over, after a round at the least."""

    def __init__(self, method: Any, until: float) -> None:
        self.method, self.until, self.one_shot = method, until, method.one_shot

    def rounds(self, *args: Any, **kwargs: Any) -> Iterator[Any]:
        """The method's states until then."""
        for number, state in enumerate(self.method.rounds(*args, **kwargs)):
            yield state
            if number and time.monotonic() > self.until:
                return
