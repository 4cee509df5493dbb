"""How far the verdict on a claim depends on the reading of its words: classes of answers, and what decides them.

The class of a claim says how the answer at the leading reading compares with those of all other readings:

- *in every reading*: all readings give the same answer,
- *in all but*: only named values of one dimension give another one,
- *only certainty changes*: some readings are within noise, none gives the opposite answer,
- *turns round*: some readings give the opposite answer.

Within noise is no opposite answer. Readings that these results cannot answer, for example because too few rounds were
computed, are counted separately. A check without words has *one reading*, unless it starts at a certain round.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedrepro.claims.evidence import FAILS, HOLDS, NOISE
from fedrepro.claims.intervals import Interval
from fedrepro.lexicon.vocabulary import short_name, value_in_words
from fedrepro.spec import readings
from fedrepro.spec.readings import Reading

EVERY, ALL_BUT, CERTAINTY, TURNS, ONE = CLASSES = (
    "in every reading", "in all but", "only certainty changes", "turns round", "one reading",
)  # fmt: skip
OPPOSITE = {HOLDS: FAILS, FAILS: HOLDS}
PLURAL = {HOLDS: "hold", FAILS: "fail", NOISE: "undecided"}
SINGULAR = {HOLDS: "holds", FAILS: "fails", NOISE: "undecided"}


@dataclass(frozen=True)
class Answer:
    """The outcome of one reading, with the margin that decides it and its unit."""

    reading: Reading
    outcome: str
    margin: Interval
    unit: str


@dataclass(frozen=True)
class Turn:
    """Values of one dimension with another outcome than the leading reading, all other dimensions leading."""

    dimension: str
    outcome: str
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Robustness:
    """How the verdict on a claim depends on the reading of its words.

    kind : one of ``CLASSES``. leading : the outcome of the leading reading. answers : of all readings that could be
    judged, the leading one first. unanswered : how many could not. total : how many readings there are, of which at
    most ``readings.MOST`` are judged. turns : where the leading answer changes along each dimension. exceptions : for
    *in all but*, the only dimension and values with another answer. influence : for each dimension the share of pairs
    of readings that differ in it alone and have different answers, the largest first.
    """

    kind: str
    leading: str
    answers: tuple[Answer, ...]
    unanswered: int
    total: int
    turns: tuple[Turn, ...] = ()
    exceptions: Turn | None = None
    influence: Mapping[str, float] = dataclasses.field(default_factory=dict)

    @property
    def counts(self) -> Mapping[str, int]:
        """How many readings hold, fail and are within noise."""
        counted = Counter(answer.outcome for answer in self.answers)
        return {outcome: counted[outcome] for outcome in (HOLDS, FAILS, NOISE)}

    @property
    def words(self) -> str:
        """The class in one line, with the word that decides and the value where the answer turns."""
        return _in_words(self)

    @property
    def causes(self) -> tuple[str, ...]:
        """Each value of a word that turns the answer, all others leading, with the margin there and its interval."""
        return tuple(_cause(self, turn) for turn in self.turns if turn.outcome != NOISE)


def classify(answers: Sequence[Answer], unanswered: int = 0, total: int | None = None) -> Robustness:
    """Return how the first answer, that of the leading reading, depends on the reading."""
    total = len(answers) + unanswered if total is None else total
    leading = answers[0]
    outcomes = {answer.outcome for answer in answers}
    exceptions = _exceptions(answers) if len(outcomes) > 1 else None
    if total == 1:
        kind = ONE
    elif len(outcomes) == 1:
        kind = EVERY
    elif exceptions is not None:
        kind = ALL_BUT
    else:
        kind = TURNS if {HOLDS, FAILS} <= outcomes else CERTAINTY
    return Robustness(
        kind,
        leading.outcome,
        tuple(answers),
        unanswered,
        total,
        tuple(_turns(answers)),
        exceptions,
        _influence(answers),
    )


def _turns(answers: Sequence[Answer]) -> Iterator[Turn]:
    """Yield where the answer changes if one dimension alone leaves its leading value."""
    leading = answers[0]
    first: dict[tuple[str, Any], str] = {}
    for answer in answers[1:]:
        differing = readings.differences(answer.reading.values, leading.reading.values)
        if len(differing) == 1:  # of nested dimensions, the leading values come first
            first.setdefault((differing[0], answer.reading.values[differing[0]]), answer.outcome)
    turns: dict[tuple[str, str], list[Any]] = {}
    for (dimension, value), outcome in first.items():
        if outcome != leading.outcome:
            turns.setdefault((dimension, outcome), []).append(value)
    for (dimension, outcome), values in turns.items():
        yield Turn(dimension, outcome, tuple(_in_order(values)))


def _in_order(values: list[Any]) -> list[Any]:
    numbers = sorted(value for value in values if not isinstance(value, str))
    return [*numbers, *(value for value in values if isinstance(value, str))]


def _exceptions(answers: Sequence[Answer]) -> Turn | None:
    """Return the fewest values of one dimension without which all answers agree.

    They are fewer than half of its values, or half of them if they are within noise.
    """
    leading = answers[0]
    others = [answer for answer in answers if answer.outcome != leading.outcome]
    best: Turn | None = None
    for dimension in {name for answer in others for name in answer.reading.values}:
        if any(dimension not in answer.reading.values for answer in others):
            continue
        values = list(dict.fromkeys(answer.reading.values[dimension] for answer in others))
        every = {answer.reading.values[dimension] for answer in answers if dimension in answer.reading.values}
        outcome = NOISE if {answer.outcome for answer in others} == {NOISE} else OPPOSITE.get(leading.outcome, "")
        most = len(every) / 2 if outcome == NOISE else (len(every) - 1) / 2
        if leading.reading.values.get(dimension) in values or len(values) > most:
            continue
        turn = Turn(dimension, outcome, tuple(_in_order(values)))
        if best is None or (len(turn.values), turn.dimension) < (len(best.values), best.dimension):
            best = turn
    return best


def _influence(answers: Sequence[Answer]) -> dict[str, float]:
    """Return for each dimension the share of pairs that differ in it alone and have different answers."""
    names = sorted({name for answer in answers for name in answer.reading.values})
    values = [list({answer.reading.values.get(name): None for answer in answers if name in answer.reading.values})
              for name in names]  # fmt: skip
    codes = np.array([
        [known.index(answer.reading.values[name]) if name in answer.reading.values else -1
         for name, known in zip(names, values, strict=True)]
        for answer in answers
    ]).reshape(len(answers), len(names))  # fmt: skip
    outcomes = np.array([answer.outcome for answer in answers])
    first, second = np.triu_indices(len(answers), 1)
    differ = (codes[first] != codes[second]) & (codes[first] >= 0) & (codes[second] >= 0)
    alone, other = differ.sum(axis=1) == 1, outcomes[first] != outcomes[second]
    shares = {
        name: float(other[alone & differ[:, k]].mean()) for k, name in enumerate(names) if (alone & differ[:, k]).any()
    }
    return dict(sorted(shares.items(), key=lambda item: (-item[1], item[0])))


def in_classes(judged: Iterable[Robustness | None]) -> str:
    """Return how many verdicts depend on the reading in which way, '' if no claim has several readings."""
    several = [robustness for robustness in judged if robustness is not None and robustness.kind != ONE]
    counts = Counter((robustness.kind, robustness.leading) for robustness in several)
    if not several:
        return ""
    texts = []
    for kind in CLASSES[:-1]:
        own = [f"{counts[kind, outcome]} {plural}" for outcome, plural in PLURAL.items() if counts[kind, outcome]]
        texts += [f"{kind}: {', '.join(own)}"] if own else []
    return f"readings of {len(several)} claim{'s' * (len(several) != 1)}: {'; '.join(texts)}"


# -- in words ----------------------------------------------------------------------------------------------------------


def _in_words(robustness: Robustness) -> str:
    if robustness.kind == ONE:
        return ONE
    judged = len(robustness.answers)
    sampled = f" sampled of {robustness.total}" if judged + robustness.unanswered < robustness.total else ""
    if robustness.kind == EVERY:
        return f"{EVERY} ({judged}{sampled})"
    if robustness.kind == ALL_BUT:
        assert robustness.exceptions is not None
        return f"in all of {judged} readings{sampled} but {shown(robustness.exceptions)}"
    counts = ", ".join(f"{number} {PLURAL[outcome]}" for outcome, number in robustness.counts.items() if number)
    nearest = _together(robustness)
    decides = decisive(robustness)
    turns = [turn for turn in robustness.turns if turn.dimension in decides]
    at = [f"{SINGULAR[turn.outcome]} at {shown(turn)}" for turn in turns]
    where = "; ".join([*at, *(f"{SINGULAR[outcome]} with {_listed(values)}" for outcome, values in nearest.items())])
    by = f" with {_dimensions(decides)}" if decides and robustness.kind == TURNS else ""
    return f"{robustness.kind}{by} (of {judged} readings{sampled} {counts})" + (f": {where}" if where else "")


def _together(robustness: Robustness) -> dict[str, list[tuple[str, Any]]]:
    """Return where the answer turns if no value alone turns it: what the nearest readings with it change.

    These are the opposite of the leading answer, or both answers if the leading one is within noise.
    """
    wanted = [OPPOSITE[robustness.leading]] if robustness.leading in OPPOSITE else [HOLDS, FAILS]
    alone = {turn.outcome for turn in robustness.turns}
    usual: dict[str, Any] = {}  # of dimensions that only some readings have, the leading values come first
    for answer in robustness.answers:
        usual = {**answer.reading.values, **usual}
    changes = {
        outcome: [
            [(name, value) for name, value in answer.reading.values.items() if value != usual[name]]
            for answer in robustness.answers
            if answer.outcome == outcome
        ]
        for outcome in wanted
        if outcome not in alone
    }
    return {outcome: min(found, key=len) for outcome, found in changes.items() if found}


def _dimensions(names: Sequence[str]) -> str:
    """Return names of dimensions in words: ``the reader, the level and the strength``."""
    *others, last = (f"the {short_name(name)}" for name in names)
    return f"{', '.join(others)} and {last}" if others else last


def _listed(values: Iterable[tuple[str, Any]]) -> str:
    return " and ".join(f"{short_name(name)} = {value_in_words(name, value)}" for name, value in values)


def decisive(robustness: Robustness) -> tuple[str, ...]:
    """Return the dimension that decides most, of those along which the leading answer turns; none if it never changes.

    If no value turns it alone, these are the dimensions of the nearest readings that do. If none does, it is the one
    that makes it uncertain.
    """
    opposite = OPPOSITE.get(robustness.leading, "")
    changing = {turn.dimension for turn in robustness.turns}
    turning = {turn.dimension for turn in robustness.turns if turn.outcome in (opposite or HOLDS, opposite or FAILS)}
    if not turning and (together := _together(robustness)):
        return tuple(dict.fromkeys(name for values in together.values() for name, _ in values))
    names = [name for name in robustness.influence if name in (turning or changing)] or list(robustness.influence)
    return tuple(names[:1])


def _cause(robustness: Robustness, turn: Turn) -> str:
    """Return a turn in words, with the margin at the first of its values."""
    leading = robustness.answers[0].reading.values
    answer = next(
        answer
        for answer in robustness.answers[1:]
        if answer.reading.values.get(turn.dimension) == turn.values[0]
        and readings.differences(answer.reading.values, leading) == [turn.dimension]
    )
    unit, margin = f" {answer.unit}" if answer.unit else "", answer.margin
    at = f" at {value_in_words(turn.dimension, turn.values[0])}" if len(turn.values) > 1 else ""
    interval = f"{margin.value:.3g}{unit} [{margin.low:.3g}, {margin.high:.3g}]"
    return f"{shown(turn)}: {SINGULAR[turn.outcome]}, margin{at} {interval}"


def shown(turn: Turn) -> str:
    """Return the values of a turn in words: ``level = 1 %, 2 % or 5 %``."""
    texts = [value_in_words(turn.dimension, value) for value in turn.values]
    listed = texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} or {texts[-1]}"
    return f"{short_name(turn.dimension)} = {listed}"
