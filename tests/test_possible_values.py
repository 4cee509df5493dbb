"""Comparisons that every result satisfies or violates are errors: shares of 1 that are compared in points."""

from __future__ import annotations

import ast
import dataclasses
import functools
import math
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedrepro.errors import UserError
from fedrepro.spec import claim_grammar, possible_values
from fedrepro.spec.model import Figure
from fedrepro.spec.read import load

from .conftest import SMALL

FIVE, ONE = "y(at='end', algorithm='fedcavg', Q2=5)", "y(at='end', algorithm='fedcavg', Q2=1)"


@pytest.fixture
def shares(small: Path) -> Path:
    """A spec whose claim reads accuracies."""
    small.write_text(small.read_text().replace('title: "left"', 'title: "left"\n    y: accuracy'))
    return small


def with_check(spec: Path, check: str) -> Figure:
    spec.write_text(spec.read_text().replace(f"{FIVE} < {ONE}", check))
    return load(spec, "quick")


@pytest.mark.parametrize(
    ("check", "comparison", "outcome"),
    [
        (f"{FIVE} > {ONE} + 5", f"{FIVE} > {ONE} + 5", "fails"),
        (f"abs({FIVE} - {ONE}) < 3", f"abs({FIVE} - {ONE}) < 3", "holds"),
        (f"{FIVE} > 0.5 and {FIVE} >= 85", f"{FIVE} >= 85", "fails"),
        (f"0 <= {FIVE} < {ONE}", f"0 <= {FIVE}", "holds"),
        (f"each(max({FIVE}, {ONE}) > 1)", f"max({FIVE}, {ONE}) > 1", "fails"),
        ("has(fedcavg(Q2=5), 85)", f"abs({FIVE} - 85) < 0.03", "fails"),
        (f"rise(Q2=5) > 2 * {ONE}", "", ""),
        (f"{FIVE} / {ONE} > 1.5", "", ""),
        (f"log10({FIVE}) < -11", "", ""),
        (f"{FIVE} < 1", "", ""),
        ("y(at='end', metric='objective', Q2=5) > 85", "", ""),
        (f"reach(0.9, Q2=5) < 85 * {ONE}", "", ""),
        (f"reach(1.5 * {ONE}, Q2=5) < 9 and reach(5, metric='objective', Q2=5) < 9", "", ""),
    ],
)
def test_a_comparison_that_no_result_decides_is_an_error(
    shares: Path, check: str, comparison: str, outcome: str
) -> None:
    if not comparison:
        assert with_check(shares, check).claims
        return
    with pytest.raises(UserError) as error:
        with_check(shares, check)
    reason = "accuracies and the like are at most 1, and one point is 0.01"
    assert f": '{comparison}' {outcome} whatever the results are: {reason}  (in: check: " in str(error.value)


@pytest.mark.parametrize(
    ("check", "comparison"),
    [(f"{FIVE} < {FIVE}", f"{FIVE} < {FIVE}"), (f"{ONE} < {FIVE} and 2 * {ONE} > 2 * {ONE}", f"2 * {ONE} > 2 * {ONE}")],
)
def test_a_value_compared_with_itself_is_an_error(small: Path, check: str, comparison: str) -> None:
    with pytest.raises(UserError) as error:
        with_check(small, check)
    assert f": '{comparison}' compares a value with itself  (in: check: " in str(error.value)


@pytest.mark.parametrize("level", ["5", "-0.1", f"2 + {ONE}"])
def test_a_level_that_no_result_can_reach_is_an_error(shares: Path, level: str) -> None:
    with pytest.raises(UserError) as error:
        with_check(shares, f"reach({level}, Q2=5) < first(0.9, Q2=5)")
    assert f"'reach({level}, Q2=5)': no run can reach this level: accuracies and the like" in str(error.value)


numbers = st.sampled_from(["0", "0.01", "0.5", "2", "-3"])
sides = st.recursive(
    st.one_of(st.sampled_from([FIVE, ONE]), numbers),
    lambda parts: st.one_of(
        st.builds("({} {} {})".format, parts, st.sampled_from("+-*/"), parts),
        st.builds("-({})".format, parts),
        st.builds("{}({})".format, st.sampled_from(["abs", "log10"]), parts),
        st.builds("{}({}, {})".format, st.sampled_from(["min", "max"]), parts, parts),
    ),
    max_leaves=6,
)
share = st.floats(0, 1)


@functools.cache
def _figure() -> Figure:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "small.yaml"
        path.write_text(SMALL.replace('title: "left"', 'title: "left"\n    y: accuracy'))
        return load(path, "quick")


@given(side=sides, five=share, one=share)
def test_every_value_is_within_the_range_of_its_expression(side: str, five: float, one: float) -> None:
    figure = _figure()
    claim = dataclasses.replace(figure.claims[0], check=f"{side} < {ONE}")
    ranges = possible_values._Ranges(claim, {panel.id: panel for panel in figure.panels})
    low, high = ranges.of(claim_grammar.parse(claim.check).body.left)
    functions = {"abs": abs, "min": min, "max": max, "log10": math.log10}
    written = side.replace(FIVE, "five").replace(ONE, "one")
    try:
        value = eval(compile(ast.parse(written, mode="eval"), "side", "eval"), {**functions, "five": five, "one": one})
    except (ZeroDivisionError, ValueError, OverflowError):
        return
    near = 1e-12 * max(1.0, abs(value))
    assert low - near <= value <= high + near, written
