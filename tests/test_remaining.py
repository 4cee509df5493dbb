"""The time that is left while runs are computed, also on a machine that others use."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import Result

from fedrepro.progress import Progress
from fedrepro.runs.predict import remaining
from fedrepro.runs.predict.remaining import Remaining, slowdown

Call = Callable[..., Result]


@dataclass(frozen=True)
class Run:
    id: str
    family: str


def sweep(workers: int, **costs: float) -> tuple[list[Run], Remaining]:
    """Four runs of each family."""
    runs = [Run(f"{family}{number}", family) for family in costs for number in range(4)]
    left = Remaining(runs, {run.id: costs[run.family] for run in runs}, workers)  # type: ignore[arg-type]
    return runs, left


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(remaining.time, "perf_counter", lambda: now[0])
    return now


def test_nothing_is_known_before_a_run_has_ended() -> None:
    runs, left = sweep(1, a=2.0)
    assert left.seconds() is None
    left.ended(runs[0], None)  # failed
    assert left.seconds() is None


def test_one_run_tells_the_load_for_all_and_a_family_its_own_time(clock: list[float]) -> None:
    runs, left = sweep(2, a=2.0, b=10.0)
    left.ended(runs[0], 20.0)  # ten times longer than predicted
    assert left.seconds() == (3 * 20 + 4 * 100) / 2
    left.ended(runs[4], 10.0)  # b takes no longer
    assert left.seconds() == (3 * 20 + 3 * 10) / 2
    clock[0] += 4
    assert left.seconds() == (3 * 20 + 3 * 10) / 2 - 4


def test_a_change_of_the_load_shows_after_a_few_runs() -> None:
    runs, left = sweep(1, a=1.0)
    for run, took in zip(runs, (1.0, 5.0, 5.0), strict=False):
        left.ended(run, took)
    assert 2.5 < left.seconds() < 5  # type: ignore[operator]


def test_the_last_run_has_one_worker() -> None:
    runs, left = sweep(8, a=1.0)
    for run in runs[:3]:
        left.ended(run, 3.0)
    assert left.seconds() == 3.0
    left.ended(runs[3], 3.0)
    assert left.seconds() == 0.0


def test_progress_prints_the_known_time() -> None:
    known: list[float | None] = [None]
    with Progress("runs", 4, 10.0, seconds=60.0, left=lambda: known[0], stream=io.StringIO()) as progress:
        assert progress.line().endswith("elapsed, about 1:00 left")
        known[0] = 600.0
        progress.step("a", 5.0)
        assert progress.line() == "runs: 1/4 (50%), 0:00 elapsed, about 10:00 left"
        known[0] = -1.0
        assert progress.line().endswith("elapsed, longer than predicted")


def test_a_busy_machine_is_told_by_plan(fedrepro: Call, small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    assert slowdown(2) == 1.0
    idle = fedrepro("plan", small, "-j", 2)
    assert "busy" not in idle.stderr
    monkeypatch.setattr("os.getloadavg", lambda: (8.0, 0.0, 0.0))
    assert slowdown(2) == 2.5
    load = "note: this machine is busy (load 8.0 on 4 cores)"
    said = f"{load}; the prediction is for an idle one, and runs now take about 2.5"
    busy = fedrepro("plan", small, "-j", 2)
    assert busy.stderr.endswith(f"{said} times as long\n")
    assert busy.stdout == idle.stdout

    def unknown() -> tuple[float, float, float]:
        raise OSError

    monkeypatch.setattr("os.getloadavg", unknown)
    assert slowdown(2) == 1.0
