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
from fedrepro.report import addresses, compare, gather_contents, pictures, site
from fedrepro.report.compare import NOISE, SAME, Change
from fedrepro.report.contents import Section
from fedrepro.report.render import static
from fedrepro.report.site import STATIC
from fedrepro.results.read import PACKED
from fedrepro.runs.storage.write import made
from fedrepro.spec.find import experiments, is_study
from fedrepro.spec.tiers import DEFAULT, TIERS


@dataclass(frozen=True)
class Compared:
    """A figure in both sets: its name, both files, and the comparison of all its curves."""

    name: str
    a: Path
    b: Path
    changes: tuple[Change, ...]

    @property
    def anchor(self) -> str:
        """Its place in the page."""
        return addresses.anchor(*self.name.split("/"))

    @property
    def moved(self) -> tuple[Change, ...]:
        """The curves that moved or have no counterpart."""
        return tuple(change for change in self.changes if change.state not in (SAME, NOISE))

    @property
    def counts(self) -> str:
        """The number of curves in each state, in words."""
        counts = Counter(change.state for change in self.changes)
        return ", ".join(f"{count} {state}" for state, count in counts.items())


@dataclass(frozen=True)
class Comparison:
    """Two sets of results: the figures in both, and the names of those only in A, and only in B."""

    figures: tuple[Compared, ...]
    only_a: tuple[str, ...] = ()
    only_b: tuple[str, ...] = ()

    @property
    def changes(self) -> list[Change]:
        """All curves of the figures in both sets."""
        return [change for figure in self.figures for change in figure.changes]


def sets(a: Path, b: Path, metric: str | None = None) -> Comparison:
    """Return the comparison of two results files, or of the common figures of two folders.

    Raises UserError if one is a file and the other a folder, or if they have no common figure, or no common curve.
    """
    if a.is_dir() != b.is_dir():
        raise UserError(f"{a} and {b}: two files of results, or two folders with such files")
    if not a.is_dir():
        name = f"{a.parent.name}/{_stem(a)}" if a.parent.name else _stem(a)
        in_a, in_b = {name: a}, {name: b}
    else:
        in_a, in_b = _files(a), _files(b)
    both = [name for name in in_a if name in in_b]
    if not both:
        raise UserError(
            f"{a} and {b}: no figure is in both; results are stored in TIER/PAPER/FIGURE.csv or STUDY/FIGURE.csv"
        )
    files = ((name, in_a[name], in_b[name]) for name in both)
    figures = tuple(Compared(name, a, b, tuple(compare.files(a, b, metric))) for name, a, b in files)
    if not any(change.state not in (compare.ONLY_A, compare.ONLY_B) for one in figures for change in one.changes):
        raise UserError(f"{a} and {b}: no curve is in both; compare results of one figure")
    only_a, only_b = (tuple(name for name in own if name not in both) for own in (in_a, in_b))
    return Comparison(figures, only_a, only_b)


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


def _stem(path: Path) -> str:
    return path.name.removesuffix(".gz").removesuffix(".xz").removesuffix(".csv")


def page(a: Path, b: Path, compared: Comparison) -> dict[str, bytes]:
    """Return the files of a folder that shows the differences between A and B."""
    files = {f"static/{name}": static(name).encode() for name in STATIC}
    verdicts, panels = {}, {}
    for figure in compared.figures:
        sections = [_section(path) for path in (figure.a, figure.b)]
        verdicts[figure.name] = list(_verdicts(sections))
        panels[figure.name] = list(_pictures(figure, sections, files))
    files["index.html"] = site.page(
        "index.html", "compare.html", "Two sets of results", made_by=site.program(made()), a=str(a), b=str(b),
        compared=compared, states=Counter(change.state for change in compared.changes), verdicts_of=verdicts,
        turned=sum(x.verdict != y.verdict for both in verdicts.values() for x, y in both), panels_of=panels,
        lines=lambda changes: compare.lines(changes, True),
    )  # fmt: skip
    return files


def _section(path: Path) -> Section | None:
    """Return the figure of a results file if its path and spec are those of a figure; otherwise None."""
    tier, paper = path.absolute().parents[1].name, path.absolute().parent.name
    spec = experiments() / paper / f"{_stem(path)}.yaml"
    is_default = tier not in TIERS and is_study(paper)
    if (tier not in TIERS and not is_default) or not spec.is_file():
        return None
    try:
        return gather_contents.section(
            spec, DEFAULT if is_default else tier, path.absolute().parents[1 if is_default else 2]
        )
    except UserError:
        return None


def _verdicts(sections: Sequence[Section | None]) -> Iterator[tuple[Row, Row]]:
    a, b = sections
    if a is None or b is None:
        return
    others = {row.claim.id: row for row in b.claims}
    yield from ((row, others[row.claim.id]) for row in a.claims if row.claim.id in others)


def _pictures(
    figure: Compared, sections: Sequence[Section | None], files: dict[str, bytes]
) -> Iterator[tuple[str, str, str]]:
    """Yield title and both pictures of every panel with a curve that moved, and add their files."""
    series = {name for change in figure.moved for name in (change.series, change.other)}
    drawn: list[Mapping[str, tuple[str, str]]] = []
    for side, section in zip("ab", sections, strict=True):
        own: dict[str, tuple[str, str]] = {}
        source = section.source if section is not None else None
        for panel in source.figure.panels if source is not None else ():
            if source is not None and series & {curve.setting.series for curve in panel.curves}:
                for ending, content in pictures.drawing(
                    source, panel, f"{figure.anchor}-{side}", ("svg",)
                ).files.items():
                    path = f"{side}/{addresses.file_name(figure.anchor, panel.id)}.{ending}"
                    files[path] = content
                    own[panel.id] = pictures.titled(panel), path
        drawn.append(own)
    a, b = drawn
    yield from ((a[name][0], a[name][1], b[name][1]) for name in a if name in b)
