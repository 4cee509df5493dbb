"""Every figure that has results, drawn: pairs specs with results and hands both to ``figure``, several at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedrepro.plotting.alone import draw_alone
from fedrepro.plotting.figure import draw
from fedrepro.plotting.series import Source
from fedrepro.progress import Progress
from fedrepro.results.read import stem, with_results

FORMATS = ("png", "pdf")
"""What is drawn unless something else is asked for."""


@dataclass(frozen=True)
class Where:
    """What is drawn: results of a ``tier`` under ``root``, as ``formats``, into the folder ``plots``.

    panel : one panel only, '' for the whole figure. width : of that panel in inches, and as the user wrote it.
    """

    tier: str
    formats: tuple[str, ...]
    root: Path
    plots: Path
    panel: str = ""
    width: tuple[float, str] = (0.0, "")


def draw_all(paths: Iterable[Path], where: Where, must: bool = False, jobs: int = 1) -> Iterator[Path]:
    """Draw every figure that has results, ``jobs`` at a time, and tell how far that is; the files as they are written.

    With ``must``, a spec without results is a UserError.
    """
    from joblib import Parallel, delayed

    paths = list(paths)
    parallel = Parallel(n_jobs=max(1, min(jobs, len(paths))), return_as="generator_unordered", batch_size=1)
    with Progress("figures", len(paths)) as progress:
        for path, files in parallel(delayed(_drawn)(path, where, must) for path in paths):
            progress.step(f"{path.parent.name}/{path.stem}")
            yield from files


def _drawn(path: Path, where: Where, must: bool) -> tuple[Path, list[Path]]:
    return path, draw_one(path, where, must)


def draw_one(path: Path, where: Where, must: bool = False) -> list[Path]:
    """Draw the figure of one spec, if it has results; returns the files written."""
    import pandas as pd

    drawn: list[Path] = []
    for figure, frame, sidecar in with_results([path], where.tier, where.root, must):
        points = stem(where.root, figure).with_name(figure.figure + ".points.csv")
        arrays = pd.read_csv(points) if points.exists() else None
        target = stem(where.plots, figure)
        if where.panel:
            source = Source(figure, frame, sidecar, arrays)
            drawn += draw_alone(source, where.panel, where.width, target, where.formats, where.root)
        else:
            drawn += draw(figure, frame, sidecar, target, where.formats, arrays, where.root)
    return drawn


class Beside:
    """Draws figures in processes of its own, while others are still computed.

    A context; left by an exception, or before ``files`` was asked for, it stops the drawing.
    """

    def __init__(self, where: Where, jobs: int) -> None:
        self.where, self.jobs = where, jobs
        self._drawing: list[Any] = []

    def __enter__(self) -> Beside:
        from joblib.externals.loky import ProcessPoolExecutor

        self._pool = ProcessPoolExecutor(max_workers=self.jobs)
        return self

    def add(self, path: Path) -> None:
        """Have the figure of a spec drawn, if it has results."""
        self._drawing.append(self._pool.submit(draw_one, path, self.where))

    def files(self) -> Iterator[Path]:
        """The files as they are written, in the order of ``add``; waits for them."""
        while self._drawing:
            yield from self._drawing.pop(0).result()

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(kill_workers=bool(self._drawing))
