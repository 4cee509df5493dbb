"""Whether results are stale: what has changed since they were computed, for all commands and functions that show them.

``fedrepro.runs.storage.validity`` decides it, because it needs the identities of the runs that today's code would
compute. It is above this folder and is imported by name when it is needed.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from fedrepro.errors import UserError
from fedrepro.results import checks, read
from fedrepro.results.checks import Check
from fedrepro.results.schema import Sidecar
from fedrepro.spec.find import of_own_study, option_of_tier
from fedrepro.spec.model import Figure

VALIDITY = "fedrepro.runs.storage.validity"
"""The module that decides."""


def last_check(figure: Figure, sidecar: Sidecar, root: Path) -> Check | None:
    """Return the last check of exactly these results below ``root``, or None."""
    check = checks.read(read.stem(root, figure))
    return check if check is not None and check.results == sidecar.csv_sha256 else None


def stale(figure: Figure, sidecar: Sidecar, root: Path) -> tuple[str, ...]:
    """Return what has changed since the results of a figure below ``root`` were computed; () if they are valid.

    Results without a sidecar, and those whose changes cannot be detected here, are not stale.
    """
    try:
        decided = importlib.import_module(VALIDITY).validity(figure, sidecar, last_check(figure, sidecar, root))
    except UserError:  # a file of the user's own that is no longer there
        return ()
    changed: tuple[str, ...] = decided.changed
    return changed


def in_words(results: Mapping[tuple[str, str], Sequence[str]]) -> str:
    """Return in words which results are stale, why, and what to do. results : the reasons by figure and tier."""
    lines = [
        f"{name if of_own_study(name, tier) else f'{name} ({tier} tier)'}: {'; '.join(reasons)}"
        for (name, tier), reasons in results.items()
    ]
    name, tier = next(iter(results)) if len(results) == 1 else ("FIGURE", "TIER")
    which = f"{name}{option_of_tier(name, tier)}"
    advice = (
        f"`fedrepro run {which}` computes the runs again, `fedrepro check {which} --whole` confirms those that did not "
        "change"
    )
    if len(lines) == 1:
        return f"stale: {lines[0]}; {advice}"
    return "\n  ".join([f"{len(lines)} results are stale:", *lines, advice])
