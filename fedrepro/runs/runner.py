"""Execute a plan: parallel trials with joblib, progress with an ETA, results written as figures are completed."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import signal
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from filelock import FileLock, Timeout
from tqdm import tqdm

from fedrepro.errors import counted
from fedrepro.files import me, sweep, writing
from fedrepro.progress import Progress
from fedrepro.results.read import SET_FOLDER, stem
from fedrepro.runs.compute.groups import groups
from fedrepro.runs.compute.run import Run
from fedrepro.runs.identity.plan import Plan
from fedrepro.runs.parts import Part
from fedrepro.runs.predict import timings as predict
from fedrepro.runs.predict.remaining import Remaining, slowdown
from fedrepro.runs.predict.timings import took
from fedrepro.runs.storage import write
from fedrepro.runs.storage.restore import restore
from fedrepro.runs.storage.store import Store
from fedrepro.runs.workers import local
from fedrepro.runs.workers.remote import Cluster
from fedrepro.runs.workers.task import evict, sharing
from fedrepro.spec.find import with_tier

SOON = 20.0
"""Predicted seconds of work up to which one worker uses the command's own process, where a crash ends the command."""

BRIEF = 2.0
"""Predicted seconds up to which all work is done in the command's own process: to start workers would take as long."""

BEGUN = f"{local.DIED} was the command itself, which ended; the same command computes it in another process"
"""The note of a run that this process computes."""


@dataclass
class Outcome:
    """The outcome of a command: runs computed, reused (``restored`` from results), failed (id -> why), interrupted.

    left : runs that were not computed because the command was interrupted.
    """

    computed: int = 0
    reused: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    diverged: int = 0
    interrupted: bool = False
    seconds: float = 0.0
    restored: int = 0
    left: int = 0
    written: list[write.Written] = field(default_factory=list)


@dataclass(frozen=True)
class Folders:
    """Folders of results: ``root`` contains the tiers, ``.runs`` the finished runs, ``.scratch`` what workers share.

    own : the folder of ``.runs`` and ``.scratch`` if it is not ``root``. inside : the folder of ``.scratch`` to use
    instead of ``.scratch`` itself.
    """

    root: Path
    own: Path | None = None
    inside: str = ""

    @property
    def store(self) -> Path:
        """The folder of finished runs."""
        return (self.own or self.root) / ".runs"

    @property
    def scratch(self) -> Path:
        """The folder of arrays that workers map into memory; safe to delete if nothing runs."""
        return (self.own or self.root) / ".scratch" / self.inside


def run(
    plan: Plan,
    folders: Folders,
    *,
    jobs: int | None,
    only: list[set[str] | None],
    fresh: bool = False,
    quiet: bool = False,
    cluster: Cluster | None = None,
    part: Part | None = None,
    on_written: Callable[[int, write.Written], None] = lambda number, written: None,
) -> Outcome:
    """Compute the missing runs of a plan and write the results of its figures; call ``on_written`` once per figure.

    jobs : groups of runs computed at a time, each in its own process (None: one per core, or as many as keep the
    ``cluster`` busy, but in this process if all takes less than ``BRIEF``; 1: in this process if it takes less than
    ``SOON``). only : for each figure, the series to compute (None: all). Finished runs are always kept: a kill loses at
    most the runs in progress, Ctrl-C ends cleanly, and a second command for the same figure waits for the first. part :
    compute only this part of the runs and write no results; commands with parts wait for no other command.
    """
    store = Store(folders.store)
    wanted = plan.chosen(only)
    figures = range(len(plan.figures) if part is None else 0)
    if part is not None:
        mine = part.runs(wanted.values())
        wanted = {id_: run for id_, run in wanted.items() if id_ in mine}
    outcome = Outcome()
    began = time.perf_counter()
    alone = _locks(plan, folders, quiet) if part is None else _own_scratch(folders)
    with alone as folders, _interruptible() as stop, sharing(folders.scratch) as done_with:
        store.open()
        if fresh:
            for id_ in wanted:
                store.forget(id_)
        else:
            only_mine = wanted if part is not None else None
            for number in range(len(plan.figures)):
                outcome.restored += restore(plan, number, store, folders.root, only_mine)
        for id_ in wanted:
            store.read(id_)  # renames a damaged record, so that the run is computed again
        todo = [r for r in plan.todo(store) if r.id in wanted]
        outcome.reused = len(wanted) - len(todo)
        evict(folders.scratch)
        written: dict[int, write.Written] = {}
        try:
            computing = _compute(plan, todo, figures, folders, jobs, outcome, stop, quiet, cluster)
            with contextlib.closing(computing) as done:
                for number, finished in done:
                    written[number] = finished
                    on_written(number, finished)
        except KeyboardInterrupt:
            outcome.interrupted = True
        finally:
            for number in figures:
                if plan.by_figure[number] and number not in written:
                    written[number] = write.write(plan, number, store, folders.root)
                    on_written(number, written[number])
        outcome.written = [written[number] for number in sorted(written)]
        if outcome.interrupted:  # workers had finished more runs than they had reported
            outcome.computed = sum(store.has(run.id) for run in todo)
            outcome.left = len(todo) - outcome.computed - len(outcome.failed)
        else:
            done_with.update(run.problem_id for run in todo if store.has(run.id))
    outcome.seconds = time.perf_counter() - began
    return outcome


def _compute(
    plan: Plan,
    todo: list[Run],
    figures: Sequence[int],
    folders: Folders,
    jobs: int | None,
    outcome: Outcome,
    stop: _Stop,
    quiet: bool,
    cluster: Cluster | None,
) -> Generator[tuple[int, write.Written]]:
    """Compute runs; yield the number and results of each figure as its last run ends, or early if none is missing."""
    if not todo:
        return
    timings = predict.Timings(folders.store)  # the progress bar needs no calibration
    costs = {run.id: timings.seconds(run) for run in todo}
    by_id = {run.id: run for run in todo}
    waiting = {n: {r.id for runs in plan.by_figure[n].values() for r in runs} & set(by_id) for n in figures}
    complete = [n for n in figures if plan.by_figure[n] and not waiting[n]]
    if cluster is None:
        workers = min(jobs or default_jobs(), len(todo))
        together = groups(todo, costs, workers, _timed(plan))
        here = sum(costs.values()) < SOON if jobs == 1 else jobs is None and timings.total(todo, 1) < BRIEF
        here = here and not _died(todo, Store(folders.store))
        workers = 1 if here else workers
        answers = _here(together, folders) if here else local.answers(together, folders.store, folders.scratch, workers)
    else:
        workers = cluster.ready()
        together = groups(todo, costs, min(jobs or workers, len(todo)), _timed(plan))
        contents = {run.problem_id: plan.source(run.setting).fingerprint for run in todo}
        answers = cluster.answers(together, contents, Store(folders.store), jobs)
    predicted = timings.total(todo, jobs or workers) * (slowdown(workers) if cluster is None else 1.0)
    store = Store(folders.store)
    remaining = Remaining(todo, costs, min(workers, len(together)))
    left = remaining.seconds if cluster is None else lambda: None  # workers of a cluster come and go
    with Progress("runs", len(todo), sum(costs.values()), seconds=predicted, left=left, quiet=quiet) as progress:
        try:
            for id_, status in answers:
                remaining.ended(by_id[id_], None if quiet or cluster is not None else took(store, id_))
                progress.step(by_id[id_].setting.series, costs[id_])
                if status.startswith("failed"):
                    outcome.failed[id_] = status
                else:
                    outcome.computed += 1
                    outcome.diverged += status == "diverged"
                for number, ids in waiting.items():
                    if id_ in ids:
                        ids.discard(id_)
                        if not ids:
                            yield number, write.write(plan, number, store, folders.root)
                if complete:  # one at a time, while workers compute
                    number = complete.pop(0)
                    yield number, write.write(plan, number, store, folders.root)
                if stop.asked:
                    outcome.interrupted = True
                    break
        finally:
            answers.close()
            timings.learn(todo)


def _here(together: list[list[Run]], folders: Folders) -> Generator[tuple[str, str]]:
    """Compute groups in this process; yield the outcome of each run once it is stored."""
    for group in together:
        with _noted_as_begun([run for run in group if run.setting.own is not None], Store(folders.store)):
            answers = local.attempt(group, folders.store, folders.scratch)
        yield from answers


@contextlib.contextmanager
def _noted_as_begun(runs: list[Run], store: Store) -> Iterator[None]:
    """Leave a note of the runs of a user's method that this process computes, for the next command if they crash it."""
    try:
        for run in runs:
            note = {"why": BEGUN, "traceback": "", "series": run.setting.series, "trial": run.trial}
            store.fail(run.id, note)
        yield
    finally:
        for run in runs:
            if _why(run, store) == BEGUN:
                store.forget_failure(run.id)


def _why(run: Run, store: Store) -> str:
    """Return why a run failed last, or ''."""
    return str((store.failure(run.id) or {"why": ""})["why"])


def _died(runs: list[Run], store: Store) -> bool:
    """Return whether the last process that computed one of these runs with a user's method died."""
    return any(run.setting.own is not None and _why(run, store).startswith(local.DIED) for run in runs)


def _timed(plan: Plan) -> frozenset[str]:
    """Return the ids of runs whose seconds are drawn."""
    pairs = zip(plan.figures, plan.by_figure, strict=True)
    return frozenset(run.id for figure, runs in pairs for name in figure.timed() for run in runs.get(name, ()))


@dataclass
class _Stop:
    asked: bool = False


@contextlib.contextmanager
def _interruptible() -> Iterator[_Stop]:
    """Make SIGTERM and SIGHUP end the command as Ctrl-C does, with finished runs kept.

    A process that a method forks, for instance with ``multiprocessing.Pool``, ends as if there were no handler.
    """
    stop, command = _Stop(), os.getpid()

    def ask(number: int, _frame: FrameType | None) -> None:
        if os.getpid() != command:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return
        stop.asked = True
        raise KeyboardInterrupt

    before = {}
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) != signal.SIG_IGN:  # nohup ignores it
            with contextlib.suppress(ValueError):  # not the main thread: signals cannot be set
                before[number] = signal.signal(number, ask)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _own_scratch(folders: Folders) -> Iterator[Folders]:
    """Yield folders with a ``scratch`` of this process: it would wait for other commands, or they remove its arrays."""
    evict(folders.scratch)
    own = dataclasses.replace(folders, inside=f"part.{me()}")
    try:
        yield own
    finally:
        shutil.rmtree(own.scratch, ignore_errors=True)


@contextlib.contextmanager
def _locks(plan: Plan, folders: Folders, quiet: bool) -> Iterator[Folders]:
    """Hold the locks of the figures' results: one command at a time. Locks end with their process, even if killed."""
    with contextlib.ExitStack() as stack:
        for figure in sorted(plan.figures, key=lambda f: (f.tier, f.paper, f.figure)):
            base = stem(folders.root, figure)
            path = folders.root / ".locks" / f"{figure.tier}-{figure.paper}-{figure.figure}.lock"
            with writing(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                lock = FileLock(path)
                try:
                    lock.acquire(timeout=0)
                except Timeout:
                    if not quiet:
                        tqdm.write(f"another command is computing {base}; waiting for it")
                    lock.acquire()
            stack.callback(lock.release)
            with writing(base.parent):
                base.parent.mkdir(parents=True, exist_ok=True)
            sweep(base.parent)
        yield folders


def default_jobs() -> int:
    """Return one worker per core that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def describe(written: write.Written) -> str:
    """Return one line about a figure's results, and a second one if they are stored in another place than usual."""
    sidecar = written.sidecar
    if written.unchanged:
        name = with_tier(sidecar.figure, sidecar.tier)
        return f"{name}: {written.base}.csv already contains these runs and others; it is unchanged"
    state = "complete" if sidecar.complete else f"{sidecar.trials_done} of {sidecar.trials_wanted} trials"
    if not sidecar.complete and (sidecar.trials_done or 0) >= (sidecar.trials_wanted or 0) and sidecar.missing:
        state = "; ".join(sidecar.missing)  # only trials that a claim asks for in addition, or curves
    if not sidecar.trials_done and (curves := sum(any(runs) for runs in sidecar.runs.values())):
        state = f"{curves} of {len(sidecar.runs)} curves"
    if written.before:
        trials = counted(sidecar.trials_done or 0, "trial")
        state += f", with {trials} instead of {written.before} (--trials {written.before} restores them)"
    marks = [f"stand-in: {', '.join(sidecar.stand_ins)}"] if sidecar.stand_ins else []
    marks += [f"{len(sidecar.diverged)} diverged"] if sidecar.diverged else []
    marks += [f"{len(sidecar.failed)} failed"] if sidecar.failed else []
    line = f"{with_tier(sidecar.figure, sidecar.tier)}: {', '.join([state, *marks])}"
    if written.beside:
        return f"{line}\n  stored in {written.base}.csv: {written.beside}"
    return line + (f"\n  in {written.base}.csv" if SET_FOLDER in written.base.parts else "")
