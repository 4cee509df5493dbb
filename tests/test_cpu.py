"""The instruction level: set before the libraries load, left alone if the user has set it, and recorded."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from fedrepro import cpu

ASK = """
import json, sys
from fedrepro import cpu
before = "numpy" in sys.modules
pinned = cpu.pin()
import numpy as np
from numpy._core._multiarray_umath import __cpu_features__ as found
import numba
print(json.dumps({
    "before": before, "pinned": pinned, "kernels": cpu.kernels(), "doubts": list(cpu.doubts()),
    "v4": bool(found.get("X86_V4", found.get("AVX512F"))), "numba": numba.config.CPU_NAME,
}))
"""

needed = pytest.mark.skipif(not cpu.available(), reason="this CPU lacks the level")


def ask(script: str = ASK, **environment: str) -> dict[str, object]:
    kept = {k: v for k, v in os.environ.items() if k not in (*cpu.PINNED, "XLA_FLAGS", cpu.VARIABLE)}
    done = subprocess.run(
        [sys.executable, "-c", script], env={**kept, **environment}, capture_output=True, text=True, check=True
    )
    return dict(json.loads(done.stdout))


@needed
def test_the_level_is_asked_for_and_taken() -> None:
    reported = ask()
    assert (reported["before"], reported["pinned"], reported["v4"], reported["numba"]) == (
        False,
        True,
        False,
        cpu.LEVEL,
    )
    kernels = reported["kernels"]
    assert isinstance(kernels, dict)
    assert kernels["level"] == cpu.LEVEL
    assert "Haswell" in kernels["blas"] or "openblas" not in kernels["blas"]
    assert not [doubt for doubt in reported["doubts"] if "kernels" in doubt]  # type: ignore[attr-defined]


@needed
def test_what_is_set_already_stays_and_is_told() -> None:
    reported = ask(OPENBLAS_CORETYPE="Nehalem")
    assert reported["pinned"] is False
    assert reported["kernels"]["level"] == "native"  # type: ignore[index]
    assert reported["doubts"] == [
        "the instruction level x86-64-v3 is not set: results may differ from those of other machines in the last digits"
    ]
    native = ask(FEDREPRO_KERNELS="native")
    assert (native["pinned"], native["numba"]) == (False, None)


@needed
def test_after_numpy_it_is_too_late_and_nothing_is_set() -> None:
    script = "import json, os, numpy; from fedrepro import cpu; "
    script += "print(json.dumps({'pinned': cpu.pin(), 'set': sorted(set(cpu.PINNED) & set(os.environ))}))"
    assert ask(script) == {"pinned": False, "set": []}


@needed
def test_flags_of_xla_are_added_to_those_there_and_not_twice() -> None:
    script = "import json, os; from fedrepro import cpu; cpu.pin(); cpu.pin(); "
    script += "print(json.dumps({'flags': os.environ['XLA_FLAGS']}))"
    assert ask(script, XLA_FLAGS="--xla_dump_to=x") == {"flags": f"--xla_dump_to=x {cpu.XLA}"}
    assert ask(script, XLA_FLAGS="--xla_cpu_max_isa=AVX") == {"flags": "--xla_cpu_max_isa=AVX"}


def test_elsewhere_nothing_is_pinned_and_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu.platform, "machine", lambda: "arm64")
    for name in cpu.PINNED:
        monkeypatch.delenv(name, raising=False)
    assert not cpu.available()
    assert not cpu.pin()
    assert list(cpu.doubts()) == [
        "the instruction level x86-64-v3 is missing on this CPU: results may differ from those of other machines in "
        "the last digits"
    ]


def test_releases_of_openblas_that_break_the_promise_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    import threadpoolctl

    def one(version: str, architecture: str = "Haswell") -> None:
        info = [{"internal_api": "openblas", "user_api": "blas", "version": version, "architecture": architecture}]
        monkeypatch.setattr(threadpoolctl, "threadpool_info", lambda: info)

    monkeypatch.setattr(cpu, "asked", lambda: True)
    one("0.3.31.188.0")
    assert list(cpu.doubts()) == []
    one("0.3.34")
    assert list(cpu.doubts()) == [
        "OpenBLAS 0.3.34 may use other block sizes on other CPUs (after 0.3.33): results may differ from theirs "
        "in the last digits"
    ]
    one("0.3.30", "Zen")
    assert list(cpu.doubts()) == ["OpenBLAS 0.3.30 uses its Zen kernels, not those of the level x86-64-v3"]
