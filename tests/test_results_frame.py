"""A figure's results as one table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from click.testing import Result

from fedrepro.errors import UserError
from fedrepro.results import load

Call = Callable[..., Result]


def test_every_parameter_has_a_column(small: Path, tmp_path: Path, fedrepro: Call) -> None:
    fedrepro("run", small, "-j", 1, "-q")
    frame = load(small, results=tmp_path / "results")
    assert set(frame["panel"]) == {"a", "b"}
    assert set(frame["m"].dropna()) == {2, 6}
    assert set(frame.query("algorithm == 'fedcavg'")["Q2"]) == {1, 5}
    assert set(frame["dataset.N"]) == {60}
    assert set(frame["partition.P"]) == {6}
    assert set(frame["problem.rho"]) == {1e-8}
    kept = pd.read_csv(tmp_path / "results" / "quick" / "beyond" / "small.csv")
    assert len(frame.query("panel == 'a'")) == len(kept)
    assert frame.query("panel == 'a'")["value"].sum() == pytest.approx(kept["value"].sum(), rel=1e-12)
    labels = frame.query("panel == 'a'").groupby("label")[["algorithm", "Q2", "m"]].first()
    assert labels.loc["FedCAvg Q2=5"].tolist()[:2] == ["fedcavg", 5]
    assert frame.attrs["sidecar"]["tier"] == "quick"


def test_the_tier_is_the_best_there_is_or_the_one_asked_for(small: Path, tmp_path: Path, fedrepro: Call) -> None:
    with pytest.raises(UserError, match="no results at the paper or the quick or the smoke tier in"):
        load(small, results=tmp_path / "results")
    fedrepro("run", small, "-j", 1, "-q", "--tier", "smoke")
    assert load(small, results=tmp_path / "results").attrs["sidecar"]["tier"] == "smoke"
    with pytest.raises(UserError, match="no results at the paper tier in"):
        load(small, "paper", tmp_path / "results")
    with pytest.raises(UserError, match="no such figure, paper or claim"):
        load("fedc/fig99")
