"""One run, start to end, in the process that calls it: open its problem, iterate its method, measure, store."""

from __future__ import annotations

import functools
import inspect
import json
import os
import shutil
import time
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from filelock import FileLock
from threadpoolctl import threadpool_limits

from fedrepro import registry, seeds
from fedrepro.data import load as load_data
from fedrepro.ledger import COUNTS, Ledger
from fedrepro.runs.store import Record, Store
from fedrepro.spec.model import Setting

if TYPE_CHECKING:
    from fedrepro.runs.plan import Run


def prepare(run: Run, scratch: Path) -> Path:
    """The folder with the arrays of the run's problem, made by whoever asks first; processes share it by memory map."""
    folder = scratch / run.problem_id
    if (folder / "problem.json").exists():
        return folder
    scratch.mkdir(parents=True, exist_ok=True)
    with FileLock(scratch / f"{run.problem_id}.lock"):
        if not (folder / "problem.json").exists():
            part = scratch / f".{run.problem_id}.{os.getpid()}"
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir()
            try:
                facts = fill(run, part)
                (part / "problem.json").write_text(json.dumps(facts, default=str), encoding="utf-8")
                part.rename(folder)
            finally:
                shutil.rmtree(part, ignore_errors=True)
    return folder


def fill(run: Run, folder: Path) -> dict[str, Any]:
    """Load the data, share it out to clients, let the problem write its arrays; returns the data's own facts."""
    setting = run.setting
    problem = registry.problems()[setting.problem]
    data_facts: dict[str, Any] = {"dataset": setting.dataset, "params": dict(setting.dataset_params)}
    if fresh_data(setting, run.stand_in):
        data_facts["trial"] = run.trial
    data = load_data(
        setting.dataset, dict(setting.dataset_params), rng=seeds.generator("data", **data_facts), stand_in=run.stand_in
    )
    client = None
    if setting.partition is not None:
        params = dict(setting.partition_params)
        per_trial = params.pop("per_trial", False)
        key = {**data_facts, "partition": setting.partition, "with": params, "trial": run.trial if per_trial else 0}
        assign = registry.partitions()[setting.partition].assign
        client = assign(data, seeds.generator("partition", **key), **params)
    problem.prepare(folder, data, client, dict(setting.problem_params))
    return dict(data.facts)


def fresh_data(setting: Setting, stand_in: bool) -> bool:
    """Whether each trial draws its own data: generated datasets that take a generator do."""
    load = registry.datasets()[setting.dataset].load
    return not stand_in and "rng" in inspect.signature(load).parameters


@functools.lru_cache(maxsize=2)
def _open(problem: str, folder: Path, parameters: str) -> Any:
    return registry.problems()[problem].open(folder, json.loads(parameters))


def execute(run: Run, scratch: Path) -> Record:
    """Compute one run on one BLAS thread and return its record.

    A method that stops by itself ends the run early. A run whose numbers stop being finite ends there; the problem says
    whether a run counts as diverged. Raises whatever the method raises.
    """
    setting = run.setting
    entry = registry.problems()[setting.problem]
    folder = prepare(run, scratch)
    with threadpool_limits(limits=1):
        problem = _open(setting.problem, folder, json.dumps(dict(setting.problem_params), sort_keys=True))
        method = registry.algorithms()[setting.algorithm].cls(**setting.params)
        ledger = Ledger()
        rng = seeds.generator("run", problem=setting.problem, trial=run.trial)
        init = entry.initial(problem, run.trial, dict(setting.problem_params))
        states = method.rounds(problem, rng, ledger=ledger, init=init)
        return _record(run, entry, problem, states, ledger)


def _record(run: Run, entry: registry.Problem, problem: Any, states: Iterator[Any], ledger: Ledger) -> Record:
    setting = run.setting
    rounds: list[int] = []
    counts: list[list[int]] = []
    seconds: list[float] = []
    values: dict[str, list[float]] = {name: [] for name in setting.metrics}
    spent, started = 0.0, time.perf_counter()
    state, last, waiting = None, -1, False
    for last, state in enumerate(states):
        spent += time.perf_counter() - started
        waiting = not wanted(last, setting.rounds, setting.record_every, setting.record_dense)
        if not waiting:
            _measure(entry, problem, state, last, spent, ledger, rounds, counts, seconds, values)
            if any(not np.isfinite(values[name][-1]) for name in entry.default_metrics if name in values):
                break
        if last >= setting.rounds:
            break
        started = time.perf_counter()
    if waiting and state is not None:  # stopped by itself between two recorded rounds: its end counts
        _measure(entry, problem, state, last, spent, ledger, rounds, counts, seconds, values)
    arrays = {name: np.array(v, dtype=np.float64) for name, v in values.items()}
    reason = entry.diverged({"round": np.array(rounds), **arrays})
    keep = setting.artifacts if run.trial == 1 else ()  # pictures of points show one trial
    artifacts = problem.artifacts(state, keep) if keep else {}
    return Record(
        meta={
            "status": "diverged" if reason else "ok",
            "reason": reason or "",
            "setup_scalars": ledger.setup_scalars,
            "by_kind": ledger.by_kind,
            "seconds": spent,
        },
        rounds=np.array(rounds, dtype=np.int64),
        counts=np.array(counts, dtype=np.int64).reshape(len(rounds), len(COUNTS)),
        metrics=arrays,
        seconds=np.array(seconds),
        artifacts=artifacts,
    )


def _measure(
    entry: registry.Problem,
    problem: Any,
    state: Any,
    round_: int,
    spent: float,
    ledger: Ledger,
    rounds: list[int],
    counts: list[list[int]],
    seconds: list[float],
    values: Mapping[str, list[float]],
) -> None:
    measured = entry.measure(problem, state, tuple(values))
    rounds.append(round_)
    counts.append(list(ledger.totals().values()))
    seconds.append(spent)
    for name, column in values.items():
        column.append(float(measured[name]))


def wanted(round_: int, rounds: int, every: int, dense: int) -> bool:
    """Whether a round is recorded: all up to ``dense``, then every ``every``-th, and the last."""
    return round_ <= dense or round_ % every == 0 or round_ >= rounds


def attempt(run: Run, store_root: Path, scratch: Path) -> tuple[str, str, float]:
    """Execute a run and store what came of it: (run id, 'ok' | 'diverged' | 'failed: why', seconds). Never raises."""
    store = Store(store_root)
    began = time.perf_counter()
    try:
        if not store.has(run.id):
            record = execute(run, scratch)
            record.meta |= {"series": run.setting.series, "trial": run.trial, "family": run.family}
            store.write(run.id, record)
            status = record.meta["status"]
        else:
            status = "ok"
    except Exception as error:  # any failure of a method is a recorded state, not the end of the sweep
        status = f"failed: {type(error).__name__}: {error}"
        note = {"why": status, "traceback": traceback.format_exc(), "series": run.setting.series, "trial": run.trial}
        store.fail(run.id, note)
    return run.id, status, time.perf_counter() - began
