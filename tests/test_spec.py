"""Specs: what they expand to, and the errors, whose texts are part of the interface."""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import re
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from fedrepro import registry
from fedrepro.errors import UserError
from fedrepro.results import receipts
from fedrepro.results.read import SET_FOLDER
from fedrepro.spec import find, nodes
from fedrepro.spec.find import specs
from fedrepro.spec.model import Setting
from fedrepro.spec.nodes import SpecErrors
from fedrepro.spec.read import load
from fedrepro.spec.tiers import TIERS

from . import project_specs
from .conftest import ROOT

Call = Callable[..., Result]
SPECS = specs(ROOT / "experiments")


def errors_of(path: Path, text: str, *sets: str, tier: str = "quick") -> list[str]:
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SpecErrors) as caught:
        load(path, tier, sets)
    return [message.replace(f"{path}:", "") for message in caught.value.messages]


@pytest.mark.parametrize("tier", ["smoke", "quick", "paper"])
@pytest.mark.parametrize("spec", SPECS, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_every_spec_of_the_project_is_valid(spec: Path, tier: str) -> None:
    figure = project_specs.figure(spec, tier)
    assert (figure.paper, figure.figure) == (spec.parent.name, spec.stem)
    assert figure.claims or figure.paper == "beyond"
    assert figure.source
    series: dict[str, object] = {}
    for panel in figure.panels:
        assert len({c.label for c in panel.curves}) == len(panel.curves), f"equal labels in panel {panel.id}"
        for curve in panel.curves:
            assert series.setdefault(curve.setting.series, curve.setting) == curve.setting


def test_an_empty_list_of_metrics_leaves_out_what_only_other_panels_draw(small: Path) -> None:
    text = small.read_text().replace("\n  b:", "\n  c: {y: purity, curves: [{algorithm: fedcgds, m: 3, Q1: 3}]}\n  b:")

    def recorded(text: str) -> dict[str, tuple[str, ...]]:
        small.write_text(text)
        return {panel.id: panel.curves[0].setting.metrics for panel in load(small, "quick").panels}

    both = ("objective", "purity")
    assert recorded(text) == {"a": both, "c": both, "b": both}
    alone = text.replace("yscale: log", "metrics: []")
    assert recorded(alone) == {"a": ("objective",), "c": both, "b": ("objective",)}
    same_runs = alone.replace("c: {y: purity, curves: [{algorithm: fedcgds, m: 3, Q1: 3}]}", "c: {like: a, y: purity}")
    assert errors_of(small, same_runs) == [
        "15:5: panel 'c' draws 'purity' of curves for which panel 'a' does not record it; remove `metrics: []` from "
        "panel 'a'  (in: title: \"left\")"
    ]
    (on_the_x_axis,) = errors_of(small, same_runs.replace("c: {like: a, y: purity}", "c: {like: a, x: purity}"))
    assert "panel 'c' draws 'purity' of curves" in on_the_x_axis


def test_lists_are_crossed_and_zipped_lists_run_in_step(small: Path) -> None:
    figure = load(small, "quick")
    left = figure.panels[0]
    assert [c.label for c in left.curves] == ["FedCAvg Q2=1", "FedCAvg Q2=5", "FedCGds m=2 Q1=3", "FedCGds m=6 Q1=2"]
    assert [s.series for s in figure.settings()] == [c.setting.series for c in left.curves]
    assert figure.panels[1].x == "uplink_scalars"


def test_tiers_override_and_options_override_them(small: Path) -> None:
    assert load(small, "smoke").panels[0].curves[0].setting.rounds == 2
    assert load(small, "quick").panels[0].curves[0].setting.rounds == 5
    figure = load(small, "paper", ["trials=2", "datasets.syn={N: 70, M: 9}"])
    assert (figure.trials, figure.wanted_trials) == (2, 3)
    assert dict(figure.panels[0].curves[0].setting.dataset_params)["N"] == 70
    assert dict(figure.panels[0].curves[0].setting.dataset_params)["K"] == 3


def test_a_curve_s_own_rounds_come_before_its_panel_s_and_the_spec_s(small: Path) -> None:
    left, right = load(small, "quick", ["panels.a.rounds=4", "panels.a.curves.0.rounds=3", "panels.b.rounds=6"]).panels
    assert [c.setting.rounds for c in left.curves] == [3, 3, 4, 4]
    assert [c.setting.rounds for c in right.curves] == [3, 3, 6, 6]
    assert {c.setting.rounds for c in load(small, "quick").panels[0].curves} == {5}


def test_all_errors_at_once_with_place_text_and_nearest_name(small: Path) -> None:
    text = small.read_text()
    text = text.replace("rounds: 5", "rounds: ten").replace("yscale: log", "yscal: log")
    text = text.replace("algorithm: fedcavg, Q1: 2", "algorithm: fedcavg, Q1: 0").replace(
        "name: uniform", "name: unifrom"
    )
    assert errors_of(small, text) == [
        "6:9: rounds must be an integer from 0 to 10,000,000, not 'ten'  (in: rounds: ten)",
        "10:15: 'unifrom' is not a partition, did you mean 'uniform'? (valid: "
        + ", ".join(registry.partitions())
        + ")  (in: unf: {name: unifrom, P: 6})",
        "16:5: 'yscal' is not a key of a panel, did you mean 'yscale'? (valid: title, kind, x, y, xscale, yscale, "
        "xlim, ylim, like, dataset, partition, problem, rounds, record_every, metrics, artifacts, curves, published, "
        "options)  (in: yscal: log)",
        "18:34: 'fedcavg': Q1 must be an integer of at least 1, not 0  (in: - {algorithm: fedcavg, Q1: 0, Q2: [1, 5]})",
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("m: [2, 6]", "m: [2, 7]", "19:43: 'fedcgds': m must be at most the number of clients P = 6, not 7"),
        ("P: 6", "P: 61", "10:27: the partition 'uniform': P must be at most the number of samples N = 60, not 61"),
        ("P: 6", "P: 0", "10:27: the partition 'uniform': P must be an integer of at least 1, not 0"),
        ("Q1: [3, 2]", "Q1: [3]",
         "19:35: zip must hold lists of one length, for instance zip: {m: [10, 100], Q1: [100, 10]}"
         " (lengths: m 2, Q1 1)"),
        ("Q2: [1, 5]", "Q2: []", "'Q2' is an empty list; give at least one value"),
        ("m: [2, 6], Q1: [3, 2]", "m: [], Q1: []", "'m' is an empty list; give at least one value"),
        ("Q1: [3, 2]", "q1: [3, 2]", "19:47: 'q1' is not a key of zip in a curve of 'fedcgds', did you mean 'Q1'?"),
        ("Q1: [3, 2]", "label: [x, y]",
         "'label' is not a key of zip in a curve of 'fedcgds' (valid: dataset, partition, problem, rounds, m, Q1, Q2"),
        ("like: a", "like: q", "20:13: like: panel 'q' does not exist"),
        ("yscale: log", "y: objectve",
         "16:8: 'objectve' is not a metric of the problem 'clustering', did you mean 'objective'?"),
        ("algorithm: fedcgds", "algorithm: fedcgd", "19:21: 'fedcgd' is not an algorithm, did you mean 'fedcgds'?"),
        ("algorithm: fedcgds", "algorithm: FedCGDs", "19:21: 'FedCGDs' is not an algorithm, did you mean 'fedcgds'?"),
        ("Q2: 4", "Q5: 4", "'Q5' is not a key of a curve of 'fedcgds', did you mean 'Q2'?"),
        ("dataset: syn\n", "dataset: snn\n", "11:10: 'snn' is not a dataset, did you mean 'syn'?"),
        ("variant: clean", "variant: cleen", "8:35: the dataset 'synthetic': variant"),
        ("trials: 2", "trials: 0", "5:9: trials must be an integer from 1 to 10,000, not 0"),
        ("K: 3}", "K: 3, published: 60}", "8:73: published must be a mapping of sizes, for instance {N: 10000}"),
        ("K: 3}", "K: 3, published: {N: 0}}", "8:77: published.N must be an integer of at least 1, not 0"),
        ("K: 3}", "K: 3, published: {m: 60, N: 60}}",
         "8:74: 'm' is not a key of the published size of 'synthetic', did you mean 'M'? (valid: M, N, K)"),
        ("K: 3}", "K: 3, published: {Nn: 60}}",
         "8:74: 'Nn' is not a key of the published size of 'synthetic', did you mean 'N'?"),
        ("algorithm='fedcavg', Q2=5)", "algorithm='fedcavg')",
         "selects 2 curves ('FedCAvg Q2=1', 'FedCAvg Q2=5'); name exactly one"),
        ("algorithm='fedcavg', Q2=5)", "Q3=5)", "no curve of the panel has 'Q3', did you mean 'Q"),
        ("y(at='end', algorithm='fedcavg', Q2=5)", "yy(at=3)", "'yy' is not a function of checks"),
        ("y(at='end', algorithm='fedcavg', Q2=5)", "__import__('os')", "'__import__' is not a function of checks"),
        ("figure: small", "figure: small\nfigure: again", "the key 'figure' is written twice"),
        ("  paper: {trials: 3}", "  papr: {trials: 3}", "'papr' is not a key of tiers, did you mean 'paper'?"),
        ("problem: {name: clustering}", "problem: {name: completion}",
         "solves the problem 'clustering', not 'completion'"),
    ],
)  # fmt: skip
def test_each_error_says_where_what_and_how(small: Path, old: str, new: str, message: str) -> None:
    text = small.read_text()
    assert old in text
    found = errors_of(small, text.replace(old, new))
    assert any(message in one for one in found), found


SLUG = (
    "{what} must start with a letter or digit, continue with up to 99 letters, digits, '_', '-' and '.', and "
    "not end in .yaml, because files are named after it, not '{name}'"
)


NAMES = ["../../../escape", "a/../x<b>y", "small.yaml", ".hidden", "two words", "a\\b", "", "n" * 101]


@pytest.mark.parametrize("name", NAMES)
def test_names_of_figures_and_panels_are_names_of_files(small: Path, name: str) -> None:
    text = small.read_text()
    (error,) = errors_of(small, text.replace("figure: small", f"figure: '{name}'"))
    assert error.startswith(f"2:9: {SLUG.format(what='figure', name=name)}")
    (error,) = errors_of(small, text, f"figure={name}")
    assert error == f"--set figure={name}: {SLUG.format(what='figure', name=name)}"
    (error,) = errors_of(small, text.replace("  b: {like: a,", f"  '{name}': {{like: a,"))
    assert error.startswith(f"20:3: {SLUG.format(what='the name of a panel', name=name)}")


def test_every_value_is_read_before_errors_are_raised(small: Path) -> None:
    text = small.read_text()
    for old, new in (
        ("figure: small", "figure: 5"),
        ('title: "a small figure"', "title: 7\nsource: [x]\nnote: 3\ncolumns: -4"),
        ("trials: 2", "trials: none"),
        ("rounds: 5", "rounds: 5\nrecord_every: 0\nrecord_dense: -1\nartifacts: tsne"),
        ("    yscale: log", "    yscale: log\n    published: {y: 1}\n    options: [zoom]"),
        ("Q1: 2, Q2: [1, 5]}", "Q1: 2, Q2: [1, 5], role: lvel, label: 8, rounds: -1}"),
        ("zip: {m: [2, 6], Q1: [3, 2]}", "m: 9, gamma1: 0.5, metrics: x"),
    ):
        assert old in text
        text = text.replace(old, new)
    errors = [message.split("  (in: ")[0] for message in errors_of(small, text)]
    assert errors == [
        "2:9: figure must be text, not the number 5",
        "3:8: title must be text, not the number 7",
        "4:9: source must be text, not a list",
        "5:7: note must be text, not the number 3",
        "6:10: columns must be an integer from 1 to 100, not -4",
        "8:9: trials must be an integer from 1 to 10,000, not 'none'",
        "10:15: record_every must be an integer of at least 1, not 0",
        "11:15: record_dense must be an integer of at least 0, not -1",
        "12:12: artifacts must be a list of names",
        "23:16: published must be a list, not a mapping",
        "24:14: options must be a mapping, not a list",
        "26:55: 'lvel' is not a role, did you mean 'level'? (valid: curve, level)",
        "26:68: label must be text, not the number 8",
        "26:79: rounds must be an integer from 0 to 10,000,000, not -1",
        "27:44: 'fedcgds': gamma1 must be a number of at least 1, not 0.5",
        "27:49: 'metrics' is not a key of a curve of 'fedcgds' (valid: algorithm, dataset, partition, problem, rounds, "
        "zip, label, role, m, Q1, Q2, gamma1, gamma2)",
    ]


def test_a_method_is_checked_beside_a_metric_that_there_is_not(small: Path) -> None:
    text = small.read_text().replace("m: [2, 6]", "m: [2, 7]").replace("yscale: log", "metrics: [objektive]")
    found = " ".join(errors_of(small, text))
    assert "'objektive' is not a metric of the problem 'clustering', did you mean 'objective'?" in found
    assert "m must be at most the number of clients P = 6, not 7" in found


@pytest.mark.parametrize(
    ("new", "message"),
    [
        ("options: {zooom: 1}", "17:14: options: panel 'a' (curves) has no option 'zooom', did you mean 'zoom'?"),
        (
            "options: {average: mode}",
            "17:24: average: panel 'a': average must be one of mean, mean-sd, median, median-trials, not 'mode'",
        ),
        ("published: [{y: high}]", "17:16: published: panel 'a' (curves): y must be a number, not 'high'"),
        ("x: bits_per_variable", "15:5: variables: panel 'a' counts bits_per_variable: give options.variables > 0"),
    ],
)
def test_what_cannot_be_drawn_is_said_where_it_stands(small: Path, new: str, message: str) -> None:
    text = small.read_text().replace("    yscale: log\n", f"    yscale: log\n    {new}\n")
    found = errors_of(small, text)
    assert any(one.startswith(message) for one in found), found


@pytest.mark.parametrize("name", [*TIERS, SET_FOLDER, receipts.FOLDER, "Smoke"])
def test_a_study_cannot_have_the_name_of_a_folder_of_other_results(small: Path, name: str) -> None:
    (said,) = errors_of(small, small.read_text().replace("paper: beyond", f"paper: {name}"))
    assert said.startswith(f"1:8: paper must not be '{name}', a folder of other results; write `paper: mine`")


@pytest.mark.parametrize(
    ("key", "new", "message"),
    [
        ("problem", "", "1:1: the key 'problem' is missing"),
        ("panels", "", "1:1: the key 'panels' is missing"),
        ("panels", "panels: {}\n", "13:9: panels must be a mapping"),
    ],
)
def test_errors_that_only_follow_from_a_missing_key_are_left_out(small: Path, key: str, new: str, message: str) -> None:
    text = re.sub(rf"^{key}:.*\n(  .*\n)*", new, small.read_text(), flags=re.MULTILINE)
    (said,) = errors_of(small, text)
    assert said.startswith(message)


def test_claims_are_checked_beside_a_broken_panel_and_not_on_it(small: Path) -> None:
    text = small.read_text().replace("b: {like: a, x: uplink_scalars}", "b: {like: a, x: uplink_scalar}")
    text = text.replace(
        "tiers:",
        """\
  - {id: small.2, says: x, where: x, panel: a, check: "y(at=1, Q2=5, Q=2) < 1"}
  - {id: small.3, says: x, where: x, panel: b, check: "y(at=1, Q=2) < 1"}
  - {id: small.4, says: x, where: x, panel: a, check: "y(at=1, Q2=5) < total(axis='downlink_bits', Q2=1)"}
  - {id: small.4, says: x, where: x, panel: c, check: "y(at=1, Q2=5) < 1"}
tiers:""",
    )
    errors = [message.split("  (in: ")[0] for message in errors_of(small, text)]
    assert [message.split(", did you mean")[0] for message in errors] == [
        "20:19: 'uplink_scalar' is not an x axis",
        "27:55: no curve of the panel has 'Q'",
        "30:10: the claim id 'small.4' is used twice",
        "30:45: there is no panel 'c' (panels: a, b)",
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("algorithm: fedcavg,", "algorithm: [[fedcavg]],", "'['fedcavg']' is not an algorithm"),
        ("like: a", "like: [a]", "like: panel '['a']' does not exist"),
        ("dataset: syn\n", "dataset: [syn]\n", "name one dataset; lists are only allowed in a curve"),
        ("  unf: {name: uniform, P: 6}", "  - uniform", "partitions must be a mapping, not a list"),
        ("{name: uniform, P: 6}", "{name: [uniform], P: 6}", "is not a partition"),
        ("P: 6}", "P: 6, per_trial: often}", "the partition 'uniform': per_trial must be true or false, not 'often'"),
    ],
)
def test_values_of_another_kind_are_errors_too(small: Path, old: str, new: str, message: str) -> None:
    text = small.read_text()
    assert old in text
    found = errors_of(small, text.replace(old, new))
    assert any(message in one for one in found), found


def test_one_mistake_is_one_error(small: Path) -> None:
    text = small.read_text()
    (error,) = errors_of(small, text.replace("K: 3}", "K: 3, seeed: 1}"))
    assert "'seeed' is not a key of the dataset 'synthetic', did you mean 'seed'?" in error
    (error,) = errors_of(small, text.replace("quick: {}", "quick: {rouns: 1}"))
    assert "'rouns' is not a key of a tier, did you mean 'rounds'?" in error
    for old, new in (("K: 3}", "K: 0}"), ("{name: clustering}", "{name: clustering, K: 0}")):
        (error,) = errors_of(small, text.replace(old, new))
        assert re.search(r"K must be an integer .*, not 0  \(in: ", error)
    views = "problem: {name: gcca, K: two}\ndataset: gcca-toy\npanels: {a: {curves: [{algorithm: cutemaxvar}]}}\n"
    (error,) = errors_of(small, f"paper: beyond\nfigure: small\ntitle: t\ntrials: 1\nrounds: 1\n{views}")
    assert "K must be an integer of at least 1, not 'two'" in error


@pytest.mark.parametrize(
    ("check", "message"),
    [
        ("y(at=9999, Q2=5) < 1", "round 9999 of y(at=9999, Q2=5) is after the last round of every tier"),
        ("y(at=[1, 6], Q2=5) < 1", "round 6 of y(at=[1, 6], Q2=5) is after"),
        ("lowest(since=6, Q2=5) < y(at=1, Q2=1)", "round 6 of lowest(since=6, Q2=5) is after"),
        ("slope(until=6, Q2=5) < 0", "round 6 of slope(until=6, Q2=5) is after"),
        ("y(at=5, Q2=5) < 1", ""),
        ("y(cost=9999, Q2=5) < 1", ""),
        ("reach(0.1, Q2=5) < 9999", ""),
        ("y(when=9999, Q2=5) < 1", ""),
    ],
)
def test_a_check_of_a_round_that_no_tier_has_is_an_error(small: Path, fedrepro: Call, check: str, message: str) -> None:
    small.write_text(re.sub("check: .*", f"check: {check}", small.read_text()))
    told = fedrepro("validate", small)
    if not message:
        assert told.exit_code == 0, told.output
        return
    assert told.exit_code == 2
    assert f"error: 1 error:\n  {small}:26:12: {message}" in told.stderr, told.stderr
    assert "every tier (smoke 2, quick 5, paper 5); read an earlier one or raise rounds  (in: check: " in told.stderr
    small.write_text(small.read_text().replace("paper: {trials: 3}", "paper: {rounds: 10000}"))
    assert fedrepro("validate", small).exit_code == 0, "a round of the paper tier"
    assert fedrepro("validate", small, "--set", "rounds=3").exit_code == 0


def test_hundreds_of_open_brackets_in_a_check_are_one_error(small: Path) -> None:
    inner = "worse(fedmavg(partition='case2m'), than=fedmavg(m=same, " + "[" * 381
    for key in ("check", "or_read", "earlier"):
        (error,) = errors_of(
            small,
            f'{small.read_text().split("    check:")[0]}    {key}: "{inner}"\n'
            + ("" if key == "check" else "    check: y(at='end', Q2=5) < 1\n")
            + "tiers: {smoke: {rounds: 2}, quick: {}, paper: {trials: 3}}\n",
        )
        assert "the check has more than 60 nested expressions" in error


def test_a_partition_divides_data_of_its_kind(small: Path) -> None:
    head = "paper: beyond\nfigure: small\ntitle: t\ntrials: 1\nrounds: 1\npartition: {name: uniform, P: 2}\n"
    curves = "problem: {name: NAME}\ndataset: DATA\npanels: {a: {curves: [{algorithm: [METHOD]}]}}\n"
    for name, data, method, text in (
        ("gcca, K: 1", "gcca-toy", "cutemaxvar", "views; these data have their own clients"),
        ("completion", "movielens-1m", "als", "ratings; use 'users' or 'given'"),
        ("personal", "cifar10", "local", "images; use 'alphabets', 'iid_images' or 'given'"),
    ):
        words = curves.replace("NAME", name).replace("DATA", data).replace("METHOD", method)
        (error,) = errors_of(small, head + words)
        assert f"6:12: the partition 'uniform' does not divide {text}  (in: " in error


def test_perfedsi_needs_a_problem_with_side_information(small: Path) -> None:
    text = "paper: beyond\nfigure: small\ntitle: t\ntrials: 1\nrounds: 1\npartition: {name: iid_images, P: 2}\n"
    text += "dataset: cifar10\npanels: {a: {curves: [{algorithm: [perfedsi, perfedsi-mask, local]}]}}\n"
    errors = errors_of(small, text + "problem: {name: personal}\n")
    assert [error.partition("'")[2].partition("'")[0] for error in errors] == ["perfedsi", "perfedsi-mask"]
    assert all("side must not be none for PerFedSI: set the problem's side to group or shift" in e for e in errors)
    small.write_text(text + "problem: {name: personal, side: shift, shift: affine}\n")
    assert len(load(small, "quick").panels[0].curves) == 3


def test_null_takes_published_numbers_and_options_of_another_panel_away(small: Path) -> None:
    text = small.read_text().replace("yscale: log", "yscale: log\n    published: [{y: 1}]\n    options: {zoom: 0.5}")
    text = text.replace("b: {like: a,", "b: {like: a, published: null, options: null,")
    small.write_text(text)
    a, b = load(small, "quick").panels
    assert (a.published, a.options) == (({"y": 1},), {"zoom": 0.5})
    assert (b.published, b.options) == ((), {})


def test_yaml_that_is_none_has_its_place(small: Path) -> None:
    (error,) = errors_of(small, "paper: [fedc\nfigure: x\n")
    assert error.startswith("2:7: not valid YAML")
    (empty,) = errors_of(small, "")
    assert empty == "1:1: the file is empty; start with 'paper:' and 'figure:'"
    assert errors_of(small, "- a\n- b\n") == ["1:1: a spec must be a mapping; start with 'paper:' and 'figure:'"]


def test_options_are_checked_like_the_file(small: Path) -> None:
    errors = errors_of(small, small.read_text(), "rouns=3", "panels.a.curves.0.Q1=0", "panels.a.curves.9.Q1=1")
    said = (
        "--set rouns=3: 'rouns' is neither a key of a spec nor a parameter of its methods, its problem or its data, "
        "did you mean "
    )
    assert said + "'rounds'? (a key inside another: --set datasets.NAME.n=500)" in errors
    (listed,) = errors_of(small, small.read_text(), "zzz=3")
    assert "; parameters: K, M, N, P, Q1, Q2, Qhat, " in listed
    assert listed.endswith("--set datasets.NAME.n=500)")
    assert "--set panels.a.curves.0.Q1=0: 'fedcavg': Q1 must be an integer of at least 1, not 0" in errors
    assert "--set panels.a.curves.9.Q1=1: '9' is not an item of this list (0 to 1)" in errors
    with pytest.raises(UserError, match="write --set KEY=VALUE"):
        load(small, "quick", ["rounds"])


def test_a_parameter_is_set_by_its_name_wherever_a_method_has_it(small: Path) -> None:
    def curves(*sets: str) -> list[dict]:
        return [dict(one.params) for one in load(small, "quick", sets).settings()]

    assert [params["Q2"] for params in curves("Q2=[3, 7]")] == [
        3,
        7,
        3,
        7,
        3,
        7,
    ]  # a curve of one, two steps of the other
    assert {params.get("gamma1") for params in curves("gamma1=1.5")} == {1.5}
    assert {setting.problem_params["rho"] for setting in load(small, "quick", ["rho=1e-5"]).settings()} == {1e-5}


def test_a_parameter_of_the_problem_is_set_also_where_panels_and_sweeps_set_it(small: Path) -> None:
    text = small.read_text().replace("b: {like: a,", "b: {like: a, problem: {rho: 0.5},")
    small.write_text(text.replace("Q2: [1, 5]}", "zip: {problem: [{rho: 1, nu: 1}, {rho: 2, nu: 2}]}}"))
    for panel in load(small, "quick", ["rho=3"]).panels:
        assert {curve.setting.problem_params["rho"] for curve in panel.curves} == {3}
        assert {curve.setting.problem_params["nu"] for curve in panel.curves} >= {1, 2}


def test_a_parameter_of_the_data_is_set_by_its_name_wherever_data_have_it(small: Path) -> None:
    text = small.read_text()
    text = text.replace("unf: {name: uniform, P: 6}", "unf: {name: uniform, P: 6}\n  sim: {name: similarity, P: 6}")
    own = "c: {like: a, dataset: {name: synthetic, variant: clean, M: 12, N: 60, K: 3}, partition: uniform}"
    small.write_text(text.replace("b: {like: a,", f"{own}\n  b: {{like: a, partition: sim,"))
    figure = load(small, "quick", ["P=10", "N=90"])
    for panel in figure.panels:
        assert {curve.setting.partition_params["P"] for curve in panel.curves} == {10}
        assert {curve.setting.dataset_params["N"] for curve in panel.curves} == {90}
    named = load(small, "quick", ["dataset.N=120", "P=5"])  # dataset: syn
    assert {curve.setting.dataset_params["N"] for curve in named.panels[0].curves} == {120}


def test_a_parameter_of_some_methods_of_a_list_is_set_in_these() -> None:
    """The order of the curves stays; the other methods stay as they are."""
    path = ROOT / "experiments" / "perfedsi" / "fig2.yaml"
    plain, masked = (load(path, "smoke", sets).settings() for sets in ([], ["mask=learned"]))
    assert [one.algorithm for one in masked] == [one.algorithm for one in plain]
    for one, other in zip(plain, masked, strict=True):
        changed = {"mask": "learned"} if one.algorithm == "perfedsi-mask" else {}
        assert dict(other.params) == {**one.params, **changed}
    personal = load(path, "smoke", ["personal=none"]).settings()  # three neighbours of five have it
    assert [one.algorithm for one in personal] == [one.algorithm for one in plain]
    assert {one.params["personal"] for one in personal if "personal" in one.params} == {"none"}


def sampled(small: Path, *sets: str) -> list[tuple[int, int]]:
    """m and Q1 of the curves of FedCGds, whose zip is {m: [2, 6], Q1: [3, 2]}."""
    settings = load(small, "quick", sets).settings()
    return [(one.params["m"], one.params["Q1"]) for one in settings if one.algorithm == "fedcgds"]


def test_the_first_parameter_of_zip_chooses_steps(small: Path) -> None:
    assert sampled(small, "m=6") == [(6, 2)]
    assert sampled(small, "m=[6, 2]") == [(2, 3), (6, 2)]
    (said,) = errors_of(small, small.read_text(), "m=[2, 9]")
    assert said == (
        "--set m=[2, 9]: m = 9 is not a step of panels.a.curves.1, where m advances together with Q1 (m: [2, 6]); give "
        "all of them: --set 'panels.a.curves.1.zip={m: ..., Q1: ...}'"
    )


def test_another_parameter_of_zip_is_replaced_in_every_step(small: Path) -> None:
    assert sampled(small, "Q1=5") == [(2, 5), (6, 5)]
    assert sampled(small, "Q1=2") == [(2, 2), (6, 2)]
    assert sampled(small, "Q1=[5, 7]") == [(2, 5), (2, 7), (6, 5), (6, 7)]
    for sets in (["Q1=5", "m=4"], ["m=4", "Q1=5"]):  # Q1 is known, so that m can have any value
        assert sampled(small, *sets) == [(4, 5)]


def test_parameters_too_large_for_changed_data_become_their_size(small: Path) -> None:
    assert sampled(small, "P=3") == [(2, 3), (3, 2)]
    (note,) = load(small, "quick", ["P=3"]).adjusted
    assert note == "the spec's m = 6 became m = 3, the largest value for the changed data; equal curves are drawn once"
    assert sampled(small, "P=2", "Q1=5") == [(2, 5)]  # m = 2 and m = 6 are now the same curve
    assert sampled(small, "partitions.unf.P=3") == [(2, 3), (3, 2)]
    assert load(small, "quick", ["P=9"]).adjusted == load(small, "quick").adjusted == ()
    errors = errors_of(small, small.read_text(), "P=3", "m=4", "Q1=1")
    assert any(
        "--set m=4" in error and "m must be at most the number of clients P = 3, not 4" in error for error in errors
    )
    errors = errors_of(small, small.read_text().replace("P: 6", "P: 3"))  # without options it is an error
    assert any("m must be at most the number of clients P = 3, not 6" in error for error in errors)


def test_a_dataset_that_is_only_a_name_is_shown_as_a_mapping(small: Path) -> None:
    small.write_text(
        small.read_text().replace("  syn: {name: synthetic, variant: clean, M: 12, N: 60, K: 3}", "  syn: digits")
    )
    with pytest.raises(SpecErrors, match=r"a dataset must be a mapping with a 'name', for instance \{name: digits\}"):
        load(small, "quick")


def test_published_numbers_of_rows_that_options_take_away_are_left_out(small: Path) -> None:
    table = (
        "kind: table, options: {rows: [m, Q2], columns: algorithm}, published: [{row: 2 4, column: FedCGds, value: 1}"
    )
    small.write_text(small.read_text().replace(
        "b: {like: a, x: uplink_scalars}", f"b: {{like: a, {table}, {{row: 6 4, column: FedCGds, value: 2}}]}}"
    ))  # fmt: skip
    assert [item["value"] for item in load(small, "quick").panels[1].published] == [1, 2]
    assert [item["value"] for item in load(small, "quick", ["m=6"]).panels[1].published] == [2]


def test_keys_that_a_user_would_guess_work_in_six_figures() -> None:
    def settings(figure: str, *sets: str) -> list[Setting]:
        return load(ROOT / "experiments" / f"{figure}.yaml", "paper", sets).settings()

    five = settings("fedc/fig5", "Q1=5", "P=30")
    assert {(one.algorithm, one.params["m"], one.params["Q1"]) for one in five} == {
        ("fedcavg", None, 5), ("fedcgds", 10, 5), ("fedcgds", 30, 5)
    }  # fmt: skip
    assert {one.params["m"] for one in settings("fedmf/fig1", "P=30")} == {10, 30}
    assert {one.params["q"] for one in settings("gcca/fig4", "q=4") if one.algorithm == "cutemaxvar"} == {4}
    assert {one.problem_params["r"] for one in settings("fedmc/fig2", "r=4")} == {4}
    assert {one.params["m"] for one in settings("perfedsi/fig3", "m=2")} == {2}
    table = settings("fedmf/table1", "P=30", "Qhat=5")
    assert {one.partition_params["P"] for one in table} == {30}
    assert {one.params["Qhat"] for one in table if one.algorithm == "fedmavg-sncp"} == {5}


def test_a_claim_whose_curves_an_option_takes_away_is_not_applicable(small: Path) -> None:
    (claim,) = load(small, "quick", ["Q2=3"]).claims
    assert claim.inapplicable.startswith("algorithm='fedcavg', Q2=5 selects no curve (curves: 'FedCAvg', ")
    assert load(small, "quick", ["Q1=3"]).claims[0].inapplicable == ""
    assert errors_of(small, small.read_text().replace("Q2=5) < y", "Q2=7) < y"))  # without options it is an error


MULTIPLIED = "a: &a [0, 0, 0, 0, 0, 0, 0, 0, 0, 0]\n" + "".join(
    f"{x}: &{x} [{', '.join([f'*{y}'] * 10)}]\n" for y, x in zip("abcde", "bcdef", strict=True)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: &x [*x]", "1:4: not valid YAML: an alias inside the value that it repeats (in: a: &x [*x])"),
        ("a: &x {b: *x}", "1:4: not valid YAML: an alias inside the value that it repeats (in: a: &x {b: *x})"),
        (f"a: {'[' * 2000}", "1:43: not valid YAML: more than 40 nested lists and mappings"),
        (f"a: {'[' * 45}{']' * 45}", "1:43: not valid YAML: more than 40 nested lists and mappings"),
        (MULTIPLIED, "1:32: not valid YAML: more than 20,000 values, including those that aliases repeat"),
        ("a: " + "x" * 200_000, " is not a spec: it is longer than 200,000 characters"),
        ("a: !!int q", "1:4: 'q' cannot be read as !!int"),
        ("a: !!int ''", "1:4: '' cannot be read as !!int"),
        ("a: !!bool x", "1:4: 'x' cannot be read as !!bool"),
        ("a: !!timestamp x", "1:4: the tag !!timestamp has no meaning here; remove it"),
        ("a: !!python/object/apply:os.system [x]", "1:4: the tag !!python/object/apply:os.system has no meaning here"),
        ("a: !!set {b}", "1:4: the tag !!set has no meaning here; remove it"),
        ("!!timestamp x: 1", "1:1: the tag !!timestamp has no meaning here; remove it"),
        ("a: {<<: 5}", "1:9: << needs a mapping, or a list of mappings"),
        ("? [a]\n: 1", "1:3: a key must be a plain word"),
        ("a: 9223372036854775808", "1:4: the number 9223372036854775808 is too large"),
        (f"a: {'9' * 5000}", f"1:4: '{'9' * 200} ...' cannot be read as !!int"),
        ("a: 1\nb: x\0y", "2:5: not valid YAML: it has the character '\\x00'"),
        ('a: "x\\e[2Jy"', "1:4: the character '\\x1b' cannot be shown; remove it"),
        ('a: "\\ud800"', "1:4: the character '\\ud800' cannot be shown; remove it"),
        ("a\u202eb: 1", "1:1: the character '\\u202e' cannot be shown; remove it"),
    ],
)
def test_yaml_is_read_within_bounds(text: str, message: str) -> None:
    with pytest.raises(SpecErrors) as caught:
        nodes.parse(text, "x")
    printed = str(caught.value).removeprefix("1 error:\n  x:")
    assert printed.startswith(message)
    assert all(c.isprintable() or c == "\n" for c in printed)


def flat(node: nodes.Node) -> object:
    """The values of a node and all nodes in it, with their places."""
    value: object = node.value
    if isinstance(node.value, dict):
        value = {name: (str(inner.key), flat(inner)) for name, inner in node.value.items()}
    elif isinstance(node.value, list):
        value = [flat(inner) for inner in node.value]
    return str(node.place), node.place.text, value


def test_both_parsers_read_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    odd = "a: 010\nb: 1:30\nc: 1e-8\nd: yes\ne: 0x10\nf: 1_000\ng: ~\nh: .inf\ni: 2020-01-01\né: {b:1, <<: {ü: x}}\n"
    texts = [odd, *(path.read_text(encoding="utf-8") for path in SPECS[:8])]
    fast = [flat(nodes.parse(text, "x")) for text in texts]
    monkeypatch.setattr(nodes, "SHALLOW", -1)
    monkeypatch.setattr(nodes, "_Fast", None)
    assert [flat(nodes.parse(text, "x")) for text in texts] == fast


@pytest.mark.parametrize("text", ["[" * 100_000, "- " * 50_000, "{a: " * 50_000, "[\n" * 50_000])
def test_deep_files_do_not_overflow_the_stack(text: str) -> None:
    with pytest.raises(SpecErrors, match="more than 40 nested lists and mappings"):
        nodes.parse(text, "x")


def test_a_file_is_not_read_beyond_its_bound(tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    with path.open("wb") as file:
        file.truncate(10**12)  # takes no room on the disk
    with pytest.raises(SpecErrors, match="is longer than 200,000 characters"):
        nodes.read(path)


SIZES = [
    ("trials: 2", "trials: 100000000", "5:9: trials must be an integer from 1 to 10,000, not 100000000"),
    ("trials: 2", "trials: 9999", "5:9: 4 curves x 9,999 trials are 39,996 runs; a figure has at most 20,000"),
    ("rounds: 5", "rounds: 1000000000000", "6:9: rounds must be an integer from 0 to 10,000,000, not 1000000000000"),
    ("rounds: 5", "rounds: 9000000", "6:9: about 9,000,020 of 9,000,000 rounds would be recorded, and at most "
     "200,000 can be; give record_every, or a smaller record_dense"),
    ("M: 12", "M: 1000000000", "8:45: the dataset 'synthetic': M is too large: M x K is 3,000,000,000, and at most "
     "100,000,000 are drawn"),
    ("N: 60, K: 3", "N: 600000, K: 300000",
     "8:63: the dataset 'synthetic': K must be an integer from 1 to 10,000, not 300000"),
    ("Q2: [1, 5]", f"Q2: {list(range(1, 41))}, rounds: {list(range(80))}",
     "18:9: this item has 3,200 curves, the figure 3,200 so far; a figure has at most 2,000"),
    ("zip: {m: [2, 6], Q1: [3, 2]}", f"zip: {{m: {[2] * 2500}, Q1: {[2] * 2500}}}",
     "19:9: this item has 2,500 curves, the figure 2,502 so far; a figure has at most 2,000"),
    ("title: \"left\"", "title: left\n    xlim: [.nan, 1]",
     "16:11: xlim must be two numbers [low, high] up to 1e100 (null for automatic)"),
    ('title: "left"', "title: left\n    ylim: [1e-300, 1e300]",
     "16:11: ylim must be two numbers [low, high] up to 1e100 (null for automatic)"),
    ("title: \"left\"", "title: left\n    published: [{y: .inf}]",
     "16:16: published: panel 'a' (curves): y must be a number, not inf"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "message"), SIZES)
def test_sizes_are_bounded_before_they_take_memory(small: Path, old: str, new: str, message: str) -> None:
    text = small.read_text()
    assert old in text
    tracemalloc.start()
    errors = errors_of(small, text.replace(old, new), tier="quick")
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert any(error.startswith(message) for error in errors), errors
    assert most < 50e6


def test_a_panel_says_how_often_its_rounds_are_recorded(small: Path) -> None:
    other = "  b: {like: a, rounds: 40, record_every: 10}\n"
    text = small.read_text().replace("  b: {like: a, x: uplink_scalars}\n", other)
    small.write_text(text.replace("rounds: 5\n", "rounds: 5\nrecord_dense: 2\n", 1))
    left, right = load(small, "quick").panels
    assert left.curves[0].setting.recorded == [0, 1, 2, 3, 4, 5]
    assert right.curves[0].setting.recorded == [0, 1, 2, 10, 20, 30, 40]
    assert right.curves[0].setting.series.endswith(" rounds=40 record_every=10")
    (error,) = errors_of(small, small.read_text().replace("record_every: 10", "record_every: 0"))
    assert "record_every must be an integer of at least 1, not 0" in error


def test_recorded_rounds_are_the_dense_ones_the_multiples_and_the_last(small: Path) -> None:
    setting = load(small, "quick").panels[0].curves[0].setting
    for rounds, every, dense in itertools.product((0, 1, 7, 20, 41), (1, 3, 50), (0, 2, 6, 100)):
        one = dataclasses.replace(setting, rounds=rounds, record_every=every, record_dense=dense)
        assert one.recorded == [r for r in range(rounds + 1) if r <= dense or r % every == 0 or r == rounds]


def test_the_number_of_views_bounds_the_arrays_of_views(tmp_path: Path) -> None:
    text = (ROOT / "experiments/gcca/fig10.yaml").read_text()
    path = tmp_path / "fig10.yaml"
    (error, *_) = errors_of(path, text.replace("artifacts: [view1, view2, view3", "artifacts: [view1, view2, view4"))
    assert "'view4' is not an array that the problem 'gcca-deep' keeps, did you mean 'view3'?" in error
    text = (ROOT / "experiments/gcca/fig5.yaml").read_text()
    path.write_text(re.sub(r"\bI: \d+", "I: 1000000000000", text))
    assert load(path, "paper").panels  # no list is made of the views


def test_arrays_that_no_problem_keeps_are_told_before_anything_runs(small: Path) -> None:
    text = small.read_text()
    (error,) = errors_of(small, text.replace("rounds: 5", "rounds: 5\nartifacts: [found, embeding]"))
    assert error.startswith(
        "7:20: 'embeding' is not an array that the problem 'clustering' keeps, did you mean 'embedding'? "
        "(artifacts: W, H, found, labels, embedding)"
    )


@pytest.mark.parametrize("problem", registry.problems())
def test_the_arrays_that_problems_register_are_those_they_keep(problem: str) -> None:
    entry = registry.problems()[problem]
    source = inspect.getsource(entry.cls.artifacts)
    named = set(re.findall(r"""["'](\w+(?:\{i\})?)["']""", source)) - {"artifacts", "test", "cluster"}
    module = sys.modules[entry.cls.__module__]
    if "ARTIFACTS" in source:
        named = set(module.ARTIFACTS)
    assert {re.sub(r"\{.*\}", "{i}", name) for name in named} >= set(entry.artifacts) - {"view{i}"}
    assert entry.artifacts


def test_clusters_and_labels_of_a_file_are_asked_for_before_anything_runs(small: Path) -> None:
    table = small.parent / "own.csv"
    table.write_text("a,b,kind\n1,2,x\n3,4,y\n5,6,x\n7,8,y\n9,1,x\n2,3,y\n")
    text = re.sub(r"syn: \{.*\}", f"syn: {{name: file, path: {table}, orientation: rows}}", small.read_text())
    advice = "name it with labels: or client:, or remove it"
    assert re.search(f"column 'kind' contains text.*; {advice}", errors_of(small, text)[0])
    bare = small.parent / "bare.csv"
    bare.write_text("a,b\n1,2\n3,4\n5,6\n7,8\n9,1\n2,3\n")
    both = (str(table), str(bare))
    errors = errors_of(small, text.replace(*both))
    (error,) = errors  # one for all curves
    assert error.startswith("4:10: the problem 'clustering': give K: the dataset 'syn' has no labels")
    errors = errors_of(small, text.replace("orientation: rows", "orientation: rows, labels: kinds"))
    said = f"{table} has no column or variable 'kinds', did you mean 'kind'?"
    assert f"the dataset 'file': labels: {said}" in errors[0]
    small.write_text(text.replace("orientation: rows", "orientation: rows, labels: kind"))
    assert load(small, "quick").panels
    bare_with_K = text.replace("problem: {name: clustering}", "problem: {name: clustering, K: 2}").replace(*both)
    small.write_text(bare_with_K)
    assert load(small, "quick").panels
    errors = errors_of(small, re.sub(r"unf: \{.*\}", "unf: {name: dirichlet, P: 2}", bare_with_K))
    assert "'dirichlet' distributes samples by class, and this dataset has no labels" in errors[0]
    (error,) = errors_of(small, re.sub(r"unf: \{.*\}", "unf: {name: given}", bare_with_K))
    assert (
        "the partition 'given' uses the clients that the data name, and these name none; name them with client: in the "
        "dataset 'syn', or use another partition"
    ) in error


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("panels.a.curves.²=1", "--set panels.a.curves.²=1: '²' is not an item of this list (0 to 1)"),
        ("panels.a.curves.٣=1", "--set panels.a.curves.٣=1: '٣' is not an item of this list (0 to 1)"),
        (f"panels.a.curves.{'9' * 5000}=1", "is not an item of this list (0 to 1)"),
        (".".join("a" * 50) + "=1", "a key has at most 40 parts"),
        ("=1", "write --set KEY=VALUE"),
        ("..=1", "'' is not a key of a spec"),
        ("rounds=[[", "not valid YAML"),
        ("title=\x1b[2J", "not valid YAML: it has the character '\\x1b'"),
    ],
)
def test_odd_options_are_errors(small: Path, option: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        load(small, "quick", [option])
    assert message in str(caught.value)
    assert all(c.isprintable() or c == "\n" for c in str(caught.value))


def test_a_long_message_keeps_its_ends(small: Path) -> None:
    (found,) = errors_of(small, small.read_text().replace("yscale: log", f"y: {'z' * 9000}"))
    assert found.startswith("16:8: 'zzz")
    assert len(found) < 3100


def test_a_spec_may_lie_at_the_root_of_the_disk() -> None:
    figure = dataclasses.replace(load(SPECS[0], "quick"), path="/x.yaml")
    assert find._misplaced({Path("/x.yaml"): figure}) == []


def test_numbers_are_read_as_people_write_them() -> None:
    text = "a: 1e-8\nb: 1.5E3\nc: 10\nd: 1e\ne: -1_000\nf: .5\ng: 2.\nh: +3\n"
    node = nodes.parse(text, "x")
    assert node.plain() == {"a": 1e-8, "b": 1500.0, "c": 10, "d": "1e", "e": -1000, "f": 0.5, "g": 2.0, "h": 3}


def test_what_yaml_alone_takes_for_other_numbers_is_text() -> None:
    """``010`` would be 8, ``1:30`` 90, ``0x1F`` 31, and ``2020-01-01`` a date."""
    node = nodes.parse("a: 010\nb: 1:30\nc: 0x1F\nd: 2020-99-99\ne: 2020-01-01\n010: f\n", "x")
    assert node.plain() == {"a": "010", "b": "1:30", "c": "0x1F", "d": "2020-99-99", "e": "2020-01-01", "010": "f"}


def test_merge_keys_work_and_are_no_duplicates() -> None:
    node = nodes.parse("a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}\n", "x")
    assert node.plain()["b"] == {"x": 1, "y": 3}
    node = nodes.parse("a: &a {x: 1}\nb: &b {x: 2, z: 4}\nc: {y: 3, <<: [*a, *b]}\n", "x")
    assert node.plain()["c"] == {"x": 1, "z": 4, "y": 3}  # the first of several counts


def test_the_command_line_prints_errors_without_traceback(fedrepro: Call, small: Path) -> None:
    small.write_text(small.read_text().replace("rounds: 5", "rounds: ten"))
    for command in ("run", "plan", "validate"):
        answer = fedrepro(command, small)
        assert answer.exit_code == 2
        assert "error: 1 error:" in answer.stderr
        assert "rounds must be an integer from 0 to 10,000,000, not 'ten'" in answer.stderr
        assert "Traceback" not in answer.stderr
    missing = fedrepro("run", "fedc/fig99")
    assert missing.exit_code == 2
    assert "fedc/fig99: no such figure, paper or claim" in missing.stderr


def test_unknown_commands_are_answered_with_the_nearest(fedrepro: Call) -> None:
    answer = fedrepro("vaildate")
    assert answer.exit_code == 2
    assert "'vaildate' is not a command, did you mean 'validate'?" in answer.stderr


def test_help_is_a_command_too(fedrepro: Call) -> None:
    assert fedrepro("help").stdout == fedrepro("--help").stdout
    assert fedrepro("help", "plan").stdout == fedrepro("plan", "--help").stdout


def test_every_command_has_examples_in_its_help() -> None:
    from click.testing import CliRunner

    from fedrepro.cli.main import main

    context = main.make_context("fedrepro", ["list"])
    for name in main.list_commands(context):
        said = CliRunner().invoke(main, [name, "--help"]).output
        assert "fedrepro " in said.split("Usage:")[1].split("\n", 1)[1], name


def test_a_glob_over_an_experiments_folder_may_pick_up_discrepancies(fedrepro: Call, small: Path) -> None:
    discrepancies = small.with_name("discrepancies.yaml")
    discrepancies.write_text("paper: fedc\nrows: []\n")
    assert "8 to do" in fedrepro("plan", small, discrepancies).output
    alone = fedrepro("plan", discrepancies)
    assert alone.exit_code == 2
    assert "discrepancies.yaml contains a paper's discrepancies, not a figure" in alone.stderr


def test_a_figure_named_twice_is_read_once_and_two_files_with_one_name_are_refused(
    small: Path, tmp_path: Path, fedrepro: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    twice = fedrepro("run", small, small, "-j", 1, "--tier", "smoke")
    assert (twice.exit_code, twice.output.count("beyond/small (smoke): complete")) == (0, 1)
    other = tmp_path / "other.yaml"
    other.write_text(small.read_text())
    twice = fedrepro("verdict", small, small, "--tier", "smoke")
    assert (twice.exit_code, twice.output.count("more local steps help")) == (0, 1)
    for command in ("validate", "plan", "run", "plot", "verdict", "report"):
        refused = fedrepro(command, small, other)
        assert refused.exit_code == 2
        assert f"{small} and {other} are both beyond/small, and results are stored under that name" in refused.output


def test_a_file_among_the_experiments_is_the_figure_that_its_place_says(
    small: Path, tmp_path: Path, fedrepro: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    copied = Path("experiments") / "beyond" / "mine.yaml"
    copied.parent.mkdir(parents=True)
    copied.write_text(small.read_text())
    refused = fedrepro("validate", copied)
    assert refused.exit_code == 2
    said = f"{copied}: has paper: beyond and figure: small, so its results would be stored as those of beyond/small; "
    assert said + "write paper: beyond and figure: mine, or move the file" in refused.output
    copied.write_text(small.read_text().replace("figure: small", "figure: mine"))
    assert fedrepro("validate", copied).exit_code == 0


def test_every_claim_has_an_id_of_its_own() -> None:
    ids = [claim.id for path in SPECS for claim in project_specs.figure(path, "paper").claims]
    assert len(ids) > 200
    assert [one for one in dict.fromkeys(ids) if ids.count(one) > 1] == []
