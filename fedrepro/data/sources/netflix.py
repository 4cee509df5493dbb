"""The Netflix Prize ratings: one text file per film, or the four combined files, or one CSV.

100,480,507 ratings are read in one stream: each film's users and ratings are kept as int32 and uint8 (0.5 GB) and
written out film by film, so that the peak stays under about 2 GB whatever the layout.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from fedrepro.data.formats.npy_parts import Writer
from fedrepro.data.formats.rating_text import table
from fedrepro.data.formats.trees import Entry
from fedrepro.data.source import FileSource, Findings, Remote
from fedrepro.errors import UserError

RATINGS, USERS, ITEMS = 100_480_507, 480_189, 17_770
FILM = re.compile(r"(?i:(?:^|/)(?:mv_\d{7}|combined_data_\d)\.txt$)")
TABLE = re.compile(r"(?i:(?:^|/)(?:netflix[^/]*|ratings)\.csv$)")
BLOCK = 1 << 25
TAIL = len(",5,2005-09-06")  # after the user id

Pieces = dict[int, list[tuple[np.ndarray, np.ndarray]]]


def _parse(entries: Iterator[Entry], out: Writer) -> Findings:
    films: Pieces = {}
    for entry in entries:
        if FILM.search(entry.path):
            _films(entry, films)
        else:
            _from_table(entry, films)
    if not films:
        raise UserError("no ratings")
    return _write(out, films)


def _films(entry: Entry, films: Pieces) -> None:
    """Lines ``123:`` (a film) followed by ``user,rating,date``; read in blocks of whole lines."""
    rest, film, line = b"", 0, 1
    while True:
        read = entry.stream.read(BLOCK)
        block = (rest + read).replace(b"\r\n", b"\n")
        if not read:
            block += b"" if block.endswith(b"\n") or not block else b"\n"
        cut = block.rfind(b"\n") + 1
        rest = block[cut:]
        if cut:
            film, lines = _lines(entry.name, np.frombuffer(block, np.uint8, cut), film, line, films)
            line += lines
        if not read:
            return


def _lines(name: str, text: np.ndarray, film: int, line: int, films: Pieces) -> tuple[int, int]:
    ends = np.flatnonzero(text == ord("\n"))
    starts = np.concatenate([[0], ends[:-1] + 1])
    full = ends > starts  # leave out empty lines
    heads = full & (text[np.maximum(ends - 1, 0)] == ord(":"))
    rows = full & ~heads
    commas = (text[np.maximum(ends - TAIL, 0)] == ord(",")) & (text[np.maximum(ends - TAIL + 2, 0)] == ord(","))
    bad = rows & ~(commas & (ends - starts > TAIL))
    rating = text[np.maximum(ends - TAIL + 1, 0)] - ord("0")
    bad |= rows & ((rating < 1) | (rating > 5))
    number, wrong = _digits(text, starts, np.where(heads, ends - 1, ends - TAIL), full & ~bad)
    bad |= wrong
    if bad.any() or (film == 0 and full.any() and not heads[np.flatnonzero(full)[0]]):
        i = int(np.flatnonzero(bad)[0]) if bad.any() else int(np.flatnonzero(full)[0])
        shown = bytes(text[starts[i] : ends[i]][:60]).decode("latin-1")
        raise UserError(f"{name}, line {line + i:,}: '{shown}' is neither 'film:' nor 'user,rating,date' under a film")
    films_here = np.concatenate([[film], number[heads]])
    which = np.cumsum(heads)[rows]
    cuts = np.searchsorted(which, np.arange(len(films_here) + 1))
    users, ratings = number[rows].astype(np.int32), rating[rows].astype(np.uint8)
    for k, this in enumerate(films_here):
        part = slice(cuts[k], cuts[k + 1])
        if part.stop > part.start:
            films.setdefault(int(this), []).append((users[part], ratings[part]))
    return int(films_here[-1]), len(ends)


def _digits(text: np.ndarray, starts: np.ndarray, ends: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The whole number written in text[start:end] of each row, and where there is none of 1 to 9 digits."""
    number = np.zeros(len(starts), dtype=np.int64)
    wrong = rows & ((ends - starts < 1) | (ends - starts > 9))
    for d in range(9):
        at = ends - 1 - d
        more = rows & ~wrong & (at >= starts)
        if not more.any():
            break
        digit = text[at[more]].astype(np.int64) - ord("0")
        wrong[np.flatnonzero(more)[(digit < 0) | (digit > 9)]] = True
        number[more] += digit * 10**d
    return number, wrong


def _from_table(entry: Entry, films: Pieces) -> None:
    user, item, value = table(entry)
    if np.any(value % 1):
        raise UserError(f"{entry.name}: ratings of the Netflix Prize are whole numbers 1 to 5")
    order = np.argsort(item, kind="stable")
    cuts = np.flatnonzero(np.diff(item[order])) + 1
    for part in np.split(order, cuts):
        films.setdefault(int(item[part[0]]), []).append((user[part], value[part].astype(np.uint8)))


def _write(out: Writer, films: Pieces) -> Findings:
    numbers = sorted(films)
    total = sum(len(users) for pieces in films.values() for users, _ in pieces)
    seen = np.zeros(1 + max(int(users.max()) for pieces in films.values() for users, _ in pieces), dtype=bool)
    for pieces in films.values():
        for users, _ in pieces:
            seen[users] = True
    raw = np.flatnonzero(seen).astype(np.int32)
    place = np.cumsum(seen, dtype=np.int32) - 1
    user, item = (out.create("all", name, (total,), np.int32) for name in ("user", "item"))
    value = out.create("all", "value", (total,), np.float32)
    at = 0
    for k, film in enumerate(numbers):
        for users, ratings in films.pop(film):
            part = slice(at, at + len(users))
            user[part], item[part], value[part] = place[users], k, ratings
            at = part.stop
    out.save("all", "user_id", raw)
    out.save("all", "item_id", np.array(numbers, dtype=np.int32))
    findings = Findings()
    findings.compare("ratings", total, RATINGS)
    findings.compare("users", len(raw), USERS)
    findings.compare("films", len(numbers), ITEMS)
    return findings


SOURCES = (
    FileSource(
        name="netflix",
        title="Netflix Prize",
        homepage="https://archive.org/details/nf_prize_dataset.tar",
        licence="Netflix Prize rules: research use, no redistribution",
        files=(
            Remote(
                "nf_prize_dataset.tar.gz",
                ("https://archive.org/download/nf_prize_dataset.tar/nf_prize_dataset.tar.gz",),
            ),
        ),
        pattern=re.compile(f"{FILM.pattern}|{TABLE.pattern}"),
        parse=_parse,
        layouts="nf_prize_dataset.tar.gz, the folder training_set, combined_data_1.txt ... 4, or a netflix.csv",
        limit=20_000_000_000,
    ),
)
