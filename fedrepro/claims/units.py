"""The unit of each side of a comparison, from the metrics and axes that it reads.

A margin has the unit of both sides: rounds, numbers or bits sent, a metric, a ratio. A plain number, such as a
threshold, takes the unit of what it is compared with.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping
from typing import Any

from fedrepro.spec import axes, claim_grammar
from fedrepro.spec.model import Claim, Panel

NUMBER, RATIO, MIXED = "number", "ratio", ""
"""The units of plain numbers and parameters, of quotients of equal units, and of what has no unit in words."""

SENT = {
    "round": "rounds",
    "uplink_scalars": "numbers sent up",
    "uplink_bits": "bits sent up",
    "downlink_scalars": "numbers sent down",
    "downlink_bits": "bits sent down",
}
"""The units of the axes that a check can name."""


def of(left: ast.expr, right: ast.expr, claim: Claim, panels: Mapping[str, Panel]) -> str:
    """Return the unit of the margin of two sides, '' for plain numbers and mixed units."""
    unit = _same(of_side(left, claim, panels), of_side(right, claim, panels))
    return MIXED if unit == NUMBER else unit


def of_side(node: ast.expr, claim: Claim, panels: Mapping[str, Panel]) -> str:
    """Return the unit of a side: words, or ``NUMBER``, ``RATIO`` or ``MIXED``."""
    name = claim_grammar.called(node)
    if name in claim_grammar.READERS:
        ((_, function, keywords), *_) = claim_grammar.readers(node)
        return _of_reader(function, keywords, claim, panels)
    if name == "log10":
        return "powers of ten"
    parts: list[ast.expr] = []
    if isinstance(node, ast.Call):
        parts = node.args
    elif isinstance(node, ast.BinOp):
        parts = [node.left, node.right]
    elif isinstance(node, ast.UnaryOp):
        parts = [node.operand]
    units = [of_side(part, claim, panels) for part in parts]
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div)):
        return (_quotient if isinstance(node.op, ast.Div) else _product)(*units)
    return functools.reduce(_same, units, NUMBER)


def _same(left: str, right: str) -> str:
    if NUMBER in (left, right):
        return right if left == NUMBER else left
    return left if left == right else MIXED


def _product(left: str, right: str) -> str:
    for factor, other in ((left, right), (right, left)):
        if factor in (NUMBER, RATIO):
            return RATIO if (factor, other) == (RATIO, NUMBER) else other
    return MIXED


def _quotient(above: str, below: str) -> str:
    if below in (NUMBER, RATIO):
        return RATIO if (above, below) == (NUMBER, RATIO) else above
    return RATIO if above == below and above != MIXED else MIXED


def _of_reader(function: str, keywords: Mapping[str, Any], claim: Claim, panels: Mapping[str, Panel]) -> str:
    panel = claim_grammar.select(function, keywords, claim, panels)[0]
    if function == "parameter":
        return NUMBER
    if function == "slope":
        return "exponent"
    if function == "decay":
        return "powers of ten per round"
    if function in ("total", "reach", "first"):
        axis = claim_grammar.value(keywords, "axis", "round")
        return SENT.get(axis) or _of_metric(panel, axis)
    metric = claim_grammar.value(keywords, "metric", panel.y)
    if claim_grammar.value(keywords, "of", "value") == "squares":
        return f"{_of_metric(panel, metric)}, squared"
    return _of_metric(panel, metric)


def _of_metric(panel: Panel, metric: str) -> str:
    """Return a metric in words: the name of its label; whether an objective is relative; points of an accuracy."""
    name, _, formula = axes.metric_label(panel, metric).partition("  ")
    if name == "objective":
        return f"objective ({'relative' if '/' in formula else 'absolute'})"
    return f"{name} (0.01 = 1 point)" if "accuracy" in name else name
