"""Read Matrix Market files (.mtx) of unknown origin."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from fedrepro.errors import UserError, counted

IN_RUNS = "computes"  # a user's own file has the fingerprint of its bytes, not of its arrays

_INTEGER, _NUMBER = rb"[+-]?\d+", rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_ENTRIES = {
    (form, field): re.compile(rb"(?m)^[ \t]*" + rb"[ \t]+".join((*at, *value)) + rb"[ \t\r]*$")
    for form, at in (("coordinate", (rb"\d+", rb"\d+")), ("array", ()))
    for field, value in (
        ("pattern", ()),
        ("integer", (_INTEGER,)),
        ("unsigned-integer", (_INTEGER,)),
        ("real", (_NUMBER,)),
        ("double", (_NUMBER,)),
        ("complex", (_NUMBER, _NUMBER)),
    )
    if at or value
}
"""The form of a line, by the format and the field of the file's first line."""


def matrix_market(path: Path) -> Any:
    """Return the matrix in a file. Raises UserError for an invalid line or a wrong number of entries."""
    from scipy.io import mmread

    with threadpool_limits(limits=1):  # each of its threads would need its own memory
        matrix = mmread(path)
    _check_lines(path)
    return matrix


def _check_lines(path: Path) -> None:
    """Raise UserError for an invalid line, because ``mmread`` reads ``8.1E-`` as 8.1 and ignores the rest."""
    with path.open("rb") as file:
        form, field = file.readline().lower().split()[2:4]
        size = next(line for line in file if line.strip() and not line.startswith(b"%"))
        entry = _ENTRIES[form.decode(), field.decode()]
        count, rest = 0, b""
        while block := file.read(1 << 24):
            lines, newline, rest = (rest + block).rpartition(b"\n")
            count += _entries(path, entry, lines + newline)
        count += _entries(path, entry, rest)
    if form == b"coordinate" and count != int(size.split()[2]):
        raise UserError(f"{path} declares {counted(int(size.split()[2]), 'entry', 'entries')}, but contains {count:,}")


def _entries(path: Path, entry: re.Pattern[bytes], lines: bytes) -> int:
    rest, count = entry.subn(b"", lines)
    if rest.strip():
        words = rest.split()[:4]
        raise UserError(f"{path}: '{b' '.join(words)[:40].decode('latin-1')}' is not an entry of the matrix")
    return count
