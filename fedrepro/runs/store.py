"""Finished runs on disk: one file each, named by the run's identity, written atomically the moment the run ends."""

from __future__ import annotations

import io
import json
import os
import struct
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fedrepro.errors import UserError
from fedrepro.files import atomically


@dataclass
class Record:
    """What one run gave: ``rounds``, ``seconds`` and each metric (R,), ``counts`` (R, 4) in the order of COUNTS."""

    meta: dict[str, Any]
    rounds: np.ndarray
    counts: np.ndarray
    metrics: dict[str, np.ndarray]
    seconds: np.ndarray
    artifacts: dict[str, np.ndarray] = field(default_factory=dict)


_NO_RECORD = (ValueError, KeyError, EOFError, NotImplementedError, zipfile.BadZipFile, zlib.error, struct.error)
"""What reading bytes raises that are not a whole record."""


def _record(content: bytes) -> Record:
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    return Record(
        meta=json.loads(str(arrays["meta"])),
        rounds=arrays["rounds"],
        counts=arrays["counts"],
        metrics={k[7:]: v for k, v in arrays.items() if k.startswith("metric:")},
        seconds=arrays["seconds"],
        artifacts={k[9:]: v for k, v in arrays.items() if k.startswith("artifact:")},
    )


class Store:
    """The folder of finished runs. A run that failed leaves a note beside, which never counts as finished."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, run: str) -> Path:
        """Where the run's record lies."""
        return self.root / run[:2] / f"{run}.npz"

    def has(self, run: str) -> bool:
        """Whether the run is finished."""
        return self.path(run).exists()

    def read(self, run: str) -> Record | None:
        """The run's record, or None where there is none.

        A file whose content is no record is set aside under another name, and counts as none. Raises UserError where
        the file cannot be read: that says nothing of its content.
        """
        path = self.path(run)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise UserError(f"{path}: cannot be read ({error.strerror}); the run in it is kept as it is") from None
        try:
            return _record(content)
        except _NO_RECORD:
            os.replace(path, path.with_name(f"{path.name}.damaged"))
            return None

    def write(self, run: str, record: Record) -> None:
        """Store a finished run and forget an earlier failure of it."""
        arrays: dict[str, Any] = {
            "meta": np.array(json.dumps(record.meta, sort_keys=True)),
            "rounds": record.rounds,
            "counts": record.counts,
            "seconds": record.seconds,
            **{f"metric:{k}": v for k, v in record.metrics.items()},
            **{f"artifact:{k}": v for k, v in record.artifacts.items()},
        }
        atomically(self.path(run), lambda stream: np.savez_compressed(stream, **arrays))
        self._failure(run).unlink(missing_ok=True)

    def forget(self, run: str) -> None:
        """Remove the run's record and failure note."""
        self.path(run).unlink(missing_ok=True)
        self._failure(run).unlink(missing_ok=True)

    def fail(self, run: str, note: Mapping[str, Any]) -> None:
        """Note why a run failed; the next ``run`` tries it again."""
        text = json.dumps(dict(note), sort_keys=True, indent=1).encode()
        atomically(self._failure(run), text)

    def failure(self, run: str) -> dict[str, Any] | None:
        """The note of a failed run, or None."""
        try:
            return json.loads(self._failure(run).read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return None

    def _failure(self, run: str) -> Path:
        return self.root / run[:2] / f"{run}.failed.json"
