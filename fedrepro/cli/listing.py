"""The command ``list``, and tables of text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from fedrepro import own_modules, registry
from fedrepro.cli.options import Choice, json_option
from fedrepro.errors import UserError
from fedrepro.spec import nodes
from fedrepro.spec.find import experiments, of_own_studies, specs, unchecked_claims

Rows = list[dict[str, str]]
"""The rows of a table: each has a text for every column."""


def _figures() -> Rows:
    return [{"name": name, "title": _title(path), "spec": str(path)} for name, path in _named()]


def _named() -> list[tuple[str, Path]]:
    """Return the names and files of the specs in ``experiments``, then those of a user's own specs elsewhere."""
    listed = [(f"{path.parent.name}/{path.stem}", path) for path in specs(experiments())]
    return listed + [(f"{own.study}/{own.figure}", own.path) for own in of_own_studies()]


def _title(path: Path) -> str:
    try:
        title = nodes.read(path).get("title")
    except UserError:
        return "(not a valid spec; `fedrepro validate` prints the errors)"
    return str(title.value) if title else ""


def _claims() -> Rows:
    return [
        {"name": str(claim["id"]), "figure": name, "says": str(claim.get("says", ""))}
        for name, path in _named()
        for claim in _claims_of(path)
        if "id" in claim
    ]


def _claims_of(path: Path) -> list[dict[str, Any]]:
    try:
        return unchecked_claims(path)
    except UserError:  # `list figures` names it
        return []


def _entries(entries: Mapping[str, Any], *columns: str) -> Rows:
    return [{name: getattr(entry, name) for name in columns} for _, entry in sorted(entries.items())]


def _algorithms() -> Rows:
    """Return the methods of this package, then those that installed packages offer, which are not loaded."""
    rows = _entries(registry.methods(), "name", "label", "problem", "summary")
    offered = sorted(own_modules.installed().items())
    return rows + [
        {
            "name": name,
            "label": "",
            "problem": "",
            "summary": f"of the installed package {own_modules.offered_by(point)}",
        }
        for name, point in offered
        if name not in registry.methods()
    ]


def _problems() -> Rows:
    entries = sorted(registry.problems().items())
    return [{"name": name, "data": problem.data_kind, "summary": problem.summary} for name, problem in entries]


def _metrics() -> Rows:
    return [
        {"name": metric.name, "problem": name, "better": metric.better, "summary": metric.summary}
        for name, problem in sorted(registry.problems().items())
        for metric in problem.metrics.values()
    ]


TABLES: dict[str, Callable[[], Rows]] = {
    "papers": lambda: [{"name": name, "title": title} for name, title in registry.PAPERS.items()],
    "figures": _figures,
    "claims": _claims,
    "problems": _problems,
    "algorithms": _algorithms,
    "partitions": lambda: _entries(registry.partitions(), "name", "summary"),
    "datasets": lambda: _entries(registry.datasets(), "name", "kind", "summary"),
    "metrics": _metrics,
}
"""The rows of each table: papers with their figures and claims, and the things that a spec can name."""

LONG = {"claims"}
"""The tables that are printed as text only if they are asked for."""

ALSO_CALLED = {"methods": "algorithms", "method": "algorithms", **{name[:-1]: name for name in TABLES}}
"""Other words for the tables: singulars, and ``methods`` for algorithms."""


@click.command("list")
@click.argument("what", required=False, type=Choice(TABLES, ALSO_CALLED))
@json_option
def list_(what: str | None, as_json: bool) -> None:
    """List papers, figures, claims, algorithms, datasets and other names.

    `fedrepro describe NAME` explains one of them. Claims are listed only if they are asked for. Your own specs in this
    folder, or up to three folders below, follow those of the papers.

    \b
    Examples:
      fedrepro list
      fedrepro list algorithms
      fedrepro list claims
      fedrepro list figures --json
    """
    if as_json:
        tables = {name: TABLES[name]() for name in ([what] if what else TABLES)}
        click.echo(json.dumps(tables[what] if what else tables, indent=1, ensure_ascii=False))
        return
    for name in [what] if what else [name for name in TABLES if name not in LONG]:
        click.secho(name, bold=True)
        for row in aligned(tuple(row[column] for column in row if column != "spec") for row in TABLES[name]()):
            click.echo(f"  {row}")


def aligned(rows: Iterable[tuple[str, ...]]) -> list[str]:
    """Return rows as lines with aligned columns."""
    rows = list(rows)
    widths = [max((len(r[i]) for r in rows if i < len(r)), default=0) for i in range(max(map(len, rows), default=0))]
    return ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=False)).rstrip() for row in rows]
