"""Whether a figure's results are those its spec, code and data would give today."""

from __future__ import annotations

import dataclasses
import json

from fedrepro.results.checks import Check
from fedrepro.results.schema import Sidecar
from fedrepro.runs.identity import plan as planning
from fedrepro.runs.storage import write
from fedrepro.spec.model import Figure


def freshness(figure: Figure, before: Sidecar, check: Check | None = None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What changed since these results were computed, and what of it cannot be told here.

    Code that changed since counts as the same where a ``check`` found that it gives these results.
    """
    if before == Sidecar():
        return (), ("there is no sidecar beside the CSV",)
    plan = planning.make([figure], stand_in=bool(before.stand_ins))
    if write.plan_id(plan, 0) == before.plan:
        return (), ()
    absent = {s.dataset for s in plan.sources.values() if s.state in ("absent", "damaged", "stand-in")} & {
        d.dataset for d in before.datasets if d.state in ("present", "variant")
    }
    changed = [*_changed_spec(figure, before), *_changed_data(plan, before, absent)]
    if absent and not changed:
        names = ", ".join(sorted(absent))
        return (), (f"computed on {names}, absent here: whether anything changed cannot be told",)
    if not changed and check is not None and _confirmed(plan, before, check):
        return (), ()
    return tuple(changed or ["the code that computes it changed"]), ()


def _confirmed(plan: planning.Plan, before: Sidecar, check: Check) -> bool:
    """Whether a check speaks for all runs that results hold, as today's code would compute them."""
    today = {(series, run.trial): run.id for series, runs in plan.by_figure[0].items() for run in runs}
    held = {(series, trial) for series, runs in before.runs.items() for trial, run in enumerate(runs, start=1) if run}
    checked = {(series, trial): run for series, runs in check.runs.items() for trial, run in enumerate(runs, start=1)}
    confirmed = check.confirmed(before.csv_sha256)  # a run that two series share is there once
    return bool(held) and all(today.get(at) in confirmed and today[at] == checked.get(at) for at in held)


def _changed_spec(figure: Figure, before: Sidecar) -> list[str]:
    now = json.loads(json.dumps([dataclasses.asdict(s) for s in figure.settings()], default=str))
    for setting in now:
        setting.pop("names")
    said = ["the spec changed"] if now != list(before.settings) else []
    if before.trials_wanted not in (None, figure.wanted_trials):
        said.append(f"the spec asks for {figure.wanted_trials} trials, not {before.trials_wanted}")
    return said


def _changed_data(plan: planning.Plan, before: Sidecar, absent: set[str]) -> list[str]:
    known = {(d.dataset, d.fingerprint) for d in before.datasets if d.fingerprint}
    names = {name for name, _ in known} - absent
    said = []
    for source in plan.sources.values():
        if source.usable and source.dataset in names and (source.dataset, source.fingerprint) not in known:
            here = f"{source.dataset} is here now, and the results are on its stand-in"
            said.append(here if source.dataset in before.stand_ins else f"the data of {source.dataset} changed")
    return list(dict.fromkeys(said))
