"""A small federated image problem that the tests of ``personal`` share, so that its networks are compiled once."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from fedrepro.datasets.types import Images
from fedrepro.partitions.alphabets import Alphabets
from fedrepro.problems.personal.problem import Personal

WIDTHS = [8, 8, 8, 8]


@functools.cache
def images(characters: int = 8, drawings: int = 9, size: int = 16) -> Images:
    """Characters of two alphabets: noisy copies of one random picture each."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(characters), drawings)
    prototypes = rng.random((characters, size, size, 1))
    noisy = prototypes[labels] + 0.3 * rng.standard_normal((labels.size, size, size, 1))
    pixels = np.clip(255 * noisy, 0, 255).astype(np.uint8)
    return Images(pixels, labels.astype(np.int32), (labels * 2 // characters).astype(np.int32))


def problem(**parameters: Any) -> Personal:
    """Six clients, three of each alphabet, with 8 train and 4 test images; z identifies the alphabet and the client."""
    assigned = Alphabets(per_alphabet=3, train=2, test=1).assign(images(), np.random.default_rng(1))
    made = Personal(images(), assigned, widths=WIDTHS, **parameters)
    if made.z.shape[1] == 0:
        z = np.random.default_rng(2).random((6, 4))
        z[np.arange(6), np.arange(6) % 4] += 1.0
        made.z = z
    return made
