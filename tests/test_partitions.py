"""Partitions: every sample has a client, no client is empty, and what cannot work is said at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse

from fedrepro import registry
from fedrepro.datasets.types import Samples
from fedrepro.errors import ParameterError
from fedrepro.partitions import _common, dirichlet, similarity, two_digits, uniform


def digits(counts: list[int], shuffle: bool = True, seed: int = 0) -> Samples:
    labels = np.repeat(np.arange(len(counts)), counts)
    if shuffle:
        labels = np.random.default_rng(seed).permutation(labels)
    return Samples(np.ones((1, labels.size)), labels, len(counts))


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


QUOTA = [500, 500, 500, 500, 1000, 1000, 1000, 1500, 1500, 2000]


# All of them


@pytest.mark.parametrize(
    ("assign", "params"),
    [
        (uniform.assign, {"P": 7}),
        (similarity.assign, {"P": 7, "n_init": 2}),
        (similarity.assign, {"P": 7, "batch": 30}),
        (two_digits.assign, {"P": 7}),
        (two_digits.assign, {"P": 7, "balance": "balanced"}),
        (two_digits.assign, {"P": 7, "balance": "powerlaw"}),
        (dirichlet.assign, {"P": 7, "alpha": 0.05}),
    ],
)
def test_every_sample_has_a_client_and_every_client_samples(
    assign: Callable[..., np.ndarray], params: dict[str, Any]
) -> None:
    generator = rng()
    data = Samples(generator.random((4, 90)), generator.integers(5, size=90), 5)
    X, labels = data.X.copy(), data.labels.copy()  # type: ignore[union-attr]
    client = assign(data, rng(1), **params)
    assert client.shape == (90,)
    assert client.dtype.kind == "i"
    assert set(client.tolist()) == set(range(7))
    np.testing.assert_array_equal(assign(data, rng(1), **params), client)
    assert (assign(data, rng(2), **params) != client).any()
    np.testing.assert_array_equal(data.X, X)  # nothing is done to the data
    np.testing.assert_array_equal(data.labels, labels)


@given(N=st.integers(1, 300), P=st.integers(1, 60), seed=st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_uniform_sizes_differ_by_at_most_one(N: int, P: int, seed: int) -> None:
    data = Samples(np.ones((1, N)))
    if P > N:
        with pytest.raises(ParameterError, match=f"P: must be at most the number of samples N = {N}, not {P}"):
            uniform.assign(data, rng(seed), P=P)
        return
    sizes = np.bincount(uniform.assign(data, rng(seed), P=P), minlength=P)
    assert sizes.size == P
    assert sizes.max() - sizes.min() <= 1


# Two classes a client


@given(
    counts=st.lists(st.integers(8, 60), min_size=2, max_size=7),
    P=st.integers(1, 12),
    balance=st.sampled_from(["quota", "balanced", "powerlaw"]),
    seed=st.integers(0, 99),
)
@example(counts=[8, 10], P=9, balance="balanced", seed=0)
@example(counts=[8, 30, 9], P=12, balance="balanced", seed=0)
@settings(max_examples=150, deadline=None)
def test_two_different_classes_a_client_or_a_clear_refusal(counts: list[int], P: int, balance: str, seed: int) -> None:
    data = digits(counts, seed=seed)
    assert data.labels is not None
    classes, largest = len(counts), -(-2 * P // len(counts))
    room = sum(min(P, count) for count in counts)
    if classes > 2 * P or sum(counts) < 2 * P or (largest > min(counts) if balance != "balanced" else room < 2 * P):
        with pytest.raises(ParameterError, match=r"^P: "):
            two_digits.assign(data, rng(seed), P=P, balance=balance)
        return
    client = two_digits.assign(data, rng(seed), P=P, balance=balance)
    for p in range(P):
        assert len(set(data.labels[client == p])) == 2


def test_quota_gives_the_authors_client_sizes() -> None:
    client = two_digits.assign(digits(QUOTA), rng(), P=100)
    sizes = np.bincount(client)
    assert sizes.size == 100
    assert sizes.min() >= 50
    assert sizes.max() <= 200
    assert set(sizes) <= {a // 20 + b // 20 for a in QUOTA for b in QUOTA}
    assert len(set(sizes)) > 3


@pytest.mark.parametrize("balance", ["quota", "balanced"])
def test_equal_classes_give_equal_clients(balance: str) -> None:
    data = digits([1000] * 10)
    client = two_digits.assign(data, rng(), P=100, balance=balance)
    assert set(np.bincount(client)) == {100}
    assert data.labels is not None
    held = {tuple(np.unique(data.labels[client == p])) for p in range(100)}
    assert len(held) > 20  # of 45 possible pairs: the pairs are mixed, not blocks of one kind


def test_balanced_clients_are_about_equal_where_classes_are_not() -> None:
    sizes = np.bincount(two_digits.assign(digits(QUOTA), rng(), P=100, balance="balanced"))
    assert sizes.min() >= 0.9 * 100
    assert sizes.max() <= 1.1 * 100


def test_powerlaw_sizes_fall_like_a_power_of_the_rank() -> None:
    data = digits([1000] * 10)

    def slope(exponent: float) -> float:
        sizes = np.bincount(two_digits.assign(data, rng(), P=100, balance="powerlaw", exponent=exponent))
        return float(np.polyfit(np.log(np.arange(1, 61)), np.log(np.sort(sizes)[::-1][:60]), 1)[0])

    assert abs(slope(0.0)) < 1e-12
    assert -0.65 < slope(0.5) < -0.35
    assert -1.3 < slope(1.0) < -0.7


def test_shards_are_consecutive_samples_of_their_class() -> None:
    data = digits([40] * 4)
    client = two_digits.assign(data, rng(), P=8)
    assert data.labels is not None
    for c in range(4):
        owners = client[data.labels == c]
        assert np.count_nonzero(np.diff(owners)) == len(set(owners)) - 1


@pytest.mark.parametrize(
    ("data", "params", "message"),
    [
        (digits([9, 9]), {"P": 10}, "P: must be at most N / 2 = 9, as every client gets two samples, not 10"),
        (
            digits([3, 50]),
            {"P": 5},
            "P: 5 clients cut class 0 into 5 shards, but it has only 3 samples; use fewer clients or more samples",
        ),
        (digits([50]), {"P": 5}, "partition: 'two_digits' needs at least two classes, and this dataset has 1"),
        (digits([9] * 10), {"P": 4}, "P: must be at least 5 to hold 10 classes two by two, not 4"),
        (
            Samples(np.ones((2, 9))),
            {"P": 2},
            "partition: 'two_digits' shares samples out by class, and this dataset has no labels",
        ),
        (digits([9, 9]), {"P": 0}, "P: must be an integer of at least 1, not 0"),
        (
            digits([9, 9]),
            {"P": 2, "balance": "power"},
            "balance: must be one of quota, balanced, powerlaw, not 'power', did you mean 'powerlaw'?",
        ),
        (
            digits([9, 9]),
            {"P": 2, "exponent": 11},
            "exponent: must be a number of at least 0 and at most 10, not 11",
        ),
    ],
)
def test_what_two_digits_cannot_do_is_said_at_once(data: Samples, params: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError) as error:
        two_digits.assign(data, rng(), **params)
    assert str(error.value) == message


# Similar samples together


def blobs(count: int, each: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    generator = rng(seed)
    own = generator.permutation(np.repeat(np.arange(count), each))
    return 100 * generator.random((6, count))[:, own] + 0.01 * generator.standard_normal((6, count * each)), own


def test_similarity_puts_clusters_together() -> None:
    X, own = blobs(6, 20)
    for params in ({}, {"batch": 60}):
        client = similarity.assign(Samples(X), rng(), P=6, **params)
        assert len({(a, b) for a, b in zip(own, client, strict=True)}) == 6
    thin = similarity.assign(Samples(sparse.csc_matrix(X)), rng(), P=6)
    assert len({(a, b) for a, b in zip(own, thin, strict=True)}) == 6


def test_similarity_leaves_no_client_empty_where_samples_repeat() -> None:
    X = np.repeat(np.eye(3), [20, 5, 5], axis=1)  # three distinct samples, eight clients
    client = similarity.assign(Samples(X), rng(), P=8)
    assert set(client.tolist()) == set(range(8))
    everyone_alone = similarity.assign(Samples(X), rng(), P=30)
    assert sorted(everyone_alone.tolist()) == list(range(30))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"P": 31}, "P: must be at most the number of samples N = 30, not 31"),
        ({"P": 3, "n_init": 0}, "n_init: must be an integer of at least 1, not 0"),
        ({"P": 3, "batch": 1.5}, "batch: must be an integer of at least 1, not 1.5"),
    ],
)
def test_what_similarity_cannot_do_is_said_at_once(params: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError) as error:
        similarity.assign(Samples(np.ones((2, 30))), rng(), **params)
    assert str(error.value) == message


# Dirichlet


def test_alpha_sets_the_skew() -> None:
    data = digits([400] * 5)
    assert data.labels is not None

    def skew(alpha: float) -> float:
        client = dirichlet.assign(data, rng(), P=10, alpha=alpha)
        table = np.zeros((10, 5))
        np.add.at(table, (client, np.asarray(data.labels)), 1)
        return float((table.max(axis=1) / table.sum(axis=1)).mean())

    assert skew(0.01) > 0.8
    assert skew(1e4) < 0.25
    with pytest.raises(ParameterError, match="alpha: must be a number greater than 0, not 0"):
        dirichlet.assign(data, rng(), P=10, alpha=0)
    with pytest.raises(ParameterError, match="'dirichlet' shares samples out by class, and this dataset has no labels"):
        dirichlet.assign(Samples(np.ones((2, 9))), rng(), P=2)


# Shared pieces


@given(
    weights=st.lists(st.floats(0.01, 100), min_size=1, max_size=12),
    total=st.integers(0, 200),
    least=st.integers(0, 5),
    extra=st.integers(0, 30),
)
@settings(max_examples=150, deadline=None)
def test_shares_are_whole_bounded_and_sum_up(weights: list[float], total: int, least: int, extra: int) -> None:
    most = least + extra
    if not least * len(weights) <= total <= most * len(weights):
        with pytest.raises(ValueError, match="cannot make"):
            _common.shares(np.array(weights), total, least, most)
        return
    parts = _common.shares(np.array(weights), total, least, most)
    assert parts.sum() == total
    assert parts.min() >= least
    assert parts.max() <= most
    free = _common.shares(np.array(weights), total)
    assert np.abs(free - total * np.array(weights) / sum(weights)).max() < 1


def test_empty_clients_get_one_sample_of_the_largest() -> None:
    client = np.array([0, 0, 0, 3, 0])
    filled = _common.fill_empty(client, 5)
    assert sorted(np.bincount(filled, minlength=5).tolist()) == [1, 1, 1, 1, 1]
    assert filled[3] == 3
    np.testing.assert_array_equal(client, [0, 0, 0, 3, 0])


@pytest.mark.parametrize("name", ["uniform", "similarity", "two_digits", "dirichlet"])
def test_checks_say_before_any_data_what_the_partition_says_with_it(name: str) -> None:
    entry = registry.partitions()[name]
    assert entry.check is not None
    entry.check(N=None, K=None)
    entry.check(**entry.parameters(), N=10_000, K=10)
    with pytest.raises(ParameterError) as error:
        entry.check(P=11, N=10, K=2)
    assert error.value.name == "P"
