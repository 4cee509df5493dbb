r"""K-means||: seeds for K centres from a few passes over the clients' data ("KM" in fedmf, Table I).

Problem: :math:`\min \phi_X(C) = \sum_j \min_{c \in C} \|x_j - c\|^2` over K centres C. Bahmani et al.,
Algorithm 2, with the clients as the mappers:

    C <- one sample drawn uniformly                                                    its client sends M numbers
    ``passes`` times:
        the clients send their shares of phi_X(C); the server sends the sum            1 number each, up and down
        each sample joins C with probability l d^2(x, C) / phi_X(C), independently     M numbers each, up
        the server sends the new samples to all clients                                M numbers each, down
    w_c <- number of samples whose nearest candidate is c                              |C| numbers a client, up
    K-means of the weighted candidates at the server; the centres go to all clients    K M numbers each, down

with l = ``oversampling`` K. These centres are seeds of Lloyd's algorithm over the clients. Each iteration sends sums
and sizes of the clusters up (K M + K numbers per client) and centres down (K M numbers), until no centre moves or after
``lloyd`` iterations. Then each sample is assigned to its nearest centre.

The authors of K-means|| recommend l = 2K and 5 passes, which are the defaults. ``kmeans||-released`` makes the choices
of the released program of fedmf, which calls the result KM||: 10 passes of exactly 20K distinct samples each (drawn
without replacement), seeds of the server's K-means drawn without weights, and no Lloyd iterations over the clients.

Source: Bahmani, Moseley, Vattani, Kumar and Vassilvitskii, "Scalable K-Means++", PVLDB 5(7), 2012; fedmf
section V-G, discrepancy fedmf.23.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from fedrepro.ledger import Ledger
from fedrepro.parameters import Number, OneOf, Whole
from fedrepro.problems.clustering.lloyd import (
    SEEDINGS,
    OneShot,
    holding,
    means,
    nearest,
    random_state,
    visiting,
    weighted_kmeans,
)
from fedrepro.problems.clustering.problem import Clustering
from fedrepro.protocols import Cost, Work
from fedrepro.registry import add_method
from fedrepro.seeds import Rng


@dataclass(frozen=True)
class KMeansParallel(OneShot):
    """Parameters of K-means||.

    oversampling : expected number of samples per pass, in multiples of K. passes : passes over the samples. sampling :
    ``independent`` draws for each sample, or ``exact``: exactly oversampling K distinct samples (rounded down). lloyd :
    largest number of Lloyd iterations over the clients. seeding : ``weighted`` or ``plain`` k-means++ seeds of the
    candidates.

    >>> import numpy as np
    >>> from fedrepro import Clustering, KMeansParallel, run
    >>> labels = np.arange(60) % 3
    >>> X = np.eye(5, 3)[:, labels] + 0.1 * np.random.default_rng(0).random((5, 60))
    >>> problem = Clustering(X, np.arange(60) % 4, K=3, labels=labels)
    >>> history = run(KMeansParallel(passes=2), problem, rounds=1, metrics=["accuracy"])
    >>> round(float(history["accuracy"][-1]), 2), history.ledger.uplink_scalars > 0
    (1.0, True)
    """

    oversampling: Annotated[float, Number(above=0.0)] = 2.0
    passes: Annotated[int, Whole()] = 5
    sampling: Annotated[str, OneOf("independent", "exact")] = "independent"
    lloyd: Annotated[int, Whole(0)] = 20
    seeding: Annotated[str, OneOf(*SEEDINGS)] = "weighted"

    @staticmethod
    def cost(params: Mapping[str, Any], facts: Mapping[str, Any]) -> Cost:
        """Distances to oversampling K candidates a pass (a fat product), then Lloyd's iterations."""
        candidates = 0.5 * params["oversampling"] * params["passes"]
        work = visiting(facts) * (candidates + params["lloyd"] + 5.0) + Work(calls=8000.0)
        return Cost(work, holds=holding(facts, 1.0), libraries=("sklearn",))

    def centres(self, problem: Clustering, draw: Rng, ledger: Ledger) -> np.ndarray:
        """The centres, (K, M)."""
        seed = random_state(draw)
        candidates, weights = self.candidates(problem, draw, ledger)
        seeds = weighted_kmeans(problem.X[candidates], weights, problem.K, seed, seeding=self.seeding)
        ledger.down(problem.K * problem.M, kind="centres", clients=problem.P)
        return self._iterate(problem, seeds, ledger)

    def candidates(self, problem: Clustering, draw: Rng, ledger: Ledger) -> tuple[np.ndarray, np.ndarray]:
        """C as rows of ``problem.X``, increasing, and the weights, which sum to N."""
        X, M, P = problem.X, problem.M, problem.P
        C = draw.integers(problem.N, size=1)  # Algorithm 2, step 1
        _send_points(ledger, C.size, M, P)
        closest, d2 = nearest(X, X[C])
        d2[C] = 0.0
        for _ in range(self.passes):  # steps 3 to 6
            ledger.up(1, kind="cost", clients=P)
            ledger.down(1, kind="cost", clients=P)
            new = self._sample(draw, d2, self.oversampling * problem.K)
            if not new.size:
                continue
            _send_points(ledger, new.size, M, P)
            where, distance = nearest(X, X[new])
            closer = distance < d2
            closest[closer] = C.size + where[closer]
            d2[closer] = distance[closer]
            closest[new], d2[new] = C.size + np.arange(new.size), 0.0
            C = np.concatenate([C, new])
        weights = np.bincount(closest, minlength=C.size).astype(np.float64)  # step 7
        ledger.up(C.size, kind="weights", clients=P)
        order = np.argsort(C)
        return C[order], weights[order]

    def _iterate(self, problem: Clustering, centres: np.ndarray, ledger: Ledger) -> np.ndarray:
        """Lloyd's algorithm over the clients; an empty cluster keeps its centre."""
        for _ in range(self.lloyd):
            moved = means(problem.X, nearest(problem.X, centres)[0], np.ones(problem.N), centres)
            ledger.up(problem.K * problem.M + problem.K, kind="sums and sizes", clients=problem.P)
            if np.array_equal(moved, centres):
                break
            centres = moved
            ledger.down(problem.K * problem.M, kind="centres", clients=problem.P)
        return centres

    def _sample(self, draw: Rng, d2: np.ndarray, wanted: float) -> np.ndarray:
        """Steps 4 and 5: the samples that join C, ``wanted`` (l) of them, given the squared distances to C."""
        cost = d2.sum()
        if cost == 0.0:  # every sample coincides with a candidate
            return np.empty(0, dtype=np.intp)
        if self.sampling == "independent":
            return np.flatnonzero(draw.random(d2.size) < wanted * d2 / cost)
        size = min(int(wanted), int(np.count_nonzero(d2)))
        return np.sort(draw.choice(d2.size, size, replace=False, p=d2 / cost))


def _send_points(ledger: Ledger, points: int, M: int, P: int) -> None:
    """``points`` samples go from their clients to the server, and from there to all P clients."""
    ledger.up(M, kind="points", clients=points)
    ledger.down(M * points, kind="points", clients=P)


add_method(
    "kmeans||",
    KMeansParallel,
    "K-means seeded by candidates sampled in a few passes over the clients",
    label="KM||",
    papers=("fedmf",),
    look=("sky", "v"),
)
add_method(
    "kmeans||-released",
    KMeansParallel,
    "K-means|| with the choices of the released program of fedmf",
    label="KM|| (released)",
    papers=("fedmf",),
    preset={"oversampling": 20.0, "passes": 10, "sampling": "exact", "lloyd": 0, "seeding": "plain"},
)
