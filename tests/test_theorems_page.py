"""The page of theorems agrees with the kept results."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

import pytest

from fedrepro.spec.find import specs
from fedrepro.spec.read import load

from .conftest import ROOT


@pytest.fixture
def theorems(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr(sys, "path", [str(ROOT / "docs" / "generate"), *sys.path])
    return importlib.import_module("theorems")


def test_the_tables_are_those_of_the_kept_results(theorems: ModuleType) -> None:
    text = theorems.PAGE.read_text(encoding="utf-8")
    assert theorems.written(text) == text, "python docs/generate/theorems.py writes them anew"


def test_every_claim_on_a_theorem_stands_there_with_its_verdict(theorems: ModuleType) -> None:
    text = theorems.PAGE.read_text(encoding="utf-8")
    claims = 0
    for path in specs(ROOT / "experiments"):
        for claim in load(path, "paper").claims:
            if claim.theorem:
                claims += 1
                assert f"| {claim.says} |" in text, claim.id
    assert claims > 30
    assert "not tested" not in text


def test_the_promises_outside_the_conditions_of_their_theorem_are_counted(theorems: ModuleType) -> None:
    claims = [claim for path in specs(ROOT / "experiments") for claim in load(path, "paper").claims]
    promises = [claim for claim in claims if claim.theorem == "promise"]
    outside = [claim for claim in promises if claim.outside]
    assert f"{len(outside)} of the {len(promises)} promises" in theorems.PAGE.read_text(encoding="utf-8")
