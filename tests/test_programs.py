"""Compiled programs that processes share: made once, the same bits, and no harm where a file of them is damaged."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from fedrepro import cpu
from fedrepro.runs.workers import programs

pytest.importorskip("jax")

SPEC = """\
paper: beyond
figure: nets
title: "two small networks"
problem: {name: gcca-deep, K: 2}
metrics: [cost]
trials: 1
rounds: 2
datasets:
  toy: {name: gcca-toy, J: 40}
dataset: toy
panels:
  a:
    y: cost
    curves: [{algorithm: altmaxvar-deep, hidden: [[4]], T: 2, b: 10}]
claims: []
tiers: {smoke: {}, quick: {}, paper: {}}
"""


def made(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("results/.scratch/programs-*/*-cache")}


def test_programs_are_compiled_once_and_give_the_same_bits(
    tmp_path: Path, fedrepro: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(programs.FOLDER)
    spec = tmp_path / "nets.yaml"
    spec.write_text(SPEC, encoding="utf-8")
    results = tmp_path / "results"

    def again() -> bytes:
        for path in (results / ".runs", results / "quick"):
            shutil.rmtree(path, ignore_errors=True)
        answer = fedrepro("run", spec, "--tier", "quick", "--jobs", 2, "--quiet")
        assert answer.exit_code == 0, answer.output
        return (results / "quick/beyond/nets.csv").read_bytes()

    first, kept = again(), made(tmp_path)
    assert kept
    assert again() == first
    assert made(tmp_path) == kept  # nothing was compiled again

    for path in results.glob(".scratch/programs-*/*-cache"):
        path.write_bytes(path.read_bytes()[:100])
    assert again() == first


def test_a_folder_of_the_users_own_is_left_to_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(programs.FOLDER, raising=False)
    assert Path(programs.shared(tmp_path)[programs.FOLDER]).parent == tmp_path
    monkeypatch.setenv(programs.FOLDER, "elsewhere")
    assert programs.shared(tmp_path) == {}


def test_another_cpu_has_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(programs.FOLDER, raising=False)
    here = programs.shared(tmp_path)
    monkeypatch.setattr(cpu, "features", lambda: {"sse2"})
    there = programs.shared(tmp_path)
    assert here[programs.FOLDER] != there[programs.FOLDER]
