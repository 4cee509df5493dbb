"""Dense matrices that may be larger than memory: looked through and turned block by block, mapped from files.

The kernel keeps as much of a map as there is room for and shares it among processes; what it drops it reads again.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from typing import IO

import numpy as np

from fedrepro.files import nameless

_BLOCK_BYTES = 1 << 24
_PANEL_BYTES = 1 << 26
"""Turned at a time: the larger, the longer the pieces of a row that are read in one go."""


def not_finite(A: np.ndarray) -> tuple[int, tuple[int, int] | None]:
    """How many entries of a matrix are NaN or infinite, and the first of them (row, column) in reading order."""
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
    """A map of a (M, N) matrix with the same numbers, in float64 and with each sample (column) in one piece.

    That is the map itself where it is so already, else one of a nameless copy.
    """
    if not X.T.flags.c_contiguous:
        return _written(_turned(X), X.shape)
    if X.dtype != np.float64:
        return _written((X[:, part].T for part in _pieces(X.T, _BLOCK_BYTES)), X.shape)
    return _at_random(X)


def _at_random(X: np.memmap) -> np.memmap:
    """Tell the kernel that samples are wanted in the clients' order: reading ahead of each would read the file anew."""
    pages = X.base
    while isinstance(pages, np.ndarray):
        pages = pages.base
    if isinstance(pages, mmap.mmap) and hasattr(mmap, "MADV_RANDOM"):
        pages.madvise(mmap.MADV_RANDOM)
    return X


def _pieces(rows: np.ndarray, size: int) -> Iterator[slice]:
    """Slices of rows that take about ``size`` bytes in float64."""
    step = max(1, size // (8 * rows.shape[1]))
    for first in range(0, rows.shape[0], step):
        yield slice(first, min(first + step, rows.shape[0]))


def _turned(X: np.memmap) -> Iterator[np.ndarray]:
    """Blocks of samples, (n, M), of a matrix whose file has row after row: panels of columns are read, then turned.

    They are read and not mapped, as a page fault in every row would read far ahead of the piece that is wanted.
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
    """A map of (n, M) blocks, written one after another as float64 into a nameless file: (M, N)."""
    M, N = shape
    with nameless() as file:
        for block in blocks:
            file.write(np.ascontiguousarray(block, dtype=np.float64).data)
        file.flush()
        return _at_random(np.memmap(file, np.float64, "r", shape=(N, M)).T)


def magnitude(X: np.ndarray, kind: str) -> float:
    """The largest absolute value (``max``) or the mean one of a matrix, block by block along its memory."""
    flipped = X.flags.f_contiguous and not X.flags.c_contiguous
    A = X.T if flipped else X
    largest, total = 0.0, 0.0
    for part in _pieces(A, _BLOCK_BYTES):
        block = np.abs(A[part])
        largest, total = max(largest, float(block.max())), total + float(block.sum())
    return largest if kind == "max" else total / X.size


def divided(X: np.ndarray, unit: float) -> np.ndarray:
    """A map of a nameless copy of a map made by ``by_sample``, divided by a number."""
    return _written((X[:, part].T / unit for part in _pieces(X.T, _BLOCK_BYTES)), X.shape)
