"""The end values of a figure's panels: as tables to read, and as plain numbers for other programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fedrepro.errors import UserError
from fedrepro.plotting import scatter, series, tables
from fedrepro.plotting.series import FigureData, Trial
from fedrepro.spec import axes, panel_names
from fedrepro.spec import panels as spec_panels
from fedrepro.spec.model import Curve, Panel
from fedrepro.spec.panels import TableOptions

NUMBERS = (
    "panel", "curve", "column", "metric", "mean", "sd", "trials", "round_min", "round_max", "uplink_scalars",
    "uplink_bits", "published", "difference", "note",
)  # fmt: skip
"""The columns of ``numbers``."""


FULL = 32
"""Bits of a number that is not quantized."""

UNSCORED = "no score"
"""The note of a curve whose points are shown without a score."""


class End(NamedTuple):
    """Where a curve ends: the values of its healthy trials, their last rounds, and the mean costs.

    values : none if the picture of the curve has no score. note : what became of the other trials.
    """

    curve: Curve
    values: np.ndarray
    rounds: np.ndarray
    uplink_scalars: float
    uplink_bits: float
    note: str

    @property
    def quantized(self) -> bool:
        """Whether some of its numbers are sent with fewer than 32 bits."""
        return bool(self.rounds.size) and self.uplink_bits < FULL * self.uplink_scalars


def panels(
    source: FigureData, only: str | None = None, at: int | None = None, *, bold: bool = False, published: bool = True
) -> Iterator[tuple[Panel, list[list[str]]]]:
    """Yield each panel (or only the one with this name) with the rows of its table, the header first.

    at : read the curves at this round instead of at their ends. bold : put ``**`` around the best of each column of a
    table and the best end of the curves. published : include the paper's numbers in tables. Raises UserError if there
    is no such panel.
    """
    for panel in chosen(source, only):
        is_table = panel.kind == "table"
        yield panel, cells(source, panel, bold, published) if is_table else ends(source, panel, at, bold)


def headed(tables: Iterable[tuple[Panel, list[list[str]]]]) -> list[tuple[str, list[list[str]]]]:
    """Return the heading and rows of each table of ``merged``."""
    return [(heading(panels), rows) for panels, rows in merged(tables)]


def merged(tables: Iterable[tuple[Panel, list[list[str]]]]) -> list[tuple[list[Panel], list[list[str]]]]:
    """Return the panels and rows of each table; equal tables become one.

    Panels that draw the same curves over another x axis have equal tables.
    """
    distinct: list[tuple[list[Panel], list[list[str]]]] = []
    for panel, rows in tables:
        of_equal = next((names for names, known in distinct if known == rows), None)
        if of_equal is None:
            distinct.append(([panel], rows))
        else:
            of_equal.append(panel)
    return distinct


def heading(panels: Sequence[Panel]) -> str:
    """Return ``(a) title; (b) other title``, or ``(a, b) title``."""
    by_title: dict[str, list[str]] = {}
    for panel in panels:
        by_title.setdefault(panel.title, []).append(panel.id)
    return "; ".join(f"({', '.join(ids)}) {title}".strip() for title, ids in by_title.items())


def chosen(source: FigureData, only: str | None) -> list[Panel]:
    """Return the panels of a figure, or the one with this id or letter. Raises UserError if there is none."""
    if only is None:
        return list(source.figure.panels)
    panel = panel_names.find(source.figure, only)
    if panel is None:
        raise UserError(f"--panel {only}: no such panel{panel_names.known([source.figure], only)}")
    return [panel]


def check_round(source: FigureData, only: str | None, at: int) -> None:
    """Raise UserError if no curve of the panels can be read at a round."""
    curves = [curve for panel in chosen(source, only) if panel.kind != "table" for curve in panel.curves]
    name = source.figure.name
    if not curves:
        raise UserError(f"--at {at}: tables show the last round, and {name} has nothing else to read here")
    last = max(curve.setting.recorded[-1] for curve in curves)
    if at > last:
        raise UserError(f"--at {at}: {name} has only {last:,} rounds at the {source.figure.tier} tier")


def cells(source: FigureData, panel: Panel, bold: bool = False, published: bool = True) -> list[list[str]]:
    """Return a table panel as it is drawn: ours, and the paper's number with the difference."""
    return tables.grid(panel, tables.cells_of(source, panel)).lines(bold, published)


def ends(source: FigureData, panel: Panel, at: int | None = None, bold: bool = False) -> list[list[str]]:
    """Return every curve's mean, spread, trials, round and cost at its end (or at round ``at``).

    The cost is in bits too if a curve sends numbers with fewer than 32.
    """
    read = [_end(source, panel, curve, at) for curve in panel.curves]
    bits = any(end.quantized for end in read)
    header = ["curve", panel.y, "± sd", "trials", "round", "numbers sent up", *["bits sent up"] * bits, "note"]
    means = [f"{end.values.mean():.6g}" if end.values.size else "" for end in read]
    best = _best(panel, means) if bold else ""
    return [
        header,
        *(
            _row(end, f"**{mean}**" if mean and mean == best else mean, bits)
            for end, mean in zip(read, means, strict=True)
        ),
    ]


def numbers(source: FigureData, panel: Panel, at: int | None = None) -> list[dict[str, Any]]:
    """Return the cells of a table panel, or the ends of its curves, as numbers: a row each, with the keys ``NUMBERS``.

    Values of table cells are not scaled: they are in the units of the results, as in ``load``. What does not apply is
    None. The note of stale results is ``stale``, before what became of trials.
    """
    given: list[dict[Any, Any]]
    if panel.kind == "table":
        metrics = [metric for _, metric in spec_panels.table(panel).cells().values()]
        cells_of = tables.cells_of(source, panel).rename(columns={"row": "curve", "status": "note"})
        rows_of = (_unscaled(row, TableOptions.of(panel).scale) for row in cells_of.to_dict("records"))
        given = [{**row, "metric": metric} for row, metric in zip(rows_of, metrics, strict=True)]
    else:
        given = [_number_row(panel, _end(source, panel, curve, at)) for curve in panel.curves]
    rows = [{name: _plain({"panel": panel.id, **row}.get(name)) for name in NUMBERS} for row in given]
    if source.stale:
        rows = [{**row, "note": "stale" if row["note"] in ("ok", None) else f"stale, {row['note']}"} for row in rows]
    return rows


def _unscaled(row: Mapping[Any, Any], scale: float) -> dict[Any, Any]:
    """Return a row of a table panel with its values before they were multiplied by ``scale``, to 15 digits."""
    if scale in (0, 1):
        return dict(row)
    factors = {"mean": scale, "sd": abs(scale), "published": scale, "difference": scale}
    return {**row, **{name: float(f"{row[name] / factor:.15g}") for name, factor in factors.items()}}


def _number_row(panel: Panel, end: End) -> dict[str, Any]:
    row: dict[str, Any] = {
        "curve": end.curve.label,
        "metric": panel.y,
        "trials": end.rounds.size,
        "note": end.note or "ok",
    }
    if end.rounds.size:
        row |= {"uplink_scalars": end.uplink_scalars, "uplink_bits": end.uplink_bits}
        row |= {"round_min": end.rounds.min(), "round_max": end.rounds.max()}
    if end.values.size:
        row["mean"] = end.values.mean()
    if end.values.size > 1:
        row["sd"] = end.values.std(ddof=1)
    return row


def _plain(value: Any) -> Any:
    """Return a value as a Python object: None for nan, a whole number as int."""
    if not isinstance(value, (int, float, np.number)):
        return value
    number = float(value)
    if np.isnan(number):
        return None
    return int(number) if number.is_integer() else number


def _best(panel: Panel, means: list[str]) -> str:
    """Return the best of the printed means, or '' if there are fewer than two."""
    entry = axes.metrics(panel).get(panel.y)
    present = [mean for mean in means if mean]
    if len(present) < 2 or entry is None:
        return ""
    return max(present, key=float) if entry.better == "higher" else min(present, key=float)


def _end(source: FigureData, panel: Panel, curve: Curve, at: int | None) -> End:
    runs = series.trials(source, curve, panel, metric=panel.y)
    healthy = [t for t in runs if t.status == "ok" and t.y.size]
    lost = series.lost(runs)
    if not healthy:
        none = np.array([])
        return End(curve, none, none, float("nan"), float("nan"), ", ".join(lost) or "no results")
    scored = panel.kind != "scatter" or scatter.has_score(panel, curve)
    note = ", ".join(lost if scored else [*lost, UNSCORED])
    rounds = [float(t.x[_place(t, at)]) for t in healthy]
    numbers, bits = (
        float(np.mean([_cost(source, curve, t.number, at, axis) for t in healthy]))
        for axis in ("uplink_scalars", "uplink_bits")
    )
    values = [t.y[_place(t, at)] for t in healthy if scored]
    return End(curve, np.array(values), np.array(rounds), numbers, bits, note)


def _row(end: End, mean: str, bits: bool) -> list[str]:
    if not end.rounds.size:
        return [end.curve.label, "", "", "0", "", "", *[""] * bits, end.note]
    sd = _two_digits(float(end.values.std(ddof=1))) if end.values.size > 1 else ""
    first, last = end.rounds.min(), end.rounds.max()
    rounds = f"{first:g}" if first == last else f"{first:g} to {last:g}"
    sent = [f"{end.uplink_scalars:,.0f}", *[f"{end.uplink_bits:,.0f}"] * bits]
    return [end.curve.label, mean, sd, str(end.rounds.size), rounds, *sent, end.note]


def _place(trial: Trial, at: int | None) -> int:
    """Return the place of the last record at or before round ``at``."""
    if at is None:
        return -1
    before = np.flatnonzero(trial.x <= at)
    if not before.size:
        raise UserError(f"--at {at}: the first record is at round {trial.x[0]:g}")
    return int(before[-1])


def _cost(source: FigureData, curve: Curve, trial: int, at: int | None, axis: str) -> float:
    rows = source.runs.all_rows(curve.setting.series, trial)
    sent = rows[axis]
    return float(sent[-1] if at is None else sent[rows["round"] <= at][-1])


def _two_digits(number: float) -> str:
    """Return a number with two significant digits, without a power of ten from 100 up to a million."""
    text = f"{number:.2g}"
    return f"{float(text):,.0f}" if 100 <= float(text) < 1e6 else text
