"""The report as a folder of static pages that opens from disk and can be put on any web host.

``index.html`` summarizes every paper; ``find.html`` lists and filters everything; every claim and every figure has its
own page, with the same name in every report; ``summary.html`` is for printing. Pages load only files of the folder, and
the data of a figure's curves only when a reader explores them.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from markupsafe import Markup

from fedrepro import registry
from fedrepro.claims import evidence, verdict_words
from fedrepro.claims.evidence import LEVELS, MEANS, VERDICTS
from fedrepro.claims.intervals import Interval
from fedrepro.claims.judge import Row
from fedrepro.errors import UserError
from fedrepro.files import me, writing
from fedrepro.report import next_steps, summaries, views
from fedrepro.report.gather import Report, Section
from fedrepro.report.next_steps import duration
from fedrepro.report.prepare import Mark, Prepared, Shown, script
from fedrepro.report.render import render, static
from fedrepro.report.summaries import Sentence
from fedrepro.results.schema import Made

MARKER = '<meta name="generator" content="fedrepro report">'
"""Marks a folder as a report, which a newer one may replace."""

POLICY = (
    "default-src 'none'; script-src 'self' file:; style-src 'self' 'unsafe-inline' file:; "
    "img-src 'self' file: data: blob:; base-uri 'none'"
)
"""What the pages may load, enforced by the browser: only files of the folder."""

OWN_STUDIES = "own"
"""The group of claims that are not from a paper."""

OWN_TITLE = "Our own studies"
LONGEST = 80
"""Largest number of characters of a file's name; longer names are cut and end in a hash."""

LIBRARY = "plotly.min.js"
LIBRARY_EXTRA = 'pip install "fedrepro[report]"'


@dataclass(frozen=True)
class Entry:
    """A claim in a list. group : the paper, or ``OWN_STUDIES``. marks : its flags (stale, partial, ...)."""

    row: Row
    section: Section
    group: str
    page: str
    marks: tuple[str, ...]


@dataclass(frozen=True)
class Part:
    """A part of a bar: the number of claims with this verdict and evidence, and the link to them."""

    verdict: str
    level: str
    count: int
    link: str


@dataclass(frozen=True)
class Said:
    """A sentence of a paper's summary with its claims: (id, page, verdict)."""

    head: str
    says: str
    claims: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class Overall:
    """The summary of one paper. marks : words, claims, link. changed : claims of outdated sentences."""

    key: str
    name: str
    line: str
    sentences: tuple[Said, ...]
    changed: tuple[tuple[str, str, str], ...]
    parts: tuple[Part, ...]
    marks: tuple[tuple[str, int, str], ...]
    total: int
    decided: int
    link: str


def file_name(*parts: str) -> str:
    """Return a name for a page: letters, digits and a few signs, never too long for a file system."""
    name = views.anchor(*parts).lstrip(".") or "~"
    if len(name) <= LONGEST:
        return name
    return f"{name[:LONGEST]}~{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def figure_page(name: str) -> str:
    """Return the path of the page of the figure ``paper/figure``."""
    return f"figures/{file_name(*name.split('/', 1))}.html"


def is_own(section: Section, row: Row) -> bool:
    """Return whether a claim is ours rather than a paper's."""
    return section.figure.paper == "beyond" or re.match(r"\W*ours\b", row.claim.where) is not None


def entries(report: Report) -> tuple[Entry, ...]:
    """Return every claim as an entry; if two figures have the same id, the page's name includes the figure."""
    ids = Counter(row.claim.id for section in report.sections for row in section.claims)
    listing = []
    for section in report.sections:
        for row in section.claims:
            name = (row.claim.id,) if ids[row.claim.id] == 1 else (*section.name.split("/", 1), row.claim.id)
            group = OWN_STUDIES if is_own(section, row) else section.figure.paper
            marks = [*(["stale"] if section.is_stale(row) else [])]
            marks += [row.level] if row.level in (evidence.PARTIAL, evidence.VARIANT, evidence.STAND_IN) else []
            listing.append(Entry(row, section, group, f"claims/{file_name(*name)}.html", tuple(marks)))
    return tuple(listing)


def listed(**wanted: str) -> str:
    """Return the link to the claims with these properties."""
    query = "&".join(f"{key}={value.replace(' ', '-')}" for key, value in wanted.items() if value)
    return f"find.html#{query}" if query else "find.html"


# -- the first screen --------------------------------------------------------------------------------------------------


def overall(report: Report, experiments: Path) -> tuple[Overall, ...]:
    """Return the summaries of the papers in their order, then of our own studies."""
    listing = entries(report)
    verdicts = {entry.row.claim.id: entry.row.verdict for entry in listing}
    pages = {entry.row.claim.id: entry.page for entry in listing}
    present = {entry.group for entry in listing} - {OWN_STUDIES}
    keys = [*(key for key in registry.PAPERS if key in present), *sorted(present - set(registry.PAPERS))]
    keys += [OWN_STUDIES] if any(entry.group == OWN_STUDIES for entry in listing) else []
    sentences = {key: summaries.load(experiments, "beyond" if key == OWN_STUDIES else key) for key in keys}
    own = {key: [entry for entry in listing if entry.group == key] for key in keys}
    return tuple(_overall(key, own[key], sentences[key], verdicts, pages) for key in keys)


def _overall(
    key: str, own: Sequence[Entry], sentences: Sequence[Sentence], verdicts: Mapping[str, str], pages: Mapping[str, str]
) -> Overall:
    known = [sentence for sentence in sentences if sentence.known(verdicts)]
    changed = {name: verdicts[name] for sentence in known for name in sentence.unlike(verdicts)}
    return Overall(
        key=key,
        name=OWN_TITLE if key == OWN_STUDIES else registry.PAPERS.get(key, key),
        line=line([entry.row for entry in own]),
        sentences=tuple(
            Said(sentence.head, sentence.says, tuple((name, pages[name], verdicts[name]) for name in sentence.claims))
            for sentence in known
            if not sentence.unlike(verdicts)
        ),
        changed=tuple((name, pages[name], verdict) for name, verdict in changed.items()),
        parts=_parts(key, own),
        marks=tuple(
            (mark, count, listed(paper=key, mark=mark))
            for mark in ("stale", evidence.PARTIAL, evidence.VARIANT, evidence.STAND_IN)
            if (count := sum(mark in entry.marks for entry in own))
        ),
        total=len(own),
        decided=sum(entry.row.level == evidence.PAPER for entry in own),
        link=listed(paper=key),
    )


def _parts(key: str, own: Iterable[Entry]) -> tuple[Part, ...]:
    counted = Counter((entry.row.level, entry.row.verdict) for entry in own)
    order = sorted(counted, key=lambda at: (LEVELS.index(at[0]), VERDICTS.index(at[1])))
    return tuple(
        Part(verdict, level, counted[level, verdict], listed(paper=key, verdict=verdict, evidence=level))
        for level, verdict in order
    )


def line(rows: Sequence[Row]) -> str:
    """Return one sentence with the counts of verdicts."""
    full = Counter(row.verdict for row in rows if row.level == evidence.PAPER)
    less = Counter(row.verdict for row in rows if row.level != evidence.PAPER)
    decided, standing = sum(full.values()), sum(row.level == evidence.STAND_IN for row in rows)
    claims = f"{len(rows)} claim{'s' if len(rows) != 1 else ''}"
    if decided == 0:
        sentence = f"None of {claims} is decided at the published sizes yet"
    elif decided == len(rows):
        sentence = f"All {claims} are decided at the published sizes: {_counted(full)}"
    else:
        sentence = f"{decided} of {claims} are decided at the published sizes: {_counted(full)}"
    rest = f"; on less evidence {_counted(less)}" if less else ""
    return sentence + rest + (f" ({standing} on stand-ins, which say nothing about the paper)" if standing else "")


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts.get(verdict))


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


# -- the folder --------------------------------------------------------------------------------------------------------


@dataclass
class Site:
    """Makes the pages of a report. files : those made so far, by path in the folder."""

    report: Report
    prepared: Mapping[str, Prepared]
    experiments: Path
    made: Made
    files: dict[str, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.entries = entries(self.report)
        self.overall = overall(self.report, self.experiments)
        self.papers = views.papers(self.report, {})
        self.figures = {figure.name: figure for paper in self.papers for figure in paper.figures}
        self.topics = {row.row.id: row for group in views.groups(self.report) for row in group.rows}
        self.library = library()

    def build(self) -> dict[str, bytes]:
        """Return every file of the folder."""
        self._static()
        totals = [(title, len(own), line([e.row for e in own]), link) for title, own, link in self._totals()]
        self.page("index.html", "index.html", "Which claims held", overall=self.overall, totals=totals,
                  papers=self.papers, verdicts=views.verdicts(self.report), levels=views.levels(self.report),
                  stale=sum(bool(s.stale) for s in self.report.sections))  # fmt: skip
        self.page("find.html", "find.html", "Find a claim, figure, method or discrepancy", **self._find())
        self.page("discrepancies.html", "discrepancies.html", "Discrepancies", groups=views.groups(self.report))
        notable = [e for e in self.entries if e.row.level == evidence.PAPER]
        self.page("summary.html", "summary.html", "Summary to print", overall=self.overall, totals=totals,
                  notable=notable, papers=self.papers, verdicts=views.verdicts(self.report))  # fmt: skip
        for section in self.report.sections:
            self._figure(section)
        for before, entry, after in _around(self.entries):
            self._claim(entry, before, after)
        return self.files

    def page(self, path: str, template: str, title: str, **values: Any) -> None:
        """Add a page."""
        root = "../" * path.count("/")
        text = render(
            f"site/{template}", root=root, title=title, policy=POLICY, marker=Markup(MARKER), figure_page=figure_page,
            here=path, made_by=views.made_by(self.made, self.report), library=bool(self.library), extra=LIBRARY_EXTRA,
            spread=spread, place=views.anchor, marks_json=marks_json, **values,
        )  # fmt: skip
        self.files[path] = str(text).encode()

    def _static(self) -> None:
        for name in ("report.css", "site.css", "site.js", "explore.js"):
            self.files[f"static/{name}"] = str(static(name)).encode()
        if self.library and any(figure.data for figure in self.prepared.values()):
            self.files[f"static/{LIBRARY}"] = self.library

    def _totals(self) -> Iterator[tuple[str, list[Entry], str]]:
        papers = [entry for entry in self.entries if entry.group != OWN_STUDIES]
        own = [entry for entry in self.entries if entry.group == OWN_STUDIES]
        if papers:
            yield "The papers' claims", papers, listed(paper="papers")
        if own:
            yield OWN_TITLE, own, listed(paper=OWN_STUDIES)

    def _find(self) -> dict[str, Any]:
        methods: dict[str, dict[str, None]] = {}
        for section in self.report.sections:
            for setting in section.figure.settings():
                methods.setdefault(setting.algorithm, {})[section.name] = None
        known = registry.methods()
        named = [(known[name].label if name in known else name, name, list(at)) for name, at in methods.items()]
        groups = [(paper.key, paper.name) for paper in self.overall]
        return {
            "entries": self.entries,
            "figures": list(self.figures.values()),
            "methods": sorted(named, key=lambda method: method[0].lower()),
            "discrepancies": list(self.topics.values()),
            "groups": groups,
            "verdicts": [v for v in VERDICTS if any(e.row.verdict == v for e in self.entries)],
            "levels": [v for v in LEVELS if any(e.row.level == v for e in self.entries)],
            "marks": sorted({mark for entry in self.entries for mark in entry.marks}),
        }

    def _figure(self, section: Section) -> None:
        prepared = self.prepared.get(section.name, Prepared())
        path = figure_page(section.name)
        folder = path.removesuffix(".html")
        panels = [self._panel(folder, panel) for panel in prepared.panels]
        if prepared.data and self.library:
            self.files[f"{folder}/data.js"] = script(section.name, prepared.data)
        title = f"{section.name}: {section.figure.title}"
        own = [entry for entry in self.entries if entry.section is section]
        self.page(path, "figure.html", title, figure=self.figures[section.name], panels=panels, own=own,
                  data=prepared.data if self.library else {}, seconds=duration(prepared.seconds))  # fmt: skip

    def _panel(self, folder: str, panel: Shown) -> dict[str, Any]:
        """Add the files of a panel, and return what its template needs."""
        stem = f"{folder}/{file_name(panel.id)}"
        paths = {ending: f"{stem}.{ending}" for ending in panel.files}
        for ending, content in panel.files.items():
            self.files[paths[ending]] = content
        return {"panel": panel, "files": paths, "picture": paths.get("svg") or paths.get("png")}

    def _claim(self, entry: Entry, before: Entry | None, after: Entry | None) -> None:
        section, row = entry.section, entry.row
        prepared = self.prepared.get(section.name, Prepared())
        read = prepared.reads.get(row.claim.id)
        folder = figure_page(section.name).removesuffix(".html")
        source = section.read_from(row)
        lent = source is not None and source is not section.source
        shown = [panel for panel in (prepared.lent if lent else prepared.panels) if panel.tier == row.tier]
        wanted = [panel for panel in shown if panel.id == row.claim.panel or row.claim.id in panel.marks]
        panels = []
        for one in wanted:
            stem = f"{folder}/{file_name(one.id, one.tier)}" if lent else f"{folder}/{file_name(one.id)}"
            for ending, content in one.files.items():
                self.files[f"{stem}.{ending}"] = content
            found = one.marks.get(row.claim.id, ())
            picture = next((f"{stem}.{ending}" for ending in ("svg", "png") if ending in one.files), "")
            explored = not lent and bool(self.library) and one.id in prepared.data
            panels.append({"panel": one, "picture": picture, "marks": found, "explored": explored})
        touching = [self.topics[one.id] for one in self.report.touching(section.name)]
        check = section.check.words if section.check is not None and not lent else ""
        self.page(
            entry.page, "claim.html", f"{row.claim.id}: {row.claim.says}", entry=entry, row=row, section=section,
            figure=self.figures[section.name], compared=read.compared if read else (), panels=panels,
            steps=next_steps.steps(section, row, prepared.seconds), duration=duration, touching=touching, check=check,
            means=MEANS, meaning=verdict_words.MEANING[row.verdict], before=before, after=after, folder=folder,
        )  # fmt: skip


def _around(listing: Sequence[Entry]) -> Iterator[tuple[Entry | None, Entry, Entry | None]]:
    """Yield every entry between its neighbours on the same figure, None at the ends."""
    for before, entry, after in zip((None, *listing[:-1]), listing, (*listing[1:], None), strict=True):
        same = [other if other is not None and other.section is entry.section else None for other in (before, after)]
        yield same[0], entry, same[1]


def marks_json(marks: Iterable[Mark]) -> str:
    """Return marks as JSON for the script that draws them into an interactive picture."""
    return json.dumps([[m.curve, m.round, m.value, m.words] for m in marks if m.curve >= 0 and m.value == m.value])


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
