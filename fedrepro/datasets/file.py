"""The user's own matrix: .npz, .npy, .mat, .csv or .mtx, optionally with labels and clients.

``path`` is relative to the folder of the spec, and from Python to the working folder. ``key`` names the matrix inside
.npz and .mat files (default: ``X``, ``fea``, ``data``, ``features``, or the only matrix). ``labels`` is a variable of
the same file, a column of the CSV, or the path of another file (.npy, .npz, .mat, .csv, .txt) with one label per
sample; ``client`` is the same for the client of each sample, for the partition ``given``. ``orientation`` is
``columns`` if samples are columns (as in the papers) or ``rows`` (as most tools store them). Sparse matrices stay
sparse. ``rescale`` divides X by one number, because the initial point of the clustering problem and its penalties
depend on the scale of X. A .npy file is memory-mapped and can be larger than memory (``mapped``). Every other file is
read in an isolated process (``fedrepro.data.isolated``), which writes plain arrays.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from threadpoolctl import threadpool_limits

from fedrepro import arrays
from fedrepro.data import isolated, own
from fedrepro.datasets import mapped
from fedrepro.datasets.own_types import OwnSamples, numbered
from fedrepro.errors import ParameterError, UserError, nearest
from fedrepro.files import nameless_folder
from fedrepro.parameters import Name, OneOf
from fedrepro.protocols import Dataset
from fedrepro.registry import DatasetEntry, add_dataset

KEYS = ("X", "fea", "data", "features")
LABEL_KEYS = ("labels", "y", "gnd", "label", "target")
ENDINGS = (".npz", ".npy", ".mat", ".csv", ".mtx")
LABEL_ENDINGS = (".npy", ".npz", ".mat", ".csv", ".txt")
EMPTY = 10_000_000
"""Rows or columns that any sparse matrix can have; more need at least one entry per thousand of them."""


@dataclass(frozen=True)
class MatrixFile(Dataset):
    """A matrix in a file, one sample per column once it is read.

    path : an existing file ending in .npz, .npy, .mat, .csv or .mtx. key : the name of the matrix in the file; None to
    find it. labels : a variable of the file, a column of the CSV, or another file with one label per sample; None for
    none. client : the same for the client of each sample, for the partition ``given``. orientation : whether samples
    are columns or rows. rescale : the divisor of X: none, max (the largest absolute value) or mean (the mean absolute
    value).
    """

    files = ("path", "labels", "client")

    path: Annotated[str, own.OwnFile(*ENDINGS)]
    key: Annotated[str | None, Name()] = None
    labels: Annotated[str | None, Name()] = None
    client: Annotated[str | None, Name()] = None
    orientation: Annotated[str, OneOf("columns", "rows")] = "columns"
    rescale: Annotated[str, OneOf("none", "max", "mean")] = "none"

    def shape(self) -> dict[str, int | None]:
        """Return M, N, the K classes (0 without labels) and, if they are given, P clients, from the head of the file.

        Raises ParameterError if the file contains no such matrix, or if labels do not match the samples.
        """
        known = _look(own.marks(self), self)
        rows, columns = known["rows"], known["columns"]
        M, N = (columns, rows) if self.orientation == "rows" else (rows, columns)
        for name in ("labels", "client"):
            if known[name] is not None and known[name] != N:
                raise ParameterError(name, _mismatch(name, self.path, known[name], M, N, self.orientation))
        clients = {} if self.client is None else {"P": known["different client"]}
        return {"M": M, "N": N, "K": known["different labels"] or 0, **clients}

    def expected(self) -> dict[str, float]:
        """Return the density of a sparse matrix."""
        known = _look(own.marks(self), self)
        return {"K": 10} | ({} if known["density"] is None else {"density": known["density"]})

    def doubts(self) -> list[str]:
        """Return a note if there are more features than samples, and no labels that confirm the orientation."""
        shape = self.shape()
        M, N = int(shape["M"] or 0), int(shape["N"] or 0)
        if self.labels is not None or self.client is not None or M <= N:
            return []
        return [_readings(self.path, M, N, self.orientation)]

    def load(self) -> OwnSamples:
        """Return X (M, N), float64 array or scipy.sparse CSC; labels 0 .. K-1 in the sorted order of their values.

        For a .npy file X is a read-only map of the file, or of a temporary copy (8 M N bytes of disk, until X is
        dropped) if its samples are not contiguous float64 or are rescaled.

        Raises ParameterError if the file contains no such matrix, NaN or infinity, is empty, or if labels do not match
        the samples.
        """
        with nameless_folder() as folder:
            names = _isolated(self, read, self.orientation, str(folder))
            saved = {name: np.load(folder / f"{name}.npy") for name in names}
        path = own.found(self.path)
        X = _matrix(saved) if "data" in saved or "X" in saved else _mapped(str(path), self.orientation)
        X, unit = _rescaled(X, self.rescale)
        sizes = (X.shape[0], X.shape[1], self.orientation)
        y, values = _labels("labels", self.path, saved.get("labels"), *sizes)
        client, clients = _labels("client", self.path, saved.get("client"), *sizes)
        facts: dict[str, Any] = {"file": path.name, "orientation": self.orientation}
        facts |= {} if self.rescale == "none" else {"divided by": unit}
        facts |= {} if values is None else {"label_values": values}
        facts |= {} if clients is None else {"clients": clients}
        return OwnSamples(X, y, None if values is None else len(values), facts, client)


def _isolated(wanted: MatrixFile, function: Any, *more: Any) -> Any:
    """Call a function of this module on the file in an isolated process and return its result."""
    named = [own.found(name) for name in (wanted.path, wanted.labels, wanted.client) if name]
    others = [_other(wanted.path, name) for name in (wanted.labels, wanted.client)]
    path = str(own.found(wanted.path))
    try:
        memory = isolated.fair([name for name in named if name.is_file()])
        return isolated.call(function, path, wanted.key, *others, *more, what=path, memory=memory)
    except ParameterError:
        raise
    except UserError as error:
        raise ParameterError("path", str(error)) from error


def _other(path: str, name: str | None) -> str | None:
    """Return another file as its path, and a variable or column as its name."""
    if name is None:
        return None
    file = own.found(name)
    return str(file) if file.is_file() else str(name)


@functools.lru_cache(maxsize=256)
def _look(marks: Any, wanted: MatrixFile) -> dict[str, Any]:
    """Return the result of ``look``, called once for each version of the file."""
    return dict(_isolated(wanted, look))


def look(path: str, key: str | None, labels: str | None, client: str | None) -> dict[str, Any]:
    """Return the sizes of the matrix in the file, its density, and the numbers of labels and clients.

    For ``isolated.call``; entries are not read.
    """
    file = Path(path)
    content = variables("path", file, (labels, client))
    matrix = content[_pick(file, content, key)]
    if np.ndim(matrix) != 2 and not hasattr(matrix, "tocsc"):
        _numbers(path, matrix)
    rows, columns = (int(side) for side in matrix.shape)
    full = hasattr(matrix, "tocsc") and rows and columns
    density = float(matrix.nnz) / (rows * columns) if full else None
    known: dict[str, Any] = {"rows": rows, "columns": columns, "density": density}
    for name, wanted in (("labels", labels), ("client", client)):
        values = None if wanted is None else plain(name, _label_values(name, path, content, wanted))
        known |= {name: None, f"different {name}": None}
        if values is not None:
            known |= {name: len(values), f"different {name}": len(np.unique(values))}
    return known


_COUNTED = {"labels": "labels", "client": "client ids"}


def _mismatch(name: str, path: str, count: int, M: int, N: int, orientation: str) -> str:
    """Return the error that labels or clients do not match the samples, with the sizes in both orientations."""
    other = "rows" if orientation == "columns" else "columns"
    hint = f"; they match if samples are {other}: set orientation: {other}" if count == M else ""
    return (
        f"{_COUNTED[name]} of {count:,} samples do not match {path}: with samples in {orientation} it has N = {N:,} "
        f"samples of M = {M:,} features, in {other} N = {M:,} samples of M = {N:,} features{hint}"
    )


def _readings(path: str, M: int, N: int, orientation: str) -> str:
    other = "rows" if orientation == "columns" else "columns"
    return (
        f"{path} is read with samples in {orientation}: N = {N:,} samples of M = {M:,} features. With orientation: "
        f"{other} it would be N = {M:,} samples of M = {N:,} features"
    )


def _rescaled(X: Any, rescale: str) -> tuple[Any, float]:
    """Return X divided by one number, and the number. Raises ParameterError if it is 0."""
    if rescale == "none":
        return X, 1.0
    if isinstance(X, np.memmap) or isinstance(getattr(X, "base", None), np.memmap):
        unit = mapped.magnitude(X, rescale)
    else:
        values = np.abs(X.data if hasattr(X, "tocsc") else X)
        unit = float(values.max(initial=0.0) if rescale == "max" else values.sum() / (X.shape[0] * X.shape[1]))
    if unit == 0.0:
        raise ParameterError("rescale", "X is zero everywhere; there is nothing to divide by")
    return (X / unit if not isinstance(X, np.memmap) else mapped.divided(X, unit)), unit


def read(path: str, key: str | None, labels: str | None, client: str | None, orientation: str, out: str) -> list[str]:
    """Write the matrix (except maps), labels and clients as plain arrays to the folder ``out``; return their names.

    A dense matrix is ``X``, (M, N) float64; a sparse one is its canonical CSC form, ``data``, ``indices``, ``indptr``
    and ``shape``.
    """
    file, arrays_ = Path(path), dict[str, Any]()
    content = variables("path", file, (labels, client))
    matrix = content[_pick(file, content, key)]
    if not isinstance(matrix, np.memmap):
        X = _numbers(path, matrix)
        X = X.T if orientation == "rows" else X
        if hasattr(X, "tocsc"):
            X = X.tocsc()
            X.sum_duplicates()
            arrays_ = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": np.array(X.shape)}
        else:
            arrays_ = {"X": X}
    for name, wanted in (("labels", labels), ("client", client)):
        if wanted is not None:
            arrays_[name] = plain(name, _label_values(name, path, content, wanted))
    for name, array in arrays_.items():
        np.save(Path(out) / f"{name}.npy", array, allow_pickle=False)
    return list(arrays_)


def _matrix(saved: dict[str, np.ndarray]) -> Any:
    if "X" in saved:
        return saved["X"]
    from scipy.sparse import csc_matrix

    X = csc_matrix((saved["data"], saved["indices"], saved["indptr"]), shape=tuple(saved["shape"].tolist()))
    arrays.structure("X", X)
    return X


def _mapped(path: str, orientation: str) -> np.ndarray:
    X = _numbers(path, np.load(path, mmap_mode="r", allow_pickle=False))
    return mapped.by_sample(X.T if orientation == "rows" else X)


def variables(parameter: str, path: Path, labels: Sequence[str | None]) -> dict[str, Any]:
    """Return the variables of a file by name."""
    reader = {".npz": _npz, ".npy": _npy, ".mat": _mat, ".csv": _csv, ".mtx": _mtx}[path.suffix.lower()]
    try:
        return reader(path, labels)
    except ParameterError:
        raise
    except UserError as error:
        raise ParameterError(parameter, str(error)) from error
    except Exception as error:  # readers raise any error on broken bytes
        raise ParameterError(parameter, f"{path} cannot be read as {path.suffix} ({error})") from error


def _label_values(parameter: str, path: str, content: dict[str, Any], labels: str) -> Any:
    """Return the labels, from the same file or from another."""
    if Path(labels).is_file():
        return one_each(parameter, Path(labels))
    if labels not in content:
        raise ParameterError(
            parameter, f"{path} has no variable '{labels}'{nearest(labels, content)}, and there is no such file"
        )
    return content[labels]


def _pick(path: Path, content: dict[str, Any], key: str | None) -> str:
    names = shown(content)
    if key is not None:
        if key not in content:
            raise ParameterError("key", f"{path} has no variable '{key}'{nearest(key, content)} (it contains {names})")
        return key
    matrices = [name for name, value in content.items() if np.ndim(value) == 2 or hasattr(value, "tocsc")]
    known = [name for name in KEYS if name in matrices]
    others = [name for name in matrices if name not in LABEL_KEYS]
    if known or len(others) == 1:
        return known[0] if known else others[0]
    raise ParameterError("key", f"give the variable of {path} that is the matrix (it contains {names})")


def shown(names: Iterable[str]) -> str:
    """Return names of variables as printable text, shortened if they are many."""
    text = "".join(c if c.isprintable() else "?" for c in ", ".join(names)) or "nothing"
    return text if len(text) <= 200 else f"{text[:200]} ..."


def _npz(path: Path, labels: Sequence[str | None]) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as archive:
        if {"format", "shape", "data"} <= set(archive.files):
            from scipy.sparse import load_npz

            return {"X": load_npz(path)}
        return {name: archive[name] for name in archive.files}


def _npy(path: Path, labels: Sequence[str | None]) -> dict[str, Any]:
    try:
        return {"X": np.load(path, mmap_mode="r", allow_pickle=False)}
    except ValueError:  # not mappable (objects, no entries): reading gives a better error
        return {"X": np.load(path, allow_pickle=False)}


def _mat(path: Path, labels: Sequence[str | None]) -> dict[str, Any]:
    from fedrepro.data.formats.matlab import matlab

    return matlab(str(path), path.read_bytes())


def _mtx(path: Path, labels: Sequence[str | None]) -> dict[str, Any]:
    from scipy.io import mmread

    with threadpool_limits(limits=1):  # each of its threads would need its own memory
        matrix = mmread(path)
    _check_mtx(path)
    return {"X": matrix}


def _check_mtx(path: Path) -> None:
    """Raise UserError for an invalid line, because ``mmread`` reads ``8.1E-`` as 8.1 and ignores the rest."""
    with path.open("rb") as file:
        form, field = file.readline().lower().split()[2:4]
        size = next(line for line in file if line.strip() and not line.startswith(b"%"))
        entry = _ENTRIES[form.decode(), field.decode()]
        found, rest = 0, b""
        while block := file.read(1 << 24):
            whole, cut, rest = (rest + block).rpartition(b"\n")
            found += _entries(path, entry, whole + cut)
        found += _entries(path, entry, rest)
    if form == b"coordinate" and found != int(size.split()[2]):
        raise UserError(f"{path} says that it has {int(size.split()[2]):,} entries, and has {found:,}")


def _entries(path: Path, entry: re.Pattern[bytes], lines: bytes) -> int:
    left, found = entry.subn(b"", lines)
    if left.strip():
        shown = left.split()[:4]
        raise UserError(f"{path}: '{b' '.join(shown)[:40].decode('latin-1')}' is not an entry of the matrix")
    return found


_WHOLE, _NUMBER = rb"[+-]?\d+", rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_ENTRIES = {
    (form, field): re.compile(rb"(?m)^[ \t]*" + rb"[ \t]+".join((*at, *value)) + rb"[ \t\r]*$")
    for form, at in (("coordinate", (rb"\d+", rb"\d+")), ("array", ()))
    for field, value in (
        ("pattern", ()),
        ("integer", (_WHOLE,)),
        ("unsigned-integer", (_WHOLE,)),
        ("real", (_NUMBER,)),
        ("double", (_NUMBER,)),
        ("complex", (_NUMBER, _NUMBER)),
    )
    if at or value
}
"""What a line of a Matrix Market file is made of."""


def _csv(path: Path, labels: Sequence[str | None]) -> dict[str, Any]:
    """The table; a first row with any text is a header, and the columns named by ``labels`` are not part of X."""
    import pandas as pd

    first = pd.read_csv(path, header=None, nrows=1, dtype=str, keep_default_na=False).iloc[0].tolist()
    header = _is_header(path, first)
    table = pd.read_csv(path, header=None, skiprows=int(header), float_precision="round_trip")
    if table.shape[1] != len(first):  # pandas would take the first column for names of rows, or make columns up
        raise ParameterError(
            "path", f"{path}: its first row has {len(first)} columns, the rows below have {table.shape[1]}"
        )
    names = first if header else [str(c) for c in table.columns]
    table.columns = names
    inside = {}
    for name in dict.fromkeys(str(one) for one in labels if one is not None):
        if names.count(name) > 1:
            raise ParameterError("labels", f"{path} has {names.count(name)} columns '{name}'")
        if header and name in names:
            inside[name] = table.pop(name).to_numpy()
        elif not Path(name).is_file():
            raise ParameterError(
                "labels" if name == labels[0] else "client",
                f"{path} has no variable '{name}'{nearest(name, names)}, and there is no such file",
            )
    text = [name for name, kind in zip(table.columns, table.dtypes, strict=True) if kind.kind not in "biuf"]
    if text:
        raise ParameterError("path", f"{path}: column '{text[0]}' holds text; name it with labels: or take it out")
    return {"X": table.to_numpy(dtype=np.float64), **inside}


def _is_header(path: Path, first: list[str]) -> bool:
    """Return whether the first row is a header: words, or words and distinct integers, but not only numbers."""
    text = [cell for cell in first if cell and not is_number(cell)]
    numbers = [cell for cell in first if is_number(cell)]
    if text and (len(set(numbers)) < len(numbers) or not all(cell.strip().isdigit() for cell in numbers)):
        raise ParameterError(
            "path", f"{path}: '{text[0][:40]}' in its first row is no number, but the row is no header either"
        )
    return bool(text)


def is_number(cell: str) -> bool:
    """Return whether a cell of a table is a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _numbers(path: str, matrix: Any) -> Any:
    """Return the matrix as finite float64 (a map keeps its type). Raises ParameterError with the place of others."""
    sparse = hasattr(matrix, "tocoo")
    if not sparse:
        matrix = np.asanyarray(matrix)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ParameterError(
            "path", f"{path} contains an array of shape {matrix.shape}; a matrix with entries is needed"
        )
    if matrix.dtype.kind not in "biuf":
        raise ParameterError("path", f"{path} contains values of type {matrix.dtype}; real numbers are needed")
    if sparse:
        arrays.structure(path, matrix)
        side, least = max(matrix.shape), EMPTY + 1000 * matrix.nnz
        if side > least:
            raise ParameterError(
                "path", f"{path} declares {side:,} rows or columns, but contains {matrix.nnz:,} entries"
            )
        matrix = matrix.tocoo().astype(np.float64)
        bad = np.flatnonzero(~np.isfinite(matrix.data))
        places, at = len(bad), (matrix.row[bad[0]], matrix.col[bad[0]]) if len(bad) else None
    else:
        matrix = matrix if isinstance(matrix, np.memmap) else matrix.astype(np.float64, copy=False)
        places, at = mapped.not_finite(matrix)
    if at is not None:
        raise ParameterError(
            "path", f"{path} has NaN or infinity in {places:,} places, first at row {at[0]}, column {at[1]}"
        )
    return matrix


def _labels(
    name: str, path: str, labels: np.ndarray | None, M: int, N: int, orientation: str
) -> tuple[np.ndarray | None, list | None]:
    if labels is None:
        return None, None
    if len(labels) != N:
        raise ParameterError(name, _mismatch(name, path, len(labels), M, N, orientation))
    return numbered(labels)


def plain(parameter: str, labels: Any) -> np.ndarray:
    """Return labels, ids or names as an array (N,) of numbers or of words. Raises ParameterError for missing ones."""
    values = np.asarray(labels).ravel()
    if values.dtype.kind == "O":  # words in cells, as in MATLAB and pandas
        cells = [cell.item() if isinstance(cell, np.ndarray) and cell.size == 1 else cell for cell in values]
        if any(cell is None or (isinstance(cell, float) and cell != cell) for cell in cells):
            raise ParameterError(parameter, f"some {parameter} are missing (NaN)")
        values = np.array(cells, dtype=str) if all(isinstance(cell, str) for cell in cells) else values
    if values.dtype.kind not in "biufSU":
        raise ParameterError(parameter, f"hold values of type {values.dtype}; numbers or words are needed")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise ParameterError(parameter, f"some {parameter} are missing (NaN)")
    return values


def one_each(parameter: str, path: Path) -> Any:
    """Return one value per sample, user or rating: the file's only variable or column, or one with a usual name."""
    ending = path.suffix.lower()
    if ending not in LABEL_ENDINGS:
        raise ParameterError(parameter, f"{path} must end in .npy, .npz, .mat, .csv or .txt")
    if ending in (".csv", ".txt"):
        return _label_lines(parameter, path)
    content = variables(parameter, path, ())
    known = [name for name in LABEL_KEYS if name in content]
    if known or len(content) == 1:
        return content[known[0] if known else next(iter(content))]
    raise ParameterError(
        parameter, f"{path} contains several variables ({shown(content)}); keep one, or name it 'labels'"
    )


def _label_lines(parameter: str, path: Path) -> np.ndarray:
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except UnicodeDecodeError as error:
        raise ParameterError(parameter, f"{path} is not text in UTF-8 ({error})") from error
    try:
        return np.array([float(line) for line in lines])
    except ValueError:
        return np.array(lines)


add_dataset(
    DatasetEntry(
        name="file",
        cls=MatrixFile,
        kind="samples",
        summary="a matrix of your own: .npz, .npy, .mat, .csv or .mtx",
    )
)
