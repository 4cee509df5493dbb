"""The level of evidence of a verdict, and its wording.

Levels, best first: ``paper`` (the paper tier: published sizes, the paper's data, all trials), ``partial`` (not all
trials), ``variant`` (a known variant of the data, or data of another or unknown size), ``unknown`` (it is not certain
how the numbers were computed: ``results.consistency``), ``changed`` (computed with ``--set``), ``quick`` and ``smoke``
(smaller tiers), ``stand-in`` (other data, which say nothing about the paper), ``none``. If several apply, the worst is
the level, and all are named. Only at ``paper`` is a claim *reproduced*, *not reproduced*, *within noise* or *text
against figure*; below it a claim *holds*, *fails* or is *undecided* at its level.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from fedrepro.results import consistency
from fedrepro.results.by_run import Runs
from fedrepro.results.schema import Sidecar
from fedrepro.spec.find import of_own_study
from fedrepro.spec.model import Curve, Figure

PAPER, PARTIAL, VARIANT, UNKNOWN, CHANGED, QUICK, SMOKE, STAND_IN, NONE = LEVELS = (
    "paper", "partial", "variant", "unknown", "changed", "quick", "smoke", "stand-in", "none",
)  # fmt: skip

HOLDS, FAILS, NOISE = "holds", "fails", "within noise"
"""The outcomes of a check."""

REPRODUCED, NOT_REPRODUCED, UNDECIDED, NOT_TESTED = "reproduced", "not reproduced", "undecided", "not tested"
AGAINST_FIGURE = "text against figure"
"""The verdict where a check fails and the paper's own figure, which is reproduced, shows that it must."""
FULL = (REPRODUCED, NOT_REPRODUCED, NOISE)
LESS = (HOLDS, FAILS, UNDECIDED)
VERDICTS = (*FULL, AGAINST_FIGURE, *LESS, NOT_TESTED)
"""Verdicts at the level ``paper``, at lower levels, and without evidence."""

MEANS = {
    PAPER: "published sizes, the paper's data, all trials",
    PARTIAL: "published sizes, not all trials yet",
    VARIANT: "a known variant of the data, or of another size",
    UNKNOWN: "not certain how the numbers were computed",
    CHANGED: "computed with changed settings",
    QUICK: "smaller data, fewer rounds and trials",
    SMOKE: "a few rounds on tiny data",
    STAND_IN: "other data in place of absent ones: says nothing about the paper",
    NONE: "no results that the claim could be read from",
}


@dataclass(frozen=True)
class Evidence:
    """The level of evidence of a claim, and how it differs from the paper's experiment ('' at ``paper``)."""

    level: str
    words: str = ""


def verdict(outcome: str, level: str) -> str:
    """Return the verdict for the outcome of a check on evidence of this level."""
    if level == NONE or outcome == NOT_TESTED:
        return NOT_TESTED
    return dict(zip((HOLDS, FAILS, NOISE), FULL if level == PAPER else LESS, strict=True))[outcome]


def weigh(figure: Figure, sidecar: Sidecar, used: Iterable[Curve], trials: int, runs: Runs) -> Evidence:
    """Return the evidence of a claim that uses these curves, with ``trials`` finished trials. runs : the results."""
    used = list(used)
    differences = list(_differences(figure, sidecar, used, trials, runs))
    if not differences:
        return Evidence(PAPER)
    worst = max((level for level, _ in differences), key=LEVELS.index)
    return Evidence(worst, "; ".join(words for _, words in differences if words))


def _differences(
    figure: Figure, sidecar: Sidecar, used: list[Curve], trials: int, runs: Runs
) -> Iterator[tuple[str, str]]:
    names, settings = {curve.setting.dataset for curve in used}, [curve.setting for curve in used]
    for name in consistency.stand_ins(sidecar, runs, settings):
        yield STAND_IN, f"on a stand-in for {name}, which says nothing about the paper"
    if figure.tier != "paper":
        yield figure.tier, "" if of_own_study(figure.name, figure.tier) else f"at the {figure.tier} tier"
    yield from ((UNKNOWN, words) for words in consistency.doubts(figure, sidecar, runs, settings))
    if sidecar.changes:
        yield CHANGED, "changed by " + " ".join(f"--set {item}" for item in sidecar.changes)
    for content in sidecar.variants:
        if content.dataset in names:
            yield VARIANT, f"on a variant of {content.dataset}" + (f" ({content.note})" if content.note else "")
    yield from ((VARIANT, words) for words in sizes(figure, sidecar, used))
    asked = min((figure.more.get(setting.series, 0) for setting in settings), default=0)
    wanted = max(figure.wanted_trials, asked, sidecar.trials_wanted or 0)  # the spec may have more trials now
    if trials < wanted:
        yield PARTIAL, f"on {trials} of {wanted} trials"


def sizes(
    figure: Figure, sidecar: Sidecar, used: Iterable[Curve], called: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Yield, in words, which real data of these curves differ in size from the paper's, or have an unknown size.

    Smaller tiers and stand-ins are not compared, because they have levels of their own. called : names for a reader, by
    the spec's names.
    """
    settings = [curve.setting for curve in used if curve.setting.dataset not in sidecar.stand_ins]
    for alias in dict.fromkeys(s.names.get("dataset", "") for s in settings if figure.tier == "paper"):
        ours, papers = sidecar.sizes.get(alias, {}), figure.sizes.get(alias, {})
        name = (called or {}).get(alias, alias)
        if unknown := [key for key in papers if key not in ours]:
            yield f"on {name}, whose {' and '.join(unknown) if ours else 'size'} these results do not record"
        if off := [key for key, size in papers.items() if key in ours and ours[key] != size]:
            texts = [f"{key} = {ours[key]:,} (the paper's: {papers[key]:,})" for key in off]
            yield f"on {name} with {', '.join(texts)}"
