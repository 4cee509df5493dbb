"""What partitions share: labels, integer shares of a total, and samples for clients left without any."""

from __future__ import annotations

import numpy as np

from fedrepro.errors import ParameterError


def labels_of(labels: np.ndarray | None, partition: str) -> np.ndarray:
    """The labels, or ParameterError where the dataset has none."""
    if labels is None:
        raise ParameterError("partition", f"'{partition}' distributes samples by class, and this dataset has no labels")
    return np.asarray(labels)


def shares(weights: np.ndarray, total: int, least: int = 0, most: int | np.ndarray | None = None) -> np.ndarray:
    """Integers near ``total * weights / sum(weights)`` that sum to ``total``, each between ``least`` and ``most``
    (one number, or one for each weight).

    Largest remainders first; ties go to the first. Needs ``least * n <= total <= sum(most)`` for n weights.
    """
    weights = np.asarray(weights, dtype=np.float64)
    n = weights.size
    most = np.broadcast_to(total if most is None else most, n)
    if not least * n <= total <= int(most.sum()):
        raise ValueError(f"cannot make {n} shares of {least} to {most} out of {total}")
    exact = total * weights / weights.sum()
    parts = np.clip(np.floor(exact).astype(np.intp), least, most)
    while (missing := total - int(parts.sum())) != 0:  # every pass moves at least one unit towards the total
        room = np.flatnonzero(parts < most) if missing > 0 else np.flatnonzero(parts > least)
        gap = (exact - parts)[room] * np.sign(missing)
        chosen = room[np.argsort(-gap, kind="stable")[: abs(missing)]]
        parts[chosen] += np.sign(missing)
    return parts


def fill_empty(client: np.ndarray, P: int) -> np.ndarray:
    """Give each client without samples one of the largest client's (its last); needs at least P samples."""
    client = client.copy()
    counts = np.bincount(client, minlength=P)
    for empty in np.flatnonzero(counts == 0):
        largest = int(counts.argmax())
        client[np.flatnonzero(client == largest)[-1]] = empty
        counts[largest] -= 1
        counts[empty] += 1
    return client
