"""The user's own files: every form gives the same data, specs find them, every mistake is one clear error."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from PIL import Image

import fedrepro as package
from fedrepro import registry
from fedrepro.data import content_fingerprint, loading, own_paths
from fedrepro.errors import ParameterError
from fedrepro.runs.identity import plan
from fedrepro.spec.read import load

from . import own_examples

USER, ITEM, RATING = np.array([3, 3, 7, 9]), np.array([10, 20, 20, 30]), np.array([5.0, 1.0, 4.0, 2.5])
MATRIX = sp.csr_matrix((RATING, ([0, 0, 1, 2], [0, 1, 1, 2])), (3, 3))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(dataset, message, **params):
    with pytest.raises(ParameterError, match=message):
        loading.load(dataset, params)
    with pytest.raises(ParameterError, match=message):  # before anything runs, too
        registry.datasets()[dataset].make(**params).shape()


# -- ratings -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "form", ["csv", "bare.csv", "words.csv", "npz", "mat", "sparse.npz", "sparse.mat", "mtx", "dense.npz"]
)
def test_every_form_gives_the_same_ratings(folder, form):
    path, arrays = f"r.{form}", {"user": USER, "item": ITEM, "rating": RATING}
    rows = list(zip(USER, ITEM, RATING, strict=True))
    if form == "csv":
        (folder / path).write_text("when,rating,item,user\n" + "".join(f"0,{r},{i},{u}\n" for u, i, r in rows))
    elif form == "bare.csv":
        (folder / path).write_text("".join(f"{u},{i},{r}\n" for u, i, r in rows))
    elif form == "words.csv":
        (folder / path).write_text("userId,movieId,rating\n" + "".join(f"u{u},film {i},{r}\n" for u, i, r in rows))
    elif form == "npz":
        np.savez(path, **arrays)
    elif form == "mat":
        scipy.io.savemat(path, arrays)
    elif form == "sparse.npz":
        sp.save_npz(path, MATRIX)
    elif form == "sparse.mat":
        scipy.io.savemat(path, {"R": MATRIX.tocsc()})
    elif form == "mtx":
        scipy.io.mmwrite(path, MATRIX)
    else:
        np.savez(path, R=np.array([[5.0, 1.0, np.nan], [np.nan, 4.0, np.nan], [np.nan, np.nan, 2.5]]))
    loaded = loading.load("ratings-file", {"path": path})
    order = np.lexsort((loaded.item, loaded.user))
    assert loaded.user[order].tolist() == [0, 0, 1, 2]
    assert loaded.item[order].tolist() == [0, 1, 1, 2]
    assert loaded.value[order].tolist() == RATING.tolist()
    assert (loaded.users, loaded.items, loaded.user.dtype) == (3, 3, np.int32)
    assert loaded.test is None
    assert loaded.client is None
    assert registry.datasets()["ratings-file"].make(path=path).shape() == {"users": 3, "items": 3, "ratings": 4}


def test_a_split_and_clients_may_be_given(folder):
    (folder / "r.csv").write_text("user,item,rating,part,shop\n1,1,5,train,b\n1,2,4,test,b\n2,1,3,train,a\n")
    loaded = loading.load("ratings-file", {"path": "r.csv", "split": "part", "client": "shop"})
    assert loaded.test.tolist() == [False, True, False]
    assert loaded.client.tolist() == [1, 0]
    (folder / "t.csv").write_text("user,item,rating,shop\n2,2,1,a\n")
    loaded = loading.load("ratings-file", {"path": "r.csv", "test": "t.csv", "client": "shop"})
    assert loaded.test.tolist() == [False, False, False, True]
    assert (loaded.value[-1], loaded.client.tolist()) == (1.0, [1, 0])
    sp.save_npz("m.npz", MATRIX)
    (folder / "who.txt").write_text("x\ny\nx\n")
    assert loading.load("ratings-file", {"path": "m.npz", "client": "who.txt"}).client.tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("text", "params", "message"),
    [
        (
            "user,item,stars5\n1,1,5\n",
            {},
            r"rating: r.csv has no column of the rating \(it contains user, item, stars5\)",
        ),
        ("user,item,rating\n1,1,x\n", {}, "rating: r.csv has 'x' in line 2; a number is needed"),
        (
            "user,item,rating\n1,1,5\n1,1,4\n",
            {},
            "1 pair of user and item is rated more than once, the first is user 1",
        ),
        (
            "user,item,rating\n1,1,5\n1,1,4\n2,1,4\n2,1,4\n",
            {},
            "2 pairs of user and item are rated more than once, the first is user 1",
        ),
        ("user,item,rating\n1,1,5\n", {"split": "part"}, "split: r.csv has no column or variable 'part'"),
        (
            "user,item,rating,p\n1,1,5,maybe\n",
            {"split": "p"},
            r"must contain 0 \(train\) and 1 \(test\).* not 'maybe' as in line 2",
        ),
        ("user,item,rating,c\n1,1,5,a\n1,2,5,b\n", {"client": "c"}, "are held by two clients, b and a|, a and b"),
        ("user,item,rating\n1,1,\n", {}, "has NaN, infinity or no value in 1 place, first in line 2"),
        ("<html>", {}, "r.csv: has no rows of numbers"),
        ("user,item,rating\n", {}, "r.csv: has no rows of numbers"),
        ("", {}, "r.csv: has no rows of numbers"),
        ("<html>\n<p>\n", {}, "no column of the user"),
    ],
)
def test_bad_ratings(folder, text, params, message):
    (folder / "r.csv").write_text(text)
    refused("ratings-file", message, path="r.csv", **params)


def test_a_dense_matrix_without_gaps_is_not_guessed_at(folder):
    np.savez("r.npz", R=np.ones((3, 4)))
    refused("ratings-file", r"a dense matrix of shape \(3, 4\) without NaN: which entries are ratings\?", path="r.npz")


@pytest.mark.usefixtures("here")
def test_parquet_says_what_to_install(folder, monkeypatch):
    pandas = pytest.importorskip("pandas")

    def lacking(*_, **__):
        raise ImportError("no pyarrow")

    (folder / "r.parquet").write_bytes(b"PAR1")
    monkeypatch.setattr(pandas, "read_parquet", lacking)
    refused("ratings-file", "is a Parquet file, which needs pyarrow: `pip install pyarrow`", path="r.parquet")
    monkeypatch.setattr(
        pandas, "read_parquet", lambda path: pandas.DataFrame({"user": USER, "item": ITEM, "rating": RATING})
    )
    assert loading.load("ratings-file", {"path": "r.parquet"}).value.tolist() == RATING.tolist()


# -- views, entries, regression, images --------------------------------------------------------------------------------


def test_views_stand_in_one_archive_or_in_a_file_each(folder):
    dense, other = np.arange(12.0).reshape(4, 3), sp.csr_matrix(np.eye(4, 5))
    scipy.io.savemat("v.mat", {"a": dense, "b": other, "gnd": [[1], [2], [1], [2]]})
    np.save("a.npy", dense)
    sp.save_npz("b.npz", other)
    (folder / "y.txt").write_text("x\ny\nx\ny\n")
    for params in ({"path": "v.mat", "labels": "gnd"}, {"path": ["a.npy", "b.npz"], "labels": "y.txt"}):
        loaded = loading.load("views-file", params)
        np.testing.assert_array_equal(loaded.views[0], dense)
        assert sp.issparse(loaded.views[1])
        np.testing.assert_array_equal(loaded.views[1].toarray(), other.toarray())
        assert loaded.labels.tolist() == [0, 1, 0, 1]
    assert not sp.issparse(loading.load("views-file", {"path": "v.mat", "dense": True}).views[1])
    assert loading.load("views-file", {"path": "v.mat", "views": ["b", "a"]}).views[1].shape == (4, 3)


def test_views_that_are_not_aligned(folder):
    np.savez("v.npz", a=np.ones((3, 4)), b=np.ones((5, 4)))
    message = r"numbers of rows differ \(a: 3 x 4; b: 5 x 4\). They agree if .* set orientation: columns"
    refused("views-file", message, path="v.npz")
    assert [view.shape for view in loading.load("views-file", {"path": "v.npz", "orientation": "columns"}).views] == [
        (4, 3),
        (4, 5),
    ]
    np.savez("w.npz", a=np.ones((3, 4)))
    refused("views-file", "contains 1 matrix with rows and columns", path="w.npz")


@pytest.mark.parametrize("sign", ["::", ";", "\t"])
def test_ratings_that_are_not_separated_by_commas(folder, sign):
    (folder / "r.csv").write_text("".join(f"{sign.join(row)}\n" for row in ("123", "134", "225")))
    told = re.escape(f"path: r.csv separates its columns by {sign!r}; separate them by commas")
    refused("ratings-file", told, path="r.csv")


def test_entries_in_a_table_or_a_matrix(folder):
    Z = np.array([[1.0, 0.0], [3.0, 4.0]])
    np.savetxt("z.csv", Z, delimiter=",")
    (folder / "e.csv").write_text("client,item,value,part\nb,i1,2.5,0\na,i2,1.0,0\nb,i2,3.0,1\n")
    loaded = loading.load("entries-file", {"path": "e.csv", "side": "z.csv", "split": "part", "rows": "unit"})
    assert (loaded.client.tolist(), loaded.item.tolist(), loaded.items) == ([1, 0, 1], [0, 1, 1], 2)
    assert loaded.test.tolist() == [False, False, True]
    np.testing.assert_allclose(loaded.Z, [[1.0, 0.0], [0.6, 0.8]])
    np.savez("e.npz", L=np.array([[np.nan, 2.5], [1.0, 3.0]]), Z=Z)
    same = loading.load("entries-file", {"path": "e.npz"})
    assert sorted(zip(same.client.tolist(), same.item.tolist(), same.value.tolist(), strict=True)) == [
        (0, 1, 1.0),
        (1, 0, 2.5),
        (1, 1, 3.0),
    ]
    np.savetxt("z.csv", np.ones((3, 2)), delimiter=",")
    refused(
        "entries-file",
        "side: has 3 rows of 2 numbers; it must have one for each of 2 clients",
        path="e.csv",
        side="z.csv",
    )
    (folder / "z.csv").write_text("beds,client,rural\n4,2,0\n3,1,1\n")
    told = "z.csv has the column 'client': sort its rows by the client, and remove this column"
    refused("entries-file", told, path="e.csv", side="z.csv")


def test_regression_tables_and_archives_agree(folder):
    x, y, client, z = own_examples.module("regression").arrays()
    own_examples.module("regression").write(folder)
    np.savez("r.npz", x=x, y=y, client=client, z=z)
    table = loading.load("regression-file", {"path": "regression.csv", "z": ["z0", "z1"]})
    archive = loading.load("regression-file", {"path": "r.npz"})
    for name in ("x", "y", "client", "z"):
        np.testing.assert_allclose(getattr(table, name), getattr(archive, name), rtol=1e-8)
    refused("regression-file", "differs between samples of one client, first in line", path="regression.csv", z=["x0"])
    standard = loading.load("regression-file", {"path": "r.npz", "rescale": "standard"})
    np.testing.assert_allclose(standard.x.std(axis=0), 1.0)


def test_images_in_folders(folder):
    draw = np.random.default_rng(0)
    for client in ("ann", "bob"):
        for kind in ("cat", "dog"):
            (folder / "p" / client / kind).mkdir(parents=True)
            for i in range(2):
                Image.fromarray(draw.integers(256, size=(20, 20), dtype=np.uint8)).save(
                    folder / "p" / client / kind / f"{i}.png"
                )
    (folder / "p" / "side.csv").write_text("1,0\n0,1\n")
    loaded = loading.load("images-file", {"path": "p", "size": 16})
    assert loaded.pixels.shape == (8, 16, 16, 1)
    assert loaded.pixels.dtype == np.uint8
    assert (loaded.client.tolist(), loaded.labels.tolist()) == ([0, 0, 0, 0, 1, 1, 1, 1], [0, 0, 1, 1, 0, 0, 1, 1])
    np.testing.assert_array_equal(loaded.side, np.eye(2))
    known = registry.datasets()["images-file"].make(path="p").shape()
    assert (known["size"], known["P"], known["side"]) == (20, 2, 2)
    before = content_fingerprint.fingerprint("images-file", {"path": "p"})
    Image.new("L", (20, 20)).save(folder / "p" / "bob" / "dog" / "1.png")
    assert content_fingerprint.fingerprint("images-file", {"path": "p"}) != before
    Image.new("L", (30, 20)).save(folder / "p" / "bob" / "dog" / "1.png")
    refused("images-file", r"images differ in size \(0.png 20 x 20, 1.png 30 x 20 pixels\)", path="p")
    (folder / "p" / "bob" / "dog" / "1.png").write_bytes(b"no image")
    refused("images-file", "1.png is not a readable image", path="p")


def test_feature_vectors_are_no_images(folder):
    np.savez("x.npz", pixels=np.ones((10, 64)), labels=np.arange(10) % 2)
    refused("images-file", r"x.npz has feature vectors, 10 x 64: the networks here are convolutional", path="x.npz")
    np.savez("x.npz", pixels=np.full((10, 8, 8), 300), labels=np.arange(10) % 2)
    refused(
        "images-file",
        r"must be integers from 0 to 255 or fractions from 0 to 1; these are from 300 to 300",
        path="x.npz",
    )


# -- specs -------------------------------------------------------------------------------------------------------------


def test_a_path_starts_in_the_folder_of_the_spec(tmp_path, monkeypatch, fedrepro):
    folder = own_examples.copied("samples", tmp_path / "project")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    planned = plan.make([load(folder / "samples.yaml", "quick")], False)
    assert fedrepro("run", folder / "samples.yaml", "-q", "-j", 1, "--set", "rounds=2").exit_code == 0
    shutil.move(folder, tmp_path / "moved")
    monkeypatch.chdir(tmp_path / "moved")
    assert set(plan.make([load(Path("samples.yaml"), "quick")], False).runs) == set(planned.runs), (
        "a project may be moved"
    )
    (tmp_path / "moved" / "samples.csv").unlink()
    said = fedrepro("plan", tmp_path / "moved" / "samples.yaml")
    assert said.exit_code == 2
    assert f"samples.csv does not exist (relative paths start in {tmp_path / 'moved'})" in said.output


def test_two_specs_may_call_two_files_alike(tmp_path):
    figures = []
    for name in ("a", "b"):
        folder = own_examples.copied("samples", tmp_path / name)
        text = (folder / "samples.yaml").read_text().replace("own-samples", f"own-{name}")
        (folder / "samples.yaml").write_text(text)
        if name == "b":
            (folder / "samples.csv").write_text((folder / "samples.csv").read_text().replace(".", ".1"))
        figures.append(load(folder / "samples.yaml", "quick"))
    made = plan.make(figures, False)
    sources = [made.source(figure.settings()[0]) for figure in figures]
    assert sources[0].fingerprint != sources[1].fingerprint
    assert {source.note for source in sources} == {"samples.csv"}
    assert len(made.runs) == 2 * len(plan.make(figures[:1], False).runs)


def test_a_named_file_travels(tmp_path):
    import pickle

    name = own_paths.Named("x.csv", str(tmp_path))
    again = pickle.loads(pickle.dumps(name))
    assert (again, again.folder, own_paths.found(again)) == ("x.csv", str(tmp_path), tmp_path / "x.csv")


def test_samples_in_rows_are_told_before_anything_runs(tmp_path, fedrepro):
    folder = own_examples.copied("samples", tmp_path)
    spec = folder / "samples.yaml"
    spec.write_text(spec.read_text().replace("orientation: rows, ", ""))
    for command in ("validate", "plan", "run"):
        said = fedrepro(command, spec)
        assert said.exit_code == 2
        assert "with samples in columns it has N = 20 samples of M = 300 features" in said.output
        assert "in rows N = 300 samples of M = 20 features" in said.output
        assert "set orientation: rows" in said.output
    X, _, _ = own_examples.module("samples").arrays()
    np.save(folder / "x.npy", X.T)
    spec.write_text(
        spec.read_text()
        .replace("path: samples.csv, labels: group, client: client", "path: x.npy")
        .replace("partition: given", "partition: {name: uniform, P: 10}")
        .replace("metrics: [accuracy]", "")
        .replace("accuracy", "objective")
    )
    said = fedrepro("plan", spec)
    assert said.exit_code == 0
    assert (
        "x.npy is read with samples in columns: N = 20 samples of M = 300 features. With orientation: rows it"
        in said.output
    )
    assert "data file (x.npy): M = 300, N = 20, K = 0" in said.output


def test_given_ratings_take_the_problem_that_uses_their_split(tmp_path, fedrepro):
    spec = own_examples.copied("ratings", tmp_path) / "ratings.yaml"
    spec.write_text(spec.read_text().replace("completion-split", "completion"))
    said = fedrepro("validate", spec)
    assert said.exit_code == 2
    assert "contains split-ratings; the problem 'completion' needs ratings (for these data use 'completion-split')" in (
        " ".join(said.output.split())
    )


def test_rescaled_samples_are_those_of_another_unit(folder):
    X, group, client = own_examples.module("samples").arrays()
    ends = []
    for unit in (1.0, 1e4):
        np.savez("x.npz", X=X * unit)
        for rescale in ("none", "max", "mean"):
            made = loading.load("file", {"path": "x.npz", "rescale": rescale})
            problem = package.Clustering(made.X, client, K=3, rho=1e-4, labels=group)
            ends.append(package.run(package.FedMGS(m=5, Q1=5, Q2=20), problem, 20)["objective"][-1])
    assert ends[1] == pytest.approx(ends[4], rel=1e-9)
    assert ends[2] == pytest.approx(ends[5], rel=1e-9)
    assert ends[0] != pytest.approx(ends[3], rel=1e-2)
    np.save("x.npy", np.asfortranarray(X))
    mapped = loading.load("file", {"path": "x.npy", "rescale": "max"})
    np.testing.assert_allclose(mapped.X, X / np.abs(X).max(), rtol=1e-15)
    sp.save_npz("s.npz", sp.csr_matrix(X))
    assert loading.load("file", {"path": "s.npz", "rescale": "mean"}).X.sum() == pytest.approx(X.size)


def test_digits_are_real_and_need_no_download():
    loaded = loading.load("digits", {})
    assert loaded.X.shape == (64, 1797)
    assert (loaded.X.max(), loaded.K) == (1.0, 10)
    assert np.bincount(loaded.labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    with pytest.raises(ParameterError, match="n: must be an integer from 10 to 1,797, not 1798"):
        loading.load("digits", {"n": 1798})


def test_mnist_s_stand_in_takes_every_small_digit_before_any_again():
    few = loading.load("mnist", {"n": 1000}, stand_in=True)
    many = loading.load("mnist", {"n": 9000, "selection": "balanced"}, stand_in=True)
    assert len(np.unique(few.X, axis=1).T) == 1000
    assert few.X.reshape(28, 28, -1)[:4].max() == 0, "the middle 20 x 20 pixels, as in MNIST"
    assert len(np.unique(many.X, axis=1).T) > 0.9 * many.X.shape[1], "those taken again are shifted"
    small = loading.load("digits", {})
    shrunk = few.X.reshape(28, 28, -1)[4:24, 4:24].reshape(4, 5, 4, 5, -1).mean(axis=(1, 3)).reshape(16, -1)
    blocks = small.X.reshape(4, 2, 4, 2, -1).mean(axis=(1, 3)).reshape(16, -1)
    for k in range(10):  # every enlarged digit looks like a small one of its class
        ours, theirs = shrunk[:, few.labels == k], blocks[:, small.labels == k]
        alike = np.corrcoef(ours.T, theirs.T)[: ours.shape[1], ours.shape[1] :].max(axis=1)
        assert alike.min() > 0.9
    assert "scikit-learn's 1,797 handwritten digits" in few.facts["stand_in"]
