"""One run, start to end, in the process that calls it: open its problem, iterate its method, measure, store."""

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
from fedrepro.data import load as load_data
from fedrepro.data import reading
from fedrepro.datasets.sizes import size
from fedrepro.errors import Unwritable, is_full
from fedrepro.files import nameless_in, writing
from fedrepro.ledger import COUNTS
from fedrepro.protocols import Method, Problem
from fedrepro.runs.compute.drive import diverged, drive, randomness
from fedrepro.runs.compute.lockstep import Lockstep, Member
from fedrepro.runs.compute.record import Record
from fedrepro.runs.run import Run
from fedrepro.spec.model import Setting


def prepare(run: Run, scratch: Path) -> Path:
    """The folder with the arrays of the run's problem, made by whoever asks first; processes share it by memory map.

    Arrays that are not those that were written are made again. Raises Unwritable where there is no room for them, and
    what making the data raises.
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
        os.utime(folder)  # in use: what nothing has used for a week is removed
    return folder


def _make(run: Run, folder: Path) -> None:
    """Called with the problem's lock held: what else is there of it was left by processes that were killed."""
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
"""What is known of a problem's arrays, among it their checksums: they need not be flushed, as they are looked at."""

Marks = tuple[tuple[str, int, int, int, int], ...]
"""Of every file: its name and what changes whenever it is written."""


def sound(folder: Path) -> bool:
    """Whether a problem's folder holds the arrays that were written into it. They are read once by each process."""
    try:
        return bool(json.loads((folder / ABOUT).read_bytes())["sums"] == _sums(folder, marks(folder)))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False


def marks(folder: Path) -> Marks:
    """Of the arrays in a problem's folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / ABOUT)
    stats = ((str(path.relative_to(folder)), path.stat()) for path in files)
    return tuple((name, one.st_ino, one.st_size, one.st_mtime_ns, one.st_ctime_ns) for name, one in stats)


@functools.lru_cache(maxsize=64)
def _sums(folder: Path, of: Marks) -> dict[str, str]:
    found = {}
    for name, *_ in of:
        with (folder / name).open("rb") as stream:
            found[name] = hashlib.file_digest(stream, "sha256").hexdigest()
    return found


def fill(run: Run, folder: Path) -> dict[str, Any]:
    """Let the problem write its arrays; returns the data's own facts and their size."""
    setting = run.setting
    data, client = data_of(setting, run.trial, run.stand_in)
    registry.problems()[setting.problem].cls.prepare(folder, data, client, dict(setting.problem_params))
    return {"facts": dict(data.facts), "size": size(data)}


def data_of(setting: Setting, trial: int, stand_in: bool = False) -> tuple[Any, np.ndarray | None]:
    """The data of one trial of a setting, and who holds what of it (None: nobody shares).

    The problem's ``of`` makes of both what the command line computes this trial on. Raises DataAbsent and
    ParameterError.
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
    """Whether each trial draws its own data: generated datasets do; a stand-in is one for all trials."""
    return registry.datasets()[setting.dataset].draws and not stand_in


@functools.lru_cache(maxsize=2)
def _open(problem: str, folder: Path, parameters: str, _of: Marks) -> Problem:
    opened: Problem = registry.problems()[problem].cls.stored(folder, json.loads(parameters))
    return opened


def opened(run: Run, scratch: Path) -> Problem:
    """The problem of a run, its arrays memory mapped. Raises what making the data raises."""
    folder = prepare(run, scratch)
    parameters = json.dumps(dict(run.setting.problem_params), sort_keys=True)
    return _open(run.setting.problem, folder, parameters, marks(folder))


def measured(setting: Setting, trial: int, problem: Problem, clock: Callable[[], float] = time.perf_counter) -> Record:
    """The record of one trial of a setting on its problem. Arrays for pictures are kept of the first trial.

    Its times are those of a warm run, whether or not a panel shows them: another may want the same run. Runs in step
    are not warmed up, their times are shares of common work. ``meta`` has the ``seconds`` it took here, and ``serial``,
    the same up to each recorded round.
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
    """Where runs go as they end: a ``Store``, or the way to one."""

    def has(self, run: str) -> bool:
        """Whether the run is finished."""

    def write(self, run: str, record: Record) -> None:
        """Keep a finished run."""

    def fail(self, run: str, note: Mapping[str, Any]) -> None:
        """Note why a run failed."""


def compute(runs: Sequence[Run], store: Keeper, scratch: Path) -> list[tuple[str, str]]:
    """Compute runs on one problem, in step where they are several, and store what comes of each as it ends.

    Returns (run id, 'ok' | 'diverged' | 'failed: why') of each. Raises Unwritable where nothing can be kept, no more.
    """
    todo = [run for run in runs if not store.has(run.id)]
    said = {run.id: "ok" for run in runs} | {run.id: "" for run in todo}
    with threadpool_limits(limits=1):
        problems = {run.id: _tried(run, store, said, partial(opened, run, scratch)) for run in todo}
        ready = [run for run in todo if problems[run.id] is not None]
        if len(ready) > 1 and problems[ready[0].id].together():
            room = Lockstep(problems[ready[0].id].X)
            try:
                room.run([_in_step(run, problems[run.id], store, scratch, said) for run in ready])
            except Unwritable:
                raise
            except Exception:  # of a joint pass, which ends them all: each then tries it alone
                pass
        for run in ready:
            if not said[run.id]:
                _tried(run, store, said, partial(_stored, run, problems[run.id], store, scratch, said))
    return list(said.items())


def _in_step(run: Run, problem: Any, store: Keeper, scratch: Path, said: dict[str, str]) -> Callable[[Member], None]:
    def live(member: Member) -> None:
        own = copy.copy(problem)
        own.meet = member.over
        _tried(run, store, said, partial(_stored, run, own, store, scratch, said, member.clock))

    return live


def _stored(
    run: Run,
    problem: Problem,
    store: Keeper,
    scratch: Path,
    said: dict[str, str],
    clock: Callable[[], float] = time.perf_counter,
) -> None:
    about = json.loads((scratch / run.problem_id / ABOUT).read_text(encoding="utf-8"))
    began = clock()
    record = measured(run.setting, run.trial, problem, clock)
    decide_status(record, registry.methods()[run.setting.algorithm].cls, problem)
    record.meta["took"] = clock() - began  # with warming up and measuring, to predict the next by
    record.meta |= {"series": run.setting.series, "trial": run.trial, "family": run.family, "size": about["size"]}
    store.write(run.id, record)
    said[run.id] = record.meta["status"]


def decide_status(record: Record, method: type[Method], problem: Problem) -> None:
    """Decide whether a run counts as diverged, and why."""
    why = diverged(method, problem, record.meta["reason"], {"round": record.rounds, **record.metrics})
    record.meta |= {"status": "diverged" if why else "ok", "reason": why or ""}


def _tried(run: Run, store: Keeper, said: dict[str, str], call: Callable[[], Any]) -> Any:
    """What the call gives; any failure is a recorded state of the run, not the end of the sweep, and gives None."""
    try:
        return call()
    except Unwritable:  # so it will be for every run
        raise
    except Exception as error:
        said[run.id] = f"failed: {type(error).__name__}: {error}"
        note = {"why": said[run.id], "traceback": traceback.format_exc()}
        store.fail(run.id, note | {"series": run.setting.series, "trial": run.trial})
        return None
