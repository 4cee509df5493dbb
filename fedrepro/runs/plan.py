"""From figures to runs: what has to be computed, what is there already, how long the rest will take.

A run is one setting for one trial. Its identity is a hash of everything that can change its numbers, so the same run
wanted by several panels, figures or papers is computed once, and nothing that only draws invalidates it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fedrepro import registry
from fedrepro.data import fingerprint as data_fingerprint
from fedrepro.data import state as data_state
from fedrepro.errors import DataAbsent
from fedrepro.runs import code, execute
from fedrepro.runs.store import Store
from fedrepro.seeds import canonical
from fedrepro.spec.model import Figure, Setting


@dataclass(frozen=True)
class Run:
    """One setting for one trial, with its identity and the identity of the problem it runs on."""

    id: str
    setting: Setting
    trial: int
    problem_id: str
    stand_in: bool
    family: str  # the identity without the trial: runs of one family take the same time


@dataclass
class Source:
    """Where a setting's data comes from: ``state`` present, variant, none needed, stand-in, or absent (with why)."""

    dataset: str
    state: str
    fingerprint: str = ""
    note: str = ""

    @property
    def usable(self) -> bool:
        """Whether runs on it can be computed."""
        return self.state not in ("absent", "damaged")


@dataclass
class Plan:
    """The runs of some figures: per figure and series the runs in trial order, and the distinct ones to compute."""

    figures: list[Figure]
    runs: dict[str, Run]
    by_figure: list[dict[str, list[Run]]]
    sources: dict[str, Source]
    missing: list[dict[str, str]]  # per figure: series -> why it cannot run

    def todo(self, store: Store) -> list[Run]:
        """The runs that are not finished, first trials of every setting first, so that partial results are even."""
        return sorted((run for run in self.runs.values() if not store.has(run.id)), key=lambda run: run.trial)


def make(figures: Iterable[Figure], stand_in: bool) -> Plan:
    """Expand figures into runs. ``stand_in``: use the labelled stand-in where a dataset is absent."""
    figures = list(figures)
    runs: dict[str, Run] = {}
    by_figure: list[dict[str, list[Run]]] = []
    sources_: dict[str, Source] = {}
    missing: list[dict[str, str]] = []
    for figure in figures:
        series: dict[str, list[Run]] = {}
        lacking: dict[str, str] = {}
        for setting in figure.settings():
            source = sources_.setdefault(
                canonical([setting.dataset, dict(setting.dataset_params)]), _source(setting, stand_in)
            )
            if not source.usable:
                lacking[setting.series] = source.note
                continue
            found = [_run(setting, trial, source) for trial in range(1, figure.trials + 1)]
            series[setting.series] = [runs.setdefault(run.id, run) for run in found]
        by_figure.append(series)
        missing.append(lacking)
    return Plan(figures, runs, by_figure, sources_, missing)


def _source(setting: Setting, stand_in: bool) -> Source:
    entry = registry.datasets()[setting.dataset]
    if entry.source is None:
        return Source(setting.dataset, "none needed", data_fingerprint(entry.name, dict(setting.dataset_params)))
    found = data_state(entry.source)
    lacking = f"the dataset {entry.source} is {found.state}"
    if found.state in ("present", "variant"):
        try:
            content = data_fingerprint(entry.name, dict(setting.dataset_params))
            return Source(setting.dataset, found.state, content, found.note)
        except DataAbsent as error:  # the part these parameters ask for is not there
            lacking = str(error).split(";")[0]
    if stand_in and entry.stand_in is not None:
        return Source(setting.dataset, "stand-in", "stand-in", f"made to resemble {entry.source}")
    how = f"`fedrepro data fetch {entry.source}` or `fedrepro data import {entry.source} PATH`"
    more = ", or run with --stand-in" if entry.stand_in is not None else ""
    return Source(setting.dataset, "absent" if found.state != "damaged" else "damaged", note=f"{lacking}: {how}{more}")


def problem_identity(setting: Setting, trial: int, source: Source) -> dict[str, Any]:
    """What determines the arrays a run works on."""
    problem = registry.problems()[setting.problem]
    dataset = registry.datasets()[setting.dataset]
    partition = registry.partitions()[setting.partition] if setting.partition else None
    made_by = dataset.stand_in if source.state == "stand-in" else None
    computing: list[Any] = [
        execute.fill,
        made_by or dataset.load,
        problem.prepare,
        *([partition.assign] if partition else []),
    ]
    reads = problem.prepare_reads
    shared = {k: v for k, v in setting.problem_params.items() if reads is None or k in reads}
    return {
        "problem": [setting.problem, shared],
        "dataset": [setting.dataset, dict(setting.dataset_params), source.fingerprint],
        "partition": [setting.partition, dict(setting.partition_params)],
        "data trial": trial if execute.fresh_data(setting, source.state == "stand-in") else 0,
        "partition trial": trial if setting.partition_params.get("per_trial") else 0,
        "code": code.digest(computing),
        "libraries": code.libraries(computing),
    }


def _run(setting: Setting, trial: int, source: Source) -> Run:
    entry = registry.algorithms()[setting.algorithm]
    about_problem = problem_identity(setting, trial, source)
    problem = registry.problems()[setting.problem]
    computing: list[Any] = [
        execute.execute,
        entry.cls,
        problem.open,
        problem.initial,
        problem.measure,
        problem.diverged,
    ]
    identity: dict[str, Any] = {
        **about_problem,
        "problem parameters": dict(setting.problem_params),
        "parameters": dict(setting.params),
        "rounds": [setting.rounds, setting.record_every, setting.record_dense],
        "metrics": [list(setting.metrics), list(setting.artifacts)],
        "method code": code.digest(computing),
        "method libraries": code.libraries(computing),
    }
    family = _hash({k: v for k, v in identity.items() if k not in ("data trial", "partition trial")})
    return Run(
        id=_hash({**identity, "trial": trial}),
        setting=setting,
        trial=trial,
        problem_id=_hash(about_problem),
        stand_in=source.state == "stand-in",
        family=family,
    )


def _hash(facts: Mapping[str, Any]) -> str:
    return hashlib.sha256(canonical(facts).encode()).hexdigest()[:24]
