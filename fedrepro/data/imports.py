"""Taking a copy into the data home: read where it lies, checked, copied, hashed, and only then put in place."""

from __future__ import annotations

import hashlib
import shutil
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from fedrepro.data import apart, copies, parsed
from fedrepro.data.formats.trees import walk
from fedrepro.data.home import locked, place, room_for, staging, swap
from fedrepro.data.source import FileSource, Findings, sources
from fedrepro.errors import UserError

NEAR = 0.05
"""How far a variant's counts may be off, as a share of the official ones; further off it is another dataset."""

FEW = 32  # a folder of more files than this is kept as one zip


def adopt(name: str, paths: Sequence[Path], *, how: str = "imported", variant: bool = False) -> copies.CopyState:
    """Take files, archives or folders as the copy of dataset ``name``, in place of an earlier one.

    variant : take what has far fewer or far more than the official content too, as a part of it that one knows of.
    Raises UserError where they are not that dataset, are damaged, or do not fit; nothing is left behind then, and an
    earlier copy stays.
    """
    entry = copies.source(name)
    for path in paths:
        if not path.exists():
            raise UserError(f"{path} does not exist")
        try:
            _refuse_web_page(path, name)
        except OSError as error:
            raise UserError(f"{path} cannot be read ({error.strerror})") from error
    memory = apart.fair(paths)
    with locked(name), staging(name) as work:
        new = work / "new"
        new.mkdir()
        found, used = _parse(name, paths, new / f"parsed-{entry.version}", memory)
        if not variant:
            _refuse_another(name, entry, paths, found)
        room_for(sum(file.stat().st_size for file in used), f"the copy of {name}")
        records = _keep(used, new / "files")
        official = all(_published(entry, record) for record in records)
        parts = parsed.parts(new / f"parsed-{entry.version}")
        copies.Manifest(name, how, official, records, entry.version, parts, found.differs, found.facts).write(new)
        swap(new, place(name))
    return copies.state(name)


def _parse(name: str, paths: Sequence[Path], out: Path, memory: int) -> tuple[Findings, dict[Path, str]]:
    """Read the copy into arrays under ``out``: what was found, and which files held something of it."""
    shown = ", ".join(str(path) for path in paths)
    found = apart.call(read, name, [str(path) for path in paths], str(out), what=shown, memory=memory)
    counts = {what: (int(ours), int(theirs)) for what, (ours, theirs) in found["counts"].items()}
    return Findings(found["differs"], found["facts"], counts), {
        Path(file): inside for file, inside in found["used"].items()
    }


def read(name: str, files: Sequence[str], out: str) -> dict[str, Any]:
    """Read files, archives or folders as dataset ``name`` into arrays under ``out``, which is made.

    The findings as JSON has them, with the files that held something wanted (``used``). Raises UserError where they are
    not that dataset.
    """
    entry, paths, folder = copies.source(name), [Path(file) for file in files], Path(out)
    folder.mkdir()
    shown, used = ", ".join(files), dict[Path, str]()
    try:
        found = entry.parse(walk(paths, entry.wanted, entry.limit, used), parsed.Writer(folder))
    except UserError as error:
        if any(str(error).startswith(f"{path}: ") for path in paths):
            raise  # an archive that cannot be read holds nothing that is wanted either
        if not used:
            raise UserError(
                f"{shown}: nothing of {entry.name} is in it{_looks_like(entry, paths)}; pass {entry.layouts}"
            ) from error
        if any(str(path) in str(error) for path in paths):
            raise
        raise UserError(f"{shown} cannot be taken as {entry.name}: {error}") from error
    said = {"differs": found.differs, "facts": found.facts, "counts": found.counts}
    return {**said, "used": {str(f): inside for f, inside in used.items()}}


def _refuse_another(name: str, entry: FileSource, paths: Sequence[Path], found: Findings) -> None:
    """Raise UserError where counts are so far off that this is not the dataset, nor a known variant of it."""
    off = [
        f"{ours:,} {what} in place of {theirs:,}"
        for what, (ours, theirs) in found.counts.items()
        if abs(ours - theirs) > NEAR * theirs
    ]
    if off:
        shown = ", ".join(str(path) for path in paths)
        raise UserError(
            f"{shown} is not {entry.title}: {'; '.join(off)}. Ratings of your own are no copy of it: use the dataset "
            f"ratings-file (`fedrepro describe ratings-file`). If it is a part of {name} that you made, add --variant"
        )


def _looks_like(entry: FileSource, paths: Sequence[Path]) -> str:
    """Which other dataset the first file that any of them wants belongs to."""
    others = [other for other in sources().values() if other.name != entry.name]
    try:
        first = next(walk(paths, lambda path: any(o.wanted(path) for o in others), max(o.limit for o in others)), None)
    except UserError:
        return ""
    return "" if first is None else f", it looks like {next(o.name for o in others if o.wanted(first.path))}"


def _refuse_web_page(path: Path, name: str) -> None:
    if path.is_file() and is_web_page(path):
        raise UserError(
            f"{path} is a web page, not a copy of {name}: the download was answered by an error or login page"
        )


def is_web_page(path: Path) -> bool:
    """Whether a file starts as HTML does: a server's error or login page saved in the place of data."""
    with path.open("rb") as stream:
        head = stream.read(512).lstrip().lower()
    return head.startswith((b"<!doctype html", b"<html", b"<head", b"<?xml")) and b"html" in head


def _keep(used: dict[Path, str], folder: Path) -> list[dict[str, Any]]:
    folder.mkdir()
    if len(used) > FEW:
        return [_zipped(used, folder / "folder.zip")]
    records = []
    for file, name in used.items():
        target = folder / name
        if target.exists():
            raise UserError(f"{file}: another file of the same name was given too; import one folder that holds both")
        target.parent.mkdir(parents=True, exist_ok=True)
        with file.open("rb") as source, target.open("wb") as copy:
            md5 = _copy(source, copy)
        shutil.copystat(file, target)
        records.append(_record(target, name, md5))
    return records


def _zipped(used: dict[Path, str], target: Path) -> dict[str, Any]:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for file, name in used.items():
            with file.open("rb") as source, archive.open(zipfile.ZipInfo(name), "w") as copy:
                shutil.copyfileobj(source, copy, 1 << 20)
    return _record(target, target.name, "")


def _copy(source: IO[bytes], copy: IO[bytes]) -> str:
    digest = hashlib.md5(usedforsecurity=False)
    while piece := source.read(1 << 20):
        digest.update(piece)
        copy.write(piece)
    return digest.hexdigest()


def _record(path: Path, name: str, md5: str) -> dict[str, Any]:
    found = path.stat()
    return {
        "path": name,
        "size": found.st_size,
        "mtime_ns": found.st_mtime_ns,
        "sha256": copies.sha256(path),
        "md5": md5,
    }


def _published(entry: FileSource, record: dict[str, Any]) -> bool:
    hashes = {f"md5:{record['md5']}", f"sha256:{record['sha256']}"}
    return any(remote.hash in hashes for remote in entry.files if remote.hash)
