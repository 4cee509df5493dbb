"""Equal random split: client sizes differ by at most one (fedmf Case 1, fedc ``syn_unf``)."""

from __future__ import annotations

import numpy as np

from fedrepro.datasets.types import Samples
from fedrepro.partitions._common import clients_fit
from fedrepro.registry import Partition, add_partition


def assign(data: Samples, rng: np.random.Generator, *, P: int = 100) -> np.ndarray:
    """The client of each sample, (N,): a random permutation dealt out to P clients in turn."""
    N = data.X.shape[1]
    check(P=P, N=N)
    client = np.empty(N, dtype=np.intp)
    client[rng.permutation(N)] = np.arange(N) % P
    return client


def check(*, P: int = 100, N: int | None = None, K: int | None = None) -> None:
    """Raise ParameterError where P clients are too many for N samples."""
    clients_fit(P, N)


add_partition(Partition("uniform", "Equal random split, sizes differ by at most one", assign, check))
