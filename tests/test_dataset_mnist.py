"""MNIST: which images are chosen, in which order, and which notes are made."""

from __future__ import annotations

import gzip
import hashlib

import numpy as np
import pytest

from fedrepro import registry
from fedrepro.data import content_fingerprint, copies, imports, loading
from fedrepro.data.sources import mnist
from fedrepro.datasets.mnist import COUNTS, select
from fedrepro.datasets.sizes import size
from fedrepro.datasets.types import Samples
from fedrepro.errors import ParameterError, UserError
from fedrepro.spec.read import load
from tests import data_copies

from .conftest import ROOT


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDREPRO_DATA", str(tmp_path / "home"))


def test_images_are_columns_in_file_order_scaled(tmp_path):
    imports.adopt("mnist", [data_copies.mnist(tmp_path / "copy")])
    loaded = loading.load("mnist", {"n": 30, "split": "test"})
    assert loaded.X.shape == (784, 30)
    np.testing.assert_array_equal(loaded.X[5], np.arange(30) / 255)
    np.testing.assert_array_equal(loaded.labels, np.arange(30) % 10)
    raw = loading.load("mnist", {"n": 30, "scale": 1, "split": "test"})
    np.testing.assert_allclose(loaded.X * 255, raw.X)


def brute_quota(labels, n):
    """The released selection: the first images of each class by share, kept in file order."""
    share = (np.array([0.05] * 4 + [0.1] * 3 + [0.15] * 2 + [0.2]) * n).astype(int)
    taken = [np.where(labels == k)[0][: share[k]] for k in range(10)]
    return np.sort(np.concatenate(taken))


def test_quota_is_the_released_selection_where_it_can_be_met():
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(10), COUNTS["train"]))
    np.testing.assert_array_equal(select(labels, 10_000, "quota"), brute_quota(labels, 10_000))
    np.testing.assert_array_equal(np.bincount(labels[select(labels, 10_000, "balanced")]), np.full(10, 1000))


@pytest.mark.parametrize(("selection", "size"), [("quota", 5040), ("balanced", 8920)])
def test_the_test_images_allow_fewer(selection, size):
    labels = np.repeat(np.arange(10), COUNTS["test"])
    index = select(labels, 10_000, selection)
    wanted = registry.datasets()["mnist"].make(selection=selection, split="test")
    assert len(index) == size == wanted.shape()["N"]
    assert (np.diff(index) > 0).all()


FIGURES = (
    "beyond/fedcavg_step", "fedc/fig5", "fedc/fig6", "fedmf/figS2", "fedmf/figS3", "fedmf/figS4", "fedmf/table1",
)  # fmt: skip


@pytest.mark.parametrize("figure", FIGURES)
def test_at_the_paper_tier_the_published_images_and_clients_come_out(figure):
    settings = [s for s in load(ROOT / "experiments" / f"{figure}.yaml", "paper").settings() if s.dataset == "mnist"]
    assert settings
    for setting in {(s.names["dataset"], s.names["partition"]): s for s in settings}.values():
        wanted = registry.datasets()["mnist"].make(**setting.dataset_params)
        assert (wanted.split, wanted.shape()) == ("train", {"M": 784, "N": 10_000, "K": 10})
        labels = np.random.default_rng(0).permutation(np.repeat(np.arange(10), COUNTS["train"]))
        labels = labels[select(labels, wanted.n, wanted.selection)]
        shares = np.array([500] * 4 + [1000] * 3 + [1500] * 2 + [2000])
        np.testing.assert_array_equal(np.bincount(labels), 1000 if wanted.selection == "balanced" else shares)
        sharing = registry.partitions()[setting.partition].make(**setting.partition_params)
        client = sharing.assign(Samples(labels[None, :], labels, 10), np.random.default_rng(0))
        sizes = np.bincount(client)
        assert len(sizes) == 100
        if setting.partition == "two_digits":
            assert {len(np.unique(labels[client == i])) for i in range(100)} == {2}
        if setting.partition == "uniform" or wanted.selection == "balanced":
            assert set(sizes) == {100}
        else:
            assert (sizes.min(), sizes.max()) == (50, 175)


def test_every_figure_on_mnist_is_among_these():
    files = (ROOT / "experiments").glob("*/*.yaml")
    users = {f"{p.parent.name}/{p.stem}" for p in files if "{name: mnist" in p.read_text(encoding="utf-8")}
    assert users == set(FIGURES)


@pytest.mark.parametrize("split", ["train", "test"])
@pytest.mark.parametrize("selection", ["first", "balanced", "quota"])
@pytest.mark.parametrize("n", [20, 500, 10_000])
def test_stand_in_has_the_shape_and_class_sizes_of_the_real_one(selection, n, split):
    entry = registry.datasets()["mnist"]
    params = {"n": n, "selection": selection, "split": split}
    loaded = loading.load("mnist", params, stand_in=True)
    assert {"M": loaded.X.shape[0], "N": loaded.X.shape[1], "K": loaded.K} == entry.make(**params).shape()
    assert "stand_in" in loaded.facts
    assert loaded.X.min() >= 0
    assert loaded.X.max() <= 1
    assert 0.1 < (loaded.X > 0).mean() < 0.3
    if selection == "balanced":
        assert len(set(np.bincount(loaded.labels, minlength=10))) == 1
    again = loading.load("mnist", params, stand_in=True)
    assert again.X.tobytes() == loaded.X.tobytes()


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n": 0}, "n: must be an integer from 10 to 60,000, not 0"),
        ({"n": 60_000, "split": "test"}, "n: must be an integer from 10 to 10,000, not 60000"),
        ({"split": "val"}, "split: must be one of train, test, not 'val'"),
        ({"selection": "random"}, "selection: must be one of first, balanced, quota, not 'random'"),
        ({"scale": 0}, "scale: must be a number from 1e-06 to 1e+06, not 0"),
        ({"size": 3}, "size: mnist has no such parameter"),
    ],
)
def test_bad_parameters(params, message):
    with pytest.raises(ParameterError) as caught:
        loading.load("mnist", params)
    assert str(caught.value).startswith(message)


def test_copies_that_are_not_mnist(tmp_path):
    folder = data_copies.mnist(tmp_path / "copy")
    (folder / "t10k-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(UserError, match="the test images and their labels are needed together"):
        imports.adopt("mnist", [folder])
    (folder / "t10k-labels-idx1-ubyte").write_bytes(data_copies.idx(np.zeros(39)))
    with pytest.raises(UserError, match="39 labels and 40 test images: every image needs one label"):
        imports.adopt("mnist", [folder])
    (folder / "t10k-labels-idx1-ubyte").write_bytes(data_copies.idx(np.full(40, 12)))
    with pytest.raises(UserError, match="labels are not digits 0 to 9"):
        imports.adopt("mnist", [folder])
    (folder / "t10k-labels-idx1-ubyte").write_bytes(b"\x00\x00\x0d\x01\x00\x00\x00\x01\x00\x00\x00\x00")
    with pytest.raises(UserError, match="is not an IDX file of unsigned bytes"):
        imports.adopt("mnist", [folder])
    with pytest.raises(UserError, match=r"contains nothing of mnist, it looks like tdt2; pass the IDX files"):
        imports.adopt("mnist", [data_copies.tdt2(tmp_path / "t")])
    assert copies.state("mnist").state == "absent"


def test_npz_and_csv_hold_the_same_images(tmp_path):
    from_idx = imports.adopt("mnist", [data_copies.mnist(tmp_path / "copy", n=25)]).fingerprint
    pixels = np.repeat(np.arange(25, dtype=np.uint8), 784).reshape(25, 28, 28)
    labels = np.arange(25) % 10
    np.savez(tmp_path / "mnist.npz", x_test=pixels, y_test=labels)
    assert imports.adopt("mnist", [tmp_path / "mnist.npz"]).fingerprint == from_idx
    table = np.column_stack([labels, pixels.reshape(25, -1)])
    for header in ("", "label," + ",".join(f"pixel{i}" for i in range(784))):
        np.savetxt(tmp_path / "mnist_test.csv", table, fmt="%d", delimiter=",", header=header, comments="")
        assert imports.adopt("mnist", [tmp_path / "mnist_test.csv"]).fingerprint == from_idx
    np.savetxt(tmp_path / "mnist_test.csv", table[:, :100], fmt="%d", delimiter=",")
    with pytest.raises(UserError, match=r"mnist_test.csv has 100 columns, a label and 784 pixels are expected"):
        imports.adopt("mnist", [tmp_path / "mnist_test.csv"])
    np.savez(tmp_path / "mnist.npz", x_test=pixels + 0.5, y_test=labels)
    with pytest.raises(UserError, match=r"x_test.npy must contain whole numbers 0 to 255"):
        imports.adopt("mnist", [tmp_path / "mnist.npz"])
    np.savez(tmp_path / "mnist.npz", x_test=np.array([{}], dtype=object), y_test=labels)
    with pytest.raises(UserError, match=r"x_test.npy cannot be read \(Object arrays cannot be loaded"):
        imports.adopt("mnist", [tmp_path / "mnist.npz"])


def official(monkeypatch, folder):
    """Make the uncompressed content of the copy in ``folder`` the published one."""
    for file in folder.iterdir():
        stem = file.name.removesuffix(".gz")
        inside = hashlib.md5(gzip.decompress(file.read_bytes()), usedforsecurity=False).hexdigest()
        monkeypatch.setitem(mnist.HASHES, stem, ("0" * 32, inside))
    monkeypatch.setattr(mnist, "SIZES", {"train": 40, "test": 40})
    for part in ("train", "test"):
        monkeypatch.delitem(mnist.SOURCES[0].published, part)


@pytest.mark.usefixtures("here")
def test_a_copy_compressed_again_is_the_published_content_and_one_with_another_pixel_is_not(tmp_path, monkeypatch):
    folder = data_copies.mnist(tmp_path / "copy", train=True)
    official(monkeypatch, folder)
    for file in folder.iterdir():
        file.write_bytes(gzip.compress(gzip.decompress(file.read_bytes()), compresslevel=1, mtime=7))
    now = imports.adopt("mnist", [folder])
    assert (now.state, now.note) == ("present", "without the test images; the published content in other files")
    file = folder / "train-images-idx3-ubyte.gz"
    raw = bytearray(gzip.decompress(file.read_bytes()))
    raw[-1] ^= 1
    file.write_bytes(gzip.compress(bytes(raw)))
    now = imports.adopt("mnist", [folder])
    assert now.state == "variant"
    assert now.note.startswith("the train pixels are not the published ones")


@pytest.mark.skipif(not (data_copies.SHARED / "mnist").exists(), reason="no copy of MNIST beside the repository")
def test_the_real_images():
    now = imports.adopt("mnist", [data_copies.SHARED / "mnist"])
    assert (now.state, now.note) == ("present", "the published content in other files")
    prints = {
        "test": "54b5be7f2ef37c1d86702aeb436c0d8add3fd0450a507518068fe182f001ba8f",
        "train": "afbe4a9c40347015f13e90e4017fe71d2201ab1ee684ab2f1e76f529f26ebbe1",
    }
    for split, fingerprint in prints.items():
        assert content_fingerprint.fingerprint("mnist", {"split": split}) == fingerprint
    assert content_fingerprint.fingerprint("mnist", {}) == prints["train"]
    loaded = loading.load("mnist", {"split": "test"})
    assert loaded.X.shape == (784, 10_000)
    assert np.bincount(loaded.labels).tolist() == COUNTS["test"].tolist()
    assert loaded.X.max() == 1
    fewer = loading.load("mnist", {"selection": "quota", "split": "test"})
    assert fewer.facts["fewer"] == "5,040 of 10,000 images: more would break the proportions of 'quota'"
    assert fewer.facts["class_sizes"] == [252] * 4 + [504] * 3 + [756] * 2 + [1008]


@pytest.mark.skipif(not (data_copies.SHARED / "mnist").exists(), reason="no copy of MNIST beside the repository")
@pytest.mark.parametrize("selection", ["balanced", "quota"])
def test_the_published_10000_come_from_the_real_training_images(selection):
    imports.adopt("mnist", [data_copies.SHARED / "mnist"])
    everything = loading.load("mnist", {"n": 60_000, "split": "train"})
    assert np.bincount(everything.labels).tolist() == COUNTS["train"].tolist()
    loaded = loading.load("mnist", {"n": 10_000, "split": "train", "selection": selection})
    assert size(loaded) == {"M": 784, "N": 10_000, "K": 10}
    assert "fewer" not in loaded.facts
    taken = (
        brute_quota(everything.labels, 10_000)
        if selection == "quota"
        else np.sort(np.concatenate([np.flatnonzero(everything.labels == k)[:1000] for k in range(10)]))
    )
    np.testing.assert_array_equal(loaded.X, everything.X[:, taken])
    np.testing.assert_array_equal(loaded.labels, everything.labels[taken])
