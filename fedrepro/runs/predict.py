"""How long runs will take and how much memory they need: by earlier runs where there are any, else by arithmetic.

Methods, problems, datasets and partitions say what they take in amounts of ``Work``; ``machine.Machine`` says what a
unit of each costs here. The sizes come from what datasets know of themselves without being read.

A worker that computes a run holds Python and the libraries, what the run holds of its own, and maps the arrays of its
problem, which workers share. The arrays of a problem are made once, by the worker that needs them first.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fedrepro import registry
from fedrepro.files import atomically
from fedrepro.protocols import Cost, Work
from fedrepro.runs import groups
from fedrepro.runs.machine import Machine
from fedrepro.runs.plan import Run
from fedrepro.runs.store import Store
from fedrepro.seeds import canonical

TYPICAL: Mapping[str, Any] = {
    **{"M": 1000, "N": 1000, "K": 10, "P": 10, "J": 1000, "I": 3, "users": 1000, "items": 1000, "ratings": 1e5},
    **{"images": 10000, "classes": 10, "size": 28, "channels": 1, "groups": 10},
    **{"drawings": 20},
}
"""Sizes of data that say nothing of themselves."""

TOGETHER = 0.65
"""What a run in step with others takes, to what it takes alone: their common passes, less what each does by itself."""

STARTED = Work(calls=3000.0)
"""Opening a problem, drawing the initial point and writing the record."""


class Timings:
    """Seconds per run family, learned from finished runs and kept in the store's folder."""

    def __init__(self, root: Path, machine: Machine | None = None) -> None:
        self.path = root / "timings.json"
        self.store = Store(root)
        self.machine = Machine() if machine is None else machine
        try:
            self.known: dict[str, float] = json.loads(self.path.read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            self.known = {}

    def seconds(self, run: Run) -> float:
        """Predicted seconds of one run, alone, its problem at hand."""
        return self.known.get(run.family) or self.machine.seconds(takes(run), run.setting.algorithm)

    def measured(self, run: Run) -> bool:
        """Whether the prediction comes from an earlier run of the same kind."""
        return run.family in self.known

    def total(self, runs: Sequence[Run], jobs: int) -> float:
        """Predicted seconds of all of the runs with so many workers, problems made and libraries loaded."""
        alone = [self.seconds(run) * (TOGETHER if len(runs) > jobs and groups.joins(run) else 1.0) for run in runs]
        made = sum(self.machine.seconds(preparing(run).start) for run in {run.problem_id: run for run in runs}.values())
        longest = max(alone, default=0.0)
        busy = max(1, min(jobs, len(runs)))
        return max(longest, (sum(alone) + made) / busy) + (self.machine.loading(needed(runs)) if runs else 0.0)

    def learn(self, runs: Iterable[Run]) -> None:
        """Keep the seconds of those runs that are finished now."""
        for run in runs:
            if run.family not in self.known and (record := self.store.read(run.id)) is not None:
                self.known[run.family] = float(record.meta.get("took", record.meta["seconds"]))
        text = json.dumps(self.known, sort_keys=True).encode()
        atomically(self.path, text)


# -- what is known of a run --------------------------------------------------------------------------------------------


def facts(run: Run) -> dict[str, Any]:
    """The sizes of a run's data and problem, as far as possible without reading it; none is None."""
    setting = run.setting
    loader = registry.datasets()[setting.dataset].make(**setting.dataset_params)
    chosen = {k: v for k, v in setting.problem_params.items() if v is not None}
    known = {**loader.expected(), **{k: v for k, v in loader.shape().items() if v is not None}}
    found = {**TYPICAL, **chosen, **known, **setting.partition_params}
    if "K" in chosen:
        found["K"] = chosen["K"]
    if "per_alphabet" in found:
        found["P"] = found["groups"] * found["per_alphabet"]
    if setting.problem == "completion" and "train" in chosen:
        found["train"] = chosen["train"]
    return found


def cost(run: Run) -> Cost:
    """What the method says of the run."""
    return registry.algorithms()[run.setting.algorithm].cls.cost(dict(run.setting.params), facts(run))


def measuring(run: Run) -> Cost:
    """What the problem says of the run's metrics."""
    return registry.problems()[run.setting.problem].cls.measuring(run.setting.metrics, facts(run))


def takes(run: Run) -> Work:
    """What a run takes: its rounds, one more to warm up, and the metrics of the rounds that are recorded."""
    said, metrics = cost(run), measuring(run)
    once = registry.algorithms()[run.setting.algorithm].cls.one_shot
    rounds, recorded = (0, 1) if once else (run.setting.rounds, len(run.setting.recorded))
    warm = 1 if once else 2  # started twice; compiled once
    start = said.start * warm + (said.round * (rounds + 1) if not once else Work())
    return start + metrics.round * recorded + STARTED


def firsts(run: Run) -> dict[Any, Work]:
    """What runs like this one do once in a process, by what tells it from that of others."""
    setting = run.setting
    on = canonical([setting.problem, setting.dataset, dict(setting.dataset_params), dict(setting.partition_params)])
    return {(on, part): part for part in (cost(run).first, measuring(run).first) if part != Work()}


def preparing(run: Run) -> Cost:
    """What it takes to make the run's problem: the data, who holds what, and the arrays workers share."""
    setting, known = run.setting, facts(run)
    parts = [registry.datasets()[setting.dataset].make(**setting.dataset_params).making()]
    if setting.partition is not None:
        params = {k: v for k, v in setting.partition_params.items() if k != "per_trial"}
        parts.append(registry.partitions()[setting.partition].make(**params).sharing(known))
    parts.append(registry.problems()[setting.problem].cls.preparing(known))
    return Cost(
        sum((part.start for part in parts), Work()),
        holds=stored(run) + max(parts[0].holds, *(stored(run) + part.holds for part in parts[1:])),
        libraries=tuple(name for part in parts for name in part.libraries),
    )


def stored(run: Run) -> float:
    """The bytes of the run's problem that workers share."""
    return float(registry.problems()[run.setting.problem].cls.stored_bytes(facts(run)))


def needed(runs: Iterable[Run]) -> frozenset[str]:
    """The libraries that some runs load: those of methods and metrics, and of making the problems."""
    return frozenset(
        name for run in runs for part in (cost(run), measuring(run), preparing(run)) for name in part.libraries
    )


# -- memory ------------------------------------------------------------------------------------------------------------


def memory(runs: Sequence[Run], jobs: int, machine: Machine | None = None) -> float:
    """Predicted peak bytes of so many workers and the process that leads them.

    The dearest runs are taken to be computed at the same time, each worker on a problem of its own where there are so
    many; a problem's arrays count once, however many workers map them. One worker may be making a problem.
    """
    if not runs:
        return 0.0
    machine = Machine() if machine is None else machine
    jobs = min(jobs, len(runs))
    shared = sorted({run.problem_id: stored(run) for run in runs}.values(), reverse=True)
    held = sorted((cost(run).holds for run in _different(runs)), reverse=True)
    making = max(preparing(run).holds for run in _different(runs))
    workers = jobs * machine.resident(needed(runs)) + sum((held * jobs)[:jobs] if held else ())
    return machine.resident(frozenset()) + workers + max(sum(shared[:jobs]), making)


def _different(runs: Iterable[Run]) -> list[Run]:
    """One run of each family."""
    return list({run.family: run for run in runs}.values())
