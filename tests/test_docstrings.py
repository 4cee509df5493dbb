"""Every public name has an example in its docstring, and the example prints what it shows."""

from __future__ import annotations

import doctest

import pytest

import fedrepro

COMPILED = ("PersonalAveraging", "Ditto", "PerFedSIConcat", "PerFedSIMask", "AltMaxVarDeep", "CuteMaxVarDeep")
"""Examples that train networks, and compile them first."""

NAMES = [
    pytest.param(name, marks=[pytest.mark.slow] if name in COMPILED else [])
    for name in fedrepro.__all__
    if not name.startswith("_")
]


@pytest.mark.parametrize("name", NAMES)
def test_the_example_of_a_public_name_runs(name: str) -> None:
    thing = getattr(fedrepro, name)
    examples = doctest.DocTestParser().get_doctest(thing.__doc__, {}, name, None, None)
    assert examples.examples, f"the docstring of fedrepro.{name} has no example (>>> ...)"
    said: list[str] = []
    result = doctest.DocTestRunner(verbose=False).run(examples, out=said.append)
    assert result.failed == 0, "".join(said)
    assert any(name in example.source for example in examples.examples), "the example does not use it"
