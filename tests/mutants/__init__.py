"""Planted bugs: small plausible mistakes, each a patch beside this file, and the tests that detect them.

``make mutants`` applies each to a copy of the tree and runs its tests; ``python -m tests.mutants NAME ...`` applies the
named ones. A patch is a unified diff below two lines that say what it breaks and which tests are asked::

    # breaks: the interval takes n trials where n - 1 are free
    # tests: tests/test_intervals.py::test_of_a_mean_it_is_the_t_interval_worked_by_hand

Its line numbers are ignored: the lines that it removes, with those around them, must occur in the file exactly once.
``git apply --unidiff-zero`` reads it too.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]


class Stale(Exception):
    """A patch no longer applies; the message states the reason."""


@dataclass(frozen=True)
class Mutant:
    """A planted bug. breaks : in words. tests : ids of pytest that are to fail. hunks : old and new lines, in order."""

    name: str
    breaks: str
    tests: tuple[str, ...]
    file: str
    hunks: tuple[tuple[str, str], ...]

    def applied(self, text: str) -> str:
        """The file's ``text`` with the bug in it. Raises Stale unless the lines occur in it exactly once."""
        for old, new in self.hunks:
            if (count := f"\n{text}".count(f"\n{old}")) != 1:
                raise Stale(f"{self.file} has these lines {count} times:\n{old}")
            text = f"\n{text}".replace(f"\n{old}", f"\n{new}")[1:]
        return text


def read(path: Path) -> Mutant:
    """The mutant in a patch. Raises Stale if it is invalid."""
    head, _, body = path.read_text(encoding="utf-8").partition("\n--- a/")
    said = dict(line[2:].split(": ", 1) for line in head.splitlines() if line.startswith("# ") and ": " in line)
    if set(said) != {"breaks", "tests"} or not body:
        raise Stale(f"{path.name}: a patch begins with '# breaks: ...' and '# tests: ...'")
    file, *parts = body.split("\n@@")
    hunks = []
    for part in parts:
        lines = [line or " " for line in part.rstrip("\n").split("\n")[1:]]  # editors cut the blank of an empty line
        hunks.append(tuple("".join(f"{row[1:]}\n" for row in lines if row[:1] in (" ", sign)) for sign in "-+"))
    return Mutant(path.stem, said["breaks"], tuple(said["tests"].split()), file.splitlines()[0], tuple(hunks))


def mutants() -> list[Mutant]:
    """All of them, by name."""
    return [read(path) for path in sorted(FOLDER.glob("*.patch"))]
