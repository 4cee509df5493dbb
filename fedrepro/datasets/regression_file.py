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

from fedrepro.data import own
from fedrepro.datasets import reading
from fedrepro.datasets.own_types import Measured, numbered
from fedrepro.errors import ParameterError
from fedrepro.parameters import Name, OneOf
from fedrepro.protocols import Dataset
from fedrepro.registry import DatasetEntry, add_dataset

ENDINGS = (*reading.TABLES, *reading.ARCHIVES)


@dataclass(frozen=True)
class RegressionFile(Dataset):
    """Samples of clients in a file, and the side information of the clients.

    path : the file. y, client : columns or variables of the response and the client. x : variable of the inputs in an
    archive; in a table they are all other columns. z : side information: a variable, another file, or a list of
    columns. split : column that marks the test samples; None to draw them. rescale : ``none``, or ``standard``: every
    input and every number of z minus its mean, divided by its standard deviation.
    """

    files = ("path", "z")

    path: Annotated[str, own.OwnFile(*ENDINGS)]
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

    def shape(self) -> dict[str, Any]:
        """Return M clients, the samples, d inputs, k numbers of side information, N inputs of the largest client."""
        return reading.size_once(self)

    def load(self) -> Measured:
        """Return the samples in the order of the file; clients are numbered in their sorted order.

        Raises ParameterError if the file has no samples in this form, or the side information does not match.
        """
        names = {"x": self.x, "y": self.y, "client": self.client}
        side = list(map(str, self.z)) if isinstance(self.z, list) else reading.place(self.z)
        arrays = reading.arrays(self, read, str(own.found(self.path)), names, side, self.split)
        client, clients = numbered(arrays["client"])
        x, z = arrays["x"], arrays["z"]
        if "by sample" in arrays:
            z = _of_clients(z, client, len(clients))
        reading.one_row_each("z", z, len(clients))
        if self.rescale == "standard":
            x, z = _standard("x", x), _standard("z", z)
        return Measured(x, arrays["y"], client, z, arrays.get("test"), {"file": Path(self.path).name})


def _of_clients(z: np.ndarray, client: np.ndarray, M: int) -> np.ndarray:
    of_clients = np.zeros((M, z.shape[1]))
    of_clients[client] = z
    odd = np.flatnonzero((of_clients[client] != z).any(axis=1))
    if len(odd):
        raise ParameterError("z", f"differs between samples of one client (row {odd[0]}, counted from 0)")
    return of_clients


def _standard(name: str, values: np.ndarray) -> np.ndarray:
    deviation = values.std(axis=0)
    if not deviation.all():
        raise ParameterError("rescale", f"column {int(np.argmin(deviation))} of {name} is constant; remove it")
    return (values - values.mean(axis=0)) / deviation


def read(path: str, names: dict[str, str], z: str | list[str] | None, split: str | None, out: str) -> list[str]:
    """Write x, y, client, z and test to the folder ``out``; for ``isolated.call``."""
    file = Path(path)
    held = reading.content("path", file)
    table = file.suffix.lower() in reading.TABLES
    values: dict[str, Any] = {
        "y": reading.numbers("y", path, reading.column("y", file, held, names["y"]), 1),
        "client": reading.plain("client", reading.column("client", file, held, names["client"])),
    }
    if isinstance(z, list):
        columns = [reading.numbers("z", path, reading.column("z", file, held, name), 1) for name in z]
        values |= {"z": np.stack(columns, axis=1), "by sample": np.array(1)}
    elif table and z in held:
        values |= {"z": reading.numbers("z", path, held[str(z)], 1)[:, None], "by sample": np.array(1)}
    else:
        values["z"] = reading.side_information("z", path, held, str(z))
    if split is not None:
        values["test"] = reading.held_back("split", reading.column("split", file, held, split), len(values["y"]))
    if table:
        used = {names["y"], names["client"], split, *(z if isinstance(z, list) else [z])}
        inputs = [name for name in held if name not in used]
        if not inputs:
            raise ParameterError("x", f"{path} has no column left for the inputs")
        values["x"] = np.stack([reading.numbers("x", f"{path}, column {n}", held[n], 1) for n in inputs], axis=1)
    else:
        values["x"] = reading.numbers("x", path, reading.column("x", file, held, names["x"]), 2)
    reading.lengths(path, x=values["x"], y=values["y"], client=values["client"])
    return reading.keep(values, out)


add_dataset(
    DatasetEntry(
        name="regression-file",
        cls=RegressionFile,
        kind="regression",
        summary="regression data of your own: samples of clients, with the clients' side information",
    )
)
