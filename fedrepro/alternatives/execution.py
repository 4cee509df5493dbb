"""Compute a case: the curves that change, as ordinary runs; then keep what claims read of them."""

from __future__ import annotations

from pathlib import Path

from fedrepro.alternatives import kept_results, reuse
from fedrepro.alternatives.cases import Case
from fedrepro.runs import runner
from fedrepro.runs.identity import plan as planning
from fedrepro.runs.storage.store import Store
from fedrepro.spec.model import Figure


def compute(case: Case, figure: Figure, root: Path, *, jobs: int | None, quiet: bool) -> runner.Outcome:
    """Compute the runs of a case and keep their results.

    figure : the curves and the number of trials to compute (``costs.Cost.figure``). Runs that are finished, here or in
    the results of a figure, are reused; an interrupted case continues where it stopped.
    """
    plan = planning.make([figure], stand_in=False)
    folders = runner.Folders(root)
    store = Store(folders.store)
    store.open()
    reuse.copy(set(plan.runs), store, root)
    outcome = runner.run(plan, folders, jobs=jobs, only=[None], quiet=quiet)
    if not outcome.interrupted:
        for written in outcome.written:
            kept_results.thin(written.base, case.metrics(), case.rounds())
    return outcome
