"""Omniglot clients: one alphabet each, with so many drawings of every character of it (perfedsi, Appendix D, Table 2).

| M | per_alphabet | train | test |
|---|---|---|---|
| 50 | 1 | 16 | 4 |
| 200 | 4 | 4 | 1 |
| 500 | 10 | 1 | 1 |
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedrepro.datasets.types import Images
from fedrepro.errors import ParameterError
from fedrepro.parameters import whole
from fedrepro.registry import Partition, add_partition


def assign(
    data: Images, rng: np.random.Generator, *, per_alphabet: int = 1, train: int = 16, test: int = 4
) -> np.ndarray:
    """Client and part of each image, (n, 2): part 0 to train with, 1 to test with; client -1 for an image left over.

    The drawings of each character are shuffled and dealt out: ``train`` and ``test`` to each of the ``per_alphabet``
    clients of its alphabet (``Images.group``). Clients of one alphabet have consecutive numbers. Raises ParameterError
    where there are no alphabets, or too few drawings.
    """
    check(per_alphabet=per_alphabet, train=train, test=test)
    if data.group is None:
        raise ParameterError("partition", "'alphabets' makes clients out of the images' groups, and these have none")
    wanted = per_alphabet * (train + test)
    pattern = np.repeat(np.tile([0, 1], per_alphabet), np.tile([train, test], per_alphabet))
    client = np.repeat(np.arange(per_alphabet), train + test)
    found = np.full((len(data.labels), 2), (-1, 0), dtype=np.int64)
    _, group = np.unique(data.group, return_inverse=True)
    for character in np.unique(data.labels):
        drawings = np.flatnonzero(data.labels == character)
        if len(drawings) < wanted:
            raise ParameterError(
                "per_alphabet",
                f"{per_alphabet} clients with {train} + {test} drawings need {wanted} of every character, but one has "
                f"{len(drawings)}",
            )
        chosen = rng.permutation(drawings)[:wanted]
        found[chosen, 0] = group[chosen[0]] * per_alphabet + client
        found[chosen, 1] = pattern
    return found


def check(*, per_alphabet: int = 1, train: int = 16, test: int = 4, **_: Any) -> None:
    """Raise ParameterError where a parameter cannot work."""
    whole("per_alphabet", per_alphabet)
    whole("train", train)
    whole("test", test)


add_partition(Partition("alphabets", "Clients of one alphabet each, so many drawings of each character", assign, check))
