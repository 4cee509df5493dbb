"""The data of the clustering problem: samples as rows, ordered by client.

In the papers a sample is a column of ``X``, and client ``p`` holds the columns ``X_p``. With samples as rows, ordered
by client, every ``X_p`` is one contiguous slice of a dense (C-contiguous) or sparse (CSR) array, which processes can
memory map and share. ``order`` contains the original position of each row.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from fedrepro import arrays
from fedrepro.errors import UserError
from fedrepro.parameters import squares_fit

_BLOCK_BYTES = 1 << 24
"""Copies and statistics read X in blocks of this size, so that there is no second X in memory."""


Rows = slice | np.ndarray
"""A block of rows: a slice, or row numbers in increasing order."""


@dataclass(frozen=True)
class Ordered:
    """The data of all clients.

    rows : (N, M) float64, C-contiguous array or scipy.sparse CSR matrix; row i is sample ``order[i]`` of the caller.
    order : (N,) intp. starts : (P + 1,) intp; client p holds rows ``starts[p]`` to ``starts[p + 1]``.
    labels : (N,) integers 0 .. K-1 in the order of the rows, or None.
    facts : ``norm2`` (||X||_F^2), ``min``, ``max``, ``abs_mean`` (mean of |X_ij|), ``K`` (classes, or None).
    """

    rows: Any
    order: np.ndarray
    starts: np.ndarray
    labels: np.ndarray | None
    facts: dict[str, Any]


def arrange(X: Any, client: Any, labels: Any, K: int | None) -> Ordered:
    """Order samples in memory by client, with at most one copy (none if they are already ordered).

    X : (M, N) array or sparse matrix, one column per sample; duplicate entries of a sparse one are summed, in a copy.
    client : (N,) ids 0 .. P-1, None for one client. labels : (N,) classes, or None. K : number of classes; None for the
    number of distinct labels. Raises UserError for invalid shapes, ids or values.
    """
    _check_matrix(X)
    order, starts = _by_client(client, X.shape[1])
    labels, K = _classes(labels, K, X.shape[1])
    rows = _sorted_rows(X, order)
    facts = {**_facts(_in_blocks(rows), order, X.shape[0]), "K": K}
    return Ordered(rows, order, starts, None if labels is None else labels[order], facts)


def write(folder: Path, X: Any, client: Any, labels: Any, K: int | None) -> None:
    """Write the ordered form into ``folder``, block by block, for ``read``. Arguments and errors as ``arrange``."""
    _check_matrix(X)
    folder = Path(folder)
    order, starts = _by_client(client, X.shape[1])
    labels, K = _classes(labels, K, X.shape[1])
    np.save(folder / "order.npy", order)
    np.save(folder / "starts.npy", starts)
    if labels is not None:
        np.save(folder / "labels.npy", labels[order])
    write_rows = _write_sparse if scipy.sparse.issparse(X) else _write_dense
    facts = {**_facts(write_rows(folder, X, order), order, X.shape[0]), "K": K}
    (folder / "facts.json").write_text(json.dumps(facts, sort_keys=True) + "\n", encoding="utf-8")


def read(folder: Path) -> Ordered:
    """Read the files of ``write``, with the samples memory mapped read-only."""
    folder = Path(folder)
    labels = np.load(folder / "labels.npy") if (folder / "labels.npy").exists() else None
    facts = json.loads((folder / "facts.json").read_text(encoding="utf-8"))
    return Ordered(_read_rows(folder), np.load(folder / "order.npy"), np.load(folder / "starts.npy"), labels, facts)


def take(rows: Any, part: Rows) -> Any:
    """Rows ``part``. For a slice, a view: an array slice, or a CSR matrix on slices of the same buffers."""
    if not scipy.sparse.issparse(rows) or not isinstance(part, slice):
        return rows[part]
    first, last = rows.indptr[part.start], rows.indptr[part.stop]
    indptr = rows.indptr[part.start : part.stop + 1] - first
    shape = (part.stop - part.start, rows.shape[1])
    return scipy.sparse.csr_matrix((rows.data[first:last], rows.indices[first:last], indptr), shape=shape)


def nbytes(rows: Any) -> int:
    """Bytes of an array or a CSR matrix."""
    return sum(
        part.nbytes for part in ((rows.data, rows.indices, rows.indptr) if scipy.sparse.issparse(rows) else (rows,))
    )


def pieces(first: int, last: int, size: int) -> Iterator[slice]:
    """Cut rows ``first`` to ``last`` into slices of at most ``size`` rows."""
    for start in range(first, last, size):
        yield slice(start, min(start + size, last))


def _check_matrix(X: Any) -> None:
    if not scipy.sparse.issparse(X) and not isinstance(X, np.ndarray):
        raise UserError(f"X: must be a NumPy array or a scipy.sparse matrix, not {type(X).__name__}")
    if X.ndim != 2 or 0 in X.shape:
        raise UserError(f"X: must be a matrix with one column per sample, not of shape {X.shape}")
    if X.dtype.kind not in "fiub":
        raise UserError(f"X: must contain real numbers, not {X.dtype}")
    arrays.unmasked(X=X)
    arrays.structure("X", X)


def _by_client(client: Any, N: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of client 0, then of client 1 ...; within a client in the caller's order."""
    if client is None:
        return np.arange(N), np.array([0, N])
    arrays.unmasked(client=client)
    client = np.asarray(client)
    if client.shape != (N,):
        raise UserError(f"client: must contain one client id for each of the {N} samples, not shape {client.shape}")
    if client.dtype.kind not in "iu" or client.min() < 0:
        raise UserError("client: ids must be the integers 0 to P-1")
    counts = np.bincount(client)
    if not counts.all():
        empty = int(np.flatnonzero(counts == 0)[0])
        raise UserError(
            f"client: client {empty} of 0 to {counts.size - 1} has no samples; number the clients 0 to P-1 without gaps"
        )
    return np.argsort(client, kind="stable"), np.concatenate(([0], np.cumsum(counts)))


def _classes(labels: Any, K: int | None, N: int) -> tuple[np.ndarray | None, int | None]:
    """Labels as 0 .. K-1, and K (by default the number of distinct labels)."""
    if labels is None:
        return None, K
    arrays.unmasked(labels=labels)
    arrays.complete(labels=labels)
    labels = np.asarray(labels)
    if labels.shape != (N,):
        raise UserError(f"labels: must contain one label for each of the {N} samples, not shape {labels.shape}")
    distinct, codes = np.unique(labels, return_inverse=True)
    return codes.astype(np.intp), int(distinct.size) if K is None else int(K)


def _row_bytes(X: Any, N: int) -> float:
    return 12.0 * X.nnz / N if scipy.sparse.issparse(X) else 8.0 * X.size / N


def _blocks(X: Any, N: int) -> Iterator[slice]:
    return pieces(0, N, max(1, int(_BLOCK_BYTES / max(1.0, _row_bytes(X, N)))))


def _sorted_rows(X: Any, order: np.ndarray) -> Any:
    in_order = np.array_equal(order, np.arange(order.size))
    if scipy.sparse.issparse(X):
        rows = scipy.sparse.csr_matrix(X.T).astype(np.float64, copy=False)
        if not rows.has_canonical_format:  # as the caller's arrays may be: theirs stay as they are
            rows = rows.copy()
            rows.sum_duplicates()
        return rows if in_order else rows[order]
    if in_order and X.dtype == np.float64 and X.T.flags.c_contiguous:
        return X.T
    rows = np.empty((X.shape[1], X.shape[0]))
    for part in _blocks(X, order.size):
        rows[part] = X[:, order[part]].T
    return rows


def _in_blocks(rows: Any) -> Iterator[tuple[slice, Any]]:
    for part in _blocks(rows, rows.shape[0]):
        yield part, take(rows, part)


def _facts(blocks: Iterable[tuple[slice, Any]], order: np.ndarray, M: int) -> dict[str, float]:
    """Facts of all rows, read in blocks.

    Sums add the samples in the caller's order, so they are the same to the last bit for every partition.
    """
    N = order.size
    square, absolute = np.empty(N), np.empty(N)
    lowest, highest = np.inf, -np.inf
    for part, block in blocks:
        if scipy.sparse.issparse(block):
            square[order[part]] = np.asarray(block.multiply(block).sum(axis=1)).ravel()
            absolute[order[part]] = np.asarray(abs(block).sum(axis=1)).ravel()
        else:
            square[order[part]] = np.einsum("ij,ij->i", block, block)
            absolute[order[part]] = np.abs(block).sum(axis=1)
        lowest, highest = min(lowest, block.min()), max(highest, block.max())
    norm2 = float(square.sum())
    squares_fit("X", float(absolute.sum()), norm2)
    if not np.isfinite(norm2):
        bad = int(np.flatnonzero(~np.isfinite(square))[0])
        raise UserError(f"X: sample {bad} (counted from 0) contains a value that is not finite")
    if norm2 == 0.0:
        raise UserError("X: is zero everywhere, so there is nothing to factorize")
    return {
        "norm2": norm2,
        "abs_mean": float(absolute.sum() / (M * N)),
        "min": float(lowest),
        "max": float(highest),
    }


def _write_dense(folder: Path, X: np.ndarray, order: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """Write a ``.npy`` file as ``numpy.save`` does, block by block, and yield each block."""
    header = {"descr": "<f8", "fortran_order": False, "shape": (X.shape[1], X.shape[0])}
    with (folder / "rows.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for part in _blocks(X, order.size):
            block = np.ascontiguousarray(X[:, order[part]].T, dtype="<f8")
            file.write(block.data)
            yield part, block


def _write_sparse(folder: Path, X: Any, order: np.ndarray) -> Iterator[tuple[slice, Any]]:
    rows = _sorted_rows(X, order)
    for name in ("data", "indices", "indptr"):
        np.save(folder / f"rows_{name}.npy", getattr(rows, name))
    np.save(folder / "rows_shape.npy", np.array(rows.shape))
    yield from _in_blocks(rows)


def _read_rows(folder: Path) -> Any:
    def mapped(name: str) -> np.ndarray:
        return np.asarray(np.load(folder / name, mmap_mode="r"))

    if (folder / "rows.npy").exists():
        return mapped("rows.npy")
    parts = (mapped("rows_data.npy"), mapped("rows_indices.npy"), mapped("rows_indptr.npy"))
    return scipy.sparse.csr_matrix(parts, shape=tuple(np.load(folder / "rows_shape.npy")))
