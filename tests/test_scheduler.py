"""Runs on a dask cluster of two worker processes: the same bytes, also where workers have no data or are lost."""

from __future__ import annotations

import functools
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import types
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from fedrepro import __version__, cpu
from fedrepro.data import imports
from fedrepro.data.data_home import home
from fedrepro.errors import UserError
from fedrepro.runs.compute import execute
from fedrepro.runs.identity import plan as planning
from fedrepro.runs.storage.store import Store
from fedrepro.runs.workers import remote, task
from fedrepro.spec.read import load
from tests import data_copies

distributed = pytest.importorskip("distributed")
pytestmark = [pytest.mark.network, pytest.mark.slow]

Call = Callable[..., Result]
CSV = Path("quick", "beyond", "small.csv")

DEADLY = """
import os, pathlib, time
from fedrepro.problems.clustering.methods.fedmgs import FedMGS
flag = pathlib.Path({flag!r})

def deadly(self, *given, rounds=FedMGS.rounds, **named):
    if flag.exists() and self.m == 2:
        if flag.read_text() == "end":
            time.sleep(0.5)  # a worker that ends before its nanny has seen it start is not started again
            os._exit(1)
        [][1]
    return rounds(self, *given, **named)

if FedMGS.rounds.__name__ != "deadly":  # dask loads this twice
    FedMGS.rounds = deadly
"""


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the workers' files; FedMGS with m = 2 fails, or ends its worker, depending on the file ``flag``."""
    return tmp_path_factory.mktemp("workers")


@pytest.fixture(scope="module")
def cluster(house: Path) -> Iterator[Any]:
    """Two workers that restart when they are lost. Their data home is empty; a task is given up when one is lost."""
    import dask

    (house / "deadly.py").write_text(DEADLY.format(flag=str(house / "flag")), encoding="utf-8")
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            memory_limit=0,
            dashboard_address="127.0.0.1:0",
            local_directory=str(house),
            silence_logs=remote.SILENT,
            preload=[str(house / "deadly.py")],
            env={"FEDREPRO_DATA": str(house / "data")},
        ) as local,
    ):
        yield local


@pytest.fixture
def ask(cluster: Any) -> Iterator[Any]:
    """A client of the cluster, once both workers are there, with nothing in the places where they share arrays."""
    with distributed.Client(cluster, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=60)
        yield client


@pytest.fixture
def images(small: Path, tmp_path: Path) -> Path:
    """The small spec on images that this data home has."""
    imports.adopt("mnist", [data_copies.mnist(tmp_path / "copy", n=120, train=True)])
    text = small.read_text(encoding="utf-8")
    text = text.replace("{name: synthetic, variant: clean, M: 12, N: 60, K: 3}", "{name: mnist, n: 100}")
    small.write_text(text, encoding="utf-8")
    return small


@pytest.fixture
def packed(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders of arrays that were packed to be sent."""
    folders: list[Path] = []
    pack = task.pack

    def noted(folder: Path) -> bytes:
        folders.append(folder)
        return pack(folder)

    monkeypatch.setattr(task, "pack", noted)
    return folders


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each run came to the store."""
    counts: Counter[str] = Counter()
    write = Store.write

    def noted(self: Store, run: str, record: Any) -> None:
        counts[run] += 1
        write(self, run, record)

    monkeypatch.setattr(Store, "write", noted)
    return counts


def csv(root: Path, folder: str = "results") -> bytes:
    return (root / folder / CSV).read_bytes()


def home_of_workers(client: Any, place: Path) -> None:
    client.run(lambda value: os.environ.update(FEDREPRO_DATA=value), str(place))


# -- the same bytes ----------------------------------------------------------------------------------------------------


def test_the_same_bytes_as_here_with_arrays_sent_once_or_made_there(
    fedrepro: Call,
    images: Path,
    tmp_path: Path,
    cluster: Any,
    ask: Any,
    house: Path,
    packed: list[Path],
) -> None:
    here = fedrepro("run", images, "--jobs", 1, "--results", tmp_path / "here")
    assert here.exit_code == 0, here.output
    sent = fedrepro("run", images, "--scheduler", cluster.scheduler_address)
    assert sent.exit_code == 0, sent.output
    assert "8 runs computed, 0 reused, 0 failed" in sent.output
    assert csv(tmp_path) == csv(tmp_path, "here")
    assert len(packed) == 1
    assert (house / "dask-scratch-space" / "fedrepro" / packed[0].name / "problem.json").exists()
    home_of_workers(ask, home())
    made = fedrepro("run", images, "--scheduler", cluster.scheduler_address, "--set", "datasets.syn.n=90", "--jobs", 1)
    home_of_workers(ask, house / "data")
    assert made.exit_code == 0, made.output
    assert len(packed) == 1
    fedrepro("run", images, "--jobs", 1, "--set", "datasets.syn.n=90", "--results", tmp_path / "ninety")
    own = "set/datasets.syn.n=90"
    assert csv(tmp_path, f"results/{own}") == csv(tmp_path, f"ninety/{own}") != csv(tmp_path, "here")


def test_of_another_copy_a_worker_makes_nothing(images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = planning.make([load(images, "quick", ())], stand_in=False)
    run = next(iter(made.runs.values()))
    (source,) = made.sources.values()
    job = task.Job([run], source.fingerprint, None)
    assert task._at_hand(job, tmp_path / "scratch")
    other = tmp_path / "other"
    monkeypatch.setenv("FEDREPRO_DATA", str(other))
    assert not task._at_hand(job, tmp_path / "scratch")
    imports.adopt("mnist", [data_copies.mnist(tmp_path / "more", n=110, train=True)])
    assert not task._at_hand(job, tmp_path / "scratch")
    monkeypatch.undo()


def test_a_packed_problem_is_the_same_where_it_is_unpacked(small: Path, tmp_path: Path) -> None:
    run = next(iter(planning.make([load(small, "quick", ())], stand_in=False).runs.values()))
    folder = execute.prepare(run, tmp_path / "a")
    arrays = task.pack(folder)
    for _ in range(2):  # a second worker of the machine finds it there
        task.unpack(arrays, tmp_path / "b", run.problem_id)
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == {
        p.name: p.read_bytes() for p in (tmp_path / "b" / run.problem_id).iterdir()
    }


def test_a_cluster_of_its_own_leaves_nothing_but_results(small: Path, tmp_path: Path, fedrepro: Call) -> None:
    fedrepro("run", small, "--jobs", 1, "--results", tmp_path / "here")
    environment = {**os.environ, "HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path / "tmp")}
    for name in ("home", "tmp", "cwd"):
        (tmp_path / name).mkdir()
    command = [sys.executable, "-m", "fedrepro", "run", str(small), "--scheduler", "local:2", "--results"]
    done = subprocess.run(
        [*command, str(tmp_path / "results")], capture_output=True, text=True, env=environment, cwd=tmp_path / "cwd"
    )
    assert done.returncode == 0, done.stderr
    assert "8 runs computed" in done.stdout
    assert csv(tmp_path) == csv(tmp_path, "here")
    assert [path for name in ("home", "tmp", "cwd") for path in (tmp_path / name).rglob("*")] == []
    assert not list((tmp_path / "results" / ".scratch").glob("dask-*"))


# -- loss --------------------------------------------------------------------------------------------------------------


def test_a_lost_worker_loses_only_its_runs_in_flight(
    fedrepro: Call,
    images: Path,
    tmp_path: Path,
    cluster: Any,
    ask: Any,
    written: Counter[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(remote, "LOOK", 0.05)
    images.write_text(images.read_text().replace("rounds: 5", "rounds: 200").replace("trials: 2", "trials: 4"))
    fedrepro("run", images, "--jobs", 1, "--results", tmp_path / "here")
    written.clear()
    pids = ask.run(os.getpid)

    over = threading.Event()

    def kill() -> None:
        while not written and not over.is_set():  # a run that fails at once writes nothing
            time.sleep(0.01)
        os.kill(next(iter(pids.values())), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    ran = fedrepro("run", images, "--scheduler", cluster.scheduler_address, "--jobs", 4)
    over.set()
    killer.join()
    assert ran.exit_code == 0, ran.output
    assert f"the worker {next(iter(pids))} is lost; its runs are tried again" in ran.output
    assert "16 runs computed, 0 reused, 0 failed" in ran.output
    assert csv(tmp_path) == csv(tmp_path, "here")
    assert set(written.values()) == {1}


def test_what_ends_every_worker_is_a_recorded_failure_and_so_is_an_error(
    fedrepro: Call, small: Path, cluster: Any, ask: Any, house: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "TRIES", 2)
    address = cluster.scheduler_address
    for word, counted, why in (
        ("end", "6 runs computed, 0 reused, 2 failed", "its worker was lost [2-6] times"),
        ("raise", "0 runs computed, 6 reused, 2 failed", "IndexError: list index out of range"),
    ):
        ask.wait_for_workers(2, timeout=60)  # the command itself would wait for ever
        (house / "flag").write_text(word)
        try:
            ran = fedrepro("run", small, "--scheduler", address, "--jobs", 8)
        finally:
            (house / "flag").unlink()
        assert ran.exit_code == 1, ran.output
        assert counted in ran.output
        assert len(re.findall(f"failed: {why}", ran.stderr)) == 2
    assert "2 runs computed, 6 reused, 0 failed" in fedrepro("run", small, "--scheduler", address).output


def test_a_call_interrupted_before_it_began_logs_nothing(
    ask: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """distributed then cancels a future that is not there yet, and tornado would log that."""
    from distributed import utils

    class Cut(threading.Event):
        def is_set(self) -> bool:
            return False  # however soon the call is done, it is waited for

        def wait(self, timeout: float | None = None) -> bool:
            raise KeyboardInterrupt

    async def nothing() -> None: ...

    def event() -> threading.Event:
        return Cut() if threading.get_ident() == here else threading.Event()

    remote._library()
    here = threading.get_ident()
    with monkeypatch.context() as during:
        during.setattr(utils, "threading", types.SimpleNamespace(Event=event, get_ident=threading.get_ident))
        with pytest.raises(KeyboardInterrupt):
            utils.sync(ask.loop, nothing)
    utils.sync(ask.loop, nothing)  # the cancelling has had its turn
    assert [record.name for record in caplog.records] == []


def test_interrupted_it_keeps_what_is_finished_and_frees_the_workers(
    fedrepro: Call, small: Path, tmp_path: Path, cluster: Any, ask: Any
) -> None:
    small.write_text(small.read_text().replace("rounds: 5", "rounds: 1500").replace("trials: 2", "trials: 4"))
    command = [sys.executable, "-m", "fedrepro", "run", str(small), "--results", str(tmp_path / "results"), "--quiet"]
    # a shell's background job ignores the signal, and its children would inherit that
    heed = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    process = subprocess.Popen(
        [*command, "--jobs", "8", "--scheduler", cluster.scheduler_address], stderr=subprocess.PIPE, preexec_fn=heed
    )
    while not list(tmp_path.glob("results/.runs/*/*.npz")) and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert b"interrupted: finished runs are kept" in errors
    assert b"Traceback" not in errors
    assert 1 <= len(list(tmp_path.glob("results/.runs/*/*.npz"))) < 16
    began = time.monotonic()
    while any(ask.run(lambda dask_worker: len(dask_worker.state.tasks)).values()):
        assert time.monotonic() - began < 20, "the workers go on"
        time.sleep(0.1)


# -- who takes part ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("late", [False, True])
def test_workers_with_another_program_are_told(
    fedrepro: Call, small: Path, cluster: Any, ask: Any, late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task, "__version__", "0.0.9")
    task._program.cache_clear()
    if late:  # one that was not there when the others were asked
        monkeypatch.setattr(remote.Cluster, "_admit", lambda *_: None)
    try:
        ran = fedrepro("run", small, "--scheduler", cluster.scheduler_address)
    finally:
        task._program.cache_clear()
    assert ran.exit_code == 2, ran.output
    (code,) = set(re.findall(r"code (\w{12})", ran.stderr))
    assert re.search(
        r"error: the worker tcp://\S+ does not run the same program; install the same there and start the worker "
        r"again\n"
        rf"  here:  fedrepro 0\.0\.9, code {code}, .*\n  there: fedrepro {__version__}, code {code}, .*\n",
        ran.stderr,
    )
    assert not list(small.parent.glob("results/.runs/*/*.npz"))


def test_what_makes_two_programs_different(small: Path) -> None:
    runs = planning.make([load(small, "quick", ())], stand_in=False).runs.values()
    names = task.parts(runs)
    assert names == [
        ["dataset", "synthetic"], ["method", "fedcavg"], ["method", "fedcgds"], ["partition", "uniform"],
        ["problem", "clustering"],
    ]  # fmt: skip
    assert task.program(names) != task.program(names[1:])
    assert task.program([*names, ["method", "newer"]]) == f"fedrepro {__version__} without the method newer"
    task.fit("tcp://w:1", 1, "a", "a")
    with pytest.raises(UserError, match=r"the worker tcp://w:1 has 4 threads, .* `--nthreads 1 --nworkers 4`"):
        task.fit("tcp://w:1", 4, "a", "a")


@pytest.mark.parametrize("late", [False, True])
def test_workers_without_the_program_are_told_and_live(
    fedrepro: Call, small: Path, cluster: Any, ask: Any, late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if late:
        monkeypatch.setattr(remote.Cluster, "_admit", lambda *_: None)
    before = ask.nthreads()
    ask.run(lambda: sys.modules.update({"fedrepro.runs.workers.task": None}))  # importing it fails
    try:
        ran = fedrepro("run", small, "--scheduler", cluster.scheduler_address)
    finally:
        ask.run(lambda: sys.modules.pop("fedrepro.runs.workers.task"))
    assert ran.exit_code == 2, ran.output
    assert re.search(r"error: (the worker tcp://\S+|a worker) cannot load this program \(.*runs\.workers", ran.stderr)
    assert f"install the same there\n  here:  fedrepro {__version__}, code " in ran.stderr
    assert ask.nthreads() == before


def test_a_worker_started_by_hand_asks_for_the_level_and_the_others_are_told_of(
    fedrepro: Call, small: Path, cluster: Any, ask: Any, house: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = {name: value for name, value in os.environ.items() if name not in (*cpu.PINNED, "XLA_FLAGS", cpu.VARIABLE)}
    before = set(ask.nthreads())
    command = [sys.executable, "-m", "fedrepro.runs.worker", cluster.scheduler_address]
    with subprocess.Popen(
        [*command, "--no-nanny", "--local-directory", str(house / "own")], stderr=subprocess.PIPE, env=free
    ) as worker:
        try:
            ask.wait_for_workers(3, timeout=60)
            (address,) = set(ask.nthreads()) - before
            assert ask.nthreads()[address] == 1
            asked = ask.run(task.facts, [])
            limit = ask.run(lambda dask_worker: dask_worker.memory_manager.memory_limit, workers=[address])
        finally:
            worker.terminate()
            worker.communicate(timeout=30)
            while len(ask.nthreads()) > len(before):
                time.sleep(0.05)
    level = f"the instruction level {cpu.LEVEL} is not set"
    assert not cpu.available() or not any(level in doubt for doubt in asked[address]["doubts"])
    assert limit == {address: None}
    unpinned = [a for a, said in asked.items() if any(level in doubt for doubt in said["doubts"])]
    monkeypatch.setattr(cpu, "doubts", lambda: iter(()))
    ran = fedrepro("run", small, "--scheduler", cluster.scheduler_address)
    assert ran.exit_code == 0, ran.output
    assert (f"note: on {len(unpinned)} of 2 workers: {level}" in ran.stderr) == bool(unpinned)


# -- asking for it -----------------------------------------------------------------------------------------------------


def test_without_the_extra_one_line_says_how_to_get_it(
    fedrepro: Call, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    ran = fedrepro("run", small, "--scheduler", "local:2")
    assert ran.exit_code == 2
    said = ran.stderr.splitlines()  # before it a note where the kernels are not those that are pinned
    assert said[-1] == 'error: --scheduler needs dask.distributed: pip install "fedrepro[distributed]"'
    assert len(said) == 1 or (len(said) == 2 and said[0].startswith("note: the instruction level"))


def test_addresses_where_nobody_answers(fedrepro: Call, small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "CONNECT", 0.5)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        closed = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    for address in (closed, "ftp://127.0.0.1:1", "127.0.0.1", "tcp://127.0.0.1"):
        ran = fedrepro("run", small, "--scheduler", address)
        assert ran.exit_code == 2, ran.output
        assert f"error: --scheduler {address}: no scheduler answers there (" in ran.stderr
    for address in ("local:0", "local:many", "local:"):
        ran = fedrepro("run", small, "--scheduler", address)
        assert ran.exit_code == 2, ran.output
        assert f"error: --scheduler {address}: local:N starts N worker processes here" in ran.stderr
