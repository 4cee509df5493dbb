"""Read the arrays of a user's file by name: columns of a table, variables of an archive, or one matrix ``X``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from fedrepro.data.formats.matlab import matlab
from fedrepro.data.formats.matrix_market import matrix_market
from fedrepro.errors import UserError

IN_RUNS = "computes"  # a user's own file has the fingerprint of its bytes, not of its arrays

ARCHIVES = (".npz", ".mat")
TABLES = (".csv", ".parquet")


def named_arrays(path: Path) -> dict[str, Any]:
    """Return the arrays in a file by name. Columns without names are called 0, 1, ...

    A .npy file is memory-mapped. Raises UserError if the file cannot be read.
    """
    try:
        return _READERS[path.suffix.lower()](path)
    except UserError:
        raise
    except Exception as error:  # readers raise any error on broken bytes
        raise UserError(f"{path} cannot be read as {path.suffix} ({error})") from error


def _npz(path: Path) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as archive:
        if {"format", "shape", "data"} <= set(archive.files):
            from scipy.sparse import load_npz

            return {"X": load_npz(path)}
        return {name: archive[name] for name in archive.files}


def _npy(path: Path) -> dict[str, Any]:
    try:
        return {"X": np.load(path, mmap_mode="r", allow_pickle=False)}
    except ValueError:  # not mappable (objects, no entries): reading gives a better error
        return {"X": np.load(path, allow_pickle=False)}


def _csv(path: Path) -> dict[str, Any]:
    """Return the columns of a table; a first row with any text is a header."""
    import pandas as pd

    try:
        first = pd.read_csv(path, header=None, nrows=1, dtype=str, keep_default_na=False).iloc[0].tolist()
        header = any(cell and not is_number(cell) for cell in first)
        table = pd.read_csv(path, header=None, skiprows=int(header), float_precision="round_trip")
    except pd.errors.EmptyDataError:
        raise UserError(f"{path}: has no rows of numbers") from None
    if table.shape[1] != len(first):  # pandas would take the first column for names of rows, or make columns up
        raise UserError(f"{path}: its first row has {len(first)} columns, the rows below have {table.shape[1]}")
    names = _distinct(path, [cell.strip() for cell in first]) if header else map(str, range(len(first)))
    return {name: table[column].to_numpy() for column, name in enumerate(names)}


def _distinct(path: Path, names: list[str]) -> list[str]:
    """Return names of columns; those that occur more than once get the number of the column."""
    repeated = {name for name in names if names.count(name) > 1}
    if numbers := sorted(filter(is_number, repeated)):
        text = next(name for name in names if name and not is_number(name))
        raise UserError(f"{path}: '{text[:40]}' in its first row is not a number, but {numbers[0]} occurs twice there")
    return [f"{name} (column {i})" if name in repeated else name for i, name in enumerate(names, start=1)]


def _parquet(path: Path) -> dict[str, Any]:
    import pandas as pd

    try:
        table = pd.read_parquet(path)
    except ImportError as error:
        raise UserError(
            f"{path} is a Parquet file, which needs pyarrow: `pip install pyarrow`, or save it as CSV"
        ) from error
    return {str(name): table[name].to_numpy() for name in table.columns}


def is_number(cell: str) -> bool:
    """Return whether a cell of a table is a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


_READERS: dict[str, Callable[[Path], dict[str, Any]]] = {
    ".npz": _npz,
    ".npy": _npy,
    ".mat": lambda path: matlab(str(path), path.read_bytes()),
    ".mtx": lambda path: {"X": matrix_market(path)},
    ".csv": _csv,
    ".parquet": _parquet,
}
