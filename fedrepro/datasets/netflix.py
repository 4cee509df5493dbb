"""The Netflix Prize: 480,189 users, 17,770 items, 100,480,507 ratings, whole stars 1 to 5."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedrepro.datasets.ratings import RatingFile, Scale, drawn
from fedrepro.datasets.types import Ratings
from fedrepro.registry import add_dataset

SCALE = Scale(users=480_189, items=17_770, ratings=100_480_507, step=1.0)


@dataclass(frozen=True)
class Netflix(RatingFile):
    """Every rating of the Netflix Prize, film by film; values are float32, exact for stars.

    users : number of users kept, evenly spaced, 1 .. 480,189; None for all.
    min_item_ratings : drop items with fewer ratings, at least 1.
    """

    scale = SCALE
    dtype = np.float32


def stand_in(wanted: Netflix, rng: np.random.Generator) -> Ratings:
    """Drawn tastes with the Netflix Prize's numbers of users, items and ratings, or a share."""
    return drawn(SCALE, wanted, rng)


add_dataset(
    "netflix",
    Netflix,
    "Netflix Prize: 100,480,507 ratings of 17,770 films by 480,189 users",
    kind="ratings",
    source="netflix",
    stand_in=stand_in,
)
