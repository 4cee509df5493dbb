"""The specs of ``experiments/`` as figures, each read once per process and tier."""

from __future__ import annotations

import functools
from pathlib import Path

from fedrepro.spec.model import Figure
from fedrepro.spec.read import load


@functools.cache
def figure(path: Path, tier: str) -> Figure:
    """A spec at a tier; the path is absolute."""
    return load(path, tier)
