"""DE-SynPUF: how often a diagnosis and a procedure are on the same outpatient claim, in three samples.

Rows are diagnoses (ICD-9), columns HCPCS codes ("medications" in the paper), X_i(j, n) the number of claims of sample i
that contain both. Rows: the union over samples of each one's ``diagnoses`` most frequent codes, in chapters of ICD-9;
the chapter of symptoms (780 to 799) is dropped as the released code does, and chapters of fewer than ``least`` codes.
Columns: the union of each sample's ``procedures`` most frequent. With the release and 1000 and 500 the paper has 727
rows in 6 groups and 511 columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from fedrepro.data.formats.npy_parts import read, sparse
from fedrepro.datasets import standins
from fedrepro.datasets.types import Views
from fedrepro.errors import ParameterError
from fedrepro.parameters import OneOf, Whole, several, whole
from fedrepro.protocols import Cost, Dataset, Work
from fedrepro.registry import add_dataset

SYMPTOMS, EXTERNAL, FACTORS, OTHER = 15, 17, 18, 19
LAST = (139, 239, 289, 319, 389, 459, 519, 579, 629, 679, 709, 739, 759, 779, 799, 999)
"""Last codes of the program's groups 1 to 16: the chapters of ICD-9, the 3rd and 4th (240 to 289) as one."""
ORDERS = ("per_view", "common", "sorted")


@dataclass(frozen=True)
class SynPUF(Dataset):
    """Counts of claims by diagnosis and procedure, one view per sample.

    samples : two or more numbers of samples, 1 .. 20 each. diagnoses : most frequent diagnoses of each sample that are
    taken, at least 1. procedures : the same of procedures, at least 1. least : chapters of fewer codes are dropped, at
    least 1.
    order : of rows inside each group: per_view (shuffled independently in every view, as the released code does, after
    which views are aligned by group only), common (shuffled in all views alike) or sorted (by code).
    """

    draws = True

    samples: Sequence[int] = (1, 2, 3)
    diagnoses: Annotated[int, Whole()] = 1000
    procedures: Annotated[int, Whole()] = 500
    least: Annotated[int, Whole()] = 40
    order: Annotated[str, OneOf(*ORDERS)] = "per_view"

    def __post_init__(self) -> None:
        """Raise ParameterError if a value is invalid."""
        super().__post_init__()
        several("samples", self.samples)
        for sample in self.samples:
            whole("samples", sample, 1, 20)

    def shape(self) -> dict[str, int | None]:
        """Return I views; only the files contain the numbers of rows and columns."""
        return {"J": None, "I": len(self.samples), "N": None}

    def expected(self) -> dict[str, float]:
        """Return rows and columns like the paper's, in proportion to the lists."""
        return {"J": max(60, 727 * self.diagnoses // 1000), "N": max(10, 511 * self.procedures // 500)}

    def making(self) -> Cost:
        """Return the cost of drawing or counting every entry."""
        entries = float(self.expected()["J"] * self.expected()["N"] * len(self.samples))
        return Cost(Work(singles=120.0 * entries, calls=2000.0), holds=24.0 * entries)

    def load(self, path: Path, rng: np.random.Generator) -> Views:
        """Return views (J, N) float64 of raw counts; labels: the group of each row, 0 .. G-1."""
        parts = [read(path, str(sample)) for sample in self.samples]
        rows = _union([_top(part, "diagnosis", self.diagnoses) for part in parts])
        columns = _union([_top(part, "procedure", self.procedures) for part in parts])
        groups = np.array([chapter(code) for code in rows.astype(str)])
        size = np.bincount(groups, minlength=OTHER + 1)
        kept = (size[groups] >= self.least) & (groups != SYMPTOMS)
        if not kept.any():
            raise ParameterError("least", f"no chapter has {self.least} codes among the most frequent ones")
        rows, groups = rows[kept], groups[kept]
        by_group = np.lexsort((rows, groups))
        rows, groups = rows[by_group], groups[by_group]
        chapters, labels = np.unique(groups, return_inverse=True)
        views = [_counts(part, rows, columns) for part in parts]
        sizes = np.bincount(labels).tolist()
        facts = {"chapters": chapters.tolist(), "order": self.order, "group_sizes": sizes}
        return Views(_ordered(views, labels, self.order, rng), labels, facts)


def _top(part: dict[str, np.ndarray], name: str, n: int) -> np.ndarray:
    """The ``n`` codes on most claims, ties in the order of the codes."""
    claims = np.bincount(part[f"{name}.indices"], minlength=len(part[f"{name}_codes"]))
    best = np.argsort(-claims, kind="stable")[:n]
    return np.asarray(part[f"{name}_codes"])[best[claims[best] > 0]]


def _union(lists: list[np.ndarray]) -> np.ndarray:
    return np.unique(np.concatenate(lists))


def _counts(part: dict[str, np.ndarray], rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Claims that contain both codes: D^T P of the two incidence matrices, for the wanted codes."""
    D = _wanted(part, "diagnosis", rows)
    P = _wanted(part, "procedure", columns)
    return (D.T @ P).toarray()


def _wanted(part: dict[str, np.ndarray], name: str, codes: np.ndarray) -> Any:
    """The columns of an incidence matrix for ``codes``, all zero where this sample lacks one."""
    from scipy.sparse import csr_matrix

    have = np.asarray(part[f"{name}_codes"])
    at = np.minimum(np.searchsorted(have, codes), len(have) - 1)
    known = np.flatnonzero(have[at] == codes)
    pick = csr_matrix((np.ones(len(known)), (at[known], known)), shape=(len(have), len(codes)))
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


def _ordered(views: list[np.ndarray], labels: np.ndarray, order: str, rng: np.random.Generator) -> list[np.ndarray]:
    return [view[rows] for view, rows in zip(views, orders(labels, len(views), order, rng), strict=True)]


def stand_in(wanted: SynPUF, rng: np.random.Generator) -> Views:
    """Drawn counts with the paper's 727 rows in 6 groups and 511 columns, in proportion to the list lengths."""
    J, N = max(60, 727 * wanted.diagnoses // 1000), max(10, 511 * wanted.procedures // 500)
    views, labels = standins.claims(len(wanted.samples), J, N, rng)
    sizes = np.bincount(labels).tolist()
    facts = {"stand_in": "drawn counts; no real claims", "order": wanted.order, "group_sizes": sizes}
    return Views(_ordered(views, labels, wanted.order, rng), labels, facts)


add_dataset(
    "synpuf",
    SynPUF,
    "DE-SynPUF outpatient claims: diagnosis by procedure counts in three samples",
    kind="views",
    source="synpuf",
    stand_in=stand_in,
)
