"""Kept results are compared with what today's code computes; what comes out with the same bits is confirmed."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import itertools
import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from click.testing import Result

from fedrepro.results import checks
from fedrepro.results.checks import Check, Compared
from fedrepro.results.read import read_sidecar
from fedrepro.runs import check as again
from fedrepro.runs.identity import code
from fedrepro.runs.storage.validity import Validity, validity
from fedrepro.spec.find import specs
from fedrepro.spec.read import load

Call = Callable[..., Result]


def checked(tmp_path: Path, fedrepro: Call, small: Path, *more: str) -> Result:
    words = ("check", small, "--tier", "quick", "--seconds", "30", "--seed", "1", *more)
    return fedrepro(*words, "--results", tmp_path / "results")


def base(tmp_path: Path) -> Path:
    return tmp_path / "results" / "quick" / "beyond" / "small"


def rewritten(tmp_path: Path, change: Callable[[list[str]], list[str]]) -> None:
    """Change the rows of the CSV, and let the sidecar describe the new one."""
    table, sidecar = base(tmp_path).with_name("small.csv"), base(tmp_path).with_name("small.json")
    header, *rows = table.read_text().splitlines()
    text = "\n".join([header, *change(rows)]) + "\n"
    table.write_text(text)
    facts = json.loads(sidecar.read_text())
    facts["csv_sha256"] = hashlib.sha256(text.encode()).hexdigest()
    sidecar.write_text(json.dumps(facts))


def scaled(rows: list[str], factor: float) -> list[str]:
    """The objective of FedCAvg from round 3 on times ``factor``."""
    found = []
    for row in rows:
        cells = row.split(",")
        if cells[1] == "fedcavg" and int(cells[7]) >= 3 and cells[-2] == "objective":
            cells[-1] = repr(float(cells[-1]) * factor)
        found.append(",".join(cells))
    return found


def test_results_come_out_with_the_same_bits(small: Path, tmp_path: Path, fedrepro: Call) -> None:
    fedrepro("run", small, "-j", 1)
    found = checked(tmp_path, fedrepro, small)
    assert found.exit_code == 0
    assert "beyond/small: same bits in 8 of 8 runs" in found.output
    kept = checks.read(base(tmp_path))
    assert kept is not None
    assert {one.trial for one in kept.compared} == {1, 2}
    assert {(one.round, one.rounds, one.outcome) for one in kept.compared} == {(5, 5, "same bits")}
    assert all(one.values == 6 * 5 for one in kept.compared)  # four counts and a metric in each of the rounds 0 to 5


def test_a_run_that_two_curves_share_is_compared_once(small: Path, tmp_path: Path, fedrepro: Call) -> None:
    """One of them names a default: another series, the same run; a check confirms both."""
    text = small.read_text()
    small.write_text(
        text.replace("Q2: 4}\n", "Q2: 4}\n      - {algorithm: fedcgds, m: 2, Q1: 3, Q2: 4, gamma1: 1.02}\n")
    )
    fedrepro("run", small, "-j", 1)
    runs = json.loads(base(tmp_path).with_name("small.json").read_text())["runs"]
    assert len(runs) == 5
    assert len({run for found in runs.values() for run in found}) == 8
    assert "beyond/small: same bits in 8 of 8 runs" in checked(tmp_path, fedrepro, small).output
    sidecar = read_sidecar(base(tmp_path))
    before = dataclasses.replace(sidecar, plan="of other code")
    assert validity(load(small, "quick"), before).changed == ("the code that computes it changed",)
    assert validity(load(small, "quick"), before, checks.read(base(tmp_path))) == Validity()


def test_compressed_results_are_checked_too(small: Path, tmp_path: Path, fedrepro: Call) -> None:
    fedrepro("run", small, "-j", 1)
    table = base(tmp_path).with_name("small.csv")
    table.with_name("small.csv.gz").write_bytes(gzip.compress(table.read_bytes()))
    table.unlink()
    assert "same bits in 8 of 8 runs" in checked(tmp_path, fedrepro, small).output


@pytest.mark.parametrize(
    ("factor", "outcome", "exit_code"), [(1.0 + 1e-12, "same to 1e-10", 0), (1.0 + 1e-6, "different", 1)]
)
def test_a_deviation_is_told(
    small: Path, tmp_path: Path, fedrepro: Call, factor: float, outcome: str, exit_code: int
) -> None:
    fedrepro("run", small, "-j", 1)
    rewritten(tmp_path, lambda rows: scaled(rows, factor))
    found = checked(tmp_path, fedrepro, small)
    assert found.exit_code == exit_code
    assert f"beyond/small: {outcome} in 8 of 8 runs; largest deviation 1.0e-" in found.output
    assert ("from round 3 on (objective)" in found.output) == (outcome == "different")


@pytest.mark.parametrize(
    ("library", "cpu", "told"), [("jax", "Another CPU", True), ("numba", "Another CPU", False), ("jax", "", False)]
)
def test_another_cpu_is_named_where_networks_come_out_otherwise(
    small: Path, tmp_path: Path, fedrepro: Call, library: str, cpu: str, told: bool
) -> None:
    fedrepro("run", small, "-j", 1)
    sidecar = base(tmp_path).with_name("small.json")
    facts = json.loads(sidecar.read_text())
    facts["made"]["libraries"], facts["made"]["kernels"]["cpu"] = {library: "1.0"}, cpu
    sidecar.write_text(json.dumps(facts))
    assert "JAX computes otherwise" not in checked(tmp_path, fedrepro, small).output
    rewritten(tmp_path, lambda rows: scaled(rows, 1.0 + 1e-6))
    found = checked(tmp_path, fedrepro, small)
    assert found.exit_code == 1
    assert (f"networks, computed on {cpu}; JAX computes otherwise on another CPU" in found.output) == told


def test_the_last_line_counts_what_was_compared_now(
    small: Path, tmp_path: Path, fedrepro: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A figure's line adds what earlier checks found; the size of the sample is that of this one."""
    fedrepro("run", small, "-j", 1)
    assert "1 of 1 figures, 8 runs compared" in checked(tmp_path, fedrepro, small).output
    every = again.sample
    monkeypatch.setattr(again, "sample", lambda of, seed: itertools.islice(every(of, seed), 3))
    found = checked(tmp_path, fedrepro, small).output
    assert "beyond/small: same bits in 8 of 8 runs" in found
    assert "1 of 1 figures, 3 runs compared" in found


def test_a_missing_number_is_a_difference() -> None:
    from fedrepro.runs.check import _deviation

    assert _deviation(float("nan"), float("nan")) == 0.0
    assert _deviation(float("nan"), 1.0) == float("inf")
    assert _deviation(0.0, 1e-300) == 1.0
    assert _deviation(float("inf"), float("inf")) == 0.0


def test_an_edited_file_is_not_checked(small: Path, tmp_path: Path, fedrepro: Call) -> None:
    fedrepro("run", small, "-j", 1)
    table = base(tmp_path).with_name("small.csv")
    table.write_text(table.read_text() + "\n")
    found = checked(tmp_path, fedrepro, small)
    assert found.exit_code == 2
    assert "small.csv is not the file that was written; restore it with git" in found.output


def test_what_cannot_be_checked_is_said(small: Path, tmp_path: Path, fedrepro: Call) -> None:
    found = checked(tmp_path, fedrepro, small)
    assert found.exit_code == 2
    assert "no results at the quick tier in" in found.output
    fedrepro("run", small, "-j", 1)
    small.write_text(small.read_text().replace("name: clustering", "name: clustering, rho: 1e-3"))
    found = checked(tmp_path, fedrepro, small)
    assert found.exit_code == 2
    assert "beyond/small: none of its runs can be checked, the spec changed" in found.output


def test_results_of_other_code_are_kept_where_a_check_confirms_them(
    small: Path, tmp_path: Path, fedrepro: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    import shutil

    fedrepro("run", small, "-j", 1)
    shutil.rmtree(tmp_path / "results" / ".runs")
    digest = code.digest
    monkeypatch.setattr(code, "digest", lambda computing: digest(computing) + " changed")
    assert "0 runs reused, 8 to do" in fedrepro("plan", small).output
    assert checked(tmp_path, fedrepro, small).exit_code == 0
    assert "8 runs reused, 0 to do" in fedrepro("plan", small).output
    longer = fedrepro("run", small, "-j", 1, "--set", "trials=3")
    assert "8 reused" in longer.output


def test_a_change_of_the_spec_is_not_confirmed(
    small: Path, tmp_path: Path, fedrepro: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    import shutil

    fedrepro("run", small, "-j", 1)
    shutil.rmtree(tmp_path / "results" / ".runs")
    digest = code.digest
    monkeypatch.setattr(code, "digest", lambda computing: digest(computing) + " changed")
    small.write_text(small.read_text().replace("{algorithm: fedcgds,", "{algorithm: fedcgds, gamma2: 3.0,"))
    assert checked(tmp_path, fedrepro, small).exit_code == 0
    assert "4 runs reused, 4 to do" in fedrepro("plan", small).output


RUNS = {"s": ("id-1", "id-2"), "t": ("id-3", "")}


def test_a_check_adds_to_the_one_before() -> None:
    first = Check("csv", RUNS, ("a", "b"), (Compared("s", 1, "a", 3, 9, 5),))
    second = Check("csv", RUNS, ("a", "b"), (Compared("s", 2, "b", 3, 9, 5, deviation=1e-16),))
    both = second.merged(first)
    assert [one.trial for one in both.compared] == [1, 2]
    assert both.outcome == "same to 1e-10"
    other = Check("another csv", RUNS, ("a", "b"), second.compared)
    assert other.merged(first) == other
    changed = Check("csv", {"s": ("id-9",)}, ("a", "b"), second.compared)
    assert changed.merged(first) == changed


def test_every_method_must_be_seen_before_results_are_confirmed() -> None:
    seen = (Compared("s", 1, "a", 3, 9, 5), Compared("t", 1, "b", 0, 9, 5))
    whole = {"id-1": ("s", 1), "id-2": ("s", 2), "id-3": ("t", 1)}
    assert Check("csv", RUNS, ("a", "b"), seen).confirmed("csv") == whole
    assert Check("csv", RUNS, ("a", "b", "c"), seen).confirmed("csv") == {}
    assert Check("csv", RUNS, ("a", "b"), seen).confirmed("another csv") == {}
    near = (seen[0], Compared("t", 1, "b", 0, 9, 5, deviation=1e-15))
    assert Check("csv", RUNS, ("a", "b"), near).confirmed("csv") == {}


def test_the_report_shows_the_last_check_and_what_it_confirms(
    small: Path, tmp_path: Path, fedrepro: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fedrepro.report import gather

    fedrepro("run", small, "-j", 1)
    digest = code.digest
    monkeypatch.setattr(code, "digest", lambda computing: digest(computing) + " changed")
    root = tmp_path / "results"
    before = gather.section(small, "quick", root)
    assert before.stale == ("the code that computes it changed",)
    assert before.check is None
    checked(tmp_path, fedrepro, small)
    after = gather.section(small, "quick", root)
    assert after.stale == ()
    assert after.check is not None
    assert after.check.words.startswith("same bits in 8 of 8 runs, on 20")
    monkeypatch.setattr(code, "digest", lambda computing: digest(computing) + " changed once more")
    assert gather.section(small, "quick", root).stale == ("the code that computes it changed",)


def test_the_queue_of_the_paper_tier_names_every_figure_once() -> None:
    root = Path(__file__).parents[1]
    places = {p: yaml.safe_load(p.read_text()).get("queue") for p in specs(root / "experiments")}
    assert None not in places.values()
    assert len(set(places.values())) == len(places)
    printed = subprocess.run(["make", "-n", "answers"], cwd=root, capture_output=True, text=True, check=True).stdout
    named = re.findall(r"experiments/\S+\.yaml", printed)
    assert named == [p.relative_to(root).as_posix() for p in sorted(places, key=lambda p: places[p] or 0)]
