"""How often verdicts are right: claims of known truth, judged as those of the papers are.

The margin of a claim is that of two curves of a spec whose end values differ, trial by trial, by a true effect and by
noise that is normal, lognormal or has an outlier in ten trials. Effects are in half widths of the 95 % interval that
normal trials of the same number and deviation have: 0 is a claim on the border, 1 would be decided every other time.
The noise is skewed to the right; of noise skewed to the left holds and fails change places at the effect 0.

Run ``python bench/verdict_calibration.py`` (six minutes on one core). It prints the table of docs/verdict-accuracy.md.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from fedrepro.claims.judge import judge
from fedrepro.results.schema import Sidecar
from fedrepro.spec.model import Claim, Figure
from fedrepro.spec.read import load

SPEC = Path(__file__).parent.parent / "experiments" / "fedc" / "fig3.yaml"
TRIALS, EFFECTS = (3, 5, 10, 50), (0.0, 0.5, 1.0, 2.0)
KINDS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "lognormal, sigma 1": lambda rng, n: (np.exp(rng.standard_normal(n)) - np.exp(0.5)) / 2.1612,
    "lognormal, sigma 2": lambda rng, n: (np.exp(2 * rng.standard_normal(n)) - np.exp(2)) / 54.096,
    "one outlier in ten": lambda rng, n: (9 * (rng.random(n) < 0.1) - 0.9 + 0.3 * rng.standard_normal(n)) / 2.7166,
}
"""Noise of mean 0 and deviation 1."""


def frame(figure: Figure, ends: np.ndarray) -> pd.DataFrame:
    """Return the results of the first two curves of a figure with these end values, (2, trials)."""
    panel = figure.panels[0]
    sent = dict.fromkeys(("uplink_scalars", "uplink_bits", "downlink_scalars", "downlink_bits"), 0)
    return pd.DataFrame(
        {"series": curve.setting.series, "trial": trial + 1, "status": "ok", "round": r, "metric": panel.y,
         "value": value, **sent}
        for curve, values in zip(panel.curves[:2], ends, strict=True)
        for trial, end in enumerate(values) for r, value in ((0, 9.0), (1, end))
    )  # fmt: skip


def outcomes(figure: Figure, kind: str, n: int, effect: float, repeats: int) -> Counter[str]:
    """Return how often the claim that the first curve ends lower holds, fails, and is undecided."""
    first, second = (curve.label for curve in figure.panels[0].curves[:2])
    check = f"y(at='end', label={first!r}) < y(at='end', label={second!r})"
    claim = Claim("calibration", "the first curve ends lower", "nowhere", figure.panels[0].id, check)
    half = stats.t.ppf(0.975, n - 1) / np.sqrt(n)
    rng = np.random.default_rng([n, int(10 * effect)])
    counts: Counter[str] = Counter()
    for _ in range(repeats):
        shared = 5 * rng.standard_normal(n)
        margins = effect * half + KINDS[kind](rng, n)
        counts[judge(claim, figure, frame(figure, np.array([shared, shared + margins])), Sidecar()).verdict] += 1
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=300, help="claims of each cell")
    repeats = parser.parse_args().repeats
    figure = load(SPEC, "paper")
    print("| noise | n | " + " | ".join(f"effect {effect:g}" for effect in EFFECTS) + " |")
    print("| --- " * (len(EFFECTS) + 2) + "|")
    for kind in KINDS:
        for n in TRIALS:
            cells = []
            for effect in EFFECTS:
                counts = outcomes(figure, kind, n, effect, repeats)
                cells.append(" / ".join(f"{100 * counts[v] / repeats:.0f}" for v in ("holds", "fails", "undecided")))
            print(f"| {kind} | {n} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
