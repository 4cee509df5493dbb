"""CIFAR clients: the train and the test images dealt out at random, each in equal numbers (perfedsi, Appendix D)."""

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
class IidImages(Partition):
    """Train and test images, each in random order, dealt out to the clients in turn.

    P : clients, 1 .. the smaller of the numbers of train and test images.
    """

    P: Annotated[int, Whole()] = 100

    def assign(self, data: Images, rng: np.random.Generator) -> np.ndarray:
        """Return client and part of each image, (n, 2): part 0 for training, 1 for testing, as in the dataset.

        Numbers of images of two clients differ by at most one. Raises ParameterError if the dataset has no test images,
        or too few images for P clients.
        """
        P = self.P
        if data.split is None:
            raise ParameterError("partition", "'iid_images' needs images with a split into train and test")
        assigned = np.empty((len(data.labels), 2), dtype=np.int64)
        assigned[:, 1] = data.split
        for part, name in ((0, "train"), (1, "test")):
            members = np.flatnonzero(data.split == part)
            if len(members) < P:
                raise ParameterError("P", f"must be at most the number of {name} images, {len(members)}, not {P}")
            assigned[rng.permutation(members), 0] = np.arange(len(members)) % P
        return assigned


add_partition("iid_images", IidImages, "Train and test images dealt out at random in equal numbers", "images")
