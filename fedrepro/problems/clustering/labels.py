"""Cluster labels from the assignment matrix H, and scores of their agreement with true classes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

_NORMAL = float(np.finfo(np.float64).tiny)


def from_rows(Hs: np.ndarray) -> np.ndarray:
    """The cluster of every sample: argmax_k H_kj, ties to the smallest k, an all-zero column to cluster 0.

    Entries below the smallest normal number have lost digits to underflow and count as zero: the column of a zero
    sample shrinks towards zero, and the order in which its entries vanish has no meaning. ``Hs`` is H transposed, (N,
    K): one row per sample. See docs/derivations/labels.md.
    """
    return np.argmax(np.where(Hs < _NORMAL, 0.0, Hs), axis=1)


def contingency(labels: np.ndarray, clusters: np.ndarray) -> np.ndarray:
    """The number of samples of class i in cluster j: integers (classes, clusters)."""
    shape = (int(labels.max()) + 1, int(clusters.max()) + 1)
    return np.bincount(labels * shape[1] + clusters, minlength=shape[0] * shape[1]).reshape(shape)


def accuracy(labels: np.ndarray, found: np.ndarray) -> float:
    """Largest fraction of samples matched by a one-to-one map between classes and clusters (Hungarian method)."""
    from scipy.optimize import linear_sum_assignment

    table = contingency(labels, found)
    return float(table[linear_sum_assignment(table, maximize=True)].sum() / labels.size)


def purity(labels: np.ndarray, found: np.ndarray) -> float:
    """Fraction of samples that belong to the most frequent class of their cluster."""
    return float(contingency(labels, found).max(axis=0).sum() / labels.size)


def nmi(labels: np.ndarray, found: np.ndarray) -> float:
    """Normalized mutual information, arithmetic mean of the two entropies."""
    from sklearn.metrics import normalized_mutual_info_score

    return float(normalized_mutual_info_score(labels, found))


def ami(labels: np.ndarray, found: np.ndarray) -> float:
    """Mutual information adjusted for chance (the "NMI" of the authors' program)."""
    from sklearn.metrics import adjusted_mutual_info_score

    return float(adjusted_mutual_info_score(labels, found))


def ari(labels: np.ndarray, found: np.ndarray) -> float:
    """Rand index adjusted for chance."""
    from sklearn.metrics import adjusted_rand_score

    return float(adjusted_rand_score(labels, found))


SCORES: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "accuracy": accuracy,
    "nmi": nmi,
    "ami": ami,
    "ari": ari,
    "purity": purity,
}
"""Scores of cluster labels against true labels, by metric name; both are integers from 0."""
