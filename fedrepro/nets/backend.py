"""JAX on one thread: loaded at the first use, so that everything else works where it is not installed."""

from __future__ import annotations

import functools
import os
import sys
from typing import Any

from fedrepro.errors import UserError

ONE_THREAD = "--xla_cpu_multi_thread_eigen=false"


@functools.cache
def load() -> Any:
    """The module ``jax``, set up so that a process computes on one thread: runs share the cores, not a run.

    Sums are then taken in one order whatever the number of cores (on another CPU they may not: docs/results.md). A
    process that imported JAX before keeps its own settings. Raises UserError where JAX or optax is not installed.
    """
    if "jax" not in sys.modules:
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {ONE_THREAD}".strip()
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
    """Whether clients are trained side by side (an accelerator) or one after another (a CPU, where that is faster)."""
    return load().default_backend() != "cpu"
