"""Similar samples together: K-means into P clusters, one cluster per client (fedmf Case 2, fedc ``syn_noniid``).

Source: fedmf section V-A; fedc section V; discrepancy fedmf.11 (the authors' program assigns samples to 100 random
anchors instead, which leaves clients empty).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import scipy

from fedrepro.datasets.types import Samples
from fedrepro.parameters import AtMost, Whole
from fedrepro.partitions.sharing import fill_empty
from fedrepro.protocols import Cost, Partition, Work
from fedrepro.registry import add_partition


@dataclass(frozen=True)
class Similarity(Partition):
    """K-means clusters (k-means++ starts, the best of several), one per client.

    P : clients, 1 .. N. n_init : K-means runs, at least 1. batch : None for Lloyd's algorithm on all samples; for data
    too large for it, the size of the batches of mini-batch K-means, at least 1.
    """

    P: Annotated[int, Whole(), AtMost("N", "samples")] = 100
    n_init: Annotated[int, Whole()] = 10
    batch: Annotated[int | None, Whole()] = None

    def sharing(self, facts: Mapping[str, Any]) -> Cost:
        """Distances of all samples to P clusters, about 15 times for each start, and a copy of the samples."""
        entries = facts["N"] * facts["M"] * facts.get("density", 1.0)
        each = Work(flops=2.0 * entries * self.P, calls=100.0)
        if "density" in facts:
            each = Work(singles=1.2 * entries * self.P, calls=100.0)
        seeds = 7.0  # each seed is the best of 2 + log P candidates
        copied = 8.0 * facts["N"] * facts["M"] if "density" not in facts else 12.0 * entries
        return Cost(
            self.n_init * (15.0 + seeds) * each, holds=copied + 16.0 * facts["N"] * self.P, libraries=("sklearn",)
        )

    def assign(self, data: Samples, rng: np.random.Generator) -> np.ndarray:
        """Return the client of each sample, (N,).

        One thread, so that sums are taken in one order: the same data and rng give the same clients. Where K-means
        finds fewer than P distinct clusters, the clients left over get a sample each of the largest.
        """
        X = data.X
        self.check(N=X.shape[1])
        own = scipy.sparse.csr_matrix(X.T) if scipy.sparse.issparse(X) else np.array(X.T, dtype=np.float64, order="C")
        return fill_empty(_clusters(own, self.P, self.n_init, self.batch, int(rng.integers(2**31))), self.P)


def _clusters(X: Any, P: int, n_init: int, batch: int | None, seed: int) -> np.ndarray:
    from sklearn.cluster import KMeans, MiniBatchKMeans
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    settings: dict[str, Any] = {"n_clusters": P, "n_init": n_init, "random_state": seed}
    # copy_x=False centres a dense X in place: it is the caller's own copy
    model = KMeans(**settings, copy_x=False) if batch is None else MiniBatchKMeans(**settings, batch_size=batch)
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct points than P: the caller repairs it
        return np.asarray(model.fit_predict(X), dtype=np.intp)


add_partition("similarity", Similarity, "K-means clusters of the samples, one per client", "samples")
