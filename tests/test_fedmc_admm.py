"""FedMC-ADMM against Algorithm 1 written densely, and the invariants of docs/derivations/admm-reduction.md."""

import numpy as np
import pytest

from fedrepro import registry
from fedrepro.errors import ParameterError, UserError
from fedrepro.ledger import Ledger
from fedrepro.problems.completion.methods.fedmc_admm import FedMCADMM
from fedrepro.seeds import streams

from .completion_cases import Dense, after, ratings, small, soft


def algorithm_1(problem, draws, U0, V0, *, beta, N, W_step="linearized", Y0="gradient", eps=1e-12):
    """Algorithm 1 in plain matrix products: yields (U, V, W, Y, W before the last inner step) per round."""
    d, p, lam, gam = Dense(problem), problem.p, problem.lam, problem.gam
    U, V = d.split(U0[problem.user]), V0.copy()
    W = [V.copy() for _ in range(p)]
    Y = [-d.grad_V(i, U[i], V) / p if Y0 == "gradient" else 0 * V for i in range(p)]
    before = [V.copy() for _ in range(p)]
    for S in draws:
        for i in S:
            L = max(np.linalg.norm(W[i].T @ W[i]), eps)
            for _ in range(N):
                grad = d.grad_U(i, U[i], W[i])
                U[i] = (L * U[i] - grad) / (L + lam) if problem.reg == "l2" else soft(U[i] - grad / L, lam / L)
            if W_step == "exact":
                for j in range(problem.n):
                    seen = d.mask[i][:, j]
                    A = U[i][seen].T @ U[i][seen] / p + beta * np.eye(problem.r)
                    W[i][j] = np.linalg.solve(A, U[i][seen].T @ d.M[i][seen, j] / p + beta * V[j] - Y[i][j])
            else:
                ell = max(np.linalg.norm(U[i].T @ U[i]), eps) / p
                for _ in range(N):
                    before[i] = W[i].copy()
                    W[i] = (ell * W[i] + beta * V - d.grad_V(i, U[i], W[i]) / p - Y[i]) / (ell + beta)
            Y[i] = Y[i] + beta * (W[i] - V)
        if problem.reg == "l2":
            V = sum(beta * w + y for w, y in zip(W, Y, strict=True)) / (p * beta + gam)
        else:
            V = soft(sum(w + y / beta for w, y in zip(W, Y, strict=True)) / p, gam / (p * beta))
        yield np.concatenate(U), V, np.array(W), np.array(Y), np.array(before)


DRAWS = [[0, 2], [1, 3], [0, 1], [2, 3], [1, 2], [0, 3], [0, 2], [1, 2]]


@pytest.mark.parametrize("reg", ["l2", "l1"])
@pytest.mark.parametrize("W_step", ["linearized", "exact"])
@pytest.mark.parametrize("Y0", ["gradient", "zero"])
@pytest.mark.parametrize(("beta", "N"), [(0.3, 10), (2.0, 1), (50.0, 4)])
def test_every_round_is_algorithm_1(reg, W_step, Y0, beta, N):
    problem = small(reg=reg)
    init = problem.initial(1)
    method = FedMCADMM(m=2, N=N, beta=beta, W_step=W_step, Y0=Y0)
    expected = algorithm_1(problem, DRAWS, *init, beta=beta, N=N, W_step=W_step, Y0=Y0)
    states = method.rounds(problem, np.random.default_rng(0), init=init, clients=DRAWS)
    next(states)
    for state, (U, V, W, Y, _) in zip(states, expected, strict=True):
        for got, wanted in ((state.U, U), (state.V, V), (state.W, W), (state.Y, Y)):
            np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-12 * max(1.0, np.abs(wanted).max()))


def test_the_released_settings_are_algorithm_1_with_them():
    """Tiny start, z-scores, the floor 1e-4, no dual at the start: the floor is in force in the first round."""
    problem = small(scale="zscore", init=2e-4, gam=0.1)
    init = problem.initial(1)
    method = registry.methods()["fedmc-admm-released"].make(m=2)
    assert (method.beta, method.Y0, method.eps, method.N) == (1e4, "zero", 1e-4, 10)
    assert np.linalg.norm(init[1].T @ init[1]) < 1e-4
    expected = algorithm_1(problem, DRAWS, *init, beta=1e4, N=10, Y0="zero", eps=1e-4)
    states = method.rounds(problem, np.random.default_rng(0), init=init, clients=DRAWS)
    next(states)
    for state, (U, V, _, _, _) in zip(states, expected, strict=True):
        np.testing.assert_allclose(state.U, U, rtol=1e-11)
        np.testing.assert_allclose(state.V, V, rtol=1e-11)


@pytest.mark.parametrize("N", [1, 7])
def test_the_dual_is_minus_the_last_linearized_gradient(N):
    """fedmc (54); W^{k,N-1} is re-made from the round before with N - 1 steps."""
    problem, beta = small(), 0.8
    d, p = Dense(problem), problem.p
    states = FedMCADMM(m=2, N=N, beta=beta).rounds(problem, np.random.default_rng(5), clients=DRAWS)
    state = next(states)
    for S in DRAWS:
        V, W, Y = state.V.copy(), state.W.copy(), state.Y.copy()
        state = next(states)
        for i in S:
            U = state.U[problem.client(i)]
            L, w = np.linalg.norm(U.T @ U), W[i]
            for _ in range(N - 1):
                w = (L / p * w + beta * V - d.grad_V(i, U, w) / p - Y[i]) / (L / p + beta)
            expected = -(d.grad_V(i, U, w) + L * (state.W[i] - w)) / p
            np.testing.assert_allclose(state.Y[i], expected, rtol=0, atol=1e-12)


def test_the_dual_of_the_exact_step_is_minus_the_gradient():
    """fedmc (11): Y_i is minus the gradient, as the augmented Lagrangian is at its least over W_i."""
    problem, beta = small(), 0.8
    d, p = Dense(problem), problem.p
    states = FedMCADMM(m=2, beta=beta, W_step="exact").rounds(problem, np.random.default_rng(5), clients=DRAWS)
    state = next(states)
    for S in DRAWS:
        V, Y = state.V.copy(), state.Y.copy()
        state = next(states)
        for i in S:
            grad = d.grad_V(i, state.U[problem.client(i)], state.W[i]) / p
            np.testing.assert_allclose(state.Y[i], -grad, rtol=0, atol=1e-12)
            np.testing.assert_allclose(grad + Y[i] + beta * (state.W[i] - V), 0.0, atol=1e-12)


def test_many_linearized_steps_reach_the_exact_step():
    problem = small(lam=0.5)
    init, ends = problem.initial(0), []
    for method in (FedMCADMM(m=2, N=4000, beta=0.8), FedMCADMM(m=2, N=4000, beta=0.8, W_step="exact")):
        *_, state = method.rounds(problem, np.random.default_rng(0), init=init, clients=DRAWS[:3])
        ends.append((state.U.copy(), state.V.copy()))
    np.testing.assert_allclose(ends[0][0], ends[1][0], atol=1e-8)
    np.testing.assert_allclose(ends[0][1], ends[1][1], atol=1e-8)


def test_clients_not_drawn_are_untouched():
    """fedmc Algorithm 1: W_i, Y_i and U_i stay to the last bit."""
    problem = small()
    states = FedMCADMM(m=2, beta=0.8).rounds(problem, np.random.default_rng(5), clients=DRAWS)
    state = next(states)
    for S in DRAWS:
        U, W, Y = state.U.copy(), state.W.copy(), state.Y.copy()
        state = next(states)
        for i in range(problem.p):
            rows = problem.client(i)
            same = [np.array_equal(a, b) for a, b in ((U[rows], state.U[rows]), (W[i], state.W[i]), (Y[i], state.Y[i]))]
            assert same == [i not in S] * 3


@pytest.mark.parametrize("reg", ["l2", "l1"])
def test_the_server_solves_its_problem_over_all_clients(reg):
    """fedmc (52): sum_i Y_i + beta (W_i - V) lies in the subdifferential of R at V; after 60 rounds too."""
    problem = small(reg=reg, gam=0.9)
    beta = 0.5
    for k, state in enumerate(FedMCADMM(m=3, beta=beta).rounds(problem, np.random.default_rng(1))):
        if k in (1, 7, 60):
            slope = np.sum(state.Y + beta * (state.W - state.V), axis=0)
            if reg == "l2":
                np.testing.assert_allclose(slope, problem.gam * state.V, atol=1e-12)
            else:
                zero = state.V == 0
                assert zero.any()
                assert not zero.all()
                assert np.abs(slope[zero]).max() <= problem.gam + 1e-12
                np.testing.assert_allclose(slope[~zero], problem.gam * np.sign(state.V[~zero]), atol=1e-12)
        if k == 60:
            break


@pytest.mark.parametrize(("p", "m"), [(1, 1), (4, 4), (4, 2)])
def test_it_settles_at_a_stationary_point_of_F(p, m):
    """The limit: W_i = V and both gradients of F vanish, whoever takes part. One client is the centralised method."""
    problem = small(p=p, lam=1.0, gam=0.5)
    state = after(FedMCADMM(m=m, beta=1.0, N=20).rounds(problem, np.random.default_rng(2)), 1500)
    d = Dense(problem)
    U = d.split(state.U)
    np.testing.assert_allclose(state.W, np.broadcast_to(state.V, state.W.shape), atol=1e-7)
    for i in range(p):
        np.testing.assert_allclose(d.grad_U(i, U[i], state.V) + problem.lam * U[i], 0.0, atol=1e-6)
    slope = sum(d.grad_V(i, U[i], state.V) for i in range(p)) / p + problem.gam * state.V
    np.testing.assert_allclose(slope, 0.0, atol=1e-6)


def test_the_w_steps_never_raise_the_augmented_lagrangian():
    """(15) majorises f_i with ||U^T U||_F / p, so every inner step is a descent step on (5) over W_i."""
    problem, beta, N = small(), 0.2, 12
    d, p = Dense(problem), problem.p
    states = FedMCADMM(m=1, N=N, beta=beta).rounds(problem, np.random.default_rng(5), clients=[[2]])
    state = next(states)
    V, Y = state.V.copy(), state.Y[2].copy()
    state = next(states)
    U, W = state.U[problem.client(2)], V.copy()  # W_2^0 = V^0
    ell, values = np.linalg.norm(U.T @ U) / p, []
    for _ in range(N):
        values.append(d.f(2, U, W) / p + np.sum(Y * (W - V)) + 0.5 * beta * np.sum((W - V) ** 2))
        W = (ell * W + beta * V - d.grad_V(2, U, W) / p - Y) / (ell + beta)
    W = state.W[2]  # the method's own last step
    values.append(d.f(2, U, W) / p + np.sum(Y * (W - V)) + 0.5 * beta * np.sum((W - V) ** 2))
    assert (np.diff(values) < 0).all()


def test_the_automatic_penalty_follows_its_rule():
    problem = small()
    init, d = problem.initial(3), Dense(problem)
    curvatures = []
    for i, U in enumerate(d.split(init[0][problem.user])):
        L = np.linalg.norm(init[1].T @ init[1])
        for _ in range(10):
            U = (L * U - d.grad_U(i, U, init[1])) / (L + problem.lam)
        curvatures.append(np.linalg.norm(U.T @ U) / problem.p)
    ledger = Ledger()
    state = next(FedMCADMM(m=2, beta="auto", c=0.4).rounds(problem, np.random.default_rng(0), init=init, ledger=ledger))
    assert state.beta == pytest.approx(0.4 * np.median(curvatures), rel=1e-12)
    np.testing.assert_array_equal(state.U, init[0][problem.user])  # the trial phase leaves the start alone
    size = problem.n * problem.r
    assert ledger.setup_scalars == problem.p * (2 * size + 1)


def test_the_ledger_counts_what_algorithm_1_sends():
    problem, size, rounds = small(), 17 * 3, 3
    totals = {}
    for sends in ("pair", "sum"):
        ledger = Ledger()
        method = FedMCADMM(m=2, sends=sends)
        *_, state = method.rounds(problem, np.random.default_rng(0), clients=DRAWS[:rounds], ledger=ledger)
        totals[sends] = (ledger.totals(), ledger.by_kind, state.V.tobytes(), ledger.setup_scalars)
    for sends, numbers in (("pair", 2), ("sum", 1)):
        count, kinds, _, setup = totals[sends]
        assert count["uplink_scalars"] == rounds * 2 * numbers * size
        assert count["downlink_scalars"] == rounds * 2 * size
        assert count["uplink_bits"] == 32 * count["uplink_scalars"]
        assert setup == problem.p * 2 * size
        assert sum(v for k, v in kinds.items() if k.startswith("uplink")) == count["uplink_scalars"]
    assert totals["pair"][2] == totals["sum"][2]


def test_work_counts_inner_passes():
    problem = small()
    for method, passes in ((FedMCADMM(m=2, N=6), 6.0), (FedMCADMM(m=2, N=6, W_step="exact"), 3.5)):
        works = [s.work for s in method.rounds(problem, np.random.default_rng(0), clients=DRAWS[:3])]
        assert works == [0.0, passes, 2 * passes, 3 * passes]


@pytest.mark.parametrize("given", [True, False])
def test_clients_are_the_first_of_a_permutation_of_the_clients_stream(given):
    """Whether or not the initial point is drawn as well."""
    problem = small()
    draw = streams(np.random.default_rng(9)).clients
    expected = [sorted(draw.permutation(4)[:2].tolist()) for _ in range(4)]
    init = problem.initial(0) if given else None
    states = FedMCADMM(m=2).rounds(problem, np.random.default_rng(9), init=init)
    state = next(states)
    for S in expected:
        W = state.W.copy()
        state = next(states)
        assert [i for i in range(4) if not np.array_equal(W[i], state.W[i])] == S


def test_threads_do_not_change_a_bit():
    ends = []
    for threads in (1, 3):
        problem = small(p=5, data=ratings(60, 40, 900))
        problem.threads = threads
        state = after(FedMCADMM(m=4).rounds(problem, np.random.default_rng(1), init=problem.initial(0)), 5)
        ends.append(state.U.tobytes() + state.V.tobytes() + state.W.tobytes())
    assert ends[0] == ends[1]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("threads", [1, 2])
def test_a_run_that_overflows_ends_without_a_warning(threads):
    problem = small(lam=0.0)
    problem.threads = threads
    init = problem.initial(0)
    states = list(FedMCADMM(m=4).rounds(problem, np.random.default_rng(1), init=(1e200 * init[0], 1e200 * init[1])))
    assert 1 < len(states) < 5


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"beta": 0}, "beta: must be a number greater than 0 or 'auto', not 0"),
        ({"beta": -1.0}, "beta: must be a number greater than 0 or 'auto', not -1.0"),
        ({"beta": float("nan")}, "beta: must be a number greater than 0 or 'auto', not nan"),
        (
            {"beta": "automatic"},
            "beta: must be a number greater than 0 or 'auto', not 'automatic', did you mean 'auto'?",
        ),
        ({"c": 0}, "c: must be a number greater than 0, not 0"),
        ({"N": 0}, "N: must be an integer of at least 1, not 0"),
        ({"m": 2.0}, "m: must be an integer of at least 1, not 2.0"),
        ({"W_step": "exakt"}, "W_step: must be one of linearized, exact, not 'exakt', did you mean 'exact'?"),
        ({"Y0": "one"}, "Y0: must be one of gradient, zero, not 'one'"),
        ({"eps": 0.0}, "eps: must be a number greater than 0, not 0.0"),
        ({"sends": "both"}, "sends: must be one of pair, sum, not 'both'"),
    ],
)
def test_a_parameter_that_cannot_work_is_named(params, message):
    with pytest.raises(ParameterError) as error:
        FedMCADMM(**params)
    assert str(error.value) == message


def test_more_clients_than_there_are():
    with pytest.raises(ParameterError, match=r"^m: must be at most the number of clients P = 4, not 10$"):
        next(FedMCADMM().rounds(small(), np.random.default_rng(0)))


@pytest.mark.parametrize("ids", [[0, 0], [0, 4], [-1, 2], [0.5, 1.0], []])
def test_clients_given_are_checked(ids):
    states = FedMCADMM(m=2).rounds(small(), np.random.default_rng(0), clients=[[0, 1], ids])
    next(states), next(states)
    with pytest.raises(UserError, match=r"^clients: round 2 must name different clients of 0 to 3, not "):
        next(states)
