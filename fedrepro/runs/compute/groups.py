"""Groups of runs that one worker computes together, in lockstep.

The numbers of a run do not depend on its group (``problems.clustering.passes``). A group therefore consists of runs on
the same arrays: few enough to keep all workers busy, and to end in reasonable time, because a run is kept only once it
has ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fedrepro.runs.compute.lockstep import joins
from fedrepro.runs.compute.run import Run

MOST = 10
"""Largest number of runs in a group: matrix products of more than 200 columns gain nothing from further ones."""

SECONDS, TIMES = 1800.0, 3.0
"""Predicted time limit of a group, in seconds and in multiples of its longest run: a kill loses at most this."""


def groups(
    todo: Sequence[Run], seconds: Mapping[str, float], jobs: int, alone: frozenset[str] = frozenset()
) -> list[list[Run]]:
    """Return the runs in groups, each on one problem, in the order of their first runs.

    seconds : predicted time of each run, by run id. alone : ids of runs that are timed and share no group.
    """
    grouped: list[list[Run]] = []
    by_problem: dict[str, list[Run]] = {}
    for run in todo:
        if run.id in alone or not joins(run.setting):
            grouped.append([run])
        else:
            by_problem.setdefault(run.problem_id, []).append(run)
    for runs in by_problem.values():
        grouped += _cut(runs, seconds, -(-len(runs) // jobs))
    place = {run.id: number for number, run in enumerate(todo)}
    return sorted(grouped, key=lambda group: place[group[0].id])


def _cut(runs: Sequence[Run], seconds: Mapping[str, float], share: int) -> list[list[Run]]:
    most, parts = min(MOST, max(1, share)), [[runs[0]]]
    for run in runs[1:]:
        costs = [seconds[member.id] for member in (*parts[-1], run)]
        if len(parts[-1]) < most and sum(costs) <= max(SECONDS, TIMES * max(costs)):
            parts[-1].append(run)
        else:
            parts.append([run])
    return parts
