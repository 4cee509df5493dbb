"""The fingerprint of what a dataset reads, and whether that is what was read."""

from __future__ import annotations

import contextlib
import functools
import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fedrepro.data import copies, own, parsed
from fedrepro.data.loading import find
from fedrepro.errors import UserError


def fingerprint(dataset: str, params: Mapping[str, Any]) -> str:
    """sha256 of the content a dataset with these parameters reads; empty where it reads no file.

    Raises DataAbsent where its files, or the part of them that ``params`` asks for, are not in the data home.
    """
    entry = find(dataset)
    if entry.source is not None:
        return copies.fingerprint(entry.source, {**entry.parameters(), **params})
    files = own.files(entry.cls.files, params)
    if not files:
        return ""
    return hashlib.sha256("".join(_hash_once(file, _mark(file)) for file in files).encode()).hexdigest()


@contextlib.contextmanager
def reading(dataset: str, params: Mapping[str, Any], planned: str) -> Iterator[None]:
    """A block that reads a dataset, whose content has the fingerprint ``planned``.

    Raises UserError after the block where it may have read something else: the bytes on disk are hashed once more, and
    the files must not have been touched meanwhile.
    """
    before = _marks(dataset, params)
    yield
    if _marks(dataset, params) != before or _on_disk(dataset, params) != planned:
        raise UserError(
            f"the files of the dataset {dataset} are not those that were there when the runs were planned; nothing of "
            "it is kept. Leave them alone and run the same command again" + _check(dataset)
        )


def _check(dataset: str) -> str:
    source = find(dataset).source
    return f"; `fedrepro data list --verify` says whether {source} is sound" if source is not None else ""


def _marks(dataset: str, params: Mapping[str, Any]) -> list[tuple[Path, Mark]]:
    entry = find(dataset)
    if entry.source is not None:
        files = copies.arrays(entry.source, {**entry.parameters(), **params})
    else:
        files = own.files(entry.cls.files, params)
    return [(file, _mark(file)) for file in files]


def _on_disk(dataset: str, params: Mapping[str, Any]) -> str:
    """The fingerprint of what stands there now, whatever records say of it."""
    entry = find(dataset)
    if entry.source is None:
        return fingerprint(dataset, params)
    files = copies.arrays(entry.source, {**entry.parameters(), **params})
    found: dict[Path, list[Mark]] = {}
    for file in files:
        found.setdefault(file.parent, []).append(_mark(file))
    return parsed.combine({part.name: _part(part, tuple(marks)) for part, marks in found.items()})


@functools.lru_cache(maxsize=64)
def _part(part: Path, marks: tuple[Mark, ...]) -> str:
    return parsed.fingerprint(part)


Mark = tuple[int, ...]
"""What changes whenever a file is written: its place on disk, size, and times."""


def _mark(path: Path) -> Mark:
    try:
        found = path.stat()
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror})") from error
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


@functools.lru_cache(maxsize=64)
def _hash_once(path: Path, mark: Mark) -> str:
    try:
        return copies.sha256(path)
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror})") from error
