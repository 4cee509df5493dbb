"""Groups of runs in processes on this machine, one group per process at a time.

Each process is a pool of its own, so that when one dies the group it was computing is known and the others continue.
"""

from __future__ import annotations

import queue
import threading
import traceback
from collections import deque
from collections.abc import Generator, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fedrepro import processes, snapshot
from fedrepro.runs.compute import execute
from fedrepro.runs.compute.run import Run
from fedrepro.runs.storage.store import Store
from fedrepro.runs.workers import programs

GRACE = 0.5
"""Seconds to wait before a dead process counts as lost: the whole command may be ending."""

DIED = "failed: its process"
"""How the failure of a run begins whose process died."""


def answers(groups: Sequence[list[Run]], store: Path, scratch: Path, jobs: int) -> Generator[tuple[str, str]]:
    """Compute the groups, ``jobs`` at a time; yield each run's outcome: (id, 'ok' | 'diverged' | 'failed: why').

    A run whose process dies has failed. To know which run it was, the rest of its group is computed run by run.
    Closing the iterator ends the processes. Raises Unwritable if results cannot be stored.
    """
    sweep = _Sweep(deque(groups), Store(store), scratch)
    threads = [threading.Thread(target=sweep.work, daemon=True) for _ in range(min(jobs, len(groups)))]
    try:
        for thread in threads:
            thread.start()
        left = len(threads)
        while left:
            outcomes = sweep.outcomes.get()
            if isinstance(outcomes, BaseException):
                raise outcomes
            left -= outcomes is None
            yield from outcomes or ()
    finally:
        sweep.stop()


def attempt(runs: Sequence[Run], store_root: Path, scratch: Path) -> list[tuple[str, str]]:
    """Compute runs into the store in a folder; see ``execute.compute``.

    Overflow is not worth a warning of numpy: the run ends as diverged, and every command says so. A method of a user
    that ends its process fails its own run only.
    """
    store = Store(store_root)
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            return execute.compute(runs, store, scratch)
    except SystemExit as error:
        if len(runs) > 1:
            return [outcome for run in runs for outcome in attempt([run], store_root, scratch)]
        (run,) = runs
        why = f"failed: SystemExit: it called sys.exit({error.code!r}); let it raise an error instead"
        note = {"why": why, "traceback": traceback.format_exc()}
        store.fail(run.id, note | {"series": run.setting.series, "trial": run.trial})
        return [(run.id, why)]


@dataclass
class _Sweep:
    """State shared by the threads, each of which leads one process.

    outcomes : of runs; each thread ends with None. making : what each group in progress makes for others, see
    ``_shared``. made : what the ended groups have made.
    """

    waiting: deque[list[Run]]
    store: Store
    scratch: Path
    outcomes: queue.SimpleQueue[list[tuple[str, str]] | BaseException | None] = field(default_factory=queue.SimpleQueue)
    over: threading.Event = field(default_factory=threading.Event)
    pools: set[Any] = field(default_factory=set)
    making: list[frozenset[str]] = field(default_factory=list)
    made: set[str] = field(default_factory=set)
    turn: threading.Lock = field(default_factory=threading.Lock)

    def work(self) -> None:
        """Let one process compute groups, replaced by another if it dies, until no group is waiting."""
        try:
            pool = None
            while not self.over.is_set():
                if (group := self._next()) is None:
                    break
                pool = pool or self._pool()
                try:
                    self.outcomes.put(pool.submit(attempt, group, self.store.root, self.scratch).result())
                except BrokenProcessPool as error:
                    self._drop(pool)
                    pool = None
                    if not self.over.wait(GRACE):
                        self.outcomes.put(self._lost(group, error))
                self._ended(group)
            if pool is not None:
                self._drop(pool)
            self.outcomes.put(None)
        except BaseException as error:
            self.outcomes.put(error)

    def stop(self) -> None:
        """End the processes at once."""
        self.over.set()
        with self.turn:
            pools = list(self.pools)
        for pool in pools:
            self._drop(pool)

    def _next(self) -> list[Run] | None:
        """Return the first waiting group whose data and compiled functions no other process is making just now.

        Any other group would wait for the data and compile the functions a second time. If all are of that kind, it is
        the first one.
        """
        with self.turn:
            if not self.waiting:
                return None
            making = frozenset().union(*self.making) - self.made
            place = next((place for place, group in enumerate(self.waiting) if not making & _shared(group)), 0)
            group = self.waiting[place]
            del self.waiting[place]
            self.making.append(_shared(group))
            return group

    def _ended(self, group: list[Run]) -> None:
        with self.turn:
            self.making.remove(_shared(group))
            self.made |= _shared(group)

    def _pool(self) -> Any:
        snapshot.require()
        pool = processes.pool(1, processes.ONE_THREAD | programs.shared(self.scratch))
        with self.turn:
            if self.over.is_set():  # nobody would end it any more, and the command would wait for it at its end
                pool.shutdown(wait=False, kill_workers=True)
            else:
                self.pools.add(pool)
        return pool

    def _drop(self, pool: Any) -> None:
        with self.turn:
            self.pools.discard(pool)
        pool.shutdown(wait=False, kill_workers=True)

    def _lost(self, group: list[Run], error: BrokenProcessPool) -> list[tuple[str, str]]:
        """Return the known outcomes of a group whose process died; its other runs are queued again, each by itself."""
        done = {run.id: record for run in group if (record := self.store.read(run.id)) is not None}
        answers = [(id_, str(record.meta["status"])) for id_, record in done.items()]
        left = [run for run in group if run.id not in done]
        if len(left) > 1:
            with self.turn:
                self.waiting.extendleft([run] for run in reversed(left))
            return answers
        for run in left:
            why = f"{DIED} {processes.reason(error)}"
            note = {"why": why, "traceback": "".join(traceback.format_exception(error))}
            self.store.fail(run.id, note | {"series": run.setting.series, "trial": run.trial})
            answers.append((run.id, why))
        return answers


def _shared(group: Sequence[Run]) -> frozenset[str]:
    """Return names of what the first group that needs it makes for all: a problem's arrays, and compiled functions."""
    setting = group[0].setting
    return frozenset({group[0].problem_id, f"problem {setting.problem}", f"method {setting.algorithm}"})
