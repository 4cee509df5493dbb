"""Everything the report says, as data: the discrepancies, and one section a figure with its claims and numbers."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedrepro.claims import judge, language
from fedrepro.errors import UserError
from fedrepro.plotting.series import Source
from fedrepro.report import discrepancies
from fedrepro.report.discrepancies import Discrepancy
from fedrepro.report.effects import Measured, measure
from fedrepro.report.freshness import freshness
from fedrepro.report.published import Published, published
from fedrepro.results import read
from fedrepro.spec import nodes
from fedrepro.spec.model import Claim, Curve, Figure
from fedrepro.spec.read import load
from fedrepro.spec.tiers import TIERS

BEST = "best"
BEST_FIRST = TIERS[::-1]
VERDICTS = (judge.REPRODUCED, judge.NOT_REPRODUCED, judge.NOISE, judge.NOT_TESTED)


@dataclass(frozen=True)
class Section:
    """One figure: its results at one tier (``source`` is None where there are none) and what follows from them.

    ``stale`` says what changed since the results were computed, ``unchecked`` why that cannot be told.
    """

    path: Path
    figure: Figure
    source: Source | None
    claims: tuple[judge.Row, ...]
    stale: tuple[str, ...]
    unchecked: tuple[str, ...]
    published: tuple[Published, ...]
    tiers: tuple[str, ...]

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

    def touching(self, name: str) -> list[Discrepancy]:
        """The discrepancies that touch a figure."""
        return [row for row in self.discrepancies if name in row.figures]


def gather(paths: Iterable[Path], tier: str, root: Path, experiments: Path) -> Report:
    """All specs' results: at ``tier``, or with ``best`` at the paper tier where there are any, else at quick."""
    sections = tuple(sorted((section(path, tier, root) for path in paths), key=_place))
    rows = tuple(discrepancies.load_all(experiments))
    sources = {s.name: s.source for s in sections if s.source is not None}
    effects = {row.id: tuple(_measure(row, sources)) for row in rows}
    return Report(sections, rows, effects)


def _place(section: Section) -> tuple[int, bool, list[tuple[int, str]]]:
    """Papers together, figures by number (fig3 before fig10, figS1 after), tables last."""
    parts = re.findall(r"\d+|\D+", section.figure.figure)
    number = [(int(part), "") if part.isdigit() else (0, part) for part in parts]
    return discrepancies.order(section.figure.paper), section.figure.figure.startswith("table"), number


def _measure(row: Discrepancy, sources: Mapping[str, Source]) -> Iterator[Measured]:
    for effect in row.effects:
        source = sources.get(effect.figure)
        if source is None:
            continue
        try:
            yield measure(effect, source)
        except UserError as error:  # a tier or a --set option may leave out the curves
            yield Measured(effect.figure, source.figure.tier, f"cannot be read from these results: {error}")


def section(path: Path, tier: str, root: Path) -> Section:
    """One figure's section."""
    wanted = BEST_FIRST[:2] if tier == BEST else (tier,)
    found = [t for t in BEST_FIRST if _has(path, t, root)]
    best = next((t for t in wanted if t in found), None)
    if best is None:
        figure = load(path, wanted[0])
        return Section(path, figure, None, tuple(_untested(figure, wanted)), (), (), (), tuple(found))
    ((figure, frame, sidecar),) = read.with_results([path], best, root, must=True)
    base = read.stem(root, figure)
    table = read.results_file(base)
    assert table is not None
    stale, unchecked = freshness(figure, sidecar, table)
    source = Source(figure, frame, sidecar, _points(base))
    rows = tuple(
        _explained(row, claim, source)
        for row, claim in zip(judge.table(figure, frame, sidecar), figure.claims, strict=True)
    )
    return Section(path, figure, source, rows, stale, unchecked, tuple(published(source)), tuple(found))


def _has(path: Path, tier: str, root: Path) -> bool:
    node = nodes.read(path)
    paper, name = (str(getattr(node.get(key), "value", "")) for key in ("paper", "figure"))
    return read.results_file(root / tier / paper / name) is not None


def _points(base: Path) -> Any:
    import pandas as pd

    path = base.with_name(base.name + ".points.csv")
    return pd.read_csv(path) if path.exists() else None


def _untested(figure: Figure, tiers: tuple[str, ...]) -> Iterator[judge.Row]:
    why = f"no results at the {' or the '.join(tiers)} tier"
    for claim in figure.claims:
        yield judge.Row(
            f"{figure.paper}/{figure.figure}", figure.tier, claim.id, claim.says, claim.where, claim.check,
            judge.NOT_TESTED, judge.NOT_TESTED, why, (), 0,
        )  # fmt: skip


def _explained(row: judge.Row, claim: Claim, source: Source) -> judge.Row:
    """The verdict, with what is behind it: data that are missing where a curve has none, trials that diverge."""
    why = row.why
    missing = source.sidecar.missing
    if row.verdict == judge.NOT_TESTED and "no finished trials" in why and missing:
        why += f": {missing[0]}" + (f", and {len(missing) - 1} more" if len(missing) > 1 else "")
    for curve in _compared(claim, source.figure):
        rows = source.frame[source.frame["series"] == curve.setting.series]
        runs = rows.groupby("trial")["status"].first()
        if (runs == "diverged").any():
            why += f"; '{curve.label}' diverges in {(runs == 'diverged').sum()} of {len(runs)} trials"
    return dataclasses.replace(row, why=why)


def _compared(claim: Claim, figure: Figure) -> list[Curve]:
    """The curves a claim's check reads, each once."""
    panels = {panel.id: panel for panel in figure.panels}
    found: dict[str, Curve] = {}
    for _, function, keywords in language.readers(language.parse(claim.check)):
        panel = panels[language.constant(keywords["panel"]) if "panel" in keywords else claim.panel]
        own = (*language.READERS[function], "panel", "metric")
        curve = language.pick(panel.curves, {k: language.constant(v) for k, v in keywords.items() if k not in own})
        found.setdefault(curve.setting.series, curve)
    return list(found.values())
