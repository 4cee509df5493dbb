"""CIFAR-10: 50,000 train and 10,000 test images of 32 x 32 pixels in 10 classes."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from fedrepro.datasets import standins
from fedrepro.datasets.cifar import CIFAR, halved
from fedrepro.datasets.types import Images
from fedrepro.registry import DatasetEntry, add_dataset

CLASSES = 10


@dataclass(frozen=True)
class CIFAR10(CIFAR):
    """CIFAR-10: labels 0 .. 9.

    train : training images, the first ones of the file, 10 .. 50,000.
    test : test images, the first ones of the file, 10 .. 10,000.
    size : height and width in pixels: 32 as published, or 16, 8, 4 where squares of pixels become their mean.
    """

    classes = CLASSES


def stand_in(wanted: CIFAR10, rng: np.random.Generator) -> Images:
    """Coloured textures, one look per class."""
    made = standins.photographs(CLASSES, wanted.train, wanted.test, rng)
    return dataclasses.replace(made, pixels=halved(made.pixels, wanted.size))


add_dataset(
    DatasetEntry(
        name="cifar10",
        cls=CIFAR10,
        kind="images",
        summary="CIFAR-10: 60,000 colour images of 32 x 32 pixels, 10 classes",
        source="cifar10",
        stand_in=stand_in,
    )
)
