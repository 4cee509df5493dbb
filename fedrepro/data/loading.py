"""Load a registered dataset by its name: check parameters, find arrays in the data home, pass a random generator."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from fedrepro import registry, seeds
from fedrepro.data.copies import folder
from fedrepro.errors import ParameterError, UserError, nearest

IN_RUNS = "computes"  # how arrays and random numbers come to a run; see fedrepro.runs.identity.code


def load(
    dataset: str,
    params: Mapping[str, Any],
    rng: np.random.Generator | None = None,
    stand_in: bool = False,
) -> Any:
    """Return the arrays of a registered dataset: Samples, Ratings, Views or Images (see ``fedrepro.datasets.types``).

    rng : generator for datasets that draw; by default that of the data axis for these parameters. stand_in : return the
    labelled surrogate of a dataset that needs files. Raises DataAbsent and ParameterError.
    """
    entry = find(dataset)
    _known(entry, params)
    wanted = entry.make(**params)
    rng = rng or seeds.generator("data", dataset=dataset, params=dict(params))
    if stand_in and entry.source is not None:
        if entry.stand_in is None:
            raise UserError(f"{dataset} has no stand-in")
        return entry.stand_in(wanted, rng)
    drawn = {"rng": rng} if entry.draws else {}
    if entry.source is None:
        return wanted.load(**drawn)
    return wanted.load(folder(entry.source, {**entry.parameters(), **params}), **drawn)


def find(dataset: str) -> registry.DatasetEntry:
    """Return the dataset with this name. Raises UserError with the nearest name."""
    known = registry.datasets()
    if dataset not in known:
        raise UserError(f"'{dataset}' is not a dataset{nearest(dataset, known)} (datasets: {', '.join(sorted(known))})")
    return known[dataset]


def _known(entry: registry.DatasetEntry, params: Mapping[str, Any]) -> None:
    """Raise ParameterError for an unknown parameter, or a missing required one."""
    defaults = entry.parameters()
    for name in params:
        if name not in defaults:
            raise ParameterError(name, f"{entry.name} has no such parameter{nearest(name, defaults)}")
    for name, default in defaults.items():
        if default is dataclasses.MISSING and name not in params:
            raise ParameterError(name, f"{entry.name} needs it")
