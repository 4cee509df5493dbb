"""The numbers of a figure in the formats that papers and programs take."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from fedrepro.report import table_formats

Call = Callable[..., Result]


@pytest.fixture
def shown(small: Path, tmp_path: Path, fedrepro: Call) -> Callable[[str], str]:
    small.write_text(small.read_text().replace('title: "left"', 'title: "left & right, $Q_1$ < 3_000"'))
    assert fedrepro("run", small, "-j", 1, "-q").exit_code == 0

    def show(form: str) -> str:
        found = fedrepro("show", small, "--results", tmp_path / "results", "--format", form)
        assert found.exit_code == 0, found.output
        return found.output

    return show


def test_every_format_has_the_same_numbers(shown: Callable[[str], str]) -> None:
    panels = json.loads(shown("json"))["panels"]
    rows = list(csv.DictReader(io.StringIO(shown("csv"))))
    assert [row["panel"] for row in rows] == ["a"] * 4 + ["b"] * 4
    assert [row["objective"] for row in rows] == [row["objective"] for panel in panels for row in panel["rows"]]
    value = rows[0]["objective"]
    assert 0.0 < float(value) < 1.0
    assert f"| {value} |" in shown("md")
    assert f"& {value} &" in shown("latex")


def test_latex_is_set_with_booktabs(shown: Callable[[str], str]) -> None:
    text = shown("latex")
    assert text.count("\\begin{table}") == text.count("\\toprule") == text.count("\\bottomrule") == 2
    assert "\\caption{left \\& right, $Q_1$ $<$ 3\\_000. beyond/small: QUICK TIER. quick tier" in text
    assert "\\begin{tabular}{lrrrrrr}" in text


def test_text_for_latex_keeps_its_mathematics() -> None:
    assert table_formats._tex("5 % of $a_1$ & b_2") == "5 \\% of $a_1$ \\& b\\_2"
    assert table_formats._tex("10 $ a_1") == "10 \\$ a\\_1"


def test_show_takes_the_best_tier_there_is(small: Path, tmp_path: Path, fedrepro: Call) -> None:
    for tier in ("smoke", "paper"):
        fedrepro("run", small, "-j", 1, "-q", "--tier", tier)
    assert "paper tier" in fedrepro("show", small, "--results", tmp_path / "results").output
    assert "smoke tier" in fedrepro("show", small, "--results", tmp_path / "results", "--tier", "smoke").output
