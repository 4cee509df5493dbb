"""Measures this computer for the runs at hand: units of work, libraries, a factor per method, and first rounds.

A factor is the time of a few rounds of a method on the small problem that its problem names, relative to its declared
cost; runs with the same ``timings.calibration_key`` share one. The first rounds of runs without a declared cost are
timed.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from fedrepro import registry
from fedrepro.errors import ParameterError, UserError
from fedrepro.protocols import Work
from fedrepro.runs.compute import execute
from fedrepro.runs.compute.run import Run
from fedrepro.runs.predict import first_rounds
from fedrepro.runs.predict import timings as predict
from fedrepro.runs.predict.machine import WORTH, Machine, needs
from fedrepro.spec.model import Setting

ENOUGH = 0.2
"""Seconds of processor time after which no further round on a sample is timed."""

SHARE = 0.02
"""Share of the predicted time below which a method gets no factor."""


def machine_for(runs: Sequence[Run], report: Callable[[str], None] = lambda text: None) -> Machine:
    """The computer, measured unless these runs take only seconds at typical speed.

    The first rounds of runs whose method or problem does not declare its cost are always timed. ``report`` receives a
    line before something is measured; the measurements are kept for the next time.
    """
    machine = Machine()
    by_family = {run.family: run for run in runs}
    count = Counter(run.family for run in runs)
    works = {family: predict.own_work(run) + predict.around(run) for family, run in by_family.items()}
    typical = {family: machine.seconds(work) * count[family] for family, work in works.items()}
    worth = sum(typical.values()) >= WORTH
    _time_first_rounds(by_family.values(), machine, worth, report)
    if not worth:
        return machine
    machine.measure(needs(works.values()), predict.needed(by_family.values()), report)
    by_method: dict[str, float] = {}
    for family, run in by_family.items():
        key = predict.calibration_key(run)
        by_method[key] = by_method.get(key, 0.0) + typical[family]
    for key, run in {predict.calibration_key(run): run for run in by_family.values()}.items():
        if by_method[key] >= SHARE * sum(typical.values()):
            machine.learn_factor(key, lambda run=run: factor(run, machine))  # type: ignore[misc]
    return machine


def _time_first_rounds(runs: Iterable[Run], machine: Machine, worth: bool, report: Callable[[str], None]) -> None:
    """Time and keep the first rounds of runs of which something declares no cost; of datasets only where worth it."""
    for run in runs:
        costs = [name for name in first_rounds.PROTOCOLS if worth or name != "making"]
        if first_rounds.lacks(run, *costs) and machine.first_rounds(run.family) is None:
            report(f"timing the first rounds of {run.setting.series}; kept for the next time")
            if (first := first_rounds.measure(run)) is not None:
                machine.learn_first_rounds(run.family, first)


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
            first_rounds.timed(method, problem, (), 1, ENOUGH)  # loads and compiles
            if hasattr(problem, "kept"):
                problem.kept.clear()
            took = first_rounds.timed(method, problem, (), 1, ENOUGH)
    except (UserError, ArithmeticError, np.linalg.LinAlgError):
        return None
    declared = predict.cost(small)
    work = declared.start + declared.first if entry.cls.one_shot else declared.round
    seconds = took.start if entry.cls.one_shot else took.round
    return seconds / machine.seconds(work) if seconds and work != Work() else None


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
