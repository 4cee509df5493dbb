"""A point (U, V) of a run on the completion problem."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass
class State:
    """One point of a run, updated in place from round to round: what must outlive a round has to be copied.

    U : (rows, r) user factors. V : (n, r) the server's item factors. W, Y : (p, n, r) local copies and duals, or None
    where the method keeps none. work : inner passes so far. beta : the penalty in force, where the method has one.
    """

    U: np.ndarray
    V: np.ndarray
    W: np.ndarray | None = None
    Y: np.ndarray | None = None
    work: float = 0.0
    beta: float | None = None
