"""Import a copy into the data home: read and check it, copy it, hash it, and only then make it visible."""

from __future__ import annotations

import dataclasses
import hashlib
import shutil
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from fedrepro.data import copies, isolated
from fedrepro.data.data_home import locked, place, room_for, staging, swap
from fedrepro.data.formats import npy_parts
from fedrepro.data.formats.trees import walk
from fedrepro.data.source import FileSource, Findings, sources
from fedrepro.errors import UserError

NEAR = 0.05
"""Largest deviation of a variant's counts, as a share of the official ones; beyond it is another dataset."""

FEW = 32  # a folder of more files than this is kept as one zip


def adopt(name: str, paths: Sequence[Path], *, how: str = "imported", variant: bool = False) -> copies.CopyState:
    """Import files, archives or folders as the copy of dataset ``name``, and replace an earlier copy.

    variant : accept content that is far smaller or larger than the official one. Raises UserError if it is another
    dataset, damaged, or too large for the disk; an earlier copy is then kept.
    """
    entry = copies.source(name)
    for path in paths:
        if not path.exists():
            raise UserError(f"{path} does not exist")
        try:
            _refuse_web_page(path, name)
        except OSError as error:
            raise UserError(f"{path} cannot be read ({error.strerror})") from error
    memory = isolated.fair(paths)
    with locked(name), staging(name) as work:
        new = work / "new"
        new.mkdir()
        findings, used = _parse(name, paths, new / f"parsed-{entry.version}", memory)
        if not variant:
            _refuse_another(name, entry, paths, findings)
        room_for(sum(file.stat().st_size for file in used), f"the copy of {name}")
        records = _keep(used, new / "files")
        official = all(_published(entry, record) for record in records)
        parts = npy_parts.parts(new / f"parsed-{entry.version}")
        copies.Manifest(name, how, official, records, entry.version, parts, findings.differs, findings.facts).write(new)
        swap(new, place(name))
    return copies.state(name)


def _parse(name: str, paths: Sequence[Path], out: Path, memory: int) -> tuple[Findings, dict[Path, str]]:
    """Read the copy into arrays in ``out``; return the findings, and the files that were used."""
    shown = ", ".join(str(path) for path in paths)
    answer = isolated.call(read, name, [str(path) for path in paths], str(out), what=shown, memory=memory)
    counts = {what: (int(ours), int(theirs)) for what, (ours, theirs) in answer["counts"].items()}
    used = {Path(file): inside for file, inside in answer["used"].items()}
    return Findings(answer["differs"], answer["facts"], counts), used


def read(name: str, files: Sequence[str], out: str) -> dict[str, Any]:
    """Read files, archives or folders as dataset ``name`` into arrays in the new folder ``out``.

    Returns the findings as JSON, with the files that were used. Raises UserError if they are not that dataset.
    """
    entry, paths = copies.source(name), [Path(file) for file in files]
    shown, used = ", ".join(files), dict[Path, str]()
    try:
        findings = entry.read(paths, Path(out), used)
    except UserError as error:
        if any(str(error).startswith(f"{path}: ") for path in paths):
            raise  # an unreadable archive also contains nothing of the dataset
        if not used:
            raise UserError(
                f"{shown}: contains nothing of {entry.name}{_looks_like(entry, paths)}; pass {entry.layouts}"
            ) from error
        if any(str(path) in str(error) for path in paths):
            raise
        raise UserError(f"{shown} cannot be imported as {entry.name}: {error}") from error
    return {**dataclasses.asdict(findings), "used": {str(file): inside for file, inside in used.items()}}


def _refuse_another(name: str, entry: FileSource, paths: Sequence[Path], findings: Findings) -> None:
    """Raise UserError if counts differ so much that this is neither the dataset nor a known variant of it."""
    off = [
        f"{ours:,} {what} instead of {theirs:,}"
        for what, (ours, theirs) in findings.counts.items()
        if abs(ours - theirs) > NEAR * theirs
    ]
    if off:
        shown = ", ".join(str(path) for path in paths)
        raise UserError(
            f"{shown} is not {entry.title}: {'; '.join(off)}. For your own ratings use the dataset ratings-file "
            f"(`fedrepro describe ratings-file`). If it is your own part of {name}, add --variant"
        )


def _looks_like(entry: FileSource, paths: Sequence[Path]) -> str:
    """Return a note if the first known file belongs to another dataset."""
    others = [other for other in sources().values() if other.name != entry.name]
    try:
        first = next(walk(paths, lambda path: any(o.wanted(path) for o in others), max(o.limit for o in others)), None)
    except UserError:
        return ""
    return "" if first is None else f", it looks like {next(o.name for o in others if o.wanted(first.path))}"


def _refuse_web_page(path: Path, name: str) -> None:
    if path.is_file() and is_web_page(path):
        raise UserError(f"{path} is a web page, not a copy of {name}: the server answered with an error or login page")


def is_web_page(path: Path) -> bool:
    """Return whether a file starts like HTML: a server's error or login page that was saved instead of data."""
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
            raise UserError(f"{file}: another file has the same name; import one folder that contains both")
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
    stat = path.stat()
    return {
        "path": name,
        "size": stat.st_size,
        "mtime_ns": stat.st_mtime_ns,
        "sha256": copies.sha256(path),
        "md5": md5,
    }


def _published(entry: FileSource, record: dict[str, Any]) -> bool:
    hashes = {f"md5:{record['md5']}", f"sha256:{record['sha256']}"}
    return any(remote.hash in hashes for remote in entry.files if remote.hash)
