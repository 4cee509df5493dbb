"""Read the user's own files: columns of tables and variables of archives, by name.

The files are of unknown origin, so a function of the loader's module reads them in an isolated process
(``fedrepro.data.isolated``) and writes plain arrays to a folder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fedrepro.data import isolated, own
from fedrepro.datasets.file import is_number, one_each, plain, shown, variables
from fedrepro.datasets.sizes import size
from fedrepro.errors import ParameterError, UserError, nearest
from fedrepro.files import nameless_folder
from fedrepro.protocols import Dataset

ARCHIVES = (".npz", ".mat")
TABLES = (".csv", ".parquet")


def place(text: str | None) -> str | None:
    """Return another file as its path, and a variable or column as its name."""
    if text is None:
        return None
    path = own.found(text)
    return str(path) if path.is_file() else str(text)


def arrays(loader: Dataset, function: Callable[..., list[str]], *arguments: Any) -> dict[str, np.ndarray]:
    """Return the arrays of the loader's files; ``function(*arguments, folder)`` writes them and returns their names."""
    params = {name: getattr(loader, name) for name in loader.files}
    files = own.files(loader.files, params)
    what = own.label(loader.files, params)
    with nameless_folder() as folder:
        try:
            names = isolated.call(function, *arguments, str(folder), what=what, memory=isolated.fair(files))
        except ParameterError:
            raise
        except UserError as error:
            raise ParameterError(loader.files[0], str(error)) from error
        return {name: np.load(folder / f"{name}.npy", allow_pickle=False) for name in names}


def keep(values: Mapping[str, Any], out: str) -> list[str]:
    """Write arrays (except None) and the CSR parts of sparse matrices to a folder; return their names."""
    saved = []
    for name, value in values.items():
        if hasattr(value, "tocsr"):
            matrix = value.tocsr()
            matrix.sum_duplicates()
            parts = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr}
            parts |= {"shape": np.array(matrix.shape)}
        else:
            parts = {} if value is None else {"": np.asarray(value)}
        for part, array in parts.items():
            saved.append(f"{name}.{part}" if part else name)
            np.save(Path(out) / f"{saved[-1]}.npy", array, allow_pickle=False)
    return saved


def matrix(saved: Mapping[str, np.ndarray], name: str) -> Any:
    """Return what ``keep`` wrote under a name: an array, a CSR matrix, or None."""
    if f"{name}.indptr" not in saved:
        return saved.get(name)
    from scipy.sparse import csr_matrix

    from fedrepro.arrays import structure

    parts = tuple(saved[f"{name}.{part}"] for part in ("data", "indices", "indptr"))
    sparse = csr_matrix(parts, shape=tuple(saved[f"{name}.shape"].tolist()))
    structure(name, sparse)
    return sparse


def content(parameter: str, path: Path) -> dict[str, Any]:
    """Return everything in a file by name: the columns of a table, the variables of an archive, or a matrix ``X``."""
    if path.suffix.lower() not in TABLES:
        return variables(parameter, path, ())
    table = _parquet(parameter, path) if path.suffix.lower() == ".parquet" else _csv(parameter, path)
    return {str(name): table[name].to_numpy() for name in table.columns}


def _parquet(parameter: str, path: Path) -> Any:
    import pandas as pd

    try:
        return pd.read_parquet(path)
    except ImportError as error:
        raise ParameterError(
            parameter,
            f"{path} is a Parquet file, which needs pyarrow: `pip install pyarrow`, or save it as CSV",
        ) from error
    except Exception as error:  # the library raises any error on broken bytes
        raise ParameterError(parameter, f"{path} cannot be read as Parquet ({error})") from error


def _csv(parameter: str, path: Path) -> Any:
    import pandas as pd

    try:
        first = pd.read_csv(path, header=None, nrows=1, dtype=str, keep_default_na=False).iloc[0].tolist()
        header = any(cell and not is_number(cell) for cell in first)
        table = pd.read_csv(path, header=None, skiprows=int(header), float_precision="round_trip")
    except Exception as error:
        raise ParameterError(parameter, f"{path} cannot be read as CSV ({error})") from error
    if table.shape[1] != len(first):
        raise ParameterError(
            parameter, f"{path}: its first row has {len(first)} columns, the rows below have {table.shape[1]}"
        )
    table.columns = [cell.strip() for cell in first] if header else [str(number) for number in range(len(first))]
    twice = [name for name in table.columns if list(table.columns).count(name) > 1]
    if twice:
        raise ParameterError(parameter, f"{path} has several columns '{twice[0]}'")
    return table


def column(parameter: str, path: Path, held: Mapping[str, Any], name: str) -> Any:
    """Return a column or variable by its name, or the values in another file of that name."""
    if name in held:
        return held[name]
    if Path(name).is_file():
        return one_each(parameter, Path(name))
    raise ParameterError(
        parameter, f"{path} has no column or variable '{name}'{nearest(name, held)} (it contains {shown(held)})"
    )


def numbers(parameter: str, path: Any, values: Any, ndim: int) -> np.ndarray:
    """Return finite float64 numbers with ``ndim`` axes; a matrix of one column or row counts as a vector."""
    array = values.toarray() if hasattr(values, "toarray") else np.asarray(values)
    if ndim == 1 and array.ndim == 2 and 1 in array.shape:
        array = array.ravel()
    if array.ndim != ndim or not array.size:
        raise ParameterError(parameter, f"{path} contains an array of shape {array.shape}; {ndim} axes are needed")
    if array.dtype.kind not in "biuf":
        raise ParameterError(parameter, f"{path} contains values of type {array.dtype}; real numbers are needed")
    array = array.astype(np.float64)
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        at = ", ".join(str(int(i)) for i in bad[0])
        raise ParameterError(parameter, f"{path} has NaN or infinity in {len(bad):,} places, first at {at} (from 0)")
    return array


def side_information(parameter: str, path: Any, held: Mapping[str, Any], name: str) -> np.ndarray:
    """Return the clients' side information (M, k): a variable of the file, or the only matrix of another file."""
    if name in held:
        return numbers(parameter, path, held[name], 2)
    file = Path(name)
    if not file.is_file():
        raise ParameterError(
            parameter, f"{path} has no variable '{name}' and there is no such file; it is the clients' side information"
        )
    content = variables(parameter, file, ())
    matrices = [value for value in content.values() if np.ndim(value) == 2]
    if len(matrices) != 1:
        raise ParameterError(
            parameter, f"{file} must contain one matrix with a row for each client (it contains {shown(content)})"
        )
    return numbers(parameter, file, matrices[0], 2)


def one_row_each(parameter: str, side: np.ndarray, clients: int) -> None:
    """Raise ParameterError unless side information has one row for each client."""
    rows, columns = side.shape
    if rows != clients:
        raise ParameterError(parameter, f"has {rows:,} rows of {columns:,} numbers; there are {clients:,} clients")


def only_matrix(path: Any, held: Mapping[str, Any], what: str) -> Any:
    """Return the only matrix among the variables of a file. what : what the file lacks, for the error."""
    matrices = [value for value in held.values() if np.ndim(value) == 2 or hasattr(value, "tocoo")]
    if len(matrices) != 1 or 0 in matrices[0].shape:
        raise ParameterError("path", f"{path} has neither {what} (it contains {shown(held)})")
    return matrices[0]


def stored(matrix: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows, columns and values of the stored entries of a sparse matrix, or of those of an array except NaN."""
    if hasattr(matrix, "tocoo"):
        coo = matrix.tocoo()
        return coo.row.astype(np.int64), coo.col.astype(np.int64), coo.data
    dense = np.asarray(matrix, dtype=np.float64)
    rows, columns = np.nonzero(~np.isnan(dense))
    return rows, columns, dense[rows, columns]


TEST_WORDS = {"train": False, "test": True, "0": False, "1": True, "0.0": False, "1.0": True}
TEST_WORDS |= {"false": False, "true": True}


def held_back(parameter: str, values: Any, count: int) -> np.ndarray:
    """Return a mask (count,) of the test data, from 0 and 1 or the words train and test."""
    marks = plain(parameter, values)
    if len(marks) != count:
        raise ParameterError(parameter, f"has {len(marks):,} values; {count:,} are needed")
    words = [str(mark).strip().lower() for mark in marks]
    odd = next((word for word in words if word not in TEST_WORDS), None)
    if odd is not None:
        raise ParameterError(parameter, f"must contain 0 (train) and 1 (test), or these words, not '{odd[:40]}'")
    return np.array([TEST_WORDS[word] for word in words], dtype=bool)


def lengths(path: Any, **columns: Any) -> None:
    """Raise ParameterError with all lengths if columns differ in length."""
    counts = {name: len(values) for name, values in columns.items() if values is not None}
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{name} {count:,}" for name, count in counts.items())
        raise ParameterError("path", f"{path}: its columns differ in length ({listed})")


_SIZES: dict[Any, dict[str, Any]] = {}


def size_once(loader: Any, more: Callable[[Any], dict[str, Any]] = lambda data: {}) -> dict[str, Any]:
    """Return the size of a loader's data and the facts of ``more``, read once for each version of its files.

    Raises what loading raises, so that an unusable file is reported before anything runs.
    """
    key = own.marks(loader)
    if key not in _SIZES:
        data = loader.load()
        if len(_SIZES) >= 256:
            _SIZES.clear()
        _SIZES[key] = {**size(data), **more(data)}
    return dict(_SIZES[key])
