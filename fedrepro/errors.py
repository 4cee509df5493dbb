"""Errors a user can cause, and can mend: they are shown without a traceback and end the command with exit code 2."""

from __future__ import annotations

import difflib
import errno
from collections.abc import Iterable

IN_RUNS = "says"  # see fedrepro.runs.identity.code


class UserError(Exception):
    """Bad input. The message says where, what and how to fix it; the command line prints it and exits with 2.

    What a terminal would obey or cannot show stands in it as its code: it may come from a file or an option.
    """

    def __str__(self) -> str:
        return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in super().__str__())


class ParameterError(UserError, ValueError):
    """A parameter of an algorithm, dataset, partition or problem has a value that cannot work.

    ``name`` is the parameter's name, so that a spec can point at the line that set it.
    """

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"{name}: {message}")
        self.name = name
        self.message = message

    def __reduce__(self) -> tuple[type, tuple[str, str]]:  # so that it travels from a worker
        return type(self), (self.name, self.message)


class DataAbsent(UserError):
    """A dataset's files are not in the data home; carries ``dataset``, the name to import or fetch."""

    def __init__(self, dataset: str, message: str) -> None:
        super().__init__(message)
        self.dataset = dataset

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        return type(self), (self.dataset, str(self))


class Unwritable(UserError, OSError):
    """A place that cannot be written: a full disk, a folder one may only read, a file where a folder has to be."""

    def __init__(self, path: object, error: OSError) -> None:
        self.path, self.error = str(path), error
        super().__init__(f"{path}: cannot be written ({error.strerror or error}); {_way_out(error)}")

    def __reduce__(self) -> tuple[type, tuple[str, OSError]]:
        return type(self), (self.path, self.error)

    def __str__(self) -> str:
        return str(self.args[0])  # OSError has its own idea of a text


FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What the system says of a disk without room, or of a file that may not grow."""


def is_full(error: OSError) -> bool:
    """Whether there was no room; numpy says only how much it wrote."""
    return error.errno in FULL or (error.errno is None and " requested and " in str(error))


def _way_out(error: OSError) -> str:
    if is_full(error):
        return "make room there, or choose another folder; what is finished is kept, and the same command goes on"
    if error.errno in (errno.ENOTDIR, errno.EEXIST, errno.EISDIR):
        return "something else stands in its place: move it away"
    return "allow writing there, or choose another folder (`--help` names the option)"


def nearest(word: str, valid: Iterable[str]) -> str:
    """Return ``", did you mean 'x'?"`` for the valid name closest to ``word``, or an empty string."""
    close = difflib.get_close_matches(str(word)[:100], [str(v) for v in valid], n=1, cutoff=0.5)
    return f", did you mean '{close[0]}'?" if close else ""
