"""The data home: ``FEDREPRO_DATA``, by default the platform's user cache directory."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fedrepro.errors import UserError
from fedrepro.progress import human

VARIABLE = "FEDREPRO_DATA"


def home() -> Path:
    """Return the data home (it is not created)."""
    given = os.environ.get(VARIABLE, "").strip()
    if given:
        return Path(given).expanduser()
    import pooch

    return Path(pooch.os_cache("fedrepro"))


def place(name: str) -> Path:
    """Return the folder of a dataset in the data home (it may not exist)."""
    return home() / name


def writable(folder: Path) -> Path:
    """Create and return ``folder``. Raises UserError with advice if that is not allowed."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"the data home {home()} cannot be written ({error.strerror}); set {VARIABLE} to a folder you can write to"
        ) from error
    return folder


def room_for(size: int, what: str) -> None:
    """Raise UserError if the data home has less than ``size`` free bytes."""
    free = shutil.disk_usage(writable(home())).free
    if size > free:
        raise UserError(
            f"{what} needs {human(size)} in {home()}, {human(free)} are free; "
            f"free some space or set {VARIABLE} to another disk"
        )


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Let only one process at a time change a dataset; others wait."""
    from filelock import FileLock

    with FileLock(writable(home() / ".locks") / f"{name}.lock"):
        yield


@contextmanager
def staging(name: str) -> Iterator[Path]:
    """Yield an empty folder in the data home, which is removed with its content when the block ends.

    Use it within ``locked(name)``, because it also removes the folders of killed processes.
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
    """Replace the folder ``final`` by the complete folder ``new``."""
    aside = new.parent / f"{new.name}.old"
    if final.exists():
        os.replace(final, aside)
    os.replace(new, final)
    shutil.rmtree(aside, ignore_errors=True)
