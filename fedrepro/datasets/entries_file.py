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

from fedrepro.data import own_paths
from fedrepro.data.formats.named_arrays import ARCHIVES, TABLES
from fedrepro.datasets.own_files import Array, OwnFiles, numbered, one_row_each, opened
from fedrepro.datasets.own_types import Entries
from fedrepro.errors import ParameterError
from fedrepro.parameters import Name, OneOf
from fedrepro.registry import add_dataset

ENTRIES = {"client": Array("ids"), "item": Array("ids"), "value": Array("numbers")}
OTHERS = {"split": Array("marks"), "side": Array("side", aligned=False)}


@dataclass(frozen=True)
class EntriesFile(OwnFiles):
    """Observed entries in a file, and the side information of the clients.

    path : the file. side : the clients' side information, a variable of the file or another file.
    client, item, value : columns or variables of the client, the item and the value of each entry. split : column that
    marks the test entries; None to draw them. rows : rows of the side information ``as given``, or ``unit``: each
    divided by its Euclidean norm, as in the paper.
    """

    files = ("path", "side")

    path: Annotated[str, own_paths.OwnFile(*TABLES, *ARCHIVES, ".mtx")]
    side: Annotated[str, Name()] = "Z"
    client: Annotated[str, Name()] = "client"
    item: Annotated[str, Name()] = "item"
    value: Annotated[str, Name()] = "value"
    split: Annotated[str | None, Name()] = None
    rows: Annotated[str, OneOf("as given", "unit")] = "as given"

    def load(self) -> Entries:
        """Return the entries in the order of the file; clients and items are numbered in their sorted order.

        Raises ParameterError if the file has no entries in this form, or the side information does not match.
        """
        arrays = self.arrays()
        client, item, Z = arrays["client"], arrays["item"], arrays["side"]
        if "sides" in arrays:
            items, M = (int(side) for side in arrays["sides"])
        else:
            (client, clients), (item, names) = numbered(client), numbered(item)
            items, M = len(names), len(clients)
        one_row_each("side", Z, M)
        if self.rows == "unit":
            norm = np.linalg.norm(Z, axis=1, keepdims=True)
            if not norm.all():
                raise ParameterError("rows", f"'unit' divides by the norm, and row {int(np.argmin(norm))} is zero")
            Z = Z / norm
        return Entries(client, item, arrays["value"], Z, items, arrays.get("split"), {"file": Path(self.path).name})

    def read(self) -> dict[str, Any]:
        """Return client, item, value, split and side."""
        content = opened("path", self.path)
        columns = (self.client, self.item, self.value)
        if all(name in content.arrays for name in columns):
            return content.take(self, ENTRIES | OTHERS)
        matrix = content.only_matrix(", ".join(columns), "matrix of items by clients", without=(self.side,))
        entries = content.entries(matrix, row="item", column="client", value="value")
        return entries | content.take(self, OTHERS, len(entries["value"]))


add_dataset(
    "entries-file",
    EntriesFile,
    "entries of a matrix of your own whose columns are clients, with their side information",
    kind="entries",
)
