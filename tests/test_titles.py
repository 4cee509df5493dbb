"""Titles agree with the runs: a number in the title of a figure or panel is that of the runs, at each tier."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fedrepro.spec import layout
from fedrepro.spec.find import specs
from fedrepro.spec.model import Curve, Figure, Panel
from fedrepro.spec.tiers import TIERS

from . import project_specs
from .conftest import ROOT
from .panel_cases import curve, figure, panel

NUMBER = r"(\d+(?:\.\d+)?(?:e-?\d+)?)"
NAMES = (
    r"\bCase \d", r"\bMovieLens \d+M", r"\bCIFAR-\d+", r"\b2-D", r"\bTable \d", r"\bview \d", r"\bU\[0, 1\]",
    r"\bd = gamma2 L_W", r"\bgam = 10 lam beta", r"\b2 gamma2", r"\b0 means", r"\bG\b",
)  # fmt: skip
"""Text with digits that does not describe the runs; the formula for gam is checked separately."""

SAID: dict[str, Callable[[Curve, Panel], Any]] = {
    rf"{NUMBER} clients? per alphabet": lambda c, _: c.setting.partition_params.get("per_alphabet"),
    rf"{NUMBER} clients?\b(?! per alphabet)": lambda c, _: _clients(c),
    rf"{NUMBER} drawings?\b": lambda c, _: c.setting.partition_params.get("train"),
    rf"{NUMBER} samples?\b": lambda c, _: c.setting.dataset_params.get("n"),
    rf"{NUMBER} languages\b": lambda c, _: len(c.setting.dataset_params.get("languages", ())) or None,
    rf"{NUMBER} (?:fixed )?items per client\b": lambda c, _: c.setting.dataset_params.get("per_client"),
    rf"\bstart {NUMBER}": lambda c, _: c.setting.problem_params.get("init"),
    rf"\brounds to (?:an error of )?{NUMBER}": lambda _, p: p.options.get("reach"),
    rf"\bat {NUMBER} v\*": lambda _, p: p.options.get("reach"),
    rf"\bas printed \({NUMBER}\)": lambda c, _: c.select.get("gamma2") if "printed" in c.label else None,
    rf"\bas released \({NUMBER}\)": lambda c, _: c.select.get("gamma2") if "released" in c.label else None,
}
"""The number that such words describe, from a curve or its panel; None if it has no such number."""

WORDS = {"one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "ten": "10"}


def _clients(of: Curve) -> Any:
    """The number of clients among which data are divided, or that they have."""
    return of.setting.partition_params.get("P", of.setting.dataset_params.get("M"))


def said(title: str, curves: list[tuple[Curve, Panel]]) -> Iterator[str]:
    """What is wrong with the numbers of a title of these curves."""
    left = re.sub(r"(?<=\d),(?=\d{3}\b)", "", title)  # 1,000
    left = re.sub(r"\b[a-z]+(?= (?:fixed )?(?:items|languages|clients))", lambda w: WORDS.get(w[0], w[0]), left)
    for pattern in NAMES:
        left = re.sub(pattern, "", left)
    for number, values in _readings(left, curves):
        if not values:
            yield f"{title!r}: nothing run has the {number}"
        elif wrong := {v for v in values if float(v) != float(number)}:
            yield f"{title!r} says {number}; run is {', '.join(map(str, sorted(wrong)))}"
    for pattern in (rf"\b(\w+) = {NUMBER}", *SAID, r"\bbit widths \d+ to \d+", r"[\d., ]+and \d+ times the optimum"):
        left = re.sub(pattern, "", left)
    if match := re.search(rf"(?<![\w.-]){NUMBER}(?!\w)", left):
        yield f"{title!r}: nothing here says what {match[1]} is; add its words to SAID, or to NAMES where it is a name"


def _readings(title: str, curves: list[tuple[Curve, Panel]]) -> Iterator[tuple[str, list[Any]]]:
    """Each number of a title with what the runs have in its place.

    A parameter counts on every curve that has it; where labels give values of it, the title's must be among them.
    """
    for name, number in re.findall(rf"\b(\w+) = {NUMBER}", title):
        own = [(v, c.label) for c, _ in curves if (v := layout.values_of(c).get(name)) is not None]
        values = [value for value, label in own if re.search(rf"\b{name} ?= ?", label)]
        yield number, [v for v, label in own if v not in values] + [v for v in values if float(v) == float(number)][:1]
    for pattern, read in SAID.items():
        for number in re.findall(pattern, title):
            yield number, [value for c, p in curves if isinstance(value := read(c, p), (int, float))]
    for low, high in re.findall(r"\bbit widths (\d+) to (\d+)", title):
        widths = [c.select["q"] for c, _ in curves if c.select.get("q") is not None]
        yield from ((low, [min(widths)]), (high, [max(widths)]))
    if match := re.search(r"([\d., ]+and \d+) times the optimum", title):
        marks = [re.match(NUMBER, str(line["label"])) for _, p in curves for line in p.options.get("lines", ())]
        levels = {mark[1] for mark in marks if mark}
        for number in re.findall(NUMBER, match[1]):
            yield number, [number] if number in levels else []


def contradictions(shown: Figure) -> list[str]:
    """All statements in the titles of a figure that contradict its runs."""
    every = [(c, p) for p in shown.panels for c in p.curves]
    wrong = [*said(shown.title, every)]
    for part in shown.panels:
        wrong += said(part.title, [(c, part) for c in part.curves])
    if "gam = 10 lam beta" in shown.title:
        for c, _ in every:
            gam, lam, beta = (float(layout.value_of(c, name)) for name in ("gam", "lam", "beta"))
            wrong += [] if gam == pytest.approx(10 * lam * beta) else [f"{c.label}: gam = {gam}"]
    return list(dict.fromkeys(wrong))


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("spec", specs(ROOT / "experiments"), ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_the_numbers_in_titles_are_those_of_the_runs(spec: Path, tier: str):
    assert contradictions(project_specs.figure(spec, tier)) == []


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("m = 100, Q1 = 10", []),
        ("m = 10", ["'m = 10' says 10; run is 100"]),
        ("P = 500", ["'P = 500' says 500; run is 100"]),
        ("CIFAR-10, 100 clients", []),
        ("CIFAR-10, 500 clients", ["'CIFAR-10, 500 clients' says 500; run is 100"]),
        ("tau = 5", ["'tau = 5': nothing run has the 5"]),
        ("Q1 against Q2, Case 2", []),
        (
            "after 40",
            ["'after 40': nothing here says what 40 is; add its words to SAID, or to NAMES where it is a name"],
        ),
    ],
)
def test_a_title_that_says_other_numbers_is_found(title: str, expected: list[str]):
    line = curve("fedcgds", "FedCGds", m=100, Q1=10)
    assert contradictions(figure(panel("a", line, title=title), title="rounds")) == expected
    assert contradictions(figure(panel("a", line), title=title)) == expected
