"""SNCP: the loop transcribed around the papers' algorithms, its penalties, its ends, and its clusterings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import Result

from fedrepro import registry
from fedrepro.errors import ParameterError
from fedrepro.problems.clustering.methods.fedmavg import FedMAvg
from fedrepro.problems.clustering.methods.fedmgs import FedMGS
from fedrepro.problems.clustering.methods.sncp import CentralizedSNCP, FedMAvgSNCP, FedMGSSNCP
from fedrepro.problems.clustering.problem import Clustering
from fedrepro.protocols import Method
from fedrepro.runs.compute.drive import History, run

from .naive_clustering import Naive, fedmavg, fedmgs, instance, top

Round = Callable[[Naive, np.ndarray, np.ndarray, int], tuple[np.ndarray, np.ndarray]]

LOOP: dict[str, Any] = {"tol": 3e-3, "factor": 1.5, "rho0": 1e-4, "cap": 2e-3, "period": 7, "limit": 30, "stop": 1e-8}


def naive_sncp(
    n: Naive, W: np.ndarray, H: np.ndarray, one_round: Round, *, tol: float, factor: float, rho0: float, cap: float,
    period: int, limit: int, stop: float,
) -> list[tuple[np.ndarray, np.ndarray, float, float]]:  # fmt: skip
    """The loop of the module's docstring: W, H, the rho in force and F of every round."""
    n.rho = rho0
    path = [(W, H, n.rho, n.F(W, H))]
    for s in range(1, limit + 1):
        W, H = one_round(n, W, H, s)
        path.append((W, H, n.rho, n.F(W, H)))
        eps = abs(path[s][3] - path[s - 1][3]) / path[s - 1][3]
        if eps < stop:
            break
        if eps < tol or s % period == 0:
            n.rho = min(factor * n.rho, cap)
    return path


def palm(n: Naive, W: np.ndarray, H: np.ndarray, s: int) -> tuple[np.ndarray, np.ndarray]:
    """One H and one W step on all samples."""
    H = n.h_steps(0, W, H, 1)
    return n.clip(W - n.grad_W(0, W, H) / (0.51 * top(n.B(0, H)))), H


ROUNDS: dict[str, tuple[Method, Round]] = {
    "fedmgs": (FedMGSSNCP(Q1=3, Q2=4, **LOOP), lambda n, W, H, s: fedmgs(n, W, H, 1, 3, 4)[-1]),
    "fedmavg": (FedMAvgSNCP(Q1=3, Qhat=12, **LOOP), lambda n, W, H, s: fedmavg(n, W, H, [12 // s + 1], 3)[-1]),
    "centralized": (CentralizedSNCP(**LOOP), palm),
}


@pytest.mark.parametrize("name", ROUNDS)
def test_the_loop_is_the_one_described(name: str) -> None:
    X, client, W0, H0 = instance(1)
    if name == "centralized":
        client = np.zeros_like(client)
    method, naive_round = ROUNDS[name]
    path = naive_sncp(Naive(X, client, 3), W0, H0, naive_round, **LOOP)
    history = run(method, Clustering(X, client, K=3), 99, init=(W0, H0), metrics=("objective", "rho"), keep=True)
    assert history.states is not None
    assert len(history.states) == len(path) == LOOP["limit"] + 1
    unit = Naive(X, client, 3).unit
    for s, (W, H, rho, F) in enumerate(path):
        assert history["rho"][s] == pytest.approx(rho, rel=1e-12)
        assert history["objective"][s] == pytest.approx(F / unit, rel=1e-10)
        np.testing.assert_allclose(history.states[s].W, W, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(history.states[s].H, H, rtol=1e-9, atol=1e-9)
    assert len(set(history["rho"])) > 4  # the loop did something


@pytest.mark.parametrize("m", [None, 2])
def test_rho_never_falls_grows_by_the_factor_and_stops_at_the_cap(m: int | None) -> None:
    X, client, W0, H0 = instance(2)
    method = FedMGSSNCP(m=m, tol=1e-2, factor=2.0, rho0=1e-5, cap=3e-4, stop=0.0)
    rho = run(method, Clustering(X, client, K=3), 200, init=(W0, H0), metrics=("rho",))["rho"]
    assert rho[0] == 1e-5
    assert rho[-1] == 3e-4
    growth = rho[1:] / rho[:-1]
    assert set(np.round(growth, 12)) <= {1.0, 2.0, round(3e-4 / 1.6e-4, 12)}
    np.testing.assert_allclose(np.unique(rho), [1e-5, 2e-5, 4e-5, 8e-5, 1.6e-4, 3e-4], rtol=1e-12)


def test_until_rho_is_raised_it_is_the_method_itself_and_then_it_goes_on_from_there() -> None:
    X, client, W0, H0 = instance(3)
    problem = Clustering(X, client, K=3)
    loop = run(FedMGSSNCP(m=3, tol=0.0, period=10, stop=0.0), problem, 12, init=(W0, H0), metrics=("rho", "objective"))
    plain = run(FedMGS(m=3), problem, 12, init=(W0, H0), metrics=("objective",))
    assert list(loop["rho"][:11]) == [1e-8] * 11
    assert list(loop["rho"][11:]) == [1.5 * 1e-8] * 2
    np.testing.assert_array_equal(loop["objective"][:11], plain["objective"][:11])
    assert 0 < abs(loop["objective"][11] / plain["objective"][11] - 1) < 1e-5


def ends_at(method: Method, rounds: int = 60) -> int:
    X, client, W0, H0 = instance(4)
    return int(run(method, Clustering(X, client, K=3), rounds, init=(W0, H0)).rounds[-1])


def test_it_ends_at_the_limit_or_when_the_objective_stands_still() -> None:
    assert ends_at(FedMGSSNCP(limit=17, stop=0.0)) == 17
    assert ends_at(FedMGSSNCP(limit=None, stop=0.0)) == 60
    assert ends_at(FedMGSSNCP(stop=1.0)) == 1
    X, client, W0, H0 = instance(4)
    method = FedMGSSNCP(tol=0.0, period=None, stop=1e-4)
    F = run(method, Clustering(X, client, K=3), 500, init=(W0, H0))["objective"]
    eps = np.abs(np.diff(F)) / F[:-1]
    assert eps[-1] < 1e-4
    assert (eps[:-1] >= 1e-4).all()


def groups_of_four_clients() -> Clustering:
    """Three separated groups, over four clients that have some of each."""
    labels = np.arange(60) % 3
    X = np.eye(5, 3)[:, labels] + 0.1 * np.random.default_rng(0).random((5, 60))
    return Clustering(X, np.arange(60) // 15, K=3, labels=labels)


def test_a_client_that_is_not_drawn_again_is_no_divergence() -> None:
    # client 0 takes part until rho is raised: columns of its H keep two entries, and their penalty grows with rho
    problem = groups_of_four_clients()
    draws = np.array([[s % 4] for s in range(40)] + [[1 + s % 3] for s in range(40)])
    method = FedMGSSNCP(m=1, Q1=5, Q2=5, tol=0.0, period=40, factor=1e10, cap=100.0)
    history = run(method, problem, rounds=80, clients=draws, metrics=["objective", "rho"])
    start, end = (history["objective"][i] for i in (0, -1))
    assert end > 2 * start
    assert history["rho"][-1] == 100.0
    assert problem.residual(history.state) / problem.norm2 < start
    assert history.diverged is None
    assert Clustering.diverged(history.values) is not None


@pytest.mark.parametrize("name", sorted(n for n, a in registry.methods().items() if n.endswith("sncp")))
def test_every_registered_loop_says_that_it_raises_rho(name: str) -> None:
    assert registry.methods()[name].cls.raises


def test_only_these_do() -> None:
    assert {n for n, a in registry.methods().items() if a.cls.raises} == {
        n for n in registry.methods() if n.endswith("sncp")
    }


def test_messages_are_the_methods_own_and_the_centralized_loop_sends_nothing() -> None:
    X, client, W0, H0 = instance(5)
    problem = Clustering(X, client, K=3)
    for loop, plain in ((FedMGSSNCP(m=2), FedMGS(m=2)), (FedMAvgSNCP(m=2), FedMAvg(m=2))):
        both = [run(method, problem, 9, init=(W0, H0)).ledger.totals() for method in (loop, plain)]
        assert both[0] == both[1]
    history = run(CentralizedSNCP(), problem, 9, init=(W0, H0))
    assert history.ledger.totals() == dict.fromkeys(history.ledger.totals(), 0)
    assert history.ledger.setup_scalars == 0


def blobs(P: int = 6) -> tuple[Clustering, np.ndarray]:
    """Well separated clusters, in random order."""
    rng = np.random.default_rng(0)
    labels = rng.integers(4, size=300)
    X = np.maximum((5 * (rng.random((30, 4)) > 0.6))[:, labels] + 0.5 * rng.standard_normal((30, 300)), 0.0)
    return Clustering(X, rng.integers(P, size=300), labels=labels), labels


@pytest.mark.parametrize(
    "method",
    [FedMGSSNCP(tol=5e-5, cap=1.0), FedMGSSNCP(m=3, tol=5e-5, cap=1.0), FedMAvgSNCP(tol=1e-4), CentralizedSNCP()],
    ids=lambda method: type(method).__name__,
)
def test_h_becomes_an_assignment_and_it_is_the_right_one(method: Method) -> None:
    problem, _ = blobs()
    history = run(method, problem, 2000, trial=1, metrics=("objective", "accuracy", "rho"))
    assert history["accuracy"][-1] == 1.0
    assert spill(history) < 0.02
    plain = run(FedMGS(m=3), problem, 300, trial=1)
    assert spill(plain) > 0.1


def spill(history: History) -> float:
    """The largest share of a column of H outside its largest entry."""
    H = history.state.H
    return float((1 - H.max(axis=0) / H.sum(axis=0)).max())


def test_the_registered_names_carry_the_papers_thresholds() -> None:
    table = registry.methods()
    presets = {
        name: tuple(getattr(table[name].make(), key) for key in ("tol", "cap", "period", "limit"))
        for name in ("fedmavg-sncp", "fedmgs-sncp", "fedcavg-sncp", "fedcgds-sncp", "sncp")
    }
    assert presets == {
        "fedmavg-sncp": (1e-5, 100.0, 200, 2000),
        "fedmgs-sncp": (5e-5, 1.0, 200, 1000),
        "fedcavg-sncp": (2e-5, 100.0, 200, 2000),
        "fedcgds-sncp": (2e-5, 1.0, 200, 1000),
        "sncp": (1e-5, 100.0, 500, 2000),
    }
    method = table["fedmgs-sncp"].make(m=10, Q1=10, Q2=100, tol=1e-4)
    assert (method.m, method.Q1, method.Q2, method.tol, method.gamma1) == (10, 10, 100, 1e-4, 1.02)
    assert (table["fedcgds-sncp"].make().Q1, table["fedcgds-sncp"].make().Q2) == (100, 100)
    assert table["fedcavg-sncp"].make().Qhat == 10


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"tol": -1.0}, "tol: must be a number of at least 0, not -1.0"),
        ({"factor": 1.0}, "factor: must be a number greater than 1, not 1.0"),
        ({"rho0": 0.0}, "rho0: must be a number greater than 0, not 0.0"),
        ({"rho0": 2.0, "cap": 1.0}, "cap: must be at least rho0 = 2, not 1"),
        ({"period": 0}, "period: must be an integer of at least 1, not 0"),
        ({"limit": 0.5}, "limit: must be an integer of at least 1, not 0.5"),
        ({"stop": "no"}, "stop: must be a number of at least 0, not 'no'"),
        ({"Q1": 0}, "Q1: must be an integer of at least 1, not 0"),
    ],
)
def test_values_that_cannot_work_are_named(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError) as error:
        FedMGSSNCP(**values)
    assert str(error.value) == message


def test_the_centralized_loop_has_no_draw_to_replay() -> None:
    X, client, _, _ = instance(6)
    with pytest.raises(ParameterError, match=r"^clients: the method is centralized: there is no draw to replay$"):
        run(CentralizedSNCP(), Clustering(X, client, K=3), 1, clients=[[0]])
    with pytest.raises(ParameterError, match=r"^gamma: must be a number of at least 1, not 0\.5$"):
        CentralizedSNCP(gamma=0.5)


def test_results_say_so_too(small: Path, tmp_path: Path, fedrepro: Callable[..., Result]) -> None:
    text = small.read_text(encoding="utf-8")
    curves = "- {algorithm: fedcgds-sncp, m: 1, Q1: 1, Q2: 1, tol: 1.0, factor: 1e6, cap: 1e6}\n"
    head, _ = text.split("      - {algorithm: fedcavg")
    small.write_text(f"{head}      {curves}tiers: {{smoke: {{}}, quick: {{}}, paper: {{}}}}\n", encoding="utf-8")
    assert "0 diverged" in fedrepro("run", small, "-j", 1).output
    rows = pd.read_csv(tmp_path / "results/quick/beyond/small.csv")
    assert set(rows["status"]) == {"ok"}
    ends = rows[rows["metric"] == "objective"].groupby("trial")["value"]
    assert (ends.last() > ends.first()).all()
