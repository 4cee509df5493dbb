"""Checks of dataset parameters, shared by the loaders. Each raises ParameterError naming the parameter."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from typing import Any

import numpy as np

from fedrepro.errors import ParameterError, nearest


def whole(name: str, value: Any, low: int, high: int | None = None) -> int:
    """``value`` as an int within [low, high]."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise ParameterError(name, f"must be a whole number, not {value!r}")
    if value < low or (high is not None and value > high):
        raise ParameterError(name, f"must be {_range(low, high)}, not {value}")
    return int(value)


def number(name: str, value: Any, low: float, high: float) -> float:
    """``value`` as a float within [low, high]."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not np.isfinite(float(value)):
        raise ParameterError(name, f"must be a number, not {value!r}")
    if not low <= float(value) <= high:
        raise ParameterError(name, f"must be {_range(low, high)}, not {value}")
    return float(value)


def choice(name: str, value: Any, valid: Iterable[str]) -> str:
    """``value`` as one of the valid words."""
    words = list(valid)
    if value not in words:
        raise ParameterError(name, f"must be one of {', '.join(words)}, not {value!r}{nearest(str(value), words)}")
    return str(value)


def _range(low: float, high: float | None) -> str:
    if high is None or high == float("inf"):
        return f"at least {low}"
    return f"{low} to {high}"


def spread(total: int, n: int | None) -> np.ndarray:
    """``n`` of ``total`` positions, evenly spaced: of a file sorted by class they keep the class proportions."""
    if n is None or n >= total:
        return np.arange(total)
    return (np.arange(n) * total) // n
