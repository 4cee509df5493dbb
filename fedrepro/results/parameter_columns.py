"""The columns of parameters in a figure's CSV: one for each parameter that any of its curves has."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from fedrepro.results.schema import BESIDE, COLUMNS

if TYPE_CHECKING:
    import pandas as pd

PREFIXES = {"params": "", "problem_params": "problem.", "dataset_params": "dataset.", "partition_params": "partition."}
"""What stands before the name of a parameter, by the part of a setting that has it."""


def column(part: str, name: str) -> str:
    """Return the column of a parameter: ``Q1``, ``problem.K``, or ``method.round`` if the CSV has a column ``round``.

    part : a key of ``PREFIXES``. name : the parameter's name.
    """
    prefix = "method." if part == "params" and name in (*BESIDE, *COLUMNS) else PREFIXES[part]
    return f"{prefix}{name}"


def texts(setting: Mapping[str, Any]) -> dict[str, str]:
    """Return the text of each parameter of a setting, as a sidecar records it, by column."""
    return {column(part, name): _text(value) for part in PREFIXES for name, value in (setting.get(part) or {}).items()}


def _text(value: Any) -> str:
    """Return a value as pandas, R and a spreadsheet read it: empty for none, and a list with spaces between its items.

    A number in a text is exact.
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return " ".join(map(_text, value))
    return json.dumps(value, sort_keys=True) if isinstance(value, dict) else str(value)


def order(settings: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the columns of all parameters of some settings: those of methods, problems, datasets, then partitions."""
    settings = list(settings)
    return [
        column(part, name)
        for part in PREFIXES
        for name in sorted({name for setting in settings for name in setting.get(part) or {}})
    ]


def table(settings: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Return a row for each setting, with its series and its parameters, as pandas reads them from a CSV."""
    import pandas as pd

    settings = list(settings)
    columns = order(settings)
    out = io.StringIO()
    writer = csv.DictWriter(out, ["series", *columns], restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows({"series": setting["series"], **texts(setting)} for setting in settings)
    return pd.read_csv(io.StringIO(out.getvalue()), dtype={"series": str})
