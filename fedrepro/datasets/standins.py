"""Labelled surrogates for datasets that are not at hand: drawn from a seed, of the same kind and shape.

Each function states what it imitates and what it does not. Figures made with them are marked and count for no claim.
Everything is drawn from the generator given: same generator, same data.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedrepro.datasets import digits as sklearn_digits
from fedrepro.datasets.types import Images, Ratings, Samples

SIDE = 28


DIGITS = "scikit-learn's 1,797 handwritten digits of 8 x 8 pixels, enlarged; taken again where more are needed, shifted"


def digits(labels: np.ndarray, rng: np.random.Generator, scale: float = 255) -> Samples:
    """Handwritten digits on a 28 x 28 grid, (784, N) in 0 .. 255 / scale: real ones, which scikit-learn comes with.

    They are 1,797 images of 8 x 8 pixels in 17 shades (Alpaydin and Kaynak, 1998), here enlarged to MNIST's 20 x 20
    pixels in the middle of 28 x 28. Images of a class are taken in random order; where more are asked for than there
    are, they are taken again, shifted by up to two pixels either way. Has MNIST's grid, value range, dark margin and
    share of inked pixels (about one in five), and the shapes of digits, with their similarities. Has fewer writers, and
    no more detail than the small images had.
    """
    pixels, drawn = sklearn_digits.read()
    size, room, K = 20, 2, 10
    weights = np.maximum(0.0, 1.0 - np.abs((np.arange(size)[:, None] + 0.5) * 8 / size - 0.5 - np.arange(8)))
    weights /= weights.sum(axis=1, keepdims=True)
    large = weights @ (pixels.reshape(-1, 8, 8) * (255 / 16)) @ weights.T
    large = np.clip(np.rint(1.35 * (large - 66.0)), 0, 255)  # strokes of MNIST's width
    X = np.zeros((len(labels), SIDE, SIDE))
    for k in range(K):
        mine, own = np.flatnonzero(labels == k), np.flatnonzero(drawn == k)
        for turn, first in enumerate(range(0, len(mine), len(own))):
            part = mine[first : first + len(own)]
            chosen = rng.permutation(own)[: len(part)]
            moved = rng.integers(-room, room + 1, size=(len(part), 2)) if turn else np.zeros((len(part), 2), dtype=int)
            for at, which, (down, right) in zip(part, chosen, moved + (SIDE - size) // 2, strict=True):
                X[at, down : down + size, right : right + size] = large[which]
    facts = {"stand_in": DIGITS, "class_sizes": np.bincount(labels, minlength=K).tolist()}
    return Samples(X.reshape(len(labels), -1).T / scale, labels, K, facts)


def _along(knots: np.ndarray, points: int = 20) -> np.ndarray:
    """Points along the polygon through each row of knots (n, knots, 2) -> (n, points, 2)."""
    t = np.linspace(0, knots.shape[1] - 1 - 1e-9, points)
    i, f = t.astype(int), (t % 1)[None, :, None]
    return knots[:, i] * (1 - f) + knots[:, i + 1] * f


def _ink(points: np.ndarray, width: np.ndarray, size: int = SIDE) -> np.ndarray:
    """Ink in [0, 1] of each pixel (n, size, size): 1 on the stroke, falling off over ``width`` pixels."""
    grid = np.arange(size)
    down = (points[:, :, 0, None] - grid) ** 2
    across = (points[:, :, 1, None] - grid) ** 2
    nearest = np.full((len(points), size, size), np.inf)
    for p in range(points.shape[1]):
        np.minimum(nearest, down[:, p, :, None] + across[:, p, None, :], out=nearest)
    return np.clip(1.6 * np.exp(-nearest / (2 * width[:, None, None] ** 2)) - 0.15, 0, 1)


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
    all genes, patients varying around their type in shared directions (k-means finds about two thirds), and
    unexpressed genes. Does not imitate real genes, pathways, batches or tumour subtypes.
    """
    classes = int(labels.max()) + 1
    mean = np.minimum(rng.gamma(2.5, 2.6, size=genes), 16.0)
    pattern = rng.normal(0, 1, size=(rank, genes)) / np.sqrt(rank)
    types = rng.normal(0, 1.6, size=(classes, rank))
    patient = rng.normal(0, 2.2, size=(len(labels), rank))
    X = (types[labels] + patient) @ pattern
    X += mean + rng.normal(0, 0.6, size=X.shape)
    return np.maximum(X, 0.0, out=X)


def ratings(
    users: int, items: int, total: int, rng: np.random.Generator, step: float = 1.0, at_least: int = 1, rank: int = 8
) -> Ratings:
    """About ``total`` ratings between ``step`` and 5 in steps of ``step``, each user and item pair at most once.

    Imitates the counts, the log-normal activity of users (20 ratings at least) and popularity of items, a mean of 3.6
    and a deviation of 1.1 stars, and what a low-rank model can learn: biases of users and items, ``rank`` shared
    tastes, noise. Does not imitate that people rate what they like, nor genres, time or sequels. Items nobody drew are
    left out.
    """
    activity = np.maximum(20.0, rng.lognormal(4.6, 1.0, size=users))
    counts = np.minimum(np.round(activity * total / activity.sum()).astype(np.int64), items)
    counts = np.maximum(counts, 1)
    popularity = np.cumsum(np.sort(rng.lognormal(0.0, 1.8, size=items))[::-1])
    tastes = rng.normal(0, 1, size=(users, rank)).astype(np.float32)
    traits = rng.normal(0, 0.55 / np.sqrt(rank), size=(items, rank)).astype(np.float32)
    user_bias, item_bias = rng.normal(0, 0.4, size=users), rng.normal(0, 0.5, size=items)
    user, item, value = [], [], []
    for start in range(0, users, 4096):
        mine = np.repeat(np.arange(start, min(start + 4096, users)), counts[start : start + 4096])
        drawn = np.searchsorted(popularity, rng.random(2 * len(mine)) * popularity[-1], side="right")
        pairs = np.unique(np.repeat(mine, 2) * np.int64(items) + np.minimum(drawn, items - 1))
        u, i = pairs // items, pairs % items
        place = np.empty(len(u), dtype=np.int64)  # of a user's distinct items, in random order
        place[np.lexsort((rng.random(len(u)), u))] = np.arange(len(u)) - np.searchsorted(u, u)
        keep = place < counts[u]
        u, i = u[keep], i[keep]
        stars = 3.6 + user_bias[u] + item_bias[i] + np.einsum("nr,nr->n", tastes[u], traits[i])
        stars += rng.normal(0, 0.8, size=len(u))
        user.append(u.astype(np.int32))
        item.append(i.astype(np.int32))
        value.append(np.clip(np.round(stars / step) * step, step, 5.0).astype(np.float32))
    u, i, v = np.concatenate(user), np.concatenate(item), np.concatenate(value)
    kept = np.bincount(i, minlength=items) >= max(1, at_least)
    compact = np.cumsum(kept) - 1
    chosen = kept[i]
    return Ratings(
        u[chosen],
        compact[i[chosen]].astype(np.int32),
        v[chosen].astype(np.float64) if total < 20_000_000 else v[chosen],
        users,
        int(kept.sum()),
        {"stand_in": "drawn tastes; no real ratings", "last_user_id": users, "last_item_id": items},
    )


def characters(per_alphabet: np.ndarray, drawings: int, size: int, rng: np.random.Generator) -> Images:
    """``drawings`` drawings of every character of some alphabets, (n, size, size, 1) uint8, ink 255.

    Imitates Omniglot's counts, thin strokes, and that each alphabet has its own handwriting (where its strokes start,
    how they lean), which its characters share. Does not imitate real scripts.
    """
    group = np.repeat(np.arange(len(per_alphabet)), per_alphabet)
    start, lean = rng.uniform(7, 21, size=(len(per_alphabet), 2, 2)), rng.normal(0, 3.5, size=(len(per_alphabet), 2))
    steps = rng.normal(0, 6.0, size=(len(group), 2, 3, 2)) + lean[group, None, None, :]
    knots = np.concatenate(
        [start[group][:, :, None, :], start[group][:, :, None, :] + np.cumsum(steps, axis=2)], axis=2
    )
    knots = np.clip(knots, 3, 25)
    labels = np.repeat(np.arange(len(group)), drawings)
    pixels = np.empty((len(labels), size, size, 1), dtype=np.uint8)
    for first in range(0, len(labels), 500):
        part = labels[first : first + 500]
        hand = rng.normal(0, 0.9, size=(len(part), 2, 4, 2)) + rng.normal(0, 0.7, size=(len(part), 1, 1, 2))
        strokes = knots[part] + hand
        points = np.concatenate([_along(strokes[:, 0]), _along(strokes[:, 1])], axis=1) * (size / SIDE)
        pixels[first : first + 500, :, :, 0] = np.round(255 * _ink(points, np.full(len(part), 0.6 * size / SIDE), size))
    facts = {"stand_in": "drawn pen strokes; no real characters", "characters": len(group)}
    return Images(pixels, labels.astype(np.int32), group[labels].astype(np.int32), None, facts)


def photographs(classes: int, train: int, test: int, rng: np.random.Generator) -> Images:
    """Smooth coloured textures, (train + test, 32, 32, 3) uint8, classes in turn.

    Imitates CIFAR's sizes, value range and balanced classes that a small network can learn and a linear one cannot
    fully: each class has three looks of low spatial frequency, shifted and recoloured. Does not imitate objects or
    background.
    """
    looks, side = 3, 32
    waves = rng.normal(0, 1, size=(classes, looks, 3, 4, 4)) + 1j * rng.normal(0, 1, size=(classes, looks, 3, 4, 4))
    spectrum = np.zeros((classes, looks, 3, side, side // 2 + 1), dtype=complex)
    spectrum[..., :4, :4] = waves
    textures = np.fft.irfft2(spectrum, s=(side, side))
    textures /= textures.std(axis=(-1, -2), keepdims=True)
    n = train + test
    labels = np.concatenate([np.arange(train) % classes, np.arange(test) % classes]).astype(np.int32)
    pixels = np.empty((n, side, side, 3), dtype=np.uint8)
    for first in range(0, n, 1000):
        part = labels[first : first + 1000]
        look = textures[part, rng.integers(0, looks, size=len(part))]
        shift = rng.integers(-4, 5, size=(len(part), 2))
        rows = (np.arange(side) + shift[:, :1]) % side
        columns = (np.arange(side) + shift[:, 1:]) % side
        i = np.arange(len(part))[:, None, None]
        moved = look.transpose(0, 2, 3, 1)[i, rows[:, :, None], columns[:, None, :]]
        tint = rng.normal(0, 25, size=(len(part), 1, 1, 3))
        noisy = 120 + 30 * moved + tint + rng.normal(0, 20, size=moved.shape)
        pixels[first : first + 1000] = np.clip(noisy, 0, 255)
    split = np.repeat(np.array([0, 1], dtype=np.int8), [train, test])
    facts = {"stand_in": "coloured textures; no real photographs", "train": train, "test": test}
    return Images(pixels, labels, None, split, facts)


def translations(views: int, J: int, features: int, rng: np.random.Generator, unit: bool = True) -> list[Any]:
    """J sentences in several languages, each (J, features) scipy.sparse CSR float64 with about 15 words per row.

    Imitates Europarl's hashed counts: aligned rows, Zipf word frequencies, signed hashing, rows of unit norm. Of 16
    words, 10 are concepts that all languages share, drawn from the sentence's mixture of topics; each language loses a
    twentieth of them. The others are function words, which each language places independently. So the largest
    directions of a view are its own, as in text, and the shared ones have to be learned: as a method learns them, the
    cost falls and the alignment accuracy rises, as in gcca Fig. 9. Does not imitate grammar, word order, how related
    languages are, or the many words that are rare.
    """
    from scipy.sparse import csr_matrix
    from sklearn.preprocessing import normalize

    concepts, topics, functions = 2_000, 20, 200
    owner = np.repeat(np.arange(J), rng.poisson(10, size=J).clip(2, 40))
    mixture = rng.dirichlet(np.full(topics, 0.2), size=J).cumsum(axis=1) + np.arange(J)[:, None]
    topic = np.searchsorted(mixture.ravel(), owner + rng.random(len(owner))) - topics * owner
    rank = _zipf(concepts, 5.0, len(owner), rng)
    own = rng.permuted(np.tile(np.arange(concepts), (topics, 1)), axis=1)
    meant = np.where(rng.random(len(owner)) < 0.8, own[topic.clip(0, topics - 1), rank], rank)
    sentences = []
    for _ in range(views):
        word, sign = rng.integers(0, features, size=concepts + functions), rng.choice([-1.0, 1.0], concepts + functions)
        lost = rng.random(len(owner)) < 0.05
        said = np.where(lost, rng.integers(0, concepts, size=len(owner)), meant)
        filled = np.repeat(np.arange(J), rng.poisson(6, size=J))
        said = np.concatenate([said, concepts + _zipf(functions, 2.0, len(filled), rng)])
        X = csr_matrix((sign[said], (np.concatenate([owner, filled]), word[said])), shape=(J, features))
        X.sum_duplicates()
        X.eliminate_zeros()
        sentences.append(normalize(X) if unit else X)
    return sentences


def _zipf(words: int, offset: float, count: int, rng: np.random.Generator) -> np.ndarray:
    """``count`` of 0 .. words-1, word r in proportion to 1 / (r + offset) (Zipf and Mandelbrot)."""
    share = np.cumsum(1 / (np.arange(words) + offset))
    return np.minimum(np.searchsorted(share, rng.random(count) * share[-1], side="right"), words - 1)


def claims(
    views: int, J: int, N: int, rng: np.random.Generator, groups: int = 6
) -> tuple[list[np.ndarray], np.ndarray]:
    """Counts (J, N) of each view, and the rows' groups in ascending order.

    Imitates the paper's DE-SynPUF matrices: Poisson counts, a few frequent diagnoses and procedures and many rare ones,
    groups of 40 rows or more that share a profile of procedures, three samples of one population. Does not imitate real
    codes or how alike the groups' profiles are.
    """
    share = np.linspace(2.0, 1.0, groups)
    sizes = np.floor(J * share / share.sum()).astype(int)
    sizes[0] += J - sizes.sum()
    labels = np.repeat(np.arange(groups), sizes)
    procedure = rng.lognormal(0, 1.5, size=N)
    profile = procedure * rng.lognormal(0, 1.0, size=(groups, N))
    profile /= profile.sum(axis=1, keepdims=True)
    diagnosis = rng.lognormal(5.0, 1.2, size=J)
    mean = diagnosis[:, None] * (profile[labels] * rng.lognormal(0, 0.7, size=(J, N)))
    return [rng.poisson(mean * rng.lognormal(0, 0.2, size=(J, 1))).astype(np.float64) for _ in range(views)], labels
