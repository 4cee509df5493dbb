"""Where data lie: ``FEDREPRO_DATA``, else the platform's user cache directory."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fedrepro.errors import UserError

VARIABLE = "FEDREPRO_DATA"


def home() -> Path:
    """The data home (not created)."""
    given = os.environ.get(VARIABLE, "").strip()
    if given:
        return Path(given).expanduser()
    import pooch

    return Path(pooch.os_cache("fedrepro"))


def place(name: str) -> Path:
    """The folder of one dataset in the data home (it may not exist)."""
    return home() / name


def writable(folder: Path) -> Path:
    """Create ``folder``; a UserError says what to do where that is not allowed."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"the data home {home()} cannot be written ({error.strerror}); set {VARIABLE} to a folder you can write to"
        ) from error
    return folder


def room_for(size: int, what: str) -> None:
    """Raise a UserError where the data home has less than ``size`` bytes left."""
    free = shutil.disk_usage(writable(home())).free
    if size > free:
        raise UserError(
            f"{what} needs {human(size)} in {home()}, {human(free)} are free; "
            f"make room or set {VARIABLE} to another disk"
        )


def human(size: float) -> str:
    """A size for people: ``1.6 MB``."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    raise AssertionError


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Only one process at a time changes a dataset; others wait for it."""
    from filelock import FileLock

    with FileLock(writable(home() / ".locks") / f"{name}.lock"):
        yield


@contextmanager
def staging(name: str) -> Iterator[Path]:
    """An empty folder in the data home, removed with all it holds when the block ends, however it ends.

    Use it under ``locked(name)``: what an earlier, killed process left is removed too.
    """
    root = writable(home() / ".staging")
    for old in root.glob(f"{name}=*"):
        shutil.rmtree(old, ignore_errors=True)
    folder = root / f"{name}={uuid.uuid4().hex[:12]}"
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def swap(new: Path, final: Path) -> None:
    """Put the folder ``new`` in the place of ``final``, which disappears only once the new one stands ready."""
    aside = new.parent / f"{new.name}.old"
    if final.exists():
        os.replace(final, aside)
    os.replace(new, final)
    shutil.rmtree(aside, ignore_errors=True)
