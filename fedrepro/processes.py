"""Processes beside this one that end with it, however it ends, and that leave Ctrl-C to it."""

from __future__ import annotations

import faulthandler
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from fedrepro.errors import UserError

One = TypeVar("One")
Found = TypeVar("Found")

_LOADING = threading.Lock()
"""Two threads that import joblib at once may each see half of it: Python waits for a module, not for its package."""

LOOK = 0.5
"""Seconds between two looks whether the process that started this one is still there."""

ONE_THREAD = dict.fromkeys(
    (
        "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
        "NUMBA_NUM_THREADS", "NUMEXPR_NUM_THREADS",
    ),
    "1",
)  # fmt: skip
"""What libraries read when they are loaded."""


ADVICE = "the same command tries it again; fewer workers (--jobs), or as many as fit into --memory, leave more to each"
REASONS = {
    "SIGKILL": f"most likely the memory was full; {ADVICE}",
    "SIGBUS": "most likely the disk is full, or a file it had mapped was cut; make room, and the same command goes on",
    "SIGTERM": "somebody ended it; the same command tries it again",
}
CRASHED = (
    "a library crashed in it, or the memory was full; the same command tries it again, and with PYTHONFAULTHANDLER=1 "
    "it says where it was"
)
"""What a process most likely died of, by the name of its signal; of any other."""


def pool(size: int, env: dict[str, str] | None = None) -> Any:
    """An executor of so many processes, with these variables set before they load anything.

    Where one of them dies, its futures raise ``concurrent.futures.process.BrokenProcessPool``, and it takes no more.
    """
    with _LOADING:
        from joblib.externals.loky import ProcessPoolExecutor

    return ProcessPoolExecutor(max_workers=size, env=env, initializer=_begin, initargs=(os.getpid(),))


def _begin(parent: int) -> None:
    for name in ("SIGINT", "SIGHUP"):  # a terminal sends them to all; the command ends those it started
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    if "PYTHONFAULTHANDLER" not in os.environ:  # the command says what became of a process, in words
        faulthandler.enable(open(os.devnull, "w"))  # noqa: SIM115  it stays open
    if os.name == "posix":
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK)
    os._exit(1)


def each(call: Callable[[One], Found], things: Iterable[One], jobs: int) -> Iterator[Found]:
    """What a call gives for each thing, in their order: ``jobs`` at a time, or in this process where one is enough.

    Raises what the call raises, and UserError where a process dies.
    """
    things = list(things)
    jobs = min(jobs, len(things))
    if jobs <= 1:
        yield from map(call, things)
        return
    executor = pool(jobs)
    try:
        yield from executor.map(call, things)
    except BrokenProcessPool as error:
        raise UserError(f"a process of this command {reason(error)}") from error
    finally:
        executor.shutdown(wait=False, kill_workers=True)


def reason(error: BaseException) -> str:
    """How a process ended, the likely reason, and what to do."""
    signal = re.search(r"SIG[A-Z0-9]+", str(error))
    code = re.search(r"EXIT\((-?\d+)\)", str(error))
    if signal is None:
        how = f"ended with exit code {code[1]}" if code else "ended"
    else:
        how = f"was killed ({signal[0]})" if signal[0] in ("SIGKILL", "SIGTERM") else f"crashed ({signal[0]})"
    return f"{how}: {REASONS.get(signal[0] if signal else '', CRASHED)}"
