"""A matrix of the user's own: .npz, .npy, .mat, .csv or .mtx, with labels where there are any.

``path`` is relative to the working directory. ``key`` names the matrix inside .npz and .mat files (default: ``X``,
``fea``, ``data``, ``features``, or the only matrix). ``labels`` is a variable of the same file, a column name of the
CSV, or the path of another file (.npy, .npz, .mat, .csv, .txt) with one label per sample. ``orientation`` says where
samples stand: ``columns`` (as in the papers) or ``rows`` (as most tools store them). Sparse matrices stay sparse.
A .npy file is mapped, never read as a whole: it may be larger than memory (``mapped``).
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedrepro.datasets import mapped
from fedrepro.datasets.types import Samples
from fedrepro.errors import ParameterError, UserError, nearest
from fedrepro.parameters import one_of
from fedrepro.protocols import Loader
from fedrepro.registry import Dataset, add_dataset

KEYS = ("X", "fea", "data", "features")
LABEL_KEYS = ("labels", "y", "gnd", "label", "target")
ENDINGS = (".npz", ".npy", ".mat", ".csv", ".mtx")


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
        matrix, inside = _read(Path(self.path), self.key, self.labels)
        X = _numbers(self.path, matrix)
        if self.orientation == "rows":
            X = X.T
        X = X.tocsc() if hasattr(X, "tocsc") else mapped.by_sample(X) if isinstance(X, np.memmap) else X
        y, values = _labels(self.path, inside, self.labels, X.shape[1])
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


def _read(path: Path, key: str | None, labels: str | None) -> tuple[Any, Any]:
    """The matrix, and the labels where they stand in the same file."""
    reader = {".npz": _npz, ".npy": _npy, ".mat": _mat, ".csv": _csv, ".mtx": _mtx}[path.suffix.lower()]
    try:
        content = reader(path, labels)
    except ParameterError:
        raise
    except UserError as error:
        raise ParameterError("path", str(error)) from error
    except (OSError, ValueError, EOFError) as error:
        raise ParameterError("path", f"{path} cannot be read as {path.suffix} ({error})") from error
    chosen = _pick(path, content, key)
    inside = None
    if labels is not None and not Path(labels).is_file():
        if labels not in content:
            raise ParameterError(
                "labels",
                f"{path} has no variable '{labels}'{nearest(labels, content)}, and there is no such file",
            )
        inside = content[labels]
    return content[chosen], inside


def _pick(path: Path, content: dict[str, Any], key: str | None) -> str:
    names = ", ".join(content) or "nothing"
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

    return {"X": mmread(path)}


def _csv(path: Path, labels: str | None) -> dict[str, Any]:
    """The table; a first row with any text is a header, and the column named by ``labels`` is not part of X."""
    import pandas as pd

    first = pd.read_csv(path, header=None, nrows=1)
    header = any(isinstance(v, str) for v in first.iloc[0])
    table = pd.read_csv(path, header=0 if header else None)
    inside = {}
    if header and labels in table.columns:
        inside[str(labels)] = table.pop(str(labels)).to_numpy()
    text = [str(c) for c in table.columns if not pd.api.types.is_numeric_dtype(table[c])]
    if text:
        raise ParameterError("path", f"{path}: column '{text[0]}' holds text; name it with labels: or take it out")
    return {"X": table.to_numpy(dtype=np.float64), **inside}


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


def _labels(path: str, inside: Any, labels: str | None, N: int) -> tuple[np.ndarray | None, list | None]:
    if labels is None:
        return None, None
    found = inside if inside is not None else _label_file(Path(labels))
    found = np.asarray(found).ravel()
    if len(found) != N:
        raise ParameterError(
            "labels",
            f"{len(found):,} labels do not match the {N:,} samples of {path}; "
            "if samples stand in rows, set orientation: rows",
        )
    if found.dtype.kind == "f" and not np.isfinite(found).all():
        raise ParameterError("labels", "some labels are missing (NaN)")
    values, y = np.unique(found, return_inverse=True)
    return y.astype(np.int64), values.tolist()


def _label_file(path: Path) -> Any:
    ending = path.suffix.lower()
    if ending in (".csv", ".txt"):
        lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        try:
            return np.array([float(line) for line in lines])
        except ValueError:
            return np.array(lines)
    if ending not in (".npy", ".npz", ".mat"):
        raise ParameterError("labels", f"{path} must end in .npy, .npz, .mat, .csv or .txt")
    content = {".npy": _npy, ".npz": _npz, ".mat": _mat}[ending](path, None)
    known = [name for name in LABEL_KEYS if name in content]
    if known or len(content) == 1:
        return content[known[0] if known else next(iter(content))]
    raise ParameterError(
        "labels", f"{path} holds several variables ({', '.join(content)}); keep one, or name it 'labels'"
    )


add_dataset(
    Dataset(
        name="file",
        cls=MatrixFile,
        kind="samples",
        summary="a matrix of your own: .npz, .npy, .mat, .csv or .mtx",
    )
)
