"""TDT2 news documents as columns of term counts: N = 9,394 documents of the K = 30 largest categories, M = 5,000 terms.

The paper says the terms are "top-ranked ones by the Pearson's Chi-Squared Test" and no more; the released program
reads prepared files (discrepancy fedmf.28). Default: scores of scikit-learn's ``chi2`` on the raw counts against the
true labels, no weighting. ``weighting: tfidf`` and ``unit_norm: true`` are the readings others take.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fedrepro.data.parsed import read, sparse
from fedrepro.datasets import standins
from fedrepro.datasets.checks import choice, spread, whole
from fedrepro.datasets.types import Samples
from fedrepro.registry import Dataset, add_dataset

TERMS = 36_771
CLASS_SIZES = (
    1844, 1828, 1222, 811, 441, 407, 272, 238, 226, 167, 160, 145, 141, 140, 131,
    123, 123, 120, 104, 98, 76, 74, 72, 71, 66, 65, 63, 58, 56, 52,
)  # fmt: skip


def check(
    *,
    features: int = 5000,
    classes: int = 30,
    n: int | None = None,
    weighting: str = "counts",
    unit_norm: bool = False,
) -> None:
    """Raise ParameterError for values that cannot work."""
    whole("features", features, 1, TERMS)
    whole("classes", classes, 1, len(CLASS_SIZES))
    if n is not None:
        whole("n", n, classes, sum(CLASS_SIZES[:classes]))
    choice("weighting", weighting, ("counts", "tfidf"))


def load(
    path: Path,
    *,
    features: int = 5000,
    classes: int = 30,
    n: int | None = None,
    weighting: str = "counts",
    unit_norm: bool = False,
) -> Samples:
    """X (features, N), scipy.sparse CSC float64, one document per column; labels 0 is the largest category.

    ``classes`` keeps the largest categories, ``n`` evenly spaced documents of them (None: all). ``weighting``:
    ``counts``, or ``tfidf`` = tf * log(N / df). ``unit_norm`` divides each document by its Euclidean norm.
    """
    check(features=features, classes=classes, n=n, weighting=weighting, unit_norm=unit_norm)
    arrays = read(path, "all")
    labels = np.asarray(arrays["labels"])
    kept = np.flatnonzero(labels < classes)
    kept = kept[spread(len(kept), n)]
    counts = sparse(arrays, "counts")[kept].astype(np.float64)
    return prepared(counts, labels[kept], classes, features, weighting, unit_norm)


def prepared(counts: Any, labels: np.ndarray, K: int, features: int, weighting: str, unit_norm: bool) -> Samples:
    """Select terms by chi-squared score on the counts (documents x terms), then weight and normalise."""
    chosen = top_by_chi2(counts, labels, features)
    X = counts[:, chosen]
    if weighting == "tfidf":
        df = np.maximum(np.bincount(X.indices, minlength=X.shape[1]), 1)
        X = X.multiply(np.log(X.shape[0] / df)[None, :]).tocsr()
    if unit_norm:
        norm = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
        X = X.multiply(1 / np.where(norm > 0, norm, 1)[:, None]).tocsr()
    empty = int((np.diff(X.indptr) == 0).sum())
    facts = {
        "features": "chi2 on raw counts",
        "weighting": weighting,
        "unit_norm": unit_norm,
        "empty_columns": empty,
    }
    return Samples(X.T.tocsc(), labels, K, facts)


def top_by_chi2(counts: Any, labels: np.ndarray, features: int) -> np.ndarray:
    """The positions, ascending, of the ``features`` columns with the largest chi-squared statistic."""
    from sklearn.feature_selection import SelectKBest, chi2

    return SelectKBest(chi2, k=min(features, counts.shape[1])).fit(counts, labels).get_support(indices=True)


def shape(
    *,
    features: int = 5000,
    classes: int = 30,
    n: int | None = None,
    weighting: str = "counts",
    unit_norm: bool = False,
) -> dict[str, int | None]:
    """M terms, N documents, K categories."""
    total = sum(CLASS_SIZES[:classes])
    return {"M": features, "N": total if n is None else min(n, total), "K": classes}


def stand_in(
    *,
    rng: np.random.Generator,
    features: int = 5000,
    classes: int = 30,
    n: int | None = None,
    weighting: str = "counts",
    unit_norm: bool = False,
) -> Samples:
    """Word counts of drawn topics with TDT2's class sizes."""
    check(features=features, classes=classes, n=n, weighting=weighting, unit_norm=unit_norm)
    labels = np.repeat(np.arange(classes), CLASS_SIZES[:classes])
    labels = labels[spread(len(labels), n)]
    counts = standins.documents(labels, max(features, min(TERMS, 2 * features)), rng)
    data = prepared(counts, labels, classes, features, weighting, unit_norm)
    data.facts["stand_in"] = "drawn topics with Zipf word frequencies; no real documents"
    return data


add_dataset(
    Dataset(
        name="tdt2",
        kind="samples",
        summary="TDT2 news documents, term counts chosen by chi-squared, 30 classes",
        load=load,
        shape=shape,
        source="tdt2",
        stand_in=stand_in,
        check=check,
    )
)
