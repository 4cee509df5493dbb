"""The handwritten digits that scikit-learn comes with: 1,797 real images of 8 x 8 pixels, no download.

They are the test half of "Optical Recognition of Handwritten Digits" (Alpaydin and Kaynak, 1998; UCI Machine Learning
Repository, CC BY 4.0): 43 people's digits, each pixel the number of inked dots, 0 to 16, of a square of 4 x 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import numpy as np

from fedrepro.datasets.types import Samples
from fedrepro.parameters import Number, Whole
from fedrepro.protocols import Cost, Dataset, Work
from fedrepro.registry import add_dataset

COUNT, PIXELS, K = 1797, 64, 10


def read() -> tuple[np.ndarray, np.ndarray]:
    """Return the pixels (1797, 64) float64 in 0 .. 16 and the labels (1797,) of ``sklearn.datasets.load_digits``.

    The file is read without importing scikit-learn, which takes several times as long as most runs on it.
    """
    found = find_spec("sklearn")
    assert found is not None, "scikit-learn is a dependency"
    assert found.origin is not None, "it is a package"
    rows = np.loadtxt(Path(found.origin).parent / "datasets" / "data" / "digits.csv.gz", delimiter=",")
    return rows[:, :-1], rows[:, -1].astype(np.int64)


@dataclass(frozen=True)
class Digits(Dataset):
    """Small images of handwritten digits, pixels / scale, one image per column in the library's order.

    n : images, the first ones, 10 .. 1,797. scale : what pixel values 0 .. 16 are divided by, 1e-6 .. 1e6.
    """

    bundled = "scikit-learn"

    n: Annotated[int, Whole(K, COUNT)] = COUNT
    scale: Annotated[float, Number(least=1e-6, most=1e6)] = 16

    def shape(self) -> dict[str, int | None]:
        """Return M = 64, N = n, K = 10: the first ten images are of the digits 0 to 9."""
        return {"M": PIXELS, "N": self.n, "K": K}

    def making(self) -> Cost:
        """Return the cost of reading them all."""
        return Cost(Work(singles=20.0 * COUNT * PIXELS, calls=1e4), holds=2e6)

    def load(self) -> Samples:
        """Return X (64, n) float64, labels (n,) the digits."""
        pixels, labels = read()
        X = np.ascontiguousarray(pixels[: self.n].T) / np.float64(self.scale)
        facts = {"source": "scikit-learn's load_digits: real images, 8 x 8 pixels"}
        return Samples(X, labels[: self.n], K, facts)


add_dataset(
    "digits",
    Digits,
    "1,797 handwritten digits of 8 x 8 pixels, which scikit-learn comes with: real, no download",
    kind="samples",
)
