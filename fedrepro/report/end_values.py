"""The end values of a figure's panels as terminal tables."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fedrepro.errors import UserError, nearest
from fedrepro.plotting import series, tables
from fedrepro.plotting.series import FigureData, Trial
from fedrepro.spec.model import Curve, Panel

COSTS = ("round", "uplink_scalars")


def panels(
    source: FigureData, only: str | None = None, at: int | None = None
) -> Iterator[tuple[Panel, list[list[str]]]]:
    """Yield each panel (or only the one with this name) with the rows of its table, the header first.

    at : read the curves at this round instead of at their ends. Raises UserError if there is no such panel.
    """
    known = [p.id for p in source.figure.panels]
    if only is not None and only not in known:
        raise UserError(f"--panel {only}: no such panel{nearest(only, known)} (panels: {', '.join(known)})")
    for panel in source.figure.panels:
        if only in (None, panel.id):
            yield panel, cells(source, panel) if panel.kind == "table" else ends(source, panel, at)


def cells(source: FigureData, panel: Panel) -> list[list[str]]:
    """Return a table panel as it is drawn: ours, and the paper's number with the difference."""
    return tables.grid(panel, tables.cells_of(source, panel)).lines()


def ends(source: FigureData, panel: Panel, at: int | None = None) -> list[list[str]]:
    """Return every curve's mean, spread, trials, round and cost at its end (or at round ``at``)."""
    metric = panel.y
    header = ["curve", metric, "± sd", "trials", "round", "numbers sent up", "note"]
    return [header, *(_row(source, panel, curve, metric, at) for curve in panel.curves)]


def _row(source: FigureData, panel: Panel, curve: Curve, metric: str, at: int | None) -> list[str]:
    runs = series.trials(source, curve, panel, metric=metric)
    healthy = [t for t in runs if t.status == "ok" and t.y.size]
    bad = series.lost(runs)
    if not healthy:
        return [curve.label, "", "", "0", "", "", ", ".join(bad) or "no results"]
    values = np.array([_read(t, at) for t in healthy])
    sd = f"{values.std(ddof=1):.2g}" if values.size > 1 else ""
    rounds = [float(t.x[-1]) if at is None else float(at) for t in healthy]
    cost = np.mean([_cost(source, curve, t.number, at) for t in healthy])
    shown = f"{rounds[0]:g}" if len(set(rounds)) == 1 else f"{min(rounds):g} to {max(rounds):g}"
    return [curve.label, f"{values.mean():.6g}", sd, str(values.size), shown, f"{cost:,.0f}", ", ".join(bad)]


def _read(trial: Trial, at: int | None) -> float:
    """Return the value of the last record at or before round ``at``."""
    if at is None:
        return float(trial.y[-1])
    before = np.flatnonzero(trial.x <= at)
    if not before.size:
        raise UserError(f"--at {at}: the first record is at round {trial.x[0]:g}")
    return float(trial.y[before[-1]])


def _cost(source: FigureData, curve: Curve, trial: int, at: int | None) -> float:
    rows = source.runs.all_rows(curve.setting.series, trial)
    sent = rows["uplink_scalars"]
    return float(sent[-1] if at is None else sent[rows["round"] <= at][-1])
