"""Writing files so that nobody ever sees half of one, and files that only their writer sees."""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import IO

_PLACE: ContextVar[Path | None] = ContextVar("place of nameless files", default=None)


def atomically(path: Path, content: bytes | Callable[[IO[bytes]], object]) -> None:
    """Write a file under a temporary name, flush it, then give it its name: never visible half-written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.part")
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
        part.unlink(missing_ok=True)


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
