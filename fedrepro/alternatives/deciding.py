"""What decides the verdict on a claim: the settings, of those that were tried, under which it is another one.

A setting is a cause only if the verdict turns with it over the same trials and the interval of the margin's change
excludes zero. One trial of several has no interval and turns nothing: what it shows is a hint. Where neither our value
nor the one that turns the verdict is printed, the claim is under-specified: the paper leaves open what would decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from fedrepro.alternatives.apply import applies
from fedrepro.alternatives.cases import TOGETHER, Case
from fedrepro.alternatives.paired import Effect
from fedrepro.claims import evidence, judge
from fedrepro.claims.judge import Row
from fedrepro.errors import counted
from fedrepro.spec import claim_grammar
from fedrepro.spec.discrepancies import Change, Discrepancy

HELD, FAILED, OPEN = "holds", "fails", "is within noise"
OUTCOME: Mapping[str, str] = {
    evidence.REPRODUCED: HELD,
    evidence.HOLDS: HELD,
    evidence.NOT_REPRODUCED: FAILED,
    evidence.FAILS: FAILED,
    evidence.AGAINST_FIGURE: FAILED,
    evidence.NOISE: OPEN,
    evidence.UNDECIDED: OPEN,
}
"""What a verdict says, at any level of evidence."""


WEAKER: Mapping[str, str] = {
    **dict(zip(evidence.FULL, evidence.LESS, strict=True)),
    evidence.AGAINST_FIGURE: evidence.FAILS,
}
"""The verdicts on weaker evidence that say the same."""


def called(verdict: str, case: Case, effect: Effect) -> str:
    """Return what a verdict of an effect is called, in weaker words if the claim asks for more trials than compared."""
    asked = (case.figure.trials_of(c.setting.series) for c in judge.curves(effect.claim, case.figure))
    return WEAKER.get(verdict, verdict) if effect.trials < max(asked, default=0) else verdict


@dataclass(frozen=True)
class Tried:
    """A case and what it changes for one claim."""

    case: Case
    effect: Effect

    @property
    def outcome(self) -> str:
        """What the verdict under the other values says, '' if the claim could not be tested."""
        return OUTCOME.get(self.effect.after.verdict, "")

    @property
    def before(self) -> str:
        """What the verdict under our values says, over the same trials."""
        return OUTCOME.get(self.effect.before.verdict, "")

    @property
    def clear(self) -> bool:
        """Whether the interval of the margin's change excludes zero; where the margin cannot be read, both decide."""
        return self.effect.changes or (self.effect.shift is None and self.before != OPEN)

    @property
    def turns(self) -> bool:
        """Whether the other values give a verdict that our values do not give over the same trials, and it is clear."""
        opposite = {HELD: FAILED, FAILED: HELD}.get(self.outcome)
        return opposite is not None and self.before in (opposite, OPEN) and self.clear

    @property
    def single(self) -> bool:
        """Whether one trial was run of several."""
        return self.effect.trials == 1 < self.case.figure.trials

    @property
    def origins(self) -> list[str]:
        """The origins of the other values, each once."""
        return list(dict.fromkeys(alternative.origin for alternative in self.case.alternatives))


@dataclass(frozen=True)
class Deciding:
    """The verdict on a claim under all settings that were tried.

    row : with the figure's own values. tried : every case with results. topics : what the paper leaves open, of the
    settings that turn the verdict. untried : number of single values that change a curve that the claim reads, 0
    if a case was tried.
    """

    row: Row
    tried: tuple[Tried, ...]
    topics: tuple[str, ...] = ()
    untried: int = 0

    @property
    def outcome(self) -> str:
        """What the verdict with the figure's own values says."""
        return OUTCOME.get(self.row.verdict, "")

    @property
    def turns(self) -> list[Tried]:
        """The cases that turn the verdict; for one within noise, those that decide it."""
        return [tried for tried in self._turned if not tried.single]

    @property
    def hints(self) -> list[Tried]:
        """The cases that turn the verdict in the only trial that was run of them."""
        return [tried for tried in self._turned if tried.single]

    @property
    def _turned(self) -> list[Tried]:
        outcomes = [outcome for outcome in (HELD, FAILED) if self.outcome not in (outcome, "")]
        turned = [t for t in self.tried if t.turns]
        return [t for outcome in outcomes for t in _alone(t for t in turned if t.outcome == outcome)]

    @property
    def uncertain(self) -> list[Tried]:
        """The cases that decide otherwise than our values over the same trials, by a change that is not clear."""
        if not self.outcome:  # nothing to compare with
            return []
        decided = (t for t in self.tried if t.outcome in {HELD, FAILED} - {self.outcome} and not t.single)
        return _alone(t for t in decided if t.before != t.outcome and not t.turns)

    @property
    def answered(self) -> list[Tried]:
        """The cases that decide a claim that cannot be tested with our values."""
        return [t for t in self.tried if t.outcome in (HELD, FAILED)] if not self.outcome else []

    @property
    def loosens(self) -> list[Tried]:
        """The cases that leave a decided verdict within noise, which the same trials decide with our values."""
        if self.outcome == OPEN:
            return []
        return _alone(t for t in self.tried if t.outcome == OPEN and t.before != OPEN)

    @property
    def too_few(self) -> list[Tried]:
        """The cases whose trials decide nothing, with our values neither, although all trials do with ours."""
        return [t for t in self.tried if t.outcome == t.before == OPEN != self.outcome]

    @property
    def words(self) -> str:
        """What decides the verdict, in words."""
        outside = f"outside the theorem's conditions: {self.row.claim.outside}" if self.row.claim.outside else ""
        if not self.tried:
            return "; ".join(filter(None, (untried_in_words(self.untried), outside)))
        hint = f"in the one trial run so far it {_by_outcome(self.hints)}" if self.hints else ""
        several = [tried for tried in self.tried if tried not in self.hints]
        return "; ".join(filter(None, (self._without_hints(several) if several else "", hint, outside)))

    def _without_hints(self, tried: Sequence[Tried]) -> str:
        if not self.outcome:
            return f"not tested with our values; {_by_outcome(tried) or 'with no others either'}"
        certainty = f"; within noise with {_listed(self.loosens)}" if self.loosens else ""
        if self.uncertain:
            certainty = f"; {_by_outcome(self.uncertain)}, but the change is within noise{certainty}"
        if self.too_few:
            certainty += f"; too few trials to decide with {_counted(self.too_few, len(tried))}, as with our values"
        if not self.turns:
            open_ones = self.loosens or self.too_few or (self.outcome == HELD and self.uncertain)
            words = UNTURNED[FAILED] if open_ones else UNTURNED.get(self.outcome, UNTURNED[HELD])
            words += " with certainty" if self.uncertain else ""
            words = words.format("tried in several trials" if self.hints else "tried")
            one = sum(each.single for each in tried)
            of_them = ", in one trial" if one == len(tried) else f", {one} of them in one trial" if one else ""
            return f"{words} ({len(tried)}{of_them}){certainty}"
        parts = _by_outcome(self.turns)
        if self.outcome == HELD and all(each.outcome == FAILED and each.turns for each in self.tried):
            parts = f"only with the figure's own value; {parts}"
        text = f"turns: {parts} (of {len(self.tried)} tried){certainty}"
        return text + (f"; under-specified: the paper does not print {', '.join(self.topics)}" if self.topics else "")

    @property
    def causes(self) -> tuple[str, ...]:
        """Each setting that turns the verdict, with the change of the margin and its interval."""
        return tuple(_with_change(tried) for tried in self.turns)

    @property
    def in_one_trial(self) -> tuple[str, ...]:
        """Each setting that turns the verdict in its one trial, with the change of the margin."""
        return tuple(_with_change(tried) for tried in self.hints)

    @property
    def evidence(self) -> tuple[str, ...]:
        """The causes, the hints and the uncertain settings, each with what it is and the change of the margin.

        For a claim that is not tested with our values, the settings that decide it, each with its margin.
        """
        return (
            *(f"cause: {text}" for text in self.causes),
            *(f"in one trial: {text}" for text in self.in_one_trial),
            *(f"uncertain: {_with_change(tried)}" for tried in self.uncertain),
            *(f"with other values: {_with_margin(tried)}" for tried in self.answered),
        )

    @property
    def readings(self) -> list[tuple[str, str]]:
        """The cases whose readings have the same outcomes, by name or number, and these outcomes; most cases first."""
        cases: dict[str, list[str]] = {}
        for tried in self.tried:
            if words := tried.effect.readings_in_words:
                cases.setdefault(words.partition(" readings ")[2], []).append(tried.case.name)
        alike = sorted(cases.items(), key=lambda item: -len(item[1]))
        return [(", ".join(n) if len(n) <= MOST_NAMES else f"{len(n)} sets of other values", c) for c, n in alike]


def untried_in_words(number: int) -> str:
    """Return in words that no other setting has been run for a claim. number : of those that concern it."""
    if not number:
        return "no setting that the paper leaves open concerns it"
    return f"none of {number} other settings has been run" if number > 1 else "the other setting has not been run"


UNTURNED = {
    HELD: "in every setting {}",
    FAILED: "no setting {} turns it",
    OPEN: "no setting {} decides it",
}
"""What a verdict is called that no setting turns; ``{}`` is which settings were tried."""


def _alone(tried: Iterable[Tried]) -> list[Tried]:
    """Return the cases without the pairs of which a part is among them alone."""
    chosen = list(tried)
    alone = {one.case.name for one in chosen}
    return [t for t in chosen if not (len(t.case.alternatives) > 1 and {a.id for a in t.case.alternatives} & alone)]


def change_in_words(effect: Effect) -> str:
    """Return the margin of the comparison that decides, before and after, and its change; '' if it cannot be read.

    Where trials are compared alone, the change is that of their mean, which the verdict is not about.
    """
    if effect.shift is None:
        return ""
    alone = list(judge.comparisons(claim_grammar.parse(effect.claim.check).body))[effect.shift.comparison].alone
    decides = {claim_grammar.EACH: "the worst trial", claim_grammar.MEDIAN: "the median trial"}.get(alone, "")
    return f"{effect.shift.words} (means over trials; {decides} decides)" if decides else effect.shift.words


def _counted(few: Sequence[Tried], of: int) -> str:
    return "all of them" if len(few) == of > 1 else f"{len(few)} of them" if of > 1 else "it"


def _by_outcome(tried: Sequence[Tried]) -> str:
    parts = ((o, [one for one in tried if one.outcome == o]) for o in (HELD, FAILED, OPEN))
    return "; ".join(f"{outcome} with {_listed(ones)}" for outcome, ones in parts if ones)


def _with_change(tried: Tried) -> str:
    words = change_in_words(tried.effect)
    return _after(tried) + (f"; {words}" if words else "")


def _with_margin(tried: Tried) -> str:
    shift = min(tried.effect.shifts, key=lambda shift: judge.rank(shift.decides, shift.strict), default=None)
    if shift is None:
        return _after(tried)
    margin, unit = shift.decides, f" {shift.unit}" if shift.unit else ""
    interval = f" [{margin.low:.3g}, {margin.high:.3g}]" if margin.low < margin.high else ""
    return f"{_after(tried)}; margin {margin.value:.3g}{unit}{interval}"


def _after(tried: Tried) -> str:
    verdict = called(tried.effect.after.verdict, tried.case, tried.effect)
    return f"{_named(tried)}: {verdict}, {counted(tried.effect.trials, 'trial')}"


def _named(tried: Tried) -> str:
    """Return the values of a case, its origin and its name: ``Qhat = 1 (released, fedmf.16.qhat-1-syn)``."""
    together = tried.case.name.rpartition(".")[2]
    if together in TOGETHER:
        return f"all {together} values ({tried.case.name})"
    values = list(dict.fromkeys(text for change in _concerning(tried) for text in change.valued))
    if len(values) > MOST_VALUES:
        values = [f"{len(values)} other values"]
    return " ".join([", ".join(values), f"({' and '.join(tried.origins)}, {tried.case.name})"]).strip()


def _concerning(tried: Tried) -> list[Change]:
    """Return the changes of a case to curves that the claim reads; all of them if none can be attributed."""
    changes = [change for alternative in tried.case.alternatives for change in alternative.changes]
    read = {curve.setting.series for curve in judge.curves(tried.effect.claim, tried.case.figure)}
    shown = [(curve, panel) for panel in tried.case.figure.panels for curve in panel.curves]
    of_claim = [pair for pair in shown if pair[0].setting.series in read]
    return [change for change in changes if any(applies(change, *pair) for pair in of_claim)] or changes


MOST_NAMES = 4
"""More cases with equal readings are not named, but counted."""

MOST_VALUES = 3
"""Of a case with more other values only their number is named."""


def _listed(tried: Iterable[Tried]) -> str:
    return ", ".join(map(_named, tried))


def deciding(row: Row, tried: Sequence[Tried], rows: Iterable[Discrepancy], untried: int = 0) -> Deciding:
    """Return what decides the verdict on a claim.

    rows : the discrepancies, for what the paper prints. untried : see ``Deciding``.
    """
    plain = Deciding(row, tuple(tried))
    turning = {a.id for one in plain.turns if len(one.case.alternatives) == 1 for a in one.case.alternatives}
    topics = [
        discrepancy.topic
        for discrepancy in rows
        for alternative in discrepancy.alternatives
        if alternative.id in turning and discrepancy.leaves_open(alternative)
    ]
    return Deciding(row, tuple(tried), tuple(dict.fromkeys(topics)), untried)
