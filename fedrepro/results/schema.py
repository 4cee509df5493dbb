"""What results look like: the columns of a figure's tidy CSV."""

from __future__ import annotations

from fedrepro.ledger import COUNTS

COLUMNS = (
    "series", "algorithm", "parameters", "dataset", "partition", "trial", "status", "round", *COUNTS, "metric", "value",
)  # fmt: skip
