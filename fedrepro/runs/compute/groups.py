"""Which runs are computed together, in step, by one worker.

A run's numbers do not depend on the company it keeps (``problems.passes``), so groups follow from what is left to do:
runs on the same arrays, as many as keep all workers busy and end in reasonable time, since what a group computes is
kept run by run, but only as they end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fedrepro.runs.compute.lockstep import joins
from fedrepro.runs.run import Run

MOST = 10
"""Runs in a group: products of 200 columns and more gain nothing by further ones."""

SECONDS, TIMES = 1800.0, 3.0
"""What a group may take by prediction, or how many times its longest run, so that a kill loses no more."""


def groups(
    todo: Sequence[Run], seconds: Mapping[str, float], jobs: int, alone: frozenset[str] = frozenset()
) -> list[list[Run]]:
    """The runs in groups, each on one problem, in the order of their first runs.

    seconds : predicted for each run, by its id. alone : ids of runs that are timed, and keep to themselves.
    """
    found: list[list[Run]] = []
    by_problem: dict[str, list[Run]] = {}
    for run in todo:
        if run.id in alone or not joins(run.setting):
            found.append([run])
        else:
            by_problem.setdefault(run.problem_id, []).append(run)
    for runs in by_problem.values():
        found += _cut(runs, seconds, -(-len(runs) // jobs))
    place = {run.id: number for number, run in enumerate(todo)}
    return sorted(found, key=lambda group: place[group[0].id])


def _cut(runs: Sequence[Run], seconds: Mapping[str, float], share: int) -> list[list[Run]]:
    most, found = min(MOST, max(1, share)), [[runs[0]]]
    for run in runs[1:]:
        costs = [seconds[one.id] for one in (*found[-1], run)]
        if len(found[-1]) < most and sum(costs) <= max(SECONDS, TIMES * max(costs)):
            found[-1].append(run)
        else:
            found.append([run])
    return found
