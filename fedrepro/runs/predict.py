"""How long runs will take and how much memory they need: from earlier runs where there are any, else by arithmetic."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fedrepro import registry
from fedrepro.files import atomically
from fedrepro.runs.plan import Run
from fedrepro.runs.store import Store

START_SECONDS = 0.02  # opening a problem and writing a record
BYTES_PER_SECOND = 6e9  # a skinny matrix product reads its large factor at about this rate on one core
FLOPS_PER_SECOND = 1.2e10


class Timings:
    """Seconds per run family, learned from finished runs and kept in the store's folder."""

    def __init__(self, root: Path) -> None:
        self.path = root / "timings.json"
        self.store = Store(root)
        try:
            self.known: dict[str, float] = json.loads(self.path.read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            self.known = {}

    def seconds(self, run: Run) -> float:
        """Predicted seconds of one run."""
        return self.known.get(run.family) or START_SECONDS + estimate(run)

    def measured(self, run: Run) -> bool:
        """Whether the prediction comes from an earlier run of the same kind."""
        return run.family in self.known

    def learn(self, runs: Iterable[Run]) -> None:
        """Keep the seconds of those runs that are finished now."""
        for run in runs:
            if run.family not in self.known and (record := self.store.read(run.id)) is not None:
                self.known[run.family] = float(record.meta["seconds"]) + START_SECONDS
        text = json.dumps(self.known, sort_keys=True).encode()
        atomically(self.path, text)


def shape(run: Run) -> dict[str, Any]:
    """What is known of the run's data without reading it."""
    return dict(registry.datasets()[run.setting.dataset].make(**run.setting.dataset_params).shape())


def numbers(run: Run) -> float:
    """How many numbers the run's data holds, from its shape: a matrix, views, ratings or images."""
    facts = {k: v for k, v in shape(run).items() if v is not None}
    if "ratings" in facts:
        return float(facts["ratings"])
    if "J" in facts:
        sizes = facts.get("N", 1000)
        width = sum(sizes) if isinstance(sizes, (list, tuple)) else sizes * facts.get("I", 1)
        return float(facts["J"]) * float(width) * float(facts.get("density", 1.0))
    return float(facts.get("M", 1000)) * float(facts.get("N", 1000))


def estimate(run: Run) -> float:
    """Seconds of a run by arithmetic: two passes over the data a round, unless the method knows better (``cost``)."""
    method = registry.algorithms()[run.setting.algorithm].cls
    found = method.cost(dict(run.setting.params), {**shape(run), **run.setting.partition_params})
    flops, read = found if found is not None else (0.0, 16.0 * numbers(run))
    rounds = 1 if method.one_shot else run.setting.rounds
    return rounds * (read / BYTES_PER_SECOND + flops / FLOPS_PER_SECOND)


def memory(runs: Iterable[Run], jobs: int) -> float:
    """Predicted peak bytes: the arrays of the problems worked on (shared by memory map), and each worker's own."""
    shared = {run.problem_id: 8.0 * numbers(run) for run in runs}
    largest = max(shared.values(), default=0.0)
    return largest * min(2, len(shared)) + jobs * (120e6 + 0.3 * largest)
