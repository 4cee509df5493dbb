"""Draw every figure that has results, several at a time."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path

from fedrepro import processes
from fedrepro.errors import UserError
from fedrepro.plotting.figure import draw
from fedrepro.plotting.series import FigureData
from fedrepro.plotting.single_panel import draw_single_panel
from fedrepro.progress import Progress
from fedrepro.results.read import has_results, largest_tier, stem

FORMATS = ("png", "pdf")
"""The default formats."""

FEW = 3
"""Up to so many figures, another process takes longer to start than it saves."""


@dataclass(frozen=True)
class DrawOptions:
    """Options of drawing: results of a ``tier`` below ``root``, in ``formats``, into the folder ``plots``.

    tier : a tier, or ``best`` for the largest that has results. sets : ``run --set`` options of the results. width : of
    a panel that is drawn by itself, in inches, and as the user wrote it.
    """

    tier: str
    formats: tuple[str, ...]
    root: Path
    plots: Path
    sets: tuple[str, ...] = ()
    width: tuple[float, str] = (0.0, "")


Wanted = tuple[Path, str]
"""A spec, and the panel to draw by itself, '' for the whole figure."""


def draw_all(wanted: Iterable[Wanted], options: DrawOptions, must: bool = False, jobs: int = 1) -> Iterator[Path]:
    """Draw every figure that has results, ``jobs`` at a time with progress; yield the files as they are written.

    must : raise UserError for a spec without results.
    """
    wanted = list(wanted)
    jobs = jobs if len(wanted) > FEW else 1
    with Progress("figures", len(wanted)) as progress:
        drawn = processes.parallel_map(functools.partial(draw_one, options=options, must=must), wanted, jobs)
        for (path, _), files in zip(wanted, drawn, strict=True):
            progress.step(f"{path.parent.name}/{path.stem}")
            yield from files


def draw_one(wanted: Wanted, options: DrawOptions, must: bool = False) -> list[Path]:
    """Draw the figure of one spec or one of its panels, if it has results; return the files."""
    path, panel = wanted
    tier = largest_tier(path, options.tier, options.root, options.sets)
    if not (must or has_results(path, tier, options.root, options.sets)):
        return []
    source = FigureData.read(path, tier, options.root, options.sets)
    target = stem(options.plots, source.figure)
    if panel:
        return draw_single_panel(source, panel, options.width, target, options.formats, options.root)
    return draw(source, target, options.formats, options.root)


class BackgroundDrawing:
    """A context that draws ``figures`` figures in up to ``jobs`` processes of its own while others are still computed.

    A single figure is drawn by ``files``, in this process. If the context ends by an exception, or before ``files`` is
    called, drawing stops.
    """

    def __init__(self, options: DrawOptions, figures: int, jobs: int) -> None:
        self.options, self.jobs = options, min(figures, jobs)
        self._pool = processes.pool(self.jobs) if figures > 1 else None
        self._drawing: list[Callable[[], list[Path]]] = []

    def __enter__(self) -> BackgroundDrawing:
        return self

    def add(self, path: Path) -> None:
        """Submit the figure of a spec, if it has results."""
        if self._pool is None:
            self._drawing.append(functools.partial(draw_one, (path, ""), self.options))
            return
        try:
            future = self._pool.submit(draw_one, (path, ""), self.options)
        except BrokenProcessPool as error:  # raised by ``files``, so that computing continues
            future = Future()
            future.set_exception(error)
        self._drawing.append(future.result)

    def files(self) -> Iterator[Path]:
        """Wait for the files and yield them in the order of ``add``."""
        while self._drawing:
            try:
                files = self._drawing.pop(0)()
            except BrokenProcessPool as error:
                raise UserError(f"a process that draws {processes.reason(error)}") from error
            yield from files

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(kill_workers=bool(self._drawing))
