"""Speed and memory of matrix completion: kernels, whole rounds, and a set of the size of Netflix from file to figure.

``python bench/bench_completion.py kernels rounds`` (a minute) prints, at r = 5, 8 and 13 with N = 10 inner steps,
nanoseconds per observed entry and inner step of the U and the W phase of one client, beside one scipy CSR product with
the same data (a step that evaluates the residual needs one such product and the residual itself); then milliseconds
per round of each method on MovieLens 1M with objective and RMSE over all clients (``--movielens`` a copy of ml-1m.zip;
else made-up ratings of the same size). Aims on 2 threads: 12 ms FedMC-ADMM, 25 ms FedMAvg.

``python bench/bench_completion.py netflix`` (about five minutes, 2 GB of disk) makes up ratings of the size of the
Netflix set, and in a process of its own maps them, shares them out, runs 100 rounds of both methods at r = 13 with
objective and RMSE in every round, and writes their curves and a figure. Aims on 2 threads: 2 minutes FedMC-ADMM, 5
minutes FedMAvg, 3.5 GB peak memory of that process.

Run on an idle machine, one BLAS thread: threads that wait for each other measure whatever else is running.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import operator
import os
import resource
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from fedrepro import registry
from fedrepro.datasets.types import Ratings
from fedrepro.partitions.users import Users
from fedrepro.problems.completion.kernels import steps
from fedrepro.problems.completion.problem import Completion

RANKS = (5, 8, 13)
N = 10
ROUND_AIMS = {"fedmc-admm": 12.0, "fedmavg-mc": 25.0}
NETFLIX = {"users": 480_189, "items": 17_770, "count": 100_480_507}
NETFLIX_AIMS = {"fedmc-admm": 120.0, "fedmavg-mc": 300.0}
MEMORY_AIM = 3.5


def made_up(users: int, items: int, count: int, seed: int = 0) -> Ratings:
    """Ratings 1..5 of a rank-4 model with noise, log-normal activity and popularity, about ``count`` distinct pairs."""
    from numba import njit

    @njit
    def fill(degrees, edges, A, B, seed, user, item, value):
        np.random.seed(seed)
        met = np.full(B.shape[0], -1, np.int64)
        e = 0
        for t in range(degrees.size):
            for _ in range(degrees[t]):
                j = np.searchsorted(edges, np.random.random())
                while met[j] == t:  # taken: the next item that is free, so that popular items cannot stall the draw
                    j = (j + 1) % B.shape[0]
                met[j] = t
                score = 3.6 + 0.5 * np.dot(A[t], B[j]) + 0.7 * np.random.standard_normal()
                user[e], item[e], value[e] = t, j, min(5.0, max(1.0, np.round(score)))
                e += 1

    rng = np.random.default_rng(seed)
    activity = rng.lognormal(0.0, 1.1, users)
    degrees = np.clip(activity * count / activity.sum(), 4, 0.6 * items).astype(np.int64)
    popularity = np.cumsum(rng.lognormal(0.0, 1.6, items))
    total = int(degrees.sum())
    user, item, value = np.empty(total, np.int32), np.empty(total, np.int32), np.empty(total, np.float32)
    fill(
        degrees,
        popularity / popularity[-1],
        rng.standard_normal((users, 4)),
        rng.standard_normal((items, 4)),
        seed,
        user,
        item,
        value,
    )
    return Ratings(user, item, value, users, items)


def movielens(path: str | None) -> Ratings:
    """MovieLens 1M from a copy of its archive, or made-up ratings of its size."""
    if path is None:
        return made_up(6040, 3706, 1_000_209)
    rows = zipfile.ZipFile(path).read("ml-1m/ratings.dat").replace(b"::", b" ").split()
    table = np.array(rows, dtype=np.int64).reshape(-1, 4)
    (users, user), (items, item) = (np.unique(table[:, k], return_inverse=True) for k in (0, 1))
    return Ratings(user.astype(np.int32), item.astype(np.int32), table[:, 2] * 1.0, users.size, items.size)


def best(call: Callable[[], Any], repeats: int) -> float:
    """Least seconds of a call, after one to warm up."""
    call()
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def kernels(repeats: int) -> None:
    """One client of Netflix's and one of MovieLens 1M's size, on one thread."""
    print(f"ns per observed entry and inner step (N = {N}), one thread; CSR: one scipy product, ns per entry")
    print(f"{'client':>24s} {'r':>3s} {'U steps':>9s} {'CSR':>7s} {'W steps':>9s} {'CSR':>7s}")
    for users, items, count in ((4802, 17_770, 800_000), (60, 3706, 8_000)):
        for r in RANKS:
            problem = Completion(made_up(users, items, count, seed=1), r=r, train=1.0, threads=1)
            entries, state = problem.train.count, problem.start(None, np.random.default_rng(0))
            U, V = state.U, state.V
            by_user, by_item = problem.by_user(problem.client(0)), problem.by_item(0)
            ptr, index, code, levels = by_user
            A = sparse.csr_matrix((levels[code], index.astype(np.int32), ptr.astype(np.int32)), shape=(users, items))
            At = A.T.tocsr()
            large, pull = 10.0 * count, np.zeros_like(V)

            def u_steps(U: Any = U, V: Any = V, data: Any = by_user, large: float = large) -> None:
                steps(U, V, *data, N=N, alpha=large, scale=1.0 / (large + 1.0))

            def w_steps(U: Any = U, V: Any = V, data: Any = by_item, large: float = large, Q: Any = pull) -> None:
                steps(V, U, *data, N=N, alpha=large, delta=0.01, scale=1.0 / (large + 1.0), Q=Q)

            more = repeats * (1 if count > 100_000 else 20)
            times = [
                best(u_steps, more) / N,
                best(functools.partial(operator.matmul, A, V), more),
                best(w_steps, more) / N,
                best(functools.partial(operator.matmul, At, U), more),
            ]
            cells = " ".join(f"{1e9 * t / entries:{w}.2f}" for t, w in zip(times, (9, 7, 9, 7), strict=True))
            print(f"{users:>7d} x {items:6d} {entries:7d} {r:>3d} {cells}")


def rounds(path: str | None, repeats: int) -> None:
    """Milliseconds of a round with objective and RMSE, and of the round alone, on 1 and 2 threads."""
    data = movielens(path)
    problem = Completion(data, Users().assign(data, np.random.default_rng(0)))
    what = "MovieLens 1M" if path else "made-up ratings of MovieLens 1M's size"
    print(
        f"\n{what}: {problem.rows} x {problem.n}, {data.value.size} ratings, 10 of {problem.p} clients, N = 10, r = 5"
    )
    print("least and median ms per round with objective and RMSE over all clients; the round alone")
    names = ("fedmc-admm", "fedmavg-mc", "fedmc-admm-exact", "fedmavg-mc-released", "als")
    for threads, name in itertools.product((1, 2), names):
        problem.threads = threads
        states = registry.methods()[name].make().rounds(problem, np.random.default_rng(0), init=problem.initial(0))
        problem.measure(next(states), ("objective", "rmse"))
        whole, alone = [], []
        for _ in range(4 * repeats):
            began = time.perf_counter()
            state = next(states)
            alone.append(time.perf_counter() - began)
            problem.measure(state, ("objective", "rmse"))
            whole.append(time.perf_counter() - began)
        least, median, only = (1e3 * f(x) for f, x in ((np.min, whole), (np.median, whole), (np.median, alone)))
        aim = ROUND_AIMS.get(name) if threads == 2 else None
        print(f"  {threads} thread {name:20s} {least:7.2f} {median:7.2f} ; {only:7.2f}  {verdict(median, aim, 'ms')}")


def verdict(value: float, aim: float | None, unit: str) -> str:
    """What to print behind a number."""
    return "" if aim is None else f"aim {aim:g} {unit}: {'met' if value <= aim else 'MISSED'}"


def netflix_file(folder: Path, share: float) -> dict[str, float]:
    """Write made-up ratings of Netflix's size in the arrays the loader maps: int32 ids and float32 ratings."""
    sizes = {k: int(v * share) if k != "items" else v for k, v in NETFLIX.items()}
    data = made_up(**sizes)
    for name in ("user", "item", "value"):
        np.save(folder / f"{name}.npy", getattr(data, name))
    return {"users": data.users, "items": data.items, "ratings": int(data.value.size)}


def netflix_run(folder: Path, users: int, items: int) -> dict[str, float]:
    """From the file to the figure; seconds of every stage and the peak memory of this process in GB."""
    entry, seconds = registry.problems()["completion"], {}
    clock = time.perf_counter

    began = clock()
    user, item, value = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("user", "item", "value"))
    data = Ratings(user, item, value, users, items)
    del user, item, value
    client = Users().assign(data, np.random.default_rng(0))
    parameters = {**entry.parameters, "r": 13}
    entry.cls.prepare(folder, data, client, parameters)
    del data
    seconds["file to arrays"], peak_prepare = clock() - began, peak_gb()

    problem = entry.cls.stored(folder, parameters)
    init, curves = problem.initial(0), {}
    for name in NETFLIX_AIMS:
        method, values, inside, began = registry.methods()[name].make(), [], 0.0, clock()
        states = method.rounds(problem, np.random.default_rng(0), init=init)
        for _ in range(101):
            start = clock()
            state = next(states)
            inside += clock() - start
            values.append(problem.measure(state, ("objective", "rmse")))
        del states, state
        curves[name] = values
        seconds[name], seconds[f"{name}, without measuring"] = clock() - began, inside
    began = clock()
    draw(folder, curves)
    seconds["curves and figure"] = clock() - began
    ends = {f"{name} {k} at the end": v[-1][k] for name, v in curves.items() for k in v[-1]}
    return {**seconds, **ends, "peak GB after preparing": peak_prepare, "peak GB": peak_gb()}


def draw(folder: Path, curves: dict[str, list[dict[str, float]]]) -> None:
    """Tidy rows and the two panels of fedmc Figure 2."""
    import matplotlib
    import pandas as pd

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = [{"method": n, "round": k, **v} for n, values in curves.items() for k, v in enumerate(values)]
    table = pd.DataFrame(rows)
    table.to_csv(folder / "curves.csv", index=False)
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.5))
    for axis, column in zip(axes, ("objective", "rmse"), strict=True):
        for name, part in table.groupby("method"):
            axis.plot(part["round"], part[column], label=name)
        axis.set(xlabel="round", ylabel=column, yscale="log" if column == "objective" else "linear")
    axes[0].legend()
    figure.savefig(folder / "figure.png", dpi=120)


def peak_gb() -> float:
    """Peak resident memory of this process, in GB of 10^9 bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9


def child(*task: Any) -> Any:
    """The answer of a task in a fresh process, two clients at a time, one BLAS thread."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "FEDREPRO_THREADS": "2"}
    command = [sys.executable, __file__, "--task", *map(str, task)]
    return json.loads(subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout)


def netflix(share: float) -> None:
    """Print the seconds of every stage beside their aims."""
    with tempfile.TemporaryDirectory() as folder:
        made = child("netflix_file", folder, share)
        print(f"\nmade-up ratings: {made['users']} x {made['items']}, {made['ratings']} ratings, r = 13, 2 threads")
        got = child("netflix_run", folder, made["users"], made["items"])
        for name, value in got.items():
            aim, unit = (MEMORY_AIM, "GB") if name == "peak GB" else (NETFLIX_AIMS.get(name), "s")
            print(f"  {name:40s} {value:12.3f}  {verdict(value, aim, unit)}")


def main() -> None:
    """Print the tables asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=["kernels", "rounds"], help="kernels, rounds, netflix")
    parser.add_argument("--movielens", help="a copy of ml-1m.zip")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--share", type=float, default=1.0, help="share of Netflix's users and ratings to make up")
    parser.add_argument("--task", nargs="+", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.task:
        name, folder, *numbers = args.task
        tasks: dict[str, Callable[..., Any]] = {"netflix_file": netflix_file, "netflix_run": netflix_run}
        print(json.dumps(tasks[name](Path(folder), *(float(n) if "." in n else int(n) for n in numbers))))
        return
    if "kernels" in args.parts:
        kernels(args.repeats)
    if "rounds" in args.parts:
        rounds(args.movielens, args.repeats)
    if "netflix" in args.parts:
        netflix(args.share)


if __name__ == "__main__":
    main()
