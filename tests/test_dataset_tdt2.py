"""TDT2: sparse throughout, terms by chi-squared, weightings, the real copy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from fedrepro import registry
from fedrepro.data import copies, imports, loading
from fedrepro.datasets.subsets import top_by_chi2
from fedrepro.datasets.tdt2 import CLASS_SIZES, prepared
from fedrepro.errors import ParameterError, UserError
from tests import data_copies


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDREPRO_DATA", str(tmp_path / "home"))


def naive_chi2(counts, labels):
    """Pearson's statistic of each column: sum over classes of (observed - expected)^2 / expected."""
    total, score = counts.sum(axis=0), np.zeros(counts.shape[1])
    for k in np.unique(labels):
        expected = (labels == k).mean() * total
        score += (counts[labels == k].sum(axis=0) - expected) ** 2 / expected
    return score


def small(documents=60, terms=30):
    draw = np.random.default_rng(1)
    labels = np.arange(documents) % 3
    counts = draw.poisson(1.0, size=(documents, terms)).astype(float)
    counts[np.arange(documents), labels] += 4
    return counts, labels


def test_terms_are_those_of_largest_chi2():
    counts, labels = small()
    expected = np.sort(np.argsort(-naive_chi2(counts, labels))[:7])
    np.testing.assert_array_equal(top_by_chi2(sp.csr_matrix(counts), labels, 7), expected)


def test_weightings_by_hand():
    counts, labels = small()
    plain = prepared(sp.csr_matrix(counts), labels, 3, 10, "counts", False)
    chosen = top_by_chi2(sp.csr_matrix(counts), labels, 10)
    np.testing.assert_array_equal(plain.X.toarray(), counts[:, chosen].T)
    weighted = prepared(sp.csr_matrix(counts), labels, 3, 10, "tfidf", False).X.toarray()
    df = (counts[:, chosen] > 0).sum(axis=0)
    np.testing.assert_allclose(weighted, (counts[:, chosen] * np.log(60 / df)).T)
    unit = prepared(sp.csr_matrix(counts), labels, 3, 10, "counts", True).X
    np.testing.assert_allclose(np.sqrt(unit.multiply(unit).sum(axis=0)), 1)
    for matrix in (plain.X, unit):
        assert sp.issparse(matrix)
        assert matrix.format == "csc"


def test_copy_is_read_and_classes_go_from_the_largest(tmp_path):
    now = imports.adopt("tdt2", [data_copies.tdt2(tmp_path)])
    assert now.state == "variant"
    assert "60 documents of 30 terms instead of 9,394 of 36,771" in now.note
    loaded = loading.load("tdt2", {"features": 5, "classes": 3})
    assert loaded.X.shape == (5, 60)
    assert loaded.X.dtype == np.float64
    two = loading.load("tdt2", {"features": 5, "classes": 2})
    assert two.X.shape == (5, 40)
    assert set(two.labels) == {0, 1}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"fea": np.ones((4, 3))}, "has no variables 'fea'"),
        ({"fea": np.ones((4, 3)), "gnd": np.ones(3)}, r"'fea' \(4, 3\) and 'gnd' \(3 labels\) do not belong together"),
        ({"fea": np.full((4, 3), np.nan), "gnd": np.ones(4)}, "must contain counts, finite and not negative"),
        ({"fea": -np.ones((4, 3)), "gnd": np.ones(4)}, "must contain counts, finite and not negative"),
        ({"fea": np.ones((4, 3)), "gnd": np.full(4, 0.5)}, "must contain whole numbers"),
    ],
)
def test_bad_matrices(tmp_path, content, message):
    scipy.io.savemat(tmp_path / "TDT2.mat", content)
    with pytest.raises(UserError, match=message):
        imports.adopt("tdt2", [tmp_path / "TDT2.mat"])
    assert copies.state("tdt2").state == "absent"


@pytest.mark.usefixtures("here")
def test_a_matrix_that_unpacks_without_end_is_refused(tmp_path, monkeypatch):
    scipy.io.savemat(tmp_path / "TDT2.mat", {"fea": np.zeros((500, 500)), "gnd": np.ones(500)}, do_compression=True)
    monkeypatch.setattr("fedrepro.data.formats.matlab.LIMIT", 100_000)
    with pytest.raises(UserError, match=r"TDT2.mat unpacks to more than 100,000 bytes; it is not read"):
        imports.adopt("tdt2", [tmp_path / "TDT2.mat"])


def test_parameters_are_checked():
    with pytest.raises(ParameterError, match="features: must be an integer from 1 to 36,771, not 0"):
        loading.load("tdt2", {"features": 0})
    with pytest.raises(
        ParameterError, match="weighting: must be one of counts, tfidf, not 'idf', did you mean 'tfidf'"
    ):
        loading.load("tdt2", {"weighting": "idf"})
    with pytest.raises(ParameterError, match="n: must be an integer from 2 to 3,672, not 5000"):
        loading.load("tdt2", {"classes": 2, "n": 5000})


def test_stand_in_has_the_shape_and_the_counted_statistics():
    entry = registry.datasets()["tdt2"]
    params = {"features": 1000, "n": 1500}
    loaded = loading.load("tdt2", params, stand_in=True)
    assert {"M": loaded.X.shape[0], "N": loaded.X.shape[1], "K": loaded.K} == entry.make(**params).shape()
    assert sp.issparse(loaded.X)
    assert "stand_in" in loaded.facts
    assert 0.005 < loaded.X.nnz / np.prod(loaded.X.shape) < 0.1
    np.testing.assert_allclose(
        np.bincount(loaded.labels, minlength=30) / 1500, np.array(CLASS_SIZES) / 9394, atol=2 / 1500
    )


@pytest.mark.skipif(not (data_copies.SHARED / "tdt2").exists(), reason="no copy of TDT2 beside the repository")
def test_the_real_matrix():
    now = imports.adopt("tdt2", [data_copies.SHARED / "tdt2" / "TDT2.mat"])
    assert now.state == "present"
    loaded = loading.load("tdt2", {})
    assert loaded.X.shape == (5000, 9394)
    assert tuple(np.bincount(loaded.labels)) == CLASS_SIZES
    assert loaded.X.nnz == 668_763
    assert loaded.facts["empty_columns"] == 1
    counts = sp.csr_matrix(scipy.io.loadmat(data_copies.SHARED / "tdt2" / "TDT2.mat")["fea"])
    assert counts.nnz == 1_224_135
