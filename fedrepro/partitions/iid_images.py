"""CIFAR clients: the train and the test images dealt out at random, each in equal numbers (perfedsi, Appendix D)."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedrepro.datasets.types import Images
from fedrepro.errors import ParameterError
from fedrepro.parameters import whole
from fedrepro.registry import Partition, add_partition


def assign(data: Images, rng: np.random.Generator, *, P: int = 100) -> np.ndarray:
    """Client and part of each image, (n, 2): part 0 to train with, 1 to test with, as the dataset says.

    Numbers of images of two clients differ by at most one. Raises ParameterError where the dataset has no test images
    of its own, or where there are too few for P clients.
    """
    check(P=P)
    if data.split is None:
        raise ParameterError("partition", "'iid_images' needs images with a split into train and test")
    found = np.empty((len(data.labels), 2), dtype=np.int64)
    found[:, 1] = data.split
    for part, name in ((0, "train"), (1, "test")):
        members = np.flatnonzero(data.split == part)
        if len(members) < P:
            raise ParameterError("P", f"must be at most the number of {name} images, {len(members)}, not {P}")
        found[rng.permutation(members), 0] = np.arange(len(members)) % P
    return found


def check(*, P: int = 100, **_: Any) -> None:
    """Raise ParameterError where a parameter cannot work."""
    whole("P", P)


add_partition(Partition("iid_images", "Train and test images dealt out at random in equal numbers", assign, check))
