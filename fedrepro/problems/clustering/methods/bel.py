r"""BEL: K-means of a coreset that the clients sample in proportion to their local K-means costs.

Problem: :math:`\min \sum_j \min_k \|x_j - w_k\|^2` over K centres. Balcan, Ehrlich and Liang, Algorithm 1:

    client p: centres B_p of a local K-means with min(K, N_p) clusters, m_q = d^2(q, B_p) for each sample q
        sends cost_p = sum_q m_q; the server sends the sum of all                        1 number each, up and down
        draws t_p = t cost_p / sum_i cost_i samples S_p with replacement, Pr(q) = m_q / cost_p
        w_q = sum_i cost_i / (t m_q) for q in S_p
        w_b = |P_b| - sum_{q in S_p, q in P_b} w_q for b in B_p, P_b the samples nearest to b
        sends S_p and B_p with their weights                                             M + 1 numbers each, up
    the server: K-means of these weighted points; the centres go to all clients          K M numbers each, down

then each sample is assigned to its nearest centre. The t samples are distributed by largest remainders.

**Negative weights.** The expected sum of the w_q of a cluster P_b is |P_b|, so the expected w_b is zero, and w_b is
negative if the samples drawn from P_b weigh more than |P_b|. The cost of the coreset is unbiased with these weights,
but K-means with negative weights is not meaningful: a mean can be anywhere. ``negative`` selects a remedy. ``rescale``
(default): if the samples of P_b weigh more than |P_b|, they are scaled to the weight |P_b| and b has no weight; so
every local cluster keeps its weight and all weights add up to N. ``clip``: negative w_b become 0, so the total exceeds
N. ``keep``: the weights are not changed.

``bel-released`` follows the released program of fedmf: t_p is rounded down; a client with t_p = 0 sends nothing, not
even its centres; negative weights are kept; the seeds of the last K-means are drawn without weights.

Source: Balcan, Ehrlich and Liang, "Distributed k-Means and k-Median Clustering on General Topologies", NIPS 2013;
fedmf section V-G, discrepancy fedmf.23.
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


@dataclass(frozen=True)
class BEL(lloyd.OneShot):
    """Parameters of BEL.

    t : number of samples that all clients draw, divided by N. n_init : starts of a local K-means.
    negative : treatment of negative weights w_b: ``rescale`` (the drawn samples are scaled to the weight of the
    cluster), ``clip`` (0 instead) or ``keep``. seeding : ``weighted`` or ``plain`` k-means++ seeds of the coreset.
    variant : ``original``, or ``released``: t_p rounded down, and a client with t_p = 0 sends nothing.

    >>> import numpy as np
    >>> from fedrepro import Clustering, BEL, run
    >>> labels = np.arange(60) % 3
    >>> X = np.eye(5, 3)[:, labels] + 0.1 * np.random.default_rng(0).random((5, 60))
    >>> problem = Clustering(X, np.arange(60) % 4, K=3, labels=labels)
    >>> history = run(BEL(), problem, rounds=1, metrics=["accuracy"])
    >>> round(float(history["accuracy"][-1]), 2), history.ledger.uplink_scalars > 0
    (1.0, True)
    """

    t: Annotated[float, Number(above=0.0)] = 0.5
    n_init: Annotated[int, Whole()] = 10
    negative: Annotated[str, OneOf("rescale", "clip", "keep")] = "rescale"
    seeding: Annotated[str, OneOf(*lloyd.SEEDINGS)] = "weighted"
    variant: Annotated[str, OneOf("original", "released")] = "original"

    def __post_init__(self) -> None:
        """Raise ParameterError where a value cannot work."""
        super().__post_init__()
        if self.negative == "keep" and self.seeding == "weighted":
            raise ParameterError(
                "seeding", "must be plain where negative is keep: no seed is drawn by a weight below 0"
            )

    @staticmethod
    def cost(params: Mapping[str, Any], facts: Mapping[str, Any]) -> Cost:
        """K-means of each client's samples, mostly calls if clients are small, and of the coreset."""
        iterations = lloyd.EXPECTED_ITERATIONS / 2.0 * params["n_init"] + lloyd.EXPECTED_ITERATIONS * params["t"]
        calls = (700.0 if facts["N"] > facts["K"] * facts["P"] else 300.0) * facts["P"] * params["n_init"]
        work = iterations * lloyd.visiting(facts) + Work(calls=calls + 5000.0)
        return Cost(work, holds=lloyd.holding(facts, 1.0 + params["t"]), libraries=("sklearn",))

    def centres(self, problem: Clustering, draw: Rng, ledger: Ledger) -> np.ndarray:
        """The centres, (K, M)."""
        seed = lloyd.random_state(draw)
        points, weights = self.coreset(problem, draw, ledger)
        centres = lloyd.weighted_kmeans(points, weights, problem.K, seed, seeding=self.seeding)
        ledger.down(problem.K * problem.M, kind="centres", clients=problem.P)
        return centres

    def coreset(self, problem: Clustering, draw: Rng, ledger: Ledger) -> tuple[Any, np.ndarray]:
        """The weighted points the clients send: (n, M) and (n,)."""
        local = [self._local(problem, p, lloyd.random_state(draw)) for p in range(problem.P)]
        costs = np.array([m.sum() for _, _, m in local])
        ledger.up(1, kind="cost", clients=problem.P)
        ledger.down(1, kind="cost", clients=problem.P)
        t = max(1, round(self.t * problem.N))
        points, weights = [], []
        shares = self.shares(costs, t)
        silent = (shares == 0) & (self.variant == "released") & (costs.sum() > 0)
        if silent.all():
            raise ParameterError("t", f"{t} samples, shared out to {problem.P} clients and rounded down, leave none")
        for p in np.flatnonzero(~silent):
            (B, near, m), t_p = local[int(p)], shares[p]
            X = problem.samples(problem.client(int(p)))
            S = draw.choice(m.size, t_p, p=m / costs[p]) if t_p else np.empty(0, dtype=np.intp)
            w_S, w_B = self.weigh(near, len(B), S, costs.sum() / (t * m[S]))
            points += [X[S], B]
            weights += [w_S, w_B]
            ledger.up((S.size + len(B)) * (problem.M + 1), kind="weighted points")
        return lloyd.stacked(points), np.concatenate(weights)

    def _local(self, problem: Clustering, p: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """B_p, (K_p, M); the nearest of them for each sample, (N_p,); the squared distance to it, (N_p,)."""
        X = problem.samples(problem.client(p))
        B = lloyd.kmeans(X, min(problem.K, X.shape[0]), seed, n_init=self.n_init)
        near, m = lloyd.nearest(X, B)
        return (B, near, m) if X.shape[0] > problem.K else (B, np.arange(X.shape[0]), np.zeros(X.shape[0]))

    def shares(self, costs: np.ndarray, t: int) -> np.ndarray:
        """t_p of every client, (P,); all 0 where every sample is a centre."""
        if costs.sum() == 0.0:
            return np.zeros(costs.size, dtype=np.intp)
        exact = t * costs / costs.sum()
        t_p = np.floor(exact).astype(np.intp)
        if self.variant == "original":
            t_p[np.argsort(t_p - exact, kind="stable")[: t - t_p.sum()]] += 1
        return t_p

    def weigh(self, near: np.ndarray, K_p: int, S: np.ndarray, w_S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The weights sent with the samples and with the centres of a client, from the samples' w_q."""
        sizes = np.bincount(near, minlength=K_p).astype(np.float64)  # |P_b|
        drawn = np.bincount(near[S], weights=w_S, minlength=K_p)
        w_B = sizes - drawn
        if self.negative == "keep":
            return w_S, w_B
        over = w_B < 0
        if self.negative == "rescale":
            factor = np.divide(sizes, drawn, out=np.ones(K_p), where=over)
            w_S = w_S * factor[near[S]]
        return w_S, np.where(over, 0.0, w_B)


add_method(
    "bel",
    BEL,
    "K-means of a coreset sampled in proportion to the clients' K-means costs",
    label="BEL",
    papers=("fedmf",),
    look=("grey", "<"),
)
add_method(
    "bel-released",
    BEL,
    "BEL as the released program of fedmf computes it, with negative weights",
    label="BEL (released)",
    papers=("fedmf",),
    preset={"negative": "keep", "seeding": "plain", "variant": "released"},
)
