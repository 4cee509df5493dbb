"""Compute a case: the curves that change, as ordinary runs; then keep what claims read of them."""

from __future__ import annotations

from pathlib import Path

from fedrepro.alternatives import kept_results, reuse
from fedrepro.alternatives.cases import Case
from fedrepro.runs import runner
from fedrepro.runs.identity import plan as planning
from fedrepro.runs.storage.store import Store
from fedrepro.spec.model import Figure

UNFINISHED = ".settings"
"""The folder of the results of a case that is being computed. An interrupted case leaves only its finished runs."""


def compute(case: Case, figure: Figure, root: Path, *, jobs: int | None, quiet: bool) -> runner.Outcome:
    """Compute the runs of a case and keep their results.

    figure : the curves and the number of trials to compute (``costs.Cost.figure``). Runs that are finished, here or in
    the results of a figure, are reused; an interrupted case continues where it stopped. A case of which a run failed
    keeps nothing, because its claims would be compared over fewer trials than planned.
    """
    plan = planning.make([figure], stand_in=False)
    folders = runner.Folders(root / UNFINISHED, root)
    store = Store(folders.store)
    store.open()
    reuse.copy(set(plan.runs), store, root)
    outcome = runner.run(plan, folders, jobs=jobs, only=[None], quiet=quiet)
    complete = not (outcome.interrupted or outcome.failed)
    for written in outcome.written:
        if complete:
            kept_results.keep(written.base, kept_results.base(root, case), case.metrics(), case.rounds())
        kept_results.discard(written.base)
    return outcome
