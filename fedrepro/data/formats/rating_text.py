"""Read tables of ratings: compact ids, checked values, in bounded memory."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from fedrepro.data.formats.csv_table import is_number
from fedrepro.data.formats.npy_parts import Writer
from fedrepro.data.formats.trees import Entry
from fedrepro.errors import UserError

COLUMNS = {"user": ("userid", "user_id", "user"), "item": ("movieid", "itemid", "item_id", "movie_id", "item", "movie")}
RATING = ("rating", "ratings", "value")
ROWS = 4_000_000  # rows of one block while reading


def table(entry: Entry) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return user (int32), item (int32), value (float32) of a file separated by ``::``, tabs or commas.

    A header names the columns; without one they are user, item, rating in this order. Raises UserError with the first
    invalid line.
    """
    plain = _Plain(entry)
    first = plain.first.decode("utf-8", "replace").strip()
    if not first:
        raise UserError(f"{entry.name} is empty")
    separator = next((s for s in ("\t", ",") if s in first), " ")
    names = [word.strip().strip('"').lower() for word in first.split(separator)]
    header = any(not is_number(word) for word in names)
    chosen = _columns(entry.name, first, names) if header else (0, 1, 2)
    if len(names) < 3:
        raise UserError(f"{entry.name}: columns user, item and rating are needed, the first line is '{first[:80]}'")
    return _blocks(entry.name, io.BufferedReader(plain, 1 << 20), separator, header, chosen)


def _blocks(name: str, stream: Any, separator: str, header: bool, chosen: tuple[int, int, int]) -> tuple:
    import pandas as pd

    blocks: list[tuple[np.ndarray, ...]] = []
    rows = int(header)
    try:
        for block in pd.read_csv(
            stream,
            sep=separator,
            header=None,
            skiprows=int(header),
            usecols=sorted(chosen),
            chunksize=ROWS,
            dtype=float,
        ):
            user, item, value = (block[c].to_numpy() for c in chosen)
            _check(name, rows, user, item, value)
            blocks.append((user.astype(np.int32), item.astype(np.int32), value.astype(np.float32)))
            rows += len(block)
    except (ValueError, pd.errors.ParserError) as error:
        raise UserError(f"{name}: a row near line {rows + 1:,} or later is not user, item, rating ({error})") from error
    if not blocks:
        raise UserError(f"{name} contains no ratings")
    user, item, value = (np.concatenate(column) for column in zip(*blocks, strict=True))
    return user, item, value


def _check(name: str, before: int, user: np.ndarray, item: np.ndarray, value: np.ndarray) -> None:
    bad = ~(np.isfinite(user) & np.isfinite(item) & np.isfinite(value))
    bad |= (user < 0) | (item < 0) | (user != np.floor(user)) | (item != np.floor(item)) | (user > 2**31 - 1)
    bad |= (item > 2**31 - 1) | (value <= 0) | (value > 5)
    if bad.any():
        i = int(np.flatnonzero(bad)[0])
        raise UserError(
            f"{name}, line {before + i + 1:,}: user {user[i]:g}, item {item[i]:g}, rating {value[i]:g}; "
            "ids must be whole numbers and ratings above 0 and at most 5"
        )


def _columns(name: str, first: str, names: list[str]) -> tuple[int, int, int]:
    where = []
    for kind, valid in (*COLUMNS.items(), ("rating", RATING)):
        at = [i for i, word in enumerate(names) if word in valid]
        if not at:
            raise UserError(f"{name}: no column for the {kind} in its header '{first[:80]}'")
        where.append(at[0])
    return where[0], where[1], where[2]


class _Plain(io.RawIOBase):
    """The bytes of an entry with tabs instead of ``::``, for the fast reader."""

    def __init__(self, entry: Entry) -> None:
        self._stream = entry.stream
        self._ready, self._at = b"", 0
        self._fill()
        self.first = self._ready.split(b"\n", 1)[0]

    def _fill(self) -> None:
        block = self._stream.read(1 << 22)
        if block.endswith(b":") and (more := self._stream.read(1)):
            block += more  # never cut a separator in two
        self._ready, self._at = block.replace(b"::", b"\t"), 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._at == len(self._ready):
            self._fill()
        piece = self._ready[self._at : self._at + len(buffer)]
        self._at += len(piece)
        buffer[: len(piece)] = piece
        return len(piece)


def compact(ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ids renumbered 0, 1, ... in ascending order (int32), and the raw id of each.

    Ids are counted in their own range if that is not much larger than their number, otherwise sorted, which is slower.
    """
    if int(ids.max()) > 10_000_000 + 8 * len(ids):
        raw, place = np.unique(ids, return_inverse=True)
        return place.astype(np.int32), raw.astype(np.int32)
    seen = np.zeros(int(ids.max()) + 1, dtype=bool)
    seen[ids] = True
    raw = np.flatnonzero(seen)
    place = np.zeros(len(seen), dtype=np.int32)
    place[raw] = np.arange(len(raw), dtype=np.int32)
    return place[ids], raw.astype(np.int32)


def write(out: Writer, user: np.ndarray, item: np.ndarray, value: np.ndarray) -> tuple[int, int]:
    """Store ratings with compact ids; return the numbers of users and items."""
    users, user_id = compact(user)
    out.save("all", "user", users)
    items, item_id = compact(item)
    out.save("all", "item", items)
    out.save("all", "value", value)
    out.save("all", "user_id", user_id)
    out.save("all", "item_id", item_id)
    return len(user_id), len(item_id)


def repeated(user: np.ndarray, item: np.ndarray) -> int:
    """Return how many ratings repeat an earlier pair of user and item."""
    pairs = user.astype(np.int64) * (int(item.max()) + 1) + item
    pairs.sort()
    return int((pairs[1:] == pairs[:-1]).sum())
