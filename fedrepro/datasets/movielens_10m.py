"""MovieLens 10M: 69,878 users, 10,677 items, 10,000,054 ratings, half stars 0.5 to 5."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedrepro.datasets.ratings import RatingFile, Scale, drawn
from fedrepro.datasets.types import Ratings
from fedrepro.registry import DatasetEntry, add_dataset

SCALE = Scale(users=69_878, items=10_677, ratings=10_000_054, step=0.5)


@dataclass(frozen=True)
class MovieLens10M(RatingFile):
    """Every rating of MovieLens 10M in file order.

    users : keep so many users, evenly spaced, 1 .. 69,878; None for all.
    min_item_ratings : drop items rated more rarely, at least 1.
    """

    scale = SCALE


def stand_in(wanted: MovieLens10M, rng: np.random.Generator) -> Ratings:
    """Drawn tastes with MovieLens 10M's numbers of users, items and ratings, or a share."""
    return drawn(SCALE, wanted, rng)


add_dataset(
    DatasetEntry(
        name="movielens-10m",
        cls=MovieLens10M,
        kind="ratings",
        summary="MovieLens 10M: 10,000,054 ratings of 10,677 films by 69,878 users",
        source="movielens-10m",
        stand_in=stand_in,
    )
)
