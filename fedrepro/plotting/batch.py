"""Draw every figure that has results, several at a time."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedrepro import processes
from fedrepro.errors import UserError
from fedrepro.plotting.figure import draw
from fedrepro.plotting.series import FigureData
from fedrepro.plotting.single_panel import draw_single_panel
from fedrepro.progress import Progress
from fedrepro.results.read import points, stem, with_results

FORMATS = ("png", "pdf")
"""The default formats."""


@dataclass(frozen=True)
class DrawOptions:
    """Options of drawing: results of a ``tier`` below ``root``, in ``formats``, into the folder ``plots``.

    sets : ``run --set`` options of the results. panel : draw only this panel, '' for the whole figure. width : width of
    that panel in inches, and as the user wrote it.
    """

    tier: str
    formats: tuple[str, ...]
    root: Path
    plots: Path
    sets: tuple[str, ...] = ()
    panel: str = ""
    width: tuple[float, str] = (0.0, "")


def draw_all(paths: Iterable[Path], options: DrawOptions, must: bool = False, jobs: int = 1) -> Iterator[Path]:
    """Draw every figure that has results, ``jobs`` at a time with progress; yield the files as they are written.

    must : raise UserError for a spec without results.
    """
    paths = list(paths)
    with Progress("figures", len(paths)) as progress:
        drawn = processes.parallel_map(functools.partial(draw_one, options=options, must=must), paths, jobs)
        for path, files in zip(paths, drawn, strict=True):
            progress.step(f"{path.parent.name}/{path.stem}")
            yield from files


def draw_one(path: Path, options: DrawOptions, must: bool = False) -> list[Path]:
    """Draw the figure of one spec, if it has results; return the files."""
    drawn: list[Path] = []
    for figure, frame, sidecar in with_results([path], options.tier, options.root, must, options.sets):
        arrays = points(stem(options.root, figure), sidecar)
        target = stem(options.plots, figure)
        if options.panel:
            source = FigureData(figure, frame, sidecar, arrays)
            drawn += draw_single_panel(source, options.panel, options.width, target, options.formats, options.root)
        else:
            drawn += draw(figure, frame, sidecar, target, options.formats, arrays, options.root)
    return drawn


class BackgroundDrawing:
    """A context that draws figures in its own processes while others are still computed.

    If it ends by an exception, or before ``files`` is called, drawing stops.
    """

    def __init__(self, options: DrawOptions, jobs: int) -> None:
        self.options, self.jobs = options, jobs
        self._drawing: list[Any] = []

    def __enter__(self) -> BackgroundDrawing:
        self._pool = processes.pool(self.jobs)
        return self

    def add(self, path: Path) -> None:
        """Submit the figure of a spec, if it has results."""
        try:
            future = self._pool.submit(draw_one, path, self.options)
        except BrokenProcessPool as error:  # raised by ``files``, so that computing continues
            future = Future()
            future.set_exception(error)
        self._drawing.append(future)

    def files(self) -> Iterator[Path]:
        """Wait for the files and yield them in the order of ``add``."""
        while self._drawing:
            try:
                files = self._drawing.pop(0).result()
            except BrokenProcessPool as error:
                raise UserError(f"a process that draws {processes.reason(error)}") from error
            yield from files

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(kill_workers=bool(self._drawing))
