"""The user's own matrix: .npz, .npy, .mat, .csv or .mtx, optionally with labels and clients.

``path`` is relative to the folder of the spec, and from Python to the working folder. ``key`` names the matrix inside
.npz and .mat files (default: ``X``, ``fea``, ``data``, ``features``, or the only matrix). ``labels`` is a variable of
the same file, a column of the CSV, or the path of another file (.npy, .npz, .mat, .csv, .txt) with one label per
sample; ``client`` is the same for the client of each sample, for the partition ``given``. ``orientation`` is
``columns`` if samples are columns (as in the papers) or ``rows`` (as most tools store them). Sparse matrices stay
sparse. ``rescale`` divides X by one number, because the initial point of the clustering problem and its penalties
depend on the scale of X, or gives every feature mean 0 and standard deviation 1, for features with different units. A
.npy file is memory-mapped and can be larger than memory (``memory_mapped``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from fedrepro.data import own_paths
from fedrepro.data.formats.csv_table import is_number
from fedrepro.datasets import memory_mapped
from fedrepro.datasets.own_files import (
    Array,
    Content,
    OwnFiles,
    first_text,
    is_matrix,
    numbered,
    numbers,
    opened,
    place,
)
from fedrepro.datasets.own_types import OwnSamples
from fedrepro.errors import ParameterError
from fedrepro.parameters import Name, OneOf
from fedrepro.registry import add_dataset

ENDINGS = (".npz", ".npy", ".mat", ".csv", ".mtx")
ARRAYS = {"labels": Array("ids", aligned=False), "client": Array("ids", aligned=False)}
_COUNTED = {"labels": "labels", "client": "client ids"}
LOOKED_AT = 1 << 28
"""Bytes of a .npy file up to which planning checks every entry, not only the type; loading always does."""
_HEXADECIMAL = re.compile(r"\s*[-+]?0x[0-9a-f]+\s*", re.IGNORECASE)
"""A cell that other programs read as a number, so that a row with no other text is hardly a header."""


@dataclass(frozen=True)
class MatrixFile(OwnFiles):
    """A matrix in a file, one sample per column once it is read.

    path : an existing file ending in .npz, .npy, .mat, .csv or .mtx. key : the name of the matrix in the file; None to
    find it. labels : a variable of the file, a column of the CSV, or another file with one label per sample; None for
    none. client : the same for the client of each sample, for the partition ``given``. orientation : whether samples
    are columns or rows. rescale : the divisor of X: none, max (the largest absolute value) or mean (the mean absolute
    value); or standard, which gives every feature mean 0 and standard deviation 1 over all samples.
    """

    files = ("path", "labels", "client")

    path: Annotated[str, own_paths.OwnFile(*ENDINGS)]
    key: Annotated[str | None, Name()] = None
    labels: Annotated[str | None, Name()] = None
    client: Annotated[str | None, Name()] = None
    orientation: Annotated[str, OneOf("columns", "rows")] = "columns"
    rescale: Annotated[str, OneOf("none", "max", "mean", "standard")] = "none"

    def shape(self) -> dict[str, int | None]:
        """Return M, N, the K classes (0 without labels) and, if they are given, P clients, from the head of the file.

        Raises ParameterError if the file contains no such matrix, or if labels do not match the samples.
        """
        return {name: value for name, value in self.sizes().items() if name != "density"}

    def expected(self) -> dict[str, float]:
        """Return the density of a sparse matrix."""
        known = self.sizes()
        return {"K": 10} | ({"density": known["density"]} if "density" in known else {})

    def measured(self) -> dict[str, Any]:
        """Return the shape, and the density of a sparse matrix; the entries are not read."""
        known = self.arrays("look")
        rows, columns = (int(side) for side in known["sides"])
        M, N = (columns, rows) if self.orientation == "rows" else (rows, columns)
        labels, clients = (self._numbered(name, known, M, N)[1] for name in ARRAYS)
        sizes = {"M": M, "N": N, "K": len(labels or ())} | ({} if clients is None else {"P": len(clients)})
        return sizes | ({"density": float(known["stored"]) / (M * N)} if "stored" in known and M * N else {})

    def doubts(self) -> list[str]:
        """Return a note if there are more features than samples, and no labels that confirm the orientation."""
        shape = self.shape()
        M, N = int(shape["M"] or 0), int(shape["N"] or 0)
        if self.labels is not None or self.client is not None or M <= N:
            return []
        return [
            f"{self.path} is read with samples in {self.orientation}: N = {N:,} samples of M = {M:,} features. With "
            f"orientation: {self._other()} it would be N = {M:,} samples of M = {N:,} features"
        ]

    def load(self) -> OwnSamples:
        """Return X (M, N), float64 array or scipy.sparse CSC; labels 0 .. K-1 in the sorted order of their values.

        For a .npy file X is a read-only map of the file, or of a temporary copy (8 M N bytes of disk, until X is
        dropped) if its samples are not contiguous float64 or are rescaled.

        Raises ParameterError if the file contains no such matrix, NaN or infinity, is empty, or if labels do not match
        the samples.
        """
        arrays = self.arrays()
        X = arrays["samples"].T if "samples" in arrays else self._mapped()
        X, unit = _standardized(X) if self.rescale == "standard" else _rescaled(X, self.rescale)
        y, values = self._numbered("labels", arrays, *X.shape)
        client, clients = self._numbered("client", arrays, *X.shape)
        facts: dict[str, Any] = {"file": Path(self.path).name, "orientation": self.orientation}
        facts |= {} if self.rescale == "none" else {"divided by": unit}
        facts |= {} if values is None else {"label_values": values}
        facts |= {} if clients is None else {"clients": clients}
        return OwnSamples(X, y, None if values is None else len(values), facts, client)

    def look(self) -> dict[str, Any]:
        """Return the sides of the matrix, the number of entries that a sparse one stores, labels and clients."""
        content = opened("path", self.path)
        named = content.take(self, ARRAYS)
        matrix = self._matrix(content)
        if not isinstance(matrix, np.memmap) or matrix.nbytes <= LOOKED_AT:
            numbers("path", self.path, matrix, 2, sparse=True)
        elif not is_matrix(matrix) or matrix.dtype.kind not in "biuf":
            numbers("path", self.path, matrix[:1], 2)
        stored = matrix.nnz if hasattr(matrix, "tocsr") else None
        return {"sides": np.array(matrix.shape), "stored": stored, **named}

    def read(self) -> dict[str, Any]:
        """Return the samples, one per row, labels and clients; the samples of a map are left to the caller."""
        content = opened("path", self.path)
        named = content.take(self, ARRAYS)
        matrix = self._matrix(content)
        samples = None if isinstance(matrix, np.memmap) else self._samples(matrix).T
        return {"samples": samples, **named}

    def _matrix(self, content: Content) -> Any:
        if self.key is not None and not (content.is_table and self.key == "X"):
            return content.values("key", self.key)
        if not content.is_table:
            return content.matrix("key", "name it with key:")
        names = list(content.arrays)
        text = [name for name in names if name and not is_number(name)]
        if text and (
            not all(name.isdigit() for name in names if is_number(name)) or all(map(_HEXADECIMAL.fullmatch, text))
        ):
            raise ParameterError(
                "path",
                f"{self.path}: '{text[0][:40]}' in its first row is not a number, but the row is not a header either",
            )
        named = (self.labels, self.client)
        for name, values in content.arrays.items():
            if values.dtype.kind not in "biuf" and name not in named:
                cell = first_text(values)
                found = "" if cell is None else f" ('{cell[1][:40]}' in {place(self.path, cell[0])})"
                raise ParameterError(
                    "path",
                    f"{self.path}: column '{name}' contains text{found}; name it with labels: or client:, or remove it",
                )
        return content.columns("path", without=named)

    def _samples(self, matrix: Any) -> Any:
        """Return a matrix, checked, with one sample per column."""
        X = numbers("path", self.path, matrix, 2, sparse=True)
        return X.T if self.orientation == "rows" else X

    def _mapped(self) -> np.ndarray:
        matrix = np.load(own_paths.found(self.path), mmap_mode="r", allow_pickle=False)
        return memory_mapped.by_sample(self._samples(matrix))

    def _numbered(self, name: str, arrays: dict[str, Any], M: int, N: int) -> tuple[np.ndarray | None, list | None]:
        """Return the numbers of labels or clients and their values, or None for both if there are none."""
        if name not in arrays:
            return None, None
        count = len(arrays[name])
        if count != N:
            hint = (
                f"; they match if samples are {self._other()}: set orientation: {self._other()}" if count == M else ""
            )
            raise ParameterError(
                name,
                f"{_COUNTED[name]} of {count:,} samples do not match {self.path}: with samples in {self.orientation} "
                f"it has N = {N:,} samples of M = {M:,} features, in {self._other()} N = {M:,} samples of M = {N:,} "
                f"features{hint}",
            )
        return numbered(arrays[name])

    def _other(self) -> str:
        return "rows" if self.orientation == "columns" else "columns"


def _rescaled(X: Any, rescale: str) -> tuple[Any, float]:
    """Return X divided by one number, and the number. Raises ParameterError if it is 0."""
    if rescale == "none":
        return X, 1.0
    if isinstance(X, np.memmap) or isinstance(getattr(X, "base", None), np.memmap):
        unit = memory_mapped.magnitude(X, rescale)
    else:
        values = np.abs(X.data if hasattr(X, "tocsc") else X)
        unit = float(values.max(initial=0.0) if rescale == "max" else values.sum() / (X.shape[0] * X.shape[1]))
    if unit == 0.0:
        raise ParameterError("rescale", "X is zero everywhere; there is nothing to divide by")
    return (X / unit if not isinstance(X, np.memmap) else memory_mapped.divided(X, unit)), unit


def _standardized(X: Any) -> tuple[Any, str]:
    """Return X with mean 0 and standard deviation 1 of every feature, and what it was divided by in words.

    A constant feature becomes 0. Raises ParameterError for a sparse matrix.
    """
    if hasattr(X, "tocsc"):
        raise ParameterError("rescale", "standard would make a sparse matrix dense; use max or mean, or save it dense")
    if isinstance(X, np.memmap) or isinstance(getattr(X, "base", None), np.memmap):
        return memory_mapped.standardized(X), "the standard deviation of each feature"
    centred = X - X.mean(axis=1, keepdims=True)
    sd = centred.std(axis=1, keepdims=True)
    return centred / np.where(sd > 0.0, sd, 1.0), "the standard deviation of each feature"


add_dataset("file", MatrixFile, "a matrix of your own: .npz, .npy, .mat, .csv or .mtx", kind="samples")
