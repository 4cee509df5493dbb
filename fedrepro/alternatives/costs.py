"""What cases cost: the trials to run, the runs that are left, and their predicted time with one worker."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fedrepro.alternatives.cases import Case
from fedrepro.alternatives.reuse import in_results
from fedrepro.claims import judge
from fedrepro.results.read import read_sidecar, stem
from fedrepro.results.schema import Sidecar
from fedrepro.runs.compute.run import Run
from fedrepro.runs.identity import plan as planning
from fedrepro.runs.predict.calibrate import machine_for
from fedrepro.runs.predict.timings import Timings
from fedrepro.runs.runner import Folders
from fedrepro.runs.storage.store import Store
from fedrepro.runs.storage.validity import elsewhere, finished
from fedrepro.spec.model import Claim, Figure

HOUR = 3600.0
MOST, MANY, FEW = 20, 10, 3
"""All trials of a figure are run up to ``MOST``, of one with more trials ``MANY``; and ``FEW`` where ``MANY`` trials of
what no figure's results contain take more than an hour."""


@dataclass(frozen=True)
class Cost:
    """The figure to compute (None: nothing can be computed), its trials of ``wanted`` ones, and what is left.

    left : predicted hours of all trials of each curve, by the identity of its first run; cases can share runs. claims :
    the ids of those that read no curve that cannot be computed here. absent : why some or all curves cannot be computed
    here, '' if all can.
    """

    figure: Figure | None
    trials: int
    wanted: int
    left: Mapping[str, float]
    done: bool
    claims: frozenset[str] = frozenset()
    absent: str = ""

    @property
    def hours(self) -> float:
        """Predicted hours of one worker for what is left."""
        return sum(self.left.values())


def costs(
    cases: Sequence[Case], root: Path, report: Callable[[str], None] = lambda text: None, asked: int | None = None
) -> list[Cost]:
    """Return the cost of each case.

    report : receives a line before something is measured. asked : the number of trials, instead of what the predicted
    time suggests; results that have more keep theirs.
    """
    firsts = [case.to_compute(1) for case in cases]
    plan = planning.make(firsts, stand_in=False)
    timings = Timings(Folders(root).store, machine_for(list(plan.runs.values()), report))
    there, store = in_results(root), Store(Folders(root).store)
    made = []
    for case, first, series, missing in zip(cases, firsts, plan.by_figure, plan.missing, strict=True):
        runs = [run for trials in series.values() for run in trials]
        wanted = case.figure.trials
        absent = next(iter(missing.values()), "").removesuffix(planning.OR_STAND_IN)  # sets are not run on one
        if not runs:
            made.append(Cost(None, 0, wanted, {}, False, absent=absent))
            continue
        not_there = [run for run in runs if run.id not in there]
        kept = read_sidecar(stem(root, first))
        decided = kept and kept.trials_wanted  # a prediction decides once
        if asked:
            trials = max(decided or 0, min(asked, wanted))
        else:
            trials = decided or _affordable(wanted, timings.total(not_there * MANY, 1))
        figure = dataclasses.replace(available(first, missing), trials=trials, wanted_trials=trials)
        done = kept is not None and (finished(planning.make([figure], False), 0, root) or _elsewhere(figure, kept))
        left = [] if done else [run for run in not_there if not store.has(run.id)]
        claims = frozenset(claim.id for claim in case.claims if not set(_series(claim, case)) & set(missing))
        made.append(Cost(figure, trials, wanted, _shares(left, trials, timings), done, claims, absent))
    return made


def _elsewhere(figure: Figure, kept: Sidecar) -> bool:
    """Return whether all trials were computed with other libraries (on a GPU), by code that is the same today."""
    return kept.complete and kept.trials_wanted == figure.trials and bool(elsewhere(figure, kept))


def _affordable(wanted: int, seconds: float) -> int:
    """Return the trials to run of ``wanted`` ones if ``MANY`` take some seconds."""
    enough = wanted if wanted <= MOST else MANY
    return enough if seconds <= HOUR else min(FEW, wanted)


def _series(claim: Claim, case: Case) -> list[str]:
    return [curve.setting.series for curve in judge.curves(claim, case.changed)]


def _shares(left: Sequence[Run], trials: int, timings: Timings) -> dict[str, float]:
    """Return the predicted hours of all trials of some runs, by identity, each with its share of what they share."""
    alone = {run.id: timings.seconds(run) for run in left}
    hours = timings.total(list(left) * trials, 1) / HOUR
    return {id_: hours * seconds / max(sum(alone.values()), 1e-9) for id_, seconds in alone.items()}


def available(figure: Figure, missing: Mapping[str, str]) -> Figure:
    """Return the figure without the series that cannot be computed here."""
    return dataclasses.replace(figure, panels=figure.panels_with(lambda series: series not in missing))
