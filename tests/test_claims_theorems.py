"""Claims on theorems: exponents, rates, rises and parameters are read off curves, and promises have their own words."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fedrepro.claims import judge as judge_module
from fedrepro.claims.judge import Row, Series, judge
from fedrepro.errors import UserError
from fedrepro.spec import claim_grammar, readings
from fedrepro.spec.model import Claim, Figure
from fedrepro.spec.read import load
from tests.sidecars import consistent


def series(rounds: Any, values: Any) -> Series:
    at = np.asarray(rounds)
    return Series(at, np.asarray(values, dtype=float), {}, at, "lower")


@pytest.mark.parametrize("rounds", [range(1001), [*range(21), *range(50, 1001, 50)], [0, 1, 10, 100, 1000]])
def test_the_slope_is_the_exponent_however_rounds_were_recorded(rounds: Any) -> None:
    r = np.array(rounds)
    power = series(r, 3.0 * np.maximum(r, 0.5) ** -0.7)
    assert judge_module._slope(power)[0] == pytest.approx(-0.7, rel=1e-12)
    assert judge_module._slope(power, since=10, until=100)[0] == pytest.approx(-0.7, rel=1e-12)


def test_every_factor_of_rounds_counts_alike() -> None:
    """Slope -2 up to round 100 and flat after it: two decades each, whatever the thousands of later rounds."""
    r = np.array([1, 10, 100, *range(200, 10_001, 100)])
    slope = judge_module._slope(series(r, np.minimum(r, 100.0) ** -2.0))[0]
    even = np.logspace(0, 4, 4001)
    wanted = np.polyfit(np.log(even), np.log(np.minimum(even, 100.0) ** -2.0), 1)[0]
    assert wanted == pytest.approx(-1.0, rel=1e-9)
    assert slope == pytest.approx(wanted, abs=0.2)
    unweighted = np.polyfit(np.log(r), np.log(np.minimum(r, 100.0) ** -2.0), 1)[0]
    assert unweighted > -0.7


def test_means_and_least_values_so_far_are_those_of_all_rounds() -> None:
    rng = np.random.default_rng(0)
    v = rng.random(50)
    r = np.arange(50)
    mean, least, squares = (judge_module._SMOOTHED[k](r.astype(float), v) for k in ("mean", "least", "squares"))
    assert mean[0] == v[0]
    for k in range(1, 50):
        inner = v[1:k].sum() + (v[0] + v[k]) / 2
        assert mean[k] == pytest.approx(inner / k, rel=1e-12)
        assert least[k] == v[: k + 1].min()
        assert squares[k] == pytest.approx(((v[1:k] ** 2).sum() + (v[0] ** 2 + v[k] ** 2) / 2) / k, rel=1e-12)
    line = series([0, 4, 10], [10.0, 6.0, 0.0])  # 10 - r, recorded thinly: its mean is exact
    assert judge_module._y(line, at="end", of="mean")[0] == pytest.approx(5.0)
    assert judge_module._y(line, at=4, of="mean")[0] == pytest.approx(8.0)


def test_rates_and_rises() -> None:
    r = np.arange(0, 101, 10)
    falling = series(r, 10.0 ** (-0.02 * r))
    assert judge_module._decay(falling)[0] == pytest.approx(0.02)
    assert judge_module._decay(falling, since=20, until=60)[0] == pytest.approx(0.02)
    assert judge_module._rise(falling)[0] == pytest.approx(10.0**-2.0 - 10.0**-1.8)
    up = series([0, 1, 2, 3], [3.0, 1.0, 1.5, 1.0])
    assert judge_module._rise(up)[0] == 0.5
    assert judge_module._rise(up, since=2)[0] == -0.5


def test_what_has_no_exponent_or_rate_is_said() -> None:
    zero, blown = series([0, 1, 2], [1.0, 0.5, 0.0]), series([0, 1, 2], [1.0, 2.0, np.inf])
    with pytest.raises(UserError, match="zero or negative"):
        judge_module._slope(zero)
    with pytest.raises(UserError, match="no rate"):
        judge_module._decay(zero)
    assert judge_module._slope(blown)[0] == np.inf
    with pytest.raises(UserError, match="rounds from 1 to 5 are not all among the 2 of this tier"):
        judge_module._slope(zero, until=5)
    with pytest.raises(UserError, match="rounds from 2 are not all among the 2 of this tier"):
        judge_module._decay(zero, since=2)


# In a spec


@pytest.fixture
def figure(small: Path) -> Figure:
    return load(small, "paper")


@pytest.fixture
def ask(figure: Figure) -> Callable[..., Row]:
    curve = figure.panels[0].curves[0]

    def ask(values: Any, **claim: str) -> Row:
        rows = [
            {"series": curve.setting.series, "trial": t + 1, "status": "ok", "round": r, "metric": "objective",
             "uplink_scalars": r, "uplink_bits": r, "downlink_scalars": r, "downlink_bits": r, "value": v}
            for t, table in enumerate(values) for r, v in enumerate(table)
        ]  # fmt: skip
        table = pd.DataFrame(rows)
        about = consistent(figure, table, trials_done=3, trials_wanted=3)
        return judge(Claim("x", "s", "w", "a", **claim), figure, table, about)

    return ask


def power(*exponents: float) -> list[list[float]]:
    return [[4.0, *(k**e for k in range(1, 6))] for e in exponents]


@pytest.mark.parametrize(
    ("exponents", "word", "verdict"),
    [
        ((-0.99, -1.0, -1.01), "as promised", "reproduced"),
        ((-1.9, -2.0, -2.1), "faster than promised", "reproduced"),
        ((-0.5, -0.5, -0.51), "contradicted", "not reproduced"),
        ((-0.3, -1.0, -2.1), "undecided", "within noise"),
    ],
)
def test_a_promise_has_its_word_and_the_exponent_its_interval(
    ask: Callable[..., Row], exponents: tuple[float, ...], word: str, verdict: str
) -> None:
    row = ask(power(*exponents), theorem="promise", check="slope(Q2=1) <= -0.9", faster="slope(Q2=1) < -1.2")
    assert (row.promise, row.verdict) == (word, verdict)
    assert row.measured is not None
    assert row.measured.low <= row.measured.value <= row.measured.high
    assert row.measured.value == pytest.approx(np.mean(exponents), abs=0.4)
    assert row.why.startswith(f"{word}: {row.measured.value:.3g}")


@pytest.mark.parametrize(
    ("exponents", "word"),
    [
        ((-0.99, -1.0, -1.01), "as promised, outside the conditions"),
        ((-0.5, -0.5, -0.51), "not as promised, outside the conditions"),
    ],
)
def test_a_promise_whose_conditions_are_not_met_is_neither_kept_nor_contradicted(
    ask: Callable[..., Row], exponents: tuple[float, ...], word: str
) -> None:
    row = ask(power(*exponents), theorem="promise", check="slope(Q2=1) <= -0.9", outside="gamma2 is too small")
    assert row.promise == word


def test_the_constant_of_a_bound_stands_beside_what_was_measured(ask: Callable[..., Row]) -> None:
    row = ask(
        power(-1.0, -1.0, -1.0),
        theorem="promise",
        check="slope(Q2=1) <= -0.9",
        bound="y(at='end', Q2=1) <= 400 * y(at=0, Q2=1)",
    )
    assert row.bound == "1,600 allowed, 0.2 measured"
    assert f"; {row.bound}; margin" in row.why
    assert ask(power(-1.0, -1.0, -1.0), check="slope(Q2=1) <= -0.9").bound == ""


def test_an_exponent_is_read_in_several_windows(small: Path) -> None:
    figure = load(small, "paper")
    (panel,) = [panel for panel in figure.panels if panel.id == "a"]
    claim = Claim("x", "s", "w", panel.id, "falls_like(fedcavg(Q2=[1, 5]), -1, of='mean')")
    panels = {panel.id: panel for panel in figure.panels}
    listed, total = readings.of(readings.with_literal_check(claim, panels), panels, 3)
    rounds = panel.curves[0].setting.rounds
    assert total == len({max(1, round(share * rounds)) for share in (0.05, 0.02, 0.1, 0.25, 0.5)}) * 3
    assert listed[0].check.startswith(f"max(slope(since={max(1, round(0.05 * rounds))}, of='mean', ")
    assert listed[0].check.endswith(" <= -0.9")


def test_a_number_on_the_left_is_read_alike(ask: Callable[..., Row]) -> None:
    row = ask(power(-1.0, -1.0, -1.0), theorem="promise", check="-0.9 >= slope(Q2=1)")
    assert row.measured is not None
    assert row.measured.value == pytest.approx(-1.0)


@pytest.mark.parametrize(
    ("bound", "word"), [(1, "condition met"), (2, "condition not met by the parameters that were run")]
)
def test_a_condition_reads_the_parameters_of_a_curve(ask: Callable[..., Row], bound: int, word: str) -> None:
    row = ask(power(-1.0, -1.0, -1.0), theorem="condition", check=f"parameter('Q2', Q2=1) >= {bound}")
    assert row.promise == word
    assert row.measured is not None
    assert row.measured.value == 1.0


def test_a_check_of_every_trial_is_not_tested_without_a_trial(ask: Callable[..., Row]) -> None:
    row = ask(power(-1.0, -1.0, -1.0), theorem="condition", check="each(y(at=1, Q2=5) > 0)")
    assert (row.verdict, row.why) == ("not tested", "'FedCAvg Q2=5' has no finished trials")


def test_other_claims_have_no_such_word(ask: Callable[..., Row]) -> None:
    row = ask(power(-1.0, -1.0, -1.0), check="slope(Q2=1) <= -0.9")
    assert (row.promise, row.measured) == ("", None)
    assert row.why.startswith("margin")


@pytest.mark.parametrize(
    ("check", "message"),
    [
        ("slope(of='men', Q2=1) < 0", "slope(of='men', Q2=1): of='men' must be one of value, mean"),
        ("slope(since=5, until=5, Q2=1) < 0", "slope(since=5, until=5, Q2=1): until=5 must be a round"),
        ("decay(since=-1, Q2=1) < 0", "decay(since=-1, Q2=1): since=-1 must be a round"),
        ("parameter(Q2=1) < 0", "parameter(Q2=1): parameter() needs the name of a parameter"),
        ("parameter('Q3', Q2=1) < 0", "parameter('Q3', Q2=1): 'FedCAvg Q2=1' has no parameter 'Q3', did you mean 'Q"),
        ("parameter('d_mode', Q2=1) < 0", "parameter('d_mode', Q2=1): d_mode is 'global' there, not a number"),
        ("parameter(['Q2'], Q2=1) < 0", "parameter(['Q2'], Q2=1): 'FedCAvg Q2=1' has no parameter '['Q2']'"),
    ],
)
def test_mistakes_are_told_before_anything_runs(figure: Figure, check: str, message: str) -> None:
    (found,) = claim_grammar.problems(Claim("x", "s", "w", "a", check), {p.id: p for p in figure.panels}, ("round",))
    assert found.startswith(message)


def test_the_keys_of_a_theorems_claim_are_checked(small: Path) -> None:
    text = small.read_text(encoding="utf-8")
    start = text.index("claims:")
    claim = "claims:\n  - {id: t, says: s, where: w, panel: a, check: 'y(at=1, Q2=1) < 9', "
    for more, message in (
        (
            "theorem: promis}",
            "'promis' is not a part of a theorem, did you mean 'promise'? (one of: promise, condition)",
        ),
        ("faster: 'y(at=1, Q2=1) < 1'}", "'faster' is only for a claim with `theorem: promise`"),
        ("theorem: promise, faster: 'y(at=1, Q2=7) < 1'}", "Q2=7 selects no curve"),
        ("outside: gamma2}", "'outside' is only for a claim with `theorem: promise`"),
        ("theorem: promise, bound: 'y(at=1, Q2=1) > 1'}", "a bound is one comparison with < or <="),
    ):
        rest = text[start:].split("\ntiers:", 1)
        small.write_text(text[:start] + claim + more + ("\n\ntiers:" + rest[1] if len(rest) > 1 else "\n"))
        with pytest.raises(UserError) as error:
            load(small, "paper")
        assert message in str(error.value)


def test_a_faster_check_may_read_other_curves(figure: Figure) -> None:
    claim = Claim("x", "s", "w", "a", "y(at=1, Q2=1) < 1", theorem="promise", faster="y(at=1, Q2=5) < 1")
    assert [c.select["Q2"] for c in judge_module.curves(claim, figure)] == [1, 5]
    assert dataclasses.replace(claim, inapplicable="no").check == claim.check
