"""Other values of open settings: applied to figures, planned, computed, kept, and compared with the figures' own."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import lzma
import math
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from click.testing import Result

from fedrepro.alternatives import cases, costs, deciding, execution, kept_effects, kept_results, paired, ranking, survey
from fedrepro.alternatives.apply import changed
from fedrepro.alternatives.cases import Case
from fedrepro.alternatives.costs import Cost
from fedrepro.alternatives.kept_results import Numbers
from fedrepro.alternatives.ranking import Entry
from fedrepro.claims import classes, intervals, judge, kept_answers
from fedrepro.claims.evidence import NOT_TESTED, VERDICTS
from fedrepro.claims.intervals import Interval
from fedrepro.errors import UserError
from fedrepro.problems.clustering.methods.fedmavg import FedMAvg
from fedrepro.results import checks
from fedrepro.results.read import frame, read_sidecar, results_file
from fedrepro.results.schema import Sidecar
from fedrepro.runs import runner
from fedrepro.runs.identity import plan as planning
from fedrepro.runs.predict.timings import Timings
from fedrepro.runs.runner import Outcome
from fedrepro.spec import discrepancies
from fedrepro.spec.discrepancies import Alternative, Change, Discrepancy
from fedrepro.spec.find import specs
from fedrepro.spec.model import Figure
from fedrepro.spec.read import load
from fedrepro.spec.readings import Reading

from .conftest import ROOT, SMALL, once

Call = Callable[..., Result]
EXPERIMENTS = ROOT / "experiments"
NOTHING_KEPT = "  the set is not stored; the same command computes the failed runs again\n"

ROWS = """\
paper: beyond
rows:
  - id: beyond.1
    kind: setting
    topic: local H steps
    paper: "three"
    code: "four"
    taken: "two"
    default: ours
    settings:
      - {name: q1-3, from: printed, change: {algorithm: fedcavg, Q1: 3}}
      - {name: q1-4, from: released, change: {algorithm: fedcavg, Q1: 4}}
    figures: [small]
  - id: beyond.2
    kind: setting
    topic: outliers
    paper: "none"
    code: "some"
    taken: "none"
    default: ours
    settings:
      - {name: outliers, from: released, change: {dataset: synthetic, outliers: 0.1}}
    figures: [small]
  - id: beyond.3
    kind: setting
    topic: steps of the gradient
    paper: "one"
    code: "one"
    taken: "one"
    default: printed
    settings:
      - {name: q2-9, from: ours, change: {algorithm: [fedcavg, fedcgds], Q2: 9}}
    figures: [small]
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of one figure with open settings."""
    folder = tmp_path / "experiments" / "beyond"
    folder.mkdir(parents=True)
    (folder / "small.yaml").write_text(SMALL)
    (folder / "discrepancies.yaml").write_text(ROWS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def the_figure(tier: str = "quick") -> Figure:
    return load(Path("experiments/beyond/small.yaml"), tier)


def the_rows() -> list[Discrepancy]:
    return discrepancies.load_all(Path("experiments"))


def an_alternative(change: Change, name: str = "x.1.y") -> Alternative:
    return Alternative(name, "ours", (change,))


def labels(figure: Figure) -> list[tuple[str, str, object]]:
    return [(panel.id, curve.label, curve.select) for panel in figure.panels for curve in panel.curves]


# Applying -------------------------------------------------------------------------------------------------------------


def test_a_change_applies_to_every_curve_that_it_names_and_to_no_other(project: Path) -> None:
    figure = the_figure()
    other = changed(figure, [an_alternative(Change("algorithm", ("fedcavg",), {"Q1": 3}, {}))])
    assert labels(other) == labels(figure)
    pairs = [
        (before.setting, after.setting)
        for one, two in zip(figure.panels, other.panels, strict=True)
        for before, after in zip(one.curves, two.curves, strict=True)
    ]
    assert all((after == before) == (before.algorithm == "fedcgds") for before, after in pairs)
    for before, after in pairs[:2]:
        assert after.params == {**before.params, "Q1": 3}
        assert after.series == f"{before.series} | Q1=3"
        assert dataclasses.replace(after, series=before.series, params=before.params) == before


def test_without_where_the_curves_of_a_sweep_keep_their_values(project: Path) -> None:
    figure = the_figure()
    swept = Change("algorithm", ("fedcavg",), {"Q2": 9}, {})
    assert changed(figure, [an_alternative(swept)]) == figure
    chosen = changed(figure, [an_alternative(dataclasses.replace(swept, where={"Q2": 1}))])
    assert [c.setting.params["Q2"] for c in chosen.panels[0].curves[:2]] == [9, 5]


@pytest.mark.parametrize(
    ("where", "count"),
    [
        ({"m": 2}, 1),
        ({"m": [2, 6]}, 2),
        ({"partition": "uniform"}, 2),
        ({"partition": "unf"}, 2),
        ({"panel": "b"}, 0),
        ({"m": 3}, 0),
    ],
)
def test_where_selects_by_values_by_registered_names_and_by_panels(
    project: Path, where: dict[str, object], count: int
) -> None:
    other = changed(the_figure(), [an_alternative(Change("algorithm", ("fedcgds",), {"Q2": 9}, where))])
    assert sum(curve.setting.params["Q2"] == 9 for curve in other.panels[0].curves) == count


@pytest.mark.parametrize(
    ("change", "field", "name"),
    [
        (Change("dataset", ("synthetic",), {"outliers": 0.2}, {}), "dataset_params", "outliers"),
        (Change("partition", ("uniform",), {"P": 5}, {}), "partition_params", "P"),
        (Change("problem", ("clustering",), {"rho": 1e-3}, {}), "problem_params", "rho"),
    ],
)
def test_data_partitions_and_problems_change_on_all_curves(
    project: Path, change: Change, field: str, name: str
) -> None:
    other = changed(the_figure(), [an_alternative(change)])
    assert {getattr(s, field)[name] for s in other.settings()} == {change.values[name]}
    assert all(f"| {name}=" in s.series for s in other.settings())


def test_rounds_change_like_a_parameter(project: Path) -> None:
    other = changed(the_figure(), [an_alternative(Change("algorithm", ("fedcavg", "fedcgds"), {"rounds": 7}, {}))])
    assert {s.rounds for s in other.settings()} == {7}
    assert all(s.series.endswith(" | rounds=7") for s in other.settings())


def test_a_value_that_a_method_refuses_names_the_setting_and_the_curve(project: Path) -> None:
    change = Change("algorithm", ("fedcavg",), {"Qhat": 10}, {})
    with pytest.raises(UserError, match=r"the setting x\.1\.y cannot be applied to 'fedcavg Q1=2 Q2=1 @ syn / unf': "):
        changed(the_figure(), [an_alternative(change)])


def test_the_runs_of_a_case_are_those_of_the_spec_with_the_values_written_down(project: Path) -> None:
    (case, *_) = cases.singles(the_figure(), the_rows())
    written = load(Path("experiments/beyond/small.yaml"), "quick", ["panels.a.curves.0.Q1=3"])
    ours, theirs = (set(planning.make([figure], False).runs) for figure in (case.to_compute(2), written))
    assert len(ours) == 4
    assert ours < theirs


@pytest.mark.slow
def test_every_setting_changes_a_curve_that_a_claim_reads() -> None:
    rows = discrepancies.load_all(EXPERIMENTS)
    touched: set[str] = set()
    for path in specs(EXPERIMENTS):
        figure = load(path, "paper")
        for case in cases.singles(figure, rows):
            touched.add(case.name)
            assert labels(case.changed) == labels(figure), case.name
            by_name: dict[str, object] = {}
            for panel in case.changed.panels:
                for curve in panel.curves:
                    assert by_name.setdefault(curve.setting.series, curve.setting) == curve.setting, case.name
    assert {alternative.id for row in rows for alternative in row.alternatives} - touched == set()


# Cases ----------------------------------------------------------------------------------------------------------------


def test_the_cases_are_each_value_alone_and_those_of_one_origin_together(project: Path) -> None:
    figure, rows = the_figure(), the_rows()
    assert [case.name for case in cases.singles(figure, rows)] == [
        "beyond.1.q1-3",
        "beyond.1.q1-4",
        "beyond.2.outliers",
    ]
    ((together),) = cases.together(figure, rows)
    assert together.name == "beyond.released"
    assert [alternative.id for alternative in together.alternatives] == ["beyond.1.q1-4", "beyond.2.outliers"]
    assert [case.name for case in cases.pairs(figure, together.alternatives)] == ["beyond.1.q1-4+beyond.2.outliers"]


def test_the_same_value_in_two_rows_is_one_case(project: Path) -> None:
    rows = the_rows()
    again = dataclasses.replace(rows[0].alternatives[0], id="beyond.9.q1-3")
    twice = [*rows, dataclasses.replace(rows[0], id="beyond.9", alternatives=(again,))]
    names = [[case.name for case in cases.singles(the_figure(), given)] for given in (rows, twice)]
    assert names[0] == names[1]


def test_two_values_that_exclude_each_other_make_no_pair(project: Path) -> None:
    diminishing = an_alternative(Change("algorithm", ("fedcavg",), {"Q2": None, "Qhat": 10}, {}))
    constant = an_alternative(Change("algorithm", ("fedcavg",), {"Q2": 3}, {}), "x.2.y")
    more = an_alternative(Change("algorithm", ("fedcavg",), {"Q1": 3}, {}), "x.3.y")
    made = cases.pairs(the_figure(), [diminishing, constant, more])
    assert [case.name for case in made] == ["x.1.y+x.3.y", "x.2.y+x.3.y"]


def test_a_value_that_excludes_others_is_not_applied_together_with_them(project: Path) -> None:
    path = Path("experiments/beyond/discrepancies.yaml")
    path.write_text(ROWS.replace("from: released, change: {dataset", "from: released, alone: true, change: {dataset"))
    assert cases.together(the_figure(), the_rows()) == []


def test_a_value_of_the_origin_that_it_replaces_is_not_among_those_of_that_origin(project: Path) -> None:
    path = Path("experiments/beyond/discrepancies.yaml")
    other = ROWS.replace("from: released, change: {dataset", "from: released, instead_of: released, change: {dataset")
    path.write_text(other)
    ((row, outliers),) = ((r, a) for r in the_rows() for a in r.alternatives if a.id == "beyond.2.outliers")
    assert (outliers.replaces, row.leaves_open(outliers)) == ("released", True)
    assert cases.together(the_figure(), the_rows()) == []


def test_a_claim_on_a_condition_has_no_other_values_of_what_it_is_about(project: Path) -> None:
    figure, rows = the_figure(), the_rows()
    check = "parameter('Q1', algorithm='fedcavg', Q2=1) >= 2"
    for theorem, names in (("", {"beyond.1.q1-3", "beyond.2.outliers"}), ("condition", {"beyond.2.outliers"})):
        claim = dataclasses.replace(figure.claims[0], theorem=theorem, check=check)
        own = dataclasses.replace(figure, claims=(claim,))
        assert names <= {case.name for case in cases.singles(own, rows)}
        assert ("beyond.1.q1-3" in {case.name for case in cases.singles(own, rows)}) == (not theorem)


def test_only_changed_curves_that_claims_read_are_computed(project: Path) -> None:
    case = next(case for case in cases.singles(the_figure(), the_rows()) if case.name == "beyond.2.outliers")
    figure = case.to_compute(2)
    assert {setting.algorithm for setting in figure.settings()} == {"fedcavg"}
    assert (figure.trials, figure.claims, figure.figure) == (2, (), "small.settings/beyond.2.outliers")
    assert case.metrics() == {"objective", "round"}, "no claim reads panel b"


# Costs and order ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "wanted", "trials"), [(360.0, 20, 20), (361.0, 20, 3), (1.0, 21, 10), (361.0, 2, 2)]
)
def test_three_trials_are_run_where_ten_take_more_than_an_hour_and_at_most_20(
    project: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, wanted: int, trials: int
) -> None:
    monkeypatch.setattr(Timings, "total", lambda self, runs, jobs: len(runs) * seconds / 2)  # of two curves
    (case, *_) = cases.singles(load(Path("experiments/beyond/small.yaml"), "paper", [f"trials={wanted}"]), the_rows())
    (cost,) = costs.costs([case], Path("results"))
    assert (cost.trials, cost.wanted, cost.done) == (trials, wanted, False)
    assert cost.hours == pytest.approx(trials * seconds / 3600)
    assert cost.claims == {"small.1"}


def test_how_many_trials_are_run_is_decided_once(
    computed: Path, fedrepro: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(fedrepro, "run", "--only", "beyond.1.q1-3", "--quiet", "--jobs", 1)
    monkeypatch.setattr(costs, "HOUR", 1e-9)
    monkeypatch.setattr(costs, "FEW", 1)
    (case, *_) = cases.singles(the_figure(), the_rows())
    (cost,) = costs.costs([case], Path("results"))
    assert (cost.trials, cost.done) == (2, True)


def test_the_number_of_trials_can_be_asked_for_and_stored_results_keep_theirs(computed: Path, fedrepro: Call) -> None:
    (case, *_) = cases.singles(the_figure(), the_rows())

    def of_asked(*asked: object) -> tuple[int, list[int]]:
        run(fedrepro, "run", "--only", "beyond.1.q1-3", *asked, "--quiet", "--jobs", 1)
        sidecar = read_sidecar(kept_results.base(Path("results"), case))
        assert sidecar is not None
        return sidecar.trials_wanted or 0, [len(runs) for runs in sidecar.runs.values()]

    assert of_asked("--trials", 1) == (1, [1, 1])
    assert of_asked() == (1, [1, 1])
    assert of_asked("--trials", 7) == (2, [2, 2])
    assert of_asked("--trials", 1) == (2, [2, 2])


def entry(name: str, left: dict[str, float], claims: int, undecided: int) -> Entry:
    case = Case(name, (), the_figure(), the_figure(), ())
    ids = frozenset(str(number) for number in range(claims))
    return Entry(case, Cost(the_figure(), 2, 2, left, False, ids), undecided)


def test_pairs_come_last_and_claims_that_are_not_held_before_others_both_per_hour(project: Path) -> None:
    listed = [
        entry("one+other", {"e": 0.1}, 9, 9),
        entry("slow", {"a": 2.0}, 4, 1),
        entry("held", {"b": 0.1}, 9, 0),
        entry("fast", {"c": 1.0}, 2, 1),
        entry("more", {"d": 1.0}, 3, 1),
    ]
    assert [e.case.name for e in ranking.order(listed)] == ["more", "fast", "slow", "held", "one+other"]


def test_a_budget_counts_shared_runs_once_and_skips_what_does_not_fit(project: Path) -> None:
    listed = [
        entry("first", {"a": 1.0, "b": 1.0}, 1, 1),
        entry("long", {"c": 9.0}, 1, 1),
        entry("shares", {"a": 1.0, "b": 1.0, "d": 0.5}, 1, 1),
        entry("last", {"e": 1.0}, 1, 1),
    ]
    chosen, left = ranking.within(listed, 2.5)
    assert [e.case.name for e in chosen] == ["first", "shares"]
    assert [e.case.name for e in left] == ["long", "last"]
    assert ranking.within(listed, None) == (listed, [])
    assert ranking.total(listed) == pytest.approx(12.5)


# The commands ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def computed(project: Path, fedrepro: Call, kept: Path) -> Path:
    """The project with the figure's own results."""
    once(kept, project / "results", lambda: fedrepro("run", "beyond/small", "--quiet", "--jobs", 1))
    return project


def run(fedrepro: Call, *words: object) -> str:
    result = fedrepro("settings", *words, "--tier", "quick")
    assert result.exit_code == 0, result.output
    return result.output


def test_settings_are_planned_computed_and_shown(computed: Path, fedrepro: Call) -> None:
    planned = run(fedrepro, "plan").splitlines()
    assert planned[0] == "  hours    trials claims  open  figure with other values"
    assert sorted(line.split()[-1] for line in planned[1:-1]) == [
        "beyond.1.q1-3", "beyond.1.q1-4", "beyond.2.outliers", "beyond.released",
    ]  # fmt: skip
    assert planned[-1] == "4 sets of other values: 0 computed, 4 to do in about 0.0 h"
    nothing = fedrepro("settings", "show", "--tier", "quick")
    assert nothing.exit_code == 2
    assert nothing.stderr == (
        f"error: no results of other settings at the quick tier in {computed / 'results'}; `fedrepro settings run "
        "--tier quick` makes them\n"
    )

    said = run(fedrepro, "run", "--quiet", "--jobs", 1)
    assert re.search(
        r"^1 of 4, about [\d.]+ s left with one worker: beyond/small with \S+, 2 trials, about [\d.]+ s$", said, re.M
    )
    assert "  beyond/small.settings/beyond.2.outliers (quick): complete\n" in said
    folder = computed / "results" / "quick" / "beyond" / "small.settings"
    assert sorted(path.name for path in folder.iterdir() if "q1-3" in path.name and "+" not in path.name) == [
        "beyond.1.q1-3.csv.xz", "beyond.1.q1-3.json.xz",
    ]  # fmt: skip
    assert (folder.parent / "small.answers.json.gz").exists()
    shown = run(fedrepro, "show", "--only", "beyond.1.q1-3").splitlines()
    assert shown[0] == "beyond/small with beyond.1.q1-3: fedcavg with Q1 = 3"
    assert shown[1].startswith("  small.1                  ")
    assert shown[1].endswith(", 2 trials")
    assert "margin " in shown[2]
    assert ", change " in shown[2]


def test_pairs_that_both_move_a_claim_are_planned_once_their_parts_are_computed(
    computed: Path, fedrepro: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paired, "ENOUGH", 0.0)
    run(fedrepro, "run", "--quiet", "--jobs", 1)
    facts = json.loads(run(fedrepro, "plan", "--json"))
    assert {fact["set"] for fact in facts if "+" in fact["set"]} == {
        "beyond.1.q1-3+beyond.2.outliers", "beyond.1.q1-4+beyond.2.outliers",
    }  # fmt: skip
    assert {fact["set"] for fact in facts if fact["done"]} == {
        "beyond.1.q1-3", "beyond.1.q1-4", "beyond.2.outliers", "beyond.released",
    }  # fmt: skip
    run(fedrepro, "run", "--only", "beyond.1.q1-3+beyond.2.outliers", "--quiet", "--jobs", 1)
    monkeypatch.setattr(paired, "ENOUGH", 1e9)  # no part moves a claim now
    facts = json.loads(run(fedrepro, "plan", "--json"))
    assert {fact["set"]: fact["done"] for fact in facts if "+" in fact["set"]} == {
        "beyond.1.q1-3+beyond.2.outliers": True
    }


def test_what_is_computed_is_not_computed_again_and_only_names_sets(computed: Path, fedrepro: Call) -> None:
    assert "1 of 1, about " in run(fedrepro, "run", "--only", "beyond.2", "--quiet", "--jobs", 1)
    again = run(fedrepro, "run", "--only", "beyond.2", "--quiet", "--jobs", 1)
    assert again == "1 set of other values: 1 computed, 0 to do in about 0.0 h\n"
    wrong = fedrepro("settings", "plan", "--only", "beyond.1.q1-33", "--tier", "quick")
    assert wrong.exit_code == 2
    assert wrong.stderr == (
        "error: --only beyond.1.q1-33: there is no such setting, did you mean 'beyond.1.q1-3'? "
        "(`fedrepro settings plan`)\n"
    )


@pytest.mark.parametrize("command", ["run", "show", "claims"])
def test_a_setting_of_other_figures_is_said_to_change_nothing(fedrepro: Call, command: str) -> None:
    refused = fedrepro("settings", command, "gcca/fig4", "--only", "fedmf.16.q2-10")
    assert (refused.exit_code, refused.stderr) == (
        2,
        "error: --only fedmf.16.q2-10: changes no curve that a claim of these figures reads (`fedrepro settings plan` "
        "lists the settings of all figures)\n",
    )


@pytest.mark.parametrize("command", ["plan", "run", "show", "values", "claims"])
def test_own_figures_have_no_settings(computed: Path, fedrepro: Call, command: str) -> None:
    Path("mine.yaml").write_text(SMALL.replace("paper: beyond", "paper: mine"))
    said = "mine.yaml: your own figures have no settings that a paper leaves open. To try other values, use `fedrepro "
    said += "run FIGURE --set NAME=VALUE`, or write a list of values (a sweep) in the spec\n"
    refused = fedrepro("settings", command, "mine.yaml", "--tier", "quick")
    assert (refused.exit_code, refused.stdout, refused.stderr) == (2, "", f"error: {said}")
    if command == "claims":
        both = fedrepro("settings", command, "mine.yaml", "beyond/small", "--tier", "quick", "--json")
        assert (both.exit_code, both.stderr) == (0, said)
        assert [fact["claim"] for fact in json.loads(both.stdout)] == ["small.1"]


def test_runs_in_the_results_of_a_figure_are_reused(
    computed: Path, fedrepro: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = SMALL.replace("figure: small", "figure: three").replace("Q1: 2, Q2: [1, 5]", "Q1: 3, Q2: [1, 5]")
    (computed / "experiments" / "beyond" / "three.yaml").write_text(text)
    fedrepro("run", "beyond/three", "--quiet", "--jobs", 1)
    shutil.rmtree(computed / "results" / ".runs")
    (case, *_) = cases.singles(the_figure(), the_rows())
    with monkeypatch.context() as patch:
        patch.setattr(Timings, "total", lambda self, runs, jobs: 1e6 * len(runs))
        (cost,) = costs.costs([case], Path("results"))
    assert (cost.hours, cost.done, cost.trials) == (0.0, False, 2)
    run(fedrepro, "run", "--only", "beyond.1.q1-3", "--quiet", "--jobs", 1)
    sidecar = read_sidecar(kept_results.base(Path("results"), case))
    own = read_sidecar(Path("results/quick/beyond/three"))
    assert sidecar is not None
    assert own is not None
    assert {id_ for ids in sidecar.runs.values() for id_ in ids} <= {id_ for ids in own.runs.values() for id_ in ids}


def test_a_budget_leaves_the_rest_with_its_cost(
    computed: Path, fedrepro: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Timings, "total", lambda self, runs, jobs: 90.0 * len(runs))
    said = run(fedrepro, "plan", "--hours", 0.11).splitlines()
    assert said[0].startswith("  hours")
    assert said[2:4] == ["", "left, beyond 0.11 h:"]
    assert said[-1] == "4 sets of other values: 0 computed, 4 to do in about 0.4 h"


@pytest.mark.parametrize(
    ("outcome", "code", "said"),
    [
        (
            Outcome(interrupted=True),
            130,
            "interrupted: finished runs are kept; the same command continues from here\n",
        ),
        (Outcome(failed={"x": "failed: no room"}), 1, f"  failed: no room\n{NOTHING_KEPT}"),
    ],
)
def test_an_interruption_or_a_failed_run_ends_with_its_code(
    computed: Path, fedrepro: Call, monkeypatch: pytest.MonkeyPatch, outcome: Outcome, code: int, said: str
) -> None:
    monkeypatch.setattr(execution, "compute", lambda *given, **options: outcome)
    result = fedrepro("settings", "run", "--only", "beyond.2", "--tier", "quick", "--jobs", 1)
    assert (result.exit_code, result.stderr) == (code, said)


def test_an_interrupted_case_leaves_its_finished_runs_and_what_was_there(
    computed: Path, fedrepro: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*given: Any, **options: Any) -> Iterator[Any]:
        yield next(answers(*given, **options))
        raise KeyboardInterrupt

    def files(folder: str) -> dict[str, bytes]:
        paths = sorted((computed / "results" / folder).rglob("small.settings/*"))
        return {path.name: path.read_bytes() for path in paths}

    answers = runner._here
    words = ("settings", "run", "--only", "beyond.1.q1-3", "--tier", "quick", "--jobs", 1)
    with monkeypatch.context() as patch:
        patch.setattr(runner, "_here", interrupted)
        assert fedrepro(*words).exit_code == 130
    assert (files("quick"), files(".settings")) == ({}, {})
    assert fedrepro(*words).exit_code == 0
    kept = files("quick")
    assert set(kept) == {f"beyond.1.q1-3{suffix}" for suffix in (".csv.xz", ".json.xz")}
    monkeypatch.setattr(runner, "_here", interrupted)
    case, *_ = both("beyond.1.q1-3")
    more = execution.compute(case, case.to_compute(3), computed / "results", jobs=1, quiet=True)
    assert more.interrupted
    assert (files("quick"), files(".settings")) == (kept, {})


@pytest.mark.parametrize("right", [0, 1])
def test_a_case_of_which_a_run_fails_keeps_nothing(
    computed: Path, fedrepro: Call, monkeypatch: pytest.MonkeyPatch, right: int
) -> None:
    rounds, calls = FedMAvg.rounds, itertools.count()

    def failing(*given: Any, **options: Any) -> Any:
        if next(calls) < right:
            return rounds(*given, **options)
        raise ValueError("no")

    words = ("settings", "run", "--only", "beyond.1.q1-3", "--tier", "quick", "--jobs", 1)
    with monkeypatch.context() as patch:
        patch.setattr(FedMAvg, "rounds", failing)
        failed = fedrepro(*words)
    assert failed.exit_code == 1
    assert f"  failed: ValueError: no\n{NOTHING_KEPT}" in failed.stderr
    assert not list((computed / "results" / "quick").rglob("*q1-3*"))
    assert fedrepro(*words).exit_code == 0
    assert list((computed / "results" / "quick").rglob("*q1-3*"))


# What is kept, and what it changes ------------------------------------------------------------------------------------


def both(name: str) -> tuple[Case, Numbers, Numbers]:
    case = next(case for case in cases.singles(the_figure(), the_rows()) if case.name == name)
    own = survey.numbers(Path("experiments/beyond/small.yaml"), "quick", Path("results"))
    assert own is not None
    other = kept_results.numbers(case, own, Path("results"))
    assert other is not None
    return case, own, other


def stored(case: Case) -> tuple[Sidecar, pd.DataFrame]:
    path = kept_results.base(Path("results"), case)
    sidecar, table = read_sidecar(path), results_file(path)
    assert sidecar is not None
    assert table is not None
    return sidecar, frame(table, sidecar.csv_sha256)


def test_what_is_kept_is_what_claims_read(computed: Path, fedrepro: Call) -> None:
    spec = computed / "experiments" / "beyond" / "small.yaml"
    spec.write_text(SMALL.replace("trials: 2", "trials: 2\nmetrics: [accuracy]", 1))
    fedrepro("run", "beyond/small", "--quiet", "--jobs", 1)
    run(fedrepro, "run", "--only", "beyond.1.q1-3", "--quiet", "--jobs", 1)
    (case, *_) = cases.singles(the_figure(), the_rows())
    _, rows = stored(case)
    assert set(rows["metric"]) == {"objective"}
    assert set(rows["series"]) == case.series
    _, own, other = both("beyond.1.q1-3")
    assert set(own.frame["metric"]) == {"objective", "accuracy"}
    row = judge.judge(case.claims[0], other.figure, other.frame, other.sidecar, other.known)
    assert row.verdict != "not tested"


def test_values_are_kept_to_nine_digits_and_a_check_compares_those(computed: Path, fedrepro: Call) -> None:
    run(fedrepro, "run", "--only", "beyond.1.q1-3", "--quiet", "--jobs", 1)
    (case, *_) = cases.singles(the_figure(), the_rows())
    sidecar, rows = stored(case)
    assert sidecar.digits == 9
    assert sidecar.columns["value"] == "its value, to 9 significant digits"
    values = rows["value"]
    assert all(float(f"{value:.9g}") == value for value in values)
    assert not all(float(f"{value:.8g}") == value for value in values)
    result = fedrepro("check", "beyond/small", "--tier", "quick", "--seconds", 20)
    assert result.exit_code == 0, result.output
    assert "different" not in result.output
    found = checks.read(kept_results.base(Path("results"), case))
    assert found is not None
    assert found.findings[-1].outcome == checks.SAME


@pytest.mark.parametrize("recorded", [list(range(102)), list(range(1001)), [0, *range(7, 4000, 3)]])
def test_long_runs_are_thinned_in_equal_ratios_and_keep_what_checks_name(recorded: list[int]) -> None:
    rounds = kept_results.kept_rounds(recorded, {99, 500, 5000})
    assert rounds == sorted(set(rounds) & set(recorded))
    assert rounds[-1] == recorded[-1]
    assert [r for r in rounds if r <= 50] == [r for r in recorded if r <= 50]
    assert {99, 500} & set(recorded) <= set(rounds)
    gaps = [(one, two) for one, two in itertools.pairwise(rounds) if one > 50]
    assert all(two < 1.1 * one + max(np.diff(recorded)) + 1 for one, two in gaps)
    assert len(rounds) < 110


def test_short_runs_keep_every_round() -> None:
    assert kept_results.kept_rounds(range(101)) == list(range(101))


def test_both_are_read_at_the_same_rounds(computed: Path, fedrepro: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_results, "MANY", 3)
    monkeypatch.setattr(kept_results, "DENSE", 1)
    monkeypatch.setattr(kept_results, "APART", 3.0)
    run(fedrepro, "run", "--only", "beyond.1.q1-3", "--quiet", "--jobs", 1)
    case, own, _ = both("beyond.1.q1-3")
    own = kept_results.thinned(own, case.rounds())
    other = kept_results.numbers(case, own, Path("results"))
    assert other is not None
    rounds = [set(rows["round"]) for numbers in (own, other) for _, rows in numbers.frame.groupby(["series", "trial"])]
    assert rounds == [{0, 1, 3, 5}] * len(rounds)
    (change,) = survey.effects(case, both("beyond.1.q1-3")[1], Path("results"))
    assert change.shifts


def test_thinned_numbers_are_those_of_every_run_alone_and_are_made_once(
    computed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = survey.numbers(Path("experiments/beyond/small.yaml"), "quick", Path("results"))
    assert own is not None
    short = kept_results.thinned(own, {4}).frame
    np.testing.assert_allclose(short["value"], own.frame["value"], rtol=5e-9, atol=0)
    pd.testing.assert_frame_equal(short.drop(columns="value"), own.frame.drop(columns="value"))  # every round is kept
    monkeypatch.setattr(kept_results, "MANY", 3)
    monkeypatch.setattr(kept_results, "DENSE", 1)
    monkeypatch.setattr(kept_results, "APART", 3.0)
    fresh = Numbers.of(own.figure, own.frame.sample(frac=1, random_state=0), own.sidecar)  # rows in any order
    thin = kept_results.thinned(fresh, {4})
    assert kept_results.thinned(fresh, [4]) is thin
    assert kept_results.thinned(fresh, {2}) is not thin
    parts = []
    for _, rows in fresh.frame.groupby(["series", "trial"], sort=False):
        kept = kept_results.kept_rounds(sorted(set(rows["round"].astype(int))), {4})
        parts.append(rows[rows["round"].isin(kept)])
    assert 4 in kept
    assert 2 not in kept
    pd.testing.assert_frame_equal(thin.frame, pd.concat(parts, ignore_index=True), rtol=5e-9, atol=0)


def test_a_set_does_not_count_after_the_figure_got_other_values(computed: Path, fedrepro: Call) -> None:
    run(fedrepro, "run", "--only", "beyond.1", "--quiet", "--jobs", 1)
    assert run(fedrepro, "show").count("beyond/small with beyond.1.") == 2
    spec = Path("experiments/beyond/small.yaml")
    text = spec.read_text()
    spec.write_text(text.replace("N: 60", "N: 72"))
    assert spec.read_text() != text
    assert "no results of other settings" in fedrepro("settings", "show", "--tier", "quick").stderr
    assert "beyond.1.q1-3" in run(fedrepro, "plan")
    claims = fedrepro("settings", "claims", "--tier", "quick").output
    assert "q1-3" not in claims
    spec.write_text(text.replace("a small figure", "another title"))  # changes no value
    assert run(fedrepro, "show").count("beyond/small with beyond.1.") == 2


@pytest.mark.parametrize("command", ["show", "claims"])
def test_stale_results_of_the_figure_are_named(
    computed: Path, fedrepro: Call, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    run(fedrepro, "run", "--only", "beyond.1", "--quiet", "--jobs", 1)
    assert "stale" not in run(fedrepro, command)
    monkeypatch.setattr("fedrepro.runs.identity.identify.SCHEME", "other code")
    named = "stale: beyond/small (quick tier): the code that computes it changed; `fedrepro run beyond/small"
    assert named in run(fedrepro, command)


def test_one_claim_can_be_asked_for_alone(computed: Path, fedrepro: Call) -> None:
    run(fedrepro, "run", "--only", "beyond.1", "--quiet", "--jobs", 1)
    rows = the_rows()
    gathered = list(survey.computed([Path("experiments/beyond/small.yaml")], rows, "quick", Path("results"), ""))
    every = survey.decided(gathered, rows, Path("results"), readings=True)
    for one in every:
        (alone,) = survey.decided(gathered, rows, Path("results"), readings=True, of=one.row.claim.id)
        assert (alone.row.reason, alone.words, alone.causes) == (one.row.reason, one.words, one.causes)
        assert [repr(t.effect.shifts) for t in alone.tried] == [repr(t.effect.shifts) for t in one.tried]
    assert survey.decided(gathered, rows, Path("results"), of="beyond.none") == []
    assert every[0].tried


def test_the_change_of_a_margin_is_paired_over_trials(computed: Path, fedrepro: Call) -> None:
    run(fedrepro, "run", "--only", "beyond.1", "--quiet", "--jobs", 1)
    case, own, other = both("beyond.1.q1-3")
    (shift,) = paired.effect(case.claims[0], own, other).shifts

    def ends(numbers: Numbers, words: str) -> np.ndarray:
        rows = numbers.frame[numbers.frame["series"].str.startswith(words) & (numbers.frame["round"] == 5)]
        return rows[rows["metric"] == "objective"].sort_values("trial")["value"].to_numpy()

    before = ends(own, "fedcavg Q1=2 Q2=1 ") - ends(own, "fedcavg Q1=2 Q2=5 ")
    after = ends(other, "fedcavg Q1=2 Q2=1 ") - ends(other, "fedcavg Q1=2 Q2=5 ")
    assert shift.before.value == pytest.approx(before.mean())
    assert shift.after.value == pytest.approx(after.mean())
    assert shift.change.value == pytest.approx((after - before).mean())
    half = 12.706 * abs(np.diff(after - before)[0]) / 2  # Student's t for two trials
    assert shift.change.high - shift.change.value == pytest.approx(half, rel=1e-3)


def test_a_shift_says_if_another_round_decides_with_the_other_values(computed: Path) -> None:
    own = survey.numbers(Path("experiments/beyond/small.yaml"), "quick", Path("results"))
    assert own is not None
    claim = dataclasses.replace(own.figure.claims[0], check="y(at=[1, 5], algorithm='fedcavg', Q2=5) > 0.0")

    def with_values(values: dict[int, float]) -> Numbers:
        rows = own.frame.copy()
        for number, value in values.items():
            rows.loc[(rows["round"] == number) & (rows["metric"] == "objective"), "value"] = value
        return Numbers.of(own.figure, rows, own.sidecar)

    before, after = with_values({1: 2.0, 5: 3.0}), with_values({1: 7.0, 5: 5.0})
    effect = paired.effect(claim, before, after)
    (shift,) = effect.shifts
    assert shift.words.startswith("margin 2 -> 7 objective (relative), change +5; ")
    assert shift.words.endswith("; with the other values, another round decides (margin 5)")
    (back,) = paired.effect(claim, before, before).shifts
    assert "another" not in back.words


def test_the_same_numbers_change_nothing(computed: Path) -> None:
    own = survey.numbers(Path("experiments/beyond/small.yaml"), "quick", Path("results"))
    assert own is not None
    effect = paired.effect(own.figure.claims[0], own, own)
    assert effect.before == effect.after
    assert [shift.change.value for shift in effect.shifts] == [0.0]
    assert not effect.moves


def test_effects_are_kept_until_what_decides_them_changes(
    computed: Path, fedrepro: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(fedrepro, "run", "--only", "beyond.1.q1-3", "--quiet", "--jobs", 1)
    case, own, _ = both("beyond.1.q1-3")
    path = kept_results.base(Path("results"), case)
    kept = kept_answers.path(path)
    kept.unlink(missing_ok=True)
    claim = case.claims[0].id
    assert survey.effects(case, own, Path("results"), of=claim)
    assert not kept.exists()  # only some of its claims were asked for
    first = survey.effects(case, own, Path("results"))
    assert kept.exists()
    compared: list[str] = []
    effect = paired.effect
    monkeypatch.setattr(survey, "effect", lambda c, *pair: compared.append(c.id) or effect(c, *pair))
    assert survey.effects(case, own, Path("results")) == first
    assert survey.effects(case, own, Path("results"), of=claim) == first
    assert compared == []
    stricter = dataclasses.replace(case.claims[0], check=f"{case.claims[0].check.replace(' < ', ' + 9 < ')} and 1 < 2")
    other = dataclasses.replace(case, claims=(stricter, *case.claims[1:]))
    values = own.frame["value"].to_numpy() * 2
    doubled = Numbers.of(own.figure, own.frame.assign(value=values), own.sidecar)
    keys = [kept_effects.key(*of, Path("results")) for of in ((case, own), (other, own), (case, doubled))]
    assert len(set(keys)) == 3
    (change,) = survey.effects(case, doubled, Path("results"))
    assert compared == [claim]
    assert change.shifts[0].before.value == pytest.approx(2 * first[0].shifts[0].before.value)


def test_an_open_margin_reads_the_same_once_it_was_kept(computed: Path, fedrepro: Call) -> None:
    run(fedrepro, "run", "--only", "beyond.1.q1-3", "--quiet", "--jobs", 1)
    case, own, _ = both("beyond.1.q1-3")
    nowhere = Interval(math.nan, math.nan, math.nan)
    shift = paired.Shift(0, "rounds", Interval(1.0, 0.5, 1.5), nowhere, nowhere, nowhere, True, (3, 10))
    (first,) = survey.effects(case, own, Path("results"))
    effect = dataclasses.replace(first, shifts=(shift, dataclasses.replace(shift, decides=Interval(-1.0, -2.0, 0.5))))
    kept_effects.write(case, Path("results"), "key", [effect])
    (read,) = kept_effects.read(case, Path("results"), "key") or []
    assert [shift.words for shift in read.shifts] == [shift.words for shift in effect.shifts]
    assert ["another round decides" in shift.words for shift in read.shifts] == [False, True]


def test_a_damaged_set_is_not_hidden_by_its_kept_effects(computed: Path, fedrepro: Call) -> None:
    run(fedrepro, "run", "--only", "beyond.1.q1-3", "--quiet", "--jobs", 1)
    case, own, _ = both("beyond.1.q1-3")
    survey.effects(case, own, Path("results"))
    table = results_file(kept_results.base(Path("results"), case))
    assert table is not None
    table.write_bytes(lzma.compress(lzma.decompress(table.read_bytes()).replace(b",ok,", b",ok ,")))
    with pytest.raises(UserError, match=r"changed since it was written"):
        survey.effects(case, own, Path("results"))


def test_fewer_trials_are_compared_with_the_same_trials(computed: Path, fedrepro: Call) -> None:
    run(fedrepro, "run", "--only", "beyond.1.q1-3", "--quiet", "--jobs", 1)
    case, own, other = both("beyond.1.q1-3")
    effect = paired.effect(case.claims[0], own, other.over([2]))
    assert effect.trials == 1
    alone = own.over([2])
    row = judge.judge(case.claims[0], alone.figure, alone.frame, alone.sidecar, alone.known)
    assert effect.before == paired.Verdict(row.verdict, row.level)
    assert effect.shifts[0].before == row.margins[0].rounded()


def test_a_sidecar_can_be_compressed(computed: Path) -> None:
    path = Path("results/quick/beyond/small.json")
    before = read_sidecar(path.with_suffix(""))
    path.with_name("small.json.xz").write_bytes(lzma.compress(path.read_bytes()))
    path.unlink()
    assert read_sidecar(path.with_suffix("")) == before


def test_check_covers_what_is_kept(computed: Path, fedrepro: Call) -> None:
    run(fedrepro, "run", "--only", "beyond.1.q1-3", "--quiet", "--jobs", 1)
    words = ("check", "--tier", "quick", "--seconds", "20", "--seed", "1", "--results", computed / "results")
    same = fedrepro(*words)
    assert same.exit_code == 0, same.output
    assert "beyond/small.settings/beyond.1.q1-3: same bits in 4 of 4 runs, each to its last round" in same.output
    table = computed / "results" / "quick" / "beyond" / "small.settings" / "beyond.1.q1-3.csv.xz"
    text = lzma.decompress(table.read_bytes()).decode()
    row = text.splitlines()[4]
    edited = text.replace(row, row.rpartition(",")[0] + ",0.25").encode()
    table.write_bytes(lzma.compress(edited))
    sidecar = table.with_name("beyond.1.q1-3.json.xz")
    facts = json.loads(lzma.decompress(sidecar.read_bytes())) | {"csv_sha256": hashlib.sha256(edited).hexdigest()}
    sidecar.write_bytes(lzma.compress(json.dumps(facts).encode()))
    other = fedrepro(*words)
    assert other.exit_code == 1
    assert "beyond/small.settings/beyond.1.q1-3: different in 1 of 4 runs compared" in other.output


def test_cases_are_found_again_by_name(project: Path) -> None:
    figure, rows = the_figure(), the_rows()
    listed = [*cases.singles(figure, rows), *cases.together(figure, rows)]
    listed += cases.pairs(figure, [case.alternatives[0] for case in cases.singles(figure, rows)])
    assert cases.named(figure, rows, [*(case.name for case in listed), "gone", "a+b"]) == listed


# What decides ---------------------------------------------------------------------------------------------------------


def tried(
    name: str, verdict: str, *origins: str, before: str = "reproduced", change: tuple[float, float] | None = None
) -> deciding.Tried:
    parts = name.split("+")
    alternatives = tuple(Alternative(part, origin, ()) for part, origin in zip(parts, origins, strict=True))
    figure = the_figure()
    row = dataclasses.replace(judge.untested(figure.claims[0], figure, ""), verdict=verdict)
    own = dataclasses.replace(row, verdict=before)
    margin = Interval(0.0, -1.0, 1.0)
    shifts = []
    if change is not None:
        changes = Interval(sum(change) / 2, *change)
        shifts.append(paired.Shift(0, "", margin, margin, changes, decides=margin, strict=False))
    effect = paired.Effect(row.claim, own, row, 2, tuple(shifts))
    return deciding.Tried(Case(name, alternatives, figure, figure, ()), effect)


def decided(verdict: str, *cases_tried: deciding.Tried, untried: int = 0) -> str:
    figure = the_figure()
    row = dataclasses.replace(judge.untested(figure.claims[0], figure, ""), verdict=verdict)
    return deciding.deciding(row, cases_tried, the_rows(), untried).words


def test_all_printed_values_are_called_so(project: Path) -> None:
    one = dataclasses.replace(tried("a+b", "not reproduced", "printed", "printed").case, name="beyond.printed")
    assert deciding._named(deciding.Tried(one, None)) == "all printed values (beyond.printed)"  # type: ignore[arg-type]


def test_only_values_of_curves_that_the_claim_reads_are_named() -> None:
    figure = load(ROOT / "experiments/fedmf/fig2.yaml", "paper")
    rows = discrepancies.load_all(ROOT / "experiments")
    (case,) = cases.named(figure, rows, ["fedmf.1.printed-steps"])  # changes steps of FedMGS too
    (claim,) = [claim for claim in figure.claims if claim.id == "fedmf.2a.noniid"]
    row = judge.untested(claim, figure, "")
    one = deciding.Tried(case, paired.Effect(claim, row, row, 2, ()))
    assert deciding._named(one) == "gamma1 = 1 (printed, fedmf.1.printed-steps)"


def test_what_decides_a_verdict_is_said_in_words(project: Path) -> None:
    printed = tried("beyond.1.q1-3", "not reproduced", "printed")
    released = tried("beyond.2.outliers", "not reproduced", "released")
    same = tried("beyond.3.q2-9", "reproduced", "ours")
    noise = tried("beyond.3.q2-9", "within noise", "ours")
    assert decided("reproduced") == "no setting that the paper leaves open concerns it"
    assert decided("reproduced", untried=1) == "the other setting has not been run"
    assert decided("reproduced", untried=2) == "none of 2 other settings has been run"
    assert decided("reproduced", same) == "in every setting tried (1)"
    assert decided("within noise", noise) == "no setting tried decides it (1)"
    assert decided("not tested", noise) == "not tested with our values; is within noise with (ours, beyond.3.q2-9)"
    assert decided("not reproduced", printed, noise) == (
        "no setting tried turns it (2); within noise with (ours, beyond.3.q2-9)"
    )
    turned = tried("beyond.3.q2-9", "within noise", "ours", before="reproduced")
    assert decided("reproduced", turned) == "no setting tried turns it (1); within noise with (ours, beyond.3.q2-9)"
    assert decided("reproduced", printed, same) == "turns: fails with (printed, beyond.1.q1-3) (of 2 tried)"
    assert decided("reproduced", released) == (
        "turns: only with the figure's own value; fails with (released, beyond.2.outliers) (of 1 tried); "
        "under-specified: the paper does not print outliers"
    )
    lower = tried("beyond.1.q1-3", "not reproduced", "printed", before="within noise", change=(-3.0, -1.0))
    higher = tried("beyond.3.q2-9", "reproduced", "ours", before="within noise", change=(1.0, 3.0))
    assert decided("within noise", lower, higher) == (
        "turns: holds with (ours, beyond.3.q2-9); fails with (printed, beyond.1.q1-3) (of 2 tried)"
    )


def test_a_setting_of_which_the_paper_prints_a_value_is_not_left_open() -> None:
    rows = discrepancies.load_all(EXPERIMENTS)
    left = {a.id: row.leaves_open(a) for row in rows for a in row.alternatives}
    assert [left[f"fedc.1.{name}"] for name in ("gamma2-2", "printed-step")] == [False, False]
    assert [left[f"fedmf.16.{name}"] for name in ("qhat-10-tdt2", "qhat-1-syn")] == [True, False]
    of_other_methods = [left[f"gcca.11.{name}"] for name in ("centred-data", "centred-estimates")]
    assert of_other_methods == [True, False]


def test_a_set_that_makes_a_claim_compare_a_curve_with_itself_leaves_it_out() -> None:
    figure, rows = load(EXPERIMENTS / "beyond/compressors.yaml", "paper"), discrepancies.load_all(EXPERIMENTS)
    (case,) = cases.named(figure, rows, ["gcca.28.divided"])
    (scaled,) = (claim for claim in figure.claims if claim.id == "beyond.compressors.bound")
    assert {curve.setting.params["u"] for curve in judge.curves(scaled, figure)} == {1.0, "bound"}
    assert {curve.setting.params["u"] for curve in judge.curves(scaled, case.changed)} == {"bound"}
    assert [claim.id for claim in case.claims] == ["beyond.compressors.topk"]


def test_what_decides_a_promise_says_that_its_conditions_are_not_met(project: Path) -> None:
    claim = dataclasses.replace(the_figure().claims[0], outside="gamma2 is too small")
    row = judge.untested(claim, the_figure(), "")
    words = deciding.Deciding(row, (), untried=2).words
    assert words == "none of 2 other settings has been run; outside the theorem's conditions: gamma2 is too small"


def test_sets_with_the_same_readings_are_named_together_or_counted(project: Path) -> None:
    def with_readings(name: str, *outcomes: str) -> deciding.Tried:
        one = tried(name, "reproduced", "ours")
        answers = [
            classes.Answer(Reading({"level": (k + 1) / 100}, ()), outcome, Interval(0.0, -1.0, 1.0), "")
            for k, outcome in enumerate(outcomes)
        ]
        return dataclasses.replace(one, effect=dataclasses.replace(one.effect, readings=classes.classify(answers)))

    alike = [with_readings(f"beyond.3.q2-{k}", "fails", "fails") for k in range(deciding.MOST_NAMES)]
    other = with_readings("beyond.1.q1-3", "holds", "fails")
    unknown = tried("beyond.2.outliers", "reproduced", "released")
    figure = the_figure()
    row = judge.untested(figure.claims[0], figure, "")
    names = ", ".join(one.case.name for one in alike)
    assert deciding.deciding(row, [other, unknown, *alike], ()).readings == [
        (names, "2 fail"), ("beyond.1.q1-3", "1 hold, 1 fail"),
    ]  # fmt: skip
    more = [*alike, with_readings("beyond.3.q2-9", "fails", "fails")]
    assert deciding.deciding(row, more, ()).readings == [(f"{len(more)} sets of other values", "2 fail")]


def test_what_too_few_trials_leave_open_is_no_effect_of_a_setting(project: Path) -> None:
    noise = tried("beyond.3.q2-9", "within noise", "ours", before="within noise")
    alone = "no setting tried turns it (1); too few trials to decide with it, as with our values"
    assert decided("reproduced", noise) == decided("not reproduced", noise) == alone
    holds = tried("beyond.1.q1-3", "reproduced", "printed")
    assert decided("reproduced", noise, holds) == alone.replace("(1)", "(2)").replace("with it", "with 1 of them")
    assert decided("reproduced", noise, noise).endswith(
        "; too few trials to decide with all of them, as with our values"
    )
    assert decided("within noise", noise) == "no setting tried decides it (1)"


def test_a_verdict_turns_only_against_the_same_trials_with_our_values(project: Path) -> None:
    few = tried("beyond.1.q1-3", "reproduced", "printed", before="reproduced")  # many trials fail, these few hold
    assert decided("not reproduced", few) == "no setting tried turns it (1)"
    turned = tried("beyond.1.q1-3", "reproduced", "printed", before="not reproduced")
    assert decided("not reproduced", turned) == "turns: holds with (printed, beyond.1.q1-3) (of 1 tried)"


def test_what_the_trials_leave_open_is_decided_only_by_a_change_that_excludes_zero(project: Path) -> None:
    for before, change, turns in (
        ("not reproduced", (-1.0, 3.0), False),
        ("not reproduced", (1.0, 3.0), True),
        ("not reproduced", None, True),
        ("within noise", (1.0, 3.0), True),
        ("within noise", (-1.0, 3.0), False),
        ("within noise", None, False),
    ):
        case = tried("beyond.1.q1-3", "reproduced", "printed", before=before, change=change)
        words = decided("within noise", case)
        assert words.startswith("turns" if turns else "no setting tried decides it with certainty (1)")
        assert words.endswith("; holds with (printed, beyond.1.q1-3), but the change is within noise") == (not turns)


def test_a_set_with_fewer_trials_than_the_claim_asks_for_gives_weaker_words(project: Path) -> None:
    case, effect = (of := tried("beyond.1.q1-3", "reproduced", "printed")).case, of.effect
    assert deciding.called("reproduced", case, effect) == "reproduced"
    more = dict.fromkeys((c.setting.series for c in judge.curves(effect.claim, case.figure)), effect.trials + 1)
    asked = dataclasses.replace(case, figure=dataclasses.replace(case.figure, trials=effect.trials, more=more))
    words = {"reproduced": "holds", "not reproduced": "fails", "within noise": "undecided", "not tested": "not tested"}
    assert {verdict: deciding.called(verdict, asked, effect) for verdict in words} == words


def test_settings_that_decide_what_our_values_cannot_test_are_listed_with_their_margin(project: Path) -> None:
    kept = tried("beyond.1.q1-3", "reproduced", "printed", before="not tested", change=(1.0, 3.0))
    margin = Interval(0.5, 0.25, 0.75)
    shift = dataclasses.replace(kept.effect.shifts[0], decides=margin, unit="rounds")
    kept = dataclasses.replace(kept, effect=dataclasses.replace(kept.effect, shifts=(shift,)))
    open_one = tried("beyond.3.q2-9", "within noise", "ours", before="not tested", change=(-3.0, 3.0))
    row = judge.untested(the_figure().claims[0], the_figure(), "")
    one = deciding.deciding(row, [kept, open_one], the_rows())
    assert one.words == (
        "not tested with our values; holds with (printed, beyond.1.q1-3); is within noise with (ours, beyond.3.q2-9)"
    )
    assert one.evidence == (
        "with other values: (printed, beyond.1.q1-3): reproduced, 2 trials; margin 0.5 rounds [0.25, 0.75]",
    )
    assert (one.causes, one.uncertain) == ((), [])


def test_what_decides_by_an_uncertain_change_is_named_and_is_no_cause(project: Path) -> None:
    kept = tried("beyond.1.q1-3", "reproduced", "printed", before="within noise", change=(-1.0, 3.0))
    sure = tried("beyond.3.q2-9", "not reproduced", "ours", before="within noise", change=(-3.0, -1.0))
    row = dataclasses.replace(judge.untested(the_figure().claims[0], the_figure(), ""), verdict="within noise")
    one = deciding.deciding(row, [kept, sure], the_rows())
    assert one.words == (
        "turns: fails with (ours, beyond.3.q2-9) (of 2 tried); "
        "holds with (printed, beyond.1.q1-3), but the change is within noise"
    )
    assert one.evidence == (
        "cause: (ours, beyond.3.q2-9): not reproduced, 2 trials; margin 0 -> 0, change -2 [-3, -1]",
        "uncertain: (printed, beyond.1.q1-3): reproduced, 2 trials; margin 0 -> 0, change +1 [-1, +3]",
    )
    alone = dataclasses.replace(kept, effect=dataclasses.replace(kept.effect, trials=1))
    assert not deciding.deciding(row, [alone], the_rows()).uncertain  # one trial has no interval
    assert not deciding.deciding(dataclasses.replace(row, verdict="reproduced"), [kept], the_rows()).uncertain
    turned = tried("beyond.1.q1-3", "not reproduced", "printed", before="reproduced", change=(-3.0, 1.0))
    other = deciding.deciding(dataclasses.replace(row, verdict="reproduced"), [turned], the_rows())
    assert other.words.startswith("no setting tried turns it with certainty (1); fails with ")
    assert not other.causes


def test_one_trial_of_several_gives_a_hint_and_no_cause(project: Path) -> None:
    def in_one_trial(one: deciding.Tried) -> deciding.Tried:
        return dataclasses.replace(one, effect=dataclasses.replace(one.effect, trials=1))

    hint = in_one_trial(tried("beyond.1.q1-3", "not reproduced", "printed", change=(-2.0, -2.0)))
    same = tried("beyond.3.q2-9", "reproduced", "ours")
    alone = "in the one trial run so far it fails with (printed, beyond.1.q1-3)"
    assert decided("reproduced", hint) == alone
    assert decided("reproduced", hint, same) == f"in every setting tried in several trials (1); {alone}"
    assert decided("reproduced", in_one_trial(same)) == "in every setting tried (1, in one trial)"
    other = tried("beyond.2.outliers", "not reproduced", "printed")
    assert decided("reproduced", hint, other, same) == (
        "turns: fails with (printed, beyond.2.outliers) (of 3 tried); "
        f"under-specified: the paper does not print outliers; {alone}"
    )
    figure = the_figure()
    row = dataclasses.replace(judge.untested(figure.claims[0], figure, ""), verdict="reproduced")
    one = deciding.deciding(row, [hint], the_rows())
    assert (one.causes, one.topics) == ((), ())
    (text,) = one.in_one_trial
    assert text == "(printed, beyond.1.q1-3): fails, 1 trial; margin 0 -> 0, change -2"


def test_the_only_trial_of_a_figure_turns_a_verdict(project: Path) -> None:
    one = tried("beyond.1.q1-3", "not reproduced", "printed")
    figure = dataclasses.replace(one.case.figure, trials=1)
    alone = deciding.Tried(dataclasses.replace(one.case, figure=figure), dataclasses.replace(one.effect, trials=1))
    assert decided("reproduced", alone).startswith("turns: only with the figure's own value; fails with")


def test_what_few_trials_leave_open_turns_against_the_verdict_of_all(project: Path) -> None:
    few = tried("beyond.1.q1-3", "not reproduced", "printed", before="undecided", change=(-14.7, -1.05))
    alone = "turns: only with the figure's own value; fails with (printed, beyond.1.q1-3) (of 1 tried)"
    assert decided("reproduced", few) == alone
    assert decided("not reproduced", few) == "no setting tried turns it (1)"
    unclear = tried("beyond.1.q1-3", "not reproduced", "printed", before="undecided", change=(-14.7, 1.05))
    for verdict, turns in (("within noise", "decides"), ("reproduced", "turns")):
        assert decided(verdict, unclear) == (
            f"no setting tried {turns} it with certainty (1); "
            "fails with (printed, beyond.1.q1-3), but the change is within noise"
        )


def test_an_infinite_margin_changes_when_it_becomes_finite_or_turns() -> None:
    finite, never, always = Interval(1.0, 0.5, 1.5), Interval(*[-math.inf] * 3), Interval(*[math.inf] * 3)
    unknown = Interval(*[math.nan] * 3)
    for before, after, certain in (
        (never, never, False), (never, finite, True), (never, always, True), (unknown, unknown, False),
        (unknown, finite, False),
    ):  # fmt: skip
        assert paired.Shift(0, "", before, after, unknown, after, False).certain is certain


def test_a_pair_decides_only_what_neither_part_decides_alone(project: Path) -> None:
    alone = tried("beyond.1.q1-3", "not reproduced", "printed")
    pair = tried("beyond.1.q1-3+beyond.3.q2-9", "not reproduced", "printed", "ours")
    assert decided("reproduced", alone, pair) == (
        "turns: only with the figure's own value; fails with (printed, beyond.1.q1-3) (of 2 tried)"
    )
    assert "fails with (printed and ours, beyond.1.q1-3+beyond.3.q2-9) (of 1 tried)" in decided("reproduced", pair)


def test_a_cause_has_the_values_and_the_change_of_the_margin_with_its_interval(computed: Path, fedrepro: Call) -> None:
    run(fedrepro, "run", "--only", "beyond.1.q1-3", "--quiet", "--jobs", 1)
    own, listed = next(
        iter(survey.computed([Path("experiments/beyond/small.yaml")], the_rows(), "quick", computed / "results", ""))
    )
    (one,) = survey.decided([(own, listed)], the_rows(), computed / "results")
    (case,) = one.tried
    verdicts = {"before": "fails", "after": "holds"}
    rows = {name: dataclasses.replace(getattr(case.effect, name), verdict=word) for name, word in verdicts.items()}
    moved = [dataclasses.replace(shift, change=Interval(1.0, 0.5, 1.5)) for shift in case.effect.shifts]
    turned = deciding.Tried(case.case, dataclasses.replace(case.effect, **rows, shifts=tuple(moved)))
    failed = dataclasses.replace(one, row=dataclasses.replace(one.row, verdict="fails"), tried=(turned,))
    (cause,) = failed.causes
    assert cause.startswith("Q1 = 3 (printed, beyond.1.q1-3): ")
    assert turned.effect.shift is not None
    assert cause.endswith(turned.effect.shift.words)


def test_claims_are_listed_with_what_decides_them(computed: Path, fedrepro: Call) -> None:
    run(fedrepro, "run", "--only", "beyond.1", "--quiet", "--jobs", 1)
    line = run(fedrepro, "claims").splitlines()[0]
    assert line.split()[1 if line.split()[0] != "within" else 2] == "small.1"
    (facts,) = json.loads(run(fedrepro, "claims", "--json"))
    assert facts["tried"] == ["beyond.1.q1-3", "beyond.1.q1-4"]
    assert facts["words"] in line
    assert [one["claim"] for one in json.loads(run(fedrepro, "claims", "small.1", "--json"))] == ["small.1"]
    figure = Path("experiments/beyond/small.yaml")
    check = json.dumps(the_figure().claims[0].check)
    second = f"  - id: small.9\n    says: the same\n    where: nowhere\n    panel: a\n    check: {check}\n"
    figure.write_text(figure.read_text().replace("claims:\n", f"claims:\n{second}", 1))
    asked = [json.loads(run(fedrepro, "claims", *name, "--json")) for name in ((), ("small.9",))]
    assert [[one["claim"] for one in found] for found in asked] == [["small.9", "small.1"], ["small.9"]]


def test_the_report_lists_other_settings_on_the_page_of_a_claim(computed: Path, fedrepro: Call) -> None:
    run(fedrepro, "run", "--only", "beyond.1", "--quiet", "--jobs", 1)
    assert fedrepro("report", "--tier", "quick", "--results", computed / "results", "--out", "out").exit_code == 0
    claim, summary = (Path("out/report", name).read_text() for name in ("claims/small.1.html", "settings.html"))
    assert "With other settings" in claim
    assert "fedcavg with Q1 = 3" in claim
    (table,) = re.findall(r'<table class="others stacked">.*?</table>', claim, re.S)  # narrow screens show labels
    assert table.count("<td") == table.count('<td data-label="') == 2 * 4
    assert "What decides the verdicts of our own studies" in summary
    (page,) = Path("out/report/settings").iterdir()
    paper = page.read_text()
    assert 'href="../claims/small.1.html#settings"' in paper


def test_settings_that_were_not_run_are_counted_where_a_claim_is_explained(computed: Path, fedrepro: Call) -> None:
    concerned = [case for case in cases.singles(the_figure(), the_rows()) if "small.1" in [c.id for c in case.claims]]
    words = f"none of {len(concerned)} other settings has been run"
    assert len(concerned) > 1
    assert f"settings: {words}\n" in fedrepro("why", "small.1", "--results", computed / "results").output
    assert words in run(fedrepro, "claims")
    nothing = fedrepro("settings", "claims", "--only", "beyond.1", "--tier", "quick")  # what is left out is unknown
    assert nothing.exit_code == 2
    assert "error: no results of other settings (beyond.1) at the quick tier in " in nothing.stderr
    for command in ("claims", "show", "plan", "values"):  # before anything is read
        wrong = fedrepro("settings", command, "--only", "q1", "--tier", "quick")
        assert (wrong.exit_code, wrong.stderr) == (
            2, "error: --only q1: there is no such setting (`fedrepro settings plan`)\n",
        )  # fmt: skip
    assert fedrepro("report", "--tier", "quick", "--results", computed / "results", "--out", "out").exit_code == 0
    claim = Path("out/report/claims/small.1.html").read_text()
    assert f"{words[0].upper()}{words[1:]}." in claim
    assert "fedrepro settings plan beyond/small" in claim


def test_readings_are_judged_under_other_settings(computed: Path, fedrepro: Call) -> None:
    run(fedrepro, "run", "--only", "beyond.1.q1-3", "--quiet", "--jobs", 1)
    (facts,) = json.loads(run(fedrepro, "show", "--readings", "--json"))
    assert sum(facts["readings"].values()) == 1
    assert "readings" not in run(fedrepro, "show", "--readings")


def test_every_verdict_on_results_has_an_outcome() -> None:
    assert {*VERDICTS} - {NOT_TESTED} == set(deciding.OUTCOME)


def test_the_shift_shown_is_that_of_the_comparison_that_failed(project: Path) -> None:
    """Of two comparisons the first fails now and holds after; the second holds by less, before and after."""
    figure = the_figure()
    row = judge.untested(figure.claims[0], figure, "")
    failing, holding, close = Interval(-1.0, -1.5, -0.5), Interval(2.0, 1.5, 2.5), Interval(0.2, 0.1, 0.3)
    both = tuple(
        paired.Shift(number, "", before, after, Interval(after.value - before.value, -4.0, 4.0), after, strict=False)
        for number, (before, after) in enumerate([(failing, holding), (close, close)])
    )
    for before, after, number in (("not reproduced", "reproduced", 0), ("reproduced", "reproduced", 0)):
        own, other = (dataclasses.replace(row, verdict=verdict) for verdict in (before, after))
        shown = paired.Effect(row.claim, own, other, 2, both).shift
        assert shown is not None
        assert shown.comparison == number
    turned = paired.Effect(row.claim, dataclasses.replace(row, verdict="reproduced"), row, 2, both[::-1])
    assert turned.shift == both[0]


def test_a_margin_that_is_infinite_has_no_change() -> None:
    never, some = (Interval(value, value, value) for value in (-np.inf, 12.0))
    unknown = Interval(np.nan, np.nan, np.nan)
    same = paired.Shift(0, "rounds", never, never, unknown, never, strict=True)
    assert same.words == "margin -infinite (never reached), before and after"
    lost = paired.Shift(0, "rounds", some, never, never, never, strict=True)
    assert lost.words == "margin 12 rounds -> -infinite (never reached)"
    late = paired.Shift(0, "rounds", some, unknown, unknown, unknown, strict=True)
    assert late.words.startswith("margin 12 rounds -> open (not reached before the run ends)")


def test_where_a_margin_is_infinite_the_trials_that_turn_are_counted() -> None:
    margins = {"own": [[3.0, 5.0], [1.0, 2.0], [-1.0, 4.0], [2.0, np.nan]], "other": [[-np.inf, 1.0]] * 4}
    readers: list[Any] = [SimpleNamespace(trials=4, values=np.array(values)) for values in margins.values()]
    comparison: Any = SimpleNamespace(margin=lambda reader: reader.values[reader.chosen].mean(axis=0))
    assert paired._turned(comparison, *readers, falls=True) == 2  # the third fails before, and the fourth is open
    assert paired._turned(comparison, *readers[::-1], falls=False) == 2
    assert paired._turned(comparison, *readers, falls=False) == 0
    some, never = (Interval(value, value, value) for value in (12.0, -np.inf))
    lost = paired.Shift(0, "rounds", some, never, never, never, strict=True, turned=(9, 10))
    assert lost.words == "margin 12 rounds -> -infinite (never reached); 9 of 10 trials turn [55 %, 100 %]"
    assert dataclasses.replace(lost, turned=(1, 1)).words.endswith("; the only trial turns")  # one has no interval


@pytest.mark.parametrize(("turned", "trials"), [(0, 3), (3, 3), (9, 10), (1, 76)])
def test_the_interval_of_a_share_is_exact(turned: int, trials: int) -> None:
    exact = scipy.stats.binomtest(turned, trials).proportion_ci(0.95, "exact")
    assert intervals.of_share(turned, trials) == pytest.approx((exact.low, exact.high), abs=1e-12)


@pytest.mark.parametrize(
    "folder",
    sorted((ROOT / "results" / "paper").glob("*/*.settings")),
    ids=lambda path: f"{path.parent.name}-{path.stem}",
)
def test_what_is_found_in_every_set_is_in_the_repository(folder: Path) -> None:
    """Otherwise the first command that judges the figure changes the working tree of whoever types it."""
    for table in folder.glob("*.csv.xz"):
        base = table.with_name(table.name.removesuffix(".csv.xz"))
        missing = [kind for kind in ("effects", "readings") if not kept_answers.read(base, kind)]
        assert not missing, f"run `fedrepro settings show {folder.parent.name}/{folder.stem} --readings` ({base.name})"
