"""A side of a comparison as a formula with the numbers that were read: ``633.1 / 802.5 = 0.7889``."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator

import numpy as np

from fedrepro.claims import judge
from fedrepro.claims.judge import Reader
from fedrepro.spec import claim_grammar

FEWER = {"min": min, "max": max}
OVER_ROUNDS = ("mean", "quantile")
"""Functions whose result is written as one number, as what is read from a curve is."""
SYMBOLS: dict[type, tuple[str, int]] = {
    ast.Add: ("+", 1),
    ast.Sub: ("-", 1),
    ast.Mult: ("*", 2),
    ast.Div: ("/", 2),
}
"""How an operator is written, and how strongly it binds."""
ALONE = 4
"""How strongly a number or a call binds."""


def value(node: ast.expr, reader: Reader, place: int) -> float:
    """Return the number of an expression, at the ``place``-th of several rounds."""
    values = np.ravel(judge.evaluate(node, reader))
    return float(values[min(place, len(values) - 1)])


def amount(number: float) -> str:
    """Return a number with four digits, whole numbers in full."""
    if math.isinf(number):
        return "infinity"
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.4g}"


def chosen(node: ast.expr, reader: Reader, place: int) -> ast.expr:
    """Return the argument of ``min`` or ``max`` that decides, or the node if it is something else."""
    name = claim_grammar.called(node)
    if not isinstance(node, ast.Call) or name not in FEWER:
        return node
    values = [value(part, reader, place) for part in node.args]
    return chosen(node.args[values.index(FEWER[name](values))], reader, place)


def parts(node: ast.expr, reader: Reader, place: int) -> Iterator[ast.Call]:
    """Yield the calls inside an expression that give one number each, in order; none for a number."""
    node = chosen(node, reader, place)
    name = claim_grammar.called(node)
    if isinstance(node, ast.Call) and name in {*claim_grammar.READERS, *OVER_ROUNDS, "at_most"}:
        yield node
        return
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.expr) and not (isinstance(node, ast.Call) and inner is node.func):
            yield from parts(inner, reader, place)


def written(node: ast.expr, reader: Reader, place: int) -> str:
    """Return an expression with its numbers and its value: ``1.25 * 40.65 = 50.82``, or only ``40.65``."""
    formula, number = _written(node, reader, place)[0], amount(value(node, reader, place))
    return number if formula == number else f"{formula} = {number}"


def _written(node: ast.expr, reader: Reader, place: int) -> tuple[str, int]:
    """Return an expression with its numbers, and how strongly its last operator binds."""
    node = chosen(node, reader, place)
    name = claim_grammar.called(node)
    if isinstance(node, ast.BinOp):
        symbol, strength = SYMBOLS[type(node.op)]
        after = strength + isinstance(node.op, (ast.Sub, ast.Div))
        left, right = _within(node.left, strength, reader, place), _within(node.right, after, reader, place)
        return f"{left} {symbol} {right}", strength
    if isinstance(node, ast.UnaryOp):
        return f"-{_within(node.operand, 3, reader, place)}", 1
    if isinstance(node, ast.Call) and name in ("abs", "log10"):
        inner = _written(node.args[0], reader, place)[0]
        return (f"|{inner}|" if name == "abs" else f"log10({inner})"), ALONE
    return amount(value(node, reader, place)), ALONE


def _within(node: ast.expr, strength: int, reader: Reader, place: int) -> str:
    """Return a part of a formula, in brackets if it binds less strongly than what it is part of."""
    text, own = _written(node, reader, place)
    return text if own >= strength and not text.startswith("-") else f"({text})"
