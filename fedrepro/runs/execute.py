"""One run, start to end, in the process that calls it: open its problem, iterate its method, measure, store."""

from __future__ import annotations

import functools
import json
import os
import shutil
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from filelock import FileLock
from threadpoolctl import threadpool_limits

from fedrepro import registry, seeds
from fedrepro.data import load as load_data
from fedrepro.ledger import COUNTS
from fedrepro.protocols import Problem
from fedrepro.runs.drive import drive, randomness
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
                with threadpool_limits(limits=1):
                    facts = fill(run, part)
                (part / "problem.json").write_text(json.dumps(facts, default=str), encoding="utf-8")
                part.rename(folder)
            finally:
                shutil.rmtree(part, ignore_errors=True)
    return folder


def fill(run: Run, folder: Path) -> dict[str, Any]:
    """Let the problem write its arrays; returns the data's own facts."""
    setting = run.setting
    data, client = data_of(setting, run.trial, run.stand_in)
    registry.problems()[setting.problem].cls.prepare(folder, data, client, dict(setting.problem_params))
    return dict(data.facts)


def data_of(setting: Setting, trial: int, stand_in: bool = False) -> tuple[Any, np.ndarray | None]:
    """The data of one trial of a setting, and who holds what of it (None: nobody shares).

    The problem's ``of`` makes of both what the command line computes this trial on. Raises DataAbsent and
    ParameterError.
    """
    facts: dict[str, Any] = {"dataset": setting.dataset, "params": dict(setting.dataset_params)}
    if fresh_data(setting, stand_in):
        facts["trial"] = trial
    with threadpool_limits(limits=1):
        data = load_data(
            setting.dataset, dict(setting.dataset_params), rng=seeds.generator("data", **facts), stand_in=stand_in
        )
        if setting.partition is None:
            return data, None
        params = dict(setting.partition_params)
        per_trial = params.pop("per_trial", False)
        key = {**facts, "partition": setting.partition, "with": params, "trial": trial if per_trial else 0}
        partition = registry.partitions()[setting.partition].make(**params)
        return data, partition.assign(data, seeds.generator("partition", **key))


def fresh_data(setting: Setting, stand_in: bool) -> bool:
    """Whether each trial draws its own data: generated datasets do; a stand-in is one for all trials."""
    return registry.datasets()[setting.dataset].draws and not stand_in


@functools.lru_cache(maxsize=2)
def _open(problem: str, folder: Path, parameters: str) -> Problem:
    opened: Problem = registry.problems()[problem].cls.stored(folder, json.loads(parameters))
    return opened


def execute(run: Run, scratch: Path) -> Record:
    """Compute one run and return its record. Raises whatever the method raises."""
    folder = prepare(run, scratch)
    problem = _open(run.setting.problem, folder, json.dumps(dict(run.setting.problem_params), sort_keys=True))
    return measured(run.setting, run.trial, problem)


def measured(setting: Setting, trial: int, problem: Problem) -> Record:
    """The record of one trial of a setting on its problem. Arrays for pictures are kept of the first trial."""
    history = drive(
        registry.algorithms()[setting.algorithm].cls(**setting.params),
        problem,
        setting.rounds,
        rng=randomness(setting.problem, trial),
        init=problem.initial(trial),
        metrics=setting.metrics,
        record_every=setting.record_every,
        record_dense=setting.record_dense,
    )
    keep = setting.artifacts if trial == 1 else ()
    with threadpool_limits(limits=1):
        artifacts = problem.artifacts(history.state, keep) if keep else {}
    return Record(
        meta={
            "status": "diverged" if history.diverged else "ok",
            "reason": history.diverged or "",
            "setup_scalars": history.ledger.setup_scalars,
            "by_kind": history.ledger.by_kind,
            "seconds": float(history.seconds[-1]) if len(history.seconds) else 0.0,
        },
        rounds=history.rounds,
        counts=np.stack([history[name] for name in COUNTS], axis=1),
        metrics={name: history[name] for name in setting.metrics},
        seconds=history.seconds,
        artifacts=artifacts,
    )


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
