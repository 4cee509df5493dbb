"""TDT2: term counts of news documents, the 30 largest categories, as one MATLAB file (Cai, Zhejiang University)."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from fedrepro.data.formats.matlab import LIMIT, matlab
from fedrepro.data.formats.npy_parts import Writer
from fedrepro.data.formats.trees import Entry
from fedrepro.data.source import FileSource, Findings, Remote
from fedrepro.errors import UserError

DOCUMENTS, TERMS = 9394, 36771
CLASS_SIZES = (
    1844, 1828, 1222, 811, 441, 407, 272, 238, 226, 167, 160, 145, 141, 140, 131,
    123, 123, 120, 104, 98, 76, 74, 72, 71, 66, 65, 63, 58, 56, 52,
)  # fmt: skip


def _parse(entries: Iterator[Entry], out: Writer) -> Findings:
    entry = next(entries)
    counts, labels = _matrices(entry.name, entry.read())
    order = np.argsort(-np.bincount(labels), kind="stable")  # classes 0, 1, ... from the largest down
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    labels = rank[labels]
    sizes = tuple(int(c) for c in np.bincount(labels))
    out.save_sparse("all", "counts", counts)
    out.save("all", "labels", labels.astype(np.int64))
    if counts.shape != (DOCUMENTS, TERMS):
        return Findings([f"{counts.shape[0]:,} documents of {counts.shape[1]:,} terms instead of 9,394 of 36,771"])
    same = sizes == CLASS_SIZES
    return Findings([] if same else [f"class sizes {sizes[:3]} ... differ from the published 1844, 1828, 1222 ..."])


def _matrices(name: str, raw: bytes) -> tuple:
    from scipy.sparse import csr_matrix, issparse

    content = matlab(name, raw, ("fea", "gnd"))
    if "fea" not in content or "gnd" not in content:
        raise UserError(f"{name} has no variables 'fea' (documents x terms) and 'gnd' (labels)")
    fea, gnd = content["fea"], np.asarray(content["gnd"]).ravel()
    counts = csr_matrix(fea, dtype=np.float32) if issparse(fea) or np.ndim(fea) == 2 else None
    if counts is None or counts.shape[0] != len(gnd):
        raise UserError(f"{name}: 'fea' {np.shape(fea)} and 'gnd' ({len(gnd)} labels) do not belong together")
    if counts.nnz == 0 or not np.isfinite(counts.data).all() or counts.data.min() < 0:
        raise UserError(f"{name}: 'fea' must contain counts, finite and not negative")
    if not np.all(gnd == np.round(gnd)) or gnd.min() < 0:
        raise UserError(f"{name}: 'gnd' must contain whole numbers")
    return counts, np.unique(gnd.astype(np.int64), return_inverse=True)[1]


SOURCES = (
    FileSource(
        name="tdt2",
        title="TDT2 news documents, 30 largest categories",
        homepage="http://www.cad.zju.edu.cn/home/dengcai/Data/TextData.html",
        licence="counts from an LDC corpus; the page of this matrix states no licence",
        files=(Remote("TDT2.mat", ("http://www.cad.zju.edu.cn/home/dengcai/Data/TDT2/TDT2.mat",)),),
        pattern=re.compile(r"(?i)(?:^|/)tdt2(?:_top30)?\.mat$"),
        parse=_parse,
        layouts="TDT2.mat with variables fea and gnd",
        limit=LIMIT,
    ),
)
