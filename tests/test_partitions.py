"""Partitions: every sample has a client, no client is empty, and settings that cannot work are errors before anything
runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse

from fedrepro import registry
from fedrepro.datasets.own_types import ClientImages
from fedrepro.datasets.types import Images, Ratings, Samples
from fedrepro.errors import ParameterError
from fedrepro.partitions import sharing
from fedrepro.partitions.alphabets import Alphabets
from fedrepro.partitions.dirichlet import Dirichlet
from fedrepro.partitions.given import Given
from fedrepro.partitions.iid_images import IidImages
from fedrepro.partitions.similarity import Similarity
from fedrepro.partitions.two_digits import TwoDigits
from fedrepro.partitions.uniform import Uniform
from fedrepro.partitions.users import Users
from fedrepro.protocols import Partition


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
    "partition",
    [
        Uniform(P=7),
        Similarity(P=7, n_init=2),
        Similarity(P=7, batch=30),
        TwoDigits(P=7),
        TwoDigits(P=7, balance="balanced"),
        TwoDigits(P=7, balance="powerlaw"),
        Dirichlet(P=7, alpha=0.05),
    ],
)
def test_every_sample_has_a_client_and_every_client_samples(partition: Partition) -> None:
    generator = rng()
    data = Samples(generator.random((4, 90)), generator.integers(5, size=90), 5)
    X, labels = data.X.copy(), data.labels.copy()  # type: ignore[union-attr]
    client = partition.assign(data, rng(1))
    assert client.shape == (90,)
    assert client.dtype.kind == "i"
    assert set(client.tolist()) == set(range(7))
    np.testing.assert_array_equal(partition.assign(data, rng(1)), client)
    assert (partition.assign(data, rng(2)) != client).any()
    np.testing.assert_array_equal(data.X, X)  # nothing is done to the data
    np.testing.assert_array_equal(data.labels, labels)


@given(N=st.integers(1, 300), P=st.integers(1, 60), seed=st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_uniform_sizes_differ_by_at_most_one(N: int, P: int, seed: int) -> None:
    data = Samples(np.ones((1, N)))
    if P > N:
        with pytest.raises(ParameterError, match=f"P: must be at most the number of samples N = {N}, not {P}"):
            Uniform(P=P).assign(data, rng(seed))
        return
    sizes = np.bincount(Uniform(P=P).assign(data, rng(seed)), minlength=P)
    assert sizes.size == P
    assert sizes.max() - sizes.min() <= 1


# How much each client gets, for every registered partition


def counted(client: np.ndarray, *by: np.ndarray) -> np.ndarray:
    """How many of each kind each client has; -1 is nobody."""
    keys = (client, *by)
    table = np.zeros([int(key.max()) + 1 for key in keys], dtype=int)
    np.add.at(table, tuple(key[client >= 0] for key in keys), 1)
    return table


def gets_equal_numbers(seed: int) -> None:
    sizes = counted(Uniform(P=7).assign(Samples(np.ones((1, 90))), rng(seed)))
    assert sorted(sizes.tolist()) == [12] + [13] * 6


def gets_its_cluster(seed: int) -> None:
    sizes = [5, 9, 30]
    X = np.repeat([[0.0, 50.0, 100.0]], sizes, axis=1) + 0.01 * rng(seed).random((1, 44))
    found = counted(Similarity(P=3).assign(Samples(X), rng(seed)), np.repeat(np.arange(3), sizes))
    assert sorted(map(tuple, found.tolist())) == [(0, 0, 30), (0, 9, 0), (5, 0, 0)]


def gets_shards_in_proportion(seed: int) -> None:
    """The holders of a class have equal shares; with a power law, shares by a rank that each has in all classes."""
    P, counts = 12, np.array([60_000, 90_000, 120_000])
    data = digits(counts.tolist())
    for balance, exponent, weights in (
        ("quota", 1.0, np.ones(P)),
        ("balanced", 1.0, np.ones(P)),
        ("powerlaw", 1.0, np.arange(1.0, P + 1) ** -1.0),
        ("powerlaw", 2.0, np.arange(1.0, P + 1) ** -2.0),
    ):
        partition = TwoDigits(P=P, balance=balance, exponent=exponent)
        table = counted(partition.assign(data, rng(seed)), np.asarray(data.labels))
        shards = (table > 0).sum(axis=0)
        assert shards.tolist() == ([8, 8, 8] if balance != "balanced" else [5, 8, 11])  # 24 in all, or 24 counts / N
        p, c = np.nonzero(table)  # log size = log weight of the client + a number of the class
        design = np.concatenate([np.eye(P)[p], np.eye(3)[c]], axis=1)
        fitted = np.linalg.lstsq(design, np.log(table[p, c]), rcond=None)[0]
        np.testing.assert_allclose(design @ fitted, np.log(table[p, c]), atol=0.01)
        estimated = np.exp(fitted[:P])
        np.testing.assert_allclose(np.sort(estimated / estimated.sum()), np.sort(weights / weights.sum()), rtol=0.01)
        if balance == "powerlaw":
            assert (np.argsort(-estimated) != np.arange(P)).any(), "which client is large is drawn"


def gets_dirichlet_shares(seed: int) -> None:
    """Shares of a class have mean 1/P and variance (1/P)(1 - 1/P) / (alpha P + 1)."""
    P, classes, n = 4, 400, 60
    data = digits([n] * classes, shuffle=False)
    for alpha in (0.3, 1.0, 5.0):
        client = Dirichlet(P=P, alpha=alpha).assign(data, rng(seed))
        share = counted(client, np.asarray(data.labels)) / n
        np.testing.assert_allclose(share.sum(axis=0), 1.0)
        assert share.mean() == pytest.approx(1 / P)
        np.testing.assert_allclose(share.mean(axis=1), 1 / P, atol=5 * np.sqrt(3 / 16 / (alpha * P + 1) / classes))
        assert share.var() == pytest.approx(3 / 16 / (alpha * P + 1), rel=0.15)


def gets_its_alphabet(seed: int) -> None:
    """Each client has so many drawings of every character of one alphabet, and no other client has these drawings."""
    group = np.repeat([0, 0, 1], 12)  # two characters of one alphabet, one of another, 12 drawings each
    character = np.repeat([0, 1, 2], 12)
    images = Images(np.zeros((36, 2, 2, 1), np.uint8), character, group=group)
    client, part = Alphabets(per_alphabet=2, train=3, test=2).assign(images, rng(seed)).T
    assert counted(client, character, part).tolist() == 2 * [[[3, 2], [3, 2], [0, 0]]] + 2 * [[[0, 0], [0, 0], [3, 2]]]


def gets_images_in_turn(seed: int) -> None:
    split = np.repeat([0, 1], [23, 11])
    images = Images(np.zeros((34, 2, 2, 1), np.uint8), np.zeros(34, int), split=split)
    client, part = IidImages(P=5).assign(images, rng(seed)).T
    np.testing.assert_array_equal(part, split)
    assert counted(client, part).tolist() == [[5, 3], [5, 2], [5, 2], [4, 2], [4, 2]]


def gets_what_the_data_say(seed: int) -> None:
    owner = np.repeat([0, 1, 2, 3], [2, 3, 8, 20])
    images = ClientImages(np.zeros((33, 2, 2, 1), np.uint8), np.zeros(33, int), client=owner)
    for share, held in ((0.01, [1, 1, 1, 1]), (0.2, [1, 1, 2, 4]), (0.35, [1, 1, 3, 7]), (0.99, [1, 2, 7, 19])):
        client, part = Given(test=share).assign(images, rng(seed)).T
        np.testing.assert_array_equal(client, owner)
        assert counted(client, part)[:, 1].tolist() == held  # the nearest number, at least one and never all


def gets_users_in_turn(seed: int) -> None:
    def ratings(users: int, last: int) -> Ratings:
        one = np.zeros(1, np.int32)
        return Ratings(one, one, np.ones(1), users=users, items=1, facts={"last_user_id": last})

    assert counted(Users(P=4).assign(ratings(18, 25), rng(seed))).tolist() == [5, 5, 4, 4]
    client = Users(P=4, rule="released").assign(ratings(18, 18), rng(seed))
    assert counted(client).tolist() == [4, 4, 4, 4]  # floor(18 / 4) each
    assert (client == -1).sum() == 2
    client = Users(P=4, rule="released").assign(ratings(18, 4001), rng(seed))  # hardly any id is used
    assert client.size == 18
    sizes = sum(counted(Users(P=4, rule="released").assign(ratings(400, 803), rng(s)), np.zeros(400, int))[:, 0]
                for s in range(20))  # fmt: skip
    np.testing.assert_allclose(sizes / 20, 200 / 803 * 400, rtol=0.1)


AMOUNTS = {
    "uniform": gets_equal_numbers,
    "similarity": gets_its_cluster,
    "two_digits": gets_shards_in_proportion,
    "dirichlet": gets_dirichlet_shares,
    "alphabets": gets_its_alphabet,
    "iid_images": gets_images_in_turn,
    "given": gets_what_the_data_say,
    "users": gets_users_in_turn,
}


@pytest.mark.parametrize("name", registry.partitions())
def test_every_client_gets_as_much_as_the_definition_says(name: str) -> None:
    for seed in (0, 1):
        AMOUNTS[name](seed)


def test_a_dirichlet_split_is_its_definition_written_down() -> None:
    """Of each class, in the order of classes: shuffle, draw the shares, and cut where the running shares say."""
    P, alpha = 5, 0.4
    data = digits([30, 7, 100])
    labels = np.asarray(data.labels)
    draw, expected = rng(3), np.full(labels.size, -1)
    for name in (0, 1, 2):
        order = draw.permutation([i for i in range(labels.size) if labels[i] == name])
        share = draw.dirichlet([alpha] * P)
        for place, sample in enumerate(order):
            expected[sample] = next(p for p in range(P) if p == P - 1 or place < sum(share[: p + 1]) * len(order))
    assert set(expected.tolist()) == set(range(P))  # nobody is empty, so nothing is repaired
    np.testing.assert_array_equal(Dirichlet(P=P, alpha=alpha).assign(data, rng(3)), expected)


# Two classes per client


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
            TwoDigits(P=P, balance=balance).assign(data, rng(seed))
        return
    client = TwoDigits(P=P, balance=balance).assign(data, rng(seed))
    for p in range(P):
        assert len(set(data.labels[client == p])) == 2


def test_quota_gives_the_authors_client_sizes() -> None:
    client = TwoDigits(P=100).assign(digits(QUOTA), rng())
    sizes = np.bincount(client)
    assert sizes.size == 100
    assert sizes.min() >= 50
    assert sizes.max() <= 200
    assert set(sizes) <= {a // 20 + b // 20 for a in QUOTA for b in QUOTA}
    assert len(set(sizes)) > 3


@pytest.mark.parametrize("balance", ["quota", "balanced"])
def test_equal_classes_give_equal_clients(balance: str) -> None:
    data = digits([1000] * 10)
    client = TwoDigits(P=100, balance=balance).assign(data, rng())
    assert set(np.bincount(client)) == {100}
    assert data.labels is not None
    held = {tuple(np.unique(data.labels[client == p])) for p in range(100)}
    assert len(held) > 20  # of 45 possible pairs: the pairs are mixed, not blocks of one kind


def test_balanced_clients_are_about_equal_where_classes_are_not() -> None:
    sizes = np.bincount(TwoDigits(P=100, balance="balanced").assign(digits(QUOTA), rng()))
    assert sizes.min() >= 0.9 * 100
    assert sizes.max() <= 1.1 * 100


def test_powerlaw_sizes_fall_like_a_power_of_the_rank() -> None:
    data = digits([1000] * 10)

    def slope(exponent: float) -> float:
        sizes = np.bincount(TwoDigits(P=100, balance="powerlaw", exponent=exponent).assign(data, rng()))
        return float(np.polyfit(np.log(np.arange(1, 61)), np.log(np.sort(sizes)[::-1][:60]), 1)[0])

    assert abs(slope(0.0)) < 1e-12
    assert -0.65 < slope(0.5) < -0.35
    assert -1.3 < slope(1.0) < -0.7


def test_shards_are_consecutive_samples_of_their_class() -> None:
    data = digits([40] * 4)
    client = TwoDigits(P=8).assign(data, rng())
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
            "partition: 'two_digits' distributes samples by class, and this dataset has no labels",
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
            "exponent: must be a number from 0 to 10, not 11",
        ),
    ],
)
def test_what_two_digits_cannot_do_is_said_at_once(data: Samples, params: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError) as error:
        TwoDigits(**params).assign(data, rng())
    assert str(error.value) == message


# Similar samples together


def blobs(count: int, each: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    generator = rng(seed)
    own = generator.permutation(np.repeat(np.arange(count), each))
    return 100 * generator.random((6, count))[:, own] + 0.01 * generator.standard_normal((6, count * each)), own


def test_similarity_puts_clusters_together() -> None:
    X, own = blobs(6, 20)
    for params in ({}, {"batch": 60}):
        client = Similarity(P=6, **params).assign(Samples(X), rng())
        assert len({(a, b) for a, b in zip(own, client, strict=True)}) == 6
    thin = Similarity(P=6).assign(Samples(sparse.csc_matrix(X)), rng())
    assert len({(a, b) for a, b in zip(own, thin, strict=True)}) == 6


def test_similarity_leaves_no_client_empty_where_samples_repeat() -> None:
    X = np.repeat(np.eye(3), [20, 5, 5], axis=1)  # three distinct samples, eight clients
    client = Similarity(P=8).assign(Samples(X), rng())
    assert set(client.tolist()) == set(range(8))
    everyone_alone = Similarity(P=30).assign(Samples(X), rng())
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
        Similarity(**params).assign(Samples(np.ones((2, 30))), rng())
    assert str(error.value) == message


# Dirichlet


def test_alpha_sets_the_skew() -> None:
    data = digits([400] * 5)
    assert data.labels is not None

    def skew(alpha: float) -> float:
        client = Dirichlet(P=10, alpha=alpha).assign(data, rng())
        table = np.zeros((10, 5))
        np.add.at(table, (client, np.asarray(data.labels)), 1)
        return float((table.max(axis=1) / table.sum(axis=1)).mean())

    assert skew(0.01) > 0.8
    assert skew(1e4) < 0.25
    with pytest.raises(ParameterError, match="alpha: must be a number greater than 0, not 0"):
        Dirichlet(P=10, alpha=0).assign(data, rng())
    with pytest.raises(
        ParameterError, match="'dirichlet' distributes samples by class, and this dataset has no labels"
    ):
        Dirichlet(P=2).assign(Samples(np.ones((2, 9))), rng())


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
            sharing.shares(np.array(weights), total, least, most)
        return
    parts = sharing.shares(np.array(weights), total, least, most)
    assert parts.sum() == total
    assert parts.min() >= least
    assert parts.max() <= most
    free = sharing.shares(np.array(weights), total)
    assert np.abs(free - total * np.array(weights) / sum(weights)).max() < 1


def test_what_is_left_over_goes_to_the_largest_remainders_the_first_among_equals() -> None:
    assert sharing.shares([1.0, 2.0, 2.6], 10).tolist() == [2, 3, 5]  # of 1.79, 3.57 and 4.64
    assert sharing.shares([1.0, 1.0, 1.0], 5).tolist() == [2, 2, 1]
    assert sharing.shares([1.0, 9.0], 5, least=1).tolist() == [1, 4]


def test_empty_clients_get_one_sample_of_the_largest() -> None:
    client = np.array([0, 0, 0, 3, 0])
    filled = sharing.fill_empty(client, 5)
    assert sorted(np.bincount(filled, minlength=5).tolist()) == [1, 1, 1, 1, 1]
    assert filled[3] == 3
    np.testing.assert_array_equal(client, [0, 0, 0, 3, 0])


@pytest.mark.parametrize("name", ["uniform", "similarity", "two_digits", "dirichlet"])
def test_checks_say_before_any_data_what_the_partition_says_with_it(name: str) -> None:
    entry = registry.partitions()[name]
    entry.make().check()
    entry.make(**entry.parameters()).check(N=10_000, K=10)
    with pytest.raises(ParameterError) as error:
        entry.make(P=11).check(N=10, K=2)
    assert error.value.name == "P"
