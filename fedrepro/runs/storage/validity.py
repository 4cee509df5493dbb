"""Decide whether kept results are still valid: whether today's spec, code and data would compute the same runs.

All commands use this module to find the kept runs of a plan, whether a figure is finished, and what has changed since
its results were computed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fedrepro import registry
from fedrepro.errors import counted
from fedrepro.results import changed_settings, checks
from fedrepro.results.checks import Check
from fedrepro.results.consistency import plan_hash
from fedrepro.results.read import BESIDE, as_written, beside, place, read_sidecar, results_file, stem
from fedrepro.results.schema import Sidecar
from fedrepro.runs.compute.run import DataSource
from fedrepro.runs.identity import code
from fedrepro.runs.identity import plan as planning
from fedrepro.runs.identity.identify import source_key
from fedrepro.runs.identity.plan import Plan
from fedrepro.spec.model import Figure
from fedrepro.spec.tiers import DEFAULT, TIERS


@dataclass(frozen=True)
class Validity:
    """What has changed since results were computed, and what cannot be decided here; both empty if they are valid."""

    changed: tuple[str, ...] = ()
    undecidable: tuple[str, ...] = ()


CODE = "the code that computes it changed"
"""The beginning of the reason why results that other code computed are stale."""
OTHER_SETTINGS = "its sidecar records other settings than those of its runs"
OTHER_LIBRARIES = "computed with other libraries"
"""The beginning of the reason why results of the same code are not compared."""


def validity(figure: Figure, sidecar: Sidecar, check: Check | None = None) -> Validity:
    """Return whether a figure's results are valid today.

    Data that are absent here count as those that the sidecar records. Changed code counts as the same for the curves
    that a ``check`` confirms.
    """
    if sidecar == Sidecar():
        return Validity(undecidable=("the CSV has no sidecar",))
    settings = changed_settings.in_words(figure, sidecar)
    plan = planning.make([figure], stand_in=bool(sidecar.stand_ins), recorded=_recorded_data(figure, sidecar))
    if plan_id(plan, 0) == sidecar.plan:
        return Validity((OTHER_SETTINGS,) if settings else ())
    lacking = [reason for reason in plan.missing[0].values() if reason.startswith(planning.LACKING)]
    if lacking and not settings:
        return Validity(undecidable=(f"changes cannot be detected: it {lacking[0]}",))
    used = {dataset.dataset for dataset in sidecar.datasets if dataset.state in ("present", "variant")}
    absent = used & {s.dataset for s in plan.sources.values() if s.state in ("absent", "damaged", "stand-in")}
    changed = [*filter(None, [settings]), *_changed_trials(figure, sidecar), *_changed_data(plan, sidecar, absent)]
    if absent and not changed:
        names = ", ".join(sorted(absent))
        return Validity(undecidable=(f"computed on {names}, which is absent here, so changes cannot be detected",))
    if changed:
        return Validity(tuple(changed))
    curves, other = _computed_by_other_code(plan, sidecar, check)
    if curves and not other:
        return Validity()
    if libraries := _other_libraries(sidecar):
        there = planning.make(
            [figure], bool(sidecar.stand_ins), _recorded_data(figure, sidecar), sidecar.made.libraries
        )
        curves, other = _computed_by_other_code(there, sidecar, check)
        if curves and not other:
            return Validity(undecidable=(f"{OTHER_LIBRARIES}: {libraries}",))
    return Validity((f"{CODE}{_which(plan, curves, other) if other < curves else ''}",))


def elsewhere(figure: Figure, sidecar: Sidecar) -> str:
    """Return in words with which other libraries results of today's code were computed (a GPU's); '' otherwise."""
    if not _other_libraries(sidecar):
        return ""
    reasons = validity(figure, sidecar).undecidable
    return next((reason for reason in reasons if reason.startswith(OTHER_LIBRARIES)), "")


def _other_libraries(sidecar: Sidecar) -> str:
    """Return in words which libraries, or settings of JAX, are others than the results were computed with."""
    methods = {registry.methods()[setting["algorithm"]].cls for setting in sidecar.settings}
    kept, here = code.libraries(methods, sidecar.made.libraries), code.libraries(methods)
    names = sorted(name for name in kept.keys() | here.keys() if kept.get(name) != here.get(name))
    return ", ".join(f"{name} {kept.get(name, 'absent')} (here {here.get(name, 'absent')})" for name in names)


def _which(plan: Plan, curves: set[str], other: set[str]) -> str:
    """Return in words which curves other code computed: their number and their methods."""
    methods = {series: runs[0].setting.algorithm for series, runs in plan.by_figure[0].items() if runs}
    names = ", ".join(sorted({methods.get(series, series) for series in other}))
    return f" ({len(other)} of {len(curves)} curves: {names})"


def _recorded_data(figure: Figure, sidecar: Sidecar) -> dict[str, DataSource]:
    """Return the data that results were computed on, by ``source_key``; {} if the spec has other data now."""
    keys = sorted({source_key(setting) for setting in figure.settings()})
    if len(keys) != len(sidecar.datasets):
        return {}
    return {
        key: DataSource(data.dataset, data.state, data.fingerprint, data.note)
        for key, data in zip(keys, sidecar.datasets, strict=True)
        if data.state in ("present", "variant")
    }


def _computed_by_other_code(plan: Plan, sidecar: Sidecar, check: Check | None) -> tuple[set[str], set[str]]:
    """Return the kept curves, and those that today's code may compute otherwise."""
    confirmed = set(check.confirmed(sidecar.csv_sha256)) if check is not None else set()
    today = {(series, run.trial): run.id for series, runs in plan.by_figure[0].items() for run in runs}
    kept_curves: set[str] = set()
    other: set[str] = set()
    for series, runs in sidecar.runs.items():
        for trial, run in enumerate(runs, start=1):
            if run:
                kept_curves.add(series)
                now = today.get((series, trial))
                other |= {series} if now != run and now not in confirmed else set()
    return kept_curves, other


def _changed_trials(figure: Figure, sidecar: Sidecar) -> list[str]:
    reasons = []
    if sidecar.trials_wanted not in (None, figure.wanted_trials):
        reasons.append(f"the spec asks for {figure.wanted_trials} trials, not {sidecar.trials_wanted}")
    asked = {name: min(figure.more.get(name, 0), figure.trials_of(name)) for name in sidecar.runs}
    few = [name for name, runs in sidecar.runs.items() if len(runs) < asked[name] > figure.wanted_trials]
    if few and sidecar.complete:
        reasons.append(f"claims ask for more trials of {counted(len(few), 'curve')}")
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


def plan_id(plan: Plan, number: int) -> str:
    """Return one hash of the identities of all runs of a figure, in order."""
    return plan_hash({series: [run.id for run in runs] for series, runs in plan.by_figure[number].items()})


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
    others.append(root / DEFAULT / figure.paper / figure.figure)  # where studies of users once had their results
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
