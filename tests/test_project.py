"""Projects: specs by name from any folder, results inside the project, the files that ``init`` writes, and the content
of a wheel."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from fedrepro.spec import find

from .conftest import ROOT

Call = Callable[..., Result]


@pytest.fixture
def study(tmp_path: Path, fedrepro: Call) -> Path:
    """A project made by ``init``."""
    said = fedrepro("init", tmp_path / "study")
    assert said.exit_code == 0, said.output
    return tmp_path / "study"


def test_a_project_has_the_papers_specs_and_an_example_that_runs(
    study: Path, fedrepro: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(find.specs(study / "experiments")) == len(find.specs(ROOT / "experiments")) + 1
    assert {path.name for path in study.iterdir()} == {"Makefile", ".gitignore", "experiments"}
    below = study / "experiments" / "mine"
    monkeypatch.chdir(below)  # from anywhere in the project
    ran = fedrepro("run", "mine/first", "-q", "-j", 1, "--results", study / "results")
    assert ran.exit_code == 0, ran.output
    assert find.project().resolve() == study
    from fedrepro.results import load

    assert set(load("mine/first")["algorithm"]) == {"fedcavg", "fedcgds"}
    assert load("mine/first").attrs["sidecar"]["spec"] == "experiments/mine/first.yaml"


def test_init_prints_a_command_that_a_shell_understands(tmp_path: Path, fedrepro: Call) -> None:
    folder = tmp_path / "my study"
    assert f"next: cd '{folder}' && fedrepro run mine/first --plot" in fedrepro("init", folder).output


def test_two_specs_of_one_figure_do_not_replace_each_others_results(
    small: Path, fedrepro: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(small.parent)
    small.write_text(small.read_text().replace("paper: beyond", "paper: mine"))
    assert fedrepro("run", "small.yaml", "-q", "-j", 1).exit_code == 0
    Path("two.yaml").write_text(small.read_text())
    table = small.with_name("results") / "mine" / "small.csv"
    refused = fedrepro("run", "two.yaml", "-q", "-j", 1)
    assert refused.exit_code == 2
    assert refused.stderr == (
        f"error: two.yaml: {table} contains the results of small.yaml, which has the same paper and figure; "
        "change `figure:` in one of them\n"
    )
    assert fedrepro("run", "small.yaml", "-q", "-j", 1).exit_code == 0
    small.rename("three.yaml")
    assert fedrepro("run", "two.yaml", "-q", "-j", 1).exit_code == 0, "a spec that has been renamed"
    Path("two.yaml").write_text(Path("two.yaml").read_text().replace("figure: small", "figure: two"))
    assert fedrepro("run", "three.yaml", "-q", "-j", 1).exit_code == 0


def test_init_changes_nothing_that_is_there(study: Path, tmp_path: Path, fedrepro: Call) -> None:
    again = fedrepro("init", study)
    assert again.exit_code == 2
    assert "is already a project (" in again.output
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "Makefile").write_text("mine")
    said = fedrepro("init", tmp_path / "other")
    assert said.exit_code == 2
    assert "already contains Makefile; nothing was changed. Name an empty or new folder" in said.output
    assert (tmp_path / "other" / "Makefile").read_text() == "mine"
    assert not (tmp_path / "other" / "experiments").exists()


def test_without_a_project_the_package_s_specs_are_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert find.project() == Path()
    assert find.find_spec("fedc/fig5").resolve() == (ROOT / "experiments" / "fedc" / "fig5.yaml").resolve()
    assert find.within(find.find_spec("fedc/fig5")) == "experiments/fedc/fig5.yaml"


def test_tests_see_no_specs_that_somebody_keeps_in_the_checkout() -> None:
    assert find.own_specs() == []


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("hatchling") is None, reason="hatchling is not installed")
def test_the_wheel_works_outside_the_checkout(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path], cwd=ROOT, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    installed = {path.relative_to(tmp_path / "site").as_posix() for path in (tmp_path / "site").rglob("*")}
    assert {"fedrepro/py.typed", "fedrepro/experiments/fedc/fig5.yaml"} <= installed
    assert any(name.endswith("licenses/LICENSE") for name in installed)
    (tmp_path / "away").mkdir()
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    words = [sys.executable, "-m", "fedrepro", "run", "fedc/fig2", "--tier", "smoke", "-q"]
    subprocess.run(words, cwd=tmp_path / "away", env=environment, check=True)
    assert (tmp_path / "away" / "results" / "smoke" / "fedc" / "fig2.csv").exists()
