"""Rows of a results table looked up by run, against selecting them one by one."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fedrepro.plotting.series import FigureData
from fedrepro.results.by_run import NUMBERS, Runs, at_rounds

from .panel_cases import curve, figure, panel, rows

ONE, TWO = curve("fedmgs", "FedMGS", m=10), curve("fedmgs", "FedMGS", m=100)


def table() -> pd.DataFrame:
    """Two series with mixed rows: two metrics, a run that diverged, and one that failed."""
    lost = rows(ONE, 3, [0], [np.nan], status="failed").assign(round=np.nan, metric=None)
    made = [
        rows(ONE, 10, [0, 5, 10], [3.0, 2.0, 1.0]),
        rows(TWO, 1, [0, 4], [9.0, 8.0], cost=7),
        lost,
        rows(ONE, 2, [0, 5], [6.0, np.inf], status="diverged"),
        rows(ONE, 10, [0, 10], [0.1, 0.2], metric="accuracy"),
    ]
    return pd.concat(made, ignore_index=True)


def test_rows_are_those_of_the_run_by_round() -> None:
    frame = table().sample(frac=1.0, random_state=3, ignore_index=True)
    runs = Runs(frame)
    assert set(runs.series()) == {ONE.setting.series, TWO.setting.series}
    assert runs.trials(ONE.setting.series) == [2, 3, 10]
    assert runs.finished(ONE.setting.series) == [2, 10]
    assert [runs.status(ONE.setting.series, trial) for trial in (2, 3, 10)] == ["diverged", "failed", "ok"]
    for series, trial, metric in (
        frame[["series", "trial", "metric"]].dropna().drop_duplicates().itertuples(index=False)
    ):
        chosen = frame[(frame["series"] == series) & (frame["trial"] == trial) & (frame["metric"] == metric)]
        for name in NUMBERS:
            expected = chosen.sort_values("round")[name].to_numpy(dtype=float)
            np.testing.assert_array_equal(runs.rows(series, trial, metric)[name], expected)
    whole = frame[(frame["series"] == ONE.setting.series) & (frame["trial"] == 10)]
    np.testing.assert_array_equal(runs.all_rows(ONE.setting.series, 10)["value"], whole["value"])


def test_what_is_not_there_is_empty() -> None:
    runs = Runs(table())
    assert runs.trials("nothing of this name") == []
    assert runs.rows(ONE.setting.series, 3, "objective")["value"].size == 0
    assert runs.rows(ONE.setting.series, 10, "rmse")["round"].size == 0


@pytest.mark.parametrize("asked", [[0, 10], [0, 5, 10, 11], [-1.0, 4.9], []])
def test_values_are_of_the_very_rounds_asked_for(asked: list[float]) -> None:
    rows = Runs(table()).rows(ONE.setting.series, 10, "accuracy")
    known = {0: 0.1, 10: 0.2}
    expected = [known.get(number, np.nan) for number in asked]
    np.testing.assert_array_equal(at_rounds(rows, np.array(asked, dtype=float)), expected)
    nothing = Runs(table()).rows(ONE.setting.series, 10, "rmse")
    assert np.isnan(at_rounds(nothing, np.array(asked, dtype=float))).all()


def test_results_in_short_say_the_same_of_every_run() -> None:
    source = FigureData(figure(panel("a", ONE, TWO)), table())
    short = source.in_short()
    assert len(short.frame) == 4
    for name in source.runs.series():
        assert short.runs.trials(name) == source.runs.trials(name)
        assert short.runs.finished(name) == source.runs.finished(name)
