"""No spec, however broken, causes a traceback, a hang, large memory use or a wrong number: see ``fuzz_specs``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fedrepro.claims import judge
from fedrepro.spec import nodes, read

from . import fuzz_specs
from .conftest import ROOT, SMALL


def faults(seed: int, count: int, home: Path) -> list[str]:
    """What is wrong with so many cases, in a process of its own whose memory is limited."""
    words = [sys.executable, "-m", "tests.fuzz_specs", str(seed), str(count)]
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        words, cwd=ROOT, env=os.environ | {"FEDREPRO_DATA": str(home), "PYTHONPATH": paths}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_few_broken_specs(data_home: Path) -> None:
    assert faults(15, 100, data_home) == []


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_broken_specs(seed: int, data_home: Path) -> None:
    assert faults(seed, 1250, data_home) == []


# -- that a fault would be found ---------------------------------------------------------------------------------------


def test_what_a_spec_says_is_compared_with_what_is_read() -> None:
    tree = nodes.parse(SMALL, "small").plain()
    figure = read.build(fuzz_specs.node(tree), "small", "quick")
    fuzz_specs.same(figure, tree, "quick")
    for path, value in (
        (("trials",), 3), (("rounds",), 4), (("datasets", "syn", "N"), 61), (("partitions", "unf", "P"), 5),
        (("panels", "a", "curves", 0, "Q2"), [1, 6]), (("panels", "a", "curves", 1, "zip", "m"), [2, 5]),
        (("tiers", "quick"), {"rounds": 6}), (("title",), "another"), (("problem", "rho"), 1.0),
    ):  # fmt: skip
        other = nodes.parse(SMALL, "small").plain()
        at = other
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = value
        with pytest.raises((fuzz_specs.Wrong, KeyError)):
            fuzz_specs.same(figure, other, "quick")


@pytest.mark.parametrize(
    ("function", "right", "check"),
    [
        ("reach", "_reach", "reach(y(at=3, Q2=5), Q2=5) < 3.5"),
        ("first", "_first", "first(y(at=3, Q2=5), Q2=5) <= 4"),
        ("lowest", "_lowest", "1 + lowest(Q2=5) < 1 + y(at=4, Q2=5)"),
        ("total", "_total", "total('uplink_bits', Q2=5) < 16"),
        ("y", "_y", "y(at=3, Q2=5) < y(at=2, Q2=5) / 1.5 + 0.2"),
    ],
)
def test_what_a_check_asks_for_is_compared_with_the_verdict(
    function: str, right: str, check: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = "y(at='end', algorithm='fedcavg', Q2=5) < y(at='end', algorithm='fedcavg', Q2=1)"
    figure = read.build(nodes.parse(SMALL.replace(old, check), "small"), "small", "paper")
    fuzz_specs.judged(figure.claims[0], figure)
    known = getattr(judge, right)
    monkeypatch.setitem(judge._READERS, function, lambda *a, **k: known(*a, **k) + 1.0)
    if function == "y":  # on both sides: one of them is moved
        monkeypatch.setitem(judge._READERS, function, lambda s, at: known(s, at) + (at == 3))
    with pytest.raises(fuzz_specs.Wrong):
        fuzz_specs.judged(figure.claims[0], figure)


def test_tracebacks_and_hangs_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise KeyError("x")

    def endless(*_: object) -> None:
        while True:
            pass

    monkeypatch.setattr(fuzz_specs, "SECONDS", 0.05)
    for attempt, said in ((broken, "KeyError 'x'"), (endless, "Hang")):
        monkeypatch.setattr(fuzz_specs, "attempt", attempt)
        assert [said in fault for fault in fuzz_specs.faults(1, 2)] == [True, True]
