"""What verdicts say about whether a claim was written before its results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

LOCKED, AFTER, FAMILIES, NO_LOCK = CLASSES = (
    "locked before results", "written or changed after", "families fixed after results", "not locked",
)  # fmt: skip
"""A lock proves it; a lock exists and does not; results are older than the lexicon; no lock was there."""

MEANS = {
    LOCKED: "a lock that was there when the first run began has the claim as it is now",
    AFTER: "a lock was there when the first run began, and does not prove that the claim came first",
    FAMILIES: "the results are older than the lexicon: when its readings were chosen, the results were known",
    NO_LOCK: "no lock was there when the first run began",
}


@dataclass(frozen=True)
class Precedence:
    """Whether a claim precedes its results: one of ``CLASSES``, and the reason in words."""

    kind: str
    words: str


def counted(states: Iterable[Precedence | None]) -> str:
    """Return how many claims each of ``CLASSES`` has, in words; '' if there are none."""
    counts = Counter(state.kind for state in states if state is not None)
    numbers = ((kind, counts[kind]) for kind in CLASSES if counts[kind])
    return "; ".join(f"{kind}: {number} claim{'s' if number > 1 else ''}" for kind, number in numbers)
