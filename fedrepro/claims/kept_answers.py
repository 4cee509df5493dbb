"""What was found in a figure's results, in one file beside them: ``<figure>.answers.json.gz``.

One part of the file contains the answers of all readings (``claims.robustness``). Each set of other values has its own
part of this kind, and a part with what the set changes for each claim (``alternatives.kept_effects``).
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedrepro.errors import UserError
from fedrepro.files import atomically
from fedrepro.results import staleness
from fedrepro.results.read import OTHER_VALUES

SUFFIX = ".answers.json.gz"


def path(base: Path) -> Path:
    """Return the file about the results at ``base`` (without suffix), of a figure or of a set of other values."""
    folder = base.parent
    of_set = folder.name.endswith(OTHER_VALUES)
    figure = folder.with_name(folder.name.removesuffix(OTHER_VALUES)) if of_set else base
    return figure.with_name(figure.name + SUFFIX)


def read(base: Path, kind: str) -> Mapping[str, Any]:
    """Return what was found in the results at ``base``, nothing if it cannot be read. kind : the kind of answers."""
    found = _parts(path(base)).get(_part(base, kind))
    return found if isinstance(found, dict) else {}


def write(base: Path, kind: str, content: Mapping[str, Any]) -> None:
    """Write what was found in the results at ``base``, and leave the other parts, if the folder can be written.

    Otherwise, and if another process has written at the same time, what is missing is computed again. If the figure's
    results are stale, the file is left as it is: its answers are about the code and the spec that computed the results,
    and are needed again when an edit is undone.
    """
    file = path(base)
    if staleness.at(file.with_name(file.name.removesuffix(SUFFIX))):
        return
    parts = dict(sorted({**_parts(file), _part(base, kind): content}.items()))
    body = gzip.compress(json.dumps(parts, separators=(",", ":")).encode(), mtime=0)
    with contextlib.suppress(OSError, UserError):
        atomically(file, body)


def _part(base: Path, kind: str) -> str:
    return f"{base.name} {kind}" if base.parent.name.endswith(OTHER_VALUES) else kind


def _parts(file: Path) -> Mapping[str, Any]:
    try:
        about = file.stat()
    except OSError:
        return {}
    return _loaded(file, about.st_ino, about.st_mtime_ns, about.st_size)


@functools.lru_cache(maxsize=1)
def _loaded(file: Path, *_: int) -> Mapping[str, Any]:
    """Return the parts of a file. The numbers change when it is written, and the last file read is kept in memory."""
    try:
        loaded = json.loads(gzip.decompress(file.read_bytes()))
    except (OSError, ValueError, EOFError):
        return {}
    return loaded if isinstance(loaded, dict) else {}
