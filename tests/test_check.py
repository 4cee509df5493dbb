"""Kept results are compared with what today's code computes; results with the same bits are confirmed."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import itertools
import json
import lzma
import math
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result

from fedrepro.errors import UserError
from fedrepro.results import checks
from fedrepro.results.checks import Check, Compared, Finding, deviation
from fedrepro.results.read import read_sidecar
from fedrepro.results.schema import Made
from fedrepro.runs import check as run_check
from fedrepro.runs.compute.run import Run
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
    """Change the rows of the CSV, and write the sidecar for the new CSV."""
    table, sidecar = base(tmp_path).with_name("small.csv"), base(tmp_path).with_name("small.json")
    header, *rows = table.read_text().splitlines()
    text = "\n".join([header, *change(rows)]) + "\n"
    table.write_text(text)
    facts = json.loads(sidecar.read_text())
    facts["csv_sha256"] = hashlib.sha256(text.encode()).hexdigest()
    sidecar.write_text(json.dumps(facts))


def scaled(rows: list[str], factor: float) -> list[str]:
    """The objective of FedCAvg from round 3 on times ``factor``."""
    changed = []
    for row in rows:
        cells = row.split(",")
        if cells[1] == "fedcavg" and int(cells[-7]) >= 3 and cells[-2] == "objective":
            cells[-1] = repr(float(cells[-1]) * factor)
        changed.append(",".join(cells))
    return changed


def test_results_come_out_with_the_same_bits(small: Path, tmp_path: Path, fedrepro: Call) -> None:
    fedrepro("run", small, "-j", 1)
    result = checked(tmp_path, fedrepro, small)
    assert result.exit_code == 0
    assert "beyond/small: same bits in 8 of 8 runs, each to its last round" in result.output
    kept = checks.read(base(tmp_path))
    assert kept is not None
    (finding,) = kept.findings
    assert {run.trial for run in finding.compared} == {1, 2}
    assert {(run.round, run.rounds, run.outcome) for run in finding.compared} == {(5, 5, "same bits")}
    assert all(run.values == 6 * 5 for run in finding.compared)  # four counts and a metric in each of the rounds 0 to 5


def test_a_run_that_two_curves_share_is_compared_once(small: Path, tmp_path: Path, fedrepro: Call) -> None:
    """One of them names a default: another series, the same run; a check confirms both."""
    text = small.read_text()
    small.write_text(
        text.replace("Q2: 4}\n", "Q2: 4}\n      - {algorithm: fedcgds, m: 2, Q1: 3, Q2: 4, gamma1: 1.02}\n")
    )
    fedrepro("run", small, "-j", 1)
    runs = json.loads(base(tmp_path).with_name("small.json").read_text())["runs"]
    assert len(runs) == 5
    assert len({run for trials in runs.values() for run in trials}) == 8
    assert (
        "beyond/small: same bits in 8 of 8 runs, each to its last round\n" in checked(tmp_path, fedrepro, small).output
    )
    sidecar = read_sidecar(base(tmp_path))
    others = {series: tuple(f"other {run}" for run in runs) for series, runs in sidecar.runs.items()}
    before = dataclasses.replace(sidecar, plan="of other code", runs=others)
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
    result = checked(tmp_path, fedrepro, small)
    assert result.exit_code == exit_code
    assert f"beyond/small: {outcome} in 4 of 8 runs compared (of 8); largest deviation 1.0e-" in result.output
    assert ("from round 3 on (objective)" in result.output) == (outcome == "different")


@pytest.mark.parametrize(
    ("library", "cpu", "named"), [("jax", "Another CPU", True), ("numba", "Another CPU", False), ("jax", "", False)]
)
def test_another_cpu_is_named_where_networks_come_out_otherwise(
    small: Path, tmp_path: Path, fedrepro: Call, library: str, cpu: str, named: bool
) -> None:
    fedrepro("run", small, "-j", 1)
    sidecar = base(tmp_path).with_name("small.json")
    facts = json.loads(sidecar.read_text())
    facts["made"]["libraries"], facts["made"]["kernels"]["cpu"] = {library: "1.0"}, cpu
    sidecar.write_text(json.dumps(facts))
    assert "another CPU may give other bits" not in checked(tmp_path, fedrepro, small).output
    rewritten(tmp_path, lambda rows: scaled(rows, 1.0 + 1e-6))
    result = checked(tmp_path, fedrepro, small)
    assert result.exit_code == 1
    assert (f"networks, computed on {cpu}; another CPU may give other bits" in result.output) == named


def test_what_an_accelerator_computed_is_not_compared_with_a_cpu(
    small: Path, tmp_path: Path, fedrepro: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    fedrepro("run", small, "-j", 1)
    sidecar = base(tmp_path).with_name("small.json")
    facts = json.loads(sidecar.read_text())
    facts["made"]["libraries"] = {"jax": "1.0", "jax-cuda13-plugin": "1.0"}
    sidecar.write_text(json.dumps(facts))
    refused = checked(tmp_path, fedrepro, small)
    assert "not checked: beyond/small: computed on an accelerator (jax-cuda13-plugin 1.0), which is not here" in (
        refused.output
    )
    assert refused.exit_code == 2
    installed = code.installed
    monkeypatch.setattr(code, "installed", lambda name: "1.0" if name == "jax-cuda13-plugin" else installed(name))
    assert checked(tmp_path, fedrepro, small).exit_code == 0


def test_the_last_line_counts_what_was_compared_now(
    small: Path, tmp_path: Path, fedrepro: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A figure's line adds what earlier checks found; the size of the sample is that of this one."""
    fedrepro("run", small, "-j", 1)
    assert "1 of 1 figures, 8 runs compared" in checked(tmp_path, fedrepro, small).output
    every = run_check.sample
    monkeypatch.setattr(run_check, "sample", lambda of, seed: itertools.islice(every(of, seed), 3))
    output = checked(tmp_path, fedrepro, small).output
    assert "beyond/small: same bits in 8 of 8 runs" in output
    assert "1 of 1 figures, 3 runs compared" in output


def everything(folder: Path) -> dict[Path, tuple[int, bytes]]:
    """The files below a folder, except locks, with their times of change and contents."""
    files = (path for path in folder.rglob("*") if path.is_file() and ".locks" not in path.parts)
    return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


@pytest.mark.parametrize("whole", [(), ("--whole",)])
def test_a_check_writes_the_file_that_it_names_and_no_other(
    small: Path, tmp_path: Path, fedrepro: Call, whole: tuple[str, ...]
) -> None:
    fedrepro("run", small, "-j", 1)
    before = everything(tmp_path)
    unstored = checked(tmp_path, fedrepro, small, *whole, "--no-store")
    assert "same bits in" in unstored.output
    assert "stored" not in unstored.output
    assert everything(tmp_path) == before
    file = base(tmp_path).with_name("small.check.json")
    first = checked(tmp_path, fedrepro, small, *whole).output.splitlines()[-1]
    assert first == (
        f"the findings are stored in {file}; the report prints them; stale curves of which a run had the same bits to "
        "its last round count as confirmed; --no-store writes nothing"
    )
    after = everything(tmp_path)
    assert set(after) - set(before) == {file}
    assert {path: after[path] for path in before} == before
    again = checked(tmp_path, fedrepro, small, *whole).output.splitlines()[-1]
    assert again == "next to the results: nothing new to store"
    assert everything(tmp_path) == after, "the same comparisons are not written again"


def test_a_missing_number_is_a_difference() -> None:
    assert deviation(float("nan"), float("nan"), 1.0) == 0.0
    assert deviation(float("nan"), 1.0, 1.0) == float("inf")
    assert deviation(0.0, 1e-300, 0.0) == 1.0
    assert deviation(float("inf"), float("inf"), 1.0) == 0.0


def test_residuals_that_fall_to_rounding_are_judged_by_the_scale_of_their_curve() -> None:
    """A residual is a difference of numbers of the curve's scale: both computations have their rounding errors."""
    eps = 2.0**-52
    assert deviation(1e-16, 3e-16, 1.0) < checks.CLOSE
    assert deviation(7.1e-11, 7.1e-11 + 10 * eps, 1.0) < checks.CLOSE
    assert deviation(1e-16, 3e-16, 1e-16) > 0.5  # a curve of that scale
    assert deviation(1e-9, 1.001e-9, 1.0) > checks.CLOSE  # far above the rounding of its scale
    assert deviation(0.0, checks.ROUNDING, 1.0) == pytest.approx(checks.CLOSE)
    assert deviation(1.0, 1.0 + 1e-9, 1.0) > checks.CLOSE


@pytest.mark.parametrize("kept", [1.23456789, -0.000123456789, 987654321.0, 1e-300])
def test_numbers_with_fewer_digits_differ_by_what_rounding_does_not_explain(kept: float) -> None:
    half = 0.5 * 10 ** (math.floor(math.log10(abs(kept))) - 8)  # half a unit of the ninth digit
    for share in (-0.9, 0.0, 0.3):
        assert run_check.unrounded(kept, kept + share * half, 9) == kept + share * half
    beyond = kept + 1.01 * half
    assert 0.0 < deviation(run_check.unrounded(kept, beyond, 9), beyond, 0.0) < checks.CLOSE
    assert deviation(run_check.unrounded(kept, kept + 3 * half, 9), kept + 3 * half, 0.0) > checks.CLOSE
    assert run_check.unrounded(kept, 0.0, 0) == kept  # all digits


@pytest.mark.parametrize("other", [float("nan"), float("inf"), 0.0])
def test_no_number_is_the_rounding_of_one_that_is_missing(other: float) -> None:
    assert deviation(run_check.unrounded(1.5, other, 9), other, 0.0) > checks.CLOSE
    assert deviation(run_check.unrounded(other, 1.5, 9), 1.5, 0.0) > checks.CLOSE
    assert deviation(run_check.unrounded(other, other, 9), other, 0.0) == 0.0


def test_an_edited_file_is_not_checked(small: Path, tmp_path: Path, fedrepro: Call) -> None:
    fedrepro("run", small, "-j", 1)
    table = base(tmp_path).with_name("small.csv")
    table.write_text(table.read_text() + "\n")
    result = checked(tmp_path, fedrepro, small)
    assert result.exit_code == 2
    assert "small.csv is not the file that was written; restore it with git" in result.output


def test_without_a_name_own_studies_are_checked_at_their_own_tier(
    small: Path, fedrepro: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = small.parent / "experiments" / "mine"
    folder.mkdir(parents=True)
    small.rename(folder / "small.yaml")
    spec = folder / "small.yaml"
    spec.write_text(spec.read_text().replace("paper: beyond", "paper: mine"))
    monkeypatch.chdir(small.parent)
    none = fedrepro("check")
    assert (none.exit_code, "no results of your own studies in results that can be" in none.stderr) == (2, True)
    fedrepro("run", "mine/small", "-q", "-j", 1)
    for names in ((), ("mine/small",)):
        checked = fedrepro("check", *names, "--no-store", "-q")
        assert (checked.exit_code, "mine/small: same bits in" in checked.output) == (0, True), checked.output


def test_what_cannot_be_checked_is_said(small: Path, tmp_path: Path, fedrepro: Call) -> None:
    result = checked(tmp_path, fedrepro, small)
    assert result.exit_code == 2
    assert "no results at the quick tier in" in result.output
    fedrepro("run", small, "-j", 1)
    small.write_text(small.read_text().replace("name: clustering", "name: clustering, rho: 1e-3"))
    result = checked(tmp_path, fedrepro, small)
    assert result.exit_code == 2
    assert "beyond/small: none of its runs can be checked, the spec changed" in result.output


def test_results_of_other_code_are_kept_where_a_check_confirms_them(
    small: Path, tmp_path: Path, fedrepro: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    fedrepro("run", small, "-j", 1)
    shutil.rmtree(tmp_path / "results" / ".runs")
    digest = code.digest
    monkeypatch.setattr(code, "digest", lambda computing: digest(computing) + " changed")
    assert "0 runs reused, 8 to do" in fedrepro("plan", small).output
    assert checked(tmp_path, fedrepro, small).exit_code == 0
    assert "8 runs reused, 0 to do" in fedrepro("plan", small).output
    longer = fedrepro("run", small, "-j", 1, "--set", "trials=3")
    assert "8 reused" in longer.output


class _TwoRounds(run_check._Limited):
    """Every run is stopped after two rounds, as a long one is when its time is over."""

    def rounds(self, *args: Any, **kwargs: Any) -> Iterator[Any]:
        for number, state in enumerate(self.method.rounds(*args, **kwargs)):
            yield state
            if number == 2:
                self.stopped = True
                return


def other_code(monkeypatch: pytest.MonkeyPatch) -> None:
    digest = code.digest
    monkeypatch.setattr(code, "digest", lambda computing: digest(computing) + " changed")


def test_code_that_was_seen_in_its_first_rounds_only_stays_stale(
    small: Path, tmp_path: Path, fedrepro: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An edit may have an effect only in later rounds, so two of five rounds of every run confirm nothing."""
    fedrepro("run", small, "-j", 1)
    shutil.rmtree(tmp_path / "results" / ".runs")
    other_code(monkeypatch)
    with monkeypatch.context() as stopped:
        stopped.setattr(run_check, "_Limited", _TwoRounds)
        result = checked(tmp_path, fedrepro, small)
    assert result.exit_code == 0
    assert (
        "beyond/small: same bits to round 2 of 5 in 8 of 8 runs, no run to its end; 4 of 4 curves without a whole run"
    ) in result.output
    assert "beyond/small: 4 curves computed by other code stay stale; to confirm them: fedrepro check beyond/small" in (
        result.output
    )
    sidecar, check = read_sidecar(base(tmp_path)), checks.read(base(tmp_path))
    assert sidecar is not None
    assert validity(load(small, "quick"), sidecar, check).changed == ("the code that computes it changed",)
    assert "0 runs reused, 8 to do" in fedrepro("plan", small).output


def test_for_curves_that_differ_no_further_check_is_advised(
    small: Path, tmp_path: Path, fedrepro: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    fedrepro("run", small, "-j", 1)
    shutil.rmtree(tmp_path / "results" / ".runs")
    rewritten(tmp_path, lambda rows: scaled(rows, 1.001))
    other_code(monkeypatch)
    result = checked(tmp_path, fedrepro, small, "--whole")
    assert result.exit_code == 1
    assert (
        "beyond/small: today's code computes other numbers for 2 curves; "
        "`fedrepro run beyond/small --tier quick` replaces the stored ones\n"
    ) in result.output
    assert "confirm stale results" not in result.output
    assert "stay stale" not in result.output


def test_one_whole_run_of_every_curve_confirms_and_is_continued_after_an_interruption(
    small: Path, tmp_path: Path, fedrepro: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    fedrepro("run", small, "-j", 1)
    shutil.rmtree(tmp_path / "results" / ".runs")
    other_code(monkeypatch)
    compare = run_check._compared
    done: list[str] = []

    def interrupted(checked: run_check.Kept, run: Run, *rest: Any) -> Compared:
        if len(done) == 3:
            raise KeyboardInterrupt
        done.append(run.setting.series)
        return compare(checked, run, *rest)

    with monkeypatch.context() as once:
        once.setattr(run_check, "_compared", interrupted)
        assert checked(tmp_path, fedrepro, small, "--whole").exit_code == 130
    sidecar, check = read_sidecar(base(tmp_path)), checks.read(base(tmp_path))
    assert sidecar is not None
    assert validity(load(small, "quick"), sidecar, check).changed == (
        "the code that computes it changed (1 of 4 curves: fedcavg)",
    )
    assert "6 runs reused, 2 to do" in fedrepro("plan", small).output
    rest = checked(tmp_path, fedrepro, small, "--whole")
    assert "1 of 1 figures, 1 run compared" in rest.output
    assert "beyond/small: same bits in 4 of 8 runs, each to its last round" in rest.output
    assert "stay stale" not in rest.output
    assert "8 runs reused, 0 to do" in fedrepro("plan", small).output
    assert "1 of 1 figures, 0 runs compared" in checked(tmp_path, fedrepro, small, "--whole").output


def test_runs_that_are_too_long_for_the_time_are_begun(
    small: Path, tmp_path: Path, fedrepro: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    fedrepro("run", small, "-j", 1)
    monkeypatch.setattr(run_check.predict.Timings, "seconds", lambda self, run: 1e5)
    monkeypatch.setattr(run_check, "_Limited", _TwoRounds)
    assert "same bits to round 2 of 5 in 8 of 8 runs, no run to its end" in checked(tmp_path, fedrepro, small).output


def edited_sidecar(tmp_path: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    path = base(tmp_path).with_name("small.json")
    facts = json.loads(path.read_text())
    edit(facts)
    path.write_text(json.dumps(facts))


def test_a_sidecar_that_the_data_contradict_is_found(small: Path, tmp_path: Path, fedrepro: Call) -> None:
    fedrepro("run", small, "-j", 1)
    edited_sidecar(tmp_path, lambda facts: facts["datasets"][0].update(state="variant"))
    result = checked(tmp_path, fedrepro, small)
    assert result.exit_code == 1
    assert "beyond/small: synthetic is recorded as variant, but it is none needed" in result.output


def test_what_a_run_ends_with_is_compared_too(small: Path, tmp_path: Path, fedrepro: Call) -> None:
    """Its status, the sizes of its data, and the round in which it ends."""
    fedrepro("run", small, "-j", 1)
    edited_sidecar(tmp_path, lambda facts: facts["sizes"]["syn"].update(N=61))
    result = checked(tmp_path, fedrepro, small)
    assert result.exit_code == 1
    assert "from round 5 on (the sizes of the data)" in result.output
    edited_sidecar(tmp_path, lambda facts: facts["sizes"]["syn"].update(N=60))
    before = base(tmp_path).with_name("small.csv").read_text().splitlines()[1:]
    rewritten(tmp_path, lambda rows: [row.replace(",ok,", ",diverged,") for row in rows])
    assert "from round 5 on (the status)" in checked(tmp_path, fedrepro, small).output
    rewritten(tmp_path, lambda rows: [row for row in before if row.split(",")[-7] != "5"])
    assert "from round 5 on (the round in which it ends)" in checked(tmp_path, fedrepro, small).output


def test_a_change_of_the_spec_is_not_confirmed(
    small: Path, tmp_path: Path, fedrepro: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    fedrepro("run", small, "-j", 1)
    shutil.rmtree(tmp_path / "results" / ".runs")
    digest = code.digest
    monkeypatch.setattr(code, "digest", lambda computing: digest(computing) + " changed")
    small.write_text(small.read_text().replace("{algorithm: fedcgds,", "{algorithm: fedcgds, gamma2: 3.0,"))
    assert checked(tmp_path, fedrepro, small).exit_code == 0
    assert "4 runs reused, 4 to do" in fedrepro("plan", small).output


RUNS = {"s": ("id-1", "id-2"), "t": ("id-3", "")}
HERE, THERE = (Made(kernels={"level": "v3", "cpu": cpu}) for cpu in ("a", "b"))


def compared(series: str, trial: int, round_: int = 9, deviation: float = 0.0, start: int | None = None) -> Compared:
    return Compared(series, trial, "method", round_, 9, 5, deviation, start)


def finding(*runs: Compared, made: Made = HERE, ids: dict[str, tuple[str, ...]] = RUNS) -> Finding:
    return Finding(ids, runs, made)


def merged(*findings: Finding) -> Check:
    check = Check("csv")
    for each in findings:
        check = check.added(each)
    return check


def test_a_check_adds_to_the_one_before() -> None:
    check = merged(finding(compared("s", 1)), finding(compared("s", 2, deviation=1e-16)))
    (both,) = check.findings
    assert [run.trial for run in both.compared] == [1, 2]
    assert both.outcome == "same to 1e-10"


def test_findings_of_another_cpu_or_program_stay_apart() -> None:
    """An old difference elsewhere does not decide today's outcome, nor old same bits today's difference."""
    changed = {"s": ("id-9", ""), "t": ("", "")}
    different = compared("s", 1, deviation=1.0, start=3)
    check = merged(finding(different, made=THERE), finding(compared("s", 1)), finding(different, ids=changed))
    assert [each.outcome for each in check.findings] == ["different", "same bits", "different"]
    check = check.added(finding(compared("t", 1), made=THERE))
    assert check.findings[-1].outcome == "different"  # still, on that CPU
    assert len(check.findings) == 3


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_a_difference_is_kept_unless_a_longer_look_says_otherwise(order: tuple[int, ...]) -> None:
    """Same bits to round 4, a difference in round 6, and same bits to round 2: the difference counts in every order."""
    looks = (compared("s", 1, 4), compared("s", 1, 6, 1.0, 6), compared("s", 1, 2))
    check = merged(*(finding(looks[place]) for place in order))
    assert check.findings[-1].compared == (looks[1],)
    again_to_the_end = compared("s", 1, 9)
    assert check.added(finding(again_to_the_end)).findings[-1].compared == (again_to_the_end,)


def test_only_curves_with_a_whole_run_are_confirmed() -> None:
    first_rounds = finding(compared("s", 1, 3), compared("s", 2, 3), compared("t", 1))
    assert merged(first_rounds).confirmed("csv") == {"id-3": ("t", 1)}
    one_whole = finding(compared("s", 1, 3), compared("s", 2), compared("t", 1))
    everything = {"id-1": ("s", 1), "id-2": ("s", 2), "id-3": ("t", 1)}
    assert merged(one_whole).confirmed("csv") == everything
    assert merged(one_whole).confirmed("another csv") == {}
    one_deviates = finding(compared("s", 1, 3, deviation=1e-15), compared("s", 2), compared("t", 1))
    assert merged(one_deviates).confirmed("csv") == {"id-3": ("t", 1)}
    half_here, half_there = finding(compared("s", 1)), finding(compared("t", 1), made=THERE)
    assert merged(half_here, half_there).confirmed("csv") == everything  # each curve by one environment


def test_a_finding_says_how_far_it_saw() -> None:
    few = finding(compared("s", 1, 3), compared("s", 2, 4))
    assert str(few) == (
        "same bits to rounds 3 to 4 of 9 in 2 of 3 runs, no run to its end; 2 of 2 curves without a whole run"
    )
    some = finding(compared("s", 1, 3), compared("s", 2))
    assert str(some) == (
        "same bits in 2 of 3 runs, 1 to their last round, the others to round 3 of 9; 1 of 2 curves without a whole run"
    )
    every = finding(compared("s", 1), compared("s", 2), compared("t", 1))
    assert str(every) == "same bits in 3 of 3 runs, each to its last round"
    worst = finding(compared("s", 1, deviation=2e-3, start=4), compared("s", 2), compared("t", 1, 3, 1e-12))
    assert str(worst) == (
        "different in 1 of 3 runs compared (of 3); largest deviation 2.0e-03 in s, trial 1, from round 4 on ()"
    )
    assert str(finding()) == "nothing compared"


def test_files_of_version_1_have_one_finding(tmp_path: Path) -> None:
    compared = {"series": "s", "trial": 1, "algorithm": "m", "round": 3, "rounds": 9, "values": 5}
    old = {
        "results": "csv",
        "runs": {"s": ["id-1"]},
        "methods": ["m"],
        "compared": [compared],
        "made": {"written": "2026"},
    }
    (tmp_path / "x.check.json").write_text(json.dumps(old))
    check = checks.read(tmp_path / "x")
    assert check == Check("csv", (Finding({"s": ("id-1",)}, (Compared(**compared),), Made(written="2026")),))
    checks.write(tmp_path / "x", check)
    assert checks.read(tmp_path / "x") == check
    path, packed = tmp_path / "x.check.json", tmp_path / "x.check.json.xz"
    packed.write_bytes(lzma.compress(path.read_bytes()))
    path.unlink()
    assert checks.read(tmp_path / "x") == check
    assert checks.write(tmp_path / "x", check) == packed
    assert (path.exists(), checks.read(tmp_path / "x")) == (False, check), "compressed, as before"
    packed.write_bytes(b"no archive")
    with pytest.raises(UserError, match=r"x.check.json.xz: cannot be read .*; remove it, and `fedrepro check` writes"):
        checks.read(tmp_path / "x")
    packed.unlink()
    (tmp_path / "x.check.json").write_text(json.dumps({"schema": 9}))
    with pytest.raises(UserError, match=r"x.check.json: cannot be read \(version 9 is unknown \(known: 1 to 2\)\)"):
        checks.read(tmp_path / "x")


def test_the_report_shows_the_last_check_and_what_it_confirms(
    small: Path, tmp_path: Path, fedrepro: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fedrepro.report import gather_contents

    fedrepro("run", small, "-j", 1)
    digest = code.digest
    monkeypatch.setattr(code, "digest", lambda computing: digest(computing) + " changed")
    root = tmp_path / "results"
    before = gather_contents.section(small, "quick", root)
    assert before.stale == ("the code that computes it changed",)
    assert before.check is None
    checked(tmp_path, fedrepro, small)
    after = gather_contents.section(small, "quick", root)
    assert after.stale == ()
    assert after.check is not None
    assert after.check.words.startswith("same bits in 8 of 8 runs, each to its last round, on 20")
    monkeypatch.setattr(code, "digest", lambda computing: digest(computing) + " changed once more")
    assert gather_contents.section(small, "quick", root).stale == ("the code that computes it changed",)


def test_the_queue_of_the_paper_tier_names_every_figure_once() -> None:
    root = Path(__file__).parents[1]
    places = {p: yaml.safe_load(p.read_text()).get("queue") for p in specs(root / "experiments")}
    assert None not in places.values()
    assert len(set(places.values())) == len(places)
    printed = subprocess.run(["make", "-n", "answers"], cwd=root, capture_output=True, text=True, check=True).stdout
    named = re.findall(r"experiments/\S+\.yaml", printed)
    assert named == [p.relative_to(root).as_posix() for p in sorted(places, key=lambda p: places[p] or 0)]
