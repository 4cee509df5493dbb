"""How the time and the memory of a round grow with the size of the problem, each size over a factor of 16 or more.

Clustering (FedMAvg, FedMGS and FedPALM) grows in samples N, their length M, clusters K and clients P; matrix completion
(FedMC-ADMM and FedMAvg) in ratings, with users in proportion; GCCA (CuteMaxVar and AltMaxVar) in views I and rows J.
Time is the processor's, the least of some rounds with their objective, on one BLAS thread. Memory is the peak of what
the problem, the start and two rounds allocate beside the data they are given (traced, so the same in every run).

Exponents are least-squares slopes of log against log over the upper half of the sizes, where what does not grow weighs
least. Beside that of time stands what arithmetic allows: 1, and in K, where products with X grow in proportion and
steps on H with K^2, the slope of a round's operations over the same sizes. A time that grows faster by 0.15 is marked,
and memory that grows faster than in proportion (in K: than K^2, as clients keep K x K matrices).

Run ``python bench/bench_growth.py`` (about three minutes, on an idle machine); it draws ``plots/bench/growth.png``.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from bench_completion import made_up
from threadpoolctl import threadpool_limits

from fedrepro import registry
from fedrepro.partitions.users import Users
from fedrepro.problems.clustering.problem import Clustering
from fedrepro.problems.completion.problem import Completion
from fedrepro.problems.gcca.problem import GCCA

SLACK = 0.15
Sizes = dict[str, int]
Ready = Callable[[], Any]
"""Makes the problem of data that are there already."""


@dataclass(frozen=True)
class Family:
    """Methods with one problem. make : sizes -> Ready. base : the sizes that do not grow. axes : those that do.

    bound : the largest exponent of memory, where it is not 1. operations : in a round, (method, sizes) -> number;
    exponents of time in ``bent`` axes are judged by it, in others by 1.
    """

    methods: dict[str, dict[str, Any]]
    make: Callable[[Sizes], Ready]
    base: Sizes
    axes: dict[str, Sequence[int]]
    metric: str
    bound: dict[str, float]
    operations: Callable[[str, Sizes], float] | None = None
    bent: Sequence[str] = ()


@dataclass(frozen=True)
class Growth:
    """One curve: sizes, seconds of a round and peak bytes, (S,) each, and the exponents with what is expected."""

    method: str
    axis: str
    sizes: np.ndarray
    seconds: np.ndarray
    memory: np.ndarray
    expected: float
    bound: float

    def exponents(self) -> tuple[float, float]:
        """Of time and of memory."""
        return slope(self.sizes, self.seconds), slope(self.sizes, self.memory)

    def remarks(self) -> list[str]:
        """What grows faster than it should."""
        of_time, of_memory = self.exponents()
        found = [f"TIME: arithmetic allows {self.expected:.2f}"] if of_time > self.expected + SLACK else []
        return found + ([f"MEMORY: at most {self.bound:.2f}"] if of_memory > self.bound + SLACK else [])


def slope(sizes: np.ndarray, values: np.ndarray) -> float:
    """The exponent over the upper half of the sizes."""
    upper = slice(len(sizes) // 2, None)
    return float(np.polyfit(np.log(sizes[upper]), np.log(values[upper]), 1)[0])


# -- problems ----------------------------------------------------------------------------------------------------------


def clustering(size: Sizes) -> Ready:
    """Samples around K centroids, as rows of one array."""
    draw = np.random.default_rng(0)
    centroids, labels = draw.random((size["K"], size["M"])), draw.integers(size["K"], size=size["N"])
    X = np.empty((size["N"], size["M"]))
    for part in np.array_split(np.arange(size["N"]), 50):
        X[part] = np.maximum(centroids[labels[part]] + draw.standard_normal((part.size, size["M"])), 0.0)
    client = np.arange(size["N"]) % size["P"]
    return lambda: Clustering(X.T, client, K=size["K"])


def operations(method: str, size: Sizes) -> float:
    """Floating-point operations of a round of the settings below; an eigendecomposition is taken for 20 K^3."""
    M, N, K, P = (float(size[name]) for name in "MNKP")
    products, gram, server = 4 * M * N * K, 2 * N * K**2, 2 * M * K**2
    return {
        "fedmgs": products + 11 * gram + 100 * server,
        "fedmavg": products + 13 * gram + P * (20 + 6) * K**3,
        "fedpalm": products + 3 * gram + P * (2 * server + 6 * M * K + 2 * 20 * K**3),
    }[method]


def completion(size: Sizes) -> Ready:
    """Made-up ratings, 160 a user."""
    data = made_up(max(100, size["ratings"] // 160), 2000, size["ratings"])
    client = Users(P=100).assign(data, np.random.default_rng(0))
    return lambda: Completion(data, client, threads=1)


def gcca(size: Sizes) -> Ready:
    """Views of what I nodes see of five signals."""
    draw = np.random.default_rng(0)
    signals = draw.standard_normal((size["J"], 5))
    views = [
        signals @ draw.standard_normal((5, size["N"])) + draw.standard_normal((size["J"], size["N"]))
        for _ in range(size["I"])
    ]
    return lambda: GCCA(views, 5)


def doubled(first: int, times: int) -> list[int]:
    """``first``, doubled so many times."""
    return [first << k for k in range(times + 1)]


FAMILIES = [
    Family(
        methods={"fedmavg": {}, "fedmgs": {}, "fedpalm": {"Q": 2, "stop": None}},
        make=clustering,
        base={"N": 8000, "M": 256, "K": 10, "P": 50},
        axes={"N": doubled(8000, 4), "M": doubled(256, 4), "K": doubled(5, 5), "P": doubled(50, 5)},
        metric="objective",
        bound={"K": 2.0},
        operations=operations,
        bent=("K",),
    ),
    Family(
        methods={"fedmc-admm": {}, "fedmavg-mc": {}},
        make=completion,
        base={"ratings": 0},
        axes={"ratings": doubled(200_000, 4)},
        metric="objective",
        bound={},
    ),
    Family(
        methods={"altmaxvar": {}, "cutemaxvar": {}},
        make=gcca,
        base={"I": 3, "J": 4000, "N": 100},
        axes={"I": doubled(3, 4), "J": doubled(2000, 4)},
        metric="cost",
        bound={},
    ),
]


# -- measuring ---------------------------------------------------------------------------------------------------------


def curves(family: Family, rounds: int) -> Iterator[Growth]:
    """Every method of a family along every axis; data of a size are made once for all methods."""
    for axis, sizes in family.axes.items():
        points = [(size, family.make(size)) for size in ({**family.base, axis: n} for n in sizes)]
        for method, parameters in family.methods.items():
            found = [point(family, method, parameters, ready, rounds) for _, ready in points]
            seconds, memory = (np.array(column) for column in zip(*found, strict=True))
            expected = 1.0
            if family.operations is not None and axis in family.bent:
                counts = [family.operations(method, size) for size, _ in points]
                expected = slope(np.array(sizes), np.array(counts))
            yield Growth(method, axis, np.array(sizes), seconds, memory, expected, family.bound.get(axis, 1.0))


def point(family: Family, method: str, parameters: dict[str, Any], ready: Ready, rounds: int) -> tuple[float, float]:
    """Least seconds of a round with its objective, and peak bytes of a run of two rounds."""
    made = registry.methods()[method].make(**parameters)

    def states(problem: Any) -> Iterator[Any]:
        for state in made.rounds(problem, np.random.default_rng(0), init=problem.initial(1)):
            problem.measure(state, (family.metric,))
            yield state

    with threadpool_limits(limits=1):
        running = states(ready())
        next(running), next(running)  # the start, and a round that compiles what there is to compile
        least = np.inf
        for _ in range(rounds):
            began = time.process_time()
            next(running)
            least = min(least, time.process_time() - began)
        del running
        tracemalloc.start()
        for _ in itertools.islice(states(ready()), 3):
            pass
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return least, float(peak)


# -- showing -----------------------------------------------------------------------------------------------------------


def row(curve: Growth) -> str:
    """A line of the table."""
    of_time, of_memory = curve.exponents()
    span = f"{curve.sizes[0]:,} .. {curve.sizes[-1]:,}"
    times = f"{curve.seconds[0]:9.4f} {curve.seconds[-1]:9.4f}"
    sizes = f"{curve.memory[0] / 1e6:9.1f} {curve.memory[-1] / 1e6:9.1f}"
    numbers = f"{of_time:6.2f} ({curve.expected:4.2f}) {of_memory:6.2f}"
    return f"{curve.method:12s} {curve.axis:8s} {span:>24s} {times} {sizes} {numbers}  {'; '.join(curve.remarks())}"


def draw(found: list[Growth], path: Path) -> None:
    """Small multiples: a column for each axis, time above memory, with their slopes in the legend."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from fedrepro.plotting import style

    axes = list(dict.fromkeys((curve.axis, curve.method in FAMILIES[0].methods) for curve in found))
    figure, panels = plt.subplots(2, len(axes), figsize=(3.1 * len(axes), 6.0), squeeze=False)
    for column, (axis, clusters) in enumerate(axes):
        for curve in found:
            if (curve.axis, curve.method in FAMILIES[0].methods) != (axis, clusters):
                continue
            colour, marker = style.method(curve.method)
            for panel, values, exponent in zip(
                panels[:, column], (curve.seconds, curve.memory / 1e6), curve.exponents(), strict=True
            ):
                label = f"{registry.methods()[curve.method].label} {exponent:.2f}"
                panel.loglog(curve.sizes, values, marker=marker, color=colour, label=label, base=2)
        panels[0, column].set_title(axis)
        panels[1, column].set_xlabel(axis)
        for panel in panels[:, column]:
            panel.legend(fontsize=7, title="exponent", title_fontsize=7)
            panel.grid(alpha=0.3)
            panel.set_yscale("log", base=10)
            low, high = panel.get_ylim()
            panel.set_ylim(min(low, high / 10), high)
    panels[0, 0].set_ylabel("seconds of a round")
    panels[1, 0].set_ylabel("MB beside the data")
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def main() -> None:
    """Print the table, draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=8, help="rounds to take the least time of")
    parser.add_argument("--picture", type=Path, default=Path("plots/bench/growth.png"))
    parser.add_argument("--only", nargs="+", help="methods to measure (default: all)")
    args = parser.parse_args()
    print(f"{'':46s} {'seconds per round':>19s} {'MB beside data':>19s} {'exponent of':>13s}")
    print(f"{'method':12s} {'axis':8s} {'sizes':>24s} {'least':>9s} {'most':>9s} {'':19s} {'time (of)':>13s} memory")
    found: list[Growth] = []
    for family in FAMILIES:
        chosen = {n: p for n, p in family.methods.items() if not args.only or n in args.only}
        for curve in curves(dataclasses.replace(family, methods=chosen), args.rounds) if chosen else ():
            found.append(curve)
            print(row(curve), flush=True)
    draw(found, args.picture)
    print(f"drawn: {args.picture}")


if __name__ == "__main__":
    main()
