"""Files of the user's own: where those lie that a spec or a call names, and what they are called.

A path in a spec starts in the folder of the spec, wherever the command is given; one given from Python, in the working
folder. A run knows a file by the text that names it and by the fingerprint of its content, not by the folder: a project
may be moved.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

IN_RUNS = "reads"  # the content has a fingerprint; see fedrepro.runs.identity.code


class Named(str):
    """What a spec calls a file, and the folder that a relative path in it starts in."""

    folder: str

    def __new__(cls, text: str, folder: str) -> Named:
        """``text`` as it is written, ``folder`` as an absolute path."""
        made = super().__new__(cls, text)
        made.folder = folder
        return made

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]  # so that it travels to a worker
        return str(self), self.folder


def found(text: str) -> Path:
    """The file or folder that a parameter names; relative to the working folder where it lies below it."""
    path = Path(getattr(text, "folder", "")) / text
    relative = os.path.relpath(path)
    return path if relative.startswith("..") or not path.is_absolute() else Path(relative)


def start(text: str) -> Path:
    """The folder that relative paths of this kind start in."""
    return Path(getattr(text, "folder", "") or Path.cwd())


def named(keys: Iterable[str], params: Mapping[str, Any], folder: str) -> dict[str, Any]:
    """Parameters of which ``keys`` may name files, those of a spec in ``folder``."""
    place = {key: _each(params[key], lambda text: Named(text, folder)) for key in keys if key in params}
    return {**params, **place}


def placed(keys: Iterable[str], params: Mapping[str, Any]) -> dict[str, Any]:
    """The same with the files' whole paths in place of what the spec calls them."""
    place = {key: _each(params[key], _whole) for key in keys if key in params}
    return {**params, **place}


def _each(value: Any, change: Any) -> Any:
    if isinstance(value, str):
        return change(value)
    return [_each(one, change) for one in value] if isinstance(value, list) else value


def _whole(text: str) -> str:
    """A variable's or column's name stays what it is."""
    path = found(text)
    return str(path.resolve()) if path.exists() else str(text)


def files(keys: Iterable[str], params: Mapping[str, Any]) -> list[Path]:
    """The files that parameters name, those of folders included; the first key's whether they exist or not."""
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
        yield from (one for one in value if isinstance(one, str))


def label(keys: Iterable[str], params: Mapping[str, Any]) -> str:
    """What a reader calls own data: the name of its first file or folder, and how many more there are."""
    texts = [text for key in list(keys)[:1] for text in _texts(params.get(key))]
    if not texts:
        return ""
    more = f" and {len(texts) - 1} more" if len(texts) > 1 else ""
    return f"{Path(texts[0]).name}{more}"


def marks(loader: Any) -> tuple[Any, ...]:
    """What changes whenever a loader's parameters do, or the files they name."""
    values = tuple((f.name, getattr(loader, f.name)) for f in dataclasses.fields(loader))
    stats = ((str(file), file.stat()) for file in files(type(loader).files, dict(values)))
    return (type(loader), repr(values), tuple((name, one.st_size, one.st_mtime_ns, one.st_ino) for name, one in stats))
