"""The readings of a check in words: one value for each dimension of the lexicon that its words use.

Dimensions are nested: a level exists only where rounds to a level are read. Readings that come to the same check count
once. The leading reading, with the first value of each dimension, is the first one.
"""

from __future__ import annotations

import dataclasses
import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fedrepro.lexicon.vocabulary import lexicon
from fedrepro.spec import claim_grammar, words
from fedrepro.spec.model import Claim, Panel
from fedrepro.spec.references import Scope

MOST = 100
"""The largest number of readings that are judged; of more a sample is taken, always the same."""
AGGREGATE, MEDIAN_FROM = "aggregate", 10
"""The dimension of how trials are summarized, and the fewest trials whose median has a useful interval."""


WINDOW = "window of rounds"
"""The dimension of checks without words that start at a certain round."""
WINDOWS = {"as written": 1.0, "from half of its first round on": 0.5, "from 1.25 times its first round on": 1.25}
"""The values of this dimension, and the factor by which each multiplies the first round."""
_SINCE = re.compile(r"\bsince=([1-9]\d+)\b")
"""The first round that a check reads. Rounds below 10 are not varied: they only leave out the initial point."""

_ALONE = re.compile(rf"\b({'|'.join(claim_grammar.ALONE)})\(")


@dataclass(frozen=True)
class Reading:
    """One reading: the value of each dimension that is used, in the order of use, and the comparisons without words."""

    values: Mapping[str, Any]
    comparisons: tuple[str, ...]

    @property
    def check(self) -> str:
        """The check without words."""
        return " and ".join(self.comparisons)


class _Unchosen(Exception):
    """A dimension without a value is used. Its argument is the name of the dimension."""


def with_literal_check(claim: Claim, panels: Mapping[str, Panel]) -> Claim:
    """Return a claim whose checks are the literal ones at the leading reading. Raises UserError if one is no check."""
    scope = Scope(claim, panels, claim.names)
    own = {name: getattr(claim, name) for name in CHECKS}
    literal: dict[str, Any] = {
        name: words.literal(check, scope, leading) for name, check in own.items() if words.uses_words(check)
    }
    literal["words"] = claim.check if "check" in literal else ""
    for check in _by_reader(claim).values():
        words.literal(check, scope, leading)
    return dataclasses.replace(claim, **literal)


def series_of(claim: Claim, panels: Mapping[str, Panel]) -> set[str]:
    """Return the series that the checks of a claim without errors read, whoever reads its sentence."""
    scope = Scope(claim, panels, claim.names)
    checks = [getattr(claim, name) for name in CHECKS]
    checks += [words.literal(check, scope, leading) for check in _by_reader(claim).values()]
    calls = (call for check in filter(None, checks) for call in claim_grammar.read_by(check))
    return {claim_grammar.select(*call, claim, panels)[1].setting.series for call in calls}


CHECKS = ("check", "faster", "bound", "figure_shows")
"""The checks of a claim that are judged at one reading."""
READER = "reader"
"""The dimension of who reads the sentence."""


def leading(dimension: str) -> Any:
    """Return the first value of a dimension, which a careful reader would take first."""
    return lexicon().dimensions[dimension].values[0]


def of(claim: Claim, panels: Mapping[str, Panel], trials: int) -> tuple[list[Reading], int]:
    """Return the readings of a claim, the leading one first, and how many there are in all.

    trials : the number of trials, which decides whether their median is a reading too. A check without words has one
    reading, or one for each value of ``WINDOWS`` if it starts at a certain round.
    """
    if not claim.words and len(_by_reader(claim)) == 1:
        windows = _windows(claim.check)
        return windows, len(windows)
    distinct: dict[str, Reading] = {}
    for reading in _every(claim, panels, trials):
        distinct.setdefault(reading.check, reading)
    return _sampled(list(distinct.values())), len(distinct)


def _windows(check: str) -> list[Reading]:
    """Return a check without words as it is written, and with an earlier and a later first round if it has one."""
    if not _SINCE.search(check):
        return [Reading({}, (check,))]

    def moved(factor: float) -> str:
        return _SINCE.sub(lambda since: f"since={round(factor * int(since[1]))}", check)

    return [Reading({WINDOW: value}, (moved(factor),)) for value, factor in WINDOWS.items()]


def _every(claim: Claim, panels: Mapping[str, Panel], trials: int) -> Iterator[Reading]:
    scope = Scope(claim, panels, claim.names)
    open_: list[dict[str, Any]] = [{}]
    while open_:
        chosen = open_.pop()
        try:
            yield Reading(chosen, _read(claim, scope, chosen, trials))
        except _Unchosen as error:
            (dimension,) = error.args
            values = _by_reader(claim) if dimension == READER else lexicon().dimensions[dimension].values
            open_ += [{**chosen, dimension: value} for value in reversed(tuple(values))]


def _by_reader(claim: Claim) -> dict[str, str]:
    """Return the checks of a claim by who read its sentence, the leading one first."""
    checks = (claim.words or claim.check, claim.or_read, claim.earlier)
    return {who: check for who, check in zip(lexicon().dimensions[READER].values, checks, strict=True) if check}


def _read(claim: Claim, scope: Scope, chosen: Mapping[str, Any], trials: int) -> tuple[str, ...]:
    def choose(dimension: str) -> Any:
        if dimension not in chosen:
            raise _Unchosen(dimension)
        return chosen[dimension]

    checks = _by_reader(claim)
    parts = words.comparisons(checks[choose(READER) if len(checks) > 1 else leading(READER)], scope, choose)
    alone = any(map(_ALONE.search, parts))
    if trials >= MEDIAN_FROM and not alone and choose(AGGREGATE) == "median":
        parts = [f"median({part})" for part in parts]
    return tuple(parts)


def _sampled(readings: list[Reading]) -> list[Reading]:
    """Return at most ``MOST`` readings: the leading one, those that differ from it in one dimension, and a sample."""
    if len(readings) <= MOST:
        return readings
    leading = readings[0].values
    near = [k for k, reading in enumerate(readings) if len(differences(reading.values, leading)) <= 1]
    others = [k for k in range(len(readings)) if k not in near]
    sample = random.Random(len(readings)).sample(others, max(0, MOST - len(near)))
    return [readings[k] for k in sorted({*near, *sample})]


def differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
    """Return the dimensions in which two readings differ, those that only one of them uses left out."""
    return [name for name in first if name in second and first[name] != second[name]]
