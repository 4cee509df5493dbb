"""TDT2 news documents as columns of term counts: N = 9,394 documents of the K = 30 largest categories, M = 5,000 terms.

The paper describes the terms only as "top-ranked ones by the Pearson's Chi-Squared Test"; the released program
reads prepared files (discrepancy fedmf.28). Default: scores of scikit-learn's ``chi2`` on the raw counts against the
true labels, no weighting. ``weighting: tfidf`` and ``unit_norm: true`` are other common choices.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from fedrepro.data.formats.npy_parts import read, sparse
from fedrepro.datasets import standins
from fedrepro.datasets.subsets import spread, top_by_chi2
from fedrepro.datasets.types import Samples
from fedrepro.parameters import OneOf, Whole, whole
from fedrepro.protocols import Cost, Dataset, Work
from fedrepro.registry import add_dataset

TERMS = 36_771
CLASS_SIZES = (
    1844, 1828, 1222, 811, 441, 407, 272, 238, 226, 167, 160, 145, 141, 140, 131,
    123, 123, 120, 104, 98, 76, 74, 72, 71, 66, 65, 63, 58, 56, 52,
)  # fmt: skip


@dataclass(frozen=True)
class TDT2(Dataset):
    """Term counts of news documents, one document per column.

    features : terms kept, 1 .. 36,771. classes : keep the largest categories, 1 .. 30.
    n : number of their documents kept, evenly spaced, one per class .. all; None for all.
    weighting : counts, or tfidf = tf * log(N / df). unit_norm : divide each document by its Euclidean norm.
    """

    features: Annotated[int, Whole(1, TERMS)] = 5000
    classes: Annotated[int, Whole(1, len(CLASS_SIZES))] = 30
    n: int | None = None
    weighting: Annotated[str, OneOf("counts", "tfidf")] = "counts"
    unit_norm: bool = False

    def __post_init__(self) -> None:
        """Raise ParameterError if a value is invalid."""
        super().__post_init__()
        if self.n is not None:
            whole("n", self.n, self.classes, sum(CLASS_SIZES[: self.classes]))

    def shape(self) -> dict[str, int | None]:
        """Return M terms, N documents, K categories."""
        documents = sum(CLASS_SIZES[: self.classes]) if self.n is None else self.n
        return {"M": self.features, "N": documents, "K": self.classes}

    def expected(self) -> dict[str, float]:
        """Return the share of entries that are not zero: about 55 of the kept terms per document."""
        return {"density": min(1.0, 0.3 * self.features**-0.3 if self.features < 2000 else 120.0 / self.features)}

    def making(self) -> Cost:
        """Return the cost of drawing or reading about 180 words per document, and choosing terms."""
        words = 180.0 * (self.shape()["N"] or 0)
        return Cost(
            Work(singles=200.0 * words + 60.0 * self.classes * self.features, calls=5000.0),
            0.0 * Work(),
            60.0 * words,
            ("sklearn",),
        )

    def load(self, path: Path) -> Samples:
        """Return X (features, N), scipy.sparse CSC float64; label 0 is the largest category."""
        arrays = read(path, "all")
        labels = np.asarray(arrays["labels"])
        kept = np.flatnonzero(labels < self.classes)
        kept = kept[spread(len(kept), self.n)]
        counts = sparse(arrays, "counts")[kept].astype(np.float64)
        return prepared(counts, labels[kept], self.classes, self.features, self.weighting, self.unit_norm)


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


def stand_in(wanted: TDT2, rng: np.random.Generator) -> Samples:
    """Word counts of drawn topics with TDT2's class sizes."""
    labels = np.repeat(np.arange(wanted.classes), CLASS_SIZES[: wanted.classes])
    labels = labels[spread(len(labels), wanted.n)]
    counts = standins.documents(labels, max(wanted.features, min(TERMS, 2 * wanted.features)), rng)
    data = prepared(counts, labels, wanted.classes, wanted.features, wanted.weighting, wanted.unit_norm)
    data.facts["stand_in"] = "drawn topics with Zipf word frequencies; no real documents"
    return data


add_dataset(
    "tdt2",
    TDT2,
    "TDT2 news documents, term counts chosen by chi-squared, 30 classes",
    kind="samples",
    source="tdt2",
    stand_in=stand_in,
)
