"""Several runs in lockstep: one joint pass over the samples serves all of them.

Each run has its own thread and is driven as if it were alone; only one thread works at a time. A run that needs a pass
(``Clustering.over``) waits until every other run needs one too, or has ended. The last one then makes all passes, those
over the same parts of X jointly (``problems.clustering.passes``). Methods are unaware of it, and the numbers of a run
do not depend on the other runs.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from fedrepro import registry
from fedrepro.problems.clustering.passes import Pass, go
from fedrepro.spec.model import Setting


def joins(setting: Setting) -> bool:
    """Return whether runs of this setting can share passes over their data, more than once and with a gain."""
    problem = registry.problems()[setting.problem].cls
    method = registry.methods()[setting.algorithm].cls
    return bool(problem.joins and method.meets and not method.one_shot)


class Stopped(BaseException):
    """Raised in a thread to end its run, because its result is no longer needed."""


class Lockstep:
    """The meeting point of runs on the samples X, (N, M) array or CSR matrix."""

    def __init__(self, X: Any) -> None:
        self.X = X
        self._room = threading.Condition()
        self._waiting: list[tuple[Pass, Member]] = []
        self._live = 0
        self._turn = 0
        self._failed: BaseException | None = None

    def run(self, jobs: Sequence[Callable[[Member], None]]) -> None:
        """Run the jobs to their ends; each receives its Member. A job must not raise."""
        self._live = len(jobs)
        members = [Member(self) for _ in jobs]
        threads = [
            threading.Thread(target=member.live, args=(job,), daemon=True)
            for member, job in zip(members, jobs, strict=True)
        ]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                while thread.is_alive():
                    thread.join(0.2)  # with a limit, so that Ctrl-C interrupts it
        except BaseException:
            self._failed = Stopped()
            raise
        if self._failed is not None:
            raise self._failed

    def _meet(self, member: Member, wanted: Pass) -> None:
        """Wait until all members are here and the pass is made; the lock is held on entry and return."""
        self._waiting.append((wanted, member))
        turn = self._turn
        self._go_if_all()
        while self._turn == turn and self._failed is None:
            self._room.wait()
        if self._failed is not None:
            raise Stopped

    def _leave(self) -> None:
        self._live -= 1
        self._go_if_all()

    def _go_if_all(self) -> None:
        if not self._waiting or len(self._waiting) < self._live:
            return
        together: dict[Any, list[tuple[Pass, Member]]] = {}
        for waiting in self._waiting:
            together.setdefault(waiting[0].key, []).append(waiting)
        try:
            for joint in together.values():
                began = time.perf_counter()
                go(self.X, [wanted for wanted, _ in joint])
                for _, member in joint:
                    member.shared += (time.perf_counter() - began) / len(joint)
        except BaseException as error:
            self._failed = error
        self._waiting = []
        self._turn += 1
        self._room.notify_all()


class Member:
    """A run in lockstep with others. shared : its share of the seconds of joint passes."""

    def __init__(self, room: Lockstep) -> None:
        self.room = room
        self.shared = 0.0
        self._own = 0.0
        self._since = 0.0

    def live(self, job: Callable[[Member], None]) -> None:
        """Do the job; the lock is held except while it waits."""
        with self.room._room:
            self._since = time.perf_counter()
            try:
                if self.room._failed is None:
                    job(self)
            except Stopped:
                pass
            except BaseException as error:  # a job that raises must not leave the others waiting
                self.room._failed = self.room._failed or error
                self.room._room.notify_all()
            finally:
                self.room._leave()

    def over(self, wanted: Pass) -> None:
        """Make a pass jointly with those of the others."""
        self._own += time.perf_counter() - self._since
        try:
            self.room._meet(self, wanted)
        finally:
            self._since = time.perf_counter()

    def clock(self) -> float:
        """Return the seconds that this run has worked, with its share of joint passes and without waiting."""
        return self._own + (time.perf_counter() - self._since) + self.shared
