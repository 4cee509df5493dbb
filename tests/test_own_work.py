"""Specs of one's own: small by themselves at the tier smoke, without the stamp of a tier that reduces nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from fedrepro.spec.read import load

Call = Callable[..., Result]


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
