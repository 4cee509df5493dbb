"""Figures for a paper or another program: what ``fedrepro export`` writes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
from click.testing import Result

from fedrepro.results import load

Call = Callable[..., Result]


def test_a_figure_is_written_as_picture_numbers_tables_and_caption(small: Path, fedrepro: Call, tmp_path: Path) -> None:
    fedrepro("run", small, "-j", 1, "-q")
    out, results = tmp_path / "out", tmp_path / "results"
    done = fedrepro("export", out, small, "--data", "--bold", "--results", results, "-j", 1)
    assert done.output == f"{out}: 1 figure in 7 files\n", done.output
    ends = pd.read_csv(out / "beyond" / "small.csv")
    assert set(ends["panel"]) == {"a", "b"}
    assert (out / "beyond" / "small.tex").read_text().count("\\textbf") == 1
    assert "\\label{tab:beyond-small-a}" in (out / "beyond" / "small.tex").read_text()
    assert (out / "beyond" / "small.pdf").stat().st_size > 5_000
    caption = (out / "beyond" / "small.caption.txt").read_text()
    assert "(a) left; (b) " in caption
    assert "QUICK TIER" in caption
    assert (out / "references.bib").read_text().count("@") == 1
    table, loaded = pd.read_csv(out / "beyond" / "small.data.csv"), load(small, results=results)
    assert list(table.columns) == list(loaded.columns)
    assert len(table) == len(loaded)
    meanings = pd.read_csv(out / "beyond" / "small.columns.csv", index_col="column")["meaning"]
    assert list(meanings.index) == list(table.columns)
    assert meanings.notna().all()
    assert meanings["Q1"] == "H steps per client and round"


def test_a_caption_names_panels_only_if_one_has_a_title(small: Path, fedrepro: Call, tmp_path: Path) -> None:
    small.write_text(small.read_text().replace('    title: "left"\n', ""))
    fedrepro("run", small, "-j", 1, "-q")
    fedrepro("export", tmp_path / "out", small, "--results", tmp_path / "results", "-j", 1)
    caption = (tmp_path / "out" / "beyond" / "small.caption.txt").read_text()
    assert caption.startswith("a small figure. QUICK TIER. ")


def test_figures_without_results_are_left_out_or_named(small: Path, fedrepro: Call, tmp_path: Path) -> None:
    nothing = fedrepro("export", tmp_path / "out", "fedc", "--results", tmp_path / "none")
    assert f"none of the figures has results in {tmp_path / 'none'}" in nothing.stderr
    assert not (tmp_path / "out").exists()


def test_the_folder_comes_first(fedrepro: Call, tmp_path: Path) -> None:
    for words in (("gcca/fig4", tmp_path), ("gcca/fig4",), ("fedc",)):
        refused = fedrepro("export", *words)
        assert refused.exit_code == 2
        assert f"name a folder before the figures: fedrepro export DIR {words[0]}" in refused.stderr
