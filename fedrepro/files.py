"""Writing files so that nobody ever sees half of one, and files that only their writer sees."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from platform import node
from typing import IO

from fedrepro.errors import Unwritable

_PLACE: ContextVar[Path | None] = ContextVar("place of nameless files", default=None)


def atomically(path: Path, content: bytes | Callable[[IO[bytes]], object]) -> None:
    """Write a file under a temporary name, flush it, then give it its name: never visible half-written.

    Raises Unwritable where that cannot be done; what stood there still does.
    """
    part = path.with_name(f".{path.name}.{me()}.{secrets.token_hex(4)}.part")
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(path, part, content)


def _write(path: Path, part: Path, content: bytes | Callable[[IO[bytes]], object]) -> None:
    try:
        with open(part, "wb") as stream:
            if isinstance(content, bytes):
                stream.write(content)
            else:
                content(stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(part, path)
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """A block that writes to a place: what the system has against it is raised as Unwritable."""
    try:
        yield
    except Unwritable:
        raise
    except OSError as error:
        raise Unwritable(path, error) from error


def me() -> str:
    """This process and its machine, as part of the names of files that it has not finished."""
    return f"{os.getpid()}-{zlib.crc32(node().encode()):08x}"


def abandoned(name: str) -> bool:
    """Whether a name holds that of a process of this machine (``me``) that is gone: nobody will finish the file."""
    found = re.search(r"\.(\d+)-([0-9a-f]{8})(\.|$)", name)
    if found is None or found[2] != me().partition("-")[2] or int(found[1]) == os.getpid():
        return False
    try:
        os.kill(int(found[1]), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        pass
    return False


def sweep(folder: Path) -> None:
    """Remove what processes that were killed left half-written in a folder."""
    for part in folder.glob(".*.part"):
        if abandoned(part.name):
            with contextlib.suppress(OSError):
                part.unlink()


@contextlib.contextmanager
def nameless_in(folder: Path) -> Iterator[None]:
    """Put ``nameless`` files into a folder, not where temporary files go: that may be small, or in memory."""
    before = _PLACE.set(folder)
    try:
        yield
    finally:
        _PLACE.reset(before)


def nameless() -> IO[bytes]:
    """A file to write and to map: its space is free once nothing has it open or mapped, however the process ends."""
    return tempfile.TemporaryFile(dir=_PLACE.get())


@contextlib.contextmanager
def nameless_folder() -> Iterator[Path]:
    """A folder for files of a moment, removed with all it holds when the block ends."""
    with tempfile.TemporaryDirectory(dir=_PLACE.get()) as folder:
        yield Path(folder)
