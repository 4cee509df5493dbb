"""Datasets on disk: where they lie, whether they are sound, and how loaders are given them."""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fedrepro import registry, seeds
from fedrepro.data.copies import State, folder, remove, sha256, state
from fedrepro.data.copies import fingerprint as _stored_fingerprint
from fedrepro.data.home import home
from fedrepro.data.imports import adopt
from fedrepro.errors import ParameterError, UserError, nearest

IN_RUNS = "reads"  # the content of files has a fingerprint; see fedrepro.runs.code

__all__ = ["State", "adopt", "fingerprint", "folder", "home", "load", "remove", "state"]


def fingerprint(dataset: str, params: Mapping[str, Any]) -> str:
    """sha256 of the content a dataset with these parameters reads; empty where it reads no file.

    Raises DataAbsent where its files, or the part of them that ``params`` asks for, are not in the data home.
    """
    entry = _entry(dataset)
    if entry.source is not None:
        return _stored_fingerprint(entry.source, {**entry.parameters(), **params})
    files = [Path(str(params[key])) for key in ("path", "labels") if params.get(key)]
    files = [files[0], *(file for file in files[1:] if file.is_file())] if files else []
    if not files:
        return ""
    return hashlib.sha256("".join(_file_hash(file) for file in files).encode()).hexdigest()


def load(
    dataset: str,
    params: Mapping[str, Any],
    rng: np.random.Generator | None = None,
    stand_in: bool = False,
) -> Any:
    """The arrays of a registered dataset: Samples, Ratings, Views or Images (see ``fedrepro.datasets.types``).

    ``rng`` fills the ``rng`` argument of loaders that draw; by default it is the data axis' generator for these
    parameters. ``stand_in=True`` gives the labelled surrogate of a dataset that needs files. Raises DataAbsent and
    ParameterError.
    """
    entry = _entry(dataset)
    unknown = [key for key in params if key not in entry.parameters()]
    if unknown:
        raise ParameterError(unknown[0], f"{dataset} has no such parameter{nearest(unknown[0], entry.parameters())}")
    rng = rng or seeds.generator("data", dataset=dataset, params=dict(params))
    if entry.check is not None:
        entry.check(**params)
    if stand_in and entry.source is not None:
        if entry.stand_in is None:
            raise UserError(f"{dataset} has no stand-in")
        return entry.stand_in(rng=rng, **params)
    drawn = {"rng": rng} if "rng" in inspect.signature(entry.load).parameters else {}
    if entry.source is None:
        return entry.load(**params, **drawn)
    return entry.load(folder(entry.source, {**entry.parameters(), **params}), **params, **drawn)


def _entry(dataset: str) -> registry.Dataset:
    known = registry.datasets()
    if dataset not in known:
        raise UserError(f"'{dataset}' is not a dataset{nearest(dataset, known)} (datasets: {', '.join(sorted(known))})")
    return known[dataset]


def _file_hash(path: Path) -> str:
    try:
        found = path.stat()
        return _hash_once(path, found.st_size, found.st_mtime_ns)
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror})") from error


@functools.lru_cache(maxsize=64)
def _hash_once(path: Path, size: int, mtime_ns: int) -> str:
    return sha256(path)
