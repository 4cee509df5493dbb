"""The size of loaded data, for every kind of data, and the sizes that every dataset declares in ``shape``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from fedrepro import registry
from fedrepro.data import imports, loading
from fedrepro.datasets.sizes import NAMES, size
from fedrepro.datasets.types import Images, Ratings, Samples, Views
from tests import data_copies, own_examples

SMALL: dict[str, list[dict[str, Any]]] = {
    "synthetic": [{"variant": "clean", "M": 12, "N": 60, "K": 3}, {"M": 7, "N": 90, "K": 5, "outliers": 0.1}],
    "mnist": [{"n": 40}, {"n": 500, "selection": "quota"}, {"n": 9000, "selection": "balanced", "split": "test"}],
    "tdt2": [{"features": 30, "n": 400}, {"features": 40, "classes": 4, "n": None}],
    "tcga": [{"features": 20, "types": 3, "n": 50}],
    "movielens-1m": [{"users": 40}],
    "movielens-10m": [{"users": 30}],
    "netflix": [{"users": 30, "min_item_ratings": 2}],
    "omniglot": [{"alphabets": 2, "size": 14}],
    "cifar10": [{"train": 30, "test": 20}],
    "cifar100": [{"train": 200, "test": 100}],
    "europarl": [{"languages": ["de", "fr"], "train": 30, "test": 5, "features": 64}],
    "synpuf": [{"diagnoses": 100, "procedures": 20}],
    "gcca-synthetic": [{"J": 20, "N": 5, "D": 3, "I": 4}],
    "gcca-sparse": [{"J": 400, "N": 300, "D": 20, "I": 2}],
    "gcca-toy": [{"J": 12, "validation": 4, "test": 5, "cluster": 6}],
    "imc": [{"d": 8, "M": 12, "k": 3, "r": 2, "per_client": 5}],
    "shift": [{"d": 3, "k": 2, "M": 5, "n": 4}],
    "file": [{"path": "own.npz"}],
    "digits": [{"n": 40}],
    "ratings-file": [{"path": "ratings.csv"}],
    "views-file": [{"path": "views.mat"}],
    "images-file": [{"path": "images.npz"}],
    "entries-file": [{"path": "entries.npz"}],
    "regression-file": [{"path": "regression.csv", "z": ["z0", "z1"]}],
}
"""Parameters that make datasets small; a dataset that is not listed is loaded with its defaults."""
CASES = [(name, params) for name in registry.datasets() for params in SMALL.get(name, [{}])]


def test_every_kind_of_data_has_names_for_its_sizes():
    assert set(SMALL) <= set(registry.datasets())
    assert set(NAMES) == {entry.kind for entry in registry.datasets().values()}, "name the sizes of the new kind"


@pytest.mark.parametrize(("name", "params"), CASES)
def test_loaded_data_have_the_declared_shape(name, params, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("own.npz", X=np.ones((4, 7)))
    for example in ("ratings", "views", "images", "entries", "regression"):
        own_examples.module(example).write(tmp_path)
    entry = registry.datasets()[name]
    loaded = loading.load(name, params, stand_in=entry.source is not None)
    sizes, promised = size(loaded), dict(entry.make(**params).shape())
    assert sizes, f"say the size of such data in fedrepro/datasets/sizes.py: {type(loaded)}"
    assert set(sizes) <= set(NAMES[entry.kind]), "a spec may state the size of whatever is measured"
    assert all(type(value) is int and value >= 0 for value in sizes.values())
    density = promised.pop("density", None)
    known = {key: value for key, value in promised.items() if value is not None and (key, value) != ("K", 0)}
    beside = ("P", "side", "kind", "rank")  # of whom the data are, and what bounds defaults
    known = {key: value for key, value in known.items() if key not in beside}
    assert known == {key: sizes.get(key) for key in known}
    assert known or name == "file", "a shape says what is known of the data"
    promised = {key: value for key, value in promised.items() if key not in beside}
    assert set(promised) <= set(sizes) or name == "file"  # the file contains what the shape cannot know
    if density is not None:
        assert loaded.facts["density"] == pytest.approx([density] * sizes["I"], rel=0.1)


def test_the_size_of_a_copy_is_its_own_and_not_the_published_one(tmp_path):
    copies = {
        "mnist": (data_copies.mnist(tmp_path / "mnist", n=30, train=True), {"M": 784, "N": 30, "K": 10}),
        "tdt2": (data_copies.tdt2(tmp_path / "tdt2"), {"M": 30, "N": 60, "K": 3}),
        "tcga": (data_copies.tcga(tmp_path / "tcga"), {"M": 36, "N": 54, "K": 3}),
        "omniglot": (data_copies.omniglot(tmp_path / "o"), {"images": 120, "classes": 6, "size": 28, "groups": 2}),
        "cifar10": (
            data_copies.cifar10(tmp_path / "c"),
            {"images": 120, "classes": 10, "size": 32, "train": 100, "test": 20},
        ),
    }
    for name, (copy, expected) in copies.items():
        imports.adopt(name, [copy])
        assert size(loading.load(name, {})) == expected, name
    imports.adopt("europarl", [data_copies.europarl(tmp_path / "e")])
    few = {"languages": ["de", "fr", "it"], "train": 30, "test": 5, "features": 64}
    assert size(loading.load("europarl", few)) == {"I": 3, "J": 30, "N": 64, "test": 5}
    rows = "\n".join("::".join(map(str, row)) for row in data_copies.ratings().tolist())
    (tmp_path / "ratings.dat").write_text(rows + "\n")
    imports.adopt("movielens-1m", [tmp_path / "ratings.dat"], variant=True)
    assert size(loading.load("movielens-1m", {})) == {"users": 20, "items": 15, "ratings": 300}


def test_every_kind_of_data_says_its_size():
    assert size(Samples(sp.csc_matrix((3, 5)))) == {"M": 3, "N": 5}
    assert size(Samples(np.ones((3, 5)), None, 4)) == {"M": 3, "N": 5, "K": 4}
    assert size(Samples(np.ones((3, 5)), np.array([0, 2, 2, 0, 0]), 4)) == {"M": 3, "N": 5, "K": 2}
    ids = np.zeros(4, dtype=np.int32)
    assert size(Ratings(ids, ids, np.ones(4), 2, 9)) == {"users": 2, "items": 9, "ratings": 4}
    assert size(Views([np.ones((6, 2)), np.ones((6, 3))], facts={"test": 2})) == {"I": 2, "J": 4, "test": 2}
    pixels = np.zeros((4, 8, 8, 1), dtype=np.uint8)
    labels = np.array([0, 5, 5, 9])
    assert size(Images(pixels, labels)) == {"images": 4, "classes": 3, "size": 8}
    split = np.array([0, 0, 0, 1], dtype=np.int8)
    assert size(Images(pixels, labels, np.array([1, 1, 2, 2]), split)) == {
        "images": 4, "classes": 3, "size": 8, "groups": 2, "train": 3, "test": 1,
    }  # fmt: skip
    assert size(object()) == {}
