"""What other values change for a claim: the paired change of its margins over the same trials, with an interval."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from fedrepro.alternatives.kept_results import Numbers
from fedrepro.claims import intervals, judge
from fedrepro.claims.classes import ONE, PLURAL, Robustness
from fedrepro.claims.intervals import Interval, jackknife
from fedrepro.claims.judge import Comparison, NotTestable, Reader, Row
from fedrepro.spec import claim_grammar
from fedrepro.spec.model import Claim

ENOUGH = 0.5
"""A change moves a margin if it exceeds this share of the half width of the margin's interval."""


@dataclass(frozen=True)
class Shift:
    """The margin of one comparison of a claim before and after, and its change, over the same trials.

    before, after, change : at the place on the curves (of several rounds) that decides with our values; with the other
    values, if their margin is lower. decides : the margin after at the place that decides then. turned : how many of
    the trials turn by themselves in the same direction as the margin, and how many there are; None if the change is a
    finite number.
    """

    comparison: int
    unit: str
    before: Interval
    after: Interval
    change: Interval
    decides: Interval
    strict: bool
    turned: tuple[int, int] | None = None

    @property
    def words(self) -> str:
        """The margin before and after, and its change with the interval, which one trial does not have.

        A margin is infinite if a curve never reaches the level, or diverges. Then its change is not a number, and
        the trials that turn are counted instead, with the exact interval of their share.
        """
        unit = f" {self.unit}" if self.unit else ""
        if not np.isfinite(self.change.value):
            before, after = (_value(margin.value, unit) for margin in (self.before, self.after))
            text = f"margin {before}, before and after" if before == after else f"margin {before} -> {after}"
            if self.turned is not None:
                text += f"; {share_in_words(*self.turned)}"
        else:
            change = f"{self.change.value:+.3g}"
            if self.change.low < self.change.high:
                change += f" [{self.change.low:+.3g}, {self.change.high:+.3g}]"
            text = f"margin {self.before.value:.3g} -> {self.after.value:.3g}{unit}, change {change}"
        if self.decides == self.after:
            return text
        return f"{text}; with the other values, another round decides (margin {_value(self.decides.value, '')})"

    @property
    def certain(self) -> bool:
        """Whether the interval of the change excludes 0. An infinite margin has to become finite or change sign."""
        if not np.isfinite(self.change.value):
            return not np.isnan([self.before.value, self.after.value]).any() and self.before.value != self.after.value
        return not self.change.low <= 0.0 <= self.change.high

    @property
    def moves(self) -> bool:
        """Whether the change exceeds a share of the half width of the margin's interval before."""
        half = (self.before.high - self.before.low) / 2
        return bool(np.isnan(self.change.value) or abs(self.change.value) > ENOUGH * half)


@dataclass(frozen=True)
class Verdict:
    """A verdict and the level of its evidence."""

    verdict: str
    level: str

    @classmethod
    def of(cls, row: Row) -> Verdict:
        """Return those of a row."""
        return cls(row.verdict, row.level)


@dataclass(frozen=True)
class Effect:
    """The verdict on a claim before and after, over the same trials, and the shift of each of its comparisons.

    readings : the answers of all readings of its words after, None where they were not judged.
    """

    claim: Claim
    before: Verdict
    after: Verdict
    trials: int
    shifts: tuple[Shift, ...]
    readings: Robustness | None = None

    @property
    def readings_in_words(self) -> str:
        """How many readings hold, fail and are undecided after; '' for a claim with one reading."""
        if self.readings is None or self.readings.kind == ONE:
            return ""
        counts = [f"{count} {PLURAL[outcome]}" for outcome, count in self.readings.counts.items() if count]
        return f"of {len(self.readings.answers)} readings {', '.join(counts)}"

    @property
    def shift(self) -> Shift | None:
        """The shift of the comparison that decides now or, if the verdict changes, that is lowest before or after."""
        turned = self.before.verdict != self.after.verdict

        def lowest(shift: Shift) -> tuple[int, float]:
            margins = (shift.before, shift.decides) if turned else (shift.before,)
            return min(judge.rank(margin, shift.strict) for margin in margins)

        return min(self.shifts, key=lowest, default=None)

    @property
    def changes(self) -> bool:
        """Whether the margin that decides changes by more than its uncertainty."""
        return self.shift is not None and self.shift.certain

    @property
    def moves(self) -> bool:
        """Whether a margin moves."""
        return any(shift.moves for shift in self.shifts)


def share_in_words(turned: int, trials: int) -> str:
    """Return how many trials turn, with the interval of their share if there are several trials."""
    if trials == 1:
        return "the only trial turns" if turned else "the only trial does not turn"
    low, high = intervals.of_share(turned, trials)
    return f"{turned} of {trials} trials turn{'s' if turned == 1 else ''} [{100 * low:.0f} %, {100 * high:.0f} %]"


def _value(margin: float, unit: str) -> str:
    """Return a margin in words, also of a curve that never reaches the level."""
    if np.isnan(margin):
        return "open (not reached before the run ends)"
    return f"{margin:.3g}{unit}" if np.isfinite(margin) else f"{'' if margin > 0 else '-'}infinite (never reached)"


def effect(claim: Claim, own: Numbers, other: Numbers) -> Effect:
    """Return what changes for a claim from a figure's own numbers to the other ones, on the trials that both have."""
    trials = sorted(set(_trials(claim, own)) & set(_trials(claim, other)))
    pair = (own.over(trials), other.over(trials))
    before, after = (Verdict.of(_judged(claim, numbers)) for numbers in pair)
    return Effect(claim, before, after, len(trials), tuple(_shifts(claim, *pair)) if trials else ())


def _judged(claim: Claim, n: Numbers) -> Row:
    if claim.id not in n.judged:
        n.judged[claim.id] = judge.judge(claim, n.figure, n.frame, n.sidecar, n.known)
    return n.judged[claim.id]


def _trials(claim: Claim, numbers: Numbers) -> list[int]:
    return [int(number) for number in Reader.of(claim, numbers.figure, numbers.known).numbers]


def _shifts(claim: Claim, own: Numbers, other: Numbers) -> list[Shift]:
    """Return the shift of every comparison; none if one cannot be read."""
    readers = Reader.of(claim, own.figure, own.known), Reader.of(claim, other.figure, other.known)
    try:
        compared = list(judge.comparisons(claim_grammar.parse(claim.check).body))
        return [_shift(number, comparison, *readers, own.margins) for number, comparison in enumerate(compared)]
    except NotTestable:
        return []


def _shift(
    number: int, comparison: Comparison, own: Reader, other: Reader, known: dict[tuple[str, int], list[Interval]]
) -> Shift:
    """Return the shift of one comparison. known : margins before, by claim and number of the comparison."""
    trials = own.trials

    def margins(reader: Reader, chosen: np.ndarray) -> np.ndarray:
        if comparison.alone:
            each = [_margin(comparison, reader, np.array([trial])) for trial in chosen]
            return np.asarray(np.mean(each, axis=0))
        return _margin(comparison, reader, chosen)

    def change(chosen: np.ndarray) -> np.ndarray:
        before, after = margins(own, chosen), margins(other, chosen)
        with np.errstate(invalid="ignore"):
            return after - before if before.size == after.size else after.min(keepdims=True) - before.min(keepdims=True)

    key = (own.claim.id, number)
    if key not in known:
        known[key] = jackknife(functools.partial(margins, own), trials)
    before = known[key]
    after = jackknife(functools.partial(margins, other), trials)
    changes = jackknife(change, trials)
    strict = comparison.strict
    place, decides = (min(range(len(at)), key=lambda k: judge.rank(at[k], strict)) for at in (before, after))
    alike = len(after) == len(before)
    if alike and judge.rank(after[decides], strict) < judge.rank(before[place], strict):
        place = decides  # what decides is where the other values are worse
    last = place if alike else decides
    unit = judge.unit_of(comparison, own)
    change_there = changes[min(place, len(changes) - 1)]
    turned = None
    if not np.isfinite(change_there.value):
        turned = (_turned(comparison, own, other, falls=after[decides].value < before[place].value), trials)
    there = after[last].rounded()
    deciding = there if last == decides else after[decides].rounded()
    return Shift(number, unit, before[place].rounded(), there, change_there.rounded(), deciding, strict, turned)


def _turned(comparison: Comparison, own: Reader, other: Reader, falls: bool) -> int:
    """Return how many trials give one answer with our values and the opposite one with the other values.

    falls : count those that hold with our values, otherwise those that fail.
    """

    def margin(reader: Reader, trial: int) -> float:
        return float(_margin(comparison, reader, np.array([trial])).min())  # NaN if any is

    pairs = [(margin(own, trial), margin(other, trial)) for trial in range(own.trials)]
    return sum(after < 0 < before if falls else before < 0 < after for before, after in pairs)


def _margin(comparison: Comparison, reader: Reader, chosen: np.ndarray) -> np.ndarray:
    """Return the margins at all places, averaged over these trials."""
    reader.chosen = chosen
    return comparison.margin(reader)
