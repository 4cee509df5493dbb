"""Clients with few samples are gathered: one product for many of them, and the numbers of clients taken one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from fedrepro import Clustering, FedMAvg, FedMGS, run
from fedrepro.problems.clustering import passes
from fedrepro.problems.clustering import problem as clustering
from fedrepro.problems.clustering.methods.sncp import FedMAvgSNCP, FedMGSSNCP
from fedrepro.runs.compute import execute
from fedrepro.runs.identity import plan as planning
from fedrepro.runs.storage.store import Store
from fedrepro.spec.read import load

M, N, K, P = 23, 260, 4, 13

METHODS = [
    FedMGS(m=5, Q1=3, Q2=4),
    FedMAvg(m=5, Q1=3, Q2=4),
    FedMAvg(m=5, Q1=3, Q2=4, participation="pcp"),
    FedMAvg(m=9, Q1=3, Q2=4, participation="pcp", pcp_repeat=True),
    FedMGSSNCP(limit=3, m=5, Q1=2, Q2=2),
    FedMAvgSNCP(limit=3, m=5, Q1=2, Qhat=2),
]


def problem(thin: bool = False) -> Clustering:
    draw = np.random.default_rng(5)
    X = draw.random((M, N)) * (draw.random((M, N)) < 0.4)
    return Clustering(sparse.csr_matrix(X) if thin else X, draw.permutation(np.arange(N) % P), K=K)


@pytest.mark.parametrize("thin", [False, True])
@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_gathered_or_apart_a_run_has_the_same_numbers(method: Any, thin: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    gathered = run(method, problem(thin), 12, trial=3)
    monkeypatch.setattr(clustering, "_SMALL_BYTES", 0)
    apart = run(method, problem(thin), 12, trial=3)
    np.testing.assert_allclose(gathered["objective"], apart["objective"], rtol=1e-11)
    np.testing.assert_allclose(gathered.state.W, apart.state.W, rtol=1e-8, atol=1e-10)
    np.testing.assert_array_equal(gathered["uplink_scalars"], apart["uplink_scalars"])


def test_blocks_of_small_clients_hold_their_rows_once(monkeypatch: pytest.MonkeyPatch) -> None:
    given = problem()
    (rows,) = given.blocks([1, 2, 7])
    assert isinstance(rows, np.ndarray)
    want = np.concatenate([np.arange(given.starts[p], given.starts[p + 1]) for p in (1, 2, 7)])
    np.testing.assert_array_equal(rows, want)
    assert given.blocks([3, 4]) == [slice(int(given.starts[3]), int(given.starts[5]))]  # neighbours: no copy
    monkeypatch.setattr(clustering, "_BLOCK_BYTES", 1)  # 64 rows, the least there is
    given = problem()
    parts = given.blocks([0, 2, 4, 6, 8])
    assert [len(part) for part in parts] == [64, 36]  # type: ignore[arg-type]
    assert np.unique(np.concatenate([np.arange(N)[part] for part in parts])).size == 100


def test_a_round_of_small_clients_makes_one_product(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 5 clients that are no neighbours: one product with W and one with what changed."""
    made: list[int] = []
    real = passes._products

    def counting(A: Any, B: Any, columns: Any) -> Any:
        made.append(1)
        return real(A, B, columns)

    monkeypatch.setattr(passes, "_products", counting)
    clients = np.array([[0, 2, 4, 6, 8]] * 3)

    def products(given: Clustering) -> float:
        made.clear()
        run(FedMGS(m=5, Q1=2, Q2=2), given, 3, clients=clients)
        rounds = len(made)
        made.clear()
        run(FedMGS(m=5, Q1=2, Q2=2), given, 1, clients=clients[:1])
        return (rounds - len(made)) / 2

    assert products(problem()) == 2
    monkeypatch.setattr(clustering, "_SMALL_BYTES", 0)
    assert products(problem()) == 10


@pytest.mark.parametrize("cached", [True, False])
def test_runs_on_samples_that_stay_in_the_cache_do_not_wait_for_each_other(
    cached: bool, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = planning.make([load(small, "quick")], stand_in=False)
    by_problem: dict[str, list[Any]] = {}
    for made_run in made.runs.values():
        by_problem.setdefault(made_run.problem_id, []).append(made_run)
    runs = max(by_problem.values(), key=len)
    assert len(runs) > 1
    entered: list[int] = []
    real = execute.Lockstep.run

    def watched(room: Any, jobs: Any) -> None:
        entered.append(len(jobs))
        real(room, jobs)

    monkeypatch.setattr(execute.Lockstep, "run", watched)
    monkeypatch.setattr(passes, "exact", lambda *size: True)
    if not cached:
        monkeypatch.setattr(passes, "CACHED_BYTES", 0)
    store = Store(tmp_path / "store")
    assert set(dict(execute.compute(runs, store, tmp_path / "scratch")).values()) == {"ok"}
    assert entered == ([] if cached else [len(runs)])
