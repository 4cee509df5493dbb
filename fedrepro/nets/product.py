"""The matrix product of a layer, with a gradient that adds in the same order on every CPU.

XLA gives the product of two activations, which is the gradient of a kernel, to Eigen, which splits sums by the size of
the L1 data cache. Written as below it goes to YNNPACK, as all other products do (docs/results.md, "Trained networks on
another CPU").
"""

from __future__ import annotations

import functools
from typing import Any

from fedrepro.nets import backend


def product(x: Any, kernel: Any) -> Any:
    """Return ``x @ kernel`` for rows x (n, a) and a kernel (a, b); traced by JAX."""
    return _product()(x, kernel)


@functools.cache
def _product() -> Any:
    jax = backend.load()

    def forward(x: Any, kernel: Any) -> tuple[Any, tuple[Any, Any]]:
        return x @ kernel, (x, kernel)

    def backward(kept: tuple[Any, Any], g: Any) -> tuple[Any, Any]:
        x, kernel = kept
        return g @ kernel.T, jax.lax.optimization_barrier(x.T) @ g

    made = jax.custom_vjp(lambda x, kernel: x @ kernel)
    made.defvjp(forward, backward)
    return made
