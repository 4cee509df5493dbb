"""The map of a verdict: what a check says at every reading of its words and under every setting that was run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fedrepro.claims.classes import SINGULAR, Robustness
from fedrepro.lexicon.vocabulary import short_name, value_in_words
from fedrepro.report.other_settings import OtherSetting
from fedrepro.spec import readings
from fedrepro.spec.readings import Reading

OWN = "the figure's own values"
LEADING = "leading reading"


@dataclass(frozen=True)
class Grid:
    """Readings by settings. columns : names of the settings. rows : each reading in words, with its outcomes."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]


def grid(own: Robustness | None, settings: Sequence[OtherSetting]) -> Grid | None:
    """Return the map of a claim, None without a setting whose readings were judged, or with one reading.

    own : the answers with the figure's own values.
    """
    judged = [setting for setting in settings if setting.answers is not None]
    if own is None or not judged or len(own.answers) < 2:
        return None
    columns = [_by_reading(own), *(_by_reading(setting.answers) for setting in judged)]
    rows = [
        (_in_words(answer.reading, own), tuple(column.get(_key(answer.reading), "") for column in columns))
        for answer in own.answers
    ]
    return Grid((OWN, *(setting.name for setting in judged)), tuple(rows))


def _by_reading(robustness: Robustness | None) -> dict[str, str]:
    answers = robustness.answers if robustness is not None else ()
    return {_key(answer.reading): SINGULAR[answer.outcome] for answer in answers}


def _key(reading: Reading) -> str:
    return repr(sorted(reading.values.items()))


def _in_words(reading: Reading, own: Robustness) -> str:
    """Return in what a reading differs from the leading one."""
    leading = own.answers[0].reading.values
    names = [*readings.differences(reading.values, leading), *(name for name in reading.values if name not in leading)]
    return ", ".join(f"{short_name(name)} = {value_in_words(name, reading.values[name])}" for name in names) or LEADING
