"""Intervals over trials: equal to those computed by hand, with the stated coverage from three trials on."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import pytest
from scipy import optimize, stats
from scipy.stats import binom

from fedrepro.claims.evidence import FAILS, HOLDS, NOISE
from fedrepro.claims.intervals import Interval, jackknife, median
from fedrepro.claims.judge import Series, _reach, outcome_of


def test_of_a_mean_it_is_the_t_interval_worked_by_hand() -> None:
    """1, 2, 6: mean 3, standard deviation sqrt(7), half width 4.302653 sqrt(7) / sqrt(3) = 6.572411."""
    values = np.array([1.0, 2.0, 6.0])
    (interval,) = jackknife(lambda chosen: values[chosen].mean(keepdims=True), 3)
    assert interval.value == pytest.approx(3.0)
    assert (interval.low, interval.high) == pytest.approx((3 - 6.572411, 3 + 6.572411), abs=1e-5)


def test_of_a_ratio_of_means_it_is_worked_by_hand() -> None:
    """a = 2, 4 and b = 1, 3: theta = 3/2, theta_(1) = 4/3, theta_(2) = 2, pseudo-values 5/3 and 1, t(1) = 12.7062."""
    a, b = np.array([2.0, 4.0]), np.array([1.0, 3.0])
    (interval,) = jackknife(lambda chosen: np.array([a[chosen].mean() / b[chosen].mean()]), 2)
    half = 12.706205 * (np.std([5 / 3, 1.0], ddof=1) / np.sqrt(2))
    assert (interval.value, interval.low, interval.high) == pytest.approx((1.5, 1.5 - half, 1.5 + half), abs=1e-5)


def test_without_doubt_there_is_no_interval() -> None:
    one = jackknife(lambda chosen: np.array([0.3]), 1)[0]
    same = jackknife(lambda chosen: np.full(len(chosen), 0.1).mean(keepdims=True), 7)[0]
    assert one.low == one.value == one.high == 0.3
    assert same.low == same.value == same.high


def test_infinite_values_count_only_where_all_trials_agree() -> None:
    never = np.array([np.inf, np.inf, np.inf])
    once = np.array([1.0, np.inf, 2.0])

    def largest(values: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        return lambda chosen: values[chosen].max(keepdims=True)

    (all_,) = jackknife(largest(never), 3)
    (some,) = jackknife(largest(once), 3)
    assert all_.low == all_.high == np.inf
    assert (some.low, some.high) == (-np.inf, np.inf)
    (neither,) = jackknife(lambda chosen: np.array([np.nan]), 3)
    assert np.isnan(neither.value)


Read = Callable[[np.ndarray], np.ndarray]
"""Values of several draws of n trials, given the trials that count: as many as there are draws."""


def curves(draw: np.random.Generator, *size: int) -> np.ndarray:
    """Errors that fall at a rate of their own in every trial, (*size, 61)."""
    return np.exp(-np.abs(0.15 + 0.02 * draw.standard_normal((*size, 1))) * np.arange(61))


def place(of: np.ndarray) -> float:
    """Where an averaged curve first reaches 0.05."""
    return float(_reach(Series(np.arange(61), of, {"round": np.arange(61.0)}, 60, "lower"), 0.05)[0])


def margin(draw: np.random.Generator, draws: int, n: int) -> Read:
    """Of two methods whose trials are hard or easy together."""
    shared = 5 * draw.standard_normal((draws, n))
    a, b = shared + draw.standard_normal((draws, n)), shared + draw.standard_normal((draws, n)) + 0.5
    return lambda chosen: b[:, chosen].mean(axis=1) - a[:, chosen].mean(axis=1)


def ratio(draw: np.random.Generator, draws: int, n: int) -> Read:
    a, b = 3 + 0.6 * draw.standard_normal((draws, n)), 2 + 0.3 * draw.standard_normal((draws, n))
    return lambda chosen: a[:, chosen].mean(axis=1) / b[:, chosen].mean(axis=1)


def size(draw: np.random.Generator, draws: int, n: int) -> Read:
    """abs of a difference: its kink is within the noise at few trials, and far from it at many."""
    a = 0.3 + draw.standard_normal((draws, n))
    return lambda chosen: abs(a[:, chosen].mean(axis=1))


def reach(draw: np.random.Generator, draws: int, n: int) -> Read:
    drawn = curves(draw, draws, n)
    return lambda chosen: np.array([place(curve) for curve in drawn[:, chosen].mean(axis=1)])


@functools.cache
def mean_place() -> float:
    return place(curves(np.random.default_rng(0), 300_000).mean(axis=0))


TRUTH = {margin: lambda: 0.5, ratio: lambda: 1.5, size: lambda: 0.3, reach: mean_place}


@pytest.mark.parametrize("n", [3, 5, 10, 50])
@pytest.mark.parametrize("kind", TRUTH, ids=lambda kind: kind.__name__)
def test_intervals_of_95_percent_hold_the_truth_93_times_in_100_at_least(
    kind: Callable[[np.random.Generator, int, int], Read], n: int
) -> None:
    """Over 6,000 draws: margin 0.94 to 0.95, ratio 0.95, size 0.95 to 0.97, reach 0.932 to 0.945."""
    intervals = jackknife(kind(np.random.default_rng(n), 2500 if n < 50 else 800, n), n)
    assert np.mean([interval.low <= TRUTH[kind]() <= interval.high for interval in intervals]) >= 0.93


def outcome(interval: Callable[..., list[Interval]], *margins: float) -> str:
    """Return the outcome of a difference of means, or of medians, with these trials."""
    trials = np.array(margins)
    (margin,) = interval(lambda chosen: trials[chosen].mean(keepdims=True), len(trials))
    return outcome_of(margin, strict=True)


def test_a_shared_sign_of_six_trials_decides_the_median_only() -> None:
    """Nine trials at 1 and one at -9 have the mean 0: six trials that agree are no rare draw from them."""
    for far in (1000, np.inf):
        assert outcome(median, 1, 1.1, 0.9, 1, 1.2, far) == HOLDS
        assert outcome(median, -1, -1.1, -0.9, -1, -1.2, -far) == FAILS
        assert outcome(jackknife, 1, 1.1, 0.9, 1, 1.2, far) == NOISE
        assert outcome(median, 1, 1.1, 0.9, 1, far) == NOISE  # five agree by chance once in 16 times
        assert outcome(median, 1, 1.1, 0.9, 1, 1.2, far, -0.001) == NOISE
        assert outcome(median, 1, 1.1, 0.9, 1, 1.2, far, 0) == NOISE
    assert outcome(median, 1, 1.1, 0.9, 1, 1.2, np.nan, 1000) == NOISE


@pytest.mark.parametrize("n", [6, 7, 10, 33, 120, 1000])
def test_the_interval_of_the_median_has_the_ranks_of_the_binomial_distribution(n: int) -> None:
    below = int(binom.ppf(0.025, n, 0.5))
    values = np.arange(n) - n / 3  # distinct, some on the other side of zero
    (found,) = median(lambda chosen: values[chosen].mean(keepdims=True), n)
    assert (found.low, found.high) == (values[below - 1], values[n - below])
    assert found.tail == pytest.approx(binom.cdf((values <= 0).sum(), n, 0.5), rel=1e-12)


@pytest.mark.parametrize("interval", [jackknife, median])
@pytest.mark.parametrize("kind", ["standard_normal", "standard_cauchy"])
def test_of_noise_a_sign_is_told_5_times_in_100(kind: str, interval: Callable[..., list[Interval]]) -> None:
    """Over 4,000 draws of six trials: 0.051 of normal noise by means, 0.031 by medians; less of a Cauchy's."""
    draw = np.random.default_rng(0)
    assert np.mean([outcome(interval, *getattr(draw, kind)(6)) != NOISE for _ in range(2500)]) <= 0.06


# -- skewed trials -----------------------------------------------------------------------------------------------------


def mean_interval(trials: np.ndarray) -> Interval:
    return jackknife(lambda chosen: trials[chosen].mean(keepdims=True), len(trials))[0]


def halls(trials: np.ndarray) -> tuple[float, float]:
    """Hall's interval by bisection: the truths whose transformed distance is at Student's quantiles."""
    n, deviation = len(trials), trials.std(ddof=1)
    skewness = stats.skew(trials)

    def score(truth: float) -> float:
        error = (trials.mean() - truth) / deviation
        return error + skewness * error**2 / 3 + skewness**2 * error**3 / 27 + skewness / (6 * n)

    wide = 50 * deviation
    quantile = stats.t.ppf(0.975, n - 1) / np.sqrt(n)
    ends = [
        optimize.brentq(lambda truth, sign=sign: score(truth) - sign * quantile, -wide, wide, xtol=1e-12)
        for sign in (1, -1)
    ]
    return ends[0], ends[1]


@pytest.mark.parametrize("n", [3, 5, 9, 10, 50])
@pytest.mark.parametrize("sign", [1, -1])
def test_from_ten_trials_on_the_interval_contains_halls_and_students(n: int, sign: int) -> None:
    for seed in range(5):
        trials = sign * np.exp(np.random.default_rng(seed).standard_normal(n))
        half = stats.t.ppf(0.975, n - 1) * trials.std(ddof=1) / np.sqrt(n)
        low, high = trials.mean() - half, trials.mean() + half
        if n >= 10:
            below, above = halls(trials)
            low, high = min(low, below), max(high, above)
        interval = mean_interval(trials)
        assert (interval.low, interval.high) == pytest.approx((low, high), rel=1e-8)


@pytest.mark.parametrize("n", [3, 10])
def test_of_normal_trials_the_truth_is_held_95_times_in_100(n: int) -> None:
    """Over 40,000 draws: 0.950 of three trials, exactly Student's, and 0.960 of ten."""
    draws = np.random.default_rng(0).standard_normal((4000, n))
    held = np.mean([interval.low <= 0 <= interval.high for interval in map(mean_interval, draws)])
    assert 0.94 <= held <= 0.97


def test_of_ten_skewed_trials_the_truth_is_held_more_often_than_by_students_interval() -> None:
    """Of lognormal trials, over 40,000 draws: 0.91 instead of 0.84; of five nothing helps, and 0.82 stays."""
    draws, held = np.exp(np.random.default_rng(0).standard_normal((3000, 10))), []
    for trials in draws:
        interval = mean_interval(trials)
        held.append(interval.low <= np.exp(0.5) <= interval.high)
    assert 0.88 <= np.mean(held) <= 0.93


def test_the_tail_is_below_a_fortieth_where_the_interval_excludes_zero() -> None:
    draw = np.random.default_rng(0)
    for n in (2, 3, 7, 10, 20):
        for interval in (jackknife, median):
            for _ in range(100):
                trials = np.exp(draw.standard_normal(n)) - draw.choice([0.2, 1, 3])
                (margin,) = interval(lambda chosen, trials=trials: trials[chosen].mean(keepdims=True), n)
                assert (margin.tail < 0.025) == (margin.low > 0 or margin.high < 0)


def test_skewed_trials_are_marked_and_even_ones_are_not() -> None:
    """One of ten trials that is off has the skewness 2.67, and 6 * 2.67 ** 2 = 43 > 10."""
    assert mean_interval(np.array([1.0] * 9 + [2.0])).skewed
    assert not mean_interval(np.arange(10.0)).skewed
    assert not mean_interval(np.array([1.0, 1.0, 1.0, 2.0])).skewed  # four trials cannot tell
    assert not mean_interval(np.array([1.0] * 90 + [2.0] * 10)).skewed  # many enough


def test_the_trials_that_would_decide_are_the_fewest_whose_half_width_is_below_the_value() -> None:
    margin = mean_interval(np.array([-1.0, 0.0, 4.0]))
    decides = margin.trials_to_decide()
    assert decides is not None

    def half(n: int) -> float:
        return float(stats.t.ppf(0.975, n - 1) * np.std([-1, 0, 4], ddof=1) / np.sqrt(n))

    assert half(decides) < 1.0 <= half(decides - 1)
    assert mean_interval(np.array([-1.0, 1.001])).trials_to_decide() == 1001  # stands for more than 1,000
    assert mean_interval(np.array([1.0, 1.0])).trials_to_decide() is None
    assert jackknife(lambda chosen: np.array([np.inf, 1.0])[chosen].max(keepdims=True), 2)[0].trials_to_decide() is None
