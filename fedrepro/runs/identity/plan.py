"""Expand figures into the runs that have to be computed.

A run that several panels, figures or papers share is computed once (see ``identify``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fedrepro import registry
from fedrepro.data import own_paths
from fedrepro.data.content_fingerprint import fingerprint as data_fingerprint
from fedrepro.data.copies import state as data_state
from fedrepro.errors import DataAbsent
from fedrepro.runs.compute.execute import Keeper
from fedrepro.runs.compute.run import DataSource, Run
from fedrepro.runs.identity import code
from fedrepro.runs.identity.identify import computing_method, computing_problem, identify, source_key
from fedrepro.spec import lock_file
from fedrepro.spec.model import Figure, Setting

LACKING = "needs a library that is not installed, "
"""The beginning of the reason why a setting cannot run without a library."""
OR_STAND_IN = ", or run with --stand-in"
"""The end of the reason why a setting cannot run without a dataset that has a stand-in."""


@dataclass
class Plan:
    """The runs of some figures: per figure and series the runs in trial order, and the distinct ones to compute.

    locks : for each figure the digest of its spec's lock when the plan was made, '' without one.
    """

    figures: list[Figure]
    runs: dict[str, Run]
    by_figure: list[dict[str, list[Run]]]
    sources: dict[str, DataSource]
    missing: list[dict[str, str]]  # per figure: series -> why it cannot run
    locks: list[str] = field(default_factory=list)

    def source(self, setting: Setting) -> DataSource:
        """Return the source of a setting's data."""
        return self.sources[source_key(setting)]

    def chosen(self, only: Sequence[set[str] | None]) -> dict[str, Run]:
        """Return the distinct runs of some series of each figure, by identity. only : the series, None for all."""
        return {
            run.id: run
            for series, names in zip(self.by_figure, only, strict=True)
            for name, trials in series.items()
            if names is None or name in names
            for run in trials
        }

    def todo(self, store: Keeper) -> list[Run]:
        """Return the unfinished runs, ordered by trial, so that partial results have as many trials everywhere."""
        return sorted((run for run in self.runs.values() if not store.has(run.id)), key=lambda run: run.trial)


def make(
    figures: Iterable[Figure],
    stand_in: bool,
    recorded: Mapping[str, DataSource] | None = None,
    libraries: Mapping[str, str] | None = None,
) -> Plan:
    """Expand figures into runs.

    stand_in : use the labelled stand-in if a dataset is absent. recorded : data that earlier runs were computed on, by
    ``source_key``, to identify these runs where the data are absent. libraries : the versions that they used, to
    identify them where others are installed.
    """
    figures = list(figures)
    runs: dict[str, Run] = {}
    by_figure: list[dict[str, list[Run]]] = []
    sources_: dict[str, DataSource] = {}
    missing: list[dict[str, str]] = []
    for figure in figures:
        series: dict[str, list[Run]] = {}
        lacking: dict[str, str] = {}
        for setting in figure.settings():
            key = source_key(setting)
            source = sources_.setdefault(key, _source(setting, stand_in))
            if source.state in ("absent", "damaged", "stand-in"):
                source = sources_[key] = (recorded or {}).get(key, source)
            reason = source.note if not source.usable else _lacks_library(setting, source)
            if reason:
                lacking[setting.series] = reason
                continue
            trials = range(1, figure.trials_of(setting.series) + 1)
            every = identify(setting, trials, source, libraries)
            series[setting.series] = [runs.setdefault(run.id, run) for run in every]
        by_figure.append(series)
        missing.append(lacking)
    return Plan(figures, runs, by_figure, sources_, missing, [lock_file.digest(figure.path) for figure in figures])


def _lacks_library(setting: Setting, source: DataSource) -> str:
    """Return why a setting cannot be computed without a library of an extra; '' if it can."""
    return lacks_library([*computing_method(setting), *computing_problem(setting, source.state == "stand-in")])


def lacks_library(computing: Iterable[Any]) -> str:
    """Return which library of an extra functions and classes compute with that is not installed; '' if none."""
    names = code.uninstalled(computing)
    if not names:
        return ""
    extra = code.EXTRAS[names[0]]
    return f'{LACKING}{" and ".join(names)}: pip install "fedrepro[{extra}]"'


def _source(setting: Setting, stand_in: bool) -> DataSource:
    entry = registry.datasets()[setting.dataset]
    if entry.source is None:
        content = data_fingerprint(entry.name, dict(setting.dataset_params))
        if entry.cls.files:
            label = own_paths.label(entry.cls.files, setting.dataset_params)
            return DataSource(setting.dataset, "own file", content, label)
        return DataSource(setting.dataset, "present" if entry.cls.bundled else "none needed", content)
    copy = data_state(entry.source)
    lacking = f"the dataset {entry.source} is {copy.state}"
    if copy.state in ("present", "variant"):
        try:
            content = data_fingerprint(entry.name, dict(setting.dataset_params))
            return DataSource(setting.dataset, copy.state, content, copy.note)
        except DataAbsent as error:  # the part that these parameters need is missing
            lacking = str(error).split(";")[0]
    if stand_in and entry.stand_in is not None:
        note = entry.stand_in_note or f"made to resemble {entry.source}"
        return DataSource(setting.dataset, "stand-in", "stand-in", note)
    how = f"`fedrepro data fetch {entry.source}` or `fedrepro data import {entry.source} PATH`"
    more = OR_STAND_IN if entry.stand_in is not None else ""
    return DataSource(
        setting.dataset, "absent" if copy.state != "damaged" else "damaged", note=f"{lacking}: {how}{more}"
    )
