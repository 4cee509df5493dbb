"""Runs in step: one pass over the samples serves several, and each gets the bits it gets alone."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from fedrepro import Clustering, FedMAvg, FedMGS, FedPALM
from fedrepro.problems.clustering import passes
from fedrepro.problems.clustering import problem as clustering
from fedrepro.problems.clustering.methods.sncp import FedMGSSNCP
from fedrepro.problems.clustering.passes import Pass, exact, go
from fedrepro.runs.compute import execute, lockstep
from fedrepro.runs.compute.drive import History, run
from fedrepro.runs.compute.groups import groups
from fedrepro.runs.compute.lockstep import Lockstep, Member
from fedrepro.runs.compute.run import Run
from fedrepro.runs.identity import plan as planning
from fedrepro.runs.storage.store import Store
from fedrepro.spec.read import load

N, M, K, P = 230, 37, 3, 7


def problem(make_sparse: bool = False) -> Clustering:
    draw = np.random.default_rng(3)
    X = draw.random((M, N)) * (draw.random((M, N)) < 0.3)
    return Clustering(sparse.csr_matrix(X) if make_sparse else X, np.arange(N) % P, K=K)


def together(problem: Clustering, jobs: list[tuple[Any, int, int]]) -> list[History]:
    """Histories of (method, trial, rounds) run in step."""
    histories: dict[int, History] = {}

    def job(number: int) -> Callable[[Member], None]:
        method, trial, rounds = jobs[number]

        def live(member: Member) -> None:
            own = copy.copy(problem)
            own.meet = member.over
            histories[number] = run(method, own, rounds, trial=trial)

        return live

    Lockstep(problem.X).run([job(number) for number in range(len(jobs))])
    return [histories[number] for number in range(len(jobs))]


def same(first: History, second: History) -> bool:
    arrays = [(first[name], second[name]) for name in ("objective", "uplink_scalars")]
    arrays += [(first.state.W, second.state.W), (first.state.Hs, second.state.Hs)]
    return all(np.array_equal(a, b) for a, b in arrays)


# Where BLAS treats columns unalike (other kernels than those asked for), runs are not brought together at all.
alike = pytest.mark.skipif(not exact(64, M, K), reason="this BLAS gives other bits for other widths")


@alike
@pytest.mark.parametrize("gathered", [False, True])
@pytest.mark.parametrize("make_sparse", [False, True])
def test_in_step_a_run_has_the_bits_it_has_alone(
    make_sparse: bool, gathered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Different methods, parameters, trials and lengths at once; some end early, one by itself."""
    monkeypatch.setattr(clustering, "_SMALL_BYTES", 1e9 if gathered else 0)
    jobs = [
        (FedMGS(Q1=2, Q2=5), 1, 6),
        (FedMGS(Q1=3, Q2=1), 2, 4),
        (FedMGS(m=3, Q1=3, Q2=4), 1, 5),
        (FedMAvg(Q1=2, Q2=3), 1, 6),
        (FedMAvg(m=2, Q1=2, Qhat=4), 3, 6),
        (FedMAvg(m=2, Q1=2, Q2=2, participation="pcp"), 1, 6),
        (FedPALM(Q=4), 1, 2),
        (FedMGSSNCP(limit=3, Q1=2, Q2=2), 1, 9),
    ]
    given = problem(make_sparse)
    for (method, trial, rounds), joint in zip(jobs, together(given, jobs), strict=True):
        assert same(joint, run(method, given, rounds, trial=trial)), method


def test_a_pass_equals_the_products_it_stands_for() -> None:
    """To rounding: the sums over parts are taken in another order than in one product."""
    given, draw = problem(), np.random.default_rng(0)
    W = [draw.random((M, k)) for k in (1, 3, 4, 6)]
    kept, made = [np.zeros((N, w.shape[1])) for w in W], [np.zeros_like(w) for w in W]

    def step(number: int) -> Callable[[slice, np.ndarray], np.ndarray]:
        def keep(part: slice, T: np.ndarray) -> np.ndarray:
            kept[number][part] = T
            return T + 1.0

        return keep

    parts = [slice(0, 100), slice(100, 101), slice(101, N)]
    go(given.X, [Pass(parts, step(i), w, out) for i, (w, out) in enumerate(zip(W, made, strict=True))])
    for w, T, out in zip(W, kept, made, strict=True):
        np.testing.assert_allclose(T, given.X @ w, rtol=1e-13)
        np.testing.assert_allclose(out, given.X.T @ (given.X @ w + 1.0), rtol=1e-13)


def test_a_pass_may_read_only_or_send_only() -> None:
    given, seen, out = problem(), [], np.zeros((M, K))
    go(given.X, [Pass([slice(0, 5)], lambda part, T: seen.append(T), np.ones((M, K)))])  # type: ignore[func-returns-value]
    np.testing.assert_allclose(seen[0], given.X[:5] @ np.ones((M, K)), rtol=1e-14)
    go(given.X, [Pass([slice(0, 5)], lambda part, T: np.ones((5, K)) if T is None else None, out=out)])
    np.testing.assert_allclose(out, given.X[:5].T @ np.ones((5, K)), rtol=1e-14)


def test_passes_over_the_same_parts_are_made_together(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    real = passes.go

    def counting(X: Any, wanted: Any) -> None:
        sizes.append(len(wanted))
        real(X, wanted)

    monkeypatch.setattr("fedrepro.runs.compute.lockstep.go", counting)
    together(problem(), [(FedMGS(Q1=1, Q2=1), trial, 3) for trial in (1, 2, 3, 4)])
    assert set(sizes) == {4}
    sizes.clear()
    together(problem(), [(FedMGS(Q1=1, Q2=1), 1, 2), (FedMGS(Q1=1, Q2=1), 2, 5)])
    assert sizes[-1] == 1  # the other has ended


def test_a_job_that_fails_leaves_nobody_waiting() -> None:
    given = problem()

    def fails(member: Member) -> None:
        raise ValueError("broken")

    def works(member: Member) -> None:
        own = copy.copy(given)
        own.meet = member.over
        run(FedMGS(Q1=1, Q2=1), own, 50)

    began = time.perf_counter()
    with pytest.raises(ValueError, match="broken"):
        Lockstep(given.X).run([works, fails, works])
    assert time.perf_counter() - began < 30


def test_a_pass_that_fails_ends_all_with_its_error() -> None:
    def wants(member: Member) -> None:
        member.over(Pass([slice(0, 5)], lambda part, T: np.zeros((99, K)), out=np.zeros((M, K))))

    with pytest.raises(ValueError, match="mismatch"):
        Lockstep(problem().X).run([wants, wants])


@pytest.mark.parametrize("reason", [MemoryError("for the joint pass"), ValueError("no such shape")])
def test_runs_whose_joint_pass_fails_are_made_alone(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: Exception
) -> None:
    """A joint pass takes more memory than each alone; and what is wrong with one run must not end the others."""
    made = planning.make([load(small, "quick")], stand_in=False)
    by_problem: dict[str, list[Run]] = {}
    for planned in made.runs.values():
        by_problem.setdefault(planned.problem_id, []).append(planned)
    runs = max(by_problem.values(), key=len)

    def go(X: Any, wanted: list[Pass]) -> None:
        if len(wanted) > 1:
            raise reason
        passes.go(X, wanted)

    monkeypatch.setattr(lockstep, "go", go)
    monkeypatch.setattr(Clustering, "together", lambda self: True)
    store = Store(tmp_path / "store")
    assert dict(execute.compute(runs, store, tmp_path / "scratch")) == {planned.id: "ok" for planned in runs}
    assert len(runs) > 1
    assert all(store.has(planned.id) for planned in runs)


def test_the_clock_counts_own_work_and_a_part_of_what_is_shared() -> None:
    seconds: list[float] = []

    def sleepy(member: Member) -> None:
        def slow(part: slice, T: np.ndarray) -> None:
            time.sleep(0.05)

        began = member.clock()
        member.over(Pass([slice(0, 5)], slow, np.ones((M, K))))
        seconds.append(member.clock() - began)

    began = time.perf_counter()
    Lockstep(problem().X).run([sleepy, sleepy, sleepy, sleepy])
    assert all(own >= 0.05 for own in seconds)  # four slept 0.05 s each in one joint pass: a quarter of 0.2 s for each
    assert sum(seconds) <= time.perf_counter() - began


def test_methods_that_gain_nothing_by_company_are_alone(tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(
        "paper: fedc\nproblem: {name: clustering}\nfigure: test\ntitle: t\nrounds: 2\ntrials: 3\n"
        "dataset: {name: synthetic, M: 20, N: 60, K: 3}\npartition: {name: uniform, P: 4}\n"
        "panels:\n  a:\n    title: t\n    curves:\n"
        "      - {algorithm: fedcpalm, Q: 4}\n      - {algorithm: fedcavg, Q1: 2, Q2: 1}\n",
        encoding="utf-8",
    )
    runs = list(planning.make([load(spec, "paper")], stand_in=False).runs.values())
    names_of_groups = [
        {run.setting.algorithm for run in group} for group in groups(runs, dict.fromkeys((r.id for r in runs), 1.0), 1)
    ]
    assert sorted(map(sorted, names_of_groups)) == [["fedcavg"], ["fedcpalm"], ["fedcpalm"], ["fedcpalm"]]
