"""The user's own ratings: a table of user, item and rating, or a matrix of users by items.

``path`` is a CSV or Parquet table, an archive (.npz, .mat) with arrays ``user``, ``item`` and ``rating`` of one length,
or a sparse matrix (.npz of scipy, .mat, .mtx) whose stored entries are the ratings, with users in rows. A dense matrix
must have NaN where there is no rating. Ids can be any numbers or words. A CSV without a header has the columns user,
item and rating in this order. The problem ``completion`` draws the test ratings; for ``completion-split`` they are
given by ``split`` (a column of 0 and 1, or of train and test) or ``test`` (another file like this one). ``client`` is a
column with the client of each rating's user, or a variable or file with one client per user, for the partition
``given``; without it the partition ``users`` draws the clients.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from fedrepro.data import own
from fedrepro.datasets import reading
from fedrepro.datasets.own_types import SplitRatings, numbered
from fedrepro.errors import ParameterError
from fedrepro.parameters import Name
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

    path : the file. user, item, rating : names of its columns or variables; None to find them. split : column that
    marks the test ratings. test : another file with the test ratings. client : the client of each user.
    """

    files = ("path", "test", "client")

    path: Annotated[str, own.OwnFile(*ENDINGS)]
    user: Annotated[str | None, Name()] = None
    item: Annotated[str | None, Name()] = None
    rating: Annotated[str | None, Name()] = None
    split: Annotated[str | None, Name()] = None
    test: Annotated[str | None, own.OwnFile(*ENDINGS)] = None
    client: Annotated[str | None, Name()] = None

    def __post_init__(self) -> None:
        """Raise ParameterError if a value is invalid."""
        super().__post_init__()
        if self.test is not None and self.split is not None:
            raise ParameterError("test", "give split (a column) or test (another file), not both")

    def shape(self) -> dict[str, Any]:
        """Return users, items and ratings, clients P if they are given, and the kind of data if a split is given."""
        return reading.size_once(self, _more)

    def expected(self) -> dict[str, Any]:
        """Return the share of train ratings if a split is given."""
        return {"train": 0.8}

    def making(self) -> Cost:
        """Return the cost of reading and sorting the ratings."""
        return Cost(Work(singles=300.0 * self.shape()["ratings"], calls=3000.0))

    def load(self) -> SplitRatings:
        """Return the ratings in the order of the file, then those of ``test``; ids are numbered in their sorted order.

        Raises ParameterError if the file has no ratings in this form, or rates a pair twice.
        """
        columns = {name: getattr(self, name) for name in NAMES}
        arguments = (columns, self.split, reading.place(self.test), reading.place(self.client))
        arrays = reading.arrays(self, read, str(own.found(self.path)), *arguments)
        user, users = numbered(arrays["user"])
        item, items = numbered(arrays["item"])
        count, n = (int(arrays["users"]), int(arrays["items"])) if "users" in arrays else (len(users), len(items))
        if "users" in arrays:
            user, item = arrays["user"], arrays["item"]
        _refuse_twice(self.path, arrays["user"], arrays["item"], user * n + item)
        client = arrays.get("client")
        of_user = None if client is None else _of_users(client, user, count)
        facts = {"file": Path(self.path).name}
        value = arrays["rating"].astype(np.float64)
        held = arrays.get("test")
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
            f"item {item[at]}; keep one rating per pair",
        )


def _of_users(client: np.ndarray, user: np.ndarray, users: int) -> np.ndarray:
    """Return the client of each user, from one client per user or per rating."""
    numbers, names = numbered(client)
    if len(numbers) == users and len(numbers) != len(user):
        return numbers
    if len(numbers) != len(user):
        raise ParameterError(
            "client", f"has {len(numbers):,} values; there are {users:,} users and {len(user):,} ratings"
        )
    of_user = np.empty(users, dtype=np.int64)
    of_user[user] = numbers
    odd = np.flatnonzero(of_user[user] != numbers)
    if len(odd):
        at = odd[0]
        raise ParameterError(
            "client",
            f"the ratings of one user (number {user[at]}) belong to two clients, {names[numbers[at]]} and "
            f"{names[of_user[user[at]]]}; a client has all ratings of its users",
        )
    return of_user


def read(
    path: str, columns: dict[str, str | None], split: str | None, test: str | None, client: str | None, out: str
) -> list[str]:
    """Write user, item, rating, test, client and the sides of a matrix to the folder ``out``; for ``isolated.call``."""
    ratings = _ratings(Path(path), columns, split, client)
    if test is not None:
        by_rating = client is not None and len(ratings["client"]) == len(ratings["rating"]) and "users" not in ratings
        ratings = _joined(ratings, _ratings(Path(test), columns, None, client if by_rating else None))
    return reading.keep(ratings, out)


def _ratings(path: Path, columns: dict[str, str | None], split: str | None, client: str | None) -> dict[str, Any]:
    held = reading.content("path", path)
    tables = {name: _column(path, held, name, columns[name]) for name in NAMES}
    if any(values is None for values in tables.values()):
        ratings = _of_matrix(path, held)
    else:
        ids = {name: reading.plain(name, tables[name]) for name in ("user", "item")}
        ratings = {**ids, "rating": reading.numbers("rating", path, tables["rating"], 1)}
    count = len(ratings["rating"])
    if split is not None:
        ratings["test"] = reading.held_back("split", reading.column("split", path, held, split), count)
    reading.lengths(path, **{name: ratings.get(name) for name in (*NAMES, "test")})
    if client is not None:
        ratings["client"] = reading.plain("client", reading.column("client", path, held, client))
    return ratings


def _column(path: Path, held: dict[str, Any], name: str, wanted: str | None) -> Any:
    """Return a column by its given name, by one of its usual names, or by its place if columns have no names."""
    if wanted is not None:
        return reading.column(name, path, held, wanted)
    usual = next((held[known] for known in NAMES[name] if known in held), None)
    if usual is None and path.suffix.lower() in reading.TABLES:
        bare = list(held) == [str(number) for number in range(len(held))]
        if not bare or len(held) < 3:
            raise ParameterError(
                name,
                f"{path} has no column of the {name} (it contains {', '.join(held)[:200]}); name it with {name}:, or "
                "use a header with user, item and rating",
            )
        return held[str(list(NAMES).index(name))]
    return usual


def _of_matrix(path: Path, held: dict[str, Any]) -> dict[str, Any]:
    matrix = reading.only_matrix(path, held, "arrays user, item and rating nor one matrix of users by items")
    user, item, value = reading.stored(matrix)
    if not hasattr(matrix, "tocoo") and len(value) == matrix.size:
        raise ParameterError(
            "path",
            f"{path} contains a dense matrix of shape {matrix.shape} without NaN: which entries are ratings? Save it "
            "as a sparse matrix (scipy.sparse.save_npz), or with NaN where there is no rating",
        )
    sides = {"users": np.array(matrix.shape[0]), "items": np.array(matrix.shape[1])}
    return {"user": user, "item": item, "rating": reading.numbers("rating", path, value, 1), **sides}


def _joined(train: dict[str, Any], test: dict[str, Any]) -> dict[str, Any]:
    if ("users" in train) != ("users" in test):
        raise ParameterError("test", "must have the form of path: both tables, or both matrices")
    if "users" in train and any(int(train[side]) != int(test[side]) for side in ("users", "items")):
        shapes = [f"{int(ratings['users'])} x {int(ratings['items'])}" for ratings in (train, test)]
        raise ParameterError("test", f"has a matrix of {shapes[1]}, path one of {shapes[0]}; they must be of one shape")
    both = {name: np.concatenate([train[name], test[name]]) for name in (*NAMES, "client") if name in test}
    held = np.repeat([False, True], [len(train["rating"]), len(test["rating"])])
    return {**train, **both, "test": held}


add_dataset(
    DatasetEntry(
        name="ratings-file",
        cls=RatingsFile,
        kind="ratings",
        summary="ratings of your own: user, item, rating as CSV, Parquet, .npz or .mat, or a sparse matrix",
    )
)
