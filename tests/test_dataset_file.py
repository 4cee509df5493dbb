"""A user's own matrix: every format gives the same samples, every mistake one clear error."""

from __future__ import annotations

import hashlib
import mmap
import os
import re

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from fedrepro.data import content_fingerprint, loading
from fedrepro.datasets import memory_mapped
from fedrepro.datasets.matrix_file import MatrixFile
from fedrepro.errors import ParameterError
from fedrepro.files import nameless, nameless_in
from fedrepro.runs.identity import code

X = np.array([[0.0, 1.5, 0.0, 2.0], [3.0, 0.0, 0.0, 4.0], [0.0, 0.0, 5.5, 6.0]])  # M = 3, N = 4
WORDS = np.array(["b", "a", "b", "c"])


def load(**params):
    return MatrixFile(**params).load()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("ending", ["npy", "npz", "sparse.npz", "mat", "csv", "mtx"])
def test_every_format_gives_the_same_matrix(folder, ending):
    path = f"x.{ending}"
    if ending == "npy":
        np.save(path, X)
    elif ending == "npz":
        np.savez(path, X=X, labels=WORDS)
    elif ending == "sparse.npz":
        sp.save_npz(path, sp.csr_matrix(X))
    elif ending == "mat":
        scipy.io.savemat(path, {"fea": sp.csc_matrix(X), "gnd": np.arange(4)[:, None]})
    elif ending == "csv":
        np.savetxt(path, X, delimiter=",")
    else:
        scipy.io.mmwrite(path, sp.coo_matrix(X))
    loaded = load(path=path)
    assert sp.issparse(loaded.X) == (ending in ("sparse.npz", "mat", "mtx"))
    dense = loaded.X.toarray() if sp.issparse(loaded.X) else loaded.X
    np.testing.assert_array_equal(dense, X)
    assert dense.dtype == np.float64
    assert loaded.labels is None
    assert loaded.K is None


def test_rows_orientation_is_the_transpose(folder):
    np.save("x.npy", X.T)
    np.testing.assert_array_equal(load(path="x.npy", orientation="rows").X, X)


def test_labels_from_a_key_a_file_and_a_csv_column(folder):
    np.savez("x.npz", X=X, kinds=WORDS)
    by_key = load(path="x.npz", labels="kinds")
    assert by_key.labels.tolist() == [1, 0, 1, 2]
    assert by_key.K == 3
    assert by_key.facts["label_values"] == ["a", "b", "c"]
    (folder / "y.txt").write_text("\n".join(WORDS) + "\n")
    assert load(path="x.npz", labels="y.txt").labels.tolist() == [1, 0, 1, 2]
    rows = "\n".join(",".join(map(str, [*x, w])) for x, w in zip(X.T, WORDS, strict=True))
    (folder / "x.csv").write_text("f1,f2,f3,kind\n" + rows + "\n")
    table = load(path="x.csv", labels="kind", orientation="rows")
    np.testing.assert_array_equal(table.X, X)
    assert table.labels.tolist() == [1, 0, 1, 2]


def test_key_is_chosen_or_asked_for(folder):
    np.savez("x.npz", A=X, B=2 * X)
    np.testing.assert_array_equal(load(path="x.npz", key="B").X, 2 * X)
    with pytest.raises(
        ParameterError, match=r"key: x.npz must contain one matrix \(it contains A, B\); name it with key:"
    ):
        load(path="x.npz")
    wrong = r"key: x.npz has no column or variable 'a', did you mean 'A'\? \(it contains A, B\)"
    with pytest.raises(ParameterError, match=wrong):
        load(path="x.npz", key="a")


@pytest.mark.parametrize(("shape", "name"), [((60,), "x.npy"), ((2, 3, 4), "x.npy"), ((), "x.npz")])
def test_a_file_without_a_matrix_is_refused_with_the_shape_of_what_it_contains(folder, shape, name):
    if name.endswith("npy"):
        np.save(name, np.zeros(shape))
    else:
        np.savez(name, X=np.zeros(shape))
    with pytest.raises(ParameterError) as caught:
        load(path=name)
    said = (
        f"path: {name} must contain a matrix, with two axes (it contains X of shape {shape}); if there is one feature"
    )
    assert str(caught.value).startswith(said)


def test_labels_that_do_not_match(folder):
    np.savez("x.npz", X=X, labels=np.arange(3))
    message = (
        "labels: labels of 3 samples do not match x.npz: with samples in columns it has N = 4 samples of M = 3 "
        "features, in rows N = 3 samples of M = 4 features; they match if samples are rows: set "
        "orientation: rows"
    )
    with pytest.raises(ParameterError) as caught:
        load(path="x.npz", labels="labels")
    assert str(caught.value) == message
    with pytest.raises(
        ParameterError, match=r"labels: x.npz has no column or variable 'labelz', did you mean 'labels'\?"
    ):
        load(path="x.npz", labels="labelz")


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (
            np.where(X == 5.5, np.nan, X),
            "path: x.npy has NaN, infinity or no value in 1 place, first in row 2, column 2",
        ),
        (np.zeros((0, 4)), r"path: x.npy contains an array of shape \(0, 4\); a matrix with entries is needed"),
        (np.zeros(4), r"path: x.npy contains an array of shape \(4,\)"),
        (X.astype(complex), "path: x.npy contains values of type complex128; real numbers are needed"),
    ],
)
def test_bad_values(folder, array, message):
    np.save("x.npy", array)
    with pytest.raises(ParameterError, match=message):
        load(path="x.npy", key="X")


def test_files_that_are_not_what_they_say(folder):
    for name in ("x.npy", "x.npz", "x.mat", "x.mtx"):
        (folder / name).write_bytes(b"<html>not found</html>")
        with pytest.raises(ParameterError, match=f"path: {name}"):
            load(path=name)
    np.save("p.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(ParameterError, match=r"path: p.npy cannot be read as .npy \(it contains no plain array"):
        load(path="p.npy")
    (folder / "t.csv").write_text("a,b\n1,x\n2,y\n")
    with pytest.raises(
        ParameterError, match=r"column 'b' contains text \('x' in line 2\); name it with labels: or client:"
    ):
        load(path="t.csv")


def test_parameters_are_checked_before_reading(folder):
    with pytest.raises(
        ParameterError, match=r"path: must be a file ending in .npz, .npy, .mat, .csv, .mtx, not 'a.h5'"
    ):
        load(path="a.h5")
    with pytest.raises(ParameterError, match=r"^path: file needs it$"):
        loading.load("file", {"key": "X"})
    with pytest.raises(ParameterError, match=r"path: a.npy does not exist \(relative paths start in "):
        load(path="a.npy")
    np.save("a.npy", X)
    with pytest.raises(
        ParameterError, match="orientation: must be one of columns, rows, not 'row', did you mean 'rows'"
    ):
        load(path="a.npy", orientation="row")


def test_fingerprint_follows_the_bytes_of_matrix_and_labels(folder):
    np.save("x.npy", X)
    (folder / "y.txt").write_text("1\n2\n1\n2\n")
    alone = content_fingerprint.fingerprint("file", {"path": "x.npy"})
    both = content_fingerprint.fingerprint("file", {"path": "x.npy", "labels": "y.txt"})
    assert alone == hashlib.sha256(hashlib.sha256((folder / "x.npy").read_bytes()).hexdigest().encode()).hexdigest()
    assert alone != both
    (folder / "y.txt").write_text("1\n2\n1\n1\n0\n")
    assert content_fingerprint.fingerprint("file", {"path": "x.npy", "labels": "y.txt"}) != both


def test_how_a_matlab_file_is_read_is_part_of_a_run():
    """The fingerprint of a user's own file is that of its bytes, whatever arrays they are read as."""
    reached = code.reached(code.Definition("fedrepro.datasets.matrix_file", "MatrixFile"))
    assert code.Definition("fedrepro.data.formats.matlab", "matlab") in reached


# A .npy file that may be larger than memory


def mapped_from(X: np.ndarray) -> object:
    """The buffer that contains the numbers of an array."""
    while isinstance(X, np.ndarray):
        X = X.base
    return X


@pytest.mark.parametrize("kind", ["<f8", ">f8", "<f4", "i2", "?"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("orientation", ["columns", "rows"])
def test_a_npy_file_is_mapped_and_turned_block_by_block(folder, monkeypatch, orientation, order, kind):
    monkeypatch.setattr(memory_mapped, "_BLOCK_BYTES", 8 * 7 * 4)  # samples of a block: 4 of M = 7 numbers
    monkeypatch.setattr(memory_mapped, "_PANEL_BYTES", 8 * 7 * 9)
    A = (np.random.default_rng(0).standard_normal((7, 30)) * 3).astype(kind)
    np.save("x.npy", np.asarray(A if orientation == "columns" else A.T, order=order))
    before = (folder / "x.npy").read_bytes()
    loaded = load(path="x.npy", orientation=orientation).X
    np.testing.assert_array_equal(loaded, A.astype(np.float64))
    assert isinstance(mapped_from(loaded), mmap.mmap)
    assert loaded.T.flags.c_contiguous
    assert loaded.dtype == np.float64
    assert loaded.dtype.isnative
    assert not loaded.flags.writeable
    assert (folder / "x.npy").read_bytes() == before
    assert [path.name for path in folder.iterdir()] == ["x.npy"]


def test_samples_that_stand_together_are_not_copied(folder, monkeypatch):
    monkeypatch.setattr(memory_mapped, "nameless", lambda: pytest.fail("a copy of a file that needs none"))
    np.save("x.npy", np.asfortranarray(X))
    np.save("y.npy", X.T.copy())
    for params in ({"path": "x.npy"}, {"path": "y.npy", "orientation": "rows"}):
        np.testing.assert_array_equal(load(**params).X, X)


@pytest.mark.parametrize("order", ["C", "F"])
def test_the_first_bad_number_is_found_whatever_the_blocks(folder, monkeypatch, order):
    monkeypatch.setattr(memory_mapped, "_BLOCK_BYTES", 8 * 5 * 2)
    A = np.zeros((6, 5))
    A[1, 4] = A[4, 0] = np.nan
    A[5, 1] = -np.inf
    np.save("x.npy", np.asarray(A, order=order))
    with pytest.raises(
        ParameterError, match=r"^path: x.npy has NaN, infinity or no value in 3 places, first in row 1, column 4 "
    ):
        load(path="x.npy")


def test_nameless_files_lie_where_they_are_told_to(tmp_path):
    with nameless_in(tmp_path), nameless() as file:
        assert os.fstat(file.fileno()).st_dev == tmp_path.stat().st_dev
        file.write(b"unseen")
        assert list(tmp_path.iterdir()) == []
    with nameless_in(tmp_path / "absent"), pytest.raises(FileNotFoundError):
        nameless()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (np.array([["a", "b"], ["c", "d"]]), "path: x.npy contains values of type <U1; real numbers are needed"),
        (np.ones((2, 2), complex), "path: x.npy contains values of type complex128; real numbers are needed"),
        (np.ones((0, 3)), "path: x.npy contains an array of shape (0, 3); a matrix with entries is needed"),
        (np.array([[1.0, np.nan]]), "in 1 place, first in row 0, column 1 (counted from 0); correct or remove it"),
    ],
)
def test_what_cannot_be_computed_on_is_refused_when_planned(folder, content, message):
    np.save("x.npy", content)
    with pytest.raises(ParameterError, match=re.escape(message)):
        MatrixFile("x.npy").shape()


def test_infinity_in_a_table_is_refused_when_planned(folder):
    (folder / "t.csv").write_text("1,2\n3,inf\n")
    with pytest.raises(ParameterError, match=r"column '1' has NaN, infinity or no value in 1 place, first in line 2"):
        MatrixFile("t.csv").shape()


def test_a_row_with_hexadecimal_numbers_is_not_lost_as_a_header(folder):
    (folder / "t.csv").write_text("0x10,1,2\n3,4,5\n")
    with pytest.raises(ParameterError, match="'0x10' in its first row is not a number, but the row is not a header"):
        MatrixFile("t.csv").shape()
    (folder / "t.csv").write_text("label,0x0,0x1\n3,4,5\n6,7,8\n")  # names of pixels
    assert MatrixFile("t.csv", labels="label", orientation="rows").load().X.shape == (2, 2)
