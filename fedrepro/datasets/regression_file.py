"""The user's own regression data: samples of clients, and the clients' side information.

``path`` is a table (.csv, .parquet) with a column of the response, a column of the client, and the inputs, or an
archive (.npz, .mat) with ``x`` (n, d), ``y`` (n,), ``client`` (n,) and ``z`` (M, k). The side information of a table
is a list of its columns (with equal values in all rows of a client), or another file with a row for each client in
their sorted order.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from fedrepro.data import own_paths
from fedrepro.data.formats.named_arrays import ARCHIVES, TABLES
from fedrepro.datasets.own_files import Array, OwnFiles, numbered, numbers, one_row_each, opened, place
from fedrepro.datasets.own_types import Measured
from fedrepro.errors import ParameterError
from fedrepro.parameters import Name, OneOf
from fedrepro.registry import add_dataset

SAMPLES = {"y": Array("numbers"), "client": Array("ids"), "split": Array("marks")}
INPUTS = {"x": Array("numbers", axes=2)}
SIDE = {"z": Array("side", aligned=False)}


@dataclass(frozen=True)
class RegressionFile(OwnFiles):
    """Samples of clients in a file, and the side information of the clients.

    path : the file. y, client : columns or variables of the response and the client. x : variable of the inputs in an
    archive; in a table they are all other columns. z : side information: a variable, another file, or a list of
    columns. split : column that marks the test samples; None to draw them. rescale : ``none``, or ``standard``: every
    input and every number of z minus its mean, divided by its standard deviation.
    """

    files = ("path", "z")

    path: Annotated[str, own_paths.OwnFile(*TABLES, *ARCHIVES)]
    y: Annotated[str, Name()] = "y"
    client: Annotated[str, Name()] = "client"
    x: Annotated[str, Name()] = "x"
    z: str | list[str] = "z"
    split: Annotated[str | None, Name()] = None
    rescale: Annotated[str, OneOf("none", "standard")] = "none"

    def __post_init__(self) -> None:
        """Raise ParameterError if a value is invalid."""
        super().__post_init__()
        if not all(map(Name().allows, self.z if isinstance(self.z, list) else [self.z])):
            raise ParameterError("z", f"must be a name, a file or a list of columns, not {self.z!r}")

    def load(self) -> Measured:
        """Return the samples in the order of the file; clients are numbered in their sorted order.

        Raises ParameterError if the file has no samples in this form, or the side information does not match.
        """
        arrays = self.arrays()
        client, clients = numbered(arrays["client"])
        x, z = arrays["x"], arrays.get("z")
        if z is None:
            z = _of_clients(own_paths.found(self.path), arrays["z of samples"], client, len(clients))
        one_row_each("z", z, len(clients))
        if self.rescale == "standard":
            x, z = _standard("x", x), _standard("z", z)
        return Measured(x, arrays["y"], client, z, arrays.get("split"), {"file": Path(self.path).name})

    def read(self) -> dict[str, Any]:
        """Return x, y, client, split, and either z or its rows for the samples."""
        content = opened("path", self.path)
        columns = self.z if isinstance(self.z, list) else [self.z]
        if isinstance(self.z, list) or (content.is_table and self.z in content.arrays):
            rows = [numbers("z", content.path, content.values("z", name)) for name in columns]
            side = {"z of samples": np.stack(rows, axis=1)}
        else:
            side = content.take(self, SIDE)
        if not content.is_table:
            return side | content.take(self, SAMPLES | INPUTS)
        inputs = content.columns("x", without=(self.y, self.client, self.split, *columns))
        return side | {"x": inputs} | content.take(self, SAMPLES, len(inputs))


def _of_clients(path: Path, z: np.ndarray, client: np.ndarray, M: int) -> np.ndarray:
    of_clients = np.zeros((M, z.shape[1]))
    of_clients[client] = z
    odd = np.flatnonzero((of_clients[client] != z).any(axis=1))
    if len(odd):
        raise ParameterError("z", f"differs between samples of one client, first in {place(path, int(odd[0]))}")
    return of_clients


def _standard(name: str, values: np.ndarray) -> np.ndarray:
    deviation = values.std(axis=0)
    if not deviation.all():
        raise ParameterError("rescale", f"column {int(np.argmin(deviation))} of {name} is constant; remove it")
    return (values - values.mean(axis=0)) / deviation


add_dataset(
    "regression-file",
    RegressionFile,
    "regression data of your own: samples of clients, with the clients' side information",
    kind="regression",
)
