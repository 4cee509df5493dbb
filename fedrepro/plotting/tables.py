"""Tables: our mean ± sd over trials beside the published number and the difference; as a picture, CSV and Markdown.

A cell holds a metric at the end, or with the option ``reach`` where on its ``axis`` a trial is first at least as good
as that, or with ``saving_from`` the share of it saved against another curve, trial by trial. With ``ratio_from``
it holds a ratio read off averaged curves (``ratios``), which has no spread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fedrepro.plotting import naming, panel_axes, ratios, series, style
from fedrepro.plotting.panel_axes import Prepared
from fedrepro.plotting.series import FigureData, Trial
from fedrepro.results.schema import Sidecar
from fedrepro.spec import axes, layout, panels
from fedrepro.spec.model import Curve, Figure, Panel
from fedrepro.spec.panels import TableOptions

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as MplFigure

COLUMNS = ("row", "column", "mean", "sd", "trials", "published", "difference", "status")
LINE, GAP = 0.19, 0.14
"""Height of a line of text and space between rows, in inches."""


def table(figure: Figure, panel: Panel, frame: pd.DataFrame, sidecar: Sidecar | None = None) -> pd.DataFrame:
    """The cells of a table panel, one a row, in the order of the picture (columns: ``COLUMNS``).

    ``mean``, ``sd`` and ``difference`` (ours minus published) are scaled like ``published``; ``sd`` is nan below two
    trials, ``difference`` on stand-in data too. ``status`` is ``ok``, or why some trials are missing from the cell.
    Raises ParameterError where two curves claim one cell or a published number has no cell.
    """
    return cells_of(FigureData(figure, frame, sidecar or Sidecar()), panel)


def cells_of(source: FigureData, panel: Panel) -> pd.DataFrame:
    """The cells of a table panel (see ``table``)."""
    import pandas as pd

    cells = panels.table(panel).cells()
    published = panels.table(panel).published()
    scale = TableOptions.of(panel).scale
    rows = []
    columns = {c: source.stands_in(curve for (_, c2), (curve, _) in cells.items() if c2 == c) for _, c in cells}
    whole = all(columns.values())  # then the columns say it, not every row again
    marks = {
        r: "" if whole else source.stands_in(curve for (r2, _), (curve, _) in cells.items() if r2 == r)
        for r, _ in cells
    }
    for (row, column), (curve, metric) in cells.items():
        mean, sd, trials, status = _cell(panel, curve, metric, source)
        mean, sd = scale * mean, abs(scale) * sd
        paper = published.get((row, column), float("nan"))
        off = float("nan") if source.stands_in([curve]) else mean - paper  # numbers of other data say nothing of it
        rows.append((row + marks[row], column + columns[column], mean, sd, trials, paper, off, status))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _cell(panel: Panel, curve: Curve, metric: str, source: FigureData) -> tuple[float, float, int, str]:
    """Mean, spread (nan where there is none), number of trials and status of a cell."""
    if TableOptions.of(panel).ratio_from is not None:
        ratio, trials, status = ratios.compression(panel, curve, source)
        return ratio, float("nan"), trials, status
    values, status = _values(panel, curve, metric, source)
    mean = float(values.mean()) if values.size else float("nan")
    return mean, float(values.std(ddof=1)) if values.size > 1 else float("nan"), values.size, status


def _values(panel: Panel, curve: Curve, metric: str, source: FigureData) -> tuple[np.ndarray, str]:
    """The value of every healthy trial in a cell, and what became of the others."""
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
            values = 1 - values / _spent(panel, metric, [others.get(t.number) for t in runs])
    return values[np.isfinite(values)], ", ".join(bad) or "ok"


def reached(trial: Trial, target: float, better: str) -> float:
    """Where a healthy trial is first at least as good as ``target``; nan where it never is."""
    if trial.status != "ok":
        return float("nan")
    good = trial.y <= target if better == "lower" else trial.y >= target
    return float(trial.x[int(np.argmax(good))]) if good.any() else float("nan")


def _spent(panel: Panel, metric: str, runs: Sequence[Trial | None]) -> np.ndarray:
    """``reached`` of each trial, less the axis' value at the initial point where ``from_start`` says so."""
    options = TableOptions.of(panel)
    entry = axes.metrics(panel).get(metric)
    better, target = entry.better if entry else "lower", options.reach or 0.0
    starts = [float(t.x[0]) if t is not None and options.from_start and t.x.size else 0.0 for t in runs]
    ends = [reached(t, target, better) if t is not None else float("nan") for t in runs]
    return np.array(ends) - np.array(starts)


def _number(value: float, digits: int | None) -> str:
    if digits is not None:
        return f"{value:,.{digits}f}"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:.4g}"


def cell_texts(panel: Panel, row: Any) -> tuple[str, str]:
    """The two lines of a cell: ours with its spread (or why there is none), and the paper's with the difference."""
    digits = TableOptions.of(panel).digits
    if np.isnan(row.mean):
        ours = row.status
    else:
        ours = _number(row.mean, digits) + (f" ± {_number(row.sd, digits)}" if np.isfinite(row.sd) else "")
        ours += f" ({row.status})" if row.status != "ok" else ""
    if np.isnan(row.published):
        return ours, ""
    paper = f"paper {_number(row.published, digits)}"
    if np.isfinite(row.difference):
        off = round(row.difference, 12 if digits is None else digits) + 0.0  # neither rounding errors nor a minus zero
        paper += f" ({'+' if off >= 0 else '−'}{_number(abs(off), digits)})"
    return ours, paper


def grid(panel: Panel, cells: pd.DataFrame) -> tuple[list[str], list[str], dict[tuple[str, str], tuple[str, str]]]:
    """Row texts, column texts, and the two lines of every cell, in words for a reader."""
    keys = panels.table(panel)

    def row(raw: Any) -> str:
        return naming.text(str(raw), panel.curves, True, keys.rows)

    def column(raw: Any) -> str:
        return naming.text(str(raw), panel.curves, True, keys.columns)

    rows, columns = (list(dict.fromkeys(map(f, cells[n]))) for f, n in ((row, "row"), (column, "column")))
    texts = {(row(r.row), column(r.column)): cell_texts(panel, r) for r in cells.itertuples()}
    return rows, columns, texts


def markdown(panel: Panel, cells: pd.DataFrame) -> str:
    """The table in Markdown: a cell is ``ours ± sd (paper ..., difference)``."""
    rows, columns, texts = grid(panel, cells)

    def cell(row: str, column: str) -> str:
        ours, paper = texts.get((row, column), ("", ""))
        return f"{ours}; {paper}" if paper else ours

    lines = [["", *columns], ["---"] * (1 + len(columns)), *([r, *(cell(r, c) for c in columns)] for r in rows)]
    return "\n".join("| " + " | ".join(t.replace("|", "\\|") for t in line) + " |" for line in lines) + "\n"


def prepare(panel: Panel, source: FigureData) -> Prepared:
    """Work out a table panel."""
    cells = cells_of(source, panel)
    rows, columns, texts = grid(panel, cells)
    first = 0.35 + max((style.width(r, style.FONT) for r in rows), default=1.0)
    wide = [
        0.35
        + max(
            style.width(c, style.FONT, True),
            *(style.width(t, size) for r in rows for t, size in zip(texts.get((r, c), ("", "")), SIZES, strict=True)),
        )
        for c in columns
    ]
    tall = [LINE * (2 if any(texts.get((r, c), ("", ""))[1] for c in columns) else 1) + GAP for r in rows]
    total = (first + sum(wide), LINE + GAP + sum(tall) + 0.05)

    def paint(fig: MplFigure, spec: Any, title: str) -> list[Axes]:
        ax = fig.add_subplot(spec)
        ax.set_axis_off()
        panel_axes.set_title(ax, title, max(total[0], 3.0))
        ax.set_xlim(0, total[0])
        ax.set_ylim(total[1], 0)
        _paint(ax, rows, columns, texts, first, wide, tall)
        return [ax]

    several = bool((cells["trials"] > 1).any())
    averaged = TableOptions.of(panel).ratio_from is not None
    said = "cells: read off curves averaged over trials" if averaged else "cells: mean ± sd over trials"
    size = (max(total[0], 3.2) + 0.2, total[1] + 0.4)
    absent = "" if any(cells["trials"] > 0) or set(cells["status"]) != {"no results"} else "no results"
    return Prepared(size, paint, notes=(said,) if several else (), decoration=0.4, absent=absent)


SIZES = (style.FONT, style.SMALL)


def _paint(
    ax: Axes,
    rows: list[str],
    columns: list[str],
    texts: Mapping[tuple[str, str], tuple[str, str]],
    first: float,
    wide: list[float],
    tall: list[float],
) -> None:
    ends = first + np.cumsum(wide)
    y = LINE + GAP
    for column, end in zip(columns, ends, strict=True):
        ax.text(end - 0.1, y - GAP, column, ha="right", va="baseline", weight="bold", fontsize=style.FONT)
    for thickness, at in ((1.4, 0.0), (0.8, y - 0.03), (1.4, y + sum(tall))):
        ax.plot([0, ends[-1] if len(ends) else first], [at, at], color=style.BLACK, linewidth=thickness, clip_on=False)
    for i, (row, height) in enumerate(zip(rows, tall, strict=True)):
        if i % 2:
            ax.axhspan(y - 0.02, y + height - 0.02, color="#F2F2F2", linewidth=0, zorder=0)
        ax.text(0.08, y + LINE, row, ha="left", va="baseline", fontsize=style.FONT)
        for column, end in zip(columns, ends, strict=True):
            ours, paper = texts.get((row, column), ("", ""))
            ax.text(end - 0.1, y + LINE, ours, ha="right", va="baseline", fontsize=SIZES[0])
            if paper:
                ax.text(end - 0.1, y + 2 * LINE, paper, ha="right", va="baseline", fontsize=SIZES[1], color=style.FAINT)
        y += height
