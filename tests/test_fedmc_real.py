"""The real MovieLens 1M, if there is a copy: sizes, and progress of every method in its first rounds."""

import zipfile

import numpy as np
import pytest

from fedrepro import registry
from fedrepro.datasets.types import Ratings
from fedrepro.partitions.users import Users
from fedrepro.problems.completion.problem import Completion

from .completion_cases import after
from .data_copies import SHARED

COPY = SHARED / "movielens" / "ml-1m.zip"


@pytest.fixture(scope="module")
def movielens():
    """All ratings of the copy, ids made compact."""
    if not COPY.exists():
        pytest.skip(f"no copy of MovieLens 1M at {COPY}")
    rows = zipfile.ZipFile(COPY).read("ml-1m/ratings.dat").replace(b"::", b" ").split()
    table = np.array(rows, dtype=np.int64).reshape(-1, 4)
    (users, user), (items, item) = (np.unique(table[:, k], return_inverse=True) for k in (0, 1))
    return Ratings(user.astype(np.int32), item.astype(np.int32), table[:, 2] * 1.0, users.size, items.size)


def test_sizes(movielens):
    """Users as in fedmc Table 1; items and ratings as in the raw file, which the table does not give."""
    assert (movielens.users, movielens.items, movielens.value.size) == (6040, 3706, 1_000_209)
    problem = Completion(movielens, Users().assign(movielens, np.random.default_rng(0)), range=[1, 5])
    assert problem.p == 100
    assert {int(d) for d in np.diff(problem.starts)} == {60, 61}
    assert 800_000 < problem.train.count < 800_168  # every client rounds down
    assert problem.train.count + problem.test.count == 1_000_209


def test_the_first_rounds_of_every_method(movielens):
    problem = Completion(movielens, Users().assign(movielens, np.random.default_rng(0)))
    init = problem.initial(0)
    start = problem.measure(problem.start(init, None), ["objective", "rmse"])
    assert start["rmse"] == pytest.approx(2.62, abs=0.05)  # U[0,1] factors of rank 5 predict 1.25
    for name in ("fedmc-admm", "fedmc-admm-exact", "fedmavg-mc", "fedmavg-mc-scaled", "als"):
        method = registry.methods()[name].make()
        end = problem.measure(
            after(method.rounds(problem, np.random.default_rng(1), init=init), 8), ["objective", "rmse"]
        )
        assert end["objective"] < 0.75 * start["objective"], name
        assert end["rmse"] < start["rmse"], name
