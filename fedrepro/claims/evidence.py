"""How much a verdict is worth: the level of the evidence it rests on, and the words that go with it.

Levels, best first: ``paper`` (the paper tier: published sizes, the paper's data, all trials), ``partial`` (not all
trials), ``variant`` (a known variant of the data, or another size than the paper's, or one that is not known),
``changed`` (computed with ``--set``), ``quick`` and ``smoke`` (smaller tiers), ``stand-in`` (other data, which say
nothing about the paper), ``none``. Several may apply: the worst is the level, and all are named. Only ``paper`` says
*reproduced*, *not reproduced* or *within noise*; below it a claim *holds*, *fails* or is *undecided* at its level.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from fedrepro.results.schema import Sidecar
from fedrepro.spec.model import Curve, Figure

PAPER, PARTIAL, VARIANT, CHANGED, QUICK, SMOKE, STAND_IN, NONE = LEVELS = (
    "paper", "partial", "variant", "changed", "quick", "smoke", "stand-in", "none",
)  # fmt: skip

HOLDS, FAILS, NOISE = "holds", "fails", "within noise"
"""What a check finds."""

REPRODUCED, NOT_REPRODUCED, UNDECIDED, NOT_TESTED = "reproduced", "not reproduced", "undecided", "not tested"
FULL = (REPRODUCED, NOT_REPRODUCED, NOISE)
LESS = (HOLDS, FAILS, UNDECIDED)
VERDICTS = (*FULL, *LESS, NOT_TESTED)
"""Verdicts on evidence of the level ``paper``, on less, and without any."""

MEANS = {
    PAPER: "published sizes, the paper's data, all trials",
    PARTIAL: "published sizes, not all trials yet",
    VARIANT: "a known variant of the data, or of another size",
    CHANGED: "computed with changed settings",
    QUICK: "smaller data, fewer rounds and trials",
    SMOKE: "a few rounds on tiny data",
    STAND_IN: "other data in place of absent ones: says nothing about the paper",
    NONE: "no results it could be read off",
}


@dataclass(frozen=True)
class Evidence:
    """What a claim was read off: the level, and what sets it apart from the paper's experiment ('' at ``paper``)."""

    level: str
    words: str = ""


def verdict(found: str, level: str) -> str:
    """The verdict's name for what a check found on evidence of this level."""
    if level == NONE or found == NOT_TESTED:
        return NOT_TESTED
    return dict(zip((HOLDS, FAILS, NOISE), FULL if level == PAPER else LESS, strict=True))[found]


def weigh(figure: Figure, sidecar: Sidecar, used: Iterable[Curve], trials: int) -> Evidence:
    """The evidence that the curves a claim used are, of which ``trials`` are finished."""
    used = list(used)
    found = list(_short_of_the_paper(figure, sidecar, used, trials))
    if not found:
        return Evidence(PAPER)
    return Evidence(max((level for level, _ in found), key=LEVELS.index), "; ".join(words for _, words in found))


def _short_of_the_paper(figure: Figure, sidecar: Sidecar, used: list[Curve], trials: int) -> Iterator[tuple[str, str]]:
    names = {curve.setting.dataset for curve in used}
    for name in sidecar.stand_ins:
        if name in names:
            yield STAND_IN, f"on a stand-in for {name}, which says nothing about the paper"
    if figure.tier != "paper":
        yield figure.tier, f"at the {figure.tier} tier"
    if sidecar.changes:
        yield CHANGED, "changed by " + " ".join(f"--set {item}" for item in sidecar.changes)
    for one in sidecar.variants:
        if one.dataset in names:
            yield VARIANT, f"on a variant of {one.dataset}" + (f" ({one.note})" if one.note else "")
    yield from ((VARIANT, words) for words in sizes(figure, sidecar, used))
    wanted = max(figure.wanted_trials, sidecar.trials_wanted or 0)  # the spec may ask for more than it did
    if trials < wanted:
        yield PARTIAL, f"on {trials} of {wanted} trials"


def sizes(
    figure: Figure, sidecar: Sidecar, used: Iterable[Curve], called: Mapping[str, str] | None = None
) -> Iterator[str]:
    """In words, where real data of these curves are of another size than the paper's, or of one that is not known.

    Smaller tiers and stand-ins are not compared: they say what they are. called : names for a reader, by the spec's.
    """
    settings = [curve.setting for curve in used if curve.setting.dataset not in sidecar.stand_ins]
    for alias in dict.fromkeys(s.names.get("dataset", "") for s in settings if figure.tier == "paper"):
        ours, papers = sidecar.sizes.get(alias, {}), figure.sizes.get(alias, {})
        name = (called or {}).get(alias, alias)
        if unknown := [key for key in papers if key not in ours]:
            yield f"on {name}, of whose {' and '.join(unknown) if ours else 'size'} these results say nothing"
        if off := [key for key, size in papers.items() if key in ours and ours[key] != size]:
            yield f"on {name} with " + ", ".join(_size(key, ours, papers) for key in off)


def _size(name: str, ours: Mapping[str, int], papers: Mapping[str, int]) -> str:
    return f"{name} = {ours[name]:,} (the paper's: {papers[name]:,})"
