"""The command ``list``, and tables of text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path

import click

from fedrepro import registry
from fedrepro.cli.options import json_option
from fedrepro.errors import UserError
from fedrepro.spec import nodes
from fedrepro.spec.find import experiments, specs

Rows = list[tuple[str, ...]]


def _figures() -> Rows:
    return [_figure(path) for path in specs(experiments())]


def _figure(path: Path) -> tuple[str, ...]:
    try:
        root = nodes.read(path)
    except UserError:
        return (str(path), "(not a valid spec; `fedrepro validate` says why)")
    title = root.get("title")
    return (str(path), str(title.value) if title else "")


def _metrics() -> Rows:
    problems = [problem for _, problem in sorted(registry.problems().items())]
    return [(m.name, problem.name, m.better, m.summary) for problem in problems for m in problem.metrics.values()]


COLUMNS: dict[str, tuple[str, ...]] = {
    "papers": ("name", "title"),
    "figures": ("spec", "title"),
    "problems": ("name", "data", "summary"),
    "algorithms": ("name", "label", "problem", "summary"),
    "partitions": ("name", "summary"),
    "datasets": ("name", "kind", "summary"),
    "metrics": ("name", "problem", "better", "summary"),
}
"""The columns of each table."""

TABLES: dict[str, Callable[[], Rows]] = {
    "papers": lambda: list(registry.PAPERS.items()),
    "figures": _figures,
    "problems": lambda: [(p.name, p.data_kind, p.summary) for _, p in sorted(registry.problems().items())],
    "algorithms": lambda: [(a.name, a.label, a.problem, a.summary) for _, a in sorted(registry.methods().items())],
    "partitions": lambda: [(p.name, p.summary) for _, p in sorted(registry.partitions().items())],
    "datasets": lambda: [(d.name, d.kind, d.summary) for _, d in sorted(registry.datasets().items())],
    "metrics": _metrics,
}
"""The rows of each table: the things that a spec can name, with explanations."""


@click.command("list")
@click.argument("what", required=False, type=click.Choice(list(TABLES)))
@json_option
def list_(what: str | None, as_json: bool) -> None:
    """List papers, figures, problems, algorithms, partitions, datasets and metrics.

    `fedrepro describe NAME` explains one of them.

    \b
    Examples:
      fedrepro list
      fedrepro list algorithms
      fedrepro list figures --json
    """
    if as_json:
        tables = {
            name: [dict(zip(COLUMNS[name], row, strict=True)) for row in TABLES[name]()]
            for name in ([what] if what else TABLES)
        }
        click.echo(json.dumps(tables[what] if what else tables, indent=1, ensure_ascii=False))
        return
    for name in [what] if what else TABLES:
        click.secho(name, bold=True)
        for row in aligned(TABLES[name]()):
            click.echo(f"  {row}")


def aligned(rows: Iterable[tuple[str, ...]]) -> list[str]:
    """Return rows as lines with aligned columns."""
    rows = list(rows)
    widths = [max((len(r[i]) for r in rows if i < len(r)), default=0) for i in range(max(map(len, rows), default=0))]
    return ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=False)).rstrip() for row in rows]
