"""Labelled surrogates for datasets that are not at hand: drawn from a seed, of the same kind and shape.

Each function says what it imitates and what it does not. Figures made with them are marked and count for no claim.
Everything is drawn from the generator given: same generator, same data.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedrepro.datasets.types import Samples

SIDE = 28


def digits(labels: np.ndarray, rng: np.random.Generator, scale: float = 255) -> Samples:
    """Ten classes of pen strokes on a 28 x 28 grid, (784, N) in 0 .. 255 / scale.

    Imitates MNIST's grid, value range, dark margin, share of inked pixels (about one in five) and classes with several
    ways of writing, shifted and bent from image to image. Does not imitate the digits' shapes, nor how hard they are
    to tell apart.
    """
    K, ways, knots = 10, 3, 5
    strokes = rng.uniform(6, 22, size=(K, ways, knots, 2))
    way = rng.integers(0, ways, size=len(labels))
    bends = rng.normal(0, 1.1, size=(len(labels), knots, 2)) + rng.normal(0, 0.8, size=(len(labels), 1, 2))
    width = rng.uniform(0.9, 1.5, size=len(labels))
    X = np.empty((len(labels), SIDE * SIDE))
    for start in range(0, len(labels), 500):
        part = slice(start, start + 500)
        points = _along(strokes[labels[part], way[part]] + bends[part])
        X[part] = _ink(points, width[part])
    facts = {
        "stand_in": "drawn pen strokes; no real digits",
        "class_sizes": np.bincount(labels, minlength=K).tolist(),
    }
    return Samples(np.round(255 * X).T / scale, labels, K, facts)


def _along(knots: np.ndarray, points: int = 20) -> np.ndarray:
    """Points along the polygon through each row of knots (n, knots, 2) -> (n, points, 2)."""
    t = np.linspace(0, knots.shape[1] - 1 - 1e-9, points)
    i, f = t.astype(int), (t % 1)[None, :, None]
    return knots[:, i] * (1 - f) + knots[:, i + 1] * f


def _ink(points: np.ndarray, width: np.ndarray) -> np.ndarray:
    """Ink in [0, 1] of each pixel: 1 on the stroke, falling off over ``width`` pixels."""
    grid = np.arange(SIDE)
    down = (points[:, :, 0, None] - grid) ** 2
    across = (points[:, :, 1, None] - grid) ** 2
    nearest = np.full((len(points), SIDE, SIDE), np.inf)
    for p in range(points.shape[1]):
        np.minimum(nearest, down[:, p, :, None] + across[:, p, None, :], out=nearest)
    ink = np.clip(1.6 * np.exp(-nearest / (2 * width[:, None, None] ** 2)) - 0.15, 0, 1)
    return ink.reshape(len(points), -1)


def documents(labels: np.ndarray, terms: int, rng: np.random.Generator, length: float = 184.0) -> Any:
    """Term counts of drawn documents, scipy.sparse CSR (N, terms) float64.

    Imitates TDT2's class sizes (by ``labels``), mean document length and its spread, Zipf term frequencies, sparsity,
    and classes that share most of their words and differ in a few hundred. Does not imitate real topics: categories
    that overlap, stories inside a category, terms that occur together.
    """
    from scipy.sparse import csr_matrix

    classes = int(labels.max()) + 1
    common = 1 / (np.arange(terms) + 10.0)
    common /= common.sum()
    topic = np.zeros((classes, terms))
    own = max(1, min(terms, 300))
    for k in range(classes):
        topic[k, rng.choice(terms, own, replace=False)] = 1 / (np.arange(own) + 3.0)
    mixture = 0.65 * common + 0.35 * topic / topic.sum(axis=1, keepdims=True)
    sizes = np.maximum(5, rng.lognormal(np.log(length) - 0.18, 0.6, size=len(labels))).astype(int)
    words = np.empty(int(sizes.sum()), dtype=np.int64)
    owner = np.repeat(np.arange(len(labels)), sizes)
    for k in range(classes):
        mine = np.flatnonzero(labels[owner] == k)
        edges = np.cumsum(mixture[k])
        words[mine] = np.minimum(np.searchsorted(edges, rng.random(len(mine)) * edges[-1], side="right"), terms - 1)
    counts = csr_matrix((np.ones(len(words)), (owner, words)), shape=(len(labels), terms))
    counts.sum_duplicates()
    return counts


def expression(labels: np.ndarray, genes: int, rng: np.random.Generator, rank: int = 15) -> np.ndarray:
    """Gene expression on a log2 scale, (N, genes) float64, not negative.

    Imitates TCGA's value range (0 to about 20), the spread of gene means, types that differ in a low-rank pattern over
    all genes, patients varying around their type in shared directions, and unexpressed genes. Does not imitate real
    genes, pathways, batches or tumour subtypes.
    """
    classes = int(labels.max()) + 1
    mean = rng.gamma(2.5, 2.6, size=genes)
    pattern = rng.normal(0, 1, size=(rank, genes)) / np.sqrt(rank)
    types = rng.normal(0, 1.6, size=(classes, rank))
    patient = rng.normal(0, 0.9, size=(len(labels), rank))
    X = (types[labels] + patient) @ pattern
    X += mean + rng.normal(0, 0.6, size=X.shape)
    return np.maximum(X, 0.0, out=X)
