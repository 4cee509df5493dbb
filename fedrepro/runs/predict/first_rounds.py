"""The first rounds of a run, timed: for methods and problems that do not declare what they cost.

``Method.cost``, ``Problem.preparing``, ``Problem.measuring`` and ``Dataset.making`` are optional. Where one of them is
missing, a process of its own makes the run's problem, runs the method for a moment, and reports seconds of processor
time and the peak of its memory. ``fedrepro.runs.predict.machine`` keeps the answer by run family, so that it is
measured again only when the code, the parameters or the data change.
"""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from threadpoolctl import threadpool_limits

from fedrepro import cpu, registry
from fedrepro.ledger import Ledger
from fedrepro.protocols import Dataset, Method, Problem
from fedrepro.runs.compute import execute
from fedrepro.runs.compute.drive import randomness
from fedrepro.runs.compute.run import Run
from fedrepro.runs.predict.memory_peak import peak, restart_peak

ENOUGH = 1.0
"""Seconds of processor time after which no further round is timed."""

COLD = 5.0
"""A start and a round that take longer than this many seconds are not repeated to exclude loading and compiling."""


@dataclass(frozen=True)
class FirstRounds:
    """What the first rounds of a run took: seconds of one core, and bytes.

    making : seconds to make the data and to prepare the problem. stored : bytes of the prepared problem, which workers
    share. start : seconds to the initial state. round : seconds per round. measuring : seconds to measure one state.
    holds : bytes at the peak beyond those of a process that has opened the problem.
    """

    making: float
    stored: float
    start: float
    round: float
    measuring: float
    holds: float


PROTOCOLS: Mapping[str, Any] = {
    "cost": Method,
    "measuring": Problem,
    "preparing": Problem,
    "stored_bytes": Problem,
    "making": Dataset,
}
"""The optional members that declare costs, and the protocol of each."""


def lacks(run: Run, *members: str) -> bool:
    """Whether the run's method, problem or dataset does not declare one of these members of ``PROTOCOLS``."""
    classes = {
        Method: registry.methods()[run.setting.algorithm].cls,
        Problem: registry.problems()[run.setting.problem].cls,
        Dataset: registry.datasets()[run.setting.dataset].cls,
    }
    return any(getattr(classes[PROTOCOLS[name]], name) is getattr(PROTOCOLS[name], name) for name in members)


def measure(run: Run) -> FirstRounds | None:
    """The first rounds of a run, timed in a process of its own; None if they fail."""
    program = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import answer; answer()"
    child = subprocess.run(
        [sys.executable, "-c", program], input=pickle.dumps(run), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        check=False,
    )  # fmt: skip
    return FirstRounds(**json.loads(child.stdout.splitlines()[-1])) if child.returncode == 0 else None


def answer() -> None:
    """Read a pickled run from standard input and print its first rounds as JSON."""
    cpu.pin()
    run: Run = pickle.load(sys.stdin.buffer)
    with threadpool_limits(limits=1), tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        print(json.dumps(asdict(first_rounds(run, Path(folder)))))


def first_rounds(run: Run, folder: Path) -> FirstRounds:
    """The first rounds of a run, timed in this process; ``folder`` is where its problem is prepared."""
    setting = run.setting
    began = time.process_time()
    execute.fill(run, folder)
    making = time.process_time() - began
    stored = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    problem = registry.problems()[setting.problem].cls.stored(folder, dict(setting.problem_params))
    method = registry.methods()[setting.algorithm].cls(**setting.params)
    restart_peak()
    before = peak()
    took = timed(method, problem, setting.metrics, run.trial, ENOUGH)
    if took.start + took.round < COLD:  # again without loading and compiling
        took = timed(method, problem, setting.metrics, run.trial, ENOUGH)
    return FirstRounds(making, float(stored), *took, max(0.0, peak() - before))


class Timed(NamedTuple):
    """Seconds of processor time to the initial state, per round, and to measure a state."""

    start: float
    round: float
    measuring: float


def timed(method: Method, problem: Problem, metrics: tuple[str, ...], trial: int, enough: float) -> Timed:
    """Time rounds of a method until they have taken ``enough`` seconds of processor time."""
    init = problem.initial(trial)
    began = time.process_time()
    states = method.rounds(problem, randomness(problem.name, trial), ledger=Ledger(), init=init)
    state = next(states)
    started = ended = time.process_time()
    rounds = 0
    for later in states:
        state, rounds, ended = later, rounds + 1, time.process_time()
        if ended - started > enough:
            break
    problem.measure(state, metrics)
    return Timed(started - began, (ended - started) / max(rounds, 1), time.process_time() - ended)
