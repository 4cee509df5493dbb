"""The product of a layer: its gradient, and the library that computes it; skipped where JAX is not installed."""

from __future__ import annotations

import importlib.util
import re
from typing import Any

import numpy as np
import pytest

from fedrepro.nets import backend, mlp
from fedrepro.nets.product import product

if importlib.util.find_spec("jax") is None:
    pytest.skip('needs JAX: pip install "fedrepro[deep]"', allow_module_level=True)

ROWS, INPUTS, OUTPUTS = 700, 6, 4


def gradients(multiply: Any) -> Any:
    """A function of x and the kernel: the gradients of a sum of squares of their product."""
    jax = backend.load()
    return jax.grad(lambda x, kernel: (multiply(x, kernel) ** 2).sum(), argnums=(0, 1))


def arrays() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((ROWS, INPUTS)), rng.standard_normal((INPUTS, OUTPUTS))


def test_it_is_the_product_and_has_its_gradient() -> None:
    x, kernel = arrays()
    with mlp.computing(True):
        plainly = np.asarray(backend.load().numpy.matmul(x, kernel))
        np.testing.assert_allclose(np.asarray(product(x, kernel)), plainly, rtol=0, atol=1e-14 * np.abs(plainly).max())
        ours, plain = (gradients(f)(x, kernel) for f in (product, lambda a, b: a @ b))
    for mine, theirs in zip(ours, plain, strict=True):
        assert np.abs(np.asarray(mine) - np.asarray(theirs)).max() <= 1e-13 * np.abs(np.asarray(theirs)).max()


def test_many_clients_are_multiplied_at_once() -> None:
    rng, jax = np.random.default_rng(1), backend.load()
    x, kernels = rng.standard_normal((3, 5, INPUTS)), rng.standard_normal((3, INPUTS, OUTPUTS))
    with mlp.computing(True):
        both = jax.vmap(gradients(product))(x, kernels)
        one_by_one = [gradients(product)(*client) for client in zip(x, kernels, strict=True)]
    for place, together in enumerate(both):
        np.testing.assert_allclose(np.asarray(together), [np.asarray(g[place]) for g in one_by_one], rtol=1e-12)


@pytest.mark.skipif(backend.clients_in_parallel(), reason="an accelerator has other libraries")
def test_no_product_is_left_to_the_library_that_splits_sums_by_the_cache() -> None:
    """A product of the compiled program stands alone only if Eigen computes it; YNNPACK's are fusions."""
    x, kernel = arrays()
    with mlp.computing(True):
        texts = [
            backend.load().jit(gradients(f)).lower(x, kernel).compile().as_text() for f in (product, lambda a, b: a @ b)
        ]
    ours, plain = map(outside, texts)
    assert ours == []
    assert plain != [], "this version of XLA no longer needs a gradient of our own"


def outside(text: str) -> list[str]:
    """The products of a compiled program that are not inside a fusion of YNNPACK."""
    in_ynn = set(re.findall(r"calls=%(\S+?),.*__ynn_fusion", text))
    computation, found = "", []
    for line in text.splitlines():
        if line.startswith("%"):
            computation = line[1:].split()[0]
        elif re.search(r" dot\(| custom-call\(.*matmul", line) and computation not in in_ynn:
            found.append(line.strip())
    return found
