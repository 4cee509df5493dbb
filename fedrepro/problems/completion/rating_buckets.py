"""The data of the completion problem: ratings in buckets by user and by item, ordered by client.

The users of a client are adjacent rows, so U_i and all other data of client i are contiguous slices, which processes
can memory map and share. An id takes two bytes if it fits, and a rating takes one (four if there are more than 256
distinct values): its index in ``levels``, the sorted distinct values. ``user`` contains the original user of each row.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedrepro.arrays import unmasked
from fedrepro.errors import ParameterError, UserError
from fedrepro.seeds import Rng, generator

_CHUNK = 1 << 20
"""Values are numbered in chunks of this size, so that there is no second copy of all of them in memory."""


@dataclass(frozen=True)
class Buckets:
    """Entries: bucket t is ``index[ptr[t]:ptr[t + 1]]`` with values ``levels[code[...]]`` (see ``kernels``)."""

    ptr: np.ndarray
    index: np.ndarray
    code: np.ndarray

    def part(self, rows: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The buckets ``rows``, as views: the three arrays a kernel takes."""
        return self.ptr[rows.start : rows.stop + 1], self.index, self.code

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """ptr, index, code."""
        return self.ptr, self.index, self.code

    @property
    def count(self) -> int:
        """How many entries there are."""
        return self.index.size


@dataclass(frozen=True)
class Stored:
    """The ratings of all clients.

    user : (rows,) the caller's user of each row. starts : (p + 1,); client i has rows ``starts[i]`` to ``starts[i+1]``.
    train, test : buckets by row, index = item. col_ptr : (p, items + 1), with ``col_row`` (row within the client) and
    ``col_code`` the training buckets by item of each client. levels : distinct values in rating units.
    facts : ``users``, ``items``, ``mean`` and ``sd`` (n - 1) of all ratings, in rating units.
    """

    user: np.ndarray
    starts: np.ndarray
    train: Buckets
    test: Buckets
    col_ptr: np.ndarray
    col_row: np.ndarray
    col_code: np.ndarray
    levels: np.ndarray
    facts: dict[str, Any]


def arrange(data: Any, client: Any, train: float, rng: Rng | None, scale: Any = None, items: str = "rated") -> Stored:
    """Arrange ``Ratings`` in buckets and split them into training and test ratings.

    client : (users,) ids 0 .. p-1, or -1 for a user who is left out; None for one client. train : the fraction of every
    client's ratings, rounded down, that a uniform random permutation puts into the training set. rng : source of the
    permutations; None derives them from ``client``, so that equal assignments have equal splits. scale : allowed
    ratings, (lowest, highest), or None. items : ``all`` appends items without ratings up to ``facts["last_item_id"]``.
    Raises UserError for the first invalid rating, and ParameterError if a parameter cannot work.
    """
    from fedrepro.problems.completion import bucket_kernels as buckets

    user, item, value = _checked(data, scale)
    client = _clients(client, data.users)
    n = data.items if items == "rated" else _last_item(data)
    levels, code, mean, sd = _numbered(value)
    order = np.argsort(client, kind="stable")[np.count_nonzero(client < 0) :]
    starts = np.concatenate(([0], np.cumsum(np.bincount(client[order])))).astype(np.int64)
    row_of = np.full(data.users, -1, dtype=np.int64)
    row_of[order] = np.arange(order.size)

    ptr = np.zeros(order.size + 1, dtype=np.int64)
    buckets.count_rows(row_of, user, ptr)
    index = np.empty(ptr[-1], dtype=_narrow(n))
    codes = np.empty(ptr[-1], dtype=code.dtype)
    row, twice = buckets.fill_rows(row_of, user, item, code, ptr, index, codes)
    if row >= 0:
        raise UserError(
            f"ratings: user {order[row]} rated item {twice} more than once (ids from 0); keep one rating per pair"
        )
    del code
    keep = _split(ptr, starts, train, _split_generator(client) if rng is None else rng)
    kept, rest = (_select(ptr, index, codes, mask) for mask in (keep, ~keep))
    if kept.count == 0:
        raise ParameterError("train", f"leaves no training rating: {train} of each client's ratings is less than one")
    columns = _columns(kept, starts, n)
    facts = {"users": int(data.users), "items": int(n), "mean": mean, "sd": sd}
    return Stored(order, starts, kept, rest, *columns, levels, facts)


def _checked(data: Any, scale: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    unmasked(user=data.user, item=data.item, value=data.value)
    user, item, value = np.asarray(data.user), np.asarray(data.item), np.asarray(data.value)
    if user.ndim != 1 or user.shape != item.shape or user.shape != value.shape or user.size == 0:
        raise UserError(
            "ratings: user, item and value must be arrays of one equal length of at least 1, "
            f"not of shapes {user.shape}, {item.shape} and {value.shape}"
        )
    for name, ids, count in (("user", user, data.users), ("item", item, data.items)):
        if ids.dtype.kind not in "iu":
            raise UserError(f"ratings: {name} ids must be integers, not {ids.dtype}")
        if ids.min() < 0 or ids.max() >= count:
            e = int(np.flatnonzero((ids < 0) | (ids >= count))[0])
            raise UserError(
                f"ratings: rating {e} has the {name} id {ids[e]}; ids go from 0 to {count - 1} ({name}s = {count})"
            )
    low, high = (-np.inf, np.inf) if scale is None else scale
    least, most = value.min(), value.max()  # NaN where there is one
    if not (np.isfinite(least) and np.isfinite(most) and least >= low and most <= high):
        e = int(np.flatnonzero(~(np.isfinite(value) & (value >= low) & (value <= high)))[0])
        bounds = "finite" if scale is None else f"within the scale {low:g} to {high:g}"
        raise UserError(f"ratings: rating {e} (user {user[e]}, item {item[e]}) is {value[e]:g}; it must be {bounds}")
    return user, item, value


def _last_item(data: Any) -> int:
    last = data.facts.get("last_item_id")
    if last is None:
        raise ParameterError("items", "all needs data with its largest raw item id; use items: rated")
    return max(int(last), data.items)


def _clients(client: Any, users: int) -> np.ndarray:
    if client is None:
        return np.zeros(users, dtype=np.int64)
    unmasked(client=client)
    client = np.asarray(client)
    if client.shape != (users,):
        raise UserError(f"client: must contain one client id for each of the {users} users, not shape {client.shape}")
    if client.dtype.kind not in "iu" or client.min() < -1 or client.max() < 0:
        raise UserError("client: ids must be the integers 0 to p-1, or -1 for a user who is left out")
    counts = np.bincount(client[client >= 0])
    if not counts.all():
        empty = int(np.flatnonzero(counts == 0)[0])
        raise UserError(
            f"client: client {empty} of 0 to {counts.size - 1} has no users; number the clients 0 to p-1 without gaps"
        )
    return client.astype(np.int64)


def _numbered(value: np.ndarray) -> tuple[np.ndarray, np.ndarray, float, float]:
    """The distinct values in increasing order, the number of each rating's value, mean and standard deviation."""
    levels = np.unique(value[:_CHUNK])
    for start in range(_CHUNK, value.size, _CHUNK):
        piece = value[start : start + _CHUNK]
        if not np.isin(piece, levels).all():
            levels = np.union1d(levels, piece)
    code = np.empty(value.size, dtype=np.uint8 if levels.size <= 256 else np.uint32)
    counts = np.zeros(levels.size, dtype=np.int64)
    for start in range(0, value.size, _CHUNK):
        piece = np.searchsorted(levels, value[start : start + _CHUNK])
        code[start : start + _CHUNK] = piece
        counts += np.bincount(piece, minlength=levels.size)
    levels = levels.astype(np.float64)
    mean = float(counts @ levels) / value.size
    spread = float(counts @ (levels - mean) ** 2)
    return levels, code, mean, float(np.sqrt(spread / (value.size - 1))) if value.size > 1 else 0.0


def _narrow(count: int) -> type:
    return np.uint16 if count <= 1 << 16 else np.uint32


def _split_generator(client: np.ndarray) -> Rng:
    return generator("partition", split=hashlib.sha256(client.astype("<i8").tobytes()).hexdigest())


def _split(ptr: np.ndarray, starts: np.ndarray, train: float, rng: Rng) -> np.ndarray:
    """True for training ratings: per client the first floor(train * count) of a permutation (discrepancy fedmc.28)."""
    keep = np.zeros(ptr[-1], dtype=np.bool_)
    for first, last in zip(ptr[starts[:-1]], ptr[starts[1:]], strict=True):
        count = int(last - first)
        keep[first + rng.permutation(count)[: int(train * count + 1e-9)]] = True
    return keep


def _select(ptr: np.ndarray, index: np.ndarray, code: np.ndarray, keep: np.ndarray) -> Buckets:
    from fedrepro.problems.completion import bucket_kernels as buckets

    out = np.zeros_like(ptr)
    buckets.count_kept(ptr, keep, out)
    return Buckets(out, index[keep], code[keep])


def _columns(train: Buckets, starts: np.ndarray, items: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    from fedrepro.problems.completion import bucket_kernels as buckets

    clients = starts.size - 1
    col_ptr = np.empty((clients, items + 1), dtype=np.int64)
    col_row: np.ndarray = np.empty(train.count, dtype=_narrow(int(np.diff(starts).max())))
    col_code = np.empty_like(train.code)
    for i in range(clients):
        ptr = train.ptr[starts[i] : starts[i + 1] + 1]
        buckets.by_item(ptr, train.index, train.code, col_ptr[i], col_row, col_code, ptr[0])
    return col_ptr, col_row, col_code


def all_columns(train: Buckets, items: int) -> Buckets:
    """The training buckets by item over all clients, index = row."""
    ptr, row, code = _columns(train, np.array([0, train.ptr.size - 1]), items)
    return Buckets(ptr[0], row, code)


_PLAIN = ("user", "starts", "col_ptr", "col_row", "col_code", "levels")
_BUCKETS = ("train", "test")


def write(folder: Path, stored: Stored) -> None:
    """Write every array as ``.npy`` into ``folder``, for ``read``."""
    folder = Path(folder)
    for name in _PLAIN:
        np.save(folder / f"{name}.npy", getattr(stored, name))
    for name in _BUCKETS:
        for part in ("ptr", "index", "code"):
            np.save(folder / f"{name}_{part}.npy", getattr(getattr(stored, name), part))
    (folder / "facts.json").write_text(json.dumps(stored.facts, sort_keys=True) + "\n", encoding="utf-8")


def read(folder: Path) -> Stored:
    """Read the files of ``write``, memory mapped read-only."""
    folder = Path(folder)

    def mapped(name: str) -> np.ndarray:
        return np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r"))

    fields: dict[str, Any] = {name: mapped(name) for name in _PLAIN}
    for name in _BUCKETS:
        fields[name] = Buckets(*(mapped(f"{name}_{part}") for part in ("ptr", "index", "code")))
    return Stored(**fields, facts=json.loads((folder / "facts.json").read_text(encoding="utf-8")))
