"""Reasons of failed runs, shell completion, and lists and plans for programs."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from click.testing import Result

from fedrepro.cli.listing import TABLES
from fedrepro.cli.main import main
from fedrepro.problems.clustering.methods.fedmgs import FedMGS
from fedrepro.problems.clustering.problem import Clustering
from fedrepro.runs.storage.store import Store

Call = Callable[..., Result]


# Failed runs ----------------------------------------------------------------------------------------------------------


def test_a_failed_run_tells_its_reason_and_traceback(
    fedrepro: Call, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds = FedMGS.rounds

    def fail_with_two(self: FedMGS, *args: object, **kwargs: object) -> object:
        if self.m == 2:
            raise ArithmeticError("no luck today")
        return rounds(self, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(FedMGS, "rounds", fail_with_two)
    ran = fedrepro("run", small, "--jobs", 1)
    series = "fedcgds m=2 Q1=3 Q2=4 @ syn / unf"
    hint = f"the traceback: fedrepro failures '{series}, trial 1' --results {tmp_path / 'results'}"
    assert hint in ran.stderr
    results = ("--results", tmp_path / "results")
    output = fedrepro("failures", f"{series}, trial 2", *results).output
    assert "failed: ArithmeticError: no luck today" in output
    assert 'raise ArithmeticError("no luck today")' in output
    assert "Traceback (most recent call last)" in output
    assert "trial 1" not in output
    monkeypatch.undo()  # and with it the code that failed
    whole = fedrepro("failures", small, *results).output
    assert whole.count("Traceback") == 1, "runs that fail alike are told together"
    assert whole.index("trial 1") < whole.index("trial 2") < whole.index("Traceback")
    assert fedrepro("failures", series, *results).output == whole


def test_runs_that_are_well_and_names_of_nothing_are_told(
    fedrepro: Call, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = ("--results", tmp_path / "results")
    fedrepro("run", small, "--jobs", 1)
    assert fedrepro("failures", small, *results).output == "beyond/small (quick): no run failed or diverged\n"
    wrong = fedrepro("failures", "fedcgds, trial 9", *results)
    assert (wrong.exit_code, "is neither a figure" in wrong.output) == (2, True)


def test_a_diverged_run_and_one_whose_note_is_gone_tell_what_the_results_say(
    fedrepro: Call, small: Path, tmp_path: Path
) -> None:
    fedrepro("run", small, "--jobs", 1)
    path = tmp_path / "results" / "quick" / "beyond" / "small.json"
    sidecar = json.loads(path.read_text())
    sidecar["diverged"] = [{"series": "a @ b", "trial": 1, "why": "objective became nan in round 3"}]
    sidecar["failed"] = [{"series": "c @ d", "trial": 2, "why": "failed: ValueError: x"}]
    path.write_text(json.dumps(sidecar))
    (tmp_path / "results" / "quick" / "beyond" / "damaged.json").write_text("[")
    Store(tmp_path / "results" / ".runs").fail("ab12", {"why": "no series"})
    said = fedrepro("failures", small, "--results", tmp_path / "results").output
    assert "c @ d, trial 2\n  failed: ValueError: x\n" in said
    assert "a @ b, trial 1\n  objective became nan in round 3\n" in said
    assert "round 3" in fedrepro("failures", "a @ b, trial 1", "--results", tmp_path / "results").output


# The shell ------------------------------------------------------------------------------------------------------------


def completed(*words: str) -> list[str]:
    found = ShellComplete(main, {}, "fedrepro", "_FEDREPRO_COMPLETE").get_completions(list(words[:-1]), words[-1])
    return [item.value for item in found]


def test_the_shell_completes_figures_methods_panels_and_keys(small: Path) -> None:
    spec = str(small)
    assert "fedc/fig5" in completed("plot", "fedc/")
    assert "fedc/fig5" in completed("failures", "fedc/")
    assert completed("describe", "fedcg") == ["fedcgds", "fedcgds-sncp"]
    for words in (
        ("plot", spec, "--panel"),
        ("run", spec, "--only"),
        ("run", spec, "--panel"),
        ("show", spec, "--panel"),
    ):
        assert completed(*words, "") == ["a", "b"]
    assert completed("plot", spec, "--panel", "b") == ["b"]
    assert completed("run", spec, "--set", "ro") == ["rounds"]
    assert completed("plan", spec, "--set", "datasets.") == ["datasets.syn"]
    assert completed("run", spec, "--set", "datasets.syn.") == [
        f"datasets.syn.{key}" for key in ("name", "variant", "M", "N", "K")
    ]
    assert completed("run", spec, "--set", "rounds=") == []


def test_a_figure_that_cannot_be_read_completes_to_nothing(small: Path) -> None:
    small.write_text("panels: [")
    assert completed("run", str(small), "--set", "") == []
    assert completed("plot", "nowhere", "--panel", "") == []
    assert completed("plot", "--panel", "") == []


# For programs ---------------------------------------------------------------------------------------------------------


def test_lists_for_programs_name_every_cell(fedrepro: Call) -> None:
    tables = json.loads(fedrepro("list", "--json").output)
    assert list(tables) == list(TABLES)
    assert {"name": "fedmgs", "label": "FedMGS", "problem": "clustering"}.items() <= next(
        row for row in tables["algorithms"] if row["name"] == "fedmgs"
    ).items()
    assert json.loads(fedrepro("list", "papers", "--json").output) == tables["papers"]


def test_a_plan_for_programs_says_what_the_text_does(fedrepro: Call, small: Path) -> None:
    said = json.loads(fedrepro("plan", small, "--json", "--jobs", 1).stdout)
    (figure,) = said["figures"]
    assert 0 < figure.pop("seconds") < 60
    assert figure == {
        "figure": "beyond/small",
        "tier": "quick",
        "settings": 4,
        "trials": 2,
        "most_trials": 2,
        "reused": 0,
        "todo": 8,
    } | {"missing": {}}
    assert (said["in_all"]["runs"], said["in_all"]["todo"], said["in_all"]["workers"]) == (8, 8, 1)
    assert said["in_all"]["seconds"] > 0
    fedrepro("run", small, "--jobs", 1)
    assert json.loads(fedrepro("plan", small, "--json").stdout)["figures"][0]["reused"] == 8


def test_without_results_nothing_is_said_to_be_well(fedrepro: Call, small: Path, tmp_path: Path) -> None:
    results = ("--results", tmp_path / "results")
    said = fedrepro("failures", small, *results)
    assert (said.exit_code, "no results" in said.output) == (2, True)
    fedrepro("run", small, "--jobs", 1, "--tier", "smoke")
    assert fedrepro("failures", small, *results).output == "beyond/small (smoke): no run failed or diverged\n"


def test_the_command_printed_after_a_run_that_diverges_finds_it(
    fedrepro: Call, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Clustering, "diverged", staticmethod(lambda values: "it left"))
    ran = fedrepro("run", small, "--jobs", 1, "--set", "rounds=3")
    (line,) = [line for line in ran.stderr.splitlines() if line.startswith("which runs diverged: fedrepro ")]
    words = shlex.split(line.partition(": fedrepro ")[2])
    assert "it left" in fedrepro(*words).output
