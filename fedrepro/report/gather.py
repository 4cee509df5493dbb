"""The content of the report as data: the discrepancies, and one section per figure with its claims and numbers."""

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
    """One figure: its results at one tier (``source`` is None without results) and its verdicts.

    Every claim has the verdict with the best evidence of the requested tiers. stale : what has changed since the
    results were computed, and which results are damaged. unchecked : why changes cannot be detected. others : the
    results of other tiers that verdicts are from.
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
        """Return the results that a claim's verdict is from."""
        sources = (s for s in (self.source, *self.others) if s is not None and s.figure.tier == row.tier)
        return next(sources, None) if row.level != evidence.NONE else None

    def in_short(self) -> Section:
        """Return the section without its measurements: all that its pages need besides what ``prepare`` makes."""
        short = self.source.in_short() if self.source is not None else None
        return dataclasses.replace(self, source=short, others=tuple(source.in_short() for source in self.others))

    def is_stale(self, row: judge.Row) -> bool:
        """Return whether something has changed since the results of a claim's verdict were computed."""
        own = self.source is not None and self.source.figure.tier == row.tier
        lent = LENT.format(tier=row.tier)
        return any(why.startswith(lent) or (own and LENT_WORDS not in why) for why in self.stale)

    @property
    def name(self) -> str:
        """``paper/figure``."""
        return f"{self.figure.paper}/{self.figure.figure}"

    def count(self, verdict: str) -> int:
        """Return how many of its claims have this verdict."""
        return sum(row.verdict == verdict for row in self.claims)


@dataclass(frozen=True)
class Report:
    """All sections, the discrepancies, and the measured effects by the id of their discrepancy."""

    sections: tuple[Section, ...]
    discrepancies: tuple[Discrepancy, ...]
    effects: Mapping[str, tuple[Measured, ...]]

    def count(self, verdict: str) -> int:
        """Return how many claims of all figures have this verdict."""
        return sum(section.count(verdict) for section in self.sections)

    def at_level(self, level: str, verdict: str | None = None) -> int:
        """Return how many claims have this level of evidence, and the verdict if it is given."""
        rows = (row for section in self.sections for row in section.claims if row.level == level)
        return sum(verdict in (None, row.verdict) for row in rows)

    def touching(self, name: str) -> list[Discrepancy]:
        """Return the discrepancies that concern a figure."""
        return [row for row in self.discrepancies if name in row.figures]


def gather(paths: Iterable[Path], tier: str, root: Path, experiments: Path) -> Report:
    """Return the report on all specs: at ``tier``, or with ``best`` at the paper tier if possible, else at quick."""
    rows = tuple(discrepancies.load_all(experiments))
    sections = [section(path, tier, root) for path in paths]
    return report(sections, rows, [measured(figure, effects_of(rows)) for figure in sections])


Effects = Mapping[tuple[str, int], Effect]
"""Effects by the id of their discrepancy and their number there."""


def effects_of(rows: Iterable[Discrepancy]) -> Effects:
    """Return all effects of discrepancies."""
    return {(row.id, number): effect for row in rows for number, effect in enumerate(row.effects)}


def report(
    sections: Iterable[Section],
    rows: tuple[Discrepancy, ...],
    effects: Iterable[Mapping[tuple[str, int], Measured]],
) -> Report:
    """Return the report of these sections. effects : the effects measured in the results of each."""
    by_place = {place: effect for own in effects for place, effect in own.items()}
    by_row = {row.id: tuple(by_place[at] for at in effects_of([row]) if at in by_place) for row in rows}
    return Report(tuple(sorted(sections, key=_place)), rows, by_row)


def measured(section: Section, effects: Effects) -> dict[tuple[str, int], Measured]:
    """Return the effects that are measured in a section's results."""
    source = section.source
    if source is None:
        return {}
    return {at: _measured(effect, source) for at, effect in effects.items() if effect.figure == section.name}


def _place(section: Section) -> tuple[int, bool, list[tuple[int, str]]]:
    """Return a key that sorts by paper, then figures by number (fig3 before fig10, figS1 after), then tables."""
    parts = re.findall(r"\d+|\D+", section.figure.figure)
    number = [(int(part), "") if part.isdigit() else (0, part) for part in parts]
    return discrepancies.order(section.figure.paper), section.figure.figure.startswith("table"), number


def _measured(effect: Effect, source: FigureData) -> Measured:
    try:
        return measure(effect, source)
    except UserError as error:  # a tier or a --set option may have removed the curves
        return Measured(effect.figure, source.figure.tier, f"cannot be read from these results: {error}")


def verdicts(path: Path, tier: str, root: Path, sets: Sequence[str] = ()) -> tuple[judge.Row, ...]:
    """Return only the verdicts on a figure's claims, for results with these options; () without results."""
    sources = [_source(path, t, root, sets) for t in _wanted(tier) if _has(path, t, root, sets)]
    return _best([_rows(source) for source in sources], sources[0].figure.claims) if sources else ()


def has_results(path: Path, tier: str, root: Path, sets: Sequence[str] = ()) -> bool:
    """Return whether a figure has any results to judge."""
    return any(_has(path, t, root, sets) for t in _wanted(tier))


def _wanted(tier: str) -> tuple[str, ...]:
    return BEST_FIRST[:2] if tier == BEST else (tier,)


def section(path: Path, tier: str, root: Path) -> Section:
    """Return the section of one figure."""
    wanted = _wanted(tier)
    available = [t for t in BEST_FIRST if _has(path, t, root)]
    sources: list[FigureData] = []
    damaged: list[str] = []
    for name in wanted:
        try:
            sources += [_source(path, name, root)] if name in available else []
        except read.Damaged as error:
            damaged.append(str(error))
    if not sources:
        figure = load(path, wanted[0])
        why = damaged[0] if damaged else f"no results at the {' or the '.join(wanted)} tier"
        rows = tuple(judge.untested(claim, figure, why) for claim in figure.claims)
        return Section(path, figure, None, rows, tuple(damaged), (), (), tuple(available))
    source = sources[0]
    rows = _best([_rows(s) for s in sources], source.figure.claims)
    shown = [s for s in sources if s is source or s.figure.tier in {row.tier for row in rows}]
    last = {s.figure.tier: _check(s, root) for s in shown}
    fresh = [_fresh(s, source, last[s.figure.tier]) for s in shown]
    stale, unchecked = (sum(reasons, ()) for reasons in zip(*fresh, strict=True))
    return Section(
        path,
        source.figure,
        source,
        rows,
        (*damaged, *stale),
        unchecked,
        tuple(published(source)),
        tuple(available),
        last[source.figure.tier],
        tuple(shown[1:]),
    )


def _check(source: FigureData, root: Path) -> Check | None:
    """Return the last check of exactly these results, or None."""
    check = checks.read(read.stem(root, source.figure))
    return check if check is not None and check.results == source.sidecar.csv_sha256 else None


def _fresh(source: FigureData, main: FigureData, check: Check | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return changes and open questions from ``validity``, with the tier if it is not that of the ``main`` results."""
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
    """Return, for every claim of the first tier, the row with the best evidence; ties go to the first tier."""
    return tuple(
        min((rows[claim.id] for rows in tiers if claim.id in rows), key=lambda row: evidence.LEVELS.index(row.level))
        for claim in claims
    )


def _has(path: Path, tier: str, root: Path, sets: Sequence[str] = ()) -> bool:
    paper, name = stored_under(nodes.read(path))
    return read.results_file(read.place(root, tier, paper, name, sets, path)) is not None


def _explained(row: judge.Row, source: FigureData, diverged: Mapping[str, int]) -> judge.Row:
    """Return the verdict with its cause: missing data of a curve without trials, or diverging trials.

    diverged : number of diverged trials by series.
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
