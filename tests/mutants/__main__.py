"""Plant each bug in a copy of the tree and see whether its tests fail: ``python -m tests.mutants [--all] [NAME ...]``.

``--all`` also runs all other quick tests on a bug that its own tests do not catch. Exit code 1 if fewer than 19
in 20 are caught, or one no longer applies; 2 if the tests fail without any bug.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.mutants import ROOT, Mutant, Stale, mutants

CAUGHT, SURVIVED, STALE, UNASKED = "caught", "SURVIVED", "NO LONGER APPLIES", "TESTS DO NOT RUN"
ENOUGH = 0.95
HANGS = 900
"""Seconds after which tests that have not ended count as failed."""

_LEFT_OUT = {"results", "plots", "shared", "build", "dist"}
"""Folders that tests do not need, besides hidden ones and compiled code."""


def main(arguments: Sequence[str]) -> int:
    """Judge the mutants named, or all; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="mutants to plant; all where none is named")
    parser.add_argument("--all", action="store_true", help="ask all quick tests about what the named tests let through")
    asked = parser.parse_args(arguments)
    mutations = [mutation for mutation in mutants() if mutation.name in asked.names or not asked.names]
    if unknown := set(asked.names) - {mutation.name for mutation in mutations}:
        parser.error(f"there is no mutant {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = Path(folder) / "tree"
        shutil.copytree(ROOT, tree, ignore=_ignored)
        code, said = run(tree, sorted({test for mutation in mutations for test in mutation.tests}))
        if code:
            print(f"the tests fail without any mistake:\n{said}")
            return 2
        outcomes = [_told(mutation, *judge(tree, mutation, asked.all)) for mutation in mutations]
    print(f"{outcomes.count(CAUGHT)} of {len(outcomes)} caught")
    return int(too_few(outcomes))


def too_few(outcomes: Sequence[str]) -> bool:
    """Whether fewer than ``ENOUGH`` are caught, or one no longer applies."""
    return outcomes.count(CAUGHT) < ENOUGH * len(outcomes) or STALE in outcomes


def _ignored(folder: str, names: list[str]) -> set[str]:
    at_top = {name for name in names if name.startswith(".") or name in _LEFT_OUT} if Path(folder) == ROOT else set()
    return at_top | ({"__pycache__"} & set(names))


def judge(tree: Path, mutant: Mutant, everything: bool = False) -> tuple[str, float]:
    """The outcome of a mutant planted in ``tree``, and its seconds; ``tree`` is restored."""
    path, began = tree / mutant.file, time.monotonic()
    kept = path.with_name(f"{path.name}.kept")
    try:
        text = mutant.applied(path.read_text(encoding="utf-8"))
    except (OSError, Stale):
        return STALE, 0.0
    os.replace(path, kept)  # with its time, by which Python and numba know what they compiled
    try:
        path.write_text(text, encoding="utf-8")
        code, _ = run(tree, mutant.tests)
        if code == 0 and everything:
            code, _ = run(tree, ["-m", "not slow", "tests"])
    finally:
        os.replace(kept, path)
    return {0: SURVIVED, 1: CAUGHT}.get(code, UNASKED), time.monotonic() - began


def run(tree: Path, tests: Sequence[str]) -> tuple[int, str]:
    """pytest's exit code on these tests of ``tree``, and the end of what it printed; 1 if it does not end."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    try:
        done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, timeout=HANGS)
    except subprocess.TimeoutExpired:
        return 1, f"no end after {HANGS} s"
    return done.returncode, done.stdout[-3000:] + done.stderr[-1000:]


def _told(mutant: Mutant, outcome: str, seconds: float) -> str:
    print(f"{outcome:9} {seconds:5.1f} s  {mutant.name}: {mutant.breaks}", flush=True)
    return outcome


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
