"""Entries of the user's own matrix, whose columns are clients, with the clients' side information.

``path`` is a table (.csv, .parquet) or an archive (.npz, .mat) with ``client``, ``item`` and ``value``, or a matrix of
items by clients whose observed entries are stored (sparse) or are not NaN (dense, ``L``). ``side`` is Z, a row of
numbers for each client in the sorted order of the clients: a variable of the archive (by default ``Z``) or another file
(.npz, .npy, .mat, .csv).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from fedrepro.data import own
from fedrepro.datasets import reading
from fedrepro.datasets.own_types import Entries, numbered
from fedrepro.errors import ParameterError
from fedrepro.parameters import Name, OneOf
from fedrepro.protocols import Dataset
from fedrepro.registry import DatasetEntry, add_dataset

ENDINGS = (".csv", ".parquet", ".npz", ".mat", ".mtx")


@dataclass(frozen=True)
class EntriesFile(Dataset):
    """Observed entries in a file, and the side information of the clients.

    path : the file. side : the clients' side information, a variable of the file or another file.
    client, item, value : columns or variables of the client, the item and the value of each entry. split : column that
    marks the test entries; None to draw them. rows : rows of the side information ``as given``, or ``unit``: each
    divided by its Euclidean norm, as in the paper.
    """

    files = ("path", "side")

    path: Annotated[str, own.OwnFile(*ENDINGS)]
    side: Annotated[str, Name()] = "Z"
    client: Annotated[str, Name()] = "client"
    item: Annotated[str, Name()] = "item"
    value: Annotated[str, Name()] = "value"
    split: Annotated[str | None, Name()] = None
    rows: Annotated[str, OneOf("as given", "unit")] = "as given"

    def shape(self) -> dict[str, Any]:
        """Return M clients, N items, the entries, and the k numbers of side information."""
        return reading.size_once(self)

    def load(self) -> Entries:
        """Return the entries in the order of the file; clients and items are numbered in their sorted order.

        Raises ParameterError if the file has no entries in this form, or the side information does not match.
        """
        names = {"client": self.client, "item": self.item, "value": self.value}
        arrays = reading.arrays(self, read, str(own.found(self.path)), names, self.split, reading.place(self.side))
        Z = arrays["side"]
        if "sides" in arrays:
            items, M = (int(side) for side in arrays["sides"])
            client, item = arrays["client"], arrays["item"]
        else:
            (client, clients), (item, listed) = numbered(arrays["client"]), numbered(arrays["item"])
            items, M = len(listed), len(clients)
        reading.one_row_each("side", Z, M)
        if self.rows == "unit":
            size = np.linalg.norm(Z, axis=1, keepdims=True)
            if not size.all():
                raise ParameterError("rows", f"'unit' divides by the norm, and row {int(np.argmin(size))} is zero")
            Z = Z / size
        facts = {"file": Path(self.path).name}
        return Entries(client, item, arrays["value"], Z, items, arrays.get("test"), facts)


def read(path: str, names: dict[str, str], split: str | None, side: str, out: str) -> list[str]:
    """Write client, item, value, side and test to the folder ``out``; for ``isolated.call``."""
    file = Path(path)
    held = reading.content("path", file)
    if all(name in held for name in names.values()):
        values: dict[str, Any] = {name: reading.plain(name, held[names[name]]) for name in ("client", "item")}
        values["value"] = reading.numbers("value", path, held[names["value"]], 1)
    else:
        others = {name: value for name, value in held.items() if name != side}
        matrix = reading.only_matrix(path, others, f"{', '.join(names.values())} nor one matrix of items by clients")
        item, client, value = reading.stored(matrix)
        values = {"client": client, "item": item, "value": reading.numbers("value", path, value, 1)}
        values["sides"] = np.array(matrix.shape)
    reading.lengths(path, **{name: values[name] for name in names})
    values["side"] = reading.side_information("side", path, held, side)
    if split is not None:
        marks = reading.column("split", file, held, split)
        values["test"] = reading.held_back("split", marks, len(values["value"]))
    return reading.keep(values, out)


add_dataset(
    DatasetEntry(
        name="entries-file",
        cls=EntriesFile,
        kind="entries",
        summary="entries of a matrix of your own whose columns are clients, with their side information",
    )
)
