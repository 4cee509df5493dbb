"""Random numbers that depend only on what a run is, never on when, where or in which order it is computed.

A stream is named by an axis (``data``, ``partition``, ``init``, ``run``) and by the facts that identify what is drawn.
Runs that state the same facts share the draws (common random numbers): all curves of a panel are given the same data,
the same initial points and the same client draws, so that differences between methods are paired.
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
    """One text for equal values: JSON with sorted keys and no spaces; used for hashing."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def generator(axis: str, **facts: Any) -> Rng:
    """The generator of one axis for the given facts (JSON-like values)."""
    digest = hashlib.sha256(f"{axis}|{canonical(facts)}".encode()).digest()
    words = np.frombuffer(digest, dtype="<u4").tolist()
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(words)))


@dataclass(frozen=True)
class Streams:
    """The independent streams a method may need; a method that needs fewer leaves the others untouched.

    Because every method is given the same ``clients`` stream for one trial, two methods (or two bit widths of one
    method) meet the same client draws, whatever else they draw.
    """

    clients: Rng
    compressor: Rng
    minibatch: Rng
    other: Rng


def streams(rng: Rng) -> Streams:
    """Split a run's generator into the named streams; once in a run (``Generator.spawn`` counts its calls)."""
    return Streams(*rng.spawn(4))
