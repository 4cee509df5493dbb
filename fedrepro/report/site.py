"""The report as a folder of static pages that opens from disk and can be put on any web host.

``index.html`` summarizes every paper; ``find.html`` lists and filters everything; every claim and every figure has its
own page, with the same name in every report; ``summary.html`` is for printing. Pages load only files of the folder, and
the data of a figure's curves only when a reader explores them.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedrepro import registry
from fedrepro.alternatives import published_numbers
from fedrepro.alternatives.deciding import untried_in_words
from fedrepro.claims import distinct, precedence
from fedrepro.claims.evidence import LEVELS, MEANS, VERDICTS
from fedrepro.claims.intervals import Interval
from fedrepro.claims.origin import apart
from fedrepro.claims.verdict_words import MEANING, SHORT
from fedrepro.errors import UserError
from fedrepro.files import me, writing
from fedrepro.glossary import output_words
from fedrepro.report import addresses, claim_index, decision_grid, next_steps, specification_curve
from fedrepro.report.addresses import figure_page, file_name, settings_page
from fedrepro.report.claim_index import Entry
from fedrepro.report.contents import Report, Section, paper_title
from fedrepro.report.page_data import DrawnPanel, Mark, Prepared, script
from fedrepro.report.render import render, static
from fedrepro.results.schema import Made
from fedrepro.spec import axes, find
from fedrepro.spec.panels import TableOptions

MARKER = '<meta name="generator" content="fedrepro report">'
"""Marks a folder as a report, which a newer one may replace."""

POLICY = (
    "default-src 'none'; script-src 'self' file:; style-src 'self' 'unsafe-inline' file:; "
    "img-src 'self' file: data: blob:; base-uri 'none'"
)
"""What the pages may load, enforced by the browser: only files of the folder."""

LIBRARY = "plotly.min.js"
LIBRARY_EXTRA = 'pip install "fedrepro[report]"'
STATIC = ("report.css", "site.js")


# -- values in words ---------------------------------------------------------------------------------------------------


def amount(value: float) -> str:
    """Return a value as text for a page."""
    if value != value:
        return "not a number"
    if value in (float("inf"), float("-inf")):
        return "never" if value > 0 else "−∞"
    if abs(value) >= 1e4 and abs(value) < 1e15:
        return f"{value:,.0f}"
    return f"{value:.4g}".replace("-", "−")


def spread(interval: Interval) -> str:
    """Return a value as text, with its interval if there is one."""
    if not interval.low < interval.high:
        return amount(interval.value)
    return f"{amount(interval.value)} [{amount(interval.low)}, {amount(interval.high)}]"


def program(now: Made) -> str:
    """Return the version of the program that writes a page."""
    dirty = " with uncommitted changes" if now.dirty else ""
    commit = f"commit {now.commit[:12]}{dirty}" if now.commit else f"without a commit (files {now.program[:12]})"
    return f"fedrepro {now.fedrepro}, {commit}"


def marks_json(marks: Iterable[Mark]) -> str:
    """Return marks as JSON for the script that draws them into an interactive picture."""
    return json.dumps([[m.curve, m.round, m.value, m.words] for m in marks if m.curve >= 0 and m.value == m.value])


TABLES: dict[str, Any] = {
    "verdicts": VERDICTS, "levels": LEVELS, "meaning": MEANING, "short": SHORT, "means": MEANS,
    "paper_title": paper_title, "counted": claim_index.counted, "count_sentence": claim_index.count_sentence,
    "distinct": distinct.explained, "class_table": claim_index.class_table, "apart": apart,
    "plain_class": claim_index.PLAIN_CLASSES, "class_meaning": output_words.READINGS,
    "specification_curve": specification_curve.svg, "decision_grid": decision_grid.grid,
    "anchor": addresses.anchor, "figure_page": figure_page, "claim_list": addresses.claim_list,
    "settings_page": settings_page, "untried_in_words": untried_in_words, "distances": published_numbers.distances,
    "option_of_tier": find.option_of_tier, "spread": spread, "duration": next_steps.duration, "marks_json": marks_json,
}  # fmt: skip
"""The words and functions that templates use."""


# -- the folder --------------------------------------------------------------------------------------------------------


def page(path: str, template: str, title: str, **values: Any) -> bytes:
    """Return a page of a folder with the static files. path : where it is in the folder."""
    frame = {"root": "../" * path.count("/"), "here": path, "title": title, "policy": POLICY, "marker": MARKER}
    return str(render(template, **frame, **TABLES, **values)).encode()


@dataclass
class Site:
    """Makes the pages of a report. files : those made so far, by path in the folder."""

    report: Report
    prepared: Mapping[str, Prepared]
    experiments: Path
    made: Made
    files: dict[str, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.entries = claim_index.entries(self.report)
        self.library = library()
        self.shared = {
            "report": self.report,
            "entries": self.entries,
            "claims": {entry.row.claim.id: entry for entry in self.entries},
            "groups": claim_index.groups(self.entries, self.experiments),
            "totals": claim_index.totals(self.entries),
            "settings": {name: own for one in self.prepared.values() for name, own in one.settings.items()},
            "published": {name: one.published for name, one in self.prepared.items() if one.published},
            "untried": {name: number for one in self.prepared.values() for name, number in one.untried.items()},
            "names": {section.name for section in self.report.sections},
            "made_by": f"{program(self.made)}; {self.report.stale} of {len(self.report.sections)} figures stale.",
            "library": bool(self.library),
            "extra": LIBRARY_EXTRA,
        }

    def build(self) -> dict[str, bytes]:
        """Return every file of the folder."""
        for name in (*STATIC, "explore.js"):
            self.files[f"static/{name}"] = static(name).encode()
        if self.library and any(figure.data for figure in self.prepared.values()):
            self.files[f"static/{LIBRARY}"] = self.library
        self.page("index.html", "index.html", "Which claims held")
        self.page("find.html", "find.html", "Find a claim, figure, method or discrepancy", methods=self._methods(),
                  filters=self._filters(), shows={s.name: _shows(s) for s in self.report.sections})  # fmt: skip
        for section in self.report.sections:
            self._figure(section)
        for before, entry, after in _around(self.entries):
            self._claim(entry, before, after)
        self.page("discrepancies.html", "discrepancies.html", "Discrepancies")
        self._settings()
        self.page("summary.html", "summary.html", "Summary to print")
        return self.files

    def _settings(self) -> None:
        """Add the page on what decides verdicts, and one for each paper with results of other settings."""
        decided = {name for one in self.prepared.values() for name in one.settings}
        with_settings = {entry.group for entry in self.entries if entry.row.claim.id in decided}
        own = [group for group in claim_index.groups(self.entries, self.experiments) if group.key in with_settings]
        titled = [(group, f"What decides the verdicts of {claim_index.short_name(group)}") for group in own]
        self.page("settings.html", "settings.html", "What decides the verdicts", titled=titled)
        for group, title in titled:
            self.page(settings_page(group.key), "settings_of_paper.html", title, group=group)

    def page(self, path: str, template: str, title: str, **values: Any) -> None:
        """Add a page."""
        self.files[path] = page(path, template, title, **self.shared, **values)

    def _methods(self) -> list[tuple[str, str, list[str]]]:
        """Return label, name and figures of every method."""
        figures: dict[str, dict[str, None]] = {}
        for section in self.report.sections:
            for setting in section.figure.settings():
                figures.setdefault(setting.algorithm, {})[section.name] = None
        known = registry.methods()
        named = [(known[name].label if name in known else name, name, list(at)) for name, at in figures.items()]
        return sorted(named, key=lambda method: method[0].lower())

    def _filters(self) -> list[tuple[str, str, list[str]]]:
        """Return name, label and values of every filter of claims."""
        marks = {mark for entry in self.entries for mark in entry.marks}
        return [
            ("verdict", "Verdict", [verdict for verdict in VERDICTS if self.report.count(verdict)]),
            ("evidence", "Evidence", [level for level in LEVELS if self.report.at_level(level)]),
            ("mark", "Mark", [mark for mark in claim_index.MARKS if mark in marks]),
        ]

    def _figure(self, section: Section) -> None:
        prepared = self.prepared.get(section.name, Prepared())
        path = figure_page(section.name)
        if prepared.data and self.library:
            self.files[f"{path.removesuffix('.html')}/data.js"] = script(section.name, prepared.data)
        self.page(
            path, "figure.html", f"{section.name}: {section.figure.title}", section=section, seconds=prepared.seconds,
            panels=[self._panel(section, panel) for panel in prepared.panels],
            own=[entry for entry in self.entries if entry.section is section], sentences=prepared.sentences,
            precedence=precedence.counted(row.precedence for row in section.claims),
        )  # fmt: skip

    def _panel(self, section: Section, panel: DrawnPanel) -> dict[str, Any]:
        """Add the files of a panel, and return what templates need."""
        own = panel.tier == section.figure.tier
        name = file_name(panel.id) if own else file_name(panel.id, panel.tier)
        folder = figure_page(section.name).removesuffix(".html")
        paths = {ending: f"{folder}/{name}.{ending}" for ending in panel.files}
        self.files |= {paths[ending]: content for ending, content in panel.files.items()}
        data = self.prepared[section.name].data if own and self.library else {}
        script_path = f"{folder}/data.js" if panel.id in data else ""
        return {"panel": panel, "files": paths, "picture": paths.get("svg") or paths.get("png"), "script": script_path}

    def _claim(self, entry: Entry, before: Entry | None, after: Entry | None) -> None:
        section, row = entry.section, entry.row
        prepared = self.prepared.get(section.name, Prepared())
        source = section.read_from(row)
        lent = source is not None and source is not section.source
        shown = [panel for panel in (prepared.lent if lent else prepared.panels) if panel.tier == row.tier]
        wanted = [panel for panel in shown if panel.id == row.claim.panel or row.claim.id in panel.marks]
        read = prepared.reads.get(row.claim.id)
        self.page(
            entry.page, "claim.html", f"{row.claim.id}: {row.claim.says}", entry=entry, row=row, section=section,
            compared=read.compared if read else (), panels=[self._panel(section, panel) for panel in wanted],
            steps=next_steps.steps(section, row, prepared.seconds), check=None if lent else section.check,
            before=before, after=after, sentence=prepared.sentences.get(row.claim.id, ""),
        )  # fmt: skip


def _shows(section: Section) -> str:
    """Return the words by which a search finds a figure and its claims: what its panels show."""
    words = [section.figure.title, section.figure.source]
    for panel in section.figure.panels:
        metrics = (TableOptions.of(panel).metrics if panel.kind == "table" else ()) or (panel.y,)
        words += [panel.title, *metrics, *(axes.metric_label(panel, name) for name in metrics)]
        words += [curve.method or curve.label for curve in panel.curves]
    return " ".join(dict.fromkeys(filter(None, words)))


def _around(listing: Sequence[Entry]) -> Iterator[tuple[Entry | None, Entry, Entry | None]]:
    """Yield every entry between its neighbours on the same figure, None at the ends."""
    for before, entry, after in zip((None, *listing[:-1]), listing, (*listing[1:], None), strict=True):
        same = [other if other is not None and other.section is entry.section else None for other in (before, after)]
        yield same[0], entry, same[1]


def library() -> bytes:
    """Return the script that draws interactive pictures, from the package plotly; b'' if it is not installed."""
    package = importlib.util.find_spec("plotly")
    for place in package.submodule_search_locations or () if package is not None else ():
        path = Path(place) / "package_data" / LIBRARY
        if path.is_file():
            return path.read_bytes()
    return b""


def write(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write a report's files to a folder and replace an earlier report. Raises UserError if it has other content."""
    index = folder / "index.html"
    if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not _is_report(index))):
        raise UserError(f"{folder}: contains files that are not a report's; remove it, or name another with --out")
    part = folder.with_name(f".{folder.name}.{me()}.part")
    with writing(folder):
        shutil.rmtree(part, ignore_errors=True)
        try:
            for path, content in files.items():
                target = part / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
            gone = folder.with_name(f".{folder.name}.{me()}.old.part")
            if folder.exists():
                folder.rename(gone)
            part.rename(folder)
            shutil.rmtree(gone, ignore_errors=True)
        finally:
            shutil.rmtree(part, ignore_errors=True)


def _is_report(index: Path) -> bool:
    try:
        return MARKER in index.read_text(encoding="utf-8")[:2000]
    except (OSError, UnicodeDecodeError):
        return False
