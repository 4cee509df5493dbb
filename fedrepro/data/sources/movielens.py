"""MovieLens 1M and 10M (GroupLens): ratings.dat, or the same ratings as CSV."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from fedrepro.data.formats.npy_parts import Writer
from fedrepro.data.formats.rating_text import repeated, table, write
from fedrepro.data.formats.trees import Entry
from fedrepro.data.source import FileSource, Findings, Remote
from fedrepro.errors import UserError, counted

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


FILE = re.compile(r"(?i)(?:^|/)(?:ratings\.dat|ratings\.csv|u\.data)$")


def _parser(known: Known) -> Callable[[Iterator[Entry], Writer], Findings]:
    def parse(entries: Iterator[Entry], out: Writer) -> Findings:
        entry = next(entries)
        user, item, value = table(entry)
        if len(user) != known.ratings and len(user) in OTHERS:
            raise UserError(f"{entry.name} is {OTHERS[len(user)]} ({len(user):,} ratings)")
        findings = Findings()
        users, items = write(out, user, item, value)
        findings.compare("ratings", len(value), known.ratings)
        findings.compare("users", users, known.users)
        findings.compare("items", items, known.items)
        findings.differs += _differences(known, user, item, value, renumbered=not findings.differs)
        return findings

    return parse


def _differences(known: Known, user: np.ndarray, item: np.ndarray, value: np.ndarray, renumbered: bool) -> list[str]:
    """Return how ratings differ from the official ones. renumbered : whether to compare the largest ids."""
    differs = []
    last = (("user", int(user.max()), known.last_user), ("item", int(item.max()), known.last_item))
    if wrong := next(((what, ours, theirs) for what, ours, theirs in last if renumbered and ours != theirs), None):
        differs.append(f"{wrong[0]} ids run to {wrong[1]:,} instead of {wrong[2]:,}: renumbered")
    if repeats := repeated(user, item):
        differs.append(f"{counted(repeats, 'rating')} {'repeats' if repeats == 1 else 'repeat'} a user and item")
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
        pattern=FILE,
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
        pattern=FILE,
        parse=_parser(TEN),
        layouts="ml-10m.zip, its folder ml-10M100K, ratings.dat or a ratings.csv",
        limit=2_000_000_000,
    ),
)
