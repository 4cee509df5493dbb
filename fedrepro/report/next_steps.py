"""Find what a claim needs for better evidence: what is missing, the command that computes it, and its predicted time.

The time is for one core, from earlier trials of the same figure, or from earlier runs and operation counts
(``runs.predict``). Nothing is measured for the prediction.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fedrepro import registry
from fedrepro.claims import evidence, judge
from fedrepro.claims.judge import Row
from fedrepro.errors import UserError
from fedrepro.report.contents import Section
from fedrepro.results.schema import Sidecar
from fedrepro.runs.identity import plan as planning
from fedrepro.runs.predict.timings import Timings
from fedrepro.runs.storage.validity import CODE, OTHER_LIBRARIES
from fedrepro.spec.find import of_own_study, option_of_tier
from fedrepro.spec.model import Figure
from fedrepro.spec.read import load

PAPER = "paper"


@dataclass(frozen=True)
class Step:
    """One step: its purpose and its command ('' without one). seconds : predicted time, 0 if unknown."""

    words: str
    command: str = ""
    seconds: float = 0.0


def seconds(section: Section, root: Path) -> float:
    """Return the predicted seconds, on one core, of what the figure lacks at the paper tier; 0 if complete.

    Runs of which it is not certain how they were computed are lacking too, and so are those of a GPU, which are not
    reused here.
    """
    levels = {row.level for row in section.claims}
    if levels <= {evidence.PAPER, evidence.VARIANT} and not any(_lacks_trials(section, row) for row in section.claims):
        return 0.0
    elsewhere = any(reason.startswith(OTHER_LIBRARIES) for reason in section.unchecked)
    if section.source is not None and section.figure.tier == PAPER and evidence.UNKNOWN not in levels and not elsewhere:
        known = _by_trials(section.source.sidecar, section.figure)
        if known is not None:
            return known
    try:
        figure = load(section.path, PAPER)
        one = dataclasses.replace(figure, trials=1, more={})  # the others take equally long
        first = planning.make([one], stand_in=True)
    except UserError:
        return 0.0
    runs = [run for run in first.runs.values() for _ in range(figure.trials_of(run.setting.series))]
    return Timings(root / ".runs").total(runs, 1)


def _by_trials(sidecar: Sidecar, figure: Figure) -> float | None:
    """Return the time of the missing trials from that of the existing ones; None if a curve has none."""
    wanted, took = sidecar.trials_wanted, sidecar.seconds_per_run
    if wanted is None or not took or len(took) < len(sidecar.settings) or not all(took.values()):
        return None
    lacking = {name: max(wanted, figure.more.get(name, 0)) - len(trials) for name, trials in took.items()}
    return sum(max(lacking[name], 0) * sum(trials) / len(trials) for name, trials in took.items())


def steps(section: Section, row: Row, took: float) -> tuple[Step, ...]:
    """Return the steps to better evidence, in order. took : result of ``seconds`` for the figure."""
    return tuple(_steps(section, row, took))


def _steps(section: Section, row: Row, took: float) -> Iterator[Step]:
    source = section.read_from(row)
    if changed := section.stale_since(row):
        yield _to_renew(changed, f"{section.name}{option_of_tier(row.figure, row.tier)}")
    if row.level == evidence.PAPER:
        return
    if of_own_study(row.figure, row.tier) and row.level == evidence.QUICK:  # nothing is reduced in it
        if row.evidence:
            yield Step("To compute the study as its spec describes it:", f"fedrepro run {section.name}")
        return
    sidecar = source.sidecar if source is not None else Sidecar()
    if row.level == evidence.NONE and section.figure.tier == PAPER and sidecar.complete:
        return  # more results would say nothing either
    if row.level == evidence.CHANGED:
        yield Step("With the spec's own settings, without the options:", _run(section), took)
        return
    used = {curve.setting.dataset for curve in judge.curves(row.claim, source.figure)} if source is not None else set()
    for name in (n for n in sidecar.stand_ins if n in used and row.level == evidence.STAND_IN):
        where = registry.datasets()[name].source or name if name in registry.datasets() else name
        yield Step(
            f"With the real data of {name}, from its source or from your own copy:",
            f"fedrepro data fetch {where}   # or: fedrepro data import {where} PATH",
        )
    if _lacks_trials(section, row):
        yield Step("To compute the missing trials on this variant of the data:", _run(section), took)
    if row.level == evidence.VARIANT:
        for name in (variant.dataset for variant in sidecar.variants if variant.dataset in used):
            yield Step(f"With the published files of {name} instead of a variant:",
                       f"fedrepro data import {name} PATH")  # fmt: skip
    purposes = {
        evidence.PARTIAL: "To compute the missing trials:",
        evidence.VARIANT: "Then compute the figure on data of the paper's size:",
        evidence.UNKNOWN: "To compute results with a record of how:",
        evidence.NONE: "To compute results at the published sizes, with all trials:",
    }
    purpose = purposes.get(row.level, "To compute the published sizes, with all rounds and trials:")
    fresh = " --fresh" if row.level == evidence.UNKNOWN else ""  # without it, `run` takes the results for finished
    yield Step(purpose, _run(section) + fresh, took)


def _to_renew(changed: Sequence[str], which: str) -> Step:
    """Return the step for stale results. changed : the reasons. which : the figure with its tier, for a command."""
    if all(why.startswith(CODE) for why in changed):
        return Step("The code has changed. To compute a sample again and compare it:", f"fedrepro check {which}")
    return Step("The spec, a default or the data have changed. To compute the results again:", f"fedrepro run {which}")


def _lacks_trials(section: Section, row: Row) -> bool:
    """Return whether a claim on a variant of the data has fewer trials than its figure asks for."""
    source = section.read_from(row)
    wanted = source.sidecar.trials_wanted if source is not None else None
    return row.level == evidence.VARIANT and row.trials < (wanted or 0)


def _run(section: Section) -> str:
    return f"fedrepro run {section.name} --tier {PAPER}"


def duration(seconds: float) -> str:
    """Return a predicted time in words, '' for 0."""
    if seconds <= 0:
        return ""
    for limit, unit, size in ((90, "seconds", 1), (5400, "minutes", 60), (172_800, "hours", 3600)):
        if seconds < limit:
            number = f"{max(seconds / size, 1):.2g}"
            return f"about {number} {unit.removesuffix('s') if number == '1' else unit} of one core"
    return f"about {seconds / 86_400:.2g} days of one core"
