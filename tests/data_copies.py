"""Small copies in the official formats, made by the tests that read them."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import scipy.io
import scipy.sparse as sp

SHARED = Path(os.environ.get("FEDREPRO_TEST_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
"""Copies of real datasets, for the tests that use them; those are skipped where there are none."""


def idx(array: np.ndarray) -> bytes:
    """An IDX file of unsigned bytes."""
    head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, dtype=">u4").tobytes()
    return head + array.astype(np.uint8).tobytes()


def mnist(folder: Path, n: int = 40, compress: bool = True, train: bool = False) -> Path:
    """An IDX pair of ``n`` images whose every pixel is the image's number, labels 0..9 in turn."""
    folder.mkdir(parents=True, exist_ok=True)
    pixels = np.repeat(np.arange(n, dtype=np.uint8), 784).reshape(n, 28, 28)
    labels = np.arange(n) % 10
    stem = "train" if train else "t10k"
    for kind, array in (("images-idx3", pixels), ("labels-idx1", labels)):
        raw = idx(array)
        name = f"{stem}-{kind}-ubyte" + (".gz" if compress else "")
        (folder / name).write_bytes(gzip.compress(raw, mtime=0) if compress else raw)
    return folder


def tdt2(folder: Path, documents: int = 60, terms: int = 30, K: int = 3) -> Path:
    """A TDT2.mat whose term k marks class k."""
    folder.mkdir(parents=True, exist_ok=True)
    draw = np.random.default_rng(0)
    labels = np.arange(documents) % K
    counts = draw.poisson(0.3, size=(documents, terms)).astype(float)
    counts[np.arange(documents), labels] += 5
    scipy.io.savemat(folder / "TDT2.mat", {"fea": sp.csc_matrix(counts), "gnd": labels[:, None] + 1.0})
    return folder / "TDT2.mat"


def ratings(n: int = 300, users: int = 20, items: int = 15, seed: int = 0) -> np.ndarray:
    """Distinct (user, item, rating) rows, ids from 1 with gaps, whole stars."""
    draw = np.random.default_rng(seed)
    pairs = np.sort(draw.choice(users * items, size=min(n, users * items), replace=False))
    return np.column_stack([2 * (pairs // items) + 1, 3 * (pairs % items) + 2, draw.integers(1, 6, size=len(pairs))])


def python2_batch(data: np.ndarray, labels: list[int], name: bytes = b"labels") -> bytes:
    """A dictionary {'data': uint8 array, 'labels': list} as Python 2 pickled it with protocol 2: text is bytes."""

    def text(value: bytes) -> bytes:
        return (
            b"U" + bytes([len(value)]) + value if len(value) < 256 else b"T" + len(value).to_bytes(4, "little") + value
        )

    def whole(value: int) -> bytes:
        return b"K" + bytes([value]) if value < 256 else b"J" + value.to_bytes(4, "little")

    dtype = b"cnumpy\ndtype\n" + text(b"u1") + whole(0) + whole(1) + b"\x87R("
    dtype += whole(3) + text(b"|") + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xff" + whole(0) + b"tb"
    array = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n" + whole(0) + b"\x85" + text(b"b") + b"\x87R("
    array += whole(1) + whole(data.shape[0]) + whole(data.shape[1]) + b"\x86" + dtype + b"\x89"
    array += text(data.tobytes()) + b"tb"
    numbers = b"](" + b"".join(whole(label) for label in labels) + b"e"
    return b"\x80\x02}(" + text(b"data") + array + text(name) + numbers + b"u."


def cifar10(folder: Path, per_batch: int = 20) -> Path:
    """cifar-10-batches-py with five train batches and a test batch; pixel values identify batch, image and channel."""
    target = folder / "cifar-10-batches-py"
    target.mkdir(parents=True)
    for k, name in enumerate([*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]):
        data = np.zeros((per_batch, 3, 32, 32), dtype=np.uint8)
        data += (40 * k + np.arange(per_batch, dtype=np.uint8))[:, None, None, None]
        data[:, 1, 2, 5] = 7  # green, row 2, column 5
        batch = python2_batch(data.reshape(per_batch, -1), [i % 10 for i in range(per_batch)])
        (target / name).write_bytes(batch)
    return target


def omniglot(folder: Path, alphabets: tuple[str, ...] = ("Greek", "Latin"), characters: int = 3, seed: int = 0) -> Path:
    """Drawings of random ink, 20 for each of a few characters, as PNG in the official folders."""
    from PIL import Image

    draw = np.random.default_rng(seed)
    for a, alphabet in enumerate(alphabets):
        for c in range(1, characters + 1):
            place = folder / "images_background" / alphabet / f"character{c:02d}"
            place.mkdir(parents=True)
            for d in range(1, 21):
                ink = draw.random((105, 105)) < 0.05
                Image.fromarray(np.where(ink, 0, 255).astype(np.uint8)).convert("1").save(
                    place / f"{100 * a + c:04d}_{d:02d}.png"
                )
    return folder


def tcga(folder: Path, genes: int = 40, samples: int = 60) -> Path:
    """The expression matrix and the phenotype table; every tenth sample normal tissue, some values missing."""
    folder.mkdir(parents=True, exist_ok=True)
    draw = np.random.default_rng(0)
    barcodes = [f"TCGA-AA-{i:04d}-{'11' if i % 10 == 9 else '01'}" for i in range(samples)]
    kinds = ["lung", "breast", "breast", "skin"]
    values = draw.uniform(0, 15, size=(genes, samples)).round(3)
    lines = ["sample\t" + "\t".join(barcodes)]
    for g in range(genes):
        row = [str(v) for v in values[g]]
        if g % 8 == 3:
            row[g] = "NA" if g % 16 == 3 else ""
        lines.append(f"GENE{g}\t" + "\t".join(row))
    matrix = "EB++AdjustPANCAN_IlluminaHiSeq_RNASeqV2.geneExp.xena.gz"
    (folder / matrix).write_bytes(gzip.compress(("\n".join(lines) + "\n").encode(), mtime=0))
    table = ["sample\tsample_type_id\tsample_type\t_primary_disease"]
    table += [f"{b}\t1\tPrimary Tumor\t{kinds[i % 4]}" for i, b in enumerate(barcodes)]
    name = "TCGA_phenotype_denseDataOnlyDownload.tsv.gz"
    (folder / name).write_bytes(gzip.compress(("\n".join(table) + "\n").encode(), mtime=0))
    return folder


def europarl(folder: Path, languages: tuple[str, ...] = ("de", "fr", "it"), sentences: int = 50) -> Path:
    """One xx-en.tgz per language; language number l misses every sentence whose number is l modulo 10."""
    import io
    import tarfile

    folder.mkdir(parents=True, exist_ok=True)
    for number, language in enumerate(languages):
        kept = [i for i in range(sentences) if i % 10 != number]
        english = [f"Sentence number {i}" for i in kept] + ["(Applause)", "(Applause)", ""]
        foreign = [f"{language}satz wort{i}" for i in kept] + [f"{language}beifall", "again", ""]
        with tarfile.open(folder / f"{language}-en.tgz", "w:gz") as archive:
            for ending, lines in ((language, foreign), ("en", english)):
                raw = ("\n".join(lines) + "\n").encode()
                member = tarfile.TarInfo(f"europarl-v7.{language}-en.{ending}")
                member.size = len(raw)
                archive.addfile(member, io.BytesIO(raw))
    return folder


def synpuf(folder: Path, claims: int = 400, samples: tuple[int, ...] = (1, 2, 3)) -> Path:
    """Outpatient claims in CMS's columns, zipped, with codes of three chapters, symptoms and V codes."""
    import zipfile

    folder.mkdir(parents=True, exist_ok=True)
    diagnoses = [f"{base + i:03d}{i % 10}" for base in (250, 401, 780) for i in range(12)] + ["V5869", "E8889"]
    procedures = [f"9921{i}" for i in range(8)]
    head = ["DESYNPUF_ID", "CLM_ID", *(f"ICD9_DGNS_CD_{i}" for i in range(1, 11)), "ICD9_PRCDR_CD_1"]
    head += [f"HCPCS_CD_{i}" for i in range(1, 46)]
    for sample in samples:
        draw = np.random.default_rng(sample)
        lines = [",".join(head)]
        for i in range(claims):
            d = draw.choice(diagnoses, size=draw.integers(1, 4))
            p = draw.choice(procedures, size=draw.integers(0, 4))
            row = [f"ID{i}", str(i), *d, *[""] * (10 - len(d)), "", *p, *[""] * (45 - len(p))]
            lines.append(",".join(row))
        name = f"DE1_0_2008_to_2010_Outpatient_Claims_Sample_{sample}"
        with zipfile.ZipFile(folder / f"{name}.zip", "w") as archive:
            archive.writestr(f"{name}.csv", "\n".join(lines) + "\n")
    return folder
