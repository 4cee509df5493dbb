"""Problems on the user's own data: they compute what their base problem does, and report mistakes."""

from __future__ import annotations

import dataclasses
import importlib.util

import numpy as np
import pytest

import fedrepro
from fedrepro import Ratings, registry
from fedrepro.datasets.own_types import ClientImages, Entries, Measured, SplitRatings
from fedrepro.errors import ParameterError, UserError
from fedrepro.partitions.given import Given
from fedrepro.problems.completion.problem import Completion
from fedrepro.problems.completion.problem_split import SplitCompletion
from fedrepro.problems.imc.problem_observed import CHANCES, ObservedIMC, _even
from fedrepro.problems.personal.problem_given_side import PersonalSide
from fedrepro.problems.shift.problem import Shift
from fedrepro.problems.shift.problem_regression import Regression

from .own_examples import module
from .test_contracts import OWN, changed, freeze, prints

FORMS = {name: entry for name, entry in registry.problems().items() if name not in OWN}


def arrays(name: str):
    """The example's arrays as the problem uses them, with the clients."""
    if name == "completion-split":
        user, item, rating, test, region = module("ratings").arrays()
        return SplitRatings(user, item, rating, 120, 40, test=test, client=region), region
    if name == "completion-steps":
        user, item, rating, _, region = module("ratings").arrays()
        return Ratings(user, item, rating, 120, 40), region
    if name == "imc-observed":
        client, item, value, Z = module("entries").arrays()
        return Entries(client, item, value, Z, 25), None
    if name == "regression":
        x, y, client, z = module("regression").arrays()
        return Measured(x, y, client, z), None
    pixels, label, client, split, side = module("images").arrays()
    return ClientImages(pixels[..., None], label, split=split, client=client, side=side), client


PARAMETERS = {
    "completion-split": {"r": 2, "lam": 0.1, "gam": 0.1},
    "completion-steps": {"r": 2, "lam": 0.1, "gam": 0.1, "inner": 3},
    "imc-observed": {"r": 2, "test": 0.25},
    "regression": {"test": 0.3},
    "personal-side": {"widths": [2, 2, 4, 2]},
}
METHODS = {
    "completion-split": ("fedmc-admm", {"m": 2}),
    "completion-steps": ("fedmc-admm", {"m": 2, "N": 3}),
    "imc-observed": ("imc-perfedsi", {"eta": 0.2, "m": 5}),
    "regression": ("shift-perfedsi", {"m": 5}),
}
every_form = pytest.mark.parametrize("name", FORMS)


@every_form
def test_a_form_has_the_members_and_parameters_it_says(name) -> None:
    cls = FORMS[name].cls
    assert cls.name == name
    assert set(cls.default_metrics) <= set(cls.metrics)
    assert set(cls.stored_parameters or ()) <= set(cls.parameters)
    cls.check(cls.parameters, {})
    for key in cls.parameters:
        with pytest.raises(ParameterError) as refused:
            cls.check({key: "nonsense"}, {})
        assert refused.value.name == key
    with pytest.raises(ParameterError, match="must be one of"):
        cls.check({"nonsense": 1}, {})
    assert set(PARAMETERS) == set(FORMS)


@every_form
def test_written_and_read_it_is_the_one_in_memory_and_the_caller_keeps_his_arrays(name, tmp_path) -> None:
    if name == "personal-side" and importlib.util.find_spec("jax") is None:
        pytest.skip("jax is not installed")
    data, client = arrays(name)
    freeze([data, client])
    before = prints([data, client])
    cls, parameters = FORMS[name].cls, PARAMETERS[name]
    made = cls.of(data, client, parameters)
    cls.prepare(tmp_path, data, client, parameters)
    stored = cls.stored(tmp_path, parameters)
    assert not changed(before, prints([data, client]))
    if name == "personal-side":
        np.testing.assert_array_equal(stored.z, data.side)
        np.testing.assert_array_equal(stored.z, made.z)
        assert prints(stored.train_rows) == prints(made.train_rows)
        return
    algorithm, chosen = METHODS[name]
    method = registry.methods()[algorithm].make(**chosen)
    known = ("rmse", "rmse_train", "objective", "mse", "mse_train", "variance", "error", "moves_u")
    metrics = [metric for metric in cls.metrics if metric in known]
    in_memory, read_back = (fedrepro.run(method, problem, 3, metrics=metrics) for problem in (made, stored))
    for metric in metrics:
        assert in_memory[metric].tobytes() == read_back[metric].tobytes()


def test_given_ratings_to_test_with_are_those_and_no_others() -> None:
    data, region = arrays("completion-split")
    problem = SplitCompletion(data, region, r=2)
    pairs = set()
    for row, (a, b) in enumerate(zip(problem.test.ptr[:-1], problem.test.ptr[1:], strict=True)):
        pairs |= {(int(problem.user[row]), int(i)) for i in problem.test.index[a:b]}
    assert pairs == set(zip(data.user[data.test].tolist(), data.item[data.test].tolist(), strict=True))
    assert problem.train.count == np.count_nonzero(~data.test)
    items = np.concatenate([np.bincount(problem._col_row, minlength=1)])
    assert items.sum() == problem.train.count
    state = problem.start(problem.initial(1), np.random.default_rng(0))
    U, V = problem.initial(1)
    error = (U[data.user] * V[data.item]).sum(axis=1) - data.value
    wanted = {"rmse": np.sqrt(np.mean(error[data.test] ** 2)), "rmse_train": np.sqrt(np.mean(error[~data.test] ** 2))}
    assert problem.measure(state, tuple(wanted)) == pytest.approx(wanted, rel=1e-12)


def test_a_split_drawn_and_then_given_is_the_same_problem() -> None:
    data, region = arrays("completion-split")
    drawn = Completion(data, region, r=2)
    train = {
        (int(drawn.user[row]), int(i))
        for row in range(drawn.rows)
        for i in drawn.train.index[drawn.train.ptr[row] : drawn.train.ptr[row + 1]]
    }
    test = np.array([(u, i) not in train for u, i in zip(data.user.tolist(), data.item.tolist(), strict=True)])
    given = SplitCompletion(dataclasses.replace(data, test=test), region, r=2)
    method = registry.methods()["fedmc-admm"].make(m=3)
    runs = [
        fedrepro.run(method, problem, 4, rng=np.random.default_rng(0), init=drawn.initial(1))
        for problem in (drawn, given)
    ]
    np.testing.assert_array_equal(runs[0]["objective"], runs[1]["objective"])
    np.testing.assert_array_equal(runs[0]["rmse"], runs[1]["rmse"])


def test_ratings_without_a_split_or_with_a_useless_one() -> None:
    data, region = arrays("completion-split")
    with pytest.raises(UserError, match="these have no split of their own; use the problem completion"):
        SplitCompletion(dataclasses.replace(data, test=None), region)
    with pytest.raises(UserError, match="must give true or false for each rating"):
        SplitCompletion(dataclasses.replace(data, test=data.test[:-1]), region)
    with pytest.raises(ParameterError, match="leaves no rating to train with"):
        SplitCompletion(dataclasses.replace(data, test=np.ones(data.value.size, dtype=bool)), region)


def test_clients_of_different_size_have_their_own_losses() -> None:
    data, _ = arrays("regression")
    problem = Regression(data, test=0.0)
    assert len(set(np.bincount(data.client))) > 3
    p = np.random.default_rng(1).normal(size=data.x.shape[1] + 1 + data.z.shape[1])
    A, full = problem.design(True), np.column_stack([data.x, np.ones(len(data.y)), data.z[data.client]])
    for m in range(problem.M):
        own = data.client == m
        gradient = A[m].T @ (A[m] @ p - problem.y[m]) / problem.n
        exact = full[own].T @ (full[own] @ p - data.y[own]) / own.sum()
        np.testing.assert_allclose(gradient, exact, rtol=1e-10)


def test_clients_of_one_size_are_the_toy_problem() -> None:
    toy = registry.datasets()["shift"].make(d=3, k=2, M=6, n=8).load(np.random.default_rng(0))
    base = Shift(toy)
    data = Measured(toy.x.reshape(-1, 3), base.y.ravel(), np.repeat(np.arange(6), 8), toy.z)
    own = Regression(data, test=0.0)
    for side in (False, True):
        np.testing.assert_allclose(own.design(side), base.design(side), rtol=1e-15)
    method = fedrepro.ShiftAveraging(side=True, m=3)
    runs = [fedrepro.run(method, problem, 5, rng=np.random.default_rng(0)).state.theta for problem in (base, own)]
    np.testing.assert_allclose(*runs, rtol=1e-12)
    with pytest.raises(UserError, match="the true theta and biases are known of generated data only"):
        fedrepro.run(fedrepro.ShiftExact("theory"), own, 1)


def test_the_mean_squared_error_is_that_of_the_samples_held_back() -> None:
    x, y, client = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0.0, 1.0, 2.0, 5.0]), np.array([0, 0, 1, 1])
    held = np.array([False, True, False, True])
    problem = Regression(Measured(x, y, client, np.zeros((2, 1)), test=held))
    state = problem.state(np.array([1.0, 0.0]))  # y = x: exact but for the last
    values = problem.measure(state, ("mse", "mse_train", "variance"))
    assert values == pytest.approx({"mse": 2.0, "mse_train": 0.0, "variance": 4.0})


def test_the_mean_squared_error_counts_every_client_alike_however_many_samples_it_has() -> None:
    rng, client = np.random.default_rng(0), np.repeat([0, 1, 2], [9, 4, 3])
    x, y, held = rng.normal(size=(16, 2)), rng.normal(size=16), np.isin(np.arange(16), [0, 1, 2, 3, 4, 9, 10, 13])
    problem = Regression(Measured(x, y, client, np.zeros((3, 1)), test=held))
    measured = problem.measure(problem.state(np.array([1.0, -2.0, 0.5])), ("mse", "mse_train"))
    for name, chosen in (("mse", held), ("mse_train", ~held)):
        losses = [
            np.mean([(x[n, 0] - 2 * x[n, 1] + 0.5 - y[n]) ** 2 for n in range(16) if chosen[n] and client[n] == m])
            for m in range(3)
        ]
        assert measured[name] == pytest.approx(np.mean(losses))


def test_completing_from_entries_alone_recovers_what_nobody_saw() -> None:
    data, _ = arrays("imc-observed")
    problem = ObservedIMC(data, r=2, test=0.25)
    assert np.count_nonzero(problem.held) == 60 * 3
    history = fedrepro.run(fedrepro.IMCPerFedSI(eta=0.2, tau=20, m=10), problem, 300, metrics=("rmse", "rmse_train"))
    assert history["rmse"][-1] < 0.03 < 1 < history["rmse"][0]
    held = np.isin(
        problem.items * 60 + np.arange(60)[:, None], data.item[problem.held] * 60 + data.client[problem.held]
    )
    assert not held.any()  # no step looks at them
    with pytest.raises(ParameterError, match="r: must be at most"):
        ObservedIMC(data, r=6)
    with pytest.raises(UserError, match="occurs more than once"):
        ObservedIMC(dataclasses.replace(data, item=np.zeros_like(data.item)))


def test_every_entry_of_a_client_has_its_chance() -> None:
    counts = np.array([1, 2, 3])
    even = _even(np.repeat(np.arange(3), counts), np.array([7, 1, 2, 3, 4, 5]), counts)
    assert even.shape == (3, 6)
    assert np.bincount(even[2], minlength=6)[3:].tolist() == [2, 2, 2]
    assert set(even[0]) == {7}
    counts = np.array([97, 89, 83])
    even = _even(np.repeat(np.arange(3), counts), np.concatenate([np.arange(n) for n in counts]), counts)
    for m, n in enumerate(counts):
        share = np.bincount(even[m], minlength=n) * n / even.shape[1]
        assert np.abs(share - 1).max() <= 1 / CHANCES * 1.1


def test_clients_are_those_of_the_data() -> None:
    data, client = arrays("personal-side")
    assigned = Given().assign(data, np.random.default_rng(0))
    np.testing.assert_array_equal(assigned, np.stack([client, data.split], axis=1))
    drawn = Given(test=0.25).assign(dataclasses.replace(data, split=None), np.random.default_rng(0))
    assert {np.mean(drawn[client == m, 1]) for m in range(6)} == {0.25}
    with pytest.raises(ParameterError, match="uses the clients that the data name, and these data name none"):
        Given().assign(dataclasses.replace(data, client=None), np.random.default_rng(0))


def test_images_without_side_information_or_of_other_clients() -> None:
    data, client = arrays("personal-side")
    with pytest.raises(UserError, match="have no side information of their own; use the problem personal"):
        PersonalSide(dataclasses.replace(data, side=None), client)
    with pytest.raises(UserError, match="must have a row for each of the 6 clients"):
        PersonalSide(dataclasses.replace(data, side=data.side[:5]), client)
