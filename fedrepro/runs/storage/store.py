"""Finished runs on disk: one file per run, named by the run's identity, written atomically when the run ends."""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fedrepro.errors import UserError
from fedrepro.files import atomically, sweep, writing
from fedrepro.ledger import COUNTS
from fedrepro.runs.compute.record import Record, contents


class _NoRecord(ValueError):
    """Raised for bytes that are not the complete record of a run."""


def _record(run: str, content: bytes) -> Record:
    """Return the record in a file's content. Raises _NoRecord if it is not one, or another run's."""
    try:
        arrays = _arrays(content)
        digest = arrays.pop("digest", None)
        if digest is not None and str(digest) != _digest(run, arrays):
            raise _NoRecord("it is not what was written")
        record = Record(
            meta=json.loads(str(arrays["meta"])),
            rounds=arrays["rounds"],
            counts=arrays["counts"],
            metrics={k[7:]: v for k, v in arrays.items() if k.startswith("metric:")},
            seconds=arrays["seconds"],
            artifacts={k[9:]: v for k, v in arrays.items() if k.startswith("artifact:")},
        )
        if digest is None and not _whole(record):  # older versions stored no digest
            raise _NoRecord("a part of it is missing")
        return record
    except MemoryError:  # does not depend on the content
        raise
    except Exception as error:  # anything else that reading bytes raises: they are no record
        raise _NoRecord(str(error)) from error


def _arrays(content: bytes) -> dict[str, np.ndarray]:
    """Return the arrays of an ``.npz`` file; each is read to its end, where its checksum is verified."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: io.BytesIO(archive.read(name)) for name in archive.namelist()}
    return {
        name.removesuffix(".npy"): np.lib.format.read_array(member, allow_pickle=False)
        for name, member in members.items()
    }


def _digest(run: str, arrays: Mapping[str, np.ndarray]) -> str:
    """Return a digest of a run's name and all arrays of its record."""
    digest = hashlib.sha256(run.encode())
    for name, array in sorted(arrays.items()):
        array = np.asarray(array)
        digest.update(json.dumps([name, array.dtype.str, array.shape]).encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _whole(record: Record) -> bool:
    """Return whether a record has all parts and their shapes agree."""
    meta, R = record.meta, record.rounds.shape[0]
    texts = meta["status"] in ("ok", "diverged") and isinstance(meta["reason"], str)
    texts = texts and isinstance(meta.get("size", {}), dict) and isinstance(meta.get("serial", []), list)
    numbers = all(isinstance(meta[key], int | float) for key in ("setup_scalars", "seconds"))
    shapes = record.rounds.shape == record.seconds.shape == (R,) and record.counts.shape == (R, len(COUNTS))
    kinds = record.rounds.dtype.kind in "iu" and {record.counts.dtype.kind, record.seconds.dtype.kind} <= set("iuf")
    metrics = all(v.shape == (R,) and v.dtype.kind in "iufb" for v in record.metrics.values())
    arrays = all(v.ndim > 0 and v.dtype.kind in "iufb" for v in record.artifacts.values())
    return texts and numbers and shapes and kinds and metrics and arrays and R > 0 and bool(record.metrics)


class Store:
    """The folder of finished runs. A failed run leaves a note there, which never counts as finished."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, run: str) -> Path:
        """Return the path of the run's record."""
        return self.root / run[:2] / f"{run}.npz"

    def has(self, run: str) -> bool:
        """Return whether the run is finished."""
        return self.path(run).exists()

    def read(self, run: str) -> Record | None:
        """Return the run's record, or None if there is none.

        A file that contains no valid record is renamed and counts as none. Raises UserError if the file cannot be
        read, because its content is then unknown.
        """
        path = self.path(run)
        try:
            content = path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise UserError(
                f"{path}: cannot be read ({error.strerror}); the run in it is kept: make the file readable, or move it "
                "away so that the run is computed again"
            ) from None
        try:
            return _record(run, content)
        except _NoRecord:
            with writing(path):
                os.replace(path, path.with_name(f"{path.name}.damaged"))
            return None

    def write(self, run: str, record: Record) -> None:
        """Store a finished run and remove the note of an earlier failure."""
        arrays = contents(record)
        arrays["digest"] = np.array(_digest(run, arrays))
        atomically(self.path(run), lambda stream: np.savez_compressed(stream, **arrays))
        self._remove(self._failure(run))

    def forget(self, run: str) -> None:
        """Remove the run's record and failure note."""
        self._remove(self.path(run))
        self._remove(self._failure(run))

    def open(self) -> None:
        """Make the folder, and remove files that killed processes left incomplete. Raises Unwritable."""
        with writing(self.root):
            self.root.mkdir(parents=True, exist_ok=True)
            for folder in (self.root, *(path for path in self.root.iterdir() if path.is_dir())):
                sweep(folder)

    def fail(self, run: str, note: Mapping[str, Any]) -> None:
        """Store why a run failed; the next ``run`` tries it again."""
        text = json.dumps(dict(note), sort_keys=True, indent=1).encode()
        atomically(self._failure(run), text)

    def forget_failure(self, run: str) -> None:
        """Remove the run's failure note."""
        self._remove(self._failure(run))

    def failure(self, run: str) -> dict[str, Any] | None:
        """Return the note of a failed run, or None."""
        try:
            note = json.loads(self._failure(run).read_bytes())
        except (OSError, ValueError, RecursionError):
            return None
        return note if isinstance(note, dict) and isinstance(note.get("why"), str) else None

    @staticmethod
    def _remove(path: Path) -> None:
        with writing(path):
            path.unlink(missing_ok=True)

    def _failure(self, run: str) -> Path:
        return self.root / run[:2] / f"{run}.failed.json"
