"""Results on disk: what they look like, and how they are read. ``load`` gives those of a figure as a pandas table."""

from __future__ import annotations

from typing import Any

__all__ = ["load"]


def __getattr__(name: str) -> Any:
    """Import on first use: most that read results need no more than their columns."""
    if name == "load":
        from fedrepro.results.frame import load

        return load
    raise AttributeError(f"module 'fedrepro.results' has no attribute '{name}'")
