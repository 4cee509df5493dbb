"""Edits of the program while it computes: what runs is what was planned, and results name the code that made them.

Each test runs the command line from its own copy of the package. A hook in all of its processes edits the copy at a
given moment.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import fedrepro
from fedrepro import snapshot
from fedrepro.cli import main
from fedrepro.errors import UserError
from fedrepro.plotting import provenance
from fedrepro.report import site
from fedrepro.results.schema import Made, Sidecar

ROOT = Path(fedrepro.__file__).parent
METHOD = "problems/clustering/methods/fedmavg.py"
LAZY = "numerics/planted.py"
KERNEL = "compression/quantize.py"

SPEC = """
paper: beyond
figure: probe
title: "a probe"
problem: {name: clustering}
trials: 4
rounds: 3
dataset: {name: synthetic, variant: clean, N: 60, M: 12, K: 3}
partition: {name: uniform, P: 3}
panels:
  a:
    title: "a"
    curves:
      - {algorithm: fedmavg}
      - {algorithm: fedmavg, m: 2}
"""
QUANTIZED = SPEC.replace("{algorithm: fedmavg}", "{algorithm: fedmavg-quantized, q: 2}").replace(
    "trials: 4", "trials: 1"
)

HOOK = """
import os, subprocess, sys

MOMENTS = {
    "planned": lambda event, given: event == "import" and given[0] in ("joblib.externals.loky", "distributed"),
    "data made": lambda event, given: event == "open" and str(given[0]).endswith("problem.json"),
    "run stored": lambda event, given: event == "os.rename" and "/.runs/" in str(given[1]) and ".part" in str(given[0]),
}
moment = MOMENTS.get(os.environ.get("EDIT_AT"))

def hook(event, given):
    if moment is not None and event in ("import", "open", "os.rename") and moment(event, given):
        try:
            os.close(os.open(os.environ["EDIT_ONCE"], os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        subprocess.run(os.environ["EDIT"], shell=True, check=True, env={**os.environ, "EDIT_AT": ""})
        if os.environ["EDIT_THEN"] == "die":
            os.kill(os.getpid(), 9)

if moment is not None:
    sys.addaudithook(hook)
"""


class Copy:
    """A copy of the package that can be edited, with a constant that a method imports when it first needs it."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder, self.package, self.home = folder, folder / "fedrepro", home
        shutil.copytree(ROOT, self.package, ignore=shutil.ignore_patterns("__pycache__"))
        (folder / "hooks").mkdir()
        (folder / "hooks" / "sitecustomize.py").write_text(HOOK)
        (folder / "probe.yaml").write_text(SPEC)
        (self.package / LAZY).write_text("EXTRA = 1\n")
        self.edit(METHOD, "// s + 1  #", "// s + extra()  #")
        self.edit(METHOD, "\n\n@dataclass", "\n\n" + "def extra():\n    from fedrepro.numerics.planted import EXTRA\n\n"
                  "    return EXTRA\n\n\n@dataclass")  # fmt: skip

    def edit(self, file: str, old: str, new: str) -> None:
        path = self.package / file
        text = path.read_text()
        assert text.count(old) == 1, (file, old)
        path.write_text(text.replace(old, new))

    def environment(self, **more: str) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        path = f"{self.folder}{os.pathsep}{self.folder / 'hooks'}"
        return {**kept, "PYTHONPATH": path, "FEDREPRO_DATA": str(self.home), **more}

    def run(
        self, *words: object, at: str = "", edit: str = "", then: str = "", results: str = "results"
    ) -> subprocess.CompletedProcess[str]:
        """Compute the probe, with a shell command ``edit`` at a moment, once; ``then`` its process may ``die``."""
        environment = self.environment(EDIT_AT=at, EDIT=edit, EDIT_THEN=then, EDIT_ONCE=str(self.folder / "once"))
        command = [sys.executable, "-m", "fedrepro", "run", "probe.yaml", "-q", "--results", results]
        done = subprocess.run(
            [*command, *map(str, words)], cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )
        assert not at or (self.folder / "once").exists(), done.stderr
        return done

    def csv(self, results: str = "results") -> bytes:
        return (self.folder / results / "quick/beyond/probe.csv").read_bytes()

    def sidecar(self, results: str = "results") -> Sidecar:
        return Sidecar.parse(json.loads((self.folder / results / "quick/beyond/probe.json").read_text()))

    def names(self) -> set[str]:
        return {run for runs in self.sidecar().runs.values() for run in runs}

    def git(self, *words: str) -> str:
        settings = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
        done = subprocess.run(["git", *settings, *words], cwd=self.folder, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def commit(self) -> str:
        """Make the folder the package's own repository with all files committed, or commit what has changed."""
        if not (self.folder / ".git").exists():
            (self.folder / "pyproject.toml").write_text('[project]\nname = "fedrepro"\n')
            (self.folder / ".gitignore").write_text("__pycache__/\n/results/\n/once\n/hooks/\n")
            self.git("init", "-q")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "a")
        return self.git("rev-parse", "HEAD")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data home of these tests, behind a link; what was compiled for one is used by the next."""
    link = tmp_path_factory.mktemp("link") / "home"
    link.symlink_to(tmp_path_factory.mktemp("home"))
    return link


@pytest.fixture
def copy(tmp_path: Path, home: Path) -> Copy:
    return Copy(tmp_path / "copy", home)


@pytest.fixture(scope="module")
def planned(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Copy:
    """Results of the program without an edit."""
    copy = Copy(tmp_path_factory.mktemp("planned") / "copy", home)
    done = copy.run("-j", 1)
    assert done.returncode == 0, done.stderr
    assert "note: the program" not in done.stderr
    return copy


def sed(old: str, new: str, file: Path) -> str:
    return f"sed -i 's/{old}/{new}/' '{file}'"


EDITS = {METHOD: ("extra()  #", "extra() + 1  #"), LAZY: ("EXTRA = 1", "EXTRA = 2")}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("at", "then", "jobs", "file"),
    [
        ("planned", "", 2, METHOD),
        ("data made", "", 1, LAZY),
        ("run stored", "die", 2, LAZY),
    ],
    ids=["before workers start", "as the first run begins", "before a worker is replaced"],
)
def test_an_edit_while_it_runs_changes_no_number_and_is_reported(
    copy: Copy, planned: Copy, at: str, then: str, jobs: int, file: str
) -> None:
    done = copy.run("-j", jobs, at=at, edit=sed(*EDITS[file], copy.package / file), then=then)
    assert done.returncode == 0, done.stderr
    assert copy.csv() == planned.csv()
    assert copy.names() == planned.names()
    assert (
        f"note: the program was edited while this command ran (fedrepro/{file}); its results are those of the code as "
        "it was at the start\n" in done.stderr
    )


@pytest.mark.slow
@pytest.mark.parametrize("file", EDITS)
def test_these_edits_change_numbers_and_the_names_of_runs(copy: Copy, planned: Copy, file: str) -> None:
    copy.edit(file, *EDITS[file])
    assert "8 runs computed" in copy.run("-j", 1).stdout
    assert copy.csv() != planned.csv()
    assert copy.names().isdisjoint(planned.names())


@pytest.mark.slow
@pytest.mark.network
def test_a_worker_of_a_cluster_computes_with_the_program_it_started_with(copy: Copy, planned: Copy) -> None:
    distributed = pytest.importorskip("distributed")
    command = [sys.executable, "-m", "fedrepro.runs.worker", "--no-nanny", "--local-directory", "dask"]
    with distributed.LocalCluster(n_workers=0, host="127.0.0.1", dashboard_address="127.0.0.1:0") as cluster:
        address = cluster.scheduler_address
        worker = subprocess.Popen(
            [*command, address], cwd=copy.folder, env=copy.environment(), stderr=subprocess.DEVNULL
        )
        try:
            with distributed.Client(cluster, set_as_default=False) as client:
                client.wait_for_workers(1, timeout=60)
            edit = "; ".join(sed(*EDITS[file], copy.package / file) for file in EDITS)
            done = copy.run("--scheduler", address, at="planned", edit=edit)
            again = copy.run("--scheduler", address, results="again")
        finally:
            worker.terminate()
            worker.wait(30)
    assert done.returncode == 0, done.stderr
    assert "8 runs computed" in done.stdout
    assert copy.csv() == planned.csv()
    assert again.returncode == 2
    assert "does not run the same program; install the same there and start the worker again" in again.stderr


@pytest.mark.slow
def test_own_modules_outside_the_package_are_named(copy: Copy) -> None:
    (copy.folder / "mylab.py").write_text("def more():\n    return 1\n")
    copy.edit(
        METHOD, "    from fedrepro.numerics.planted import EXTRA\n\n    return EXTRA\n", "    return mylab.more()\n"
    )
    copy.edit(METHOD, "import numpy as np\n\n", "import mylab\nimport numpy as np\n\n")
    done = copy.run("-j", 1, "--set", "trials=1")
    assert done.returncode == 0, done.stderr
    assert f"note: your module mylab ({copy.folder / 'mylab.py'}) is not part of a run's identity: " in done.stderr


# -- what was compiled -------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_what_python_and_numba_compiled_is_used_for_the_same_file_and_never_for_another(
    copy: Copy, tmp_path: Path
) -> None:
    (copy.folder / "probe.yaml").write_text(QUANTIZED)
    copy.run("-j", 1, results="before")
    compiled = kernels(copy.home)
    assert any(name.startswith("quantize.") for name in compiled)
    silently(copy, METHOD, "// s + extra()  #", "// s * extra()  #")
    copy.run("-j", 1, results="between")
    assert kernels(copy.home) == compiled
    silently(copy, KERNEL, "values[j] = step * low", "values[j] = step - low")
    copy.run("-j", 1)
    assert kernels(copy.home) != compiled
    fresh = Copy(tmp_path / "fresh", tmp_path / "home")
    (fresh.folder / "probe.yaml").write_text(QUANTIZED)
    fresh.edit(METHOD, "// s + extra()  #", "// s * extra()  #")
    fresh.edit(KERNEL, "values[j] = step * low", "values[j] = step - low")
    fresh.run("-j", 1)
    assert copy.names() == fresh.names()
    assert copy.csv() == fresh.csv()
    assert len({copy.csv("before"), copy.csv("between"), copy.csv()}) == 3


def silently(copy: Copy, file: str, old: str, new: str) -> None:
    """Edit a file so that its size and time are the same as before."""
    path = copy.package / file
    before = path.stat()
    copy.edit(file, old, new)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)


def kernels(home: Path) -> dict[str, bytes]:
    """The files of numba in the newest snapshot."""
    newest = max((home / ".programs").iterdir(), key=lambda path: path.stat().st_mtime)
    return {path.name: path.read_bytes() for path in newest.rglob("*.nb?")}


@pytest.mark.parametrize("path", sorted(p for p in ROOT.rglob("*.py") if "cache=True" in p.read_text()), ids=str)
def test_compiled_functions_depend_on_their_own_file_only(path: Path) -> None:
    """numba stores them as valid for their file: it does not see changes of functions and constants from others."""
    assert not re.search(r"^\s*(from|import) fedrepro", path.read_text(), re.MULTILINE)


# -- the copy itself ---------------------------------------------------------------------------------------------------


def package(folder: Path, **files: str) -> Path:
    for name, text in {"__init__": "", **files}.items():
        path = folder / "fedrepro" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder / "fedrepro"


def stored(root: Path, **files: str) -> Path:
    """The snapshot of a package with these files."""
    content = {f"{name}.py": text.encode() for name, text in files.items()}
    return snapshot._stored(root, snapshot._digest(content), content)


def test_a_copy_is_read_only_and_written_again_if_it_was_changed(tmp_path: Path) -> None:
    folder = stored(tmp_path, a="x = 1\n")
    path = folder / "fedrepro" / "a.py"
    assert path.stat().st_mode & 0o222 == 0
    assert stored(tmp_path, a="x = 1\n") == folder
    path.chmod(0o644)
    path.write_text("x = 2\n")
    assert stored(tmp_path, a="x = 1\n") == folder
    assert path.read_text() == "x = 1\n"
    (folder / "fedrepro" / "b.py").write_text("")
    stored(tmp_path, a="x = 1\n")
    assert [p.name for p in (folder / "fedrepro").iterdir()] == ["a.py"]


def test_few_copies_are_kept_and_none_is_removed_that_a_process_uses(tmp_path: Path) -> None:
    used, unused, killed = (stored(tmp_path, a=f"x = {i}\n") for i in range(3))
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    mine = snapshot.me().partition("-")
    (killed / f"used.{ended.pid}-{mine[2]}").touch()
    for number, folder in enumerate((used, unused, killed)):
        os.utime(folder, (number, number))
    part = tmp_path / f"abc.part.{ended.pid}-{mine[2]}"
    part.mkdir()
    with snapshot._in_use(used):
        os.utime(used, (0, 0))
        for i in range(snapshot.KEPT):
            stored(tmp_path, a=f"y = {i}\n")
        snapshot._evict(tmp_path)
        assert used.exists()
        assert not unused.exists()
        assert not killed.exists()
        assert not part.exists()
        assert len(list(tmp_path.iterdir())) == snapshot.KEPT + 1
    os.utime(used, (0, 0))
    snapshot._evict(tmp_path)
    assert not used.exists()


@pytest.mark.parametrize(
    ("words", "computes"),
    [
        ("run fedc/fig5", True), ("check", True), ("check --seconds 5", True), ("run --help", False),
        ("plan run", False), ("report", False), ("", False), ("--version", False),
        ("settings run --only fedmf.16", True), ("settings plan", False), ("settings", False),
    ],
)  # fmt: skip
def test_commands_that_compute_run_from_a_copy(words: str, computes: bool) -> None:
    assert main._computes(words.split()) == computes


def test_specs_caches_and_hidden_files_are_not_part_of_the_program(tmp_path: Path) -> None:
    folder = package(tmp_path, a="", **{"sub/experiments/b": ""})
    for name in (
        "experiments/c.yaml",
        "__pycache__/a.cpython-311.pyc",
        ".hidden.py",
        "a.py~",
        "sub/.git/x",
        "page.css",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    assert sorted(snapshot.read(folder)) == ["__init__.py", "a.py", "page.css", "sub/experiments/b.py"]


def test_without_a_place_for_the_copy_the_error_says_what_to_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "_roots", lambda stack: iter([Path("/proc/nowhere"), Path("/dev/null/x")]))
    with pytest.raises(
        UserError, match="no folder for a copy of the program can be written; set FEDREPRO_DATA or TMPDIR"
    ):
        snapshot._taken(package(tmp_path)).__enter__()


@pytest.mark.slow
def test_a_command_runs_where_only_the_temporary_folder_can_be_written(copy: Copy, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "temporary").mkdir()
    copy.home = tmp_path / "file"
    places = {"XDG_CACHE_HOME": str(tmp_path / "file"), "TMPDIR": str(tmp_path / "temporary")}
    copy.environment = functools.partial(copy.environment, **places)  # type: ignore[method-assign]
    assert "8 runs computed" in copy.run("-j", 1).stdout
    assert not list((tmp_path / "temporary").glob("fedrepro-*"))


@pytest.mark.slow
def test_a_worker_never_loads_other_code_if_the_copy_is_removed(copy: Copy, tmp_path: Path) -> None:
    copy.home = tmp_path / "home"
    lose = f"{sed(*EDITS[METHOD], copy.package / METHOD)}; rm -rf '{copy.home}'"
    done = copy.run("-j", 2, at="run stored", edit=lose, then="die")
    assert done.returncode == 2
    assert "was changed or removed while this command ran; finished runs are kept, and the same command" in done.stderr


# -- the commit --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_checkout_while_it_runs_changes_neither_numbers_nor_the_commit(copy: Copy, planned: Copy) -> None:
    first = copy.commit()
    copy.edit(METHOD, *EDITS[METHOD])
    second = copy.commit()
    copy.git("checkout", "-q", first)
    done = copy.run("-j", 2, at="run stored", edit=f"git checkout -q {second}", then="die")
    assert done.returncode == 0, done.stderr
    assert copy.csv() == planned.csv()
    assert (copy.sidecar().made.commit, copy.sidecar().made.dirty) == (first, False)
    assert f"edited while this command ran (fedrepro/{METHOD})" in done.stderr
    assert copy.git("rev-parse", "HEAD") == second


def described(folder: Path) -> tuple[str, bool, str]:
    found = snapshot._described(folder, folder, snapshot.read(folder))
    return found.commit, found.dirty, found.without_commit


def test_the_commit_is_that_of_the_files(copy: Copy) -> None:
    specs = copy.folder / "experiments" / "beyond"
    specs.mkdir(parents=True)
    (specs / "a.yaml").write_text("a: 1\n")
    commit = copy.commit()
    assert described(copy.package) == (commit, False, "")
    (copy.folder / "notes.txt").write_text("not of the program")
    (copy.package / "a.log").write_text("nor this")
    assert described(copy.package) == (commit, False, "")
    path = copy.package / METHOD
    text = path.read_bytes()
    path.write_bytes(text.replace(b"\n", b"\r\n"))  # as git writes it on other systems
    assert described(copy.package) == (commit, False, "")
    for changed, body in ((path, text + b"#"), (copy.package / "new.py", b""), (specs / "a.yaml", b"a: 2\n")):
        before = changed.read_bytes() if changed.exists() else None
        changed.write_bytes(body)
        assert described(copy.package) == (commit, True, ""), changed
        changed.unlink() if before is None else changed.write_bytes(before)
    content = snapshot.read(copy.package)
    copy.edit(METHOD, *EDITS[METHOD])
    later = copy.commit()
    assert snapshot._commit(copy.package, content) == (later, True, "")  # read before a checkout, so not its files


@pytest.mark.parametrize("place", ["", "vendor", "site-packages"])
def test_a_package_in_another_repository_has_no_commit(tmp_path: Path, place: str) -> None:
    top = tmp_path / "other"
    folder = package(top / place, a="x = 1\n")
    (top / "pyproject.toml").write_text('[project]\nname = "other"\ndependencies = ["fedrepro"]\n')
    if place == "site-packages":
        (top / ".gitignore").write_text("site-packages/\n")
    for words in (["init", "-q"], ["add", "-A"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"]):
        subprocess.run(["git", *words], cwd=top, check=True)
    assert described(folder) == ("", False, snapshot.NO_REPOSITORY)


def test_without_a_repository_or_git_the_reason_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = package(tmp_path)
    assert described(folder) == ("", False, "the program is not in a git repository of its own")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    assert described(folder) == ("", False, "git could not name the commit")  # there is none yet
    monkeypatch.setenv("PATH", str(tmp_path))
    assert described(folder) == ("", False, "git could not name the commit")


@pytest.mark.slow
def test_results_of_a_package_in_another_repository_name_its_files(copy: Copy) -> None:
    copy.commit()
    (copy.folder / "pyproject.toml").write_text('[project]\nname = "other"\n')
    copy.run("-j", 1, "--set", "trials=1")
    made = copy.sidecar().made
    assert (made.commit, made.dirty, made.without_commit) == ("", False, snapshot.NO_REPOSITORY)
    assert made.program == snapshot._digest(snapshot.read(copy.package))
    assert provenance._commit(made) == snapshot.NO_REPOSITORY
    assert site.program(made) == f"fedrepro {made.fedrepro}, without a commit (files {made.program[:12]})"


def test_sidecars_without_the_new_facts_are_read() -> None:
    made = Sidecar.parse({"schema": 4, "made": {"commit": "unknown", "dirty": False}}).made
    assert made == Made(commit="unknown")
