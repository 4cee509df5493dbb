"""Groups of runs in processes of this machine, one group in a process at a time.

Every process is a pool of its own: where one dies, it is known which group it was computing, and the others go on.
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

from fedrepro import processes
from fedrepro.runs.compute import execute
from fedrepro.runs.run import Run
from fedrepro.runs.storage.store import Store
from fedrepro.runs.workers import programs

GRACE = 0.5
"""Seconds that a command which is itself being ended has to say so, before a dead process counts as lost."""


def answers(groups: Sequence[list[Run]], store: Path, scratch: Path, jobs: int) -> Generator[tuple[str, str]]:
    """Compute the groups, ``jobs`` at a time; what each run came to, (id, 'ok' | 'diverged' | 'failed: why').

    A run whose process dies has failed; so that this is known of a run and not of a group, what is left of a group is
    computed run by run. Closing the iterator ends the processes. Raises Unwritable where nothing can be kept.
    """
    sweep = _Sweep(deque(groups), Store(store), scratch)
    threads = [threading.Thread(target=sweep.work, daemon=True) for _ in range(min(jobs, len(groups)))]
    try:
        for thread in threads:
            thread.start()
        left = len(threads)
        while left:
            found = sweep.found.get()
            if isinstance(found, BaseException):
                raise found
            left -= found is None
            yield from found or ()
    finally:
        sweep.stop()


def attempt(runs: Sequence[Run], store_root: Path, scratch: Path) -> list[tuple[str, str]]:
    """Compute runs into the store in a folder; see ``execute.compute``."""
    return execute.compute(runs, Store(store_root), scratch)


@dataclass
class _Sweep:
    """What the threads that lead one process each have in common. found : what runs came to, None from each at last."""

    waiting: deque[list[Run]]
    store: Store
    scratch: Path
    found: queue.SimpleQueue[list[tuple[str, str]] | BaseException | None] = field(default_factory=queue.SimpleQueue)
    over: threading.Event = field(default_factory=threading.Event)
    pools: set[Any] = field(default_factory=set)
    turn: threading.Lock = field(default_factory=threading.Lock)

    def work(self) -> None:
        """Have groups computed by one process, and by another where that dies, until none is waiting."""
        try:
            pool = None
            while not self.over.is_set():
                try:
                    group = self.waiting.popleft()
                except IndexError:
                    break
                pool = pool or self._pool()
                try:
                    self.found.put(pool.submit(attempt, group, self.store.root, self.scratch).result())
                except BrokenProcessPool as error:
                    self._drop(pool)
                    pool = None
                    if not self.over.wait(GRACE):
                        self.found.put(self._lost(group, error))
            if pool is not None:
                self._drop(pool)
            self.found.put(None)
        except BaseException as error:
            self.found.put(error)

    def stop(self) -> None:
        """End the processes, whatever they are at."""
        self.over.set()
        with self.turn:
            pools = list(self.pools)
        for pool in pools:
            self._drop(pool)

    def _pool(self) -> Any:
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
        """What is known of a group whose process died; runs of which nothing is known wait again, each by itself."""
        done = {run.id: record for run in group if (record := self.store.read(run.id)) is not None}
        answers = [(id_, str(record.meta["status"])) for id_, record in done.items()]
        left = [run for run in group if run.id not in done]
        if len(left) > 1:
            self.waiting.extendleft([run] for run in reversed(left))
            return answers
        for run in left:
            why = f"failed: its process {processes.reason(error)}"
            note = {"why": why, "traceback": "".join(traceback.format_exception(error))}
            self.store.fail(run.id, note | {"series": run.setting.series, "trial": run.trial})
            answers.append((run.id, why))
        return answers
