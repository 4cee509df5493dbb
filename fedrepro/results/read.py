"""Where a figure's results lie, and how they are read: the CSV, compressed or not, and the sidecar beside it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from fedrepro.errors import UserError
from fedrepro.spec import nodes
from fedrepro.spec.model import Figure
from fedrepro.spec.read import build, load


def stem(root: Path, figure: Figure) -> Path:
    """``<root>/<tier>/<paper>/<figure>``: results and plots add their suffixes."""
    return root / figure.tier / figure.paper / figure.figure


def read_sidecar(root: Path, figure: Figure) -> dict[str, Any] | None:
    """The sidecar of a figure's results, or None where there are none."""
    base = stem(root, figure)
    try:
        return json.loads(base.with_name(base.name + ".json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None


def with_results(
    paths: Iterable[Path], tier: str, root: Path, must: bool = False
) -> Iterator[tuple[Figure, Any, dict[str, Any]]]:
    """Each figure that has results at the tier, with its tidy frame and its sidecar.

    The ``--set`` options a result was computed with are applied again, so that the figure shows what was run. With
    ``must``, a spec without results is a UserError.
    """
    import pandas as pd

    for path in paths:
        node = nodes.read(path)
        paper, name = (str(getattr(node.get(key), "value", "")) for key in ("paper", "figure"))
        table = results_file(root / tier / paper / name)
        if table is None:
            if must:
                raise UserError(
                    f"{path}: no results at the {tier} tier in {root}; `fedrepro run {path} --tier {tier}` makes them"
                )
            continue
        figure = load(path, tier)
        sidecar = read_sidecar(root, figure) or {}
        if sidecar.get("sets"):
            figure = build(node, str(path), tier, sidecar["sets"])
        frame = pd.read_csv(table, keep_default_na=True, dtype={"partition": str, "parameters": str})
        yield figure, frame, sidecar


def results_file(base: Path) -> Path | None:
    """A figure's CSV, or its compressed copy (``.csv.gz``, as large ones are kept in the repository), or None."""
    found = (base.with_name(base.name + suffix) for suffix in (".csv", ".csv.gz"))
    return next((path for path in found if path.exists()), None)
