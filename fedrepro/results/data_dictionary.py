"""The meaning of every column of the table that ``load`` returns and ``export --data`` writes, for its readers."""

from __future__ import annotations

from collections.abc import Iterable

from fedrepro import docstrings, registry
from fedrepro.results.schema import MEANINGS
from fedrepro.spec import keys
from fedrepro.spec.model import Figure, Setting

BESIDE = {
    "panel": "the panel that shows the row; rows of a curve that several panels show are repeated",
    "label": "the curve as the legend calls it",
}
"""The meaning of the columns that are added to those of the results."""


def meanings(figure: Figure, columns: Iterable[str]) -> dict[str, str]:
    """Return the meaning of each column of a figure's table. Raises KeyError for a column that no curve has."""
    known = {**BESIDE, **MEANINGS, "partition.per_trial": keys.PARTITION["per_trial"].doc}
    for setting in figure.settings():
        known = {**_of_setting(setting), **known}
    return {name: known[name] for name in columns}


def _of_setting(setting: Setting) -> dict[str, str]:
    """Return the meaning of each parameter of a setting by its column."""
    classes = {
        "": (registry.methods()[setting.algorithm].cls, setting.params),
        "problem.": (registry.problems()[setting.problem].cls, setting.problem_params),
        "dataset.": (registry.datasets()[setting.dataset].cls, setting.dataset_params),
    }
    if setting.partition is not None:
        classes["partition."] = (registry.partitions()[setting.partition].cls, setting.partition_params)
    return {
        f"{prefix}{name}": meaning
        for prefix, (cls, params) in classes.items()
        for name, meaning in docstrings.meanings(cls, params).items()
    }
