"""Specs of one's own: small by themselves at the tier smoke, without the stamp of a tier that reduces nothing."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from click.testing import Result

from fedrepro.datasets.matrix_file import MatrixFile
from fedrepro.errors import ParameterError
from fedrepro.results import everything
from fedrepro.results import load as load_results
from fedrepro.results.read import with_results
from fedrepro.runs.storage.validity import Validity, validity
from fedrepro.spec import axes, panels
from fedrepro.spec.nodes import SpecErrors
from fedrepro.spec.read import load

from .conftest import ROOT

Call = Callable[..., Result]

COMPLETION = """\
paper: mine
figure: few
problem: {name: completion}
trials: 1
rounds: 2
dataset: {name: movielens-1m}
partition: {name: users, P: 4}
panels:
  a: {curves: [{algorithm: fedmc-admm}]}
"""

GCCA = """\
paper: mine
figure: views
problem: {name: gcca, K: 2}
trials: 1
rounds: 2
dataset: {name: gcca-synthetic, J: 50, N: 10}
panels:
  a: {curves: [{algorithm: altmaxvar}]}
"""


@pytest.fixture
def large(small: Path) -> Path:
    """A spec without tiers that would take long."""
    text = small.read_text()
    text = text[: text.index("tiers:")].replace("trials: 2\nrounds: 5", "trials: 20\nrounds: 100000")
    text = text.replace("at='end', algorithm='fedcavg', Q2=5", "at=50000, algorithm='fedcavg', Q2=5")
    text = text.replace("at='end', algorithm='fedcavg', Q2=1", "at=50000, algorithm='fedcavg', Q2=1")
    small.write_text(text.replace("b: {like: a,", "b: {like: a, rounds: 400,"))
    return small


def test_smoke_takes_seconds_without_a_tier_smoke(large: Path, fedrepro: Call) -> None:
    figure = load(large, "smoke")
    assert (figure.trials, {setting.rounds for setting in figure.settings()}) == (1, {3})
    assert "4 runs computed" in fedrepro("run", large, "--tier", "smoke", "-j", 1).output
    assert "not tested" in fedrepro("verdict", large, "--tier", "smoke").output
    assert load(large, "quick").trials == 20


def test_a_tier_smoke_of_the_spec_counts_as_it_is(small: Path) -> None:
    small.write_text(small.read_text().replace("smoke: {rounds: 2}", "smoke: {rounds: 4}"))
    figure = load(small, "smoke")
    assert (figure.trials, figure.settings()[0].rounds) == (2, 4)


def test_results_of_ones_own_study_have_no_stamp_of_a_tier(small: Path, fedrepro: Call) -> None:
    small.write_text(small.read_text().replace("paper: beyond", "paper: mine"))
    fedrepro("run", small, "-j", 1)
    shown = fedrepro("show", small).output
    assert "TIER" not in shown
    assert shown.endswith("synthetic (generated) · 2 trials (paper tier: 3)\n")
    fedrepro("run", small, "-j", 1, "--tier", "smoke")
    assert "SMOKE TIER" in fedrepro("show", small, "--tier", "smoke").output


def test_the_paper_tier_is_refused_where_ones_own_spec_does_not_define_it(small: Path, fedrepro: Call) -> None:
    text = small.read_text().replace("paper: beyond", "paper: mine")
    small.write_text(text)
    assert fedrepro("run", small, "-j", 1, "--tier", "paper").exit_code == 0
    small.write_text(text.replace("  paper: {trials: 3}\n", ""))
    refused = fedrepro("run", small, "-j", 1, "--tier", "paper")
    assert (refused.exit_code, refused.stderr) == (
        2,
        f"error: {small}: defines no `paper:` under `tiers:`; without --tier it runs in full\n",
    )


def test_results_of_ones_own_study_lie_under_its_name(
    small: Path, fedrepro: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small.write_text(small.read_text().replace("paper: beyond", "paper: mine"))
    fedrepro("run", small, "-j", 1, "--plot")
    assert (tmp_path / "results" / "mine" / "small.csv").is_file()
    assert (tmp_path / "plots" / "mine" / "small.png").is_file()
    fedrepro("run", small, "-j", 1, "--tier", "smoke")
    assert (tmp_path / "results" / "smoke" / "mine" / "small.csv").is_file()
    monkeypatch.chdir(small.parent)
    frame = load_results("mine/small", tier="quick", results=tmp_path / "results")
    assert len(frame) == len(load_results(small, tier="quick", results=tmp_path / "results")) > 0
    assert fedrepro("show", "mine/small").output == fedrepro("show", small).output
    shutil.copy(small, small.with_name("again.yaml"))
    doubled = fedrepro("show", "mine/small")
    assert "mine/small: is the name of again.yaml and small.yaml; name the file" in doubled.stderr, doubled.output


def test_without_a_name_ones_own_figures_with_results_are_among_all(
    small: Path, fedrepro: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = shutil.ignore_patterns("discrepancies.yaml")  # which name figures of other folders
    shutil.copytree(ROOT / "experiments" / "perfedsi", tmp_path / "experiments" / "perfedsi", ignore=alone)
    small.write_text(small.read_text().replace("paper: beyond", "paper: mine"))
    small.with_name("unused.yaml").write_text(small.read_text().replace("figure: small", "figure: unused"))
    small.with_name("broken.yaml").write_text("paper: mine\nfigure: broken\npanels: [")
    fedrepro("run", small, "-j", 1)
    monkeypatch.chdir(tmp_path)
    assert [path.resolve() for path in everything.paths((), tmp_path / "results")[-1:]] == [small]
    summary = fedrepro("verdict").output
    assert re.search(r"^mine +1 +1$", summary, re.M), summary
    assert not re.search(r"^\w+ +0|not counted|verdict gcca", summary, re.M), "nothing on papers without results"
    assert f"no results of perfedsi in {tmp_path / 'results'}; `fedrepro run perfedsi` makes them, " in summary
    assert "small.png" in fedrepro("plot", "--format", "png").output
    exported = fedrepro("export", tmp_path / "out", "--results", tmp_path / "results")
    assert exported.output == f"{tmp_path / 'out'}: 1 figure in 5 files\n"
    written = fedrepro("report", "--no-pictures", "--results", tmp_path / "results", "--out", tmp_path / "pages")
    assert written.exit_code == 0, written.output
    start = (tmp_path / "pages" / "report" / "index.html").read_text()
    assert re.search(r">mine</a>: 1 claim: 1 \w+", start)
    second = small.read_text().replace("figure: small", "figure: second").replace("small.1", "second.1")
    small.with_name("second.yaml").write_text(second)
    fedrepro("run", small.with_name("second.yaml"), "-j", 1)
    small.write_text(small.read_text().replace("algorithm: fedcavg,", "algorithm: fedcavgg,"))
    judged = fedrepro("verdict", "--json")
    assert [fact["id"] for fact in json.loads(judged.stdout)] == ["second.1"]
    assert judged.stderr.startswith("small.yaml: left out, because it is no longer a valid spec; `fedrepro validate sm")


def test_results_in_the_older_folder_of_studies_are_taken_over(small: Path, fedrepro: Call, tmp_path: Path) -> None:
    small.write_text(small.read_text().replace("paper: beyond", "paper: mine"))
    fedrepro("run", small, "-j", 1)
    new, older = tmp_path / "results" / "mine", tmp_path / "results" / "quick" / "mine"
    older.parent.mkdir()
    new.rename(older)
    shutil.rmtree(tmp_path / "results" / ".runs")
    assert "0 runs computed, 8 reused" in fedrepro("run", small, "-j", 1).output
    assert (new / "small.csv").read_bytes() == (older / "small.csv").read_bytes()


# What is missing is said before anything runs -------------------------------------------------------------------------


@pytest.fixture
def no_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    """JAX is not installed."""
    find_spec = importlib.util.find_spec

    def find(name: str, package: str | None = None) -> object:
        return None if name in ("jax", "optax") else find_spec(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", find)


NEEDS = 'needs a library that is not installed, jax and optax: pip install "fedrepro[deep]"'


def test_a_missing_library_is_named_before_anything_runs(no_jax: None, fedrepro: Call) -> None:
    planned = fedrepro("plan", "perfedsi/fig3", "gcca/fig12", "--tier", "smoke", "--stand-in")
    assert f": {NEEDS}" in planned.output
    assert "perfedsi/fig3 (smoke): 8 curves x 2 trials; 0 runs reused, 16 to do" in planned.output, "it needs no JAX"
    refused = fedrepro("run", "gcca/fig13", "--tier", "smoke", "--stand-in")
    assert refused.exit_code in (0, 2)
    assert f"left out: {NEEDS}" in refused.stderr


def test_without_the_library_kept_results_are_not_called_stale(no_jax: None) -> None:
    figure, _, sidecar = next(with_results([ROOT / "experiments/gcca/fig13.yaml"], "paper", ROOT / "results"))
    assert validity(figure, sidecar) == Validity(undecidable=(f"changes cannot be detected: it {NEEDS}",))


def test_near_misses_in_checks_and_options_suggest_what_to_write(small: Path, fedrepro: Call) -> None:
    text = small.read_text()
    check = next(line for line in text.splitlines() if line.strip().startswith("check:"))
    for wrong, right in {
        "end(algorithm='fedcavg', Q2=5) < 1": "end() needs a curve, as in end(A) with a curve named under names:, "
        "or write y(at='end', algorithm='fedcavg', Q2=5)",
        "final(Q2=5) < 1": "'final' is not a function of checks, write y(at='end', ...)",
        "objective(Q2=5) < 1": "'objective' is not a function of checks, write y(at='end', metric='objective')",
    }.items():
        small.write_text(text.replace(check, f'    check: "{wrong}"'))
        assert right in fedrepro("validate", small).stderr.replace("\n", " ")
    small.write_text(text)
    assert "--set trials=VALUE overrides this key of a spec." in fedrepro("plot", small, "--trials", 5).stderr
    assert "; --at ROUND reads the curves at a round." in fedrepro("show", small, "--rounds", 5).stderr
    assert "--set Q1=VALUE overrides this parameter of the methods" in fedrepro("run", small, "--Q1", 5).stderr
    assert (
        "--set P=VALUE overrides this parameter of the data or the problem" in fedrepro("run", small, "--P", 3).stderr
    )


def test_a_user_who_wants_to_set_a_seed_is_told_what_works(small: Path, fedrepro: Call) -> None:
    small.write_text(small.read_text().replace("{name: synthetic,", "{name: synthetic, seed: 1,"))
    said = "the seed of a trial follows from the spec and the number of the trial; --set dataset.seed=N draws a dataset"
    assert f"No such option: --seed; {said}" in fedrepro("run", small, "--seed", 3).stderr
    assert fedrepro("plan", small, "--set", "dataset.seed=3").exit_code == 0
    assert fedrepro("plan", small, "--set", "seed=3").exit_code == 0
    small.write_text(
        small.read_text().replace(
            "syn: {name: synthetic, seed: 1, variant: clean, M: 12, N: 60, K: 3}", "syn: {name: digits}"
        )
    )
    refused = fedrepro("plan", small, "--set", "seed=3")
    assert refused.exit_code == 2
    assert (
        f"--set seed=3: neither the methods, the problem nor the data have a parameter 'seed'; {said}" in refused.stderr
    )


# The end value against a parameter ------------------------------------------------------------------------------------


def test_a_parameter_in_which_curves_differ_is_an_x_axis(small: Path, fedrepro: Call, tmp_path: Path) -> None:
    text = small.read_text()
    listed = "curves:\n      - {algorithm: fedcavg, Q1: 2, Q2: [1, 2, 5]}\n"
    start, end = text.index("curves:"), text.index("  b: {like")
    small.write_text(text[:start] + "x: Q2\n    " + listed + text[end:])
    named = load(small, "quick").panels[0]
    small.write_text(text[:start] + "x: parameter\n    options: {parameter: Q2}\n    " + listed + text[end:])
    long = load(small, "quick").panels[0]
    assert (axes.of(named).along, panels.swept(named)) == (axes.of(long).along, panels.swept(long)) == (False, "Q2")
    small.write_text(text[:start] + "x: Q2\n    " + listed + text[end:])
    fedrepro("run", small, "-j", 1)
    assert fedrepro("plot", small, "--format", "png").exit_code == 0
    small.write_text(text[:start] + "x: Q3\n    " + listed + text[end:])
    with pytest.raises(SpecErrors, match="'Q3' is not an x axis, did you mean 'Q2'"):
        load(small, "quick")


# Defaults follow the data ---------------------------------------------------------------------------------------------


def test_a_default_for_more_clients_than_there_are_is_all_of_them(tmp_path: Path) -> None:
    spec = tmp_path / "few.yaml"
    spec.write_text(COMPLETION)
    (setting,) = load(spec, "quick").settings()
    assert (setting.params["m"], setting.explicit) == (4, ())
    spec.write_text(COMPLETION.replace("algorithm: fedmc-admm", "algorithm: fedmc-admm, m: 10"))
    with pytest.raises(SpecErrors, match="m must be at most the number of clients P = 4, not 10"):
        load(spec, "quick")


def test_the_default_rank_of_a_warm_start_is_that_of_small_views(tmp_path: Path) -> None:
    np.savez(tmp_path / "views.npz", **{name: np.eye(20, width) for name, width in (("a", 5), ("b", 7))})
    spec = tmp_path / "views.yaml"
    own = GCCA.replace("dataset: {name: gcca-synthetic, J: 50, N: 10}", "dataset: {name: views-file, path: views.npz}")
    assert own != GCCA
    spec.write_text(own)
    assert [setting.params["m"] for setting in load(spec, "quick").settings()] == [5]
    spec.write_text(GCCA)
    assert [setting.params["m"] for setting in load(spec, "quick").settings()] == [10]


def test_features_with_different_units_can_be_standardized(tmp_path: Path) -> None:
    X = np.random.default_rng(0).random((40, 3)) * [1.0, 1000.0, 0.0] + 5.0
    np.save(tmp_path / "mapped.npy", X)
    np.savez(tmp_path / "read.npz", X=X)
    given = {"orientation": "rows", "rescale": "standard"}
    read, mapped = (MatrixFile(path=str(tmp_path / name), **given).load() for name in ("read.npz", "mapped.npy"))
    np.testing.assert_allclose(read.X.mean(axis=1), 0.0, atol=1e-12)
    np.testing.assert_allclose(read.X.std(axis=1), [1.0, 1.0, 0.0])
    np.testing.assert_allclose(mapped.X, read.X, atol=1e-12)
    assert read.facts["divided by"] == "the standard deviation of each feature"
    scipy.sparse.save_npz(tmp_path / "sparse.npz", scipy.sparse.csc_array(X))
    with pytest.raises(ParameterError, match="standard would make a sparse matrix dense; use max or mean"):
        MatrixFile(path=str(tmp_path / "sparse.npz"), **given).load()


def test_a_panel_without_y_draws_a_metric_of_the_problem(tmp_path: Path) -> None:
    spec = tmp_path / "views.yaml"
    spec.write_text(GCCA)
    assert load(spec, "quick").panels[0].y == "cost"
