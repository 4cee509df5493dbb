"""Reading from folders and archives: the same files from any container, and nothing from malicious ones."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fedrepro.data.formats.trees import walk
from fedrepro.errors import UserError

FILES = {"a.txt": b"alpha", "deep/er/b.txt": b"", "deep/c.bin": bytes(range(256)) * 300}


def everything(path: str) -> bool:
    return path != "x" and not path.endswith((".zip", ".tar"))


def read(*paths, wanted=everything, limit=10_000_000):
    return {entry.path: entry.read() for entry in walk([Path(p) for p in paths], wanted, limit)}


def zipped(files, target=None):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return _put(buffer.getvalue(), target)


def tarred(files, mode="w", target=None):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return _put(buffer.getvalue(), target)


def _put(content, target):
    if target is not None:
        target.write_bytes(content)
    return content


def folder(files, target):
    for name, content in files.items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_bytes(content)


@pytest.mark.parametrize("kind", ["folder", "zip", "tar", "tar.gz", "tar.xz", "tar.bz2", "nested"])
def test_every_container_gives_the_same_files(tmp_path, kind):
    target = tmp_path / f"x.{kind}"
    if kind == "folder":
        folder(FILES, target)
    elif kind == "zip":
        zipped(FILES, target)
    elif kind == "nested":
        target = tmp_path / "x.tar.gz"
        tarred({"inner.zip": zipped(FILES)}, "w:gz", target)
    else:
        tarred(FILES, f"w:{kind[4:]}" if kind != "tar" else "w", target)
    assert read(target) == FILES


names = st.text("abc", min_size=1, max_size=4).map(lambda s: f"d_{s}/f_{s}.dat")


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files=st.dictionaries(names, st.binary(max_size=2000), max_size=5))
def test_any_bytes_survive_any_container(tmp_path, files):
    # what starts like an archive or a compressed stream is opened as one, by design
    files = {name: b"." + content for name, content in files.items()}
    for make in (zipped, lambda f, t: tarred(f, "w:gz", t), lambda f, t: tarred(f, "w:xz", t)):
        make(files, tmp_path / "x")
        assert read(tmp_path / "x") == files


@pytest.mark.parametrize(("ending", "compress"), [("gz", gzip.compress), ("xz", lzma.compress), ("bz2", bz2.compress)])
def test_single_compressed_files_lose_their_ending(tmp_path, ending, compress):
    (tmp_path / f"a.txt.{ending}").write_bytes(compress(b"alpha"))
    assert read(tmp_path) == {"a.txt": b"alpha"}
    # recognized by the content, not by the name
    (tmp_path / f"a.txt.{ending}").rename(tmp_path / "download")
    assert read(tmp_path) == {"download": b"alpha"}


def test_only_what_is_wanted_is_read_and_noted(tmp_path):
    folder({"a.txt": b"1", "b.txt": b"2", "c.txt": b"3"}, tmp_path)
    used = {}
    paths = [e.path for e in walk([tmp_path], lambda p: p == "b.txt", 1000, used)]
    assert paths == ["b.txt"]
    assert used == {tmp_path / "b.txt": "b.txt"}


@pytest.mark.parametrize("name", ["../evil", "a/../../evil", "/etc/evil", "C:\\evil", "\\evil", "..\\evil"])
@pytest.mark.parametrize("make", [zipped, tarred])
def test_names_that_climb_out_are_refused(tmp_path, name, make):
    make({"a.txt": b"fine", name: b"evil"}, target=tmp_path / "x")
    with pytest.raises(UserError, match=r"x: the archive contains '.*evil', a path outside of it; it is not read"):
        read(tmp_path / "x")


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_in_tar_are_refused(tmp_path, kind):
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        member = tarfile.TarInfo("a.txt")
        member.type, member.linkname = kind, "/etc/passwd"
        archive.addfile(member)
    with pytest.raises(UserError, match=r"x.tar: the archive has a link or device, 'a.txt'"):
        read(tmp_path / "x.tar")


def test_links_in_zip_are_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        link = zipfile.ZipInfo("a.txt")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(UserError, match=r"x.zip: the archive has a link, 'a.txt'"):
        read(tmp_path / "x.zip")


@pytest.mark.parametrize("ending", ["zip", "tar.gz", "tar.xz", "tar.bz2", "gz", "xz", "bz2"])
@pytest.mark.parametrize("share", [0.3, 0.9])
def test_truncated_archives_are_told_as_such(tmp_path, ending, share):
    big = {"a.txt": b"x" * 10, "b.bin": bytes(i * 37 % 251 for i in range(60_000))}
    if ending == "zip":
        raw = zipped(big)
    elif ending.startswith("tar"):
        raw = tarred(big, f"w:{ending[4:]}")
    else:
        raw = {"gz": gzip, "xz": lzma, "bz2": bz2}[ending].compress(big["b.bin"])
    file = tmp_path / f"y.{ending}"
    file.write_bytes(raw[: int(len(raw) * share)])
    with pytest.raises(UserError, match=rf"y.{ending}: the archive is truncated or damaged \(.*\); get it again"):
        read(file)


def test_an_encrypted_zip_cannot_be_read(tmp_path):
    raw = bytearray(zipped({"a.txt": b"secret"}))
    for signature, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        raw[raw.index(signature) + at] |= 1
    (tmp_path / "x.zip").write_bytes(raw)
    with pytest.raises(UserError, match=r"x.zip: cannot be read \(.*encrypted"):
        read(tmp_path / "x.zip")


@pytest.mark.parametrize("kind", ["gz", "zip", "tar.xz", "zip in zip"])
def test_decompression_bombs_stop_at_the_cap(tmp_path, kind):
    bomb = bytes(30_000_000)
    if kind == "gz":
        raw = gzip.compress(bomb)
    elif kind == "zip":
        raw = zipped({"a": bomb})
    elif kind == "tar.xz":
        raw = tarred({"a": bomb}, "w:xz")
    else:
        raw = zipped({"inner.zip": zipped({"a": bomb})})
    assert len(raw) < 100_000
    file = tmp_path / ("y" if kind == "gz" else "x")
    file.write_bytes(raw)
    with pytest.raises(UserError, match=r"[xy]: it unpacks to more than 1.0 MB, far more than this dataset has"):
        read(file, limit=1_000_000)


def test_archives_in_archives_without_end(tmp_path):
    raw = b"core"
    for _ in range(6):
        raw = zipped({"inner.zip": raw})
    (tmp_path / "x.zip").write_bytes(raw)
    with pytest.raises(UserError, match="archives inside archives, more than 3 deep; unpack it first"):
        read(tmp_path / "x.zip")


def test_too_many_entries(tmp_path, monkeypatch):
    monkeypatch.setattr("fedrepro.data.formats.trees.MOST_ENTRIES", 5)
    zipped({f"f{i}": b"" for i in range(10)}, tmp_path / "x.zip")
    with pytest.raises(UserError, match="it contains more than 5 entries"):
        read(tmp_path / "x.zip")
