"""Processes that die, interrupted commands, and what both leave behind."""

from __future__ import annotations

import collections
import functools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from click.testing import Result

from fedrepro import files, processes
from fedrepro.errors import UserError
from fedrepro.runs import runner
from fedrepro.runs.identity import plan as planning
from fedrepro.runs.storage.store import Store
from fedrepro.runs.workers import local, task

from .dying_worker import die, dying

Call = Callable[..., Result]


def children(pid: int) -> set[int]:
    """The processes that a process has started, and that are no zombies."""
    pids = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = path.read_text().rpartition(")")
        except OSError:
            continue
        state, parent = rest.split()[:2]
        if int(parent) == pid and state != "Z":
            pids.add(int(name.split()[0]))
    return pids


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.slow
def test_a_worker_that_dies_is_a_run_that_failed_and_the_others_go_on(
    fedrepro: Call, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(small.read_text().replace("figure: small", "figure: other").replace("M: 12", "M: 11"))
    other.write_text(other.read_text().replace("m: [2, 6]", "m: [3, 6]").replace("small.1", "other.1"))
    monkeypatch.setattr(local, "attempt", functools.partial(dying, "SIGKILL"))
    ran = fedrepro("run", small, other, "-j", 2)
    assert ran.exit_code == 1, ran.output
    assert isinstance(ran.exception, SystemExit)
    assert "15 runs computed, 0 reused, 1 failed" in ran.output
    said = "failed: its process was killed (SIGKILL): most likely the memory was full; the same command"
    assert "fedcgds m=2 Q1=3 Q2=4 @ syn / unf, trial 1: " + said in ran.stderr
    assert "beyond/other (quick): complete" in ran.output
    frame = pd.read_csv(tmp_path / "results" / "quick" / "beyond" / "small.csv")
    failed = frame[frame["status"] == "failed"]
    assert list(zip(failed["series"], failed["trial"], strict=True)) == [("fedcgds m=2 Q1=3 Q2=4 @ syn / unf", 1)]
    monkeypatch.undo()
    assert "1 run computed, 15 reused, 0 failed" in fedrepro("run", small, other, "-j", 1).output


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("SIGSEGV", "failed: its process crashed (SIGSEGV): a library crashed in it, or the memory was full; the same"),
        ("exit", "failed: its process ended with exit code 3: a library crashed in it"),
    ],
)
def test_one_worker_with_long_work_is_a_process_of_its_own(
    fedrepro: Call, small: Path, monkeypatch: pytest.MonkeyPatch, how: str, said: str
) -> None:
    monkeypatch.setattr(runner, "SOON", 0.0)
    monkeypatch.setattr(local, "attempt", functools.partial(dying, how))
    ran = fedrepro("run", small, "-j", 1)
    assert ran.exit_code == 1, ran.output
    assert isinstance(ran.exception, SystemExit)
    assert "7 runs computed, 0 reused, 1 failed" in ran.output
    assert "fedcgds m=2 Q1=3 Q2=4 @ syn / unf, trial 1: " + said in ran.stderr


def test_what_a_process_died_of_is_said_with_what_to_do() -> None:
    died = (
        "A worker process managed by the executor was unexpectedly terminated. The exit codes of the workers are {%s}"
    )
    for code, said in (
        ("SIGKILL(-9)", "was killed (SIGKILL): most likely the memory was full; the same command tries it again; fewer "
         "workers (--jobs), or as many as fit into --memory, leave more to each"),
        ("SIGBUS(-7)", "crashed (SIGBUS): most likely the disk is full, or a file it had mapped was cut; free"),
        ("SIGTERM(-15)", "was killed (SIGTERM): another process or user ended it; the same command tries it again"),
        ("SIGABRT(-6)", "crashed (SIGABRT): a library crashed in it"),
        ("EXIT(1)", "ended with exit code 1: a library crashed in it"),
        ("", "ended: a library crashed in it"),
    ):  # fmt: skip
        assert processes.reason(RuntimeError(died % code)).startswith(said)


@pytest.mark.slow
def test_a_process_that_dies_as_it_draws_is_an_error_in_words() -> None:
    with pytest.raises(UserError, match=r"a process of this command was killed \(SIGKILL\): most likely the memory"):
        list(processes.parallel_map(die, ["SIGKILL", "SIGKILL"], 2))


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
def test_an_error_in_one_of_many_items_ends_all_processes(tmp_path: Path) -> None:
    fails = f"open({str(tmp_path)!r} + '/' + str(__import__('os').getpid()), 'w').close() or 1 / 0"
    with pytest.raises(ZeroDivisionError):
        list(processes.parallel_map(eval, [fails] * 40, 2))
    wait_until_gone({int(path.name) for path in tmp_path.iterdir()})


def test_the_results_of_many_items_come_in_their_order() -> None:
    slow = [f"__import__('time').sleep(0.2) or {number}" for number in (0, 21)]
    assert list(processes.parallel_map(eval, [slow[0], *map(str, range(1, 21)), slow[1]], 2)) == list(range(22))


REMEMBERS = """
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits
from fedrepro import processes

looked = []
load = ThreadpoolController._load_libraries
ThreadpoolController._load_libraries = lambda self: looked.append(1) or load(self)
processes.remember_libraries()
assert threadpool_info() == threadpool_info() == []
import numpy.linalg

before = {of["filepath"]: of["num_threads"] for of in threadpool_info()}
with threadpool_limits(limits=1):
    assert before and {of["num_threads"] for of in threadpool_info()} == {1}
assert {of["filepath"]: of["num_threads"] for of in threadpool_info()} == before
print(len(looked))
"""


def test_libraries_are_looked_for_once_and_again_after_an_import() -> None:
    told = subprocess.run([sys.executable, "-c", REMEMBERS], capture_output=True, text=True, timeout=60, check=False)
    assert (told.stdout, told.stderr) == ("2\n", "")


def test_a_worker_sets_loaded_libraries_aside_and_still_collects_garbage() -> None:
    counts = "(lambda gc: (gc.collect(), gc.get_freeze_count()))(__import__('gc'))"
    leaves = "(lambda loop: loop.append(loop))([]) or __import__('gc').collect()"
    (_, first), (_, then), found = processes.parallel_map(eval, [counts, counts, leaves], 2)
    assert first > 1000
    assert then > 1000
    assert found >= 1


def wait_until_gone(workers: set[int]) -> None:
    deadline = time.monotonic() + 20
    while any(map(alive, workers)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not [pid for pid in workers if alive(pid)]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize("how", ["SIGKILL", "SIGHUP", "SIGTERM"])
def test_no_worker_outlives_its_command(small: Path, tmp_path: Path, how: str) -> None:
    spec = tmp_path / "long.yaml"
    spec.write_text(small.read_text().replace("rounds: 5", "rounds: 20000").replace("trials: 2", "trials: 8"))
    command = [sys.executable, "-m", "fedrepro", "run", str(spec), "--quiet", "-j", "2", "--results", str(tmp_path)]
    heed = functools.partial(signal.signal, getattr(signal, how), signal.SIG_DFL) if how != "SIGKILL" else None
    process = subprocess.Popen(command, stderr=subprocess.PIPE, preexec_fn=heed)
    while len(started := children(process.pid)) < 2 and process.poll() is None:
        time.sleep(0.05)
    while not any(tmp_path.glob(".scratch/*/problem.json")) and process.poll() is None:
        time.sleep(0.05)
    started |= children(process.pid)
    assert len(started) >= 2
    process.send_signal(getattr(signal, how))
    errors = process.communicate(timeout=60)[1]
    assert process.returncode == (-signal.SIGKILL if how == "SIGKILL" else 130)
    assert b"Traceback" not in errors
    if how != "SIGKILL":
        assert b"interrupted: finished runs are kept" in errors
    wait_until_gone(started)


ASKING = """
import threading, time
from fedrepro import processes

def ask(after):
    time.sleep(after)
    processes.pool(1).shutdown()

threads = [threading.Thread(target=ask, args=(i / 200,)) for i in range(40)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_threads_that_ask_for_processes_in_turn_all_get_them() -> None:
    # without turns, a thread that comes while another imports joblib finds half of it: in 5 of 5 processes
    told = subprocess.run([sys.executable, "-c", ASKING], capture_output=True, text=True, timeout=60, check=False)
    assert told.stderr == ""


HELD: list[bytearray] = []


def keep(size: int, after: float) -> int:
    """Hold ``size`` bytes from now on, and return the number of this process."""
    time.sleep(after)
    HELD.append(bytearray(b"1") * size)
    return os.getpid()


@pytest.mark.parametrize(("size", "stays"), [(processes.GROWN // 2, True), (processes.GROWN + (1 << 26), False)])
def test_a_worker_is_replaced_only_if_it_has_grown_by_a_gigabyte(size: int, stays: bool) -> None:
    pool = processes.pool(1)
    try:
        # joblib measures after the first task, and then at most once a second
        pids = [pool.submit(keep, *task).result() for task in ((1, 0.0), (size, 1.1), (1, 0.0))]
        assert (pids[0] == pids[2]) is stays
    finally:
        pool.shutdown(wait=False, kill_workers=True)


def group(problem_id: str, problem: str, method: str) -> Any:
    return [SimpleNamespace(problem_id=problem_id, setting=SimpleNamespace(problem=problem, algorithm=method))]


def test_a_process_asked_for_as_the_command_ends_is_ended_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sweep = local._Sweep(collections.deque([group("a", "personal", "ditto")]), Store(tmp_path), tmp_path)
    asked = processes.pool

    def late(*given: object) -> object:
        sweep.stop()  # which finds none to end
        return asked(*given)

    monkeypatch.setattr(processes, "pool", late)
    sweep.work()
    assert "cannot schedule new futures after shutdown" in str(sweep.outcomes.get_nowait())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_process_that_a_method_forks_ends_as_if_there_were_no_handler() -> None:
    with runner._interruptible():
        child = os.fork()
        if not child:
            try:
                os.kill(os.getpid(), signal.SIGTERM)
                time.sleep(10)
            finally:
                os._exit(3)  # the handler has raised
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGTERM


def test_interrupted_before_anything_is_computed(fedrepro: Call, small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(planning, "make", interrupted)
    for command in ("run", "plan"):
        result = fedrepro(command, small)
        assert (result.exit_code, result.stderr) == (130, "interrupted: finished runs are kept\n")


def test_what_killed_processes_left_is_gone_after_the_next_run(fedrepro: Call, small: Path, tmp_path: Path) -> None:
    fedrepro("run", small, "-j", 1)
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    me = files.me()
    dead, living = me.replace(str(os.getpid()), str(gone.pid)), me.replace(str(os.getpid()), str(os.getppid()))
    elsewhere = f"{gone.pid}-00000000"
    results = tmp_path / "results"
    record = next(results.glob(".runs/*/*.npz"))
    csv = results / "quick" / "beyond" / "small.csv"
    left, kept = [], []
    for path in (record, csv, results / ".runs" / "timings.json"):
        left.append(path.with_name(f".{path.name}.{dead}.0123abcd.part"))
        kept += [path.with_name(f".{path.name}.{who}.0123abcd.part") for who in (living, elsewhere)]
    scratch = results / ".scratch"
    left += [scratch / f".0123456789abcdef01234567.{gone.pid}", scratch / f"dask-.{dead}.abc"]
    held = scratch / f".fedcba9876543210fedcba98.{gone.pid}"
    kept.append(held)
    for path in (*left, *kept):
        path.mkdir() if path.parent == scratch else path.write_bytes(b"half")
    with task.FileLock(scratch / "fedcba9876543210fedcba98.lock"):  # somebody is making it
        code = "from fedrepro.cli import main; main.main()"
        words = ["run", str(small), "-j", "1", "--quiet", "--set", "trials=3", "--results", str(results)]
        subprocess.run([sys.executable, "-c", code, *words], check=True, capture_output=True)
    assert not [path for path in left if path.exists()]
    assert not [path for path in kept if not path.exists()]


def test_only_the_last_of_several_commands_removes_their_arrays(fedrepro: Call, small: Path, tmp_path: Path) -> None:
    scratch = tmp_path / "results" / ".scratch"
    with task.sharing(scratch) as done, task.sharing(scratch):  # two other commands
        assert fedrepro("run", small, "-j", 1).exit_code == 0
        kept = list(scratch.glob("*/problem.json"))
        assert kept
        (scratch / "mine").mkdir()
        (scratch / "unfinished").mkdir()
        done.add("mine")
    assert sorted(path.name for path in scratch.iterdir() if path.suffix != ".lock") == ["unfinished"]
    stale = scratch / task.IN_USE
    os.utime(stale, (0, 0))
    task.evict(scratch)
    assert stale.exists()


def test_runs_of_a_group_that_dies_are_tried_one_by_one(tmp_path: Path) -> None:
    class Run:
        def __init__(self, id_: str) -> None:
            self.id = id_

    sweep = local._Sweep(local.deque(), Store(tmp_path), tmp_path)
    group = [Run("ab1"), Run("ab2")]
    assert sweep._lost(group, local.BrokenProcessPool("SIGKILL(-9)")) == []  # type: ignore[arg-type]
    assert list(sweep.waiting) == [[group[0]], [group[1]]]


def test_a_process_prefers_work_that_needs_nothing_another_is_making(tmp_path: Path) -> None:
    first, same_data, same_problem = group("a", "personal", "ditto"), group("a", "x", "y"), group("b", "personal", "z")
    same_method, other, last = group("c", "x", "ditto"), group("d", "completion", "als"), group("a", "x", "ditto")
    groups = (first, same_data, same_problem, same_method, other, last)
    sweep = local._Sweep(local.deque(groups), Store(tmp_path), tmp_path)
    assert sweep._next() is first
    assert sweep._next() is other
    assert sweep._next() is same_data  # nothing else waits, and better than nothing
    sweep._ended(first)
    assert sweep._next() is same_problem  # its code is compiled now
    assert sweep._next() is same_method
    assert sweep._next() is last
    assert sweep._next() is None
