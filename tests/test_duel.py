"""The command ``duel``: a method of one's own against a registered one, on a dataset, in one command."""

from __future__ import annotations

import importlib.util
import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from click.testing import CliRunner, Result

from fedrepro import own_modules, registry
from fedrepro.claims.intervals import Interval
from fedrepro.cli import duel as dueling
from fedrepro.plotting import batch
from fedrepro.report import gather_contents
from fedrepro.results import read
from fedrepro.runs.identity import code

from .test_own_modules import METHOD

Duel = Callable[..., Result]
SYNTHETIC = ("--data", "synthetic", "--clients", "4", "--rounds", "8", "--trials", "6")
SMALL = tuple(word for size in ("M=12", "N=60", "K=3") for word in ("--set", f"dataset.{size}"))
BRIEF = ("--clients", "4", "--rounds", "3", "--trials", "2")


@pytest.fixture
def drawn_duel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Duel]:
    """Call the command in an empty folder; methods that it registers are removed."""
    from fedrepro.cli.main import main

    monkeypatch.chdir(tmp_path)
    yield lambda *words: CliRunner().invoke(main, ["duel", *map(str, words), "-j", "1"])
    for name in [name for name in registry.methods() if own_modules.of(name) is not None]:
        del registry.methods()[name]


@pytest.fixture
def duel(drawn_duel: Duel, monkeypatch: pytest.MonkeyPatch) -> Duel:
    """The same without a picture, which takes most of its time."""
    monkeypatch.setattr(batch, "draw", lambda *given: [])
    return drawn_duel


def test_a_method_of_ones_own_is_compared_with_a_registered_one(drawn_duel: Duel, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(METHOD)
    done = drawn_duel("mine.py:TwiceAsMany", "fedcavg", *SYNTHETIC, *SMALL)
    assert done.exit_code == 0, done.output
    assert "plots/mine/twiceasmany-fedcavg-synthetic.png" in done.output
    assert "TwiceAsMany  0." in done.output, "the table"
    last = done.output.splitlines()[-1]
    assert last.startswith("TwiceAsMany ends lower than FedCAvg: by 0.")
    assert last.endswith("in objective (95 %, 6 paired trials)")
    again = drawn_duel("mine.py:TwiceAsMany", "fedcavg", *SYNTHETIC, *SMALL)
    assert "nothing to do" in again.output
    assert again.output.splitlines()[-1] == last


def test_two_methods_of_ones_own_are_compared(duel: Duel, tmp_path: Path) -> None:
    other = METHOD[METHOD.index("@dataclass") :].replace("TwiceAsMany", "Fewer").replace("self.Q2 * self.extra", "1")
    (tmp_path / "mine.py").write_text(METHOD + other)
    done = duel("mine.py:Fewer", "mine.py:TwiceAsMany", *SYNTHETIC, *SMALL)
    assert done.exit_code == 0, done.output
    assert done.output.splitlines()[-1].startswith("TwiceAsMany ends lower than Fewer: by 0.")
    refused = duel("mine.py:Fewer", "mine.py:TwiceAsMany", "--data", "omniglot")
    assert "mine.py:Fewer and mine.py:TwiceAsMany: neither is a registered method; name the problem" in refused.stderr
    named = duel("mine.py:Fewer", "mine.py:TwiceAsMany", *SYNTHETIC, *SMALL, "--set", "problem.name=clustering")
    assert named.exit_code == 0, named.output


def test_the_other_way_round_it_is_the_other_method_that_ends_lower(duel: Duel, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(METHOD)
    done = duel("fedcavg", "mine.py", *SYNTHETIC, *SMALL)
    assert done.output.splitlines()[-1].startswith("TwiceAsMany ends lower than FedCAvg: by 0.")


def test_methods_with_the_same_label_are_told_apart(drawn_duel: Duel, tmp_path: Path) -> None:
    done = drawn_duel("fedcavg", "fedcavg-sncp", *SYNTHETIC, *SMALL)
    assert done.exit_code == 0, done.output
    assert re.search(r"FedCAvg \(fedcavg(-sncp)?\) .* FedCAvg \(fedcavg(-sncp)?\)", done.output.splitlines()[-1])
    spec = yaml.safe_load((tmp_path / "fedcavg-fedcavg-sncp-synthetic.yaml").read_text())
    assert spec["claims"][0]["says"] == "FedCAvg (fedcavg) ends lower than FedCAvg (fedcavg-sncp)"


def test_names_with_other_characters_give_a_figure_and_a_claim_that_can_be_named(
    drawn_duel: Duel, tmp_path: Path
) -> None:
    rows = np.random.default_rng(0).random((40, 3)).tolist()
    (tmp_path / "gr\u00f6\u00dfe 1%.csv").write_text("\n".join(["a,b,c", *(",".join(map(str, row)) for row in rows)]))
    sizes = ("--set", "problem.K=3", "--clients", "4", "--trials", "1", "--rounds", "2")
    done = drawn_duel("fedcavg", "kmeans++", "--data", "gr\u00f6\u00dfe 1%.csv", *sizes, "--results", "R 2")
    assert done.exit_code == 0, done.output
    spec = yaml.safe_load((tmp_path / "fedcavg-kmeansplusplus-groe-1.yaml").read_text())
    assert spec["claims"][0]["id"] == "fedcavg-kmeansplusplus-groe-1.duel"
    done = drawn_duel("fedcavg", "kmeans++", *SYNTHETIC, *SMALL, "--set", "figure=mine")
    assert yaml.safe_load((tmp_path / "mine.yaml").read_text())["claims"][0]["id"] == "mine.duel"


@pytest.mark.parametrize(("value", "ahead", "behind"), [(0.25, "FedMGS", "FedMAvg"), (-0.25, "FedMAvg", "FedMGS")])
def test_within_noise_the_method_with_the_better_mean_is_ahead(
    monkeypatch: pytest.MonkeyPatch, value: float, ahead: str, behind: str
) -> None:
    sides = dueling._sides("fedmgs", "fedmavg", "digits", {})
    claim = SimpleNamespace(says="FedMGS ends lower than FedMAvg")
    margin = Interval(value, value - 1.0, value + 1.0)
    row = SimpleNamespace(margins=(margin,), claim=claim, verdict="within noise", trials=3, why="")
    monkeypatch.setattr(gather_contents, "verdicts", lambda *given: SimpleNamespace(rows=(row,)))
    monkeypatch.setattr(dueling, "_results", lambda *given: None)
    said = dueling._outcome(Path("x.yaml"), Path("results"), sides, "objective")
    expected = f"within noise: {ahead} is ahead of {behind}: by 0.25 [-0.75, 1.25] in objective (95 %, 3 paired trials)"
    assert said == expected


def test_a_method_that_diverges_is_named(drawn_duel: Duel, tmp_path: Path) -> None:
    lines = [
        "from fedrepro import FedMGS\n\nclass Lost(FedMGS):\n    def rounds(self, problem, rng, **given):",
        "        for state in FedMGS(m=self.m).rounds(problem, rng, **given):",
        "            state.W[:] = float('nan')\n            yield state\n",
    ]
    (tmp_path / "lost.py").write_text("\n".join(lines))
    done = drawn_duel("lost.py:Lost", "fedcavg", *SYNTHETIC, *SMALL)
    assert done.output.splitlines()[-1] == (
        "FedCAvg ends lower than Lost, which diverges; `fedrepro failures lost-fedcavg-synthetic.yaml` prints why"
    )


def test_a_method_that_yields_no_state_is_named(duel: Duel, tmp_path: Path) -> None:
    lines = ["from fedrepro import FedMGS\n\nclass Nothing(FedMGS):", "    def rounds(self, problem, rng, **given):"]
    (tmp_path / "nothing.py").write_text("\n".join([*lines, "        yield from ()\n"]))
    done = duel("nothing.py", "fedcavg", *SYNTHETIC, *SMALL)
    assert done.exit_code == 1, done.output
    assert "ParameterError: rounds: yields nothing; it must yield the initial point, and a state" in done.output


def test_an_error_of_every_run_is_printed_once(duel: Duel, tmp_path: Path) -> None:
    lines = [
        f"class {name}(FedMGS):\n    def rounds(self, problem, rng, **given):\n        yield from fail({number})\n\n"
        for number, name in enumerate(("One", "Other"))
    ]
    start, end = "from fedrepro import FedMGS\n\n", "def fail(number):\n    raise ValueError('no such thing')\n"
    (tmp_path / "two.py").write_text("".join([start, *lines, end]))
    words = ("--data", "synthetic", *SMALL, *BRIEF)
    failed = duel("two.py:One", "two.py:Other", *words)
    assert failed.exit_code == 1, failed.output
    assert failed.stderr.count("no such thing") == 1
    assert "  each of 4 runs: failed: ValueError: no such thing (" in failed.stderr
    one = duel("two.py:One", "fedcavg", *words)
    assert one.stderr.count("no such thing") == 2, "half of the runs"


def test_two_methods_that_diverge_are_not_compared(duel: Duel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    margin = Interval(float("nan"), float("nan"), float("nan"))
    row = SimpleNamespace(claim=SimpleNamespace(says="A ends lower than B"), margins=(margin,), verdict="undecided")
    monkeypatch.setattr(gather_contents, "verdicts", lambda *given: SimpleNamespace(rows=(row,)))
    sides = tuple(dueling.Side(SimpleNamespace(), label=label) for label in "AB")
    assert dueling._outcome(Path("a-b.yaml"), tmp_path, sides, "objective") == (
        f"A and B both diverge; `fedrepro failures a-b.yaml --results {tmp_path}` prints why"
    )


def test_two_methods_with_the_same_values_are_not_ordered(drawn_duel: Duel, tmp_path: Path) -> None:
    lines = ["from fedrepro import FedMGS\n\nclass Same(FedMGS):", "    def rounds(self, problem, rng, **given):"]
    lines += ["        yield from FedMGS(m=self.m).rounds(problem, rng, **given)\n"]
    (tmp_path / "same.py").write_text("\n".join(lines))
    for trials in (1, 3):
        done = drawn_duel("same.py", "fedmgs", *SYNTHETIC, *SMALL, "--trials", trials)
        assert done.output.splitlines()[-1] == "Same and FedMGS end with the same objective in every trial"


@pytest.mark.parametrize("rounding", [0.0, 1e-14])
def test_trials_that_are_the_same_run_have_no_interval(
    duel: Duel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rounding: float
) -> None:
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "my.npz", a=rng.random((40, 9)), b=rng.random((40, 10)))
    if rounding:  # as of a library that adds in another order
        whole = read.frame
        monkeypatch.setattr(read, "frame", lambda *given: _rounded(whole(*given), rounding))
    last = duel("optimal", "altmaxvar", "--data", "my.npz", "--rounds", 3).output.splitlines()[-1]
    assert re.fullmatch(
        r"Optimal ends lower than AltMaxVar: by \S+ in cost \(all 5 trials are the same run, so without an interval\)",
        last,
    )


def _rounded(rows: Any, share: float) -> Any:
    """Return a frame whose values differ between trials by a share of them."""
    return rows.assign(value=rows["value"] * (1 + share * rows["trial"].astype(float)))


def test_a_difference_of_rounding_between_equal_trials_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    sides = dueling._sides("optimal", "altmaxvar", "gcca-toy", {})
    margin = Interval(1e-17, -1e-17, 3e-17)
    claim = SimpleNamespace(says="Optimal ends lower than AltMaxVar")
    row = SimpleNamespace(margins=(margin,), claim=claim, verdict="within noise", trials=2, why="")
    monkeypatch.setattr(gather_contents, "verdicts", lambda *given: SimpleNamespace(rows=(row,)))
    names = ["optimal", "optimal", "altmaxvar", "altmaxvar"]
    rows = pd.DataFrame({"algorithm": names, "round": 0, "trial": [1, 2, 1, 2], "metric": "cost", "value": 0.5})
    monkeypatch.setattr(dueling, "_results", lambda *given: rows)
    said = dueling._outcome(Path("x.yaml"), Path("results"), sides, "cost")
    assert said == "Optimal and AltMaxVar end with the same cost in every trial"
    rows["value"] = [0.5, 0.5, 0.5, 0.6]
    said = dueling._outcome(Path("x.yaml"), Path("results"), sides, "cost")
    assert said.startswith("within noise: Optimal is ahead of AltMaxVar: by 1e-17 [")


def test_one_trial_in_place_of_more_is_announced(duel: Duel) -> None:
    duel("fedmgs", "fedcavg", *SYNTHETIC, *SMALL, "--trials", 3)
    said = duel("fedmgs", "fedcavg", *SYNTHETIC, *SMALL, "--trials", 1).output
    assert "complete, with 1 trial instead of 3 (--trials 3 restores them)" in said


def test_one_trial_of_a_stand_in_has_no_interval(drawn_duel: Duel, tmp_path: Path) -> None:
    words = ("--data", "mnist", "--set", "dataset.n=200", "--clients", 4, "--rounds", 1, "--trials", 1)
    assert drawn_duel("fedmgs", "fedcavg", *words).exit_code == 2
    done = drawn_duel("fedmgs", "fedcavg", *words, "--stand-in")
    assert done.exit_code == 0, done.output
    assert done.output.splitlines()[-1].endswith("in objective (one trial, so without an interval)")


def test_columns_that_are_all_read_as_features_are_named(duel: Duel, tmp_path: Path) -> None:
    rows = [f"{k / 7},{k % 5},{k % 2},{k % 3}" for k in range(30)]
    (tmp_path / "my.csv").write_text("\n".join(["length,width,kind,client", *rows]))
    words = ("fedcgds", "fedcavg", "--data", "my.csv", "--set", "problem.K=2")
    few = ("--clients", 3, "--rounds", 1, "--trials", 1)
    assert (
        "features: 4 columns of my.csv (length, width, kind, client)\nIf a column contains labels or clients, say so "
        "with --set dataset.labels=COLUMN or --set dataset.client=COLUMN\n"
    ) in duel(*words, *few).output
    spec = tmp_path / "fedcgds-fedcavg-my.yaml"
    assert "orientation: rows" in spec.read_text()
    spec.unlink()
    turned = duel(*words, *few, "--set", "dataset.orientation=columns")
    assert "data file: M = 30, N = 4" in turned.output
    spec.unlink()
    named = duel(*words, *few, "--set", "dataset.labels=kind").output
    assert "features: 3 columns of my.csv (length, width, client); labels: kind\n" in named
    assert "If a column" not in named


def test_doubtful_columns_and_a_metric_without_labels_are_reported(duel: Duel, tmp_path: Path) -> None:
    rows = [f"{k},{k % 5},{'Red ' if k == 7 else 'red' if k % 2 else 'blue'}" for k in range(30)]
    (tmp_path / "my.csv").write_text("\n".join(["id,width,kind", *rows]))
    words = ("fedcgds", "fedcavg", "--data", "my.csv", "--set", "dataset.orientation=rows", "--metric", "accuracy")
    none = duel(*words)
    assert none.stderr == (
        "error: --metric accuracy: name the column with the labels, with --set dataset.labels=COLUMN\n"
    )
    few = ("--clients", 3, "--rounds", 1, "--trials", 1)
    said = duel(*words, *few, "--set", "dataset.labels=kind").output
    assert "note: the column 'id' only counts the rows; if it is no feature, remove it from the file\n" in said
    assert "note: the labels 'red' and 'Red ' differ only in capitals or blanks, and count as different classes" in said


def test_a_method_that_counts_no_message_has_no_known_cost(duel: Duel, tmp_path: Path) -> None:
    (tmp_path / "cheat.py").write_text(
        "from fedrepro import FedMGS\n\nclass Cheat(FedMGS):\n"
        "    def rounds(self, problem, rng, *, ledger=None, **others):\n"
        "        yield from super().rounds(problem, rng, **others)\n"
    )
    done = duel("cheat.py", "fedmgs", *SYNTHETIC, *SMALL, "--trials", 1)
    assert "note: Cheat counted no message in its ledger, so its cost is unknown (docs/own-method.md)\n" in done.output


def test_parameters_metrics_and_files_of_ones_own(duel: Duel, tmp_path: Path) -> None:
    np.savez(tmp_path / "my.npz", X=np.random.default_rng(0).random((6, 40)), y=np.arange(40) % 2)
    words = ("--data", "my.npz", "--set", "dataset.labels=y", "--clients", 4, "--rounds", 2, "--trials", 2)
    done = duel("fedcgds", "fedcavg", *words, "--metric", "accuracy", "--set", "Q1=2")
    assert done.exit_code == 0, done.output
    spec = yaml.safe_load((tmp_path / "fedcgds-fedcavg-my.yaml").read_text())
    assert spec["dataset"] == {"name": "file", "path": "my.npz", "labels": "y"}
    assert [curve["Q1"] for curve in spec["panels"]["a"]["curves"]] == [2, 2]
    assert " > " in spec["claims"][0]["check"], "more accuracy is better"


def test_a_file_decides_between_the_problems_that_the_methods_solve(duel: Duel, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    client = np.arange(40) % 4
    np.savez(tmp_path / "my.npz", x=rng.random((40, 3)), y=rng.random(40), client=client, z=rng.random((4, 2)))
    few = ("shift-fedavg", "shift-perfedsi", "--data", "my.npz", "--rounds", 2, "--trials", 1)
    done = duel(*few, "--metric", "mse", "--set", "test=0.5", "--set", "rescale=standard")
    assert done.exit_code == 0, done.output
    spec = yaml.safe_load((tmp_path / "shift-fedavg-shift-perfedsi-my.yaml").read_text())
    assert spec["problem"] == {"name": "regression", "test": 0.5}
    assert spec["dataset"] == {"name": "regression-file", "path": "my.npz", "rescale": "standard"}
    assert "--metric mse: not a metric of shift" in duel(*few, "--metric", "mse", "--set", "problem=shift").stderr
    refused = duel(*few, "--set", "problem=shift")
    assert refused.stderr == "error: --data my.npz: the problem shift reads no files of your own\n"
    refused = duel(*few, "--set", "tset=0.5")
    assert "--set tset: neither a key of the spec nor a parameter of the methods, the problem or" in refused.stderr


def test_a_problem_that_is_named_decides_the_metric(duel: Duel, tmp_path: Path) -> None:
    rows = [f"u{k % 6},i{k // 6},{k % 5 + 1},{k % 2}" for k in range(30)]
    (tmp_path / "my.csv").write_text("\n".join(["user,item,rating,part", *rows]))
    words = ("als", "fedmc-admm", "--data", "my.csv", "--clients", 3, "--rounds", 1, "--trials", 1, "--set", "r=2")
    done = duel(*words, "--set", "problem=completion-split", "--set", "split=part", "--metric", "rmse")
    assert done.exit_code == 0, done.output
    spec = yaml.safe_load((tmp_path / "als-fedmc-admm-my.yaml").read_text())
    assert spec["problem"] == {"name": "completion-split", "r": 2}
    assert spec["dataset"]["split"] == "part"


def test_a_library_that_is_missing_is_said_before_wrong_values(
    duel: Duel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(code.importlib.util, "find_spec", lambda name: None if name == "jax" else found(name))
    refused = duel("altmaxvar-deep", "cutemaxvar-deep", "--data", "gcca-toy", "--set", "b=0")
    assert refused.stderr == (
        'error: altmaxvar-deep: needs a library that is not installed, jax: pip install "fedrepro[deep]"\n'
    )
    assert list(tmp_path.iterdir()) == []


def test_defaults_that_are_too_large_for_the_views_are_reduced(duel: Duel, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "my.npz", a=rng.random((60, 3)), b=rng.random((60, 4)), kind=np.arange(60) % 2)
    unnamed = duel("altmaxvar-deep", "cutemaxvar-deep", "--data", "my.npz", "--metric", "cost")
    assert unnamed.stderr == (
        "error: gcca-deep: its accuracy compares with labels; name the array or the file that contains them, with "
        "--set dataset.labels=NAME\n"
    )
    few = ("--data", "my.npz", "--set", "dataset.labels=kind", "--rounds", 1, "--trials", 1)
    done = duel("optimal", "altmaxvar", *few)
    assert done.exit_code == 0, done.output
    assert "note: K = 3 instead of 5: a view has only 3 rows or columns\n" in done.stdout
    done = duel("altmaxvar-deep", "cutemaxvar-deep", *few, "--set", "test=10")
    assert done.exit_code == 0, done.output
    assert done.stdout.count("note: b = 50 instead of 1000: the views have only 50 rows\n") == 1
    spec = yaml.safe_load((tmp_path / "altmaxvar-deep-cutemaxvar-deep-my.yaml").read_text())
    assert [curve["b"] for curve in spec["panels"]["a"]["curves"]] == [50, 50]
    assert (
        "m must be at least K = 4 for a warm start, not 3" in duel("optimal", "altmaxvar", *few, "--set", "K=4").stderr
    )
    assert "b must be at most" in duel("altmaxvar-deep", "cutemaxvar-deep", *few, "--set", "b=61").stderr


def test_views_can_be_in_several_files(duel: Duel, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for folder in (".", "other"):
        (tmp_path / folder).mkdir(exist_ok=True)
        for name in "uv":
            np.save(tmp_path / folder / f"{name}.npy", rng.random((40, 9)))
    few = ("optimal", "altmaxvar", "--rounds", 1, "--trials", 1)
    for _ in range(2):
        done = duel(*few, "--data", "u.npy", "--data", "v.npy")
        assert done.exit_code == 0, done.output
    spec = yaml.safe_load((tmp_path / "optimal-altmaxvar-u-v.yaml").read_text())
    assert spec["dataset"] == {"name": "views-file", "path": ["u.npy", "v.npy"]}
    assert spec["title"] == "Optimal and AltMaxVar on u.npy, v.npy"
    refused = duel(*few, "--data", "other/u.npy", "--data", "v.npy")
    assert "optimal-altmaxvar-u-v.yaml: is about u.npy, v.npy, and so are its results" in refused.stderr


def test_clients_that_a_file_names_are_used_unless_a_number_is_given(duel: Duel, tmp_path: Path) -> None:
    rows = [f"u{k % 6},i{k // 6},{k % 5 + 1},{'ab'[k % 2]}" for k in range(30)]
    (tmp_path / "my.csv").write_text("\n".join(["user,item,rating,region", *rows]))
    words = ("als", "fedmc-admm", "--data", "my.csv", "--rounds", 1, "--trials", 1, "--set", "r=2")
    named, drawn = ("--set", "client=region"), {"name": "users", "P": 3}
    for more, partition in (
        (named, {"name": "given"}),
        (("--set", "dataset.client=region"), {"name": "given"}),
        ((*named, "--clients", 3), drawn),
        ((*named, "--partition", "users", "--set", "P=3"), drawn),
        (("--set", "P=3"), drawn),
    ):
        done = duel(*words, *more)
        assert done.exit_code == 0, done.output
        assert yaml.safe_load((tmp_path / "als-fedmc-admm-my.yaml").read_text())["partition"] == partition
        assert " and " not in done.output.splitlines()[-1], "the methods are compared"


@pytest.mark.parametrize("split", [True, False])
def test_clients_of_images_are_used(duel: Duel, tmp_path: Path, split: bool) -> None:
    count = np.arange(24)
    parts = {"split": count % 2} if split else {}
    pixels = np.zeros((24, 16, 16), dtype=np.uint8)
    np.savez(tmp_path / "my.npz", pixels=pixels, labels=count % 3, client=count // 12, **parts)
    spec = {"dataset": {"name": "images-file", "path": "my.npz"}, "partition": {"name": "iid_images"}}
    spec |= {"problem": {"name": "personal"}, "panels": {"a": {"curves": []}}}
    assert dueling._names_clients(spec, [])
    assert not dueling._names_clients(spec, [(["size"], 2)]), "not readable: reported when the spec is run"
    assert not dueling._names_clients(spec, [(["dataset", "sise"], 20)])


def test_the_error_on_held_back_data_decides_where_the_problem_has_it(duel: Duel, tmp_path: Path) -> None:
    np.savez(tmp_path / "my.npz", x=np.eye(40, 3), y=np.arange(40) % 7, client=np.arange(40) % 4, z=np.eye(4, 2))
    words = ("shift-fedavg", "shift-perfedsi", "--data", "my.npz", "--rounds", 1, "--trials", 1)
    assert " in mse (one trial" in duel(*words).output.splitlines()[-1]
    (tmp_path / "shift-fedavg-shift-perfedsi-my.yaml").unlink()
    assert " in mse_train (one trial" in duel(*words, "--set", "test=0").output.splitlines()[-1]
    problems = registry.problems()
    metrics = {name: dueling._metric(problem, None, {}) for name, problem in problems.items()}
    by_error = ("completion", "completion-split", "completion-steps", "imc-observed")
    decide = {**dict.fromkeys(by_error, "rmse"), "regression": "mse"}
    assert metrics == {name: decide.get(name, problem.default_metrics[0]) for name, problem in problems.items()}
    assert {metrics["personal"], metrics["personal-side"], metrics["gcca-deep"]} == {"accuracy"}, "test accuracy"


def test_a_spec_that_was_edited_is_not_replaced(duel: Duel, tmp_path: Path) -> None:
    words = ("fedcgds", "fedcavg", *SYNTHETIC, *SMALL)
    assert duel(*words).exit_code == 0
    file = tmp_path / "fedcgds-fedcavg-synthetic.yaml"
    file.write_text(file.read_text().replace("rounds: 8", "rounds: 9"))
    refused = duel(*words)
    assert refused.exit_code == 2
    assert f"{file.name}: was written or edited by hand, so it is not replaced" in refused.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("fedmg", "fedmgs"), "fedmg: not a registered method, did you mean 'fedmgs'? (your own: FILE.py:CLASS)"),
        (("FedMGS", "FedMAvg"), "FedMGS: not a registered method, did you mean 'fedmgs'? (your own: FILE.py:CLASS)"),
        (("fedmcadmm", "fedmavgmc"), "fedmcadmm: not a registered method, did you mean 'fedmc-admm'?"),
        (("FedMGS", "y", "--data", "omniglot"), "FedMGS: not a registered method, did you mean 'fedmgs'?"),
        (("x", "y"), "x: not a registered method (your own: FILE.py:CLASS)"),
        (
            ("x", "y", "--data", "omniglot"),
            "x and y: neither is a registered method; name the problem that they solve with --set problem.name=PROBLEM "
            "(problems: personal, personal-side)",
        ),
        (("fedmgs", "fedmgs"), "fedmgs and fedmgs are the same method"),
        (("fedmgs", "fedmc-admm"), "fedmgs solves clustering and fedmc-admm solves completion; name two methods"),
        (("fedmgs", "fedpalm", "--metric", "accurcy"), "--metric accurcy: not a metric of clustering, did you mean"),
        (
            ("fedmgs", "fedpalm", "--data", "digit"),
            "--data digit: neither a dataset nor a file, did you mean 'digits'?",
        ),
        (
            ("fedmgs", "fedpalm", "--data", "mine.py", "--data", "mine.py"),
            "--data mine.py --data mine.py: name one; only views can be in several files",
        ),
        (
            ("altmaxvar", "optimal", "--data", "mine.py", "--data", "gcca-toy"),
            "--data gcca-toy: is a dataset; name it alone, or only files with one view each",
        ),
        (("fedmgs", "fedpalm", "--data", "wine"), "--data wine: neither a dataset nor a file\n"),
        (
            ("cutemaxvar", "altmaxvar", "--data", "gcca-toy", "--clients", "5"),
            "--clients 5: the number of clients follows from the data of gcca; leave the option out",
        ),
        (
            ("fedmgs", "fedpalm", "--partition", "given", "--clients", "5"),
            "--clients 5: the number of clients follows from the partition given; leave the option out",
        ),
        (("mine.py:Other", "fedmgs"), "mine.py: defines TwiceAsMany; name one of them as mine.py:CLASS"),
        (("mine.py:TwiceAsMeny", "fedmgs"), "mine.py: defines TwiceAsMany, did you mean 'TwiceAsMany'?"),
    ],
)
def test_what_cannot_be_compared(duel: Duel, tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    (tmp_path / "mine.py").write_text(METHOD)
    refused = duel(*words, *(() if "--data" in words else ("--data", "digits")))
    assert refused.exit_code == 2
    assert message in refused.stderr


def test_every_kind_of_data_has_a_loader_and_a_partition_that_exist() -> None:
    assert set(dueling.FILES.values()) <= set(registry.datasets())
    assert set(dueling.PARTITIONS.values()) <= set(registry.partitions())


def test_a_method_that_explodes_is_said_to_diverge(drawn_duel: Duel, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    lines = [
        f"{rng.normal():.3f},{rng.normal():.3f},{rng.normal():.3f},c{k // 20},{40 * (k // 20)}" for k in range(100)
    ]
    (tmp_path / "reg.csv").write_text("\n".join(["age,bmi,cost,clinic,beds", *lines, ""]))
    names = ("y=cost", "client=clinic", "z=[beds]")
    options = [word for name in names for word in ("--set", f"dataset.{name}")] + ["--set", "problem.name=regression"]
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        done = drawn_duel(
            "shift-perfedsi", "shift-fedavg", "--data", "reg.csv", "--trials", "3", "--rounds", "4", *options
        )
    assert done.exit_code == 0, done.output
    assert re.search(
        r"^note: PerFedSI diverges: its mse is \S+ at the start and \S+ at the end", done.output, re.MULTILINE
    )


def test_an_error_leaves_the_spec_of_an_earlier_duel(duel: Duel, tmp_path: Path) -> None:
    rows = np.random.default_rng(0).random((40, 3))
    labels = np.repeat(["a", "b"], 20)
    text = "x,y,z,kind\n" + "".join(f"{','.join(map(str, r))},{k}\n" for r, k in zip(rows, labels, strict=True))
    (tmp_path / "own.csv").write_text(text)
    data = ("--data", "own.csv", "--set", "dataset.orientation=rows")
    first = duel("fedmgs", "fedmavg", *data, *BRIEF)
    assert (first.exit_code, list(tmp_path.glob("*.yaml"))) == (2, [])
    assert "The spec fedmgs-fedmavg-own.yaml was not kept. --set KEY=VALUE changes it" in first.stderr
    good = duel("fedmgs", "fedmavg", *data, "--set", "dataset.labels=kind", *BRIEF)
    assert good.exit_code == 0, good.output
    spec = (tmp_path / "fedmgs-fedmavg-own.yaml").read_text()
    assert duel("fedmgs", "fedmavg", *data, *BRIEF).exit_code == 2
    assert (tmp_path / "fedmgs-fedmavg-own.yaml").read_text() == spec
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "own.csv").write_text(text)
    other = duel("fedmgs", "fedmavg", "--data", "other/own.csv", *data[2:], "--set", "dataset.labels=kind", *BRIEF)
    assert (other.exit_code, "fedmgs-fedmavg-own.yaml: is about own.csv" in other.output) == (2, True)


@pytest.mark.parametrize(
    ("content", "more", "ends"),
    [
        (b"x,y\n1,2\nnan,3\n4,5\n", ("K=2",), "was not kept."),
        (b"x,y\n1,2\na,3\n4,5\n", ("K=2",), "--set problem.K=3"),
        (b"x,y\n1,2\n2,3\n4,5\n", (), "--set problem.K=3"),
        (b"x,y\n1,2\nnan,3\n4,5\n", ("rounds=-1",), "--set problem.K=3"),
        (b"x,y\n1,2\n2,3\n4,5\n", ("K=2", "dataset.labels=z"), "--set problem.K=3"),
    ],
)
def test_options_are_offered_only_where_they_help(
    duel: Duel, tmp_path: Path, content: bytes, more: tuple[str, ...], ends: str
) -> None:
    (tmp_path / "own.csv").write_bytes(content)
    refused = duel("fedmgs", "fedmavg", "--data", "own.csv", *(word for one in more for word in ("--set", one)))
    assert refused.exit_code == 2
    assert refused.stderr.splitlines()[-1].startswith("The spec fedmgs-fedmavg-own.yaml was not kept.")
    assert refused.stderr.endswith(f"{ends}\n")


def test_options_are_not_offered_for_a_dataset_that_is_absent(
    duel: Duel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FEDREPRO_DATA", str(tmp_path / "none"))
    refused = duel("fedmgs", "fedmavg", "--data", "tdt2")
    assert refused.stderr.endswith("(see above)\nThe spec fedmgs-fedmavg-tdt2.yaml was not kept.\n")


def test_columns_without_a_header_are_named_by_their_numbers(duel: Duel, tmp_path: Path) -> None:
    rows = np.random.default_rng(0).random((40, 3))
    (tmp_path / "bare.csv").write_text("".join(f"{','.join(map(str, r))},{k // 20}\n" for k, r in enumerate(rows)))
    data = ("--data", "bare.csv", "--set", "dataset.orientation=rows", "--set", "K=2")
    said = duel("fedmgs", "fedmavg", *data, *BRIEF).output
    assert "bare.csv has no header, so its 4 columns are called 0 to 3, and all are features" in said
    named = duel("fedmgs", "fedmavg", *data, "--set", "dataset.labels=3", "--metric", "accuracy", *BRIEF)
    assert named.exit_code == 0, named.output
