"""Predict the time that is left while runs are computed, from those that have ended and the load of this machine."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from fedrepro.runs.compute.run import Run

RECENT = 0.3
"""Weight of the last run of a family in the time of its next one, so that a change of the machine's load shows soon."""

BUSY = 1.5
"""`plan` prints a note if other programs make runs at least this many times as long."""


class Remaining:
    """Seconds until the last of some runs ends.

    A run is expected to take as long as the runs of its family that have ended, including the machine's load; before
    there are any, its predicted time, times the ratio of observed to predicted time of all runs that have ended.
    """

    def __init__(self, runs: Sequence[Run], costs: Mapping[str, float], workers: int) -> None:
        """Start with all of ``runs`` to do. costs : predicted seconds of each run, by run id."""
        self.workers = workers
        self.costs = {run.family: costs[run.id] for run in runs}
        self.left = Counter(run.family for run in runs)
        self.took: dict[str, float] = {}
        self.observed = self.predicted = 0.0
        self.last = time.perf_counter()

    def ended(self, run: Run, took: float | None) -> None:
        """Count a run as done. took : its seconds; None if it failed."""
        self.left[run.family] -= 1
        self.last = time.perf_counter()
        if took is not None:
            before = self.took.get(run.family, took)
            self.took[run.family] = before + RECENT * (took - before)
            self.observed += took
            self.predicted += self.costs[run.family]

    def seconds(self) -> float | None:
        """Return the seconds that are left; None until a run has ended."""
        if not self.predicted:
            return None
        ratio = self.observed / self.predicted
        work = sum(n * self.took.get(family, ratio * self.costs[family]) for family, n in self.left.items())
        at_a_time = max(1, min(self.workers, self.left.total()))
        return work / at_a_time - (time.perf_counter() - self.last)


def slowdown(workers: int) -> float:
    """Return how many times longer the workers take now because other programs use this machine's cores."""
    return max(1.0, (_load() + workers) / (os.cpu_count() or 1))


def busy(workers: int) -> Iterator[str]:
    """Yield a note if this machine is so busy that predictions, which are for an idle one, are far too short."""
    if (times := slowdown(workers)) >= BUSY:
        yield (
            f"this machine is busy (load {_load():.1f} on {os.cpu_count()} cores); the prediction is for an idle one, "
            f"and runs now take about {times:.1f} times as long"
        )


def _load() -> float:
    """Return the mean number of processes that used or awaited a core in the last minute; 0 where it is not known."""
    try:
        return os.getloadavg()[0]
    except (OSError, AttributeError):
        return 0.0
