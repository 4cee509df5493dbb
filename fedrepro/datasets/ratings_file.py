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

from fedrepro.data import own_paths
from fedrepro.data.formats.named_arrays import ARCHIVES, TABLES
from fedrepro.datasets.own_files import Array, Content, OwnFiles, numbered, opened
from fedrepro.datasets.own_types import SplitRatings
from fedrepro.datasets.sizes import size
from fedrepro.errors import ParameterError, counted
from fedrepro.parameters import Name
from fedrepro.protocols import Cost, Work
from fedrepro.registry import add_dataset

ENDINGS = (*TABLES, *ARCHIVES, ".mtx")
RATINGS = {
    "user": Array("ids", usual=("user", "user_id", "userid", "userId", "UserID")),
    "item": Array("ids", usual=("item", "item_id", "itemid", "itemId", "movieId", "movie_id", "MovieID", "movie")),
    "rating": Array("numbers", usual=("rating", "ratings", "value", "Rating", "stars")),
}
SPLIT = {"split": Array("marks")}
CLIENT = {"client": Array("ids", aligned=False)}


@dataclass(frozen=True)
class RatingsFile(OwnFiles):
    """Ratings in a file.

    path : the file. user, item, rating : names of its columns or variables; None to find them. split : column that
    marks the test ratings. test : another file with the test ratings. client : the client of each user.
    """

    files = ("path", "test", "client")

    path: Annotated[str, own_paths.OwnFile(*ENDINGS)]
    user: Annotated[str | None, Name()] = None
    item: Annotated[str | None, Name()] = None
    rating: Annotated[str | None, Name()] = None
    split: Annotated[str | None, Name()] = None
    test: Annotated[str | None, own_paths.OwnFile(*ENDINGS)] = None
    client: Annotated[str | None, Name()] = None

    def __post_init__(self) -> None:
        """Raise ParameterError if a value is invalid."""
        super().__post_init__()
        if self.test is not None and self.split is not None:
            raise ParameterError("test", "give split (a column) or test (another file), not both")

    def expected(self) -> dict[str, Any]:
        """Return the share of train ratings if a split is given."""
        return {"train": 0.8}

    def measured(self) -> dict[str, Any]:
        """Return users, items and ratings, clients P if they are given, and the kind of data if a split is given."""
        data = self.load()
        clients = {} if data.client is None else {"P": int(data.client.max()) + 1}
        return size(data) | clients | ({} if data.test is None else {"kind": "split-ratings"})

    def making(self) -> Cost:
        """Return the cost of reading and sorting the ratings."""
        return Cost(Work(singles=300.0 * self.shape()["ratings"], calls=3000.0))

    def load(self) -> SplitRatings:
        """Return the ratings in the order of the file, then those of ``test``; ids are numbered in their sorted order.

        Raises ParameterError if the file has no ratings in this form, or rates a pair twice.
        """
        arrays = self.arrays()
        user, item = arrays["user"], arrays["item"]
        if "sides" in arrays:
            users, items = (int(side) for side in arrays["sides"])
        else:
            (user, user_names), (item, item_names) = numbered(user), numbered(item)
            users, items = len(user_names), len(item_names)
        _refuse_twice(self.path, arrays["user"], arrays["item"], user * items + item)
        client = _of_users(arrays["client"], user, users) if "client" in arrays else None
        ids, value = (user.astype(np.int32), item.astype(np.int32)), arrays["rating"].astype(np.float64)
        return SplitRatings(*ids, value, users, items, {"file": Path(self.path).name}, arrays.get("split"), client)

    def read(self) -> dict[str, Any]:
        """Return user, item, rating, split, client, and the sides of a matrix."""
        content = opened("path", self.path)
        train = self._ratings(content, SPLIT) | content.take(self, CLIENT)
        if self.test is None:
            return train
        by_rating = "sides" not in train and len(train.get("client", ())) == len(train["rating"])
        content = opened("test", self.test)
        test = self._ratings(content, {}) | content.take(self, CLIENT if by_rating else {})
        if ("sides" in train) != ("sides" in test):
            raise ParameterError("test", "must have the form of path: both tables, or both matrices")
        if "sides" in train and train["sides"].tolist() != test["sides"].tolist():
            shapes = [" x ".join(map(str, ratings["sides"])) for ratings in (train, test)]
            raise ParameterError(
                "test", f"has a matrix of {shapes[1]}, path one of {shapes[0]}; they must be of one shape"
            )
        joined = {name: np.concatenate([train[name], test[name]]) for name in (*RATINGS, *CLIENT) if name in test}
        split = np.repeat([False, True], [len(train["rating"]), len(test["rating"])])
        return {**train, **joined, "split": split}

    def _ratings(self, content: Content, more: dict[str, Array]) -> dict[str, Any]:
        """Return user, item and rating of a file, or the entries of its matrix."""
        if content.is_table and list(content.arrays) == [str(number) for number in range(len(content.arrays))]:
            content = Content(
                content.path, {**dict(zip(RATINGS, content.arrays.values(), strict=False)), **content.arrays}
            )
        taken = content.take(self, RATINGS | more)
        absent = next((name for name in RATINGS if name not in taken), None)
        if absent is None:
            return taken
        if content.is_table:
            (first, *others) = content.arrays
            if not others and (sign := next((sign for sign in ("::", ";", "\t", "|") if sign in first), "")):
                wrong = f"{content.path} separates its columns by {sign!r}; separate them by commas"
                raise ParameterError("path", wrong)
            raise ParameterError(
                absent,
                f"{content.path} has no column of the {absent} (it contains {content}); name it with {absent}:, or use "
                "a header with user, item and rating",
            )
        matrix = content.only_matrix("arrays user, item and rating", "matrix of users by items")
        if isinstance(matrix, np.ndarray) and not np.isnan(matrix).any():
            raise ParameterError(
                "path",
                f"{content.path} contains a dense matrix of shape {matrix.shape} without NaN: which entries are "
                "ratings? Save it as a sparse matrix (scipy.sparse.save_npz), or with NaN where there is no rating",
            )
        entries = content.entries(matrix, row="user", column="item", value="rating")
        return entries | content.take(self, more, len(entries["rating"]))


def _refuse_twice(path: str, user: np.ndarray, item: np.ndarray, pairs: np.ndarray) -> None:
    _, first, counts = np.unique(pairs, return_index=True, return_counts=True)
    repeats = first[counts > 1]
    if len(repeats):
        at = int(repeats.min())
        raise ParameterError(
            "path",
            f"{path}: {counted(len(repeats), 'pair')} of user and item {'is' if len(repeats) == 1 else 'are'} rated "
            f"more than once, the first is user {user[at]}, item {item[at]}; keep one rating per pair",
        )


def _of_users(client: np.ndarray, user: np.ndarray, users: int) -> np.ndarray:
    """Return the client of each user, from one client per user or per rating."""
    numbers, names = numbered(client)
    if len(numbers) == users and len(numbers) != len(user):
        return numbers
    if len(numbers) != len(user):
        raise ParameterError(
            "client",
            f"has {counted(len(numbers), 'value')}; it must have one for each of {counted(users, 'user')}, or for "
            f"each of {counted(len(user), 'rating')}",
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


add_dataset(
    "ratings-file",
    RatingsFile,
    "ratings of your own: user, item, rating as CSV, Parquet, .npz or .mat, or a sparse matrix",
    kind="ratings",
)
