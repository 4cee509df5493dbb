"""The compiled inner loop of the max-norm quantizer: one pass over a matrix, shared by every method that quantizes."""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(cache=True)
def levels_and_values(
    D: np.ndarray, U: np.ndarray, unit: float, S: int, step: float, levels: np.ndarray, values: np.ndarray
) -> None:
    """Fill ``levels`` (signed, -S .. S) and ``values`` (= step * levels) for the entries ``D``; all one-dimensional.

    ``U``: independent uniforms on [0, 1). ``unit``: the value of one level before the scale 1/u, at least
    max|D| / S up to rounding.
    """
    top = float(S)
    for j in range(D.size):
        a = min(abs(D[j]) / unit, top)  # it may be S and a rounding error
        low = int(a)
        if U[j] < a - low:  # gcca eq. (18): up with probability a - floor(a)
            low += 1
        if D[j] < 0.0:
            low = -low
        levels[j] = low
        values[j] = step * low  # gcca eq. (19), (20)
