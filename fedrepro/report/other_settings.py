"""What other values of open settings change for the claims and tables of a figure, for the pages of the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fedrepro.alternatives import kept_results, published_numbers, survey
from fedrepro.alternatives.cases import named
from fedrepro.alternatives.deciding import Deciding, Tried, called
from fedrepro.alternatives.kept_results import Numbers
from fedrepro.alternatives.published_numbers import PublishedNumber
from fedrepro.claims.classes import Robustness
from fedrepro.plotting.series import FigureData
from fedrepro.spec.discrepancies import Discrepancy


@dataclass(frozen=True)
class OtherSetting:
    """One set of other values and what it changes for a claim. turns : whether the verdict turns with it.

    values : the changes in words. change : the margin before and after, and its change with the interval.
    readings : how many readings hold, fail and are undecided, '' if there is one or not all trials were run. answers :
    those readings.
    """

    name: str
    origins: str
    values: str
    trials: int
    verdict: str
    change: str
    readings: str
    turns: bool
    answers: Robustness | None = None


@dataclass(frozen=True)
class OtherSettings:
    """What decides the verdict on a claim in words, every set of values that was run, and those that decide it."""

    words: str
    listed: tuple[OtherSetting, ...]
    evidence: tuple[str, ...] = ()


def of_figure(
    source: FigureData | None, rows: Sequence[Discrepancy], root: Path
) -> tuple[Mapping[str, OtherSettings], list[PublishedNumber]]:
    """Return what other settings change for each claim of a figure, and for the published numbers of its tables.

    Both are empty if no other settings have been run.
    """
    names = kept_results.names(source.figure, root) if source is not None else []
    if source is None or not names:
        return {}, []
    own = Numbers(source.figure, source.frame, source.sidecar, source.known)
    cases = named(source.figure, rows, names)
    decided = survey.decided([(own, cases)], rows, root, readings=True)
    claims = {
        one.row.claim.id: OtherSettings(one.words, tuple(_listed(one)), one.evidence) for one in decided if one.tried
    }
    return claims, published_numbers.beside(own, cases, root)


def _listed(decided: Deciding) -> list[OtherSetting]:
    turning = decided.turns
    return [_setting(tried, tried in turning) for tried in decided.tried]


def _setting(tried: Tried, turns: bool) -> OtherSetting:
    case, effect = tried.case, tried.effect
    return OtherSetting(
        name=case.name,
        origins=" and ".join(tried.origins),
        values="; ".join(map(str, case.alternatives)),
        trials=effect.trials,
        verdict=called(effect.after.verdict, case, effect),
        change=effect.shift.words if effect.shift is not None else "",
        readings=effect.readings_in_words,
        turns=turns,
        answers=effect.readings,
    )
