"""Predicted time and memory: they grow with the work, are stored, and determine how many workers fit."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from fedrepro import registry
from fedrepro.cli.main import main
from fedrepro.cli.options import Memory
from fedrepro.errors import UserError
from fedrepro.protocols import Cost, Work
from fedrepro.runs.compute.groups import MOST
from fedrepro.runs.compute.run import Run
from fedrepro.runs.identity import plan
from fedrepro.runs.predict import calibrate, first_rounds
from fedrepro.runs.predict import timings as predict
from fedrepro.runs.predict.machine import PROBED, TYPICAL, Machine
from fedrepro.spec.find import load_all

from .conftest import ROOT


@pytest.fixture(autouse=True)
def nothing_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEDREPRO_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(ROOT)


def runs_of(figure: str, tier: str) -> list[Run]:
    return list(plan.make(load_all((figure,), tier, ()), True).runs.values())


def seconds(run: Run, tmp_path: Path) -> float:
    return predict.Timings(tmp_path / "none").seconds(run)


def changed(run: Run, **what: Any) -> Run:
    return dataclasses.replace(run, setting=dataclasses.replace(run.setting, **what))


@pytest.mark.parametrize("figure", ["fedmf/fig1", "fedmc/fig3", "gcca/fig4", "gcca/fig11", "perfedsi/fig1"])
def test_twice_the_rounds_take_twice_as_long(figure: str, tmp_path: Path) -> None:
    for run in runs_of(figure, "paper")[::40]:
        if not registry.methods()[run.setting.algorithm].cls.one_shot:
            once, twice = (seconds(changed(run, rounds=n, record_every=10), tmp_path) for n in (20_000, 40_000))
            assert 1.95 < twice / once < 2.05


def test_clients_samples_and_clusters_cost_what_they_should(tmp_path: Path) -> None:
    run = next(run for run in runs_of("fedmf/fig1", "paper") if run.setting.algorithm == "fedmavg")
    data = dict(run.setting.dataset_params)
    larger = changed(run, dataset_params={**data, "N": 4 * data["N"]})
    assert 3.0 < seconds(larger, tmp_path) / seconds(run, tmp_path) < 4.1
    assert predict.stored(larger) == pytest.approx(4 * predict.stored(run))
    few = changed(run, params={**run.setting.params, "participation": "pcp", "m": 5})
    assert seconds(few, tmp_path) < 0.5 * seconds(run, tmp_path)


def test_sparse_data_count_their_stored_entries(tmp_path: Path) -> None:
    run = next(run for run in runs_of("gcca/fig8", "paper") if run.setting.algorithm == "altmaxvar")
    size = {"J": 20_000, "N": 1000, "D": 50}
    sparse = changed(run, dataset="gcca-sparse", dataset_params={**run.setting.dataset_params, **size})
    plain = changed(run, dataset="gcca-synthetic", dataset_params=size)
    assert predict.stored(sparse) < 0.2 * predict.stored(plain)
    assert seconds(sparse, tmp_path) < seconds(plain, tmp_path)


def test_the_largest_figure_is_predicted_in_hours_and_gigabytes(tmp_path: Path) -> None:
    runs = runs_of("gcca/fig9", "paper")
    timings = predict.Timings(tmp_path / "none")
    assert 600.0 < timings.total(runs, 2) < 6 * 3600.0
    assert 2e9 < predict.memory(runs, 1) < 10e9
    quick = runs_of("gcca/fig9", "quick")
    assert 3.0 < timings.total(quick, 1) < 600.0


def test_every_dataset_says_how_large_it_is_in_a_spec() -> None:
    specs = tuple(sorted(str(path) for path in ROOT.glob("experiments/*/*.yaml") if "discrepancies" not in path.name))
    for tier in ("quick", "paper"):
        for run in predict.different(plan.make(load_all(specs, tier, ()), True).runs.values()):
            assert predict.stored(run) > 0
            assert predict.preparing(run).holds >= predict.stored(run)
            assert None not in predict.facts(run).values()


def test_partitions_of_a_dataset_share_compiled_networks() -> None:
    run = next(run for run in runs_of("perfedsi/fig1", "quick") if run.setting.partition_params["per_alphabet"] == 10)
    other = changed(run, partition_params={**run.setting.partition_params, "per_alphabet": 1})
    assert predict.firsts(run) == predict.firsts(other) != {}
    narrow = changed(run, problem_params={**run.setting.problem_params, "widths": [8, 8, 8, 8]})
    assert not predict.firsts(run).keys() & predict.firsts(narrow).keys()


def test_quantized_messages_load_what_quantizes_them() -> None:
    for figure, plain in (("beyond/theory_gcca", frozenset()), ("gcca/fig11", frozenset({"jax", "sklearn"}))):
        runs = runs_of(figure, "quick")
        sent = {
            run.setting.params.get("q") is not None: predict.needed([run]) for run in runs if "T" in run.setting.params
        }
        assert sent == {False: plain, True: plain | {"numba"}}


@pytest.mark.parametrize(("name", "users"), [("netflix", 300), ("movielens-10m", 500), ("movielens-1m", 600)])
def test_few_users_reach_few_items(name: str, users: int) -> None:
    dataset = registry.datasets()[name]
    loader = dataset.make(users=users)
    reached = dataset.stand_in(loader, np.random.default_rng(1)).items
    assert 0.85 < loader.expected()["items"] / reached < 1.15
    assert dataset.make().expected()["items"] <= dataset.cls.scale.items


def test_what_was_measured_is_kept_and_a_damaged_file_is_measured_again(tmp_path: Path) -> None:
    path = tmp_path / "speed.json"
    machine = Machine(path)
    assert machine.rates == TYPICAL
    machine.measure(["calls", "singles"], [])
    machine.learn_factor("a method", lambda: 1.25)
    machine.learn_factor("a method", lambda: pytest.fail("it is known"))
    machine.learn_factor("another", lambda: None)
    again = Machine(path)
    assert again.kept == machine.kept
    assert again.factor("a method") == 1.25
    assert again.factor("another") == 1.0
    assert again.rates.calls == TYPICAL.calls * again.kept["seconds"]["calls"] / PROBED.calls
    for content in ("{", "[]", '{"x": 3}', json.dumps({again.key: {"seconds": {"calls": "many"}}}), FIRST % again.key):
        path.write_text(content, encoding="utf-8")
        damaged = Machine(path)
        assert damaged.rates == TYPICAL
        assert damaged.factor("a method") == 1.0
    assert damaged.kept == {}
    reported: list[str] = []
    damaged.measure(["calls"], [], reported.append)
    damaged.measure(["calls"], [], reported.append)
    assert len(reported) == 1, "what is kept is not measured again"
    assert set(Machine(path).kept["seconds"]) == {"calls"}


FIRST = '{"%s": {"first rounds": {"a family": {"round": 1.0}}}}'


def test_first_rounds_are_timed_where_no_cost_is_declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = next(run for run in runs_of("fedc/fig5", "smoke") if run.setting.algorithm == "fedcgds")
    assert calibrate.machine_for([run]).first_rounds(run.family) is None, "its cost is declared"
    monkeypatch.delattr(registry.methods()["fedcgds"].cls, "cost")
    monkeypatch.delattr(registry.problems()["clustering"].cls, "measuring")
    monkeypatch.delattr(registry.problems()["clustering"].cls, "preparing")
    assert predict.cost(run) == Cost()
    lines: list[str] = []
    machine = calibrate.machine_for([run], lines.append)
    assert lines == [f"timing the first rounds of {run.setting.series}; kept for the next time"]
    first = machine.first_rounds(run.family)
    assert first is not None
    assert min(first.start, first.round, first.measuring, first.making) > 0
    assert first.stored > 0
    timings = predict.Timings(tmp_path, Machine())  # read from the file
    own = 2 * first.start + (run.setting.rounds + 1) * first.round
    assert timings.seconds(run) == pytest.approx(
        own + first.measuring * len(run.setting.recorded) + machine.seconds(predict.STARTED)
    )
    assert timings.making([run]) == first.making
    libraries = Machine().resident(()) + Machine().resident(predict.needed([run]))
    assert predict.memory([run], 1, Machine()) == pytest.approx(
        libraries + max(first.stored + first.holds, 2 * first.stored)
    )
    monkeypatch.setattr(first_rounds, "measure", lambda run: pytest.fail("it is known"))
    calibrate.machine_for([run])


def test_a_run_whose_first_rounds_fail_is_predicted_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = next(run for run in runs_of("fedc/fig5", "smoke") if run.setting.algorithm == "fedcgds")
    monkeypatch.delattr(registry.methods()["fedcgds"].cls, "cost")
    broken = changed(run, params={**run.setting.params, "m": 10**6})  # more clients than there are
    assert calibrate.machine_for([broken]).first_rounds(run.family) is None
    assert seconds(broken, tmp_path) > 0


def test_another_processor_has_speeds_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "speed.json"
    Machine(path).learn_factor("a method", lambda: 2.0)
    monkeypatch.setattr("fedrepro.cpu.model", lambda: "another")
    assert Machine(path).factor("a method") == 1.0
    Machine(path).learn_factor("a method", lambda: 3.0)
    monkeypatch.undo()
    assert Machine(path).factor("a method") == 2.0


@pytest.mark.parametrize("figure", ["fedmf/fig4", "fedmc/fig3", "gcca/fig8", "perfedsi/fig3", "perfedsi/appendixB"])
def test_a_method_has_a_factor_from_a_few_rounds(figure: str, tmp_path: Path) -> None:
    machine = Machine(tmp_path / "speed.json")
    for run in {predict.calibration_key(run): run for run in runs_of(figure, "paper")[:200]}.values():
        factor = calibrate.factor(run, machine)
        assert factor is not None
        assert 0.05 < factor < 50.0


def test_every_run_counts_in_the_total(tmp_path: Path) -> None:
    timings = predict.Timings(tmp_path)
    runs = [run for run in runs_of("gcca/fig4", "quick") if run.setting.algorithm == "altmaxvar"]
    family = [run for run in runs if run.family == runs[0].family]
    timings.known[family[0].family] = 1000.0  # far more than what is done once
    assert len(family) > 2
    for count in (1, 2, len(family)):
        assert timings.total(family[:count], 1) == pytest.approx(1000.0 * count, rel=0.02)


def test_finished_runs_correct_the_prediction(tmp_path: Path) -> None:
    run = runs_of("gcca/fig4", "quick")[0]
    timings = predict.Timings(tmp_path)
    assert not timings.measured(run)
    timings.known[run.family] = 17.0
    timings.learn([])
    assert predict.Timings(tmp_path).seconds(run) == 17.0


def test_little_work_is_not_worth_measuring_for(tmp_path: Path) -> None:
    machine = calibrate.machine_for(runs_of("gcca/fig4", "smoke"))
    assert machine.kept == {}
    assert not machine.path.exists()


# -- memory ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "size"),
    [("8G", 8e9), ("512M", 512e6), ("1.5GB", 1.5e9), ("2 GiB", 2 * 1024**3), ("700mb", 7e8), ("1T", 1e12)],
)
def test_an_amount_of_memory(text: str, size: float) -> None:
    assert Memory().convert(text, None, None) == pytest.approx(size)


@pytest.mark.parametrize("text", ["", "8", "G", "-1G", "0G", "8X", "1,5G", "8GG", "lots"])
def test_what_is_no_amount_of_memory(text: str) -> None:
    with pytest.raises(UserError, match=r"must be an amount of memory such as 8G, 512M or 1\.5GB$"):
        Memory().convert(text, None, None)


def test_workers_share_what_they_map(tmp_path: Path) -> None:
    every = runs_of("fedmf/fig1", "paper")
    runs = [run for run in every if run.problem_id == every[0].problem_id]
    machine = Machine(tmp_path / "none")
    two, four = (predict.memory(runs, jobs, machine) for jobs in (2, 4))
    each = machine.resident(predict.needed(runs)) + MOST * max(predict.cost(run).holds for run in runs)
    assert machine.resident(()) < four - two <= 2 * each  # no further copy of the samples


def cli(*words: str) -> Any:
    return CliRunner().invoke(main, list(words))


@pytest.fixture
def command(tmp_path: Path) -> Callable[..., Any]:
    return lambda *words: cli(*words, "--results", str(tmp_path / "results"))


def test_plan_takes_as_few_workers_as_fit(command: Callable[..., Any]) -> None:
    result = command("plan", "gcca/fig4", "--tier", "smoke", "--jobs", "8", "--memory", "700M")
    assert result.exit_code == 0, result.output
    assert "workers instead of 8 fit into 700.0 MB (" in result.output
    fits = int(result.output.split("memory: ")[1].split()[0])
    assert 1 <= fits < 8
    assert f"with {fits} worker" in result.output
    assert "instead of" not in command("plan", "gcca/fig4", "--tier", "smoke", "--jobs", "8", "--memory", "64G").output


def test_run_computes_with_the_workers_that_fit(command: Callable[..., Any]) -> None:
    found = command("run", "gcca/fig4", "--tier", "smoke", "--quiet", "--jobs", "2", "--memory", "300M")
    assert found.exit_code == 0, found.output
    assert "memory: 1 worker instead of 2 fit into 300.0 MB (2 need about " in found.output
    assert "0 failed" in found.output


@pytest.mark.parametrize("word", ["plan", "run"])
def test_where_not_even_one_worker_fits(command: Callable[..., Any], word: str) -> None:
    found = command(word, "gcca/fig4", "--tier", "smoke", "--memory", "10M")
    assert found.exit_code == 2
    assert "--memory 10.0 MB: one worker needs about " in found.output
    assert found.output.strip().endswith("give at least that much")


@pytest.mark.parametrize("word", ["plan", "run"])
def test_a_wrong_amount_is_one_error(command: Callable[..., Any], word: str) -> None:
    found = command(word, "gcca/fig4", "--memory", "lots")
    assert found.exit_code == 2
    assert found.output.strip() == "error: --memory lots: must be an amount of memory such as 8G, 512M or 1.5GB"


def test_memory_is_not_the_schedulers(command: Callable[..., Any]) -> None:
    found = command("run", "gcca/fig4", "--memory", "8G", "--scheduler", "local:2")
    assert found.exit_code == 2
    assert "--memory limits this machine" in found.output


def test_amounts_of_work_add_up() -> None:
    one = Work(flops=1.0, calls=2.0)
    assert one + one == 2.0 * one == one * 2.0
    assert sum([one, one], Work()) == Work(flops=2.0, calls=4.0)
