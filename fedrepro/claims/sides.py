"""Both sides of a check's comparisons with their intervals, and the points of the curves that it read.

``judge`` decides the verdict; this module shows a reader what was compared.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedrepro.claims import judge
from fedrepro.claims.intervals import Interval, jackknife, median
from fedrepro.spec import axes, claim_grammar
from fedrepro.spec.model import Claim, Curve, Figure, Panel

SHOWN = 9
"""How many rounds of a comparison are listed: the one that decides, and others with even spacing."""


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

    pairs : at the listed places. count : number of all places. held : number of places where it holds. alone : ``each``
    or ``median`` if trials are compared alone, else ''.
    """

    left: str
    sign: str
    right: str
    left_unit: str
    right_unit: str
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
    pairs = _each(comparison, reader) if comparison.alone == claim_grammar.EACH else _over_trials(comparison, reader)
    ranks = [_rank(pair.margin, comparison.strict) for pair in pairs]
    decides = ranks.index(min(ranks))
    pairs[decides] = dataclasses.replace(pairs[decides], decides=True)
    held = sum(judge.outcome_of(pair.margin, comparison.strict) == judge.HOLDS for pair in pairs)
    panels = (_unit(comparison.left, reader), _unit(comparison.right, reader))
    kept = pairs if len(pairs) <= SHOWN else _thinned(pairs)
    sides = (ast.unparse(comparison.left), comparison.sign, ast.unparse(comparison.right))
    return Compared(*sides, *panels, tuple(kept), len(pairs), held, comparison.alone)


def _thinned(pairs: list[Pair]) -> list[Pair]:
    spaced = set(np.linspace(0, len(pairs) - 1, SHOWN - 1).round().astype(int).tolist())
    return [pair for number, pair in enumerate(pairs) if number in spaced or pair.decides]


def _over_trials(comparison: judge.Comparison, reader: judge.Reader) -> list[Pair]:
    """Return the pairs of a comparison of averaged curves, or of the medians over trials."""
    over = median if comparison.alone else jackknife

    def intervals(read: Callable[[], Any]) -> list[Interval]:
        def value(chosen: np.ndarray) -> np.ndarray:
            reader.chosen = chosen
            return np.atleast_1d(np.asarray(read(), dtype=np.float64))

        return over(value, reader.trials)

    def paired(part: judge.Comparison) -> list[Pair]:
        margins = intervals(functools.partial(part.margin, reader))
        sides = [intervals(functools.partial(judge.evaluate, node, reader)) for node in (part.left, part.right)]
        left, right = (side * len(margins) if len(side) == 1 else side for side in sides)
        reader.chosen = np.arange(reader.trials)
        places = [_named(place, part, comparison) for place in _places(part, reader, len(margins))]
        return [Pair(*row, decides=False) for row in zip(places, left, right, margins, strict=True)]

    parts = [] if comparison.alone else [pair for part in comparison.parts for pair in paired(part)]
    definite = [pair for pair in parts if judge.is_definite(pair.margin)]
    return definite if parts and definite == parts else [*paired(comparison), *definite]


def _named(place: str, part: judge.Comparison, comparison: judge.Comparison) -> str:
    """Return a place, with the value of the minimum or maximum that is compared there."""
    sides = [
        ast.unparse(own)
        for own, whole in ((part.left, comparison.left), (part.right, comparison.right))
        if own is not whole
    ]
    return ", ".join(filter(None, [place, *sides]))


def _each(comparison: judge.Comparison, reader: judge.Reader) -> list[Pair]:
    """Return the pairs of a comparison with ``each``: for each trial the place where it is worst."""
    pairs = []
    for number in range(reader.trials):
        reader.chosen = np.array([number])
        places = _places_of(int(reader.numbers[number]), comparison, reader)
        pairs.append(min(places, key=lambda pair: _rank(pair.margin, comparison.strict)))
    return pairs


def _places_of(trial: int, comparison: judge.Comparison, reader: judge.Reader) -> Iterator[Pair]:
    """Yield the pairs of one trial at every place that a comparison reads."""
    margins = comparison.margin(reader)
    sides = [
        np.ravel(np.asarray(judge.evaluate(node, reader), dtype=float)) for node in (comparison.left, comparison.right)
    ]
    places = _places(comparison, reader, len(margins))
    for place, numbers in zip(places, zip(*np.broadcast_arrays(*sides, margins), strict=True), strict=True):
        named = f"trial {trial}" + (f", {place}" if place else "")
        left, right, margin = (Interval(v, v, v) for v in map(float, numbers))
        yield Pair(named, left, right, margin, False, trial)


def _rank(margin: Interval, strict: bool) -> tuple[int, float]:
    order = (judge.FAILS, judge.NOISE, judge.HOLDS)
    return order.index(judge.outcome_of(margin, strict)), margin.low


def _places(comparison: judge.Comparison, reader: judge.Reader, count: int) -> list[str]:
    """Return where on the curves a comparison reads its values: rounds or costs, '' for other single values."""
    calls = [call for node in (comparison.left, comparison.right) for call in claim_grammar.readers(node)]
    if all(function == "y" for _, function, _ in calls):
        for _, function, keywords in calls:
            rounds, costs = _asked(reader.series(function, keywords), keywords, reader)
            named = [f"cost {c:,.0f}" for c in costs] if costs else [f"round {r:,g}" for r in rounds]
            if len(named) == count:
                return named
    return [""] if count == 1 else [f"place {number}" for number in range(1, count + 1)]


def _asked(series: judge.Series, keywords: Any, reader: judge.Reader) -> tuple[list[float], list[float]]:
    """Return the rounds at which ``y`` reads a curve, and the costs if the check gives costs."""
    if "cost" in keywords:
        costs = np.ravel(judge.evaluate(keywords["cost"], reader)).tolist()
        at = np.maximum(np.searchsorted(series.along("uplink_scalars"), costs, side="right") - 1, 0)
        return series.rounds[at].astype(float).tolist(), costs
    if "at" in keywords:
        at = claim_grammar.constant(keywords["at"])
        asked = at if isinstance(at, list) else [at]
    else:
        since = claim_grammar.constant(keywords["since"]) if "since" in keywords else 0
        asked = series.recorded[series.recorded >= since].tolist()
    return [float(series.rounds[-1] if r == "end" else r) for r in asked], []


def _spots(tree: ast.AST, reader: judge.Reader) -> Iterator[Spot]:
    """Yield every point that a call in the check read from an averaged curve, or from the median of the trials."""
    medians = {
        part for node in ast.walk(tree) if claim_grammar.alone(node) == claim_grammar.MEDIAN for part in ast.walk(node)
    }
    for node, function, keywords in claim_grammar.readers(tree):
        if function == "parameter" or "of" in keywords:  # not a point of a drawn curve
            continue
        panel, curve = claim_grammar.select(function, keywords, reader.claim, reader.panels)
        metric = claim_grammar.constant(keywords["metric"]) if "metric" in keywords else panel.y
        series = reader.series(function, keywords)
        for place in _rounds(node, function, keywords, series, reader):
            value = _median_at(place, function, keywords, reader) if node in medians else _at(place, series)
            level = keywords.get("level")
            if function == "reach" and level is not None:
                value = float(np.ravel(judge.evaluate(level, reader))[0])
            if math.isfinite(place) and math.isfinite(value):
                yield Spot(panel.id, curve, metric, place, value)


def _at(place: float, series: judge.Series) -> float:
    return float(np.interp(place, series.rounds, series.values))


def _median_at(place: float, function: str, keywords: Any, reader: judge.Reader) -> float:
    """Return the median of the trials' own values at a round."""
    values = []
    for number in range(reader.trials):
        reader.chosen = np.array([number])
        values.append(_at(place, reader.series(function, keywords)))
    reader.chosen = np.arange(reader.trials)
    return float(np.median(values))


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
    elif function == "total":
        yield float(series.rounds[-1])
    elif function in ("slope", "decay"):  # from where to where
        asked = {key: claim_grammar.constant(keywords[key]) for key in ("since", "until") if key in keywords}
        yield float(asked.get("since", function == "slope"))
        yield float(asked.get("until", series.rounds[-1]))
    elif function == "rise":
        return
    elif function in ("lowest", "highest"):
        since = claim_grammar.constant(keywords["since"]) if "since" in keywords else 0
        there = np.flatnonzero(series.rounds >= since)
        best = np.argmin if function == "lowest" else np.argmax
        yield float(series.rounds[there[int(best(series.values[there]))]])
    else:
        axis = claim_grammar.constant(keywords["axis"]) if "axis" in keywords else "round"
        reached = float(np.ravel(judge.evaluate(node, reader))[0])
        if math.isfinite(reached):
            yield float(np.interp(reached, series.along(axis), series.rounds))


def _unit(node: ast.expr, reader: judge.Reader) -> str:
    """Return the unit of a side in words; '' for ratios, logarithms, plain numbers and mixed units."""
    units = {_counts(function, keywords, reader) for function, keywords in _outer(node)}
    if len(units) != 1 or any(_divides(part) for part in ast.walk(node)):
        return ""
    return units.pop()


def _outer(node: ast.AST) -> Iterator[tuple[str, Any]]:
    """Yield the calls that read a curve, except those inside the arguments of another one."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in claim_grammar.READERS:
        _, function, keywords = next(claim_grammar.readers(node))
        yield function, keywords
        return
    for child in ast.iter_child_nodes(node):
        yield from _outer(child)


def _divides(node: ast.AST) -> bool:
    over = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and any(claim_grammar.readers(node.right))
    return over or (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "log10")


def _counts(function: str, keywords: Any, reader: judge.Reader) -> str:
    panel: Panel = claim_grammar.select(function, keywords, reader.claim, reader.panels)[0]
    if function in ("slope", "decay", "parameter"):
        return ""
    if function in ("total", "reach", "first"):
        axis = claim_grammar.constant(keywords["axis"]) if "axis" in keywords else "round"
        return axes.find(panel, axis).label if axis != "round" else "rounds"
    metric = claim_grammar.constant(keywords["metric"]) if "metric" in keywords else panel.y
    return axes.metric_label(panel, metric)
