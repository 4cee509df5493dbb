"""Small copies in the official formats, made by the tests that read them."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import scipy.io
import scipy.sparse as sp

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


def idx(array: np.ndarray) -> bytes:
    """An IDX file of unsigned bytes."""
    head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, dtype=">u4").tobytes()
    return head + array.astype(np.uint8).tobytes()


def mnist(folder: Path, n: int = 40, compress: bool = True, train: bool = False) -> Path:
    """An IDX pair of ``n`` images whose every pixel is the image's number, labels 0..9 in turn."""
    folder.mkdir(parents=True, exist_ok=True)
    pixels = np.repeat(np.arange(n, dtype=np.uint8), 784).reshape(n, 28, 28)
    labels = np.arange(n) % 10
    stem = "train" if train else "t10k"
    for kind, array in (("images-idx3", pixels), ("labels-idx1", labels)):
        raw = idx(array)
        name = f"{stem}-{kind}-ubyte" + (".gz" if compress else "")
        (folder / name).write_bytes(gzip.compress(raw, mtime=0) if compress else raw)
    return folder


def tdt2(folder: Path, documents: int = 60, terms: int = 30, K: int = 3) -> Path:
    """A TDT2.mat whose term k marks class k."""
    folder.mkdir(parents=True, exist_ok=True)
    draw = np.random.default_rng(0)
    labels = np.arange(documents) % K
    counts = draw.poisson(0.3, size=(documents, terms)).astype(float)
    counts[np.arange(documents), labels] += 5
    scipy.io.savemat(folder / "TDT2.mat", {"fea": sp.csc_matrix(counts), "gnd": labels[:, None] + 1.0})
    return folder / "TDT2.mat"
