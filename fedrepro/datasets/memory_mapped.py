"""Dense matrices that can be larger than memory: mapped from files, checked and transposed block by block.

The kernel keeps as much of a map in memory as there is room for, shares it among processes, and reads the rest again.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from typing import IO

import numpy as np

from fedrepro.files import nameless

_BLOCK_BYTES = 1 << 24
_PANEL_BYTES = 1 << 26
"""Bytes transposed at a time; the larger, the longer the pieces of a row that are read at once."""


def not_finite(A: np.ndarray) -> tuple[int, tuple[int, int] | None]:
    """Return how many entries of a matrix are NaN or infinite, and the first of them (row, column) in reading order."""
    flipped = A.flags.f_contiguous and not A.flags.c_contiguous  # blocks follow the memory
    count, first = 0, None
    for part in _pieces(A.T if flipped else A, _BLOCK_BYTES):
        block = A[:, part] if flipped else A[part]
        bad = np.argwhere(~np.isfinite(block))
        if len(bad):
            row, column = (int(i) for i in bad[0])
            at = (row, column + part.start) if flipped else (row + part.start, column)
            count, first = count + len(bad), at if first is None else min(first, at)
    return count, first


def by_sample(X: np.memmap) -> np.ndarray:
    """Return a map of a (M, N) matrix with the same numbers, in float64 and with each sample (column) contiguous.

    This is the map itself if it has this form, otherwise a map of a nameless copy.
    """
    if not X.T.flags.c_contiguous:
        return _written(_turned(X), X.shape)
    if X.dtype != np.float64:
        return _written((X[:, part].T for part in _pieces(X.T, _BLOCK_BYTES)), X.shape)
    return _at_random(X)


def _at_random(X: np.memmap) -> np.memmap:
    """Tell the kernel not to read ahead: samples are read in the clients' order."""
    pages = X.base
    while isinstance(pages, np.ndarray):
        pages = pages.base
    if isinstance(pages, mmap.mmap) and hasattr(mmap, "MADV_RANDOM"):
        pages.madvise(mmap.MADV_RANDOM)
    return X


def _pieces(rows: np.ndarray, size: int) -> Iterator[slice]:
    """Yield slices of rows that need about ``size`` bytes in float64."""
    step = max(1, size // (8 * rows.shape[1]))
    for first in range(0, rows.shape[0], step):
        yield slice(first, min(first + step, rows.shape[0]))


def _turned(X: np.memmap) -> Iterator[np.ndarray]:
    """Yield blocks of samples, (n, M), of a matrix whose file has row after row: panels of columns, transposed.

    Panels are read, not mapped, because a page fault in every row would read far beyond the piece that is needed.
    """
    M, N = X.shape
    panels = list(_pieces(X.T, _PANEL_BYTES))
    held = np.empty((M, panels[0].stop), X.dtype)
    with open(str(X.filename), "rb", buffering=0) as file:
        for panel in panels:
            width = panel.stop - panel.start
            for i in range(M):
                _fill(file, X.offset + (i * N + panel.start) * X.itemsize, held[i, :width])
            for part in _pieces(held[:, :width].T, _BLOCK_BYTES):
                yield held[:, part].T


def _fill(file: IO[bytes], offset: int, row: np.ndarray) -> None:
    file.seek(offset)
    row[...] = np.fromfile(file, row.dtype, row.size)


def _written(blocks: Iterator[np.ndarray], shape: tuple[int, int]) -> np.ndarray:
    """Write (n, M) blocks as float64 to a nameless file, and return a map of it, (M, N)."""
    M, N = shape
    with nameless() as file:
        for block in blocks:
            file.write(np.ascontiguousarray(block, dtype=np.float64).data)
        file.flush()
        return _at_random(np.memmap(file, np.float64, "r", shape=(N, M)).T)


def magnitude(X: np.ndarray, kind: str) -> float:
    """Return the largest absolute value (``max``) of a matrix or the mean one, block by block along its memory."""
    flipped = X.flags.f_contiguous and not X.flags.c_contiguous
    A = X.T if flipped else X
    largest, total = 0.0, 0.0
    for part in _pieces(A, _BLOCK_BYTES):
        block = np.abs(A[part])
        largest, total = max(largest, float(block.max())), total + float(block.sum())
    return largest if kind == "max" else total / X.size


def divided(X: np.ndarray, unit: float) -> np.ndarray:
    """Return a map of a nameless copy of a map made by ``by_sample``, divided by a number."""
    return _written((X[:, part].T / unit for part in _pieces(X.T, _BLOCK_BYTES)), X.shape)


def standardized(X: np.ndarray) -> np.ndarray:
    """Return a map of a nameless copy of a map made by ``by_sample``, with mean 0 and deviation 1 of each row of X."""
    parts = list(_pieces(X.T, _BLOCK_BYTES))
    mean = sum(X[:, part].sum(axis=1) for part in parts) / X.shape[1]
    sd = np.sqrt(sum(((X[:, part].T - mean) ** 2).sum(axis=0) for part in parts) / X.shape[1])
    sd = np.where(sd > 0.0, sd, 1.0)
    return _written(((X[:, part].T - mean) / sd for part in parts), (X.shape[0], X.shape[1]))
