"""The work of a worker of a dask cluster: report its program, get the data of a group, compute it, send results back.

A worker has its own files. It makes a problem's arrays itself if it can (generated data, stand-ins, a data home or a
path with the same content); otherwise the client sends them.
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
from typing import IO, Any

from filelock import FileLock, Timeout

try:
    import fcntl
except ImportError:  # on Windows, which removes no file that is mapped
    fcntl = None  # type: ignore[assignment]

from fedrepro import __version__, cpu, registry, snapshot
from fedrepro.data.content_fingerprint import fingerprint
from fedrepro.errors import UserError
from fedrepro.files import abandoned, writing
from fedrepro.runs.compute import execute
from fedrepro.runs.compute.lockstep import Stopped
from fedrepro.runs.compute.record import Record
from fedrepro.runs.identity import code

STALE_DAYS = 7
IN_USE = "in-use.lock"
"""The file in a folder of shared arrays on which every command that uses them holds a shared lock."""

DONE = ".done"
"""Suffix of the mark of a problem that some command has done while another one used the folder."""

ASKS = 0.5
"""Seconds between two checks whether the client still waits for a group."""


_PARSING = threading.Lock()
"""A worker answers in one thread while it computes in another; Python 3.11 cannot parse in two threads at a time."""


UNPROTECTED = (
    "the worker does not run from a snapshot of its program: do not edit or update the program there while it works, "
    "or start it with `python -m fedrepro.runs.worker`"
)


class Unfit(UserError):
    """A worker that cannot take part, with the reason."""


# -- the program -------------------------------------------------------------------------------------------------------


def parts(runs: Iterable[Any]) -> list[list[str]]:
    """Return the names of what these runs compute with: sorted [kind, name], in words that any version understands."""
    names = set()
    for run in runs:
        setting = run.setting
        names |= {("method", setting.algorithm), ("problem", setting.problem)}
        names |= {("stand-in" if run.stand_in else "dataset", setting.dataset)}
        names |= {("partition", setting.partition)} if setting.partition else set()
    return [list(pair) for pair in sorted(names)]


def program(names: Sequence[Sequence[str]]) -> str:
    """Return what computes these parts here, as in the identity of a run: version, digest of the code, libraries."""
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
    """Return a worker's ``program``, and ``doubts`` about the bits it computes."""
    doubts = [] if snapshot.is_snapshot() else [UNPROTECTED]
    return {"program": program(names), "doubts": [*cpu.doubts(), *doubts]}


def fit(address: str, threads: int, theirs: str, ours: str) -> None:
    """Raise Unfit if a worker would compute other numbers, or several groups in one process."""
    if theirs != ours:
        raise Unfit(
            f"the worker {address} does not run the same program; install the same there and start the worker again\n"
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
    """A group of runs on one problem.

    content : fingerprint of its data. scratch : folder of shared arrays (None: the worker chooses one).
    """

    runs: list[Any]
    content: str
    scratch: Path | None


def compute(
    ours: str, names: Sequence[Sequence[str]], number: int, job: bytes, topic: str, arrays: bytes | None = None
) -> None:
    """Compute a group and send each run back as it ends, through a queue: (number, word, run, content).

    ours : the client's program for the parts ``names``. number : the client's number of the group. job : a pickled Job,
    opened only if the programs are the same. topic : name of the queue. arrays : result of ``pack``; without it, a
    worker that lacks the data asks for it with the word "lacks".
    """
    from distributed import Queue, get_client, get_worker

    worker = get_worker()
    fit(worker.address, worker.state.nthreads, program(names), ours)
    group: Job = pickle.loads(job)
    scratch = group.scratch or _own_scratch(worker.local_directory)
    client = get_client()
    queue = Queue(topic, client=client)
    try:
        with _while_wanted(worker):
            if arrays is None and not _at_hand(group, scratch):
                queue.put([number, "lacks", "", b""])
                return
            queue.put([number, "begun", "", b""])
            if arrays is not None:
                unpack(arrays, scratch, group.runs[0].problem_id)
            kept = frozenset(client.get_metadata([topic], []))
            execute.compute(group.runs, _Post(queue, number, kept), scratch)
    except Stopped:
        pass
    finally:
        queue.close()


@dataclass(frozen=True)
class _Post:
    """Sends runs to the client's store as they end. kept : runs that a lost worker has already sent."""

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
    """Raise Stopped in this thread if the client or its connection is lost: dask itself stops no running task."""
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


# -- the data ----------------------------------------------------------------------------------------------------------


def _at_hand(job: Job, scratch: Path) -> bool:
    """Return whether the worker has the arrays of the job's problem, or can make them from the same data."""
    run = job.runs[0]
    if run.stand_in or execute.sound(scratch / run.problem_id):
        return True
    try:
        return fingerprint(run.setting.dataset, dict(run.setting.dataset_params)) == job.content
    except UserError:
        return False


@functools.cache
def _own_scratch(local_directory: str) -> Path:
    """Return the folder where the workers of one machine share arrays, next to dask's own folders."""
    scratch = Path(local_directory).parent / "fedrepro"
    evict(scratch)
    return scratch


def evict(scratch: Path) -> None:
    """Remove shared arrays that were not used for a week, and incomplete ones of killed processes."""
    if not scratch.is_dir():
        return
    for folder in scratch.iterdir():
        if folder.name == IN_USE:
            continue
        with contextlib.suppress(OSError):
            if time.time() - folder.stat().st_mtime > STALE_DAYS * 86400 or abandoned(folder.name) or _left(folder):
                shutil.rmtree(folder) if folder.is_dir() else folder.unlink()


@contextlib.contextmanager
def sharing(scratch: Path) -> Iterator[set[str]]:
    """Use shared arrays together with other commands; yield a set, to which the caller adds the problems it has done.

    The last command that uses the folder removes the arrays of these problems. Locks end with their process.
    """
    with writing(scratch):
        scratch.mkdir(parents=True, exist_ok=True)
        lock = (scratch / IN_USE).open("a")
    done: set[str] = set()
    with lock:
        with contextlib.suppress(OSError):  # a file system without locks: arrays are removed after a week
            if fcntl:
                fcntl.flock(lock, fcntl.LOCK_SH)
        try:
            yield done
        finally:
            _discard(scratch, done, lock)


def _discard(scratch: Path, done: Iterable[str], lock: IO[str]) -> None:
    """Mark problems as done, and remove the arrays of all marked problems if no other command holds the lock."""
    with contextlib.suppress(OSError):  # BlockingIOError: another command uses the folder
        for problem in done:
            (scratch / f"{problem}{DONE}").touch()
        if fcntl:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for mark in scratch.glob(f"*{DONE}"):
            shutil.rmtree(mark.with_suffix(""), ignore_errors=True)
            mark.unlink(missing_ok=True)


def _left(folder: Path) -> bool:
    """Return whether a folder contains incomplete arrays that no process is making: the problem's lock is free."""
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
    """Return a problem's folder as a zip archive in memory."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            archive.write(path, path.relative_to(folder))
    return content.getvalue()


def unpack(arrays: bytes, scratch: Path, problem: str) -> None:
    """Put a packed folder where runs look for it; it appears complete or not at all."""
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
