"""From results to pictures: pairs each spec with the results it has and hands both to the plotting package."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from fedrepro import results
from fedrepro.errors import UserError
from fedrepro.spec import nodes
from fedrepro.spec.model import Figure
from fedrepro.spec.read import build, load


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
        sidecar = results.read_sidecar(root, figure) or {}
        if sidecar.get("sets"):
            figure = build(node, str(path), tier, sidecar["sets"])
        frame = pd.read_csv(table, keep_default_na=True, dtype={"partition": str, "parameters": str})
        yield figure, frame, sidecar


def results_file(base: Path) -> Path | None:
    """A figure's CSV, or its compressed copy (``.csv.gz``, as large ones are kept in the repository), or None."""
    found = (base.with_name(base.name + suffix) for suffix in (".csv", ".csv.gz"))
    return next((path for path in found if path.exists()), None)


def draw_all(
    paths: Iterable[Path], tier: str, formats: tuple[str, ...], root: Path, plots: Path, must: bool
) -> list[Path]:
    """Draw every figure that has results; returns the files written."""
    import pandas as pd

    from fedrepro.plotting.figure import draw

    drawn: list[Path] = []
    for figure, frame, sidecar in with_results(paths, tier, root, must):
        points = results.stem(root, figure).with_name(figure.figure + ".points.csv")
        arrays = pd.read_csv(points) if points.exists() else None
        drawn += draw(figure, frame, sidecar, results.stem(plots, figure), formats, points=arrays)
    return drawn
