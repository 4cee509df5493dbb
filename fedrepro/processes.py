"""Worker processes that end with this process, however it ends, and leave Ctrl-C to it."""

from __future__ import annotations

import faulthandler
import gc
import os
import re
import signal
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from fedrepro.errors import UserError, is_full

Item = TypeVar("Item")
Result = TypeVar("Result")

_LOADING = threading.Lock()
"""Two threads that import joblib at once can each see an incomplete package: Python locks modules, not packages."""

LOOK = 0.5
"""Seconds between two checks whether the parent process still exists."""

ONE_THREAD = dict.fromkeys(
    (
        "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
        "NUMBA_NUM_THREADS", "NUMEXPR_NUM_THREADS",
    ),
    "1",
)  # fmt: skip
"""Variables that libraries read when they are loaded."""

RARELY = (20_000, 20, 20)
"""Thresholds of the garbage collector in processes that read and draw: it takes a tenth of their time by default."""

GROWN = 1 << 30
"""How many bytes a worker may grow before joblib replaces it between two tasks. With joblib's default of 300 MB, a few
networks compiled by JAX are enough, and each new worker imports and traces everything again."""

ADVICE = "the same command tries it again; fewer workers (--jobs), or as many as fit into --memory, leave more to each"
REASONS = {
    "SIGKILL": f"most likely the memory was full; {ADVICE}",
    "SIGBUS": "most likely the disk is full, or a file it had mapped was cut; free some space and repeat the command",
    "SIGTERM": "another process or user ended it; the same command tries it again",
}
CRASHED = (
    "a library crashed in it, or the memory was full; the same command tries it again, and with PYTHONFAULTHANDLER=1 "
    "it prints where it crashed"
)
"""The likely reason why a process ended, by the name of its signal, and for all others."""


def pool(size: int, env: dict[str, str] | None = None) -> Any:
    """Return an executor of ``size`` processes, with the variables ``env`` set before they load anything.

    Without ``env`` they collect garbage rarely; processes that compute hold larger arrays. If one of them dies, the
    futures raise ``concurrent.futures.process.BrokenProcessPool``, and the executor cannot be used any more. Raises
    UserError if the shared memory that processes need is full.
    """
    with _LOADING:
        from joblib.externals.loky import ProcessPoolExecutor

    # joblib warns when it replaces a worker that has grown too much; nothing is lost
    warnings.filterwarnings("ignore", "A worker stopped while some jobs were given", UserWarning)
    given = os.getpid(), __file__, env is None
    try:
        return ProcessPoolExecutor(max_workers=size, env=env, initializer=_begin, initargs=given)
    except OSError as error:
        if not is_full(error):
            raise
        raise UserError(
            "the system's shared memory (/dev/shm) is full, and worker processes need some; free it, or use --jobs 1"
        ) from error


def _begin(parent: int, module: str, rarely: bool) -> None:
    if module != __file__:  # the snapshot from which the parent runs was removed
        raise RuntimeError(f"this process loaded {__file__}, its parent {module}")
    for name in ("SIGINT", "SIGHUP"):  # a terminal sends them to all processes; the command ends its workers itself
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    if "PYTHONFAULTHANDLER" not in os.environ:  # the command itself reports how a process ended
        faulthandler.enable(open(os.devnull, "w"))  # noqa: SIM115  it stays open
    if rarely:
        gc.set_threshold(*RARELY)
    gc.callbacks.append(_SetAside())
    from joblib.externals.loky import process_executor

    process_executor._MAX_MEMORY_LEAK_SIZE = GROWN
    remember_libraries()
    if os.name == "posix":
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


class _SetAside:
    """A callback of the garbage collector that exempts what was loaded from all later collections.

    Libraries are millions of objects that stay, and joblib lets a worker collect garbage after every task.
    """

    def __init__(self) -> None:
        self.loaded = 0

    def __call__(self, phase: str, info: dict[str, int]) -> None:
        if phase == "stop" and info["generation"] == 2 and len(sys.modules) != self.loaded:
            self.loaded = len(sys.modules)
            gc.freeze()


def remember_libraries() -> None:
    """Let threadpoolctl look for libraries again only after an import.

    It reads the list of all mapped memory whenever a number of threads is limited, which is several times a run.
    """
    from threadpoolctl import ThreadpoolController

    load: Callable[[Any], None] = ThreadpoolController._load_libraries
    found: dict[int, list[Any]] = {}

    def load_libraries(controller: Any) -> None:
        if len(sys.modules) not in found:
            load(controller)
            found[len(sys.modules)] = controller.lib_controllers
        controller.lib_controllers = list(found[len(sys.modules)])

    ThreadpoolController._load_libraries = load_libraries


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK)
    os._exit(1)


def parallel_map(call: Callable[[Item], Result], items: Iterable[Item], jobs: int) -> Iterator[Result]:
    """Yield the result of a call for each item, in order: ``jobs`` at a time, or in this process if jobs is 1.

    Raises what the call raises, and UserError if a process dies.
    """
    items = list(items)
    jobs = min(jobs, len(items))
    if jobs <= 1:
        yield from map(call, items)
        return
    executor, rest = pool(jobs), deque(enumerate(items))
    futures: dict[int, Future[Result]] = {}
    try:
        for place in range(len(items)):
            while rest and not (place in futures and futures[place].done()):
                busy = [future for future in futures.values() if not future.done()]
                if len(busy) > jobs:  # loky does not end its workers if it has many more calls, or cancelled ones
                    wait(busy, return_when=FIRST_COMPLETED)
                else:
                    number, item = rest.popleft()
                    futures[number] = executor.submit(call, item)
            yield futures.pop(place).result()
    except BrokenProcessPool as error:
        raise UserError(f"a process of this command {reason(error)}") from error
    finally:
        executor.shutdown(wait=False, kill_workers=True)


def reason(error: BaseException) -> str:
    """Return how a process ended, the likely reason, and what to do."""
    signal = re.search(r"SIG[A-Z0-9]+", str(error))
    code = re.search(r"EXIT\((-?\d+)\)", str(error))
    if signal is None:
        how = f"ended with exit code {code[1]}" if code else "ended"
    else:
        how = f"was killed ({signal[0]})" if signal[0] in ("SIGKILL", "SIGTERM") else f"crashed ({signal[0]})"
    return f"{how}: {REASONS.get(signal[0] if signal else '', CRASHED)}"
