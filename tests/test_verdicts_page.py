"""``docs/verdicts.md``: the list of checks that are younger than their results, and the claim that it quotes."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "verdicts.md").read_text(encoding="utf-8")


def claims() -> dict[str, dict[str, Any]]:
    specs = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in (ROOT / "experiments").glob("*/*.yaml")]
    return {claim["id"]: claim for spec in specs for claim in spec.get("claims") or []}


def listed() -> list[str]:
    (part,) = re.findall(r"<!-- reread -->(.*?)<!-- end -->", PAGE, re.DOTALL)
    return re.findall(r"`([^`]+)`", part)


def test_every_check_that_is_younger_than_its_results_is_listed() -> None:
    there = claims()
    assert set(listed()) <= set(there)
    said = {name for name, claim in there.items() if re.search("(changed|added) after the runs", claim.get("note", ""))}
    assert len(said) > 50
    assert said <= set(listed())
    (counted,) = re.findall(
        r"^Of (\d+) checks (\d+) stand .* and (\d+) are .* (\d+) were .* (\d+) were added", PAGE, re.M
    )
    whole, *parts = map(int, counted)
    assert whole == sum(parts) == len(there)
    assert parts[2] + parts[3] == len(listed()) == len(set(listed()))


def test_the_list_names_what_changed_and_what_was_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "generate"))
    reread = importlib.import_module("reread")
    ages = {"fedc.1": "same", "fedc.2": "changed", "gcca.1": "added", "gcca.2": "before"}
    text = reread.written("before\n<!-- reread -->\nold\n<!-- end -->\nafter", ages)
    assert "Of 4 checks 1 stand as they did" in text
    assert "* *written anew, fedc*: `fedc.2`\n* *added, gcca*: `gcca.1`\n" in text
    assert (text.startswith("before\n"), text.endswith("\nafter"), "old" in text) == (True, True, False)
    spec = "claims: [{id: a, panel: b, check: 'y(at=1,  m=2) < 3'}]"
    assert reread._checks(spec) == reread._checks(spec.replace(",  ", ", "))
    assert reread._checks(spec) != reread._checks(spec.replace("< 3", "< 4"))


def test_the_claim_that_is_quoted_is_there_word_for_word() -> None:
    (quoted,) = re.findall(r"```yaml\n(- id: .*?)```", PAGE, re.DOTALL)
    (claim,) = yaml.safe_load(quoted)
    assert claim == claims()[claim["id"]]
