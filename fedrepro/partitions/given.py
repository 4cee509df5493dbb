"""Clients given by the data: the client of each sample, user or image is known, and nothing is drawn.

For the user's own data, which name the clients (``client:`` of their datasets).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from fedrepro.datasets.types import Images
from fedrepro.errors import ParameterError
from fedrepro.parameters import Number
from fedrepro.protocols import Partition
from fedrepro.registry import add_partition


@dataclass(frozen=True)
class Given(Partition):
    """The clients that the data name.

    test : for images without a split, the share of each client's images drawn for testing, at least one and never all;
        above 0, at most 0.99.
    """

    test: Annotated[float, Number(above=0.0, most=0.99)] = 0.2

    def assign(self, data: Any, rng: np.random.Generator) -> np.ndarray:
        """Return the client of each sample or user, (n,); for images client and part, (n, 2).

        Raises ParameterError if the data name none.
        """
        client = getattr(data, "client", None)
        if client is None:
            raise ParameterError("partition", "'given' uses the clients that the data name, and these data name none")
        if not isinstance(data, Images):
            return np.asarray(client)
        part = self._drawn(client, rng) if data.split is None else np.asarray(data.split)
        return np.stack([client, part], axis=1)

    def _drawn(self, client: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        part = np.zeros(len(client), dtype=np.int64)
        for number in np.unique(client):
            own = rng.permutation(np.flatnonzero(client == number))
            if len(own) < 2:
                raise ParameterError("partition", f"client {number} has one image; it needs at least two")
            part[own[: min(len(own) - 1, max(1, round(self.test * len(own))))]] = 1
        return part


add_partition("given", Given, "Clients as the data name them; nothing is drawn")
