"""The content of the pages as plain data: words, numbers in words, and the anchors of links."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from fedrepro import registry
from fedrepro.claims import evidence, judge
from fedrepro.claims.verdict_words import MEANING, SHORT
from fedrepro.plotting.header_footer import footer, tags
from fedrepro.report.discrepancies import Discrepancy
from fedrepro.report.gather import VERDICTS, Report, Section
from fedrepro.report.published import Published
from fedrepro.results.checks import Check
from fedrepro.results.schema import Made, Sidecar

BEYOND = "Beyond the papers"

WIDE = ("table", "scatter")
"""Kinds of panels with the whole width of a page."""


@dataclass(frozen=True)
class VerdictView:
    """A verdict, its meaning and its number of claims."""

    name: str
    short: str
    meaning: str
    count: int


@dataclass(frozen=True)
class LevelView:
    """A level of evidence: its meaning, its number of claims, and their verdicts in words."""

    name: str
    means: str
    count: int
    verdicts: str


@dataclass(frozen=True)
class Link:
    """A name, and its anchor in the page ('' without one)."""

    text: str
    anchor: str


@dataclass(frozen=True)
class PanelView:
    """A panel as it is drawn."""

    wide: bool
    picture: Markup


@dataclass(frozen=True)
class FigureView:
    """A figure. counts : in the order of ``VERDICTS``. footer : '' if the pictures contain it.

    published : the cells of each published number's row. origin : the source of the numbers, by heading.
    """

    anchor: str
    name: str
    short: str
    title: str
    source: str
    note: str
    tier: str
    counts: tuple[int, ...]
    levels: str
    caveats: tuple[str, ...]
    stale: tuple[str, ...]
    unchecked: tuple[str, ...]
    check: str
    has_results: bool
    other_tiers: tuple[str, ...]
    panels: tuple[PanelView, ...]
    footer: str
    claims: tuple[judge.Row, ...]
    published: tuple[tuple[str, ...], ...]
    discrepancies: tuple[Link, ...]
    origin: Mapping[str, str]
    commands: tuple[str, ...]
    file: str = ""


@dataclass(frozen=True)
class PaperView:
    """A paper and its figures."""

    key: str
    name: str
    figures: tuple[FigureView, ...]


@dataclass(frozen=True)
class EffectView:
    """The effect of a choice in one figure's results."""

    words: str
    figure: Link
    tier: str


@dataclass(frozen=True)
class DiscrepancyView:
    """A discrepancy with its measured effects and links to the figures that it concerns."""

    anchor: str
    topic: str
    row: Discrepancy
    effects: tuple[EffectView, ...]
    figures: tuple[Link, ...]


@dataclass(frozen=True)
class Group:
    """The discrepancies of one paper."""

    anchor: str
    name: str
    rows: tuple[DiscrepancyView, ...]


def anchor(*parts: str) -> str:
    """Return an id for any attribute and ``url()``: other characters are replaced by their code between ``~``."""
    return "-".join(re.sub(r"[^A-Za-z0-9._-]", lambda c: f"~{ord(c[0]):x}~", part) for part in parts)


def figure_anchor(name: str) -> str:
    """Return the anchor of the figure ``paper/figure``."""
    return anchor(*name.split("/", 1))


# -- the top -----------------------------------------------------------------------------------------------------------


def verdicts(report: Report) -> tuple[VerdictView, ...]:
    """Return the counts at the head of the page."""
    return tuple(VerdictView(v, SHORT[v], MEANING[v], report.count(v)) for v in VERDICTS)


def levels(report: Report) -> tuple[LevelView, ...]:
    """Return the levels of evidence that claims have, best first."""
    return tuple(
        LevelView(level, evidence.MEANS[level], count, _verdicts(report, level))
        for level in evidence.LEVELS
        if (count := report.at_level(level))
    )


def _verdicts(report: Report, level: str) -> str:
    counts = ((verdict, report.at_level(level, verdict)) for verdict in VERDICTS)
    return ", ".join(f"{count} {verdict}" for verdict, count in counts if count)


def _levels(section: Section) -> str:
    """Return the levels of a figure's claims below the paper's, in words."""
    present = {row.level for row in section.claims}
    return ", ".join(level for level in evidence.LEVELS[1:-1] if level in present)


def program(now: Made) -> str:
    """Return the version of the program that writes a page."""
    dirty = " with uncommitted changes" if now.dirty else ""
    return f"fedrepro {now.fedrepro}, commit {now.commit[:12]}{dirty}"


def made_by(now: Made, report: Report) -> str:
    """Return the foot of the page. now : the program that writes it."""
    stale = sum(bool(section.stale) for section in report.sections)
    return f"{program(now)}; {stale} of {len(report.sections)} figures stale."


# -- figures -----------------------------------------------------------------------------------------------------------


def papers(report: Report, drawn: Mapping[str, Mapping[str, Markup]]) -> tuple[PaperView, ...]:
    """Return the papers in their order, then everything else. drawn : the panels of each section by id."""
    present = {section.figure.paper for section in report.sections}
    keys = [*(key for key in registry.PAPERS if key in present), *sorted(present - set(registry.PAPERS))]
    return tuple(
        PaperView(key, _title(key), tuple(
            _figure(report, section, drawn.get(section.name, {}))
            for section in report.sections
            if section.figure.paper == key
        ))
        for key in keys
    )  # fmt: skip


def _title(paper: str) -> str:
    return registry.PAPERS.get(paper, BEYOND if paper == "beyond" else paper)


def _figure(report: Report, section: Section, drawn: Mapping[str, Markup]) -> FigureView:
    figure, source = section.figure, section.source
    pictured = any("</svg>" in text for text in drawn.values())
    return FigureView(
        anchor=figure_anchor(section.name),
        name=section.name,
        short=figure.figure,
        title=figure.title,
        source=figure.source,
        note=figure.note,
        tier=figure.tier if source else "no results",
        counts=tuple(section.count(v) for v in VERDICTS),
        levels=_levels(section),
        caveats=(*(tags(source) if source else ()), *(["STALE"] if section.stale else ())),
        stale=section.stale,
        unchecked=section.unchecked,
        check=section.check.words if section.check is not None else "",
        has_results=source is not None,
        other_tiers=section.tiers,
        panels=tuple(PanelView(p.kind in WIDE, drawn[p.id]) for p in figure.panels if p.id in drawn),
        footer=footer(source, ()) if source and not pictured else "",
        claims=section.claims,
        published=tuple(_published(item) for item in section.published),
        discrepancies=tuple(Link(row.topic, _entry(row)) for row in report.touching(section.name)),
        origin=_origin(source.sidecar, section.check) if source else {},
        commands=_commands(section),
        file=f"results/{figure.tier}/{section.name}.csv" if source else "",
    )


def _commands(section: Section) -> tuple[str, ...]:
    """Return the commands that compute the figure's results again as they are, and draw them."""
    spec = f"{section.path} --tier {section.figure.tier}"
    sidecar = section.source.sidecar if section.source else Sidecar()
    options = " --stand-in" if sidecar.stand_ins else ""
    options += "".join(f" --set '{item}'" for item in sidecar.sets)
    return f"fedrepro run {spec}{options}", f"fedrepro plot {spec}"


def _published(item: Published) -> tuple[str, ...]:
    x = "end" if item.x is None else f"{item.x:g}"
    ours = "none there" if np.isnan(item.ours) else f"{item.ours:.4g}"
    off = (
        f"{100 * (item.ours / item.value - 1):+.0f} %"
        if item.value and np.isfinite(item.ours) and not item.standing
        else ""
    )
    return item.panel, item.label, x, f"{item.value:.4g}", ours, off, item.curve


def _origin(sidecar: Sidecar, check: Check | None) -> dict[str, str]:
    """Return the source of a figure's numbers: headings and words, without empty ones."""
    made = sidecar.made
    data = (
        f"{d.dataset} ({d.state}) {d.fingerprint[:16]}" + (f": {d.note}" if d.note else "") for d in sidecar.datasets
    )
    libraries = ", ".join(f"{name} {version}" for name, version in made.libraries.items())
    facts = {
        "commit": (made.commit[:12] or "unknown") + (", with uncommitted changes" if made.dirty else ""),
        "data": "; ".join(dict.fromkeys(data)),
        "versions": f"fedrepro {made.fedrepro or '?'}, Python {made.python or '?'}, {libraries}",
        "machine": "; ".join(filter(None, (made.machine, *made.kernels.values()))),
        "seconds": f"{sidecar.seconds:,.1f} of computing, one core",
        "trials": f"{sidecar.trials_done or 0} of {sidecar.trials_wanted or 0}",
        "results": f"sha256 {sidecar.csv_sha256[:16]}, written {made.written}",
        "last check": check.words if check is not None else "",
        "diverged": "; ".join(str(run) for run in sidecar.diverged),
        "failed": "; ".join(str(run) for run in sidecar.failed),
        "missing": "; ".join(sidecar.missing),
    }
    return {heading: words for heading, words in facts.items() if words}


# -- discrepancies -----------------------------------------------------------------------------------------------------


def groups(report: Report) -> tuple[Group, ...]:
    """Return the discrepancies, paper by paper."""
    names = {section.name for section in report.sections}
    return tuple(
        Group(anchor("discrepancies", key), _title(key), tuple(
            _discrepancy(report, row, names) for row in report.discrepancies if row.paper == key
        ))
        for key in dict.fromkeys(row.paper for row in report.discrepancies)
    )  # fmt: skip


def _discrepancy(report: Report, row: Discrepancy, names: set[str]) -> DiscrepancyView:
    def link(name: str) -> Link:
        return Link(name, figure_anchor(name) if name in names else "")

    effects = tuple(EffectView(e.words, link(e.figure), e.tier) for e in report.effects.get(row.id, ()))
    topic = row.topic[:1].upper() + row.topic[1:]
    return DiscrepancyView(_entry(row), topic, row, effects, tuple(link(name) for name in row.figures))


def _entry(row: Discrepancy) -> str:
    return anchor("discrepancy", row.id)
