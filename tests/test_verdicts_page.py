"""``docs/verdicts.md``: what it says of locks, and the claim that it quotes; ``docs/changed-checks.md``: its list."""

from __future__ import annotations

import importlib
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from fedrepro.claims.precedence import CLASSES

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "verdicts.md").read_text(encoding="utf-8")
CHANGED = (ROOT / "docs" / "changed-checks.md").read_text(encoding="utf-8")


def claims() -> dict[str, dict[str, Any]]:
    specs = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in (ROOT / "experiments").glob("*/*.yaml")]
    return {claim["id"]: claim for spec in specs for claim in spec.get("claims") or []}


def listed() -> list[str]:
    (part,) = re.findall(r"<!-- reread -->(.*?)<!-- end -->", CHANGED, re.DOTALL)
    return re.findall(r"`([^`]+)`", part)


def test_the_list_counts_every_check_that_was_there_before_the_lexicon() -> None:
    (counted,) = re.findall(
        r"^Of (\d+) checks, (\d+) were .* and (\d+) belonged .* (\d+) had been .* and (\d+) added", CHANGED, re.M
    )
    whole, *parts = map(int, counted)
    assert whole == sum(parts)
    assert parts[2] + parts[3] == len(listed()) == len(set(listed()))
    said = {
        name for name, claim in claims().items() if re.search("(changed|added) after the runs", claim.get("note", ""))
    }
    assert len(said & set(listed())) > 50


@pytest.mark.slow
def test_the_list_is_what_the_history_says(reread: Any) -> None:
    try:
        reread.before_lexicon()
    except (subprocess.CalledProcessError, FileNotFoundError, IndexError):
        pytest.skip("needs git and the complete history")
    assert reread.written(CHANGED, reread.ages()) == CHANGED


def test_the_page_has_every_class_as_verdicts_print_it() -> None:
    section = PAGE.partition("## Was a claim written before its results")[2]
    table = section[section.index("| class |") : section.index("The class is derived")]
    assert re.findall(r"^\| \*(.*?)\* \|", table, re.M) == list(CLASSES)


@pytest.fixture
def reread(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "generate"))
    return importlib.import_module("reread")


def test_the_list_names_what_changed_and_what_was_added(reread: Any) -> None:
    ages = {"fedc.1": "same", "fedc.2": "changed", "gcca.1": "added", "gcca.2": "before"}
    text = reread.written("before\n<!-- reread -->\nold\n<!-- end -->\nafter", ages)
    assert "Of 4 checks, 1 were unchanged" in text
    assert "* *written anew, fedc*: `fedc.2`\n* *added, gcca*: `gcca.1`\n" in text
    assert (text.startswith("before\n"), text.endswith("\nafter"), "old" in text) == (True, True, False)
    spec = "claims: [{id: a, panel: b, check: 'y(at=1,  m=2) < 3'}]"
    assert reread._checks(spec) == reread._checks(spec.replace(",  ", ", "))
    assert reread._checks(spec) != reread._checks(spec.replace("< 3", "< 4"))


def test_the_claim_that_is_quoted_is_there_word_for_word() -> None:
    (quoted,) = re.findall(r"```yaml\n(- id: .*?)```", PAGE, re.DOTALL)
    (claim,) = yaml.safe_load(quoted)
    assert claim == claims()[claim["id"]]
