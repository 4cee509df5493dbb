"""A figure's results as one table."""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import Result

from fedrepro.errors import UserError
from fedrepro.results import load, parameter_columns
from fedrepro.results.read import read_sidecar
from fedrepro.results.schema import KEYS, MEASURED

from .conftest import ROOT

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
    assert len(frame.drop(columns=["panel", "label"]).drop_duplicates()) == len(kept) < len(frame)
    labels = frame.query("panel == 'a'").groupby("label")[["algorithm", "Q2", "m"]].first()
    assert labels.loc["FedCAvg Q2=5"].tolist()[:2] == ["fedcavg", 5]
    assert frame.attrs["sidecar"]["tier"] == "quick"


def test_the_tier_is_the_best_there_is_or_the_one_asked_for(small: Path, tmp_path: Path, fedrepro: Call) -> None:
    with pytest.raises(UserError, match="no results in"):
        load(small, results=tmp_path / "results")
    fedrepro("run", small, "-j", 1, "-q", "--tier", "smoke")
    assert load(small, results=tmp_path / "results").attrs["sidecar"]["tier"] == "smoke"
    with pytest.raises(UserError, match="no results at the paper tier in"):
        load(small, "paper", tmp_path / "results")
    with pytest.raises(UserError, match="no such figure, paper or claim"):
        load("fedc/fig99")


def test_the_file_load_and_the_data_dictionary_have_the_same_columns(
    small: Path, tmp_path: Path, fedrepro: Call
) -> None:
    fedrepro("run", small, "-j", 1, "-q")
    table = tmp_path / "results" / "quick" / "beyond" / "small.csv"
    kept, frame = pd.read_csv(table), load(small, results=tmp_path / "results")
    shown = frame.query("panel == 'a'").drop(columns=["panel", "label"])
    assert list(shown.columns) == list(kept.columns)
    order = ["series", "trial", "round", "metric"]
    first, second = (part.sort_values(order).reset_index(drop=True) for part in (kept, shown))
    pd.testing.assert_frame_equal(first, second)
    assert first.dtypes[["Q1", "Q2", "m", "dataset.N", "problem.rho"]].map(pd.api.types.is_numeric_dtype).all()
    assert kept.query("algorithm == 'fedcavg'")["m"].isna().all()  # all clients: a parameter without a value
    meanings = json.loads(table.with_name("small.json").read_text())["columns"]
    assert set(meanings) == set(kept.columns)
    assert all(meanings.values())
    assert meanings["Q1"] == "H steps per client and round"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""), (True, "true"), (False, "false"), (3, "3"), (1e-10, "1e-10"), (0.1 + 0.2, "0.30000000000000004"),
        ([512, 256], "512 256"), ("zscore", "zscore"), ({"b": 1}, '{"b": 1}'),
    ],
)  # fmt: skip
def test_a_value_is_written_as_other_programs_read_it(value: Any, text: str) -> None:
    assert parameter_columns.texts({"params": {"a": value}, "partition_params": None}) == {"a": text}


def test_columns_are_in_the_order_of_the_parts_and_never_hide_one_of_the_results() -> None:
    first = {"series": "s", "params": {"round": 1, "b": 2}, "problem_params": {"K": 3}, "dataset_params": {"K": 4}}
    second = {"series": "t", "params": {"a": True}, "problem_params": {}, "dataset_params": {}}
    assert parameter_columns.order([first, second]) == ["a", "b", "method.round", "problem.K", "dataset.K"]
    table = parameter_columns.table([first, second]).set_index("series")
    assert table.loc["s"].to_dict() == pytest.approx(
        {"a": float("nan"), "b": 2, "method.round": 1, "problem.K": 3, "dataset.K": 4}, nan_ok=True
    )


def test_results_in_the_former_format_are_read_alike(small: Path, tmp_path: Path, fedrepro: Call) -> None:
    """Up to version 5 of the sidecar, one column had the parameters that the spec sets."""
    fedrepro("run", small, "-j", 1, "-q")
    stored = tmp_path / "results"
    today, table = load(small, results=stored), stored / "quick" / "beyond" / "small.csv"
    said = fedrepro("verdict", small).output
    kept = pd.read_csv(table, dtype=str, keep_default_na=False)
    text = kept[[*KEYS, *MEASURED]].assign(parameters="Q1=2;Q2=1").to_csv(index=False, lineterminator="\n")
    table.write_text(text)
    sidecar = json.loads(table.with_name("small.json").read_text())
    del sidecar["columns"]
    facts = sidecar | {"schema": 5, "csv_sha256": hashlib.sha256(text.encode()).hexdigest()}
    table.with_name("small.json").write_text(json.dumps(facts))
    pd.testing.assert_frame_equal(load(small, results=stored), today)
    assert fedrepro("verdict", small).output == said
    assert "finished, nothing to do" in fedrepro("run", small).output


def test_kept_results_are_read_as_the_documentation_says_without_a_warning() -> None:
    assert "pd.read_csv(path, low_memory=False)" in (ROOT / "docs/results.md").read_text()
    table = ROOT / "results/paper/fedc/fig5.csv.xz"
    with pytest.warns(pd.errors.DtypeWarning):
        pd.read_csv(table)
    with warnings.catch_warnings(action="error"):
        pd.read_csv(table, low_memory=False)


def test_kept_results_have_a_column_for_each_parameter() -> None:
    openers: dict[str, Callable[..., Any]] = {".xz": lzma.open, ".gz": gzip.open, ".csv": open}
    tables = [path for path in (ROOT / "results/paper").rglob("*.csv*") if ".points." not in path.name]
    assert len(tables) > 40
    for table in tables:
        with openers[table.suffix](table, "rt") as file:
            header = file.readline().rstrip("\n").split(",")
        sidecar = read_sidecar(table.with_name(table.name[: table.name.index(".csv")]))
        assert sidecar is not None
        assert header == [*KEYS, *parameter_columns.order(sidecar.settings), *MEASURED], table
        assert set(sidecar.columns) == set(header), table
