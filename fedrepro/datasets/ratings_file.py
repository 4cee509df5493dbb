"""Ratings of the user's own: a table user, item, rating, or a matrix of users by items.

``path`` is a CSV or Parquet table, an archive (.npz, .mat) with arrays ``user``, ``item`` and ``rating`` of one length,
or a sparse matrix (.npz of scipy, .mat, .mtx) whose stored entries are the ratings, users in rows. A dense matrix is
taken where it has NaN for what was not rated. Ids may be any numbers or words. A CSV without a header has the columns
user, item and rating in this order. Ratings to test with are drawn by the problem ``completion``, or named by ``split``
(a column of 0 and 1, or of train and test) or ``test`` (another file like this one), for ``completion-split``.
``client`` is a column with the client of each rating's user, or a variable or file with one client a user, for the
partition ``given``; without it the partition ``users`` draws them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedrepro.data import own
from fedrepro.datasets import reading
from fedrepro.datasets.own_types import SplitRatings, numbered
from fedrepro.errors import ParameterError
from fedrepro.protocols import Cost, Dataset, Work
from fedrepro.registry import DatasetEntry, add_dataset

ENDINGS = (".csv", ".parquet", ".npz", ".mat", ".mtx")
NAMES = {
    "user": ("user", "user_id", "userid", "userId", "UserID"),
    "item": ("item", "item_id", "itemid", "itemId", "movieId", "movie_id", "MovieID", "movie"),
    "rating": ("rating", "ratings", "value", "Rating", "stars"),
}


@dataclass(frozen=True)
class RatingsFile(Dataset):
    """Ratings in a file.

    path : the file. user, item, rating : the names of its columns or variables; None to find them. split : the column
    that says which ratings are to test with. test : another file that has them. client : who holds each user.
    """

    files = ("path", "test", "client")

    path: str
    user: str | None = None
    item: str | None = None
    rating: str | None = None
    split: str | None = None
    test: str | None = None
    client: str | None = None

    def __post_init__(self) -> None:
        """Raise ParameterError where a value cannot work."""
        reading.there("path", self.path, ENDINGS)
        names = {name: getattr(self, name) for name in ("user", "item", "rating", "split", "client")}
        reading.names(**names)
        if self.test is not None:
            reading.there("test", self.test, ENDINGS)
            if self.split is not None:
                raise ParameterError("test", "give split (a column) or test (another file), not both")

    def shape(self) -> dict[str, Any]:
        """Users, items and ratings, clients P where they are given; the kind of data where a split is given."""
        return reading.size_once(self, _more)

    def expected(self) -> dict[str, Any]:
        """The share of ratings to train with, where a split is given."""
        return {"train": 0.8}

    def making(self) -> Cost:
        """Reading and sorting them."""
        return Cost(Work(singles=300.0 * self.shape()["ratings"], calls=3000.0))

    def load(self) -> SplitRatings:
        """The ratings in the order of the file, those of ``test`` after them; ids from 0 in the order of theirs.

        Raises ParameterError where the file has no ratings in this form, or rates a pair twice.
        """
        columns = {name: getattr(self, name) for name in NAMES}
        given = (columns, self.split, reading.place(self.test), reading.place(self.client))
        found = reading.arrays(self, read, str(own.found(self.path)), *given)
        user, users = numbered(found["user"])
        item, items = numbered(found["item"])
        count, n = (int(found["users"]), int(found["items"])) if "users" in found else (len(users), len(items))
        if "users" in found:
            user, item = found["user"], found["item"]
        _refuse_twice(self.path, found["user"], found["item"], user * n + item)
        client = found.get("client")
        of_user = None if client is None else _of_users(client, user, count)
        facts = {"file": Path(self.path).name}
        value = found["rating"].astype(np.float64)
        held = found.get("test")
        return SplitRatings(user.astype(np.int32), item.astype(np.int32), value, count, n, facts, held, of_user)


def _more(data: SplitRatings) -> dict[str, Any]:
    clients = {} if data.client is None else {"P": int(data.client.max()) + 1}
    return clients | ({} if data.test is None else {"kind": "split-ratings"})


def _refuse_twice(path: str, user: np.ndarray, item: np.ndarray, pairs: np.ndarray) -> None:
    _, first, counts = np.unique(pairs, return_index=True, return_counts=True)
    again = first[counts > 1]
    if len(again):
        at = int(again.min())
        raise ParameterError(
            "path",
            f"{path}: {len(again):,} pairs of user and item are rated more than once, the first is user {user[at]}, "
            f"item {item[at]}; keep one rating a pair",
        )


def _of_users(client: np.ndarray, user: np.ndarray, users: int) -> np.ndarray:
    """The client of each user, from that of each user or of each rating's user."""
    numbers, names = numbered(client)
    if len(numbers) == users and len(numbers) != len(user):
        return numbers
    if len(numbers) != len(user):
        raise ParameterError(
            "client", f"has {len(numbers):,} values; there are {users:,} users and {len(user):,} ratings"
        )
    found = np.empty(users, dtype=np.int64)
    found[user] = numbers
    odd = np.flatnonzero(found[user] != numbers)
    if len(odd):
        at = odd[0]
        raise ParameterError(
            "client",
            f"the ratings of one user (number {user[at]}) are held by two clients, {names[numbers[at]]} and "
            f"{names[found[user[at]]]}; a client holds all ratings of its users",
        )
    return found


def read(
    path: str, columns: dict[str, str | None], split: str | None, test: str | None, client: str | None, out: str
) -> list[str]:
    """Leave user, item, rating, test, client and the sides of a matrix in the folder ``out``; for ``isolated.call``."""
    one = _one(Path(path), columns, split, client)
    if test is not None:
        by_rating = client is not None and len(one["client"]) == len(one["rating"]) and "users" not in one
        other = _one(Path(test), columns, None, client if by_rating else None)
        one = _joined(one, other)
    return reading.keep(one, out)


def _one(path: Path, columns: dict[str, str | None], split: str | None, client: str | None) -> dict[str, Any]:
    held = reading.content("path", path)
    tables = {name: _found(path, held, name, columns[name]) for name in NAMES}
    if any(values is None for values in tables.values()):
        found = _of_matrix(path, held)
    else:
        ids = {name: reading.ids(name, tables[name]) for name in ("user", "item")}
        found = {**ids, "rating": reading.numbers("rating", path, tables["rating"], 1)}
    count = len(found["rating"])
    if split is not None:
        found["test"] = reading.held_back("split", reading.column("split", path, held, split), count)
    reading.lengths(path, **{name: found.get(name) for name in (*NAMES, "test")})
    if client is not None:
        found["client"] = reading.ids("client", reading.column("client", path, held, client))
    return found


def _found(path: Path, held: dict[str, Any], name: str, wanted: str | None) -> Any:
    """A column by the name given, or by one of its usual names, or by its place where no column has a name."""
    if wanted is not None:
        return reading.column(name, path, held, wanted)
    usual = next((held[one] for one in NAMES[name] if one in held), None)
    if usual is None and path.suffix.lower() in reading.TABLES:
        bare = list(held) == [str(number) for number in range(len(held))]
        if not bare or len(held) < 3:
            raise ParameterError(
                name,
                f"{path} has no column for the {name} (it holds {', '.join(held)[:200]}); say which one is it with "
                f"{name}:, or use a header with user, item and rating",
            )
        return held[str(list(NAMES).index(name))]
    return usual


def _of_matrix(path: Path, held: dict[str, Any]) -> dict[str, Any]:
    matrices = [one for one in held.values() if np.ndim(one) == 2 or hasattr(one, "tocoo")]
    if len(matrices) != 1 or 0 in matrices[0].shape:
        raise ParameterError(
            "path",
            f"{path} has neither arrays user, item and rating nor one matrix of users by items (it holds "
            f"{reading.shown(held)})",
        )
    (one,) = matrices
    if hasattr(one, "tocoo"):
        coo = one.tocoo()
        user, item, value = coo.row, coo.col, coo.data
    else:
        values = np.asarray(one, dtype=np.float64)
        if not np.isnan(values).any():
            raise ParameterError(
                "path",
                f"{path} holds a dense matrix of shape {values.shape} without NaN: which entries are ratings? Save it "
                "as a sparse matrix (scipy.sparse.save_npz), or with NaN for what was not rated",
            )
        user, item = np.nonzero(~np.isnan(values))
        value = values[user, item]
    sides = {"users": np.array(one.shape[0]), "items": np.array(one.shape[1])}
    rating = reading.numbers("rating", path, value, 1)
    return {"user": user.astype(np.int64), "item": item.astype(np.int64), "rating": rating, **sides}


def _joined(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    if ("users" in one) != ("users" in other):
        raise ParameterError("test", "must have the form of path: both tables, or both matrices")
    if "users" in one and any(int(one[side]) != int(other[side]) for side in ("users", "items")):
        shapes = [f"{int(each['users'])} x {int(each['items'])}" for each in (one, other)]
        raise ParameterError("test", f"has a matrix of {shapes[1]}, path one of {shapes[0]}; they must be of one shape")
    both = {name: np.concatenate([one[name], other[name]]) for name in (*NAMES, "client") if name in other}
    held = np.repeat([False, True], [len(one["rating"]), len(other["rating"])])
    return {**one, **both, "test": held}


add_dataset(
    DatasetEntry(
        name="ratings-file",
        cls=RatingsFile,
        kind="ratings",
        summary="ratings of your own: user, item, rating as CSV, Parquet, .npz or .mat, or a sparse matrix",
    )
)
