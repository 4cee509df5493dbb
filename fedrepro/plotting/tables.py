"""Tables: our mean ± sd over trials beside the published number and the difference; as a picture, CSV and Markdown.

A cell is the final value of a metric; with the option ``reach``, the place on its ``axis`` where a trial is first at
least as good as that; with ``saving_from``, the share of it that is saved compared with another curve, for each trial;
with ``ratio_from``, a ratio computed from averaged curves (``ratios``), which has no spread.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fedrepro.plotting import naming, panel_axes, ratios, series, style
from fedrepro.plotting.panel_axes import Prepared
from fedrepro.plotting.series import FigureData, Trial
from fedrepro.spec import axes, layout, panels
from fedrepro.spec.model import Curve, Panel
from fedrepro.spec.panels import TableOptions

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as MplFigure

COLUMNS = ("row", "column", "mean", "sd", "trials", "published", "difference", "status")
LINE, GAP = 0.19, 0.14
"""Height of a line of text and space between rows, in inches."""


def cells_of(source: FigureData, panel: Panel) -> pd.DataFrame:
    """Return the cells of a table panel, one per row, in the order of the picture (columns: ``COLUMNS``).

    ``mean``, ``sd`` and ``difference`` (ours minus published) are scaled like ``published``; ``sd`` is nan with fewer
    than two trials, ``difference`` also on stand-in data. ``status`` is ``ok``, or why the cell lacks some trials.
    Raises ParameterError if two curves have the same cell or a published number has no cell.
    """
    import pandas as pd

    cells = panels.table(panel).cells()
    published = panels.table(panel).published()
    scale = TableOptions.of(panel).scale
    rows = []

    def marks(way: int) -> dict[str, str]:
        """Return what is appended to each row (0) or column (1)."""
        names = dict.fromkeys(place[way] for place in cells)
        return {n: source.stands_in(curve for place, (curve, _) in cells.items() if place[way] == n) for n in names}

    columns = marks(1)
    marked = marks(0) if not all(columns.values()) else dict.fromkeys(marks(0), "")  # once, in rows or in columns
    for (row, column), (curve, metric) in cells.items():
        mean, sd, trials, status = _cell(panel, curve, metric, source)
        mean, sd = scale * mean, abs(scale) * sd
        paper = published.get((row, column), float("nan"))
        off = float("nan") if source.stands_in([curve]) else mean - paper  # not comparable with numbers on other data
        rows.append((row + marked[row], column + columns[column], mean, sd, trials, paper, off, status))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _cell(panel: Panel, curve: Curve, metric: str, source: FigureData) -> tuple[float, float, int, str]:
    """Return mean, spread (nan if there is none), number of trials and status of a cell."""
    if TableOptions.of(panel).ratio_from is not None:
        ratio, trials, status = ratios.compression(panel, curve, source)
        return ratio, float("nan"), trials, status
    values, status = _values(panel, curve, metric, source)
    mean = float(values.mean()) if values.size else float("nan")
    return mean, float(values.std(ddof=1)) if values.size > 1 else float("nan"), values.size, status


def _values(panel: Panel, curve: Curve, metric: str, source: FigureData) -> tuple[np.ndarray, str]:
    """Return the value of every healthy trial in a cell, and what became of the others."""
    options = TableOptions.of(panel)
    axis = options.axis if options.reach is not None else "round"
    runs = series.trials(source, curve, panel, x=axis, metric=metric)
    if not runs:
        return np.array([]), "no results"
    bad = series.lost(runs)
    if options.reach is None:
        values = np.array([series.final(t, options.final) for t in runs])
    else:
        values = _spent(panel, metric, runs)
        if missed := int(np.isnan(values).sum()) - sum(t.status != "ok" for t in runs):
            bad.append(f"{missed} of {len(runs)} never reach it")
        if options.saving_from is not None:
            base = layout.reference(panel, options.saving_from)
            others = {t.number: t for t in series.trials(source, base, panel, x=axis, metric=metric)}
            if not others:
                return np.array([]), "nothing to compare with"
            values = 1 - values / _spent(panel, metric, [others.get(t.number) for t in runs])
    return values[np.isfinite(values)], ", ".join(bad) or "ok"


def reached(trial: Trial, target: float, better: str) -> float:
    """Return the x at which a healthy trial is first at least as good as ``target``; nan if it never is."""
    if trial.status != "ok":
        return float("nan")
    good = trial.y <= target if better == "lower" else trial.y >= target
    return float(trial.x[int(np.argmax(good))]) if good.any() else float("nan")


def _spent(panel: Panel, metric: str, runs: Sequence[Trial | None]) -> np.ndarray:
    """Return ``reached`` of each trial; with ``from_start`` without the axis' value at the initial point."""
    options = TableOptions.of(panel)
    entry = axes.metrics(panel).get(metric)
    better, target = entry.better if entry else "lower", options.reach or 0.0
    starts = [float(t.x[0]) if t is not None and options.from_start and t.x.size else 0.0 for t in runs]
    ends = [reached(t, target, better) if t is not None else float("nan") for t in runs]
    return np.array(ends) - np.array(starts)


def number(value: float, digits: int | None) -> str:
    """Return a value of a cell as text. digits : decimals, None for four significant digits."""
    if digits is not None:
        return f"{value:,.{digits}f}"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:.4g}"


def cell_texts(panel: Panel, row: Any) -> tuple[str, str]:
    """Return both lines of a cell: ours with its spread (or why it is empty), and the paper's with the difference."""
    digits = TableOptions.of(panel).digits
    if np.isnan(row.mean):
        ours = row.status
    else:
        ours = number(row.mean, digits) + (f" ± {number(row.sd, digits)}" if np.isfinite(row.sd) else "")
        ours += f" ({row.status})" if row.status != "ok" else ""
    if np.isnan(row.published):
        return ours, ""
    paper = f"paper {number(row.published, digits)}"
    if np.isfinite(row.difference):
        off = round(row.difference, 12 if digits is None else digits) + 0.0  # neither rounding errors nor a minus zero
        paper += f" ({'+' if off >= 0 else '−'}{number(abs(off), digits)})"
    return ours, paper


class Grid(NamedTuple):
    """A table for readers: texts of rows and columns, and the two lines of every cell."""

    rows: list[str]
    columns: list[str]
    cells: Mapping[tuple[str, str], tuple[str, str]]
    best: frozenset[tuple[str, str]] = frozenset()

    def lines(self, bold: bool = False, published: bool = True) -> list[list[str]]:
        """Return the head and every row, a cell as ``ours ± sd; paper ... (difference)``.

        bold : with ``**`` around the best of each column. published : with the paper's numbers.
        """

        def text(row: str, column: str) -> str:
            ours, paper = self.cells[row, column]
            shown = f"**{ours}**" if bold and (row, column) in self.best else ours
            return "; ".join(filter(None, (shown, paper if published else "")))

        return [["", *self.columns], *([row, *(text(row, c) for c in self.columns)] for row in self.rows)]


def grid(panel: Panel, cells: pd.DataFrame) -> Grid:
    """Return the table of ``cells_of`` for readers."""
    keys = panels.table(panel)

    def named(texts: Iterable[Any], kinds: Iterable[str]) -> list[str]:
        return [naming.text(str(text), panel.curves, True, kinds) for text in texts]

    rows, columns = named(cells["row"], keys.rows), named(cells["column"], keys.columns)
    every = dict.fromkeys(itertools.product(rows, columns), ("", ""))
    texts = (cell_texts(panel, cell) for cell in cells.itertuples())
    places = list(zip(rows, columns, strict=True))
    filled = dict(zip(places, texts, strict=True))
    best = frozenset(place for place, is_best in zip(places, _best(panel, cells), strict=True) if is_best)
    return Grid(list(dict.fromkeys(rows)), list(dict.fromkeys(columns)), every | filled, best)


def _best(panel: Panel, cells: pd.DataFrame) -> list[bool]:
    """Return for each cell whether no other of its column is better as printed, if the rows are methods."""
    options = TableOptions.of(panel)
    if not {"algorithm", "label"} & set(options.rows) or len({curve.setting.algorithm for curve in panel.curves}) == 1:
        return [False] * len(cells)
    digits = 3 if options.digits is None else options.digits
    signs = [_sign(panel, metric) for _, metric in panels.table(panel).cells().values()]
    scores = (cells["mean"].round(digits) * signs).where(cells["status"] == "ok")
    by_column = scores.groupby(cells["column"], sort=False)
    return list((scores == by_column.transform("max")) & (by_column.transform("count") > 1))


def _sign(panel: Panel, metric: str) -> int:
    """Return 1 if larger cells are better, else -1."""
    options = TableOptions.of(panel)
    if options.reach is not None:
        return 1 if options.saving_from is not None or options.ratio_from is not None else -1
    entry = axes.metrics(panel).get(metric)
    return (1 if entry is not None and entry.better == "higher" else -1) * (1 if options.scale > 0 else -1)


def markdown(panel: Panel, cells: pd.DataFrame) -> str:
    """Return the table in Markdown."""
    head, *body = grid(panel, cells).lines()
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(t.replace("|", "\\|") for t in line) + " |" for line in lines) + "\n"


SECOND_LINE = "second line of a cell: the paper's number, in brackets ours minus the paper's"

SIZES = (style.FONT, style.SMALL)
"""Sizes in points of the two lines of a cell."""


def prepare(panel: Panel, source: FigureData) -> Prepared:
    """Prepare a table panel."""
    cells = cells_of(source, panel)
    shown = grid(panel, cells)
    first = 0.35 + max((style.width(row, style.FONT) for row in shown.rows), default=1.0)
    wide = [0.35 + _column_width(shown, column) for column in shown.columns]
    tall = [LINE * (2 if any(shown.cells[row, c][1] for c in shown.columns) else 1) + GAP for row in shown.rows]
    total = (first + sum(wide), LINE + GAP + sum(tall) + 0.05)

    title_width = max(total[0], 3.0)

    def paint(fig: MplFigure, spec: Any, title: str) -> None:
        ax = fig.add_subplot(_as_tall(spec, total[1]))
        ax.set_axis_off()
        panel_axes.set_title(ax, title, title_width)
        ax.set_xlim(0, total[0])
        ax.set_ylim(total[1], 0)
        _paint(ax, shown, first + np.cumsum([0.0, *wide]), tall)

    note = "read off curves averaged over trials" if TableOptions.of(panel).ratio_from else "mean ± sd over trials"
    notes: tuple[str, ...] = (f"cells: {note}",) if (cells["trials"] > 1).any() else ()
    notes += ("bold: the best of a column",) if shown.best else ()
    notes += (SECOND_LINE,) if cells["published"].notna().any() else ()
    size = (max(total[0], 3.2) + 0.2, total[1] + 0.4)
    absent = "" if any(cells["trials"] > 0) or set(cells["status"]) != {"no results"} else "no results"
    return Prepared(size, (), notes, 0.4, absent, title_width=title_width, paint_all=paint)


def _as_tall(spec: Any, inches: float) -> Any:
    """Return the upper part of a cell that is taller than a table, so that the table is not stretched."""
    cell = spec.get_gridspec().get_height_ratios()[spec.rowspan.start]
    if cell < 1.15 * inches:
        return spec
    return spec.subgridspec(2, 1, height_ratios=(inches, cell - inches), hspace=0.0)[0]


def _column_width(shown: Grid, column: str) -> float:
    cells = [(shown.cells[row, column], (row, column) in shown.best) for row in shown.rows]
    ours = [style.width(text, SIZES[0], is_best) for (text, _), is_best in cells]
    return max(style.width(column, style.FONT, True), *ours, *(style.width(paper, SIZES[1]) for (_, paper), _ in cells))


def _paint(ax: Axes, shown: Grid, ends: np.ndarray, tall: list[float]) -> None:
    """Draw the texts and rules. ends : right ends of the row texts and of the columns in inches."""
    y = LINE + GAP
    columns = list(zip(shown.columns, ends[1:], strict=True))
    for column, end in columns:
        ax.text(end - 0.1, y - GAP, column, ha="right", va="baseline", weight="bold", fontsize=style.FONT)
    for thickness, at in ((1.4, 0.0), (0.8, y - 0.03), (1.4, y + sum(tall))):
        ax.plot([0, ends[-1]], [at, at], color=style.BLACK, linewidth=thickness, clip_on=False)
    for i, (row, height) in enumerate(zip(shown.rows, tall, strict=True)):
        if i % 2:
            ax.axhspan(y - 0.02, y + height - 0.02, color="#F2F2F2", linewidth=0, zorder=0)
        ax.text(0.08, y + LINE, row, ha="left", va="baseline", fontsize=style.FONT)
        for column, end in columns:
            ours, paper = shown.cells[row, column]
            weight = "bold" if (row, column) in shown.best else "normal"
            ax.text(end - 0.1, y + LINE, ours, ha="right", va="baseline", fontsize=SIZES[0], weight=weight)
            if paper:
                ax.text(end - 0.1, y + 2 * LINE, paper, ha="right", va="baseline", fontsize=SIZES[1], color=style.FAINT)
        y += height
