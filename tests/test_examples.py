"""Every example runs as described: its data made, its spec computed, and the same arrays from memory."""

from __future__ import annotations

import importlib.util
import re
import runpy
from pathlib import Path

import pandas as pd
import pytest

from . import own_examples

SPECS = sorted(own_examples.FOLDER.glob("*/*.yaml"))
DEEP = {"images.yaml", "deep.yaml"}
LABELS = {
    "samples": "samples.csv (own file)",
    "ratings": "ratings.csv (own file)",
    "views": "views.mat (own file)",
    "deep": "views.mat (own file)",
    "entries": "entries.npz (own file)",
    "regression": "regression.csv (own file)",
    "images": "images.npz (own file)",
    "digits": "small digits (real)",
}
ENDS = {
    "samples": ("accuracy", 0.95, 1.0),
    "ratings": ("rmse", 0.3, 1.2),
    "views": ("ratio", 1.0, 1.6),
    "deep": ("accuracy", 0.6, 1.0),
    "entries": ("rmse", 0.005, 0.02),
    "regression": ("mse", 0.07, 0.12),
    "images": ("accuracy", 0.5, 1.0),
    "digits": ("accuracy", 0.4, 0.9),
}
"""By spec: a metric, and what its best curve ends between. Ratings: one star apart at random is an RMSE of 1.5."""


def needs(path: Path) -> None:
    if path.name in DEEP and importlib.util.find_spec("jax") is None:
        pytest.skip("jax is not installed")


def test_every_example_is_here() -> None:
    assert {path.stem for path in SPECS} == set(LABELS) == set(ENDS)


@pytest.mark.parametrize(
    "path",
    [pytest.param(p, marks=pytest.mark.slow if p.name in DEEP else ()) for p in SPECS],
    ids=lambda p: p.stem,
)
def test_an_example_runs_and_says_what_it_ran_on(path, tmp_path, fedrepro) -> None:
    needs(path)
    folder = own_examples.copied(path.parent.name, tmp_path)
    assert fedrepro("run", folder / path.name, "-q", "-j", 1).exit_code == 0
    (table,) = (tmp_path / "results").rglob("mine/*.csv")
    frame = pd.read_csv(table)
    assert set(frame["status"]) == {"ok"}
    metric, low, high = ENDS[path.stem]
    ends = frame[frame["metric"] == metric].groupby(["series", "trial"])["value"].last().groupby("series").mean()
    best = ends.max() if metric == "accuracy" else ends.min()
    assert low <= best <= high
    shown = fedrepro("show", folder / path.name, "--results", table.parents[1]).output
    assert LABELS[path.stem] in shown
    assert "generated" not in shown
    assert re.search(r"data [\w-]+: \w+ = \d", shown)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow if n == "images" else ()) for n in own_examples.NAMES]
)
def test_an_example_runs_from_memory(name, tmp_path, capsys) -> None:
    needs(own_examples.FOLDER / name / f"{name}.yaml")
    folder = own_examples.copied(name, tmp_path)
    before = {file.name: file.read_bytes() for file in folder.iterdir() if file.suffix in (".csv", ".npz")}
    runpy.run_path(str(folder / "example.py"), run_name="__main__")
    assert re.search(r"\d\.\d", capsys.readouterr().out)
    for file, content in before.items():
        assert (folder / file).read_bytes() == content
