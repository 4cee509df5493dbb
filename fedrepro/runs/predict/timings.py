"""How long runs will take and how much memory they need: by earlier runs where there are any, else by arithmetic.

Methods, problems, datasets and partitions say what they take in amounts of ``Work``; ``machine.Machine`` says what a
unit of each costs here. The sizes come from what datasets know of themselves without being read.

A worker that computes a run holds Python and the libraries, what the run holds of its own, and maps the arrays of its
problem, which workers share. The arrays of a problem are made once, by the worker that needs them first.
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fedrepro import registry
from fedrepro.data import own
from fedrepro.files import atomically
from fedrepro.problems.clustering.passes import CACHED_BYTES
from fedrepro.protocols import Cost, Work
from fedrepro.runs.compute import groups, lockstep
from fedrepro.runs.predict.machine import Machine
from fedrepro.runs.run import Run
from fedrepro.runs.storage.store import Store
from fedrepro.seeds import canonical

TYPICAL: Mapping[str, Any] = {
    **{"M": 1000, "N": 1000, "K": 10, "P": 10, "J": 1000, "I": 3, "users": 1000, "items": 1000, "ratings": 1e5},
    **{"images": 10000, "classes": 10, "size": 28, "channels": 1, "groups": 10},
    **{"drawings": 20},
}
"""Sizes of data that say nothing of themselves."""

OF_PROBLEM = ("K", "train")
"""What the problem's parameters say rather than the data: clusters asked for, the share of ratings to train with."""

TOGETHER = 0.65
"""What a run in step with others takes, to what it takes alone: their common passes, less what each does by itself."""

PROGRAM = 4.7e6
"""Bytes that a compiled network keeps in the process that compiled it."""

STARTED = Work(calls=3000.0)
"""Opening a problem, drawing the initial point and writing the record."""


class Timings:
    """Seconds per run family, learned from finished runs and kept in the store's folder; by arithmetic else."""

    def __init__(self, root: Path, machine: Machine | None = None) -> None:
        self.path = root / "timings.json"
        self.store = Store(root)
        self.machine = Machine() if machine is None else machine
        self.known: dict[str, float] = {}
        with contextlib.suppress(OSError, ValueError, AttributeError, RecursionError):  # damaged: learned anew
            known = json.loads(self.path.read_bytes())
            self.known = {family: took for family, took in known.items() if is_number(took) and 0 <= took < math.inf}

    def seconds(self, run: Run) -> float:
        """Predicted seconds of one run by itself, in a process that has made its problem and compiled its kernels."""
        known = self.known.get(run.family)
        if known is not None:
            return known
        return self.machine.seconds(own_work(run), self.machine.factor(path(run))) + self.machine.seconds(around(run))

    def measured(self, run: Run) -> bool:
        """Whether the prediction comes from an earlier run of the same kind."""
        return run.family in self.known

    def total(self, runs: Sequence[Run], jobs: int) -> float:
        """Predicted seconds of all of the runs with so many workers: libraries, problems and kernels included."""
        if not runs:
            return 0.0
        families = Counter(run.family for run in runs)
        each = {run.family: self.seconds(run) * _together(run, runs, jobs) for run in different(runs)}
        alone = sum(each[family] * count for family, count in families.items())
        once = self.machine.loading(needed(different(runs))) + self.compiling(runs)
        return max(max(each.values()), (alone + self.making(runs)) / min(jobs, len(runs))) + once

    def making(self, runs: Iterable[Run]) -> float:
        """Predicted seconds that making the runs' problems takes one worker."""
        return sum(self.machine.seconds(preparing(run).start) for run in {run.problem_id: run for run in runs}.values())

    def compiling(self, runs: Iterable[Run]) -> float:
        """Predicted seconds of what a worker that computes all of the runs does once."""
        once = {what: work for run in different(runs) for what, work in firsts(run).items()}
        return sum(self.machine.seconds(work) for work in once.values())

    def learn(self, runs: Iterable[Run]) -> None:
        """Keep the seconds of those runs that are finished now: all of them took where it is known, else their own."""
        for run in runs:
            if run.family not in self.known and (record := self.store.read(run.id)) is not None:
                self.known[run.family] = float(record.meta.get("took", record.meta["seconds"]))
        text = json.dumps(self.known, sort_keys=True).encode()
        atomically(self.path, text)


def _together(run: Run, runs: Sequence[Run], jobs: int) -> float:
    if len(runs) <= jobs or not lockstep.joins(run.setting):
        return 1.0
    problem = registry.problems()[run.setting.problem].cls
    return TOGETHER if problem.stored_bytes(facts(run)) > CACHED_BYTES else 1.0


# -- what is known of a run --------------------------------------------------------------------------------------------


def facts(run: Run) -> dict[str, Any]:
    """The sizes of a run's data and problem, as far as possible without reading it; none is None."""
    setting = run.setting
    of_dataset = own.placed(registry.datasets()[setting.dataset].cls.files, dict(setting.dataset_params))
    params = [dict(setting.problem_params), of_dataset, dict(setting.partition_params)]
    return dict(_facts(setting.problem, setting.dataset, json.dumps(params)))


@functools.lru_cache(maxsize=1024)
def _facts(problem: str, dataset: str, params: str) -> dict[str, Any]:
    of_problem, of_dataset, of_partition = json.loads(params)
    loader = registry.datasets()[dataset].make(**of_dataset)
    chosen = {k: v for k, v in of_problem.items() if v is not None}
    known = {**loader.expected(), **{k: v for k, v in loader.shape().items() if v is not None}}
    found = {**TYPICAL, **chosen, **known, **{k: v for k, v in of_partition.items() if v is not None}}
    found |= {k: chosen[k] for k in OF_PROBLEM if k in chosen and (k != "train" or problem == "completion")}
    if "per_alphabet" in found:
        found["P"] = found["groups"] * found["per_alphabet"]
    return found


def path(run: Run) -> str:
    """What a method's factor belongs to: its class, dense or sparse data, and its parameters that are no numbers.

    These take other ways through its code; numbers change amounts only, which its cost knows.
    """
    cls = registry.methods()[run.setting.algorithm].cls
    chosen = {k: v for k, v in run.setting.params.items() if not is_number(v)}
    return f"{cls.__name__} {kind(run)} {json.dumps(chosen, sort_keys=True, default=str)}"


def kind(run: Run) -> str:
    """Whether the run's data are kept ``sparse`` or ``dense``."""
    return "sparse" if "density" in facts(run) else "dense"


def is_number(value: Any) -> bool:
    """Whether a parameter is a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def cost(run: Run) -> Cost:
    """What the method says of the run."""
    return registry.methods()[run.setting.algorithm].cls.cost(dict(run.setting.params), facts(run))


def measuring(run: Run) -> Cost:
    """What the problem says of the run's metrics."""
    return registry.problems()[run.setting.problem].cls.measuring(run.setting.metrics, facts(run))


def own_work(run: Run) -> Work:
    """What the method takes: its start and its rounds, and both once more to warm up."""
    said = cost(run)
    if registry.methods()[run.setting.algorithm].cls.one_shot:
        return said.start
    return said.start * 2.0 + said.round * (run.setting.rounds + 1.0)


def around(run: Run) -> Work:
    """What a run takes beside: the metrics of the rounds that are recorded, opening the problem, writing the record."""
    once = registry.methods()[run.setting.algorithm].cls.one_shot
    return measuring(run).round * (1.0 if once else len(run.setting.recorded)) + STARTED


def firsts(run: Run) -> dict[Any, Work]:
    """What runs like this one do once in a process, by what tells it from that of others.

    Partitions of one dataset share compiled networks, which make room for more rows than clients have.
    """
    setting = run.setting
    on = canonical([setting.problem, dict(setting.problem_params), setting.dataset, dict(setting.dataset_params)])
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


def different(runs: Iterable[Run]) -> list[Run]:
    """One run of each family."""
    return list({run.family: run for run in runs}.values())


# -- memory ------------------------------------------------------------------------------------------------------------


def memory(runs: Sequence[Run], jobs: int, machine: Machine | None = None) -> float:
    """Predicted peak bytes of so many workers and the process that leads them."""
    if not runs:
        return 0.0
    machine = Machine() if machine is None else machine
    return machine.resident(()) + workers(runs, jobs, machine)


def workers(runs: Sequence[Run], jobs: int, machine: Machine) -> float:
    """Predicted peak bytes of so many workers.

    The dearest groups of runs are taken to be computed at the same time, on problems as different as there are. The
    arrays of a problem count once, however many workers map them; one that makes them holds more meanwhile.
    """
    together = groups.groups(runs, dict.fromkeys((run.id for run in runs), 1.0), jobs)
    jobs = min(jobs, len(together))
    own = sorted((sum(cost(run).holds for run in group) for group in together), reverse=True)[:jobs]
    problems = {run.problem_id: run for run in different(runs)} | {run.problem_id: run for run in runs}
    shared = sorted(((stored(run), preparing(run).holds) for run in problems.values()), reverse=True)[:jobs]
    shared += [(0.0, 0.0)] * (jobs - len(shared))
    at_work = sum(max(size + held, making) for held, (size, making) in zip(own, shared, strict=True))
    compiled = {what: work.programs for run in different(runs) for what, work in firsts(run).items()}
    each = machine.resident(needed(different(runs))) + PROGRAM * sum(compiled.values())
    return float(jobs * each + at_work)


def fitting(runs: Sequence[Run], jobs: int, limit: float, machine: Machine | None = None) -> int:
    """The most workers, at most ``jobs``, that are predicted to fit into ``limit`` bytes; 0 where not even one does."""
    return next((n for n in range(jobs, 0, -1) if memory(runs, n, machine) <= limit), 0)
