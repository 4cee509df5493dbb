"""Parts of a plan that the tasks of a job array compute, and the results that they leave for the last command."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from fedrepro.runs import runner
from fedrepro.runs.compute.record import Record
from fedrepro.runs.identity import plan as planning
from fedrepro.runs.parts import Part
from fedrepro.runs.predict.machine import Machine
from fedrepro.runs.predict.timings import Timings
from fedrepro.runs.storage.store import Store
from fedrepro.spec.read import load

from .conftest import ROOT

Call = Callable[..., Result]
CODE = "from fedrepro.cli import main; main.main()"
WORDS = ("--trials", 3, "-q", "-j", 1)


def csv_of(results: Path) -> bytes:
    return (results / "quick" / "beyond" / "small.csv").read_bytes()


def shares(path: Path, tier: str, of: int) -> list[list]:
    plan = planning.make([load(path, tier)], stand_in=True)
    mine = [Part(number, of).runs(plan.runs.values()) for number in range(1, of + 1)]
    return [[run for run in plan.runs.values() if run.id in ids] for ids in mine]


def test_every_run_is_in_one_part_and_parts_have_about_the_same_cost() -> None:
    fig1 = ROOT / "experiments" / "fedmf" / "fig1.yaml"
    whole = planning.make([load(fig1, "paper")], stand_in=True).runs
    parts = shares(fig1, "paper", 10)
    assert sorted(run.id for part in parts for run in part) == sorted(whole)
    nowhere = Path(os.devnull)
    costs = [sum(Timings(nowhere, Machine(nowhere)).seconds(run) for run in part) for part in parts]
    assert max(costs) < 1.01 * min(costs)


def test_more_parts_than_runs_are_empty(small: Path) -> None:
    parts = shares(small, "quick", 20)
    assert sorted(map(len, parts)) == [0] * 12 + [1] * 8


def test_parts_do_not_depend_on_what_is_finished_or_on_earlier_times(
    fedrepro: Call, small: Path, tmp_path: Path
) -> None:
    before = [sorted(run.id for run in part) for part in shares(small, "quick", 3)]
    fedrepro("run", small, "--part", "2/3", "-q", "-j", 1)
    store = tmp_path / "results" / ".runs"
    assert sorted(path.stem for path in store.glob("*/*.npz")) == before[1]
    (store / "timings.json").write_text("{}")
    (Path(os.environ["FEDREPRO_DATA"]) / ".speed.json").write_text("{}")
    assert [sorted(run.id for run in part) for part in shares(small, "quick", 3)] == before


def test_parts_in_any_order_and_one_killed_give_the_bytes_of_one_command(
    fedrepro: Call, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, split = tmp_path / "whole", tmp_path / "split"
    assert fedrepro("run", small, *WORDS, "--results", whole).exit_code == 0
    parts = {3: "3/3", 1: "1/3"}
    for part in parts.values():
        done = fedrepro("run", small, *WORDS, "--part", part, "--results", split)
        assert done.exit_code == 0, done.output
        assert re.match(rf"part {part}: \d+ runs? computed, 0 reused, 0 failed, ", done.stdout)
    assert not list(split.rglob("*.csv"))

    class Killed(BaseException):
        pass

    write = Store.write

    def second(self: Store, run: str, record: Record) -> None:
        if len(list(split.glob(".runs/*/*.npz"))) > before:
            raise Killed
        write(self, run, record)

    before = len(list(split.glob(".runs/*/*.npz")))
    monkeypatch.setattr(Store, "write", second)
    with pytest.raises(Killed):
        fedrepro("run", small, *WORDS, "--part", "2/3", "--results", split)
    monkeypatch.setattr(Store, "write", write)
    kept = len(list(split.glob(".runs/*/*.npz")))
    assert kept == before + 1
    again = fedrepro("run", small, *WORDS, "--part", "2/3", "--results", split)
    assert re.match(r"part 2/3: \d+ runs? computed, 1 reused", again.stdout)
    last = fedrepro("run", small, *WORDS, "--results", split)
    assert "0 runs computed, 12 reused" in last.output
    assert csv_of(split) == csv_of(whole)
    assert "finished, nothing to do" in fedrepro("run", small, *WORDS, "--part", "1/3", "--results", split).output


def test_the_last_command_computes_what_parts_have_not(fedrepro: Call, small: Path, tmp_path: Path) -> None:
    fedrepro("run", small, *WORDS, "--results", tmp_path / "whole")
    fedrepro("run", small, *WORDS, "--part", "1/3", "--results", tmp_path / "split")
    assert fedrepro("run", small, *WORDS, "--results", tmp_path / "split").exit_code == 0
    assert csv_of(tmp_path / "split") == csv_of(tmp_path / "whole")


def test_parts_at_the_same_time_wait_for_nobody(fedrepro: Call, small: Path, tmp_path: Path) -> None:
    results = tmp_path / "results"
    plan = planning.make([load(small, "quick")], stand_in=False)
    words = [sys.executable, "-c", CODE, "run", str(small), "-q", "-j", "1", "--results", str(results)]
    with runner._locks(plan, runner.Folders(results), quiet=True):  # as another command on the figure
        tasks = [subprocess.Popen([*words, "--part", f"{number}/2"]) for number in (1, 2)]
        assert [task.wait(timeout=300) for task in tasks] == [0, 0]
    assert not list((results / ".scratch").glob("part*"))
    assert "0 runs computed, 8 reused" in fedrepro("run", small, "-q").output


def test_a_part_reads_only_its_own_runs_from_results(fedrepro: Call, small: Path, tmp_path: Path) -> None:
    fedrepro("run", small, "-q", "-j", 1)
    before = csv_of(tmp_path / "results")
    for path in (tmp_path / "results" / ".runs").glob("*/*.npz"):
        path.unlink()
    part = fedrepro("run", small, "--part", "1/2", *WORDS)
    assert re.match(r"part 1/2: [1-6] runs? computed, [1-6] reused", part.stdout), part.output
    assert csv_of(tmp_path / "results") == before


@pytest.mark.parametrize("part", ["0/10", "11/10", "3", "3/0", "a/b", "-1/3", "1/10/2"])
def test_wrong_parts(fedrepro: Call, small: Path, part: str) -> None:
    said = fedrepro("run", small, f"--part={part}")
    assert said.exit_code == 2
    assert said.stderr == f"error: --part {part}: must be one of 1/N to N/N for N parts, for instance 3/10\n"


def test_a_part_goes_neither_to_a_scheduler_nor_into_a_picture(fedrepro: Call, small: Path) -> None:
    said = fedrepro("run", small, "--part", "1/2", "--plot").stderr
    assert said == "error: --part 1/2 cannot be combined with --plot: a part writes no results\n"
    said = fedrepro("run", small, "--part", "1/2", "--scheduler", "local:1").stderr
    assert said == "error: --part 1/2 cannot be combined with --scheduler: both divide the runs\n"


def test_the_job_script_of_the_page_is_valid(fedrepro: Call, small: Path, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "many-machines.md").read_text()
    (script,) = (text for text in re.findall(r"```bash\n(.*?)```", page, re.DOTALL) if "#SBATCH --array" in text)
    first, last = re.search(r"--array=(\d+)-(\d+)", script).groups()  # type: ignore[union-attr]
    (line,) = (line for line in script.splitlines() if "fedrepro run" in line)
    results = tmp_path / "results"
    for number in range(int(first), int(last) + 1):
        task = {**os.environ, "SLURM_ARRAY_TASK_ID": str(number), "SLURM_CPUS_PER_TASK": "1"}
        said = subprocess.run(
            ["bash", "-c", f"echo {line}"], env=task, capture_output=True, text=True, check=True
        ).stdout
        words = shlex.split(said.strip())
        own = [str(small) if word == "fedmf/fig1" else word for word in words[1:]]
        done = fedrepro(*own, "-q", "--results", results)
        assert done.exit_code == 0, done.output
        assert done.stdout.startswith(f"part {number}/{last}: ")
    end = fedrepro("run", small, "--tier", "paper", "-q", "--results", results)
    assert "0 runs computed, 12 reused" in end.output
