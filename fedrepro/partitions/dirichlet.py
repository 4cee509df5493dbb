"""Dirichlet label skew: the share of each class that a client holds is drawn from a symmetric Dirichlet distribution.

The usual non-iid split of the federated learning literature (Hsu, Qi and Brown, 2019, arXiv:1909.06335); the papers
here do not use it. Small ``alpha`` gives clients of few classes, large ``alpha`` an even split.
"""

from __future__ import annotations

import numpy as np

from fedrepro.datasets.types import Samples
from fedrepro.parameters import number
from fedrepro.partitions._common import clients_fit, fill_empty, labels_of
from fedrepro.registry import Partition, add_partition


def assign(data: Samples, rng: np.random.Generator, *, P: int = 100, alpha: float = 0.5) -> np.ndarray:
    """The client of each sample, (N,): every class is shuffled and cut in Dirichlet(alpha) proportions.

    A client left empty gets a sample of the largest, so no draw is ever rejected. Raises ParameterError without labels.
    """
    labels = labels_of(data.labels, "dirichlet")
    check(P=P, alpha=alpha, N=labels.size)
    client = np.empty(labels.size, dtype=np.intp)
    for name in np.unique(labels):
        members = rng.permutation(np.flatnonzero(labels == name))
        edges = np.cumsum(rng.dirichlet(np.full(P, alpha)))[:-1] * members.size
        client[members] = np.searchsorted(edges, np.arange(members.size), side="right")
    return fill_empty(client, P)


def check(*, P: int = 100, alpha: float = 0.5, N: int | None = None, K: int | None = None) -> None:
    """Raise ParameterError where a value cannot work, or P clients are too many for N samples."""
    clients_fit(P, N)
    number("alpha", alpha, above=0.0)


add_partition(Partition("dirichlet", "Label skew: Dirichlet shares of every class", assign, check))
