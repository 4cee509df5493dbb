"""Centralised alternating least squares: exact half rounds, monotone, the same for any assignment of users."""

import numpy as np
import pytest

from fedrepro.errors import ParameterError
from fedrepro.problems.completion.methods.als import ALS
from fedrepro.problems.completion.methods.fedmc_admm import FedMCADMM
from fedrepro.problems.completion.problem import Completion

from .completion_cases import Dense, after, ratings, small


def test_the_second_half_round_leaves_no_gradient_in_V():
    problem = small()
    d, state = Dense(problem), after(ALS().rounds(problem, np.random.default_rng(0)), 3)
    U = d.split(state.U)
    slope = sum(d.grad_V(i, U[i], state.V) for i in range(problem.p)) / problem.p + problem.gam * state.V
    np.testing.assert_allclose(slope, 0.0, atol=1e-10)


def test_the_first_half_round_leaves_no_gradient_in_U():
    problem = small()
    d, states = Dense(problem), ALS().rounds(problem, np.random.default_rng(0))
    next(states)
    V = next(states).V.copy()
    state = next(states)
    for i, U in enumerate(d.split(state.U)):
        np.testing.assert_allclose(d.grad_U(i, U, V) + problem.lam * U, 0.0, atol=1e-10)


def test_the_objective_never_rises():
    problem = small(lam=1e-3, gam=1e-3)
    states = ALS().rounds(problem, np.random.default_rng(0))
    values = [problem.measure(next(states), ["objective"])["objective"] for _ in range(30)]
    assert (np.diff(values) <= 1e-12).all()


def test_a_round_is_one_step_on_U_and_one_on_V():
    states = ALS().rounds(small(), np.random.default_rng(0))
    assert [next(states).work for _ in range(4)] == [0.0, 1.0, 2.0, 3.0]


def test_rows_without_ratings_become_zero():
    problem = small()
    state = after(ALS().rounds(problem, np.random.default_rng(0)), 1)
    np.testing.assert_array_equal(state.V[problem.n - 1], 0.0)
    empty = np.diff(problem.train.ptr) == 0
    np.testing.assert_array_equal(state.U[empty], 0.0)


def test_only_the_objective_knows_of_clients():
    """p clients with gam are one client with p gam, F p times as large; the iterates by user are the same."""
    data, ends = ratings(), []
    client = np.random.default_rng(3).permutation(np.arange(data.users) % 4)
    for who, gam, p in ((client, 0.05, 4), (None, 0.2, 1)):
        problem = Completion(data, who, r=3, lam=0.1, gam=gam, train=1.0)
        state = after(ALS().rounds(problem, np.random.default_rng(0), init=problem.initial(0)), 5)
        U = problem.artifacts(state, ["U"])["U"]
        ends.append((U, state.V.copy(), p * problem.measure(state, ["objective"])["objective"]))
    for a, b in zip(*ends, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


def test_one_client_of_the_federated_method_reaches_the_same_objective():
    problem = small(p=1, r=1, lam=1.0, gam=1.0)
    ends = []
    for method, rounds in ((ALS(), 200), (FedMCADMM(m=1, beta=20.0), 3000)):
        state = after(method.rounds(problem, np.random.default_rng(0), init=problem.initial(0)), rounds)
        ends.append(problem.measure(state, ["objective"])["objective"])
    assert ends[0] == pytest.approx(ends[1], rel=1e-8)


def test_threads_do_not_change_a_bit():
    ends = []
    for threads in (1, 3):
        problem = small(p=5, data=ratings(60, 40, 900))
        problem.threads = threads
        state = after(ALS().rounds(problem, np.random.default_rng(1), init=problem.initial(0)), 3)
        ends.append(state.U.tobytes() + state.V.tobytes())
    assert ends[0] == ends[1]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"reg": "l1"}, "reg: alternating least squares needs reg: l2"),
        ({"lam": 0}, "lam: must be greater than 0 for exact row solves"),
        ({"gam": 0.0}, "gam: must be greater than 0 for exact row solves"),
    ],
)
def test_a_problem_it_cannot_solve_is_refused(parameters, message):
    with pytest.raises(ParameterError) as error:
        next(ALS().rounds(small(**parameters), np.random.default_rng(0)))
    assert str(error.value) == message


def test_a_regulariser_lost_in_rounding_is_named():
    states = ALS().rounds(small(lam=1e-300), np.random.default_rng(0))
    next(states)
    with pytest.raises(ParameterError, match=r"^lam: is too small: \d+ row systems cannot be solved at 1e-300$"):
        next(states)
