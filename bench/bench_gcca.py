"""Time and memory of the linear experiments of gcca, and the numbers they give.

Fig 4 and Table I (5 curves x 50 trials x 1000 rounds) should take under 150 s and Fig 3 (4 curves x 50 trials x 4000
rounds) under 180 s on two cores, a sparse round (J = 50,000, density 0.02) under 0.07 s on one, a message of 500 x 5
numbers 40 microseconds, one of 50,000 x 5 numbers 4 milliseconds, and everything together under 2 GB. Printed beside:
the costs, rounds and compression ratios, with those of a NumPy prototype.

Trials are separate runs shared out to processes, not stacked into one array: ``--stacked`` times a round of 50 trials
at once in NumPy against 50 rounds of the compiled kernel.

Run ``python bench/bench_gcca.py`` (about four minutes, on an idle machine); ``--trials 5`` for a look, with the aims
scaled down to it.
"""

from __future__ import annotations

import argparse
import itertools
import os
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

import joblib
import numpy as np
from threadpoolctl import threadpool_limits

from fedrepro import registry, seeds
from fedrepro.compression.compressors import MaxNorm
from fedrepro.problems.gcca import problem as gcca
from fedrepro.problems.gcca.problem import GCCA, RandomStart

AIMS = {"Fig 4": 150.0, "Fig 3": 180.0, "sparse round": 0.07, "memory": 2.0}
MESSAGES = {500: 40e-6, 50_000: 4e-3}
"""Rows of a matrix of five columns, and the seconds that quantizing it may take."""
JOBS = 2


def problem(dataset: str, trial: int) -> GCCA:
    """The problem of a trial, views drawn afresh."""
    data = registry.datasets()[dataset].make().load(rng=seeds.generator("data", dataset=dataset, trial=trial))
    return GCCA(data.views, 5)


def run(name: str, params: dict[str, Any], trial: int, rounds: int) -> tuple[np.ndarray, float, float]:
    """Costs of a run at every round, v*, and the peak bytes of the process that computed it."""
    with threadpool_limits(1):
        P = problem("gcca-synthetic", trial)
        method = registry.methods()[name].make(**params)
        states = method.rounds(P, seeds.generator("run", trial=trial), init=RandomStart(trial))
        costs = [P.cost(s.M, s.G) for s in itertools.islice(states, rounds + 1)]
        return np.array(costs), P.optimum.value, peak()


def curves(settings: dict[str, tuple[str, dict[str, Any]]], trials: int, rounds: int) -> Any:
    """(curves by name (trials, rounds + 1), v* (trials,), seconds, peak bytes of all processes together)."""
    began = time.perf_counter()
    jobs = [(key, trial) for trial in range(trials) for key in settings]
    done = joblib.Parallel(n_jobs=JOBS)(joblib.delayed(run)(*settings[key], trial, rounds) for key, trial in jobs)
    seconds = time.perf_counter() - began
    found = {key: np.stack([d[0] for d, job in zip(done, jobs, strict=True) if job[0] == key]) for key in settings}
    optimum = np.array([d[1] for d, job in zip(done, jobs, strict=True) if job[0] == next(iter(settings))])
    return found, optimum, seconds, peak() + JOBS * max(d[2] for d in done)


def figure_4(trials: int) -> float:
    """Fig 4 and Table I."""
    settings: dict[str, tuple[str, dict[str, Any]]] = {"Alt": ("altmaxvar", {"b": 150})}
    settings |= {f"q={q}": ("cutemaxvar", {"q": q, "b": 150}) for q in (2, 3, 4, 5)}
    found, optimum, seconds, memory = curves(settings, trials, 1000)
    report("Fig 4", seconds, AIMS["Fig 4"] * trials / 50)
    v = optimum.mean()
    print(f"  v* = {v:.5f} (prototype: 0.00195)")
    for key, cost in found.items():
        mean = cost.mean(axis=0)
        line = f"  {key:4s} final {mean[-1] / v:9.3g} v*   rounds to 1.5 v*: {gcca.rounds_to(mean, 1.5 * v):g}"
        if key != "Alt":
            q = int(key[2:])
            ratios = [gcca.compression_ratio(cost, found["Alt"], optimum, q, factor=f) for f in (1.5, 2, 4)]
            each = gcca.compression_ratio(cost, found["Alt"], optimum, q, per_trial=True)
            line += "   CR at 1.5, 2, 4 v*: " + " ".join(f"{r:.4f}" for r in ratios)
            line += f"   per trial {np.mean(each):.4f} +- {np.std(each):.4f}"
        print(line)
    print("  prototype: 1.156 (Alt), 1.164 (3), 1.158 (4), 1.157 (5), 4.9e5 (2); rounds 18; CR 0.9062 0.875 0.8438")
    return memory


def figure_3(trials: int) -> float:
    """Fig 3."""
    settings: dict[str, tuple[str, dict[str, Any]]] = {
        "Alt warm": ("altmaxvar", {}),
        "Cute warm": ("cutemaxvar", {"b": 150}),
        "Alt randn": ("altmaxvar", {"start": "randn-raw"}),
        "Cute randn": ("cutemaxvar", {"b": 150, "start": "randn-raw"}),
    }
    found, optimum, seconds, memory = curves(settings, trials, 3999)
    report("Fig 3", seconds, AIMS["Fig 3"] * trials / 50)
    prototype = {
        "Alt warm": ".878 .0064 .00231 .00217 .00204",
        "Cute warm": ".878 .0067 .00236 .00222 .00209",
        "Alt randn": "7416 1.04 .237 .063 .0041",
        "Cute randn": "7416 .98 .242 .064 .0039",
    }
    print(f"  v* = {optimum.mean():.5f}; cost at index 1 10 100 1000 4000")
    for key, cost in found.items():
        at = cost.mean(axis=0)[[0, 9, 99, 999, 3999]]
        print(f"  {key:10s} " + " ".join(f"{c:.3g}" for c in at) + f"   prototype (10 trials): {prototype[key]}")
    return memory


def sparse_round(rounds: int = 30) -> float:
    """The large sparse setting of Fig 8."""
    with threadpool_limits(1):
        began = time.perf_counter()
        data = registry.datasets()["gcca-sparse"].make().load(rng=seeds.generator("data", trial=1))
        P = GCCA(data.views, 5)
        print(
            f"\nsparse: density {data.facts['density'][0]:.4f}, made and checked in {time.perf_counter() - began:.1f} s"
        )
        for name, params in (("altmaxvar", {}), ("cutemaxvar", {"q": 3})):
            method = registry.methods()[name].make(b=5000, m=50, **params)
            began = time.perf_counter()
            states = method.rounds(P, seeds.generator("run", trial=1))
            state = next(states)
            started = time.perf_counter() - began
            seconds = []
            for _ in range(rounds):
                began = time.perf_counter()
                state = next(states)
                P.cost(state.M, state.G)
                seconds.append(time.perf_counter() - began)
            print(f"  {name}: start {started:.2f} s, cost after {rounds} rounds {P.cost(state.M, state.G):.3g}")
            report("sparse round", float(np.median(seconds)), AIMS["sparse round"])
        began = time.perf_counter()
        print(f"  exact optimum {P.optimum.value:.4g} in {time.perf_counter() - began:.1f} s")
    return peak()


def messages() -> None:
    """The quantizer, and how much of it is drawing the uniforms."""
    print("\nmessages, q = 3")
    for rows, aim in MESSAGES.items():
        taken, drawn = message(rows, 500_000 // rows)
        report(f"{rows} x 5 ({drawn:.1g} s to draw)", taken, aim)


def message(rows: int, calls: int) -> tuple[float, float]:
    """Seconds to quantize a matrix, and to draw as many uniforms."""
    rng = np.random.default_rng(0)
    D, compressor = rng.standard_normal((rows, 5)), MaxNorm(3)

    def quantize() -> None:
        for _ in range(calls):
            compressor.compress(D, rng)

    def draw() -> None:
        for _ in range(calls):
            rng.random((rows, 5))

    return best(quantize) / calls, best(draw) / calls


def stacked(trials: int = 50) -> None:
    """T = 10 minibatch steps of one round for 50 trials: stacked in NumPy, and one after another compiled."""
    from fedrepro.multiview.minibatch import dense_steps

    rng = np.random.default_rng(0)
    (I, J, N, K), T, b = (3, 500, 25, 5), 10, 150  # noqa: E741
    X, G = rng.standard_normal((trials, I, J, N)), rng.standard_normal((trials, 1, J, K))
    G = np.broadcast_to(G, (trials, I, J, K))
    Q, U = rng.standard_normal((trials, I, N, K)), rng.random((trials, I, T, b))

    def in_numpy() -> None:
        A = Q.copy()
        for _ in range(T):
            rows = np.argpartition(rng.random((trials, I, J)), b, axis=-1)[..., :b, None]
            XF, GF = np.take_along_axis(X, rows, axis=2), np.take_along_axis(G, rows, axis=2)
            A -= 1e-4 * (np.swapaxes(XF, -1, -2) @ (XF @ A - GF))

    def compiled() -> None:
        for t in range(trials):
            for i in range(I):
                dense_steps(X[t, i], np.ascontiguousarray(G[t, i]), Q[t, i].copy(), U[t, i], 1e-4, (0,) * K)

    with threadpool_limits(1):
        print(f"\n{trials} trials, T steps of a round: stacked {best(in_numpy):.4f} s, compiled {best(compiled):.4f} s")


def best(call: Callable[[], None], repeats: int = 10) -> float:
    """Least seconds of a call, after one to warm up."""
    call()
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def peak() -> float:
    """Peak resident bytes of this process."""
    unit = 1 if sys.platform == "darwin" else 1024
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)


def report(what: str, value: float, aim: float, unit: str = "s") -> None:
    """A line with an aim."""
    print(f"  {what}: {value:.3g} {unit}, aim {aim:.3g} {unit}: {'met' if value <= aim else 'MISSED'}", flush=True)


def main() -> None:
    """Print everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--stacked", action="store_true", help="only compare stacked trials with compiled ones")
    args = parser.parse_args()
    if args.stacked:
        stacked()
        return
    print(f"{os.cpu_count()} cores, {JOBS} processes, {args.trials} trials")
    print("\nFig 4 and Table I")
    memory = figure_4(args.trials)
    print("\nFig 3")
    memory = max(memory, figure_3(args.trials))
    memory = max(memory, sparse_round())
    messages()
    print()
    report("memory", memory / 2**30, AIMS["memory"], "GiB")


if __name__ == "__main__":
    main()
