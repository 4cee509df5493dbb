"""The clustering papers' synthetic data: X = W* H* + E with one-hot H*, clipped at zero, at a fixed SNR.

Two variants. ``authors`` follows the released generator of Wang & Chang (github.com/wshuai317/FedMF;
docs/derivations/clustering-data.md#the-synthetic-generator) draw for draw, its quirks included: the samples left after
the cluster sizes are drawn belong to no cluster (all-zero columns under label 0), and a few columns are overwritten by
outliers. Only this variant reproduces fedmf Table I.
``clean`` puts every sample in a cluster, as the model of the papers does; it too is clipped and has outliers (none with
``outliers: 0``), which the papers do not mention.
Everything is drawn, scaled and clipped block by block, in the memory of X.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from fedrepro.datasets.types import Samples
from fedrepro.errors import ParameterError
from fedrepro.parameters import Number, OneOf, Whole, entries, whole
from fedrepro.protocols import Cost, Dataset, Work
from fedrepro.registry import add_dataset

_BLOCK_BYTES = 1 << 22
SNR_TOLERANCE = 1e-10  # on the power ratio, as in the released generator
MOST_SCALINGS = 10_000


@dataclass(frozen=True)
class Synthetic(Dataset):
    """N samples in K clusters around non-negative centres, with ||W* H*||^2 / ||E||^2 at a given SNR.

    variant : authors, the released generator draw for draw, or clean, every sample in a cluster. M : length of a
    sample, at least 1. N : samples, at least K. K : clusters, 1 .. 10,000, and M x K at most 1e8.
    snr : in dB, before outliers are set, -40 .. 40. outliers : draws of outliers over N, 0 .. 1 (with replacement, so
    that there are a few fewer columns). seed : of numpy's legacy ``RandomState``, 0 .. 2^32 - 1.
    """

    variant: Annotated[str, OneOf("authors", "clean")] = "authors"
    M: Annotated[int, Whole()] = 2000
    N: int = 10_000
    K: Annotated[int, Whole(1, 10_000)] = 20
    snr: Annotated[float, Number(least=-40, most=40)] = -3.0
    outliers: Annotated[float, Number(least=0, most=1)] = 0.03
    seed: Annotated[int, Whole(0, 2**32 - 1)] = 0

    def __post_init__(self) -> None:
        """Raise ParameterError where a value cannot work, or the sizes drawn exceed N (some seeds in ``authors``)."""
        super().__post_init__()
        entries("M", 1e8, M=self.M, K=self.K)  # drawn before the sizes of the clusters are
        whole("N", self.N, self.K)
        _sizes(np.random.RandomState(self.seed), self.M, self.N, self.K, self.variant, skip_centroids=True)

    def shape(self) -> dict[str, int | None]:
        """Return the sizes asked for."""
        return {"M": self.M, "N": self.N, "K": self.K}

    def making(self) -> Cost:
        """Return the cost of two normal draws and a few operations per entry, block by block in the memory of X."""
        entries = float(self.M * self.N)
        return Cost(Work(singles=65.0 * entries, calls=1000.0), holds=9.0 * entries)

    def load(self) -> Samples:
        """Return X (M, N) >= 0, one sample per column; labels (N,)."""
        M, N, K = self.M, self.N, self.K
        draw = np.random.RandomState(self.seed)
        W = draw.uniform(0.0, 1.0, size=(M, K))
        sizes = _sizes(draw, M, N, K, self.variant)
        clustered = int(sizes.sum())
        # The released program draws rows from a multivariate normal with identity covariance, one cluster after
        # another; numpy's legacy generator then multiplies by the identity: it is this same stream of standard normals.
        # It is drawn twice, the first time to come to the order of the samples, which is drawn after it.
        noise = copy.deepcopy(draw)
        for part in _pieces(clustered, M):
            draw.standard_normal((part.stop - part.start, M))
        order = draw.choice(N, N, replace=False)
        cluster, place = np.repeat(np.arange(K + 1), [*sizes, N - clustered])[order], np.argsort(order)
        X = np.zeros((N, M))
        for part in _pieces(clustered, M):
            X[place[part]] = noise.standard_normal((part.stop - part.start, M))
        _at_snr(np.vstack([W.T, np.zeros(M)]), cluster, X, 10 ** (self.snr / 10))
        where = draw.randint(0, N, size=int(self.outliers * N), dtype=np.int64)
        values = draw.uniform(size=(M, len(where)))
        for j, column in enumerate(where):
            X[column] = 5 * values[:, j]
        facts = {
            "variant": self.variant,
            "sizes": sizes.tolist(),
            "without_cluster": N - clustered,
            "zero_columns": int((X.max(axis=1) == 0).sum()),
            "outliers": len(np.unique(where)),
        }
        return Samples(X.T, np.where(cluster == K, 0, cluster), K, facts)


def _sizes(
    draw: np.random.RandomState, M: int, N: int, K: int, variant: str, *, skip_centroids: bool = False
) -> np.ndarray:
    """Cluster sizes: uniform on [max(1, 0.01 r/(K-i)), 1.5 r/(K-i)) with r samples left for K - i clusters."""
    if skip_centroids:
        draw.uniform(0.0, 1.0, size=(M, K))
    sizes: list[int] = []
    for i in range(K):
        left = N - sum(sizes)
        low, high = int(max(1.0, 0.01 * left / (K - i))), int(1.5 * left / (K - i))
        if variant == "clean" and i == K - 1:
            sizes.append(left)  # the last cluster takes the rest
        elif high <= low:
            raise ParameterError("N", f"{N} samples are too few to draw the sizes of {K} clusters; raise N or lower K")
        else:
            sizes.append(int(draw.randint(low, high, dtype=np.int64)))
    if sum(sizes) > N:
        raise ParameterError(
            "seed",
            f"the released generator draws {sum(sizes):,} samples for N = {N:,} with this seed and stops; "
            "use another seed (0 is the authors') or variant: clean",
        )
    return np.array(sizes)


def _pieces(rows: int, M: int) -> Iterator[slice]:
    step = max(1, _BLOCK_BYTES // (8 * M))
    for first in range(0, rows, step):
        yield slice(first, min(first + step, rows))


def _at_snr(centres: np.ndarray, cluster: np.ndarray, E: np.ndarray, ratio: float) -> None:
    """E <- max(0, S + E) with E scaled, and cut by the clipping, until ||S||^2 / ||E||^2 is ``ratio``.

    Row i of S is the centre of sample i's cluster. Powers are summed sample by sample, then over all of them at once:
    the sum depends neither on the number of threads nor on the blocks.
    """
    N, M = E.shape
    powers = np.empty(N)
    for part in _pieces(N, M):
        S = centres[cluster[part]]
        np.einsum("ij,ij->i", S, S, out=powers[part])
    power, scale = float(powers.sum()), 1.0
    if power == 0 or not any(E[part].any() for part in _pieces(N, M)):
        raise ParameterError("snr", "signal and noise must both be nonzero for a ratio")
    for _ in range(MOST_SCALINGS):
        for part in _pieces(N, M):
            S, block = centres[cluster[part]], E[part]
            block *= scale
            np.add(S, block, out=block)
            np.maximum(block, 0.0, out=block)
            np.subtract(block, S, out=block)
            np.einsum("ij,ij->i", block, block, out=powers[part])
        now = power / float(powers.sum())
        if abs(now - ratio) <= SNR_TOLERANCE * max(1.0, ratio):
            for part in _pieces(N, M):
                np.add(centres[cluster[part]], E[part], out=E[part])
                np.maximum(E[part], 0.0, out=E[part])
            return
        scale = np.sqrt(now / ratio)
    raise ParameterError("snr", f"this ratio is not reached in {MOST_SCALINGS} rescalings; use one nearer to 0 dB")


add_dataset(
    "synthetic",
    Synthetic,
    "Gaussian linear model X = W H + E clipped at zero, as the authors generate it or clean",
    kind="samples",
)
