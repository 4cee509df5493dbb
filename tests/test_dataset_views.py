"""Europarl and DE-SynPUF: alignment across views, hashing, counts, groups, stand-ins."""

from __future__ import annotations

import csv
import io
import shutil
import tarfile
import zipfile
from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import HashingVectorizer

from fedrepro import GCCA, AltMaxVar, registry, run
from fedrepro.data import imports, loading
from fedrepro.datasets.synpuf import chapter, orders
from fedrepro.errors import DataAbsent, ParameterError, UserError
from tests import data_copies


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDREPRO_DATA", str(tmp_path / "home"))


THREE = ["de", "fr", "it"]


def test_europarl_rows_are_the_same_sentence_in_every_language(tmp_path):
    now = imports.adopt("europarl", [data_copies.europarl(tmp_path / "copy")])
    assert now.state == "variant"
    assert "de: 46 sentences, over a million are in the release" in now.note
    assert "without da, el, es, fi, nl, pt, sv" in now.note
    common = [i for i in range(50) if i % 10 > 2]
    loaded = loading.load("europarl", {"languages": THREE, "train": 30, "test": 5, "features": 2**12})
    for language, view in zip(THREE, loaded.views, strict=True):
        expected = HashingVectorizer(n_features=2**12).transform([f"{language}satz wort{i}" for i in common])
        assert sp.issparse(view)
        assert view.dtype == np.float64
        assert abs(view - expected[:35]).max() == 0
    assert loaded.facts == {"train": 30, "test": 5, "languages": THREE, "common": 36}  # 35 and the applause, once


def test_europarl_english_is_a_view_too(tmp_path):
    imports.adopt("europarl", [data_copies.europarl(tmp_path / "copy")])
    loaded = loading.load(
        "europarl", {"languages": ["it", "en"], "train": 40, "test": 0, "features": 2**12, "norm": "none"}
    )
    kept = [i for i in range(50) if i % 10 != 2][:40]
    plain = HashingVectorizer(n_features=2**12, norm=None)
    assert abs(loaded.views[1] - plain.transform([f"Sentence number {i}" for i in kept])).max() == 0


def test_europarl_order_of_import_does_not_matter(tmp_path):
    folder = data_copies.europarl(tmp_path / "copy")
    fingerprint = imports.adopt("europarl", [folder]).fingerprint
    assert imports.adopt("europarl", sorted(folder.iterdir(), reverse=True)).fingerprint == fingerprint
    (tmp_path / "plain").mkdir()
    for archive in folder.iterdir():
        with tarfile.open(archive) as tar:
            for member in tar:
                (tmp_path / "plain" / member.name).write_bytes(tar.extractfile(member).read())
    assert imports.adopt("europarl", [tmp_path / "plain"]).fingerprint == fingerprint


def test_europarl_languages_not_here_and_too_few_sentences(tmp_path):
    imports.adopt("europarl", [data_copies.europarl(tmp_path / "copy")])
    with pytest.raises(DataAbsent, match=r"the copy of europarl lacks pt \(it has de, en, fr, it\)"):
        loading.load("europarl", {"languages": ["de", "pt"]})
    with pytest.raises(ParameterError, match="train: 36 sentences are common to de, fr, it; 170,000 are asked for"):
        loading.load("europarl", {"languages": THREE})


def test_europarl_bad_copies(tmp_path):
    folder = tmp_path / "copy"
    folder.mkdir()
    (folder / "europarl-v7.de-en.de").write_text("eins\nzwei\n")
    with pytest.raises(UserError, match="of the pair de-en only one of the two files is there"):
        imports.adopt("europarl", [folder])
    (folder / "europarl-v7.de-en.en").write_text("one\n")
    with pytest.raises(UserError, match="the two files of de-en have 2 and 3 lines; they are not aligned"):
        imports.adopt("europarl", [folder])
    (folder / "europarl-v7.de-en.en").write_text("\n\n")
    with pytest.raises(UserError, match="the files of de-en contain no sentences"):
        imports.adopt("europarl", [folder])
    with tarfile.open(tmp_path / "europarl.tgz", "w:gz") as tar:
        tar.addfile(tarfile.TarInfo("txt/de/ep-00-01-17.txt"), io.BytesIO())
    with pytest.raises(UserError, match=r"contains nothing of europarl; pass a folder of xx-en.tgz archives"):
        imports.adopt("europarl", [tmp_path / "europarl.tgz"])


def test_europarl_stand_in_is_aligned():
    params = {"languages": THREE, "train": 900, "test": 100, "features": 2**14}
    loaded = loading.load("europarl", params, stand_in=True)
    shape = registry.datasets()["europarl"].make(**params).shape()
    assert len(loaded.views) == shape["I"]
    assert {view.shape for view in loaded.views} == {(shape["J"] + shape["test"], shape["N"])}
    np.testing.assert_allclose(sp.linalg.norm(loaded.views[0], axis=1), 1)
    # without the commonest words the same sentence's Gram rows agree across languages, other sentences' do not
    rare = [view @ sp.diags(((view != 0).mean(axis=0).A1 < 0.03).astype(float)) for view in loaded.views[:2]]
    gram = [(view @ view.T).toarray() * (1 - np.eye(1000)) for view in rare]
    a, b = (g / np.linalg.norm(g, axis=1, keepdims=True) for g in gram)
    assert (np.argmax(a @ b.T, axis=1) == np.arange(1000)).mean() > 0.9


def test_europarl_stand_in_has_to_be_learnt():
    """What languages share is not their largest directions, with which the warm start begins (Fig. 9)."""
    loaded = loading.load("europarl", {"languages": THREE, "train": 4000, "test": 400, "features": 1024}, stand_in=True)
    problem = GCCA(loaded.views, K=10, test=400)
    history = run(AltMaxVar(T=20, b=300, m=50), problem, rounds=60, metrics=["cost", "ac"], record_every=60)
    assert history["cost"][-1] < history["cost"][0] / 3
    assert history["ac"][-1] > 3 * history["ac"][0]
    assert history["ac"][-1] > 0.15  # chance: 1 in 400


# -- DE-SynPUF --------------------------------------------------------------------------------------------------------

SMALL = {"diagnoses": 30, "procedures": 6, "least": 5}


def naive_counts(folder, sample, rows, columns):
    """Claims of a sample that contain both codes, claim by claim."""
    with zipfile.ZipFile(folder / f"DE1_0_2008_to_2010_Outpatient_Claims_Sample_{sample}.zip") as archive:
        table = csv.DictReader(io.StringIO(archive.read(archive.namelist()[0]).decode()))
        counts, dx, px = Counter(), Counter(), Counter()
        for claim in table:
            d = {claim[f"ICD9_DGNS_CD_{i}"] for i in range(1, 11)} - {""}
            p = {claim[f"HCPCS_CD_{i}"] for i in range(1, 11)} - {""}
            counts.update((a, b) for a in d for b in p)
            dx.update(d)
            px.update(p)
    if rows is None:
        return dx, px
    return np.array([[counts[a, b] for b in columns] for a in rows], dtype=float)


def top(counter, n):
    return {code for code, _ in sorted(counter.items(), key=lambda item: (-item[1], item[0]))[:n]}


def test_synpuf_counts_claim_by_claim(tmp_path):
    folder = data_copies.synpuf(tmp_path / "copy")
    now = imports.adopt("synpuf", [folder])
    assert "sample 1: 400 claims, about 790,000 are in the release" in now.note
    loaded = loading.load("synpuf", {**SMALL, "order": "sorted"})
    tops = [naive_counts(folder, s, None, None) for s in (1, 2, 3)]
    columns = sorted(set().union(*(top(px, 6) for _, px in tops)))
    codes = sorted(set().union(*(top(dx, 30) for dx, _ in tops)))
    groups = Counter(chapter(code) for code in codes)
    rows = [c for c in codes if groups[chapter(c)] >= 5 and chapter(c) != 15]
    rows.sort(key=lambda c: (chapter(c), c))
    assert set(loaded.facts["chapters"]) == {chapter(c) for c in rows} == {3, 6}
    for sample, view in zip((1, 2, 3), loaded.views, strict=True):
        np.testing.assert_array_equal(view, naive_counts(folder, sample, rows, columns))
    assert loaded.labels.tolist() == [sorted({3, 6}).index(chapter(c)) for c in rows]


def test_synpuf_orders_shuffle_inside_groups_only(tmp_path):
    imports.adopt("synpuf", [data_copies.synpuf(tmp_path / "copy")])
    plain = loading.load("synpuf", {**SMALL, "order": "sorted"})
    rng = np.random.default_rng
    apart = loading.load("synpuf", SMALL, rng=rng(0))
    together = loading.load("synpuf", {**SMALL, "order": "common"}, rng=rng(0))
    again = loading.load("synpuf", SMALL, rng=rng(0))
    for k in np.unique(plain.labels):
        mine = plain.labels == k
        for other in (apart, together):
            for a, b in zip(plain.views, other.views, strict=True):
                assert sorted(map(tuple, a[mine])) == sorted(map(tuple, b[mine]))
    stacked = {tuple(np.concatenate(rows)) for rows in zip(*together.views, strict=True)}
    assert stacked == {tuple(np.concatenate(rows)) for rows in zip(*plain.views, strict=True)}
    assert stacked != {tuple(np.concatenate(rows)) for rows in zip(*apart.views, strict=True)}
    np.testing.assert_array_equal(np.stack(again.views), np.stack(apart.views))


def test_icd9_chapters():
    codes = {1: ["0010", "1399"], 2: ["140"], 3: ["25000", "2800"], 4: ["2900"], 6: ["4019"], 15: ["7800", "79999"]}
    codes |= {16: ["8000", "9999"], 17: ["E8889"], 18: ["V5869"], 19: ["", "OTHER", "000"]}
    for expected, examples in codes.items():
        assert {chapter(code) for code in examples} == {expected}


def test_orders_is_a_permutation_inside_each_group():
    labels = np.repeat([0, 1, 2], [5, 3, 9])
    for order in orders(labels, 4, "per_view", np.random.default_rng(0)):
        np.testing.assert_array_equal(labels[order], labels)
        assert sorted(order) == list(range(17))


def test_synpuf_bad_and_missing(tmp_path):
    (tmp_path / "DE1_0_2008_to_2010_Outpatient_Claims_Sample_1.csv").write_text("CLM_ID,HCPCS_CD_1\n1,99213\n")
    with pytest.raises(UserError, match="is not a table of outpatient claims with ICD9_DGNS_CD_1"):
        imports.adopt("synpuf", [tmp_path / "DE1_0_2008_to_2010_Outpatient_Claims_Sample_1.csv"])
    imports.adopt("synpuf", [data_copies.synpuf(tmp_path / "copy", samples=(1, 2))])
    with pytest.raises(DataAbsent, match="the copy of synpuf lacks 3"):
        loading.load("synpuf", SMALL)
    assert len(loading.load("synpuf", {**SMALL, "samples": [1, 2]}).views) == 2
    with pytest.raises(ParameterError, match="least: no chapter has 1000 codes"):
        loading.load("synpuf", {**SMALL, "samples": [1, 2], "least": 1000})


def test_synpuf_stand_in_has_the_papers_sizes():
    loaded = loading.load("synpuf", {}, stand_in=True)
    assert [view.shape for view in loaded.views] == [(727, 511)] * 3
    assert len(np.unique(loaded.labels)) == 6
    assert np.bincount(loaded.labels).min() >= 40
    assert all((view == np.round(view)).all() and view.min() >= 0 for view in loaded.views)


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        (
            "europarl",
            {"languages": "de fr"},
            "languages: must be a list of two or more distinct languages, not 'de fr'",
        ),
        ("europarl", {"languages": ["de", "xx"]}, "languages: must be one of bg, cs, da"),
        ("europarl", {"languages": ["de", "de"]}, "languages: must be a list of two or more distinct languages"),
        ("europarl", {"norm": "l1"}, "norm: must be one of l2, none, not 'l1', did you mean 'l2'?"),
        ("synpuf", {"samples": [1]}, "samples: must be a list of two or more distinct samples, not [1]"),
        ("synpuf", {"order": "shuffled"}, "order: must be one of per_view, common, sorted, not 'shuffled'"),
    ],
)
def test_parameters_are_checked(name, params, message):
    with pytest.raises(ParameterError) as caught:
        loading.load(name, params)
    assert str(caught.value).startswith(message)


def test_a_remembered_folder_is_not_needed_any_more(tmp_path):
    folder = data_copies.europarl(tmp_path / "copy")
    imports.adopt("europarl", [folder])
    shutil.rmtree(folder)
    assert loading.load("europarl", {"languages": THREE, "train": 5, "test": 1}).views[0].shape == (6, 2**19)
