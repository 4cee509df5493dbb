"""A claim with its own number of trials: the curves that it reads are computed more often than the others."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fedrepro.errors import UserError
from fedrepro.plotting import header_footer, lines
from fedrepro.plotting.series import FigureData
from fedrepro.report.next_steps import _by_trials
from fedrepro.results.schema import Sidecar
from fedrepro.runs.identity import plan as planning
from fedrepro.spec.model import Figure
from fedrepro.spec.read import load

Call = Callable[..., Any]
OTHERS = "\n  - {id: small.2, says: s, where: w, panel: a, check: \"y(at=2, algorithm='fedcgds', m=2) < 100\"}"


@pytest.fixture
def five(small: Path) -> Path:
    """A spec with three trials at the tier ``paper``, and five of the two curves that its first claim reads."""
    small.write_text(small.read_text().replace("    panel: a\n    check:", "    panel: a\n    trials: 5\n    check:"))
    small.write_text(small.read_text().replace("\ntiers:", f"{OTHERS}\ntiers:"))
    return small


def trials(figure: Figure) -> list[int]:
    (series,) = planning.make([figure], stand_in=True).by_figure
    return [len(runs) for runs in series.values()]


def sidecar(tmp_path: Path) -> dict[str, Any]:
    return json.loads((tmp_path / "results/paper/beyond/small.json").read_text())


def verdict(fedrepro: Call, spec: Path, name: str) -> dict[str, Any]:
    rows = json.loads(fedrepro("verdict", spec, "--tier", "paper", "--json").stdout)
    return next(row for row in rows if row["id"] == name)


def test_only_the_curves_that_the_claim_reads_have_more_trials_and_no_reduced_tier_has(five: Path) -> None:
    assert trials(load(five, "paper")) == [5, 5, 3, 3]
    assert trials(load(five, "quick")) == [2, 2, 2, 2]
    assert trials(load(five, "smoke")) == [2, 2, 2, 2]
    assert trials(load(five, "paper", ["trials=2"])) == [2, 2, 2, 2]
    assert trials(load(five, "paper", ["trials=3"])) == [3, 3, 3, 3]
    assert trials(load(five, "paper", ["trials=4"])) == [4, 4, 4, 4]
    assert trials(load(five, "paper", ["trials=6"])) == [6, 6, 6, 6]


def test_curves_that_only_another_reading_reads_have_more_trials_too(five: Path) -> None:
    other = "or_read: lower(fedcgds(m=2), than=fedcavg(Q2=1))\n    check:"
    five.write_text(five.read_text().replace("check: y(at='end', algorithm='fedcavg', Q2=5)", other + " XX", 1))
    five.write_text(five.read_text().replace("XX <", "y(at='end', algorithm='fedcavg', Q2=5) <"))
    assert trials(load(five, "paper")) == [5, 5, 5, 3]


def test_results_with_fewer_trials_are_partial_for_this_claim_alone_until_they_are_computed(
    fedrepro: Call, five: Path, tmp_path: Path
) -> None:
    with_five = five.read_text()
    five.write_text(with_five.replace("    trials: 5\n", ""))
    assert fedrepro("run", five, "--tier", "paper").exit_code == 0
    assert verdict(fedrepro, five, "small.1")["trials"] == 3
    five.write_text(with_five)
    row, other = (verdict(fedrepro, five, name) for name in ("small.1", "small.2"))
    assert (row["level"], row["evidence"]) == ("partial", "on 3 of 5 trials")
    assert other["level"] == "paper"
    assert "claims ask for more trials of 2 curves" in row["stale"]
    five.write_text(with_five.replace("    trials: 5\n", "").replace("trials: 3", "trials: 4"))
    stale = verdict(fedrepro, five, "small.1")["stale"]
    assert "the spec asks for 4 trials, not 3" in stale
    assert "claims ask" not in stale
    five.write_text(with_five)
    planned = fedrepro("plan", five, "--tier", "paper").output
    assert "4 curves x 3 to 5 trials; 12 runs reused, 4 to do" in planned
    ran = fedrepro("run", five, "--tier", "paper")
    assert "4 runs computed, 12 reused, 0 failed" in ran.output
    assert "small (paper): complete" in ran.output
    row, other = (verdict(fedrepro, five, name) for name in ("small.1", "small.2"))
    assert (row["trials"], row["level"], row["stale"]) == (5, "paper", [])
    assert (other["trials"], other["level"]) == (3, "paper")
    (most,) = {len(runs) for runs in sidecar(tmp_path)["runs"].values()} - {3}
    assert most == 5


def test_fewer_trials_do_not_replace_them(fedrepro: Call, five: Path, tmp_path: Path) -> None:
    fedrepro("run", five, "--tier", "paper")
    before = sidecar(tmp_path)
    assert before["complete"]
    ran = fedrepro("run", five, "--tier", "paper", "--trials", 2)
    assert ran.exit_code == 0, ran.output
    assert sidecar(tmp_path)["runs"] == before["runs"]
    ran = fedrepro(
        "run", five, "--tier", "paper", "--trials", 3
    )  # as many as the tier has, fewer than a claim asks for
    assert ran.exit_code == 0, ran.output
    assert sidecar(tmp_path)["runs"] == before["runs"]
    for number in (2, 4):
        shown = fedrepro("show", five, "--tier", "paper", "--set", f"trials={number}").output
        assert "claims ask for more trials" not in shown
        judged = fedrepro("verdict", five, "--tier", "paper", "--set", f"trials={number}").output
        assert f"on {number} of 5 trials: " in judged
        assert "sidecar" not in judged
    path = next((tmp_path / "results" / "paper").rglob("small.json"))
    path.write_text(path.read_text().replace(before["plan"], "0" * len(before["plan"])))
    judged = fedrepro("verdict", five, "--tier", "paper", "--set", "trials=2").output
    assert "with a sidecar whose runs are not those of its plan" in judged  # a part of it is no more certain


def test_the_trials_of_the_tier_alone_are_not_complete(fedrepro: Call, five: Path, tmp_path: Path) -> None:
    ran = fedrepro("run", five, "--tier", "paper", "--trials", 3)
    assert "small (paper): 2 curves: 3 of 5 trials" in ran.output
    assert not sidecar(tmp_path)["complete"]
    ran = fedrepro("run", five, "--tier", "paper")
    assert "4 runs computed, 12 reused" in ran.output
    assert sidecar(tmp_path)["complete"]


def test_an_unfinished_number_of_trials_is_told(fedrepro: Call, five: Path, tmp_path: Path) -> None:
    fedrepro("run", five, "--tier", "paper")
    kept = Sidecar.parse(sidecar(tmp_path))
    figure = load(five, "paper")
    assert figure.more == dict.fromkeys(list(kept.runs)[:2], 5)
    assert list(figure.more) == sorted(figure.more)  # keys of kept effects contain it
    source = FigureData.read(five, "paper", tmp_path / "results")
    assert header_footer.tags(source) == []
    assert "3 to 5 trials" in header_footer.footer_parts(source, [])
    assert [(line.fewer, len(line.average.mean)) for line in lines.read(figure.panels[0], source)] == [("", 6)] * 4
    missing = dataclasses.replace(kept, complete=False, missing=("2 curves: 4 of 5 trials",))
    part = dataclasses.replace(source, sidecar=missing)
    assert header_footer.tags(part) == ["PARTIAL"]
    assert "missing: 2 curves: 4 of 5 trials" in header_footer.footer_parts(part, [])
    assert _by_trials(kept, figure) == 0
    took = dict.fromkeys(kept.runs, (2.0,) * 3)
    assert _by_trials(dataclasses.replace(kept, seconds_per_run=took), figure) == 8.0


@pytest.mark.parametrize("number", ["0", "1.5", "x", "[3]"])
def test_it_is_a_whole_number(five: Path, number: str) -> None:
    five.write_text(five.read_text().replace("trials: 5", f"trials: {number}"))
    with pytest.raises(UserError, match="trials must be an integer from 1 to 10,000, not"):
        load(five, "paper")
