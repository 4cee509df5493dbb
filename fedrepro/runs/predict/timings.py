"""Predicts how long runs take and how much memory they need: from earlier runs where there are any, else from costs.

Methods, problems, datasets and partitions declare their cost in amounts of ``Work``, and ``machine.Machine`` knows the
price of a unit on this computer. The sizes are those that datasets know without being read. Where a cost is not
declared, the first rounds of the run have been timed (``first_rounds``).

A worker that computes a run keeps Python, the libraries and the run's own arrays in memory, and maps the arrays of its
problem, which workers share. The worker that needs a problem first prepares it.
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
from fedrepro.data import own_paths
from fedrepro.files import atomically
from fedrepro.problems.clustering.passes import CACHED_BYTES
from fedrepro.protocols import Cost, Work
from fedrepro.runs.compute import groups, lockstep
from fedrepro.runs.compute.run import Run
from fedrepro.runs.predict.first_rounds import FirstRounds, lacks
from fedrepro.runs.predict.machine import Machine
from fedrepro.runs.storage.store import Store
from fedrepro.seeds import canonical

TYPICAL: Mapping[str, Any] = {
    **{"M": 1000, "N": 1000, "K": 10, "P": 10, "J": 1000, "I": 3, "users": 1000, "items": 1000, "ratings": 1e5},
    **{"images": 10000, "classes": 10, "size": 28, "channels": 1, "groups": 10},
    **{"drawings": 20},
}
"""Sizes of data that do not declare theirs."""

OF_PROBLEM = ("K", "train")
"""Sizes that the problem's parameters set, not the data: the number of clusters, the share of ratings to train with."""

TOGETHER = 0.65
"""The time of a run in step with others relative to the same run alone."""

PROGRAM = 4.7e6
"""Bytes that a compiled network occupies in the process that compiled it."""

STARTED = Work(calls=3000.0)
"""Opening a problem, drawing the initial point and writing the record."""


class Timings:
    """Predicted seconds: of finished runs of the same family, kept in the store's folder, else from costs."""

    def __init__(self, root: Path, machine: Machine | None = None) -> None:
        self.path = root / "timings.json"
        self.store = Store(root)
        self.machine = Machine() if machine is None else machine
        self.known: dict[str, float] = {}
        with contextlib.suppress(OSError, ValueError, AttributeError, RecursionError):  # a damaged file is replaced
            known = json.loads(self.path.read_bytes())
            self.known = {family: took for family, took in known.items() if is_number(took) and 0 <= took < math.inf}

    def seconds(self, run: Run) -> float:
        """Predicted seconds of one run alone, in a process that has prepared its problem and compiled its kernels."""
        known = self.known.get(run.family)
        if known is not None:
            return known
        method = self.machine.seconds(own_work(run), self.machine.factor(calibration_key(run)))
        if first := _timed(self.machine, run, "cost"):
            starts, rounds = _repeats(run)
            method = first.start * starts + first.round * rounds
        around_it = self.machine.seconds(around(run))
        if first := _timed(self.machine, run, "measuring"):
            around_it += first.measuring * _measurements(run)
        return method + around_it

    def measured(self, run: Run) -> bool:
        """Whether the prediction comes from an earlier run of the same family."""
        return run.family in self.known

    def total(self, runs: Sequence[Run], jobs: int) -> float:
        """Predicted seconds of all runs with ``jobs`` workers, with libraries, problems and kernels."""
        if not runs:
            return 0.0
        families = Counter(run.family for run in runs)
        each = {run.family: self.seconds(run) * _together(run, runs, jobs) for run in different(runs)}
        alone = sum(each[family] * count for family, count in families.items())
        once = self.machine.loading(needed(different(runs))) + self.compiling(runs)
        return max(max(each.values()), (alone + self.making(runs)) / min(jobs, len(runs))) + once

    def making(self, runs: Iterable[Run]) -> float:
        """Predicted seconds for one worker to make the data and prepare the problems of the runs."""
        return sum(self._making(run) for run in {run.problem_id: run for run in runs}.values())

    def _making(self, run: Run) -> float:
        first = _timed(self.machine, run, "preparing", "stored_bytes", "making")
        return first.making if first else self.machine.seconds(preparing(run).start)

    def compiling(self, runs: Iterable[Run]) -> float:
        """Predicted seconds of what a worker that computes all of the runs does once."""
        return sum(self.machine.seconds(work) for work in _compiled(runs).values())

    def learn(self, runs: Iterable[Run]) -> None:
        """Keep the seconds of the runs that are finished, with warm-up and measuring where that is recorded."""
        for run in runs:
            if run.family not in self.known and (seconds := took(self.store, run.id)) is not None:
                self.known[run.family] = seconds
        text = json.dumps(self.known, sort_keys=True).encode()
        atomically(self.path, text)


def took(store: Store, run: str) -> float | None:
    """Return the seconds that a finished run took, with warm-up and measuring where that is recorded; None without."""
    record = store.read(run)
    return None if record is None else float(record.meta.get("took", record.meta["seconds"]))


def _together(run: Run, runs: Sequence[Run], jobs: int) -> float:
    if len(runs) <= jobs or not lockstep.joins(run.setting):
        return 1.0
    problem = registry.problems()[run.setting.problem].cls
    return TOGETHER if problem.stored_bytes(facts(run)) > CACHED_BYTES else 1.0


# -- costs and sizes of a run ------------------------------------------------------------------------------------------


def facts(run: Run) -> dict[str, Any]:
    """The sizes of a run's data and problem that are known without reading the data; none is None."""
    setting = run.setting
    of_dataset = own_paths.placed(registry.datasets()[setting.dataset].cls.files, dict(setting.dataset_params))
    params = [dict(setting.problem_params), of_dataset, dict(setting.partition_params)]
    return dict(_facts(setting.problem, setting.dataset, json.dumps(params)))


@functools.lru_cache(maxsize=1024)
def _facts(problem: str, dataset: str, params: str) -> dict[str, Any]:
    of_problem, of_dataset, of_partition = json.loads(params)
    of_problem, of_partition = (
        {name: value for name, value in part.items() if value is not None} for part in (of_problem, of_partition)
    )
    data = registry.datasets()[dataset].make(**of_dataset)
    declared = {**data.expected(), **{name: size for name, size in data.shape().items() if size is not None}}
    sizes = {**TYPICAL, **of_problem, **declared, **of_partition}
    sizes |= {k: of_problem[k] for k in OF_PROBLEM if k in of_problem and (k != "train" or problem == "completion")}
    if "per_alphabet" in sizes:
        sizes["P"] = sizes["groups"] * sizes["per_alphabet"]
    return sizes


def calibration_key(run: Run) -> str:
    """The key of a method's factor: its class, dense or sparse data, and its parameters that are not numbers.

    These choose another path through its code. Numbers change only amounts, which its cost includes.
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
    """The cost that the method declares for the run."""
    return registry.methods()[run.setting.algorithm].cls.cost(dict(run.setting.params), facts(run))


def measuring(run: Run) -> Cost:
    """The cost that the problem declares for the run's metrics."""
    return registry.problems()[run.setting.problem].cls.measuring(run.setting.metrics, facts(run))


def own_work(run: Run) -> Work:
    """The work of the method: its start and its rounds, and one start and one round more to warm up."""
    declared, (starts, rounds) = cost(run), _repeats(run)
    return declared.start * starts + declared.round * rounds


def around(run: Run) -> Work:
    """The rest of a run's work: the metrics of recorded rounds, opening the problem, writing the record."""
    return measuring(run).round * _measurements(run) + STARTED


def _repeats(run: Run) -> tuple[float, float]:
    """How many starts and rounds a run computes, with one of each to warm up."""
    one_shot = registry.methods()[run.setting.algorithm].cls.one_shot
    return (1.0, 0.0) if one_shot else (2.0, run.setting.rounds + 1.0)


def _measurements(run: Run) -> float:
    """How many states of the run are measured."""
    one_shot = registry.methods()[run.setting.algorithm].cls.one_shot
    return 1.0 if one_shot else float(len(run.setting.recorded))


def _timed(machine: Machine, run: Run, *members: str) -> FirstRounds | None:
    """The first rounds of the run's family if they were timed because one of these members is not declared."""
    return machine.first_rounds(run.family) if lacks(run, *members) else None


def firsts(run: Run) -> dict[Any, Work]:
    """The work that the first of several such runs in a process does for all of them, by the key that they share.

    Partitions of one dataset share compiled networks, which have room for more rows than clients have.
    """
    setting = run.setting
    on = canonical([setting.problem, dict(setting.problem_params), setting.dataset, dict(setting.dataset_params)])
    return {(on, part): part for part in (cost(run).first, measuring(run).first) if part != Work()}


def _compiled(runs: Iterable[Run]) -> dict[Any, Work]:
    return {key: work for run in different(runs) for key, work in firsts(run).items()}


def preparing(run: Run) -> Cost:
    """The cost of the run's problem: making the data, assigning clients, writing the arrays that workers share."""
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
    """The bytes of the run's problem that workers share, as the problem declares them."""
    return float(registry.problems()[run.setting.problem].cls.stored_bytes(facts(run)))


def needed(runs: Iterable[Run]) -> frozenset[str]:
    """The libraries that some runs load: those of their methods, metrics and problems."""
    return frozenset(
        name for run in runs for part in (cost(run), measuring(run), preparing(run)) for name in part.libraries
    )


def different(runs: Iterable[Run]) -> list[Run]:
    """One run of each family."""
    return list({run.family: run for run in runs}.values())


# -- memory ------------------------------------------------------------------------------------------------------------


def memory(runs: Sequence[Run], jobs: int, machine: Machine | None = None) -> float:
    """Predicted peak bytes of ``jobs`` workers and of the process that leads them."""
    if not runs:
        return 0.0
    machine = Machine() if machine is None else machine
    return machine.resident(()) + workers(runs, jobs, machine)


def workers(runs: Sequence[Run], jobs: int, machine: Machine) -> float:
    """Predicted peak bytes of ``jobs`` workers.

    The groups of runs that need most are assumed to run at the same time, on problems as different as possible. The
    arrays of a problem count once, however many workers map them; a worker that prepares them needs more meanwhile.
    """
    together = groups.groups(runs, dict.fromkeys((run.id for run in runs), 1.0), jobs)
    jobs = min(jobs, len(together))
    own = sorted((sum(_holds(run, machine) for run in group) for group in together), reverse=True)[:jobs]
    problems = {run.problem_id: run for run in different(runs)} | {run.problem_id: run for run in runs}
    shared = sorted((_problem_bytes(run, machine) for run in problems.values()), reverse=True)[:jobs]
    shared += [(0.0, 0.0)] * (jobs - len(shared))
    at_work = sum(max(size + holds, making) for holds, (size, making) in zip(own, shared, strict=True))
    programs = sum(work.programs for work in _compiled(runs).values())
    each = machine.resident(needed(different(runs))) + PROGRAM * programs
    return float(jobs * each + at_work)


def _holds(run: Run, machine: Machine) -> float:
    """Bytes of a run's own at the peak."""
    first = _timed(machine, run, "cost")
    return first.holds if first else cost(run).holds


def _problem_bytes(run: Run, machine: Machine) -> tuple[float, float]:
    """Bytes of the run's problem that workers share, and bytes at the peak while it is prepared."""
    first = _timed(machine, run, "preparing", "stored_bytes")
    return (first.stored, 2.0 * first.stored) if first else (stored(run), preparing(run).holds)


def fitting(runs: Sequence[Run], jobs: int, limit: float, machine: Machine | None = None) -> int:
    """The most workers, at most ``jobs``, that are predicted to fit into ``limit`` bytes; 0 where not even one does."""
    return next((n for n in range(jobs, 0, -1) if memory(runs, n, machine) <= limit), 0)
