"""The numbers of a figure in the formats that papers and programs take."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from click.testing import Result

from fedrepro import registry
from fedrepro.plotting import naming
from fedrepro.report import end_values, table_formats
from fedrepro.spec import axes

from .conftest import ROOT

Call = Callable[..., Result]


@pytest.fixture
def shown(small: Path, tmp_path: Path, fedrepro: Call) -> Callable[..., str]:
    small.write_text(small.read_text().replace('title: "left"', 'title: "left & right, $Q_1$ < 3_000"'))
    assert fedrepro("run", small, "-j", 1, "-q").exit_code == 0

    def show(form: str, *options: str) -> str:
        found = fedrepro("show", small, "--results", tmp_path / "results", "--format", form, *options)
        assert found.exit_code == 0, found.output
        return found.output

    return show


def test_every_format_has_the_same_numbers(shown: Callable[..., str]) -> None:
    facts = json.loads(shown("json"))
    assert [facts[key] for key in ("figure", "tier", "stale")] == ["beyond/small", "quick", []]
    panels = facts["panels"]
    assert [panel["scale"] for panel in panels] == [1, 1]
    rows = list(csv.DictReader(io.StringIO(shown("csv"))))
    assert [row["panel"] for row in rows] == ["a"] * 4 + ["b"] * 4
    listed = [{"panel": panel["panel"], **row} for panel in panels for row in panel["rows"]]
    assert [{name: "" if value is None else str(value) for name, value in row.items()} for row in listed] == rows
    value = f"{listed[0]['mean']:.6g}"
    assert 0.0 < float(value) < 1.0
    assert f"| {value} |" in shown("md")
    assert f"& {value} &" in shown("latex")


def test_latex_is_set_with_booktabs(shown: Callable[..., str]) -> None:
    text = shown("latex")
    assert text.count("\\begin{table}") == text.count("\\toprule") == text.count("\\bottomrule") == 1
    assert "\\caption{left \\& right, $Q_1$ $<$ 3\\_000. beyond/small: QUICK TIER. quick tier" in text
    assert "\\begin{tabular}{lrrrrrr}" in text
    assert "\\label{tab:beyond-small-a}" in text


def test_the_caption_of_a_panel_without_a_title_begins_with_the_figure(small: Path, fedrepro: Call) -> None:
    small.write_text(small.read_text().replace('    title: "left"\n', ""))
    fedrepro("run", small, "-j", 1, "-q")
    assert "\\caption{beyond/small: QUICK TIER." in fedrepro("show", small, "--format", "latex").output


def test_a_round_that_was_not_recorded_shows_the_record_before_it(small: Path, fedrepro: Call) -> None:
    small.write_text(small.read_text().replace("rounds: 5\n", "rounds: 5\nrecord_every: 3\nrecord_dense: 0\n"))
    fedrepro("run", small, "-j", 1, "-q")
    shown = [fedrepro("show", small, "--panel", "a", "--format", "json", "--at", at).output for at in (3, 4)]
    assert shown[0] == shown[1]
    assert '"round_min": 3' in shown[1]


def test_a_stand_in_is_one_without_the_sidecar_too(small: Path, tmp_path: Path, fedrepro: Call) -> None:
    small.write_text(
        small.read_text().replace("{name: synthetic, variant: clean, M: 12, N: 60, K: 3}", "{name: mnist}")
    )
    fedrepro("run", small, "-j", 1, "-q", "--tier", "smoke", "--stand-in")
    (sidecar,) = (tmp_path / "results").rglob("small*.json")
    sidecar.unlink()
    shown = fedrepro("show", small, "--tier", "smoke").output
    assert "MNIST (stand-in)" in shown
    assert "(real)" not in shown


def test_a_round_that_was_not_run_is_refused(small: Path, fedrepro: Call) -> None:
    fedrepro("run", small, "-j", 1, "-q")
    assert fedrepro("show", small, "--at", 5).exit_code == 0
    refused = fedrepro("show", small, "--at", 6)
    assert (refused.exit_code, refused.stderr) == (
        2,
        "error: --at 6: beyond/small has only 5 rounds at the quick tier\n",
    )
    of_table = fedrepro("show", "fedmf/table1", "--results", ROOT / "results", "--tier", "paper", "--at", 6)
    assert of_table.stderr == (
        "error: --at 6: tables show the last round, and fedmf/table1 has nothing else to read here\n"
    )


def test_a_program_reads_one_table_of_plain_numbers(shown: Callable[..., str]) -> None:
    frame = pd.read_csv(io.StringIO(shown("csv")))
    assert set(frame["panel"]) == {"a", "b"}
    for name in ("mean", "sd", "trials", "round_min", "round_max", "uplink_scalars", "uplink_bits"):
        assert pd.api.types.is_numeric_dtype(frame[name]), name
    assert "," in shown("md")
    (first, *_) = json.loads(shown("json"))["panels"][0]["rows"]
    assert {name: type(first[name]) for name in ("curve", "mean", "trials", "uplink_scalars", "published")} == {
        "curve": str, "mean": float, "trials": int, "uplink_scalars": int, "published": type(None),
    }  # fmt: skip


def test_two_formats_at_once_are_refused(small: Path, fedrepro: Call) -> None:
    refused = fedrepro("show", small, "--json", "--format", "csv")
    assert (refused.exit_code, refused.stderr) == (
        2, "error: --json is short for --format json, and you also ask for csv\n",
    )  # fmt: skip


def test_the_cost_is_in_bits_too_where_numbers_are_quantized(tmp_path: Path, fedrepro: Call) -> None:
    shown = fedrepro("show", "gcca/fig4", "--panel", "a", "--results", ROOT / "results").output
    assert "numbers sent up  bits sent up" in shown
    three, full = (next(line for line in shown.splitlines() if name in line) for name in ("q=3", "AltMaxVar"))
    assert three.split()[-2:] == ["7,507,500", "22,836,000"]
    assert full.split()[-2:] == ["7,507,500", "240,240,000"]
    assert "bits" not in fedrepro("show", "fedc/fig5", "--panel", "a", "--results", ROOT / "results").output


def test_the_best_values_are_bold_on_request(shown: Callable[..., str], small: Path, fedrepro: Call) -> None:
    best = min(row["mean"] for row in json.loads(shown("json"))["panels"][0]["rows"])
    assert f"\\textbf{{{best:.6g}}}" in shown("latex", "--bold")
    assert f"| **{best:.6g}** |" in shown("md", "--bold")
    assert "textbf" not in shown("latex")
    refused = fedrepro("show", small, "--bold")
    assert "--bold needs --format latex or md; text has no bold letters" in refused.stderr


def test_tables_of_methods_have_a_best_cell_per_column_and_can_omit_the_papers_numbers(fedrepro: Call) -> None:
    table = fedrepro(
        "show", "fedmf/table1", "--results", ROOT / "results", "--format", "latex", "--panel", "accuracy", "--bold"
    ).output
    best = {row.split(" & ")[0]: row.count("textbf") for row in table.splitlines() if "textbf" in row}
    assert best == {"FedMAvg, m = 100": 1, "FedMGS, m = 100": 3}
    assert "; paper 49.1" in table
    table = fedrepro(
        "show",
        "fedmf/table1",
        "--results",
        ROOT / "results",
        "--format",
        "latex",
        "--panel",
        "accuracy",
        "--no-published",
    ).output
    assert "paper 4" not in table
    assert "`" not in table, "a caption has no commands"
    assert "KM$\\|$ & " in table
    assert "Ten curves have no results: the data of TCGA were absent." in table
    assert "PARTIAL" not in table
    assert "missing" not in table


def test_numbers_for_programs_are_in_the_units_of_the_results(fedrepro: Call) -> None:
    words = ("show", "fedmf/table1", "--results", ROOT / "results", "--panel", "accuracy", "--no-published")
    printed = pd.read_csv(io.StringIO(fedrepro(*words[:-1], "--format", "csv").stdout))
    ours = printed[(printed["curve"] == "FedMAvg m=10") & (printed["column"] == "mnist")].iloc[0]
    assert ours[["mean", "published", "difference"]].round(6).tolist() == [0.479193, 0.488, -0.008807]
    assert f"{100 * ours['mean']:.1f} ± {100 * ours['sd']:.1f}" in fedrepro(*words).output
    panel = json.loads(fedrepro(*words[:-1], "--format", "json").stdout)["panels"][0]
    assert panel["scale"] == 100
    assert ours["mean"] in [row["mean"] for row in panel["rows"]]


def test_panels_with_equal_tables_share_one(small: Path, fedrepro: Call) -> None:
    fedrepro("run", small, "-j", 1, "-q")
    assert fedrepro("show", small, "--format", "latex").output.count("\\caption{left. beyond/small") == 1
    assert fedrepro("show", small, "--format", "md").output.startswith("**(a, b) left**")


def test_captions_have_letters_where_titles_are_equal(small: Path, fedrepro: Call) -> None:
    small.write_text(small.read_text().replace("like: a", "like: a, curves: [{algorithm: fedcavg, Q1: 2, Q2: 5}]"))
    fedrepro("run", small, "-j", 1, "-q")
    latex = fedrepro("show", small, "--format", "latex").output
    assert "\\caption{(a) left. beyond/small" in latex
    assert "\\caption{(b) left. beyond/small" in latex
    assert "\\caption{left. beyond/small" in fedrepro("show", small, "--format", "latex", "--panel", "b").output


def test_text_for_latex_keeps_its_mathematics() -> None:
    assert table_formats._tex("5 % of $a_1$ & b_2") == "5 \\% of $a_1$ \\& b\\_2"
    assert table_formats._tex("10 $ a_1") == "10 \\$ a\\_1"


@pytest.mark.parametrize(
    ("text", "tex"),
    [
        ("τ = 1, λmin", "$\\tau$ = 1, $\\lambda$min"),
        ("½ Var(b)", "$\\frac{1}{2}$ Var(b)"),
        ("Q\u0302 ≤ ∞", "$\\hat{Q}$ $\\le$ $\\infty$"),
        ("‖xᵀ‖²", "$\\|$x$^\\top$$\\|$$^{2}$"),
        ("Σ Α x₁", "$\\Sigma$ $A$ x$_{1}$"),
    ],
)
def test_latex_has_no_letters_that_its_fonts_lack(text: str, tex: str) -> None:
    assert table_formats._tex(text) == tex


def test_every_symbol_of_the_papers_is_ascii_in_latex() -> None:
    assert [plain for _, plain in naming.SYMBOLS.values() if not table_formats._tex(plain).isascii()] == []
    labels = [entry.label for entry in (*registry.methods().values(), *axes.AXES.values())]
    assert [label for label in labels if not table_formats._tex(label).isascii()] == []


def test_show_takes_the_best_tier_there_is(small: Path, tmp_path: Path, fedrepro: Call) -> None:
    for tier in ("smoke", "paper"):
        fedrepro("run", small, "-j", 1, "-q", "--tier", tier)
    assert "paper tier" in fedrepro("show", small, "--results", tmp_path / "results").output
    assert "smoke tier" in fedrepro("show", small, "--results", tmp_path / "results", "--tier", "smoke").output


@pytest.mark.parametrize(
    ("cell", "tex"),
    [
        ("1.5e-16", "$1.5 \\times 10^{-16}$"),
        ("**-2e+07** (x)", "\\textbf{\\boldmath $-2 \\times 10^{7}$} (x)"),
        ("rate1e-05", "rate1e-05"),
        ("**0.5**", "\\textbf{0.5}"),
    ],
)
def test_latex_has_powers_of_ten(cell: str, tex: str) -> None:
    assert table_formats._tex_cell(cell) == tex


@pytest.mark.parametrize(
    ("number", "text"), [(144.2, "140"), (99.6, "100"), (12_345.0, "12,000"), (1.2e7, "1.2e+07"), (0.0123, "0.012")]
)
def test_a_spread_has_two_digits(number: float, text: str) -> None:
    assert end_values._two_digits(number) == text
