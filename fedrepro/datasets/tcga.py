"""TCGA gene expression as columns: N = 5,314 tumour samples of K = 20 cancer types, M = 5,000 genes.

The paper gives these sizes and "top-ranked [features] by the Pearson's Chi-Squared Test", the released program reads
prepared files (discrepancy fedmf.28), so how the samples were chosen is not known. Steps here, on the pan-cancer
matrix of UCSC Xena (log2 of normalised counts + 1):

1. tumour samples only (sample type 01 to 09 in the barcode) that have a cancer type;
2. the ``types`` with most of them; of these samples, sorted by type, ``n`` evenly spaced ones (so types keep their
   shares);
3. genes without a missing value among them; values below 0 set to 0;
4. the ``features`` genes with the largest chi-squared statistic against the type, in file order.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np

from fedrepro.data.formats.npy_parts import read
from fedrepro.datasets import standins
from fedrepro.datasets.subsets import spread, top_by_chi2
from fedrepro.datasets.types import Samples
from fedrepro.errors import ParameterError
from fedrepro.parameters import Whole, whole
from fedrepro.protocols import Cost, Dataset, Work
from fedrepro.registry import add_dataset

GENES, TYPES, SAMPLES = 20_531, 33, 11_069


@dataclass(frozen=True)
class TCGA(Dataset):
    """Gene expression of tumours, one sample per column, sorted by type.

    features : genes kept, 1 .. 20,531. types : keep the cancer types with most samples, 1 .. 33.
    n : number of their samples kept, evenly spaced, one per type .. 11,069; None for all.
    log2 : as the matrix has it; false for the normalised counts themselves, 2^x - 1 (discrepancy fedmf.36).
    """

    features: Annotated[int, Whole(1, GENES)] = 5000
    types: Annotated[int, Whole(1, TYPES)] = 20
    n: int | None = 5314
    log2: bool = True

    def __post_init__(self) -> None:
        """Raise ParameterError if a value is invalid."""
        super().__post_init__()
        if self.n is not None:
            whole("n", self.n, self.types, SAMPLES)

    def shape(self) -> dict[str, int | None]:
        """Return M genes, N samples, K types (of the official files)."""
        return {"M": self.features, "N": self.n, "K": self.types}

    def expected(self) -> dict[str, int]:
        """Return the number of all samples, for ``n`` None."""
        return {"N": SAMPLES}

    def making(self) -> Cost:
        """Return the cost of drawing or reading half as many genes again, and choosing among them."""
        entries = 1.5 * self.features * (self.n or SAMPLES)
        return Cost(Work(singles=45.0 * entries, calls=5000.0), holds=40.0 * entries, libraries=("sklearn",))

    def load(self, path: Path) -> Samples:
        """Return X (features, N) float64, not negative; label 0 is the largest type.

        Raises ParameterError if no sample, or no gene without a missing value, is left.
        """
        arrays = read(path, "all")
        barcodes, diseases = arrays["samples"].astype(str), arrays["diseases"].astype(str)
        tumour = np.array([_is_tumour(barcode) for barcode in barcodes]) & (diseases != "")
        names, counts = np.unique(diseases[tumour], return_counts=True)
        if not len(names):
            raise ParameterError("types", "the matrix contains no tumour sample with a cancer type")
        names = names[np.argsort(-counts, kind="stable")][: self.types]
        labels = np.full(len(diseases), -1)
        for k, name in enumerate(names):
            labels[tumour & (diseases == name)] = k
        chosen = np.argsort(np.where(labels < 0, len(names), labels), kind="stable")[: int((labels >= 0).sum())]
        chosen = chosen[spread(len(chosen), self.n)]
        X = np.asarray(arrays["expression"][:, np.sort(chosen)])[:, np.argsort(np.argsort(chosen))].T.astype(np.float64)
        complete = np.isfinite(X).all(axis=0)
        X = self.scaled(np.maximum(X[:, complete], 0.0))
        if not X.shape[1]:
            raise ParameterError("features", "every gene has missing values")
        best = top_by_chi2(X, labels[chosen], self.features)
        facts = {
            "types": names.tolist(),
            "class_sizes": np.bincount(labels[chosen]).tolist(),
            "genes_left_out": int((~complete).sum()),
            "features": f"chi2 on {'log2 expression' if self.log2 else 'normalised counts'}",
            "note": "the paper does not say how its 5,314 samples were chosen",
        }
        return Samples(np.ascontiguousarray(X[:, best].T), labels[chosen], len(names), facts)

    def scaled(self, X: np.ndarray) -> np.ndarray:
        """Return logarithms of counts + 1, or the counts without ``log2``."""
        return X if self.log2 else np.exp2(X) - 1.0


def _is_tumour(barcode: str) -> bool:
    """TCGA-XX-XXXX-01: the last pair of digits is the sample type, 01 to 09 for tumours."""
    kind = barcode.split("-")[3][:2] if barcode.count("-") >= 3 else ""
    return kind.isdigit() and 1 <= int(kind) <= 9


def stand_in(wanted: TCGA, rng: np.random.Generator) -> Samples:
    """Drawn expression in types of decreasing size, the smallest about a tenth of the largest."""
    features, types, n = wanted.features, wanted.types, wanted.n or 5314
    share = np.linspace(1.0, 0.1, types)
    sizes = np.maximum(1, np.floor(n * share / share.sum())).astype(int)
    sizes[0] += n - sizes.sum()
    labels = np.repeat(np.arange(types), sizes)
    expression = wanted.scaled(standins.expression(labels, min(GENES, features + features // 2), rng))
    best = top_by_chi2(expression, labels, features)
    facts = {"stand_in": "drawn expression; no real samples", "class_sizes": sizes.tolist()}
    return Samples(np.ascontiguousarray(expression[:, best].T), labels, types, facts)


add_dataset(
    "tcga",
    TCGA,
    "TCGA pan-cancer gene expression, genes chosen by chi-squared, 20 cancer types",
    kind="samples",
    source="tcga",
    stand_in=stand_in,
)
