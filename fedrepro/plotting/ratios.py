"""Compression ratios in tables: the share of the bits that a quantized method saves, as the authors of gcca count it.

CR = 1 - q R_C / (32 R_A): R_C and R_A are the numbers of the first recorded iterations at which the curves averaged
over trials lie below a multiple of the average optimum, the initial point being number 1. Nothing is interpolated, and
a ratio of averages has no spread over trials. Source: gcca Sec. V-A.3, Table I; docs/derivations/compression-ratio.md.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fedrepro.ledger import FULL_BITS
from fedrepro.plotting import series
from fedrepro.plotting.series import FigureData, Trial
from fedrepro.spec import layout
from fedrepro.spec.model import Curve, Panel
from fedrepro.spec.panels import TableOptions


def compression(panel: Panel, curve: Curve, source: FigureData) -> tuple[float, int, str]:
    """Return the compression ratio of a curve, its number of trials, and ``ok`` or what became of the other trials.

    The panel's options ``ratio_from``, ``optimum_of`` and ``reach`` set the other method and the level. Only trials
    that all these methods have finished count. A curve without a bit width sends numbers in full precision.
    """
    from fedrepro.problems.gcca.problem import compression_ratio  # loads SciPy's sparse matrices

    options = TableOptions.of(panel)
    other = layout.reference(panel, options.ratio_from or {}, "ratio_from")
    known = layout.reference(panel, options.optimum_of, "optimum_of") if options.optimum_of else other
    runs = [
        series.trials(source, c, panel, metric=m) for c, m in ((curve, "cost"), (other, "cost"), (known, "optimum"))
    ]
    quantized, full, optimum = map(_healthy, runs)
    bad = series.lost(runs[0]) + [f"{words} ({other.label})" for words in series.lost(runs[1]) if other is not curve]
    shared = sorted(set(quantized) & set(full) & set(optimum))
    if not shared:
        return float("nan"), 0, ", ".join(bad) or "no results"
    C, A = (series.average([trials[number] for number in shared]) for trials in (quantized, full))
    assert C is not None
    assert A is not None
    best = np.mean([optimum[number].y[-1] for number in shared])
    rounds = np.intersect1d(C.x, A.x)
    cost_C, cost_A = (average.mean[np.isin(average.x, rounds)] for average in (C, A))
    q = layout.values_of(curve).get("q") or FULL_BITS
    ratio = compression_ratio(cost_C, cost_A, best, q, rounds=rounds, factor=options.reach or 1.0)
    bad += [] if np.isfinite(ratio) else ["never gets there"]
    return ratio, len(shared), ", ".join(bad) or "ok"


def _healthy(runs: Sequence[Trial]) -> dict[int, Trial]:
    """Return the healthy trials by number."""
    return {trial.number: trial for trial in runs if trial.status == "ok" and trial.y.size}
