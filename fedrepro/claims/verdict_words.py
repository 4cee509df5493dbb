"""What each verdict means, in words: the one table that every page, text and command uses."""

from __future__ import annotations

from fedrepro.claims import evidence

_FINDINGS = (
    "the margin is above zero, with its 95 % interval",
    "the margin is below zero, with its 95 % interval",
    "the 95 % interval of the margin contains zero, for several comparisons after Holm's correction",
)
"""What the check found for verdicts in the order of ``evidence.FULL`` and ``evidence.LESS``."""

MEANING = {
    **dict(zip(evidence.FULL, _FINDINGS, strict=True)),
    **{verdict: f"{text}, on less evidence" for verdict, text in zip(evidence.LESS, _FINDINGS, strict=True)},
    evidence.AGAINST_FIGURE: (
        "the margin is below zero, and so it is in the paper's own figure: the text contradicts the figure"
    ),
    evidence.NOT_TESTED: "there are no results to test it on, or they say nothing about it (curves that never improve)",
}
"""What a verdict states about a claim."""

SHORT = dict(zip(evidence.VERDICTS, ("repr.", "not", "noise", "text/fig.", "holds", "fails", "?", "open"), strict=True))
"""The verdicts as column heads of narrow tables."""
