"""The rows of a results table by run, looked up once because panels and claims read them often."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fedrepro.ledger import COUNTS

if TYPE_CHECKING:
    import pandas as pd

NUMBERS = ("round", *COUNTS, "value")

Rows = Mapping[str, np.ndarray]
"""Rows of one run: an array for each column of ``NUMBERS``, all of one length."""


class Runs:
    """A figure's tidy table by run, that is by series and trial."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._numbers = {name: frame[name].to_numpy(dtype=float) for name in NUMBERS if name in frame}
        self._status = frame["status"].to_numpy()
        named = frame[["series", "dataset"]].drop_duplicates() if "dataset" in frame else frame[["series"]].iloc[:0]
        self._datasets: dict[str, set[str]] = {}
        for series, dataset in named.itertuples(index=False):
            self._datasets.setdefault(series, set()).add(str(dataset))
        self._whole, self._parts = _places(frame, "series", "trial"), _places(frame, "series", "trial", "metric")
        self._trials: dict[str, list[int]] = {}
        for series, trial in sorted(self._whole):
            self._trials.setdefault(series, []).append(int(trial))

    def series(self) -> list[str]:
        """Return the names of all series."""
        return list(self._trials)

    def datasets(self, series: str) -> set[str]:
        """Return the names of the data in the rows of a series; one, unless rows were edited."""
        return self._datasets.get(series, set())

    def trials(self, series: str) -> list[int]:
        """Return the numbers of a series' trials, in order."""
        return self._trials.get(series, [])

    def finished(self, series: str) -> list[int]:
        """Return the numbers of a series' trials that did not fail."""
        return [trial for trial in self.trials(series) if self.status(series, trial) != "failed"]

    def status(self, series: str, trial: int) -> str:
        """Return the status of a run."""
        return str(self._status[self._whole[series, trial][0]])

    def rows(self, series: str, trial: int, metric: str) -> Rows:
        """Return the records of one metric of a run, by round."""
        at = self._parts.get((series, trial, metric), np.array([], dtype=int))
        at = at[np.argsort(self._numbers["round"][at], kind="stable")]
        return {name: values[at] for name, values in self._numbers.items()}

    def all_rows(self, series: str, trial: int) -> Rows:
        """Return all records of a run, in the order of the table."""
        at = self._whole[series, trial]
        return {name: values[at] for name, values in self._numbers.items()}


def _places(frame: pd.DataFrame, *columns: str) -> Mapping[Any, np.ndarray]:
    """Return the row numbers of each combination of values, in the order of the table."""
    indices: Any = frame.groupby(list(columns), observed=True).indices
    return indices


def at_rounds(rows: Rows, rounds: np.ndarray) -> np.ndarray:
    """Return the values at exactly these rounds; nan where a round is missing."""
    if not rows["round"].size:
        return np.full(rounds.size, np.nan)
    at = np.minimum(np.searchsorted(rows["round"], rounds), rows["round"].size - 1)
    return np.where(rows["round"][at] == rounds, rows["value"][at], np.nan)
