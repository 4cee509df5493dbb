"""What commands read if no figure is named: all specs, and the user's own figures that have results."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path

from fedrepro.errors import UserError
from fedrepro.results.read import has_results
from fedrepro.spec import nodes
from fedrepro.spec.find import Selected, own_studies, select_distinct, stored_under
from fedrepro.spec.read import load
from fedrepro.spec.tiers import DEFAULT, TIERS


def selected(names: Sequence[str | Path], root: Path) -> list[Selected]:
    """Return what the names select (``select_distinct``); without a name, everything that can have results in ``root``.

    These are all specs of ``experiments``, and of the user's own specs elsewhere those with results. Of two files with
    the same study and figure the first one counts.
    """
    if names:
        return select_distinct(names)
    return [*select_distinct(()), *map(Selected, _own(root))]


def paths(names: Sequence[str | Path], root: Path) -> list[Path]:
    """Return the specs of what the names select."""
    return [item.path for item in selected(names, root)]


def _own(root: Path) -> list[Path]:
    """Return the user's own specs outside ``experiments`` that have results.

    One that is no longer a valid spec is named and left out, so that it does not hide the others.
    """
    found: dict[tuple[str, str], Path] = {}
    for path in (path for paths in own_studies().values() for path in paths):
        with contextlib.suppress(UserError):  # a file that is not a valid spec has no results
            if any(has_results(path, tier, root) for tier in TIERS):
                found.setdefault(stored_under(nodes.read(path)), path)
    return [path for path in found.values() if _valid(path)]


def _valid(path: Path) -> bool:
    try:
        load(path, DEFAULT)
    except UserError:
        why = f"{path}: left out, because it is no longer a valid spec; `fedrepro validate {path}` prints the errors"
        print(why, file=sys.stderr)
        return False
    return True
