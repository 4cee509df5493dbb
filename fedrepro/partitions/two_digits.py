"""Two classes per client (fedmf Case 2 for MNIST; fedc ``MNIST_bals`` and ``MNIST_ubls``).

Every class is cut into shards of consecutive samples, 2P shards in all, and every client gets two shards of different
classes. Three ways to cut:

* ``quota``: every class into the same number of shards, 2P/K, whatever its size. Clients are as unbalanced as the
  classes are: with the authors' class quotas of 5 to 20 % they have 50 to 175 of 10000 samples
  (docs/derivations/clustering-data.md#partitions).
* ``balanced``: shards of about equal size, so larger classes give more of them.
* ``powerlaw``: as ``quota``, but a class is cut in proportion to its clients' weights, rank^(-exponent) in random
  order: client sizes fall about as that power of their rank (a class has no more samples than it has), as fedc
  describes (fedmf: "highly unbalanced"; both after Li et al., 2020) and the authors' program does not.

The pairing is constructed, not searched for: shards sorted by class, shard i with shard i + P. As no class has more
than P shards, the two always differ. Random swaps that keep them different then mix the pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from fedrepro.datasets.types import Samples
from fedrepro.errors import ParameterError
from fedrepro.parameters import AtMost, Number, OneOf, Whole
from fedrepro.partitions.sharing import labels_of, shares
from fedrepro.protocols import Partition
from fedrepro.registry import add_partition

_SWAPS = 20
"""Swaps tried per client; each is skipped if it would give a client the same class twice."""


@dataclass(frozen=True)
class TwoDigits(Partition):
    """Two shards of different classes for each client.

    P : clients, K/2 .. N/2. balance : how classes are cut: quota (all into as many shards), balanced (shards of one
    size) or powerlaw (client sizes fall as a power of their rank). exponent : of the power law, 0 .. 10.
    """

    P: Annotated[int, Whole(), AtMost("N", "samples")] = 100
    balance: Annotated[str, OneOf("quota", "balanced", "powerlaw")] = "quota"
    exponent: Annotated[float, Number(least=0.0, most=10.0)] = 1.0

    def check(self, *, N: int | None = None, K: int | None = None) -> None:
        """Raise ParameterError if P clients are too few for K classes, or N samples too few for P clients."""
        P = self.P
        super().check(N=N, K=K)
        if K is not None and K < 2:
            raise ParameterError("partition", f"'two_digits' needs at least two classes, and this dataset has {K}")
        if K is not None and 2 * P < K:
            raise ParameterError("P", f"must be at least {-(-K // 2)} to hold {K} classes two by two, not {P}")
        if N is not None and 2 * P > N:
            raise ParameterError("P", f"must be at most N / 2 = {N // 2}, as every client gets two samples, not {P}")

    def assign(self, data: Samples, rng: np.random.Generator) -> np.ndarray:
        """Return the client of each sample, (N,).

        Raises ParameterError if there are no labels, fewer than two classes, or too few samples for the shards.
        """
        P = self.P
        labels = labels_of(data.labels, "two_digits")
        classes, counts = np.unique(labels, return_counts=True)
        self.check(N=labels.size, K=classes.size)
        shards = _shards(counts, P, self.balance)
        if (short := np.flatnonzero(shards > counts)).size:
            c = short[0]
            raise ParameterError(
                "P",
                f"{P} clients cut class {classes[c]} into {shards[c]} shards, but it has only {counts[c]} samples; "
                "use fewer clients or more samples",
            )
        pairs = _pairs(shards, P, rng)
        weights = (1.0 + rng.permutation(P)) ** -self.exponent if self.balance == "powerlaw" else np.ones(P)
        client = np.empty(labels.size, dtype=np.intp)
        for c, name in enumerate(classes):
            holders = np.flatnonzero((pairs == c).any(axis=1))
            client[labels == name] = np.repeat(holders, shares(weights[holders], counts[c], least=1))
        return client


def _shards(counts: np.ndarray, P: int, balance: str) -> np.ndarray:
    """Shards of each class: at least 1, at most P, 2P in all; balanced: no more than it has samples."""
    if balance != "balanced":
        return shares(np.ones(counts.size), 2 * P, least=1, most=P)
    most = np.minimum(counts, P)
    if most.sum() < 2 * P:
        raise ParameterError(
            "P",
            f"{P} clients with two classes each need {2 * P} shards, no more than {P} of one class, and these classes "
            f"have samples for {most.sum()}; use fewer clients or more samples",
        )
    return shares(counts, 2 * P, least=1, most=most)


def _pairs(shards: np.ndarray, P: int, rng: np.random.Generator) -> np.ndarray:
    """The two classes of each client, (P, 2), never equal; class c occurs ``shards[c]`` times."""
    order = rng.permutation(shards.size)
    pairs = np.repeat(order, shards[order]).reshape(2, P).T[rng.permutation(P)]
    for a, b in rng.integers(P, size=(_SWAPS * P, 2)):
        if pairs[a, 1] != pairs[b, 0] and pairs[b, 1] != pairs[a, 0]:
            pairs[a, 1], pairs[b, 1] = pairs[b, 1], pairs[a, 1]
    return pairs


add_partition("two_digits", TwoDigits, "Two classes per client, in equal, quota or power-law shards", "samples")
