"""Curves that lack trials, in the words of a sidecar: ``18 curves: 1 of 3 trials``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

ENDING = re.compile(r"(\d+) of (\d+) trials?$")
"""The end of such a text: the number of trials that are done, and that of all."""


def in_words(counts: Iterable[tuple[int, int]]) -> tuple[str, ...]:
    """Return one text for all curves that lack equally many trials. counts : (done, all) of each curve."""
    alike = sorted(Counter(counts).items())
    return tuple(
        f"{curves} curve{'s' if curves > 1 else ''}: {done} of {all_} trials"
        for (done, all_), curves in alike
        if done < all_
    )
