"""A matrix of the user's own: .npz, .npy, .mat, .csv or .mtx, with labels where there are any.

``path`` is relative to the working directory. ``key`` names the matrix inside .npz and .mat files (default: ``X``,
``fea``, ``data``, ``features``, or the only matrix). ``labels`` is a variable of the same file, a column name of the
CSV, or the path of another file (.npy, .npz, .mat, .csv, .txt) with one label per sample. ``orientation`` says where
samples stand: ``columns`` (as in the papers) or ``rows`` (as most tools store them). Sparse matrices stay sparse.
A .npy file is mapped, never read as a whole: it may be larger than memory (``mapped``). Every other file is read in a
process of its own (``fedrepro.data.apart``), which leaves plain arrays.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from fedrepro import arrays
from fedrepro.data import apart
from fedrepro.datasets import mapped
from fedrepro.datasets.types import Samples
from fedrepro.errors import ParameterError, UserError, nearest
from fedrepro.files import nameless_folder
from fedrepro.parameters import one_of
from fedrepro.protocols import Loader
from fedrepro.registry import Dataset, add_dataset

KEYS = ("X", "fea", "data", "features")
LABEL_KEYS = ("labels", "y", "gnd", "label", "target")
ENDINGS = (".npz", ".npy", ".mat", ".csv", ".mtx")
LABEL_ENDINGS = (".npy", ".npz", ".mat", ".csv", ".txt")
EMPTY = 10_000_000
"""Rows or columns that a sparse matrix may have whatever it holds; more need an entry for every thousand of them."""


@dataclass(frozen=True)
class MatrixFile(Loader):
    """A matrix in a file, one sample per column once it is read.

    path : the file, ending in .npz, .npy, .mat, .csv or .mtx; it must exist, and is read by ``load`` only.
    key : the name of the matrix in the file; None to find it. labels : a variable of the file, a column of the CSV, or
    another file with one label per sample; None for none. orientation : where samples stand, columns or rows.
    """

    path: str
    key: str | None = None
    labels: str | None = None
    orientation: str = "columns"

    def __post_init__(self) -> None:
        """Raise ParameterError where a value cannot work."""
        one_of("orientation", self.orientation, ("columns", "rows"))
        if not isinstance(self.path, str) or Path(self.path).suffix.lower() not in ENDINGS:
            raise ParameterError("path", f"must name a file ending in {', '.join(ENDINGS)}, not {self.path!r}")
        if not Path(self.path).is_file():
            raise ParameterError("path", f"{self.path} does not exist (relative paths start in {Path.cwd()})")

    def shape(self) -> dict[str, int | None]:
        """Only the file tells; without labels no classes. Raises ParameterError for labels that are nowhere."""
        if self.labels is not None:
            _find_labels(Path(self.path), self.labels)
        return {"M": None, "N": None, "K": None if self.labels is not None else 0}

    def expected(self) -> dict[str, float]:
        """About as many numbers as the file has bytes for, in a square."""
        side = max(10.0, (Path(self.path).stat().st_size / 8.0) ** 0.5)
        return {"M": side, "N": side, "K": 10}

    def load(self) -> Samples:
        """X (M, N), float64 array or scipy.sparse CSC; labels 0 .. K-1 in the sorted order of the values found.

        Of a .npy file X is a read-only map, of the file or, where its samples are not one after another in float64, of
        a copy without a name (8 M N bytes of disk, until X is dropped).

        Raises ParameterError where the file holds no such matrix, holds NaN or infinity, is empty, or where labels do
        not match the samples.
        """
        with nameless_folder() as folder:
            try:
                memory = apart.fair([Path(name) for name in (self.path, self.labels) if name and Path(name).is_file()])
                given = (self.path, self.key, self.labels, self.orientation, str(folder))
                held = apart.call(read, *given, what=self.path, memory=memory)
            except ParameterError:
                raise
            except UserError as error:
                raise ParameterError("path", str(error)) from error
            found = {name: np.load(folder / f"{name}.npy") for name in held}
        X = _matrix(found) if "data" in found or "X" in found else _mapped(self.path, self.orientation)
        y, values = _labels(self.path, found.get("labels"), X.shape[1])
        facts: dict[str, Any] = {"file": Path(self.path).name, "orientation": self.orientation}
        if values is not None:
            facts["label_values"] = values
        return Samples(X, y, None if values is None else len(values), facts)


def _find_labels(path: Path, labels: Any) -> None:
    """Raise ParameterError where neither the file nor a variable of it has this name, as far as its head tells."""
    if not isinstance(labels, str):
        raise ParameterError("labels", f"must be a name or a file, not {labels!r}")
    if Path(labels).is_file() or path.suffix.lower() == ".mat":
        return
    try:
        names = _names(path)
    except (OSError, ValueError, zipfile.BadZipFile):
        return  # which ``load`` says better
    if labels not in names:
        said = f"{path} has no variable '{labels}'{nearest(labels, names)}, and there is no such file"
        raise ParameterError("labels", said)


def _names(path: Path) -> list[str]:
    """What may be named as labels in a table or an archive; nothing in other files."""
    if path.suffix.lower() == ".npz":
        with zipfile.ZipFile(path) as archive:
            return [name.removesuffix(".npy") for name in archive.namelist()]
    if path.suffix.lower() != ".csv":
        return []
    import pandas as pd

    first = pd.read_csv(path, header=None, nrows=1).iloc[0]
    return [str(v) for v in first] if any(isinstance(v, str) for v in first) else []


def read(path: str, key: str | None, labels: str | None, orientation: str, out: str) -> list[str]:
    """Leave the matrix (but a map) and the labels as plain arrays in the folder ``out``; their names are returned.

    A dense matrix is ``X``, (M, N) float64; a sparse one is its canonical CSC form, ``data``, ``indices``, ``indptr``
    and ``shape``.
    """
    file, found = Path(path), dict[str, Any]()
    content = _content("path", file, labels)
    matrix = content[_pick(file, content, key)]
    if not isinstance(matrix, np.memmap):
        X = _numbers(path, matrix)
        X = X.T if orientation == "rows" else X
        if hasattr(X, "tocsc"):
            X = X.tocsc()
            X.sum_duplicates()
            found = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": np.array(X.shape)}
        else:
            found = {"X": X}
    if labels is not None:
        found["labels"] = _plain(_label_values(path, content, labels))
    for name, array in found.items():
        np.save(Path(out) / f"{name}.npy", array, allow_pickle=False)
    return list(found)


def _matrix(found: dict[str, np.ndarray]) -> Any:
    if "X" in found:
        return found["X"]
    from scipy.sparse import csc_matrix

    X = csc_matrix((found["data"], found["indices"], found["indptr"]), shape=tuple(found["shape"].tolist()))
    arrays.structure("X", X)
    return X


def _mapped(path: str, orientation: str) -> np.ndarray:
    X = _numbers(path, np.load(path, mmap_mode="r", allow_pickle=False))
    return mapped.by_sample(X.T if orientation == "rows" else X)


def _content(parameter: str, path: Path, labels: str | None) -> dict[str, Any]:
    """The variables of a file by name."""
    reader = {".npz": _npz, ".npy": _npy, ".mat": _mat, ".csv": _csv, ".mtx": _mtx}[path.suffix.lower()]
    try:
        return reader(path, labels)
    except ParameterError:
        raise
    except UserError as error:
        raise ParameterError(parameter, str(error)) from error
    except Exception as error:  # readers raise whatever broken bytes lead them to
        raise ParameterError(parameter, f"{path} cannot be read as {path.suffix} ({error})") from error


def _label_values(path: str, content: dict[str, Any], labels: str) -> Any:
    """The labels, from the same file or from another."""
    if Path(labels).is_file():
        return _label_file(Path(labels))
    if labels not in content:
        raise ParameterError(
            "labels", f"{path} has no variable '{labels}'{nearest(labels, content)}, and there is no such file"
        )
    return content[labels]


def _pick(path: Path, content: dict[str, Any], key: str | None) -> str:
    names = _shown(content)
    if key is not None:
        if key not in content:
            raise ParameterError("key", f"{path} has no variable '{key}'{nearest(key, content)} (it holds {names})")
        return key
    matrices = [name for name, value in content.items() if np.ndim(value) == 2 or hasattr(value, "tocsc")]
    known = [name for name in KEYS if name in matrices]
    others = [name for name in matrices if name not in LABEL_KEYS]
    if known or len(others) == 1:
        return known[0] if known else others[0]
    raise ParameterError("key", f"say which variable of {path} is the matrix (it holds {names})")


def _shown(names: Iterable[str]) -> str:
    """Names of variables, as far as they are fit to print."""
    text = "".join(c if c.isprintable() else "?" for c in ", ".join(names)) or "nothing"
    return text if len(text) <= 200 else f"{text[:200]} ..."


def _npz(path: Path, labels: str | None) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as archive:
        if {"format", "shape", "data"} <= set(archive.files):
            from scipy.sparse import load_npz

            return {"X": load_npz(path)}
        return {name: archive[name] for name in archive.files}


def _npy(path: Path, labels: str | None) -> dict[str, Any]:
    try:
        return {"X": np.load(path, mmap_mode="r", allow_pickle=False)}
    except ValueError:  # nothing to map (objects, no entries), which reading says better
        return {"X": np.load(path, allow_pickle=False)}


def _mat(path: Path, labels: str | None) -> dict[str, Any]:
    from fedrepro.data.formats.matlab import matlab

    return matlab(str(path), path.read_bytes())


def _mtx(path: Path, labels: str | None) -> dict[str, Any]:
    from scipy.io import mmread

    with threadpool_limits(limits=1):  # each of its threads would take memory of its own
        matrix = mmread(path)
    _check_mtx(path)
    return {"X": matrix}


def _check_mtx(path: Path) -> None:
    """Raise UserError for a line that is no entry: ``mmread`` reads ``8.1E-`` as 8.1, and leaves out what follows."""
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


def _csv(path: Path, labels: str | None) -> dict[str, Any]:
    """The table; a first row with any text is a header, and the column named by ``labels`` is not part of X."""
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
    if names.count(str(labels)) > 1:
        raise ParameterError("labels", f"{path} has {names.count(str(labels))} columns '{labels}'")
    inside = {}
    if header and labels in names:
        inside[str(labels)] = table.pop(str(labels)).to_numpy()
    text = [name for name, kind in zip(table.columns, table.dtypes, strict=True) if kind.kind not in "biuf"]
    if text:
        raise ParameterError("path", f"{path}: column '{text[0]}' holds text; name it with labels: or take it out")
    return {"X": table.to_numpy(dtype=np.float64), **inside}


def _is_header(path: Path, first: list[str]) -> bool:
    """Whether the first row names columns: by words, by words and distinct whole numbers, never by numbers alone."""
    text = [cell for cell in first if cell and not _is_number(cell)]
    numbers = [cell for cell in first if _is_number(cell)]
    if text and (len(set(numbers)) < len(numbers) or not all(cell.strip().isdigit() for cell in numbers)):
        raise ParameterError(
            "path", f"{path}: '{text[0][:40]}' in its first row is no number, but the row is no header either"
        )
    return bool(text)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _numbers(path: str, matrix: Any) -> Any:
    """The matrix as finite float64 (a map: of its own type), or one error that says where it is not."""
    sparse = hasattr(matrix, "tocoo")
    if not sparse:
        matrix = np.asanyarray(matrix)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ParameterError("path", f"{path} holds an array of shape {matrix.shape}; a matrix with entries is needed")
    if matrix.dtype.kind not in "biuf":
        raise ParameterError("path", f"{path} holds values of type {matrix.dtype}; real numbers are needed")
    if sparse:
        arrays.structure(path, matrix)
        side, least = max(matrix.shape), EMPTY + 1000 * matrix.nnz
        if side > least:
            raise ParameterError(
                "path", f"{path} says that it has {side:,} rows or columns, and holds {matrix.nnz:,} entries"
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


def _labels(path: str, found: np.ndarray | None, N: int) -> tuple[np.ndarray | None, list | None]:
    if found is None:
        return None, None
    if len(found) != N:
        raise ParameterError(
            "labels",
            f"{len(found):,} labels do not match the {N:,} samples of {path}; "
            "if samples stand in rows, set orientation: rows",
        )
    values, y = np.unique(found, return_inverse=True)
    return y.astype(np.int64), values.tolist()


def _plain(labels: Any) -> np.ndarray:
    """Labels as an array (N,) of numbers or of words, none missing."""
    found = np.asarray(labels).ravel()
    if found.dtype.kind == "O":  # words in cells, as MATLAB and pandas have them
        cells = [one.item() if isinstance(one, np.ndarray) and one.size == 1 else one for one in found]
        if any(one is None or (isinstance(one, float) and one != one) for one in cells):
            raise ParameterError("labels", "some labels are missing (NaN)")
        found = np.array(cells, dtype=str) if all(isinstance(one, str) for one in cells) else found
    if found.dtype.kind not in "biufSU":
        raise ParameterError("labels", f"hold values of type {found.dtype}; numbers or words are needed")
    if found.dtype.kind == "f" and not np.isfinite(found).all():
        raise ParameterError("labels", "some labels are missing (NaN)")
    return found


def _label_file(path: Path) -> Any:
    ending = path.suffix.lower()
    if ending not in LABEL_ENDINGS:
        raise ParameterError("labels", f"{path} must end in .npy, .npz, .mat, .csv or .txt")
    if ending in (".csv", ".txt"):
        return _label_lines(path)
    content = _content("labels", path, None)
    known = [name for name in LABEL_KEYS if name in content]
    if known or len(content) == 1:
        return content[known[0] if known else next(iter(content))]
    raise ParameterError("labels", f"{path} holds several variables ({_shown(content)}); keep one, or name it 'labels'")


def _label_lines(path: Path) -> np.ndarray:
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except UnicodeDecodeError as error:
        raise ParameterError("labels", f"{path} is not text in UTF-8 ({error})") from error
    try:
        return np.array([float(line) for line in lines])
    except ValueError:
        return np.array(lines)


add_dataset(
    Dataset(
        name="file",
        cls=MatrixFile,
        kind="samples",
        summary="a matrix of your own: .npz, .npy, .mat, .csv or .mtx",
    )
)
