"""What a time axis counts: the method's own work on warm kernels, with its start, with nodes in parallel or one after
another."""

from __future__ import annotations

import itertools
import json
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from click.testing import Result

import fedrepro as package
from fedrepro.datasets.types import Ratings
from fedrepro.ledger import Clock, Ledger
from fedrepro.plotting import series
from fedrepro.plotting.series import FigureData
from fedrepro.problems.completion.methods.fedmc_admm import FedMCADMM
from fedrepro.problems.completion.problem import Completion
from fedrepro.problems.gcca import linear_nodes
from fedrepro.problems.gcca.methods.altmaxvar import AltMaxVar
from fedrepro.problems.gcca.methods.cutemaxvar import CuteMaxVar
from fedrepro.problems.gcca.methods.mvlsa import MVLSA
from fedrepro.problems.gcca.problem import GCCA
from fedrepro.protocols import Method
from fedrepro.results.schema import VERSION, Sidecar, Timing
from fedrepro.runs.compute.drive import drive
from fedrepro.spec.axes import Axis, Reads
from fedrepro.spec.read import load


class Time:
    """A clock that goes on only where something works."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def work(self, seconds: float) -> None:
        self.now += seconds


class Nothing:
    """A problem that measures for 100 seconds."""

    default_metrics = ("zero",)

    def __init__(self, time: Time) -> None:
        self.time = time
        self.kept: dict[str, Any] = {}

    def measure(self, state: Any, names: Any) -> dict[str, float]:
        self.time.work(100.0)
        return {"zero": 0.0}

    @staticmethod
    def diverged(values: Any) -> None:
        return None


@dataclass(frozen=True)
class Works(Method):
    """Three nodes: 1, 2 and 3 seconds at the start, 8, 4 and 2 in a round; the server 0.5 after them, 0.25 between.

    What is loaded at the first call of all takes 1000 seconds.
    """

    loaded: ClassVar[set[str]] = set()
    nodes: bool = True

    def rounds(
        self, problem: Any, rng: Any, *, ledger: Ledger | None = None, init: Any = None, clients: Any = None
    ) -> Iterator[float]:
        assert ledger is not None
        now = problem.time
        self.load("start", now)
        ledger.clock.each(now.work, (1.0, 2.0, 3.0))
        now.work(0.5)
        yield float(rng.random())
        while True:
            self.load("round", now)
            with ledger.clock.nodes() as at:
                for i, seconds in enumerate((5.0, 4.0, 2.0, 3.0)):  # node 0 twice
                    with at(i % 3):
                        now.work(seconds)
                    now.work(0.25)
            now.work(0.5)
            yield float(rng.random())

    def load(self, what: str, now: Time) -> None:
        if what not in self.loaded:
            self.loaded.add(what)
            now.work(1000.0)


def driven(warm: bool) -> Any:
    Works.loaded.clear()
    now = Time()
    rng = np.random.default_rng(3)
    return drive(
        Works(), Nothing(now), 3, rng=rng, init=None, metrics=("zero",), record_dense=9, warm=warm, clock=now  # type: ignore[arg-type]
    )  # fmt: skip


def test_the_slowest_node_counts_and_the_time_in_turn_stands_beside_it() -> None:
    history = driven(warm=True)
    np.testing.assert_allclose(history.seconds, 3.5 + (8 + 4 * 0.25 + 0.5) * np.arange(4))
    np.testing.assert_allclose(history.serial, 6.5 + (14 + 4 * 0.25 + 0.5) * np.arange(4))


def test_loading_and_compiling_are_not_in_the_time_of_a_warm_run() -> None:
    cold, warm = driven(warm=False), driven(warm=True)
    np.testing.assert_allclose(cold.seconds - warm.seconds, [1000, 2000, 2000, 2000])
    np.testing.assert_allclose(cold.serial - warm.serial, [1000, 2000, 2000, 2000])
    assert cold.state == warm.state  # the numbers drawn are the same


def test_nodes_that_wait_for_each_other_twice_in_a_round() -> None:
    now = Time()
    clock = Clock(now)
    clock.each(now.work, (5.0, 1.0))
    clock.each(now.work, (1.0, 4.0))
    assert clock.times(now()) == (9.0, 11.0)


def test_nodes_at_work_on_several_threads_at_once() -> None:
    now = Time()
    clock = Clock(now)
    with clock.nodes() as at:
        first, second = at("a"), at("b")
        first.__enter__()
        now.work(1.0)
        second.__enter__()
        now.work(2.0)
        first.__exit__()
        now.work(1.0)
        second.__exit__()  # 3 seconds each, 2 of them together
        now.work(5.0)
    assert clock.times(now()) == (8.0, 11.0)


def test_work_kept_from_before_counts_as_if_it_were_done_again() -> None:
    now, kept = Time(), {}

    def make(clock: Clock) -> int:
        calls.append(clock)
        clock.each(now.work, (3.0, 1.0))
        now.work(0.5)
        return 7

    def spend(clock: Clock, key: int = 1) -> tuple[float, float]:
        began = now()
        assert clock.once(kept, "seven", key, lambda: make(clock)) == 7
        return clock.times(now() - began)

    calls: list[Clock] = []
    assert spend(Clock(now, cold=True)) == (3.5, 4.5)
    assert not kept  # a cold time is no time to keep
    assert spend(Clock(now)) == spend(Clock(now)) == spend(Clock(now, cold=True)) == (3.5, 4.5)
    assert len(calls) == 2
    assert spend(Clock(now), key=2) == (3.5, 4.5)
    assert len(calls) == 3


# Methods


def tiny_completion(threads: int) -> Completion:
    rng = np.random.default_rng(0)
    pairs = np.unique(rng.integers((40, 20), size=(400, 2)), axis=0)
    user, item = (np.ascontiguousarray(column, dtype=np.int32) for column in pairs.T)
    data = Ratings(user, item, rng.integers(1, 6, size=user.size).astype(float), 40, 20)
    return Completion(data, np.arange(40) % 8, r=2, reg="l2", threads=threads)


def views(I: int = 4, J: int = 3000) -> list[np.ndarray]:  # noqa: E741
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((J, 6))
    return [Z @ rng.standard_normal((6, 12)) + 0.1 * rng.standard_normal((J, 12)) for _ in range(I)]


@pytest.mark.parametrize("method", [AltMaxVar(m=5), CuteMaxVar(m=5, b=500), CuteMaxVar(start="randn")], ids=str)
def test_times_of_a_method_increase_and_are_no_longer_side_by_side_than_in_turn(method: Method) -> None:
    history = package.run(method, GCCA(views(), 3), 10, warm=True)
    for times in (history.seconds, history.serial):
        assert times[0] > 0
        assert (np.diff(times) > 0).all()
    assert (history.serial > history.seconds).all()
    assert history.serial[-1] < 4 * history.seconds[-1]


def test_a_slow_node_is_what_the_others_wait_for(monkeypatch: pytest.MonkeyPatch) -> None:
    update, problem = linear_nodes.LinearNode.update, GCCA(views(), 3)

    def slower(node: Any, G: np.ndarray) -> None:
        time.sleep(0.03 if node.view is problem.views[2] else 0.01)
        update(node, G)

    monkeypatch.setattr(linear_nodes.LinearNode, "update", slower)
    history = package.run(AltMaxVar(m=5), problem, 5)
    seconds, serial = np.diff(history.seconds), np.diff(history.serial)
    assert (seconds > 0.03).all()
    assert (serial - seconds > 0.03).all()  # the three others, that slept 0.01 each and more


@pytest.mark.parametrize("threads", [1, 2])
def test_the_clients_of_fedmc_admm_are_nodes(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    client, problem = FedMCADMM._client, tiny_completion(threads)

    def slow(method: FedMCADMM, problem: Any, state: Any, i: int) -> np.ndarray:
        time.sleep(0.02)
        return client(method, problem, state, i)

    monkeypatch.setattr(FedMCADMM, "_client", slow)
    history = package.run(FedMCADMM(m=5, N=2), problem, 3, warm=True)
    assert (np.diff(history.seconds) > 0.02).all()
    assert (np.diff(history.serial) > 0.10).all()
    assert (np.diff(history.serial - history.seconds) > 0.079).all()


def test_a_warm_start_counts_for_every_method_that_takes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from fedrepro.multiview.aligned_views import View

    svd, calls = View.left_svd, []

    def slow(view: View, m: int) -> Any:
        calls.append(view)
        time.sleep(0.02)
        return svd(view, m)

    monkeypatch.setattr(View, "left_svd", slow)
    problem = GCCA(views(), 3)
    for number, method in enumerate((AltMaxVar(m=5), CuteMaxVar(m=5), MVLSA(m=5))):
        history = package.run(method, problem, 2)
        assert history.seconds[0] > 0.02
        assert history.serial[0] > 0.08
        assert len(calls) == 4, number  # once for all of them


def test_warming_up_changes_nothing_but_the_times() -> None:
    method, problem = CuteMaxVar(m=5, b=100), GCCA(views(), 3)
    a, b = (package.run(method, problem, 6, rng=np.random.default_rng(1), warm=warm) for warm in (False, True))
    assert a.state.G.tobytes() == b.state.G.tobytes()
    assert a.ledger == b.ledger
    assert {k: v.tolist() for k, v in a.values.items()} == {k: v.tolist() for k, v in b.values.items()}


# From the command line to the panel

TIMED = """\
paper: beyond
figure: timed
title: "times"
problem: {name: gcca, K: 2}
metrics: [cost]
trials: 2
rounds: 4
datasets:
  syn: {name: gcca-synthetic, J: 60, N: 5, D: 4, I: 3, nu: 0.1}
dataset: syn
panels:
  a:
    x: seconds
    y: cost
    curves:
      - {algorithm: altmaxvar, m: 3}
      - {algorithm: altmaxvar, m: 3, b: 20}
      - {algorithm: optimal, role: level}
tiers: {smoke: {}, quick: {}, paper: {}}
"""


def test_the_sidecar_has_both_times_of_a_warm_run(
    fedrepro: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = tmp_path / "timed.yaml"
    spec.write_text(TIMED)
    update, loaded = linear_nodes.LinearNode.update, []

    def loading(node: Any, G: np.ndarray) -> None:
        if not loaded:
            loaded.append(time.sleep(1.5))  # as a kernel does that is compiled when it is first called
        update(node, G)

    monkeypatch.setattr(linear_nodes.LinearNode, "update", loading)
    ran = fedrepro("run", spec, "--jobs", 1)
    assert ran.exit_code == 0, ran.output
    path = tmp_path / "results" / "quick" / "beyond" / "timed.json"
    facts = json.loads(path.read_text())
    assert facts["schema"] == VERSION
    sidecar, figure = Sidecar.parse(facts), load(spec, "quick", [])
    assert loaded
    for curve in figure.panels[0].curves:
        for timing in sidecar.timing[curve.setting.series].values():
            assert len(timing.seconds) == len(timing.serial) == len(timing.rounds)
            assert 0 < timing.seconds[0] <= timing.serial[0]
            if curve.setting.algorithm == "altmaxvar":
                assert timing.rounds == (0, 1, 2, 3, 4)
                assert all(a < b for times in (timing.seconds, timing.serial) for a, b in itertools.pairwise(times))
                assert all(a < b < 1.4 for a, b in zip(timing.seconds, timing.serial, strict=True))
    frame = pd.read_csv(path.with_suffix(".csv"))
    full, batches, optimal = figure.panels[0].curves
    source, panel = FigureData(figure, frame, sidecar), figure.panels[0]
    for run in series.trials(source, batches, panel, x="seconds"):
        np.testing.assert_allclose(run.x, sidecar.timing[batches.setting.series][run.number].seconds)
    assert [series.collapsed(curve, panel) for curve in (full, batches, optimal)] == [" (T steps as one map)", "", ""]


def test_times_of_results_that_stand_are_kept(fedrepro: Callable[..., Result], tmp_path: Path) -> None:
    spec = tmp_path / "timed.yaml"
    spec.write_text(TIMED)
    fedrepro("run", spec, "--jobs", 1)
    path = tmp_path / "results" / "quick" / "beyond" / "timed.json"
    before = Sidecar.parse(json.loads(path.read_text())).timing
    shutil.rmtree(tmp_path / "results" / ".runs")
    spec.write_text(TIMED.replace("trials: 2", "trials: 3"))
    assert "3 runs computed, 6 reused" in fedrepro("run", spec, "--jobs", 1).output
    after = Sidecar.parse(json.loads(path.read_text())).timing
    for name, runs in before.items():
        assert set(after[name]) == {1, 2, 3}
        assert {trial: after[name][trial] for trial in runs} == runs
    known = json.loads(path.read_text())  # as results of version 2 have them: nodes in turn only
    in_turn = {s: {t: {**run_id, "seconds": []} for t, run_id in runs.items()} for s, runs in known["timing"].items()}
    path.write_text(json.dumps(known | {"timing": in_turn}))
    shutil.rmtree(tmp_path / "results" / ".runs")
    spec.write_text(TIMED.replace("trials: 2", "trials: 4"))
    assert "3 runs computed, 9 reused" in fedrepro("run", spec, "--jobs", 1).output
    last = Sidecar.parse(json.loads(path.read_text())).timing
    for name, runs in after.items():
        assert [last[name][trial].seconds != () for trial in (1, 2, 3, 4)] == [False, False, False, True]
        assert [last[name][trial].serial for trial in runs] == [runs[trial].serial for trial in runs]


def test_the_axis_of_time_in_turn(fedrepro: Callable[..., Result], tmp_path: Path) -> None:
    spec = tmp_path / "timed.yaml"
    spec.write_text(TIMED)
    figure = load(spec, "quick", [])
    curve = figure.panels[0].curves[1]
    rows = pd.DataFrame({"round": [0, 1, 2]})

    def along(axis: str, timing: Timing | None) -> list[float]:
        sidecar = Sidecar(timing={curve.setting.series: {1: timing}} if timing else {})
        places = series.along(
            FigureData(figure, rows, sidecar), curve, figure.panels[0], Axis(axis, "", Reads.TIMING), 1, rows
        )
        return places.tolist()

    both = Timing((0, 2), (1.0, 3.0), (2.0, 8.0))
    assert along("seconds", both) == [1.0, 2.0, 3.0]
    assert along("serial_seconds", both) == [2.0, 5.0, 8.0]
    assert np.isnan(along("seconds", Timing((0, 2), (), (2.0, 8.0)))).all()
    assert np.isnan(along("serial_seconds", Timing((0, 2), (1.0, 3.0)))).all()
    assert np.isnan(along("seconds", None)).all()


def test_a_sidecar_of_before_has_the_time_of_nodes_in_turn() -> None:
    second = {"schema": 2, "timing": {"s": {"1": {"rounds": [0, 3], "seconds": [0.5, 2.0]}}}}
    first = {"timing": {"s": {"1": {"round": [0, 3], "seconds": [0.5, 2.0]}}}}
    for facts in (first, second):
        assert Sidecar.parse(facts).timing == {"s": {1: Timing((0, 3), (), (0.5, 2.0))}}
    now = Sidecar(timing={"s": {1: Timing((0, 3), (0.25, 1.0), (0.5, 2.0))}})
    assert Sidecar.parse(json.loads(now.text())) == now
    with pytest.raises(ValueError, match=rf"version {VERSION + 1} of the sidecar is unknown \(known: 1 to {VERSION}\)"):
        Sidecar.parse({"schema": VERSION + 1})


def test_numbers_of_a_sidecar_take_one_line_and_words_stay_as_they_are() -> None:
    odd = "in [\n 1,\n 2\n] and [ 1,  2 ]"
    seconds = tuple(float(i) / 7 for i in range(5000))
    about = Sidecar(
        missing=(odd, "[\n3\n]"),
        seconds_per_run={odd: seconds, "none": (), "odd": (float("nan"), -1e-300, 2e22)},
        settings=({"alpha": [1, 2.5], "names": ["a", "b"], "none": []},),
    )
    text = about.text()
    back = Sidecar.parse(json.loads(text))
    assert repr(back) == repr(about)  # NaN is not equal to itself
    assert text.count("\n") < 100
