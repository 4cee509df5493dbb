"""Decide whether kept results are still valid: whether today's spec, code and data would compute the same runs.

All commands use this module to find the kept runs of a plan, whether a figure is finished, and what has changed since
its results were computed.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fedrepro.results import checks
from fedrepro.results.checks import Check
from fedrepro.results.read import BESIDE, as_written, beside, place, read_sidecar, results_file, stem
from fedrepro.results.schema import Sidecar
from fedrepro.runs.identity import plan as planning
from fedrepro.runs.identity.plan import Plan
from fedrepro.spec.model import Figure, Setting
from fedrepro.spec.tiers import TIERS


@dataclass(frozen=True)
class Validity:
    """What has changed since results were computed, and what cannot be decided here; both empty if they are valid."""

    changed: tuple[str, ...] = ()
    undecidable: tuple[str, ...] = ()


def validity(figure: Figure, sidecar: Sidecar, check: Check | None = None) -> Validity:
    """Return whether a figure's results are valid today.

    Changed code counts as the same if a ``check`` has computed the same results with it.
    """
    if sidecar == Sidecar():
        return Validity(undecidable=("the CSV has no sidecar",))
    plan = planning.make([figure], stand_in=bool(sidecar.stand_ins))
    if plan_id(plan, 0) == sidecar.plan:
        return Validity()
    used = {dataset.dataset for dataset in sidecar.datasets if dataset.state in ("present", "variant")}
    absent = used & {s.dataset for s in plan.sources.values() if s.state in ("absent", "damaged", "stand-in")}
    changed = [*_changed_spec(figure, sidecar), *_changed_data(plan, sidecar, absent)]
    if absent and not changed:
        names = ", ".join(sorted(absent))
        return Validity(undecidable=(f"computed on {names}, which is absent here, so changes cannot be detected",))
    if not changed and check is not None and _confirmed(plan, sidecar, check):
        return Validity()
    return Validity(tuple(changed) or ("the code that computes it changed",))


def _confirmed(plan: Plan, sidecar: Sidecar, check: Check) -> bool:
    """Return whether a check confirms all kept runs as today's code would compute them."""
    confirmed = check.confirmed(sidecar.csv_sha256)
    today = {(series, run.trial): run.id for series, runs in plan.by_figure[0].items() for run in runs}
    stored = {(series, trial) for series, ids in sidecar.runs.items() for trial, run in enumerate(ids, start=1) if run}
    checked = {(series, trial): run for series, ids in check.runs.items() for trial, run in enumerate(ids, start=1)}
    return bool(stored) and all(today.get(at) in confirmed and today[at] == checked.get(at) for at in stored)


def _changed_spec(figure: Figure, sidecar: Sidecar) -> list[str]:
    settings = [recorded(setting) for setting in figure.settings()]
    reasons = ["the spec changed"] if settings != list(sidecar.settings) else []
    if sidecar.trials_wanted not in (None, figure.wanted_trials):
        reasons.append(f"the spec asks for {figure.wanted_trials} trials, not {sidecar.trials_wanted}")
    return reasons


def _changed_data(plan: Plan, sidecar: Sidecar, absent: set[str]) -> list[str]:
    known = {(dataset.dataset, dataset.fingerprint) for dataset in sidecar.datasets if dataset.fingerprint}
    names = {name for name, _ in known} - absent
    reasons = []
    for source in plan.sources.values():
        if source.usable and source.dataset in names and (source.dataset, source.fingerprint) not in known:
            arrived = f"{source.dataset} is here now, and the results are on its stand-in"
            reasons.append(arrived if source.dataset in sidecar.stand_ins else f"the data of {source.dataset} changed")
    return list(dict.fromkeys(reasons))


def recorded(setting: Setting) -> dict[str, Any]:
    """Return a setting as a sidecar records it: everything except the names that the spec gives to things."""
    facts: dict[str, Any] = json.loads(json.dumps(asdict(setting), default=str))
    facts.pop("names")
    return facts


def plan_id(plan: Plan, number: int) -> str:
    """Return one hash of the identities of all runs of a figure, in order."""
    text = "\n".join(f"{name}\t{run.id}" for name, runs in plan.by_figure[number].items() for run in runs)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def finished(plan: Plan, number: int, root: Path) -> bool:
    """Return whether the results on disk are complete and those of exactly this plan."""
    base = stem(root, plan.figures[number])
    sidecar = read_sidecar(base)
    if sidecar is None or not (sidecar.plan == plan_id(plan, number) and sidecar.complete):
        return False
    return as_written(base, sidecar)


def kept(plan: Plan, number: int, root: Path) -> dict[str, Path]:
    """Return the runs of a figure's plan that results on disk contain: identity -> stem of the files.

    Tiers can share runs (more trials of the same setting), so results of the other tiers are searched last. Runs that
    options do not change are in the plain results, so these are searched too.
    """
    planned = {run.id for runs in plan.by_figure[number].values() for run in runs}
    figure = plan.figures[number]
    own, plain = stem(root, figure), place(root, figure.tier, figure.paper, figure.figure)
    others = [place(root, tier, figure.paper, figure.figure) for tier in TIERS]
    bases: dict[str, Path] = {}
    for base in dict.fromkeys((own, *(beside(own, why) for why in BESIDE), plain, *others)):
        sidecar = read_sidecar(base)
        if sidecar is not None and results_file(base) is not None:
            bases |= {run: base for run in runs_in(base, sidecar, plan, number) if run in planned and run not in bases}
    return bases


def runs_in(base: Path, sidecar: Sidecar, plan: Plan, number: int) -> dict[str, tuple[str, int]]:
    """Return series and trial of every run in the results at ``base``, by identity, today's too if a check confirms."""
    check = checks.read(base)
    confirmed = check.confirmed(sidecar.csv_sha256) if check is not None else {}
    if sidecar.runs:
        return confirmed | _named(sidecar)
    if sidecar.complete and sidecar.plan == plan_id(plan, number):  # version 1 does not name runs: all or none
        return {run.id: (series, run.trial) for series, runs in plan.by_figure[number].items() for run in runs}
    return {}


def _named(sidecar: Sidecar) -> dict[str, tuple[str, int]]:
    return {
        run: (series, trial) for series, runs in sidecar.runs.items() for trial, run in enumerate(runs, start=1) if run
    }
