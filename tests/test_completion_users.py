"""Users assigned to clients."""

import numpy as np
import pytest

from fedrepro import registry
from fedrepro.datasets.types import Ratings
from fedrepro.errors import ParameterError
from fedrepro.partitions.users import Users


def data(users):
    return Ratings(np.zeros(1, np.int32), np.zeros(1, np.int32), np.ones(1), users, 1)


@pytest.mark.parametrize(("users", "P"), [(6040, 100), (10, 10), (11, 3), (7, 1)])
def test_equal_shares_out_everybody(users, P):
    client = Users(P=P).assign(data(users), np.random.default_rng(0))
    counts = np.bincount(client, minlength=P)
    assert counts.sum() == users
    assert counts.max() - counts.min() <= 1
    assert counts.min() >= 1


@pytest.mark.parametrize(("users", "P", "each"), [(6040, 100, 60), (11, 3, 3), (9, 3, 3)])
def test_released_drops_the_remainder(users, P, each):
    client = Users(P=P, rule="released").assign(data(users), np.random.default_rng(0))
    assert (np.bincount(client[client >= 0], minlength=P) == each).all()
    assert np.count_nonzero(client == -1) == users - P * each


def test_released_counts_ids_that_nobody_uses():
    """71 ids, 60 of them used: 7 ids for each of 10 clients, one left out; a client's users are among its 7 ids."""
    used = data(60)
    used.facts["last_user_id"] = 71
    draws = [Users(P=10, rule="released").assign(used, np.random.default_rng(s)) for s in range(50)]
    assert all(client.shape == (60,) for client in draws)
    sizes = np.array([np.bincount(client[client >= 0], minlength=10) for client in draws])
    assert sizes.max() <= 7
    assert {int(np.count_nonzero(client == -1)) for client in draws} == {0, 1}
    assert (sizes.min(axis=1) < sizes.max(axis=1)).all()
    equal = Users(P=10).assign(used, np.random.default_rng(0))
    assert (np.bincount(equal) == 6).all()


def test_users_are_drawn_at_random_and_from_the_generator():
    first, again, other = (Users(P=5).assign(data(500), np.random.default_rng(s)) for s in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    draws = [Users(P=2).assign(data(6), np.random.default_rng(s)) for s in range(600)]
    together = np.mean([client[0] == client[1] for client in draws])
    assert together == pytest.approx(2 / 5, abs=0.1)  # two given users of six in one of two equal groups


def test_it_is_registered_with_its_parameters():
    assert registry.partitions()["users"].parameters() == {"P": 100, "rule": "equal"}


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"P": 11}, "P: must be at most the number of users, 10, not 11"),
        ({"P": 11, "rule": "released"}, "P: must be at most the number of users, 10, not 11"),
        ({"P": 0}, "P: must be an integer of at least 1, not 0"),
        ({"rule": "fair"}, "rule: must be one of equal, released, not 'fair'"),
    ],
)
def test_what_cannot_work_is_named(params, message):
    with pytest.raises(ParameterError) as error:
        Users(**params).assign(data(10), np.random.default_rng(0))
    assert str(error.value) == message
