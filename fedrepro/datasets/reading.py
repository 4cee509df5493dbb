"""Reading files of the user's own that hold several things by name: columns of a table, variables of an archive.

What is read is of unknown origin: a function of the loader's module reads it in a process of its own
(``fedrepro.data.isolated``) and leaves plain arrays in a folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
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


def there(parameter: str, text: Any, endings: Iterable[str], folders: bool = False) -> None:
    """Raise ParameterError unless a parameter names a file with one of these endings, or, if so, a folder."""
    endings = tuple(endings)
    path = own.found(text) if isinstance(text, str) else None
    if path is not None and folders and path.is_dir():
        return
    if path is None or path.suffix.lower() not in endings:
        kinds = f"{'a folder, or ' if folders else ''}a file ending in {', '.join(endings)}"
        raise ParameterError(parameter, f"must name {kinds}, not {text!r}")
    if not path.is_file():
        raise ParameterError(parameter, f"{text} does not exist (relative paths start in {own.start(text)})")


def names(**given: Any) -> None:
    """Raise ParameterError for what is neither a name nor None."""
    for parameter, value in given.items():
        if not isinstance(value, str | None) or value == "":
            raise ParameterError(parameter, f"must be a name, not {value!r}")


def place(text: str | None) -> str | None:
    """Another file by its path, a variable or column by its name."""
    if text is None:
        return None
    path = own.found(text)
    return str(path) if path.is_file() else str(text)


def arrays(loader: Dataset, function: Callable[..., list[str]], *given: Any) -> dict[str, np.ndarray]:
    """The arrays that a top-level function leaves of the loader's files; ``function(*given, folder)`` names them."""
    params = {name: getattr(loader, name) for name in loader.files}
    files = own.files(loader.files, params)
    what = own.label(loader.files, params)
    with nameless_folder() as folder:
        try:
            held = isolated.call(function, *given, str(folder), what=what, memory=isolated.fair(files))
        except ParameterError:
            raise
        except UserError as error:
            raise ParameterError(loader.files[0], str(error)) from error
        return {name: np.load(folder / f"{name}.npy", allow_pickle=False) for name in held}


def keep(found: Mapping[str, Any], out: str) -> list[str]:
    """Leave arrays (None: left out) and sparse matrices, as the parts of their CSR form, in a folder; their names."""
    saved = []
    for name, value in found.items():
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


def matrix(found: Mapping[str, np.ndarray], name: str) -> Any:
    """What ``keep`` left under a name: an array, a CSR matrix, or None."""
    if f"{name}.indptr" not in found:
        return found.get(name)
    from scipy.sparse import csr_matrix

    from fedrepro.arrays import structure

    parts = tuple(found[f"{name}.{part}"] for part in ("data", "indices", "indptr"))
    made = csr_matrix(parts, shape=tuple(found[f"{name}.shape"].tolist()))
    structure(name, made)
    return made


def content(parameter: str, path: Path) -> dict[str, Any]:
    """Everything a file holds, by name: the columns of a table, the variables of an archive, or one matrix ``X``."""
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
            f"{path} is a Parquet file, which takes pyarrow to read: `pip install pyarrow`, or save it as CSV",
        ) from error
    except Exception as error:  # the library raises whatever broken bytes lead it to
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
    """A column or variable by its name, or what another file of that name has."""
    if name in held:
        return held[name]
    if Path(name).is_file():
        return one_each(parameter, Path(name))
    raise ParameterError(
        parameter, f"{path} has no column or variable '{name}'{nearest(name, held)} (it holds {shown(held)})"
    )


def ids(parameter: str, values: Any) -> np.ndarray:
    """Ids or names (n,), none missing."""
    return plain(parameter, values)


def numbers(parameter: str, path: Any, values: Any, ndim: int) -> np.ndarray:
    """Finite float64 numbers with so many axes; a column of a matrix counts as a vector."""
    found = values.toarray() if hasattr(values, "toarray") else np.asarray(values)
    if ndim == 1 and found.ndim == 2 and 1 in found.shape:
        found = found.ravel()
    if found.ndim != ndim or not found.size:
        raise ParameterError(parameter, f"{path} holds an array of shape {found.shape}; {ndim} axes are needed")
    if found.dtype.kind not in "biuf":
        raise ParameterError(parameter, f"{path} holds values of type {found.dtype}; real numbers are needed")
    found = found.astype(np.float64)
    bad = np.argwhere(~np.isfinite(found))
    if len(bad):
        at = ", ".join(str(int(i)) for i in bad[0])
        raise ParameterError(parameter, f"{path} has NaN or infinity in {len(bad):,} places, first at {at} (from 0)")
    return found


TEST_WORDS = {"train": False, "test": True, "0": False, "1": True, "0.0": False, "1.0": True}
TEST_WORDS |= {"false": False, "true": True}


def held_back(parameter: str, values: Any, count: int) -> np.ndarray:
    """Which of so many are to test with, from 0 and 1 or the words train and test: (count,) bool."""
    found = plain(parameter, values)
    if len(found) != count:
        raise ParameterError(parameter, f"says of {len(found):,} what they are for, and there are {count:,}")
    words = [str(one).strip().lower() for one in found]
    odd = next((word for word in words if word not in TEST_WORDS), None)
    if odd is not None:
        raise ParameterError(parameter, f"must hold 0 (train) and 1 (test), or these words, not '{odd[:40]}'")
    return np.array([TEST_WORDS[word] for word in words], dtype=bool)


def lengths(path: Any, **columns: Any) -> None:
    """Raise ParameterError where columns differ in length, naming all."""
    counts = {name: len(values) for name, values in columns.items() if values is not None}
    if len(set(counts.values())) > 1:
        said = ", ".join(f"{name} {count:,}" for name, count in counts.items())
        raise ParameterError("path", f"{path}: its columns differ in length ({said})")


_SIZES: dict[Any, dict[str, Any]] = {}


def size_once(loader: Any, more: Callable[[Any], dict[str, Any]] = lambda data: {}) -> dict[str, Any]:
    """The size of what a loader gives, and ``more`` that is to be known of it, read once of each version of its files.

    Raises what loading raises: a file that cannot be used is refused before anything runs.
    """
    key = own.marks(loader)
    if key not in _SIZES:
        data = loader.load()
        if len(_SIZES) >= 256:
            _SIZES.clear()
        _SIZES[key] = {**size(data), **more(data)}
    return dict(_SIZES[key])
