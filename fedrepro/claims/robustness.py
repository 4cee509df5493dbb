"""Judge a claim under every reading of its words (``classes``), and keep the answers beside the results.

Judging all readings of a figure takes seconds; ``kept`` reads them from the file of ``claims.kept_answers`` if the
results, the claims, the lexicon and the code that judges are the same as when they were written.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fedrepro.claims import classes, judge, kept_answers
from fedrepro.claims.classes import Answer, Robustness
from fedrepro.claims.intervals import Interval
from fedrepro.lexicon import vocabulary
from fedrepro.spec import readings
from fedrepro.spec.model import Claim, Figure
from fedrepro.spec.readings import Reading

READINGS = "readings"
"""The kind of answers in the file: those of all readings."""
_JUDGES = (
    "claims/classes.py", "claims/intervals.py", "claims/judge.py", "claims/robustness.py", "lexicon/vocabulary.py",
    "results/by_run.py", "spec/claim_grammar.py", "spec/readings.py", "spec/references.py", "spec/words.py",
)  # fmt: skip
"""The files that decide the answers together with the lexicon, below the package."""


def of_figure(figure: Figure, known: judge.Known) -> dict[str, Robustness]:
    """Return the robustness of every claim of a figure whose leading reading can be judged, by its id."""
    judged = {claim.id: of(claim, figure, known) for claim in figure.claims}
    return {name: robustness for name, robustness in judged.items() if robustness is not None}


def of(claim: Claim, figure: Figure, known: judge.Known) -> Robustness | None:
    """Return the robustness of a claim on these results, None where its leading reading cannot be judged."""
    if claim.inapplicable:
        return None
    reader = judge.Reader.of(claim, figure, known)
    listed, total = readings.of(claim, {panel.id: panel for panel in figure.panels}, reader.trials)
    answers = [answer for reading in listed if (answer := _answer(reading, reader, figure)) is not None]
    if not answers or answers[0].reading is not listed[0]:
        return None
    return classes.classify(answers, len(listed) - len(answers), total)


def _answer(reading: Reading, leading: judge.Reader, figure: Figure) -> Answer | None:
    """Return the answer of one reading. leading : a reader of the leading one, which reads the same curves."""
    claim = dataclasses.replace(leading.claim, check=reading.check)
    try:
        reader = judge.Reader(claim, figure, leading.numbers, leading.known)
        decision = (
            judge.decide_expanded(reading.comparisons, reader) if claim.words else judge.decide(claim.check, reader)
        )
    except judge.NotTestable:
        return None
    worst = min(range(len(decision.margins)), key=lambda k: judge.rank(decision.margins[k], strict=True))
    return Answer(reading, decision.outcome, decision.margins[worst].rounded(), decision.units[worst])


# -- kept beside the results -------------------------------------------------------------------------------------------


def kept(base: Path, figure: Figure, known: Callable[[], judge.Known], results: str) -> dict[str, Robustness]:
    """Return what ``of_figure`` returns, from the file beside the results where it is current, else written there.

    base : the path of the results without suffix. known : makes what the claims read, where they have to be judged.
    results : the hash of their table.
    """
    key = _key(figure, results)
    content = kept_answers.read(base, READINGS)
    if content.get("key") == key:
        return {name: _loaded(entry) for name, entry in content["claims"].items()}
    judged = of_figure(figure, known())
    entries = {name: _stored(robustness) for name, robustness in judged.items()}
    kept_answers.write(base, READINGS, {"key": key, "claims": entries})
    return judged


def _key(figure: Figure, results: str) -> str:
    claims = [
        [c.id, c.panel, c.words or c.check, c.or_read, c.earlier, dict(c.names), c.inapplicable] for c in figure.claims
    ]
    panels = [[p.id, p.y, [[c.setting.series, c.label] for c in p.curves]] for p in figure.panels]
    text = json.dumps([results, claims, panels, program(_JUDGES), vocabulary.digest()], default=str, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


@functools.cache
def program(names: tuple[str, ...]) -> str:
    """Return a hash of these files below the package."""
    package = Path(__file__).parent.parent
    return hashlib.sha256(b"".join((package / name).read_bytes() for name in names)).hexdigest()


def _stored(robustness: Robustness) -> list[Any]:
    answers = [
        [dict(a.reading.values), a.outcome, [a.margin.value, a.margin.low, a.margin.high], a.unit]
        for a in robustness.answers
    ]
    return [robustness.unanswered, robustness.total, answers]


def _loaded(stored: list[Any]) -> Robustness:
    unanswered, total, answers = stored
    return classes.classify(
        [Answer(Reading(values, ()), outcome, Interval(*margin), unit) for values, outcome, margin, unit in answers],
        unanswered,
        total,
    )
