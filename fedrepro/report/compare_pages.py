"""Pages that compare two sets of results: curves that moved beyond noise, changed verdicts, and pictures.

A set is one results file or a folder of them, for example of two machines, two versions of the code, or your own method
and a paper's. Figures in both sets are compared by ``compare``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fedrepro.claims.judge import Row
from fedrepro.errors import UserError
from fedrepro.report import addresses, compare, gather, pictures, site
from fedrepro.report.compare import NOISE, SAME, Change
from fedrepro.report.contents import Section
from fedrepro.report.render import static
from fedrepro.report.site import STATIC
from fedrepro.results.read import PACKED
from fedrepro.runs.storage.write import made
from fedrepro.spec.find import experiments
from fedrepro.spec.tiers import TIERS

UNSEEN = (SAME, NOISE)
"""States of curves that did not move."""


@dataclass(frozen=True)
class Pair:
    """A figure in both sets: its name and both files."""

    name: str
    a: Path
    b: Path


def pairs(a: Path, b: Path) -> tuple[list[Pair], list[str], list[str]]:
    """Return the figures in both sets, then the names of those only in A, and only in B.

    Raises UserError if one is a file and the other a folder, or if they have no common figure.
    """
    if a.is_dir() != b.is_dir():
        raise UserError(f"{a} and {b}: two files of results, or two folders with such files")
    if not a.is_dir():
        return [Pair(_name(a), a, b)], [], []
    in_a, in_b = _files(a), _files(b)
    both = [Pair(name, in_a[name], in_b[name]) for name in in_a if name in in_b]
    if not both:
        raise UserError(f"{a} and {b}: no figure is in both; results are stored in TIER/PAPER/FIGURE.csv")
    return both, [n for n in in_a if n not in in_b], [n for n in in_b if n not in in_a]


def _files(folder: Path) -> dict[str, Path]:
    """Return the results files below a folder by path without suffix, except those stored beside others."""
    files: dict[str, Path] = {}
    for ending in ("", *PACKED):
        for depth in ("*.csv", "*/*.csv", "*/*/*.csv"):
            for path in sorted(folder.glob(depth + ending)):
                name = path.relative_to(folder).as_posix().removesuffix(ending).removesuffix(".csv")
                odd = name.endswith((".points", ".stand-in")) or ".incomplete" in name or ".stand-in." in name
                if not odd and not any(part.startswith(".") or part == "set" for part in name.split("/")):
                    files.setdefault(name, path)
    return dict(sorted(files.items()))


def _name(path: Path) -> str:
    stem = path.name.removesuffix(".gz").removesuffix(".xz").removesuffix(".csv")
    return f"{path.parent.name}/{stem}" if path.parent.name else stem


@dataclass(frozen=True)
class Compared:
    """A figure in both sets. changes : all curves. moved : curves that moved. verdicts : of each claim in A and B."""

    name: str
    anchor: str
    changes: tuple[Change, ...]
    moved: tuple[Change, ...]
    counts: str
    verdicts: tuple[tuple[Row, Row], ...]
    panels: tuple[tuple[str, str, str], ...]


def page(a: Path, b: Path, metric: str | None, pictured: bool = True) -> dict[str, bytes]:
    """Return the files of a folder that shows the differences between A and B."""
    both, only_a, only_b = pairs(a, b)
    files = {f"static/{name}": static(name).encode() for name in STATIC}
    figures = [_compared(pair, metric, pictured, files) for pair in both]
    states = Counter(change.state for figure in figures for change in figure.changes)
    turned = sum(x.verdict != y.verdict for figure in figures for x, y in figure.verdicts)
    files["index.html"] = site.page(
        "index.html", "compare.html", "Two sets of results", made_by=site.program(made()), a=str(a), b=str(b),
        figures=figures, states=states, turned=turned, only_a=only_a, only_b=only_b,
        lines=lambda changes: compare.lines(changes, True),
    )  # fmt: skip
    return files


def _compared(pair: Pair, metric: str | None, pictured: bool, files: dict[str, bytes]) -> Compared:
    changes = tuple(compare.compare(compare.read(pair.a), compare.read(pair.b), metric))
    moved = tuple(change for change in changes if change.state not in UNSEEN)
    counted = Counter(change.state for change in changes)
    sections = [_section(path) for path in (pair.a, pair.b)]
    anchor = addresses.anchor(*pair.name.split("/"))
    return Compared(
        pair.name, anchor, changes, moved, ", ".join(f"{n} {state}" for state, n in counted.items()),
        tuple(_verdicts(sections)), tuple(_pictures(anchor, sections, moved, files)) if pictured else (),
    )  # fmt: skip


def _section(path: Path) -> Section | None:
    """Return the figure of a results file if its path and spec are those of a figure; otherwise None."""
    stem = path.name.removesuffix(".gz").removesuffix(".xz").removesuffix(".csv")
    tier, paper = path.absolute().parents[1].name, path.absolute().parent.name
    spec = experiments() / paper / f"{stem}.yaml"
    if tier not in TIERS or not spec.is_file():
        return None
    try:
        return gather.section(spec, tier, path.absolute().parents[2])
    except UserError:
        return None


def _verdicts(sections: Sequence[Section | None]) -> Iterator[tuple[Row, Row]]:
    a, b = sections
    if a is None or b is None:
        return
    others = {row.claim.id: row for row in b.claims}
    yield from ((row, others[row.claim.id]) for row in a.claims if row.claim.id in others)


def _pictures(
    anchor: str, sections: Sequence[Section | None], moved: Sequence[Change], files: dict[str, bytes]
) -> Iterator[tuple[str, str, str]]:
    """Yield title and both pictures of every panel with a curve that moved."""
    series = {name for change in moved for name in (change.series, change.other)}
    drawn: list[Mapping[str, tuple[str, str]]] = []
    for side, section in zip("ab", sections, strict=True):
        own: dict[str, tuple[str, str]] = {}
        source = section.source if section is not None else None
        for panel in source.figure.panels if source is not None else ():
            if source is not None and series & {curve.setting.series for curve in panel.curves}:
                formats = pictures.drawing(source, panel, f"{anchor}-{side}", ("svg", "png")).files
                ending = next((e for e in ("svg", "png") if e in formats), "")
                path = f"{side}/{addresses.file_name(anchor, panel.id)}.{ending}"
                if ending:
                    files[path] = formats[ending]
                    own[panel.id] = pictures.titled(panel), path
        drawn.append(own)
    a, b = drawn
    yield from ((a[name][0], a[name][1], b[name][1]) for name in a if name in b)
