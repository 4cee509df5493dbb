"""One instruction level for all processes that compute, so that results have the same bits on any x86-64-v3 machine.

OpenBLAS, NumPy, numba and XLA choose their kernels by the CPU, and kernels add in different orders. ``pin`` sets all
four to the level x86-64-v3 (AVX2 and FMA: Haswell, Zen and later) through the variables that they read when they are
loaded, so it must be called before numpy is imported. On the machines measured this is also faster: 67 ms instead of
86 ms with AVX-512 for the two thin products of a round. Variables that are already set are not changed;
FEDREPRO_KERNELS=native leaves the choice to the libraries. On CPUs without the level (ARM, older ones) nothing is
pinned, and results agree to rounding, except after a quantizer's threshold.

Trained networks need two more measures, because libraries inside JAX split sums by the size of the L1 data cache and
use AVX-512 where the CPU has it: a flag in ``nets.backend``, and the gradient in ``nets.product`` (docs/results.md).
Otherwise the bits depend on the libraries: since 0.3.34 OpenBLAS uses other block sizes on some CPUs, although its
kernels are pinned (https://github.com/OpenMathLib/OpenBLAS/issues/6021).
"""

from __future__ import annotations

import contextlib
import os
import platform
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

LEVEL = "x86-64-v3"
VARIABLE = "FEDREPRO_KERNELS"
PINNED = {
    "OPENBLAS_CORETYPE": "Haswell",
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR AVX512F AVX512CD AVX512_SKX",  # old and new names
    "NUMBA_CPU_NAME": LEVEL,
    "NUMBA_CPU_FEATURES": "",
}
"""Variables that the libraries read when they are loaded. XLA's flag is added to those already set."""

XLA = "--xla_cpu_max_isa=AVX2"
LAST_OPENBLAS = (0, 3, 33)
"""The newest release whose pinned kernels are known to add in the same order on every CPU."""


def pin() -> bool:
    """Set the level for this process and those that it starts; return whether it is set.

    Returns False if the CPU lacks the level, if the user has chosen native kernels, or if numpy is already loaded
    without it.
    """
    if os.environ.get(VARIABLE) == "native" or not available():
        return False
    if "numpy" in sys.modules:
        return asked()
    warnings.filterwarnings("ignore", "During parsing environment variable", ImportWarning)  # each numpy knows a part
    for name, value in PINNED.items():
        os.environ.setdefault(name, value)
    flags = os.environ.get("XLA_FLAGS", "")
    if "xla_cpu_max_isa" not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} {XLA}".strip()
    return asked()


def asked() -> bool:
    """Return whether the variables of this process set the level."""
    set_ = all(os.environ.get(name) == value for name, value in PINNED.items())
    return set_ and XLA in os.environ.get("XLA_FLAGS", "")


def available() -> bool:
    """Return whether the CPU has the instructions of the level, as far as the system reports them."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return False
    try:
        return {"avx2", "fma", "bmi2"} <= features()
    except OSError:
        return False


def features() -> set[str]:
    """Return the CPU's instructions as the system names them, or an empty set. Raises OSError if reading fails."""
    system = platform.system()
    if system == "Linux":
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        return set(next((line.partition(":")[2].split() for line in lines if line.startswith("flags")), []))
    if system == "Darwin":
        import subprocess

        names = ["sysctl", "-n", "machdep.cpu.features", "machdep.cpu.leaf7_features"]
        return set(subprocess.run(names, capture_output=True, text=True, check=False).stdout.lower().split())
    if system == "Windows":
        import ctypes

        has = ctypes.windll.kernel32.IsProcessorFeaturePresent(40)  # type: ignore[attr-defined]  # AVX2 has the others
        return {"avx2", "fma", "bmi2"} if has else set()
    return set()


def model() -> str:
    """Return the name of the CPU, or '' if the system does not report it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def processor() -> dict[str, str]:
    """Return vendor, family, model, stepping and cache sizes of the CPU, as far as the system reports them (Linux)."""
    names = {"vendor_id": "vendor", "cpu family": "family", "model": "model", "stepping": "stepping"}
    facts: dict[str, str] = {}
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() in names:
                facts.setdefault(names[name.strip()], value.strip())
    for cache in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        with contextlib.suppress(OSError):
            level, kind, size = ((cache / part).read_text().strip() for part in ("level", "type", "size"))
            facts[f"L{level} {kind.lower()}"] = size
    return facts


def kernels() -> dict[str, str]:
    """Return the level, the CPU, and the kernels that each loaded BLAS uses."""
    import numpy.linalg  # noqa: F401  threadpoolctl reports loaded libraries only
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_info

    blas = {
        f"{library['internal_api']} {library['version']}, {library.get('architecture', 'unknown kernels')}"
        for library in threadpool_info()
        if library["user_api"] == "blas"
    }
    return {"level": LEVEL if asked() else "native", "cpu": model(), "blas": "; ".join(sorted(blas))}


def doubts() -> Iterator[str]:
    """Yield reasons why results of this machine may differ from those of others in the last digits."""
    if not asked():
        why = "is not set" if available() else "is missing on this CPU"
        yield f"the instruction level {LEVEL} {why}: results may differ from those of other machines in the last digits"
        return
    import numpy.linalg  # noqa: F401
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_info

    for library in threadpool_info():
        if library["internal_api"] != "openblas":
            continue
        name = f"OpenBLAS {library['version']}"
        if library.get("architecture") != PINNED["OPENBLAS_CORETYPE"]:
            yield f"{name} uses its {library.get('architecture')} kernels, not those of the level {LEVEL}"
        elif _release(library["version"]) > LAST_OPENBLAS:
            yield (
                f"{name} may use other block sizes on other CPUs (after {'.'.join(map(str, LAST_OPENBLAS))}): results "
                "may differ from theirs in the last digits"
            )


def _release(version: str | None) -> tuple[int, ...]:
    return tuple(int(part) for part in (version or "0").split(".")[:3] if part.isdigit())
