"""The data home: importing copies, their states, and what happens when files change."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil

import numpy as np
import pytest

from fedrepro.data import content_fingerprint, copies, imports, loading
from fedrepro.data.data_home import home as data_home
from fedrepro.data.formats import npy_parts
from fedrepro.data.source import sources
from fedrepro.errors import DataAbsent, UserError
from tests import data_copies


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDREPRO_DATA", str(tmp_path / "home"))
    return tmp_path / "home"


def leftovers(home):
    return sorted(p.name for p in home.iterdir() if p.name != ".locks" and any(True for _ in p.iterdir()))


def test_home_is_the_variable_else_the_cache_directory(monkeypatch, home):
    assert data_home() == home
    monkeypatch.delenv("FEDREPRO_DATA")
    assert data_home().name == "fedrepro"


def test_a_copy_is_taken_in_and_read_back(tmp_path, home):
    before = copies.state("mnist")
    assert (before.state, before.fingerprint, before.size) == ("absent", "", 0)
    now = imports.adopt("mnist", [data_copies.mnist(tmp_path / "copy")])
    assert now.state == "variant"
    assert "40 test images instead of 10,000" in now.note
    assert len(now.fingerprint) == 64
    assert now.where == str(home / "mnist")
    assert copies.state("mnist") == now
    loaded = loading.load("mnist", {"n": 20, "split": "test"})
    assert loaded.X.shape == (784, 20)
    assert leftovers(home) == ["mnist"]


def test_the_fingerprint_is_of_the_content_not_of_its_wrapping(tmp_path):
    compressed = imports.adopt("mnist", [data_copies.mnist(tmp_path / "a", compress=True)])
    archive = shutil.make_archive(str(tmp_path / "b"), "gztar", data_copies.mnist(tmp_path / "a2", compress=False))
    two = imports.adopt("mnist", [tmp_path / "b.tar.gz"])
    assert archive.endswith("b.tar.gz")
    assert compressed.fingerprint == two.fingerprint
    other = imports.adopt("mnist", [data_copies.mnist(tmp_path / "c", n=41)])
    assert other.fingerprint != compressed.fingerprint


@pytest.mark.usefixtures("here")
def test_where_the_published_arrays_are_known_they_tell_a_copy_from_a_variant(tmp_path, home, monkeypatch):
    import dataclasses

    from fedrepro.data.sources import movielens

    rows = ["::".join(map(str, [*row, 978300760])) for row in data_copies.ratings().tolist()]
    (tmp_path / "ratings.dat").write_text("\n".join(rows) + "\n")
    known = movielens.Known(300, 20, 15, 39, 44, 1.0, 1.0)
    entry = dataclasses.replace(sources()["movielens-1m"], parse=movielens._parser(known), published={})
    monkeypatch.setitem(sources(), "movielens-1m", entry)
    now = imports.adopt("movielens-1m", [tmp_path / "ratings.dat"], variant=True)
    assert (now.state, now.note) == ("present", copies.UNVERIFIED)
    monkeypatch.setitem(
        sources(), "movielens-1m", dataclasses.replace(entry, published={"all": now.fingerprint}, uses="ratings")
    )
    assert (copies.state("movielens-1m").state, copies.state("movielens-1m").note) == ("present", copies.SAME)
    (tmp_path / "ratings.dat").write_text("\n".join(row.replace("978300760", "0") for row in rows) + "\n")
    assert imports.adopt("movielens-1m", [tmp_path / "ratings.dat"], variant=True).note == copies.SAME
    (tmp_path / "ratings.dat").write_text("\n".join(rows[::-1]) + "\n")
    now = imports.adopt("movielens-1m", [tmp_path / "ratings.dat"], variant=True)
    assert (now.state, now.note) == ("variant", "ratings differ from the published ones")
    newer = dataclasses.replace(sources()["movielens-1m"], version=2)
    monkeypatch.setitem(sources(), "movielens-1m", newer)
    assert copies.state("movielens-1m").note == copies.UNVERIFIED  # arrays of another parser are not compared


def test_adding_a_part_leaves_the_other_parts_fingerprint_alone(tmp_path):
    folder = data_copies.mnist(tmp_path / "copy")
    imports.adopt("mnist", [folder])
    test_only = content_fingerprint.fingerprint("mnist", {"split": "test"})
    with pytest.raises(DataAbsent, match="the copy of mnist lacks train"):
        content_fingerprint.fingerprint("mnist", {"split": "train"})
    whole = imports.adopt("mnist", [data_copies.mnist(folder, train=True, n=50)])
    assert content_fingerprint.fingerprint("mnist", {"split": "test"}) == test_only
    assert content_fingerprint.fingerprint("mnist", {"split": "train"}) != test_only
    assert whole.fingerprint not in (test_only, content_fingerprint.fingerprint("mnist", {"split": "train"}))


def test_absent_says_which_commands_to_try(home):
    with pytest.raises(DataAbsent) as caught:
        loading.load("tdt2", {})
    assert str(caught.value) == (
        f"tdt2 is absent from the data home {home}; try 'fedrepro data fetch tdt2 --accept', or "
        "'fedrepro data import tdt2 PATH' with TDT2.mat with variables fea and gnd"
    )
    assert caught.value.dataset == "tdt2"
    with pytest.raises(UserError, match="'tdt' is not a dataset with files, did you mean 'tdt2'"):
        copies.state("tdt")


@pytest.mark.parametrize("harm", ["missing", "shorter", "changed", "record"])
def test_damage_is_seen(tmp_path, home, harm):
    imports.adopt("mnist", [data_copies.mnist(tmp_path / "copy")])
    file = home / "mnist" / "files" / "t10k-images-idx3-ubyte.gz"
    if harm == "missing":
        file.unlink()
    elif harm == "shorter":
        file.write_bytes(file.read_bytes()[:-3])
    elif harm == "changed":
        raw = bytearray(file.read_bytes())
        raw[20] ^= 255
        file.write_bytes(raw)
    else:
        (home / "mnist" / "manifest.json").write_text("{")
    state = copies.state("mnist")
    assert state.state == "damaged"
    assert "import or fetch it again" in state.note
    with pytest.raises(DataAbsent, match=r"mnist is damaged \(.*\); try 'fedrepro data fetch mnist'"):
        copies.folder("mnist")


def test_a_touched_but_equal_file_is_sound(tmp_path, home):
    imports.adopt("mnist", [data_copies.mnist(tmp_path / "copy")])
    os.utime(home / "mnist" / "files" / "t10k-images-idx3-ubyte.gz", ns=(1, 1))
    assert copies.state("mnist").state == "variant"
    record = json.loads((home / "mnist" / "manifest.json").read_text())
    assert record["files"][0]["mtime_ns"] == 1  # and is not hashed again


def test_verify_finds_what_sizes_and_times_hide(tmp_path, home):
    imports.adopt("mnist", [data_copies.mnist(tmp_path / "copy")])
    file = copies.folder("mnist") / "test" / "labels.npy"
    labels = np.load(file)
    labels[0] = 7
    np.save(file, labels)
    assert copies.state("mnist").state == "variant"
    assert copies.state("mnist", verify=True).state == "damaged"
    assert "parsed arrays have changed" in copies.state("mnist", verify=True).note


def test_a_newer_parser_reads_the_copy_again(tmp_path, home, monkeypatch):
    imports.adopt("mnist", [data_copies.mnist(tmp_path / "copy")])
    before = copies.folder("mnist")
    import dataclasses

    newer = dataclasses.replace(sources()["mnist"], version=99)
    monkeypatch.setitem(sources(), "mnist", newer)
    after = copies.folder("mnist")
    assert after.name == "parsed-99"
    assert not before.exists()
    assert json.loads((home / "mnist" / "manifest.json").read_text())["parser"] == 99
    assert content_fingerprint.fingerprint("mnist", {"split": "test"}) == npy_parts.parts(after)["test"]


def test_lost_arrays_are_made_again(tmp_path):
    imports.adopt("mnist", [data_copies.mnist(tmp_path / "copy")])
    print_before = content_fingerprint.fingerprint("mnist", {"split": "test"})
    shutil.rmtree(copies.folder("mnist"))
    assert loading.load("mnist", {"n": 20, "split": "test"}).X.shape == (784, 20)
    assert content_fingerprint.fingerprint("mnist", {"split": "test"}) == print_before


def test_a_refused_copy_leaves_the_earlier_one_and_nothing_else(tmp_path, home):
    good = imports.adopt("mnist", [data_copies.mnist(tmp_path / "copy")])
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "t10k-images-idx3-ubyte").write_bytes(b"\0\0\x08\x01\0\0\0\x05short.")
    with pytest.raises(UserError, match="t10k-images-idx3-ubyte contains 6 bytes of data, but its header announces 5"):
        imports.adopt("mnist", [tmp_path / "bad"])
    assert copies.state("mnist") == good
    assert leftovers(home) == ["mnist"]


def test_what_a_killed_import_left_is_swept(tmp_path, home):
    (home / ".staging" / "mnist=dead" / "new").mkdir(parents=True)
    imports.adopt("mnist", [data_copies.mnist(tmp_path / "copy")])
    assert leftovers(home) == ["mnist"]


def test_remove(tmp_path, home):
    assert copies.remove("mnist") is False
    imports.adopt("mnist", [data_copies.mnist(tmp_path / "copy")])
    assert copies.remove("mnist") is True
    assert copies.state("mnist").state == "absent"
    assert leftovers(home) == []


def test_many_files_are_kept_as_one(tmp_path, home, monkeypatch):
    monkeypatch.setattr("fedrepro.data.imports.FEW", 1)
    imports.adopt("mnist", [data_copies.mnist(tmp_path / "copy")])
    assert [p.name for p in (home / "mnist" / "files").iterdir()] == ["folder.zip"]
    shutil.rmtree(copies.folder("mnist"))
    assert loading.load("mnist", {"n": 20, "split": "test"}).X.shape == (784, 20)


def test_a_home_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FEDREPRO_DATA", str(tmp_path / "file" / "home"))
    with pytest.raises(UserError, match=r"cannot be written .* set FEDREPRO_DATA to a folder you can write to"):
        imports.adopt("mnist", [data_copies.mnist(tmp_path / "copy")])


def test_a_full_disk_is_told_before_anything_is_written(tmp_path, home, monkeypatch):
    from collections import namedtuple

    monkeypatch.setattr("shutil.disk_usage", lambda path: namedtuple("Usage", "free")(10))
    with pytest.raises(
        UserError, match=r"the copy of mnist needs .* B in .*, 10 B are free; free some space or set FEDREPRO_DATA"
    ):
        imports.adopt("mnist", [data_copies.mnist(tmp_path / "copy")])
    assert leftovers(home) == []


def _import(folder):
    imports.adopt("mnist", [folder])


def test_processes_that_import_at_once_are_safe(tmp_path, home):
    folder = data_copies.mnist(tmp_path / "copy")
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_import, args=(folder,)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(30)
    assert [worker.exitcode for worker in workers] == [0] * 4
    assert copies.state("mnist", verify=True).state == "variant"
    assert leftovers(home) == ["mnist"]
