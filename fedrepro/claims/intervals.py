"""Confidence intervals of numbers read from averaged curves: the jackknife over trials.

A check reads its numbers from curves averaged over trials, as papers draw them. The jackknife leaves out one trial at a
time: with theta of all n trials and theta_(i) of all but the i-th, the pseudo-values n theta - (n - 1) theta_(i) behave
like n independent readings. Their spread gives an interval with Student's t (n - 1 degrees of freedom), which keeps its
coverage at three normal trials, where a bootstrap is too narrow. For a difference of means it is the paired t interval.

Student's interval misses the truth more often than it says if trials are skewed. From ``SKEWNESS_FROM`` trials on it is
therefore widened to contain Hall's interval too, which corrects for the skewness of the pseudo-values; it is never
narrowed, because Hall's interval alone is too narrow for symmetric trials with heavy tails, such as paired differences.
The coverage of both, and of what was rejected, is in docs/verdicts.md (``bench/interval_coverage.py``).

That all trials have the same sign decides nothing about their mean: the trials that were not computed may contain one
that outweighs them. It decides about the median (the sign test: by chance n trials agree once in 2^(n-1) times, at six
trials 3 %).

Source: Tukey, "Bias and confidence in not quite large samples" (1958); Efron and Tibshirani, "An Introduction to the
Bootstrap" (1993), chapter 11; for skewness, Hall, "On the removal of skewness by transformation" (1992), with
quantiles of Student's t; of the median, Conover, "Practical Nonparametric Statistics" (1999), chapter 3.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

LEVEL = 0.95
SIGNS = 6
"""The smallest number of trials whose signs decide at LEVEL: 2^(1 - 6) is below 5 %, 2^(1 - 5) is not."""


SKEWNESS_FROM = 10
"""The smallest number of trials whose skewness is corrected: of five trials a single one that is off decides it."""
SKEWED = 6
"""Trials count as skewed if there are fewer than SKEWED times the square of their skewness; three or four never do."""
MOST_TRIALS = 1000
"""The largest number of trials that ``Interval.trials_to_decide`` returns."""
DIGITS = 6
"""Significant digits of the margins that are kept, twice those printed; more would only make the kept files larger."""
_EPS = float(np.finfo(float).eps)


@dataclass(frozen=True)
class Interval:
    """A value with its 95 % interval; ``low == value == high`` for one trial or equal trials.

    The value is infinite if one side is infinite in every selection of trials, and nan if a selection leaves it open
    (``judge.Comparison.margin``); the interval is infinite if selections disagree. tail : the probability of a value at
    least this far on its side of zero if the truth were zero; below 2.5 % if the interval excludes zero. deviation :
    the standard deviation of the pseudo-values, nan if the interval does not result from them. skewed : whether they
    are so skewed that the interval may be too narrow.
    """

    value: float
    low: float
    high: float
    tail: float = 0.0
    deviation: float = math.nan
    skewed: bool = False

    def rounded(self) -> Interval:
        """Return value and interval to ``DIGITS`` significant digits, without what they were computed from."""
        value, low, high = (float(f"{number:.{DIGITS}g}") for number in (self.value, self.low, self.high))
        return Interval(value, low, high)

    def trials_to_decide(self) -> int | None:
        """Return how many trials would exclude zero at this value and deviation, by Student's interval.

        ``MOST_TRIALS + 1`` stands for more; None if the interval does not result from pseudo-values.
        """
        if not math.isfinite(self.deviation):
            return None
        enough = np.flatnonzero(_half_widths() * self.deviation < abs(self.value))
        return int(enough[0]) + 2 if enough.size else MOST_TRIALS + 1


@functools.cache
def _half_widths() -> np.ndarray:
    """Return the half width of Student's interval for 2 to ``MOST_TRIALS`` trials with the deviation 1."""
    from scipy.special import stdtrit

    trials = np.arange(2, MOST_TRIALS + 1)
    return np.asarray(stdtrit(trials - 1, (1 + LEVEL) / 2) / np.sqrt(trials))


def jackknife(read: Callable[[np.ndarray], np.ndarray], trials: int) -> list[Interval]:
    """Return the intervals of what ``read`` returns: an array (k,), for the numbers (from 0) of trials to average."""
    whole = np.atleast_1d(np.asarray(read(np.arange(trials)), dtype=np.float64))
    if trials < 2:
        return [_alone(float(v)) for v in whole]
    left = np.array([np.atleast_1d(read(np.delete(np.arange(trials), i))) for i in range(trials)], dtype=np.float64)
    return [_interval(float(v), left[:, k]) for k, v in enumerate(whole)]


def median(read: Callable[[np.ndarray], np.ndarray], trials: int) -> list[Interval]:
    """Return the medians, with intervals, of what ``read`` returns for each trial alone; see ``jackknife``.

    With fewer than ``SIGNS`` trials the interval is infinite: no two trials enclose the median at LEVEL.
    """
    alone = np.sort([np.atleast_1d(np.asarray(read(np.array([i])), dtype=np.float64)) for i in range(trials)], axis=0)
    return [_median(alone[:, k]) for k in range(alone.shape[1])]


def _median(ordered: np.ndarray) -> Interval:
    n = len(ordered)
    if np.isnan(ordered).any():
        return _alone(math.nan)
    with np.errstate(invalid="ignore"):
        value = float(np.median(ordered))
    if n == 1:
        return _alone(value)
    if n < SIGNS:
        return Interval(value, -math.inf, math.inf, tail=0.5)
    below = _rank(n)
    others = int(((ordered <= 0) if value > 0 else (ordered >= 0)).sum())  # trials not on the median's side of zero
    return Interval(value, float(ordered[below - 1]), float(ordered[n - below]), _at_most(others, n))


@functools.cache
def _rank(n: int) -> int:
    """Return the rank of the interval's ends from either end: P(fewer than that are below the median) <= 2.5 %."""
    return next(k for k in range(n + 1) if _at_most(k, n) >= (1 - LEVEL) / 2)


@functools.cache
def _at_most(k: int, n: int) -> float:
    """Return the probability that at most k of n trials are below the median."""
    return sum(math.comb(n, i) for i in range(k + 1)) / 2**n


def _alone(value: float) -> Interval:
    return Interval(value, value, value)


def _interval(value: float, left: np.ndarray) -> Interval:
    n = len(left)
    if math.isnan(value) or np.isnan(left).any():
        return _alone(math.nan)
    if not math.isfinite(value) or not np.isfinite(left).all():
        same = math.isinf(value) and bool((left == value).all())
        return _alone(value) if same else Interval(value, -math.inf, math.inf, tail=0.5)
    pseudo = n * value - (n - 1) * left
    centred = pseudo - pseudo.sum() / n
    deviation = math.sqrt(float((centred * centred).sum()) / (n - 1))
    half = _student(n) * deviation / math.sqrt(n)
    rounding = 8 * _EPS * n * max(abs(value), float(np.abs(left).max()))
    if half <= rounding:
        return _alone(value)
    skewness = float(((centred / deviation) ** 3).sum() / n * (n / (n - 1)) ** 1.5)
    corrected = skewness if n >= SKEWNESS_FROM and abs(skewness) > 1e-6 else 0.0
    below, above = (_untransformed(sign * half / deviation, corrected, n) * deviation for sign in (1, -1))
    return Interval(
        value,
        value - max(half, below),
        value + max(half, -above),
        _tail(value / deviation, corrected, n),
        deviation,
        4 < n < SKEWED * skewness**2,
    )


@functools.cache
def _student(n: int) -> float:
    """Return the quantile of Student's t at ``LEVEL`` for n trials."""
    from scipy.special import stdtrit

    return float(stdtrit(n - 1, (1 + LEVEL) / 2))


def _transformed(error: float, skewness: float, n: int) -> float:
    """Return Hall's transformation of (mean - truth) / deviation, whose distribution is nearly symmetric."""
    return error + skewness * error**2 / 3 + skewness**2 * error**3 / 27 + skewness / (6 * n)


def _untransformed(transformed: float, skewness: float, n: int) -> float:
    """Return the inverse of ``_transformed``; without skewness both are the identity."""
    if not skewness:
        return transformed
    return float(3 / skewness * (np.cbrt(1 + skewness * (transformed - skewness / (6 * n))) - 1))


def _tail(error: float, skewness: float, n: int) -> float:
    """Return the larger one of the probabilities of a value so far from zero by Student's and by Hall's interval."""
    from scipy.special import stdtr

    way = math.copysign(math.sqrt(n), error)
    return float(stdtr(n - 1, -min(error * way, _transformed(error, skewness, n) * way)))


def of_share(successes: int, trials: int) -> tuple[float, float]:
    """Return the exact 95 % interval of a share (Clopper and Pearson, Biometrika 26, 1934)."""
    from scipy.special import betaincinv

    rest, tail = trials - successes, (1 - LEVEL) / 2
    low = float(betaincinv(successes, rest + 1, tail)) if successes else 0.0
    high = float(betaincinv(successes + 1, rest, 1 - tail)) if rest else 1.0
    return low, high
