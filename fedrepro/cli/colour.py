"""The colours of verdicts on a terminal: one style for each word.

``click.echo`` removes them from output that is no terminal. ``choice`` is what the user asks for.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import click

from fedrepro.claims import evidence

STALE = "stale"

STYLES: dict[str, dict[str, Any]] = {
    evidence.REPRODUCED: {"fg": "green", "bold": True},
    evidence.NOT_REPRODUCED: {"fg": "red", "bold": True},
    evidence.NOISE: {"fg": "yellow", "bold": True},
    evidence.AGAINST_FIGURE: {"fg": "cyan", "bold": True},
    evidence.HOLDS: {"fg": "green"},
    evidence.FAILS: {"fg": "red"},
    evidence.UNDECIDED: {"fg": "yellow"},
    evidence.NOT_TESTED: {"dim": True},
    STALE: {"fg": "magenta"},
}
"""The style of each verdict and of results that today's code did not compute."""

_WORDS = re.compile("|".join(sorted(STYLES, key=len, reverse=True)))


def choice(environment: Mapping[str, str] = os.environ) -> bool | None:
    """Return whether output has colours: NO_COLOR and FORCE_COLOR decide; None: only on a terminal."""
    if environment.get("NO_COLOR"):
        return False
    return True if environment.get("FORCE_COLOR") else None


def word(name: str, width: int = 0) -> str:
    """Return a word in its style, followed by spaces up to ``width``."""
    return click.style(name, **STYLES.get(name, {})) + " " * (width - len(name))


def print_stale(results: Mapping[tuple[str, str], Sequence[str]]) -> None:
    """Name the results that today's code did not compute. results : the reasons by figure and tier, if any."""
    from fedrepro.results.staleness import in_words

    if changed := {result: reasons for result, reasons in results.items() if reasons}:
        click.secho(in_words(changed), **STYLES[STALE])


def words(line: str) -> str:
    """Return a line with every word that has a style in it."""
    return _WORDS.sub(lambda found: word(found[0]), line)
