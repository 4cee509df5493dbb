"""CIFAR-100: 50,000 train and 10,000 test images of 32 x 32 pixels in 100 classes."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from fedrepro.datasets import standins
from fedrepro.datasets.cifar import CIFAR, halved
from fedrepro.datasets.types import Images
from fedrepro.registry import DatasetEntry, add_dataset

CLASSES = 100


@dataclass(frozen=True)
class CIFAR100(CIFAR):
    """CIFAR-100: labels 0 .. 99; group is the coarse class, 0 .. 19, where the copy tells it.

    train : training images, the first ones of the file, 100 .. 50,000.
    test : test images, the first ones of the file, 100 .. 10,000.
    size : height and width in pixels: 32 as published, or 16, 8, 4 where squares of pixels become their mean.
    """

    classes = CLASSES


def stand_in(wanted: CIFAR100, rng: np.random.Generator) -> Images:
    """Coloured textures, one look per class."""
    made = standins.photographs(CLASSES, wanted.train, wanted.test, rng)
    return dataclasses.replace(made, pixels=halved(made.pixels, wanted.size))


add_dataset(
    DatasetEntry(
        name="cifar100",
        cls=CIFAR100,
        kind="images",
        summary="CIFAR-100: 60,000 colour images of 32 x 32 pixels, 100 classes",
        source="cifar100",
        stand_in=stand_in,
    )
)
