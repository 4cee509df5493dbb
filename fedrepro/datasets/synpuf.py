"""DE-SynPUF: how often a diagnosis and a procedure stand on one outpatient claim, in three samples.

Rows are diagnoses (ICD-9), columns HCPCS codes ("medications" in the paper), X_i(j, n) the number of claims of sample
i that hold both. Rows: the union over samples of each one's ``diagnoses`` most frequent codes, in chapters of ICD-9;
the chapter of symptoms (780 to 799) is dropped as the released code does, and chapters of fewer than ``least`` codes.
Columns: the union of each sample's ``procedures`` most frequent. With the release and 1000 and 500 the paper has 727
rows in 6 groups and 511 columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fedrepro.data.parsed import read, sparse
from fedrepro.datasets import standins
from fedrepro.datasets.checks import choice, whole
from fedrepro.datasets.types import Views
from fedrepro.errors import ParameterError
from fedrepro.registry import Dataset, add_dataset

SYMPTOMS, EXTERNAL, FACTORS, OTHER = 15, 17, 18, 19
LAST = (139, 239, 289, 319, 389, 459, 519, 579, 629, 679, 709, 739, 759, 779, 799, 999)  # last code of chapters 1 to 16
ORDERS = ("per_view", "common", "sorted")


def check(
    *,
    samples: Sequence[int] = (1, 2, 3),
    diagnoses: int = 1000,
    procedures: int = 500,
    least: int = 40,
    order: str = "per_view",
) -> None:
    """Raise ParameterError for values that cannot work."""
    if isinstance(samples, (str, int)) or len(samples) < 2 or len(set(samples)) != len(samples):
        raise ParameterError("samples", f"must be a list of two or more distinct samples, not {samples!r}")
    for sample in samples:
        whole("samples", sample, 1, 20)
    whole("diagnoses", diagnoses, 1)
    whole("procedures", procedures, 1)
    whole("least", least, 1)
    choice("order", order, ORDERS)


def load(
    path: Path,
    *,
    rng: np.random.Generator,
    samples: Sequence[int] = (1, 2, 3),
    diagnoses: int = 1000,
    procedures: int = 500,
    least: int = 40,
    order: str = "per_view",
) -> Views:
    """One view per sample, (J, N) float64 raw counts; labels: the group of each row, 0 .. G-1.

    ``order``: ``per_view`` shuffles the rows inside each group independently in every view, as the released code does
    (after which views are aligned by group only), ``common`` shuffles all views alike, ``sorted`` leaves the codes in
    order.
    """
    check(samples=samples, diagnoses=diagnoses, procedures=procedures, least=least, order=order)
    parts = [read(path, str(sample)) for sample in samples]
    rows = _union([_top(part, "diagnosis", diagnoses) for part in parts])
    columns = _union([_top(part, "procedure", procedures) for part in parts])
    groups = np.array([chapter(code) for code in rows.astype(str)])
    size = np.bincount(groups, minlength=OTHER + 1)
    kept = (size[groups] >= least) & (groups != SYMPTOMS)
    if not kept.any():
        raise ParameterError("least", f"no chapter has {least} codes among the most frequent ones")
    rows, groups = rows[kept], groups[kept]
    by_group = np.lexsort((rows, groups))
    rows, groups = rows[by_group], groups[by_group]
    chapters, labels = np.unique(groups, return_inverse=True)
    views = [_counts(part, rows, columns) for part in parts]
    facts = {"chapters": chapters.tolist(), "order": order, "group_sizes": np.bincount(labels).tolist()}
    return Views(
        [view[i] for view, i in zip(views, orders(labels, len(views), order, rng), strict=True)], labels, facts
    )


def _top(part: dict[str, np.ndarray], name: str, n: int) -> np.ndarray:
    """The ``n`` codes on most claims, ties in the order of the codes."""
    claims = np.bincount(part[f"{name}.indices"], minlength=len(part[f"{name}_codes"]))
    best = np.argsort(-claims, kind="stable")[:n]
    return np.asarray(part[f"{name}_codes"])[best[claims[best] > 0]]


def _union(lists: list[np.ndarray]) -> np.ndarray:
    return np.unique(np.concatenate(lists))


def _counts(part: dict[str, np.ndarray], rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Claims that hold both codes: D^T P of the two incidence matrices, for the wanted codes."""
    D = _wanted(part, "diagnosis", rows)
    P = _wanted(part, "procedure", columns)
    return (D.T @ P).toarray()


def _wanted(part: dict[str, np.ndarray], name: str, codes: np.ndarray) -> Any:
    """The columns of an incidence matrix for ``codes``, all zero where this sample lacks one."""
    from scipy.sparse import csr_matrix

    have = np.asarray(part[f"{name}_codes"])
    at = np.minimum(np.searchsorted(have, codes), len(have) - 1)
    found = np.flatnonzero(have[at] == codes)
    pick = csr_matrix((np.ones(len(found)), (at[found], found)), shape=(len(have), len(codes)))
    return sparse(part, name).astype(np.float64) @ pick


def chapter(code: str) -> int:
    """1 to 16 by the first three digits, 17 for E codes, 18 for V codes, 19 for anything else."""
    if code[:1] in ("E", "V"):
        return EXTERNAL if code[0] == "E" else FACTORS
    if len(code) >= 3 and code[:3].isdigit() and int(code[:3]) >= 1:
        return int(np.searchsorted(LAST, int(code[:3]))) + 1
    return OTHER


def orders(labels: np.ndarray, views: int, order: str, rng: np.random.Generator) -> list[np.ndarray]:
    """For each view the order of its rows; ``labels`` ascending."""
    if order == "sorted":
        return [np.arange(len(labels))] * views
    drawn = [np.lexsort((rng.random(len(labels)), labels)) for _ in range(views if order == "per_view" else 1)]
    return drawn if order == "per_view" else drawn * views


def shape(
    *,
    samples: Sequence[int] = (1, 2, 3),
    diagnoses: int = 1000,
    procedures: int = 500,
    least: int = 40,
    order: str = "per_view",
) -> dict[str, int | None]:
    """I views; rows and columns only the files tell."""
    return {"J": None, "I": len(samples), "N": None}


def stand_in(
    *,
    rng: np.random.Generator,
    samples: Sequence[int] = (1, 2, 3),
    diagnoses: int = 1000,
    procedures: int = 500,
    least: int = 40,
    order: str = "per_view",
) -> Views:
    """Drawn counts with the paper's 727 rows in 6 groups and 511 columns, in proportion to the list lengths."""
    check(samples=samples, diagnoses=diagnoses, procedures=procedures, least=least, order=order)
    J, N = max(60, 727 * diagnoses // 1000), max(10, 511 * procedures // 500)
    views, labels = standins.claims(len(samples), J, N, rng)
    facts = {"stand_in": "drawn counts; no real claims", "order": order, "group_sizes": np.bincount(labels).tolist()}
    return Views(
        [view[i] for view, i in zip(views, orders(labels, len(views), order, rng), strict=True)], labels, facts
    )


add_dataset(
    Dataset(
        name="synpuf",
        kind="views",
        summary="DE-SynPUF outpatient claims: diagnosis by procedure counts in three samples",
        load=load,
        shape=shape,
        source="synpuf",
        stand_in=stand_in,
        check=check,
    )
)
