"""The sizes of loaded data, under the names that shapes and papers use.

A dataset's ``shape`` predicts sizes; a copy in the data home may have less, and a selection may reach less than was
requested. Verdicts state the sizes of the loaded data.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fedrepro.datasets.biased_regression import Biased
from fedrepro.datasets.imc_instances import Instance
from fedrepro.datasets.own_types import Entries, Measured
from fedrepro.datasets.types import Images, Ratings, Samples, Views

IN_RUNS = "says"  # no run asks for it; see fedrepro.runs.identity.code


def size(data: Any) -> dict[str, int]:
    """Return the sizes of loaded data of any kind; empty for an unknown kind.

    Samples: M, N, and the K classes that occur. Ratings: users, items, ratings. Views: I views, J rows to train with, N
    columns where all views have as many, and the rows held back, named as in the data's facts (test ...). Images:
    images, classes, groups, size (height), and train and test where there is a split. Random instances: M clients, N
    items. Biased regression: M clients, N numbers per client. Entries: M clients, N items, entries, k numbers of side
    information. Regression: M clients, samples, d inputs, k numbers of side information, N inputs of the
    largest client.
    """
    return next((measure(data) for kind, measure in _MEASURES.items() if isinstance(data, kind)), {})


NAMES: dict[str, tuple[str, ...]] = {
    "samples": ("M", "N", "K"),
    "ratings": ("users", "items", "ratings"),
    "views": ("I", "J", "N", "validation", "test", "cluster"),
    "images": ("images", "classes", "groups", "size", "train", "test"),
    "imc": ("M", "N"),
    "shift": ("M", "N"),
    "entries": ("M", "N", "entries", "k"),
    "regression": ("M", "N", "samples", "d", "k"),
}
"""By the registered kind of a dataset, every name that ``size`` may return."""


def _samples(data: Samples) -> dict[str, int]:
    M, N = data.X.shape
    K = data.K if data.labels is None else len(np.unique(data.labels))
    return {"M": int(M), "N": int(N)} | ({} if K is None else {"K": int(K)})


def _ratings(data: Ratings) -> dict[str, int]:
    return {"users": int(data.users), "items": int(data.items), "ratings": len(data.value)}


def _views(data: Views) -> dict[str, int]:
    held = data.facts.get("parts") or {name: data.facts[name] for name in ("test",) if name in data.facts}
    rows, columns = int(data.views[0].shape[0]), {int(view.shape[1]) for view in data.views}
    sizes = {"I": len(data.views), "J": rows - sum(held.values())}
    sizes |= {"N": columns.pop()} if len(columns) == 1 else {}
    return sizes | {name: int(count) for name, count in held.items()}


def _images(data: Images) -> dict[str, int]:
    sizes = {"images": len(data.pixels), "classes": len(np.unique(data.labels)), "size": int(data.pixels.shape[1])}
    if data.group is not None:
        sizes["groups"] = len(np.unique(data.group))
    if data.split is not None:
        sizes |= {"train": int((data.split == 0).sum()), "test": int((data.split == 1).sum())}
    return sizes


def _instance(data: Instance) -> dict[str, int]:
    return {"M": len(data.Z), "N": len(data.U)}


def _biased(data: Biased) -> dict[str, int]:
    M, n, d = data.x.shape
    return {"M": int(M), "N": int(n * d)}


def _entries(data: Entries) -> dict[str, int]:
    M, k = data.Z.shape
    return {"M": int(M), "N": int(data.items), "entries": len(data.value), "k": int(k)}


def _measured(data: Measured) -> dict[str, int]:
    (n, d), (M, k) = data.x.shape, data.z.shape
    return {"M": int(M), "N": int(np.bincount(data.client).max() * d), "samples": int(n), "d": int(d), "k": int(k)}


_MEASURES: dict[type, Callable[[Any], dict[str, int]]] = {
    Samples: _samples,
    Ratings: _ratings,
    Views: _views,
    Images: _images,
    Instance: _instance,
    Biased: _biased,
    Entries: _entries,
    Measured: _measured,
}
