"""Users assigned to clients: the partition of matrix completion, in which a client has whole rows (fedmc, section 5.1).

``rule``: ``equal`` assigns all users, as in the paper (m_1 + ... + m_100 = m), in sizes differing by at most one.
``released`` gives every client floor(ids / P) ids drawn without replacement and drops the remainder, as the authors'
program does. It counts all ids up to the largest one in the file (``data.facts["last_user_id"]``), used or not, so that
clients differ in how many of theirs have ratings; the program's rows for unused ids, which contain no rating, are
omitted (discrepancy fedmc.13).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from fedrepro.datasets.types import Ratings
from fedrepro.errors import ParameterError
from fedrepro.parameters import OneOf, Whole
from fedrepro.protocols import Partition
from fedrepro.registry import add_partition

RULES = ("equal", "released")


@dataclass(frozen=True)
class Users(Partition):
    """Users in random order, dealt out to the clients in turn.

    P : clients, 1 .. users. rule : equal, all users in numbers that differ by at most one, or released, floor(ids / P)
    each and the others left out, as the authors' program does.
    """

    P: Annotated[int, Whole()] = 100
    rule: Annotated[str, OneOf(*RULES)] = "equal"

    def assign(self, data: Ratings, rng: np.random.Generator) -> np.ndarray:
        """Return the client of each user, (users,) int64; -1 for a user who is left out.

        Raises ParameterError if there are more clients than users.
        """
        P = self.P
        if data.users < P:
            raise ParameterError("P", f"must be at most the number of users, {data.users}, not {P}")
        ids = data.users if self.rule == "equal" else max(data.users, data.facts.get("last_user_id", 0))
        order = rng.permutation(ids)
        if self.rule == "released":
            order = order[: ids // P * P]
        client = np.full(ids, -1, dtype=np.int64)
        client[order] = np.arange(order.size) % P
        return client[: data.users]  # which ids are unused does not matter: they are drawn uniformly


add_partition(
    "users", Users, "Users in random order, dealt out to clients in equal numbers", "ratings", "split-ratings"
)
