"""The speed of this computer: seconds per unit of each kind of work, time and memory of libraries, factors of methods.

Each kind is measured by code that does little else, for about a tenth of a second of processor time, so that other
load does not matter; networks by compiling one. Libraries are measured in a fresh Python that loads them. A method has
a factor besides: the time of a few of its rounds on the small problem that its problem names (``Problem.probes``),
relative to its declared cost. Methods on networks have none, because compiling them takes longer than that is worth.
The first rounds of runs without a declared cost are kept here too (``first_rounds``).

All of it is kept in the file ``.speed.json`` in the data home, by processor and versions of the libraries. A file that
cannot be read is measured again; one that cannot be written is not kept. Nothing is measured for declared work that
takes seconds at the typical speed, ``TYPICAL``, of a 2.5 GHz core of 2023.
"""

from __future__ import annotations

import contextlib
import functools
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, astuple, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from threadpoolctl import threadpool_limits

from fedrepro import cpu
from fedrepro.data.data_home import home
from fedrepro.errors import UserError
from fedrepro.files import atomically
from fedrepro.protocols import Work
from fedrepro.runs.predict.first_rounds import FirstRounds

TYPICAL = Work(flops=8e-11, bytes=5e-11, singles=1e-9, network=2.5e-11, calls=1.2e-6, programs=1.0)
"""Seconds per unit on one core, as methods spend them."""

PROBED = Work(flops=3.5e-11, bytes=3.6e-11, singles=3.4e-10, network=1.25e-11, calls=7.6e-7, programs=0.44)
"""Seconds per unit that the measurements below find on the same core. They repeat one operation and so are faster."""

LIBRARIES: dict[str, tuple[str, float, float]] = {
    "": (
        "import fedrepro.runs.compute.execute, scipy.linalg, scipy.optimize, scipy.sparse.linalg, threadpoolctl",
        0.8,
        70e6,
    ),
    "sklearn": ("import sklearn.cluster, sklearn.metrics, sklearn.svm", 1.0, 112e6),
    "numba": ("import fedrepro.problems.completion.kernels, fedrepro.multiview.minibatch", 0.5, 95e6),
    "jax": ("import fedrepro.nets.backend as b; b.load().numpy.zeros(3).sum()", 1.0, 300e6),
}
"""The program that loads each library, its typical seconds and bytes; '' is Python with what every run needs."""

AT_WORK: dict[str, tuple[float, float]] = {"numba": (3.0, 1.6), "jax": (1.3, 1.2)}
"""Factors of a library's time and memory when it holds the compiled programs of a method."""

WORTH = 20.0
"""Seconds at typical speed above which measuring the computer is worth it."""

_LEAST = 0.1


class Machine:
    """Seconds of work and bytes of libraries: typical numbers unless ``path`` contains measured ones."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = home() / ".speed.json" if path is None else path
        self.key = _key()
        self.kept: dict[str, Any] = _read(self.path).get(self.key, {})

    @property
    def rates(self) -> Work:
        """Seconds per unit, as methods spend them on this computer."""
        measured = {k: getattr(TYPICAL, k) * v / getattr(PROBED, k) for k, v in self.kept.get("seconds", {}).items()}
        return replace(TYPICAL, **measured)

    def seconds(self, work: Work, factor: float = 1.0) -> float:
        """Seconds of one core for an amount of work, by a method with this factor."""
        return factor * sum(amount * rate for amount, rate in zip(astuple(work), astuple(self.rates), strict=True))

    def factor(self, method: str) -> float:
        """The factor of a method, 1 where it was not measured."""
        return float(self.kept.get("methods", {}).get(method, 1.0))

    def loading(self, libraries: Iterable[str]) -> float:
        """Seconds until a fresh Python has loaded the libraries."""
        return sum(self._library(name)[0] for name in {"", *libraries})

    def resident(self, libraries: Iterable[str]) -> float:
        """Bytes of memory of a Python with these libraries."""
        return sum(self._library(name)[1] for name in {"", *libraries})

    def first_rounds(self, family: str) -> FirstRounds | None:
        """What the first rounds of a family of runs took, None where they were not timed."""
        kept = self.kept.get("first rounds", {}).get(family)
        return None if kept is None else FirstRounds(**kept)

    def _library(self, name: str) -> tuple[float, float]:
        seconds, size = self.kept.get("libraries", {}).get(name, LIBRARIES[name][1:])
        return float(seconds), float(size)

    def measure(
        self, kinds: Iterable[str], libraries: Iterable[str], report: Callable[[str], None] = lambda text: None
    ) -> None:
        """Measure and keep the kinds of work (fields of ``Work``) and the libraries that are not known yet.

        ``report`` receives a line if there are any.
        """
        seconds, measured = self.kept.setdefault("seconds", {}), self.kept.setdefault("libraries", {})
        new_kinds, new_libraries = sorted(set(kinds) - set(seconds)), sorted({"", *libraries} - set(measured))
        if new_kinds or new_libraries:
            report("measuring how fast this machine is; kept for the next time")
        with threadpool_limits(limits=1):
            for kind in new_kinds:
                seconds |= _MEASURES[kind]()
        for name in new_libraries:
            if (loaded := _loaded(name)) is not None:
                base = measured.get("", (0.0, 0.0)) if name else (0.0, 0.0)
                factors = AT_WORK.get(name, (1.0, 1.0))
                measured[name] = [f * max(0.0, own - b) for f, own, b in zip(factors, loaded, base, strict=True)]
        self._keep()

    def learn_factor(self, method: str, measure: Callable[[], float | None]) -> None:
        """Measure and keep the factor of a method that has none yet; None where it cannot be measured."""
        factors = self.kept.setdefault("methods", {})
        if method not in factors and (factor := measure()) is not None:
            factors[method] = round(min(4.0, max(0.25, factor)), 3)
            self._keep()

    def learn_first_rounds(self, family: str, first: FirstRounds) -> None:
        """Keep what the first rounds of a family of runs took."""
        self.kept.setdefault("first rounds", {})[family] = asdict(first)
        self._keep()

    def _keep(self) -> None:
        content = {**_read(self.path), self.key: self.kept}
        with contextlib.suppress(OSError):  # if the data home cannot be written, it is measured each time
            atomically(self.path, json.dumps(content, sort_keys=True, indent=1).encode())


def _read(path: Path) -> dict[str, Any]:
    """The content of the file, empty if it is damaged."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        for kept in content.values():
            replace(TYPICAL, **kept.get("seconds", {})) * 1.0
            dict(kept.get("methods", {}))
            for seconds, size in dict(kept.get("libraries", {})).values():
                float(seconds) + float(size)
            for first in dict(kept.get("first rounds", {})).values():
                sum(map(float, asdict(FirstRounds(**first)).values()))
    except (OSError, ValueError, TypeError, AttributeError):
        return {}
    return dict(content)


def _key() -> str:
    """Processor and versions."""
    level = "x86-64-v3" if cpu.asked() else "native"
    return ", ".join([cpu.model() or "unknown processor", level, sys.version.split()[0], *_versions()])


@functools.cache
def _versions() -> list[str]:
    found = []
    for name in ("fedrepro", "numpy", "scipy", "scikit-learn", "numba", "jax"):
        with contextlib.suppress(PackageNotFoundError):
            found.append(f"{name} {version(name)}")
    return found


# -- measuring ---------------------------------------------------------------------------------------------------------


def rate(call: Callable[[], Any], amount: float, least: float = _LEAST) -> float:
    """Seconds of processor time per unit: the best of calls that do ``amount`` each, for ``least`` seconds in all."""
    call()  # loading is not counted
    best, spent = float("inf"), 0.0
    while spent < least:
        began = time.process_time()
        call()
        took = time.process_time() - began
        best, spent = min(best, took), spent + max(took, 1e-4)
    return best / amount


def _flops() -> dict[str, float]:
    """Seconds per operation of thin products of a block that stays in the cache."""
    draw = np.random.default_rng(0)
    X, W, H = draw.random((500, 400)), draw.random((400, 12)), draw.random((500, 12))

    def products() -> None:
        for _ in range(20):
            X @ W
            X.T @ H

    return {"flops": rate(products, 20 * 2 * 2.0 * X.size * 12)}


def _bytes() -> dict[str, float]:
    """Seconds per byte of the sum of a matrix that fits into no cache."""
    X = np.ones(1 << 23)
    return {"bytes": rate(X.sum, 8.0 * X.size)}


def _singles() -> dict[str, float]:
    """Seconds per operation of sparse products, in which each stored entry reads a row from elsewhere in memory."""
    draw = np.random.default_rng(0)
    X = scipy.sparse.random(4000, 1000, density=0.05, random_state=0, format="csr")
    W = draw.random((1000, 10))
    return {"singles": rate(lambda: X @ W, 10.0 * X.nnz)}


def _calls() -> dict[str, float]:
    """Seconds per operation on a few numbers."""
    A, B = np.ones((10, 10)), np.ones((10, 10))

    def calls() -> None:
        for _ in range(500):
            np.matmul(A, A, out=B)
            np.maximum(B, 0.0, out=B)
            B * 0.5

    return {"calls": rate(calls, 1500.0)}


def _network() -> dict[str, float]:
    """Seconds per operation of a convolution with its derivative, and seconds to compile it."""
    from fedrepro.nets import backend

    try:
        jax = backend.load()
    except UserError:
        return {}

    def loss(kernels: Any, x: Any) -> Any:
        for kernel in kernels:
            x = jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            x = jax.numpy.maximum(x, 0.0)
        return (x**2).mean()

    call = jax.jit(jax.grad(loss))
    kernels = [jax.numpy.ones((3, 3, 32, 32)) * 0.01 for _ in range(3)]
    x = jax.numpy.ones((10, 14, 14, 32))
    began = time.process_time()
    jax.block_until_ready(call(kernels, x))
    compiled = time.process_time() - began
    flops = 3 * 6.0 * x.size * 9 * 32
    return {
        "network": rate(lambda: jax.block_until_ready(call(kernels, x)), flops),
        "programs": compiled,
    }


_MEASURES: dict[str, Callable[[], dict[str, float]]] = {
    "flops": _flops,
    "bytes": _bytes,
    "singles": _singles,
    "calls": _calls,
    "network": _network,
    "programs": _network,
}


def _loaded(name: str) -> tuple[float, float] | None:
    """Seconds of processor time and bytes of a fresh Python that loads a library after what every run needs."""
    program = "; ".join(
        [
            f"import sys; sys.path[:] = {sys.path!r}",
            "from fedrepro import cpu",
            "cpu.pin()",
            LIBRARIES[""][0],
            LIBRARIES[name][0],
            "import time",
            "from fedrepro.runs.predict.memory_peak import peak",
            "print(time.process_time(), peak())",
        ]
    )
    child = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    if child.returncode != 0:
        return None
    seconds, size = child.stdout.split()[-2:]
    return float(seconds), float(size)


def needs(works: Iterable[Work]) -> set[str]:
    """The kinds of work whose amount is not zero."""
    return {kind for work in works for kind, amount in asdict(work).items() if amount}
