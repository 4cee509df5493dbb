"""MovieLens 1M: 6,040 users, 3,706 items, 1,000,209 ratings, whole stars 1 to 5."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedrepro.datasets.ratings import RatingFile, Scale, drawn
from fedrepro.datasets.types import Ratings
from fedrepro.registry import DatasetEntry, add_dataset

SCALE = Scale(users=6_040, items=3_706, ratings=1_000_209, step=1.0)


@dataclass(frozen=True)
class MovieLens1M(RatingFile):
    """Every rating of MovieLens 1M in file order.

    users : keep so many users, evenly spaced, 1 .. 6,040; None for all.
    min_item_ratings : drop items rated more rarely, at least 1.
    """

    scale = SCALE


def stand_in(wanted: MovieLens1M, rng: np.random.Generator) -> Ratings:
    """Drawn tastes with MovieLens 1M's numbers of users, items and ratings, or a share."""
    return drawn(SCALE, wanted, rng)


add_dataset(
    DatasetEntry(
        name="movielens-1m",
        cls=MovieLens1M,
        kind="ratings",
        summary="MovieLens 1M: 1,000,209 ratings of 3,706 films by 6,040 users",
        source="movielens-1m",
        stand_in=stand_in,
    )
)
