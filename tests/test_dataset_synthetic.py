"""The clustering papers' synthetic data: the recipe's numbers, its properties, its errors."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from fedrepro.data import content_fingerprint, loading
from fedrepro.datasets import synthetic
from fedrepro.datasets.synthetic import Synthetic
from fedrepro.errors import ParameterError

SIZES = [277, 414, 548, 345, 590, 662, 354, 645, 271, 48, 280, 580, 406, 583, 483, 1006, 169, 765, 73, 473]


def load(**params):
    return Synthetic(**params).load()


def naive(M: int, N: int, K: int, snr: float, outliers: float, seed: int):
    """docs/derivations/clustering-data.md#the-synthetic-generator: dense H*, multivariate noise."""
    draw = np.random.RandomState(seed)
    W = draw.uniform(size=(M, K))
    sizes, left = [], N
    for i in range(K):
        sizes.append(draw.randint(int(max(1, 0.01 * left / (K - i))), int(1.5 * left / (K - i)), 1)[0])
        left -= sizes[-1]
    H, E, at = np.zeros((K, N)), np.zeros((N, M)), 0
    for k, size in enumerate(sizes):
        H[k, at : at + size] = 1
        E[at : at + size] = draw.multivariate_normal(np.zeros(M), np.eye(M), size)
        at += size
    order = draw.choice(N, N, replace=False)
    H, E = H[:, order], E.T[:, order]
    labels = H.argmax(axis=0)
    while True:
        X = np.maximum(0, W @ H + E)
        E = X - W @ H
        now = np.linalg.norm(W @ H) ** 2 / np.linalg.norm(E) ** 2
        if abs(now - 10 ** (snr / 10)) <= 1e-10:
            break
        E = E * np.sqrt(now / 10 ** (snr / 10))
    where = draw.randint(0, N, size=int(outliers * N))
    values = draw.uniform(size=(M, len(where)))
    for j, column in enumerate(where):
        X[:, column] = 5 * values[:, j]
    return X, labels


def test_authors_variant_is_the_recipe_step_by_step():
    X, labels = naive(30, 200, 4, -3.0, 0.03, 0)
    ours = load(M=30, N=200, K=4)
    np.testing.assert_allclose(ours.X, X, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(ours.labels, labels)


@pytest.mark.slow
def test_authors_variant_has_the_published_statistics():
    data = load()
    X, M, N, K = data.X, 2000, 10_000, 20
    assert X.shape == (M, N)
    assert data.facts["sizes"] == SIZES
    assert (data.facts["without_cluster"], data.facts["zero_columns"], data.facts["outliers"]) == (1028, 992, 298)
    assert np.bincount(data.labels, minlength=K).tolist() == [277 + 1028, *SIZES[1:]]
    assert (X.min(), round(X.max(), 2), round(X.mean(), 4)) == (0, 6.58, 0.7099)
    energy = np.einsum("ij,ij->", X, X)
    assert round(energy / N, 1) == 2534.9
    # the objective of the authors' initial point, seed 1, as their program prints it
    draw = np.random.RandomState(1)
    a = np.sqrt(X.mean() / K)
    W, H = a * draw.random_sample((M, K)), a * draw.random_sample((N, K)).T
    misfit = energy - 2 * np.einsum("ij,ij->", W, X @ H.T) + np.einsum("ij,ij->", W.T @ W, H @ H.T)
    penalty = 0.5e-8 * ((H.sum(0) ** 2).sum() - (H**2).sum()) + 0.5e-10 * (H**2).sum()
    assert misfit / energy + penalty == pytest.approx(0.82743091, abs=5e-9)


@pytest.mark.parametrize("snr", [-10.0, -3.0, 0.0, 10.0])
def test_clean_variant_reaches_the_snr_and_places_every_sample(snr):
    data = load(variant="clean", M=40, N=300, K=5, snr=snr, outliers=0, seed=3)
    assert data.facts["without_cluster"] == 0
    assert sum(data.facts["sizes"]) == 300
    W = np.random.RandomState(3).uniform(size=(40, 5))
    signal = W[:, data.labels]
    ratio = (signal**2).sum() / ((data.X - signal) ** 2).sum()
    assert 10 * np.log10(ratio) == pytest.approx(snr, abs=1e-8)
    assert data.X.min() >= 0


def test_every_cluster_has_a_sample_in_clean_for_any_seed():
    for seed in range(30):
        sizes = load(variant="clean", M=2, N=60, K=6, seed=seed).facts["sizes"]
        assert min(sizes) >= 1
        assert sum(sizes) == 60


def test_same_seed_same_bytes_other_seed_other_data():
    one, two = load(variant="clean", M=10, N=50, K=3, seed=5), load(variant="clean", M=10, N=50, K=3, seed=5)
    assert one.X.tobytes() == two.X.tobytes()
    assert load(variant="clean", M=10, N=50, K=3, seed=6).X.tobytes() != one.X.tobytes()


def test_seed_that_stops_the_released_generator_is_one_clear_error():
    with pytest.raises(ParameterError, match=r"seed: the released generator draws 10,\d+ samples for N = 10,000"):
        load(seed=1)
    with pytest.raises(ParameterError, match="use another seed \\(0 is the authors'\\) or variant: clean"):
        load(seed=2)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"variant": "author"}, "variant: must be one of authors, clean, not 'author', did you mean 'authors'?"),
        ({"M": 0}, "M: must be an integer of at least 1, not 0"),
        ({"K": 20, "N": 10}, "N: must be an integer of at least 20, not 10"),
        ({"K": 20, "N": 21}, "N: 21 samples are too few to draw the sizes of 20 clusters; raise N or lower K"),
        ({"outliers": 1.5}, "outliers: must be a number from 0 to 1, not 1.5"),
        ({"snr": "loud"}, "snr: must be a number from -40 to 40, not 'loud'"),
        ({"seed": -1}, "seed: must be an integer from 0 to 4,294,967,295, not -1"),
    ],
)
def test_bad_parameters(params, message):
    with pytest.raises(ParameterError) as caught:
        load(**params)
    assert str(caught.value) == message


def test_reads_no_file():
    assert content_fingerprint.fingerprint("synthetic", {}) == ""
    params = {"variant": "clean", "M": 5, "N": 20, "K": 2}
    direct, dispatched = load(**params), loading.load("synthetic", params, stand_in=True)
    assert direct.X.tobytes() == dispatched.X.tobytes()


# Block by block


def whole(variant, M, N, K, snr, outliers, seed):
    """X and the labels, made with matrices of the size of X all along."""
    draw = np.random.RandomState(seed)
    W = draw.uniform(0.0, 1.0, size=(M, K))
    sizes = synthetic._sizes(draw, M, N, K, variant)
    clustered = int(sizes.sum())
    E = np.zeros((N, M))
    E[:clustered] = draw.standard_normal((clustered, M))
    cluster = np.repeat(np.arange(K + 1), [*sizes, N - clustered])
    order = draw.choice(N, N, replace=False)
    cluster, E = cluster[order], E[order]
    S = np.vstack([W.T, np.zeros(M)])[cluster]
    power, ratio = np.einsum("ij,ij->i", S, S).sum(), 10 ** (snr / 10)
    while True:
        E = np.maximum(S + E, 0.0) - S
        now = power / np.einsum("ij,ij->i", E, E).sum()
        if abs(now - ratio) <= synthetic.SNR_TOLERANCE * max(1.0, ratio):
            break
        E *= np.sqrt(now / ratio)
    X = np.maximum(S + E, 0.0)
    where = draw.randint(0, N, size=int(outliers * N), dtype=np.int64)
    values = draw.uniform(size=(M, len(where)))
    for j, column in enumerate(where):
        X[column] = 5 * values[:, j]
    return X.T, np.where(cluster == K, 0, cluster)


@pytest.mark.parametrize("variant", ["authors", "clean"])
@pytest.mark.parametrize("snr", [-3.0, 6.0])
@pytest.mark.parametrize("block", [1, 3000, 1 << 22])
def test_blocks_give_the_bits_of_the_whole(monkeypatch, variant, snr, block):
    monkeypatch.setattr(synthetic, "_BLOCK_BYTES", block)
    params = {"variant": variant, "M": 17, "N": 300, "K": 5, "snr": snr, "outliers": 0.05, "seed": 0}
    X, labels = whole(**params)
    made = load(**params)
    np.testing.assert_array_equal(made.X, X, strict=True)
    np.testing.assert_array_equal(made.labels, labels, strict=True)


def test_making_takes_the_memory_of_x_and_little_more():
    tracemalloc.start()
    load(M=200, N=40_000, K=20, variant="clean")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.5 * 8 * 200 * 40_000


def test_noise_that_clipping_holds_down_is_refused(monkeypatch):
    monkeypatch.setattr(synthetic, "MOST_SCALINGS", 3)
    with pytest.raises(
        ParameterError, match=r"^snr: this ratio is not reached in 3 rescalings; use one nearer to 0 dB$"
    ):
        load(M=5, N=60, K=2, snr=-9.0)
