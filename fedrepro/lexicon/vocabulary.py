"""Read the lexicon, ``words.yaml``: words, dimensions, and the scales of metrics."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import importlib.resources
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml


@dataclass(frozen=True)
class Dimension:
    """One thing that a sentence leaves open, with its values, the leading one first.

    ordered : whether the values are a scale, of which a verdict can name the value where it turns. unit : of the
    values, '' for words. means, rule : what the dimension is, and how its values were chosen.
    """

    name: str
    values: tuple[Any, ...]
    means: str
    rule: str
    ordered: bool = False
    unit: str = ""


@dataclass(frozen=True)
class Word:
    """A word that a check can use.

    kind : ``order``, ``sameness``, ``no loss``, ``number``, ``rate`` or ``quantities`` for words that compare, and
    ``strength``, ``negation``, ``sequence``, ``rounds`` or ``best`` for words on comparisons. also : other wordings of
    papers that it stands for. measures : of words that compare curves, ``measure of speed`` or ``value``. stage : the
    dimension of the stage at which values are compared. axis : ``round`` or ``cost``. direction : ``lower`` or
    ``higher`` if the word says it, else the metric's own. reversed : whether the first curve is the one that is behind.
    """

    name: str
    kind: str
    means: str
    also: tuple[str, ...] = ()
    measures: str = ""
    stage: str = ""
    axis: str = "round"
    direction: str = ""
    reversed: bool = False


@dataclass(frozen=True)
class Lexicon:
    """Everything in the lexicon. quantities : the meanings of the functions that return a number of curves."""

    dimensions: Mapping[str, Dimension]
    words: Mapping[str, Word]
    quantities: Mapping[str, str]
    scales: Mapping[str, str]

    def scale(self, problem: str, metric: str) -> str:
        """Return the scale on which values of a metric differ: ``a share of the way``, ``points`` or ``a ratio``."""
        return self.scales.get(f"{problem}.{metric}", self.scales.get(metric, RATIO))


SCALED: Mapping[str, tuple[str, ...]] = {
    amount: tuple(f"{amount}, {scale}" for scale in ("as a ratio", "as a share of the way", "in points"))
    for amount in ("strength", "negligible")
}
"""The dimensions of an amount, one for each scale on which values differ."""

WAY, POINTS, RATIO = "a share of the way", "points", "a ratio"
"""The scales of differences: relative to the way from the start to the best end, points of 100, a factor."""


@functools.cache
def lexicon() -> Lexicon:
    """Return the lexicon of this version of fedrepro."""
    text = importlib.resources.files("fedrepro.lexicon").joinpath("words.yaml").read_text(encoding="utf-8")
    loaded = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    scales = dict.fromkeys(loaded["scales"]["share of the way"], WAY)
    scales |= dict.fromkeys(loaded["scales"]["points"], POINTS)
    return Lexicon(
        {name: Dimension(name, tuple(entry.pop("values")), **entry) for name, entry in loaded["dimensions"].items()},
        {
            name: Word(name, **{**entry, "also": tuple(entry.get("also", ()))})
            for name, entry in loaded["words"].items()
        },
        loaded["quantities"],
        scales,
    )


def value_in_words(dimension: str, value: Any) -> str:
    """Return a value of a dimension with its unit; of a dimension that is not in the lexicon, as it is."""
    known = lexicon().dimensions.get(dimension)
    unit = known.unit if known is not None else ""
    if isinstance(value, str) or not unit:
        return str(value)
    if unit.startswith(("share", "relative")):
        return f"{100 * value:g} %"
    return f"{value:g} {'point' if unit == 'points' and value == 1 else unit}"


def short_name(dimension: str) -> str:
    """Return the name of a dimension without its scale, which the unit of its values shows."""
    name = dimension.partition(",")[0]
    return "negligible difference" if name == "negligible" else name


PROSE = ("means", "rule", "also")
"""Fields of words and dimensions that explain and decide nothing."""


def definition(entry: Word | Dimension) -> dict[str, Any]:
    """Return what decides a word's readings, or the values of a dimension, as plain data without explanations."""
    facts: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(entry)))
    return {name: value for name, value in facts.items() if name not in PROSE}


@functools.cache
def digest() -> str:
    """Return a hash of the lexicon without its explanations."""
    known = lexicon()
    everything: list[Word | Dimension] = [*known.words.values(), *known.dimensions.values()]
    entries = [definition(entry) for entry in everything]
    facts = [entries, sorted(known.quantities), sorted(known.scales.items())]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
