"""FedPALM: fedmf Remark 1 transcribed, one client as a limit, the stop rule, its messages."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import sparse

from fedrepro import registry
from fedrepro.errors import ParameterError
from fedrepro.problems.clustering.methods.fedmgs import FedMGS
from fedrepro.problems.clustering.methods.fedpalm import FedPALM
from fedrepro.problems.clustering.problem import Clustering
from fedrepro.runs.compute.drive import run

from .naive_clustering import Naive, compare, fedpalm, instance


@pytest.mark.parametrize("Q", [2, 10])
@pytest.mark.parametrize("rho", [1e-8, 0.02])
def test_a_round_is_the_remark_of_the_paper(Q: int, rho: float) -> None:
    X, client, W0, H0 = instance(1)
    naive = Naive(X, client, 3, rho)
    history = run(FedPALM(Q=Q), Clustering(X, client, K=3, rho=rho), 5, init=(W0, H0), keep=True)
    compare(history, fedpalm(naive, W0, H0, 5, Q), naive)


def test_one_client_is_gradient_sharing() -> None:
    X, _, W0, H0 = instance(2)
    problem = Clustering(X, K=3)
    palm = run(FedPALM(Q=2, stop=None), problem, 10, init=(W0, H0))
    central = run(FedMGS(Q1=1, Q2=1, gamma1=1.02, gamma2=1.02), problem, 10, init=(W0, H0))
    np.testing.assert_allclose(palm["objective"], central["objective"], rtol=1e-12)


def test_more_local_steps_are_more_rounds_of_one_client() -> None:
    X, _, W0, H0 = instance(3)
    problem = Clustering(X, K=3)
    long = run(FedPALM(Q=8, stop=None), problem, 3, init=(W0, H0))
    short = run(FedPALM(Q=2, stop=None), problem, 12, init=(W0, H0))
    np.testing.assert_allclose(long["objective"], short["objective"][::4], rtol=1e-12)


def test_it_stops_once_w_has_settled() -> None:
    X, client, W0, H0 = instance(4)
    problem = Clustering(X, client, K=3)
    history = run(FedPALM(Q=2, stop=1e-3), problem, 2000, init=(W0, H0), keep=True)
    assert history.states is not None
    W = [state.W for state in history.states]
    changes = [np.linalg.norm(b - a) / np.linalg.norm(a) for a, b in itertools.pairwise(W)]
    assert len(history.rounds) < 2001
    assert changes[-1] < 1e-3
    assert min(changes[:-1]) >= 1e-3
    assert len(run(FedPALM(Q=2, stop=None), problem, len(changes) + 5, init=(W0, H0)).rounds) == len(changes) + 6


def test_sparse_samples_and_zero_clients() -> None:
    X, client, W0, H0 = instance(5, zeros=0.6)
    X[:, client == 1] = 0.0
    H0[:, client == 1] = 0.0
    naive = Naive(X, client, 3, lo=0.0)
    dense = run(FedPALM(Q=4), Clustering(X, client, K=3), 4, init=(W0, H0))
    thin = run(FedPALM(Q=4), Clustering(sparse.csr_matrix(X), client, K=3), 4, init=(W0, H0))
    np.testing.assert_allclose(thin["objective"], dense["objective"], rtol=1e-12)
    assert dense["objective"][-1] == pytest.approx(naive.F(dense.state.W, dense.state.H) / naive.unit, rel=1e-12)


def test_the_ledger_counts_one_w_each_way_for_every_client() -> None:
    X, client, W0, H0 = instance(6)
    history = run(FedPALM(Q=2), Clustering(X, client, K=3), 4, init=(W0, H0))
    np.testing.assert_array_equal(history["uplink_scalars"], np.arange(5) * 5 * 7 * 3)
    np.testing.assert_array_equal(history["downlink_scalars"], np.arange(5) * 5 * 7 * 3)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"Q": 3}, "Q: must be even (Q/2 steps on H, Q/2 on W), not 3"),
        ({"Q": 0}, "Q: must be an integer of at least 2, not 0"),
        ({"gamma": 0.5}, "gamma: must be a number of at least 1, not 0.5"),
        ({"stop": -1}, "stop: must be a number of at least 0, not -1"),
    ],
)
def test_bad_parameters_are_refused(values: dict[str, object], message: str) -> None:
    with pytest.raises(ParameterError) as error:
        FedPALM(**values)  # type: ignore[arg-type]
    assert str(error.value) == message


def test_draws_are_refused_and_the_cost_grows_with_q() -> None:
    X, client, W0, H0 = instance(7)
    with pytest.raises(ParameterError, match="every client takes part in every round: there is no draw to replay"):
        run(FedPALM(), Clustering(X, client, K=3), 1, init=(W0, H0), clients=[[1]])
    facts = {"M": 10, "N": 20, "K": 3, "P": 4}
    few, many = (FedPALM.cost({"Q": Q}, facts).round for Q in (2, 20))
    assert many.flops == pytest.approx(10 * few.flops)
    assert many.bytes == few.bytes  # a client's samples stay in the cache over its steps
    assert registry.methods()["fedcpalm"].make(Q=4) == registry.methods()["fedpalm"].make(Q=4) == FedPALM(Q=4)
