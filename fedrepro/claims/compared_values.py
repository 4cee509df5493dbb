"""Both sides of a check's comparisons with their intervals, and the points of the curves that it read.

``judge`` decides the verdict; this module shows a reader what was compared.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedrepro.claims import judge, units
from fedrepro.claims.intervals import Interval
from fedrepro.spec import claim_grammar
from fedrepro.spec.model import Claim, Curve, Figure

SHOWN = 9
"""How many rounds of a comparison are listed: the one that decides, and others with even spacing."""

LONGEST_SIDE = 160
"""The most characters of a side that are shown."""


@dataclass(frozen=True)
class Pair:
    """One comparison at one place: both sides and the margin, each with its 95 % interval over trials.

    place : the round or cost, '' if there is only one place. decides : whether it decides the verdict. trial : the
    worst trial for ``each``, else 0.
    """

    place: str
    left: Interval
    right: Interval
    margin: Interval
    decides: bool
    trial: int = 0


@dataclass(frozen=True)
class Compared:
    """One comparison as written, ``left`` ``sign`` ``right``, each side with its unit in words ('' for a ratio).

    margin_unit : the unit of the margin, which is 'ratio' for ratios. pairs : at the listed places. count : number of
    all places. held : number of places where it holds. alone : ``each`` or ``median`` if trials are compared alone,
    else ''.
    """

    left: str
    sign: str
    right: str
    left_unit: str
    right_unit: str
    margin_unit: str
    pairs: tuple[Pair, ...]
    count: int
    held: int
    alone: str = ""


@dataclass(frozen=True)
class Spot:
    """A point of a curve that the check read: the panel and metric, the round (or between two), the value."""

    panel: str
    curve: Curve
    metric: str
    round: float
    value: float


@dataclass(frozen=True)
class Read:
    """Everything that a check read."""

    compared: tuple[Compared, ...] = ()
    spots: tuple[Spot, ...] = ()


def read(claim: Claim, figure: Figure, frame: Any, known: judge.Known | None = None) -> Read:
    """Return what the claim's check reads from these results, empty if it cannot. known : as in ``judge``."""
    if claim.inapplicable:
        return Read()
    reader = judge.Reader.of(claim, figure, known or judge.Known(frame))
    tree = claim_grammar.parse(claim.check)
    try:
        compared = tuple(_compared(comparison, reader) for comparison in judge.comparisons(tree.body))
        reader.chosen = np.arange(reader.trials)
        spots = {(s.panel, s.curve.setting.series, s.metric, s.round, s.value): s for s in _spots(tree, reader)}
        return Read(compared, tuple(spots.values()))
    except judge.NotTestable:
        return Read()


def _compared(comparison: judge.Comparison, reader: judge.Reader) -> Compared:
    pairs = _pairs(comparison, reader)
    ranks = [judge.rank(pair.margin, comparison.strict) for pair in pairs]
    decides = ranks.index(min(ranks))
    pairs[decides] = dataclasses.replace(pairs[decides], decides=True)
    held = sum(judge.outcome_of(pair.margin, comparison.strict) == judge.HOLDS for pair in pairs)
    of_sides = (_unit(comparison.left, reader), _unit(comparison.right, reader))
    kept = pairs if len(pairs) <= SHOWN else _thinned(pairs)
    sides = (_short(comparison.left), comparison.sign, _short(comparison.right))
    return Compared(
        *sides, *of_sides, judge.unit_of(comparison, reader), tuple(kept), len(pairs), held, comparison.alone
    )


def _short(side: ast.expr) -> str:
    """Return a side as written, and only the start of one that words stand for."""
    text = ast.unparse(side)
    return text if len(text) <= LONGEST_SIDE else f"{text[: LONGEST_SIDE - 4]} ..."


def _thinned(pairs: list[Pair]) -> list[Pair]:
    spaced = set(np.linspace(0, len(pairs) - 1, SHOWN - 1).round().astype(int).tolist())
    return [pair for number, pair in enumerate(pairs) if number in spaced or pair.decides]


def _pairs(comparison: judge.Comparison, reader: judge.Reader) -> list[Pair]:
    """Return both sides at every place; with ``each``, for each trial at the place where it is worst."""
    pairs: list[Pair] = []
    each = comparison.alone == claim_grammar.EACH
    for margins in judge.margins(comparison, reader):
        part, count = margins.part, margins.count
        sides = [
            reader.intervals(functools.partial(judge.evaluate, node), part.alone, margins.trial)
            for node in (part.left, part.right)
        ]
        left, right = (side * count if len(side) == 1 else side for side in sides)
        reader.chosen = np.array([margins.trial]) if each else np.arange(reader.trials)
        trial = int(reader.numbers[margins.trial]) if each else 0
        places = [_named(place, part, comparison, trial) for place in _places(part, reader, count)]
        own = [
            Pair(places[k], left[k], right[k], margin, decides=False, trial=trial)
            for k, margin in margins.by_place.items()
        ]
        pairs += [min(own, key=lambda pair: judge.rank(pair.margin, comparison.strict))] if each else own
    return pairs


def _named(place: str, part: judge.Comparison, comparison: judge.Comparison, trial: int) -> str:
    """Return a place, with its trial and the value of the minimum or maximum that is compared there."""
    both = ((part.left, comparison.left), (part.right, comparison.right))
    sides = [ast.unparse(own) for own, whole in both if own is not whole]
    return ", ".join(filter(None, [f"trial {trial}" if trial else "", place, *sides]))


def _places(comparison: judge.Comparison, reader: judge.Reader, count: int) -> list[str]:
    """Return where on the curves a comparison reads its values: rounds or costs, '' for other single values."""
    calls = [call for node in (comparison.left, comparison.right) for call in claim_grammar.readers(node)]
    if all(function == "y" for _, function, _ in calls):
        for _, function, keywords in calls:
            rounds, costs = _asked(reader.of_call(function, keywords), keywords, reader)
            named = [f"cost {c:,.0f}" for c in costs] if costs else [f"round {r:,g}" for r in rounds]
            if len(named) == count:
                return named
    return [""] if count == 1 else [f"place {number}" for number in range(1, count + 1)]


def _asked(series: judge.Series, keywords: Any, reader: judge.Reader) -> tuple[list[float], list[float]]:
    """Return the rounds at which ``y`` reads a curve, and the costs if the check gives costs."""
    if "cost" in keywords:
        costs = np.ravel(judge.evaluate(keywords["cost"], reader)).tolist()
        at = np.maximum(np.searchsorted(series.along(_cost_axis(keywords)), costs, side="right") - 1, 0)
        return series.rounds[at].astype(float).tolist(), costs
    if "when" in keywords:
        return np.ravel(judge.evaluate(keywords["when"], reader)).tolist(), []
    if "at" in keywords:
        at = claim_grammar.constant(keywords["at"])
        asked = at if isinstance(at, list) else [at]
    else:
        since = claim_grammar.value(keywords, "since", 0)
        asked = series.recorded[series.recorded >= since].tolist()
    return [float(series.rounds[-1] if r == "end" else r) for r in asked], []


def _cost_axis(keywords: Any) -> str:
    return str(claim_grammar.value(keywords, "axis", "uplink_scalars"))


def _spots(tree: ast.AST, reader: judge.Reader) -> Iterator[Spot]:
    """Yield every point that a call in the check read from an averaged curve, or from the median of the trials."""
    medians = {
        part for node in ast.walk(tree) if claim_grammar.alone(node) == claim_grammar.MEDIAN for part in ast.walk(node)
    }
    for node in ast.walk(tree):
        function = claim_grammar.called(node)
        if not isinstance(node, ast.Call) or function not in claim_grammar.READERS:
            continue
        keywords = claim_grammar.arguments(node)
        if function == "parameter" or "of" in keywords:  # not a point of a drawn curve
            continue
        panel, curve = claim_grammar.select(function, keywords, reader.claim, reader.panels)
        metric = claim_grammar.value(keywords, "metric", panel.y)
        series = reader.of_call(function, keywords)
        alone = claim_grammar.MEDIAN if node in medians else ""
        for place in _rounds(node, function, keywords, series, reader):
            value = _value_at(place, function, keywords, reader, alone)
            if function == "reach":
                value = float(np.ravel(judge.evaluate(keywords["level"], reader))[0])
            if math.isfinite(place) and math.isfinite(value):
                yield Spot(panel.id, curve, metric, place, value)


def _value_at(place: float, function: str, keywords: Any, reader: judge.Reader, alone: str) -> float:
    """Return the value of the curve at a round: of the average, or the median of the trials."""

    def read(reader: judge.Reader) -> float:
        series = reader.of_call(function, keywords)
        return float(np.interp(place, series.rounds, series.values))

    values = reader.intervals(read, alone) if alone else None
    reader.chosen = np.arange(reader.trials)
    return values[0].value if values else read(reader)


def _rounds(
    node: ast.Call, function: str, keywords: Any, series: judge.Series, reader: judge.Reader
) -> Iterator[float]:
    """Yield the rounds at which a call read the curve, none if it found nothing."""
    if function == "y":
        rounds = _asked(series, keywords, reader)[0]
        last = float(series.rounds[-1])
        kept = [min(r, last) for r in rounds]
        at = np.unique(np.linspace(0, len(kept) - 1, min(len(kept), 2 * SHOWN)).round().astype(int))
        yield from (kept[i] for i in at.tolist())
    elif function == "tail":
        share = claim_grammar.value(keywords, "share", 1)
        yield float(min(series.recorded[series.recorded >= (1 - share) * series.recorded[-1]]))
        yield float(series.rounds[-1])
    elif function == "total":
        yield float(series.rounds[-1])
    elif function in ("slope", "decay"):  # from where to where
        yield float(claim_grammar.value(keywords, "since", function == "slope"))
        yield float(claim_grammar.value(keywords, "until", series.rounds[-1]))
    elif function == "rise":
        return
    elif function in ("lowest", "highest"):
        there = np.flatnonzero(series.rounds >= claim_grammar.value(keywords, "since", 0))
        best = np.argmin if function == "lowest" else np.argmax
        yield float(series.rounds[there[int(best(series.values[there]))]])
    else:
        axis = claim_grammar.value(keywords, "axis", "round")
        reached = float(np.ravel(judge.evaluate(node, reader))[0])
        if math.isfinite(reached):
            yield float(np.interp(reached, series.along(axis), series.rounds))


def _unit(node: ast.expr, reader: judge.Reader) -> str:
    """Return the unit of a side in words; '' for ratios, plain numbers and mixed units."""
    unit = units.of_side(node, reader.claim, reader.panels)
    return "" if unit in (units.NUMBER, units.RATIO) else unit
