"""MovieLens 1M (6,040 users, whole stars 1 to 5) and MovieLens 10M (69,878 users, half stars 0.5 to 5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedrepro.datasets.ratings import RatingFile, Scale, drawn
from fedrepro.datasets.types import Ratings
from fedrepro.registry import add_dataset

ONE = Scale(users=6_040, items=3_706, ratings=1_000_209, step=1.0)
TEN = Scale(users=69_878, items=10_677, ratings=10_000_054, step=0.5)


@dataclass(frozen=True)
class MovieLens1M(RatingFile):
    """Every rating of MovieLens 1M in file order.

    users : number of users kept, evenly spaced, 1 .. 6,040; None for all.
    min_item_ratings : drop items with fewer ratings, at least 1.
    """

    scale = ONE


@dataclass(frozen=True)
class MovieLens10M(RatingFile):
    """Every rating of MovieLens 10M in file order.

    users : number of users kept, evenly spaced, 1 .. 69,878; None for all.
    min_item_ratings : drop items with fewer ratings, at least 1.
    """

    scale = TEN


def stand_in_1m(wanted: MovieLens1M, rng: np.random.Generator) -> Ratings:
    """Drawn tastes with MovieLens 1M's numbers of users, items and ratings, or a share."""
    return drawn(ONE, wanted, rng)


def stand_in_10m(wanted: MovieLens10M, rng: np.random.Generator) -> Ratings:
    """Drawn tastes with MovieLens 10M's numbers of users, items and ratings, or a share."""
    return drawn(TEN, wanted, rng)


for cls, size, stand_in in ((MovieLens1M, "1M", stand_in_1m), (MovieLens10M, "10M", stand_in_10m)):
    name, scale = f"movielens-{size.lower()}", cls.scale
    add_dataset(
        name,
        cls,
        f"MovieLens {size}: {scale.ratings:,} ratings of {scale.items:,} films by {scale.users:,} users",
        kind="ratings",
        source=name,
        stand_in=stand_in,
    )
