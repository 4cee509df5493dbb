"""What a check read: both sides of its comparisons, whose difference is the margin that decides the verdict."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fedrepro.claims import compared_values, judge
from fedrepro.claims.evidence import NOISE, NOT_REPRODUCED, REPRODUCED
from fedrepro.results.schema import Sidecar
from fedrepro.spec.model import Claim, Curve

from . import panel_cases

ROUNDS = [0, 1, 2, 4]


def results() -> tuple[pd.DataFrame, tuple[Curve, Curve]]:
    """Two curves over three trials; the second is lower by 1, 2 and 3, and their order is known everywhere."""
    slow, fast = panel_cases.curve("fedcavg", "slow", Q1=1), panel_cases.curve("fedcgds", "fast", m=2)
    rows = []
    for trial, gap in enumerate((1.0, 2.0, 3.0), start=1):
        rows.append(panel_cases.rows(slow, trial, ROUNDS, [16.0, 12.0, 10.0, 8.0]))
        rows.append(panel_cases.rows(fast, trial, ROUNDS, [16.0, 12.0 - gap, 10.0 - gap, 8.0 - gap]))
    return pd.concat(rows), (slow, fast)


def read(check: str) -> tuple[judge.Row, compared_values.Read]:
    frame, curves = results()
    figure = panel_cases.figure(panel_cases.panel("a", *curves))
    claim = Claim("one", "says", "where", "a", check)
    return judge.judge(claim, figure, frame, Sidecar()), compared_values.read(claim, figure, frame)


@pytest.mark.parametrize(
    "check",
    [
        "y(at=4, m=2) < y(at=4, Q1=1)",
        "y(at=4, Q1=1) > y(at=4, m=2)",
        "y(at=[1, 2, 4], m=2) < 0.8 * y(at=[1, 2, 4], Q1=1)",
        "y(since=1, m=2) <= y(since=1, Q1=1)",
        "reach(9, m=2) < reach(9, Q1=1)",
        "lowest(m=2) < 5 < highest(Q1=1)",
        "total(algorithm='fedcavg') <= 4 and mean(y(at=[1, 2], m=2)) < 12",
        "each(y(at=[1, 4], m=2) < y(at=[1, 4], Q1=1) - 1.5)",
        "y(at=4, m=2) < min(y(at=4, Q1=1), 20, y(at=4, Q1=1) + 1)",
        "max(y(at=[1, 4], m=2), 3) <= y(at=[1, 4], Q1=1)",
        "y(at=4, Q1=1) > max(y(at=4, m=2), 3)",
        "each(y(at=4, m=2) < min(y(at=4, Q1=1) - 1.5, y(at=1, Q1=1)))",
    ],
)
def test_the_sides_differ_by_the_margin_of_the_verdict(check: str) -> None:
    row, shown = read(check)
    deciding = [next(pair for pair in comparison.pairs if pair.decides) for comparison in shown.compared]
    assert {pair.margin for pair in deciding} == set(row.margins)
    assert len(deciding) == len(row.margins)
    for comparison in shown.compared:
        for pair in comparison.pairs:
            larger = {"<": 1, "<=": 1, ">": -1, ">=": -1}[comparison.sign]
            assert larger * (pair.right.value - pair.left.value) == pytest.approx(pair.margin.value)
            assert pair.left.low <= pair.left.value <= pair.left.high


def test_a_side_has_the_mean_and_the_interval_over_trials() -> None:
    row, shown = read("y(at=4, m=2) < y(at=4, Q1=1)")
    assert row.verdict in (REPRODUCED, NOT_REPRODUCED, NOISE, "holds", "undecided")
    ((pair,),) = (comparison.pairs for comparison in shown.compared)
    assert (pair.place, pair.left.value, pair.right.value) == ("round 4", 6.0, 8.0)
    half = 4.302652729911275 * np.std([7.0, 6.0, 5.0], ddof=1) / np.sqrt(3)
    assert (pair.left.low, pair.left.high) == (pytest.approx(6 - half), pytest.approx(6 + half))
    assert (pair.right.low, pair.right.high) == (8.0, 8.0)
    (comparison,) = shown.compared
    assert comparison.left_unit == comparison.right_unit != ""


def test_a_count_of_rounds_has_that_unit_and_a_ratio_has_none() -> None:
    _, counted = read("reach(0.5 * y(at=0, m=2), m=2) < total(algorithm='fedcavg')")
    assert (counted.compared[0].left_unit, counted.compared[0].right_unit) == ("rounds", "rounds")
    _, ratio = read("y(at=4, m=2) / y(at=0, m=2) < 0.5")
    assert (ratio.compared[0].left_unit, ratio.compared[0].right_unit) == ("", "")


def test_each_names_every_trial_and_the_worst_decides() -> None:
    _, shown = read("each(y(at=[1, 4], m=2) < y(at=[1, 4], Q1=1) - 1.5)")
    (comparison,) = shown.compared
    assert [pair.trial for pair in comparison.pairs] == [1, 2, 3]
    assert [pair.decides for pair in comparison.pairs] == [True, False, False]
    assert (comparison.count, comparison.held) == (3, 2)


def test_each_value_of_a_minimum_has_a_line_of_its_own() -> None:
    _, shown = read("y(at=4, m=2) < min(y(at=4, Q1=1), 20)")
    (comparison,) = shown.compared
    assert [pair.place for pair in comparison.pairs] == ["round 4, y(at=4, Q1=1)", "round 4, 20"]
    assert [pair.decides for pair in comparison.pairs] == [True, False]
    _, shown = read("y(at=4, m=2) < min(reach(5.9, m=2), total(Q1=1) + 9)")
    assert [pair.place for pair in shown.compared[0].pairs] == ["", "total(Q1=1) + 9"]  # by some selections of trials
    _, shown = read("median(y(at=4, m=2) < y(at=4, Q1=1))")
    (pair,) = shown.compared[0].pairs
    assert (pair.left.value, pair.right.value, pair.margin.value) == (6.0, 8.0, 2.0)
    assert [comparison.alone for comparison in shown.compared] == ["median"]


def test_a_median_is_marked_where_it_lies() -> None:
    """The gaps at round 2 are 1, 2 and 12: their mean is 5, their median 2."""
    slow, fast = panel_cases.curve("fedcavg", "slow", Q1=1), panel_cases.curve("fedcgds", "fast", m=2)
    rows = [panel_cases.rows(slow, trial, [0, 2], [16.0, 14.0]) for trial in (1, 2, 3)]
    rows += [panel_cases.rows(fast, trial, [0, 2], [16.0, 14.0 - gap]) for trial, gap in enumerate((1, 2, 12), start=1)]
    figure = panel_cases.figure(panel_cases.panel("a", slow, fast))
    for check, value in (("median(y(at=2, m=2) < 20)", 12.0), ("y(at=2, m=2) < 20", 9.0)):
        shown = compared_values.read(Claim("one", "says", "where", "a", check), figure, pd.concat(rows))
        assert [spot.value for spot in shown.spots] == [value]
        assert shown.compared[0].pairs[0].left.value == value


def test_many_places_are_thinned_and_the_deciding_one_stays() -> None:
    slow, fast = panel_cases.curve("fedcavg", "slow", Q1=1), panel_cases.curve("fedcgds", "fast", m=2)
    rounds = list(range(101))
    values = [float(r != 37) for r in rounds]
    frame = pd.concat([panel_cases.rows(slow, 1, rounds, values), panel_cases.rows(fast, 1, rounds, [0.5] * 101)])
    figure = panel_cases.figure(panel_cases.panel("a", slow, fast))
    claim = Claim("one", "says", "where", "a", f"y(at={rounds}, m=2) < y(at={rounds}, Q1=1)")
    (comparison,) = compared_values.read(claim, figure, frame).compared
    assert (comparison.count, comparison.held) == (101, 100)
    assert len(comparison.pairs) <= compared_values.SHOWN
    (deciding,) = (pair for pair in comparison.pairs if pair.decides)
    assert (deciding.place, deciding.margin.value) == ("round 37", -0.5)


def test_spots_lie_where_the_check_looked() -> None:
    _, shown = read("reach(9, m=2) < reach(9, Q1=1)")
    at = {spot.curve.label: (spot.round, spot.value) for spot in shown.spots}
    assert {value for _, value in at.values()} == {9.0}
    assert at["slow"][0] == pytest.approx(2 + 2 * np.log(10 / 9) / np.log(10 / 8))
    _, shown = read("y(at=[1, 'end'], m=2) < highest(Q1=1)")
    assert {(s.curve.label, s.round, s.value) for s in shown.spots} == {
        ("fast", 1.0, 10.0), ("fast", 4.0, 6.0), ("slow", 0.0, 16.0),
    }  # fmt: skip


def test_what_is_never_reached_has_no_spot_and_what_cannot_be_read_says_nothing() -> None:
    _, shown = read("reach(1, m=2) > total(algorithm='fedcavg')")
    assert {spot.curve.label for spot in shown.spots} == {"slow"}
    assert shown.compared[0].pairs[0].left.value == np.inf
    row, nothing = read("y(at=999, m=2) < 1")
    assert (row.verdict, nothing) == ("not tested", compared_values.Read())
