"""Tables: our mean ± sd over trials beside the published number and the difference; as a picture, CSV and Markdown.

Options: ``rows`` and ``columns`` (a key of ``select``, or a list of keys, of which a curve shows those it has;
``metric`` stands for the names in ``metrics``), ``metrics`` (default: ``panel.y`` alone), ``scale`` (our numbers are
multiplied by it: 100 for percent), ``digits`` (decimals), ``final`` (a cell is the mean over the last so many records;
1 by default). Or, instead of ``final``, ``reach``: the first value of ``axis`` (default ``round``) at which a trial is
at least as good as this, and with ``saving_from`` (a mapping of select keys to values) the share of it saved against
that curve, trial by trial; ``from_start: true`` leaves out
what the axis counts before the first round. ``measure`` names what the cells hold where that is not the metric.

Published cells are ``{"row": ..., "column": ..., "value": number}``, with the texts of the table (``FedMGS m=10``) or
the plain values of its keys (``fedmgs 10``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fedrepro import registry
from fedrepro.errors import ParameterError, nearest
from fedrepro.plotting import curves, data, style
from fedrepro.plotting.data import Prepared, Source, Trial
from fedrepro.spec.model import Curve, Figure, Panel

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as MplFigure

COLUMNS = ("row", "column", "mean", "sd", "trials", "published", "difference", "status")
LINE, GAP = 0.19, 0.14
"""Height of a line of text and space between rows, in inches."""


def table(figure: Figure, panel: Panel, frame: pd.DataFrame, sidecar: Mapping[str, Any] | None = None) -> pd.DataFrame:
    """The cells of a table panel, one a row, in the order of the picture (columns: ``COLUMNS``).

    ``mean``, ``sd`` and ``difference`` (ours minus published) are scaled like ``published``; ``sd`` is nan below two
    trials. ``status`` is ``ok``, or why some trials are missing from the cell. Raises ParameterError where two curves
    claim one cell or a published number has no cell.
    """
    import pandas as pd

    source = Source(figure, frame, sidecar or {})
    if "saving_from" in panel.options:
        _saved_from(panel)
    cells = layout(panel)
    published = _published(panel, cells)
    scale = float(panel.options.get("scale", 1.0))
    rows = []
    columns = {c: source.stands_in(curve for (_, c2), (curve, _) in cells.items() if c2 == c) for _, c in cells}
    whole = all(columns.values())  # then the columns say it, not every row again
    marks = {
        r: "" if whole else source.stands_in(curve for (r2, _), (curve, _) in cells.items() if r2 == r)
        for r, _ in cells
    }
    for (row, column), (curve, metric) in cells.items():
        values, status = _values(panel, curve, metric, source)
        mean = scale * float(values.mean()) if values.size else float("nan")
        sd = abs(scale) * float(values.std(ddof=1)) if values.size > 1 else float("nan")
        paper = published.get((row, column), float("nan"))
        rows.append((row + marks[row], column + columns[column], mean, sd, values.size, paper, mean - paper, status))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def layout(panel: Panel) -> dict[tuple[str, str], tuple[Curve, str]]:
    """The curve and metric of every cell (row text, column text), rows first; needs no results."""
    cells: dict[tuple[str, str], tuple[Curve, str]] = {}
    for curve in panel.curves:
        for metric in panel.options.get("metrics", [panel.y]):
            place = (_text(panel, curve, metric, "rows"), _text(panel, curve, metric, "columns"))
            if place in cells:
                other = cells[place][0].label
                raise ParameterError(
                    "rows",
                    f"table '{panel.id}': curves '{other}' and '{curve.label}' claim one cell (row '{place[0]}', "
                    f"column '{place[1]}'); name in rows or columns a value in which they differ",
                )
            cells[place] = (curve, metric)
    rows = list(dict.fromkeys(row for row, _ in cells))
    columns = list(dict.fromkeys(column for _, column in cells))
    return {(r, c): cells[r, c] for r in rows for c in columns if (r, c) in cells}


def _keys(panel: Panel, way: str, curve: Curve) -> list[str]:
    """The keys of rows or columns for which the curve has a value (K-means has no m); some curve has each of them."""
    value = panel.options.get(way)
    if value is None:
        raise ParameterError(way, f"table '{panel.id}' needs options.{way}: the select key or keys of its {way}")
    names = [value] if isinstance(value, str) else list(value)
    known = {k for c in panel.curves for k in data.values_of(c)} | {"metric"}
    for name in names:
        if name not in known:
            raise ParameterError(way, f"table '{panel.id}': no curve has '{name}'{nearest(name, known)}")
    own = data.values_of(curve)
    return [n for n in names if n == "metric" or own.get(n) is not None]


def _text(panel: Panel, curve: Curve, metric: str, way: str) -> str:
    names = _keys(panel, way, curve)
    said = str(panel.options.get("measure", data.metric_label(panel, metric)))
    return " ".join(said if n == "metric" else data.text_of(curve, n) for n in names)


def _plain(panel: Panel, curve: Curve, metric: str, way: str) -> str:
    return " ".join(metric if n == "metric" else str(data.value_of(curve, n)) for n in _keys(panel, way, curve))


def _published(panel: Panel, cells: Mapping[tuple[str, str], tuple[Curve, str]]) -> dict[tuple[str, str], float]:
    plain = {}
    for (row, column), (curve, metric) in cells.items():
        for r in (row, _plain(panel, curve, metric, "rows")):
            for c in (column, _plain(panel, curve, metric, "columns")):
                plain[r, c] = (row, column)
    result: dict[tuple[str, str], float] = {}
    for item in panel.published:
        wanted = (str(item.get("row", "")), str(item.get("column", "")))
        if wanted not in plain:
            for text, valid, way in zip(wanted, zip(*cells, strict=True), ("row", "column"), strict=True):
                if text not in {place[way == "column"] for place in plain}:
                    known = ", ".join(f"'{v}'" for v in dict.fromkeys(valid))
                    hint = nearest(text, valid)
                    raise ParameterError(
                        "published", f"table '{panel.id}' has no {way} '{text}'{hint} (it has {known})"
                    )
            raise ParameterError(
                "published", f"table '{panel.id}' has no cell in row '{wanted[0]}', column '{wanted[1]}'"
            )
        result[plain[wanted]] = float(item["value"])
    return result


def _values(panel: Panel, curve: Curve, metric: str, source: Source) -> tuple[np.ndarray, str]:
    """The value of every healthy trial in a cell, and what became of the others."""
    axis = str(panel.options.get("axis", "round"))
    reach = panel.options.get("reach")
    runs = data.trials(source, curve, panel, x=axis if reach is not None else "round", metric=metric)
    if not runs:
        return np.array([]), "no results"
    bad = [f"{n} of {len(runs)} {s}" for s in ("diverged", "failed") if (n := sum(t.status == s for t in runs))]
    if reach is None:
        values = np.array([data.final(t, int(panel.options.get("final", 1))) for t in runs])
    else:
        values = np.array([_spent(panel, t, float(reach), _better(panel, metric)) for t in runs])
        if missed := int(np.isnan(values).sum()) - sum(t.status != "ok" for t in runs):
            bad.append(f"{missed} of {len(runs)} never reach it")
        if "saving_from" in panel.options:
            values = 1 - values / _reference(panel, metric, source, runs, axis, float(reach))
    return values[np.isfinite(values)], ", ".join(bad) or "ok"


def _better(panel: Panel, metric: str) -> str:
    problem = registry.problems().get(panel.curves[0].setting.problem)
    return problem.metrics[metric].better if problem and metric in problem.metrics else "lower"


def reached(trial: Trial, target: float, better: str) -> float:
    """Where a healthy trial is first at least as good as ``target``; nan where it never is."""
    if trial.status != "ok":
        return float("nan")
    good = trial.y <= target if better == "lower" else trial.y >= target
    return float(trial.x[int(np.argmax(good))]) if good.any() else float("nan")


def _spent(panel: Panel, trial: Trial, target: float, better: str) -> float:
    """``reached``, less the axis' value at the initial point where ``options.from_start`` says so."""
    start = float(trial.x[0]) if panel.options.get("from_start") and trial.x.size else 0.0
    return reached(trial, target, better) - start


def _reference(
    panel: Panel,
    metric: str,
    source: Source,
    runs: list[Trial],
    axis: str,
    reach: float,
) -> np.ndarray:
    """``reached`` of the reference curve for the same trials."""
    found = {t.number: t for t in data.trials(source, _saved_from(panel), panel, x=axis, metric=metric)}
    better = _better(panel, metric)
    return np.array([_spent(panel, found[t.number], reach, better) if t.number in found else np.nan for t in runs])


def _saved_from(panel: Panel) -> Curve:
    """The first curve that agrees with ``options.saving_from``."""
    wanted = panel.options["saving_from"]
    for curve in panel.curves:
        if all(data.values_of(curve).get(name) == value for name, value in wanted.items()):
            return curve
    text = ", ".join(f"{k}={v}" for k, v in wanted.items())
    raise ParameterError("saving_from", f"table '{panel.id}' has no curve with {text}, against which savings count")


def _number(value: float, digits: int | None) -> str:
    if digits is not None:
        return f"{value:,.{digits}f}"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:.4g}"


def cell_texts(panel: Panel, row: Any) -> tuple[str, str]:
    """The two lines of a cell: ours with its spread (or why there is none), and the paper's with the difference."""
    digits = panel.options.get("digits")
    if np.isnan(row.mean):
        ours = row.status
    else:
        ours = _number(row.mean, digits) + (f" ± {_number(row.sd, digits)}" if np.isfinite(row.sd) else "")
        ours += f" ({row.status})" if row.status != "ok" else ""
    if np.isnan(row.published):
        return ours, ""
    paper = f"paper {_number(row.published, digits)}"
    if np.isfinite(row.difference):
        sign = "+" if row.difference >= 0 else "−"
        paper += f" ({sign}{_number(abs(row.difference), digits)})"
    return ours, paper


def grid(panel: Panel, cells: pd.DataFrame) -> tuple[list[str], list[str], dict[tuple[str, str], tuple[str, str]]]:
    """Row texts, column texts, and the two lines of every cell."""
    rows, columns = list(dict.fromkeys(cells["row"].tolist())), list(dict.fromkeys(cells["column"].tolist()))
    texts = {(str(r.row), str(r.column)): cell_texts(panel, r) for r in cells.itertuples()}
    return rows, columns, texts


def markdown(panel: Panel, cells: pd.DataFrame) -> str:
    """The table in Markdown: a cell is ``ours ± sd (paper ..., difference)``."""
    rows, columns, texts = grid(panel, cells)

    def cell(row: str, column: str) -> str:
        ours, paper = texts.get((row, column), ("", ""))
        return f"{ours}; {paper}" if paper else ours

    lines = [["", *columns], ["---"] * (1 + len(columns)), *([r, *(cell(r, c) for c in columns)] for r in rows)]
    return "\n".join("| " + " | ".join(t.replace("|", "\\|") for t in line) + " |" for line in lines) + "\n"


def prepare(panel: Panel, source: Source) -> Prepared:
    """Work out a table panel."""
    cells = table(source.figure, panel, source.frame, source.sidecar)
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
        curves.set_title(ax, title, max(total[0], 3.0))
        ax.set_xlim(0, total[0])
        ax.set_ylim(total[1], 0)
        _paint(ax, rows, columns, texts, first, wide, tall)
        return [ax]

    several = bool((cells["trials"] > 1).any())
    size = (max(total[0], 3.2) + 0.2, total[1] + 0.4)
    return Prepared(size, paint, notes=("cells: mean ± sd over trials",) if several else (), decoration=0.4)


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
