"""Prepare the data of one figure's pages: drawn panels, curves as data, and what the checks of its claims read.

This takes time. Each figure is prepared separately, so that several processes can share the figures.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from fedrepro import processes
from fedrepro.alternatives import survey
from fedrepro.alternatives.published_numbers import PublishedNumber
from fedrepro.claims import compared_values, sentences
from fedrepro.claims.compared_values import Read, Spot
from fedrepro.claims.judge import Row
from fedrepro.errors import UserError
from fedrepro.plotting import header_footer, naming
from fedrepro.plotting.series import FigureData
from fedrepro.progress import Progress
from fedrepro.report import curve_data, end_values, gather_contents, next_steps, other_settings, pictures, table_formats
from fedrepro.report.addresses import anchor
from fedrepro.report.contents import Report, Section
from fedrepro.report.gather_contents import Effects
from fedrepro.report.other_settings import OtherSettings
from fedrepro.report.pictures import Drawing
from fedrepro.spec import axes, discrepancies, panels
from fedrepro.spec.discrepancies import Discrepancy
from fedrepro.spec.model import Panel
from fedrepro.spec.panels import CurvesOptions

FEW = 4
"""Largest number of figures that one process prepares without pictures before another would have started."""


@dataclass(frozen=True)
class Mark:
    """A point that a check read: its place in the panel's picture in percent, and its description.

    inside : whether the picture's axes show it. curve, round, value : the same for an interactive picture; curve is -1
    if it has none.
    """

    left: float
    top: float
    inside: bool
    words: str
    curve: int
    round: float
    value: float


@dataclass(frozen=True)
class DrawnPanel:
    """A panel as the pages show it. files : by suffix. rows : its end values, the header first.

    markup : a table, or why there is no picture. marks : the points that the check of each claim read.
    """

    id: str
    tier: str
    title: str
    kind: str
    markup: Markup
    files: Mapping[str, bytes]
    size: tuple[int, int]
    rows: list[list[str]]
    marks: Mapping[str, tuple[Mark, ...]]

    @property
    def wide(self) -> bool:
        """Whether it has the whole width of a page."""
        return self.kind in ("table", "scatter")


@dataclass(frozen=True)
class Prepared:
    """A prepared figure. panels : those of its results. lent : those of other tiers that verdicts are from.

    data : the curves for interactive pictures. reads : what checks read, by claim. sentences : what checks found, by
    claim. seconds : predicted by ``next_steps``. settings : what other settings change, by claim. published : published
    numbers of tables with other settings. untried : number of single values that concern a claim for which none was
    run.
    """

    panels: tuple[DrawnPanel, ...] = ()
    lent: tuple[DrawnPanel, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    reads: Mapping[str, Read] = field(default_factory=dict)
    sentences: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    settings: Mapping[str, OtherSettings] = field(default_factory=dict)
    published: Sequence[PublishedNumber] = ()
    untried: Mapping[str, int] = field(default_factory=dict)


def figures(
    paths: Iterable[Path], tier: str, root: Path, experiments: Path, pictured: bool, jobs: int
) -> tuple[Report, dict[str, Prepared]]:
    """Gather the report and prepare every section by its name, ``jobs`` at a time; without measurements."""
    rows = discrepancies.load_all(experiments)
    largest = sorted(paths, key=lambda path: -path.stat().st_size if path.is_file() else 0)
    if not pictured and len(largest) <= FEW:
        jobs = 1
    sections, effects, prepared = [], [], {}
    one_figure = functools.partial(figure, tier=tier, root=root, pictured=pictured, rows=rows)
    with Progress("figures", len(largest)) as progress:
        for section, own, measured in processes.parallel_map(one_figure, largest, jobs):
            sections.append(section)
            prepared[section.name] = own
            effects += measured
            progress.step(section.name)
    return gather_contents.report(sections, rows, effects), prepared


def figure(
    path: Path, tier: str, root: Path, pictured: bool, rows: Sequence[Discrepancy]
) -> tuple[Section, Prepared, Effects]:
    """Return the section of one figure without measurements, what its pages need, and its effects of discrepancies.

    root : folder of the results. pictured : with pictures.
    """
    section = gather_contents.section(path, tier, root)
    prepared = prepare(section, root, pictured)
    settings, published = other_settings.of_figure(section.source, rows, root)
    untried = survey.concerning(section.figure, rows, settings)
    prepared = dataclasses.replace(prepared, settings=settings, published=published, untried=untried)
    return section.in_short(), prepared, gather_contents.effects_in(section, rows)


def prepare(section: Section, root: Path, pictured: bool) -> Prepared:
    """Return everything that a figure's pages need besides what was gathered.

    root : folder of the results, with the timings for predictions. pictured : with pictures and their data.
    """
    source = section.source
    checked = {row.claim.id: _read(section, row) for row in section.claims}
    reads = {name: read for name, (read, _) in checked.items()}
    said = {name: sentence for name, (_, sentence) in checked.items()}
    seconds = next_steps.seconds(section, root)
    if source is None or not pictured:
        return Prepared(reads=reads, sentences=said, seconds=seconds)
    data = curve_data.by_panel(source, source.figure.panels)
    shown = tuple(_shown(section, source, panel, reads, data) for panel in source.figure.panels)
    lent = []
    for other in section.others:
        own = [row for row in section.claims if row.tier == other.figure.tier]
        wanted = {spot.panel for row in own for spot in reads[row.claim.id].spots} | {row.claim.panel for row in own}
        lent += [_shown(section, other, panel, reads, {}) for panel in other.figure.panels if panel.id in wanted]
    return Prepared(shown, tuple(lent), data, reads, said, seconds)


def _read(section: Section, row: Row) -> tuple[Read, str]:
    """Return what the check of a claim read, and in one sentence what it found; nothing where nothing could be read."""
    source = section.read_from(row)
    if source is None:
        return Read(), ""
    own = next((claim for claim in source.figure.claims if claim.id == row.claim.id), row.claim)
    read = compared_values.read(own, source.figure, source.frame, source.known)
    return read, sentences.sentence(own, source.figure, source.known)


def _shown(
    section: Section, source: FigureData, panel: Panel, reads: Mapping[str, Read], data: Mapping[str, Any]
) -> DrawnPanel:
    place = anchor(section.figure.paper, section.figure.figure, panel.id)
    main = source is section.source
    drawn = pictures.drawing(source, panel, place, ("svg", "pdf") if main else ("svg",))
    if main and panel.id in data and drawn.limits is not None:
        data[panel.id]["limits"] = [[float(f"{v:.5g}") for v in pair] for pair in drawn.limits]
    try:
        rows = end_values.cells(source, panel) if panel.kind == "table" else end_values.ends(source, panel)
    except UserError:  # it has no records
        rows = []
    files = dict(drawn.files)
    if main and rows:
        files["tex"] = table_formats.as_latex([(panel, rows)], header_footer.caption(source)).encode()
        points = curve_data.table(data[panel.id]) if panel.id in data else None
        files["csv"] = (
            table_formats.numbers_csv(end_values.numbers(source, panel))
            if points is None
            else table_formats.csv_text(points)
        ).encode()
    own = {row.claim.id for row in section.claims if section.read_from(row) is source}
    marks = {name: _marks(source, panel, drawn, reads[name].spots, data) for name in own if name in reads}
    return DrawnPanel(
        panel.id, source.figure.tier, pictures.titled(panel), panel.kind, drawn.markup, files, drawn.size, rows,
        {name: points for name, points in marks.items() if points},
    )  # fmt: skip


def _marks(
    source: FigureData, panel: Panel, drawn: Drawing, spots: tuple[Spot, ...], data: Mapping[str, Any]
) -> tuple[Mark, ...]:
    """Return the points that a check read in a panel, if the panel's picture has places for them."""
    marks = []
    for spot in spots:
        if spot.panel != panel.id or spot.metric != panel.y or panel.kind != "curves":
            continue
        x = _across(source, panel, spot)
        place = None if x is None else drawn.spot(x, spot.value)
        if place is None:
            continue
        number = panel.curves.index(spot.curve) if spot.curve in panel.curves else -1
        name = naming.plain(naming.legends(panel, source.figure)[number]) if number >= 0 else spot.curve.label
        listed = [c["series"] for c in data.get(panel.id, {}).get("curves", [])]
        at = listed.index(spot.curve.setting.series) if spot.curve.setting.series in listed else -1
        words = f"{name}: {spot.value:.5g} at round {spot.round:,.5g}"
        left, top, inside = place
        marks.append(Mark(round(100 * left, 2), round(100 * top, 2), inside, words, at, spot.round, spot.value))
    return tuple(marks)


def _across(source: FigureData, panel: Panel, spot: Spot) -> float | None:
    """Return the place of a point on the panel's x axis, or None."""
    x = axes.of(panel)
    if not x.along:
        value = spot.curve.select.get(panels.swept(panel))
        return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
    recorded = curve_data.records(source, spot.curve, panel, [x], spot.metric)
    if recorded is None:
        return None
    place = float(np.interp(spot.round, recorded.rounds, recorded.along[x.name]))
    return place + (CurvesOptions.of(panel).starts_at if panel.x == "round" else 0)


def script(name: str, data: Mapping[str, Any]) -> bytes:
    """Return the data of a figure as a script: pages opened from disk can load scripts, but cannot fetch files."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return f"fedrepro.data({json.dumps(name)}, {text});\n".encode()
