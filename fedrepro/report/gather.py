"""Everything the report says, as data: the discrepancies, and one section a figure with its claims and numbers."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fedrepro.claims import evidence, judge
from fedrepro.errors import UserError
from fedrepro.plotting.series import FigureData
from fedrepro.report import discrepancies
from fedrepro.report.discrepancies import Discrepancy, Effect
from fedrepro.report.effects import Measured, measure
from fedrepro.report.published import Published, published
from fedrepro.results import checks, read
from fedrepro.results.checks import Check
from fedrepro.runs.storage.validity import validity
from fedrepro.spec import nodes
from fedrepro.spec.find import stored_under
from fedrepro.spec.model import Claim, Figure
from fedrepro.spec.read import load
from fedrepro.spec.tiers import TIERS

BEST = "best"
BEST_FIRST = TIERS[::-1]
VERDICTS = evidence.VERDICTS
LENT_WORDS = "tier, of which verdicts are shown: "
LENT = "the {tier} " + LENT_WORDS


@dataclass(frozen=True)
class Section:
    """One figure: its results at one tier (``source`` is None where there are none) and what follows from them.

    Of every claim stands the verdict on the best evidence of the tiers that were asked for. ``stale`` says what changed
    since the results were computed, also of those of another tier that a verdict is from, and which results are not
    used, as they are not those that were written; ``unchecked`` why that cannot be told. ``others``: the results of
    other tiers that verdicts are from.
    """

    path: Path
    figure: Figure
    source: FigureData | None
    claims: tuple[judge.Row, ...]
    stale: tuple[str, ...]
    unchecked: tuple[str, ...]
    published: tuple[Published, ...]
    tiers: tuple[str, ...]
    check: Check | None = None
    others: tuple[FigureData, ...] = ()

    def read_from(self, row: judge.Row) -> FigureData | None:
        """The results that a claim's verdict was read off."""
        found = (one for one in (self.source, *self.others) if one is not None and one.figure.tier == row.tier)
        return next(found, None) if row.level != evidence.NONE else None

    def in_short(self) -> Section:
        """The section without what was measured: all that its pages are made of, beside what ``work`` prepares."""
        short = self.source.in_short() if self.source is not None else None
        return dataclasses.replace(self, source=short, others=tuple(one.in_short() for one in self.others))

    def is_stale(self, row: judge.Row) -> bool:
        """Whether something changed since the results were computed that a claim's verdict was read off."""
        own = self.source is not None and self.source.figure.tier == row.tier
        said = (
            why for why in self.stale if why.startswith(LENT.format(tier=row.tier)) or (own and LENT_WORDS not in why)
        )
        return any(True for _ in said)

    @property
    def name(self) -> str:
        """``paper/figure``."""
        return f"{self.figure.paper}/{self.figure.figure}"

    def count(self, verdict: str) -> int:
        """How many of its claims have this verdict."""
        return sum(row.verdict == verdict for row in self.claims)


@dataclass(frozen=True)
class Report:
    """All sections, the discrepancies, and by the id of each the effects measured in the sections' results."""

    sections: tuple[Section, ...]
    discrepancies: tuple[Discrepancy, ...]
    effects: Mapping[str, tuple[Measured, ...]]

    def count(self, verdict: str) -> int:
        """How many claims of all figures have this verdict."""
        return sum(section.count(verdict) for section in self.sections)

    def at_level(self, level: str, verdict: str | None = None) -> int:
        """How many claims rest on evidence of this level, or of these how many have this verdict."""
        rows = (row for section in self.sections for row in section.claims if row.level == level)
        return sum(verdict in (None, row.verdict) for row in rows)

    def touching(self, name: str) -> list[Discrepancy]:
        """The discrepancies that touch a figure."""
        return [row for row in self.discrepancies if name in row.figures]


def gather(paths: Iterable[Path], tier: str, root: Path, experiments: Path) -> Report:
    """All specs' results: at ``tier``, or with ``best`` at the paper tier where there are any, else at quick."""
    rows = tuple(discrepancies.load_all(experiments))
    sections = [section(path, tier, root) for path in paths]
    return report(sections, rows, [measured(one, effects_of(rows)) for one in sections])


Effects = Mapping[tuple[str, int], Effect]
"""Effects by the id of their discrepancy and their number in it."""


def effects_of(rows: Iterable[Discrepancy]) -> Effects:
    """All effects of discrepancies."""
    return {(row.id, number): effect for row in rows for number, effect in enumerate(row.effects)}


def report(
    sections: Iterable[Section],
    rows: tuple[Discrepancy, ...],
    effects: Iterable[Mapping[tuple[str, int], Measured]],
) -> Report:
    """The report of these sections. effects : what is measured in the results of each."""
    found = {place: one for own in effects for place, one in own.items()}
    by_row = {row.id: tuple(found[at] for at in effects_of([row]) if at in found) for row in rows}
    return Report(tuple(sorted(sections, key=_place)), rows, by_row)


def measured(section: Section, effects: Effects) -> dict[tuple[str, int], Measured]:
    """Those of the effects that are read from a section's results, and what they say."""
    source = section.source
    if source is None:
        return {}
    return {at: _measured(one, source) for at, one in effects.items() if one.figure == section.name}


def _place(section: Section) -> tuple[int, bool, list[tuple[int, str]]]:
    """Papers together, figures by number (fig3 before fig10, figS1 after), tables last."""
    parts = re.findall(r"\d+|\D+", section.figure.figure)
    number = [(int(part), "") if part.isdigit() else (0, part) for part in parts]
    return discrepancies.order(section.figure.paper), section.figure.figure.startswith("table"), number


def _measured(effect: Effect, source: FigureData) -> Measured:
    try:
        return measure(effect, source)
    except UserError as error:  # a tier or a --set option may leave out the curves
        return Measured(effect.figure, source.figure.tier, f"cannot be read from these results: {error}")


def verdicts(path: Path, tier: str, root: Path, sets: Sequence[str] = ()) -> tuple[judge.Row, ...]:
    """The verdicts on a figure's claims alone, computed with these options; none where it has no results."""
    sources = [_source(path, t, root, sets) for t in _wanted(tier) if _has(path, t, root, sets)]
    return _best([_rows(one) for one in sources], sources[0].figure.claims) if sources else ()


def has_results(path: Path, tier: str, root: Path, sets: Sequence[str] = ()) -> bool:
    """Whether a figure has any results to judge."""
    return any(_has(path, t, root, sets) for t in _wanted(tier))


def _wanted(tier: str) -> tuple[str, ...]:
    return BEST_FIRST[:2] if tier == BEST else (tier,)


def section(path: Path, tier: str, root: Path) -> Section:
    """One figure's section."""
    wanted = _wanted(tier)
    found = [t for t in BEST_FIRST if _has(path, t, root)]
    sources: list[FigureData] = []
    damaged: list[str] = []
    for one in wanted:
        try:
            sources += [_source(path, one, root)] if one in found else []
        except read.Damaged as error:
            damaged.append(str(error))
    if not sources:
        figure = load(path, wanted[0])
        why = damaged[0] if damaged else f"no results at the {' or the '.join(wanted)} tier"
        rows = tuple(judge.untested(claim, figure, why) for claim in figure.claims)
        return Section(path, figure, None, rows, tuple(damaged), (), (), tuple(found))
    source = sources[0]
    rows = _best([_rows(one) for one in sources], source.figure.claims)
    shown = [one for one in sources if one is source or one.figure.tier in {row.tier for row in rows}]
    last = {one.figure.tier: _check(one, root) for one in shown}
    fresh = [_fresh(one, source, last[one.figure.tier]) for one in shown]
    stale, unchecked = (sum(said, ()) for said in zip(*fresh, strict=True))
    return Section(
        path,
        source.figure,
        source,
        rows,
        (*damaged, *stale),
        unchecked,
        tuple(published(source)),
        tuple(found),
        last[source.figure.tier],
        tuple(shown[1:]),
    )


def _check(source: FigureData, root: Path) -> Check | None:
    """The last check of these very results; one of earlier results says nothing of them."""
    found = checks.read(read.stem(root, source.figure))
    return found if found is not None and found.results == source.sidecar.csv_sha256 else None


def _fresh(source: FigureData, main: FigureData, check: Check | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What ``validity`` says of results, with their tier where it is not that of the ``main`` ones."""
    today = validity(source.figure, source.sidecar, check)
    stale, unchecked = today.changed, today.undecidable
    where = "" if source is main else LENT.format(tier=source.figure.tier)
    return tuple(where + why for why in stale), tuple(where + why for why in unchecked)


def _source(path: Path, tier: str, root: Path, sets: Sequence[str] = ()) -> FigureData:
    ((figure, frame, sidecar),) = read.with_results([path], tier, root, True, sets)
    return FigureData(figure, frame, sidecar, read.points(read.stem(root, figure), sidecar))


def _rows(source: FigureData) -> dict[str, judge.Row]:
    rows = judge.table(source.figure, source.frame, source.sidecar, source.known)
    runs = source.runs
    diverged = {s: sum(runs.status(s, trial) == "diverged" for trial in runs.trials(s)) for s in runs.series()}
    return {row.claim.id: _explained(row, source, diverged) for row in rows}


def _best(tiers: list[dict[str, judge.Row]], claims: Iterable[Claim]) -> tuple[judge.Row, ...]:
    """Of every claim of the first tier the row with the best evidence; the first tier's where they are equal."""
    return tuple(
        min((rows[claim.id] for rows in tiers if claim.id in rows), key=lambda row: evidence.LEVELS.index(row.level))
        for claim in claims
    )


def _has(path: Path, tier: str, root: Path, sets: Sequence[str] = ()) -> bool:
    paper, name = stored_under(nodes.read(path))
    return read.results_file(read.place(root, tier, paper, name, sets, path)) is not None


def _explained(row: judge.Row, source: FigureData, diverged: Mapping[str, int]) -> judge.Row:
    """The verdict, with what is behind it: data that are missing where a curve has none, trials that diverge.

    diverged : by series, how many trials.
    """
    why = row.why
    missing = source.sidecar.missing
    if row.verdict == evidence.NOT_TESTED and "no finished trials" in why and missing:
        why += f": {missing[0]}" + (f", and {len(missing) - 1} more" if len(missing) > 1 else "")
    for curve in judge.curves(row.claim, source.figure):
        count = diverged.get(curve.setting.series, 0)
        if count:
            trials = len(source.runs.trials(curve.setting.series))
            why += f"; '{curve.label}' diverges in {count} of {trials} trials"
    return dataclasses.replace(row, why=why)
