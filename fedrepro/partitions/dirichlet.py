"""Dirichlet label skew: the share of each class that a client has is drawn from a symmetric Dirichlet distribution.

The usual non-iid split of the federated learning literature (Hsu, Qi and Brown, 2019, arXiv:1909.06335); the papers
here do not use it. Small ``alpha`` gives clients of few classes, large ``alpha`` an even split.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from fedrepro.datasets.types import Samples
from fedrepro.parameters import AtMost, Number, Whole
from fedrepro.partitions.sharing import fill_empty, labels_of
from fedrepro.protocols import Partition
from fedrepro.registry import add_partition


@dataclass(frozen=True)
class Dirichlet(Partition):
    """Every class, shuffled and cut in Dirichlet(alpha) proportions; an empty client gets a sample of the largest.

    P : clients, 1 .. N. alpha : concentration, above 0; the smaller, the fewer classes a client has.
    """

    P: Annotated[int, Whole(), AtMost("N", "samples")] = 100
    alpha: Annotated[float, Number(above=0.0)] = 0.5

    def check(self, *, N: int | None = None, K: int | None = None) -> None:
        """Raise ParameterError if N samples are too few for P clients, or without labels (K = 0)."""
        super().check(N=N, K=K)
        if K == 0:
            labels_of(None, "dirichlet")

    def assign(self, data: Samples, rng: np.random.Generator) -> np.ndarray:
        """Return the client of each sample, (N,); no draw is ever rejected. Raises ParameterError without labels."""
        labels = labels_of(data.labels, "dirichlet")
        self.check(N=labels.size)
        client = np.empty(labels.size, dtype=np.intp)
        for name in np.unique(labels):
            members = rng.permutation(np.flatnonzero(labels == name))
            edges = np.cumsum(rng.dirichlet(np.full(self.P, self.alpha)))[:-1] * members.size
            client[members] = np.searchsorted(edges, np.arange(members.size), side="right")
        return fill_empty(client, self.P)


add_partition("dirichlet", Dirichlet, "Label skew: Dirichlet shares of every class", "samples")
