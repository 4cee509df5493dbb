"""gcca eq. (18)-(20) written down entry by entry, with the step that its 32 bits can hold; no speed."""

from __future__ import annotations

import numpy as np


def quantized(D, q, u, rng, step=None):
    """What is received of D: the step is the next number of single precision, and levels are drawn for that step.

    step : of another route to the same message, that differs by roundings. It may be a neighbour of the one computed
        here, because single precision may round two numbers that differ by 1e-10 to neighbours; it is then used
        instead.
    """
    S = 2 ** (q - 1) - 1
    U = rng.random(D.shape)
    exact = np.abs(D).max() / S / u
    rounded = np.float32(exact)
    rounded = rounded if float(rounded) >= exact else np.nextafter(rounded, np.float32(np.inf))
    assert step is None or step in (
        np.nextafter(rounded, np.float32(0)),
        rounded,
        np.nextafter(rounded, np.float32(np.inf)),
    )
    step = float(rounded) if step is None else step
    C = np.zeros_like(D)
    for at in np.ndindex(*D.shape):
        a = abs(D[at]) / (step * u)
        level = min(np.floor(a) + (U[at] < a - np.floor(a)), S)
        C[at] = np.sign(D[at]) * step * level
    return C
