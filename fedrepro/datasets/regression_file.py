"""Regression data of the user's own: samples of clients, and the clients' side information.

``path`` is a table (.csv, .parquet) with a column for the response, one for the client, and the inputs, or an archive
(.npz, .mat) with ``x`` (n, d), ``y`` (n,), ``client`` (n,) and ``z`` (M, k). Side information of a table is a list of
its columns (the same in all rows of a client), or another file with a row for each client in their sorted order.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedrepro.data import own
from fedrepro.datasets import reading
from fedrepro.datasets.own_types import Measured, numbered
from fedrepro.errors import ParameterError
from fedrepro.parameters import one_of
from fedrepro.protocols import Dataset
from fedrepro.registry import DatasetEntry, add_dataset

ENDINGS = (*reading.TABLES, *reading.ARCHIVES)


@dataclass(frozen=True)
class RegressionFile(Dataset):
    """Samples in a file, each of a client, and the side information of the clients.

    path : the file. y, client : the names of the columns or variables with the response and the client. x : of an
    archive, the variable with the inputs; of a table, all other columns are. z : side information: a variable, another
    file, or a list of columns. split : the column that says which samples are to test with; None to draw them.
    rescale : ``none``, or ``standard``: every input and every number of z minus its mean, divided by its deviation.
    """

    files = ("path", "z")

    path: str
    y: str = "y"
    client: str = "client"
    x: str = "x"
    z: str | list[str] = "z"
    split: str | None = None
    rescale: str = "none"

    def __post_init__(self) -> None:
        """Raise ParameterError where a value cannot work."""
        reading.there("path", self.path, ENDINGS)
        reading.names(y=self.y, client=self.client, x=self.x, split=self.split)
        one_of("rescale", self.rescale, ("none", "standard"))
        listed = self.z if isinstance(self.z, list) else [self.z]
        for one in listed:
            if not isinstance(one, str) or not one:
                raise ParameterError("z", f"must be a name, a file or a list of columns, not {self.z!r}")

    def shape(self) -> dict[str, Any]:
        """M clients, the samples, d inputs, k numbers of side information, N inputs of the largest client."""
        return reading.size_once(self)

    def load(self) -> Measured:
        """The samples in the order of the file; clients by number in their sorted order.

        Raises ParameterError where the file has no samples in this form, or the side information does not match.
        """
        names = {"x": self.x, "y": self.y, "client": self.client}
        side = [str(one) for one in self.z] if isinstance(self.z, list) else reading.place(self.z)
        found = reading.arrays(self, read, str(own.found(self.path)), names, side, self.split)
        client, clients = numbered(found["client"])
        x, z = found["x"], found["z"]
        if "by sample" in found:
            z = _of_clients(z, client, len(clients))
        if len(z) != len(clients):
            raise ParameterError(
                "z", f"has {len(z):,} rows of {z.shape[1]:,} numbers; there are {len(clients):,} clients"
            )
        if self.rescale == "standard":
            x, z = _standard("x", x), _standard("z", z)
        return Measured(x, found["y"], client, z, found.get("test"), {"file": Path(self.path).name})


def _of_clients(z: np.ndarray, client: np.ndarray, M: int) -> np.ndarray:
    found = np.zeros((M, z.shape[1]))
    found[client] = z
    odd = np.flatnonzero((found[client] != z).any(axis=1))
    if len(odd):
        raise ParameterError("z", f"differs between samples of one client (row {odd[0]} counted from 0); it is its own")
    return found


def _standard(name: str, values: np.ndarray) -> np.ndarray:
    deviation = values.std(axis=0)
    if not deviation.all():
        raise ParameterError("rescale", f"column {int(np.argmin(deviation))} of {name} is constant; leave it out")
    return (values - values.mean(axis=0)) / deviation


def read(path: str, names: dict[str, str], z: str | list[str] | None, split: str | None, out: str) -> list[str]:
    """Leave x, y, client, z and test in the folder ``out``; for ``isolated.call``."""
    file = Path(path)
    held = reading.content("path", file)
    table = file.suffix.lower() in reading.TABLES
    found: dict[str, Any] = {
        "y": reading.numbers("y", path, reading.column("y", file, held, names["y"]), 1),
        "client": reading.ids("client", reading.column("client", file, held, names["client"])),
    }
    if isinstance(z, list):
        columns = [reading.numbers("z", path, reading.column("z", file, held, name), 1) for name in z]
        found |= {"z": np.stack(columns, axis=1), "by sample": np.array(1)}
    elif z in held:
        found["z"] = reading.numbers("z", path, held[str(z)], 1 if table else 2)
        if table:
            found |= {"z": found["z"][:, None], "by sample": np.array(1)}
    elif Path(str(z)).is_file():
        matrices = [one for one in reading.variables("z", Path(str(z)), ()).values() if np.ndim(one) == 2]
        if len(matrices) != 1:
            raise ParameterError("z", f"{z} must hold one matrix, a row for each client")
        found["z"] = reading.numbers("z", z, matrices[0], 2)
    else:
        raise ParameterError("z", f"{path} has no '{z}' and there is no such file; it is the clients' side information")
    if split is not None:
        found["test"] = reading.held_back("split", reading.column("split", file, held, split), len(found["y"]))
    if table:
        used = {names["y"], names["client"], split, *(z if isinstance(z, list) else [z])}
        inputs = [name for name in held if name not in used]
        if not inputs:
            raise ParameterError("x", f"{path} has no column left for the inputs")
        found["x"] = np.stack([reading.numbers("x", f"{path}, column {n}", held[n], 1) for n in inputs], axis=1)
    else:
        found["x"] = reading.numbers("x", path, reading.column("x", file, held, names["x"]), 2)
    reading.lengths(path, x=found["x"], y=found["y"], client=found["client"])
    return reading.keep(found, out)


add_dataset(
    DatasetEntry(
        name="regression-file",
        cls=RegressionFile,
        kind="regression",
        summary="regression data of your own: samples of clients, with the clients' side information",
    )
)
