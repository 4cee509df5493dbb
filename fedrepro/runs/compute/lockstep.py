"""Several runs in step: where all of them want to pass over the same samples, one pass serves all.

Each run is driven in a thread of its own, as if it were alone; only one thread works at a time. A run that wants a pass
(``Clustering.over``) waits until every other run wants one too, or has ended; the last to come makes them all, those
over the same parts of X together (``problems.passes``). Methods know nothing of it, and a run's numbers do not depend
on who runs beside it.
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
    """Whether runs of this setting can pass over their data together, and gain by it, more than once."""
    problem = registry.problems()[setting.problem].cls
    method = registry.methods()[setting.algorithm].cls
    return bool(problem.joins and method.meets and not method.one_shot)


class Stopped(BaseException):
    """Ends the run of a thread that nobody waits for any more."""


class Lockstep:
    """Where runs on the samples X meet. X : (N, M) array or CSR matrix."""

    def __init__(self, X: Any) -> None:
        self.X = X
        self._room = threading.Condition()
        self._waiting: list[tuple[Pass, Member]] = []
        self._live = 0
        self._turn = 0
        self._failed: BaseException | None = None

    def run(self, jobs: Sequence[Callable[[Member], None]]) -> None:
        """Run the jobs to their ends; each is given its place in the room. A job must not raise."""
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
                    thread.join(0.2)  # with a limit, so that Ctrl-C is heard
        except BaseException:
            self._failed = Stopped()
            raise
        if self._failed is not None:
            raise self._failed

    def _meet(self, member: Member, wanted: Pass) -> None:
        """Wait until all are here and the pass is made; called and left with the room held."""
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
        for one in self._waiting:
            together.setdefault(one[0].key, []).append(one)
        try:
            for found in together.values():
                began = time.perf_counter()
                go(self.X, [wanted for wanted, _ in found])
                for _, member in found:
                    member.shared += (time.perf_counter() - began) / len(found)
        except BaseException as error:
            self._failed = error
        self._waiting = []
        self._turn += 1
        self._room.notify_all()


class Member:
    """A run's place in the room. shared : seconds of joint passes that are its part."""

    def __init__(self, room: Lockstep) -> None:
        self.room = room
        self.shared = 0.0
        self._own = 0.0
        self._since = 0.0

    def live(self, job: Callable[[Member], None]) -> None:
        """Do the job; the room is held whenever it does not wait."""
        with self.room._room:
            self._since = time.perf_counter()
            try:
                if self.room._failed is None:
                    job(self)
            except Stopped:
                pass
            except BaseException as error:  # a job that does not keep its promise must not leave the others waiting
                self.room._failed = self.room._failed or error
                self.room._room.notify_all()
            finally:
                self.room._leave()

    def over(self, wanted: Pass) -> None:
        """Make a pass together with those of the others."""
        self._own += time.perf_counter() - self._since
        try:
            self.room._meet(self, wanted)
        finally:
            self._since = time.perf_counter()

    def clock(self) -> float:
        """Seconds that this run has worked, its part of joint passes counted, waiting for others not."""
        return self._own + (time.perf_counter() - self._since) + self.shared
