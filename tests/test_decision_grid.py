"""The map of a verdict: readings by settings, and what turns it among readings."""

from __future__ import annotations

from fedrepro.claims import classes
from fedrepro.claims.classes import Answer, Robustness
from fedrepro.claims.evidence import FAILS, HOLDS, NOISE
from fedrepro.claims.intervals import Interval
from fedrepro.report.decision_grid import LEADING, OWN, grid
from fedrepro.report.other_settings import OtherSetting
from fedrepro.spec.readings import Reading


def answered(*outcomes: str) -> Robustness:
    levels = (0.005, 0.01, 0.02)
    margin = Interval(0.5, 0.1, 0.9)
    answers = [Answer(Reading({"level": v}, ()), o, margin, "rounds") for v, o in zip(levels, outcomes, strict=False)]
    return classes.classify(answers)


def other(name: str, answers: Robustness | None) -> OtherSetting:
    return OtherSetting(name, "printed", "Q1 = 3", 10, "reproduced", "", "", False, answers)


def test_the_map_has_a_row_for_each_reading_and_a_column_for_each_setting() -> None:
    shown = grid(answered(HOLDS, FAILS, NOISE), [other("a.1.x", answered(FAILS, FAILS)), other("a.2.y", None)])
    assert shown is not None
    assert shown.columns == (OWN, "a.1.x")
    assert shown.rows == (
        (LEADING, ("holds", "fails")),
        ("level = 1 %", ("fails", "fails")),
        ("level = 2 %", ("undecided", "")),
    )


def test_there_is_no_map_of_one_reading_or_without_settings_on_all_trials() -> None:
    assert grid(answered(HOLDS, FAILS), [other("a.1.x", None)]) is None
    assert grid(answered(HOLDS), [other("a.1.x", answered(FAILS))]) is None
    assert grid(None, [other("a.1.x", answered(FAILS))]) is None


def test_a_reading_is_a_cause_only_if_it_turns_the_answer() -> None:
    assert answered(HOLDS, FAILS, NOISE).causes == ("level = 1 %: fails, margin 0.5 rounds [0.1, 0.9]",)
    assert answered(HOLDS, FAILS, FAILS).causes == ("level = 1 % or 2 %: fails, margin at 1 % 0.5 rounds [0.1, 0.9]",)
    assert answered(NOISE, NOISE, HOLDS).causes == ("level = 2 %: holds, margin 0.5 rounds [0.1, 0.9]",)
    assert answered(HOLDS, HOLDS, NOISE).causes == ()
