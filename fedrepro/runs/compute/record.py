"""The record of a run, as arrays to store and as rows of a figure's CSV."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass
class Record:
    """The results of a run: ``rounds``, ``seconds`` and each metric (R,), ``counts`` (R, 4) in the order of COUNTS."""

    meta: dict[str, Any]
    rounds: np.ndarray
    counts: np.ndarray
    metrics: dict[str, np.ndarray]
    seconds: np.ndarray
    artifacts: dict[str, np.ndarray] = field(default_factory=dict)


def contents(record: Record) -> dict[str, Any]:
    """Return the named arrays of a record as they are stored; ``meta`` is JSON."""
    return {
        "meta": np.array(json.dumps(record.meta, sort_keys=True)),
        "rounds": record.rounds,
        "counts": record.counts,
        "seconds": record.seconds,
        **{f"metric:{k}": v for k, v in record.metrics.items()},
        **{f"artifact:{k}": v for k, v in record.artifacts.items()},
    }


def rows(record: Record) -> Iterator[list[Any]]:
    """Yield the measurements of a record as the last columns of a CSV: status, round, counts, metric, value."""
    status = record.meta["status"]
    for i, round_ in enumerate(record.rounds.tolist()):
        counts = record.counts[i].tolist()
        for metric, values in record.metrics.items():
            yield [status, round_, *counts, metric, repr(float(values[i]))]
