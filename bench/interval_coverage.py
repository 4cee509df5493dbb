"""How often 95 % intervals hold the mean of few and of skewed trials: ours, and those that were considered instead.

Trials are normal, lognormal (sigma 1 and 2), normal around 1 with one in ten at -9, or differences of two independent
lognormals, as paired methods have. The truth is the mean. A Markdown table of the share of intervals that hold it is
printed, and of the median width over that of Student's; docs/verdict-accuracy.md has it.

* Student: mean and quantiles of t, n - 1 degrees of freedom; exact for normal trials.
* Johnson: the same, shifted by the third moment (1978).
* Hall: the inverse of a cubic transformation that removes skewness (1992), with quantiles of t.
* bootstrap-t and BCa: Efron and Tibshirani, "An Introduction to the Bootstrap" (1993), chapters 12 and 14.
* ours: Student's below ten trials, from ten on the smallest interval that contains Student's and Hall's
  (``fedrepro.claims.intervals``).

Run ``python bench/interval_coverage.py`` (two minutes on one core).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from scipy import stats

from fedrepro.claims.intervals import jackknife

TRIALS = (3, 5, 10, 50)
RESAMPLES = 400
Limits = tuple[float, float]
Draw = Callable[[np.random.Generator, int], np.ndarray]


def lognormal(sigma: float) -> Draw:
    return lambda rng, n: np.exp(sigma * rng.standard_normal(n))


def difference(sigma: float) -> Draw:
    return lambda rng, n: lognormal(sigma)(rng, n) - lognormal(sigma)(rng, n)


def outlier(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.where(rng.random(n) < 0.1, -9.0, 1.0) + 0.3 * rng.standard_normal(n)


KINDS: dict[str, tuple[Draw, float]] = {
    "normal": (lambda rng, n: rng.standard_normal(n), 0.0),
    "lognormal, sigma 1": (lognormal(1), float(np.exp(0.5))),
    "lognormal, sigma 2": (lognormal(2), float(np.exp(2))),
    "one outlier in ten": (outlier, 0.0),
    "difference of lognormals, sigma 1": (difference(1), 0.0),
    "difference of lognormals, sigma 2": (difference(2), 0.0),
}
"""Ways to draw trials, with their mean."""


def ours(trials: np.ndarray) -> Limits:
    (interval,) = jackknife(lambda chosen: trials[chosen].mean(keepdims=True), len(trials))
    return interval.low, interval.high


def student(trials: np.ndarray) -> Limits:
    n, mean = len(trials), trials.mean()
    half = stats.t.ppf(0.975, n - 1) * trials.std(ddof=1) / np.sqrt(n)
    return mean - half, mean + half


def johnson(trials: np.ndarray) -> Limits:
    shift = ((trials - trials.mean()) ** 3).mean() / (6 * trials.var(ddof=1) * len(trials))
    low, high = student(trials)
    return low + shift, high + shift


def hall(trials: np.ndarray) -> Limits:
    n, mean, deviation = len(trials), trials.mean(), trials.std(ddof=1)
    g = stats.skew(trials)
    ends = stats.t.ppf([0.975, 0.025], n - 1) / np.sqrt(n)
    low, high = mean - deviation * 3 / g * (np.cbrt(1 + g * (ends - g / (6 * n))) - 1)
    return float(low), float(high)


def resamples(trials: np.ndarray) -> np.ndarray:
    rng = np.random.default_rng(0)
    return trials[rng.integers(0, len(trials), (RESAMPLES, len(trials)))]


def bootstrap_t(trials: np.ndarray) -> Limits:
    drawn = resamples(trials)
    spread = drawn.std(axis=1, ddof=1)
    errors = (drawn.mean(axis=1) - trials.mean())[spread > 0] / spread[spread > 0]
    low, high = trials.mean() - trials.std(ddof=1) * np.quantile(errors, [0.975, 0.025])
    return float(low), float(high)


def bca(trials: np.ndarray) -> Limits:
    means = resamples(trials).mean(axis=1)
    bias = stats.norm.ppf(np.clip((means < trials.mean()).mean(), 1 / RESAMPLES, 1 - 1 / RESAMPLES))
    apart = trials - trials.mean()
    acceleration = (apart**3).sum() / (6 * (apart**2).sum() ** 1.5)
    both = bias + stats.norm.ppf([0.025, 0.975])
    low, high = np.quantile(means, stats.norm.cdf(bias + both / (1 - acceleration * both)))
    return float(low), float(high)


METHODS: dict[str, Callable[[np.ndarray], Limits]] = {
    "Student": student,
    "Johnson": johnson,
    "Hall": hall,
    "bootstrap-t": bootstrap_t,
    "BCa": bca,
    "ours": ours,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=4000, help="draws of each cell")
    repeats = parser.parse_args().repeats
    print(f"| trials | n | {' | '.join(METHODS)} | width of ours |")
    print("| --- " * (len(METHODS) + 3) + "|")
    for kind, (draw, mean) in KINDS.items():
        for n in TRIALS:
            rng = np.random.default_rng(n)
            draws = [draw(rng, n) for _ in range(repeats)]
            limits = {name: np.array([method(trials) for trials in draws]) for name, method in METHODS.items()}
            shares = [f"{((own[:, 0] <= mean) & (mean <= own[:, 1])).mean():.3f}" for own in limits.values()]
            widths = {name: np.median(np.diff(own)) for name, own in limits.items()}
            print(f"| {kind} | {n} | {' | '.join(shares)} | {widths['ours'] / widths['Student']:.2f} |", flush=True)


if __name__ == "__main__":
    main()
