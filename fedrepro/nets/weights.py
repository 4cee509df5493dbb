"""Models as named arrays: which of them are trained, and a check of those that a user gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from fedrepro.errors import UserError


class Network(Protocol):
    """A network, with the shape of each of its named arrays."""

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """The shape of each array by its name."""
        ...


def trained(name: str) -> bool:
    """Whether a named array is trained; running statistics are not, but otherwise belong to their layer."""
    return not name.endswith((".mean", ".var"))


def given(net: Network, init: Mapping[str, Any], dtype: Any) -> dict[str, np.ndarray]:
    """An explicit initial model; raises UserError if its names or shapes are not those of the network."""
    odd = sorted(set(init) ^ set(net.shapes))
    if odd:
        raise UserError(f"init: '{odd[0]}' is {'not an array of' if odd[0] in init else 'missing for'} this network")
    for name, shape in net.shapes.items():
        if np.shape(init[name]) != shape:
            raise UserError(f"init: '{name}' must have shape {shape}, not {np.shape(init[name])}")
    return {name: np.array(init[name], dtype=dtype) for name in net.shapes}
