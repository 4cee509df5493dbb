"""Omniglot and CIFAR: layouts, order, labels and groups, wrong images, stand-ins, the real copies."""

from __future__ import annotations

import hashlib
import io
import pickle
import shutil
import tarfile
import zipfile

import numpy as np
import pytest
from PIL import Image

from fedrepro import registry
from fedrepro.data import copies, imports, loading
from fedrepro.data.formats.images import shrunk
from fedrepro.data.sources import cifar as cifar_files
from fedrepro.errors import ParameterError, UserError
from fedrepro.runs.identity import code
from tests import data_copies


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDREPRO_DATA", str(tmp_path / "home"))


def test_omniglot_labels_groups_and_order(tmp_path):
    now = imports.adopt("omniglot", [data_copies.omniglot(tmp_path / "copy")])
    assert (now.state, now.note) == ("variant", "2 alphabets with 6 characters instead of 50 with 1,623")
    loaded = loading.load("omniglot", {})
    assert loaded.pixels.shape == (120, 28, 28, 1)
    assert loaded.pixels.dtype == np.uint8
    np.testing.assert_array_equal(loaded.labels, np.repeat(np.arange(6), 20))
    np.testing.assert_array_equal(loaded.group, np.repeat([0, 1], 60))
    assert loaded.facts == {"alphabets": ["Greek", "Latin"], "characters": 6}
    assert loaded.split is None
    first_alphabet = loading.load("omniglot", {"alphabets": 1})
    np.testing.assert_array_equal(first_alphabet.pixels, loaded.pixels[:60])


def test_omniglot_drawings_that_stand_in_two_archives_count_once(tmp_path):
    copy = data_copies.omniglot(tmp_path / "copy")
    alone = imports.adopt("omniglot", [copy]).fingerprint
    archives = []
    for k in (1, 2):
        archives.append(tmp_path / f"images_background_small{k}.zip")
        shutil.make_archive(str(archives[-1].with_suffix("")), "zip", copy)
    assert imports.adopt("omniglot", archives).fingerprint == alone
    other = next((copy / "images_background").rglob("*_01.png"))
    Image.new("1", (105, 105), 0).save(other)
    with pytest.raises(UserError, match="this drawing occurs twice, with different pixels"):
        imports.adopt("omniglot", [copy, archives[0]])


def test_shrinking_averages_areas():
    rng = np.random.default_rng(0)
    images = rng.random((3, 105, 105)) < 0.1
    bits = np.packbits(images.reshape(3, -1), axis=1)
    same = shrunk(bits, 105, 105)
    np.testing.assert_array_equal(same, 255 * images.astype(np.uint8))
    third = shrunk(bits, 105, 35)
    np.testing.assert_allclose(third, 255 * images.reshape(3, 35, 3, 35, 3).mean(axis=(2, 4)), atol=0.51)
    small = shrunk(bits, 105, 28)
    np.testing.assert_allclose(small.mean(axis=(1, 2)), 255 * images.mean(axis=(1, 2)), rtol=0.02)


def test_omniglot_images_that_are_not(tmp_path):
    copy = data_copies.omniglot(tmp_path / "copy", characters=1)
    file = next((copy / "images_background").rglob("*_07.png"))
    Image.new("1", (90, 105)).save(file)
    with pytest.raises(UserError, match=r"_07.png has 90 x 105 pixels, 105 x 105 are expected"):
        imports.adopt("omniglot", [copy])
    file.write_bytes(b"<html>")
    with pytest.raises(UserError, match=r"_07.png is not a readable image"):
        imports.adopt("omniglot", [copy])


def test_an_image_that_unpacks_without_end_is_refused_before_decoding(tmp_path):
    copy = data_copies.omniglot(tmp_path / "copy", characters=1)
    Image.new("1", (20_000, 20_000)).save(next((copy / "images_background").rglob("*_07.png")))
    with pytest.raises(UserError, match=r"has 20000 x 20000 pixels, 105 x 105 are expected|not a readable image"):
        imports.adopt("omniglot", [copy])


@pytest.fixture(params=["folder", "tar.gz", "zip"])
def cifar(request, tmp_path):
    folder = data_copies.cifar10(tmp_path / "copy")
    if request.param == "folder":
        return folder
    if request.param == "zip":
        return shutil.make_archive(str(tmp_path / "cifar"), "zip", folder.parent)
    with tarfile.open(tmp_path / "cifar-10-python.tar.gz", "w:gz") as archive:
        archive.add(folder, folder.name)
    return tmp_path / "cifar-10-python.tar.gz"


def test_cifar_batches_from_any_container(cifar):
    from pathlib import Path

    now = imports.adopt("cifar10", [Path(cifar)])
    assert "data_batch_1 is not the published file" in now.note
    assert "100 train and 20 test images instead of 50,000 and 10,000" in now.note
    loaded = loading.load("cifar10", {})
    assert loaded.pixels.shape == (120, 32, 32, 3)
    np.testing.assert_array_equal(loaded.split, np.repeat([0, 1], [100, 20]))
    np.testing.assert_array_equal(loaded.labels, np.tile(np.arange(20) % 10, 6))
    np.testing.assert_array_equal(loaded.pixels[:, 0, 0, 0], np.add.outer(40 * np.arange(6), np.arange(20)).ravel())
    assert (loaded.pixels[:, 2, 5, 1] == 7).all()  # planes of red, green, blue, rows first
    assert (loaded.pixels[:, 2, 5, 0] != 7).sum() >= 119
    some = loading.load("cifar10", {"train": 10, "test": 15})
    np.testing.assert_array_equal(some.pixels[:10], loaded.pixels[:10])
    np.testing.assert_array_equal(some.pixels[10:], loaded.pixels[100:115])
    assert (some.facts["train"], some.facts["test"]) == (10, 15)


def test_cifar_in_a_smaller_size_has_the_mean_of_each_square(tmp_path):
    imports.adopt("cifar10", [data_copies.cifar10(tmp_path / "copy")])
    full = loading.load("cifar10", {}).pixels.astype(float)
    small = loading.load("cifar10", {"size": 16}).pixels
    mean = (full[:, ::2, ::2] + full[:, 1::2, ::2] + full[:, ::2, 1::2] + full[:, 1::2, 1::2]) / 4
    np.testing.assert_array_equal(small, np.rint(mean))
    made = loading.load("cifar100", {"train": 100, "test": 100, "size": 8}, rng=np.random.default_rng(0), stand_in=True)
    assert made.pixels.shape == (200, 8, 8, 3)
    with pytest.raises(ParameterError, match="size: must be one of 32, 16, 8, 4, not 30"):
        loading.load("cifar10", {"size": 30})


def test_cifar_binary_version_is_the_same_images(tmp_path):
    folder = data_copies.cifar10(tmp_path / "copy")
    pickled = imports.adopt("cifar10", [folder]).fingerprint
    (tmp_path / "bin").mkdir()
    for file in folder.iterdir():
        batch = pickle.loads(file.read_bytes(), encoding="bytes")
        rows = np.column_stack([np.array(batch[b"labels"], dtype=np.uint8), batch[b"data"]])
        (tmp_path / "bin" / f"{file.name}.bin").write_bytes(rows.tobytes())
    now = imports.adopt("cifar10", [tmp_path / "bin"])
    assert now.fingerprint == pickled
    assert "data_batch_1.bin is not the published file" in now.note


@pytest.mark.usefixtures("here")
def test_cifar_whose_every_batch_has_its_published_hash_is_the_published_content(tmp_path, monkeypatch):
    folder = data_copies.cifar10(tmp_path / "copy")
    (tmp_path / "bin").mkdir()
    hashes = {}
    for file in folder.iterdir():
        batch = pickle.loads(file.read_bytes(), encoding="bytes")
        rows = np.column_stack([np.array(batch[b"labels"], dtype=np.uint8), batch[b"data"]])
        (tmp_path / "bin" / f"{file.name}.bin").write_bytes(rows.tobytes())
        hashes[f"{file.name}.bin"] = hashlib.md5(rows.tobytes(), usedforsecurity=False).hexdigest()
    monkeypatch.setattr(cifar_files, "TRAIN", 100)
    monkeypatch.setattr(cifar_files, "TEST", 20)
    for name, md5 in hashes.items():
        monkeypatch.setitem(cifar_files.TEN.binaries, name, md5)
    now = imports.adopt("cifar10", [tmp_path / "bin"])
    assert (now.state, now.note) == ("present", "the published content in other files")
    monkeypatch.setitem(cifar_files.TEN.binaries, "test_batch.bin", "0" * 32)
    now = imports.adopt("cifar10", [tmp_path / "bin"])
    assert (now.state, now.note) == ("variant", "test_batch.bin is not the published file")


def class_folders(root, classes=10, each=3):
    for part in ("train", "test"):
        for k in range(classes):
            (root / part / f"class{k:03d}").mkdir(parents=True)
            for i in range(each):
                Image.new("RGB", (32, 32), (k, i, part == "test")).save(root / part / f"class{k:03d}" / f"{i:04d}.png")
    return root


def test_cifar_class_folders_come_class_by_class_in_turn(tmp_path):
    now = imports.adopt("cifar10", [class_folders(tmp_path / "copy")])
    assert now.note.startswith("images in class folders: the order of the batches is lost, their pixels cannot be")
    loaded = loading.load("cifar10", {})
    np.testing.assert_array_equal(loaded.labels, np.tile(np.arange(10), 6))
    np.testing.assert_array_equal(loaded.pixels[:, 0, 0, 0], loaded.labels)
    np.testing.assert_array_equal(loaded.pixels[:30, 0, 0, 1], np.repeat([0, 1, 2], 10))
    np.testing.assert_array_equal(loaded.pixels[:, 9, 9, 2], loaded.split)
    with pytest.raises(UserError, match="10 class folders instead of 100"):
        imports.adopt("cifar100", [tmp_path / "copy"])


def test_cifar100_has_coarse_classes_as_groups(tmp_path):
    folder = tmp_path / "cifar-100-python"
    folder.mkdir()
    for name, n in (("train", 200), ("test", 100)):
        content = {
            b"data": np.zeros((n, 3072), dtype=np.uint8),
            b"fine_labels": [i % 100 for i in range(n)],
            b"coarse_labels": [i % 20 for i in range(n)],
        }
        (folder / name).write_bytes(pickle.dumps(content, protocol=2))
    imports.adopt("cifar100", [folder])
    loaded = loading.load("cifar100", {"train": 150, "test": 100})
    np.testing.assert_array_equal(loaded.labels, np.concatenate([np.arange(150) % 100, np.arange(100)]))
    np.testing.assert_array_equal(loaded.group, np.concatenate([np.arange(150) % 20, np.arange(100) % 20]))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({b"data": np.zeros((2, 3072), dtype=np.uint8)}, r"data_batch_1 has no 'data' \(n, 3072\) with 'labels'"),
        ({b"data": np.zeros((2, 9), dtype=np.uint8), b"labels": [0, 1]}, r"data_batch_1 has no 'data' \(n, 3072\)"),
        (
            {b"data": np.zeros((2, 3072), dtype=np.uint8), b"labels": [0]},
            "1 label and 2 images: every image needs one label",
        ),
        ({b"data": np.zeros((2, 3072), dtype=np.uint8), b"labels": [0, 11]}, "labels run to 11, at most 9 is expected"),
        ({b"data": np.zeros((2, 3072), dtype=np.uint8), b"labels": ["a", 1]}, "labels must be a list of whole numbers"),
        ({b"data": np.zeros((2, 3072)), b"labels": [0, 1]}, "not a pickle of plain arrays of bytes"),
    ],
)
def test_bad_batches(tmp_path, content, message):
    (tmp_path / "data_batch_1").write_bytes(pickle.dumps(content, protocol=2))
    with pytest.raises(UserError, match=message):
        imports.adopt("cifar10", [tmp_path / "data_batch_1"])
    assert copies.state("cifar10").state == "absent"


def test_parameters_are_checked():
    for name, params, message in (
        ("omniglot", {"size": 200}, "size: must be an integer from 4 to 105, not 200"),
        ("omniglot", {"alphabets": 0}, "alphabets: must be an integer from 1 to 50, not 0"),
        ("cifar10", {"train": 5}, "train: must be an integer from 10 to 50,000, not 5"),
        ("cifar100", {"test": 20_000}, "test: must be an integer from 100 to 10,000, not 20000"),
    ):
        with pytest.raises(ParameterError) as caught:
            loading.load(name, params)
        assert str(caught.value) == message


@pytest.mark.parametrize(
    ("name", "params"), [("cifar10", {"train": 200, "test": 100}), ("cifar100", {"train": 300, "test": 100})]
)
def test_cifar_stand_ins(name, params):
    loaded = loading.load(name, params, stand_in=True)
    shape = registry.datasets()[name].make(**params).shape()
    assert loaded.pixels.shape == (shape["images"], 32, 32, 3)
    assert len(set(loaded.labels.tolist())) == shape["classes"]
    assert loaded.pixels.dtype == np.uint8
    assert (loaded.split == 1).sum() == 100
    assert loaded.facts["stand_in"]
    assert 40 < loaded.pixels.std() < 80
    again = loading.load(name, params, stand_in=True)
    np.testing.assert_array_equal(loaded.pixels, again.pixels)


def test_omniglot_stand_in():
    loaded = loading.load("omniglot", {"alphabets": 4}, stand_in=True)
    assert loaded.pixels.shape == (4 * 33 * 20, 28, 28, 1)
    np.testing.assert_array_equal(np.bincount(loaded.labels), np.full(132, 20))
    assert sorted(set(loaded.group.tolist())) == [0, 1, 2, 3]
    assert 0.08 < (loaded.pixels > 0).mean() < 0.2
    # drawings of one character are nearer to each other than to another's
    flat = loaded.pixels.reshape(len(loaded.pixels), -1).astype(float)
    means = flat.reshape(132, 20, -1).mean(axis=1)
    nearest = ((flat[:200, None, :] - means[None]) ** 2).sum(axis=2).argmin(axis=1)
    assert (nearest == loaded.labels[:200]).mean() > 0.5
    whole = registry.datasets()["omniglot"].make().shape()
    assert (whole["images"], whole["classes"]) == (32_460, 1623)


REAL = data_copies.SHARED


@pytest.mark.skipif(not (REAL / "omniglot").exists(), reason="no copy of Omniglot beside the repository")
def test_the_real_omniglot():
    now = imports.adopt("omniglot", [REAL / "omniglot"])  # the official drawings, packed again
    assert (now.state, now.note) == ("present", "the published content in other files")
    loaded = loading.load("omniglot", {})
    assert loaded.pixels.shape == (32_460, 28, 28, 1)
    assert (np.bincount(loaded.labels) == 20).all()
    assert loaded.facts["alphabets"][:3] == ["Alphabet_of_the_Magi", "Angelic", "Anglo-Saxon_Futhorc"]


@pytest.mark.skipif(not (REAL / "cifar10").exists(), reason="no copy of CIFAR-10 beside the repository")
def test_a_piece_of_the_real_cifar10(tmp_path):
    """The first 60 images of a few classes; decoding all 60,000 takes a quarter of a minute."""
    with (
        zipfile.ZipFile(tmp_path / "some.zip", "w") as some,
        tarfile.open(REAL / "cifar10" / "cifar10_jpeg.tar.xz") as t,
    ):
        for k in range(10):
            some.writestr(f"train/class{k}/x.png", _png(k))
        for member in t:
            if member.isreg():
                first = t.extractfile(member).read()
                break
        some.writestr("test/class0/y.jpg", first)
    note = imports.adopt("cifar10", [tmp_path / "some.zip"]).note
    assert note.startswith("JPEG images in class folders: pixels differ from the published ones, the order of the")
    loaded = loading.load("cifar10", {})
    np.testing.assert_array_equal(loaded.pixels[10], np.asarray(Image.open(io.BytesIO(first)).convert("RGB")))


def _png(k):
    out = io.BytesIO()
    Image.new("RGB", (32, 32), (k, k, k)).save(out, "PNG")
    return out.getvalue()


def test_how_drawings_are_shrunk_is_part_of_a_run():
    reached = code.reached(code.Definition("fedrepro.datasets.omniglot", "Omniglot"))
    assert code.Definition("fedrepro.data.formats.images", "shrunk") in reached
