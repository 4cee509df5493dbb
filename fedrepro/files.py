"""Write files atomically, and make files without a name that only their writer sees."""

from __future__ import annotations

import contextlib
import errno
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
    """Write a file under a temporary name, flush it, then rename it, so that no incomplete file is ever visible.

    If the path is a link, the file that it names is replaced. A pipe or a device is written into. Raises Unwritable if
    that fails; an existing file is then unchanged.
    """
    with writing(path):
        if _is_special(path):
            with open(path, "wb") as stream:
                _fill(stream, content)
            return
        target = _target(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        _write(target, target.with_name(f".{target.name}.{me()}.{secrets.token_hex(4)}.part"), content)


def require_writable(path: Path) -> None:
    """Raise Unwritable if a file could not be written to ``path``, before its content is computed for minutes."""
    with writing(path):
        if _is_special(path):
            if not os.access(path, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            return
        target = _target(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", suffix=".part"):
            pass


def _is_special(path: Path) -> bool:
    """Return whether a path is a pipe or a device, or a link to one."""
    return path.exists() and not path.is_file() and not path.is_dir()


def _target(path: Path) -> Path:
    """Return the path that a link names, or the path itself."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def _write(path: Path, part: Path, content: bytes | Callable[[IO[bytes]], object]) -> None:
    try:
        with open(part, "wb") as stream:
            _fill(stream, content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(part, path)
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


def _fill(stream: IO[bytes], content: bytes | Callable[[IO[bytes]], object]) -> None:
    if isinstance(content, bytes):
        stream.write(content)
    else:
        content(stream)


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Enclose a block that writes to ``path``; an OSError in it is raised as Unwritable."""
    try:
        yield
    except Unwritable:
        raise
    except OSError as error:
        raise Unwritable(path, error) from error


def me() -> str:
    """Return an identifier of this process and its machine, for the names of files that it has not finished."""
    return f"{os.getpid()}-{zlib.crc32(node().encode()):08x}"


def abandoned(name: str) -> bool:
    """Return whether a name contains the identifier (``me``) of a process of this machine that no longer exists."""
    writer = re.search(r"\.(\d+)-([0-9a-f]{8})(\.|$)", name)
    if writer is None or writer[2] != me().partition("-")[2] or int(writer[1]) == os.getpid():
        return False
    try:
        os.kill(int(writer[1]), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        pass
    return False


def sweep(folder: Path) -> None:
    """Remove the incomplete files of killed processes from a folder."""
    for part in folder.glob(".*.part"):
        if abandoned(part.name):
            with contextlib.suppress(OSError):
                part.unlink()


@contextlib.contextmanager
def nameless_in(folder: Path) -> Iterator[None]:
    """Put ``nameless`` files into a folder; the system's temporary folder may be small or in memory."""
    before = _PLACE.set(folder)
    try:
        yield
    finally:
        _PLACE.reset(before)


def nameless() -> IO[bytes]:
    """Return a file to write and map; its space is freed when no process has it open, however the process ends."""
    return tempfile.TemporaryFile(dir=_PLACE.get())


@contextlib.contextmanager
def nameless_folder() -> Iterator[Path]:
    """Yield a folder for temporary files, which is removed with its content when the block ends."""
    with tempfile.TemporaryDirectory(dir=_PLACE.get()) as folder:
        yield Path(folder)
