"""Joint passes over the samples: one pass serves several runs, so that thin products become wide ones.

The time of a round is mostly spent on reading X for ``X W`` and ``X^T L``, which have K columns each. Runs on the same
X can share a pass if they make it at the same time, with their W and L side by side. Each run gets the same bits as in
a solo run: a column of a product does not depend on its neighbours if BLAS treats all columns alike, which it does if
the number of columns of each run is padded to a multiple of four. ``exact`` tests this on the machine; if it fails,
runs are not joined.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from fedrepro.problems.clustering import sample_rows
from fedrepro.problems.clustering.sample_rows import Rows

LANES = 4
"""Columns are padded to a multiple of this, the width of BLAS kernels on x86-64-v3."""

CACHED_BYTES = 1 << 23
"""Samples up to this size stay in the cache between passes, so runs are not joined."""


@dataclass
class Pass:
    """One run's part of a pass over X, (N, M), samples as rows.

    parts : blocks of rows (``sample_rows.Rows``), in order. step : called with every block and T = X[part] W, (n, K),
    or None if W is None; the pass adds X[part]^T L to ``out`` for the returned L, (n, K). W : (M, K) or None.
    out : (M, K), or None if ``step`` returns nothing.
    """

    parts: Sequence[Rows]
    step: Callable[[Any, Any], np.ndarray | None]
    W: np.ndarray | None = None
    out: np.ndarray | None = None

    @property
    def key(self) -> tuple[Any, ...]:
        """Passes with equal keys can be joined."""
        return tuple((part.start, part.stop) if isinstance(part, slice) else part.tobytes() for part in self.parts)


def go(X: Any, passes: Sequence[Pass]) -> None:
    """Make joint passes over the same blocks of X, an (N, M) array or CSR matrix."""
    with_product = [run for run in passes if run.W is not None]
    W, columns = _beside([run.W for run in with_product])
    for part in passes[0].parts:
        block = sample_rows.take(X, part)
        T = _products(block, W, columns)
        places = {id(run): place for run, place in zip(with_product, columns, strict=True)}
        factors = [run.step(part, T[:, places[id(run)]] if id(run) in places else None) for run in passes]
        adding = [(run, L) for run, L in zip(passes, factors, strict=True) if run.out is not None and L is not None]
        if adding:
            L, at = _beside([L for _, L in adding])
            moved = _products(block.T, L, at)
            for (run, _), place in zip(adding, at, strict=True):
                run.out += moved[:, place]


def _beside(matrices: Sequence[Any]) -> tuple[np.ndarray | None, list[slice]]:
    """The matrices side by side, each padded with zeros to a multiple of ``LANES``, and the columns of each."""
    if not matrices:
        return None, []
    starts = np.cumsum([0, *(-(-A.shape[1] // LANES) * LANES for A in matrices)])
    columns = [slice(int(first), int(first) + A.shape[1]) for first, A in zip(starts, matrices, strict=False)]
    if len(matrices) == 1 and matrices[0].shape[1] == starts[-1]:
        return matrices[0], columns
    fat = np.zeros((matrices[0].shape[0], int(starts[-1])))
    for A, place in zip(matrices, columns, strict=True):
        fat[:, place] = A
    return fat, columns


def _products(A: Any, B: np.ndarray | None, columns: Sequence[slice]) -> Any:
    """A B. Products with a single row or column are computed separately: there BLAS depends on the width."""
    if B is None:
        return None
    if min(A.shape) > 1 or scipy.sparse.issparse(A) or len(columns) == 1:
        return np.asarray(A @ B)
    out = np.empty((A.shape[0], B.shape[1]))
    for place in columns:
        lanes = slice(place.start, place.start + -(-(place.stop - place.start) // LANES) * LANES)
        out[:, lanes] = A @ np.ascontiguousarray(B[:, lanes])
    return out


@functools.lru_cache(maxsize=64)
def exact(n: int, M: int, K: int, runs: int = 5) -> bool:
    """Whether ``runs`` joint runs get the same bits as solo runs, tested on random blocks of this size."""
    draw = np.random.default_rng(0)
    X, Ws = draw.random((n, M)), [draw.random((M, K)) for _ in range(runs)]

    def products(chosen: Sequence[np.ndarray]) -> list[tuple[np.ndarray, np.ndarray]]:
        kept: list[np.ndarray] = []
        passes = [Pass([slice(0, n)], _keeper(kept), W, np.zeros((M, K))) for W in chosen]
        go(X, passes)
        return [(T, run.out) for T, run in zip(kept, passes, strict=True) if run.out is not None]

    together, alone = products(Ws), [products([W])[0] for W in Ws]
    pairs = zip(together, alone, strict=True)
    return all(np.array_equal(a, b) for both in pairs for a, b in zip(*both, strict=True))


def _keeper(kept: list[np.ndarray]) -> Callable[[slice, np.ndarray], np.ndarray]:
    def step(_: slice, T: np.ndarray) -> np.ndarray:
        kept.append(T.copy())
        return np.ascontiguousarray(T)

    return step
