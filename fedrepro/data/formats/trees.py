"""Read files from folders and archives in one pass, without extracting anything to disk.

A folder, a zip, a tar in any compression, a compressed single file or archives inside archives become one stream of
named entries. Names that leave the archive, links and devices are refused, and unpacked bytes are counted against a
limit, so that a small malicious archive cannot fill memory or disk.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import shutil
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO, Any, cast

from fedrepro.errors import UserError
from fedrepro.progress import human

MOST_ENTRIES = 2_000_000
DEEPEST = 3
_COMPRESSIONS: tuple[tuple[bytes, Callable[..., Any], tuple[str, ...]], ...] = (
    (b"\x1f\x8b", gzip.open, (".gz", ".tgz", ".z")),
    (b"\xfd7zXZ\x00", lzma.open, (".xz", ".txz")),
    (b"BZh", bz2.open, (".bz2", ".tbz2", ".tbz")),
)


@dataclass
class Entry:
    """One file of a copy: its path inside the copy (without compression suffix) and its bytes."""

    path: str
    stream: IO[bytes]

    @property
    def name(self) -> str:
        """The file's name without folders."""
        return PurePosixPath(self.path).name

    def read(self) -> bytes:
        """Return all of its bytes."""
        return self.stream.read()

    def text(self, encoding: str = "utf-8") -> io.TextIOWrapper:
        """Return its lines as text."""
        return io.TextIOWrapper(cast(Any, self.stream), encoding=encoding, newline=None)


@dataclass
class Budget:
    """How many bytes a copy may still unpack to, and which of its files is being read."""

    limit: int
    left: int
    origin: Path = Path()
    entries: int = 0

    def spend(self, size: int) -> None:
        """Count ``size`` bytes; raises UserError when the cap is passed."""
        self.left -= size
        if self.left < 0:
            raise UserError(
                f"it unpacks to more than {human(self.limit)}, far more than this dataset has; it is not read further"
            )

    def enter(self) -> None:
        """Count one entry."""
        self.entries += 1
        if self.entries > MOST_ENTRIES:
            raise UserError(f"it contains more than {MOST_ENTRIES:,} entries; it is not read further")


class _Metered(io.RawIOBase):
    """A stream whose first bytes can be looked at, whose bytes are counted and whose errors name the file."""

    def __init__(self, stream: IO[bytes], budget: Budget) -> None:
        self._stream, self._budget = stream, budget
        self.head = self._exactly(512)
        self._pending = self.head
        budget.spend(len(self.head))

    def _exactly(self, size: int) -> bytes:
        head = b""
        while len(head) < size and (more := self._stream.read(size - len(head))):
            head += more
        return head

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._pending[: len(buffer)]
        if piece:
            self._pending = self._pending[len(piece) :]
        else:
            with explained(self._budget.origin):
                piece = self._stream.read(len(buffer)) or b""
                self._budget.spend(len(piece))
        buffer[: len(piece)] = piece
        return len(piece)


def walk(
    paths: Iterable[Path], wanted: Callable[[str], bool], limit: int, used: dict[Path, str] | None = None
) -> Iterator[Entry]:
    """Yield every wanted file under ``paths``, in a fixed order; an entry must be read before the next is requested.

    ``wanted`` gets each path without its compression suffix. ``used`` collects the files on disk that contain something
    wanted, with their path below the given one. Raises UserError with the copy's path for damaged,
    truncated or malicious archives.
    """
    budget = Budget(limit, limit)
    for path in paths:
        budget.origin = path
        with explained(path):
            if path.is_dir():
                files = [(p, p.relative_to(path).as_posix()) for p in sorted(path.rglob("*")) if p.is_file()]
            else:
                files = [(path, path.name)]
            for file, name in files:
                for entry in _file(file, name, wanted, budget):
                    if used is not None:
                        used[file] = name
                    yield entry


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Raise UserError with the file's name for any error of a broken archive."""
    try:
        yield
    except (
        EOFError,
        zlib.error,
        lzma.LZMAError,
        zipfile.BadZipFile,
        tarfile.TarError,
        gzip.BadGzipFile,
    ) as error:
        raise UserError(f"{path}: the archive is truncated or damaged ({error}); get it again") from error
    except RuntimeError as error:  # zipfile: encrypted members
        raise UserError(f"{path}: cannot be read ({error})") from error
    except NotImplementedError as error:  # zipfile: unknown compression method
        raise UserError(f"{path}: cannot be read ({error}); unpack it and import the folder") from error
    except UserError as error:
        if str(path) in str(error):
            raise
        raise UserError(f"{path}: {error}") from error


def _file(file: Path, name: str, wanted: Callable[[str], bool], budget: Budget) -> Iterator[Entry]:
    budget.enter()
    with file.open("rb") as stream:
        yield from _open(name, stream, wanted, budget, 0)


def _open(
    name: str,
    stream: IO[bytes],
    wanted: Callable[[str], bool],
    budget: Budget,
    depth: int,
    compressed: bool = False,
) -> Iterator[Entry]:
    raw = _Metered(stream, budget)
    buffered = cast("IO[bytes]", io.BufferedReader(raw, 1 << 16))
    for magic, opener, endings in _COMPRESSIONS:
        if raw.head.startswith(magic):
            with opener(buffered) as plain:
                yield from _open(_without(name, endings), plain, wanted, budget, depth, True)
            return
    if wanted(name):
        yield Entry(name, buffered)
    elif raw.head.startswith(b"PK\x03\x04") and _deeper(name, depth):
        yield from _zip(name, stream if depth == 0 and not compressed else buffered, wanted, budget, depth)
    elif raw.head[257:262] == b"ustar" and _deeper(name, depth):
        yield from _tar(name, buffered, wanted, budget, depth)


def _deeper(name: str, depth: int) -> bool:
    if depth >= DEEPEST:
        raise UserError(f"'{name}': archives inside archives, more than {DEEPEST} deep; unpack it first")
    return True


def _zip(name: str, stream: IO[bytes], wanted: Callable[[str], bool], budget: Budget, depth: int) -> Iterator[Entry]:
    with _seekable(stream) as file, zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            _refuse_unsafe(member.filename)
            if (member.external_attr >> 16) & 0o170000 == 0o120000:
                raise UserError(f"the archive has a link, '{member.filename}'; unpack it and import the files")
            if member.is_dir():
                continue
            budget.enter()
            with archive.open(member) as inner:
                yield from _open(member.filename, inner, wanted, budget, depth + 1)


@contextmanager
def _seekable(stream: IO[bytes]) -> Iterator[Any]:
    """A zip's directory is at its end: the stream on disk itself, or a copy of an inner stream."""
    if type(stream) is io.BufferedReader and isinstance(stream.raw, io.FileIO):
        stream.seek(0)
        yield stream
        return
    with tempfile.SpooledTemporaryFile(max_size=1 << 26) as file:
        shutil.copyfileobj(stream, file, 1 << 20)
        yield file


def _tar(name: str, stream: IO[bytes], wanted: Callable[[str], bool], budget: Budget, depth: int) -> Iterator[Entry]:
    with tarfile.open(fileobj=cast(Any, stream), mode="r|") as archive:
        for member in archive:
            _refuse_unsafe(member.name)
            if member.isdir():
                continue
            if not member.isreg():
                raise UserError(f"the archive has a link or device, '{member.name}'; unpack it and import the files")
            budget.enter()
            inner = archive.extractfile(member)
            if inner is not None:
                yield from _open(member.name.removeprefix("./"), inner, wanted, budget, depth + 1)


def _refuse_unsafe(name: str) -> None:
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or PureWindowsPath(name).drive or ".." in path.parts:
        raise UserError(f"the archive contains '{name}', a path outside of it; it is not read")


def _without(name: str, endings: tuple[str, ...]) -> str:
    for ending in endings:
        if name.lower().endswith(ending):
            short = name[: -len(ending)]
            return f"{short}.tar" if ending.startswith(".t") else short
    return name
