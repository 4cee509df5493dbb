"""Whether a claim is a paper's or ours."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fedrepro.claims.judge import Row

STUDIES = "beyond"
"""The folder of our own studies."""
OURS = re.compile(r"\W*ours\b")
"""How the place of a claim of ours begins (``where: "ours: ..."``)."""


def is_ours(row: Row) -> bool:
    """Return whether a claim is ours rather than a paper's: its place says so, or its figure is a study of ours."""
    return row.figure.startswith(f"{STUDIES}/") or OURS.match(row.claim.where) is not None


def apart(rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Return the claims of papers, and ours."""
    return [row for row in rows if not is_ours(row)], [row for row in rows if is_ours(row)]
