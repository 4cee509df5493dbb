"""Similar samples together: K-means into P clusters, one cluster a client (fedmf Case 2, fedc ``syn_noniid``).

Source: fedmf section V-A; fedc section V; discrepancy fedmf.11 (the authors' program assigns samples to 100 random
anchors instead, which leaves clients empty).
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse

from fedrepro.datasets.types import Samples
from fedrepro.parameters import whole
from fedrepro.partitions._common import clients_fit, fill_empty
from fedrepro.registry import Partition, add_partition


def assign(
    data: Samples, rng: np.random.Generator, *, P: int = 100, n_init: int = 10, batch: int | None = None
) -> np.ndarray:
    """The client of each sample, (N,): its K-means cluster (k-means++ starts, best of ``n_init``).

    batch : None for Lloyd's algorithm on all samples; a number for mini-batch K-means with batches of that size, for
    data too large for it. One thread, so that sums are taken in one order: the same data and rng give the same clients.
    Where K-means finds fewer than P distinct clusters, the clients left over get a sample each of the largest.
    """
    check(P=P, n_init=n_init, batch=batch, N=data.X.shape[1])
    own = sparse.csr_matrix(data.X.T) if sparse.issparse(data.X) else np.array(data.X.T, dtype=np.float64, order="C")
    return fill_empty(_clusters(own, P, n_init, batch, int(rng.integers(2**31))), P)


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


def check(
    *, P: int = 100, n_init: int = 10, batch: int | None = None, N: int | None = None, K: int | None = None
) -> None:
    """Raise ParameterError where a value cannot work, or P clients are too many for N samples."""
    clients_fit(P, N)
    whole("n_init", n_init)
    if batch is not None:
        whole("batch", batch)


add_partition(Partition("similarity", "K-means clusters of the samples, one a client", assign, check))
