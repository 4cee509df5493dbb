"""Errors that a user can cause and fix: commands print them without a traceback and exit with code 2."""

from __future__ import annotations

import difflib
import errno
from collections.abc import Iterable

IN_RUNS = "says"  # see fedrepro.runs.identity.code


class UserError(Exception):
    """Bad input. The message states where the error is, what is wrong and how to fix it; the command line prints it and
    exits with code 2.

    Control characters and other characters that a terminal cannot show are printed as their codes, because the text
    may come from a file or an option.
    """

    def __str__(self) -> str:
        return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in super().__str__())


class ParameterError(UserError, ValueError):
    """A parameter of a method, dataset, partition or problem has an invalid value.

    ``name`` is the parameter, so that the error can point at the line of the spec that set it.
    """

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"{name}: {message}")
        self.name = name
        self.message = message

    def __reduce__(self) -> tuple[type, tuple[str, str]]:  # so that a worker can send it
        return type(self), (self.name, self.message)


class DataAbsent(UserError):
    """A dataset's files are not in the data home; ``dataset`` is the name to import or fetch."""

    def __init__(self, dataset: str, message: str) -> None:
        super().__init__(message)
        self.dataset = dataset

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        return type(self), (self.dataset, str(self))


class Unwritable(UserError, OSError):
    """A path that cannot be written: a full disk, a read-only folder, a file in the place of a folder."""

    def __init__(self, path: object, error: OSError) -> None:
        self.path, self.error = str(path), error
        super().__init__(f"{path}: cannot be written ({error.strerror or error}); {_way_out(error)}")

    def __reduce__(self) -> tuple[type, tuple[str, OSError]]:
        return type(self), (self.path, self.error)

    def __str__(self) -> str:
        return str(self.args[0])  # OSError would format it differently


FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Error numbers of a full disk, an exceeded quota, and a file that is too large."""


def is_full(error: OSError) -> bool:
    """Return whether the disk was full; numpy only reports how much it wrote."""
    return error.errno in FULL or (error.errno is None and " requested and " in str(error))


def _way_out(error: OSError) -> str:
    if is_full(error):
        return "free some space, or choose another folder; finished runs are kept, and the same command continues"
    if error.errno in (errno.ENOTDIR, errno.EEXIST, errno.EISDIR):
        return "something else has this name: move it away"
    return "allow writing there, or choose another folder (`--help` names the option)"


def counted(count: int, noun: str, nouns: str = "") -> str:
    """Return a count with its noun: ``1 pair``, ``2,000 pairs``. nouns : the plural, if it is not the noun and an s."""
    return f"{count:,} {noun if count == 1 else nouns or f'{noun}s'}"


def nearest(word: str, valid: Iterable[str]) -> str:
    """Return ``", did you mean 'x'?"`` for the valid name closest to ``word``, or an empty string.

    Capitals, hyphens and underscores do not count: tables print ``FedMGS`` where a spec says ``fedmgs``.
    """
    names: dict[str, list[str]] = {}
    for name in map(str, valid):
        names.setdefault(_plain(name), []).append(name)
    word = str(word)[:100]
    close = difflib.get_close_matches(_plain(word), names, n=1, cutoff=0.5)
    written = difflib.get_close_matches(word, names[close[0]], n=1, cutoff=0.0) if close else []
    return f", did you mean '{written[0]}'?" if written else ""


def _plain(name: str) -> str:
    """Return a name without capitals, hyphens and underscores."""
    return name.casefold().replace("-", "").replace("_", "")
