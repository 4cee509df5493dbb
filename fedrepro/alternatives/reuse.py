"""Runs that the results of figures already contain, and that a case wants too."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fedrepro.results import checks
from fedrepro.results.read import read_sidecar, stems
from fedrepro.runs.identity import plan as planning
from fedrepro.runs.storage.restore import restore
from fedrepro.runs.storage.store import Store
from fedrepro.spec.find import experiments
from fedrepro.spec.read import load


def in_results(root: Path) -> Mapping[str, tuple[str, str]]:
    """Return the runs in the results of figures by identity: the name of the figure and the tier."""
    there: dict[str, tuple[str, str]] = {}
    for base in stems(root):
        sidecar = read_sidecar(base)
        if sidecar is None or not (experiments() / f"{sidecar.figure}.yaml").is_file():
            continue
        check = checks.read(base)
        confirmed = check.confirmed(sidecar.csv_sha256) if check is not None else {}
        named = (run for runs in sidecar.runs.values() for run in runs if run)
        there |= dict.fromkeys((*named, *confirmed), (sidecar.figure, sidecar.tier))
    return there


def copy(wanted: set[str], store: Store, root: Path) -> int:
    """Copy the wanted runs from the results of figures into the store; return how many were copied."""
    lacking = {run for run in wanted if not store.has(run)}
    if not lacking:
        return 0
    there = in_results(root)
    lacking &= set(there)
    copied = 0
    for name, tier in sorted({there[run] for run in lacking}):
        plan = planning.make([load(experiments() / f"{name}.yaml", tier)], stand_in=False)
        copied += restore(plan, 0, store, root, lacking)
    return copied
