"""Data that do not fit in memory: run from their file, block by block, to the bits of a run in memory."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

from fedrepro.data.formats import named_arrays

M, N, ROOM = 400, 40_000, 110_000_000
"""X takes 128 MB; the room to run in, beyond what a run of tiny data takes, is less."""

SPEC = """\
paper: beyond
figure: large
title: "more than memory"
problem: {{name: clustering, K: 3}}
trials: 1
rounds: 2
dataset: {{name: file, path: {path}, orientation: {orientation}}}
partition: {{name: uniform, P: 8}}
panels: {{a: {{curves: [{{algorithm: fedmavg}}, {{algorithm: fedmgs}}]}}}}
tiers: {{smoke: {{}}, quick: {{}}, paper: {{}}}}
"""

LIMITED = """\
import resource
import sys

import numpy as np

from fedrepro.cli.main import main

tiny, spec, path, room = sys.argv[1:]
main(["run", tiny, "--jobs", "1", "--quiet", "--results", "tiny"], standalone_mode=False)
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
limit = 1024 * int(status["VmData"].split()[0]) + int(room)
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
try:
    np.load(path)
except MemoryError:
    print("does not fit")
main(["run", spec, "--jobs", "1", "--quiet", "--results", "mapped"], standalone_mode=False)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the limit counts what is allocated, and no maps, on Linux only")
@pytest.mark.parametrize("orientation", ["columns", "rows"])
def test_a_file_larger_than_the_memory_allowed_gives_the_bits_of_a_run_in_memory(
    tmp_path: Path, fedrepro: Callable[..., Result], monkeypatch: pytest.MonkeyPatch, orientation: str
) -> None:
    rng = np.random.default_rng(0)
    A = rng.random((M, N) if orientation == "columns" else (N, M))
    specs = {}
    for name, array in (("tiny.npy", A[:20, :20]), ("large.npy", A)):
        np.save(tmp_path / name, array)
        specs[name] = tmp_path / f"{name}.yaml"
        specs[name].write_text(SPEC.format(path=tmp_path / name, orientation=orientation), encoding="utf-8")
    del A
    words = [specs["tiny.npy"], specs["large.npy"], tmp_path / "large.npy", ROOM]
    command = [sys.executable, "-c", LIMITED, *map(str, words)]
    limited = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert limited.returncode == 0, limited.stdout + limited.stderr
    assert "does not fit" in limited.stdout
    assert "2 runs computed, 0 reused, 0 failed" in limited.stdout
    monkeypatch.setitem(named_arrays._READERS, ".npy", lambda path: {"X": np.load(path)})
    plain = fedrepro("run", specs["large.npy"], "--jobs", "1", "--quiet", "--results", tmp_path / "memory")
    assert plain.exit_code == 0, plain.output
    results = [tmp_path / folder / "quick" / "beyond" / "large.csv" for folder in ("mapped", "memory")]
    assert results[0].read_bytes() == results[1].read_bytes()
    assert results[0].read_text().count("\n") == 1 + 2 * 3
