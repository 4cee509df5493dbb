"""The numbers of ``synthetic`` in the memory of X: everything is drawn, scaled and clipped block by block.

For data of several gigabytes; ``synthetic`` itself holds four matrices of the size of X while it makes one. X is the
same to the last bit (docs/derivations/clustering-data.md#the-synthetic-generator), and takes a second drawing of the
noise, as the order of the samples is drawn after it.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fedrepro.datasets.synthetic import MOST_SCALINGS, SNR_TOLERANCE, Synthetic, _sizes
from fedrepro.datasets.types import Samples
from fedrepro.errors import ParameterError
from fedrepro.registry import Dataset, add_dataset

_BLOCK_BYTES = 1 << 22


@dataclass(frozen=True)
class SyntheticBlocks(Synthetic):
    """N samples in K clusters around non-negative centres, as ``synthetic`` makes them, for large M N.

    variant : authors, the released generator draw for draw, or clean, the model as the paper states it. M : length of a
    sample, at least 1. N : samples, at least K. K : clusters, at least 1.
    snr : in dB, before outliers are set, -40 .. 40. outliers : draws of outliers over N, 0 .. 1 (with replacement, so
    that there are a few fewer columns). seed : of numpy's legacy ``RandomState``, 0 .. 2^32 - 1.
    """

    def load(self) -> Samples:
        """X (M, N) >= 0, one sample per column; labels (N,)."""
        M, N, K = self.M, self.N, self.K
        draw = np.random.RandomState(self.seed)
        W = draw.uniform(0.0, 1.0, size=(M, K))
        sizes = _sizes(draw, M, N, K, self.variant)
        clustered = int(sizes.sum())
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


def _pieces(rows: int, M: int) -> Iterator[slice]:
    step = max(1, _BLOCK_BYTES // (8 * M))
    for first in range(0, rows, step):
        yield slice(first, min(first + step, rows))


def _at_snr(centres: np.ndarray, cluster: np.ndarray, E: np.ndarray, ratio: float) -> None:
    """E <- max(0, S + E) at the ratio of powers asked for, as ``synthetic`` makes it; row i of S is that of i's centre.

    Powers are summed over the samples of the whole matrix at once: the same bits as there.
    """
    N, M = E.shape
    powers = np.empty(N)
    for part in _pieces(N, M):
        S = centres[cluster[part]]
        np.einsum("ij,ij->i", S, S, out=powers[part])
    power, scale = float(powers.sum()), 1.0
    if power == 0 or not any(E[part].any() for part in _pieces(N, M)):
        raise ParameterError("snr", "signal and noise must both be there to be set in proportion")
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
    raise ParameterError("snr", f"this ratio is not reached in {MOST_SCALINGS} rescalings; take one nearer to 0 dB")


add_dataset(
    Dataset(
        name="synthetic-blocks",
        cls=SyntheticBlocks,
        kind="samples",
        summary="the numbers of synthetic, made block by block: for data of several gigabytes",
    )
)
