"""The error of a figure without results: which folder was read, and how to compute results or name another folder."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from fedrepro.errors import UserError
from fedrepro.results.read import has_results, largest_tier
from fedrepro.spec.find import bundled, called
from fedrepro.spec.tiers import BEST, DEFAULT

OPTION, ARGUMENT = "--results DIR", "results=DIR"
"""How the command line and Python name a folder of results."""


def require(path: Path, tier: str, root: Path, sets: Sequence[str] = (), named_by: str = OPTION) -> None:
    """Raise UserError if the figure of a spec has no results at a tier, or for ``best`` at any."""
    if not has_results(path, largest_tier(path, tier, root, sets), root, sets):
        name = called(path)
        raise UserError(f"{name}: {in_words(name, tier, root, sets, named_by)}")


def in_words(
    names: str, tier: str, root: Path, sets: Sequence[str] = (), named_by: str = OPTION, what: str = "results"
) -> str:
    """Return that a folder has no results, and what to do. names : what to run. what : the results that are missing."""
    options = "".join(f" --set '{option}'" for option in sets)
    where = "" if tier == BEST else f" at the {tier} tier"
    more = options if tier in (BEST, DEFAULT) else f" --tier {tier}{options}"
    folder = f"{os.path.abspath(root)}{f' with{options}' if options else ''}"
    makes = f"`fedrepro run {names}{more}` makes them"
    return f"no {what}{where} in {folder}; {makes}, `{named_by}` names another folder{_kept(root)}"


def _kept(root: Path) -> str:
    """Return where the results of the checkout are that this program is installed from; '' if there are none."""
    kept = bundled().resolve().parent / "results"
    return f" (results are kept in {kept})" if (kept / "paper").is_dir() and kept != root.resolve() else ""
