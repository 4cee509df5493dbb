"""A point (U, V) of a run on the completion problem."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass
class State:
    """One point of a run, updated in place from round to round; copy the arrays to keep them.

    U : (rows, r) user factors. V : (n, r) the server's item factors. W, Y : (p, n, r) local copies and duals, or None
    if the method has none. work : inner passes so far. beta : the penalty in force, or None.
    """

    U: np.ndarray
    V: np.ndarray
    W: np.ndarray | None = None
    Y: np.ndarray | None = None
    work: float = 0.0
    beta: float | None = None
