"""Planted bugs: each patch still applies to today's code and names existing tests; ``make mutants`` runs them."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

import pytest

from .mutants import FOLDER, ROOT, Mutant, Stale, mutants, read
from .mutants.__main__ import CAUGHT, STALE, SURVIVED, UNASKED, judge, too_few


@functools.cache
def functions(file: str) -> set[str]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.patch")), ids=lambda path: path.stem)
def test_a_planted_bug_applies_and_names_tests_that_are_there(path: Path) -> None:
    mutant = read(path)
    text = (ROOT / mutant.file).read_text(encoding="utf-8")
    broken = mutant.applied(text)
    assert broken != text
    if mutant.file.endswith(".py"):
        ast.parse(broken)
    for test in mutant.tests:
        file, _, name = test.partition("::")
        assert name.partition("[")[0] in functions(file), test


def test_every_folder_has_planted_bugs() -> None:
    mutations = mutants()
    assert len(mutations) >= 60
    assert len({(mutation.file, mutation.hunks) for mutation in mutations}) == len(mutations)
    house = ROOT / "fedrepro"
    folders = {path.parent.relative_to(house) for path in house.rglob("*.py") if path.stem != "__init__"} - {Path()}
    planted = {parent for mutation in mutations for parent in (ROOT / mutation.file).relative_to(house).parents}
    assert folders <= planted, folders - planted


def test_lines_that_are_gone_or_stand_there_twice_are_stale(tmp_path: Path) -> None:
    patch = tmp_path / "x.patch"
    patch.write_text("# breaks: a\n# tests: b\n--- a/f.py\n+++ b/f.py\n@@ -1,2 +1,2 @@\n x = 1\n-y = 2\n+y = 3\n")
    mutant = read(patch)
    assert mutant.applied("a\nx = 1\ny = 2\nb\n") == "a\nx = 1\ny = 3\nb\n"
    for text in ("x = 1\n", "x = 1\ny = 2\n\nx = 1\ny = 2\n", " x = 1\ny = 2\n"):
        with pytest.raises(Stale, match=r"^f\.py has these lines [02] times:\nx = 1\ny = 2\n$"):
            mutant.applied(text)
    patch.write_text("--- a/f.py\n")
    with pytest.raises(Stale, match=r"^x\.patch: a patch begins with"):
        read(patch)


def test_a_bug_is_caught_where_its_tests_fail_and_the_tree_is_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "part.py").write_text("def half(x):\n    return x / 2\n")
    (tmp_path / "tests").mkdir()
    tests = "def test_zero():\n    assert half(0) == 0\n\n\ndef test_four():\n    assert half(4) == 2\n"
    (tmp_path / "tests" / "test_part.py").write_text(f"from part import half\n\n\n{tests}")

    def outcome(old: str, new: str, test: str, everything: bool = False) -> str:
        mutant = Mutant("x", "", (f"tests/test_part.py::{test}",), "part.py", ((f"{old}\n", f"{new}\n"),))
        return judge(tmp_path, mutant, everything)[0]

    bug = ("    return x / 2", "    return x / 3")
    assert outcome(*bug, "test_four") == CAUGHT
    assert outcome(*bug, "test_zero") == SURVIVED
    assert outcome(*bug, "test_zero", everything=True) == CAUGHT
    assert outcome(*bug, "test_two") == UNASKED
    assert outcome("    return x", "", "test_four") == STALE
    assert (tmp_path / "part.py").read_text() == "def half(x):\n    return x / 2\n"


def test_one_in_twenty_may_survive_and_none_may_be_stale() -> None:
    assert not too_few([CAUGHT] * 57 + [SURVIVED] * 3)
    assert too_few([CAUGHT] * 56 + [SURVIVED] * 4)
    assert too_few([CAUGHT] * 59 + [STALE])
    assert too_few([CAUGHT] * 56 + [UNASKED] * 4)
