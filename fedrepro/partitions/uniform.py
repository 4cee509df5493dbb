"""Equal random split: client sizes differ by at most one (fedmf Case 1, fedc ``syn_unf``)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedrepro.datasets.types import Samples
from fedrepro.parameters import clients_fit, whole
from fedrepro.protocols import Sharing
from fedrepro.registry import Partition, add_partition


@dataclass(frozen=True)
class Uniform(Sharing):
    """Samples in random order, dealt out to the clients in turn.

    P : clients, 1 .. N.
    """

    P: int = 100

    def __post_init__(self) -> None:
        """Raise ParameterError where a value cannot work."""
        whole("P", self.P)

    def check(self, *, N: int | None = None, K: int | None = None) -> None:
        """Raise ParameterError where P clients are too many for N samples."""
        clients_fit(self.P, N)

    def assign(self, data: Samples, rng: np.random.Generator) -> np.ndarray:
        """The client of each sample, (N,)."""
        N = data.X.shape[1]
        self.check(N=N)
        client = np.empty(N, dtype=np.intp)
        client[rng.permutation(N)] = np.arange(N) % self.P
        return client


add_partition(Partition("uniform", Uniform, "Equal random split, sizes differ by at most one"))
