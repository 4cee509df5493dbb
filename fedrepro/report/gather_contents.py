"""Gather the contents of the report from specs, results and discrepancies."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from fedrepro.claims import evidence, judge, robustness, sentences, written_before
from fedrepro.claims.classes import Robustness
from fedrepro.errors import UserError
from fedrepro.plotting.series import FigureData
from fedrepro.report.contents import LENT, Report, Section
from fedrepro.report.effects import Measured, measure
from fedrepro.report.published import published
from fedrepro.results import checks, read, receipts, staleness
from fedrepro.results.checks import Check
from fedrepro.results.schema import Sidecar
from fedrepro.runs.storage.validity import validity
from fedrepro.spec import discrepancies, nodes
from fedrepro.spec.discrepancies import Discrepancy, Effect
from fedrepro.spec.find import Selected, stored_under
from fedrepro.spec.model import Figure
from fedrepro.spec.read import load
from fedrepro.spec.tiers import BEST, TIERS

BEST_FIRST = TIERS[::-1]
VERDICTS = evidence.VERDICTS

Effects = list[tuple[str, int, Measured]]
"""Measured effects, each with the id of its discrepancy and its number there."""


def report(sections: Iterable[Section], rows: Sequence[Discrepancy], effects: Effects) -> Report:
    """Return the report of these sections, discrepancies and effects."""
    ordered = sorted(effects, key=lambda effect: effect[1])
    by_row: dict[str, tuple[Measured, ...]] = {}
    for owner, _, measured in ordered:
        by_row[owner] = (*by_row.get(owner, ()), measured)
    return Report(tuple(sorted(sections, key=_place)), tuple(rows), by_row)


def effects_in(section: Section, rows: Iterable[Discrepancy]) -> Effects:
    """Return the effects of discrepancies that are measured in a section's results."""
    source = section.source
    if source is None:
        return []
    return [
        (row.id, number, _measured(effect, source))
        for row in rows
        for number, effect in enumerate(row.effects)
        if effect.figure == section.name
    ]


def _place(section: Section) -> tuple[int, str, bool, list[tuple[int, str]]]:
    """Return a key that sorts by paper, then figures by number (fig3 before fig10, figS1 after), then tables."""
    parts = re.findall(r"\d+|\D+", section.figure.figure)
    number = [(int(part), "") if part.isdigit() else (0, part) for part in parts]
    paper = section.figure.paper
    return discrepancies.order(paper), paper, section.figure.figure.startswith("table"), number


def _measured(effect: Effect, source: FigureData) -> Measured:
    try:
        return measure(effect, source)
    except UserError as error:  # a tier or a --set option may have removed the curves
        return Measured(effect.figure, source.figure.tier, f"cannot be read from these results: {error}")


@dataclasses.dataclass(frozen=True)
class Verdicts:
    """The verdicts on a figure's claims.

    has_results : whether it has any results to judge. claims : how many claims its spec has. stale : by tier, what has
    changed since the results that verdicts are from were computed. numbers : for each claim that failed, one sentence
    with what its check compares.
    """

    path: Path
    name: str
    rows: tuple[judge.Row, ...]
    has_results: bool
    claims: int
    stale: Mapping[str, tuple[str, ...]]
    numbers: Mapping[str, str] = dataclasses.field(default_factory=dict)


FAILED = (evidence.NOT_REPRODUCED, evidence.FAILS, evidence.AGAINST_FIGURE)
"""The verdicts on a claim whose check fails."""


def verdicts(selected: Selected, tier: str, root: Path, sets: Sequence[str] = ()) -> Verdicts:
    """Return only the verdicts on the selected claims of a figure, for results with these options."""
    path = selected.path
    sources = [_source(path, t, root, sets) for t in _wanted(tier) if read.has_results(path, t, root, sets)]
    if not sources:
        root_node = nodes.read(path)
        claims = root_node.get("claims")
        number = len(claims.value) if claims is not None and isinstance(claims.value, list) else 0
        return Verdicts(path, "/".join(stored_under(root_node)), (), False, number, {})
    figure = sources[0].figure
    rows = _best(sources, root)
    rows = tuple(row for row in rows if not selected.claims or row.claim.id in selected.claims)
    judged = {row.tier for row in rows}
    reasons = {s.figure.tier: staleness.stale(s.figure, s.sidecar, root) for s in sources if s.figure.tier in judged}
    stale = {name: why for name, why in reasons.items() if why}
    read_from = {source.figure.tier: source for source in sources}
    failed = [(row, read_from[row.tier]) for row in rows if row.verdict in FAILED]
    numbers = {row.claim.id: sentences.sentence(row.claim, source.figure, source.known) for row, source in failed}
    return Verdicts(path, figure.name, rows, True, len(figure.claims), stale, numbers)


def _wanted(tier: str) -> tuple[str, ...]:
    return BEST_FIRST[:2] if tier == BEST else (tier,)


def section(path: Path, tier: str, root: Path) -> Section:
    """Return the section of one figure."""
    wanted = _wanted(tier)
    available = [t for t in BEST_FIRST if read.has_results(path, t, root)]
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
        return Section(path, figure, None, rows, tuple(damaged), tiers=tuple(available))
    source = sources[0]
    rows = _best(sources, root)
    shown = [s for s in sources if s is source or s.figure.tier in {row.tier for row in rows}]
    last = {s.figure.tier: staleness.last_check(s.figure, s.sidecar, root) for s in shown}
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
        recomputed([path], source.figure.tier, root),
        _file(source.figure, root),
    )


def _file(figure: Figure, root: Path) -> str:
    """Return the path of a figure's CSV, with the suffix that it has, from the project's folder on."""
    stored = read.results_file(read.stem(root, figure))
    return (read.stem(Path("results"), figure).parent / stored.name).as_posix() if stored is not None else ""


def recomputed(paths: Iterable[Path], tier: str, root: Path) -> str:
    """Return in words what the kept receipts say about the runs of these figures; '' without a receipt of them."""
    kept = receipts.in_folder(receipts.folder(root))
    if not kept:
        return ""
    runs: set[str] = set()
    for path in paths:
        paper, name = stored_under(nodes.read(path))
        for base in (read.place(root, t, paper, name, (), path) for t in _wanted(tier)):
            runs |= _identities(read.read_sidecar(base) or Sidecar(), checks.read(base))
    return receipts.Merged.of(kept, runs).words


def _identities(sidecar: Sidecar, check: Check | None) -> set[str]:
    """Return the identities of kept runs, with those of other code that a check confirms."""
    named = {run for runs in sidecar.runs.values() for run in runs if run}
    return named | set(check.confirmed(sidecar.csv_sha256) if check is not None else ())


def _fresh(source: FigureData, main: FigureData, check: Check | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return changes and open questions from ``validity``, with the tier if it is not that of the ``main`` results."""
    today = validity(source.figure, source.sidecar, check)
    stale, unchecked = today.changed, today.undecidable
    where = "" if source is main else LENT.format(tier=source.figure.tier)
    return tuple(where + why for why in stale), tuple(where + why for why in unchecked)


def _source(path: Path, tier: str, root: Path, sets: Sequence[str] = ()) -> FigureData:
    ((figure, frame, sidecar),) = read.with_results([path], tier, root, True, sets)
    return FigureData(figure, frame, sidecar, read.points(read.stem(root, figure), sidecar))


def _best(sources: Sequence[FigureData], root: Path) -> tuple[judge.Row, ...]:
    """Return the row with the best evidence for every claim of the first tier; ties go to the first tier.

    Another tier is judged only if its evidence can be better, and readings only for the rows that are returned.
    """
    best = _rows(sources[0])
    for source in sources[1:]:
        if any(_rank(row.level) > _rank(source.figure.tier) for row in best.values()):
            own = _rows(source)
            best |= {name: own[name] for name in best.keys() & own if _rank(own[name].level) < _rank(best[name].level)}
    for source in sources:
        if chosen := {name: row for name, row in best.items() if row.tier == source.figure.tier}:
            judged = _readings(source, root)
            best |= {name: dataclasses.replace(row, robustness=judged.get(name)) for name, row in chosen.items()}
    return tuple(best[claim.id] for claim in sources[0].figure.claims)


def _rank(level: str) -> int:
    """Return the place of a level of evidence; a tier has the name of the best level that its results can have."""
    return evidence.LEVELS.index(level)


def _rows(source: FigureData) -> dict[str, judge.Row]:
    rows = judge.table(source.figure, source.frame, source.sidecar, source.known)
    states = written_before.of_figure(source.figure, source.sidecar)
    return {row.claim.id: dataclasses.replace(_explained(row, source), precedence=states[row.claim.id]) for row in rows}


def _readings(source: FigureData, root: Path) -> dict[str, Robustness]:
    """Return the answers of all readings; the table of the results was compared with its hash when it was read.

    Answers on the first trials alone (``--set trials=N``) are not kept: they would replace those on all trials.
    """
    if source.figure.trials_are_set:
        return robustness.of_figure(source.figure, source.known)
    base = read.stem(root, source.figure)
    table = read.results_file(base)
    written = source.sidecar.csv_sha256 or (read.content_hash(table) if table else "")
    return robustness.kept(base, source.figure, lambda: source.known, written)


def _explained(row: judge.Row, source: FigureData) -> judge.Row:
    """Return the verdict with its cause: missing data of a curve without trials, or diverging trials."""
    why = row.why
    curves = judge.curves(row.claim, source.figure)
    of_claim = {f"the dataset {curve.setting.dataset} is absent" for curve in curves}
    every = source.sidecar.missing
    missing = tuple(line for line in every if any(text in line for text in of_claim)) or every
    if row.verdict == evidence.NOT_TESTED and "no finished trials" in why and missing:
        why += f": {missing[0]}" + (f", and {len(missing) - 1} more" if len(missing) > 1 else "")
    for curve in curves:
        runs, series = source.runs, curve.setting.series
        states = [runs.status(series, trial) for trial in runs.trials(series)]
        if count := states.count("diverged"):
            why += f"; '{curve.label}' diverges in {count} of {len(states)} trials"
    return dataclasses.replace(row, why=why)
