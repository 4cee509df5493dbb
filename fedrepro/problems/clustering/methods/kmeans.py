r"""K-means++ on all samples in one place: the centralized benchmark of the papers ``fedmf`` and ``fedc``.

Problem: :math:`\min \sum_j \min_k \|x_j - w_k\|^2` over K centres. Lloyd's algorithm from k-means++ seeds, the first
drawn uniformly, each further one with probability proportional to the squared distance to the nearest seed so far
(scikit-learn's, which takes the best of 2 + log K candidates for each).

Samples are used in the caller's order, so the result does not depend on the partition. Nothing is sent.

Source: Arthur and Vassilvitskii, "k-means++: The Advantages of Careful Seeding", SODA 2007; fedmf section V-F;
fedc section V-D.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from fedrepro.ledger import Ledger
from fedrepro.parameters import Whole
from fedrepro.problems.clustering.lloyd import EXPECTED_ITERATIONS, OneShot, holding, kmeans, random_state, visiting
from fedrepro.problems.clustering.problem import Clustering
from fedrepro.protocols import Cost, Work
from fedrepro.registry import add_method
from fedrepro.seeds import Rng


@dataclass(frozen=True)
class KMeansPlusPlus(OneShot):
    """Parameters of K-means++.

    n_init : number of independent starts, of which the one with the lowest cost is kept (the papers' curves are means
    over single starts).

    >>> import numpy as np
    >>> from fedrepro import Clustering, KMeansPlusPlus, run
    >>> labels = np.arange(60) % 3
    >>> X = np.eye(5, 3)[:, labels] + 0.1 * np.random.default_rng(0).random((5, 60))
    >>> problem = Clustering(X, np.arange(60) % 4, K=3, labels=labels)
    >>> history = run(KMeansPlusPlus(n_init=5), problem, rounds=1, metrics=["accuracy"])
    >>> round(float(history["accuracy"][-1]), 2), history.ledger.uplink_scalars  # it sends nothing
    (1.0, 0)
    """

    silent: ClassVar[bool] = True

    n_init: Annotated[int, Whole()] = 1

    @staticmethod
    def cost(params: Mapping[str, Any], facts: Mapping[str, Any]) -> Cost:
        """For every start, seeds from 2 + log K candidates each, and about 30 iterations."""
        passes = params["n_init"] * (EXPECTED_ITERATIONS + 2.0 + math.log(facts["K"]))
        work = passes * (visiting(facts) + Work(calls=50.0)) + Work(calls=3000.0)
        return Cost(work, holds=holding(facts, 3.0), libraries=("sklearn",))

    def centres(self, problem: Clustering, draw: Rng, ledger: Ledger) -> np.ndarray:
        """The centres, (K, M)."""
        return kmeans(problem.X[np.argsort(problem.order)], problem.K, random_state(draw), n_init=self.n_init)


add_method(
    "kmeans++",
    KMeansPlusPlus,
    "K-means on all samples in one place from one k-means++ start",
    label="K-means++",
    papers=("fedmf", "fedc"),
    look=("purple", "P"),
)
