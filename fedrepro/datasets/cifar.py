"""CIFAR-10 and CIFAR-100: 50,000 train and 10,000 test images of 32 x 32 pixels in 10 or 100 classes."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np

from fedrepro.data.formats.npy_parts import read
from fedrepro.datasets import standins
from fedrepro.datasets.types import Images
from fedrepro.parameters import OneOf, whole
from fedrepro.protocols import Cost, Dataset, Work
from fedrepro.registry import add_dataset

TRAIN, TEST = 50_000, 10_000
SIDE = 32
TEN = 10
HUNDRED = 100


@dataclass(frozen=True)
class CIFAR(Dataset):
    """The first images of each split of CIFAR-10 or CIFAR-100, in the order of the batches.

    train : training images, the first ones of the file, at least one per class .. 50,000.
    test : test images, likewise, .. 10,000.
    size : height and width in pixels: 32 as published, or 16, 8, 4 for the means of squares of pixels.
    """

    classes: ClassVar[int]

    train: int = TRAIN
    test: int = TEST
    size: Annotated[int, OneOf(32, 16, 8, 4)] = SIDE

    def __post_init__(self) -> None:
        """Raise ParameterError if a value is invalid."""
        super().__post_init__()
        whole("train", self.train, self.classes, TRAIN)
        whole("test", self.test, self.classes, TEST)

    def shape(self) -> dict[str, int | None]:
        """Return the sizes asked for."""
        return {
            "images": self.train + self.test,
            "classes": self.classes,
            "size": self.size,
            "train": self.train,
            "test": self.test,
        }

    def expected(self) -> dict[str, int]:
        """Return the number of colours."""
        return {"channels": 3}

    def making(self) -> Cost:
        """Return the cost of the stand-in: noise and a few passes for every value."""
        values = 3072.0 * (self.train + self.test)
        return Cost(Work(singles=45.0 * values, calls=2000.0), holds=values + 1.5e8)

    def load(self, path: Path) -> Images:
        """Return pixels (n, size, size, 3), labels from 0, split 0 (train) or 1 (test); memory-mapped if all are kept.

        These are the first ``train`` and ``test`` images in the order of the batches (fewer if the copy has fewer). If
        the copy is a tree of class folders, its classes take turns. group is the coarse class if the copy has one.
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
    """Return images (n, size, size, 3) of the means of squares of pixels; halves are rounded to even numbers."""
    if size == SIDE:
        return pixels
    step, small = SIDE // size, np.empty((len(pixels), size, size, 3), dtype=np.uint8)
    for first in range(0, len(pixels), 1024):
        part = pixels[first : first + 1024]
        squares = part.reshape(len(part), size, step, size, step, 3)
        small[first : first + 1024] = np.rint(squares.mean(axis=(2, 4)))
    return small


@dataclass(frozen=True)
class CIFAR10(CIFAR):
    """CIFAR-10: labels 0 .. 9.

    train : training images, the first ones of the file, 10 .. 50,000.
    test : test images, the first ones of the file, 10 .. 10,000.
    size : height and width in pixels: 32 as published, or 16, 8, 4 for the means of squares of pixels.
    """

    classes = TEN


@dataclass(frozen=True)
class CIFAR100(CIFAR):
    """CIFAR-100: labels 0 .. 99; group is the coarse class, 0 .. 19, if the copy has it.

    train : training images, the first ones of the file, 100 .. 50,000.
    test : test images, the first ones of the file, 100 .. 10,000.
    size : height and width in pixels: 32 as published, or 16, 8, 4 for the means of squares of pixels.
    """

    classes = HUNDRED


def stand_in_10(wanted: CIFAR10, rng: np.random.Generator) -> Images:
    """Coloured textures, three looks per class."""
    made = standins.photographs(TEN, wanted.train, wanted.test, rng)
    return dataclasses.replace(made, pixels=halved(made.pixels, wanted.size))


def stand_in_100(wanted: CIFAR100, rng: np.random.Generator) -> Images:
    """Coloured textures, three looks per class."""
    made = standins.photographs(HUNDRED, wanted.train, wanted.test, rng)
    return dataclasses.replace(made, pixels=halved(made.pixels, wanted.size))


for cls, name, stand_in in ((CIFAR10, "cifar10", stand_in_10), (CIFAR100, "cifar100", stand_in_100)):
    add_dataset(
        name,
        cls,
        f"CIFAR-{cls.classes}: 60,000 colour images of 32 x 32 pixels, {cls.classes} classes",
        kind="images",
        source=name,
        stand_in=stand_in,
    )
