"""FedMAvg for completion against fedmc section 5.2 written densely, in all readings."""

import numpy as np
import pytest

from fedrepro import registry
from fedrepro.errors import ParameterError
from fedrepro.ledger import Ledger
from fedrepro.problems.completion.methods.fedmavg_mc import FedMAvgMC

from .completion_cases import Dense, after, ratings, small

DRAWS = [[0, 2], [1, 3], [0, 1], [2, 3], [1, 2]]


def top(A):
    return np.linalg.eigvalsh(A.T @ A)[-1]


def section_5_2(problem, draws, U0, V0, *, reading, broadcast, Q1, Q2):
    """The method in plain matrix products; every client computes W_i, as in the text."""
    d, p, lam, gam = Dense(problem), problem.p, problem.lam, problem.gam
    U, V = d.split(U0[problem.user]), V0.copy()
    W = [V.copy() for _ in range(p)]
    for S in draws:
        for i in range(p):
            if broadcast:
                W[i] = V.copy()
            at = W[i].copy()
            c = p * top(at) / 2 if reading == "released" else 0.51 * top(at)
            for _ in range(Q1):
                U[i] = U[i] - (d.grad_U(i, U[i], at) + lam * U[i]) / c
            size = 5 * top(U[i]) / (p if reading == "scaled" else 1)
            for _ in range(Q2):
                g = gam / p if reading == "released" else gam
                W[i] = W[i] - (d.grad_V(i, U[i], W[i]) / p + g * W[i]) / size
        V = sum(W[i] for i in S) / len(S)
        yield np.concatenate(U), V, np.array(W)


@pytest.mark.parametrize("reading", ["literal", "scaled", "released"])
@pytest.mark.parametrize("broadcast", [True, False])
@pytest.mark.parametrize(("Q1", "Q2"), [(10, 10), (1, 3)])
def test_every_round_is_the_papers(reading, broadcast, Q1, Q2):
    problem = small()
    init = problem.initial(1)
    method = FedMAvgMC(m=2, Q1=Q1, Q2=Q2, reading=reading, broadcast=broadcast)
    expected = section_5_2(problem, DRAWS, *init, reading=reading, broadcast=broadcast, Q1=Q1, Q2=Q2)
    states = method.rounds(problem, np.random.default_rng(0), init=init, clients=DRAWS)
    next(states)
    for k, (state, (U, V, W)) in enumerate(zip(states, expected, strict=True), start=1):
        np.testing.assert_allclose(state.U, U, rtol=0, atol=1e-12 * np.abs(U).max())
        np.testing.assert_allclose(state.V, V, rtol=0, atol=1e-12)
        assert state.work == 0.5 * (Q1 + Q2) * k
        if broadcast:
            assert state.W is None
        else:
            np.testing.assert_allclose(state.W, W, rtol=0, atol=1e-12)


def test_registered_readings():
    entries = registry.methods()
    assert entries["fedmavg-mc"].make() == FedMAvgMC(reading="literal")
    assert entries["fedmavg-mc-scaled"].make() == FedMAvgMC(reading="scaled")
    assert entries["fedmavg-mc-released"].make() == FedMAvgMC(reading="released", broadcast=False)


def test_the_scaled_step_is_the_literal_one_with_d_over_p():
    problem = small()
    ends = []
    for method in (FedMAvgMC(m=2, reading="scaled", d=5.0), FedMAvgMC(m=2, reading="literal", d=5.0 / 4)):
        *_, state = method.rounds(problem, np.random.default_rng(0), init=problem.initial(0), clients=DRAWS)
        ends.append(state.V.copy())
    np.testing.assert_allclose(*ends, rtol=0, atol=1e-14)


@pytest.mark.parametrize("reading", ["literal", "scaled", "released"])
def test_one_client_descends(reading):
    """With one client the method is alternating gradient descent with steps below 2/L: F never rises."""
    problem = small(p=1)
    values = []
    for k, state in enumerate(FedMAvgMC(m=1, reading=reading).rounds(problem, np.random.default_rng(0))):
        values.append(problem.measure(state, ["objective"])["objective"])
        if k == 40:
            break
    assert (np.diff(values) <= 1e-12).all()
    assert values[-1] < 0.5 * values[0]


def test_the_ledger_counts_broadcasts_to_all_and_uploads_of_the_drawn():
    problem, size = small(), 17 * 3
    ledger = Ledger()
    list(FedMAvgMC(m=2).rounds(problem, np.random.default_rng(0), clients=DRAWS, ledger=ledger))
    assert ledger.totals()["uplink_scalars"] == 5 * 2 * size
    assert ledger.totals()["downlink_scalars"] == 5 * 4 * size
    assert ledger.setup_scalars == 0
    ledger = Ledger()
    list(FedMAvgMC(m=2, broadcast=False).rounds(problem, np.random.default_rng(0), clients=DRAWS, ledger=ledger))
    assert ledger.totals()["uplink_scalars"] == 5 * 2 * size
    assert ledger.totals()["downlink_scalars"] == 0
    assert ledger.setup_scalars == 4 * size


def test_both_methods_meet_the_same_clients():
    """Common random numbers: one generator, the same draws as FedMC-ADMM."""
    problem = small()
    admm = registry.methods()["fedmc-admm"].make(m=2).rounds(problem, np.random.default_rng(3))
    mavg = FedMAvgMC(m=2, broadcast=False).rounds(problem, np.random.default_rng(3))
    a, b = next(admm), next(mavg)
    for _ in range(4):
        W = a.W.copy()
        a, b = next(admm), next(mavg)
        drawn = [i for i in range(4) if not np.array_equal(W[i], a.W[i])]
        np.testing.assert_allclose(b.V, b.W[drawn].mean(axis=0), rtol=0, atol=1e-15)


def test_threads_do_not_change_a_bit():
    ends = []
    for threads in (1, 3):
        problem = small(p=5, data=ratings(60, 40, 900))
        problem.threads = threads
        state = after(FedMAvgMC(m=4).rounds(problem, np.random.default_rng(1), init=problem.initial(0)), 5)
        ends.append(state.U.tobytes() + state.V.tobytes())
    assert ends[0] == ends[1]


def test_l1_is_refused():
    with pytest.raises(ParameterError, match=r"^reg: FedMAvg is a gradient method and needs reg: l2; use fedmc-admm"):
        next(FedMAvgMC(m=2).rounds(small(reg="l1"), np.random.default_rng(0)))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (
            {"reading": "scale"},
            "reading: must be one of literal, scaled, released, not 'scale', did you mean 'scaled'?",
        ),
        ({"Q1": 0}, "Q1: must be an integer of at least 1, not 0"),
        ({"Q2": 1.5}, "Q2: must be an integer of at least 1, not 1.5"),
        ({"c": 0.0}, "c: must be a number greater than 0, not 0.0"),
        ({"d": -5}, "d: must be a number greater than 0, not -5"),
        ({"broadcast": 1}, "broadcast: must be true or false, not 1"),
    ],
)
def test_a_parameter_that_cannot_work_is_named(params, message):
    with pytest.raises(ParameterError) as error:
        FedMAvgMC(**params)
    assert str(error.value) == message


def test_more_clients_than_there_are():
    with pytest.raises(ParameterError, match=r"^m: must be at most the number of clients P = 4, not 10$"):
        next(FedMAvgMC().rounds(small(), np.random.default_rng(0)))
