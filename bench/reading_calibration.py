"""How often each class of verdicts over readings is right: claims of known truth, by number of trials and skew.

Two methods come down from the same start to the same end, the first one ``speedup`` times as fast; each trial has its
own noise on both rates. The claim is ``faster(A, than=B)``, judged under every reading of the lexicon. With a
speedup of 1 every decision is an error; above 1 only *fails* is; curves that cross hold to some levels and fail to
others, so that only *turns round* is right. Prints, of 100 samples of each kind, how many are in each class.

    python bench/reading_calibration.py --repeats 100
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd

from fedrepro.claims import classes, judge, robustness
from fedrepro.claims.evidence import FAILS, HOLDS, NOISE
from fedrepro.spec import readings
from fedrepro.spec.model import Claim, Figure
from fedrepro.spec.read import load

SPEC = Path(__file__).parents[1] / "experiments" / "fedc" / "fig4.yaml"
CHECK = "faster(fedcavg, than=fedcgds(m=100))"
START, END, RATE = 1.0, 0.46, 0.05
ROUNDS = np.arange(501)
NOISES = ("normal", "lognormal, sigma 1")


def curves(rng: np.random.Generator, trials: int, noise: str, speedup: float, spread: float) -> np.ndarray:
    """Return the objective of both methods, (2, trials, rounds). A speedup of 0 stands for crossing curves."""
    draws = rng.normal(size=(2, trials)) if noise == "normal" else rng.lognormal(size=(2, trials)) - np.exp(0.5)
    deviation = 1.0 if noise == "normal" else np.sqrt((np.e - 1) * np.e)
    factor = np.maximum(1 + spread * draws / deviation, 0.05)
    rates = RATE * factor * np.array([[speedup or 1.0], [1.0]])
    left = np.exp(-rates[..., None] * ROUNDS)
    if not speedup:  # the first one is fast at the beginning, and slow at the end
        slow = np.exp(-0.3 * rates[0][..., None] * ROUNDS)
        fast = np.exp(-3 * rates[0][..., None] * ROUNDS)
        left[0] = 0.85 * fast + 0.15 * slow
    return np.asarray(END + (START - END) * left)


def frame(series: list[str], values: np.ndarray) -> pd.DataFrame:
    """Return a tidy table of curves, (methods, trials, rounds)."""
    parts = [
        pd.DataFrame({
            "series": name, "trial": trial + 1, "status": "ok", "round": ROUNDS, "metric": "objective",
            "uplink_scalars": 10.0 * ROUNDS, "uplink_bits": 320.0 * ROUNDS, "downlink_scalars": 10.0 * ROUNDS,
            "downlink_bits": 320.0 * ROUNDS, "value": values[k, trial],
        })
        for k, name in enumerate(series) for trial in range(values.shape[1])
    ]  # fmt: skip
    return pd.concat(parts, ignore_index=True)


def kind(claim: Claim, figure: Figure, series: list[str], values: np.ndarray) -> str:
    """Return the class of the claim on these curves, with the answer where all readings agree."""
    found = robustness.of(claim, figure, judge.Known(frame(series, values)))
    assert found is not None
    return f"{found.kind}: {found.leading}" if found.kind == classes.EVERY else found.kind


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--spread", type=float, default=0.1, help="relative deviation of a trial's rate")
    asked = parser.parse_args()
    figure = load(SPEC, "paper")
    panels = {panel.id: panel for panel in figure.panels}
    claim = readings.with_literal_check(Claim("x", "A is faster", "ours", "a", CHECK), panels)
    series = [curve.setting.series for curve in judge.curves(claim, figure)]
    shown = [
        *(f"{classes.EVERY}: {o}" for o in (HOLDS, FAILS, NOISE)),
        classes.ALL_BUT,
        classes.CERTAINTY,
        classes.TURNS,
    ]
    print("| noise | trials | speedup | " + " | ".join(shown) + " |")
    print("| --- " * (3 + len(shown)) + "|")
    for noise in NOISES:
        for trials in (3, 5, 10):
            for speedup in (1.0, 1.1, 1.5, 0.0):
                rng = np.random.default_rng([trials, int(10 * speedup), NOISES.index(noise)])
                drawn = (curves(rng, trials, noise, speedup, asked.spread) for _ in range(asked.repeats))
                counts = Counter(kind(claim, figure, series, values) for values in drawn)
                cells = [f"{100 * counts[name] / asked.repeats:.0f}" for name in shown]
                print(f"| {noise} | {trials} | {speedup or 'crossing'} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
