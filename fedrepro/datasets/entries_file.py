"""Entries of a matrix of the user's own, its columns clients, with the clients' side information.

``path`` is a table (.csv, .parquet) or an archive (.npz, .mat) with ``client``, ``item`` and ``value``, or a matrix of
items by clients whose observed entries are stored (sparse) or are not NaN (dense, ``L``). ``side`` is Z, a row of
numbers for each client in the sorted order of the clients: a variable of the archive (by default ``Z``) or another file
(.npz, .npy, .mat, .csv).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedrepro.data import own
from fedrepro.datasets import reading
from fedrepro.datasets.own_types import Entries, numbered
from fedrepro.errors import ParameterError
from fedrepro.parameters import one_of
from fedrepro.protocols import Dataset
from fedrepro.registry import DatasetEntry, add_dataset

ENDINGS = (".csv", ".parquet", ".npz", ".mat", ".mtx")


@dataclass(frozen=True)
class EntriesFile(Dataset):
    """Observed entries in a file, and the side information of the clients.

    path : the file. side : the clients' side information, a variable of the file or another file.
    client : the name of the column or variable with the client of each entry. item : that with its item. value : that
    with the entry. split : the column that says which entries are to test with; None to draw them.
    rows : of the side information: ``as given``, or ``unit``, each divided by its Euclidean norm, as the paper has it.
    """

    files = ("path", "side")

    path: str
    side: str = "Z"
    client: str = "client"
    item: str = "item"
    value: str = "value"
    split: str | None = None
    rows: str = "as given"

    def __post_init__(self) -> None:
        """Raise ParameterError where a value cannot work."""
        reading.there("path", self.path, ENDINGS)
        reading.names(side=self.side, client=self.client, item=self.item, value=self.value, split=self.split)
        one_of("rows", self.rows, ("as given", "unit"))

    def shape(self) -> dict[str, Any]:
        """M clients, N items, the entries, and the k numbers of side information."""
        return reading.size_once(self)

    def load(self) -> Entries:
        """The entries in the order of the file; clients and items by number in their sorted order.

        Raises ParameterError where the file has no entries in this form, or the side information does not match.
        """
        names = {"client": self.client, "item": self.item, "value": self.value}
        found = reading.arrays(self, read, str(own.found(self.path)), names, self.split, reading.place(self.side))
        Z = found["side"]
        if "sides" in found:
            items, M = (int(side) for side in found["sides"])
            client, item = found["client"], found["item"]
        else:
            (client, clients), (item, listed) = numbered(found["client"]), numbered(found["item"])
            items, M = len(listed), len(clients)
        if len(Z) != M:
            raise ParameterError("side", f"has {len(Z):,} rows of {Z.shape[1]:,} numbers; there are {M:,} clients")
        if self.rows == "unit":
            size = np.linalg.norm(Z, axis=1, keepdims=True)
            if not size.all():
                raise ParameterError("rows", f"'unit' divides by the norm, and row {int(np.argmin(size))} is zero")
            Z = Z / size
        facts = {"file": Path(self.path).name}
        return Entries(client, item, found["value"], Z, items, found.get("test"), facts)


def read(path: str, names: dict[str, str], split: str | None, side: str, out: str) -> list[str]:
    """Leave client, item, value, side and test in the folder ``out``; for ``isolated.call``."""
    file = Path(path)
    held = reading.content("path", file)
    if all(name in held for name in names.values()):
        found: dict[str, Any] = {name: reading.ids(name, held[names[name]]) for name in ("client", "item")}
        found["value"] = reading.numbers("value", path, held[names["value"]], 1)
    else:
        found = _of_matrix(path, held, side, names)
    reading.lengths(path, **{name: found[name] for name in names})
    if side in held:
        found["side"] = reading.numbers("side", path, held[side], 2)
    elif Path(side).is_file():
        found["side"] = _matrix_file(Path(side))
    else:
        raise ParameterError(
            "side", f"{path} has no variable '{side}' and there is no such file; it is the clients' side information"
        )
    if split is not None:
        values = reading.column("split", file, held, split)
        found["test"] = reading.held_back("split", values, len(found["value"]))
    return reading.keep(found, out)


def _matrix_file(path: Path) -> np.ndarray:
    held = reading.variables("side", path, ())
    matrices = [one for one in held.values() if np.ndim(one) == 2]
    if len(matrices) != 1:
        raise ParameterError("side", f"{path} must hold one matrix, a row for each client ({reading.shown(held)})")
    return reading.numbers("side", path, matrices[0], 2)


def _of_matrix(path: str, held: dict[str, Any], side: str, names: dict[str, str]) -> dict[str, Any]:
    matrices = [v for n, v in held.items() if n != side and (np.ndim(v) == 2 or hasattr(v, "tocoo"))]
    if len(matrices) != 1:
        raise ParameterError(
            "path",
            f"{path} has neither {', '.join(names.values())} nor one matrix of items by clients (it holds "
            f"{reading.shown(held)})",
        )
    (one,) = matrices
    if hasattr(one, "tocoo"):
        coo = one.tocoo()
        item, client, value = coo.row.astype(np.int64), coo.col.astype(np.int64), coo.data
    else:
        dense = np.asarray(one, dtype=np.float64)
        item, client = np.nonzero(~np.isnan(dense))
        value = dense[item, client]
    number = reading.numbers("value", path, value, 1)
    return {"client": client, "item": item, "value": number, "sides": np.array(one.shape)}


add_dataset(
    DatasetEntry(
        name="entries-file",
        cls=EntriesFile,
        kind="entries",
        summary="entries of a matrix of your own whose columns are clients, with their side information",
    )
)
