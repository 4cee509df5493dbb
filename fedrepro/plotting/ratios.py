"""Compression ratios in tables: the share of the bits that a quantized method saves, as the authors of gcca count it.

CR = 1 - q R_C / (32 R_A): R_C and R_A are the numbers of the first recorded iterations at which the curves averaged
over trials lie below a multiple of the average optimum, the initial point being number 1. Nothing is interpolated, and
a ratio of averages has no spread over trials. Source: gcca Sec. V-A.3, Table I; docs/derivations/compression-ratio.md.
"""

from __future__ import annotations

import numpy as np

from fedrepro.ledger import FULL_BITS
from fedrepro.plotting import series
from fedrepro.plotting.series import Source, Trial
from fedrepro.problems import gcca
from fedrepro.spec import layout
from fedrepro.spec.model import Curve, Panel
from fedrepro.spec.panels import TableOptions


def compression(panel: Panel, curve: Curve, source: Source) -> tuple[float, int, str]:
    """The compression ratio of a curve, the number of trials it is read off, and ``ok`` or why there is none.

    The other method and the level are those of the panel's options ``ratio_from``, ``optimum_of`` and ``reach``.
    Trials count where both methods have finished them; a curve without a bit width sends numbers in full.
    """
    options = TableOptions.of(panel)
    other = layout.reference(panel, options.ratio_from or {}, "ratio_from")
    known = layout.reference(panel, options.optimum_of, "optimum_of") if options.optimum_of else other
    optimum = [t.y[-1] for t in _healthy(source, known, panel, "optimum").values()]
    quantized, full = (_healthy(source, c, panel, "cost") for c in (curve, other))
    shared = sorted(set(quantized) & set(full))
    if not shared or not optimum:
        return float("nan"), 0, "no results"
    averages = [series.average([runs[number] for number in shared]) for runs in (quantized, full)]
    C, A = (average for average in averages if average is not None)
    rounds = np.intersect1d(C.x, A.x)
    cost_C, cost_A = (average.mean[np.isin(average.x, rounds)] for average in (C, A))
    q = layout.values_of(curve).get("q") or FULL_BITS
    factor = options.reach or 1.0
    ratio = gcca.compression_ratio(cost_C, cost_A, np.mean(optimum), q, rounds=rounds, factor=factor)
    return ratio, len(shared), "ok" if np.isfinite(ratio) else "never gets there"


def _healthy(source: Source, curve: Curve, panel: Panel, metric: str) -> dict[int, Trial]:
    """The trials of a curve that ended well, by number."""
    found = series.trials(source, curve, panel, metric=metric)
    return {trial.number: trial for trial in found if trial.status == "ok" and trial.y.size}
