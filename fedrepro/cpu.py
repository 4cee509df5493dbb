"""One instruction level for every process that computes: the same bits on any x86-64-v3 machine.

OpenBLAS, NumPy, numba and XLA pick their kernels by the CPU they find, and kernels add in different orders. ``pin``
asks all four for the level x86-64-v3 (AVX2 and FMA: Haswell, Zen and later) through the variables they read when they
load; it therefore comes before numpy is imported. On the machines measured it is also faster: 67 ms against 86 ms with
AVX-512 for the two thin products of a round. A variable that is set already stays as it is; FEDREPRO_KERNELS=native
leaves all to the libraries. Where the level is absent (ARM, older CPUs) nothing is pinned, and results agree to
rounding, except behind a quantizer's threshold.

Trained networks are outside it: XLA makes other programs on another CPU at the same level (docs/results.md). Otherwise
the promise rests on what the libraries do: OpenBLAS takes other block sizes on some CPUs since 0.3.34, although its
kernels are pinned (https://github.com/OpenMathLib/OpenBLAS/issues/6021).
"""

from __future__ import annotations

import os
import platform
import sys
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
"""What the libraries read when they are loaded. XLA's flag is added to those that are set."""

XLA = "--xla_cpu_max_isa=AVX2"
LAST_OPENBLAS = (0, 3, 33)
"""The newest release of which it is known that pinned kernels add in the same order on every CPU."""


def pin() -> bool:
    """Ask for the level in this process and those it starts; whether it is asked for.

    False where the CPU lacks it, where it is not wanted, or where numpy has been loaded without it.
    """
    if os.environ.get(VARIABLE) == "native" or not available():
        return False
    if "numpy" in sys.modules:
        return asked()
    for name, value in PINNED.items():
        os.environ.setdefault(name, value)
    flags = os.environ.get("XLA_FLAGS", "")
    if "xla_cpu_max_isa" not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} {XLA}".strip()
    return asked()


def asked() -> bool:
    """Whether this process' variables ask for the level."""
    set_ = all(os.environ.get(name) == value for name, value in PINNED.items())
    return set_ and XLA in os.environ.get("XLA_FLAGS", "")


def available() -> bool:
    """Whether the CPU has the instructions of the level, as far as the system tells."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return False
    try:
        return {"avx2", "fma", "bmi2"} <= features()
    except OSError:
        return False


def features() -> set[str]:
    """The CPU's instructions as the system names them; empty where it does not tell. Raises OSError if asking fails."""
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
    """The CPU's name; '' where the system does not tell."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def kernels() -> dict[str, str]:
    """What computes here: the level asked for, the CPU, and the kernels that each loaded BLAS really uses."""
    import numpy.linalg  # noqa: F401  a BLAS is told of once it is loaded
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_info

    blas = {
        f"{one['internal_api']} {one['version']}, {one.get('architecture', 'unknown kernels')}"
        for one in threadpool_info()
        if one["user_api"] == "blas"
    }
    return {"level": LEVEL if asked() else "native", "cpu": model(), "blas": "; ".join(sorted(blas))}


def doubts() -> Iterator[str]:
    """Why results of this machine may differ from another's in the last digits."""
    if not asked():
        why = "is not asked for" if available() else "is not there on this CPU"
        yield f"the instruction level {LEVEL} {why}: results may differ from those of other machines in the last digits"
        return
    import numpy.linalg  # noqa: F401
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_info

    for one in threadpool_info():
        if one["internal_api"] == "openblas" and one.get("architecture") != PINNED["OPENBLAS_CORETYPE"]:
            yield f"OpenBLAS {one['version']} uses its {one.get('architecture')} kernels, not those asked for"
        elif one["internal_api"] == "openblas" and _release(one["version"]) > LAST_OPENBLAS:
            yield (
                f"OpenBLAS {one['version']} may take other block sizes on other CPUs (after "
                f"{'.'.join(map(str, LAST_OPENBLAS))}): results may differ from theirs in the last digits"
            )


def _release(version: str | None) -> tuple[int, ...]:
    return tuple(int(part) for part in (version or "0").split(".")[:3] if part.isdigit())
