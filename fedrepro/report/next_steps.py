"""What would give a claim better evidence: what is missing, the command that computes it, and about how long it takes.

The time is predicted for one core, from earlier trials of the same figure or from earlier runs and operation counts
(``runs.predict``). Nothing is measured for the prediction.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fedrepro import registry
from fedrepro.claims import evidence, judge
from fedrepro.claims.judge import Row
from fedrepro.errors import UserError
from fedrepro.report.gather import Section
from fedrepro.results.schema import Sidecar
from fedrepro.runs.identity import plan as planning
from fedrepro.runs.predict.timings import Timings
from fedrepro.spec.read import load

PAPER = "paper"


@dataclass(frozen=True)
class Step:
    """One thing to do: what it is for, and the command; '' where no command does it. seconds : predicted, 0 if not."""

    words: str
    command: str = ""
    seconds: float = 0.0


def seconds(section: Section, root: Path) -> float:
    """Predicted seconds, on one core, of what the figure lacks at the paper tier; 0 where it lacks nothing."""
    levels = {row.level for row in section.claims}
    if levels <= {evidence.PAPER, evidence.VARIANT}:
        return 0.0
    if section.source is not None and section.figure.tier == PAPER:
        known = _by_trials(section.source.sidecar)
        if known is not None:
            return known
    try:
        figure = load(section.path, PAPER)
        first = planning.make([dataclasses.replace(figure, trials=1)], stand_in=True)  # the others take as long
    except UserError:
        return 0.0
    return Timings(root / ".runs").total(list(first.runs.values()) * figure.trials, 1)


def _by_trials(sidecar: Sidecar) -> float | None:
    """What the missing trials take, as those did that are there; None where some curve has none."""
    wanted, took = sidecar.trials_wanted, sidecar.seconds_per_run
    if wanted is None or not took or len(took) < len(sidecar.settings) or not all(took.values()):
        return None
    return sum((wanted - len(each)) * sum(each) / len(each) for each in took.values() if len(each) < wanted)


def steps(section: Section, row: Row, took: float) -> tuple[Step, ...]:
    """What to do for better evidence, in order; ``took``: what ``seconds`` says of the figure."""
    return tuple(_steps(section, row, took))


def _steps(section: Section, row: Row, took: float) -> Iterator[Step]:
    source = section.read_from(row)
    if section.is_stale(row):
        yield Step(
            "The code, spec or data changed since. Computed again in part, and compared:",
            f"fedrepro check {section.name} --tier {row.tier}",
        )
    if row.level == evidence.PAPER:
        return
    sidecar = source.sidecar if source is not None else Sidecar()
    if row.level == evidence.CHANGED:
        yield Step("The spec's own settings, without the options:", _run(section), took)
        return
    used = {curve.setting.dataset for curve in judge.curves(row.claim, source.figure)} if source is not None else set()
    for name in (n for n in sidecar.stand_ins if n in used and row.level == evidence.STAND_IN):
        where = registry.datasets()[name].source or name if name in registry.datasets() else name
        yield Step(
            f"The real data of {name}, from its source or from a copy of yours:",
            f"fedrepro data fetch {where}   # or: fedrepro data import {where} PATH",
        )
    if row.level == evidence.VARIANT:
        for one in (variant for variant in sidecar.variants if variant.dataset in used):
            yield Step(f"The published files of {one.dataset} in place of a variant:",
                       f"fedrepro data import {one.dataset} PATH")  # fmt: skip
    said = {
        evidence.PARTIAL: "The trials that are missing:",
        evidence.VARIANT: "Then the figure at the published sizes, on data of the size that the paper gives:",
        evidence.NONE: "Results at the published sizes, with all trials:",
    }
    yield Step(said.get(row.level, "The published sizes, with all rounds and trials:"), _run(section), took)


def _run(section: Section) -> str:
    return f"fedrepro run {section.name} --tier {PAPER}"


def duration(seconds: float) -> str:
    """A predicted time in words; '' for none."""
    if seconds <= 0:
        return ""
    for limit, unit, size in ((90, "seconds", 1), (5400, "minutes", 60), (172_800, "hours", 3600)):
        if seconds < limit:
            return f"about {max(seconds / size, 1):.2g} {unit} of one core"
    return f"about {seconds / 86_400:.2g} days of one core"
