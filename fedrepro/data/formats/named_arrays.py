"""Read the arrays of a user's file by name: columns of a table, variables of an archive, or one matrix ``X``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from fedrepro.data.formats.csv_table import csv_table
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
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not encoded as UTF-8 ({error}); save it as UTF-8") from error
    except Exception as error:  # readers raise any error on broken bytes
        why = "it contains no plain array of numbers" if "pickle" in str(error) else str(error).strip()
        raise UserError(f"{path} cannot be read as {path.suffix} ({why})") from error


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


def _parquet(path: Path) -> dict[str, Any]:
    import pandas as pd

    try:
        table = pd.read_parquet(path)
    except ImportError as error:
        raise UserError(
            f"{path} is a Parquet file, which needs pyarrow: `pip install pyarrow`, or save it as CSV"
        ) from error
    return {str(name): table[name].to_numpy() for name in table.columns}


_READERS: dict[str, Callable[[Path], dict[str, Any]]] = {
    ".npz": _npz,
    ".npy": _npy,
    ".mat": lambda path: matlab(str(path), path.read_bytes()),
    ".mtx": lambda path: {"X": matrix_market(path)},
    ".csv": csv_table,
    ".parquet": _parquet,
}
