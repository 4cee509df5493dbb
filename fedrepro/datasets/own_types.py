"""The user's own data as arrays in memory: the types of ``types``, with the additional information that a user has.

This is the client of each sample (``client``), which entries are for testing (``test``, ``split``), and side
information. The partition ``given`` uses the clients; the problems named below use the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fedrepro.datasets.types import Images, Ratings, Samples


@dataclass
class OwnSamples(Samples):
    """Samples whose clients may be given: client (N,) ids 0 .. P-1, or None."""

    client: np.ndarray | None = None


@dataclass
class SplitRatings(Ratings):
    """Ratings whose split (problem ``completion-split``) and users' clients may be given.

    test : (n,) true for a test rating, or None. client : (users,) ids 0 .. P-1, or None.

    Example:
    >>> import numpy as np
    >>> from fedrepro import SplitRatings
    >>> user, item, stars = np.array([0, 0, 2]), np.array([1, 3, 0]), np.array([4.0, 1.0, 5.0])
    >>> SplitRatings(user, item, stars, users=3, items=4, test=np.array([False, True, False])).test.sum()
    np.int64(1)
    """

    test: np.ndarray | None = None
    client: np.ndarray | None = None


@dataclass
class ClientImages(Images):
    """Images whose clients and side information (problem ``personal-side``) may be given.

    client : (n,) ids 0 .. M-1, or None. side : (M, q) numbers of each client, or None.

    Example:
    >>> import numpy as np
    >>> from fedrepro import ClientImages
    >>> pixels = np.zeros((6, 16, 16, 1), dtype=np.uint8)
    >>> ClientImages(pixels, np.arange(6) % 2, client=np.arange(6) // 3, side=np.eye(2)).side.shape
    (2, 2)
    """

    client: np.ndarray | None = None
    side: np.ndarray | None = None


@dataclass
class Entries:
    """A few entries of a matrix whose columns are clients (kind ``entries``; problem ``imc-observed``).

    client : (n,) ids 0 .. M-1. item : (n,) ids 0 .. items-1. value : (n,) entry (item, client) of the matrix.
    Z : (M, k) side information of each client. test : (n,) true for a test entry; None to draw them.

    Example:
    >>> import numpy as np
    >>> from fedrepro import Entries
    >>> entries = Entries(np.array([0, 0, 1]), np.array([2, 0, 1]), np.array([0.5, 1.0, -0.2]), np.eye(2), items=3)
    >>> len(entries.value)
    3
    """

    client: np.ndarray
    item: np.ndarray
    value: np.ndarray
    Z: np.ndarray
    items: int
    test: np.ndarray | None = None
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass
class Measured:
    """Regression data of clients (kind ``regression``; problem ``regression``).

    x : (n, d) inputs. y : (n,) responses. client : (n,) ids 0 .. M-1. z : (M, k) side information of each client.
    test : (n,) true for a test sample; None to draw them.

    Example:
    >>> import numpy as np
    >>> from fedrepro import Measured
    >>> data = Measured(np.ones((4, 3)), np.arange(4.0), client=np.array([0, 0, 1, 1]), z=np.eye(2))
    >>> data.x.shape
    (4, 3)
    """

    x: np.ndarray
    y: np.ndarray
    client: np.ndarray
    z: np.ndarray
    test: np.ndarray | None = None
    facts: dict[str, Any] = field(default_factory=dict)
