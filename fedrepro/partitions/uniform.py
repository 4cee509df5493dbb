"""Equal random split: client sizes differ by at most one (fedmf Case 1, fedc ``syn_unf``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from fedrepro.datasets.types import Samples
from fedrepro.parameters import AtMost, Whole
from fedrepro.protocols import Partition
from fedrepro.registry import add_partition


@dataclass(frozen=True)
class Uniform(Partition):
    """Samples in random order, dealt out to the clients in turn.

    P : clients, 1 .. N.
    """

    P: Annotated[int, Whole(), AtMost("N", "samples")] = 100

    def assign(self, data: Samples, rng: np.random.Generator) -> np.ndarray:
        """Return the client of each sample, (N,)."""
        N = data.X.shape[1]
        self.check(N=N)
        client = np.empty(N, dtype=np.intp)
        client[rng.permutation(N)] = np.arange(N) % self.P
        return client


add_partition("uniform", Uniform, "Equal random split, sizes differ by at most one", "samples")
