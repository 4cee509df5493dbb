"""Users shared out to clients: the partition of matrix completion, a client holds whole rows (fedmc, section 5.1).

``rule``: ``equal`` shares out all users, sizes differing by at most one, as the paper says (m_1 + ... + m_100 = m).
``released`` gives every client floor(ids / P) ids drawn without replacement and drops the remainder, as the authors'
program does. It counts all ids up to the largest one in the file (``data.facts["last_user_id"]``), used or not, so that
clients differ in how many of theirs have ratings; the program's rows for unused ids, which hold no rating, are not
made (discrepancy fedmc.13).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedrepro.datasets.types import Ratings
from fedrepro.errors import ParameterError
from fedrepro.parameters import one_of, whole
from fedrepro.registry import Partition, add_partition

RULES = ("equal", "released")


def assign(data: Ratings, rng: np.random.Generator, *, P: int = 100, rule: str = "equal") -> np.ndarray:
    """The client 0 .. P-1 of each user, (users,) int64; -1 for a user who is left out. Raises ParameterError."""
    check(P=P, rule=rule)
    if data.users < P:
        raise ParameterError("P", f"must be at most the number of users, {data.users}, not {P}")
    ids = data.users if rule == "equal" else max(data.users, data.facts.get("last_user_id", 0))
    order = rng.permutation(ids)
    if rule == "released":
        order = order[: ids // P * P]
    client = np.full(ids, -1, dtype=np.int64)
    client[order] = np.arange(order.size) % P
    return client[: data.users]  # which ids are unused does not matter: they are drawn uniformly


def check(*, P: int = 100, rule: str = "equal", **_: Any) -> None:
    """Raise ParameterError where a parameter cannot work."""
    whole("P", P)
    one_of("rule", rule, RULES)


add_partition(Partition("users", "Users in random order, dealt out to clients in equal numbers", assign, check))
