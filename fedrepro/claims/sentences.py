"""Say in one plain sentence what a check found and what it requires, with the numbers.

``FedCAvg ends at 0.457 and FedCGds m=10 ends at 0.456; the check requires the first to be less than the second``
"""

from __future__ import annotations

import ast
import math

import numpy as np

from fedrepro.claims import judge
from fedrepro.claims.judge import Comparison, Reader
from fedrepro.spec import axes, claim_grammar
from fedrepro.spec.model import Claim, Figure

FEWER = {"min": min, "max": max}
SIGNS = {"<": "less than", "<=": "at most", ">": "more than", ">=": "at least"}
MIRROR = str.maketrans("<>", "><")


def sentence(claim: Claim, figure: Figure, known: judge.Known) -> str:
    """Return what both sides of the comparison that decides a check are, and what the check requires; '' if nothing.

    The numbers are those of curves averaged over trials; of the worst trial for ``each(...)``, and of the one in the
    middle for ``median(...)``, which are named.
    """
    reader = judge.Reader.of(claim, figure, known)
    try:
        compared = list(judge.comparisons(claim_grammar.parse(claim.check).body))
        decision = judge.decide(claim.check, reader)
        number = min(range(len(compared)), key=lambda k: judge.rank(decision.margins[k], compared[k].strict))
        return _of_trial(compared[number], reader) + _compared(compared[number], reader)
    except judge.NotTestable:
        return ""


def _of_trial(comparison: Comparison, reader: Reader) -> str:
    """Let the reader read the trial that decides, and return its name; all trials and '' if they are averaged."""
    reader.chosen = np.arange(reader.trials)
    if not comparison.alone:
        return ""
    margins = []
    for trial in range(reader.trials):
        reader.chosen = np.array([trial])
        margins.append(np.min(np.nan_to_num(np.atleast_1d(comparison.margin(reader)), nan=-np.inf)))
    each = comparison.alone == claim_grammar.EACH
    trial = int(np.argsort(margins, kind="stable")[0 if each else (len(margins) - 1) // 2])
    reader.chosen = np.array([trial])
    return f"in trial {reader.numbers[trial]}{' (the worst)' if each else ' (in the middle)'} "


def _compared(comparison: Comparison, reader: Reader) -> str:
    place = _place(comparison, reader)
    named = (_side(side, reader, place) for side in (comparison.left, comparison.right))
    found = list(dict.fromkeys(filter(None, named)))
    both = len(found) == 2
    required = (_of_both(comparison, reader, place) or _apart(comparison, reader, place)) if both else ""
    less, more = (_asked(side, reader, place) for side in (comparison.left, comparison.right))
    required = required or f"{less} to be {SIGNS[comparison.sign]} {more}"
    return f"{' and '.join(found)}; the check requires {required}"


def _of_both(comparison: Comparison, reader: Reader, place: int) -> str:
    """Return what a check requires of two values that were named, with their ratio if it has a factor; '' if other."""
    (factor, first), (times, second) = (_factor(side) for side in (comparison.left, comparison.right))
    first, second = (_arrived(node, reader, place) for node in (first, second))
    read = all(claim_grammar.called(node) in {*FEWER, *claim_grammar.READERS} for node in (first, second))
    if not read or factor <= 0 or times <= 0:
        return ""
    if factor == times:
        return f"the first to be {SIGNS[comparison.sign]} the second"
    values, names = [_value(node, reader, place) for node in (first, second)], ["first", "second"]
    sign, times = comparison.sign, times / factor
    if times < 1:  # the larger one is a multiple of the other
        values, names, sign, times = values[::-1], names[::-1], sign.translate(MIRROR), 1 / times
    ratio = values[0] / values[1] if all(math.isfinite(value) and value for value in values) else math.nan
    found = f"; it is {ratio:.3g} times" if ratio > 0 else ""
    return f"the {names[0]} to be {SIGNS[sign]} {times:g} times the {names[1]}{found}"


def _apart(comparison: Comparison, reader: Reader, place: int) -> str:
    """Return by how much a check requires two named values to differ, and by how much they do; '' if other."""
    (more, first), (less, second) = (_offset(side) for side in (comparison.left, comparison.right))
    read = all(claim_grammar.called(node) in {*FEWER, *claim_grammar.READERS} for node in (first, second))
    if not read or more == less:
        return ""
    names, gap, sign = ("second", "first"), more - less, comparison.sign.translate(MIRROR)
    found = _value(second, reader, place) - _value(first, reader, place)
    if comparison.sign.startswith(">"):
        names, gap, found, sign = ("first", "second"), -gap, -found, comparison.sign
    if gap < 0:
        names, gap, found, sign = names[::-1], -gap, -found, sign.translate(MIRROR)
    if not math.isfinite(found):
        return ""
    return f"the {names[0]} minus the {names[1]} to be {SIGNS[sign]} {amount(gap)}; it is {amount(found)}"


def _offset(node: ast.expr) -> tuple[float, ast.expr]:
    """Return a constant summand of an expression and the rest of it."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)) and isinstance(node.right, ast.Constant):
        number = float(node.right.value)  # type: ignore[arg-type]
        return (number if isinstance(node.op, ast.Add) else -number), node.left
    return 0.0, node


def _arrived(node: ast.expr, reader: Reader, place: int) -> ast.expr:
    """Return the place on an axis that ``at_most`` limits to the end of the run, if it is reached; else the node."""
    if not isinstance(node, ast.Call) or claim_grammar.called(node) != "at_most":
        return node
    return node.args[0] if math.isfinite(_value(node.args[0], reader, place)) else node


def _place(comparison: Comparison, reader: Reader) -> int:
    """Return which of several rounds decides: the one where the comparison holds least."""
    left, right = (np.atleast_1d(judge.evaluate(side, reader)) for side in (comparison.left, comparison.right))
    with np.errstate(invalid="ignore"):
        margins = np.ravel(left - right if comparison.sign.startswith(">") else right - left)
    return int(np.argmin(np.where(np.isnan(margins), -np.inf, margins)))


def _asked(node: ast.expr, reader: Reader, place: int) -> str:
    factor, _ = _factor(node)
    value = _value(node, reader, place)
    scaled = factor not in (0, 1) and math.isfinite(value) and _first_reader(node) is not None
    return amount(value) + (f" ({factor:g} times {amount(value / factor)})" if scaled else "")


def _side(node: ast.expr, reader: Reader, place: int) -> str:
    """Return what is read from a curve for one side, '' for a number."""
    _, node = _factor(node)
    if isinstance(node, ast.Call):
        name = claim_grammar.called(node)
        if name in FEWER:
            values = [_value(part, reader, place) for part in node.args]
            return _side(node.args[values.index(FEWER[name](values))], reader, place)
        if name == "abs" and (beside := _beside_a_number(node.args[0], reader, place)):
            return beside
        if name == "at_most":
            arrived = math.isfinite(_value(node.args[0], reader, place))
            return _side(node.args[0], reader, place) if arrived else _never(node.args[0], reader)
        if name in claim_grammar.READERS:
            return _read(node, name, reader, place)
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        reads = [part for part in (node.left, node.right) if _first_reader(part) is not None]
        return "; ".join(dict.fromkeys(filter(None, (_side(part, reader, place) for part in reads[:1]))))
    call = _first_reader(node)
    return _read(call, claim_grammar.called(call), reader, place) if call is not None else ""


def _beside_a_number(node: ast.expr, reader: Reader, place: int) -> str:
    """Return a value and the number that it is compared with, for their difference or relative one; '' for others."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and isinstance(node.right, ast.Constant)):
        return ""
    own, number = node.left, _constant(node.right)
    share = own if isinstance(own, ast.BinOp) and isinstance(own.op, ast.Div) else None
    if share is not None:
        own, number = share.left, number * _constant(share.right)
    call = _first_reader(own)
    if call is None or not math.isfinite(number):
        return ""
    off = abs(_value(node, reader, place))
    distance = f"{100 * off:.3g} % ({amount(off)})" if share is not None else amount(off)
    label, value = _label(call, claim_grammar.called(call), reader), amount(_value(own, reader, place))
    return f"{label} has {value}, which differs from {amount(number)} by {distance}"


def _constant(node: ast.expr) -> float:
    return float(node.value) if isinstance(node, ast.Constant) else math.nan  # type: ignore[arg-type]


def _label(node: ast.Call, name: str, reader: Reader) -> str:
    """Return a curve's name, with its panel and metric if they are not those of the claim."""
    keywords, panel, curve = reader.select(node, name)
    other = [f"panel {panel.id}"] if panel.id != reader.claim.panel else []
    metric = claim_grammar.value(keywords, "metric", panel.y)
    about = axes.metrics(panel).get(metric)
    named = [about.label if about is not None else metric] if metric != panel.y else []
    return curve.label + "".join(f" ({what})" for what in [*other, *named])


def _read(node: ast.Call, name: str, reader: Reader, place: int) -> str:
    keywords, panel, curve = reader.select(node, name)
    value = amount(_value(node, reader, place))
    label = _label(node, name, reader)
    unit = judge.unit_of(Comparison(node, "<", node, ""), reader)
    if name in ("reach", "first"):
        return f"{label} needs {value} {unit}" if value != "infinity" else _never(node, reader)
    if (name == "y" and claim_grammar.value(keywords, "at", None) == "end") or name == "tail":
        return f"{label} ends at {value}"
    if name == "y" and {"when", "cost"} & set(keywords):
        return f"{label} is at {value} at that stage"
    if name == "y":
        recorded = reader.series(keywords, panel, curve).recorded
        every = recorded[recorded >= claim_grammar.value(keywords, "since", 0)]
        rounds = np.atleast_1d(claim_grammar.value(keywords, "at", every))
        return f"{label} is at {value} at round {rounds[min(place, len(rounds) - 1)]}"
    if name == "total":
        return f"{label} ends after {value} {unit}"
    return f"{label}: {name} {value}"


def _never(node: ast.expr, reader: Reader) -> str:
    call = _first_reader(node)
    assert call is not None
    return f"{reader.select(call, claim_grammar.called(call))[2].label} never gets there"


def _first_reader(node: ast.expr) -> ast.Call | None:
    calls = [part for part in ast.walk(node) if claim_grammar.called(part) in claim_grammar.READERS]
    return calls[0] if calls and isinstance(calls[0], ast.Call) else None


def _factor(node: ast.expr) -> tuple[float, ast.expr]:
    """Return a constant factor of an expression and the rest of it."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and isinstance(node.left, ast.Constant):
        return float(node.left.value), node.right  # type: ignore[arg-type]
    return 1.0, node


def _value(node: ast.expr, reader: Reader, place: int) -> float:
    values = np.ravel(judge.evaluate(node, reader))
    return float(values[min(place, len(values) - 1)])


def amount(value: float) -> str:
    """Return a number with four digits, whole numbers in full."""
    if math.isinf(value):
        return "infinity"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
