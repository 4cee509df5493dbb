"""The meaning of every column of a figure's CSV, and of the table that ``load`` returns, for its readers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fedrepro import docstrings, registry
from fedrepro.results import parameter_columns
from fedrepro.results.schema import BESIDE, KEYS, MEANINGS, MEASURED
from fedrepro.spec import keys


def meanings(settings: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the meaning of each column of the CSV of these settings, which are as a sidecar records them, in order."""
    settings = list(settings)
    known = {**MEANINGS, parameter_columns.column("partition_params", "per_trial"): keys.PARTITION["per_trial"].doc}
    for setting in settings:
        known = {**_of_setting(setting), **known}
    return {name: known[name] for name in (*KEYS, *parameter_columns.order(settings), *MEASURED)}


def of_table(settings: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the meaning of each column of the table that ``load`` returns."""
    return {**BESIDE, **meanings(settings)}


def _of_setting(setting: Mapping[str, Any]) -> dict[str, str]:
    """Return the meaning of each parameter of a setting by its column."""
    classes = {
        "params": registry.methods()[setting["algorithm"]].cls,
        "problem_params": registry.problems()[setting["problem"]].cls,
        "dataset_params": registry.datasets()[setting["dataset"]].cls,
    }
    if setting["partition"] is not None:
        classes["partition_params"] = registry.partitions()[setting["partition"]].cls
    return {
        parameter_columns.column(part, name): meaning
        for part, cls in classes.items()
        for name, meaning in docstrings.meanings(cls, setting[part]).items()
    }
