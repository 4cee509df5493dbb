"""Points of the plane for pictures: t-SNE, after an optional reduction to principal components.

Source: van der Maaten and Hinton, "Visualizing Data using t-SNE", JMLR 9, 2008.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy


def embed(
    X: Any, *, perplexity: float = 30.0, components: int | None = None, start: str = "pca", seed: int = 0
) -> np.ndarray:
    """Places (n, 2) of the rows of X, (n, M), dense or CSR. It uses one thread, so the same X gives the same places.

    perplexity : effective number of neighbours, greater than 0 and less than n. components : principal components kept
    before t-SNE, at least 2 (all if M is not larger); None for the rows as they are. start : ``pca`` or ``random``
    places; sparse rows that are not reduced start at random. seed : seed of all random numbers.
    """
    from sklearn import manifold
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):
        first = start if not scipy.sparse.issparse(X) or components is not None else "random"
        model = manifold.TSNE(perplexity=perplexity, init=first, random_state=seed, n_jobs=1)
        return np.asarray(model.fit_transform(_reduced(X, components, seed)), dtype=np.float64)


def _reduced(X: Any, components: int | None, seed: int) -> Any:
    from sklearn.decomposition import PCA, TruncatedSVD

    if components is None or components >= min(X.shape):
        return X
    reduce = TruncatedSVD if scipy.sparse.issparse(X) else PCA
    return reduce(components, random_state=seed).fit_transform(X)
