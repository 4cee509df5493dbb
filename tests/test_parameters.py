"""Checks of parameter values: what passes, and the one wording of what does not."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import pytest

from fedrepro.errors import ParameterError
from fedrepro.parameters import (
    Flag,
    Number,
    OneOf,
    Whole,
    all_of,
    at_most,
    check,
    entries,
    number,
    one_of,
    several,
    whole,
)
from fedrepro.partitions.uniform import Uniform
from fedrepro.problems.clustering.methods.fedmgs import FedMGS
from fedrepro.protocols import Method


@pytest.mark.parametrize(
    "check",
    [
        lambda: whole("n", 1),
        lambda: whole("n", 0, 0),
        lambda: whole("n", np.int64(7), 1, 7),
        lambda: number("x", -1e9),
        lambda: entries("M", 1e4, M=5000, K=2),
        lambda: number("x", 0, least=0.0, most=1.0),
        lambda: number("x", np.float32(1.0), above=0.0, most=1.0),
        lambda: one_of("word", "b", ("a", "b")),
        lambda: all_of("words", ["b", "a"], ("a", "b")),
        lambda: check("yes", False, Flag()),
        lambda: several("codes", ("a", "b")),
        lambda: several("numbers", [1, 2, 3]),
        lambda: at_most("m", None, 3, "clients P"),
        lambda: at_most("m", 3, 3, "clients P"),
        lambda: at_most("m", 9, None, "clients P"),
        lambda: FedMGS(m=3).check(P=3, N=2),
        lambda: FedMGS(m=9).check(N=2),
        lambda: Uniform(P=3).check(N=3),
        lambda: Uniform(P=9).check(),
    ],
)
def test_what_fits_passes_and_nothing_is_returned(check: Callable[[], Any]) -> None:
    assert check() is None


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (lambda: whole("n", 0), "n: must be an integer of at least 1, not 0"),
        (lambda: whole("n", True), "n: must be an integer of at least 1, not True"),
        (lambda: whole("n", 2.0), "n: must be an integer of at least 1, not 2.0"),
        (lambda: whole("n", "2"), "n: must be an integer of at least 1, not '2'"),
        (lambda: whole("n", 8, 2, 7), "n: must be an integer from 2 to 7, not 8"),
        (lambda: whole("n", None, 2, 7), "n: must be an integer from 2 to 7, not None"),
        (lambda: number("x", "1"), "x: must be a number, not '1'"),
        (lambda: number("x", float("nan")), "x: must be a number, not nan"),
        (lambda: number("x", float("inf"), least=0.0), "x: must be a number of at least 0, not inf"),
        (lambda: number("x", 0, above=0.0), "x: must be a number greater than 0, not 0"),
        (lambda: number("x", 2, above=0.0, most=1.0), "x: must be a number greater than 0 and at most 1, not 2"),
        (lambda: number("x", -1, least=0.5, most=10.0), "x: must be a number from 0.5 to 10, not -1"),
        (lambda: number("x", 2, most=1.0), "x: must be a number of at most 1, not 2"),
        (lambda: number("x", True), "x: must be a number, not True"),
        (lambda: number("x", 10**400), f"x: must be a number, not {10**400}"),
        (lambda: entries("M", 1e4, M=5000, K=3), "M: is too large: M x K is 15,000, and at most 10,000 are drawn"),
        (
            lambda: one_of("word", "left", ("right", "lefts")),
            "word: must be one of right, lefts, not 'left', did you mean 'lefts'?",
        ),
        (lambda: one_of("word", ["a"], ("a", "b")), "word: must be one of a, b, not ['a']"),
        (lambda: all_of("words", ["b", "c"], ("a", "b")), "words: must be one of a, b, not 'c'"),
        (lambda: check("yes", 1, Flag()), "yes: must be true or false, not 1"),
        (lambda: several("codes", "ab"), "codes: must be a list of two or more distinct codes, not 'ab'"),
        (lambda: several("codes", ["a"]), "codes: must be a list of two or more distinct codes, not ['a']"),
        (lambda: several("codes", [[1], [1]]), "codes: must be a list of two or more distinct codes, not [[1], [1]]"),
        (lambda: several("codes", 3), "codes: must be a list of two or more distinct codes, not 3"),
        (lambda: at_most("m", 4, 3, "clients P"), "m: must be at most the number of clients P = 3, not 4"),
        (lambda: FedMGS(m=4).check(P=3), "m: must be at most the number of clients P = 3, not 4"),
        (lambda: Uniform(P=4).check(N=3), "P: must be at most the number of samples N = 3, not 4"),
    ],
)
def test_what_does_not_fit_is_named_with_what_would(check: Callable[[], None], message: str) -> None:
    with pytest.raises(ParameterError) as caught:
        check()
    assert str(caught.value) == message


@dataclass(frozen=True)
class Declared(Method):
    """A method whose parameters declare their ranges."""

    m: Annotated[int | None, Whole()] = None
    q: Annotated[int, Whole(2, 31)] = 3
    beta: Annotated[float | str, Number(above=0.0, words=("auto",))] = "auto"
    step: Annotated[str, OneOf("linearized", "exact")] = "exact"
    warm: bool = True
    free: Any = None

    def rounds(self, problem: Any, rng: Any, **_: Any) -> Any:
        """Nothing to do."""


@pytest.mark.parametrize(
    "values", [{}, {"m": 1}, {"q": 31}, {"beta": 2}, {"beta": "auto"}, {"warm": False}, {"free": 7}]
)
def test_values_in_their_declared_ranges_pass(values: dict[str, Any]) -> None:
    assert Declared(**values)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"m": 0}, "m: must be an integer of at least 1, not 0"),
        ({"q": None}, "q: must be an integer from 2 to 31, not None"),
        ({"q": 32}, "q: must be an integer from 2 to 31, not 32"),
        ({"beta": 0.0}, "beta: must be a number greater than 0 or 'auto', not 0.0"),
        ({"beta": "aut"}, "beta: must be a number greater than 0 or 'auto', not 'aut', did you mean 'auto'?"),
        ({"step": "exac"}, "step: must be one of linearized, exact, not 'exac', did you mean 'exact'?"),
        ({"warm": 1}, "warm: must be true or false, not 1"),
    ],
)
def test_values_outside_their_declared_ranges_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=f"^{re.escape(message)}$"):
        Declared(**values)
