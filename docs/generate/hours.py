"""The page of computing times of all figures at the paper tier: predicted, and measured if results are stored.

It also has the time of the other values of settings whose results are stored beside a figure's own.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from reference import table

from fedrepro.results.read import read_sidecar
from fedrepro.runs.identity import plan
from fedrepro.runs.predict import timings as predict
from fedrepro.runs.predict.machine import Machine
from fedrepro.spec.find import load_all, specs

ROOT = Path(__file__).parents[2]
NOWHERE = Path("nowhere")
"""A folder without earlier runs and measured speeds, so that predictions use arithmetic and typical rates."""


def page() -> str:
    """Return the page in Markdown."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield "# Computing time of each figure\n"
    yield (
        "Core-hours of the paper tier, most expensive figures first. *Measured* is the total time of the runs whose "
        "results are in the repository (one core each, on machines that were also used for other work); runs are "
        "missing if data are absent or trials are left. *Predicted* is [computed](predictions.md) with typical rates, "
        "the same on every machine; `fedrepro plan FIGURE --tier paper` predicts the time that is left on yours. "
        "*Other settings* counts the stored sets of other values of [open settings](settings.md). Their hours do not "
        "include runs that are among the figure's own. `fedrepro settings plan` lists the sets that are not computed. "
        "The budget for sets was 60 hours of one core. `perfedsi.2.rounds-600` would take 34 hours of one core. "
        "`perfedsi/fig1` and `fig2` were computed [on GPUs](results.md#trained-networks-on-a-gpu), with up to 21 runs "
        "on a GPU at a time; their hours are those of such runs.\n"
    )
    rows = sorted(_rows(), key=lambda row: -row["predicted"])
    yield table(
        ["figure", "runs", "predicted, hours", "measured, hours", "runs stored", "other settings", "measured, hours"],
        map(_cells, rows),
    )
    kept = [row for row in rows if row["measured"]]
    yield (
        f"In total {len(rows)} figures and {_hours(sum(row['predicted'] for row in rows))} predicted hours; results of "
        f"{len(kept)} figures are stored, which took {_hours(sum(row['measured'] for row in kept))} hours, and of "
        f"{sum(row['sets'] for row in rows)} sets of other values, which took "
        f"{_hours(sum(row['of_sets'] for row in rows))} hours.\n"
    )


def _cells(row: Mapping[str, Any]) -> list[str]:
    own = [row["figure"], f"{row['runs']:,}", _hours(row["predicted"]), _hours(row["measured"]), row["kept"]]
    return [*own, str(row["sets"] or ""), _hours(row["of_sets"])]


def _rows() -> Iterator[dict[str, Any]]:
    figures = load_all(tuple(map(str, specs(ROOT / "experiments"))), "paper", ())
    made = plan.make(figures, stand_in=True)
    timings = predict.Timings(NOWHERE, Machine(NOWHERE))
    for figure, series in zip(figures, made.by_figure, strict=True):
        runs = list({run.id: run for runs_ in series.values() for run in runs_}.values())
        kept = _kept(figure.paper, figure.figure)
        yield {
            "figure": f"`{figure.paper}/{figure.figure}`",
            "runs": len(runs),
            "predicted": timings.total(runs, 1) / 3600,
            "measured": kept.get("seconds", 0.0) / 3600,
            "kept": _runs(kept),
            **_other_settings(figure.paper, figure.figure, _seconds(kept)),
        }


def _other_settings(paper: str, figure: str, own: Mapping[str, float]) -> dict[str, Any]:
    """Return the number of stored sets of other values, and the hours of their runs that the figure does not have."""
    folder = ROOT / "results" / "paper" / paper / f"{figure}.settings"
    paths = [path for path in sorted(folder.glob("*.json.xz")) if not path.name.endswith(".check.json.xz")]
    sidecars = [json.loads(lzma.decompress(path.read_bytes())) for path in paths]
    runs = {id_: seconds for sidecar in sidecars for id_, seconds in _seconds(sidecar).items() if id_ not in own}
    return {"sets": len(sidecars), "of_sets": sum(runs.values()) / 3600}


def _seconds(sidecar: Mapping[str, Any]) -> dict[str, float]:
    """Return the seconds of each run, by identity."""
    times = sidecar.get("seconds_per_run", {})
    return {
        id_: seconds
        for series, ids in sidecar.get("runs", {}).items()
        for id_, seconds in zip(ids, times.get(series, ()), strict=False)
        if id_
    }


def _kept(paper: str, figure: str) -> dict[str, Any]:
    sidecar = read_sidecar(ROOT / "results" / "paper" / paper / figure)
    return json.loads(sidecar.text()) if sidecar is not None else {}


def _runs(kept: dict[str, Any]) -> str:
    """Return the number of stored runs; for old results, which do not name runs, the number of trials."""
    if not kept:
        return ""
    names = {id_ for ids in kept.get("runs", {}).values() for id_ in ids if id_}  # "": a trial without a run
    return f"{len(names):,}" if names else f"{kept['trials_done']} of {kept['trials_wanted']} trials"


def _hours(hours: float) -> str:
    return "" if not hours else f"{hours:.1f}" if hours >= 0.1 else f"{hours:.2f}"
