"""Lloyd's algorithm on weighted points, nearest centres, and the base class of baselines without rounds.

Points are rows, as in ``problem.X``: (n, M), dense or CSR. Distances are squared Euclidean distances.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import scipy

from fedrepro.errors import ParameterError
from fedrepro.ledger import Ledger
from fedrepro.problems.clustering.problem import Clustering, passing
from fedrepro.problems.clustering.state import State
from fedrepro.protocols import Method, Work
from fedrepro.seeds import Rng, streams

SEEDINGS = ("weighted", "plain")
"""k-means++ draws seeds in proportion to weight times distance (``weighted``) or distance (``plain``: scikit-learn
until 1.2)."""

_BLOCK_ENTRIES = 1 << 21
"""Entries of a block of the distance matrix: about 16 MB."""


class OneShot(Method):
    """A method that computes K centres once (``centres``) and assigns every sample to the nearest centre."""

    one_shot: ClassVar[bool] = True  # it has no rounds: predictions of its time count one

    @abstractmethod
    def centres(self, problem: Clustering, draw: Rng, ledger: Ledger) -> np.ndarray:
        """The centres, (K, M); ``draw`` is the source of random numbers, and ``ledger`` counts the messages."""

    def rounds(
        self, problem: Clustering, rng: Rng, *, ledger: Ledger | None = None, init: Any = None, clients: Any = None
    ) -> Iterator[State]:
        """Yield one state, at round 0: the columns of W are the centres, and those of H are one-hot assignments.

        ``init`` is ignored. All clients take part, so ``clients`` must be None.
        """
        if clients is not None:
            raise ParameterError("clients", "every client takes part once: there is no draw to replay")
        centres = self.centres(problem, streams(rng).other, Ledger() if ledger is None else ledger)
        yield assigned(problem, nearest(problem.X, centres)[0], centres)


EXPECTED_ITERATIONS = 30.0
"""Expected number of iterations of Lloyd's algorithm, for predictions."""


def visiting(facts: Mapping[str, Any]) -> Work:
    """The work of the distances of all samples to K centres; sparse samples need a sparse product first."""
    return passing(facts, facts["N"]) * (2.0 if "density" in facts else 1.0)


def holding(facts: Mapping[str, Any], copies: float) -> float:
    """Bytes of ``copies`` copies of the samples and of an assignment."""
    return copies * Clustering.stored_bytes(facts) + 8.0 * facts["N"] * (facts["K"] + 4.0) + 2e7


def assigned(problem: Clustering, labels: np.ndarray, centres: np.ndarray) -> State:
    """The state of an assignment: ``labels`` (N,) in the problem's order of samples, ``centres`` (K, M)."""
    Hs = np.zeros((problem.N, problem.K))
    Hs[np.arange(problem.N), labels] = 1.0
    sizes = np.bincount(labels, minlength=problem.K).astype(np.float64)
    return State(np.ascontiguousarray(centres.T), Hs, problem.order, problem.rho, np.diag(sizes))


def random_state(draw: Rng) -> int:
    """A seed for scikit-learn. Every baseline draws it first, so that their K-means agree on equal points."""
    return int(draw.integers(2**31))


def kmeans(points: Any, K: int, seed: int, *, n_init: int = 1) -> np.ndarray:
    """Centres (K, M) of Lloyd's algorithm from k-means++ seeds, the best of ``n_init`` starts."""
    return _lloyd(points, K, seed, None, "k-means++", n_init)


def weighted_kmeans(points: Any, weights: np.ndarray, K: int, seed: int, *, seeding: str = "weighted") -> np.ndarray:
    """Centres (K, M) of Lloyd's algorithm on weighted points, (n,), from k-means++ seeds (see ``SEEDINGS``).

    Points of weight 0 are left out.
    """
    points, weights = points[weights != 0], weights[weights != 0]
    start = kmeans_seeds(points, weights, K, seed, seeding) if points.shape[0] > K else None
    return _lloyd(points, K, seed, weights, start, 1)


def kmeans_seeds(points: Any, weights: np.ndarray, K: int, seed: int, seeding: str) -> np.ndarray:
    """K seeds (K, M) drawn by k-means++."""
    from sklearn.cluster import kmeans_plusplus

    by = weights if seeding == "weighted" else None
    return np.asarray(kmeans_plusplus(points, K, sample_weight=by, random_state=seed)[0])


def _lloyd(points: Any, K: int, seed: int, weights: np.ndarray | None, start: Any, n_init: int) -> np.ndarray:
    """Lloyd's algorithm on one thread, so that the same input gives the same centres.

    If there are at most K points, each is its own centre, and copies of the first fill up the K rows (no sample is
    assigned to them).
    """
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    if points.shape[0] <= K:
        centres = points.toarray() if scipy.sparse.issparse(points) else np.array(points)
        return np.vstack([centres, np.repeat(centres[:1], K - len(centres), axis=0)])
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct points than K: some clusters stay empty
        model = KMeans(K, init=start, n_init=n_init, random_state=seed)
        return np.asarray(model.fit(points, sample_weight=weights).cluster_centers_)


def nearest(points: Any, centres: Any) -> tuple[np.ndarray, np.ndarray]:
    """For each point the nearest centre (the first of equals) and the squared distance to it: (n,) integers, (n,)."""
    n = points.shape[0]
    where, distance = np.empty(n, dtype=np.intp), np.empty(n)
    norms = _square_norms(centres)
    rows = max(1, _BLOCK_ENTRIES // max(1, norms.size))
    for first in range(0, n, rows):
        part = points[first : first + rows]
        D = part @ centres.T
        D = np.asarray(D.toarray() if scipy.sparse.issparse(D) else D) * -2.0 + norms
        near = np.argmin(D, axis=1)
        where[first : first + rows] = near
        distance[first : first + rows] = np.take_along_axis(D, near[:, None], axis=1)[:, 0] + _square_norms(part)
    return where, np.maximum(distance, 0.0)


def means(points: Any, labels: np.ndarray, weights: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """The weighted mean of the points of each cluster, (K, M); a cluster without weight keeps its centre."""
    K, n = len(centres), labels.size
    mass = np.bincount(labels, weights=weights, minlength=K)
    sums = scipy.sparse.csr_matrix((weights, (labels, np.arange(n))), shape=(K, n)) @ points
    sums = sums.toarray() if scipy.sparse.issparse(sums) else np.asarray(sums)
    return np.where(mass[:, None] > 0, sums / np.where(mass > 0, mass, 1.0)[:, None], centres)


def _square_norms(points: Any) -> np.ndarray:
    if scipy.sparse.issparse(points):
        return np.asarray(points.multiply(points).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", points, points)


def stacked(parts: Sequence[Any]) -> Any:
    """The parts stacked row by row; sparse if any part is."""
    if any(scipy.sparse.issparse(part) for part in parts):
        return scipy.sparse.vstack([scipy.sparse.csr_matrix(part) for part in parts], format="csr")
    return np.vstack(parts)
