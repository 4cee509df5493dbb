"""A point (W, H) of a run on the clustering problem."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np


@dataclass
class State:
    """One point (W, H) of a run, updated in place from round to round.

    W : (M, K). Hs : (N, K), H transposed, in the problem's order of samples. order : (N,), that order.
    rho : the relative penalty in force; may be set between rounds.
    HH : (K, K), H H^T of the current H.
    XH : (M, K), X H^T of the current H, or None if the method does not keep it.
    XW : (N, K), X^T W of the current W, or None until it is computed (``Clustering.XW``).
    lost : sum of the traces added to and subtracted from HH since HH and XH were last recomputed. Multiplied by the
    machine precision, it bounds their rounding error.
    """

    W: np.ndarray
    Hs: np.ndarray
    order: np.ndarray
    rho: float
    HH: np.ndarray
    XH: np.ndarray | None = None
    XW: np.ndarray | None = None
    lost: float = 0.0

    @property
    def H(self) -> np.ndarray:
        """H as in the papers, (K, N), columns in the order in which the caller gave the samples (a copy)."""
        H = np.empty((self.Hs.shape[1], self.Hs.shape[0]))
        H[:, self.order] = self.Hs.T
        return H

    def copy(self) -> State:
        """A copy that later rounds do not change."""
        XH = None if self.XH is None else self.XH.copy()
        XW = None if self.XW is None else self.XW.copy()
        return dataclasses.replace(self, W=self.W.copy(), Hs=self.Hs.copy(), HH=self.HH.copy(), XH=XH, XW=XW)
