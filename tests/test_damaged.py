"""Changed or foreign files, and places that cannot be written: an error, and no wrong number."""

from __future__ import annotations

import errno
import gzip
import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from fedrepro import files
from fedrepro.cli.main import main
from fedrepro.data.content_fingerprint import fingerprint
from fedrepro.data.copies import folder
from fedrepro.data.imports import adopt
from fedrepro.errors import Unwritable, UserError, is_full
from fedrepro.results.read import frame
from fedrepro.results.schema import COLUMNS
from fedrepro.runs import runner
from fedrepro.runs.compute import execute
from fedrepro.runs.identity import plan as planning
from fedrepro.runs.storage.store import Store
from fedrepro.spec.read import load

from . import data_copies
from .conftest import once
from .test_kept_results import ARRAYS

Call = Callable[..., Result]
MINE = """\
paper: beyond
figure: mine
problem: {name: clustering, K: 2}
trials: 1
rounds: 3
dataset: {name: file, path: PATH}
partition: {name: uniform, P: 3}
panels:
  a:
    curves: [{algorithm: fedmgs, m: [2, 3]}]
"""


@pytest.fixture
def ran(fedrepro: Call, small: Path, tmp_path: Path, kept: Path) -> Path:
    """The results of the small figure: the stem of their files."""
    once(kept, tmp_path / "results", lambda: fedrepro("run", small, "-j", 1, "--quiet"))
    share(small, tmp_path / "results")
    return tmp_path / "results" / "quick" / "beyond" / "small"


def share(spec: Path, results: Path) -> None:
    """Make the arrays that workers share, as a run that was killed leaves them."""
    for run in planning.make([load(spec, "quick")], stand_in=False).runs.values():
        execute.prepare(run, results / ".scratch")


def say(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(a) for a in arguments])


def refused(result: Result, said: str) -> None:
    """Fail unless a command printed this as an error, and nothing else went wrong."""
    assert (result.exit_code, type(result.exception)) == (2, SystemExit), (result.output, result.exception)
    assert re.search(said, result.stderr), result.stderr


# -- arrays that workers share -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", ["zeroed", "truncated", "gone", "facts"])
def test_shared_arrays_that_are_damaged_are_made_again(
    ran: Path, fedrepro: Call, small: Path, tmp_path: Path, damage: str
) -> None:
    whole = ran.with_suffix(".csv").read_bytes()
    scratch = sorted((tmp_path / "results" / ".scratch").glob("*/rows.npy"))
    assert scratch
    for rows in scratch:
        if damage == "zeroed":
            rows.write_bytes(rows.read_bytes()[:128] + bytes(rows.stat().st_size - 128))
        elif damage == "truncated":
            rows.write_bytes(rows.read_bytes()[:200])
        elif damage == "gone":
            rows.unlink()
        else:
            rows.with_name("problem.json").write_text("[")
    shutil.rmtree(tmp_path / "results" / ".runs")
    ran.with_suffix(".csv").unlink()
    again = fedrepro("run", small, "-j", 1)
    assert "8 runs computed, 0 reused, 0 failed" in again.output
    assert ran.with_suffix(".csv").read_bytes() == whole


# -- the data that were read -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("when", ["before", "during", "and back"])
def test_data_that_change_after_planning_are_stored_under_no_name(
    tmp_path: Path, fedrepro: Call, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    draw = np.random.default_rng(0)
    mine, spec = tmp_path / "mine.npy", tmp_path / "mine.yaml"
    first, second = draw.random((6, 30)), draw.random((6, 30))
    np.save(mine, first)
    spec.write_text(MINE.replace("PATH", str(mine)))
    plan = planning.make([load(spec, "quick")], stand_in=False)
    whole = execute.fill

    def fill(run: Any, folder: Path) -> Any:
        if when == "and back":
            np.save(mine, second)
        record = whole(run, folder)
        np.save(mine, first if when == "and back" else second)
        return record

    if when == "before":
        np.save(mine, second)
    else:
        monkeypatch.setattr(execute, "fill", fill)
    folders = runner.Folders(tmp_path / "results")
    outcome = runner.run(plan, folders, jobs=1, only=[None], quiet=True)
    said = "UserError: the files of the dataset file have changed since the runs were planned; nothing computed from"
    assert [why[: len(said) + 8] for why in outcome.failed.values()] == ["failed: " + said] * 2
    assert not [run for run in plan.runs if Store(folders.store).has(run)]
    monkeypatch.setattr(execute, "fill", whole)
    assert "2 runs computed, 0 reused, 0 failed" in fedrepro("run", spec, "-j", 1).output


def test_a_file_is_told_by_its_bytes_and_not_by_its_times(tmp_path: Path) -> None:
    mine = tmp_path / "mine.npy"
    np.save(mine, np.ones((3, 4)))
    before, times = fingerprint("file", {"path": str(mine)}), mine.stat()
    np.save(mine, np.full((3, 4), 2.0))
    os.utime(mine, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert fingerprint("file", {"path": str(mine)}) != before


def test_arrays_of_a_dataset_that_are_not_those_taken_in_are_not_computed_on(tmp_path: Path, fedrepro: Call) -> None:
    adopt("mnist", [data_copies.mnist(tmp_path / "copy")])
    spec = tmp_path / "digits.yaml"
    spec.write_text(
        MINE.replace("{name: file, path: PATH}", "{name: mnist, n: 20, split: test}").replace(", K: 2", ", K: 10")
    )
    parsed = next(folder("mnist").rglob("*.npy"))
    content = bytearray(parsed.read_bytes())
    content[-1] ^= 1
    parsed.write_bytes(content)
    said = fedrepro("run", spec, "-j", 1)
    assert said.exit_code == 1, said.output
    assert "`fedrepro data list --verify` checks mnist" in said.stderr
    assert "2 failed" in said.output


# -- results that are not those that were written ----------------------------------------------------------------------


@pytest.mark.parametrize("damage", ["reordered", "edited"])
def test_results_that_were_changed_are_read_by_no_command(
    ran: Path, fedrepro: Call, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    csv = ran.with_suffix(".csv")
    good = csv.read_bytes()
    other = tmp_path / "other.csv"
    other.write_bytes(good)
    head, *rows = good.decode().splitlines(keepends=True)
    changed = rows[::-1] if damage == "reordered" else [row.replace(",0.", ",1.") for row in rows]
    said = (
        r"small.csv: changed since it was written \(its sidecar has another hash\); restore it with git, or compute i"
    )
    for packed in (False, True):
        body = (head + "".join(changed)).encode()
        if packed:
            csv.unlink()
            csv.with_suffix(".csv.gz").write_bytes(gzip.compress(body))
        else:
            csv.write_bytes(body)
        wanted = said.replace("csv:", "csv.gz:") if packed else said
        results = ("--results", tmp_path / "results")
        refused(fedrepro("verdict", small), wanted)
        refused(fedrepro("plot", small), wanted)
        refused(say("show", small, *results), wanted)
        refused(say("compare", csv, other), wanted)
        report = say("report", small, *results, "--no-pictures", "--out", tmp_path / "page", "--fail-on", "stale")
        assert report.exit_code == 1
        assert re.search(wanted, (tmp_path / "page" / "REPORT.md").read_text())
        assert "1 not tested" in report.output
    csv.with_suffix(".csv.gz").unlink()
    csv.write_bytes(good)
    assert fedrepro("verdict", small).exit_code == 0


def test_arrays_that_were_changed_are_not_drawn(tmp_path: Path, fedrepro: Call) -> None:
    spec = tmp_path / "arrays.yaml"
    spec.write_text(ARRAYS)
    fedrepro("run", spec, "-j", 1)
    points = tmp_path / "results" / "quick" / "beyond" / "arrays.points.csv"
    good = points.read_text()
    points.write_text(good.replace(",1,", ",2,"))
    refused(fedrepro("plot", spec), r"arrays.points.csv: changed since it was written")
    shutil.rmtree(tmp_path / "results" / ".runs")
    fedrepro("run", spec, "-j", 1)
    assert points.read_text() == good


def test_results_without_a_sidecar_must_be_results(tmp_path: Path) -> None:
    table = tmp_path / "x.csv"
    row = ["s", "a", "d", "p", "1", "ok", "0", "0", "0", "0", "0", "f", "0.5"]
    place = dict(zip(COLUMNS, range(len(row)), strict=True))

    def rows(*changes: dict[str, str]) -> None:
        made = [[change.get(name, row[place[name]]) for name in COLUMNS] for change in changes]
        table.write_text("\n".join(",".join(one) for one in [list(COLUMNS), *made]) + "\n")

    rows({}, {"round": "1"}, {"status": "failed", "trial": "2", "round": "", "metric": "", "value": ""})
    assert len(frame(table)) == 3
    for changes, said in (
        ([{"trial": "x"}], "its column 'trial' contains values that are not numbers"),
        ([{"value": "much"}], "its column 'value' contains values that are not numbers"),
        ([{"status": "fine"}], "a row's status is none of ok, diverged, failed"),
        ([{"series": ""}], "a row has no series or no trial"),
        ([{"metric": ""}], "a row has no round or no metric"),
        ([{"round": "1"}, {}], "the rounds of a run are not in order"),
        ([{}, {}], "the rounds of a run are not in order"),
    ):
        rows(*changes)
        with pytest.raises(UserError, match=re.escape(f"x.csv: not a results file of `fedrepro run`: {said}")):
            frame(table)


# -- damaged and foreign files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        (".json", b"{", r"small.json: cannot be read \(.*\); restore it with git, or remove it and its .csv"),
        (".json", b"[]", r"small.json: cannot be read \(a sidecar is a mapping, not list\); restore it with git"),
        (".json", b"\xff\xfe\x00", r"small.json: cannot be read \(.*\); restore it with git"),
        (".json", b"[" * 100_000, r"small.json: cannot be read \(.*\); restore it with git"),
        (".json", b'{"trials_done": "all"}', r"small.json: cannot be read \(.* an invalid value: trials_done\)"),
        (".json", b'{"schema": 3, "runs": {"a": [1]}}', r"small.json: cannot be read \(.* an invalid value: runs: a\)"),
        (
            ".json",
            b'{"schema": 3, "made": {"commit": 3}}',
            r"small.json: cannot be read \(.* an invalid value: commit\)",
        ),
        (".csv", b"", r"small.csv: changed since it was written"),
        (".csv", b"\x00\xff\x93NUMPY", r"small.csv: changed since it was written"),
        (".csv.gz", b"\x1f\x8b\x08 half of it", r"small.csv.gz: cannot be read \(.*\); restore it with git, or remove"),
    ],
)
def test_damaged_results_are_an_error_with_a_way_out(
    ran: Path, fedrepro: Call, small: Path, tmp_path: Path, name: str, content: bytes, said: str
) -> None:
    if name == ".csv.gz":
        ran.with_suffix(".csv").unlink()
    ran.with_name(f"small{name}").write_bytes(content)
    refused(fedrepro("verdict", small), said)
    refused(say("show", small, "--results", tmp_path / "results"), said)
    if name != ".csv":
        refused(fedrepro("run", small, "-j", 1), said)
    else:
        assert fedrepro("run", small, "-j", 1).exit_code == 0
        assert fedrepro("verdict", small).exit_code == 0


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "cannot be read as a CSV file"),
        (b"\x00\xff\x93NUMPY", "cannot be read as a CSV file"),
        (b"a,b\n1,2\n", "it has no column 'series'"),
    ],
)
def test_foreign_files_in_the_place_of_results_are_told_and_kept(
    ran: Path, fedrepro: Call, small: Path, tmp_path: Path, content: bytes, said: str
) -> None:
    ran.with_suffix(".json").unlink()
    ran.with_suffix(".csv").write_bytes(content)
    refused(fedrepro("verdict", small), f"small.csv: .*{said}")
    refused(say("compare", ran.with_suffix(".csv"), ran.with_suffix(".csv")), said)
    assert fedrepro("run", small, "-j", 1).exit_code == 0
    kept = ran.with_name("small.csv.unknown")
    assert kept.read_bytes() == content if content else not kept.exists()


def test_results_that_lost_their_sidecar_are_not_replaced_by_less(
    ran: Path, fedrepro: Call, small: Path, tmp_path: Path
) -> None:
    whole = ran.with_suffix(".csv").read_bytes()
    ran.with_suffix(".json").unlink()
    shutil.rmtree(tmp_path / "results" / ".runs")
    fedrepro("run", small, "-j", 1, "--set", "trials=1")
    assert ran.with_name("small.csv.unknown").read_bytes() == whole
    assert len(ran.with_suffix(".csv").read_bytes()) < len(whole)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (".runs", r"results/\.runs: cannot be written \(File exists\); something else has this name: move it"),
        (".locks", r"results/\.locks/quick-beyond-small.lock: cannot be written \(.*\); something else has this"),
        (".scratch", r"results/\.scratch: cannot be written \(File exists\); something else has this name"),
        ("quick", r"results/quick/beyond: cannot be written \(.*\); something else has this name"),
    ],
)
def test_a_file_where_a_folder_has_to_be(fedrepro: Call, small: Path, tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / name).write_text("mine")
    for command in (["verdict"], ["plan"], ["run", "-j", 1], ["run"]):
        result = fedrepro(*command, small)
        if command[0] == "run":
            refused(result, said)
        else:
            assert type(result.exception) in (SystemExit, type(None)), result.exception
    assert (tmp_path / "results" / name).read_text() == "mine"


def test_a_folder_in_the_place_of_a_record(ran: Path, fedrepro: Call, small: Path, tmp_path: Path) -> None:
    record = next((tmp_path / "results" / ".runs").glob("*/*.npz"))
    record.unlink()
    record.mkdir()
    ran.with_suffix(".json").unlink()
    said = (
        r"\.npz: cannot be read \(Is a directory\); the run in it is kept: make the file readable, or move it away so"
    )
    refused(fedrepro("run", small, "-j", 1), said)


def test_a_record_of_another_run_or_of_other_bytes_is_none(ran: Path, tmp_path: Path) -> None:
    store = Store(tmp_path / "results" / ".runs")
    first, other, third = sorted((tmp_path / "results" / ".runs").glob("*/*.npz"))[:3]
    other.write_bytes(first.read_bytes())
    assert store.read(other.stem) is None
    assert other.with_name(f"{other.name}.damaged").exists()
    with np.load(third) as archive:
        arrays = {name: archive[name] for name in archive.files}
    np.savez(third, **{name: array * 2 if name == "metric:objective" else array for name, array in arrays.items()})
    assert store.read(third.stem) is None
    assert store.read(first.stem) is not None


def test_learned_times_that_are_damaged_are_learned_anew(
    ran: Path, fedrepro: Call, small: Path, tmp_path: Path
) -> None:
    timings = tmp_path / "results" / ".runs" / "timings.json"
    for content in ("[", "[]", '{"a": "b"}', json.dumps(dict.fromkeys(json.loads(timings.read_text()), "long"))):
        timings.write_text(content)
        assert fedrepro("plan", small, "--tier", "paper").exit_code == 0
    assert fedrepro("run", small, "-j", 1, "--tier", "paper", "--quiet").exit_code == 0
    assert all(took > 0 for took in json.loads(timings.read_text()).values())


# -- no room, and no leave ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (
            errno.ENOSPC,
            r"cannot be written \(No space left on device\); free some space, or choose another folder; finished",
        ),
        (errno.EROFS, r"cannot be written \(Read-only file system\); allow writing there, or choose another folder"),
        (errno.EACCES, r"cannot be written \(Permission denied\); allow writing there, or choose another folder"),
    ],
)
def test_a_full_disk_and_a_folder_one_may_only_read(
    ran: Path, fedrepro: Call, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, said: str
) -> None:
    before = {path: path.read_bytes() for path in (tmp_path / "results").rglob("*") if path.is_file()}

    def refuse(_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(files.os, "fsync", refuse)
    refused(fedrepro("run", small, "-j", 1, "--set", "trials=3"), said)
    refused(fedrepro("plot", small), said)
    refused(say("report", small, "--results", tmp_path / "results", "--no-pictures", "--out", tmp_path / "page"), said)
    left = {path: path.read_bytes() for path in (tmp_path / "results").rglob("*") if path.is_file()}
    assert {path: left[path] for path in before} == before
    assert not list(tmp_path.rglob("*.part"))
    monkeypatch.undo()
    monkeypatch.setenv("FEDREPRO_DATA", str(tmp_path / "home"))
    assert "4 runs computed, 8 reused" in fedrepro("run", small, "-j", 1, "--set", "trials=3").output


def test_no_room_for_the_arrays_that_workers_share(
    fedrepro: Call, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError("720 requested and 12 written")  # the words of numpy

    monkeypatch.setattr(execute, "fill", full)
    refused(
        fedrepro("run", small, "-j", 1), r"\.scratch/\w+: cannot be written \(720 requested and 12 written\); free some"
    )
    assert is_full(OSError(errno.EDQUOT, "quota"))
    assert not is_full(OSError(errno.EACCES, "no"))


@pytest.mark.slow
def test_what_a_worker_cannot_write_ends_the_command_in_words(fedrepro: Call, small: Path, tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / ".scratch").write_text("mine")
    refused(
        fedrepro("run", small, "-j", 2), r"results/\.scratch: cannot be written \(File exists\); something else has"
    )


def test_an_error_of_the_system_travels_from_a_worker() -> None:
    import pickle

    error = Unwritable("x/y", OSError(errno.ENOSPC, "No space left on device"))
    came = pickle.loads(pickle.dumps(error))
    assert (type(came), str(came)) == (Unwritable, str(error))
    assert str(error) == (
        "x/y: cannot be written (No space left on device); free some space, or choose another folder; finished runs "
        "are kept, and the same command continues"
    )
