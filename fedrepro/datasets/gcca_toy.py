"""Three 2-D views of two classes for deep GCCA: circles, parabolas, a ring around a cloud.

Half of the samples of every part are of class 0, in random order. Views depend on the class only; with angles a uniform
on the circle, x uniform in (-3, 3) and e iid N(0, 0.1^2 I), all drawn afresh for each view:

* view 1: rad (cos a, sin a) + e, rad = 1 (class 0) or 2 (class 1);
* view 2: (x, c + w x^2) + e, c = 0, w = 2 (class 0) or c = 1, w = 0.5 (class 1);
* view 3: 2 (cos a, sin a) + e (class 0) or N(0, I) at the origin (class 1).

Rows: J for training, then ``validation``, ``test`` and ``cluster`` rows (facts: ``parts``), all drawn alike.

Source: Shrestha and Fu, Sec. V-B.3, after Benton et al., 2019; the formulas are those of the released program
(discrepancy gcca.31, docs/derivations/gcca-data.md#the-2-d-example).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from fedrepro.datasets.types import Views
from fedrepro.parameters import Whole
from fedrepro.protocols import Cost, Dataset, Work
from fedrepro.registry import add_dataset

NOISE = 0.1


@dataclass(frozen=True)
class ToyViews(Dataset):
    """Three 2-D views of two classes.

    J : rows to train with, at least 4. validation, test, cluster : further rows, at least 4.
    """

    draws = True

    J: Annotated[int, Whole(4)] = 10_000
    validation: Annotated[int, Whole(4)] = 1000
    test: Annotated[int, Whole(4)] = 1000
    cluster: Annotated[int, Whole(4)] = 1000

    def shape(self) -> dict[str, int | None]:
        """Return J training rows, I = 3 views of N = 2 columns."""
        return {"J": self.J, "N": 2, "I": 3}

    def making(self) -> Cost:
        """Return the cost of a few draws for each of the rows."""
        rows = self.J + self.validation + self.test + self.cluster
        return Cost(Work(singles=500.0 * rows, calls=1000.0), holds=500.0 * rows)

    def load(self, rng: np.random.Generator) -> Views:
        """Return three views (J + validation + test + cluster, 2); labels 0 and 1."""
        parts = (self.J, self.validation, self.test, self.cluster)
        labels = np.concatenate([rng.permutation(np.arange(n) * 2 // n) for n in parts])
        views = [rings(labels, rng), parabolas(labels, rng), ring_and_cloud(labels, rng)]
        extra = {"validation": self.validation, "test": self.test, "cluster": self.cluster}
        return Views(views, labels, {"parts": extra})


def rings(labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """View 1, (n, 2)."""
    return (1.0 + labels)[:, None] * _directions(len(labels), rng) + NOISE * rng.standard_normal((len(labels), 2))


def parabolas(labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """View 2, (n, 2)."""
    x = rng.uniform(-3.0, 3.0, len(labels))
    y = np.where(labels == 0, 2.0 * x**2, 1.0 + 0.5 * x**2)
    return np.column_stack([x, y]) + NOISE * rng.standard_normal((len(labels), 2))


def ring_and_cloud(labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """View 3, (n, 2)."""
    spread = np.where(labels == 0, NOISE, 1.0)[:, None]
    ring = np.where(labels == 0, 2.0, 0.0)[:, None] * _directions(len(labels), rng)
    return ring + spread * rng.standard_normal((len(labels), 2))


def _directions(n: int, rng: np.random.Generator) -> np.ndarray:
    a = rng.uniform(0.0, 2.0 * np.pi, n)
    return np.column_stack([np.cos(a), np.sin(a)])


add_dataset(
    "gcca-toy",
    ToyViews,
    "three 2-D views of two classes: circles, parabolas, a ring around a cloud (10,000 training rows)",
    kind="views",
)
