"""Claims: checks are read safely, margins are paired over trials, and only the paper tier can say "reproduced"."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fedrepro.claims.judge import judge
from fedrepro.results.schema import Sidecar
from fedrepro.spec.model import Claim, Figure
from fedrepro.spec.read import load

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
        tables = {s: np.repeat(v, trials, axis=0) if len(v) == 1 else v for s, v in tables.items()}
        statuses = sidecar.pop("statuses", None)
        about = Sidecar.parse({"schema": 2, "trials_done": trials, "trials_wanted": 3, **sidecar})
        shown = dataclasses.replace(figure, tier=tier)
        return judge(Claim("x", "s", "w", "a", check), shown, frame(tables, statuses), about)

    assert names == ["FedCAvg Q2=1", "FedCAvg Q2=5", "FedCGds m=2 Q1=3", "FedCGds m=6 Q1=2"]
    return ask


def test_a_difference_beyond_its_interval_holds_or_fails(ask: Callable[..., Any]) -> None:
    low = [[9, 5.0, 1.0], [9, 5.1, 1.1], [9, 4.9, 0.9]]
    high = [[9, 6.0, 2.0], [9, 6.2, 2.2], [9, 5.8, 1.9]]
    assert ask("y(at='end', Q2=1) < y(at='end', Q2=5)", [low, high]).verdict == "reproduced"
    row = ask("y(at='end', Q2=1) > y(at='end', Q2=5)", [low, high])
    assert row.verdict == "not reproduced"
    assert row.margins[0][0] == pytest.approx(-(1.0 + 1.1 + 1.0) / 3)


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
    assert ask("reach(4, Q2=5) < 1.5 and reach(4, Q2=1) > 1.5", values).verdict == "reproduced"
    assert ask("reach(4, axis='uplink_scalars', Q2=1) < 20.5", values).verdict == "reproduced"
    assert ask("reach(0.5, Q2=1) < 100", values).verdict == "not reproduced"  # never reached
    neither = ask("reach(0.5, Q2=1) < reach(0.5, Q2=5)", values)
    assert neither.verdict == "within noise"
    assert neither.why == "both sides are infinite (neither reaches its level) over 3 trials"
    assert (
        ask("reach(3 * y(at='end', Q2=1), Q2=5) < reach(3 * y(at='end', Q2=1), Q2=1)", values).verdict == "reproduced"
    )


def test_values_at_equal_cost(ask: Callable[..., Any]) -> None:
    values = [[9, 5, 3, 1], [9, 3, 2, 0]]  # the second sends twice as much a round
    assert ask("y(cost=20, Q2=1) < y(cost=39, Q2=5) + 0.1", values).verdict == "reproduced"
    assert ask("total(axis='uplink_scalars', Q2=5) > 59", values).verdict == "reproduced"
    assert ask("lowest(Q2=1) < 1.5 and highest(Q2=1, since=2) < 3.5", values).verdict == "reproduced"


def test_a_recorded_metric_can_be_the_axis(ask: Callable[..., Any]) -> None:
    values = [[9, 5, 3, 1], [9, 3, 3, 1]]
    assert ask("reach(4, axis='objective', Q2=1) > 2.5", values).verdict == "reproduced"  # 3, the value itself
    assert ask("total(axis='objective', Q2=1) < 1.5", values).verdict == "reproduced"


def test_a_diverged_run_counts_as_infinitely_bad(ask: Callable[..., Any]) -> None:
    broken = [[1, 0.1, np.nan]]
    row = ask("y(at='end', Q2=1) < y(at='end', Q2=5)", [broken, [9, 9, 9]],
              statuses={"fedcavg Q1=2 Q2=1 @ syn / unf": "diverged"})  # fmt: skip
    assert row.verdict == "not reproduced"


def test_only_the_paper_tier_on_real_complete_data_counts(ask: Callable[..., Any]) -> None:
    check, values = "y(at=1, Q2=1) < y(at=1, Q2=5)", [[1, 1], [2, 2]]
    for why, about in {
        "quick tier": {"tier": "quick"},
        "stand-in for synthetic": {"stand_ins": ["synthetic"]},
        "variant of synthetic (fewer images)": {
            "datasets": [{"dataset": "synthetic", "state": "variant", "note": "fewer images"}]
        },
        "2 of 3 trials": {"trials": 2},
        "changed by --set rounds=3": {"sets": ["rounds=3"]},
    }.items():
        row = ask(check, values, **about)
        assert row.verdict == "not tested"
        assert row.found == "holds"
        assert why in row.why


def test_what_the_results_lack_is_said(ask: Callable[..., Any]) -> None:
    assert ask("y(at=4, Q2=1) < y(at=1, Q2=5)", [[1, 1], [2, 2]]).verdict == "reproduced"  # ended early: its last value
    row = ask("y(at=100, Q2=1) < y(at=1, Q2=5)", [[1, 1], [2, 2]])
    assert row.verdict == "not tested"
    assert row.why == "round 100 lies beyond the 5 rounds of this tier"
    absent = ask("y(at=1, m=2) < y(at=1, Q2=5)", [[1, 1], [2, 2]])
    assert absent.why == "'FedCGds m=2 Q1=3' has no finished trials"
