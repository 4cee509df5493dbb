"""What CIFAR-10 and CIFAR-100 share: images in the order of the batches, the first so many of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from fedrepro.data.parsed import read
from fedrepro.datasets.types import Images
from fedrepro.errors import ParameterError
from fedrepro.parameters import whole
from fedrepro.protocols import Cost, Dataset, Work

TRAIN, TEST = 50_000, 10_000
SIDE = 32
SIZES = (32, 16, 8, 4)


@dataclass(frozen=True)
class CIFAR(Dataset):
    """Colour images of size x size pixels in ``classes`` classes.

    train : training images, the first ones of the file, at least one a class .. 50,000.
    test : test images, likewise, .. 10,000.
    size : height and width in pixels: 32 as published, or 16, 8, 4 where squares of pixels become their mean.
    """

    classes: ClassVar[int]

    train: int = TRAIN
    test: int = TEST
    size: int = SIDE

    def __post_init__(self) -> None:
        """Raise ParameterError where a value cannot work."""
        whole("train", self.train, self.classes, TRAIN)
        whole("test", self.test, self.classes, TEST)
        if self.size not in SIZES:
            raise ParameterError("size", f"must be one of {', '.join(map(str, SIZES))}, not {self.size!r}")

    def shape(self) -> dict[str, int | None]:
        """Sizes asked for."""
        return {
            "images": self.train + self.test,
            "classes": self.classes,
            "size": self.size,
            "train": self.train,
            "test": self.test,
        }

    def expected(self) -> dict[str, int]:
        """Colours."""
        return {"channels": 3}

    def making(self) -> Cost:
        """Of the stand-in: noise and a few passes for every value."""
        values = 3072.0 * (self.train + self.test)
        return Cost(Work(singles=45.0 * values, calls=2000.0), holds=values + 1.5e8)

    def load(self, path: Path) -> Images:
        """pixels (n, size, size, 3), labels from 0, split 0 (train) or 1 (test); memory mapped where all are kept.

        The first ``train`` and ``test`` images (fewer where the copy holds fewer) in the order of the batches; class by
        class in turn where the copy is a tree of class folders. group is the coarse class where the copy tells one.
        """
        arrays = read(path, "all")
        split = np.asarray(arrays["split"])
        index = np.concatenate([np.flatnonzero(split == 0)[: self.train], np.flatnonzero(split == 1)[: self.test]])
        everything = len(index) == len(split)
        pixels = halved(arrays["pixels"] if everything else arrays["pixels"][index], self.size)
        group = np.asarray(arrays["group"])[index] if "group" in arrays else None
        facts = {"train": int((split[index] == 0).sum()), "test": int((split[index] == 1).sum())}
        return Images(pixels, np.asarray(arrays["labels"])[index], group, split[index], facts)


def halved(pixels: np.ndarray, size: int) -> np.ndarray:
    """Images (n, 32, 32, 3) whose squares of pixels become their mean: (n, size, size, 3); halves go to even ones."""
    if size == SIDE:
        return pixels
    step, small = SIDE // size, np.empty((len(pixels), size, size, 3), dtype=np.uint8)
    for first in range(0, len(pixels), 1024):
        part = pixels[first : first + 1024]
        squares = part.reshape(len(part), size, step, size, step, 3)
        small[first : first + 1024] = np.rint(squares.mean(axis=(2, 4)))
    return small
