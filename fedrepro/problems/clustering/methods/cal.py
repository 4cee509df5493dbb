r"""CAL: K-means of the clients' summaries, which they make by growing balls, with z outliers ("ball-grow").

Problem: :math:`\min \sum_{j \notin O} \min_k \|x_j - w_k\|^2` over K centres and sets O of at most z samples. Each
client summarizes its N_p samples for t outliers (Chen, Azer and Zhang, Algorithm 1), with kappa = max(log N_p, K):

    while more than 8 t samples are left:
        S_i <- alpha kappa of them, drawn with replacement
        remove the ball of S_i with a share beta of them; assign its samples to the nearest of S_i
    X_r <- the samples left, S <- all S_i

and augments it (Algorithm 2): |X_r| - |S| more samples S' are drawn from the rest, and every sample outside X_r is
assigned to the nearest point of S and S'. The weight of a point of S or S' is the number of samples assigned to it; a
point of X_r has weight 1. The clients send points and weights (M + 1 numbers each) once (Algorithm 3). The server
solves K-means with z outliers on them by k-means--, and sends the centres to all clients (K M numbers each). As in its
authors' program, the seeds are drawn from points with weights above 1, because an outlier drawn as a seed would stay a
centre. Then each sample, outlier or not, is assigned to its nearest centre. ``sites``: t = 2 z / P if samples are
distributed at random, t = z for any partition.

``cal-released`` follows the released program of fedmf: exactly ceil(beta n) samples leave at a time, so that points of
S_i may stay; the points of S' are dropped after the assignment, with the samples assigned to them; the server runs
plain weighted K-means without outliers, with seeds drawn without weights.

Source: Chen, Azer and Zhang, "A Practical Algorithm for Distributed Clustering and Outlier Detection", NeurIPS 2018;
Chawla and Gionis, "k-means--: A Unified Approach to Clustering and Outlier Detection", SDM 2013; fedmf
section V-G, discrepancy fedmf.23.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from fedrepro.errors import ParameterError
from fedrepro.ledger import Ledger
from fedrepro.parameters import Number, OneOf, Whole
from fedrepro.problems.clustering import lloyd
from fedrepro.problems.clustering.problem import Clustering
from fedrepro.protocols import Cost, Work
from fedrepro.registry import add_method
from fedrepro.seeds import Rng

_MOST_STEPS = 300


@dataclass(frozen=True)
class CAL(lloyd.OneShot):
    """Parameters of CAL.

    z : outliers among all samples, from 0 to less than N. alpha : samples drawn for a ball, divided by
    kappa = max(log N_p, K). beta : share of the remaining samples in a ball, 0.25 <= beta < 0.5.
    sites : outliers that a client allows for: ``random`` for t = 2 z / P, ``any`` for t = z.
    second : algorithm of the server: ``k-means--``, or ``k-means`` without outliers.
    seeding : ``weighted`` or ``plain`` k-means++ seeds. variant : ``original``, or ``released``: exactly ceil(beta n)
    samples leave at a time, and the points of S' are dropped after the assignment.

    >>> import numpy as np
    >>> from fedrepro import Clustering, CAL, run
    >>> labels = np.arange(60) % 3
    >>> X = np.eye(5, 3)[:, labels] + 0.1 * np.random.default_rng(0).random((5, 60))
    >>> problem = Clustering(X, np.arange(60) % 4, K=3, labels=labels)
    >>> history = run(CAL(z=4), problem, rounds=1, metrics=["accuracy"])
    >>> round(float(history["accuracy"][-1]), 2), history.ledger.uplink_scalars > 0
    (1.0, True)
    """

    z: Annotated[int, Whole(0)] = 256
    alpha: Annotated[float, Number(above=0.0)] = 2.0
    beta: Annotated[float, Number(least=0.25)] = 0.45
    sites: Annotated[str, OneOf("random", "any")] = "random"
    second: Annotated[str, OneOf("k-means--", "k-means")] = "k-means--"
    seeding: Annotated[str, OneOf(*lloyd.SEEDINGS)] = "weighted"
    variant: Annotated[str, OneOf("original", "released")] = "original"

    def __post_init__(self) -> None:
        """Raise ParameterError where a value cannot work."""
        super().__post_init__()
        if self.beta >= 0.5:
            raise ParameterError("beta", f"must be less than 0.5, not {self.beta!r}")

    def check(self, *, N: int | None = None, **_: Any) -> None:
        """Raise ParameterError where the method cannot run on N samples."""
        if N is not None and self.z >= N:
            raise ParameterError("z", f"must be less than the number of samples N = {N}, not {self.z}")

    @staticmethod
    def cost(params: Mapping[str, Any], facts: Mapping[str, Any]) -> Cost:
        """Distances of each client's samples to its draws, and K-means of the summaries."""
        work = 25.0 * lloyd.visiting(facts) + Work(calls=250.0 * facts["P"] + 5000.0)
        return Cost(work, holds=lloyd.holding(facts, 1.0), libraries=("sklearn",))

    def centres(self, problem: Clustering, draw: Rng, ledger: Ledger) -> np.ndarray:
        """The centres, (K, M)."""
        self.check(N=problem.N)
        seed = lloyd.random_state(draw)
        points, weights = self.summaries(problem, draw, ledger)
        if self.second == "k-means" or self.z == 0:
            centres = lloyd.weighted_kmeans(points, weights, problem.K, seed, seeding=self.seeding)
        else:
            centres = kmeans_minus(points, weights, problem.K, self.z, seed, self.seeding)
        ledger.down(problem.K * problem.M, kind="centres", clients=problem.P)
        return centres

    def summaries(self, problem: Clustering, draw: Rng, ledger: Ledger) -> tuple[Any, np.ndarray]:
        """The weighted points the clients send: (n, M) and (n,)."""
        t = 2.0 * self.z / problem.P if self.sites == "random" else float(self.z)
        points, weights = [], []
        for p in range(problem.P):
            X = problem.samples(problem.client(p))
            rows, w = self.summary(X, problem.K, t, draw)
            points.append(X[rows])
            weights.append(w)
            ledger.up(rows.size * (problem.M + 1), kind="summary")
        return lloyd.stacked(points), np.concatenate(weights)

    def summary(self, X: Any, K: int, t: float, draw: Rng) -> tuple[np.ndarray, np.ndarray]:
        """Algorithm 2 for the samples X, (n, M): rows of X, and their weights."""
        S, w_S, X_r = self._grow(X, K, t, draw)
        rest = np.setdiff1d(np.arange(X.shape[0]), np.union1d(S, X_r))
        spare = max(0, X_r.size - S.size) if rest.size else 0
        if S.size and (spare or self.variant == "original"):
            both = np.union1d(S, rest[draw.integers(rest.size, size=spare)]) if spare else np.unique(S)  # S and S'
            near, _ = _closest(X, np.setdiff1d(np.arange(X.shape[0]), X_r), both)
            w_S = np.bincount(near, minlength=both.size).astype(np.float64)
            kept = np.isin(both, S) if self.variant == "released" else np.ones(both.size, dtype=bool)
            S, w_S = both[kept], w_S[kept]
        return np.concatenate([S, X_r]), np.concatenate([w_S, np.ones(X_r.size)])

    def _grow(self, X: Any, K: int, t: float, draw: Rng) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Algorithm 1: S, its weights, and X_r, as rows of X."""
        left = np.arange(X.shape[0])
        size = max(1, int(self.alpha * max(np.log(X.shape[0]), K)))
        S, weights = [np.empty(0, dtype=np.intp)], [np.empty(0)]
        while left.size > 8 * t:
            S_i = np.unique(left[draw.integers(left.size, size=size)])
            near, d2 = _closest(X, left, S_i)
            share = int(np.ceil(self.beta * left.size))
            if self.variant == "original":
                ball = d2 <= np.partition(d2, share - 1)[share - 1]
            else:
                ball = np.zeros(left.size, dtype=bool)
                ball[np.argsort(d2, kind="stable")[:share]] = True
            S.append(S_i)
            weights.append(np.bincount(near[ball], minlength=S_i.size).astype(np.float64))
            left = left[~ball]
        return np.concatenate(S), np.concatenate(weights), left


def _closest(X: Any, rows: np.ndarray, to: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For the samples ``rows`` of X, the nearest of the samples ``to`` (increasing; a sample's nearest is itself)."""
    near, d2 = lloyd.nearest(X[rows], X[to])
    own = np.isin(rows, to)
    near[own], d2[own] = np.searchsorted(to, rows[own]), 0.0
    return near, d2


def kmeans_minus(points: Any, weights: np.ndarray, K: int, z: float, seed: int, seeding: str) -> np.ndarray:
    """Centres (K, M) of k-means-- on weighted points, (n,): each step ignores the farthest points of total weight z.

    The last ignored point may lose only a part of its weight. An empty cluster keeps its centre. Seeds are drawn from
    the points with weights above 1 if there are more than K.
    """
    if points.shape[0] <= K:
        return lloyd.weighted_kmeans(points, weights, K, seed)
    heavy = weights > 1 if np.count_nonzero(weights > 1) > K else weights > 0
    centres = lloyd.kmeans_seeds(points[heavy], weights[heavy], K, seed, seeding)
    for _ in range(_MOST_STEPS):
        near, d2 = lloyd.nearest(points, centres)
        far = np.argsort(-d2, kind="stable")
        kept = weights.copy()
        kept[far] = np.clip(np.cumsum(weights[far]) - z, 0.0, weights[far])
        moved = lloyd.means(points, near, kept, centres)
        if np.array_equal(moved, centres):
            break
        centres = moved
    return centres


add_method(
    "cal",
    CAL,
    "K-means with outliers of summaries that the clients make by growing balls",
    label="CAL",
    papers=("fedmf",),
    look=("orange", ">"),
)
add_method(
    "cal-released",
    CAL,
    "CAL as the released program of fedmf computes it, with plain K-means at the server",
    label="CAL (released)",
    papers=("fedmf",),
    preset={"second": "k-means", "seeding": "plain", "variant": "released"},
)
