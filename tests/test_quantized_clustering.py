"""Quantized uplinks of FedMAvg and FedMGS: exact without quantization, losses, error feedback and counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fedrepro import registry
from fedrepro.compression.compressors import Identity, MaxNorm
from fedrepro.errors import ParameterError
from fedrepro.problems.clustering.methods.fedmavg import FedMAvg
from fedrepro.problems.clustering.methods.fedmgs import FedMGS
from fedrepro.problems.clustering.methods.quantized import FedMAvgQuantized, FedMGSQuantized, Sender
from fedrepro.problems.clustering.problem import Clustering
from fedrepro.runs.compute.drive import History, run

from .naive_clustering import Naive, instance

PAIRS = {"fedmavg": (FedMAvg, FedMAvgQuantized), "fedmgs": (FedMGS, FedMGSQuantized)}

SETTINGS: list[tuple[str, dict[str, Any]]] = [
    ("fedmavg", {}),
    ("fedmavg", {"m": 3, "Q2": 4}),
    ("fedmavg", {"m": 3, "participation": "pcp", "pcp_repeat": True}),
    ("fedmavg", {"d_mode": "local"}),
    ("fedmgs", {}),
    ("fedmgs", {"m": 2, "Q2": 7}),
]


def blobs(seed: int = 0) -> Clustering:
    """300 samples around 4 centres at 10 clients."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(4, size=300)
    X = np.maximum(3 * rng.random((40, 4))[:, labels] + rng.standard_normal((40, 300)), 0.0)
    return Clustering(X, rng.permutation(np.arange(300) % 10), labels=labels)


@pytest.mark.parametrize(("name", "params"), SETTINGS)
@pytest.mark.parametrize("feedback", [True, False])
def test_without_quantization_it_is_the_method(name: str, params: dict[str, Any], feedback: bool) -> None:
    X, client, W0, H0 = instance(1)
    problem = Clustering(X, client, K=3)
    plain, quantized = PAIRS[name]
    first = run(plain(**params), problem, 25, init=(W0, H0), keep=True)
    second = run(quantized(q=None, feedback=feedback, **params), problem, 25, init=(W0, H0), keep=True)
    np.testing.assert_allclose(second["objective"], first["objective"], rtol=1e-12)
    np.testing.assert_allclose(second.state.W, first.state.W, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(second.state.H, first.state.H, rtol=1e-10, atol=1e-12)
    assert second.ledger.totals() == first.ledger.totals()
    assert second.ledger.setup_scalars == first.ledger.setup_scalars


@pytest.mark.parametrize(("name", "params"), SETTINGS)
def test_many_bits_come_close_to_none_lost(name: str, params: dict[str, Any]) -> None:
    X, client, W0, H0 = instance(2)
    problem = Clustering(X, client, K=3)
    plain, quantized = PAIRS[name]
    first = run(plain(**params), problem, 10, init=(W0, H0))
    second = run(quantized(q=31, **params), problem, 10, init=(W0, H0))
    np.testing.assert_allclose(second["objective"], first["objective"], rtol=1e-6)
    assert not np.array_equal(second["objective"][1:], first["objective"][1:])


@pytest.mark.parametrize("name", PAIRS)
def test_the_objective_is_that_of_the_true_factors(name: str) -> None:
    X, client, W0, H0 = instance(3)
    history = run(PAIRS[name][1](q=3), Clustering(X, client, K=3), 8, init=(W0, H0), keep=True)
    naive = Naive(X, client, 3)
    assert history.states is not None
    for value, state in zip(history["objective"], history.states, strict=True):
        assert value == pytest.approx(naive.F(state.W, state.H) / naive.unit, rel=1e-10)


def test_messages_without_feedback_are_right_in_the_mean() -> None:
    D = np.random.default_rng(0).standard_normal((6, 3))
    sender = Sender(FedMGSQuantized(q=3, feedback=False).compressor(), False, np.random.default_rng(1))
    sent = np.array([sender.send("D", D).values for _ in range(4000)])
    np.testing.assert_allclose(sent.mean(axis=0), D, atol=5 * np.abs(D).max() / 3 / 2 / np.sqrt(4000))


def test_with_feedback_nothing_sent_is_missing_but_the_last_error() -> None:
    rng = np.random.default_rng(2)
    changes = [rng.standard_normal((6, 3)) * 0.8**s for s in range(30)]
    with_, without = (Sender(MaxNorm(2, "bound"), feedback, np.random.default_rng(3)) for feedback in (True, False))
    sent, lost, asked = np.zeros((6, 3)), np.zeros((6, 3)), np.zeros((6, 3))
    for D in changes:
        asked += D
        sent += with_.send("D", D).values
        lost += D - without.send("D", D).values
        np.testing.assert_allclose(sent + with_.lossy["D"].memory, asked, atol=1e-12)
    assert np.abs(with_.lossy["D"].memory).max() < 0.05 * np.abs(lost).max()


def test_kinds_of_messages_have_errors_of_their_own() -> None:
    sender = Sender(MaxNorm(2, "bound"), True, np.random.default_rng(0))
    sender.send("U", np.arange(4.0))
    sender.send("V", np.ones((2, 3)))
    assert {kind: memory.memory.shape for kind, memory in sender.lossy.items()} == {"U": (4,), "V": (2, 3)}
    exact = Sender(Identity(), True, np.random.default_rng(0))
    exact.send("U", np.arange(4.0))
    assert exact.lossy == {}


@pytest.fixture(scope="module")
def trajectories() -> dict[tuple[Any, ...], History]:
    """Both methods on small data at several widths, with and without feedback; width None is the method itself."""
    problem = blobs()
    histories: dict[tuple[Any, ...], History] = {}
    for name, (plain, quantized) in PAIRS.items():
        histories[name, None] = run(plain(), problem, 80, trial=1)
        for q, feedback in ((2, True), (4, True), (4, False), (8, True)):
            histories[name, q, feedback] = run(quantized(q=q, feedback=feedback), problem, 80, trial=1)
    return histories


@pytest.mark.parametrize(("q", "within"), [(2, 0.03), (4, 1e-3), (8, 1e-4)])
@pytest.mark.parametrize("name", PAIRS)
def test_feedback_keeps_the_objective_near_the_unquantized_one(
    name: str, q: int, within: float, trajectories: dict[tuple[Any, ...], History]
) -> None:
    plain, quantized = trajectories[name, None]["objective"], trajectories[name, q, True]["objective"]
    assert quantized[-1] == pytest.approx(plain[-1], rel=within)


def test_without_feedback_the_errors_of_gradient_sharing_add_up(
    trajectories: dict[tuple[Any, ...], History],
) -> None:
    end = trajectories["fedmgs", None]["objective"][-1]
    without = trajectories["fedmgs", 4, False]["objective"][-1] - end
    assert without > 10 * abs(trajectories["fedmgs", 4, True]["objective"][-1] - end)


@pytest.mark.parametrize("q", [2, 5, 8])
def test_packed_bits_are_counted(q: int) -> None:
    problem = blobs()
    M, K, rounds, m = problem.M, problem.K, 6, 4
    for method in (FedMAvgQuantized(q=q, m=m), FedMGSQuantized(q=q, m=m)):
        ledger = run(method, problem, rounds, trial=1).ledger
        matrices = [M * K] if isinstance(method, FedMAvg) else [M * K, K * K]
        assert ledger.uplink_scalars == rounds * m * sum(matrices)
        assert ledger.uplink_bits == rounds * m * sum(q * size + 32 for size in matrices)
        assert ledger.downlink_scalars == rounds * M * K * (10 if isinstance(method, FedMAvg) else m)
        assert ledger.downlink_bits == 32 * ledger.downlink_scalars
    D = np.random.default_rng(0).standard_normal((M, K))
    message = MaxNorm(q).compress(D, np.random.default_rng(0))
    assert len(message.pack(single=True)) == -(-message.bits // 8)


def test_a_width_does_not_change_the_clients_drawn() -> None:
    problem = blobs()
    uploads = []
    for q in (None, 3):
        method = FedMAvgQuantized(q=q, m=3, participation="pcp")
        uploads.append(list(np.diff(run(method, problem, 30, trial=4)["downlink_scalars"])))  # clients drawn, distinct
    assert uploads[0] == uploads[1]
    assert len(set(uploads[0])) > 1


def test_the_registered_names() -> None:
    table = registry.methods()
    assert table["fedmavg-quantized"].make(q=2, m=10, Qhat=5).compressor() == MaxNorm(2, "bound")
    assert table["fedmgs-quantized"].make(q=8, feedback=False).compressor() == MaxNorm(8, 1.0)
    assert table["fedmgs-quantized"].make(q=8, u=3.0).compressor() == MaxNorm(8, 3.0)
    assert table["fedmgs-quantized"].make(q=None).compressor() == Identity()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"q": 1}, "q: must be an integer from 2 to 31, not 1"),
        ({"q": 2.5}, "q: must be an integer from 2 to 31, not 2.5"),
        ({"u": 0.5}, "u: must be a number of at least 1 or 'bound', not 0.5"),
        ({"feedback": 1}, "feedback: must be true or false, not 1"),
        ({"m": 0}, "m: must be an integer of at least 1, not 0"),
    ],
)
@pytest.mark.parametrize("name", PAIRS)
def test_values_that_cannot_work_are_named(name: str, values: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError) as error:
        PAIRS[name][1](**values)
    assert str(error.value) == message
