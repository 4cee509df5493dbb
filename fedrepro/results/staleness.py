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
from fedrepro.spec.find import bundled, of_own_study, option_of_tier, project
from fedrepro.spec.model import Figure
from fedrepro.spec.read import load

VALIDITY = "fedrepro.runs.storage.validity"
"""The module that decides."""


def last_check(figure: Figure, sidecar: Sidecar, root: Path) -> Check | None:
    """Return the last check of exactly these results below ``root``, or None."""
    return _check_at(read.stem(root, figure), sidecar)


def _check_at(base: Path, sidecar: Sidecar) -> Check | None:
    check = checks.read(base)
    return check if check is not None and check.results == sidecar.csv_sha256 else None


def stale(figure: Figure, sidecar: Sidecar, root: Path) -> tuple[str, ...]:
    """Return what has changed since the results of a figure below ``root`` were computed; () if they are valid.

    Results without a sidecar, and those whose changes cannot be detected here, are not stale.
    """
    return _changed(figure, sidecar, read.stem(root, figure))


def at(base: Path) -> tuple[str, ...]:
    """Return the same for the results at ``base`` (without suffix), whose spec is the one that they name.

    Results whose spec is no longer there are not stale.
    """
    sidecar = read.read_sidecar(base) or Sidecar()
    paths = (root / sidecar.spec for root in (project(), bundled().parent) if sidecar.spec)
    spec = next((path for path in paths if path.is_file()), None)
    if spec is None:
        return ()
    try:
        return _changed(load(spec, sidecar.tier, sidecar.sets), sidecar, base)
    except UserError:  # no longer a spec, or one without this tier
        return ()


def _changed(figure: Figure, sidecar: Sidecar, base: Path) -> tuple[str, ...]:
    try:
        decided = importlib.import_module(VALIDITY).validity(figure, sidecar, _check_at(base, sidecar))
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
