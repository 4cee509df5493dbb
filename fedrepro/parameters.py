"""Ranges that parameters declare in their annotations, and checks of parameter values.

A field of a method, dataset or partition declares its range once, in its annotation::

    m: Annotated[int | None, Whole()] = None
    gamma1: Annotated[float, Number(least=1.0)] = 1.02
    participation: Annotated[str, OneOf("pcc", "pcp")] = "pcc"

The check of a new object, the error message, ``fedrepro describe`` and the reference pages use this declaration.
``AtMost`` beside a range bounds a field by a size of the data, which is known later.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import numbers
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Protocol, Union, get_args, get_origin, get_type_hints

from fedrepro.errors import ParameterError, UserError, nearest

IN_RUNS = "says"  # checks change no number; see fedrepro.runs.identity.code


class Range(Protocol):
    """The values that a parameter may have; its text completes "must be"."""

    def allows(self, value: Any) -> bool:
        """Whether the value is in the range."""


@dataclass(frozen=True)
class Whole:
    """Integers from ``least`` to ``most``, or one of ``words``."""

    least: int = 1
    most: int | None = None
    words: tuple[str, ...] = ()

    def allows(self, value: Any) -> bool:
        """Whether the value is an integer in the range or one of the words; bool is not an integer here."""
        counts = isinstance(value, numbers.Integral) and not isinstance(value, bool)
        inside = counts and self.least <= int(value) and (self.most is None or int(value) <= self.most)
        return inside or _is_word(value, self.words)

    def __str__(self) -> str:
        bound = f"of at least {self.least}" if self.most is None else f"from {self.least:,} to {self.most:,}"
        return f"an integer {bound}{_or(self.words)}"


@dataclass(frozen=True)
class Number:
    """Finite numbers of at least ``least``, greater than ``above`` and at most ``most``, or one of ``words``."""

    least: float = -math.inf
    above: float = -math.inf
    most: float = math.inf
    words: tuple[str, ...] = ()

    def allows(self, value: Any) -> bool:
        """Whether the value is a finite number in the range or one of the words; bool is not a number here."""
        real = isinstance(value, numbers.Real) and not isinstance(value, bool)
        if real and isinstance(value, numbers.Integral) and abs(int(value)) > sys.float_info.max:
            return False
        inside = real and math.isfinite(value) and self.least <= value <= self.most and value > self.above
        return bool(inside) or _is_word(value, self.words)

    def __str__(self) -> str:
        return f"a number{_bounds(self.least, self.above, self.most)}{_or(self.words)}"


@dataclass(frozen=True, init=False)
class OneOf:
    """One of the given values."""

    choices: tuple[Any, ...]

    def __init__(self, *choices: Any) -> None:
        object.__setattr__(self, "choices", choices)

    def allows(self, value: Any) -> bool:
        """Whether the value is one of the choices."""
        return value in self.choices

    def __str__(self) -> str:
        return f"one of {', '.join(map(str, self.choices))}"


@dataclass(frozen=True)
class Name:
    """Non-empty texts: names of columns, variables or files."""

    def allows(self, value: Any) -> bool:
        """Whether the value is a non-empty text."""
        return isinstance(value, str) and value != ""

    def __str__(self) -> str:
        return "a name"


@dataclass(frozen=True)
class Flag:
    """True or false."""

    def allows(self, value: Any) -> bool:
        """Whether the value is true or false."""
        return isinstance(value, bool)

    def __str__(self) -> str:
        return "true or false"


@dataclass(frozen=True)
class AtMost:
    """A bound by a size of the data: ``size`` is its name (``P``), and ``what`` is what it counts (``clients``)."""

    size: str
    what: str


def _is_word(value: Any, words: Sequence[str]) -> bool:
    return isinstance(value, str) and value in words


def _or(words: Sequence[str]) -> str:
    return "".join(f" or {word!r}" for word in words)


@functools.cache
def _annotations(cls: Any) -> Mapping[str, tuple[Any, list[Any]]]:
    """The type of each field of a class, and what is declared beside it."""
    hints = get_type_hints(cls, include_extras=True)
    declared: dict[str, tuple[Any, list[Any]]] = {}
    for field in dataclasses.fields(cls):
        kind, *marks = get_args(hint) if get_origin(hint := hints[field.name]) is Annotated else (hint,)
        declared[field.name] = kind, marks
    return declared


@functools.cache
def ranges(cls: Any) -> Mapping[str, tuple[Range, bool]]:
    """The declared range of each field of a class, and whether the field may be None. bool fields are flags."""
    declared: dict[str, tuple[Range, bool]] = {}
    for name, (kind, marks) in _annotations(cls).items():
        may_be_none = get_origin(kind) in (Union, UnionType) and NoneType in get_args(kind)
        range_ = Flag() if kind is bool else next((mark for mark in marks if hasattr(mark, "allows")), None)
        if range_ is not None:
            declared[name] = range_, may_be_none
    return declared


def declared(cls: Any) -> Mapping[str, Range]:
    """The declared range of each parameter of a class: of a problem, or of the fields of a dataclass."""
    has_fields: bool = dataclasses.is_dataclass(cls)
    return {name: range_ for name, (range_, _) in ranges(cls).items()} if has_fields else getattr(cls, "ranges", {})


def check(name: str, value: Any, range_: Range) -> None:
    """Raise ParameterError unless a range allows ``value``."""
    if not range_.allows(value):
        if reason := getattr(range_, "reason", None):
            raise ParameterError(name, reason(value))
        close = nearest(value, getattr(range_, "choices", getattr(range_, "words", ())))
        raise ParameterError(name, f"must be {range_}, not {value!r}{close}")


def check_fields(parameters: Any) -> None:
    """Raise ParameterError if a field of a dataclass instance is outside its declared range."""
    cls: Any = type(parameters)
    for name, (range_, may_be_none) in ranges(cls).items():
        value = getattr(parameters, name)
        if not (value is None and may_be_none):
            check(name, value, range_)


_TYPES: Mapping[Any, tuple[type, str]] = {
    int: (numbers.Integral, "an integer"),
    float: (numbers.Real, "a number"),
    bool: (bool, "true or false"),
    NoneType: (NoneType, "null"),
}
"""What a field of a plain type may be, and how errors call it."""


def check_types(parameters: Any) -> None:
    """Raise ParameterError if a field without a declared range does not have the type of its annotation.

    Only int, float, bool and unions of these and None are checked. Defaults are always valid, because many programs
    contain ``m: int = None``.
    """
    cls: Any = type(parameters)
    for field in dataclasses.fields(cls):
        kind, _ = _annotations(cls)[field.name]
        kinds = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
        value = getattr(parameters, field.name)
        if value is field.default or field.name in ranges(cls) or any(one not in _TYPES for one in kinds):
            continue
        if not any(_has_type(value, one) for one in kinds):
            raise ParameterError(field.name, f"must be {' or '.join(_TYPES[one][1] for one in kinds)}, not {value!r}")


def _has_type(value: Any, kind: Any) -> bool:
    """Whether a value has a plain type; bool is neither an integer nor a number here."""
    return isinstance(value, _TYPES[kind][0]) and (kind is bool or not isinstance(value, bool))


def check_sizes(parameters: Any, sizes: Mapping[str, Any]) -> None:
    """Raise ParameterError if a field of a dataclass instance exceeds the size of the data that bounds it.

    sizes : known sizes by name; a size that is missing or None bounds nothing.
    """
    cls: Any = type(parameters)
    for name, (_, marks) in _annotations(cls).items():
        for bound in (mark for mark in marks if isinstance(mark, AtMost)):
            at_most(name, getattr(parameters, name), sizes.get(bound.size), f"{bound.what} {bound.size}")


def too_large(parameters: Any, sizes: Mapping[str, Any]) -> dict[str, int]:
    """Return the size of the data for each field of a dataclass instance that exceeds the size that bounds it."""
    cls: Any = type(parameters)
    exceeded = {}
    for name, (_, marks) in _annotations(cls).items():
        value = getattr(parameters, name)
        known = [size for mark in marks if isinstance(mark, AtMost) and (size := sizes.get(mark.size)) is not None]
        if value is not None and known and value > min(known):
            exceeded[name] = min(known)
    return exceeded


def at_most(name: str, value: int | None, size: int | None, what: str) -> None:
    """Raise ParameterError if ``value`` is more than a size of the data (None: not given, or not known yet)."""
    if value is not None and size is not None and value > size:
        raise ParameterError(name, f"must be at most the number of {what} = {size}, not {value}")


def whole(name: str, value: Any, least: int = 1, most: int | None = None) -> None:
    """Raise ParameterError unless ``value`` is an integer of at least ``least`` and at most ``most``."""
    check(name, value, Whole(least, most))


def entries(name: str, most: float, **sizes: int) -> None:
    """Raise ParameterError if a matrix of these sizes has more than ``most`` entries."""
    count = math.prod(sizes.values())
    if count > most:
        product = " x ".join(sizes)
        raise ParameterError(name, f"is too large: {product} is {count:,}, and at most {most:,.0f} are drawn")


def number(
    name: str, value: Any, *, least: float = -math.inf, above: float = -math.inf, most: float = math.inf
) -> None:
    """Raise ParameterError unless ``value`` is finite, greater than ``above``, and between ``least`` and ``most``."""
    check(name, value, Number(least, above, most))


def _bounds(least: float, above: float, most: float) -> str:
    if above > -math.inf:
        return f" greater than {above:g}" + (f" and at most {most:g}" if most < math.inf else "")
    if least > -math.inf:
        return f" from {least:g} to {most:g}" if most < math.inf else f" of at least {least:g}"
    return f" of at most {most:g}" if most < math.inf else ""


def one_of(name: str, value: Any, choices: Sequence[Any]) -> None:
    """Raise ParameterError unless ``value`` is one of ``choices``."""
    check(name, value, OneOf(*choices))


def all_of(name: str, values: Iterable[Any], choices: Sequence[Any]) -> None:
    """Raise ParameterError unless all ``values`` are among ``choices``."""
    for value in values:
        one_of(name, value, choices)


def rows(name: str, factor: Any, count: int) -> None:
    """Raise ParameterError for a factor of a method's state with other rows, which would be read for others' data."""
    if factor.ndim != 2 or len(factor) != count:
        raise ParameterError(name, f"must have {count} rows in the states of a method, not the shape {factor.shape}")


def some_states(count: int) -> None:
    """Raise ParameterError for a method that yielded no state."""
    if not count:
        raise ParameterError("rounds", "yields nothing; it must yield the initial point, and a state after every round")


def several(name: str, value: Any) -> None:
    """Raise ParameterError unless ``value`` is a list of two or more values that all differ."""
    listed = isinstance(value, Sequence) and not isinstance(value, str)
    if not listed or len(value) < 2 or any(item in value[:i] for i, item in enumerate(value)):
        raise ParameterError(name, f"must be a list of two or more distinct {name}, not {value!r}")


def squares_fit(name: str, largest: float, norm2: float) -> None:
    """Raise UserError if the squares of an array overflow although its values are finite.

    largest : the largest absolute value, or a sum of such values. norm2 : the sum of the squares.
    """
    if math.isfinite(largest) and not math.isfinite(norm2):
        raise UserError(f"{name}: its values are so large that their squares overflow; divide it by its largest value")
