"""How sure a number is that was read off averaged curves: the jackknife over trials.

A check reads its numbers off curves averaged over trials, as papers draw them. What they would have been over other
trials is told by leaving out one at a time: with theta of all n trials and theta_(i) of all but the i-th, the
pseudo-values n theta - (n - 1) theta_(i) behave like n independent readings of it. Their spread gives an interval with
Student's t (n - 1 degrees of freedom), which keeps its coverage at three trials, where a bootstrap is too narrow. For a
difference of means it is the paired t interval.

A few trials that lie far off, a run that diverged among them, widen that interval to both sides, though they may lie on
the side of all others. So where it does not tell a sign, and there are ``SIGNS`` trials or more, every trial is read by
itself: the sign that all of them and their average have is sure too (the sign test: by chance they all agree once in
2^(n-1) times, at six trials 3 %).

Source: Tukey, "Bias and confidence in not quite large samples" (1958); Efron and Tibshirani, "An Introduction to the
Bootstrap" (1993), chapter 11; of the median, Conover, "Practical Nonparametric Statistics" (1999), chapter 3.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

LEVEL = 0.95
SIGNS = 6
"""The fewest trials whose signs tell at LEVEL: 2^(1 - 6) is below 5 %, 2^(1 - 5) is not."""


@dataclass(frozen=True)
class Interval:
    """A value with its 95 % interval; ``low == value == high`` where one trial or equal trials leave no doubt.

    The value is infinite where one side is, in every selection of trials; the interval is infinite where selections
    disagree, and the value not a number where both sides are infinite. alike : 1 or -1 where the interval does not tell
    the value's sign and all of ``SIGNS`` trials or more do, each by itself.
    """

    value: float
    low: float
    high: float
    alike: int = 0


def jackknife(read: Callable[[np.ndarray], np.ndarray], trials: int) -> list[Interval]:
    """The intervals of what ``read`` gives: an array (k,) for the numbers (from 0) of the trials to average over."""
    whole = np.atleast_1d(np.asarray(read(np.arange(trials)), dtype=np.float64))
    if trials < 2:
        return [_alone(float(v)) for v in whole]
    left = np.array([np.atleast_1d(read(np.delete(np.arange(trials), i))) for i in range(trials)], dtype=np.float64)
    found = [_interval(float(v), left[:, k]) for k, v in enumerate(whole)]
    if trials < SIGNS or not any(one.low < 0 < one.high for one in found):
        return found
    alone = np.sign([np.atleast_1d(read(np.array([i]))) for i in range(trials)])
    return [dataclasses.replace(one, alike=_alike(one, alone[:, k])) for k, one in enumerate(found)]


def median(read: Callable[[np.ndarray], np.ndarray], trials: int) -> list[Interval]:
    """The medians, with their intervals, of what ``read`` gives for every trial by itself: see ``jackknife``.

    With fewer than ``SIGNS`` trials no two of them enclose the median at LEVEL: the interval is infinite.
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
        return Interval(value, -math.inf, math.inf)
    from scipy.stats import binom

    below = int(binom.ppf((1 - LEVEL) / 2, n, 0.5))  # ranks from either end: P(fewer than that are below) <= 2.5 %
    return Interval(value, float(ordered[below - 1]), float(ordered[n - below]))


def _alike(interval: Interval, signs: np.ndarray) -> int:
    """The sign that all trials and the value have, where the interval does not tell it; else 0."""
    if not interval.low < 0 < interval.high:
        return 0
    return int(signs[0]) if (signs == np.sign(interval.value)).all() else 0


def _alone(value: float) -> Interval:
    return Interval(value, value, value)


def _interval(value: float, left: np.ndarray) -> Interval:
    n = len(left)
    if math.isnan(value) or np.isnan(left).any():
        return _alone(math.nan)
    if not math.isfinite(value) or not np.isfinite(left).all():
        same = math.isinf(value) and bool((left == value).all())
        return _alone(value) if same else Interval(value, -math.inf, math.inf)
    from scipy.stats import t

    pseudo = n * value - (n - 1) * left
    half = float(t.ppf((1 + LEVEL) / 2, n - 1) * pseudo.std(ddof=1) / math.sqrt(n))
    rounding = 8 * np.finfo(float).eps * n * float(np.abs(left).max(initial=abs(value)))
    return _alone(value) if half <= rounding else Interval(value, value - half, value + half)
