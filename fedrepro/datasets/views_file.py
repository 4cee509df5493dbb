"""The user's own views: several matrices whose rows are the same samples.

``path`` is one archive (.npz, .mat) with one array per view, or a list of files with one matrix each (.npz, also of
scipy.sparse, .npy, .mat, .csv, .mtx). ``views`` names the arrays of the archive; by default all of its numeric matrices
are used, in their order. Samples are rows, as in the paper (gcca), or columns with ``orientation: columns``. Sparse
matrices stay sparse, unless ``dense`` asks for arrays, which networks need.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from fedrepro.data import own
from fedrepro.datasets import reading
from fedrepro.datasets.file import ENDINGS, KEYS, LABEL_KEYS, variables
from fedrepro.datasets.own_types import numbered
from fedrepro.datasets.types import Views
from fedrepro.errors import ParameterError
from fedrepro.parameters import Name, OneOf, check, several
from fedrepro.protocols import Cost, Dataset, Work
from fedrepro.registry import DatasetEntry, add_dataset


@dataclass(frozen=True)
class ViewsFile(Dataset):
    """Aligned views in one file, or in one file each.

    path : an archive with all views, or a list of two or more files. views : names of the archive's arrays, two or
    more; None for all. labels : an array of the archive, or another file with one label per sample; None for none.
    orientation : whether samples are rows or columns. dense : whether sparse views become arrays.
    """

    files = ("path", "labels")

    path: str | list[str]
    views: list[str] | None = None
    labels: Annotated[str | None, Name()] = None
    orientation: Annotated[str, OneOf("rows", "columns")] = "rows"
    dense: bool = False

    def __post_init__(self) -> None:
        """Raise ParameterError if a value is invalid."""
        super().__post_init__()
        if isinstance(self.path, str):
            check("path", self.path, own.OwnFile(*reading.ARCHIVES))
        else:
            several("path", self.path)
            for path in self.path:
                check("path", path, own.OwnFile(*ENDINGS))
        if self.views is not None:
            several("views", self.views)
            if not isinstance(self.path, str):
                raise ParameterError(
                    "views", "names the arrays of one archive, but path is a list of files with one view each"
                )

    def shape(self) -> dict[str, Any]:
        """Return J rows, I views, and N columns if all views have as many."""
        return {name: value for name, value in self._known().items() if name in ("J", "I", "N")}

    def expected(self) -> dict[str, Any]:
        """Return the mean number of columns, and the density of sparse views."""
        known = self._known()
        return {"N": known["columns"]} | ({} if known["density"] is None else {"density": known["density"]})

    def _known(self) -> dict[str, Any]:
        return reading.size_once(self, _more)

    def making(self) -> Cost:
        """Return the cost of reading every entry."""
        known = self._known()
        entries = known["J"] * known["I"] * known["columns"] * (known["density"] or 1.0)
        return Cost(Work(singles=30.0 * entries, calls=2000.0), holds=16.0 * entries)

    def load(self) -> Views:
        """Return I views (J, N_i), float64 arrays or scipy.sparse CSR; labels 0 .. K-1 in the sorted order of values.

        Raises ParameterError if views have different numbers of rows, or contain NaN or infinity.
        """
        paths = [self.path] if isinstance(self.path, str) else self.path
        places = [str(own.found(path)) for path in paths]
        labels_at = reading.place(self.labels)
        saved = reading.arrays(self, read, places, self.views, labels_at, self.orientation, self.dense)
        count = len({name.split(".")[0] for name in saved if name.startswith("view")})
        views = [reading.matrix(saved, f"view{i}") for i in range(count)]
        labels, values = (None, None) if "labels" not in saved else numbered(saved["labels"])
        facts: dict[str, Any] = {"files": [Path(path).name for path in paths]}
        return Views(views, labels, facts | ({} if values is None else {"label_values": values}))


def _more(data: Views) -> dict[str, Any]:
    sizes = [int(np.prod(view.shape)) for view in data.views]
    sparse = any(hasattr(view, "nnz") for view in data.views)
    stored = sum(int(view.nnz) if hasattr(view, "nnz") else view.size for view in data.views)
    columns = float(np.mean([view.shape[1] for view in data.views]))
    return {"columns": columns, "density": stored / sum(sizes) if sparse else None}


def read(
    paths: list[str], wanted: list[str] | None, labels: str | None, orientation: str, dense: bool, out: str
) -> list[str]:
    """Write the views and the labels to the folder ``out``; for ``isolated.call``."""
    first = variables("path", Path(paths[0]), ())
    if len(paths) == 1:
        chosen = _of_archive(paths[0], first, wanted, labels)
    else:
        chosen = {path: _only(Path(path), first if path == paths[0] else None) for path in paths}
    views = {name: _turned(name, value, orientation, dense) for name, value in chosen.items()}
    rows = [view.shape[0] for view in views.values()]
    if len(set(rows)) > 1:
        shapes = "; ".join(f"{Path(name).name}: {view.shape[0]} x {view.shape[1]}" for name, view in views.items())
        other = "columns" if orientation == "rows" else "rows"
        turned = len({view.shape[1] for view in views.values()}) == 1
        hint = f". They agree if samples are {other}: set orientation: {other}" if turned else ""
        raise ParameterError(
            "path",
            f"views must have the same samples in the same order, but their numbers of rows differ ({shapes}){hint}",
        )
    kept: dict[str, Any] = {f"view{i}": view for i, view in enumerate(views.values())}
    if labels is not None:
        kept["labels"] = reading.plain("labels", reading.column("labels", Path(paths[0]), first, labels))
        if len(kept["labels"]) != rows[0]:
            raise ParameterError("labels", f"{len(kept['labels']):,} labels do not match the {rows[0]:,} samples")
    return reading.keep(kept, out)


def _of_archive(path: str, held: dict[str, Any], wanted: list[str] | None, labels: str | None) -> dict[str, Any]:
    if wanted is not None:
        return {name: reading.column("views", Path(path), held, name) for name in wanted}
    skipped = {labels, *LABEL_KEYS}
    matrices = {
        name: value
        for name, value in held.items()
        if name not in skipped and (hasattr(value, "tocsr") or (np.ndim(value) == 2 and min(np.shape(value)) > 1))
    }
    if len(matrices) < 2:
        raise ParameterError(
            "path",
            f"{path} contains {len(matrices)} matrices with rows and columns ({reading.shown(held)}); two or more "
            "views are needed, or a list of files",
        )
    return matrices


def _only(path: Path, held: dict[str, Any] | None) -> Any:
    held = variables("path", path, ()) if held is None else held
    matrices = {name: value for name, value in held.items() if np.ndim(value) == 2 or hasattr(value, "tocsr")}
    known = [name for name in KEYS if name in matrices]
    if known or len(matrices) == 1:
        return matrices[known[0] if known else next(iter(matrices))]
    raise ParameterError("path", f"{path} contains {reading.shown(held)}; one matrix is needed, or one named X")


def _turned(name: str, value: Any, orientation: str, dense: bool) -> Any:
    if hasattr(value, "tocsr"):
        from fedrepro.arrays import structure

        structure(name, value)
        if not np.isfinite(value.data).all():
            raise ParameterError("path", f"{name} has NaN or infinity among its entries")
        view = (value.toarray() if dense else value).astype(np.float64)
    else:
        view = reading.numbers("path", name, value, 2)
    return view if orientation == "rows" else view.T


add_dataset(
    DatasetEntry(
        name="views-file",
        cls=ViewsFile,
        kind="views",
        summary="views of your own: several matrices with the same rows, dense or sparse",
    )
)
