"""The report as Markdown: overview, claims and discrepancies, to read with the code."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from fedrepro import registry
from fedrepro.claims.judge import Row
from fedrepro.plotting.header_footer import tags
from fedrepro.report import views
from fedrepro.report.discrepancies import Discrepancy
from fedrepro.report.effects import Measured
from fedrepro.report.gather import VERDICTS, Report, Section


def text(report: Report, plots: Path | None = None) -> str:
    """Return the file. plots : its folder; pictures that exist there are shown."""
    total = "; ".join(f"{report.count(v)} {v}" for v in VERDICTS)
    parts = [f"# Which claims held\n\n{total}.\n", table(_levels(report))]
    parts += ["## Overview\n", table(_overview(report))]
    for section in report.sections:
        parts += [f"## {section.name}: {_line(section.figure.title)}\n", *_figure(section, plots)]
    parts += ["## Discrepancies\n", *(_row(row, report.effects.get(row.id, ())) for row in report.discrepancies)]
    return re.sub(r"<(?=[A-Za-z/!?])", "&lt;", "\n".join(parts)).rstrip() + "\n"  # texts of specs are not markup


def _levels(report: Report) -> list[list[str]]:
    """Return how many claims rest on each level of evidence."""
    rows = [[view.name, str(view.count), view.verdicts, view.means] for view in views.levels(report)]
    return [["evidence", "claims", "verdicts", "meaning"], *rows]


def _overview(report: Report) -> list[list[str]]:
    rows = [["paper", "figure", "tier", *VERDICTS, ""]]
    for s in report.sections:
        tier = s.figure.tier if s.source else "no results"
        paper = registry.PAPERS.get(s.figure.paper, s.figure.paper)
        rows.append([paper, s.figure.figure, tier, *(str(s.count(v) or "") for v in VERDICTS), ", ".join(_caveats(s))])
    return rows


def _caveats(section: Section) -> list[str]:
    caveats = [tag.lower() for tag in tags(section.source)] if section.source else []
    return caveats + (["stale"] if section.stale else [])


def _figure(section: Section, plots: Path | None) -> Iterable[str]:
    figure = section.figure
    yield f"*{_line(figure.source)}*\n"
    yield from (f"> Stale: {why}.\n" for why in section.stale)
    yield from (f"> Not checked: {why}.\n" for why in section.unchecked)
    if section.check is not None:
        yield f"Computed again: {section.check.words}.\n"
    picture = f"{figure.tier}/{section.name}.png"
    if section.source is not None and plots is not None and (plots / picture).exists():
        yield f"![{_line(figure.title)}]({picture})\n"
    if section.claims:
        yield table([["verdict", "evidence", "claim", "", "why"], *(_claim(row) for row in section.claims)])
    yield f"    fedrepro run {section.path} --tier {figure.tier}\n"


def _claim(row: Row) -> list[str]:
    claim = row.claim
    says = f"{claim.says} ({claim.where})" + (f" *Read as: {claim.reading}*" if claim.reading else "")
    return [row.verdict, row.level, f"`{claim.id}`", says, row.reason]


def _row(row: Discrepancy, effects: Iterable[Measured]) -> str:
    other = "; ".join(f"`{v}`" for v in row.variants) or f"none: {row.no_variant}"
    lines = [
        f"**{row.id}, {row.topic}**\n",
        f"- paper: {row.says}",
        f"- released program: {row.code}",
        f"- taken here: {row.taken}",
        f"- other reading: {other}",
        *([f"- to run it: `{row.command}`"] if row.command else []),
        *(f"- effect: {e.words} ({e.figure}, {e.tier})" for e in effects),
        *([f"- note: {row.note}"] if row.note else []),
    ]
    return "\n".join(lines) + "\n"


def table(rows: list[list[str]]) -> str:
    """Return rows as a table, the header first."""
    head, *rest = rows
    lines = [head, ["---"] * len(head), *rest]
    return "\n".join("| " + " | ".join(_cell(c) for c in line) + " |" for line in lines) + "\n"


def _cell(value: str) -> str:
    return _line(value).replace("|", "\\|")


def _line(text: str) -> str:
    return text.replace("\n", " ")
