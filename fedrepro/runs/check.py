"""Compares kept results with what today's code computes on this machine, on a sample of their runs.

A run is computed from its start to its last round, or until its share of the time is spent. Its rounds are then the
first rounds of the whole run, so the recorded rounds among them must equal those in the CSV. Only runs that are
computed to their last round confirm a curve.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import random
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from filelock import FileLock
from threadpoolctl import threadpool_limits

from fedrepro import cpu, registry, snapshot
from fedrepro.errors import UserError
from fedrepro.files import writing
from fedrepro.ledger import COUNTS
from fedrepro.progress import Progress
from fedrepro.protocols import Method, Problem
from fedrepro.results.checks import CLOSE, DIFFERENT, Check, Compared, Finding, deviation, read, write
from fedrepro.results.consistency import recorded
from fedrepro.results.read import content_hash, read_sidecar, results_file, stem
from fedrepro.results.receipts import Receipt, recomputed
from fedrepro.results.schema import Sidecar, rounded
from fedrepro.runs.compute import execute
from fedrepro.runs.compute.drive import History, diverged, drive, randomness
from fedrepro.runs.compute.record import Record
from fedrepro.runs.compute.run import Run
from fedrepro.runs.identity import code
from fedrepro.runs.identity.plan import Plan
from fedrepro.runs.predict import timings as predict
from fedrepro.runs.storage import restore
from fedrepro.runs.storage.write import made
from fedrepro.spec.model import Figure, Setting

LEAST = 0.5
"""Least time per run, in seconds, whatever its share."""

WHOLE = 0.7
"""The share of the time in which a sample computes runs to their last round, if they are short enough."""


@dataclass(frozen=True)
class Kept:
    """A figure's results, with today's run for each of their runs that can be computed on this machine.

    contradictions : what the sidecar states about the data that the data on this machine contradict.
    """

    number: int
    figure: Figure
    root: Path
    base: Path
    table: Path
    sidecar: Sidecar
    runs: tuple[Run, ...]
    contradictions: tuple[str, ...] = ()

    @property
    def ids(self) -> dict[str, tuple[str, ...]]:
        """By series, today's identity of each kept trial; '' for one that is missing or cannot be computed here."""
        today = {(run.setting.series, run.trial): run.id for run in self.runs}
        return {
            series: tuple(today.get((series, trial), "") for trial in range(1, len(runs) + 1))
            for series, runs in self.sidecar.runs.items()
        }


def kept(plan: Plan, number: int, root: Path) -> Kept | None:
    """Return the results of the plan's ``number``-th figure that can be checked; None if it has no results.

    Raises UserError if none of its runs can be checked: the spec has changed, the data are absent or have changed, the
    CSV is not the file that was written, or an accelerator computed them, which rounds otherwise than a CPU.
    """
    figure = plan.figures[number]
    base = stem(root, figure)
    sidecar, table = read_sidecar(base), results_file(base)
    if sidecar is None or table is None:
        return None
    if sidecar.csv_sha256 != content_hash(table):
        raise UserError(f"{figure.name}: {table} is not the file that was written; restore it with git")
    for name, version in sidecar.made.libraries.items():
        if name.endswith("-plugin") and version != code.installed(name):
            raise UserError(f"{figure.name}: computed on an accelerator ({name} {version}), which is not here")
    recorded_data = {(data.dataset, data.fingerprint): data.state for data in sidecar.datasets}
    same = unchanged(figure, sidecar)
    checkable, contradictions = [], []
    for series, setting in same.items():
        source = plan.source(setting)
        state = recorded_data.get((source.dataset, source.fingerprint))
        if state is None and source.state != "none needed":
            continue
        if state != source.state:
            contradictions.append(f"{source.dataset} is recorded as {state or 'unknown'}, but it is {source.state}")
        today = {run.trial: run for run in plan.by_figure[number][series]}
        trials = (t for t, run in enumerate(sidecar.runs.get(series, ()), start=1) if run)
        checkable += [dataclasses.replace(today[t], setting=setting) for t in trials if t in today]
    if not checkable:
        why = "the spec changed" if not same else "the data they were computed on are not here"
        why = why if sidecar.runs else "the sidecar is of a version that names no runs"
        raise UserError(f"{figure.name}: none of its runs can be checked, {why}")
    return Kept(number, figure, root, base, table, sidecar, tuple(checkable), tuple(dict.fromkeys(contradictions)))


def unchanged(figure: Figure, sidecar: Sidecar) -> dict[str, Setting]:
    """Return the settings of a figure that its results contain with the same parameters, by series."""
    before = {str(facts.get("series")): facts for facts in sidecar.settings}
    return {s.series: s for s in figure.settings() if before.get(s.series) == recorded(s)}


def sample(of: Sequence[Kept], seed: int) -> Iterator[tuple[Kept, Run]]:
    """Yield the runs of some results in random order, first one run of every curve."""
    draw = random.Random(seed)
    first: list[tuple[Kept, Run]] = []
    rest: list[tuple[Kept, Run]] = []
    for results in of:
        mixed = list({run.id: run for run in results.runs}.values())  # a run that two series share, once
        draw.shuffle(mixed)
        seen: set[str] = set()
        for run in mixed:
            (rest if run.setting.series in seen else first).append((results, run))
            seen.add(run.setting.series)
    draw.shuffle(first)
    draw.shuffle(rest)
    yield from first
    yield from rest


OnRun = Callable[[Kept, Run, Compared], None]


class Found(NamedTuple):
    """What a check found, by figure number.

    findings : with earlier comparisons in this environment. now : without them. files : that the check has written.
    """

    findings: dict[int, Finding]
    files: list[Path]
    now: dict[int, Finding]


def check(
    of: Sequence[Kept],
    seconds: float,
    seed: int,
    timings: predict.Timings,
    on_run: OnRun = lambda kept, run, compared: None,
    store: bool = True,
) -> Found:
    """Compute runs of these results again for about ``seconds``; store the findings, if asked to, and return them.

    Runs that are predicted to be short are computed to their last round. The others, and those that turn out to be
    longer, share the rest of the time equally. ``on_run`` is called with each comparison.
    """
    order = list(sample(of, seed))
    most = seconds / min(len({results.number for results in of}), 8)  # no run takes most of the time
    whole, spent = _fitting(order, WHOLE * seconds, most, timings, timings.seconds)
    chosen = {(results.number, run.id) for results, run in whole}
    others = [(results, run) for results, run in order if (results.number, run.id) not in chosen]
    begun, _ = _fitting(others, seconds - spent, most, timings, lambda run: min(LEAST, timings.seconds(run)))
    todo = [*_by_problem(whole), *_by_problem(begun)]
    began = time.monotonic()

    def limit(place: int) -> float:
        left = seconds - (time.monotonic() - began)
        return left if place < len(whole) else left / (len(todo) - place)

    outcomes: dict[int, list[Compared]] = {results.number: [] for results in of}
    for results, run, compared in _compare(todo, limit):
        outcomes[results.number].append(compared)
        on_run(results, run, compared)
    seen = [kept for kept in of if outcomes[kept.number]]
    files = [file for kept in seen if store for file in _store(kept, outcomes[kept.number])]
    return _found(seen, outcomes, files)


def confirm(
    of: Sequence[Kept],
    timings: predict.Timings,
    seed: int,
    on_run: OnRun = lambda kept, run, compared: None,
    quiet: bool = False,
    store: bool = True,
) -> Found:
    """Compute one run of every curve to its last round, the shortest first; return the findings.

    If they are stored, each comparison is stored as it ends. Curves that have a whole run already, by the same code in
    the same environment, are left out.
    """
    todo = sorted((pair for kept in of for pair in unseen(kept, seed)), key=lambda pair: timings.seconds(pair[1]))
    outcomes: dict[int, list[Compared]] = {kept.number: [] for kept in of}
    files: dict[Path, None] = {}
    costs = {run.id: timings.seconds(run) for _, run in todo}
    with Progress("runs", len(todo), sum(costs.values()), seconds=cost(todo, timings), quiet=quiet) as progress:
        for kept, run, compared in _compare(todo, lambda place: math.inf):
            outcomes[kept.number].append(compared)
            files |= dict.fromkeys(_store(kept, [compared]) if store else ())
            progress.step(run.setting.series, costs[run.id])
            on_run(kept, run, compared)
    return _found(of, outcomes, list(files))


def _found(of: Iterable[Kept], outcomes: Mapping[int, Sequence[Compared]], files: list[Path]) -> Found:
    """Return what was found for these results; those without any comparison are left out."""
    merged = {kept.number: _merged(kept, outcomes[kept.number]).findings[-1] for kept in of}
    now = {kept.number: _finding(kept, outcomes[kept.number]) for kept in of}
    merged, now = ({n: finding for n, finding in some.items() if finding.compared} for some in (merged, now))
    return Found(merged, files, now)


def unseen(kept: Kept, seed: int) -> list[tuple[Kept, Run]]:
    """Return one run of every curve that has no whole run in this environment."""
    here = _finding(kept, [])
    done = {series for finding in _findings(kept) if finding.same_environment(here) for series in finding.whole}
    first: dict[str, Run] = {}
    for _, run in sample([kept], seed):
        first.setdefault(run.setting.series, run)
    return [(kept, run) for series, run in first.items() if series not in done]


def unconfirmed(kept: Kept) -> list[str]:
    """Return the curves computed by other code, unless a check confirms that today's gives the same bits."""
    known = set(Check(kept.sidecar.csv_sha256, tuple(_findings(kept))).confirmed(kept.sidecar.csv_sha256))
    known |= {run for runs in kept.sidecar.runs.values() for run in runs}
    return list(dict.fromkeys(run.setting.series for run in kept.runs if run.id not in known))


def different(kept: Kept) -> set[str]:
    """Return the curves of which a check in this environment found a run different."""
    here = _finding(kept, [])
    findings = [finding for finding in _findings(kept) if finding.same_environment(here)]
    return {run.series for finding in findings for run in finding.compared if run.outcome == DIFFERENT}


def cost(todo: Iterable[tuple[Kept, Run]], timings: predict.Timings) -> float:
    """Return the predicted seconds, on one core, of computing these runs to their last round."""
    return timings.total([run for _, run in todo], 1)


def _fitting(
    order: Sequence[tuple[Kept, Run]],
    seconds: float,
    most: float,
    timings: predict.Timings,
    least: Callable[[Run], float],
) -> tuple[list[tuple[Kept, Run]], float]:
    """Return the runs that fit into ``seconds``, each into ``most``, with making their data, and their seconds.

    least : the seconds that a run needs at least.
    """
    chosen, spent = [], 0.0
    problems: set[str] = set()
    costs: dict[str, tuple[float, float]] = {}
    for results, run in order:
        if run.family not in costs:
            costs[run.family] = least(run) + timings.compiling([run]), timings.making([run])
        alone, making = costs[run.family]
        takes = alone + (0.0 if run.problem_id in problems else making)
        if takes <= most and spent + takes <= seconds:
            spent += takes
            problems.add(run.problem_id)
            chosen.append((results, run))
    return chosen, spent


def _by_problem(pairs: Iterable[tuple[Kept, Run]]) -> list[tuple[Kept, Run]]:
    """Return the pairs so that runs on the same arrays follow each other."""
    return sorted(pairs, key=lambda pair: pair[1].problem_id)


def _compare(todo: Sequence[tuple[Kept, Run]], limit: Callable[[int], float]) -> Iterator[tuple[Kept, Run, Compared]]:
    """Compute runs and yield their comparisons. limit : the seconds left for the run at a place; 0 ends the loop."""
    records: dict[int, dict[tuple[str, int], Record]] = {}
    with tempfile.TemporaryDirectory(prefix="fedrepro-check-") as folder:
        for place, (results, run) in enumerate(todo):
            seconds = limit(place)
            if seconds <= 0.0:
                break
            if results.number not in records:
                records[results.number] = restore.records(results.sidecar, results.table, results.base)
            record = records[results.number].get((run.setting.series, run.trial))
            if record is None:
                continue
            yield results, run, _compared(results, run, record, Path(folder), max(LEAST, seconds))


def _finding(checked: Kept, compared: Sequence[Compared]) -> Finding:
    return Finding(checked.ids, tuple(compared), made(checked.figure.settings()))


def _findings(checked: Kept) -> list[Finding]:
    """Return the stored findings about these results; none if the file is damaged, which then is replaced."""
    with contextlib.suppress(UserError):
        earlier = read(checked.base)
        return list(earlier.of(checked.sidecar.csv_sha256)) if earlier is not None else []
    return []


def _merged(checked: Kept, compared: Sequence[Compared]) -> Check:
    """Return the stored findings with more comparisons; the last finding has all comparisons of this environment."""
    return Check(checked.sidecar.csv_sha256, tuple(_findings(checked))).added(_finding(checked, compared))


def _store(checked: Kept, compared: Sequence[Compared]) -> list[Path]:
    """Add comparisons to the stored ones; return the file, or nothing if it contains them already."""
    name = f"check-{checked.figure.tier}-{checked.figure.paper}-{checked.figure.figure}.lock"
    locks = checked.root / ".locks"
    with writing(locks):
        locks.mkdir(parents=True, exist_ok=True)
    with FileLock(locks / name):
        merged = _merged(checked, compared)
        latest = merged.findings[-1]
        for known in _findings(checked):
            if known.same_environment(latest) and set(known.compared) == set(latest.compared):
                return []
        return [write(checked.base, merged)]


def receipt(of: Iterable[Finding]) -> Receipt:
    """Return a receipt of what was compared in this environment by today's code."""
    findings = list(of)
    here = made()
    versions = {"python": here.python, "fedrepro": here.fedrepro}
    for finding in findings:
        versions |= finding.made.libraries
    kernels = {name: here.kernels[name] for name in ("level", "blas")}
    return Receipt(
        runs=recomputed(findings),
        code=snapshot.program().digest,
        kernels=kernels,
        cpu=cpu.processor(),
        versions=versions,
        date=here.written[:10],
    )


def _compared(checked: Kept, run: Run, record: Record, scratch: Path, seconds: float) -> Compared:
    setting = run.setting
    problem = execute.opened(run, scratch)
    method, end = registry.methods()[setting.algorithm].cls(**setting.params), int(record.rounds[-1])
    limited = _Limited(method, time.monotonic() + seconds, end)
    with threadpool_limits(limits=1):
        history = drive(
            cast(Method, limited),
            problem,
            setting.rounds,
            rng=randomness(setting.problem, run.trial),
            init=problem.initial(run.trial),
            metrics=setting.metrics,
            record_every=setting.record_every,
            record_dense=setting.record_dense,
        )
    compared = _numbers(run, record, history, not limited.stopped, checked.sidecar.digits)
    if compared.start is None and compared.whole:
        size = json.loads((scratch / run.problem_id / execute.ABOUT).read_bytes())["size"]
        other = next(_other_facts(checked, run, record, history, problem, size), "")
        compared = dataclasses.replace(compared, start=compared.round, metric=other) if other else compared
    return compared


def _numbers(run: Run, record: Record, history: History, ended: bool, digits: int) -> Compared:
    """Compare the numbers of the rounds that were computed; ``ended`` if the run was not stopped before its end.

    digits : significant digits of the kept values, 0 for all.
    """
    here = {round_: i for i, round_ in enumerate(history.rounds.tolist())}
    kept_rounds = record.rounds.tolist()
    scales = {name: _scale(values) for name, values in record.metrics.items()}
    worst, start, where, values, last = 0.0, None, "", 0, 0
    for i, round_ in enumerate(kept_rounds):
        if round_ not in here:
            continue
        last = round_
        for name, kept_value, value in _pairs(record, i, history, here[round_], digits):
            values += 1
            deviating = deviation(kept_value, value, scales.get(name, 0.0))
            worst = max(worst, deviating)
            if deviating > (CLOSE if name in scales else 0.0) and start is None:
                start, where = round_, name
    if start is None and ended and history.rounds[-1] != kept_rounds[-1]:
        start, where = int(min(history.rounds[-1], kept_rounds[-1])) + 1, "the round in which it ends"
    return Compared(
        run.setting.series, run.trial, run.setting.algorithm, last, kept_rounds[-1], values, worst, start, where
    )


def _scale(values: np.ndarray) -> float:
    """Return the largest finite absolute value of a curve, 0 without one."""
    return float(np.max(np.abs(values), where=np.isfinite(values), initial=0.0))


def _pairs(record: Record, i: int, history: History, j: int, digits: int) -> Iterator[tuple[str, float, float]]:
    for k, name in enumerate(COUNTS):
        yield name, float(record.counts[i][k]), float(history[name][j])
    for name, kept_values in record.metrics.items():
        value = float(history[name][j])
        yield name, unrounded(float(kept_values[i]), value, digits), value


def unrounded(kept: float, computed: float, digits: int) -> float:
    """Return which of the numbers that have the kept one's digits is nearest to the computed number.

    So a computed number that differs by rounding alone deviates by that, not by a unit of the last kept digit.
    """
    if not (digits and math.isfinite(kept) and math.isfinite(computed)):
        return kept
    if rounded(computed, digits) == kept:
        return computed
    half = 0.5 * 10.0 ** (math.floor(math.log10(abs(kept))) + 1 - digits) if kept else 0.0
    return min(max(computed, kept - half), kept + half)


def _other_facts(
    checked: Kept, run: Run, record: Record, history: History, problem: Problem, size: Mapping[str, int]
) -> Iterator[str]:
    """Yield the name of each fact, apart from the numbers of rounds, in which a run that was computed whole differs."""
    method = registry.methods()[run.setting.algorithm].cls
    why = diverged(method, problem, history.diverged, {"round": history.rounds, **history.values})
    if record.meta["status"] != ("diverged" if why else "ok"):
        yield "the status"
    if record.meta["setup_scalars"] not in (0, history.ledger.setup_scalars):
        yield "the numbers sent before round 1"
    kept_size = checked.sidecar.sizes.get(run.setting.names.get("dataset", ""), {})
    if kept_size and not run.stand_in and dict(kept_size) != dict(size):
        yield "the sizes of the data"
    with threadpool_limits(limits=1):
        names = run.setting.artifacts if run.trial == 1 and record.artifacts else ()
        arrays = problem.artifacts(history.state, names) if names else {}
    for name, array in arrays.items():
        kept_array = record.artifacts.get(name)
        if kept_array is not None and not np.array_equal(np.asarray(array).reshape(kept_array.shape), kept_array):
            yield f"the array {name}"


class _Limited:
    """A method that stops when its time is over, after at least one round; ``stopped`` is true if it did.

    end : the last round of the kept run; it is always checked whether the method ends there by itself.
    """

    def __init__(self, method: Any, until: float, end: int) -> None:
        self.method, self.until, self.end, self.one_shot = method, until, end, method.one_shot
        self.stopped = False

    def rounds(self, *args: Any, **kwargs: Any) -> Iterator[Any]:
        """Yield the method's states until then."""
        for number, state in enumerate(self.method.rounds(*args, **kwargs)):
            yield state
            if number and number != self.end and time.monotonic() > self.until:
                self.stopped = True
                return
