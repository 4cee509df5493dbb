"""Comparisons that hold or fail whatever the results are: of a value with itself, or because accuracies and the like
are shares of 1.

``y(at='end', m=10) > y(at='end', m=100) + 5`` asks for five times everything; five points are 0.05.
"""

from __future__ import annotations

import ast
import itertools
import math
import textwrap
from collections.abc import Iterator, Mapping

from fedrepro.lexicon.vocabulary import POINTS, lexicon
from fedrepro.spec import claim_grammar
from fedrepro.spec.model import Claim, Panel

Range = tuple[float, float]
"""The smallest and the largest value that an expression can have."""
ANY: Range = (-math.inf, math.inf)
SIGNED = ("ami", "ari")
"""Shares that can be negative, down to -1: agreement adjusted for chance."""
_REASON = "accuracies and the like are at most 1, and one point is 0.01"


def certain(claim: Claim, panels: Mapping[str, Panel]) -> Iterator[str]:
    """Yield every comparison that no result can change, and every level that no run can reach, with the reason.

    The claim's check has no other errors.
    """
    tree = claim_grammar.parse(claim.check)
    ranges = _Ranges(claim, panels)
    for call, function, keywords in claim_grammar.readers(tree):
        if "level" in keywords and ranges.is_out_of_reach(function, keywords):
            yield f"'{ast.unparse(call)}': no run can reach this level: {_REASON}"
    for node in claim_grammar.parts(tree):
        if not isinstance(node, ast.Compare):
            continue
        sides = [node.left, *node.comparators]
        for left, op, right in zip(sides[:-1], node.ops, sides[1:], strict=True):
            same = claim_grammar.part_number(left) == claim_grammar.part_number(right)
            outcome = "compares a value with itself" if same else _decided(op, ranges.of(left), ranges.of(right))
            if outcome:
                text = f"{ast.unparse(left)} {claim_grammar.SIGNS[type(op)]} {ast.unparse(right)}"
                short = textwrap.shorten(text, 160, placeholder=" ...")
                yield f"'{short}' {outcome}" + ("" if same else f" whatever the results are: {_REASON}")


class _Ranges:
    """The ranges of the parts of a claim's check, each found once: words repeat few parts many times."""

    def __init__(self, claim: Claim, panels: Mapping[str, Panel]) -> None:
        self._claim, self._panels = claim, panels
        self._known: dict[int | None, Range] = {}

    def of(self, node: ast.expr) -> Range:
        """Return the range of a side of a comparison, or of a part of one."""
        number = claim_grammar.part_number(node)
        if number is None or number not in self._known:
            self._known[number] = self._found(node)
        return self._known[number]

    def is_out_of_reach(self, function: str, keywords: Mapping[str, ast.expr]) -> bool:
        """Return whether a level is larger or smaller than every value of the metric that has to reach it."""
        low, high = self._values(function, keywords)
        lowest, highest = self.of(keywords["level"])
        return highest < low or lowest > high

    def _found(self, node: ast.expr) -> Range:
        name = claim_grammar.called(node)
        if isinstance(node, ast.Call) and name in claim_grammar.READERS:
            return self._read(name, claim_grammar.arguments(node))
        if isinstance(node, ast.BinOp):
            return _combined(node.op, self.of(node.left), self.of(node.right))
        if isinstance(node, ast.UnaryOp):
            low, high = self.of(node.operand)
            return -high, -low
        if isinstance(node, ast.Call):
            return _made(name, [self.of(part) for part in node.args])
        values = claim_grammar.constant(node)
        listed = values if isinstance(values, list) else [values]
        return min(listed), max(listed)

    def _read(self, function: str, keywords: Mapping[str, ast.expr]) -> Range:
        """Return the range of what a call reads."""
        if function not in ("y", "tail", "lowest", "highest", "rise", "total"):
            return ANY
        low, high = self._values(function, keywords)
        return (low - high, high - low) if function == "rise" and (low, high) != ANY else (low, high)

    def _values(self, function: str, keywords: Mapping[str, ast.expr]) -> Range:
        """Return the range of the metric, or of the total, that a call reads."""
        panel, curve = claim_grammar.select(function, keywords, self._claim, self._panels)
        metric = claim_grammar.value(keywords, "metric", panel.y)
        if function == "total":
            metric = claim_grammar.value(keywords, "axis", "round")
        if lexicon().scale(curve.setting.problem, metric) != POINTS:
            return ANY
        negative = metric in SIGNED and claim_grammar.value(keywords, "of", "value") != "squares"
        return -1.0 if negative else 0.0, 1.0


def _decided(op: ast.cmpop, left: Range, right: Range) -> str:
    """Return whether a comparison of these ranges always ``holds`` or always ``fails``, '' if neither."""
    if isinstance(op, (ast.Gt, ast.GtE)):
        left, right = right, left
    if isinstance(op, (ast.Lt, ast.Gt)):
        return "holds" if left[1] < right[0] else "fails" if left[0] >= right[1] else ""
    return "holds" if left[1] <= right[0] else "fails" if left[0] > right[1] else ""


def _combined(op: ast.operator, left: Range, right: Range) -> Range:
    if isinstance(op, ast.Add):
        return left[0] + right[0], left[1] + right[1]
    if isinstance(op, ast.Sub):
        return left[0] - right[1], left[1] - right[0]
    if isinstance(op, ast.Div):
        if right[0] <= 0 <= right[1]:
            return ANY
        right = 1 / right[1], 1 / right[0]
    products = [a * b if a and b else 0.0 for a, b in itertools.product(left, right)]
    return min(products), max(products)


def _made(function: str, parts: list[Range]) -> Range:
    """Return the range of a function of checks, by the ranges of its arguments."""
    lows, highs = zip(*parts, strict=True)
    if function == "abs":
        ((low, high),) = parts
        return max(0.0, low, -high), max(-low, high)
    if function == "log10":
        ((low, high),) = parts
        return (math.log10(low) if low > 0 else -math.inf), (math.log10(high) if high > 0 else -math.inf)
    if function in ("min", "at_most"):
        return min(lows), min(highs)
    if function == "max":
        return max(lows), max(highs)
    if function in ("mean", "quantile"):
        return parts[0]
    return min(lows[:2]), max(highs[:2])
