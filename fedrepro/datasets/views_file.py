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

from fedrepro.data import own_paths
from fedrepro.data.formats.named_arrays import ARCHIVES
from fedrepro.datasets.matrix_file import ENDINGS
from fedrepro.datasets.own_files import LABEL_NAMES, Array, Content, OwnFiles, is_matrix, numbered, numbers, opened
from fedrepro.datasets.sizes import size
from fedrepro.datasets.types import Views
from fedrepro.errors import ParameterError, counted
from fedrepro.parameters import Name, OneOf, check, several
from fedrepro.protocols import Cost, Work
from fedrepro.registry import add_dataset


@dataclass(frozen=True)
class ViewsFile(OwnFiles):
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
            check("path", self.path, own_paths.OwnFile(*ARCHIVES))
        else:
            several("path", self.path)
            for path in self.path:
                check("path", path, own_paths.OwnFile(*ENDINGS))
        if self.views is not None:
            several("views", self.views)
            if not isinstance(self.path, str):
                raise ParameterError(
                    "views", "names the arrays of one archive, but path is a list of files with one view each"
                )

    def shape(self) -> dict[str, Any]:
        """Return J rows, I views, N columns if all views have as many, and the largest rank that all views can have."""
        return {name: value for name, value in self.sizes().items() if name in ("J", "I", "N", "rank")}

    def expected(self) -> dict[str, Any]:
        """Return the mean number of columns, and the density of sparse views."""
        known = self.sizes()
        return {"N": known["columns"]} | ({} if known["density"] is None else {"density": known["density"]})

    def measured(self) -> dict[str, Any]:
        """Return the shape, the mean number of columns, and the density of sparse views."""
        data = self.load()
        entries = sum(view.shape[0] * view.shape[1] for view in data.views)
        sparse = any(hasattr(view, "nnz") for view in data.views)
        stored = sum(int(view.nnz) if hasattr(view, "nnz") else view.size for view in data.views)
        columns = float(np.mean([view.shape[1] for view in data.views]))
        rank = min(min(view.shape) for view in data.views)
        return {**size(data), "rank": rank, "columns": columns, "density": stored / entries if sparse else None}

    def making(self) -> Cost:
        """Return the cost of reading every entry."""
        known = self.sizes()
        entries = known["J"] * known["I"] * known["columns"] * (known["density"] or 1.0)
        return Cost(Work(singles=30.0 * entries, calls=2000.0), holds=16.0 * entries)

    def load(self) -> Views:
        """Return I views (J, N_i), float64 arrays or scipy.sparse CSR; labels 0 .. K-1 in the sorted order of values.

        Raises ParameterError if views have different numbers of rows, or contain NaN or infinity.
        """
        arrays = self.arrays()
        labels, values = numbered(arrays.pop("labels")) if "labels" in arrays else (None, None)
        facts: dict[str, Any] = {"files": [Path(path).name for path in self._paths()]}
        facts |= {} if values is None else {"label_values": values}
        return Views([arrays[f"view{i}"] for i in range(len(arrays))], labels, facts)

    def read(self) -> dict[str, Any]:
        """Return the views and the labels."""
        contents = {path: opened("path", path) for path in self._paths()}
        first = contents[self._paths()[0]]
        if isinstance(self.path, str):
            chosen = self._of_archive(first)
        else:
            chosen = {path: content.matrix("path") for path, content in contents.items()}
        views = {name: self._turned(name, value) for name, value in chosen.items()}
        rows = {view.shape[0] for view in views.values()}
        if len(rows) > 1:
            shapes = "; ".join(f"{Path(name).name}: {view.shape[0]} x {view.shape[1]}" for name, view in views.items())
            other = "columns" if self.orientation == "rows" else "rows"
            turned = len({view.shape[1] for view in views.values()}) == 1
            hint = f". They agree if samples are {other}: set orientation: {other}" if turned else ""
            raise ParameterError(
                "path",
                "views must have the same samples in the same order, but their numbers of rows differ "
                f"({shapes}){hint}",
            )
        labels = first.take(self, {"labels": Array("ids")})
        if any(len(values) not in rows for values in labels.values()):
            count = len(labels["labels"])
            raise ParameterError(
                "labels", f"has {counted(count, 'label')}; it must have one for each of {counted(rows.pop(), 'sample')}"
            )
        return {f"view{i}": view for i, view in enumerate(views.values())} | labels

    def _paths(self) -> list[str]:
        return [self.path] if isinstance(self.path, str) else self.path

    def _of_archive(self, content: Content) -> dict[str, Any]:
        if self.views is not None:
            return {name: content.values("views", name) for name in self.views}
        matrices = {
            name: value
            for name, value in content.arrays.items()
            if name not in (self.labels, *LABEL_NAMES) and is_matrix(value) and min(value.shape) > 1
        }
        if len(matrices) < 2:
            found = counted(len(matrices), "matrix", "matrices")
            raise ParameterError(
                "path",
                f"{content.path} contains {found} with rows and columns ({content}); two or more "
                "views are needed, or a list of files",
            )
        return matrices

    def _turned(self, name: str, value: Any) -> Any:
        view = numbers("path", name, value, 2, sparse=not self.dense)
        return view if self.orientation == "rows" else view.T


add_dataset(
    "views-file",
    ViewsFile,
    "views of your own: several matrices with the same rows, dense or sparse",
    kind="views",
)
