"""Models of many clients, stacked: NumPy arrays on a CPU, arrays in the memory of the device on an accelerator.

A mapping has an array (clients, ...) for each name. A round on an accelerator thus moves no model between memories.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from fedrepro.nets import backend
from fedrepro.nets.convnet import Net

Model = dict[str, Any]

STACK_BYTES = 1 << 29
"""Size of a stack of models on an accelerator; more clients need several stacks."""


def stack_length(net: Net, m: int, dtype: Any) -> int:
    """The number of stacked clients: the largest divisor of m whose models fit into STACK_BYTES.

    All calls of a run use the same length, so there is one compilation. The length is 1 if clients are trained one
    after another: then problems with any number of clients share compiled programs.
    """
    if not backend.clients_in_parallel():
        return 1
    numbers = sum(int(np.prod(shape)) for shape in net.shapes.values())
    most = max(1, STACK_BYTES // (numbers * np.dtype(dtype).itemsize))
    return max(n for n in range(1, min(most, m) + 1) if m % n == 0)


def stacks(clients: np.ndarray, length: int) -> Iterator[tuple[np.ndarray, int]]:
    """Stacks of clients of one length, the last padded with its last client, and the number of clients in each."""
    for first in range(0, len(clients), length):
        stack = clients[first : first + length]
        yield np.concatenate([stack, np.repeat(stack[-1:], length - len(stack))]), len(stack)


def copies(values: np.ndarray, clients: int) -> Any:
    """An array of ``clients`` copies of one client's array, to be changed with ``keep``."""
    if not backend.clients_in_parallel():
        return np.repeat(values[None], clients, axis=0)
    with backend.computing(values.dtype):
        return backend.load().numpy.repeat(values[None], clients, axis=0)


def stacked(shared: Mapping[str, Any], own: Mapping[str, Any], net: Net, clients: np.ndarray) -> Model:
    """The models of ``clients``: arrays in ``own``, (all clients, ...), are their own, the others are ``shared``."""
    parallel = backend.clients_in_parallel()
    dtype = next(iter((own or shared).values())).dtype
    with backend.computing(dtype):
        broadcast = backend.load().numpy.broadcast_to if parallel else np.broadcast_to
        return {
            name: own[name][clients] if name in own else broadcast(shared[name], (len(clients), *shape))
            for name, shape in net.shapes.items()
        }


def keep(own: Model, name: str, clients: np.ndarray, values: Any) -> None:
    """Store the array ``name`` of these clients in ``own``."""
    if backend.clients_in_parallel():
        with backend.computing(own[name].dtype):
            own[name] = own[name].at[clients].set(values)
    else:
        own[name][clients] = values


def added(total: Any, weights: np.ndarray, values: Any) -> Any:
    """``total`` (None at first) plus the weighted sum of the clients' arrays.

    On a CPU the sum is in double precision and in the order of the clients, for any size of the stacks; on an
    accelerator it is in the type of the arrays.
    """
    if backend.clients_in_parallel():
        with backend.computing(values.dtype):
            part = (values * weights.astype(values.dtype).reshape(-1, *[1] * (values.ndim - 1))).sum(0)
            return part if total is None else total + part
    total = np.zeros(values.shape[1:]) if total is None else total
    for weight, client_values in zip(weights, values, strict=True):
        total += weight * client_values
    return total
