"""JAX on one thread, loaded at the first use, so that all other code works without JAX."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from fedrepro.errors import UserError

ONE_THREAD, EVERY_CPU = FLAGS = (
    "--xla_cpu_multi_thread_eigen=false", "--xla_cpu_enable_platform_dependent_math=false",
)  # fmt: skip
"""Flags of XLA: one thread, and sums and square roots that do not depend on the vendor or on AVX-512."""


@functools.cache
def load() -> Any:
    """The module ``jax``, set up to compute on one thread per process, because runs share the cores.

    The order of sums then does not depend on the number of cores nor, as far as is known, on the CPU (docs/results.md).
    A process that imported JAX before keeps its settings. Raises UserError if JAX or optax is not installed.
    """
    if "jax" not in sys.modules:
        os.environ["XLA_FLAGS"] = " ".join((os.environ.get("XLA_FLAGS", ""), *FLAGS)).strip()
        before = {name: os.environ.get(name) for name in ("PJRT_NPROC", "NPROC")}
        os.environ.update(PJRT_NPROC="1", NPROC="1")  # the size of XLA's thread pool, read when the CPU client is made
    else:
        before = {}
    try:
        import jax
        import optax  # noqa: F401  (found missing here, not in the middle of a run)

        jax.devices()
    except ImportError as error:
        raise UserError(f'this part needs {error.name}: pip install "fedrepro[deep]"') from None
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
    return jax


def clients_in_parallel() -> bool:
    """Whether clients are trained in parallel (accelerator) or one after another (CPU, where it is faster)."""
    return load().default_backend() != "cpu"


@contextlib.contextmanager
def computing(dtype: Any) -> Iterator[None]:
    """A context in which JAX computes in this type; without it, an accelerator would round the factors of products."""
    jax = load()
    with contextlib.ExitStack() as settings:
        if np.dtype(dtype) == np.float64:
            settings.enter_context(jax.enable_x64(True))
        if clients_in_parallel():
            settings.enter_context(jax.default_matmul_precision("highest"))
        yield
