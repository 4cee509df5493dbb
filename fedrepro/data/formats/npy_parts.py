"""The fast form of a dataset: plain ``.npy`` arrays in parts, memory mapped when read, identified by their content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

IN_RUNS = "computes"  # the arrays that loaders are given; see fedrepro.runs.identity.code


class Writer:
    """Writes the arrays of one dataset to ``folder``; a part contains the arrays that a loader needs together."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def save(self, part: str, name: str, array: np.ndarray) -> None:
        """Store one array of numbers."""
        target = self.folder / part
        target.mkdir(parents=True, exist_ok=True)
        np.save(target / f"{name}.npy", np.ascontiguousarray(array), allow_pickle=False)

    def save_sparse(self, part: str, name: str, matrix: Any) -> None:
        """Store a scipy.sparse matrix as the parts of its CSR form."""
        matrix = matrix.tocsr()
        matrix.sum_duplicates()
        self.save(part, f"{name}.data", matrix.data)
        self.save(part, f"{name}.indices", matrix.indices)
        self.save(part, f"{name}.indptr", matrix.indptr)
        self.save(part, f"{name}.shape", np.asarray(matrix.shape, dtype=np.int64))

    def create(self, part: str, name: str, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """Return an array on disk, to be filled piece by piece."""
        target = self.folder / part
        target.mkdir(parents=True, exist_ok=True)
        return np.lib.format.open_memmap(target / f"{name}.npy", mode="w+", dtype=np.dtype(dtype), shape=shape)


def parts(folder: Path) -> dict[str, str]:
    """Return the fingerprint of every part in ``folder``: a sha256 over names, dtypes, shapes and bytes."""
    return {p.name: fingerprint(p) for p in sorted(folder.iterdir()) if p.is_dir()}


def fingerprint(part: Path) -> str:
    """Return the sha256 of one part."""
    digest = hashlib.sha256()
    for file in sorted(part.glob("*.npy")):
        array = np.load(file, mmap_mode="r", allow_pickle=False)
        head = [file.name, np.dtype(array.dtype).newbyteorder("<").str, list(array.shape)]
        digest.update(json.dumps(head).encode())
        flat = array.reshape(-1)
        for start in range(0, flat.size, 1 << 22):
            digest.update(np.ascontiguousarray(flat[start : start + (1 << 22)]).tobytes())
    return digest.hexdigest()


def combine(fingerprints: Mapping[str, str]) -> str:
    """Return one fingerprint for several parts."""
    if len(fingerprints) == 1:
        return next(iter(fingerprints.values()))
    return hashlib.sha256(json.dumps(sorted(fingerprints.items())).encode()).hexdigest()


def read(folder: Path, part: str) -> dict[str, np.ndarray]:
    """Return the arrays of a part by name, memory-mapped read-only."""
    return {
        file.stem: np.load(file, mmap_mode="r", allow_pickle=False) for file in sorted((folder / part).glob("*.npy"))
    }


def sparse(arrays: Mapping[str, np.ndarray], name: str) -> Any:
    """Return the CSR matrix that ``save_sparse`` stored under ``name``."""
    from scipy.sparse import csr_matrix

    parts = tuple(np.array(arrays[f"{name}.{piece}"]) for piece in ("data", "indices", "indptr"))
    matrix = csr_matrix(parts, shape=tuple(int(s) for s in arrays[f"{name}.shape"]))
    matrix.has_canonical_format = True
    return matrix
