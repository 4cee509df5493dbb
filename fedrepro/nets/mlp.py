r"""Fully connected networks of the deep GCCA: linear, batch norm and ReLU for every hidden layer, then linear.

The parameters of a network are one flat mapping from names to arrays, which determines the network: ``layer1.kernel``
(inputs, width), ``layer1.bias``, and with batch norm ``layer1.scale``, ``.shift`` and the running ``.mean`` and
``.var``; ..., ``head.kernel``, ``head.bias``. An empty mapping is the identity. Layers follow PyTorch's defaults, which
the paper's program used: kernels and biases uniform within 1/sqrt(inputs), batch norm with eps 1e-5, running statistics
of momentum 0.1, the running variance from the unbiased estimate.

Source: Shrestha and Fu, eq. (4), (5), Sec. V-B.2 and V-B.4. Eq. (5) has the activation on the output too, and neither
biases nor batch norm; Sec. V-B.4 excepts the output.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedrepro.nets import backend
from fedrepro.nets.product import product

Model = dict[str, np.ndarray]

EPS, MOMENTUM = 1e-5, 0.1


@dataclass(frozen=True)
class Mlp:
    """An architecture: inputs, widths of the hidden layers, outputs; with batch norm and biases or without."""

    inputs: int
    hidden: tuple[int, ...]
    outputs: int
    batch_norm: bool = True
    bias: bool = True

    @functools.cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of every named array."""
        shapes: dict[str, tuple[int, ...]] = {}
        widths = (self.inputs, *self.hidden, self.outputs)
        for layer, (a, b) in enumerate(itertools.pairwise(widths), start=1):
            name = f"layer{layer}" if layer <= len(self.hidden) else "head"
            shapes[f"{name}.kernel"] = (a, b)
            if self.bias:
                shapes[f"{name}.bias"] = (b,)
            if self.batch_norm and name != "head":
                shapes |= {f"{name}.{part}": (b,) for part in ("scale", "shift", "mean", "var")}
        return shapes

    @property
    def macs(self) -> int:
        """Multiplications of one row's forward pass."""
        return sum(math.prod(shape) for name, shape in self.shapes.items() if name.endswith(".kernel"))


def initial(net: Mlp, uniform: Callable[[str, tuple[int, ...]], np.ndarray], dtype: Any) -> Model:
    """An initial model; ``uniform(name, shape)`` gives numbers in [-1, 1)."""
    model = {}
    for name, shape in net.shapes.items():
        layer, _, part = name.rpartition(".")
        if part in ("kernel", "bias"):
            values = uniform(name, shape) / math.sqrt(net.shapes[f"{layer}.kernel"][0])
        else:
            values = np.ones(shape) if part in ("scale", "var") else np.zeros(shape)
        model[name] = values.astype(dtype)
    return model


def forward(model: Mapping[str, Any], x: Any, train: bool) -> tuple[Any, dict[str, Any]]:
    """Outputs (n, K) for the rows x (n, N), and new running statistics where ``train``; traced by JAX.

    ``train`` : batch norm uses the batch's mean and variance and updates the running ones. Otherwise it uses the
    running ones, so that a row's output does not depend on other rows.
    """
    jax = backend.load()
    statistics: dict[str, Any] = {}
    for layer in range(1, 1 + sum(name.startswith("layer") and name.endswith(".kernel") for name in model)):
        name = f"layer{layer}"
        x = _linear(model, name, x)
        if f"{name}.scale" in model:
            x, new = _batch_norm(model, name, x, train)
            statistics |= new
        x = jax.nn.relu(x)
    return (_linear(model, "head", x) if model else x), statistics


def _linear(model: Mapping[str, Any], name: str, x: Any) -> Any:
    x = product(x, model[f"{name}.kernel"])
    return x + model[f"{name}.bias"] if f"{name}.bias" in model else x


def _batch_norm(model: Mapping[str, Any], name: str, x: Any, train: bool) -> tuple[Any, dict[str, Any]]:
    jax = backend.load()
    mean, var, new = model[f"{name}.mean"], model[f"{name}.var"], {}
    if train:
        n = len(x)
        old = {"mean": mean, "var": var}
        mean = x.mean(0)
        var = jax.numpy.maximum((x * x).mean(0) - mean * mean, 0.0)
        now = {"mean": mean, "var": var * (n / max(1, n - 1))}
        new = {f"{name}.{part}": (1 - MOMENTUM) * old[part] + MOMENTUM * now[part] for part in old}
    scale = model[f"{name}.scale"] * jax.lax.rsqrt(var + EPS)
    return x * scale + (model[f"{name}.shift"] - mean * scale), new


def computing(double: bool) -> contextlib.AbstractContextManager[Any]:
    """A context in which JAX computes in double precision if ``double``."""
    return backend.load().enable_x64(True) if double else contextlib.nullcontext()


def predict(model: Mapping[str, Any], X: Any, train: bool = False) -> np.ndarray:
    """Outputs (n, K) in float64, with running statistics, or with ``train`` those of the rows ``X``."""
    if not model:
        return np.array(X, dtype=np.float64)
    dtype = np.asarray(model["head.kernel"]).dtype
    with computing(dtype == np.float64):
        return np.asarray(_predictor(train)(dict(model), np.asarray(X, dtype)), dtype=np.float64)


@functools.cache
def _predictor(train: bool) -> Any:
    return backend.load().jit(lambda model, X: forward(model, X, train)[0])
