"""TCGA: which samples and genes are taken, from files in the hub's format."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from fedrepro import registry
from fedrepro.data import copies, imports, loading
from fedrepro.datasets.subsets import top_by_chi2
from fedrepro.errors import ParameterError, UserError
from tests import data_copies

TABLE = "TCGA_phenotype_denseDataOnlyDownload.tsv.gz"
MATRIX = "EB++AdjustPANCAN_IlluminaHiSeq_RNASeqV2.geneExp.xena.gz"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDREPRO_DATA", str(tmp_path / "home"))


def rows(folder, name):
    return [line.split("\t") for line in gzip.decompress((folder / name).read_bytes()).decode().splitlines()]


def test_steps_from_the_files_to_the_matrix(tmp_path):
    folder = data_copies.tcga(tmp_path / "copy")
    now = imports.adopt("tcga", [folder])
    assert (now.state, now.note) == ("variant", "40 genes of 60 samples instead of 20,531 of 11,069")
    loaded = loading.load("tcga", {"features": 7, "types": 2, "n": None})
    table = rows(folder, MATRIX)
    kinds = {row[0]: row[3] for row in rows(folder, TABLE)[1:]}
    tumours = [i for i, b in enumerate(table[0][1:]) if b.endswith("-01")]
    breast = [i for i in tumours if kinds[table[0][1 + i]] == "breast"]
    other = sorted({"lung", "skin"}, key=lambda k: (-sum(kinds[table[0][1 + i]] == k for i in tumours), k))[0]
    second = [i for i in tumours if kinds[table[0][1 + i]] == other]
    samples = breast + second
    complete = [g for g in table[1:] if all(g[1 + i] not in ("", "NA") for i in samples)]
    X = np.array([[np.float32(g[1 + i]) for g in complete] for i in samples], dtype=np.float64)
    labels = np.repeat([0, 1], [len(breast), len(second)])
    np.testing.assert_array_equal(loaded.X, X[:, top_by_chi2(X, labels, 7)].T)
    np.testing.assert_array_equal(loaded.labels, labels)
    assert loaded.facts["types"] == ["breast", other]
    assert loaded.facts["genes_left_out"] == 40 - len(complete)
    assert loaded.X.min() >= 0


def test_fewer_samples_keep_the_proportions(tmp_path):
    imports.adopt("tcga", [data_copies.tcga(tmp_path / "copy")])
    everything = loading.load("tcga", {"features": 7, "types": 3, "n": None})
    share = np.bincount(everything.labels) / len(everything.labels)
    for n in (9, 27, len(everything.labels) - 3):  # few, half, nearly all
        some = loading.load("tcga", {"features": 7, "types": 3, "n": n})
        assert some.X.shape == (7, n)
        np.testing.assert_allclose(np.bincount(some.labels, minlength=3) / n, share, atol=1.5 / n)


def test_without_the_logarithm_it_is_the_counts(tmp_path):
    imports.adopt("tcga", [data_copies.tcga(tmp_path / "copy")])
    wanted = {"features": 40, "types": 2, "n": None}
    logs, counts = loading.load("tcga", wanted), loading.load("tcga", {**wanted, "log2": False})
    np.testing.assert_allclose(counts.X, 2.0**logs.X - 1.0, rtol=1e-15)  # all genes are kept, in file order
    drawn = {"features": 30, "types": 3, "n": 40}
    made = [
        loading.load("tcga", {**drawn, "log2": log2}, rng=np.random.default_rng(0), stand_in=True)
        for log2 in (True, False)
    ]
    assert made[0].X.max() < made[1].X.max()


def test_bad_files(tmp_path):
    folder = data_copies.tcga(tmp_path / "copy")
    table = (folder / TABLE).read_bytes()
    (folder / TABLE).unlink()
    with pytest.raises(UserError, match=r"the table of cancer types .* is missing; both files are needed"):
        imports.adopt("tcga", [folder])
    (folder / TABLE).write_bytes(gzip.compress(b"sample\tkind\nTCGA-AA-0000-01\tlung\n"))
    with pytest.raises(UserError, match="has no columns 'sample' and '_primary_disease'"):
        imports.adopt("tcga", [folder])
    (folder / TABLE).write_bytes(gzip.compress(b"sample\t_primary_disease\nother\tlung\n"))
    with pytest.raises(UserError, match="no sample of the matrix has a cancer type in the table"):
        imports.adopt("tcga", [folder])
    (folder / TABLE).write_bytes(table)
    lines = gzip.decompress((folder / MATRIX).read_bytes()).decode().splitlines()
    (folder / MATRIX).write_bytes(gzip.compress("\n".join([*lines[:3], lines[3] + "\t1"]).encode()))
    with pytest.raises(UserError, match=r"line 4: 60 numbers are expected \(61 values\)"):
        imports.adopt("tcga", [folder])
    (folder / MATRIX).write_bytes(gzip.compress("\n".join([*lines[:3], lines[3].replace("\t", "\tx", 1)]).encode()))
    with pytest.raises(UserError, match=r"line 4: 60 numbers are expected \(could not convert"):
        imports.adopt("tcga", [folder])
    assert copies.state("tcga").state == "absent"


@pytest.mark.parametrize("params", [{}, {"n": 20}, {"n": 21}, {"n": 700, "types": 33, "features": 300}, {"types": 1}])
def test_stand_in_has_the_shape(params):
    params = {"features": 200, **params}
    loaded = loading.load("tcga", params, stand_in=True)
    shape = registry.datasets()["tcga"].make(**params).shape()
    assert loaded.X.shape == (shape["M"], shape["N"])
    assert len(np.unique(loaded.labels)) == loaded.K == shape["K"]
    assert loaded.X.min() >= 0
    assert 0 < loaded.X.max() < 40
    assert loaded.facts["stand_in"]


def test_parameters_are_checked():
    with pytest.raises(ParameterError, match="types: must be an integer from 1 to 33, not 40"):
        loading.load("tcga", {"types": 40})
    with pytest.raises(ParameterError, match="n: must be an integer from 20 to 11,069, not 3"):
        loading.load("tcga", {"n": 3})
