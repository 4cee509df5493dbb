"""Choices of samples and of features of a dataset."""

from __future__ import annotations

from typing import Any

import numpy as np


def spread(total: int, n: int | None) -> np.ndarray:
    """Return ``n`` of ``total`` positions, evenly spaced; in a file sorted by class they keep the class proportions."""
    if n is None or n >= total:
        return np.arange(total)
    return (np.arange(n) * total) // n


def top_by_chi2(counts: Any, labels: np.ndarray, features: int) -> np.ndarray:
    """Return the positions, ascending, of the ``features`` columns with the largest chi-squared statistic."""
    from sklearn.feature_selection import SelectKBest, chi2

    return SelectKBest(chi2, k=min(features, counts.shape[1])).fit(counts, labels).get_support(indices=True)
