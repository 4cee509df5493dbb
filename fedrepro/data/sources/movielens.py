"""MovieLens 1M and 10M (GroupLens): ratings.dat, or the same ratings as CSV."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

import numpy as np

from fedrepro.data.formats.rating_text import repeated, table, write
from fedrepro.data.formats.trees import Entry
from fedrepro.data.parsed import Writer
from fedrepro.data.source import FileSource, Findings, Remote
from fedrepro.errors import UserError

LICENCE = "GroupLens: research use, no redistribution without permission"
OTHERS = {  # ratings -> what they are
    100_000: "MovieLens 100K",
    1_000_209: "MovieLens 1M",
    10_000_054: "MovieLens 10M",
    20_000_263: "MovieLens 20M",
    25_000_095: "MovieLens 25M",
    32_000_204: "MovieLens 32M",
}


@dataclass(frozen=True)
class Known:
    """The counts of the official file (``last_*``: the largest raw id) and its rating steps."""

    ratings: int
    users: int
    items: int
    last_user: int
    last_item: int
    lowest: float
    step: float


ONE = Known(1_000_209, 6040, 3706, 6040, 3952, 1.0, 1.0)
TEN = Known(10_000_054, 69_878, 10_677, 71_567, 65_133, 0.5, 0.5)


def _wanted(path: str) -> bool:
    return PurePosixPath(path).name.lower() in ("ratings.dat", "ratings.csv", "u.data")


def _parser(known: Known) -> Callable[[Iterator[Entry], Writer], Findings]:
    def parse(entries: Iterator[Entry], out: Writer) -> Findings:
        for entry in entries:
            user, item, value = table(entry)
            if len(user) != known.ratings and len(user) in OTHERS:
                raise UserError(f"{entry.name} is {OTHERS[len(user)]} ({len(user):,} ratings)")
            last = int(user.max()), int(item.max())
            again = repeated(user, item)
            users, items = write(out, user, item, value)
            counts = {
                "ratings": (len(value), known.ratings),
                "users": (users, known.users),
                "items": (items, known.items),
            }
            return Findings(_differences(known, len(value), users, items, last, again, value), counts=counts)
        raise UserError("no ratings.dat")

    return parse


def _differences(
    known: Known, ratings: int, users: int, items: int, last: tuple[int, int], again: int, value: np.ndarray
) -> list[str]:
    counts = [
        (ratings, known.ratings, "ratings"),
        (users, known.users, "users"),
        (items, known.items, "items"),
    ]
    differs = [f"{found:,} {what} in place of {right:,}" for found, right, what in counts if found != right]
    if not differs and last[0] != known.last_user:
        differs.append(f"user ids run to {last[0]:,} in place of {known.last_user:,}: renumbered")
    if not differs and last[1] != known.last_item:
        differs.append(f"item ids run to {last[1]:,} in place of {known.last_item:,}: renumbered")
    if again:
        differs.append(f"{again:,} ratings repeat a user and item")
    if value.min() < known.lowest or np.any(value % known.step):
        differs.append(f"ratings are not all {known.lowest:g}, {known.lowest + known.step:g} ... 5")
    return differs


SOURCES = (
    FileSource(
        name="movielens-1m",
        title="MovieLens 1M",
        homepage="https://grouplens.org/datasets/movielens/1m/",
        licence=LICENCE,
        files=(
            Remote(
                "ml-1m.zip",
                ("https://files.grouplens.org/datasets/movielens/ml-1m.zip",),
                "md5:c4d9eecfca2ab87c1945afe126590906",
            ),
        ),
        wanted=_wanted,
        parse=_parser(ONE),
        layouts="ml-1m.zip, its folder, ratings.dat or a ratings.csv",
        limit=400_000_000,
        published={"all": "6ef0e4e1aa2bccff3d6ecd99b82eeac079fcc2fb14468fa18222b74134ed97d7"},
        uses="users, items, ratings or their order",
    ),
    FileSource(
        name="movielens-10m",
        title="MovieLens 10M",
        homepage="https://grouplens.org/datasets/movielens/10m/",
        licence=LICENCE,
        files=(
            Remote(
                "ml-10m.zip",
                ("https://files.grouplens.org/datasets/movielens/ml-10m.zip",),
                "sha256:813c411ccb6122564edfe752e7f80c4dcc5aa25fa94c93622f6877a7ba252862",
                65_566_137,
            ),
        ),
        wanted=_wanted,
        parse=_parser(TEN),
        layouts="ml-10m.zip, its folder ml-10M100K, ratings.dat or a ratings.csv",
        limit=2_000_000_000,
    ),
)
