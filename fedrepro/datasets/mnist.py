"""MNIST handwritten digits as columns of pixels: the clustering papers use N = 10,000 images, M = 784, K = 10.

``first`` takes images in file order, ``balanced`` the first N/10 of every digit (MNIST_bals), ``quota`` the class
shares of the released program (MNIST_ubls): 5, 5, 5, 5, 10, 10, 10, 15, 15, 20 % for digits 0 to 9. Images stay in file
order. The program takes the first ones of each digit from a file that was not released (discrepancy fedc.14); it must
have contained training images, because the test images do not include 2,000 of the digit 9. The official training
images suffice for all 10,000, which are the program's if its file keeps their order. If a split has too few images of a
digit, the largest N with these proportions is used, and ``facts`` state it: the test images allow 8,920 balanced and
5,040 by quota.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from fedrepro.data.formats.npy_parts import read
from fedrepro.datasets import standins
from fedrepro.datasets.types import Samples
from fedrepro.parameters import Number, OneOf, whole
from fedrepro.protocols import Cost, Dataset, Work
from fedrepro.registry import add_dataset

K = 10
QUOTA = np.array([5, 5, 5, 5, 10, 10, 10, 15, 15, 20])  # percent
COUNTS = {
    "train": np.array([5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]),
    "test": np.array([980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]),
}


@dataclass(frozen=True)
class MNIST(Dataset):
    """Images of handwritten digits, pixels / scale, one image per column in file order.

    n : images asked for, 10 .. 60,000 (train) or 10,000 (test); 20 or more by proportions. split : train or test.
    selection : which images: first in the file, balanced over the digits, or quota, 5 to 20 % per digit as in the
    released program. scale : what pixel values 0 .. 255 are divided by, 1e-6 .. 1e6.
    """

    n: int = 10_000
    split: Annotated[str, OneOf(*tuple(COUNTS))] = "train"
    selection: Annotated[str, OneOf("first", "balanced", "quota")] = "first"
    scale: Annotated[float, Number(least=1e-6, most=1e6)] = 255

    def __post_init__(self) -> None:
        """Raise ParameterError if a value is invalid."""
        super().__post_init__()
        whole("n", self.n, K if self.selection == "first" else 20, int(COUNTS[self.split].sum()))

    def shape(self) -> dict[str, int | None]:
        """Return M = 784, K = 10, and the N that the selection reaches."""
        reached = self.n if self.selection == "first" else int(_sizes(COUNTS[self.split], self.n, self.selection).sum())
        return {"M": 784, "N": reached, "K": K}

    def making(self) -> Cost:
        """Return the cost of the stand-in: reading the small digits, and a copy of an enlarged one for every image."""
        N = self.shape()["N"] or 0
        return Cost(Work(singles=8.0 * 784 * N, calls=2e5 + 10.0 * N), holds=16.0 * 784 * N, libraries=("sklearn",))

    def load(self, path: Path) -> Samples:
        """Return X (784, N) float64, labels (N,) the digits; ``facts`` note if there are fewer than ``n``."""
        arrays = read(path, self.split)
        labels = np.asarray(arrays["labels"], dtype=np.int64)
        index = select(labels, self.n, self.selection)
        X = arrays["pixels"][index].reshape(len(index), -1).T / np.float64(self.scale)
        return Samples(X, labels[index], K, _facts(self.n, self.split, self.selection, labels[index]))


def select(labels: np.ndarray, n: int, selection: str) -> np.ndarray:
    """Return the positions of the chosen images, ascending; fewer than ``n`` if the proportions do not allow ``n``."""
    if selection == "first":
        return np.arange(min(n, len(labels)))
    sizes = _sizes(np.bincount(labels, minlength=K), n, selection)
    return np.sort(np.concatenate([np.flatnonzero(labels == k)[: sizes[k]] for k in range(K)]))


def _sizes(counts: np.ndarray, n: int, selection: str) -> np.ndarray:
    share = QUOTA if selection == "quota" else np.full(K, 10)
    n = min(n, int((counts * 100 // share).min()) // 20 * 20)  # whole shares: 5 % of a multiple of 20
    return share * n // 100


def _facts(n: int, split: str, selection: str, labels: np.ndarray) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "split": split,
        "selection": selection,
        "class_sizes": np.bincount(labels, minlength=K).tolist(),
        "note": "images in the official order; the papers' own file was not released",
    }
    if len(labels) < n:
        facts["fewer"] = f"{len(labels):,} of {n:,} images: more would break the proportions of '{selection}'"
    return facts


def stand_in(wanted: MNIST, rng: np.random.Generator) -> Samples:
    """Small handwritten digits that scikit-learn comes with, enlarged, in the proportions that the selection gives."""
    order = rng.permutation(np.repeat(np.arange(K), COUNTS[wanted.split]))
    index = select(order, wanted.n, wanted.selection)
    return standins.digits(order[index], rng, wanted.scale)


add_dataset(
    "mnist",
    MNIST,
    "MNIST handwritten digits, 784 pixels, 10 classes",
    kind="samples",
    source="mnist",
    stand_in=stand_in,
    stand_in_note=standins.DIGITS,
)
