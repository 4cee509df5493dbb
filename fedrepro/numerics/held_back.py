"""Draws the entries or samples that a problem on the user's own data holds back for testing."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from fedrepro import seeds


def drawn(problem: str, client: np.ndarray, test: float, content: Sequence[np.ndarray]) -> np.ndarray:
    """Which entries or samples are held back, (n,) of bool: floor(test * n_p) of the n_p of client p, at random.

    problem : its name. client : (n,) ids. test : the share held back, from 0 to 1. content : the arrays of the data;
    the draw depends only on them, the problem and the share.
    """
    text = hashlib.sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in content)).hexdigest()
    draw = seeds.generator("partition", problem=problem, test=float(test), content=text)
    is_test = np.zeros(len(client), dtype=bool)
    for p in np.unique(client):
        own = draw.permutation(np.flatnonzero(client == p))
        is_test[own[: int(test * len(own) + 1e-9)]] = True
    return is_test
