"""The file of a spec's lock, ``<figure>.lock.json`` next to ``<figure>.yaml``: its place and its digest.

``claims.locked_claims`` describes what it contains.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

SUFFIX = ".lock.json"


def path_of(spec: str | Path) -> Path:
    """Return the path of a spec's lock."""
    return Path(spec).with_suffix(SUFFIX)


def digest(spec: str | Path) -> str:
    """Return the sha256 of a spec's lock, independent of its line ends; '' if the spec is not locked."""
    try:
        return hashlib.sha256(path_of(spec).read_bytes().replace(b"\r\n", b"\n")).hexdigest()
    except (FileNotFoundError, NotADirectoryError):
        return ""
