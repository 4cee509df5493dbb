"""The completion problem: storage of ratings, metrics, and errors for invalid input."""

import json

import numpy as np
import pytest

from fedrepro import registry
from fedrepro.datasets.types import Ratings
from fedrepro.errors import ParameterError, UserError
from fedrepro.problems.completion.problem import METRICS, Completion
from fedrepro.problems.completion.state import State

from .completion_cases import after, dense, ratings, small


def pairs(problem, buckets):
    """The (user, item, value) triples of buckets, in the caller's ids and rating units."""
    rows = np.repeat(np.arange(problem.rows), np.diff(buckets.ptr))
    values = problem.levels[buckets.code]
    if problem.unit != 1.0:
        values = values * problem.sd + problem.mean
    return set(zip(problem.user[rows].tolist(), buckets.index.tolist(), np.round(values, 9).tolist(), strict=True))


def some_state(problem, seed=0):
    rng = np.random.default_rng(seed)
    U, V = rng.standard_normal((problem.rows, problem.r)), rng.standard_normal((problem.n, problem.r))
    U[::3], V[::2, 1] = 0.0, 0.0
    return State(U, V, W=rng.standard_normal((problem.p, problem.n, problem.r)), work=7.0)


# How ratings are held


def test_every_rating_is_held_once_and_the_split_is_per_client():
    data = ratings()
    problem = small(data=data)
    everything = set(zip(data.user.tolist(), data.item.tolist(), data.value.tolist(), strict=True))
    train, test = pairs(problem, problem.train), pairs(problem, problem.test)
    assert train | test == everything
    assert not train & test
    for i in range(problem.p):
        rows = problem.client(i)
        counts = [int(b.ptr[rows.stop] - b.ptr[rows.start]) for b in (problem.train, problem.test)]
        assert counts[0] == int(0.8 * sum(counts))


def test_buckets_by_item_hold_the_training_ratings_of_their_client():
    problem = small()
    M, mask = dense(problem)
    for i in range(problem.p):
        ptr, row, code, levels = problem.by_item(i)
        part, seen = np.zeros_like(M[problem.client(i)]), np.zeros_like(mask[problem.client(i)])
        for j in range(problem.n):
            rows = row[ptr[j] : ptr[j + 1]]
            assert (np.diff(rows.astype(int)) > 0).all()
            part[rows, j], seen[rows, j] = levels[code[ptr[j] : ptr[j + 1]]], True
        np.testing.assert_array_equal(part, M[problem.client(i)])
        np.testing.assert_array_equal(seen, mask[problem.client(i)])


def test_clients_hold_their_users_and_users_left_out_have_no_row():
    data = ratings()
    client = np.arange(data.users) % 3 - 1
    problem = Completion(data, client, r=3)
    assert problem.p == 2
    for i in range(2):
        np.testing.assert_array_equal(problem.user[problem.client(i)], np.flatnonzero(client == i))
    held = pairs(problem, problem.train) | pairs(problem, problem.test)
    assert {u for u, _, _ in held} <= set(np.flatnonzero(client >= 0).tolist())
    U = problem.artifacts(problem.start(None, np.random.default_rng(0)), ["U"])["U"]
    np.testing.assert_array_equal(np.isnan(U).all(axis=1), client == -1)


def test_the_split_does_not_depend_on_the_order_of_the_ratings():
    data = ratings()
    order = np.random.default_rng(5).permutation(data.value.size)
    shuffled = Ratings(data.user[order], data.item[order], data.value[order], data.users, data.items)
    a, b = small(data=data), small(data=shuffled)
    for name in ("ptr", "index", "code"):
        np.testing.assert_array_equal(getattr(a.train, name), getattr(b.train, name))
        np.testing.assert_array_equal(getattr(a.test, name), getattr(b.test, name))


def test_the_split_follows_the_assignment_and_a_given_generator():
    data = ratings()
    client = np.arange(data.users) % 4
    base = Completion(data, client, r=3)
    assert pairs(Completion(data, client, r=2, lam=1.0), base.train) == pairs(base, base.train)
    splits = [pairs(p, p.test) for p in (base, Completion(data, np.roll(client, 1), r=3))]
    assert splits[0] != splits[1]
    given = [Completion(data, client, r=3, rng=np.random.default_rng(s)) for s in (1, 1, 2)]
    tests = [pairs(p, p.test) for p in given]
    assert tests[0] == tests[1] != tests[2]


def test_every_rating_is_equally_likely_to_be_held_back():
    """Over 400 splits of 40 ratings each is in the test set 80 times, within 5 standard deviations."""
    data = Ratings(np.repeat(np.arange(4), 10), np.tile(np.arange(10), 4), np.ones(40), 4, 10)
    hits = np.zeros((4, 10))
    for seed in range(400):
        hits += dense(Completion(data, r=1, rng=np.random.default_rng(seed)), test=True)[1]
    assert hits.sum() == 400 * 8
    assert np.abs(hits - 80).max() < 5 * np.sqrt(400 * 0.2 * 0.8)


def test_what_is_prepared_is_what_is_held_in_memory(tmp_path):
    data = ratings()
    client = np.random.default_rng(1).permutation(np.arange(data.users) % 4)
    entry = registry.problems()["completion"]
    parameters = {**entry.parameters, "r": 3, "scale": "zscore"}
    entry.cls.prepare(tmp_path, data, client, parameters)
    stored, held = entry.cls.stored(tmp_path, parameters), Completion(data, client, **parameters)
    for state in (some_state(held), held.start(held.initial(2), None)):
        assert stored.measure(state, tuple(METRICS)) == held.measure(state, tuple(METRICS))
    ends = []
    for problem in (stored, held):
        states = registry.methods()["fedmc-admm"].make(m=2).rounds(problem, np.random.default_rng(0))
        next(states)
        ends.append(next(states).V.tobytes())
    assert ends[0] == ends[1]
    assert json.loads((tmp_path / "facts.json").read_text())["users"] == data.users


def test_one_byte_a_rating_and_two_an_id_where_they_fit():
    problem = small()
    assert (problem.train.index.dtype, problem.train.code.dtype) == (np.uint16, np.uint8)
    assert problem.by_item(0)[1].dtype == np.uint16


def test_wide_ids_and_many_values_measure_the_same():
    rng = np.random.default_rng(0)
    user, item = rng.integers(0, 30, 400), rng.permutation(70_000)[:400]
    data = Ratings(user, item, rng.standard_normal(400), 30, 70_000)
    problem = Completion(data, np.arange(30) % 3, r=2)
    assert (problem.train.index.dtype, problem.train.code.dtype) == (np.uint32, np.uint32)
    state = problem.start(None, rng)
    M, mask = dense(problem, test=True)
    expected = np.sqrt(np.sum((mask * (M - state.U @ state.V.T)) ** 2) / mask.sum())
    assert problem.measure(state, ["rmse"])["rmse"] == pytest.approx(expected, rel=1e-12)


def test_without_a_partition_one_client_holds_everything():
    problem = Completion(ratings(), r=3)
    assert (problem.p, problem.rows) == (1, 23)


def test_items_nobody_rated_can_be_kept():
    data = ratings()
    data.facts["last_item_id"] = 30
    client = np.random.default_rng(1).permutation(np.arange(data.users) % 4)
    few, many = Completion(data, client, r=3), Completion(data, client, r=3, items="all")
    assert (few.n, many.n) == (17, 30)
    assert pairs(few, few.train) == pairs(many, many.train)
    state = many.start(None, np.random.default_rng(0))
    values = many.measure(state, ["objective", "rmse"])
    same = few.measure(State(state.U, state.V[:17]), ["objective", "rmse"])
    extra = 0.5 * few.gam * np.sum(state.V[17:] ** 2)
    assert values["objective"] - extra == pytest.approx(same["objective"], rel=1e-14)
    assert values["rmse"] == same["rmse"]
    with pytest.raises(ParameterError, match=r"^items: all needs data with its largest raw item id; use items: "):
        small(items="all")


def test_single_precision_ratings_are_taken_exactly():
    data = ratings(values=(0.5, 1.0, 4.5))
    single = Ratings(data.user, data.item, data.value.astype(np.float32), data.users, data.items)
    state = small(data=data).start(None, np.random.default_rng(0))
    measured = [small(data=d).measure(state, ("objective", "rmse")) for d in (data, single)]
    assert measured[0] == measured[1]


# Initial points


def test_initial_points_are_uniform_and_shared():
    problem, tiny = small(), small(init=2e-4)
    U0, V0 = problem.initial(1)
    assert U0.shape == (23, 3)
    assert V0.shape == (17, 3)
    assert 0.0 <= min(U0.min(), V0.min()) < 0.1
    assert 0.9 < max(U0.max(), V0.max()) < 1.0
    np.testing.assert_allclose(tiny.initial(1)[0], 2e-4 * U0, rtol=1e-15)
    other = Completion(ratings(), np.arange(23) % 2, r=3)
    np.testing.assert_array_equal(other.initial(1)[0], U0)  # the same point for every partition
    assert not np.array_equal(problem.initial(2)[0], U0)
    np.testing.assert_array_equal(problem.start((U0, V0), None).U, U0[problem.user])


def test_an_initial_point_is_checked():
    problem = small()
    U0, V0 = problem.initial(0)
    for init, message in (
        ((U0[:-1], V0), r"init: U0 must have shape \(23, 3\), not \(22, 3\)"),
        ((U0, V0.T), r"init: V0 must have shape \(17, 3\), not \(3, 17\)"),
        ((U0, V0 * np.nan), "init: V0 contains values that are not finite"),
    ):
        with pytest.raises(UserError, match=f"^{message}$"):
            problem.start(init, None)


# What is measured


@pytest.mark.parametrize("name", ["U", "V"])
def test_a_state_has_a_row_for_each_user_and_item(name):
    problem = small()
    state = some_state(problem)
    setattr(state, name, np.vstack([getattr(state, name)] * 2))
    with pytest.raises(ParameterError, match=rf"^{name}: must have {len(getattr(state, name)) // 2} rows"):
        problem.measure(state, ("rmse",))


@pytest.mark.parametrize("reg", ["l2", "l1"])
@pytest.mark.parametrize("scale", ["raw", "zscore"])
def test_metrics_are_their_formulas(reg, scale):
    data = ratings()
    problem = small(data=data, reg=reg, scale=scale, lam=0.3, gam=0.7)
    state = some_state(problem)
    U, V, W, p = state.U, state.V, state.W, problem.p
    unit = data.value.std(ddof=1) if scale == "zscore" else 1.0
    (M, mask), (T, held) = dense(problem), dense(problem, test=True)
    fit = 0.5 * np.sum((mask * (M - U @ V.T)) ** 2) / p
    local = sum(
        0.5 * np.sum((mask[c] * (M[c] - U[c] @ W[i].T)) ** 2) / p for i, c in ((i, problem.client(i)) for i in range(p))
    )
    if reg == "l2":
        penalty = halved = 0.5 * 0.3 * np.sum(U**2) / p + 0.5 * 0.7 * np.sum(V**2)
    else:
        penalty = 0.3 * np.abs(U).sum() / p + 0.7 * np.abs(V).sum()
        halved = 0.5 * penalty
    expected = {
        "objective": fit + penalty,
        "objective_local": local + halved,
        "data_term": fit,
        "rmse": unit * np.sqrt(np.sum((held * (T - U @ V.T)) ** 2) / held.sum()),
        "rmse_train": unit * np.sqrt(np.sum((mask * (M - U @ V.T)) ** 2) / mask.sum()),
        "rmse_truncated": np.sqrt(np.sum((held * (T.astype(np.int32) - U @ V.T)) ** 2) / held.sum()),
        "nnz_u": np.mean(U != 0),
        "nnz_v": np.mean(V != 0),
        "nnz": 0.5 * (np.mean(U != 0) + np.mean(V != 0)),
        "work": 7.0,
        "users": data.users,
        "items": data.items,
        "ratings": data.value.size,
    }
    assert set(expected) == set(METRICS) - {"gap", "beta_scale"}  # tests/test_stationarity.py
    measured = problem.measure(state, tuple(expected))
    for name, value in expected.items():
        assert measured[name] == pytest.approx(value, rel=1e-12), name
        assert isinstance(measured[name], float)


def test_zscores_are_taken_over_all_ratings():
    data = ratings()
    problem = small(data=data, scale="zscore")
    z = (data.value - data.value.mean()) / data.value.std(ddof=1)
    np.testing.assert_allclose(problem.levels, np.unique(z), rtol=1e-12)


def test_the_rmse_of_the_mean_is_the_spread_of_the_test_ratings():
    """With zero factors a z-scored model predicts the mean; the RMSE is in rating units."""
    problem = small(scale="zscore")
    state = State(np.zeros((problem.rows, 3)), np.zeros((problem.n, 3)))
    T, held = dense(problem, test=True)
    expected = problem.sd * np.sqrt(np.mean(T[held] ** 2))
    assert problem.measure(state, ["rmse"])["rmse"] == pytest.approx(expected, rel=1e-12)


def test_without_local_copies_the_local_objective_is_the_servers():
    problem = small()
    state = some_state(problem)
    state.W = None
    values = problem.measure(state, ["objective", "objective_local"])
    assert values["objective"] == values["objective_local"]


def test_measures_are_the_same_bits_for_any_number_of_threads():
    data = ratings(60, 40, 900)
    results = []
    for threads in (1, 2, 7):
        problem = small(p=5, data=data)
        problem.threads = threads
        results.append(problem.measure(some_state(problem), tuple(METRICS)))
    assert results[0] == results[1] == results[2]


def test_a_state_that_is_not_finite_is_measured_as_such():
    problem = small()
    state = some_state(problem)
    state.V[3] = np.nan
    assert np.isnan(problem.measure(state, ["objective"])["objective"])


def test_a_metric_that_does_not_exist():
    with pytest.raises(ParameterError, match=r"^metrics: must be one of objective, .* did you mean 'rmse'\?$"):
        small().measure(some_state(small()), ["rsme"])


def test_divergence():
    def said(**values):
        return Completion.diverged({k: np.array(v, dtype=float) for k, v in values.items()})

    assert said(objective=[5, 900, 4], rmse=[2, 9, 1]) is None
    assert said(objective=[5, np.inf], rmse=[2, 1]) == "objective is not finite in round 1"
    assert said(objective=[5, np.nan], round=[0, 40]) == "objective is not finite in round 40"
    assert said(objective=[5, 6], rmse=[2, 3]) == "objective is 6 in round 1, above 5 at the start"
    assert said(objective=[5, 6], rmse=[2, 1]) is None  # its regulariser alone
    assert said(objective=[5, 4], rmse=[2, 3], data_term=[5, 3]) is None  # overfitting
    assert said(objective=[9, 4], rmse=[2, 3], data_term=[3, 4]) is None  # a collapse to zero
    assert said(objective=[5, 6]) == "objective is 6 in round 1, above 5 at the start"
    assert said(rmse=[1.0, 1.001]) is None
    assert said(data_term=[5, 7], round=[0, 10]) == "data_term is 7 in round 10, above 5 at the start"
    assert said(objective=[5]) is None


# Input that cannot work, and input that can


def broken(**changes):
    data = ratings()
    for name, value in changes.items():
        setattr(data, name, value)
    return data


def test_a_pair_rated_twice():
    data = Ratings(np.array([0, 1, 0]), np.array([2, 0, 2]), np.array([1.0, 2.0, 1.0]), 2, 3)
    message = r"^ratings: user 0 rated item 2 more than once \(ids from 0\); keep one rating per pair$"
    for client in (None, np.array([1, 0])):
        with pytest.raises(UserError, match=message):
            Completion(data, client, r=1)


def test_a_rating_outside_the_scale():
    data = ratings()
    data.value[7] = 6.0
    with pytest.raises(UserError) as error:
        small(data=data, range=[1, 5])
    where = f"rating 7 (user {data.user[7]}, item {data.item[7]})"
    assert str(error.value) == f"ratings: {where} is 6; it must be within the scale 1 to 5"
    small(data=data)  # without a scale any finite number will do


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_rating_that_is_not_finite(bad):
    data = ratings()
    data.value[0] = bad
    with pytest.raises(UserError, match=r"^ratings: rating 0 \(user \d+, item \d+\) is (nan|inf); it must be finite$"):
        small(data=data)


def test_ids_and_shapes():
    cases = (
        (broken(users=20), r"rating \d+ has the user id \d+; ids go from 0 to 19 \(users = 20\)"),
        (broken(items=5), r"rating \d+ has the item id \d+; ids go from 0 to 4 \(items = 5\)"),
        (broken(user=np.zeros(3)), "user, item and value must be arrays of one equal length of at least 1, not of"),
        (broken(item=ratings().item * 1.0), "item ids must be integers, not float64"),
    )
    for data, message in cases:
        with pytest.raises(UserError, match=f"^ratings: {message}"):
            Completion(data, r=1)


@pytest.mark.parametrize(
    ("client", "message"),
    [
        (np.zeros(22, int), r"must contain one client id for each of the 23 users, not shape \(22,\)"),
        (np.full(23, -2), "ids must be the integers 0 to p-1, or -1 for a user who is left out"),
        (np.full(23, -1), "ids must be the integers 0 to p-1, or -1 for a user who is left out"),
        (np.zeros(23), "ids must be the integers 0 to p-1, or -1 for a user who is left out"),
        (np.arange(23) * 2, "client 1 of 0 to 44 has no users; number the clients 0 to p-1 without gaps"),
    ],
)
def test_clients(client, message):
    with pytest.raises(UserError, match=f"^client: {message}$"):
        Completion(ratings(), client, r=1)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"r": 0}, "r: must be an integer of at least 1, not 0"),
        ({"r": 18}, "r: must be at most 17: 23 users x 17 items carry no higher rank"),
        ({"reg": "l3"}, "reg: must be one of l2, l1, not 'l3', did you mean 'l2'?"),
        ({"lam": -1}, "lam: must be a number of at least 0, not -1"),
        ({"gam": "much"}, "gam: must be a number of at least 0, not 'much'"),
        ({"scale": "z"}, "scale: must be one of raw, zscore, not 'z'"),
        ({"init": 0}, "init: must be a number greater than 0, not 0"),
        ({"train": 1.1}, "train: must be a number greater than 0 and at most 1, not 1.1"),
        ({"train": 0.01}, "train: leaves no training rating: 0.01 of each client's ratings is less than one"),
        ({"items": "every"}, "items: must be one of rated, all, not 'every'"),
        ({"range": 5}, "range: must be null or [lowest, highest], not 5"),
        ({"range": [5, 1]}, "range: must be a number of at least 5, not 1"),
        (
            {"rank": 5},
            "parameters: must be one of r, reg, lam, gam, scale, init, train, range, items, not 'rank', did you mean ",
        ),
    ],
)
def test_a_parameter_that_cannot_work_is_named(parameters, message):
    with pytest.raises(ParameterError) as error:
        small(**parameters)
    assert str(error.value).startswith(message)


def test_a_rank_is_checked_before_the_data_is_read_where_sizes_are_known():
    with pytest.raises(ParameterError, match=r"^r: must be at most 4, as 4 items carry no higher rank$"):
        Completion.check({"r": 5}, {"users": 10, "items": 4})
    Completion.check({"r": 5}, {"users": None, "items": None})


def test_equal_ratings_have_no_zscore():
    data = ratings(values=(3.0,))
    with pytest.raises(ParameterError, match=r"^scale: zscore needs ratings that differ; all of these are equal$"):
        small(data=data, scale="zscore")


def test_no_test_rating_is_an_error_only_where_it_is_needed():
    problem = small(train=1.0)
    state = some_state(problem)
    assert np.isfinite(problem.measure(state, ["objective"])["objective"])
    with pytest.raises(ParameterError, match=r"^train: leaves no test rating to measure the RMSE on; choose a smaller"):
        problem.measure(state, ["rmse"])


def test_a_prepared_problem_may_lack_test_ratings(tmp_path):
    entry, parameters = registry.problems()["completion"], {"train": 1.0, "r": 2}
    entry.cls.prepare(tmp_path, ratings(), None, parameters)
    problem = entry.cls.stored(tmp_path, parameters)
    assert problem.test.count == 0
    assert np.isfinite(problem.measure(problem.start(None, np.random.default_rng(0)), ["objective"])["objective"])


def test_single_ratings_and_clients_without_test_ratings_are_legitimate():
    """A user's only rating may be held back: then only the regulariser moves the user. A client of one trains none.

    Five users with 1, 1, 1, 6 and 6 ratings; client 0 has one rating, client 1 two.
    """
    user = np.array([0, 1, 2, *[3] * 6, *[4] * 6])
    item = np.array([0, 1, 2, *range(6), *range(6)])
    data = Ratings(user, item, 1.0 + np.arange(15) % 5, 5, 7)
    problem = Completion(data, np.array([0, 1, 1, 2, 2]), r=2, lam=0.5)
    counts = np.diff(problem.train.ptr)
    assert counts[0] == 0
    assert np.diff(problem.test.ptr)[0] == 1
    for name in ("fedmc-admm", "fedmc-admm-exact", "fedmavg-mc", "fedmavg-mc-scaled", "fedmavg-mc-released", "als"):
        entry = registry.methods()[name]
        method = entry.make() if name == "als" else entry.make(m=3)
        state = after(method.rounds(problem, np.random.default_rng(0), init=problem.initial(0)), 5)
        assert all(np.isfinite(v) for v in problem.measure(state, tuple(METRICS)).values())
    whole = Completion(data, np.array([0, 1, 1, 2, 2]), r=2, lam=0.5, train=0.99)
    assert np.diff(whole.test.ptr)[1:3].sum() == 1  # client 1 keeps one of its two ratings


def test_threads_come_from_the_environment(monkeypatch):
    assert small().threads == 1
    monkeypatch.setenv("FEDREPRO_THREADS", "2")
    assert small().threads == 2
    with pytest.raises(ParameterError, match=r"^threads: must be an integer of at least 1, not 0$"):
        Completion(ratings(), r=3, threads=0)
    monkeypatch.setenv("FEDREPRO_THREADS", "many")
    with pytest.raises(UserError, match=r"^FEDREPRO_THREADS: must be a whole number of at least 1, not 'many'$"):
        small()


def test_artifacts_are_in_the_callers_order():
    problem = small()
    U0, V0 = problem.initial(0)
    kept = problem.artifacts(problem.start((U0, V0), None), ["U", "V"])
    np.testing.assert_array_equal(kept["U"], U0)
    np.testing.assert_array_equal(kept["V"], V0)
    with pytest.raises(ParameterError, match=r"^artifacts: must be one of U, V, not 'W'"):
        problem.artifacts(problem.start((U0, V0), None), ["W"])
