"""The plain arrays that datasets hand to problems."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass
class Samples:
    """Samples to factorize or cluster (kind ``samples``).

    X : (M, N) float64 array, or scipy.sparse CSC matrix; one column per sample, as in the papers.
    labels : (N,) integer array with values 0 .. K-1, or None.
    K : number of classes, or None where it is not known.
    facts : what a reader should know of this copy (sizes drawn, outliers, selected features ...).

    >>> import numpy as np
    >>> from fedrepro import Clustering, Samples
    >>> data = Samples(np.ones((5, 60)), labels=np.arange(60) % 3, K=3)
    >>> Clustering(data.X, K=data.K, labels=data.labels).N
    60
    """

    X: Any
    labels: np.ndarray | None = None
    K: int | None = None
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass
class Ratings:
    """Observed entries of a user-item matrix (kind ``ratings``): ids are compact, 0 .. users-1 and 0 .. items-1.

    user : (n,) int32; item : (n,) int32; value : (n,) float64 in rating units (for instance 1..5);
    float32 where the file is large and its values are exact in it.

    >>> import numpy as np
    >>> from fedrepro import Ratings
    >>> data = Ratings(np.array([0, 0, 2]), np.array([1, 3, 0]), np.array([4.0, 1.0, 5.0]), users=3, items=4)
    >>> len(data.value)
    3
    """

    user: np.ndarray
    item: np.ndarray
    value: np.ndarray
    users: int
    items: int
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass
class Views:
    """I aligned views of the same J samples (kind ``views``): each (J, N_i), dense float64 or scipy.sparse CSR.

    >>> import numpy as np
    >>> from fedrepro import GCCA, Views
    >>> rng = np.random.default_rng(0)
    >>> data = Views([rng.standard_normal((40, 5)), rng.standard_normal((40, 3))])
    >>> GCCA(data.views, K=2).J
    40
    """

    views: list[Any]
    labels: np.ndarray | None = None
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass
class Images:
    """Labelled images (kind ``images``): pixels (n, height, width, channels) uint8, labels (n,), group (n,) or None.

    ``group`` is what client construction needs beside the label (Omniglot: the alphabet); ``split`` is 0 for train and
    1 for test images where the dataset fixes one, else None.

    >>> import numpy as np
    >>> from fedrepro import Images
    >>> images = Images(np.zeros((24, 16, 16, 1), dtype=np.uint8), labels=np.arange(24) % 2, group=np.arange(24) // 12)
    >>> images.pixels.shape, images.split is None
    ((24, 16, 16, 1), True)
    """

    pixels: np.ndarray
    labels: np.ndarray
    group: np.ndarray | None = None
    split: np.ndarray | None = None
    facts: dict[str, Any] = field(default_factory=dict)
