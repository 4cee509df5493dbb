"""What verdicts say about whether a claim was written before its results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

LOCKED, AFTER, FAMILIES, NO_LOCK = CLASSES = (
    "locked before results", "written or changed after", "readings chosen after results", "not locked",
)  # fmt: skip
"""In this order: a lock that was there when the first run began has the claim as it is now; a lock was there then, and
does not prove that the claim came first; the results are older than the lexicon, so they were known when its readings
were chosen; no lock was there when the first run began."""


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
