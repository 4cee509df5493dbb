"""Seconds per round and peak memory of the clustering methods, beside the two products no method can do without.

Every round of FedMGS and FedMAvg has to form W^T X and X H^T. Their time, on the same threads, is the yardstick:
a round with its objective should take at most 1.6 times that with FedMGS (Q1=10, Q2=100), 2 times with FedMAvg
(Q1=10, any Q2), FedMAvg with Q2=100 at most 1.2 times its Q2=1, and a run at most 2.5 times the memory of X.

Run ``python bench/bench_clustering.py`` (about a minute, on an idle machine: threads that wait for each other measure
whatever else is running); ``--N 2000`` and the like for other sizes.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fedrepro.datasets.types import Samples
from fedrepro.partitions.uniform import Uniform
from fedrepro.problems.clustering.methods.fedmavg import FedMAvg
from fedrepro.problems.clustering.methods.fedmgs import FedMGS
from fedrepro.problems.clustering.methods.fedpalm import FedPALM
from fedrepro.problems.clustering.problem import Clustering
from fedrepro.problems.clustering.state import State

AIMS = {"FedMGS  Q1=10 Q2=100": 1.6, **{f"FedMAvg Q1=10 Q2={q}": 2.0 for q in (1, 10, 100)}}
FLATNESS_AIM, MEMORY_AIM = 1.2, 2.5


def methods(P: int) -> dict[str, Any]:
    """The rows of the table."""
    m = max(1, P // 10)
    return {
        "FedMGS  Q1=10 Q2=100": FedMGS(Q1=10, Q2=100),
        "FedMAvg Q1=10 Q2=1": FedMAvg(Q1=10, Q2=1),
        "FedMAvg Q1=10 Q2=10": FedMAvg(Q1=10, Q2=10),
        "FedMAvg Q1=10 Q2=100": FedMAvg(Q1=10, Q2=100),
        f"FedMGS  m={m}": FedMGS(m=m),
        f"FedMAvg m={m} pcc": FedMAvg(m=m),
        f"FedMAvg m={m} pcp": FedMAvg(m=m, participation="pcp"),
        "FedPALM Q=2": FedPALM(Q=2, stop=None),
        "FedPALM Q=20": FedPALM(Q=20, stop=None),
    }


def fill(folder: Path, M: int, N: int, K: int, P: int) -> float:
    """Write non-negative samples around K centroids, split evenly; returns this process's peak bytes."""
    rng = np.random.default_rng(0)
    labels = rng.integers(K, size=N)
    centroids, X = rng.random((M, K)), np.empty((M, N))
    for part in np.array_split(np.arange(N), 50):
        X[:, part] = np.maximum(centroids[:, labels[part]] + rng.standard_normal((M, part.size)), 0.0)
    samples = Samples(X, labels, K)
    Clustering.prepare(folder, samples, Uniform(P).assign(samples, rng), {})
    return peak()


def peak() -> float:
    """Peak resident bytes of this process."""
    unit = 1 if sys.platform == "darwin" else 1024
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)


def timed(folder: Path, repeats: int) -> dict[str, float]:
    """Least seconds of the two products, and of a round with its objective for each method, taken in turn."""
    problem = Clustering.stored(folder, {})
    W0, H0 = problem.initial(1)
    Hs = np.ascontiguousarray(H0.T[problem.order])
    calls: dict[str, Callable[[], Any]] = {"products": lambda: (problem.X @ W0, problem.X.T @ Hs)}
    for name, method in methods(problem.P).items():
        states = method.rounds(problem, np.random.default_rng(0), init=(W0, H0))
        problem.objective(next(states))
        calls[name] = functools.partial(_round, problem, states)
    least = dict.fromkeys(calls, np.inf)
    for _ in range(repeats + 1):  # one more than asked for, to warm up
        for name, call in calls.items():
            began = time.perf_counter()
            call()
            least[name] = min(least[name], time.perf_counter() - began)
    return least


def _round(problem: Clustering, states: Iterator[State]) -> float:
    return problem.objective(next(states))


def run(folder: Path, row: int) -> float:
    """Peak bytes of this process after five rounds of one method with objectives, the data memory mapped."""
    problem = Clustering.stored(folder, {})
    method = list(methods(problem.P).values())[row]
    for state in itertools.islice(method.rounds(problem, np.random.default_rng(0), init=problem.initial(1)), 6):
        problem.objective(state)
    return peak()


def child(threads: int, *task: Any) -> Any:
    """The answer of a task in a fresh process with its own number of BLAS threads."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
    command = [sys.executable, __file__, "--task", *map(str, task)]
    return json.loads(subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout)


def answer(task: list[str]) -> Any:
    """Do a task in this process."""
    name, folder, *numbers = task
    tasks: dict[str, Callable[..., Any]] = {"fill": fill, "timed": timed, "run": run}
    return tasks[name](Path(folder), *map(int, numbers))


def verdict(value: float, aim: float | None) -> str:
    """What to print behind a ratio."""
    return "" if aim is None else f"aim {aim:g}: {'met' if value <= aim else 'MISSED'}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for size, default in (("M", 2000), ("N", 10000), ("K", 20), ("P", 100), ("repeats", 15)):
        parser.add_argument(f"--{size}", type=int, default=default)
    parser.add_argument("--task", nargs="+", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.task:
        print(json.dumps(answer(args.task)))
        return
    with tempfile.TemporaryDirectory() as folder:
        size = 8.0 * args.M * args.N
        written = child(1, "fill", folder, args.M, args.N, args.K, args.P)
        print(f"X {args.M} x {args.N} ({size / 1e6:.0f} MB), K={args.K}, P={args.P}")
        for threads in (1, 2):
            seconds = child(threads, "timed", folder, args.repeats)
            base = seconds.pop("products")
            print(f"\nseconds per round with objective, {threads} thread{'s'[: threads - 1]}")
            print(f"  {'the two products':24s} {base:8.4f} s")
            for row, value in seconds.items():
                print(f"  {row:24s} {value:8.4f} s {value / base:7.2f} x  {verdict(value / base, AIMS.get(row))}")
            flat = seconds["FedMAvg Q1=10 Q2=100"] / seconds["FedMAvg Q1=10 Q2=1"]
            print(f"  {'FedMAvg Q2=100 / Q2=1':24s} {'':10s} {flat:7.2f} x  {verdict(flat, FLATNESS_AIM)}")
        print("\npeak memory over the size of X (interpreter and libraries included; runs map X from its file)")
        print(f"  {'writing the problem':24s} {'':10s} {written / size:7.2f} x  {verdict(written / size, MEMORY_AIM)}")
        for number, row in enumerate(methods(args.P)):
            ratio = child(1, "run", folder, number) / size
            print(f"  {row:24s} {'':10s} {ratio:7.2f} x  {verdict(ratio, MEMORY_AIM)}")


if __name__ == "__main__":
    main()
