"""Shared pieces of the tests: an empty data home, small specs, and the command line run in this process."""

from __future__ import annotations

import gc
import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import settings

from fedrepro import processes
from fedrepro.runs.workers import programs
from fedrepro.spec import read
from fedrepro.spec.error_collector import Collector
from fedrepro.spec.model import Figure
from fedrepro.spec.nodes import Node

ROOT = Path(__file__).parents[1]

# The same examples in every run, so that a failure is caused by a change of the code.
settings.register_profile("same", derandomize=True, deadline=None)
settings.load_profile("same")

# Libraries and collected tests are millions of objects, which the collector would look through hundreds of times.
gc.set_threshold(200_000, 50, 100)

# Networks of the tests are small and compiled often: a compiler that optimises less takes three quarters of the time.
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")

# Without fused loops, compiling takes a third of the time. A release that does not know this flag ends the process.
if find_spec("jaxlib") is not None and version("jaxlib").startswith("0.10."):
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_use_fusion_emitters=false".strip()


def _in_memory() -> None:
    """Keep temporary files in memory, if there is room: on a disk all tests take 231 s, so 198 s."""
    folder, facts = Path("/dev/shm"), Path("/proc/meminfo")
    if "TMPDIR" in os.environ or not (folder.is_dir() and os.access(folder, os.W_OK) and facts.exists()):
        return
    memory = next(int(line.split()[1]) for line in facts.read_text().splitlines() if line.startswith("MemAvailable"))
    programs_run = not os.statvfs(folder).f_flag & os.ST_NOEXEC  # tests write programs too
    if programs_run and min(1024 * memory, shutil.disk_usage(folder).free) > 4 << 30:  # they need 0.4 GB
        os.environ["TMPDIR"] = str(folder)
        tempfile.tempdir = None  # pytest has asked for the folder before this file is read


_in_memory()

# What was compiled is kept for later sessions, which take half the time for networks.
os.environ.update(programs.shared(ROOT / ".pytest_cache"))


processes.remember_libraries()


def _specs_read_once() -> None:
    """Keep what the project's own specs say for all tests, because reading all of them takes a second."""
    read_figure, own = read._figure, ROOT / "experiments"
    figures: dict[tuple[str, str, int], tuple[Node, Figure]] = {}

    def figure(collect: Collector, root: Node, tier: str, sets: Sequence[str]) -> Figure:
        if sets or not Path(collect.path).resolve().is_relative_to(own):
            return read_figure(collect, root, tier, sets)
        key = collect.path, tier, id(root)
        if key not in figures:
            figures[key] = root, read_figure(collect, root, tier, sets)  # keeps the root, so that no other gets its id
        return figures[key][1]

    read._figure = figure


_specs_read_once()

SMALL = """\
paper: beyond
figure: small
title: "a small figure"
problem: {name: clustering}
trials: 2
rounds: 5
datasets:
  syn: {name: synthetic, variant: clean, M: 12, N: 60, K: 3}
partitions:
  unf: {name: uniform, P: 6}
dataset: syn
partition: unf
panels:
  a:
    title: "left"
    yscale: log
    curves:
      - {algorithm: fedcavg, Q1: 2, Q2: [1, 5]}
      - {algorithm: fedcgds, zip: {m: [2, 6], Q1: [3, 2]}, Q2: 4}
  b: {like: a, x: uplink_scalars}
claims:
  - id: small.1
    says: "more local steps help"
    where: "nowhere"
    panel: a
    check: y(at='end', algorithm='fedcavg', Q2=5) < y(at='end', algorithm='fedcavg', Q2=1)
tiers:
  smoke: {rounds: 2}
  quick: {}
  paper: {trials: 3}
"""


PROGRAMS = ".programs"
"""The folder of a data home with copies of the program."""

LONGEST = (
    "tutorial", "contracts", "snapshot", "run", "workers", "scheduler", "plotting", "report", "personal_net",
    "personal_methods", "asking", "examples", "identity", "docstrings", "settings", "lock",
)  # fmt: skip
"""The slowest files run first, so that two processes end at about the same time."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the slowest files first. With ``FUZZ_PART`` from 0 to 3, run only a quarter of the fuzz tests."""
    first = {f"test_{name}.py": place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: first.get(item.path.name, len(first)))
    if part := os.environ.get("FUZZ_PART"):
        fuzz = [item for item in items if item.get_closest_marker("fuzz")]
        left_out = {item.nodeid for place, item in enumerate(fuzz) if place % 4 != int(part)}
        items[:] = [item for item in items if item.nodeid not in left_out]


def pytest_collection_finish() -> None:
    """Exempt libraries and collected tests from all later garbage collections."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def program_copies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copies of the program that commands run from: compiled once for all tests."""
    return tmp_path_factory.mktemp("programs")


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory, program_copies: Path) -> Iterator[Path]:
    """Data homes of tests. As long as no test writes into a home, the next test gets the same one.

    Making and removing one for each of thousands of tests would take seconds.
    """
    folder = tmp_path_factory.mktemp("data-homes")

    def empty() -> Iterator[Path]:
        for number in itertools.count():
            home = folder / str(number)
            home.mkdir()
            (home / PROGRAMS).symlink_to(program_copies)
            while os.listdir(home) == [PROGRAMS]:
                yield home

    return empty()


@pytest.fixture(autouse=True)
def data_home(homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test starts without any dataset or any spec of a user's own, whatever lies here or on the machine."""
    home = next(homes)
    monkeypatch.setenv("FEDREPRO_DATA", str(home))
    if Path.cwd() == ROOT:  # and in no folder that its module has made
        monkeypatch.chdir(home)
    monkeypatch.setattr("os.getloadavg", lambda: (0.0, 0.0, 0.0))  # of the machine that runs the tests
    for name in ("NO_COLOR", "FORCE_COLOR"):  # of who runs the tests
        monkeypatch.delenv(name, raising=False)
    return home


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are read in this process, for tests that change what reads them."""
    monkeypatch.setattr("fedrepro.data.isolated.call", lambda function, *given, what, memory: function(*given))


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A spec that runs in a moment."""
    path = tmp_path / "small.yaml"
    path.write_text(SMALL, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the first test of a module that computes with ``once`` leaves its results for the others."""
    return tmp_path_factory.mktemp("kept") / "results"


def once(kept: Path, results: Path, compute: Callable[[], Result]) -> None:
    """Compute results, or copy those that the same call has computed before."""
    if kept.exists():
        shutil.copytree(kept, results)
        return
    done = compute()
    assert done.exit_code == 0, done.output
    shutil.copytree(results, kept)


@pytest.fixture
def fedrepro(tmp_path: Path) -> Callable[..., Result]:
    """Call the command line: ``fedrepro("run", spec)``; results and plots go to the test's folder."""
    from fedrepro.cli.main import main

    def call(*arguments: object) -> Result:
        words = [str(a) for a in arguments]
        if words[0] in ("run", "plan", "plot", "verdict", "show", "settings") and "--results" not in words:
            words += ["--results", str(tmp_path / "results")]
        if ("--plot" in words or words[0] == "plot") and "--plots" not in words:
            words += ["--plots", str(tmp_path / "plots")]
        return CliRunner().invoke(main, words)

    return call
