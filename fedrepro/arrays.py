"""Checks of arrays that a caller passes, with one wording for all of them.

The checks neither change nor copy an array.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedrepro.errors import UserError

IN_RUNS = "says"  # checks change no number; see fedrepro.runs.identity.code


def unmasked(**arrays: Any) -> None:
    """Raise UserError for a masked array: the mask would be lost, and masked values used as data."""
    for name, array in arrays.items():
        if np.ma.isMaskedArray(array):
            raise UserError(
                f"{name}: is a masked array, and its masked values would be used as data; fill it "
                "(numpy.ma.filled), or leave those samples out"
            )


def complete(**arrays: Any) -> None:
    """Raise UserError if labels or other names are missing (NaN, None): they would count as a class."""
    for name, array in arrays.items():
        values = np.ravel(np.asarray(array))
        if array is None or values.dtype.kind not in "fcO":
            continue
        missing = np.array([value is None or value != value for value in values.tolist()], dtype=bool)
        if missing.any():
            raise UserError(
                f"{name}: {np.count_nonzero(missing)} of {values.size} are missing (NaN or None), the first at "
                f"{np.flatnonzero(missing)[0]} (counted from 0); leave those samples out"
            )


def structure(name: str, matrix: Any) -> None:
    """Raise UserError if indices of a sparse matrix are out of range: compiled code would read outside its memory.

    matrix : COO, CSR, CSC or BSR; dense arrays have no such indices, and the code that converts other formats checks
    them itself.
    """
    if getattr(matrix, "format", None) == "coo":
        for axis, index in zip(("row", "column"), (matrix.row, matrix.col), strict=True):
            _inside(name, f"{axis} indices", index, matrix.shape[axis == "column"])
        if not matrix.row.shape == matrix.col.shape == matrix.data.shape:
            raise UserError(f"{name}: is damaged: indices and values of the sparse matrix differ in number")
    elif getattr(matrix, "format", None) in ("csr", "csc", "bsr"):
        rows, columns = (side // block for side, block in zip(matrix.shape, _block(matrix), strict=True))
        lines, across = (columns, rows) if matrix.format == "csc" else (rows, columns)
        indptr, count = np.asarray(matrix.indptr), min(len(matrix.indices), len(matrix.data))
        if indptr.shape != (lines + 1,) or indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any() or indptr[-1] > count:
            raise UserError(
                f"{name}: is damaged: where the {'columns' if matrix.format == 'csc' else 'rows'} of the sparse matrix "
                f"begin (indptr) must be {lines + 1} numbers that rise from 0 to at most {count}"
            )
        _inside(name, "indices", np.asarray(matrix.indices)[: indptr[-1]], across)


def _block(matrix: Any) -> tuple[int, int]:
    return matrix.blocksize if matrix.format == "bsr" else (1, 1)


def _inside(name: str, what: str, index: Any, size: int) -> None:
    index = np.asarray(index)
    if index.size and (index.min() < 0 or index.max() >= size):
        worst = index.min() if index.min() < 0 else index.max()
        raise UserError(f"{name}: is damaged: {what} of the sparse matrix must be 0 to {size - 1}, one is {worst}")
