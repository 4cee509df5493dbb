"""What CIFAR-10 and CIFAR-100 share."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fedrepro.data.parsed import read
from fedrepro.datasets.checks import whole
from fedrepro.datasets.types import Images

TRAIN, TEST = 50_000, 10_000


def check_sizes(classes: int, *, train: int, test: int) -> None:
    """Raise ParameterError for values that cannot work."""
    whole("train", train, classes, TRAIN)
    whole("test", test, classes, TEST)


def load_images(path: Path, train: int, test: int) -> Images:
    """The first ``train`` and ``test`` images (fewer where the copy holds fewer); memory mapped where all are kept."""
    arrays = read(path, "all")
    split = np.asarray(arrays["split"])
    index = np.concatenate([np.flatnonzero(split == 0)[:train], np.flatnonzero(split == 1)[:test]])
    everything = len(index) == len(split)
    pixels = arrays["pixels"] if everything else arrays["pixels"][index]
    group = np.asarray(arrays["group"])[index] if "group" in arrays else None
    facts = {"train": int((split[index] == 0).sum()), "test": int((split[index] == 1).sum())}
    return Images(pixels, np.asarray(arrays["labels"])[index], group, split[index], facts)
