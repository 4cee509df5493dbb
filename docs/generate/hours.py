"""A page of what each figure takes at the paper tier: measured where its results are kept, predicted for all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reference import table

from fedrepro.runs.identity import plan
from fedrepro.runs.predict import timings as predict
from fedrepro.runs.predict.machine import Machine
from fedrepro.spec.find import load_all, specs

ROOT = Path(__file__).parents[2]
NOWHERE = Path("nowhere")
"""Where no earlier runs and no measured speed are: every prediction is by arithmetic and typical rates."""


def page() -> str:
    """The page, in Markdown."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield "# What each figure takes\n"
    yield (
        "Core-hours of the paper tier, in the order of what is dear. *Measured* is the sum of the seconds of the runs "
        "whose results are in the repository (one core each, on machines that had other work too); runs lack where "
        "data are absent or trials are left. *Predicted* is [arithmetic](predictions.md) with typical rates, the same "
        "on every machine; `fedrepro plan FIGURE --tier paper` says it for yours and takes what is finished into "
        "account. Deep networks (`perfedsi/fig1`, `perfedsi/fig2`, `gcca/fig10` to `fig13`) are the same code on a "
        "GPU.\n"
    )
    rows = sorted(_rows(), key=lambda row: -row["predicted"])
    yield table(
        ["figure", "runs", "predicted, hours", "measured, hours", "runs kept"],
        ([r["figure"], f"{r['runs']:,}", _hours(r["predicted"]), _hours(r["measured"]), r["kept"]] for r in rows),
    )
    kept = [row for row in rows if row["measured"]]
    yield (
        f"In all {len(rows)} figures and {_hours(sum(row['predicted'] for row in rows))} predicted hours; results of "
        f"{len(kept)} figures are kept, which took {_hours(sum(row['measured'] for row in kept))} hours.\n"
    )


def _rows() -> Iterator[dict[str, Any]]:
    figures = load_all(tuple(map(str, specs(ROOT / "experiments"))), "paper", ())
    made = plan.make(figures, stand_in=True)
    timings = predict.Timings(NOWHERE, Machine(NOWHERE))
    for figure, series in zip(figures, made.by_figure, strict=True):
        runs = list({run.id: run for found in series.values() for run in found}.values())
        kept = _kept(figure.paper, figure.figure)
        yield {
            "figure": f"`{figure.paper}/{figure.figure}`",
            "runs": len(runs),
            "predicted": timings.total(runs, 1) / 3600,
            "measured": kept.get("seconds", 0.0) / 3600,
            "kept": _runs(kept),
        }


def _kept(paper: str, figure: str) -> dict[str, Any]:
    path = ROOT / "results" / "paper" / paper / f"{figure}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def _runs(kept: dict[str, Any]) -> str:
    """How many runs are kept; of old results, which do not name them, the trials."""
    if not kept:
        return ""
    names = {id_ for ids in kept.get("runs", {}).values() for id_ in ids if id_}  # "": a trial that is left
    return f"{len(names):,}" if names else f"{kept['trials_done']} of {kept['trials_wanted']} trials"


def _hours(hours: float) -> str:
    return "" if not hours else f"{hours:.1f}" if hours >= 0.1 else f"{hours:.2f}"
