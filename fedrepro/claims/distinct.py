"""Count claims of several figures that rest on the same numbers once.

Two papers can share a sentence and the experiment behind it. Claims of different figures count as one if their margins
are equal to the last bit and their verdicts are equal. Margins without an interval can agree by chance (a count, a
parameter), so at least one of the margins must have one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence

from fedrepro.claims.judge import Row


def distinct(rows: Sequence[Row]) -> int:
    """Return the number of distinct claims; those of one figure are never merged."""
    per_figure = Counter((_numbers(row), row.figure) for row in rows)
    most: dict[Hashable, int] = {}
    for (numbers, _), count in per_figure.items():
        most[numbers] = max(most.get(numbers, 0), count)
    return sum(most.values())


def in_words(rows: Sequence[Row]) -> str:
    """Return the number of claims, and of distinct claims if there are fewer."""
    claims, fewer = f"{len(rows)} claim{'s' if len(rows) != 1 else ''}", distinct(rows)
    return claims if fewer == len(rows) else f"{claims}, {fewer} distinct"


def explained(rows: Sequence[Row]) -> str:
    """Return the same for a reader who does not know which claims count as one."""
    rule = " (claims of several figures with the same margins and verdict count once)"
    return in_words(rows) + (rule if distinct(rows) < len(rows) else "")


def _numbers(row: Row) -> Hashable:
    """Return what the verdict rests on; the claim itself if equal numbers could be chance."""
    margins = tuple((margin.value, margin.low, margin.high) for margin in row.margins)
    if any(low < high and math.isfinite(high - low) for _, low, high in margins):
        return row.verdict, row.level, margins
    return row.figure, row.claim.id
