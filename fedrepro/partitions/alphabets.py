"""Omniglot clients: one alphabet each, with a fixed number of drawings per character (perfedsi, Appendix D, Table 2).

| M | per_alphabet | train | test |
|---|---|---|---|
| 50 | 1 | 16 | 4 |
| 200 | 4 | 4 | 1 |
| 500 | 10 | 1 | 1 |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from fedrepro.datasets.types import Images
from fedrepro.errors import ParameterError
from fedrepro.parameters import Whole
from fedrepro.protocols import Partition
from fedrepro.registry import add_partition


@dataclass(frozen=True)
class Alphabets(Partition):
    """The drawings of each character, shuffled and dealt out to the clients of its alphabet.

    per_alphabet : clients of each alphabet, at least 1. train : drawings of each character that a client trains with,
    at least 1. test : drawings of each character that it tests with, at least 1.
    """

    per_alphabet: Annotated[int, Whole()] = 1
    train: Annotated[int, Whole()] = 16
    test: Annotated[int, Whole()] = 4

    def assign(self, data: Images, rng: np.random.Generator) -> np.ndarray:
        """Return client and part of each image, (n, 2): part 0 for training, 1 for testing; client -1 if unused.

        Clients of one alphabet (``Images.group``) have consecutive numbers. Raises ParameterError if there are no
        alphabets, or too few drawings.
        """
        per_alphabet, train, test = self.per_alphabet, self.train, self.test
        if data.group is None:
            raise ParameterError(
                "partition", "'alphabets' makes clients from the images' groups, and these images have none"
            )
        wanted = per_alphabet * (train + test)
        pattern = np.repeat(np.tile([0, 1], per_alphabet), np.tile([train, test], per_alphabet))
        client = np.repeat(np.arange(per_alphabet), train + test)
        assigned = np.full((len(data.labels), 2), (-1, 0), dtype=np.int64)
        _, group = np.unique(data.group, return_inverse=True)
        for character in np.unique(data.labels):
            drawings = np.flatnonzero(data.labels == character)
            if len(drawings) < wanted:
                raise ParameterError(
                    "per_alphabet",
                    f"{per_alphabet} clients with {train} + {test} drawings need {wanted} of every character, but one "
                    f"has {len(drawings)}",
                )
            chosen = rng.permutation(drawings)[:wanted]
            assigned[chosen, 0] = group[chosen[0]] * per_alphabet + client
            assigned[chosen, 1] = pattern
        return assigned


add_partition("alphabets", Alphabets, "One alphabet per client, a fixed number of drawings per character", "images")
