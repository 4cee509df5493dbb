"""Samples per second of local SGD, and the memory of 500 clients' own models (problem ``personal``).

Two workers, one core each, as in a run: together at least 3,000 samples a second at width 64 (28 x 28 pixels, 1,623
classes) and 18,000 at width 16, and at most 2 GB of personal parameters for 500 clients that keep everything (Local) at
width 64. Also shown, without an aim: Ditto's pull, the networks of PerFedSI and of CIFAR, seconds to compile.

Run ``python bench/bench_personal.py`` (two minutes, on an idle machine). Where other work shares the cores, the second
column says more: samples per second on a core.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import resource
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from fedrepro.nets.convnet import Net, initial
from fedrepro.nets.stacked_models import stack_length, stacked
from fedrepro.nets.training import SGD, on_device, orders, train

WIDE, NARROW = (64, 64, 64, 256), (16, 16, 16, 64)
OMNIGLOT, MINI = Net(28, 1, 1623, WIDE), Net(28, 1, 242, NARROW)
CIFAR = Net(32, 3, 10, (64,) * 4)
NETS: dict[str, tuple[Net, SGD, float | None]] = {
    "28 x 28, width 64": (OMNIGLOT, SGD(0.05), 3000.0),
    "  with Ditto's pull": (OMNIGLOT, SGD(0.05, mu=1.0), None),
    "  PerFedSI, concatenation": (dataclasses.replace(OMNIGLOT, side="concat", side_dim=256), SGD(0.05), None),
    "28 x 28, width 16": (MINI, SGD(0.05), 18000.0),
    "  PerFedSI, concatenation ": (dataclasses.replace(MINI, side="concat", side_dim=64), SGD(0.05), None),
    "32 x 32 x 3, width 64": (CIFAR, SGD(0.1), None),
    "  PerFedSI, mask": (dataclasses.replace(CIFAR, side="mask", side_dim=4), SGD(0.1), None),
    "32 x 32 x 3, width 16": (dataclasses.replace(CIFAR, widths=(16,) * 4), SGD(0.1), None),
}
CLIENTS, SAMPLES = 10, 100
MEMORY_CLIENTS, MEMORY_AIM = 500, 2e9


def speed(row: int, seconds: float) -> dict[str, float]:
    """One process's samples per second over about ``seconds``, per second on a core, and seconds of the first call."""
    net, sgd, _ = list(NETS.values())[row]
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (1000, net.size, net.size, net.channels)).astype(np.uint8)
    data = on_device(pixels, rng.integers(0, net.classes, 1000))
    model = initial(net, lambda _, shape: rng.uniform(-1.0, 1.0, shape), np.float32)
    models = stacked(model, {}, net, np.arange(CLIENTS))
    batches = orders(np.split(np.arange(1000), CLIENTS), rng, sgd, SAMPLES)
    z = rng.random((CLIENTS, net.side_dim))

    def call() -> None:
        train(net, data, models, z, batches, sgd, anchor=model)

    began = time.perf_counter()
    call()
    first, calls = time.perf_counter() - began, 0
    began, busy = time.perf_counter(), time.process_time()
    while time.perf_counter() - began < seconds or calls < 2:
        call()
        calls += 1
    done = calls * CLIENTS * SAMPLES
    return {
        "rate": done / (time.perf_counter() - began),
        "busy": done / (time.process_time() - busy),
        "first": first,
    }


def memory() -> dict[str, float]:
    """Bytes of the models that 500 clients keep, and of this process after one round of Local with them."""
    from fedrepro.datasets.types import Images
    from fedrepro.problems.personal.methods.averaging import PersonalAveraging
    from fedrepro.problems.personal.problem import Personal

    rng, n = np.random.default_rng(0), 33 * MEMORY_CLIENTS
    labels = rng.permutation(np.arange(n) % 1623)
    images = Images(rng.integers(0, 256, (n, 28, 28, 1)).astype(np.uint8), labels)
    owner = np.stack([np.arange(n) % MEMORY_CLIENTS, (np.arange(n) // MEMORY_CLIENTS == 0)], axis=1).astype(int)
    problem = Personal(images, owner, widths=list(WIDE))
    states = PersonalAveraging(personal="all").rounds(problem, rng, init=problem.initial(0))
    for _ in range(2):
        state = next(states)
    unit = 1 if sys.platform == "darwin" else 1024
    peak = float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)
    own = float(sum(values.nbytes for values in state.own.values()))
    return {"own": own, "peak": peak, "stack": float(stack_length(problem.plain, 100, np.float32))}


def children(count: int, *task: Any) -> list[Any]:
    """The answers of ``count`` fresh processes doing a task at the same time, one core each where there are enough."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []

    def ask(i: int) -> Any:
        command = [sys.executable, __file__, "--task", *map(str, task)]
        if len(cores) >= count:
            command += ["--core", str(cores[i])]
        return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(ask, range(count)))


def answer(task: list[str], core: int | None) -> Any:
    """Do a task in this process."""
    if core is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    return memory() if task[0] == "memory" else speed(int(task[1]), float(task[2]))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=6.0, help="how long each row is measured")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--task", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--core", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.task:
        print(json.dumps(answer(args.task, args.core)))
        return
    print(f"local SGD, batches of 10, samples/s of {args.workers} workers together, per second on a core; first call")
    for row, (name, (_, _, aim)) in enumerate(NETS.items()):
        found = children(args.workers, "speed", row, args.seconds)
        rate, busy = (sum(one[key] for one in found) for key in ("rate", "busy"))
        first = max(one["first"] for one in found)
        said = "" if aim is None else f"aim {aim:.0f}: {'met' if rate >= aim else 'MISSED'}"
        print(f"  {name:28s} {rate:8.0f} {busy:8.0f} {first:6.1f} s  {said}", flush=True)
    found = children(1, "memory")[0]
    print(f"\n{MEMORY_CLIENTS} clients that keep the whole network of width 64, after a round of Local")
    said = f"aim {MEMORY_AIM / 1e9:g} GB: {'met' if found['own'] <= MEMORY_AIM else 'MISSED'}"
    print(f"  {'their models':28s} {found['own'] / 1e9:8.2f} GB  {said}")
    print(f"  {'the process, at its peak':28s} {found['peak'] / 1e9:8.2f} GB  ({found['stack']:.0f} models at a time)")


if __name__ == "__main__":
    main()
