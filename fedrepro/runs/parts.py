"""Split a plan into parts that machines compute without knowing of each other, as tasks of a job array do.

A part depends only on the plan: neither on the runs that are finished nor on the speed of a machine, so that every task
cuts the same parts.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from fedrepro.runs.compute.run import Run
from fedrepro.runs.predict.machine import Machine
from fedrepro.runs.predict.timings import Timings


@dataclass(frozen=True)
class Part:
    """One part of a plan. number : from 1 to ``of``. of : the number of parts."""

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def runs(self, runs: Iterable[Run]) -> set[str]:
        """Return the ids of the part's runs: each run, longest first, goes to the part with the least to do."""
        typical = Timings(Path(os.devnull), Machine(Path(os.devnull)))  # declared costs at typical speed
        costs = {run.id: typical.seconds(run) for run in runs}
        loads = [0.0] * self.of
        mine: set[str] = set()
        for id_ in sorted(costs, key=lambda id_: (-costs[id_], id_)):
            least = loads.index(min(loads))
            loads[least] += costs[id_]
            mine |= {id_} if least == self.number - 1 else set()
        return mine
