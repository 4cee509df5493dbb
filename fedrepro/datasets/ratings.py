"""What the three rating datasets share: reading their arrays, and smaller or filtered versions of them.

The paper (FedMC-ADMM, Table 1) uses all ratings (discrepancy fedmc.27). MovieLens 1M there has 3,449 items and
999,714 ratings where the file has 3,706 and 1,000,209; no threshold on the ratings of an item gives these numbers
(4 gives 3,461 and 999,791, 5 gives 3,416 and 999,611), so none is applied unless ``min_item_ratings`` asks for one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fedrepro.data.parsed import read
from fedrepro.datasets.checks import spread, whole
from fedrepro.datasets.types import Ratings
from fedrepro.errors import ParameterError


def check_ratings(total_users: int, *, users: int | None = None, min_item_ratings: int = 1) -> None:
    """Raise ParameterError for values that cannot work."""
    if users is not None:
        whole("users", users, 1, total_users)
    whole("min_item_ratings", min_item_ratings, 1)


def load_ratings(path: Path, users: int | None, min_item_ratings: int) -> Ratings:
    """All ratings, or those of ``users`` users spread evenly over the ids, of items rated often enough among them.

    Arrays are memory mapped where nothing is left out. Ids are compact; ``facts`` hold the largest raw ids, which the
    released program sizes its matrices by.
    """
    arrays = read(path, "all")
    user, item, value = arrays["user"], arrays["item"], arrays["value"]
    facts: dict[str, Any] = {
        "last_user_id": int(arrays["user_id"][-1]),
        "last_item_id": int(arrays["item_id"][-1]),
    }
    U, I = len(arrays["user_id"]), len(arrays["item_id"])  # noqa: E741
    if users is not None and users < U:
        chosen = np.zeros(U, dtype=bool)
        chosen[spread(U, users)] = True
        keep = chosen[user]
        user, item, value = _compacted(user[keep]), item[keep], value[keep]
        facts["users"] = f"{users:,} of {U:,} users, evenly spaced"
        U = users
    if users is None and min_item_ratings == 1:
        return Ratings(user, item, value, U, I, facts)
    counts = np.bincount(item, minlength=I)
    if (counts < min_item_ratings).any():
        keep = (counts >= min_item_ratings)[item]
        if not keep.any():
            raise ParameterError("min_item_ratings", f"no item has {min_item_ratings} ratings")
        facts["items"] = (
            f"{int((counts >= min_item_ratings).sum()):,} of {I:,} items, with {min_item_ratings} ratings or more"
        )
        user, item, value = user[keep], _compacted(item[keep]), value[keep]
        I = int((counts >= min_item_ratings).sum())  # noqa: E741
    return Ratings(user, item, value, U, I, facts)


def _compacted(ids: np.ndarray) -> np.ndarray:
    return np.unique(ids, return_inverse=True)[1].astype(np.int32)
