"""The tables that ``fedrepro list`` prints."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from fedrepro import registry
from fedrepro.errors import UserError
from fedrepro.spec import nodes
from fedrepro.spec.find import specs


def tables(experiments: Path) -> dict[str, list[tuple[str, ...]]]:
    """Rows of names and explanations for each kind of thing a spec can name."""
    return {
        "papers": list(registry.PAPERS.items()),
        "figures": [_figure(path) for path in specs(experiments)],
        "algorithms": [(a.name, a.label, a.problem, a.summary) for _, a in sorted(registry.algorithms().items())],
        "partitions": [(p.name, p.summary) for _, p in sorted(registry.partitions().items())],
        "datasets": [(d.name, d.kind, d.summary) for _, d in sorted(registry.datasets().items())],
    }


def _figure(path: Path) -> tuple[str, ...]:
    try:
        root = nodes.read(path)
    except UserError:
        return (str(path), "(not a valid spec; `fedrepro validate` says why)")
    title = root.get("title")
    return (str(path), str(title.value) if title else "")


def aligned(rows: Iterable[tuple[str, ...]]) -> list[str]:
    """Rows as lines with aligned columns."""
    rows = list(rows)
    widths = [max((len(r[i]) for r in rows if i < len(r)), default=0) for i in range(max(map(len, rows), default=0))]
    return ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=False)).rstrip() for row in rows]
