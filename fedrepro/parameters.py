"""Checks of parameter values, with the one wording used for all of them."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any

from fedrepro.errors import ParameterError, nearest

IN_RUNS = "says"  # checks change no number; see fedrepro.runs.code


def whole(name: str, value: Any, least: int = 1) -> None:
    """Raise ParameterError unless ``value`` is an integer of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
        raise ParameterError(name, f"must be an integer of at least {least}, not {value!r}")


def number(
    name: str, value: Any, *, least: float = -math.inf, above: float = -math.inf, most: float = math.inf
) -> None:
    """Raise ParameterError unless ``value`` is finite, greater than ``above``, and between ``least`` and ``most``."""
    finite = isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)
    if not finite or not least <= value <= most or value <= above:
        bound = f" of at least {least:g}" if least > -math.inf else ""
        bound = f" greater than {above:g}" if above > -math.inf else bound
        bound += f" and at most {most:g}" if most < math.inf else ""
        raise ParameterError(name, f"must be a number{bound}, not {value!r}")


def one_of(name: str, value: Any, choices: Sequence[Any]) -> None:
    """Raise ParameterError unless ``value`` is one of ``choices``."""
    if value not in choices:
        listed = ", ".join(str(c) for c in choices)
        raise ParameterError(name, f"must be one of {listed}, not {value!r}{nearest(value, choices)}")


def flag(name: str, value: Any) -> None:
    """Raise ParameterError unless ``value`` is true or false."""
    if not isinstance(value, bool):
        raise ParameterError(name, f"must be true or false, not {value!r}")


def clients_at_most(m: int | None, P: int | None) -> None:
    """Raise ParameterError where more clients would be drawn than there are (``P`` None: not known yet)."""
    if m is not None and P is not None and m > P:
        raise ParameterError("m", f"must be at most the number of clients P = {P}, not {m}")
