"""What a worker of a dask cluster does: tell which program it runs, get the data of a group, compute, send back.

A worker has files of its own. It makes a problem's arrays itself where it can (generated data, stand-ins, a data home
or a path with the same content) and is sent them where it cannot.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import io
import os
import pickle
import shutil
import threading
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from fedrepro import __version__, cpu, registry
from fedrepro.data import fingerprint
from fedrepro.errors import UserError
from fedrepro.files import abandoned
from fedrepro.runs.compute import execute
from fedrepro.runs.compute.lockstep import Stopped
from fedrepro.runs.compute.record import Record
from fedrepro.runs.identity import code

STALE_DAYS = 7
ASKS = 0.5
"""Seconds between two looks whether anybody still waits for a group."""


_PARSING = threading.Lock()
"""A worker is asked in one thread while it computes in another; Python 3.11 cannot parse in two at a time."""


class Unfit(UserError):
    """A worker that cannot take part, and why."""


# -- the program -------------------------------------------------------------------------------------------------------


def parts(runs: Iterable[Any]) -> list[list[str]]:
    """The names of what these runs compute with: [kind, name] in order, in words that any version understands."""
    found = set()
    for run in runs:
        setting = run.setting
        found |= {("method", setting.algorithm), ("problem", setting.problem)}
        found |= {("stand-in" if run.stand_in else "dataset", setting.dataset)}
        found |= {("partition", setting.partition)} if setting.partition else set()
    return [list(pair) for pair in sorted(found)]


def program(names: Sequence[Sequence[str]]) -> str:
    """What computes these parts here, as the identity of a run sees it: version, digest of the code, libraries."""
    with _PARSING:
        return _program(tuple((kind, name) for kind, name in names))


_TABLES: dict[str, Callable[[], Mapping[str, Any]]] = {
    "method": registry.methods,
    "problem": registry.problems,
    "dataset": registry.datasets,
    "stand-in": registry.datasets,
    "partition": registry.partitions,
}


@functools.cache
def _program(names: tuple[tuple[str, str], ...]) -> str:
    computing: list[Any] = [execute.measured, execute.fill]
    for kind, name in names:
        table: Mapping[str, Any] = _TABLES[kind]()
        if name not in table:
            return f"fedrepro {__version__} without the {kind} {name}"
        computing.append(table[name].stand_in if kind == "stand-in" else table[name].cls)
    libraries = [f"{name} {version}" for name, version in sorted(code.libraries(computing).items())]
    return ", ".join([f"fedrepro {__version__}", f"code {code.digest(computing)[:12]}", *libraries])


def facts(names: Sequence[Sequence[str]]) -> dict[str, Any]:
    """What a client asks of every worker: its ``program``, and ``doubts`` about the bits it computes."""
    return {"program": program(names), "doubts": list(cpu.doubts())}


def fit(address: str, threads: int, theirs: str, ours: str) -> None:
    """Raise Unfit where a worker would compute other numbers, or several groups in one process."""
    if theirs != ours:
        raise Unfit(
            f"the worker {address} does not run the same program; install the same there\n"
            f"  here:  {ours}\n  there: {theirs}"
        )
    if threads > 1:
        raise Unfit(
            f"the worker {address} has {threads} threads, but one process computes one group of runs at a time; "
            f"start it with `--nthreads 1 --nworkers {threads}`"
        )


# -- a group -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Job:
    """A group of runs on one problem. content : fingerprint of its data. scratch : where arrays are shared, if told."""

    runs: list[Any]
    content: str
    scratch: Path | None


def compute(
    ours: str, names: Sequence[Sequence[str]], number: int, job: bytes, topic: str, arrays: bytes | None = None
) -> None:
    """Compute a group and send back each run as it ends, by a queue: (number, word, run, content).

    ours : the client's program for the parts ``names``. number : what the client calls the group. job : a pickled Job,
    opened only once the programs are known to be the same. topic : the queue's name. arrays : of ``pack``; where they
    are not given and the worker lacks the data, it says so.
    """
    from distributed import Queue, get_client, get_worker

    worker = get_worker()
    fit(worker.address, worker.state.nthreads, program(names), ours)
    found: Job = pickle.loads(job)
    scratch = found.scratch or _own_scratch(worker.local_directory)
    client = get_client()
    queue = Queue(topic, client=client)
    try:
        with _while_wanted(worker):
            if arrays is None and not _at_hand(found, scratch):
                queue.put([number, "lacks", "", b""])
                return
            queue.put([number, "begun", "", b""])
            if arrays is not None:
                unpack(arrays, scratch, found.runs[0].problem_id)
            kept = frozenset(client.get_metadata([topic], []))
            execute.compute(found.runs, _Post(queue, number, kept), scratch)
    except Stopped:
        pass
    finally:
        queue.close()


@dataclass(frozen=True)
class _Post:
    """Sends runs to the client's store as they end. kept : those that are there from a worker that was lost."""

    queue: Any
    number: int
    kept: frozenset[str]

    def has(self, run: str) -> bool:
        return run in self.kept

    def write(self, run: str, record: Record) -> None:
        self.queue.put([self.number, "ended", run, pickle.dumps(record)])

    def fail(self, run: str, note: Mapping[str, Any]) -> None:
        self.queue.put([self.number, "failed", run, pickle.dumps(dict(note))])


@contextlib.contextmanager
def _while_wanted(worker: Any) -> Iterator[None]:
    """Raise Stopped in this thread once the client, or its connection, is gone: dask itself stops no running task."""
    key, thread, over, turn = worker.get_current_task(), threading.get_ident(), threading.Event(), threading.Lock()

    def watch() -> None:
        while not over.wait(ASKS):
            task = worker.state.tasks.get(key)
            if task is None or task.state == "cancelled":
                with turn:
                    if not over.is_set():
                        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(Stopped))
                return

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        with turn:
            over.set()


# -- its data ----------------------------------------------------------------------------------------------------------


def _at_hand(job: Job, scratch: Path) -> bool:
    """Whether the worker has the arrays of the job's problem, or can make them from the same data."""
    run = job.runs[0]
    if run.stand_in or execute.sound(scratch / run.problem_id):
        return True
    try:
        return fingerprint(run.setting.dataset, dict(run.setting.dataset_params)) == job.content
    except UserError:
        return False


@functools.cache
def _own_scratch(local_directory: str) -> Path:
    """Where the workers of one machine share arrays: beside dask's own folders for each of them."""
    scratch = Path(local_directory).parent / "fedrepro"
    evict(scratch)
    return scratch


def evict(scratch: Path) -> None:
    """Remove shared arrays that nothing has used for a week, and what processes that were killed left half-made."""
    if not scratch.is_dir():
        return
    for folder in scratch.iterdir():
        with contextlib.suppress(OSError):
            if time.time() - folder.stat().st_mtime > STALE_DAYS * 86400 or abandoned(folder.name) or _left(folder):
                shutil.rmtree(folder) if folder.is_dir() else folder.unlink()


def discard(scratch: Path, problems: Iterable[str]) -> None:
    """Remove the shared arrays of problems whose runs are done; a command that still maps them keeps what it has."""
    for problem in problems:
        with contextlib.suppress(OSError):
            shutil.rmtree(scratch / problem)


def _left(folder: Path) -> bool:
    """Whether nobody makes this half of a problem's arrays any more: nobody holds the problem's lock."""
    if not folder.name.startswith(".") or not folder.is_dir():
        return False
    lock = FileLock(folder.with_name(f"{folder.name[1:].partition('.')[0]}.lock"))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return False
    lock.release()
    return True


def pack(folder: Path) -> bytes:
    """A problem's folder as one string of bytes."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            archive.write(path, path.relative_to(folder))
    return content.getvalue()


def unpack(arrays: bytes, scratch: Path, problem: str) -> None:
    """Put a packed folder where runs look for it, whole or not at all."""
    folder = scratch / problem
    scratch.mkdir(parents=True, exist_ok=True)
    with FileLock(scratch / f"{problem}.lock"):
        if execute.sound(folder):
            return
        part = scratch / f".{problem}.{os.getpid()}"
        for old in (part, folder):
            shutil.rmtree(old, ignore_errors=True)
        try:
            with zipfile.ZipFile(io.BytesIO(arrays)) as archive:
                archive.extractall(part)
            part.rename(folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)
