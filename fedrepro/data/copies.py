"""The copies in the data home: their states, and the arrays that loaders read.

A dataset's folder contains ``files/`` (the original copy), ``parsed-<version>/`` (its arrays) and ``manifest.json``,
which is written last; a folder without it is ignored.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fedrepro.data import isolated
from fedrepro.data.data_home import home, locked, place, staging
from fedrepro.data.formats import npy_parts
from fedrepro.data.source import FileSource, Findings, sources
from fedrepro.errors import DataAbsent, UserError, nearest
from fedrepro.files import atomically

MANIFEST = "manifest.json"
SAME = "the published content in other files"
UNVERIFIED = "sizes and counts are the official ones; no published hash to compare with"


@dataclass(frozen=True)
class CopyState:
    """The state of a dataset: ``present``, ``variant`` (a copy that differs), ``damaged`` or ``absent``.

    fingerprint : sha256 of the content as it is read, from any archive; '' without a copy. size : bytes of the copy.
    note : what a user should know, for example how a variant differs.
    """

    name: str
    state: str
    fingerprint: str
    size: int
    where: str
    licence: str
    note: str


@dataclass
class Manifest:
    """The record of an imported copy."""

    name: str
    how: str
    official: bool
    files: list[dict[str, Any]]
    parser: int
    parts: dict[str, str]
    differs: list[str] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def fingerprint(self) -> str:
        """The fingerprint of all parts together."""
        return npy_parts.combine(self.parts)

    def write(self, folder: Path) -> None:
        """Write the record into ``folder`` atomically."""
        atomically(folder / MANIFEST, (json.dumps(asdict(self), indent=1, sort_keys=True) + "\n").encode())


def source(name: str) -> FileSource:
    """Return the source with this name. Raises UserError with the nearest name."""
    known = sources()
    if name not in known:
        names = ", ".join(sorted(known))
        raise UserError(f"'{name}' is not a dataset with files{nearest(name, known)} (datasets with files: {names})")
    return known[name]


def manifest(name: str) -> Manifest | None:
    """Return the record of a copy, or None if there is none."""
    try:
        return Manifest(**json.loads((place(name) / MANIFEST).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError):
        return Manifest(name, "unreadable record", False, [], -1, {})


def state(name: str, *, verify: bool = False) -> CopyState:
    """Return the state of a dataset from sizes and times of its files; ``verify`` hashes everything again."""
    entry = source(name)
    record = manifest(name)

    def copy_state(word: str, note: str, fingerprint: str = "", size: int = 0) -> CopyState:
        return CopyState(name, word, fingerprint, size, str(place(name)), entry.licence, note)

    if record is None:
        return copy_state("absent", f"import {entry.layouts}, or fetch it")
    wrong = _damage(name, record, verify)
    if wrong:
        return copy_state("damaged", f"{wrong}; import or fetch it again")
    size = sum(file["size"] for file in record.files)
    differs = record.differs or _unlike(entry, record)
    notes = [*differs, *(str(n) for n in record.facts.get("notes", []))]
    if not record.official and not differs:
        compared = record.facts.get("verified") or len(_known(entry, record)) == len(record.parts)
        notes.append(SAME if compared else UNVERIFIED)
    return copy_state("variant" if differs else "present", "; ".join(notes), record.fingerprint, size)


def _unlike(entry: FileSource, record: Manifest) -> list[str]:
    """Return a note if the arrays of a copy differ from the published ones, as far as these are known."""
    known = _known(entry, record)
    same = all(record.parts[part] == published for part, published in known.items())
    return [] if same else [f"{entry.uses} differ from the published ones"]


def _known(entry: FileSource, record: Manifest) -> dict[str, str]:
    """Return the published fingerprints of a copy's parts; none for arrays of an older parser, which may differ."""
    current = record.parser == entry.version
    return {part: entry.published[part] for part in record.parts if current and part in entry.published}


def _damage(name: str, record: Manifest, verify: bool) -> str | None:
    if not record.files:
        return f"its record {MANIFEST} cannot be read"
    for file in record.files:
        path = place(name) / "files" / file["path"]
        try:
            stat = path.stat()
        except OSError:
            return f"the file {file['path']} is missing"
        if stat.st_size != file["size"]:
            return f"the file {file['path']} has {stat.st_size:,} bytes, {file['size']:,} were recorded"
        touched = stat.st_mtime_ns != file["mtime_ns"]
        if (touched or verify) and sha256(path) != file["sha256"]:
            return f"the file {file['path']} has changed since it was imported"
        if touched:
            _remember_time(name, record, file, stat.st_mtime_ns)
    folder = _parsed(name, record.parser)
    if verify and folder.exists() and npy_parts.parts(folder) != record.parts:
        return "its parsed arrays have changed since they were written"
    return None


def _remember_time(name: str, record: Manifest, file: dict[str, Any], mtime_ns: int) -> None:
    """Store the new time of an unchanged file (of a copied data home), so that it is not hashed again next time."""
    file["mtime_ns"] = mtime_ns
    with contextlib.suppress(OSError):  # a data home that cannot be written is still readable
        record.write(place(name))


def folder(name: str, params: Mapping[str, Any] | None = None) -> Path:
    """Return the folder of arrays that a loader reads. Raises DataAbsent with the commands to try."""
    return _parsed(name, _ready(name, params).parser)


def fingerprint(name: str, params: Mapping[str, Any] | None = None) -> str:
    """Return the sha256 of the parts that a loader with these parameters reads (by default all)."""
    record = _ready(name, params)
    wanted = source(name).needs(params) if params is not None else tuple(record.parts)
    return npy_parts.combine({part: record.parts[part] for part in wanted})


def published_fingerprint(name: str, params: Mapping[str, Any]) -> str:
    """Return the fingerprint that ``fingerprint`` has for the published files; '' if it is not known."""
    entry = source(name)
    wanted = entry.needs(params)
    known = all(part in entry.published for part in wanted)
    return npy_parts.combine({part: entry.published[part] for part in wanted}) if known else ""


def arrays(name: str, params: Mapping[str, Any]) -> list[Path]:
    """Return the files of arrays that a loader with these parameters reads."""
    where = folder(name, params)
    return [file for part in source(name).needs(params) for file in sorted((where / part).glob("*.npy"))]


def _ready(name: str, params: Mapping[str, Any] | None) -> Manifest:
    entry, now = source(name), state(name)
    record = manifest(name)
    if now.state in ("absent", "damaged") or record is None:
        raise DataAbsent(name, f"{name} is {now.state}{_because(now)}; {_commands(entry)}")
    if record.parser != entry.version or not _parsed(name, record.parser).exists():
        record = _parse_again(entry)
    missing = [] if params is None else [part for part in entry.needs(params) if part not in record.parts]
    if missing:
        raise DataAbsent(
            name,
            f"the copy of {name} lacks {', '.join(missing)} (it has {', '.join(record.parts)}); {_commands(entry)}",
        )
    return record


def _because(now: CopyState) -> str:
    if now.state == "absent":
        return f" from the data home {home()}"
    return f" ({now.note.removesuffix('; import or fetch it again')})"


def _commands(entry: FileSource) -> str:
    accept = "" if entry.pinned else " --accept"
    return (
        f"try 'fedrepro data fetch {entry.name}{accept}', or 'fedrepro data import {entry.name} PATH' "
        f"with {entry.layouts}"
    )


def _parsed(name: str, version: int) -> Path:
    return place(name) / f"parsed-{version}"


def _parse_again(entry: FileSource) -> Manifest:
    with locked(entry.name):
        record = manifest(entry.name)
        assert record is not None
        final = _parsed(entry.name, entry.version)
        if record.parser == entry.version and final.exists():
            return record  # another process was quicker
        with staging(entry.name) as work:
            files = place(entry.name) / "files"
            arguments = (entry.name, str(files), str(work / "parsed"))
            findings = Findings(**isolated.call(parse, *arguments, what=str(files), memory=isolated.fair([files])))
            old = _parsed(entry.name, record.parser)
            record.parser, record.parts = entry.version, npy_parts.parts(work / "parsed")
            record.differs, record.facts = findings.differs, findings.facts
            if final.exists():
                shutil.rmtree(final)
            os.replace(work / "parsed", final)
            record.write(place(entry.name))
            if old != final:
                shutil.rmtree(old, ignore_errors=True)
        return record


def parse(name: str, files: str, out: str) -> dict[str, Any]:
    """Read the copy of a dataset in ``files`` into arrays in the new folder ``out``; return the findings as JSON.

    For ``isolated.call``.
    """
    return asdict(source(name).read([Path(files)], Path(out)))


def remove(name: str) -> bool:
    """Delete a dataset from the data home; return False if there was none."""
    source(name)
    with locked(name):
        if not place(name).exists():
            return False
        with staging(name) as work:
            os.replace(place(name), work / "gone")
    return True


def sha256(path: Path) -> str:
    """Return the sha256 of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while piece := stream.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()
