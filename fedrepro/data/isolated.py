"""Read files of unknown origin in an isolated process with a memory limit.

A damaged or malicious file can crash compiled readers or fill the memory; then only a child process ends, and the
caller gets an error. The child is started at the first call, forks for every call (if the system can), and ends after
some idle time or with its caller. Functions are called by name and return JSON, so a child that a file has taken over
can only return wrong values. Arrays are passed in files.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from fedrepro.errors import DataAbsent, ParameterError, UserError
from fedrepro.progress import human

LEAST, TIMES = 1_500_000_000, 20
"""Memory limit of reading: bytes, plus bytes per byte on disk (compressed text of short numbers needs 20)."""

IDLE = 10.0
"""Seconds after which an idle child ends."""

LIBRARIES = ("pandas", "scipy.io", "scipy.sparse", "PIL.Image")
"""Libraries that a reader loads when it first needs them; the child then loads them too, once for all later calls."""


def fair(paths: Iterable[Path]) -> int:
    """Return the memory limit in bytes for reading these files and folders. Raises UserError for pipes and devices."""
    size = 0
    for path in paths:
        refuse_devices(path)
        files = path.rglob("*") if path.is_dir() else [path]
        size += sum(file.stat().st_size for file in files if file.is_file())
    return LEAST + TIMES * size


def refuse_devices(path: Path) -> None:
    """Raise UserError for a pipe, a device or a socket, because reading it may never end."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise UserError(f"{path} is a pipe or a device, not a file; write its content to a file")


def call(function: Callable[..., Any], *arguments: Any, what: str, memory: int) -> Any:
    """Call a top-level function of this package in the child and return its result; arguments and result are JSON.

    what : the files that it reads, for messages. memory : bytes that it may use in addition to an idle child. Raises
    the function's own user errors, and UserError if the child runs out of memory or crashes.
    """
    answer = ask(f"{function.__module__}:{function.__qualname__}", arguments, memory)
    if "value" in answer:
        return answer["value"]
    kind, *details = answer["error"]
    if kind == "memory":
        raise UserError(f"{what} needs more than {human(memory)} of memory to read, the limit; unpack it first")
    if kind == "crash":
        raise UserError(f"{what} is damaged: its reader crashes ({details[0]}); get the file again")
    if kind == "other":
        raise UserError(f"{what} cannot be read ({details[0]})")
    raise {"ParameterError": ParameterError, "DataAbsent": DataAbsent, "UserError": UserError}[kind](*details)


def ask(function: str, arguments: Sequence[Any], memory: int) -> dict[str, Any]:
    """Return the child's answer: its ``value`` or ``error``, and its largest memory in bytes (``peak``)."""
    message = {"function": function, "arguments": arguments, "memory": memory, "folder": os.getcwd()}
    request = json.dumps(message).encode() + b"\n"
    with _LOCK:
        for _ in range(2):  # a child that has just ended by idling is started again
            child = _child()
            try:
                child.stdin.write(request)  # type: ignore[union-attr]
                child.stdin.flush()  # type: ignore[union-attr]
                line = child.stdout.readline()  # type: ignore[union-attr]
            except BrokenPipeError:
                line = b""
            except BaseException:  # interrupted: its late answer must not be read by another call
                _drop()
                raise
            if line:
                return dict(json.loads(line))
            status = _drop()
        return {"error": ["crash", f"status {status}"]}


# -- the caller's side -------------------------------------------------------------------------------------------------

_LOCK = threading.Lock()
_CHILDREN: dict[int, subprocess.Popen[bytes]] = {}  # by the id of the parent process: a fork has none yet


def _child() -> subprocess.Popen[bytes]:
    child = _CHILDREN.get(os.getpid())
    if child is None or child.poll() is not None:
        code = f"import sys; sys.path[:] = {[str(p) for p in sys.path]!r}; from {__name__} import serve; serve()"
        one_thread = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}
        child = _CHILDREN[os.getpid()] = subprocess.Popen(
            [sys.executable, "-I", "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **one_thread},
            start_new_session=True,  # an interrupt goes to the caller, which then ends the child
        )
    return child


def _drop() -> int | None:
    child = _CHILDREN.pop(os.getpid())
    for pipe in (child.stdin, child.stdout):
        with contextlib.suppress(OSError):
            pipe.close()  # type: ignore[union-attr]
    try:
        return child.wait(2.0)
    except subprocess.TimeoutExpired:
        child.kill()
        return child.wait()


# -- the child's side --------------------------------------------------------------------------------------------------


def serve() -> None:
    """Answer calls, one per line, until there are no more."""
    calls, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output of libraries must not look like an answer
    needed: list[str] = []
    for line in _lines(calls):
        request = json.loads(line)
        for library in needed:
            importlib.import_module(library)
        answer = _forked(request, calls) if hasattr(os, "fork") else _answer(request)
        if answer is None:
            return
        needed = _needed(answer.pop("loaded", None))
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()


def _lines(calls: BinaryIO) -> Iterator[bytes]:
    while not hasattr(os, "fork") or select.select([calls], [], [], IDLE)[0]:
        line = calls.readline()
        if not line:
            return
        yield line


def _forked(request: dict[str, Any], calls: BinaryIO) -> dict[str, Any] | None:
    """Return the answer of a fork of this process, or None if the caller no longer waits for it."""
    importlib.import_module(request["function"].partition(":")[0])  # once, for this call and the next
    ours, its = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            with os.fdopen(its, "wb") as pipe:
                answer = _answer(request)
                loaded = [library for library in LIBRARIES if library in sys.modules]
                pipe.write(json.dumps({**answer, "loaded": loaded}).encode())
        finally:
            os._exit(0)
    os.close(its)
    received, gone = b"", False
    with os.fdopen(ours, "rb", buffering=0) as pipe:
        while not gone:
            ready = select.select([pipe, calls], [], [])[0]
            if calls in ready:  # there is one call at a time, so the caller has ended
                os.kill(pid, signal.SIGKILL)
                gone = True
            elif piece := pipe.read(1 << 20):
                received += piece
            else:
                break
    _, status, used = os.wait4(pid, 0)
    if gone:
        return None
    try:
        answer = dict(json.loads(received))
    except ValueError:
        answer = {"error": ["crash", _ending(status)]}
    return {**answer, "peak": used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)}


def _needed(loaded: Any) -> list[str]:
    """Return the libraries that a fork says it has loaded; of what a file may have made it say, only those count."""
    return [library for library in LIBRARIES if isinstance(loaded, list) and library in loaded]


def _ending(status: int) -> str:
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    return f"status {os.WEXITSTATUS(status)}"


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    module, _, name = request["function"].partition(":")
    try:
        function = getattr(importlib.import_module(module), name)
        os.chdir(request["folder"])
        _limit(request["memory"])
        return {"value": function(*request["arguments"])}
    except Exception as error:  # readers raise any error on broken bytes
        if _is_memory(error):
            return {"error": ["memory"]}
        if isinstance(error, ParameterError):
            return {"error": ["ParameterError", error.name, error.message]}
        if isinstance(error, DataAbsent):
            return {"error": ["DataAbsent", error.dataset, str(error)]}
        if isinstance(error, UserError):
            return {"error": ["UserError", str(error)]}
        return {"error": ["other", f"{type(error).__name__}: {error}"]}


def _is_memory(error: BaseException | None) -> bool:
    """Return whether an error is a MemoryError, or was caused by one."""
    while error is not None and not isinstance(error, MemoryError):
        error = error.__cause__ or error.__context__
    return error is not None


def _limit(memory: int) -> None:
    """Limit this process to so much more memory than it has, if the system supports it."""
    try:
        import resource

        status = Path("/proc/self/status").read_text(encoding="ascii")
    except (ImportError, OSError):
        return
    held = next(1024 * int(line.split()[1]) for line in status.splitlines() if line.startswith("VmData:"))
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    most = held + memory if hard == resource.RLIM_INFINITY else min(held + memory, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
