"""MovieLens 10M: 69,878 users, 10,677 items, 10,000,054 ratings, half stars 0.5 to 5."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fedrepro.datasets import standins
from fedrepro.datasets.ratings import check_ratings, load_ratings
from fedrepro.datasets.types import Ratings
from fedrepro.registry import Dataset, add_dataset

USERS, ITEMS, RATINGS = 69_878, 10_677, 10_000_054


def check(*, users: int | None = None, min_item_ratings: int = 1) -> None:
    """Raise ParameterError for values that cannot work."""
    check_ratings(USERS, users=users, min_item_ratings=min_item_ratings)


def load(path: Path, *, users: int | None = None, min_item_ratings: int = 1) -> Ratings:
    """Every rating in file order; ids are compact, values in stars.

    ``users`` keeps that many users, evenly spaced; ``min_item_ratings`` drops items rated more rarely.
    """
    check(users=users, min_item_ratings=min_item_ratings)
    found = load_ratings(path, users, min_item_ratings)
    found.value = found.value.astype(np.float64)
    return found


def shape(*, users: int | None = None, min_item_ratings: int = 1) -> dict[str, int | None]:
    """Users; items and ratings where all are kept."""
    whole_file = users is None and min_item_ratings == 1
    return {
        "users": USERS if users is None else min(users, USERS),
        "items": ITEMS if whole_file else None,
        "ratings": RATINGS if whole_file else None,
    }


def stand_in(*, rng: np.random.Generator, users: int | None = None, min_item_ratings: int = 1) -> Ratings:
    """Drawn tastes with MovieLens 10M's numbers of users, items and ratings, or a share."""
    check(users=users, min_item_ratings=min_item_ratings)
    U = USERS if users is None else users
    return standins.ratings(U, ITEMS, RATINGS * U // USERS, rng, step=0.5, at_least=min_item_ratings)


add_dataset(
    Dataset(
        name="movielens-10m",
        kind="ratings",
        summary="MovieLens 10M: 10,000,054 ratings of 10,677 films by 69,878 users",
        load=load,
        shape=shape,
        source="movielens-10m",
        stand_in=stand_in,
        check=check,
    )
)
