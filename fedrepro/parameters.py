"""Checks of parameter values, with the one wording used for all of them."""

from __future__ import annotations

import math
import numbers
import sys
from collections.abc import Sequence
from typing import Any

from fedrepro.errors import ParameterError, nearest

IN_RUNS = "says"  # checks change no number; see fedrepro.runs.code


def whole(name: str, value: Any, least: int = 1, most: int | None = None) -> None:
    """Raise ParameterError unless ``value`` is an integer of at least ``least`` and at most ``most``."""
    counts = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not counts or int(value) < least or (most is not None and value > most):
        bound = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise ParameterError(name, f"must be an integer {bound}, not {value!r}")


def entries(name: str, most: float, **sizes: int) -> None:
    """Raise ParameterError where a matrix of these sizes has more entries than ``most``."""
    count = math.prod(sizes.values())
    if count > most:
        said = " x ".join(sizes)
        raise ParameterError(name, f"is too large: {said} is {count:,}, and at most {most:,.0f} are drawn")


def number(
    name: str, value: Any, *, least: float = -math.inf, above: float = -math.inf, most: float = math.inf
) -> None:
    """Raise ParameterError unless ``value`` is finite, greater than ``above``, and between ``least`` and ``most``."""
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    large = isinstance(value, numbers.Integral) and abs(int(value)) > sys.float_info.max
    if not real or large or not math.isfinite(value) or not least <= value <= most or value <= above:
        raise ParameterError(name, f"must be a number{_bounds(least, above, most)}, not {value!r}")


def _bounds(least: float, above: float, most: float) -> str:
    if above > -math.inf:
        return f" greater than {above:g}" + (f" and at most {most:g}" if most < math.inf else "")
    if least > -math.inf:
        return f" from {least:g} to {most:g}" if most < math.inf else f" of at least {least:g}"
    return f" of at most {most:g}" if most < math.inf else ""


def one_of(name: str, value: Any, choices: Sequence[Any]) -> None:
    """Raise ParameterError unless ``value`` is one of ``choices``."""
    if value not in choices:
        listed = ", ".join(str(c) for c in choices)
        raise ParameterError(name, f"must be one of {listed}, not {value!r}{nearest(value, choices)}")


def flag(name: str, value: Any) -> None:
    """Raise ParameterError unless ``value`` is true or false."""
    if not isinstance(value, bool):
        raise ParameterError(name, f"must be true or false, not {value!r}")


def several(name: str, value: Any) -> None:
    """Raise ParameterError unless ``value`` is a list of two or more values that all differ."""
    listed = isinstance(value, Sequence) and not isinstance(value, str)
    if not listed or len(value) < 2 or any(one in value[:i] for i, one in enumerate(value)):
        raise ParameterError(name, f"must be a list of two or more distinct {name}, not {value!r}")


def clients_at_most(m: int | None, P: int | None) -> None:
    """Raise ParameterError where more clients would be drawn than there are (``P`` None: not known yet)."""
    if m is not None and P is not None and m > P:
        raise ParameterError("m", f"must be at most the number of clients P = {P}, not {m}")


def clients_fit(P: int, N: int | None) -> None:
    """Raise ParameterError where there are more clients than samples to share out (``N`` None: not known yet)."""
    if N is not None and P > N:
        raise ParameterError("P", f"must be at most the number of samples N = {N}, not {P}")


def clusters_fit(K: int | None, N: int | None) -> None:
    """Raise ParameterError where there are more clusters than samples (None: not known yet)."""
    if K is not None and N is not None and K > N:
        raise ParameterError("K", f"must be at most the number of samples N = {N}, not {K}")
