"""How fast this machine is at what some runs do: its units of work, its libraries, and a factor for each method.

A factor is what a few rounds of a method take on the small problem that its problem names, to what its cost says of
them; ``predict.path`` says what it belongs to.
"""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from fedrepro import registry
from fedrepro.errors import ParameterError, UserError
from fedrepro.ledger import Ledger
from fedrepro.protocols import Work
from fedrepro.runs.compute import execute
from fedrepro.runs.compute.drive import randomness
from fedrepro.runs.predict import timings as predict
from fedrepro.runs.predict.machine import WORTH, Machine, needs
from fedrepro.runs.run import Run
from fedrepro.spec.model import Setting

ENOUGH = 0.2
"""Seconds of processor time that rounds on a sample are measured for."""

SHARE = 0.02
"""Methods whose runs take less than this share of the whole are not measured."""


def machine_for(runs: Sequence[Run], told: Callable[[str], None] = lambda text: None) -> Machine:
    """The machine, measured as far as these runs are worth it: not where they take seconds by typical numbers.

    ``told`` hears, once, that it is being measured.
    """
    machine = Machine()
    different = {run.family: run for run in runs}
    count = Counter(run.family for run in runs)
    works = {family: predict.own_work(run) + predict.around(run) for family, run in different.items()}
    typical = {family: machine.seconds(work) * count[family] for family, work in works.items()}
    if sum(typical.values()) < WORTH:
        return machine
    kinds, libraries = needs(works.values()), predict.needed(different.values())
    if machine.lacks(kinds, libraries):
        told("measuring how fast this machine is; kept for the next time")
    machine.measure(kinds, libraries)
    by_method: dict[str, float] = {}
    for family, run in different.items():
        by_method[predict.path(run)] = by_method.get(predict.path(run), 0.0) + typical[family]
    for name, run in {predict.path(run): run for run in different.values()}.items():
        if by_method[name] >= SHARE * sum(typical.values()):
            machine.learn(name, lambda run=run: factor(run, machine))  # type: ignore[misc]
    return machine


def factor(run: Run, machine: Machine) -> float | None:
    """The factor of the run's method; None where its problem has no such sample or the method cannot run on it."""
    entry = registry.methods()[run.setting.algorithm]
    problem_cls = registry.problems()[entry.problem].cls
    sample = problem_cls.probes.get(predict.kind(run))
    if sample is None:
        return None
    try:
        small = _small(run, sample)
        with threadpool_limits(limits=1):
            data, client = execute.data_of(small.setting, 1, stand_in=True)
            problem = problem_cls.of(data, client, dict(small.setting.problem_params))
            method = entry.cls(**small.setting.params)
            took, rounds = _measured(method, problem, entry.problem, entry.cls.one_shot)
    except (UserError, ArithmeticError, np.linalg.LinAlgError):
        return None
    said = predict.cost(small)
    work = said.start + said.first if entry.cls.one_shot else said.round * rounds
    return took / machine.seconds(work) if work != Work() else None


def _measured(method: Any, problem: Any, name: str, one_shot: bool) -> tuple[float, int]:
    """Seconds of processor time of some rounds, and how many; the first has loaded and compiled what there is."""
    init = problem.initial(1)
    if one_shot:
        next(method.rounds(problem, randomness(name, 1), ledger=Ledger(), init=init))
        if hasattr(problem, "kept"):
            problem.kept.clear()
        began = time.process_time()
        next(method.rounds(problem, randomness(name, 1), ledger=Ledger(), init=init))
        return time.process_time() - began, 1
    states = method.rounds(problem, randomness(name, 1), ledger=Ledger(), init=init)
    for _ in itertools.islice(states, 2):
        pass
    began, done = time.process_time(), 0
    for _ in itertools.islice(states, 200):
        done += 1
        if time.process_time() - began > ENOUGH:
            break
    if done == 0:
        raise UserError(f"{name}: the method ended at once on the sample")
    return time.process_time() - began, done


def _small(run: Run, sample: Mapping[str, Any]) -> Run:
    """The run on the sample of its problem; a number that does not fit it is halved until it does."""
    dataset = dict(sample["dataset"])
    partition: dict[str, Any] = dict(sample.get("partition") or {})
    name, shared = dataset.pop("name"), partition.pop("name", None)
    problem = {**registry.problems()[run.setting.problem].parameters, **sample.get("problem", {})}
    setting = Setting(
        series="", problem=run.setting.problem, problem_params=problem, dataset=name,
        dataset_params={**_defaults(registry.datasets()[name]), **dataset}, partition=shared,
        partition_params={**(_defaults(registry.partitions()[shared]) if shared else {}), **partition},
        algorithm=run.setting.algorithm, params=dict(run.setting.params), rounds=1, record_every=1, record_dense=0,
        metrics=(),
    )  # fmt: skip
    small = Run("", setting, 1, "", True, "")
    known = predict.facts(small)
    params: dict[str, Any] = dict(run.setting.params)
    for _ in range(40):
        try:
            registry.methods()[setting.algorithm].cls(**params).check(**known)
            break
        except ParameterError as error:
            if not predict.is_number(params.get(error.name)):
                raise
            params[error.name] = type(params[error.name])(params[error.name] / 2)
    setting.params.update(params)  # type: ignore[attr-defined]
    return small


def _defaults(entry: Any) -> dict[str, Any]:
    return {k: v for k, v in entry.parameters().items() if v is not dataclasses.MISSING}
