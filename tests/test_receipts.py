"""Receipts: what they contain and leave out, how they are merged, and that they never raise the level of evidence."""

from __future__ import annotations

import dataclasses
import getpass
import itertools
import json
import platform
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from fedrepro.errors import UserError
from fedrepro.report import gather_contents
from fedrepro.results import receipts
from fedrepro.results.receipts import Merged, Receipt, Recomputed

Call = Callable[..., Result]

A, B = ({"vendor": vendor, "family": "25", "model": "1", "stepping": "1"} for vendor in ("AMD", "Intel"))


def receipt(cpu: dict[str, str], *runs: Recomputed) -> Receipt:
    return Receipt(tuple(runs), code="c", cpu=cpu, date="2026-11-24")


def run(id_: str, round_: int = 9, outcome: str = "same bits") -> Recomputed:
    return Recomputed(id_, round_, 9, outcome)


def test_a_place_where_no_file_can_be_written_is_refused_first(
    fedrepro: Call, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fedrepro("run", small, "-j", 1)
    (tmp_path / "file").write_text("")
    monkeypatch.setattr("fedrepro.runs.check.check", lambda *_, **__: pytest.fail("computed"))
    monkeypatch.setattr("fedrepro.report.page_data.figures", lambda *_: pytest.fail("computed"))
    below = tmp_path / "file" / "below"
    for words in (
        ("check", small, "--tier", "quick", "--results", tmp_path / "results", "--receipt", below),
        ("report", small, "--single", below),
        ("report", "--out", below),
    ):
        refused = fedrepro(*words)
        assert refused.exit_code == 2
        assert re.match(f"error: {below}[^ ]*: cannot be written ", refused.stderr)


def test_a_receipt_has_the_runs_and_the_kind_of_machine_and_nothing_else(
    small: Path, tmp_path: Path, fedrepro: Call
) -> None:
    results, path = tmp_path / "results", tmp_path / "receipt.json"
    fedrepro("run", small, "-j", 1)
    options = ("--tier", "quick", "--seconds", "30", "--seed", "1", "--results", results, "--receipt", path)
    assert f"{path}: 8 runs; it names no person, machine or folder" in fedrepro("check", small, *options).output
    text = path.read_text()
    written = receipts.read(path)
    sidecar = json.loads((results / "quick" / "beyond" / "small.json").read_text())
    assert [record.run for record in written.runs] == sorted(id_ for ids in sidecar["runs"].values() for id_ in ids)
    assert {(record.round, record.rounds, record.outcome) for record in written.runs} == {(5, 5, "same bits")}
    assert set(written.kernels) == {"level", "blas"}
    assert written.versions["numpy"] == sidecar["made"]["libraries"]["numpy"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", written.date)
    for private in (str(tmp_path), str(Path.home()), platform.node(), f'"{getpass.getuser()}"', "small", "objective"):
        assert private not in text


def test_a_receipt_has_no_run_of_an_earlier_check(small: Path, tmp_path: Path, fedrepro: Call) -> None:
    results, path = tmp_path / "results", tmp_path / "receipt.json"
    fedrepro("run", small, "-j", 1)
    options = ("--tier", "quick", "--seed", "1", "--results", results, "--receipt", path)
    fedrepro("check", small, *options, "--seconds", "30")
    assert len(receipts.read(path).runs) == 8
    output = fedrepro("check", small, *options, "--whole").output  # every curve has a whole run already
    assert "0 runs compared" in output
    assert receipts.read(path).runs == ()


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_each_run_counts_once_per_cpu_in_every_order(order: tuple[int, ...]) -> None:
    given = (
        receipt(A, run("x", 4), run("y")),
        receipt(A, run("x"), run("z", 3, "different")),
        receipt(B, run("x"), run("z")),
    )
    merged = Merged.of([given[place] for place in order] + [given[0]])  # one of them twice
    assert merged.models == ["AMD, family 25, model 1, stepping 1", "Intel, family 25, model 1, stepping 1"]
    assert sorted(merged.on(merged.models[0]), key=lambda r: r.run) == [run("x"), run("y"), run("z", 3, "different")]
    assert merged.words == "recomputed on 2 CPU models, 3 runs to the end, different in 1"
    assert Merged.of(given, runs=["x"]).words == "recomputed on 2 CPU models, 1 run to the end, same bits"
    assert Merged.of(given, runs=["other"]).words == ""


def test_the_command_merges_a_folder_and_keeps_it(tmp_path: Path, fedrepro: Call) -> None:
    received, results = tmp_path / "received", tmp_path / "results"
    receipts.write(received / "a.json", receipt(A, run("x", 4), run("y")))
    receipts.write(received / "b.json", receipt(A, run("y"), run("z", outcome="same to 1e-10")))
    output = fedrepro("receipts", received, "--keep", "--results", results).output
    assert "AMD, family 25, model 1, stepping 1: 3 runs, 2 to their last round; 2 same bits, 1 same to 1e-10" in output
    assert "recomputed on 1 CPU model, 2 runs to the end, same to 1e-10; receipts are not signed" in output
    assert f"2 kept in {results / 'receipts'}" in output
    assert fedrepro("receipts", "--results", results).exit_code == 0
    again = fedrepro("receipts", received, "--keep", "--results", results)
    assert again.exit_code == 0
    assert len(list((results / "receipts").glob("*.json"))) == 2


def test_other_files_are_refused(tmp_path: Path, fedrepro: Call) -> None:
    result = fedrepro("receipts", "--results", tmp_path)
    assert result.exit_code == 2
    assert f"no receipts in {tmp_path / 'receipts'}; `fedrepro check --receipt FILE` writes one" in result.output
    bad = tmp_path / "bad.json"
    for text, why in (
        ("[]", "it has no key 'schema' of value 1"),
        ("{", "Expecting"),
        (json.dumps({"schema": 1, "runs": [dataclasses.asdict(run("x", outcome="perfect"))]}), "unknown outcome 'perf"),
        (json.dumps({"schema": 1, "runs": [{"run": 3}]}), "run"),
    ):
        bad.write_text(text)
        with pytest.raises(UserError, match=r"bad.json: not a receipt of `fedrepro check --receipt` \(") as raised:
            receipts.read(bad)
        assert why in str(raised.value)


def test_verdict_and_report_say_what_receipts_say(small: Path, tmp_path: Path, fedrepro: Call) -> None:
    results, path = tmp_path / "results", tmp_path / "received" / "receipt.json"
    fedrepro("run", small, "-j", 1)
    before = fedrepro("verdict", small, "--results", results).output
    assert "recomputed" not in before
    options = ("--tier", "quick", "--seconds", "30", "--results", results, "--receipt", path)
    assert fedrepro("check", small, *options).exit_code == 0
    fedrepro("receipts", path.parent, "--keep", "--results", results)
    after = fedrepro("verdict", small, "--results", results).output
    phrase = "recomputed on 1 CPU model, 8 runs to the end, same bits"
    assert after == before + f"{phrase} (receipts are not signed; `fedrepro receipts` lists them)\n"
    section = gather_contents.section(small, "quick", results)
    assert section.origin["receipts"] == f"{phrase} (receipts are not signed)"
