"""Read the user's own files: what the loaders of files share.

The parameters of a loader name the arrays of its file, and a table of ``Array`` states how each is read. The files are
of unknown origin, so the method ``read`` runs in an isolated process (``fedrepro.data.isolated``), which writes plain
arrays to a folder.
"""

from __future__ import annotations

import importlib
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fedrepro.arrays import structure
from fedrepro.data import isolated, own_paths
from fedrepro.data.formats.csv_table import is_number, line_of
from fedrepro.data.formats.named_arrays import TABLES, named_arrays
from fedrepro.datasets import memory_mapped
from fedrepro.datasets.sizes import size
from fedrepro.errors import ParameterError, UserError, counted, nearest
from fedrepro.files import nameless_folder
from fedrepro.protocols import Dataset

MATRIX_NAMES = ("X", "fea", "data", "features")
LABEL_NAMES = ("labels", "y", "gnd", "label", "target")
LABEL_ENDINGS = (".npy", ".npz", ".mat", ".csv", ".txt")
EMPTY = 10_000_000
"""Rows or columns that any sparse matrix can have; more need at least one entry per thousand of them."""
_SIZES: dict[Any, dict[str, Any]] = {}


class OwnFiles(Dataset):
    """A dataset in files of the user, which ``files`` names."""

    @abstractmethod
    def read(self) -> dict[str, Any]:
        """Return the arrays of the files by name; None for one that is not given. Runs in an isolated process."""

    def arrays(self, method: str = "read") -> dict[str, Any]:
        """Return the arrays of ``read``, or of another method, without those that are None."""
        params = asdict(self)  # type: ignore[call-overload]
        files, label = own_paths.files(self.files, params), own_paths.label(self.files, params)
        cls = type(self)
        arguments = (cls.__module__, cls.__qualname__, own_paths.found_names(self.files, params), method)
        with nameless_folder() as folder:
            try:
                memory = isolated.fair(files)
                names = isolated.call(read_in_child, *arguments, str(folder), what=label, memory=memory)
            except ParameterError:
                raise
            except UserError as error:
                raise ParameterError(self.files[0], str(error)) from error
            return _loaded(folder, names)

    def measured(self) -> dict[str, Any]:
        """Return the size of the data. Raises what loading raises, so that it is reported before anything runs."""
        return size(self.load())

    def sizes(self) -> dict[str, Any]:
        """Return what ``measured`` does, called once for each version of the files."""
        key = own_paths.marks(self)
        if key not in _SIZES:
            if len(_SIZES) >= 256:
                _SIZES.clear()
            _SIZES[key] = self.measured()
        return dict(_SIZES[key])

    def shape(self) -> dict[str, Any]:
        """Return the sizes of the data."""
        return self.sizes()


def read_in_child(module: str, loader: str, params: dict[str, Any], method: str, out: str) -> list[str]:
    """Write the arrays that a method of a loader returns to the folder ``out``; return their names."""
    arrays = getattr(getattr(importlib.import_module(module), loader)(**params), method)()
    saved = {name: array for name, value in arrays.items() for name, array in _plain(name, value).items()}
    for name, array in saved.items():
        np.save(Path(out) / f"{name}.npy", array, allow_pickle=False)
    return list(saved)


def _plain(name: str, value: Any) -> dict[str, np.ndarray]:
    """Return a value as plain arrays: nothing for None, and the parts of its CSR form for a sparse matrix."""
    if not hasattr(value, "tocsr"):
        return {} if value is None else {name: np.asarray(value)}
    matrix = value.tocsr()
    matrix.sum_duplicates()
    parts = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr, "shape": np.array(matrix.shape)}
    return {f"{name}.{part}": array for part, array in parts.items()}


def _loaded(folder: Path, names: list[str]) -> dict[str, Any]:
    saved = {name: np.load(folder / f"{name}.npy", allow_pickle=False) for name in names}
    arrays = {name: array for name, array in saved.items() if "." not in name}
    for name in (name.removesuffix(".indptr") for name in names if name.endswith(".indptr")):
        from scipy.sparse import csr_matrix

        parts = tuple(saved[f"{name}.{part}"] for part in ("data", "indices", "indptr"))
        arrays[name] = csr_matrix(parts, shape=tuple(saved[f"{name}.shape"].tolist()))
        structure(name, arrays[name])
    return arrays


@dataclass(frozen=True)
class Array:
    """How one array of a file is read.

    kind : ``numbers`` (finite, float64), ``ids`` (numbers or words), ``marks`` (of test data), ``side`` (a matrix with
    one row per client), or ``any``. axes : the number of axes of numbers. usual : names to look for if the parameter is
    None; the array is left out if there is none. aligned : whether it has one row per sample, rating or entry.
    """

    kind: str
    axes: int = 1
    usual: tuple[str, ...] = ()
    aligned: bool = True


@dataclass(frozen=True)
class Content:
    """The arrays of one file by name."""

    path: Path
    arrays: Mapping[str, Any]

    @property
    def is_table(self) -> bool:
        """Whether the arrays are the columns of a table."""
        return self.path.suffix.lower() in TABLES

    def __str__(self) -> str:
        return _listed(self.arrays)

    @property
    def shapes(self) -> str:
        """The arrays with their shapes, for messages."""
        return _listed(f"{name} of shape {getattr(array, 'shape', ())}" for name, array in self.arrays.items())

    def take(self, loader: Any, table: Mapping[str, Array], rows: int | None = None) -> dict[str, Any]:
        """Return the arrays that parameters of a loader name, read as the table declares.

        rows : how many rows aligned arrays must have, if that is known. A parameter in ``loader.files`` may also name
        another file.
        """
        taken = {}
        for parameter, array in table.items():
            usual = next((name for name in array.usual if name in self.arrays), None)
            name = getattr(loader, parameter) or usual
            if name is not None:
                taken[parameter] = self._read(parameter, name, array, loader)
        counts = {} if rows is None else {"rows": rows}
        counts |= {parameter: len(values) for parameter, values in taken.items() if table[parameter].aligned}
        if len(set(counts.values())) > 1:
            listed = ", ".join(f"{parameter} {count:,}" for parameter, count in counts.items())
            raise ParameterError("path", f"{self.path}: its columns differ in length ({listed})")
        return taken

    def _read(self, parameter: str, name: str, array: Array, loader: Any) -> Any:
        if array.kind == "side":
            return self.read_side(parameter, name, loader.client)
        values = self.values(parameter, name, parameter in loader.files)
        if array.kind == "numbers":
            return numbers(parameter, self.path, values, array.axes, row=self._row(name))
        if array.kind == "any":
            return values
        return {"ids": ids, "marks": marks}[array.kind](parameter, values, self._row(name))

    def _row(self, name: str) -> Callable[[int], str]:
        """Return how messages name a row of an array: by its line if the array is a column of this file."""
        return partial(place, self.path) if name in self.arrays else from_zero

    def values(self, parameter: str, name: str, elsewhere: bool = False) -> Any:
        """Return a column or variable by its name; ``elsewhere``: or the values in another file of that name."""
        if name in self.arrays:
            return self.arrays[name]
        if elsewhere and Path(name).is_file():
            return _one_each(parameter, Path(name))
        close, file = nearest(name, self.arrays), ", and there is no such file" if elsewhere else ""
        raise ParameterError(
            parameter, f"{self.path} has no column or variable '{name}'{close} (it contains {self}){file}"
        )

    def read_side(self, parameter: str, name: str, client: str | None = None) -> np.ndarray:
        """Return the clients' side information (M, k): a variable of the file, or the only matrix of another file.

        Another table must not have the column ``client``, whose numbers would be read as side information.
        """
        if name in self.arrays:
            return numbers(parameter, self.path, self.arrays[name], 2)
        file = Path(name)
        if not file.is_file():
            raise ParameterError(
                parameter,
                f"{self.path} has no variable '{name}' and there is no such file; it is the clients' side information",
            )
        content = opened(parameter, file)
        if content.is_table and client in content.arrays:
            message = f"{file} has the column '{client}': sort its rows by the client, and remove this column"
            raise ParameterError(parameter, message)
        return numbers(parameter, file, content.matrix(parameter), 2)

    def columns(self, parameter: str, without: Sequence[str | None] = ()) -> Any:
        """Return the columns of a table, except those with some names, as a matrix."""
        chosen = {name: values for name, values in self.arrays.items() if name not in without}
        if not chosen:
            raise ParameterError(parameter, f"{self.path} has no column left for {parameter} (it contains {self})")
        columns = [
            numbers(parameter, f"{self.path}, column '{name}'", values, row=self._row(name))
            for name, values in chosen.items()
        ]
        return np.stack(columns, axis=1)

    def matrix(self, parameter: str, hint: str = "keep one, or name it X") -> Any:
        """Return the matrix with a usual name, or the only one; of a table all columns.

        Raises ParameterError for ``parameter``, with the hint, if there is no such matrix or more than one.
        """
        if self.is_table:
            return self.columns(parameter)
        matrices = {name: value for name, value in self.arrays.items() if is_matrix(value)}
        known = [name for name in MATRIX_NAMES if name in matrices]
        others = [name for name in matrices if name not in LABEL_NAMES]
        others = others or [name for name in matrices if min(matrices[name].shape) > 1]
        if not known and len(others) != 1:
            raise self._without_matrix(parameter, hint if matrices else "")
        return matrices[known[0] if known else others[0]]

    def _without_matrix(self, parameter: str, hint: str) -> ParameterError:
        """Return the error that there is not one matrix. hint : how to choose one; '' if there is none to choose."""
        if hint:
            return ParameterError(parameter, f"{self.path} must contain one matrix (it contains {self}); {hint}")
        return ParameterError(
            "path" if parameter == "key" else parameter,
            f"{self.path} must contain a matrix, with two axes (it contains {self.shapes}); if there is one feature, "
            "save it with an axis of length 1",
        )

    def only_matrix(self, columns: str, matrix: str, without: Sequence[str] = ()) -> Any:
        """Return the only matrix. columns, matrix : what the file could contain, for the error."""
        matrices = [value for name, value in self.arrays.items() if is_matrix(value) and name not in without]
        if len(matrices) != 1 or 0 in matrices[0].shape:
            raise ParameterError("path", f"{self.path} has neither {columns} nor one {matrix} (it contains {self})")
        return matrices[0]

    def entries(self, matrix: Any, *, row: str, column: str, value: str) -> dict[str, Any]:
        """Return the entries that a sparse matrix stores, or those of an array except NaN, and the shape as ``sides``.

        row, column, value : what these arrays are called.
        """
        structure(str(self.path), matrix)
        stored = matrix.tocoo() if hasattr(matrix, "tocoo") else None
        if stored is None:
            rows, columns = np.nonzero(~np.isnan(np.asarray(matrix, dtype=np.float64)))
            values = matrix[rows, columns]
        else:
            rows, columns, values = stored.row.astype(np.int64), stored.col.astype(np.int64), stored.data
        values = numbers(value, self.path, values)
        return {row: rows, column: columns, value: values, "sides": np.array(matrix.shape)}


def _listed(names: Iterable[str]) -> str:
    """Return the names of what a file contains, shortened, without characters that cannot be printed."""
    text = "".join(c if c.isprintable() else "?" for c in ", ".join(names)) or "nothing"
    return text if len(text) <= 200 else f"{text[:200]} ..."


def opened(parameter: str, path: str | Path) -> Content:
    """Return the content of a file. Raises ParameterError for ``parameter`` if it cannot be read."""
    try:
        return Content(Path(path), named_arrays(Path(path)))
    except UserError as error:
        raise ParameterError(parameter, str(error)) from error


def place(path: str | Path, row: int) -> str:
    """Return how a message names a row that is counted from 0: by the line of a CSV file, which an editor shows."""
    line = line_of(Path(path), row) if Path(path).suffix.lower() == ".csv" else None
    return from_zero(row) if line is None else f"line {line:,}"


def from_zero(row: int) -> str:
    """Return the name of a row of an array in a message."""
    return f"row {row:,} (counted from 0)"


def first_text(values: np.ndarray) -> tuple[int, str] | None:
    """Return the first cell of a column that is not a number, with its row; None if there is none."""
    cells = enumerate(map(str, values))
    return next(((row, cell) for row, cell in cells if not is_number(cell)), None)


def is_matrix(value: Any) -> bool:
    """Return whether a value is a sparse matrix or an array with two axes."""
    return hasattr(value, "tocsr") or np.ndim(value) == 2


def numbers(
    parameter: str, what: Any, values: Any, axes: int = 1, sparse: bool = False, row: Callable[[int], str] = from_zero
) -> Any:
    """Return finite float64 numbers with so many axes; a matrix of one column or row counts as a vector.

    what : where the values are from, for errors. sparse : whether a sparse matrix remains one. row : names a row in
    errors. A memory map keeps its type.
    """
    structure(str(what), values)
    sparse = sparse and hasattr(values, "tocoo")
    array = values if sparse else np.asanyarray(values.toarray() if hasattr(values, "toarray") else values)
    if axes == 1 and array.ndim == 2 and 1 in array.shape:
        array = array.ravel()
    if array.ndim != axes or 0 in array.shape:
        raise ParameterError(
            parameter,
            f"{what} contains an array of shape {array.shape}; a {'vector' if axes == 1 else 'matrix'} with entries is "
            "needed",
        )
    if axes == 1 and array.dtype.kind == "O" and (text := first_text(array)) is not None:
        raise ParameterError(parameter, f"{what} has '{text[1][:40]}' in {row(text[0])}; a number is needed")
    if array.dtype.kind not in "biuf":
        raise ParameterError(parameter, f"{what} contains values of type {array.dtype}; real numbers are needed")
    if sparse:
        side = max(array.shape)
        if side > EMPTY + 1000 * array.nnz:
            entries = counted(array.nnz, "entry", "entries")
            raise ParameterError(parameter, f"{what} declares {side:,} rows or columns, but contains {entries}")
        array = array.tocoo().astype(np.float64)
        bad = np.flatnonzero(~np.isfinite(array.data))
        count, first = len(bad), (array.row[bad[0]], array.col[bad[0]]) if len(bad) else None
    else:
        array = array if isinstance(array, np.memmap) else array.astype(np.float64, copy=False)
        count, first = memory_mapped.not_finite(array if axes == 2 else array[:, None])
    if first is not None:
        at = f"row {first[0]}, column {first[1]} (counted from 0)" if axes == 2 else row(first[0])
        places = f"{count:,} place{'s' * (count > 1)}, first in {at}"
        raise ParameterError(parameter, f"{what} has NaN, infinity or no value in {places}; correct or remove it")
    return array


def ids(parameter: str, values: Any, row: Callable[[int], str] = from_zero) -> np.ndarray:
    """Return labels, ids or names as an array (N,) of numbers or of words. Raises ParameterError for missing ones.

    row : names a row in errors.
    """
    array = np.asarray(values).ravel()
    if array.dtype.kind == "O":  # words in cells, as in MATLAB and pandas
        cells = [cell.item() if isinstance(cell, np.ndarray) and cell.size == 1 else cell for cell in array]
        _refuse_missing(parameter, [cell is None or (isinstance(cell, float) and cell != cell) for cell in cells], row)
        array = np.array(cells, dtype=str) if all(isinstance(cell, str) for cell in cells) else array
    if array.dtype.kind not in "biufSU":
        raise ParameterError(parameter, f"values of type {array.dtype}; numbers or words are needed")
    if array.dtype.kind == "f":
        _refuse_missing(parameter, ~np.isfinite(array), row)
    return array


def _refuse_missing(parameter: str, missing: Any, row: Callable[[int], str]) -> None:
    rows = np.flatnonzero(missing)
    if len(rows):
        raise ParameterError(
            parameter,
            f"{len(rows):,} of {counted(len(missing), 'value')} {'is' if len(rows) == 1 else 'are'} missing, "
            f"the first in {row(int(rows[0]))}; add them, or remove these samples",
        )


TEST_WORDS = {"train": False, "test": True, "0": False, "1": True, "0.0": False, "1.0": True}
TEST_WORDS |= {"false": False, "true": True}


def marks(parameter: str, values: Any, row: Callable[[int], str] = from_zero) -> np.ndarray:
    """Return a mask of the test data, from 0 and 1 or the words train and test. row : names a row in errors."""
    words = [str(value).strip().lower() for value in ids(parameter, values, row)]
    other = next((number for number, word in enumerate(words) if word not in TEST_WORDS), None)
    if other is not None:
        raise ParameterError(
            parameter,
            f"must contain 0 (train) and 1 (test), or these words, not '{words[other][:40]}' as in {row(other)}",
        )
    return np.array([TEST_WORDS[word] for word in words], dtype=bool)


def numbered(values: np.ndarray) -> tuple[np.ndarray, list]:
    """Return numbers 0 .. K-1 in the sorted order of the distinct values, and these values."""
    distinct, number = np.unique(values, return_inverse=True)
    return number.astype(np.int64).ravel(), distinct.tolist()


def one_row_each(parameter: str, side: np.ndarray, clients: int) -> None:
    """Raise ParameterError unless side information has one row for each client."""
    rows, columns = side.shape
    if rows != clients:
        raise ParameterError(
            parameter,
            f"has {counted(rows, 'row')} of {counted(columns, 'number')}; it must have one for each of "
            f"{counted(clients, 'client')}",
        )


def _one_each(parameter: str, path: Path) -> Any:
    """Return one value per sample, user or rating: the file's only variable or column, or one with a usual name."""
    ending = path.suffix.lower()
    if ending not in LABEL_ENDINGS:
        raise ParameterError(parameter, f"{path} must end in {', '.join(LABEL_ENDINGS[:-1])} or {LABEL_ENDINGS[-1]}")
    if ending in (".csv", ".txt"):
        return _lines(parameter, path)
    content = opened(parameter, path)
    known = [name for name in LABEL_NAMES if name in content.arrays]
    if known or len(content.arrays) == 1:
        return content.arrays[known[0] if known else next(iter(content.arrays))]
    raise ParameterError(parameter, f"{path} contains several variables ({content}); keep one, or name it 'labels'")


def _lines(parameter: str, path: Path) -> np.ndarray:
    """Return the lines of a text file that are not empty, as numbers if all of them are numbers."""
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except UnicodeDecodeError as error:
        raise ParameterError(parameter, f"{path} is not text in UTF-8 ({error})") from error
    return np.array(lines, dtype=float if all(map(is_number, lines)) else str)
