"""CIFAR-10: 50,000 train and 10,000 test images of 32 x 32 pixels in 10 classes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fedrepro.datasets import standins
from fedrepro.datasets.cifar import TEST, TRAIN, check_sizes, load_images
from fedrepro.datasets.types import Images
from fedrepro.registry import Dataset, add_dataset

CLASSES = 10


def check(*, train: int = TRAIN, test: int = TEST) -> None:
    """Raise ParameterError for values that cannot work."""
    check_sizes(CLASSES, train=train, test=test)


def load(path: Path, *, train: int = TRAIN, test: int = TEST) -> Images:
    """pixels (n, 32, 32, 3), labels 0 .. 9, split 0 (train) or 1 (test).

    The first ``train`` and ``test`` images in the order of the batches; class by class in turn where the copy is a
    tree of class folders.
    """
    check(train=train, test=test)
    return load_images(path, train, test)


def shape(*, train: int = TRAIN, test: int = TEST) -> dict[str, int | None]:
    """Sizes asked for."""
    return {"images": train + test, "classes": CLASSES, "size": 32}


def stand_in(*, rng: np.random.Generator, train: int = TRAIN, test: int = TEST) -> Images:
    """Coloured textures, one look per class."""
    check(train=train, test=test)
    return standins.photographs(CLASSES, train, test, rng)


add_dataset(
    Dataset(
        name="cifar10",
        kind="images",
        summary="CIFAR-10: 60,000 colour images of 32 x 32 pixels, 10 classes",
        load=load,
        shape=shape,
        source="cifar10",
        stand_in=stand_in,
        check=check,
    )
)
