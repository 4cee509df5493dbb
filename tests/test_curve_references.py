"""Names of curves in checks (``fedrepro/spec/references.py``)."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from fedrepro.errors import UserError
from fedrepro.spec.read import load
from fedrepro.spec.references import Reference, Scope, resolve

ROOT = Path(__file__).parents[1]


def resolved(text: str, other: str = "") -> list[Reference]:
    """Return the curves that a reference names in Fig. 1(b) of fedc."""
    figure = load(ROOT / "experiments" / "fedc" / "fig1.yaml", "paper")
    claim = next(claim for claim in figure.claims if claim.id == "fedc.1b.q2")
    scope = Scope(claim, {panel.id: panel for panel in figure.panels}, {})
    first = resolve(ast.parse(other, mode="eval").body, scope)[0] if other else []
    return resolve(ast.parse(text, mode="eval").body, scope, first)[0]


def test_a_curve_without_a_number_is_neither_larger_nor_smaller() -> None:
    larger = resolved("fedcavg(Q2=larger)", "fedcavg(Q2=1)")
    assert [reference.curve.select["Q2"] for reference in larger] == [10, 50, 100]  # and not the curve with Qhat
    smaller = resolved("fedcavg(Q2=smaller)", "fedcavg(Q2=50)")
    assert [reference.curve.select["Q2"] for reference in smaller] == [1, 10]


def test_larger_than_a_curve_without_a_number_is_an_error() -> None:
    with pytest.raises(UserError, match="Q2=larger needs a curve with a number Q2 to compare with"):
        resolved("fedcavg(Q2=larger)", "fedcavg(Qhat=400)")
