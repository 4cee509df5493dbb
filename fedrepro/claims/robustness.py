"""The verdict on a claim under every reading of its words, and what it depends on.

A claim is judged under each reading of the lexicon's words that it uses. Its class says how far the answer at the
leading reading depends on the reading:

- *in every reading*: all readings give the same answer,
- *in all but*: only named values of one dimension give another one,
- *only certainty changes*: some readings are within noise, none gives the opposite answer,
- *turns round*: some readings give the opposite answer.

Within noise is no opposite answer. Readings that these results cannot answer, for example because too few rounds were
computed, are counted apart. A check without words of the lexicon has *one reading*.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fedrepro.claims import judge
from fedrepro.claims.evidence import FAILS, HOLDS, NOISE
from fedrepro.claims.intervals import Interval
from fedrepro.lexicon.vocabulary import lexicon
from fedrepro.spec import readings
from fedrepro.spec.model import Claim, Figure
from fedrepro.spec.readings import Reading

EVERY, ALL_BUT, CERTAINTY, TURNS, ONE = CLASSES = (
    "in every reading", "in all but", "only certainty changes", "turns round", "one reading",
)  # fmt: skip
OPPOSITE = {HOLDS: FAILS, FAILS: HOLDS}
SIGN = {HOLDS: "holds", FAILS: "fails", NOISE: "is within noise"}


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


def of(claim: Claim, figure: Figure, known: judge.Known) -> Robustness | None:
    """Return the robustness of a claim on these results, None where its leading reading cannot be judged."""
    if claim.inapplicable:
        return None
    reader = judge.Reader.of(claim, figure, known)
    listed, total = readings.of(claim, {panel.id: panel for panel in figure.panels}, reader.trials)
    answers = [answer for reading in listed if (answer := _answer(claim, reading, figure, known)) is not None]
    if not answers or answers[0].reading is not listed[0]:
        return None
    return classify(answers, len(listed) - len(answers), total)


def _answer(claim: Claim, reading: Reading, figure: Figure, known: judge.Known) -> Answer | None:
    read = dataclasses.replace(claim, check=reading.check)
    try:
        decision = judge.decide(reading.check, judge.Reader.of(read, figure, known))
    except judge.NotTestable:
        return None
    worst = min(range(len(decision.margins)), key=lambda k: judge.rank(decision.margins[k], strict=True))
    return Answer(reading, decision.outcome, decision.margins[worst], decision.units[worst])


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
    alone: dict[tuple[str, str], list[Any]] = {}
    for answer in answers[1:]:
        differing = readings.differences(answer.reading.values, leading.reading.values)
        if len(differing) == 1 and answer.outcome != leading.outcome:
            alone.setdefault((differing[0], answer.outcome), []).append(answer.reading.values[differing[0]])
    for (dimension, outcome), values in alone.items():
        yield Turn(dimension, outcome, tuple(_in_order(dimension, values)))


def _in_order(dimension: str, values: list[Any]) -> list[Any]:
    numbers = sorted(value for value in values if not isinstance(value, str))
    return [*numbers, *(value for value in values if isinstance(value, str))]


def _exceptions(answers: Sequence[Answer]) -> Turn | None:
    """Return the fewest values of one dimension without which all answers agree, at most half of its values."""
    leading = answers[0]
    others = [answer for answer in answers if answer.outcome != leading.outcome]
    best: Turn | None = None
    for dimension in {name for answer in others for name in answer.reading.values}:
        if any(dimension not in answer.reading.values for answer in others):
            continue
        values = list(dict.fromkeys(answer.reading.values[dimension] for answer in others))
        every = {answer.reading.values[dimension] for answer in answers if dimension in answer.reading.values}
        if leading.reading.values.get(dimension) in values or 2 * len(values) > len(every):
            continue
        outcome = NOISE if {answer.outcome for answer in others} == {NOISE} else OPPOSITE.get(leading.outcome, "")
        turn = Turn(dimension, outcome, tuple(_in_order(dimension, values)))
        if best is None or (len(turn.values), turn.dimension) < (len(best.values), best.dimension):
            best = turn
    return best


def _influence(answers: Sequence[Answer]) -> dict[str, float]:
    """Return for each dimension the share of pairs that differ in it alone and have different answers."""
    pairs: Counter[str] = Counter()
    differing: Counter[str] = Counter()
    for first, second in itertools.combinations(answers, 2):
        names = readings.differences(first.reading.values, second.reading.values)
        if len(names) == 1:
            pairs[names[0]] += 1
            differing[names[0]] += first.outcome != second.outcome
    shares = {name: differing[name] / count for name, count in pairs.items()}
    return dict(sorted(shares.items(), key=lambda item: (-item[1], item[0])))


# -- in words ----------------------------------------------------------------------------------------------------------


def _in_words(robustness: Robustness) -> str:
    if robustness.kind == ONE:
        return ONE
    judged = len(robustness.answers)
    sampled = f", {judged} sampled of {robustness.total}" if judged + robustness.unanswered < robustness.total else ""
    if robustness.kind == EVERY:
        return f"{EVERY} ({judged}{sampled})"
    if robustness.kind == ALL_BUT:
        assert robustness.exceptions is not None
        return f"in all of {judged} readings{sampled} but {shown(robustness.exceptions)}"
    counts = ", ".join(f"{number} {SIGN[outcome]}" for outcome, number in robustness.counts.items() if number)
    counts = f"{judged} readings{sampled}: {counts}"
    decides = next(iter(robustness.influence), "")
    turns = [turn for turn in robustness.turns if turn.dimension == decides] or list(robustness.turns)[:1]
    where = "; ".join(f"{SIGN[turn.outcome]} with {shown(turn)}" for turn in turns)
    by = f" with the {decides}" if decides and robustness.kind == TURNS else ""
    return f"{robustness.kind}{by} ({counts})" + (f": {where}" if where else "")


def shown(turn: Turn) -> str:
    """Return the values of a turn in words: ``level 1 %, 2 % or 5 %``."""
    texts = [value_in_words(turn.dimension, value) for value in turn.values]
    listed = texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} or {texts[-1]}"
    return f"{turn.dimension}: {listed}"


def value_in_words(dimension: str, value: Any) -> str:
    """Return a value of a dimension with its unit."""
    unit = lexicon().dimensions[dimension].unit
    if isinstance(value, str) or not unit:
        return str(value)
    if unit.startswith(("share", "relative")):
        return f"{100 * value:g} %"
    return f"{value:g} {unit}" if unit != "times" else f"{value:g} times"


def normalized(answer: Answer) -> tuple[float, float, float]:
    """Return a margin and its interval in half widths of the interval, nan where it has none."""
    half = (answer.margin.high - answer.margin.low) / 2
    if not half > 0 or math.isinf(half):
        return math.nan, math.nan, math.nan
    return answer.margin.value / half, answer.margin.low / half, answer.margin.high / half
