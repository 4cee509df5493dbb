"""The order in which cases are computed, and which of them fit into a number of hours."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fedrepro.alternatives.cases import Case
from fedrepro.alternatives.costs import Cost

SHORTEST = 1e-3
"""Hours that a case counts at least, so that tiny cases are ranked by their claims."""


@dataclass(frozen=True)
class Entry:
    """A case with its cost. undecided : how many of its claims are not held by the figure's own results."""

    case: Case
    cost: Cost
    undecided: int

    @property
    def rank(self) -> tuple[bool, float, float]:
        """The place in the order, larger first: no pair, then claims not held per hour, then all claims per hour."""
        hours = max(self.cost.hours, SHORTEST)
        return "+" not in self.case.name, self.undecided / hours, len(self.cost.claims) / hours

    @property
    def to_do(self) -> bool:
        """Whether something is left to compute."""
        return self.cost.figure is not None and not self.cost.done


def order(entries: Iterable[Entry]) -> list[Entry]:
    """Return the entries by claims per hour; claims that are not held count first.

    Pairs come last: their parts have been run, and a pair seldom turns a verdict that neither part turns.
    """
    return sorted(entries, key=lambda entry: entry.rank, reverse=True)


def within(entries: Iterable[Entry], hours: float | None) -> tuple[list[Entry], list[Entry]]:
    """Return the entries that fit into the hours, in order, and those that are left.

    A run that several entries share counts once. An entry that does not fit is left out, and shorter ones after it can
    still be chosen. hours : None for any number.
    """
    chosen: list[Entry] = []
    left: list[Entry] = []
    spent: dict[str, float] = {}
    for entry in entries:
        together = {**entry.cost.left, **spent}
        if hours is None or sum(together.values()) <= hours:
            spent = together
            chosen.append(entry)
        else:
            left.append(entry)
    return chosen, left


def total(entries: Iterable[Entry]) -> float:
    """Return the predicted hours of all entries; a run that several share counts once."""
    together: dict[str, float] = {}
    for entry in entries:
        together |= entry.cost.left
    return sum(together.values())
