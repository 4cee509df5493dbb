"""The fingerprint of what a dataset reads."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedrepro.data import copies
from fedrepro.data.loading import find
from fedrepro.errors import UserError


def fingerprint(dataset: str, params: Mapping[str, Any]) -> str:
    """sha256 of the content a dataset with these parameters reads; empty where it reads no file.

    Raises DataAbsent where its files, or the part of them that ``params`` asks for, are not in the data home.
    """
    entry = find(dataset)
    if entry.source is not None:
        return copies.fingerprint(entry.source, {**entry.parameters(), **params})
    files = [Path(str(params[key])) for key in ("path", "labels") if params.get(key)]
    files = [files[0], *(file for file in files[1:] if file.is_file())] if files else []
    if not files:
        return ""
    return hashlib.sha256("".join(_file_hash(file) for file in files).encode()).hexdigest()


def _file_hash(path: Path) -> str:
    try:
        found = path.stat()
        return _hash_once(path, found.st_size, found.st_mtime_ns)
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror})") from error


@functools.lru_cache(maxsize=64)
def _hash_once(path: Path, size: int, mtime_ns: int) -> str:
    return copies.sha256(path)
