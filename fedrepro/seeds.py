"""Random numbers that depend only on the identity of a run, not on when, where or in which order it is computed.

A stream is identified by an axis (``data``, ``partition``, ``init``, ``run``) and by facts about what is drawn. Runs
with the same facts share the draws (common random numbers): all curves of a panel use the same data, initial points and
client draws, so that differences between methods are paired.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

import numpy as np

Rng = np.random.Generator
"""A source of random numbers."""


def canonical(value: Any) -> str:
    """The same text for equal values, for hashing: JSON with sorted keys and no spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def generator(axis: str, **facts: Any) -> Rng:
    """The generator of one axis for the given facts (JSON-like values)."""
    digest = hashlib.sha256(f"{axis}|{canonical(facts)}".encode()).digest()
    words = np.frombuffer(digest, dtype="<u4").tolist()
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(words)))


@dataclass(frozen=True)
class Streams:
    """The independent streams of a run; a method uses those that it needs.

    Every method has the same ``clients`` stream in one trial. So two methods (or two bit widths of one method) have the
    same client draws, whatever else they draw.
    """

    clients: Rng
    compressor: Rng
    minibatch: Rng
    other: Rng


def streams(rng: Rng) -> Streams:
    """Split a run's generator into the named streams; call it once per run (``Generator.spawn`` counts its calls)."""
    return Streams(*rng.spawn(4))
