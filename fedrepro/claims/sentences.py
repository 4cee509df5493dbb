"""Say in one plain sentence what a check found and what it requires, with the numbers.

``FedCAvg ends at 0.457 and FedCGds m=10 ends at 0.456; the check requires the first to be less than the second``
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence

import numpy as np

from fedrepro.claims import formulas, judge
from fedrepro.claims.formulas import amount, value
from fedrepro.claims.judge import Comparison, Reader
from fedrepro.claims.units import SENT
from fedrepro.spec import axes, claim_grammar
from fedrepro.spec.model import Claim, Curve, Figure, Panel

SIGNS = {"<": "less than", "<=": "at most", ">": "more than", ">=": "at least"}
MIRROR = str.maketrans("<>", "><")
MOST, LONGEST = 5, 60
"""How many numbers and how many characters of a formula a sentence has at most."""
SINGLE = (*claim_grammar.READERS, *formulas.OVER_ROUNDS)
"""Functions whose result is named as it is, not as a formula."""


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
        return _of_trial(compared[number], reader) + _compared(compared[number], reader, decision.margins[number].value)
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


def _compared(comparison: Comparison, reader: Reader, decided: float) -> str:
    """Return what is read and required where the margin is the one that decides."""
    place = _place(comparison, reader, decided)
    left, right, sign = comparison.left, comparison.right, comparison.sign
    if sign.startswith("<") and (found := _beside_a_number(left, reader, place)):
        return f"{found}; the check requires {SIGNS[sign]} {formulas.written(right, reader, place)}"
    return _of_two(comparison, reader, place) or _of_formulas(left, sign, right, reader, place)


def _of_formulas(left: ast.expr, sign: str, right: ast.expr, reader: Reader, place: int) -> str:
    """Return what is read for two sides, and what the check requires of the numbers that are computed from it."""
    found = _phrases([left, right], reader, place)
    if any(math.isnan(value(side, reader, place)) for side in (left, right)):
        return f"{_listed(found[:MOST])}, so there is nothing to compare"
    less, more = (formulas.written(side, reader, place) for side in (left, right))
    if len(found) > MOST or max(len(less), len(more)) > LONGEST:
        first = dict.fromkeys(phrase for side in (left, right) for phrase in _phrases([side], reader, place)[:1])
        less, more = (amount(value(side, reader, place)) for side in (left, right))
        required = f"the check computes {less} from these and other numbers and requires {SIGNS[sign]} {more}"
        return f"{_listed(list(first))}; {required}"
    if not any(formulas.parts(left, reader, place)):  # a number: say the side that was read first
        left, right, less, more, sign = right, left, more, less, sign.translate(MIRROR)
    is_read = claim_grammar.called(formulas.chosen(left, reader, place)) in SINGLE
    subject = "" if is_read and not any(formulas.parts(right, reader, place)) else f"{less} to be "
    return f"{_listed(found)}; the check requires {subject}{SIGNS[sign]} {more}"


def _listed(phrases: Sequence[str]) -> str:
    """Return phrases as one: ``a``, ``a and b``, ``a, b and c``."""
    return " and ".join(filter(None, [", ".join(phrases[:-1]), *phrases[-1:]]))


def _of_two(comparison: Comparison, reader: Reader, place: int) -> str:
    """Return the sentence about two values that are read from curves and compared; '' for other comparisons."""
    sides = (comparison.left, comparison.right)
    found = _phrases([_factor(_offset(side, reader, place)[1])[1] for side in sides], reader, place)
    if len(found) != 2:
        return ""
    required = _of_both(comparison, reader, place) or _apart(comparison, reader, place)
    return f"{_listed(found)}; the check requires {required}" if required else ""


def _of_both(comparison: Comparison, reader: Reader, place: int) -> str:
    """Return what a check requires of two values that were named, with their ratio if it has a factor; '' if other."""
    (factor, first), (times, second) = (_factor(side) for side in (comparison.left, comparison.right))
    first, second = (_resolved(node, reader, place) for node in (first, second))
    read = all(claim_grammar.called(node) in claim_grammar.READERS for node in (first, second))
    if not read or factor <= 0 or times <= 0:
        return ""
    if factor == times:
        return f"the first to be {SIGNS[comparison.sign]} the second"
    values, names = [value(node, reader, place) for node in (first, second)], ["first", "second"]
    sign, times = comparison.sign, times / factor
    if times < 1:  # the larger one is a multiple of the other
        values, names, sign, times = values[::-1], names[::-1], sign.translate(MIRROR), 1 / times
    ratio = values[0] / values[1] if all(math.isfinite(number) and number for number in values) else math.nan
    found = f"; it is {ratio:.3g} times" if ratio > 0 else ""
    return f"the {names[0]} to be {SIGNS[sign]} {times:g} times the {names[1]}{found}"


def _apart(comparison: Comparison, reader: Reader, place: int) -> str:
    """Return by how much a check requires two named values to differ, and by how much they do; '' if other."""
    (more, first), (less, second) = (_offset(side, reader, place) for side in (comparison.left, comparison.right))
    first, second = (_resolved(node, reader, place) for node in (first, second))
    read = all(claim_grammar.called(node) in claim_grammar.READERS for node in (first, second))
    if not read or more == less:
        return ""
    names, gap, sign = ("second", "first"), more - less, comparison.sign.translate(MIRROR)
    found = value(second, reader, place) - value(first, reader, place)
    if comparison.sign.startswith(">"):
        names, gap, found, sign = ("first", "second"), -gap, -found, comparison.sign
    if gap < 0:
        names, gap, found, sign = names[::-1], -gap, -found, sign.translate(MIRROR)
    if not math.isfinite(found):
        return ""
    return f"the {names[0]} minus the {names[1]} to be {SIGNS[sign]} {amount(gap)}; it is {amount(found)}"


def _offset(node: ast.expr, reader: Reader, place: int) -> tuple[float, ast.expr]:
    """Return a summand of an expression that is a number or a share of a difference, and the rest of it."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub))):
        return 0.0, node
    factor, rest = _factor(node.right)
    share = factor != 1 and isinstance(rest, ast.BinOp) and isinstance(rest.op, ast.Sub)
    if not (share or isinstance(node.right, ast.Constant)):
        return 0.0, node
    number = value(node.right, reader, place)
    return (number if isinstance(node.op, ast.Add) else -number), node.left


def _resolved(node: ast.expr, reader: Reader, place: int) -> ast.expr:
    """Return the value among several that decides, and the place on an axis that ``at_most`` limits if it is reached.

    Any other node is returned as it is.
    """
    node = formulas.chosen(node, reader, place)
    if not isinstance(node, ast.Call) or claim_grammar.called(node) != "at_most":
        return node
    return _resolved(node.args[0], reader, place) if math.isfinite(value(node.args[0], reader, place)) else node


def _place(comparison: Comparison, reader: Reader, decided: float) -> int:
    """Return which of several rounds decides: the one with this margin; of a single trial, that of the smallest."""
    left, right = (np.atleast_1d(judge.evaluate(side, reader)) for side in (comparison.left, comparison.right))
    with np.errstate(invalid="ignore"):
        margins = np.ravel(left - right if comparison.sign.startswith(">") else right - left)
    smallest = int(np.argmin(np.where(np.isnan(margins), -np.inf, margins)))
    if comparison.alone or not math.isfinite(decided):
        return smallest
    return int(np.argmin(np.nan_to_num(np.abs(margins - decided), nan=np.inf)))


def _phrases(sides: Sequence[ast.expr], reader: Reader, place: int) -> list[str]:
    """Return what is read from curves for the sides of a comparison, each once; nothing for a number.

    A parameter is left out if the curve's name has it.
    """
    found = (part for side in sides for part in formulas.parts(side, reader, place))
    return list(filter(None, dict.fromkeys(_phrase(part, reader, place) for part in found)))


def _phrase(part: ast.Call, reader: Reader, place: int) -> str:
    part = _resolved(part, reader, place)  # type: ignore[assignment]
    name, call = claim_grammar.called(part), _first_reader(part)
    if call is None:
        return amount(value(part, reader, place))
    label = _label(call, claim_grammar.called(call), reader)
    if name == "at_most":
        return f"{label} never gets there, which counts as {amount(value(part, reader, place))}"
    if name in formulas.OVER_ROUNDS:
        over = "the mean over rounds" if name == "mean" else "a value in the order of rounds"
        return f"{label} has {amount(value(part, reader, place))} ({over})"
    return _read(part, name, label, reader, place)


def _beside_a_number(node: ast.expr, reader: Reader, place: int) -> str:
    """Return a value and the number that it is compared with, for their difference or relative one; '' for others."""
    inside = node.args[0] if isinstance(node, ast.Call) and claim_grammar.called(node) == "abs" else None
    if not (isinstance(inside, ast.BinOp) and isinstance(inside.op, ast.Sub)):
        return ""
    own, number = inside.left, _constant(inside.right)
    share = own if isinstance(own, ast.BinOp) and isinstance(own.op, ast.Div) else None
    if share is not None:
        own, number = share.left, number * _constant(share.right)
    call, found = _first_reader(own), value(own, reader, place)
    if call is None or not math.isfinite(number) or not math.isfinite(found):
        return ""
    off = value(node, reader, place)
    distance = f"{100 * off:.3g} % ({amount(off)})" if share is not None else amount(off)
    if claim_grammar.called(own) in claim_grammar.READERS:
        words = f"{_label(call, claim_grammar.called(call), reader)} has {amount(found)}"
    else:
        formula = formulas.written(own, reader, place)
        shown = formula if len(formula) <= LONGEST else amount(found)
        words = f"{_listed(_phrases([own], reader, place)[:MOST])}; from these follows {shown}"
    return f"{words}, which differs from {amount(number)} by {distance}"


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


def _read(node: ast.expr, name: str, label: str, reader: Reader, place: int) -> str:
    assert isinstance(node, ast.Call)
    keywords, panel, curve = reader.select(node, name)
    found = amount(value(node, reader, place))
    unit = judge.unit_of(Comparison(node, "<", node, ""), reader)
    if name in ("reach", "first"):
        return f"{label} needs {found} {unit}" if found != "infinity" else f"{label} never gets there"
    if (name == "y" and claim_grammar.value(keywords, "at", None) == "end") or name == "tail":
        return f"{label} ends at {found}"
    if name == "y":
        return f"{label} is at {found} {_stage(keywords, panel, curve, reader, place)}"
    if name == "total":
        return f"{label} ends after {found} {unit}"
    if name == "parameter":
        parameter = claim_grammar.constant(keywords["name"])
        return "" if f"{parameter}={found}" in label else f"{label} has {parameter} = {found}"
    return f"{label} {OTHER[name].format(found)}{_window(keywords)}"


OTHER = {
    "lowest": "has {} at its lowest",
    "highest": "has {} at its highest",
    "slope": "has the exponent {}",
    "decay": "falls by {} powers of ten a round",
    "rise": "rises by {} at most from one round to the next",
}
"""What is said of a curve that is read in another way."""


def _window(keywords: Mapping[str, ast.expr]) -> str:
    """Return which rounds a curve is read in, '' for all."""
    since, until = (claim_grammar.value(keywords, name, None) for name in ("since", "until"))
    return (f" from round {since}" if since is not None else "") + (f" to {until}" if until is not None else "")


def _stage(keywords: Mapping[str, ast.expr], panel: Panel, curve: Curve, reader: Reader, place: int) -> str:
    """Return where a curve is read."""
    if "cost" in keywords:
        unit = SENT.get(claim_grammar.value(keywords, "axis", "uplink_scalars"), "")
        return f"after {amount(value(keywords['cost'], reader, place))} {unit}".rstrip()
    if "when" in keywords:
        when = value(keywords["when"], reader, place)
        return f"at round {amount(when)}" if math.isfinite(when) else "at that stage"
    recorded = reader.series(keywords, panel, curve).recorded
    every = recorded[recorded >= claim_grammar.value(keywords, "since", 0)]
    rounds = np.atleast_1d(claim_grammar.value(keywords, "at", every))
    return f"at round {rounds[min(place, len(rounds) - 1)]}"


def _first_reader(node: ast.expr) -> ast.Call | None:
    calls = [part for part in ast.walk(node) if claim_grammar.called(part) in claim_grammar.READERS]
    return calls[0] if calls and isinstance(calls[0], ast.Call) else None


def _factor(node: ast.expr) -> tuple[float, ast.expr]:
    """Return a constant factor of an expression and the rest of it."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and isinstance(node.left, ast.Constant):
        return float(node.left.value), node.right  # type: ignore[arg-type]
    return 1.0, node
