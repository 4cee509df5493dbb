"""Claims: checks are read safely, margins are paired over trials, and only at the paper tier is a claim
"reproduced"."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from fedrepro.claims import compared_values, distinct, evidence, units
from fedrepro.claims import judge as judge_module
from fedrepro.claims.judge import Series, judge
from fedrepro.errors import UserError
from fedrepro.results.schema import Sidecar
from fedrepro.spec import claim_grammar
from fedrepro.spec.model import Claim, Figure
from fedrepro.spec.read import load
from tests.sidecars import consistent

from . import panel_cases

Values = dict[str, np.ndarray]  # series -> (trials, rounds)


@pytest.fixture
def figure(small: Path) -> Figure:
    return load(small, "paper")


def frame(values: Values, statuses: dict[str, str] | None = None) -> pd.DataFrame:
    rows = [
        {"series": series, "trial": t + 1, "status": (statuses or {}).get(series, "ok"), "round": r,
         "metric": "objective",
         "uplink_scalars": 10 * r * (1 + i), "uplink_bits": 320 * r, "downlink_scalars": 5 * r,
         "downlink_bits": 160 * r, "value": v}
        for i, (series, table) in enumerate(values.items()) for t, row in enumerate(table) for r, v in enumerate(row)
    ]  # fmt: skip
    return pd.DataFrame(rows)


@pytest.fixture
def ask(figure: Figure) -> Callable[..., Any]:
    names = [c.label for c in figure.panels[0].curves]
    series = [c.setting.series for c in figure.panels[0].curves]

    def ask(check: str, values: list[Any], trials: int = 3, tier: str = "paper", **sidecar: Any) -> Any:
        tables = {s: np.atleast_2d(np.asarray(v, dtype=float)) for s, v in zip(series, values, strict=False)}
        last = list(tables)[-1] if sidecar.pop("ragged", False) else None
        tables = {s: np.repeat(v, trials, axis=0) if len(v) == 1 and s != last else v for s, v in tables.items()}
        statuses = sidecar.pop("statuses", None)
        shown = dataclasses.replace(figure, tier=tier, **sidecar.pop("figure_", {}))
        rows = frame(tables, statuses)
        about = consistent(shown, rows, **{"trials_done": trials, "trials_wanted": 3, **sidecar})
        return judge(Claim("x", "s", "w", "a", check), shown, rows, about)

    assert names == ["FedCAvg Q2=1", "FedCAvg Q2=5", "FedCGds m=2 Q1=3", "FedCGds m=6 Q1=2"]
    return ask


def test_a_difference_beyond_its_interval_holds_or_fails(ask: Callable[..., Any]) -> None:
    low = [[9, 5.0, 1.0], [9, 5.1, 1.1], [9, 4.9, 0.9]]
    high = [[9, 6.0, 2.0], [9, 6.2, 2.2], [9, 5.8, 1.9]]
    assert ask("y(at='end', Q2=1) < y(at='end', Q2=5)", [low, high]).verdict == "reproduced"
    row = ask("y(at='end', Q2=1) > y(at='end', Q2=5)", [low, high])
    assert row.verdict == "not reproduced"
    mean, half = 3.1 / 3, 4.302653 * np.std([1.0, 1.1, 1.0], ddof=1) / np.sqrt(3)  # t of 2 degrees of freedom
    (margin,) = row.margins
    assert (margin.value, margin.low, margin.high) == pytest.approx((-mean, -mean - half, -mean + half), rel=1e-6)
    edge = [[9, 0.0, v] for v in (1.0, 2.0, 5.6)]  # mean 2.87, half width 5.97 with n - 1: noise, and none with less
    assert ask("y(at='end', Q2=1) > 0", [edge]).verdict == "within noise"


def test_curves_that_never_improve_say_nothing_about_speed(ask: Callable[..., Any]) -> None:
    worse, better = [9.0, 10.0, 11.0], [9.0, 5.0, 1.0]
    level = "0.995 * min(y(at='end', Q2=1), y(at='end', Q2=5)) + 0.005 * y(at=0, Q2=1)"
    needs = [f"reach({level}, Q2={q})" for q in (1, 5)]
    for check in (f"{needs[0]} < {needs[1]}", f"1.1 * {needs[0]} > {needs[1]}"):
        row = ask(check, [worse, [9.0, 10.0, 12.0]])
        assert (row.verdict, row.why) == (
            "not tested",
            "none of its curves is ever better than at the start, so there is no later point at which to compare them",
        )
    assert ask(f"{needs[0]} < {needs[1]}", [better, worse]).verdict == "reproduced"
    at = f"when=min({needs[0]}, {needs[1]})"
    assert ask(f"y({at}, Q2=1) < y({at}, Q2=5)", [worse, worse]).verdict == "not tested"
    assert ask("y(at=0, Q2=1) <= y(at=0, Q2=5)", [worse, worse]).verdict == "reproduced"


def test_differences_are_paired_within_trials(ask: Callable[..., Any]) -> None:
    base = np.array([[0, 1.0], [0, 10.0], [0, 100.0]])  # trials differ far more than the methods do
    assert ask("y(at=1, Q2=1) < y(at=1, Q2=5)", [base, base + 0.5]).verdict == "reproduced"


def test_a_difference_smaller_than_its_interval_is_noise(ask: Callable[..., Any]) -> None:
    row = ask("y(at=1, Q2=1) < y(at=1, Q2=5)", [[[0, 1.0], [0, 2.0], [0, 3.0]], [[0, 2.0], [0, 1.0], [0, 3.5]]])
    assert row.verdict == "within noise"


def test_several_rounds_are_as_weak_as_the_weakest(ask: Callable[..., Any]) -> None:
    assert ask("y(at=[0, 1, 2], Q2=1) < y(at=[0, 1, 2], Q2=5)", [[1, 1, 3], [2, 2, 2]]).verdict == "not reproduced"
    assert ask("y(at=[0, 1], Q2=1) < y(at=[0, 1], Q2=5)", [[1, 1, 3], [2, 2, 2]]).verdict == "reproduced"


def test_chains_arithmetic_and_plain_functions(ask: Callable[..., Any]) -> None:
    values = [[1, 1], [2, 2], [4, 4], [8, 8]]
    assert ask("y(at=1, Q2=1) < y(at=1, Q2=5) < y(at=1, m=2) < y(at=1, m=6)", values).verdict == "reproduced"
    assert ask("abs(y(at=1, m=6) / y(at=1, m=2) - 2) < 1e-12", values).verdict == "reproduced"
    assert (
        ask("max(y(at=1, Q2=1), y(at=1, m=2)) < 4.5 and log10(y(at=1, Q2=1)) > 1", values).verdict == "not reproduced"
    )


def test_reach_reads_the_axis_where_the_level_is_first_met(ask: Callable[..., Any]) -> None:
    values = [[9, 5, 3, 1], [9, 3, 3, 1]]
    at = 1 + np.log(5 / 4) / np.log(5 / 3)  # between rounds 1 and 2, straight on a logarithmic scale
    assert ask(f"reach(4, Q2=5) < 1 and abs(reach(4, Q2=1) - {at}) < 1e-12", values).verdict == "reproduced"
    assert ask(f"abs(reach(4, axis='uplink_scalars', Q2=1) - {10 * at}) < 1e-9", values).verdict == "reproduced"
    assert ask("reach(0.5, Q2=1) < 100", values).verdict == "not reproduced"  # never reached
    neither = ask("reach(0.5, Q2=1) < reach(0.5, Q2=5)", values)
    assert neither.verdict == "within noise"
    assert neither.why == "open (a curve ends before it reaches the level) over 3 trials"
    assert (
        ask("reach(3 * y(at='end', Q2=1), Q2=5) < reach(3 * y(at='end', Q2=1), Q2=1)", values).verdict == "reproduced"
    )


def test_a_level_that_is_not_reached_before_the_run_ends_leaves_open_what_a_longer_run_could_change(
    ask: Callable[..., Any],
) -> None:
    limited = "at_most(reach(2, Q2=5), total('round', Q2=5))"
    late, early = [[9, 5, 3, 2], [9, 5, 3, 2.5]], [[9, 5, 1, 1], [9, 5, 3, 2.5]]
    never, other = [[9, 5, 3, 2.5], [9, 5, 3, 2.5]], [[9, 5, 3, 2.5], [9, 5, 1, 1]]
    assert ask(f"reach(2, Q2=1) < {limited}", early).verdict == "reproduced"
    assert ask(f"reach(2, Q2=1) < {limited}", other).verdict == "not reproduced"  # it never arrives, the other does
    for values in (late, never):  # at the last round, and not at all
        assert ask(f"reach(2, Q2=1) < {limited}", values).verdict == "within noise"
        assert ask(f"{limited} > reach(2, Q2=1)", values).verdict == "within noise"
    assert ask(f"reach(2, Q2=1) < min({limited}, 5)", late).verdict == "within noise"
    assert ask(f"1.4 * reach(2, Q2=1) < {limited}", early).verdict == "reproduced"
    assert ask(f"2.0 * reach(2, Q2=1) < {limited}", early).verdict == "within noise"  # 3.2 rounds of 3
    assert ask(f"reach(2, Q2=1) < 0.5 * {limited}", early).verdict == "within noise"
    assert ask(f"reach(2, Q2=1) < min({limited}, 1)", early).verdict == "not reproduced"
    noisy = [[[9, 5, 1 + k, 0.5] for k in range(3)], [[9, 5, 1.2 + k / 2, 0.5] for k in range(3)]]
    both = ask("y(at=2, Q2=1) < y(at=2, Q2=5)", noisy)
    assert both.trials_to_decide is not None
    also_open = ask("y(at=2, Q2=1) < y(at=2, Q2=5) and reach(0.1, Q2=1) < reach(0.1, Q2=5)", noisy)
    assert also_open.verdict == "within noise"
    assert also_open.trials_to_decide is None
    assert "would decide" in both.why
    assert "would decide" not in also_open.why
    assert ask(f"{limited} < 5", never).verdict == "reproduced"  # on the smaller side it is a number like any other


def test_reach_does_not_depend_on_which_rounds_are_recorded() -> None:
    dense = 3.0 * 0.8 ** np.arange(41)
    reads = []
    for rounds in (range(41), range(0, 41, 5), [0, 7, 8, 40]):
        at = np.array(rounds)
        reads.append(
            float(judge_module._reach(Series(at, dense[at], {"round": at.astype(float)}, 40, "lower"), 0.1)[0])
        )
    np.testing.assert_allclose(reads, np.log(0.1 / 3.0) / np.log(0.8), rtol=1e-12)
    rising = Series(np.arange(3), np.array([-1.0, 0.0, 2.0]), {"round": np.arange(3.0)}, 2, "higher")
    assert judge_module._reach(rising, 1.0)[0] == 1.5  # straight, as not all are positive
    assert judge_module._reach(rising, 3.0)[0] == np.inf
    assert judge_module._reach(rising, -5.0)[0] == 0


@pytest.mark.parametrize(
    ("operator", "below", "tie", "above"),
    [("<", "reproduced", "not reproduced", "not reproduced"), ("<=", "reproduced", "reproduced", "not reproduced"),
     (">", "not reproduced", "not reproduced", "reproduced"), (">=", "not reproduced", "reproduced", "reproduced")],
)  # fmt: skip
def test_the_four_operators_differ_at_a_tie(
    ask: Callable[..., Any], operator: str, below: str, tie: str, above: str
) -> None:
    for left, verdict in ((1.0, below), (2.0, tie), (3.0, above)):
        assert ask(f"y(at=1, Q2=1) {operator} y(at=1, Q2=5)", [[9, left], [9, 2.0]]).verdict == verdict


def test_one_bad_round_of_a_list_is_enough(ask: Callable[..., Any]) -> None:
    """The lowest mean does not decide: a round may fail beyond doubt while another, lower one is noise."""
    noisy = np.array([[0, 5.0], [0, -9.0], [0, 1.0]])  # round 1: mean -1, any sign
    sure = np.array([[-0.5, 0.0], [-0.51, 0.0], [-0.49, 0.0]])  # round 0: below zero beyond doubt
    check = "y(at=[0, 1], Q2=1) < y(at=[0, 1], Q2=5)"
    assert ask(check, [np.zeros((3, 2)), noisy + sure]).verdict == "not reproduced"
    assert ask(check, [np.zeros((3, 2)), noisy - sure]).verdict == "within noise"
    good = np.array([[0.5, 9.0], [0.51, 9.5], [0.49, 9.2]])
    assert ask(check, [np.zeros((3, 2)), good]).verdict == "reproduced"


def test_checks_are_of_averaged_curves_and_each_of_every_trial(ask: Callable[..., Any]) -> None:
    near = 0.877 + np.array([[0.04], [-0.04], [0.05], [-0.05], [0.03], [-0.03], [0.02], [-0.02], [0.0], [0.0]])
    wide = np.hstack([near, near])
    said = {"trials": 10, "trials_wanted": 10}
    assert ask("abs(y(at=1, Q2=1) - 0.877) < 0.03", [wide], **said).verdict == "reproduced"
    every = ask("each(abs(y(at=1, Q2=1) - 0.877) < 0.03)", [wide], **said)
    assert every.verdict == "not reproduced"
    assert "margin -0.02 objective (relative) in the worst trial" in every.why
    stuck = np.hstack([np.ones((10, 1)), np.full((10, 1), 1e-12)])
    stuck[6, 1] = 0.98
    assert ask("log10(y(at=1, Q2=1)) < -2", [stuck], **said).verdict != "reproduced"  # an average hides no stuck trial
    row = ask("each(y(at=1, Q2=1) < 1e-6) and y(at=0, Q2=1) > 0.5", [stuck], **said)
    assert row.verdict == "not reproduced"
    assert "in the worst trial (7)" in row.why


def test_a_minimum_or_maximum_is_as_sure_as_each_of_its_values(ask: Callable[..., Any]) -> None:
    """If two values are close, leaving out a trial changes which is smaller, so the outcome is uncertain."""
    left = np.zeros((10, 2))
    middle = np.array([-0.021, 0.012, -0.03, 0.001, -0.024, 0.018, -0.033, 0.006, -0.027, -0.012])
    swapped = middle[::-1] - 0.001
    right = np.column_stack([middle, swapped])
    said = {"trials": 10, "trials_wanted": 10}
    low = "min(y(at=0, Q2=5), y(at=1, Q2=5))"
    whole = ask(f"y(at=1, Q2=1) < {low}", [left, right], **said)
    apart = ask("y(at=[0, 1], Q2=1) < y(at=[0, 1], Q2=5)", [left, right], **said)
    assert whole.verdict == apart.verdict == "within noise"
    assert whole.margins == apart.margins
    assert ask(f"{low} > y(at=1, Q2=1)", [left, right], **said).margins == whole.margins
    assert ask(f"-1 * {low} < max(y(at=1, Q2=1), 0.5)", [left, right], **said).verdict == "reproduced"
    nested = ask(f"max(y(at=0, Q2=1), -9) <= min({low}, 7)", [left, right], **said)
    assert nested.margins == whole.margins
    assert ask("max(y(at=0, Q2=1), 1) < 0.5", [left, right], **said).verdict == "not reproduced"
    assert ask("max(y(at=0, Q2=1), 1) > 0.5", [left, right], **said).verdict == "reproduced"  # one of both is enough
    late = np.array([[9.0, 9, 9, 9, 1]] * 4 + [[9.0, 9, 9, 9, 9]] * 6)  # on average the level is met in some selections
    capped = ask("min(reach(5.8, Q2=5), total(Q2=5)) > 1", [np.zeros((10, 5)), late], **said)
    assert capped.verdict == "reproduced"  # what is never reached counts with the last round


def test_the_median_trial_by_itself(ask: Callable[..., Any]) -> None:
    said = {"trials": 20, "trials_wanted": 20}
    ends = np.logspace(-16, -12, 20)
    ends[17] = 0.98  # one trial does not converge
    runs = np.column_stack([np.ones(20), ends])
    check = "median(log10(y(at=1, Q2=1)) < -11)"
    row = ask(check, [runs], **said)
    assert row.verdict == "reproduced"
    assert row.why.endswith("in the median trial over 20 trials")
    ordered = np.sort(-11 - np.log10(ends))
    (margin,) = row.margins
    assert (margin.value, margin.low, margin.high) == (np.median(ordered), ordered[5], ordered[14])
    assert ask(check.replace("median", "each"), [runs], **said).verdict == "not reproduced"
    few = ask(check, [runs[:5]], trials=5, trials_wanted=5)
    assert (few.verdict, "(an interval needs six trials)" in few.why) == ("within noise", True)
    assert ask(check, [runs[:1]], trials=1, trials_wanted=1).verdict == "holds"  # a single one of the trials
    split = np.column_stack([np.ones(20), np.where(np.arange(20) < 9, 1e-16, 1.0)])
    assert ask(check, [split], **said).verdict == "within noise"
    stuck = np.column_stack([np.ones(20), np.where(np.arange(20) < 4, 1e-16, 1.0)])
    assert ask(check, [stuck], **said).verdict == "not reproduced"
    assert ask("median(reach(1e-20, Q2=1) < 5)", [runs], **said).verdict == "not reproduced"  # infinite in all


def test_a_trial_in_which_neither_side_gets_there_hides_none_that_fails(ask: Callable[..., Any]) -> None:
    left = np.array([[9.0, 9, 9, 9], [9, 9, 9, 1], [9, 9, 1, 1]])  # the level is reached never, late, late
    right = np.array([[9.0, 9, 9, 9], [1, 1, 1, 1], [1, 1, 1, 1]])
    row = ask("each(reach(2, Q2=1) < reach(2, Q2=5))", [left, right])  # margins nan, then two below zero
    assert row.verdict == "not reproduced"
    assert "in the worst trial (2)" in row.why
    assert ask("each(reach(2, Q2=1) <= reach(2, Q2=1))", [left, right]).verdict == "within noise"
    infinite = np.array([[np.inf, 2.0], [0.0, 0.0], [0.0, 0.0]])
    row = ask("each(y(at=[0, 1], Q2=1) < y(at=[0, 1], Q2=5))", [infinite, [[np.inf, 1.0], [1, 2], [1, 2]]])
    assert row.verdict == "not reproduced"  # margins nan and -1 in the first trial, 1 and 2 in the others
    assert "margin -1 objective (relative) in the worst trial (1)" in row.why


@pytest.mark.parametrize(
    ("check", "said"),
    [
        ("y(at=1, Q2=1) + 1", "must compare two values"),
        (
            "y(at=1, Q2=1) == y(at=1, Q2=5)",
            "the check may not contain 'y(at=1, Q2=1) == y(at=1, Q2=5)': computed values are hardly ever exactly "
            "equal; say how near they have to be, as in abs(y(at=1, Q2=1) - (y(at=1, Q2=5))) < 0.01",
        ),
        ("(y(at=1, Q2=1) < 1) + 1 < 2", "may not compare 'y(at=1, Q2=1) < 1': it is true or false, not a number"),
        ("each(y(at=1, Q2=1) < 1) < 2", "may not compare 'each(y(at=1, Q2=1) < 1)': it is true or false, not a number"),
        ("each(y(at=1, Q2=1) < 1, 2)", "each() takes one comparison, for instance each(y(...) < 1)"),
        ("median(y(at=1, Q2=1) < 1, 2)", "median() takes one comparison, for instance median(y(...) < 1)"),
        ("each(y(at=1, Q2=1)) and y(at=1, Q2=1) < 2", "'y(at=1, Q2=1)' is not a comparison; use <, <=, > or >="),
    ],
)
def test_what_is_no_comparison_is_refused(check: str, said: str) -> None:
    with pytest.raises(UserError) as error:
        claim_grammar.parse(check)
    assert said in str(error.value)


def test_values_at_equal_cost(ask: Callable[..., Any]) -> None:
    values = [[9, 5, 3, 1], [9, 3, 2, 0]]  # the second sends twice as much a round
    assert ask("y(cost=20, Q2=1) < y(cost=39, Q2=5) + 0.1", values).verdict == "reproduced"
    assert ask("total(axis='uplink_scalars', Q2=5) > 59", values).verdict == "reproduced"
    assert ask("lowest(Q2=1) < 1.5 and highest(Q2=1, since=2) < 3.5", values).verdict == "reproduced"


def test_costs_are_averaged_over_trials_as_the_curves_are() -> None:
    """A trial that draws larger clients sends more: what is sent by 25 is read off the mean of both."""
    sent = {"uplink_scalars": np.array([[0.0, 10.0, 20.0], [0.0, 30.0, 60.0]])}
    values, at = np.array([[9.0, 5, 1], [9, 7, 3]]), np.arange(3)
    of_both = Series(at, values, sent, at, "lower", np.array([2, 2])).over(np.arange(2))
    assert judge_module._total(of_both, "uplink_scalars") == 40
    assert judge_module._y(of_both, cost=25) == 6


def test_a_recorded_metric_can_be_the_axis(ask: Callable[..., Any]) -> None:
    values = [[9, 5, 3, 1], [9, 3, 3, 1]]
    assert ask("reach(4, axis='objective', Q2=1) > 2.5", values).verdict == "reproduced"  # 3, the value itself
    assert ask("total(axis='objective', Q2=1) < 1.5", values).verdict == "reproduced"


def test_a_diverged_run_counts_as_infinitely_bad(ask: Callable[..., Any]) -> None:
    broken = [[1, 0.1, np.nan]]
    row = ask("y(at='end', Q2=1) < y(at='end', Q2=5)", [broken, [9, 9, 9]],
              statuses={"fedcavg Q1=2 Q2=1 @ syn / unf": "diverged"})  # fmt: skip
    assert row.verdict == "not reproduced"


def test_a_sign_that_all_trials_share_decides_the_median_and_not_the_mean(ask: Callable[..., Any]) -> None:
    ends = [[9, 5, end] for end in (2, 2.1, 1.9, 2, 2.2, 9)]
    row = ask("y(at='end', Q2=5) > y(at='end', Q2=1)", [[[9, 5, 1]] * 6, ends], trials=6)
    assert row.verdict == "within noise"
    assert row.why == (
        "margin 2.2 objective (relative) [-0.784, 5.18] over 6 trials; excluded: below -0.784 and above 5.18; "
        "at this margin and spread 9 trials would decide"
    )
    assert (row.units, row.trials_to_decide) == (("objective (relative)",), 9)
    row = ask("median(y(at='end', Q2=5) > y(at='end', Q2=1))", [[[9, 5, 1]] * 6, ends], trials=6)
    assert row.verdict == "reproduced"
    row = ask("median(y(at='end', Q2=5) < y(at='end', Q2=1))", [[[9, 5, 1]] * 6, ends], trials=6)
    assert row.verdict == "not reproduced"


def test_only_the_paper_tier_on_real_complete_data_counts(ask: Callable[..., Any]) -> None:
    check, values = "y(at=1, Q2=1) < y(at=1, Q2=5)", [[1, 1], [2, 2]]
    full = ask(check, values)
    assert (full.verdict, full.level, full.evidence) == ("reproduced", "paper", "")
    for level, (why, about) in LESS.items():
        row = ask(check, values, **about)
        assert (row.verdict, row.level, row.evidence) == ("holds", level, why)
        assert row.reason.startswith(f"{why}: margin ")


def test_without_its_papers_evidence_is_unknown_and_says_why(ask: Callable[..., Any]) -> None:
    check, values = "y(at=1, Q2=1) < y(at=1, Q2=5)", [[1, 1], [2, 2]]
    first = "fedcavg Q1=2 Q2=1 @ syn / unf"
    other = {"runs": {first: ["a", "", "c"], "fedcavg Q1=2 Q2=5 @ syn / unf": ["d", "e", "f"]}}
    for papers, why in (
        ({"csv_sha256": ""}, "with a sidecar that has no hash of the CSV"),
        ({"runs": {}}, "with a sidecar that names no runs"),
        ({"schema": 1}, "with a sidecar that names no runs"),  # that version had none, whatever the text contains
        ({"figure": "beyond/other"}, "with the sidecar of beyond/other at the paper tier"),
        ({"complete": True, "plan": "of other runs"}, "with a sidecar whose runs are not those of its plan"),
        ({"datasets": []}, "with a sidecar that does not list synthetic"),
        (other, f"with a sidecar that names no run for trial 2 of {first}"),
    ):
        row = ask(check, values, **papers)
        assert (row.verdict, row.level, row.evidence) == ("holds", "unknown", why)
    row = ask(check, values, settings=[])
    assert row.evidence.startswith(f"with a sidecar that records no settings of {first}; with a sidecar")
    of_others = [{"series": first, "params": {}}, {"series": "fedcavg Q1=2 Q2=5 @ syn / unf", "params": {}}]
    row = ask(check, values, settings=of_others)
    assert (row.verdict, row.evidence) == ("reproduced", ""), "such results are stale, as after a change of code"


def test_numbers_without_a_sidecar_are_of_unknown_origin(figure: Figure) -> None:
    series = [curve.setting.series for curve in figure.panels[0].curves]
    rows = frame({series[0]: np.ones((3, 2)), series[1]: np.full((3, 2), 2.0)})
    row = judge(Claim("x", "s", "w", "a", "y(at=1, Q2=1) < y(at=1, Q2=5)"), figure, rows, Sidecar())
    assert (row.verdict, row.level, row.evidence) == ("holds", "unknown", "from a CSV without a sidecar")


LESS: dict[str, tuple[str, dict[str, Any]]] = {
    "partial": ("on 2 of 3 trials", {"trials": 2}),
    "variant": (
        "on a variant of synthetic (fewer images)",
        {"datasets": [{"dataset": "synthetic", "state": "variant", "note": "fewer images"}]},
    ),
    "unknown": ("with a sidecar that has no hash of the CSV", {"csv_sha256": ""}),
    "changed": ("changed by --set rounds=3", {"sets": ["rounds=3"]}),
    "quick": ("at the quick tier", {"tier": "quick"}),
    "smoke": ("at the smoke tier", {"tier": "smoke"}),
    "stand-in": ("on a stand-in for synthetic, which says nothing about the paper", {"stand_ins": ["synthetic"]}),
}


@pytest.mark.parametrize("level", LESS)
def test_on_less_evidence_a_claim_holds_fails_or_is_undecided(ask: Callable[..., Any], level: str) -> None:
    about = LESS[level][1]
    noisy = np.array([[1.0, 1], [1, 3], [1, 2]])[: about.get("trials", 3)]
    assert ask("y(at=1, Q2=1) < y(at=1, Q2=5)", [[1, 1], [2, 2]], **about).verdict == "holds"
    assert ask("y(at=1, Q2=1) > y(at=1, Q2=5)", [[1, 1], [2, 2]], **about).verdict == "fails"
    assert ask("y(at=1, Q2=1) < y(at=1, Q2=5)", [noisy, [[2, 2.0]] * len(noisy)], **about).verdict == "undecided"
    row = ask("y(at=99, Q2=1) < y(at=99, Q2=5)", [[1, 1], [2, 2]], **about)
    assert (row.verdict, row.level, row.evidence) == ("not tested", "none", "")


def test_of_several_shortcomings_the_worst_is_the_level_and_all_are_named(ask: Callable[..., Any]) -> None:
    about = {"trials": 2, "tier": "quick", "stand_ins": ["synthetic"], "sets": ["a=1"]}
    row = ask("y(at=1, Q2=1) < y(at=1, Q2=5)", [[1, 1], [2, 2]], **about)
    assert row.level == "stand-in"
    assert row.evidence == (
        "on a stand-in for synthetic, which says nothing about the paper; at the quick tier; changed by --set a=1; "
        "on 2 of 3 trials"
    )
    assert ask("y(at=1, Q2=1) < y(at=1, Q2=5)", [[1, 1], [2, 2]], stand_ins=["mnist"]).level == "paper"  # not its data


def test_data_of_another_size_than_the_papers_are_a_variant_and_the_size_is_said(
    figure: Figure, ask: Callable[..., Any]
) -> None:
    (alias,) = {curve.setting.names["dataset"] for curve in figure.panels[0].curves}
    stated = {"sizes": {alias: {"N": 10000, "M": 12}}}
    row = ask("y(at=1, Q2=1) < y(at=1, Q2=5)", [[1, 1], [2, 2]], sizes={alias: {"N": 8920, "M": 12}}, figure_=stated)
    assert (row.verdict, row.level) == ("holds", "variant")
    assert row.evidence == f"on {alias} with N = 8,920 (the paper's: 10,000)"
    same = ask(
        "y(at=1, Q2=1) < y(at=1, Q2=5)", [[1, 1], [2, 2]], sizes={alias: {"N": 10000, "M": 12, "K": 3}}, figure_=stated
    )
    assert (same.verdict, same.level) == ("reproduced", "paper")
    row = ask("y(at=1, Q2=1) < y(at=1, Q2=5)", [[1, 1], [2, 2]], figure_=stated)  # results from before sizes were kept
    assert (row.verdict, row.evidence) == ("holds", f"on {alias}, whose size these results do not record")
    row = ask("y(at=1, Q2=1) < y(at=1, Q2=5)", [[1, 1], [2, 2]], sizes={alias: {"N": 10000}}, figure_=stated)
    assert (row.level, row.evidence) == ("variant", f"on {alias}, whose M these results do not record")


def test_a_stand_in_for_other_data_hides_no_size(figure: Figure, ask: Callable[..., Any]) -> None:
    (alias,) = {curve.setting.names["dataset"] for curve in figure.panels[0].curves}
    said = {"sizes": {alias: {"N": 8920}}, "figure_": {"sizes": {alias: {"N": 10000}}}}
    check, values = "y(at=1, Q2=1) < y(at=1, Q2=5)", [[1, 1], [2, 2]]
    row = ask(check, values, stand_ins=["mnist"], **said)
    assert (row.level, row.evidence) == ("variant", f"on {alias} with N = 8,920 (the paper's: 10,000)")
    row = ask(check, values, stand_ins=["synthetic"], **said)  # a stand-in has no size to be compared
    assert row.evidence == "on a stand-in for synthetic, which says nothing about the paper"


def test_the_spec_says_how_many_trials_are_wanted(ask: Callable[..., Any]) -> None:
    check, values = "y(at=1, Q2=1) < y(at=1, Q2=5)", [[1, 1], [2, 2]]
    row = ask(check, values, trials=2, trials_wanted=2)  # the spec asked for 2 then, and for 3 today
    assert (row.verdict, row.level, row.evidence) == ("holds", "partial", "on 2 of 3 trials")
    assert ask(check, values, trials=3, trials_wanted=2).level == "paper"
    assert ask(check, values, trials=3, trials_wanted=4).evidence == "on 3 of 4 trials"


def test_trials_count_by_the_curves_that_a_claim_reads(ask: Callable[..., Any]) -> None:
    third = np.array([[1.0, 1]])  # of this curve one trial is finished, of the others all
    row = ask("y(at=1, Q2=1) < y(at=1, Q2=5)", [[1, 1], [2, 2], third], trials_done=1, ragged=True)
    assert (row.verdict, row.level, row.trials) == ("reproduced", "paper", 3)
    row = ask("y(at=1, Q2=1) < y(at=1, Q2=5) + y(at=1, m=2)", [[1, 1], [2, 2], third], trials_done=1, ragged=True)
    assert (row.verdict, row.level, row.trials) == ("holds", "partial", 1)


def test_every_recorded_round_since_one(ask: Callable[..., Any]) -> None:
    values = [[1.0, 1, 1, 4, 1, 1], [2.0, 2, 2, 2, 2, 2]]
    assert ask("y(since=4, Q2=1) < y(since=4, Q2=5)", values).verdict == "reproduced"
    assert ask("y(since=2, Q2=1) < y(since=2, Q2=5)", values).verdict == "not reproduced"  # round 3
    assert (
        ask("mean(y(since=2, Q2=1)) < y(at=2, Q2=5) and mean(y(since=2, Q2=1)) > 1.7", values).verdict == "reproduced"
    )
    ended = [[1.0, 1], [2.0, 2, 2, 2, 2, 2]]  # one ended early: its last value counts to the planned end
    assert ask("y(since=2, Q2=1) < y(since=2, Q2=5)", ended).verdict == "reproduced"
    assert (
        ask("y(since=6, Q2=1) < y(since=6, Q2=5)", values).why
        == "round 6 is after the last of the 5 rounds of this tier"
    )
    assert ask("y(at=[1, 2], Q2=1) < y(at=[1, 2, 3], Q2=5)", values).why == "its sides are read at 2 and at 3 rounds"
    assert ask("y(cost=[10, 20], Q2=1) < y(cost=[20, 40], Q2=5)", values).verdict == "reproduced"


def test_what_lies_before_since_counts_for_nothing(ask: Callable[..., Any]) -> None:
    for check, values in {
        "abs(lowest(since=1, Q2=1) - 3) < 1e-9": [0.1, 5, 3, 4],
        "abs(highest(since=1, Q2=1) - 5) < 1e-9": [9, 5, 3, 4],
        "abs(rise(since=1, Q2=1) - 1) < 1e-9": [0, 9, 3, 4],
        "abs(mean(y(since=2, Q2=1)) - 4) < 1e-9": [99, 99, 3, 4, 5, 4],
        "abs(decay(since=1, until=2, Q2=1) - 1) < 1e-9": [1e6, 10, 1, 1e-6],
        "abs(slope(since=2, until=4, Q2=1) + 2) < 1e-9": [7, 7, 1 / 4, 1 / 9, 1 / 16, 7],
    }.items():
        assert ask(check, [values]).verdict == "reproduced", check


def test_first_is_the_first_recorded_round_strictly_beyond(ask: Callable[..., Any]) -> None:
    values = [[9.0, 4, 3], [9.0, 8, 7]]
    assert ask("abs(first(4, Q2=1) - 2) < 1e-12", values).verdict == "reproduced"  # at 4 it is not yet below
    assert ask("abs(first(4.1, axis='uplink_scalars', Q2=1) - 10) < 1e-12", values).verdict == "reproduced"
    assert ask("first(1, Q2=1) < 1e9", values).verdict == "not reproduced"  # never


def test_results_that_lack_a_metric_test_nothing_that_reads_it(figure: Figure) -> None:
    """As in results of an older spec, if a figure records more today."""
    settings = [c.setting for c in figure.panels[0].curves]
    more = [dataclasses.replace(s, metrics=(*s.metrics, "objective_raw")) for s in settings]
    curves = tuple(dataclasses.replace(c, setting=s) for c, s in zip(figure.panels[0].curves, more, strict=True))
    shown = dataclasses.replace(figure, panels=(dataclasses.replace(figure.panels[0], curves=curves),))
    rows = frame({s.series: np.ones((3, 2)) for s in settings})
    about = consistent(figure, rows, trials_done=3, trials_wanted=3)
    for check in ("y(at=1, Q2=1, metric='objective_raw') < 2", "total(axis='objective_raw', Q2=1) < 2"):
        row = judge(Claim("x", "s", "w", "a", check), shown, rows, about)
        assert (row.verdict, row.why) == ("not tested", "these results do not have the metric 'objective_raw'")
    assert judge(Claim("x", "s", "w", "a", "y(at=1, Q2=1) < 2"), shown, rows, about).verdict == "reproduced"


def test_what_a_reader_needs_is_asked_for(figure: Figure) -> None:
    panels = {panel.id: panel for panel in figure.panels}
    for check, message in {
        "first(Q2=1) < 3": "first(Q2=1): first() needs the level to reach as its first argument",
        "y(Q2=1) < 3": "y(Q2=1): y() needs at=ROUND, since=ROUND, when=ROUND or cost=NUMBER, one of the four",
        "y(at=1, since=2, Q2=1) < 3": (
            "y(at=1, since=2, Q2=1): y() needs at=ROUND, since=ROUND, when=ROUND or cost=NUMBER, one of the four"
        ),
    }.items():
        assert list(claim_grammar.problems(Claim("x", "s", "w", "a", check), panels, ())) == [message]


@pytest.mark.parametrize(
    ("check", "message"),
    [
        ("reach(y(at=[1, 2], Q2=1), Q2=5) < 3",
         "reach(y(at=[1, 2], Q2=1), Q2=5): reach() needs one level, not several"),
        ("first(y(since=1, Q2=1), Q2=5) < 3", "first(y(since=1, Q2=1), Q2=5): first() needs one level, not several"),
        ("reach([0.4, 0.5], Q2=1) < 3", "reach([0.4, 0.5], Q2=1): reach() needs one level, not several"),
        ("reach('low', Q2=1) < 3", "'low' is neither a number nor a list of numbers"),
        ("reach(1, level=2, Q2=1) < 3",
         "reach(1, level=2, Q2=1): reach() takes each of its values once, and without a name only level, axis"),
        ("y(1, 2, 3, 4, 5, 6, 7, Q2=1) < 3",
         "y(1, 2, 3, 4, 5, 6, 7, Q2=1): y() takes each of its values once, and without a name only at, cost, since, "
         "of, when, axis"),
        ("y(at='start', Q2=1) < 3",
         "y(at='start', Q2=1): at='start' must be a round (a whole number from 0 on), 'end', or a list of them"),
        ("y(at=[], Q2=1) < 3",
         "y(at=[], Q2=1): at=[] must be a round (a whole number from 0 on), 'end', or a list of them"),
        ("y(at=-5, Q2=1) < 3",
         "y(at=-5, Q2=1): at=-5 must be a round (a whole number from 0 on), 'end', or a list of them"),
        ("y(at=1.5, Q2=1) < 3",
         "y(at=1.5, Q2=1): at=1.5 must be a round (a whole number from 0 on), 'end', or a list of them"),
        ("y(since='end', Q2=1) < 3", "y(since='end', Q2=1): since='end' must be a round (a whole number from 0 on)"),
        ("lowest(since='x', Q2=1) < 3",
         "lowest(since='x', Q2=1): since='x' must be a round (a whole number from 0 on)"),
        ("min() < y(at=1, Q2=1)", "min(): min() takes two values or more, and compares them"),
        ("max(y(since=1, Q2=1)) < 3", "max(y(since=1, Q2=1)): max() takes two values or more, and compares them"),
        ("mean() < y(at=1, Q2=1)", "mean(): mean() takes one value"),
        ("abs(y(at=1, Q2=1), 3) < 3", "abs(y(at=1, Q2=1), 3): abs() takes one value"),
        ("log10(y(at=1, Q2=1), 2) < 3", "log10(y(at=1, Q2=1), 2): log10() takes one value"),
        ("abs(a=y(at=1, Q2=1)) < 3", "abs(a=y(at=1, Q2=1)): abs() takes one value"),
        ("y(cost='all', Q2=1) < 3", "'all' is neither a number nor a list of numbers"),
        ("y(at=1, Q2=1) < y", "y is neither a number nor a list of numbers"),
        ("y(at=1, Q2=1) < True", "True is neither a number nor a list of numbers"),
        ("y(at=[1, 2], Q2=1) < -[1, 2, 3]",
         "'y(at=[1, 2], Q2=1) < -[1, 2, 3]': its sides are read at 2 and at 3 rounds"),
        ("y(at=1, panel=['a'], Q2=1) < 3", "there is no panel '['a']'"),
        ("total(axis=['round'], Q2=1) < 3", "total(axis=['round'], Q2=1): '['round']' is not an axis"),
    ],
)  # fmt: skip
def test_arguments_are_counted_and_of_their_kind(figure: Figure, check: str, message: str) -> None:
    found = list(claim_grammar.problems(Claim("x", "s", "w", "a", check), {p.id: p for p in figure.panels}, ("round",)))
    assert len(found) == 1
    assert found[0].startswith(message)


@pytest.mark.parametrize(
    ("check", "message"),
    [
        ("y(at=1, Q2=1) < " + "1+" * 100 + "1", "the check has more than 60 nested expressions"),
        ("y(at=1, Q2=1) < " + "-" * 3000 + "1", "the check has more than 60 nested expressions"),
        ("y(at=1, Q2=1) < " + "(" * 300 + "1" + ")" * 300, "the check is not an expression: too many nested parenthes"),
        ("y(at=1, Q2=1) < " + "1 * " * 2000 + "1", "the check has 8,017 characters; at most 4,000 are allowed"),
        ("y(at=1, Q2=1) < \0", "the check is not an expression: "),
        ("y(at=1, Q2=1) < 1e400", "1e309 is neither a number nor a list of numbers"),
        ("y(at=1, Q2=1) < 1j", "1j is neither a number nor a list of numbers"),
        ("y(at=" + "9" * 3000 + ", Q2=1) < 1", "y(at=9999"),
    ],
    ids=range(8),
)
def test_checks_are_read_within_bounds(figure: Figure, check: str, message: str) -> None:
    (found,) = claim_grammar.problems(Claim("x", "s", "w", "a", check), {p.id: p for p in figure.panels}, ("round",))
    assert found.startswith(message)


def test_what_may_be_written_is_judged(figure: Figure, ask: Callable[..., Any]) -> None:
    values = [[9, 5, 3, 1], [9, 3, 2, 0]]
    for check in (
        "-[10, 6] < y(at=[0, 1], Q2=1)",
        "y([0, 'end'], Q2=1) <= [9, 1]",
        "reach(min(y(at=1, Q2=1), y(at=2, Q2=1)), 'round', Q2=1) < 2.5",
        "reach(mean(y(at=[1, 2], Q2=1)), Q2=1) < 1e9",
        "max(y(since=2, Q2=1), 2) < log10(1e4) + [0]",
    ):
        assert not list(
            claim_grammar.problems(Claim("x", "s", "w", "a", check), {p.id: p for p in figure.panels}, ("round",))
        )
        assert ask(check, values).verdict == "reproduced", check


def test_a_cost_beyond_what_was_sent_tests_nothing_but_a_run_that_ended_by_itself(ask: Callable[..., Any]) -> None:
    whole, ended = [9, 5, 3, 2, 1, 1], [9, 5, 3]  # 5 rounds are planned, of 10 numbers each
    assert ask("y(cost=50, Q2=1) <= 1", [whole]).verdict == "reproduced"
    row = ask("y(cost=1e30, Q2=1) <= 1", [whole])
    assert (row.verdict, row.level) == ("not tested", "none")
    assert row.why.endswith("is more than the 50 numbers sent in this tier")
    assert ask("y(cost=1e30, Q2=1) <= 3", [ended]).verdict == "reproduced"  # nothing more was to be sent
    assert ask("y(cost=[10, 60], Q2=1) <= 9", [whole]).verdict == "not tested"
    assert ask("y(cost=-5, Q2=1) <= 9", [whole]).why == "a cost of -5 is less than the 0 numbers sent at the start"


def test_a_parameter_of_a_curve_may_be_named_as_an_argument_of_another_function(figure: Figure) -> None:
    first, *others = figure.panels[0].curves
    odd = [dataclasses.replace(first, select={**first.select, "level": k, "since": k}, label=f"c{k}") for k in (1, 2)]
    odd[1] = dataclasses.replace(odd[1], setting=others[0].setting)
    shown = dataclasses.replace(figure, panels=(dataclasses.replace(figure.panels[0], curves=tuple(odd)),))
    rows = frame({item.setting.series: np.full((3, 2), k) for k, item in enumerate(odd, start=1)})
    about = consistent(shown, rows, trials_done=3, trials_wanted=3)
    claim = Claim("x", "s", "w", "a", "y(at=1, level=1) < y(at=1, level=2) and total('objective', since=1) <= 1")
    assert not list(claim_grammar.problems(claim, {"a": shown.panels[0]}, ("round",)))
    assert [c.label for c in judge_module.curves(claim, shown)] == ["c1", "c2"]
    assert judge(claim, shown, rows, about).verdict == "reproduced"


def test_what_the_results_lack_is_said(ask: Callable[..., Any]) -> None:
    assert ask("y(at=4, Q2=1) < y(at=1, Q2=5)", [[1, 1], [2, 2]]).verdict == "reproduced"  # ended early: its last value
    row = ask("y(at=100, Q2=1) < y(at=1, Q2=5)", [[1, 1], [2, 2]])
    assert row.verdict == "not tested"
    assert row.why == "round 100 is after the last of the 5 rounds of this tier"
    absent = ask("y(at=1, m=2) < y(at=1, Q2=5)", [[1, 1], [2, 2]])
    assert absent.why == "'FedCGds m=2 Q1=3' has no finished trials"


@pytest.mark.parametrize(
    ("check", "unit"),
    [
        ("reach(5, Q2=1) < reach(5, Q2=5)", "rounds"),
        ("reach(5, axis='uplink_scalars', Q2=1) < 0.8 * total('uplink_scalars', Q2=5)", "numbers sent up"),
        ("reach(5, axis='uplink_bits', Q2=1) < 1e6", "bits sent up"),
        ("reach(5, axis='uplink_bits', Q2=1) < reach(5, Q2=5)", ""),  # bits are not rounds
        ("y(at=1, Q2=1) < 0.5 * y(at=1, Q2=5) + 0.1", "objective (relative)"),
        ("y(at=1, metric='objective_raw', Q2=1) < 3", "objective (absolute)"),
        ("abs(-y(at=1, metric='accuracy', Q2=1) - 0.8) < 0.03", "clustering accuracy (0.01 = 1 point)"),
        ("y(at=1, Q2=1) / y(at=1, Q2=5) < 0.5", "ratio"),
        ("1 - y(at=1, Q2=1) / y(at=1, Q2=5) < y(at=2, Q2=1) / y(at=2, Q2=5)", "ratio"),
        ("y(at=1, Q2=1) / y(at=1, Q2=5) * reach(5, Q2=1) < 9", "rounds"),
        ("1 / reach(5, Q2=1) < 9", ""),
        ("log10(y(at=1, Q2=1)) < -3", "powers of ten"),
        ("slope(Q2=1) <= -0.9", "exponent"),
        ("decay(Q2=1) <= 0.1", "powers of ten per round"),
        ("y(at=1, of='squares', Q2=1) < 3", "objective (relative), squared"),
        ("min(mean(y(since=1, Q2=1)), 7) < highest(Q2=5)", "objective (relative)"),
        ("parameter('Q2', Q2=1) <= 3", ""),
    ],
)
def test_a_margin_has_the_unit_of_what_the_check_reads(figure: Figure, check: str, unit: str) -> None:
    claim = Claim("x", "s", "w", "a", check)
    (comparison,) = judge_module.comparisons(claim_grammar.parse(check).body)
    assert units.of(comparison.left, comparison.right, claim, {p.id: p for p in figure.panels}) == unit


def test_several_comparisons_fail_only_after_holms_correction(ask: Callable[..., Any]) -> None:
    """One of them has a tail between 2.5 %, for one comparison, and 2.5 % / 3, for three."""
    ends = np.array([[9, -1.0], [9, -0.45], [9, -0.8]])
    row = ask("y(at=1, Q2=1) > 0", [ends])
    assert row.verdict == "not reproduced"
    assert 0.025 / 3 < row.margins[0].tail < 0.025
    three = ask("y(at=1, Q2=1) > 0 and y(at=0, Q2=1) > 0 and y(at=0, Q2=1) < 99", [ends])
    assert three.verdict == "within noise"
    assert "; not below zero after Holm's correction for 3 comparisons" in three.why
    assert three.trials_to_decide is None
    assert ask("y(at=1, Q2=1) > [0, -99, -99]", [ends]).verdict == "within noise"  # places count as well
    assert ask("y(at=1, Q2=1) > 0 and y(at=0, Q2=1) < 1", [ends]).verdict == "not reproduced"  # a sure one is enough
    up = -ends
    assert ask("y(at=1, Q2=1) > 0 and y(at=1, Q2=1) > -9 and y(at=1, Q2=1) > -9", [up]).verdict == "reproduced"


def test_skewed_trials_are_said_where_they_decide(ask: Callable[..., Any]) -> None:
    ends = [[9, 5, end] for end in (4, 4, 4, 4, 4, 4, 4, 3.9)]
    row = ask("y(at='end', Q2=1) > 1", [ends], trials=8)
    assert row.verdict == "reproduced"
    assert "] (skewed trials: the interval may be too narrow) over 8 trials" in row.why


def test_claims_of_several_figures_with_the_same_numbers_count_once(ask: Callable[..., Any]) -> None:
    low, high = [[9, 5.0, 1.0], [9, 5.1, 1.1], [9, 4.9, 0.9]], [[9, 6.0, 2.0], [9, 6.2, 2.2], [9, 5.8, 1.9]]
    row = ask("y(at='end', Q2=1) < y(at='end', Q2=5)", [low, high])

    def claim(name: str, figure: str, of: Any = row, **changed: Any) -> Any:
        return dataclasses.replace(of, claim=dataclasses.replace(of.claim, id=name), figure=figure, **changed)

    (margin,) = row.margins
    bit = dataclasses.replace(margin, high=float(np.nextafter(margin.high, np.inf)))
    twins = [claim("a", "fedc/fig1"), claim("b", "fedmf/fig1")]
    assert distinct.distinct(twins) == 1
    assert distinct.in_words(twins) == "2 claims, 1 distinct"
    assert distinct.in_words(twins[:1]) == distinct.explained(twins[:1]) == "1 claim"
    rule = "(claims of several figures with the same margins and verdict count once)"
    assert distinct.explained(twins) == f"2 claims, 1 distinct {rule}"
    assert distinct.distinct([claim("a", "fedc/fig1"), claim("b", "fedc/fig1")]) == 2  # of one figure
    assert distinct.distinct([*twins, claim("c", "fedmf/fig1")]) == 2
    assert distinct.distinct([twins[0], claim("b", "fedmf/fig1", verdict="holds")]) == 2
    assert distinct.distinct([twins[0], claim("b", "fedmf/fig1", margins=(bit,))]) == 2
    count = ask("parameter('Q2', Q2=1) < 3", [low, high])  # equal by chance: there is no interval
    assert distinct.distinct([claim("a", "fedc/fig1", count), claim("b", "fedmf/fig1", count)]) == 2


@pytest.mark.parametrize("effect", [0, 1])
def test_claims_of_known_truth_are_decided_as_often_as_nominal(figure: Figure, effect: float) -> None:
    """Three normal trials and an effect in half widths; bench/verdict_calibration.py has other trials."""
    first, second = (curve.setting.series for curve in figure.panels[0].curves[:2])
    claim = Claim("x", "s", "w", "a", "y(at=1, Q2=1) < y(at=1, Q2=5)")
    quantile = stats.t.ppf(0.975, 2)
    draws = effect * quantile / np.sqrt(3) + np.random.default_rng(effect).standard_normal((100, 3))
    judged = []
    for margins in draws:
        rows = frame({first: np.zeros((3, 2)), second: np.column_stack([margins, margins])})
        judged.append(judge(claim, figure, rows, Sidecar()).verdict)
    decided = np.mean([verdict != "undecided" for verdict in judged])
    truth = stats.nct(2, effect * quantile)  # distribution of Student's statistic at this effect
    assert decided == pytest.approx(truth.sf(quantile) + truth.cdf(-quantile), abs=0.1)
    if effect:
        assert "fails" not in judged


# -- every reading by other code ---------------------------------------------------------------------------------------

ROUNDS = [0, 1, 2, 3, 10, 20, 30, 40]
"""The recorded rounds of ``rounds: 40, record_every: 10, record_dense: 3``."""


RECORDS: dict[int, tuple[pd.DataFrame, list[dict[str, Any]]]] = {}


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a table, worked out once, by round."""
    if id(table) not in RECORDS:
        RECORDS[id(table)] = table, table.sort_values("round").to_dict("records")
    return RECORDS[id(table)][1]


class Plain:
    """An averaged curve, worked out with loops from the rows of a table: values and counts by round."""

    def __init__(self, table: pd.DataFrame, series: str, trials: Any) -> None:
        own = [row for row in records(table) if row["series"] == series]
        self.rounds = sorted({row["round"] for row in own})
        runs = [[row for row in own if row["trial"] == trial] for trial in trials]
        self.y, self.sent, self.worked = (
            [np.mean([self.last(run, r, of) for run in runs]) for r in self.rounds]
            for of in ("value", "uplink_scalars", "round")  # a run that has ended sends no more and works no more
        )

    @staticmethod
    def last(run: list[dict[str, Any]], r: int, of: str) -> float:
        """The last record up to a round; of a run that blew up infinity from its end on."""
        record = [row for row in run if row["round"] <= r][-1]
        blown = run[-1]["status"] == "diverged" and not np.isfinite(run[-1]["value"])
        return np.inf if of == "value" and blown and r >= run[-1]["round"] else record[of]

    def at(self, r: float) -> float:
        return [y for s, y in zip(self.rounds, self.y, strict=True) if s <= r][-1]

    def since(self, r: float) -> list[float]:
        return [y for s, y in zip(self.rounds, self.y, strict=True) if s >= r]

    def cost(self, c: float) -> float:
        return [y for sent, y in zip(self.sent, self.y, strict=True) if sent <= c][-1]

    def reach(self, level: float, x: list[float]) -> float:
        """Where the line between two records, straight in the logarithm of the values, comes down to the level."""
        for k, y in enumerate(self.y):
            if y <= level:
                share = (np.log(self.y[k - 1]) - np.log(level)) / (np.log(self.y[k - 1]) - np.log(y))
                return x[k - 1] + share * (x[k] - x[k - 1])
        return np.inf

    def first(self, level: float, x: list[float]) -> float:
        return next((x[k] for k, y in enumerate(self.y) if y < level), np.inf)

    def slope(self, since: int, until: int, of: list[float]) -> float:
        """A line through the logarithms; a record weighs as much as the logarithmic distance to its neighbours."""
        kept = [(np.log(r), np.log(y)) for r, y in zip(self.rounds, of, strict=True) if since <= r <= until]
        x, y = np.array(kept).T
        inner = [(x[i + 1] - x[i - 1]) / 2 for i in range(1, len(x) - 1)]
        weights = np.array([x[1] - x[0], *inner, x[-1] - x[-2]])
        return float(np.polyfit(x, y, 1, w=np.sqrt(weights))[0])

    def mean(self, power: int = 1) -> list[float]:
        """The mean over all rounds so far, those between two records on the line between them."""
        result, area, values = [self.y[0] ** power], 0.0, [y**power for y in self.y]
        for k in range(1, len(values)):
            area += (self.rounds[k] - self.rounds[k - 1]) * (values[k] + values[k - 1]) / 2
            result.append(area / (self.rounds[k] - self.rounds[0]))
        return result


READ: dict[str, Callable[[Plain], float]] = {
    "y(at=3, Q2=1)": lambda c: c.at(3),
    "y(at=4, Q2=1)": lambda c: c.at(3),  # not recorded: the last one before
    "y(at=29, Q2=1)": lambda c: c.at(20),
    "y(at='end', Q2=1)": lambda c: c.at(40),
    "y(at=20, of='mean', Q2=1)": lambda c: c.mean()[5],
    "y(at=20, of='squares', Q2=1)": lambda c: c.mean(2)[5],
    "y(at=30, of='least', Q2=1)": lambda c: min(c.y[:7]),
    "y(cost=1500, Q2=1)": lambda c: c.cost(1500),
    "mean(y(since=3, Q2=1))": lambda c: float(np.mean(c.since(3))),
    "total(Q2=1)": lambda c: c.worked[-1],
    "total(axis='uplink_scalars', Q2=1)": lambda c: c.sent[-1],
    "reach(0.5, Q2=1)": lambda c: c.reach(0.5, c.worked),
    "reach(0.5, axis='uplink_scalars', Q2=1)": lambda c: c.reach(0.5, c.sent),
    "first(0.5, Q2=1)": lambda c: c.first(0.5, c.worked),
    "first(0.5, axis='uplink_scalars', Q2=1)": lambda c: c.first(0.5, c.sent),
    "lowest(since=1, Q2=1)": lambda c: min(c.since(1)),
    "highest(since=2, Q2=1)": lambda c: max(c.since(2)),
    "rise(since=1, Q2=1) + 9": lambda c: 9 + max(b - a for a, b in itertools.pairwise(c.since(1))),
    "slope(since=1, Q2=1) + 9": lambda c: 9 + c.slope(1, 40, c.y),
    "slope(since=2, until=30, of='mean', Q2=1) + 9": lambda c: 9 + c.slope(2, 30, c.mean()),
    "decay(since=2, until=20, Q2=1)": lambda c: np.log10(c.at(2) / c.at(20)) / 18,
}


def random_results(figure: Figure, seed: int, trials: int) -> pd.DataFrame:
    """Curves that fall from about 1, noisy enough to rise now and then; every trial sends other amounts."""
    rng = np.random.default_rng(seed)
    rows = []
    for curve in figure.panels[0].curves:
        for trial in range(1, trials + 1):
            sent = np.cumsum(rng.integers(50, 150, 41))
            for r in ROUNDS:
                value = np.exp(-0.06 * r + 0.25 * rng.standard_normal())
                row = {"series": curve.setting.series, "trial": trial, "status": "ok", "metric": "objective"}
                rows.append({**row, "round": r, "value": value, "uplink_scalars": sent[r], "uplink_bits": 1,
                             "downlink_scalars": 1, "downlink_bits": 1})  # fmt: skip
    return pd.DataFrame(rows)


@pytest.fixture
def sparse(small: Path) -> Figure:
    """The small figure with few recorded rounds."""
    recorded = "rounds: 40\nrecord_every: 10\nrecord_dense: 3\n"
    small.write_text(small.read_text().replace("rounds: 5\n", recorded))
    return load(small, "paper")


def plain_interval(read: Callable[[Any], float], trials: int) -> tuple[float, float, float]:
    """The value with its jackknife interval, written down from Efron and Tibshirani, chapter 11."""
    everyone = list(range(1, trials + 1))
    value = read(everyone)
    pseudo = [trials * value - (trials - 1) * read([t for t in everyone if t != out]) for out in everyone]
    half = stats.t.ppf(0.975, trials - 1) * np.std(pseudo, ddof=1) / np.sqrt(trials)
    return value, value - half, value + half


@pytest.mark.parametrize(("trials", "ends"), [(1, 40), (3, 40), (4, 20), (5, 3)])
def test_what_a_check_reads_is_what_plain_loops_read(trials: int, ends: int, sparse: Figure) -> None:
    """The last trial ends by itself in round ``ends``."""
    series, table = sparse.panels[0].curves[0].setting.series, random_results(sparse, trials, trials)
    table = table[(table["trial"] < trials) | (table["round"] <= ends)]
    everyone = range(1, trials + 1)
    for check, plain in READ.items():
        row = judge(Claim("x", "s", "w", "a", f"{check} > 0"), sparse, table, Sidecar(trials_done=trials))

        def read(chosen: Any, plain: Callable[[Plain], float] = plain) -> float:
            return plain(Plain(table, series, chosen))

        wanted = plain_interval(read, trials) if trials > 1 else (read([1]),) * 3
        (margin,) = row.margins
        assert (margin.value, margin.low, margin.high) == pytest.approx(wanted, rel=1e-9), check
        alone = judge(Claim("x", "s", "w", "a", f"each({check} > 0)"), sparse, table, Sidecar(trials_done=trials))
        assert alone.margins[0].value == pytest.approx(min(read([trial]) for trial in everyone), rel=1e-12), check


def test_a_run_that_blew_up_is_infinite_from_its_last_record_on(sparse: Figure) -> None:
    table = random_results(sparse, 0, 3)
    series = sparse.panels[0].curves[0].setting.series
    gone = (table["series"] == series) & (table["trial"] == 2)
    table.loc[gone, "status"] = "diverged"
    table.loc[gone & (table["round"] == 10), "value"] = np.inf
    table = table[~gone | (table["round"] <= 10)]
    for at in (0, 3, 9, 10, 15, 40):
        row = judge(Claim("x", "s", "w", "a", f"y(at={at}, Q2=1) < 1e9"), sparse, table, Sidecar(trials_done=3))
        wanted = 1e9 - Plain(table, series, [1, 2, 3]).at(at)
        assert row.margins[0].value == pytest.approx(wanted)
        assert np.isinf(wanted) == (at >= 10)


def same(shown: Any, wanted: tuple[float, float, float]) -> None:
    assert (shown.value, shown.low, shown.high) == pytest.approx(wanted, rel=1e-9)


def test_both_sides_are_shown_as_plain_loops_read_them(sparse: Figure) -> None:
    """At every place the two values and the margin, each with its interval; the place with the lowest one decides."""
    table, (few, many) = random_results(sparse, 3, 4), [curve.setting.series for curve in sparse.panels[0].curves[:2]]
    check = "y(at=[2, 10, 30], Q2=5) < y(at=[2, 10, 30], Q2=1) + 0.1"
    (shown,) = compared_values.read(Claim("x", "s", "w", "a", check), sparse, table).compared
    margins = []
    for at, pair in zip((2, 10, 30), shown.pairs, strict=True):

        def left(chosen: Any, at: int = at) -> float:
            return Plain(table, many, chosen).at(at)

        def right(chosen: Any, at: int = at) -> float:
            return Plain(table, few, chosen).at(at) + 0.1

        assert pair.place == f"round {at}"
        same(pair.left, plain_interval(left, 4))
        same(pair.right, plain_interval(right, 4))
        margins.append(plain_interval(lambda chosen, a=left, b=right: b(chosen) - a(chosen), 4))
        same(pair.margin, margins[-1])
    rank = [(-1 if high < 0 else 0 if low <= 0 else 1, low) for _, low, high in margins]
    assert [pair.decides for pair in shown.pairs] == [trial == min(rank) for trial in rank]
    assert (shown.count, shown.held) == (3, sum(low > 0 for _, low, _ in margins))


def test_of_every_trial_alone_the_worst_place_is_shown(sparse: Figure) -> None:
    table, (few, many) = random_results(sparse, 4, 5), [curve.setting.series for curve in sparse.panels[0].curves[:2]]
    check = "each(y(at=[2, 10, 30], Q2=5) < y(at=[2, 10, 30], Q2=1) + 0.1)"
    (shown,) = compared_values.read(Claim("x", "s", "w", "a", check), sparse, table).compared
    worst = []
    for trial in range(1, 6):
        with_1, with_5 = (Plain(table, series, [trial]) for series in (few, many))
        worst.append(min((with_1.at(r) + 0.1 - with_5.at(r), r, with_5.at(r), with_1.at(r) + 0.1) for r in (2, 10, 30)))
    assert [pair.trial for pair in shown.pairs] == [1, 2, 3, 4, 5]
    for trial, (pair, (margin, r, left, right)) in enumerate(zip(shown.pairs, worst, strict=True), start=1):
        assert pair.place == f"trial {trial}, round {r}"
        assert (pair.left.value, pair.right.value, pair.margin.value) == pytest.approx((left, right, margin))
        assert pair.decides == (margin == min(worst)[0])
    assert (shown.count, shown.held) == (5, sum(margin > 0 for margin, *_ in worst))


def test_points_are_shown_where_plain_loops_find_them(sparse: Figure) -> None:
    table, (few, many) = random_results(sparse, 6, 3), [curve.setting.series for curve in sparse.panels[0].curves[:2]]
    table = table[(table["series"] != few) | (table["round"] <= 20)]  # the first curve ends by itself
    with_1, with_5 = (Plain(table, series, [1, 2, 3]) for series in (few, many))
    lowest, highest = min(with_5.since(2)), max(with_5.since(2))
    wanted = {
        "y(at=40, Q2=1) < y(at=40, Q2=5)": {("Q2=1", 20): with_1.at(20), ("Q2=5", 40): with_5.at(40)},
        "y(at=[2, 10], Q2=5) > 0": {("Q2=5", 2): with_5.at(2), ("Q2=5", 10): with_5.at(10)},
        "total(axis='uplink_scalars', Q2=1) > 0": {("Q2=1", 20): with_1.at(20)},
        "lowest(since=2, Q2=5) > 0": {("Q2=5", with_5.rounds[with_5.y.index(lowest)]): lowest},
        "highest(since=2, Q2=5) > 0": {("Q2=5", with_5.rounds[with_5.y.index(highest)]): highest},
    }
    for check, points in wanted.items():
        spots = compared_values.read(Claim("x", "s", "w", "a", check), sparse, table).spots
        shown = {(spot.curve.label.split()[-1], spot.round): spot.value for spot in spots}
        assert shown == pytest.approx(points), check


# -- sizes -------------------------------------------------------------------------------------------------------------


def test_every_dataset_that_a_claim_reads_must_have_the_published_sizes_no_more_and_no_less() -> None:
    lines = [panel_cases.curve("fedcavg", name, dataset=name) for name in ("first", "second")]
    published = {"first": {"N": 100, "M": 7}, "second": {"N": 5000}}
    shown = panel_cases.figure(panel_cases.panel("a", *lines), sizes=published)
    right = {"first": {"N": 100, "M": 7, "K": 3}, "second": {"N": 5000, "M": 9}}
    assert not list(evidence.sizes(shown, Sidecar(sizes=right), lines))
    for alias, name in (("first", "N"), ("first", "M"), ("second", "N")):
        for off in (-1, 1, 100_000):
            ours = {**right, alias: {**right[alias], name: right[alias][name] + off}}
            said = f"on {alias} with {name} = {ours[alias][name]:,} (the paper's: {published[alias][name]:,})"
            assert list(evidence.sizes(shown, Sidecar(sizes=ours), lines)) == [said]
            others = [line for line in lines if line.setting.dataset != alias]
            assert not list(evidence.sizes(shown, Sidecar(sizes=ours), others))
    gone = Sidecar(sizes={"first": right["first"]})
    assert list(evidence.sizes(shown, gone, lines)) == ["on second, whose size these results do not record"]
