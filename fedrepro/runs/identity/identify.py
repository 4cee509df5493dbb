"""The identity of a run (one setting for one trial): a hash of everything that can change its numbers.

It includes the content of the data, the partition, the problem, the method and its parameters, the rounds, what is
recorded, the trial, the code that computes (``code``) and the libraries that it calls. Code that only draws, plans,
stores or explains is not included.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fedrepro import registry
from fedrepro.data import own_paths
from fedrepro.runs.compute import execute, lockstep, record
from fedrepro.runs.compute.run import DataSource, Run
from fedrepro.runs.identity import code
from fedrepro.seeds import canonical
from fedrepro.spec.model import Setting

SCHEME = 2
"""The version of what an identity includes and how code is read; version 1 was used until November 2026."""


def source_key(setting: Setting) -> str:
    """Return a key of the data of a setting: two specs may give two files the same name."""
    cls = registry.datasets()[setting.dataset].cls
    return canonical([setting.dataset, own_paths.placed(cls.files, dict(setting.dataset_params))])


def identify(
    setting: Setting, trials: Iterable[int], source: DataSource, libraries: Mapping[str, str] | None = None
) -> Iterator[Run]:
    """Yield the runs of one setting for these trials, on data from ``source``.

    libraries : versions of another environment, in which the runs are identified.
    """
    about_problem = _about_problem(setting, source, libraries)
    computing = computing_method(setting)
    facts: dict[str, Any] = {
        **about_problem,
        "problem parameters": dict(setting.problem_params),
        "parameters": dict(setting.params),
        "rounds": [setting.rounds, setting.record_every, setting.record_dense],
        "metrics": [list(setting.metrics), list(setting.artifacts)],
        "method code": code.digest(computing),
        "method libraries": code.libraries(computing, libraries),
    }
    family = _hash(facts)
    fresh_data = execute.fresh_data(setting, source.state == "stand-in")
    fresh_partition = bool(setting.partition_params.get("per_trial"))
    for trial in trials:
        drawn = {"data trial": trial if fresh_data else 0, "partition trial": trial if fresh_partition else 0}
        yield Run(
            id=_hash({**facts, **drawn, "trial": trial}),
            setting=setting,
            trial=trial,
            problem_id=_hash({**about_problem, **drawn}),
            stand_in=source.state == "stand-in",
            family=family,
            content=source.fingerprint,
        )


def computing_method(setting: Setting) -> list[Any]:
    """Return the functions and classes that compute and record the rounds of a setting."""
    computing: list[Any] = [execute.measured, execute.decide_status, record.contents, record.rows]
    computing += [registry.methods()[setting.algorithm].cls]
    return computing + ([lockstep.Lockstep, lockstep.Member] if lockstep.joins(setting) else [])


def computing_problem(setting: Setting, stand_in: bool) -> list[Any]:
    """Return the functions and classes that make the arrays of a setting. stand_in : on the stand-in of its data."""
    dataset = registry.datasets()[setting.dataset]
    made_by = dataset.stand_in if stand_in else None
    computing: list[Any] = [execute.fill, made_by or dataset.cls, registry.problems()[setting.problem].cls]
    return computing + ([registry.partitions()[setting.partition].cls] if setting.partition else [])


def _about_problem(setting: Setting, source: DataSource, libraries: Mapping[str, str] | None) -> dict[str, Any]:
    """Return what determines the arrays that a run works on, besides what is drawn for a trial; runs can share them."""
    problem = registry.problems()[setting.problem].cls
    computing = computing_problem(setting, source.state == "stand-in")
    reads = problem.stored_parameters
    shared = {k: v for k, v in setting.problem_params.items() if reads is None or k in reads}
    return {
        "scheme": SCHEME,
        "problem": [setting.problem, shared],
        "dataset": [setting.dataset, dict(setting.dataset_params), source.fingerprint],
        "partition": [setting.partition, dict(setting.partition_params)],
        "code": code.digest(computing),
        "libraries": code.libraries(computing, libraries),
    }


def _hash(facts: Mapping[str, Any]) -> str:
    return hashlib.sha256(canonical(facts).encode()).hexdigest()[:24]
