"""Every figure that has results, drawn: pairs specs with results and hands both to ``figure``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from fedrepro.plotting.figure import draw
from fedrepro.results.read import stem, with_results


def draw_all(
    paths: Iterable[Path], tier: str, formats: tuple[str, ...], root: Path, plots: Path, must: bool
) -> list[Path]:
    """Draw every figure that has results; returns the files written."""
    import pandas as pd

    drawn: list[Path] = []
    for figure, frame, sidecar in with_results(paths, tier, root, must):
        points = stem(root, figure).with_name(figure.figure + ".points.csv")
        arrays = pd.read_csv(points) if points.exists() else None
        drawn += draw(figure, frame, sidecar, stem(plots, figure), formats, points=arrays)
    return drawn
