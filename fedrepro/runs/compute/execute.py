"""Compute runs in the calling process: open the problem, iterate the method, measure and store."""

from __future__ import annotations

import contextlib
import copy
import functools
import hashlib
import json
import os
import shutil
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from filelock import FileLock
from threadpoolctl import threadpool_limits

from fedrepro import registry, seeds
from fedrepro.data.content_fingerprint import reading
from fedrepro.data.loading import load as load_data
from fedrepro.datasets.sizes import size
from fedrepro.errors import Unwritable, is_full
from fedrepro.files import nameless_in, writing
from fedrepro.ledger import COUNTS
from fedrepro.protocols import Method, Problem
from fedrepro.runs.compute.drive import diverged, drive, randomness
from fedrepro.runs.compute.lockstep import Lockstep, Member
from fedrepro.runs.compute.record import Record
from fedrepro.runs.compute.run import Run
from fedrepro.spec.model import Setting


def prepare(run: Run, scratch: Path) -> Path:
    """Return the folder with the arrays of the run's problem, and make it first if needed; processes memory-map it.

    Arrays that were changed or damaged are made again. Raises Unwritable if the disk is full, and what making the data
    raises.
    """
    folder = scratch / run.problem_id
    if not sound(folder):
        with writing(scratch):
            scratch.mkdir(parents=True, exist_ok=True)
            lock = FileLock(scratch / f"{run.problem_id}.lock")
            lock.acquire()
        try:
            if not sound(folder):
                _make(run, folder)
        except OSError as error:
            if is_full(error):
                raise Unwritable(folder, error) from error
            raise
        finally:
            lock.release()
    with contextlib.suppress(OSError):
        os.utime(folder)  # folders that are not used for a week are removed
    return folder


def _make(run: Run, folder: Path) -> None:
    """Make a problem's folder; its lock is held, so other parts of it were left by killed processes."""
    for old in (folder, *folder.parent.glob(f".{folder.name}.*")):
        shutil.rmtree(old) if old.is_dir() else old.unlink(missing_ok=True)
    part = folder.with_name(f".{folder.name}.{os.getpid()}")
    part.mkdir()
    try:
        with threadpool_limits(limits=1), nameless_in(part), _read_as_planned(run):
            facts = fill(run, part)
        facts["sums"] = _sums(part, marks(part))
        (part / ABOUT).write_text(json.dumps(facts, default=str), encoding="utf-8")
        part.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _read_as_planned(run: Run) -> contextlib.AbstractContextManager[None]:
    setting = run.setting
    if run.stand_in or not run.content:
        return contextlib.nullcontext()
    return reading(setting.dataset, dict(setting.dataset_params), run.content)


ABOUT = "problem.json"
"""Facts about a problem's arrays, with their checksums, which are verified, so that the arrays need no flush."""

Marks = tuple[tuple[str, int, int, int, int], ...]
"""Name, inode, size and times of every file: some of them change whenever a file is written."""


def sound(folder: Path) -> bool:
    """Return whether a problem's folder has the arrays that were written into it; each process reads them once."""
    try:
        return bool(json.loads((folder / ABOUT).read_bytes())["sums"] == _sums(folder, marks(folder)))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False


def marks(folder: Path) -> Marks:
    """Return the marks of the arrays in a problem's folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / ABOUT)
    stats = ((str(path.relative_to(folder)), path.stat()) for path in files)
    return tuple((name, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns) for name, stat in stats)


@functools.lru_cache(maxsize=64)
def _sums(folder: Path, of: Marks) -> dict[str, str]:
    sums = {}
    for name, *_ in of:
        with (folder / name).open("rb") as stream:
            sums[name] = hashlib.file_digest(stream, "sha256").hexdigest()
    return sums


def fill(run: Run, folder: Path) -> dict[str, Any]:
    """Let the problem write its arrays; return the facts and the size of the data."""
    setting = run.setting
    data, client = data_of(setting, run.trial, run.stand_in)
    registry.problems()[setting.problem].cls.prepare(folder, data, client, dict(setting.problem_params))
    return {"facts": dict(data.facts), "size": size(data)}


def data_of(setting: Setting, trial: int, stand_in: bool = False) -> tuple[Any, np.ndarray | None]:
    """Return the data of one trial of a setting, and the client of each sample (None without a partition).

    Raises DataAbsent and ParameterError.
    """
    facts: dict[str, Any] = {"dataset": setting.dataset, "params": dict(setting.dataset_params)}
    if fresh_data(setting, stand_in):
        facts["trial"] = trial
    with threadpool_limits(limits=1):
        data = load_data(
            setting.dataset, dict(setting.dataset_params), rng=seeds.generator("data", **facts), stand_in=stand_in
        )
        if setting.partition is None:
            return data, None
        params = dict(setting.partition_params)
        per_trial = params.pop("per_trial", False)
        key = {**facts, "partition": setting.partition, "with": params, "trial": trial if per_trial else 0}
        partition = registry.partitions()[setting.partition].make(**params)
        return data, partition.assign(data, seeds.generator("partition", **key))


def fresh_data(setting: Setting, stand_in: bool) -> bool:
    """Return whether each trial draws its own data: generated datasets do; all trials share a stand-in."""
    return registry.datasets()[setting.dataset].draws and not stand_in


@functools.lru_cache(maxsize=2)
def _open(problem: str, folder: Path, parameters: str, _of: Marks) -> Problem:
    opened: Problem = registry.problems()[problem].cls.stored(folder, json.loads(parameters))
    return opened


def opened(run: Run, scratch: Path) -> Problem:
    """Return the problem of a run with memory-mapped arrays. Raises what making the data raises."""
    folder = prepare(run, scratch)
    parameters = json.dumps(dict(run.setting.problem_params), sort_keys=True)
    return _open(run.setting.problem, folder, parameters, marks(folder))


def measured(setting: Setting, trial: int, problem: Problem, clock: Callable[[], float] = time.perf_counter) -> Record:
    """Return the record of one trial of a setting on its problem. Only the first trial keeps arrays for pictures.

    The times are those of a warm run, whether or not a panel shows them, because another panel may use the same run.
    Runs in lockstep are not warmed up; their times are shares of common work. ``meta`` contains the ``seconds`` that
    the run took here, and ``serial``, the same up to each recorded round.
    """
    history = drive(
        registry.methods()[setting.algorithm].cls(**setting.params),
        problem,
        setting.rounds,
        rng=randomness(setting.problem, trial),
        init=problem.initial(trial),
        metrics=setting.metrics,
        record_every=setting.record_every,
        record_dense=setting.record_dense,
        warm=clock is time.perf_counter,
        clock=clock,
    )
    keep = setting.artifacts if trial == 1 else ()
    with threadpool_limits(limits=1):
        artifacts = problem.artifacts(history.state, keep) if keep else {}
    return Record(
        meta={
            "status": "diverged" if history.diverged else "ok",
            "reason": history.diverged or "",
            "setup_scalars": history.ledger.setup_scalars,
            "by_kind": history.ledger.by_kind,
            "seconds": float(history.serial[-1]) if len(history.serial) else 0.0,
            "serial": history.serial.tolist(),
        },
        rounds=history.rounds,
        counts=np.stack([history[name] for name in COUNTS], axis=1),
        metrics={name: history[name] for name in setting.metrics},
        seconds=history.seconds,
        artifacts=artifacts,
    )


class Keeper(Protocol):
    """A ``Store``, or an object that sends runs to one."""

    def has(self, run: str) -> bool:
        """Return whether the run is finished."""

    def write(self, run: str, record: Record) -> None:
        """Store a finished run."""

    def fail(self, run: str, note: Mapping[str, Any]) -> None:
        """Store why a run failed."""


def compute(runs: Sequence[Run], store: Keeper, scratch: Path) -> list[tuple[str, str]]:
    """Compute runs on one problem, several of them in lockstep, and store each as it ends.

    Returns (run id, 'ok' | 'diverged' | 'failed: why') of each run. Raises Unwritable if results can no longer be
    stored; all other errors are recorded as failures of runs.
    """
    todo = [run for run in runs if not store.has(run.id)]
    outcomes = {run.id: "ok" for run in runs} | {run.id: "" for run in todo}
    with threadpool_limits(limits=1):
        problems = {run.id: _tried(run, store, outcomes, partial(opened, run, scratch)) for run in todo}
        ready = [run for run in todo if problems[run.id] is not None]
        if len(ready) > 1 and problems[ready[0].id].together():
            room = Lockstep(problems[ready[0].id].X)
            try:
                room.run([_in_step(run, problems[run.id], store, scratch, outcomes) for run in ready])
            except Unwritable:
                raise
            except Exception:  # in a joint pass, which ends all of them: each run then tries alone
                pass
        for run in ready:
            if not outcomes[run.id]:
                _tried(run, store, outcomes, partial(_stored, run, problems[run.id], store, scratch, outcomes))
    return list(outcomes.items())


def _in_step(
    run: Run, problem: Any, store: Keeper, scratch: Path, outcomes: dict[str, str]
) -> Callable[[Member], None]:
    def live(member: Member) -> None:
        own = copy.copy(problem)
        own.meet = member.over
        _tried(run, store, outcomes, partial(_stored, run, own, store, scratch, outcomes, member.clock))

    return live


def _stored(
    run: Run,
    problem: Problem,
    store: Keeper,
    scratch: Path,
    outcomes: dict[str, str],
    clock: Callable[[], float] = time.perf_counter,
) -> None:
    about = json.loads((scratch / run.problem_id / ABOUT).read_text(encoding="utf-8"))
    began = clock()
    record = measured(run.setting, run.trial, problem, clock)
    decide_status(record, registry.methods()[run.setting.algorithm].cls, problem)
    record.meta["took"] = clock() - began  # with warm-up and measuring, for predictions
    record.meta |= {"series": run.setting.series, "trial": run.trial, "family": run.family, "size": about["size"]}
    store.write(run.id, record)
    outcomes[run.id] = record.meta["status"]


def decide_status(record: Record, method: type[Method], problem: Problem) -> None:
    """Set the status and reason of a record: whether the run diverged, and why."""
    why = diverged(method, problem, record.meta["reason"], {"round": record.rounds, **record.metrics})
    record.meta |= {"status": "diverged" if why else "ok", "reason": why or ""}


def _tried(run: Run, store: Keeper, outcomes: dict[str, str], call: Callable[[], Any]) -> Any:
    """Return the result of the call, or None if it fails; a failure is recorded and does not end the sweep."""
    try:
        return call()
    except Unwritable:  # no other run could be stored either
        raise
    except Exception as error:
        outcomes[run.id] = f"failed: {type(error).__name__}: {error}"
        note = {"why": outcomes[run.id], "traceback": traceback.format_exc()}
        store.fail(run.id, note | {"series": run.setting.series, "trial": run.trial})
        return None
