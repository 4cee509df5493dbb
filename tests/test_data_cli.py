"""``fedrepro data``: what the commands print, their exit codes, and that help shows examples."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from fedrepro import registry
from fedrepro.cli.data import data
from fedrepro.cli.main import main
from fedrepro.data.source import sources
from tests import data_copies


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDREPRO_DATA", str(tmp_path / "home"))
    return tmp_path / "home"


def run(*words, code=0):
    found = CliRunner().invoke(main, ["data", *map(str, words)])
    assert found.exit_code == code, found.output
    return found.output


def test_list_names_every_source_and_says_how_to_get_it():
    text = run("list")
    for name in sources():
        assert f"\n{name} " in text
    assert text.count("absent") == len(sources())
    assert "import TDT2.mat with variables fea and gnd, or fetch it" in text


def test_list_as_json_after_an_import(tmp_path, home):
    text = run("import", "mnist", data_copies.mnist(tmp_path / "c"))
    assert text.startswith("mnist variant, ")
    assert "40 test images instead of 10,000" in text
    rows = {row["name"]: row for row in json.loads(run("list", "--json"))}
    assert rows["mnist"]["state"] == "variant"
    assert rows["mnist"]["size"] > 0
    assert rows["mnist"]["where"] == str(home / "mnist")
    assert len(rows["mnist"]["fingerprint"]) == 64
    assert rows["cifar10"]["state"] == "absent"
    assert set(rows["tdt2"]) == {"name", "state", "fingerprint", "size", "where", "licence", "note", "used_by"}


def test_list_verify_sees_a_silent_change(tmp_path, home):
    run("import", "mnist", data_copies.mnist(tmp_path / "c"))
    file = next((home / "mnist").glob("parsed-*/test/labels.npy"))
    raw = bytearray(file.read_bytes())
    raw[-1] ^= 1
    file.write_bytes(raw)
    assert "damaged" not in run("list")
    assert "damaged" in run("list", "--verify")


def test_path_and_remove(tmp_path, home):
    assert run("path").strip() == str(home)
    assert run("path", "mnist").strip() == str(home / "mnist")
    run("import", "mnist", data_copies.mnist(tmp_path / "c"))
    assert "mnist removed" in run("remove", "mnist", "--yes")
    assert "mnist is not in the data home" in run("remove", "mnist", "--yes")


def test_errors_are_one_line_and_exit_with_2(tmp_path):
    assert run("import", "mnst", tmp_path, code=2).startswith(
        "error: 'mnst' is not a dataset with files, did you mean 'mnist'?"
    )
    assert run("import", "mnist", tmp_path / "none", code=2) == f"error: {tmp_path / 'none'} does not exist\n"
    (tmp_path / "empty").mkdir()
    text = run("import", "mnist", tmp_path / "empty", code=2)
    assert text.startswith(f"error: {tmp_path / 'empty'}: contains nothing of mnist; pass the IDX files")
    (tmp_path / "t10k-images-idx3-ubyte.gz").write_bytes(b"<!DOCTYPE html><html><body>sign in</body></html>")
    text = run("import", "mnist", tmp_path / "t10k-images-idx3-ubyte.gz", code=2)
    assert "is a web page, not a copy of mnist" in text
    assert run("fetch", "nothing", code=2).startswith("error: 'nothing' is not a dataset with files")


def test_every_command_shows_examples():
    assert set(data.commands) == {"list", "import", "fetch", "path", "remove"}
    for name in data.commands:
        text = run(name, "--help")
        assert f"fedrepro data {name}" in text


def test_every_source_is_read_by_a_dataset_with_a_stand_in():
    read = {entry.source: entry for entry in registry.datasets().values() if entry.source}
    assert set(read) == set(sources())
    for entry in read.values():
        assert entry.stand_in is not None
