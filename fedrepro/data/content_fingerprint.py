"""The fingerprint of the content that a dataset reads, and checks that exactly this content was read."""

from __future__ import annotations

import contextlib
import functools
import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fedrepro.data import copies, own_paths
from fedrepro.data.formats import npy_parts
from fedrepro.data.loading import find
from fedrepro.errors import UserError


def fingerprint(dataset: str, params: Mapping[str, Any]) -> str:
    """Return the sha256 of the content that a dataset with these parameters reads; '' if it reads no file.

    Raises DataAbsent if its files, or the parts that ``params`` needs, are not in the data home.
    """
    entry = find(dataset)
    if entry.source is not None:
        return copies.fingerprint(entry.source, {**entry.parameters(), **params})
    files = own_paths.files(entry.cls.files, params)
    if not files:
        return ""
    return hashlib.sha256("".join(_hash_once(file, _mark(file)) for file in files).encode()).hexdigest()


@contextlib.contextmanager
def reading(dataset: str, params: Mapping[str, Any], planned: str) -> Iterator[None]:
    """Enclose a block that reads a dataset whose content has the fingerprint ``planned``.

    After the block the bytes on disk are hashed again, and the files must be untouched. Otherwise UserError is raised,
    because the block may have read something else.
    """
    before = _marks(dataset, params)
    yield
    if _marks(dataset, params) != before or _on_disk(dataset, params) != planned:
        raise UserError(
            f"the files of the dataset {dataset} have changed since the runs were planned; nothing computed from them "
            "is kept. Do not change them, and run the same command again" + _check(dataset)
        )


def _check(dataset: str) -> str:
    source = find(dataset).source
    return f"; `fedrepro data list --verify` checks {source}" if source is not None else ""


def _marks(dataset: str, params: Mapping[str, Any]) -> list[tuple[Path, Mark]]:
    entry = find(dataset)
    if entry.source is not None:
        files = copies.arrays(entry.source, {**entry.parameters(), **params})
    else:
        files = own_paths.files(entry.cls.files, params)
    return [(file, _mark(file)) for file in files]


def _on_disk(dataset: str, params: Mapping[str, Any]) -> str:
    """Return the fingerprint of the content that is on disk now, regardless of records."""
    entry = find(dataset)
    if entry.source is None:
        return fingerprint(dataset, params)
    files = copies.arrays(entry.source, {**entry.parameters(), **params})
    by_part: dict[Path, list[Mark]] = {}
    for file in files:
        by_part.setdefault(file.parent, []).append(_mark(file))
    return npy_parts.combine({part.name: _part(part, tuple(marks)) for part, marks in by_part.items()})


@functools.lru_cache(maxsize=64)
def _part(part: Path, marks: tuple[Mark, ...]) -> str:
    return npy_parts.fingerprint(part)


Mark = tuple[int, ...]
"""Device, inode, size and times of a file: some of them change whenever it is written."""


def _mark(path: Path) -> Mark:
    try:
        stat = path.stat()
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror})") from error
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns


@functools.lru_cache(maxsize=64)
def _hash_once(path: Path, mark: Mark) -> str:
    try:
        return copies.sha256(path)
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror})") from error
