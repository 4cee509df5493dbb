"""The report as a folder of static pages that opens from disk and can be put on any web host.

``index.html`` says of every paper what held; ``find.html`` lists everything and filters it; every claim and every
figure has a page of its own under a name that stays the same from one report to the next; ``summary.html`` is for
paper. A page loads what lies beside it, and the data of a figure's curves only where somebody explores them.
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
"""Says that a folder is a report, and may be replaced by a newer one."""

POLICY = (
    "default-src 'none'; script-src 'self' file:; style-src 'self' 'unsafe-inline' file:; "
    "img-src 'self' file: data: blob:; base-uri 'none'"
)
"""What the pages may load, enforced by the browser: nothing that is not in the folder."""

OWN_STUDIES = "own"
"""The group of what no paper says."""

OWN_TITLE = "Our own studies"
LONGEST = 80
"""Characters of a file's name above which it is cut and told apart by a hash."""

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
    """A piece of a bar: so many claims with this verdict on this evidence, and the link to them."""

    verdict: str
    level: str
    count: int
    link: str


@dataclass(frozen=True)
class Said:
    """A sentence of a paper's summary with the claims it rests on: (id, page, verdict)."""

    head: str
    says: str
    claims: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class Overall:
    """What is said of one paper first. marks : words, claims, link. changed : claims whose sentence is out."""

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
    """A name for a page: letters, digits and a few signs, and never too long for a file system."""
    name = views.anchor(*parts).lstrip(".") or "~"
    if len(name) <= LONGEST:
        return name
    return f"{name[:LONGEST]}~{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def figure_page(name: str) -> str:
    """The page of the figure ``paper/figure``."""
    return f"figures/{file_name(*name.split('/', 1))}.html"


def is_own(section: Section, row: Row) -> bool:
    """Whether a claim is ours rather than a paper's."""
    return section.figure.paper == "beyond" or re.match(r"\W*ours\b", row.claim.where) is not None


def entries(report: Report) -> tuple[Entry, ...]:
    """Every claim. An id that two figures have is told apart by the figure's name."""
    ids = Counter(row.claim.id for section in report.sections for row in section.claims)
    found = []
    for section in report.sections:
        for row in section.claims:
            name = (row.claim.id,) if ids[row.claim.id] == 1 else (*section.name.split("/", 1), row.claim.id)
            group = OWN_STUDIES if is_own(section, row) else section.figure.paper
            marks = [*(["stale"] if section.is_stale(row) else [])]
            marks += [row.level] if row.level in (evidence.PARTIAL, evidence.VARIANT, evidence.STAND_IN) else []
            found.append(Entry(row, section, group, f"claims/{file_name(*name)}.html", tuple(marks)))
    return tuple(found)


def listed(**wanted: str) -> str:
    """The link to the claims with these properties."""
    asked = "&".join(f"{key}={value.replace(' ', '-')}" for key, value in wanted.items() if value)
    return f"find.html#{asked}" if asked else "find.html"


# -- the first screen --------------------------------------------------------------------------------------------------


def overall(report: Report, experiments: Path) -> tuple[Overall, ...]:
    """The papers in their order, then what is ours."""
    found = entries(report)
    verdicts = {entry.row.claim.id: entry.row.verdict for entry in found}
    pages = {entry.row.claim.id: entry.page for entry in found}
    present = {entry.group for entry in found} - {OWN_STUDIES}
    keys = [*(key for key in registry.PAPERS if key in present), *sorted(present - set(registry.PAPERS))]
    keys += [OWN_STUDIES] if any(entry.group == OWN_STUDIES for entry in found) else []
    said = {key: summaries.load(experiments, "beyond" if key == OWN_STUDIES else key) for key in keys}
    own = {key: [entry for entry in found if entry.group == key] for key in keys}
    return tuple(_overall(key, own[key], said[key], verdicts, pages) for key in keys)


def _overall(
    key: str, own: Sequence[Entry], sentences: Sequence[Sentence], verdicts: Mapping[str, str], pages: Mapping[str, str]
) -> Overall:
    known = [one for one in sentences if one.known(verdicts)]
    changed = {name: verdicts[name] for one in known for name in one.unlike(verdicts)}
    return Overall(
        key=key,
        name=OWN_TITLE if key == OWN_STUDIES else registry.PAPERS.get(key, key),
        line=line([entry.row for entry in own]),
        sentences=tuple(
            Said(one.head, one.says, tuple((name, pages[name], verdicts[name]) for name in one.claims))
            for one in known
            if not one.unlike(verdicts)
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
    """What became of claims, in one sentence that is counted and not written."""
    full = Counter(row.verdict for row in rows if row.level == evidence.PAPER)
    less = Counter(row.verdict for row in rows if row.level != evidence.PAPER)
    decided, standing = sum(full.values()), sum(row.level == evidence.STAND_IN for row in rows)
    claims = f"{len(rows)} claim{'s' if len(rows) != 1 else ''}"
    if decided == 0:
        said = f"None of {claims} is decided at the published sizes yet"
    elif decided == len(rows):
        said = f"All {claims} are decided at the published sizes: {_counted(full)}"
    else:
        said = f"{decided} of {claims} are decided at the published sizes: {_counted(full)}"
    rest = f"; on less evidence {_counted(less)}" if less else ""
    return said + rest + (f" ({standing} on stand-ins, which say nothing about the paper)" if standing else "")


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts.get(verdict))


# -- values in words ---------------------------------------------------------------------------------------------------


def amount(value: float) -> str:
    """A value as a page shows it."""
    if value != value:
        return "not a number"
    if value in (float("inf"), float("-inf")):
        return "never" if value > 0 else "−∞"
    if abs(value) >= 1e4 and abs(value) < 1e15:
        return f"{value:,.0f}"
    return f"{value:.4g}".replace("-", "−")


def spread(one: Interval) -> str:
    """A value with its interval, where there is one."""
    if not one.low < one.high:
        return amount(one.value)
    return f"{amount(one.value)} [{amount(one.low)}, {amount(one.high)}]"


# -- the folder --------------------------------------------------------------------------------------------------------


@dataclass
class Site:
    """What the pages are made from. files : by path in the folder, as far as it is made."""

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
        """Every file of the folder."""
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
        if self.library and any(one.data for one in self.prepared.values()):
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
        groups = [(one.key, one.name) for one in self.overall]
        return {
            "entries": self.entries,
            "figures": list(self.figures.values()),
            "methods": sorted(named, key=lambda one: one[0].lower()),
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
        panels = [self._panel(folder, one) for one in prepared.panels]
        if prepared.data and self.library:
            self.files[f"{folder}/data.js"] = script(section.name, prepared.data)
        title = f"{section.name}: {section.figure.title}"
        own = [entry for entry in self.entries if entry.section is section]
        self.page(path, "figure.html", title, figure=self.figures[section.name], panels=panels, own=own,
                  data=prepared.data if self.library else {}, seconds=duration(prepared.seconds))  # fmt: skip

    def _panel(self, folder: str, one: Shown) -> dict[str, Any]:
        """The files of a panel, and what its templates need of it."""
        stem = f"{folder}/{file_name(one.id)}"
        paths = {ending: f"{stem}.{ending}" for ending in one.files}
        for ending, content in one.files.items():
            self.files[paths[ending]] = content
        return {"panel": one, "files": paths, "picture": paths.get("svg") or paths.get("png")}

    def _claim(self, entry: Entry, before: Entry | None, after: Entry | None) -> None:
        section, row = entry.section, entry.row
        prepared = self.prepared.get(section.name, Prepared())
        read = prepared.reads.get(row.claim.id)
        folder = figure_page(section.name).removesuffix(".html")
        source = section.read_from(row)
        lent = source is not None and source is not section.source
        shown = [one for one in (prepared.lent if lent else prepared.panels) if one.tier == row.tier]
        wanted = [one for one in shown if one.id == row.claim.panel or row.claim.id in one.marks]
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


def _around(found: Sequence[Entry]) -> Iterator[tuple[Entry | None, Entry, Entry | None]]:
    for i, entry in enumerate(found):
        before = found[i - 1] if i and found[i - 1].section is entry.section else None
        after = found[i + 1] if i + 1 < len(found) and found[i + 1].section is entry.section else None
        yield before, entry, after


def marks_json(marks: Iterable[Mark]) -> str:
    """Marks for the script that draws them into a picture that can be explored."""
    return json.dumps([[m.curve, m.round, m.value, m.words] for m in marks if m.curve >= 0 and m.value == m.value])


def library() -> bytes:
    """The script that draws pictures to explore, of the package that carries it; nothing where that is absent."""
    found = importlib.util.find_spec("plotly")
    for place in found.submodule_search_locations or () if found is not None else ():
        path = Path(place) / "package_data" / LIBRARY
        if path.is_file():
            return path.read_bytes()
    return b""


def write(folder: Path, files: Mapping[str, bytes]) -> None:
    """Put a report's files into a folder, in place of an earlier one. Raises UserError where it holds anything else."""
    index = folder / "index.html"
    if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not _is_report(index))):
        raise UserError(f"{folder}: holds other files than a report's; remove it, or name another folder with --out")
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
