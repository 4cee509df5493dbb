"""The user's own files: the paths of files that a spec or a call names, and their names for readers.

A relative path in a spec starts in the folder of the spec, and from Python in the working folder. A run identifies a
file by its text in the spec and the fingerprint of its content, not by its folder, so a project can be moved.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

IN_RUNS = "reads"  # the content has a fingerprint; see fedrepro.runs.identity.code


class Named(str):
    """A file name in a spec, with the folder where a relative path starts."""

    folder: str

    def __new__(cls, text: str, folder: str) -> Named:
        """Return ``text`` as it is written, with ``folder`` as an absolute path."""
        named = super().__new__(cls, text)
        named.folder = folder
        return named

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]  # so that it can be sent to a worker
        return str(self), self.folder


def found(text: str) -> Path:
    """Return the file or folder that a parameter names, relative to the working folder if it is below it."""
    path = Path(getattr(text, "folder", "")) / text
    relative = os.path.relpath(path)
    return path if relative.startswith("..") or not path.is_absolute() else Path(relative)


@dataclasses.dataclass(frozen=True, init=False)
class OwnFile:
    """The range of a parameter that names an existing file with one of these endings, or a folder if allowed."""

    endings: tuple[str, ...]
    folders: bool = False

    def __init__(self, *endings: str, folders: bool = False) -> None:
        object.__setattr__(self, "endings", endings)
        object.__setattr__(self, "folders", folders)

    def allows(self, value: Any) -> bool:
        """Whether the value names such a file or folder."""
        return not self.reason(value)

    def reason(self, value: Any) -> str:
        """Return why a value is not allowed, '' if it is."""
        path = found(value) if isinstance(value, str) else None
        if path is not None and self.folders and path.is_dir():
            return ""
        if path is None or path.suffix.lower() not in self.endings:
            return f"must be {self}, not {value!r}"
        return "" if path.is_file() else f"{value} does not exist (relative paths start in {start(value)})"

    def __str__(self) -> str:
        return f"{'a folder, or ' if self.folders else ''}a file ending in {', '.join(self.endings)}"


def start(text: str) -> Path:
    """Return the folder where relative paths of this text start."""
    return Path(getattr(text, "folder", "") or Path.cwd())


def named(keys: Iterable[str], params: Mapping[str, Any], folder: str) -> dict[str, Any]:
    """Return parameters of a spec in ``folder``, with those in ``keys`` as names of files."""
    return _changed(keys, params, lambda text: Named(text, folder))


def placed(keys: Iterable[str], params: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters with absolute paths instead of the spec's file names."""
    return _changed(keys, params, _whole)


def found_names(keys: Iterable[str], params: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters with paths that the working folder can reach instead of the spec's file names."""
    return _changed(keys, params, _reachable)


def _changed(keys: Iterable[str], params: Mapping[str, Any], change: Callable[[str], str]) -> dict[str, Any]:
    return {**params, **{key: _each(params[key], change) for key in keys if key in params}}


def _reachable(text: str) -> str:
    path = found(text)
    return str(path) if path.exists() else str(text)


def _each(value: Any, change: Any) -> Any:
    if isinstance(value, str):
        return change(value)
    return [_each(item, change) for item in value] if isinstance(value, list) else value


def _whole(text: str) -> str:
    """Return the absolute path of a file; names of variables or columns are not changed."""
    path = found(text)
    return str(path.resolve()) if path.exists() else str(text)


def files(keys: Iterable[str], params: Mapping[str, Any]) -> list[Path]:
    """Return the files that parameters name, including those in folders; those of the first key need not exist."""
    listed: list[Path] = []
    for number, key in enumerate(keys):
        for text in _texts(params.get(key)):
            path = found(text)
            if path.is_dir():
                listed += sorted(file for file in path.rglob("*") if file.is_file())
            elif number == 0 or path.is_file():
                listed.append(path)
    return listed


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        yield from (text for text in value if isinstance(text, str))


def label(keys: Iterable[str], params: Mapping[str, Any]) -> str:
    """Return a name of own data for readers: its first file or folder, and the number of further ones."""
    texts = [text for key in list(keys)[:1] for text in _texts(params.get(key))]
    if not texts:
        return ""
    more = f" and {len(texts) - 1} more" if len(texts) > 1 else ""
    return f"{Path(texts[0]).name}{more}"


def marks(loader: Any) -> tuple[Any, ...]:
    """Return a key that changes whenever a loader's parameters or their files change."""
    values = tuple((f.name, getattr(loader, f.name)) for f in dataclasses.fields(loader))
    stats = ((str(file), file.stat()) for file in files(type(loader).files, dict(values)))
    return (
        type(loader),
        repr(values),
        tuple((name, stat.st_size, stat.st_mtime_ns, stat.st_ino) for name, stat in stats),
    )
