"""Predicted against measured time and memory: the quick tier of every figure, and ten figures of the paper tier.

Of a figure one run is computed of every method on every problem, so that all that its predictions are made of is tried:
methods, problems, metrics, data and what makes them. Runs that would take longer are cut to as many rounds as are
predicted to take ``--seconds``, and two at least; the prediction is of the same rounds. What a figure takes in all is
these numbers times its settings and trials.

A fresh process computes the runs of a figure one after another, as a worker does, its libraries and problems included;
kernels that numba keeps on disk are compiled before.
Time is the process's own, so that a machine that is busy otherwise does not matter; memory is the most it ever held.

Run ``python bench/bench_predictions.py`` (about twelve minutes); ``--only fedc`` for some figures. The exit code is 1
where fewer than nine of ten figures are predicted within a factor of two, or within a quarter of the memory.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from fedrepro import cpu

TIMES, SHARE, WANTED = 2.0, 0.25, 0.9
LEAST = 2
"""Rounds that are computed at least."""

PAPER = (
    "beyond/fedmc_sensitivity", "fedc/fig5", "fedmf/figS2", "gcca/fig4", "gcca/fig6", "gcca/fig7", "gcca/fig8",
    "gcca/fig11", "perfedsi/appendixB", "perfedsi/fig3",
)  # fmt: skip
"""Figures whose problems are made in less than a minute each; there is one of every paper and every kind of problem."""


def main() -> int:
    """Print the table; 1 where too few predictions hold."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seconds", type=float, default=1.5, help="seconds a run is cut to (default: 1.5)")
    options.add_argument("--only", default="", help="figures whose name begins so")
    options.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = options.parse_args()
    cpu.pin()
    return child() if given.child else table(given.seconds, given.only)


def table(seconds: float, only: str) -> int:
    """Compute, compare and print."""
    from fedrepro.runs.predict import timings as predict
    from fedrepro.runs.predict.calibrate import machine_for

    chosen = [(tier, name, sampled(runs)) for tier, name, runs in figures() if name.startswith(only)]
    machine = machine_for([run for _, _, runs in chosen for run in runs])
    measured(compiling(chosen))
    held_back = tempfile.TemporaryDirectory()
    timings = predict.Timings(Path(held_back.name), machine)
    print(f"{'':36}{'runs':>5}{'seconds: predicted':>20}{'measured':>10}{'MB: predicted':>16}{'measured':>10}")
    within: list[tuple[bool, bool]] = []
    for tier, name, runs in chosen:
        cut = [shortened(run, timings, seconds) for run in runs]
        wanted = sum(map(timings.seconds, cut)) + timings.making(cut) + timings.compiling(cut)
        wanted += machine.loading(predict.needed(cut))
        space = predict.workers(cut, 1, machine)
        took, held = measured(cut)
        within.append((abs(math.log(wanted / took)) <= math.log(TIMES), abs(space / held - 1.0) <= SHARE))
        marks = "".join(mark for mark, good in zip(("  time", "  memory"), within[-1], strict=True) if not good)
        print(
            f"{name + ' ' + tier:36}{len(cut):5}{wanted:20.1f}{took:10.1f}{space / 1e6:16.0f}{held / 1e6:10.0f}{marks}",
            flush=True,
        )
    held_back.cleanup()
    shares = [sum(column) / len(within) for column in zip(*within, strict=True)]
    print(f"within a factor of {TIMES:g} (time): {shares[0]:.0%}; within {SHARE:.0%} (memory): {shares[1]:.0%}")
    return 0 if min(shares) >= WANTED else 1


def figures() -> Iterable[tuple[str, str, list[Any]]]:
    """Tier, name and runs of each figure."""
    from fedrepro.runs.identity import plan
    from fedrepro.spec.find import load_all

    specs = sorted(path for path in map(str, Path("experiments").glob("*/*.yaml")) if "discrepancies" not in path)
    for tier in ("quick", "paper"):
        made = plan.make(load_all(tuple(specs), tier, ()), True)
        for figure, series in zip(made.figures, made.by_figure, strict=True):
            name = f"{figure.paper}/{figure.figure}"
            if tier == "quick" or name in PAPER:
                yield tier, name, [run for runs in series.values() for run in runs]


def compiling(chosen: Sequence[tuple[str, str, list[Any]]]) -> list[Any]:
    """A few rounds of each method with compiled kernels: numba keeps these on disk, where later processes find them."""
    from fedrepro.runs.predict import timings as predict

    runs = [run for tier, _, found in chosen for run in found if tier == "quick" and "numba" in predict.needed([run])]
    first = {predict.calibration_key(run): run for run in reversed(runs)}
    return [dataclasses.replace(run, setting=dataclasses.replace(run.setting, rounds=LEAST)) for run in first.values()]


def sampled(runs: Sequence[Any]) -> list[Any]:
    """The first run of every method on every problem, those of a problem one after another."""
    first: dict[Any, Any] = {}
    for run in runs:
        setting = run.setting
        on = [setting.dataset, dict(setting.dataset_params), setting.partition, dict(setting.partition_params)]
        first.setdefault((json.dumps(on), setting.algorithm), run)
    return sorted(first.values(), key=lambda run: run.problem_id)


def shortened(run: Any, timings: Any, seconds: float) -> Any:
    """The run with as few rounds as take so long."""

    def cut(rounds: int) -> Any:
        return dataclasses.replace(run, setting=dataclasses.replace(run.setting, rounds=rounds), family=f"{run.id} cut")

    rounds = run.setting.rounds
    while rounds > LEAST and timings.seconds(cut(rounds)) > seconds:
        rounds = max(LEAST, rounds * 2 // 3)
    return cut(rounds)


def measured(runs: Sequence[Any]) -> tuple[float, float]:
    """Seconds of processor time and the most bytes of a fresh process that computes the runs."""
    found = subprocess.run(
        [sys.executable, __file__, "--child"], input=pickle.dumps(list(runs)), stdout=subprocess.PIPE, check=True
    )
    seconds, size = found.stdout.split()[-2:]
    return float(seconds), float(size)


def child() -> int:
    """Compute the runs given on standard input."""
    import time

    from fedrepro.runs.compute import execute
    from fedrepro.runs.predict.memory_peak import peak
    from fedrepro.runs.storage.store import Store

    with tempfile.TemporaryDirectory() as folder:
        for run in pickle.load(sys.stdin.buffer):
            ((_, said),) = execute.compute([run], Store(Path(folder) / "store"), Path(folder) / "scratch")
            if said.startswith("failed"):
                raise SystemExit(f"{run.setting.series}: {said}")
        print(time.process_time(), peak())
    return 0


if __name__ == "__main__":
    sys.exit(main())
