"""Large data through the command line: a million samples in memory, and a matrix that does not fit in it.

``samples``: FedMGS on N = 1,000,000 generated samples (M = 200, K = 20, P = 10,000 clients), 50 rounds. Peak memory of
a process, making the data included, should stay under 3 times X (1.6 GB).

``disk``: FedMAvg and FedMGS on a .npy file of 6 GB (M = 2000, N = 375,000) that is the user's own, under a limit of
2 GB on what a process may allocate (RLIMIT_DATA, which counts no pages of files), samples in rows and in columns. With
``--cgroup FOLDER`` the command also runs in that cgroup, whose limit (memory.max, or memory.limit_in_bytes) counts the
cached pages of files too: nothing then stays in memory from one pass to the next. Beside the file it takes as much disk
again for the problem's arrays, and as much for a while where samples stand in columns.

Memory is read ten times a second of every process: ``anonymous`` is what it allocated, ``resident`` counts pages of
mapped files, which the kernel drops when it needs room. Run ``python bench/bench_large.py`` (about ten minutes, 12 to
18 GB of disk in ``--folder``); ``--scale 0.1`` for a look.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

SAMPLES = {"M": 200, "N": 1_000_000, "K": 20, "P": 10_000, "rounds": 50}
DISK = {"M": 2000, "N": 375_000, "K": 10, "P": 100, "rounds": 3}
MEMORY_AIM = 3.0
LIMIT = 2 * 10**9
SPEC = """\
paper: beyond
figure: large
title: "large data"
problem: {{name: clustering, K: {K}}}
trials: 1
rounds: {rounds}
dataset: {dataset}
partition: {{name: uniform, P: {P}}}
panels: {{a: {{curves: [{curves}]}}}}
tiers: {{smoke: {{}}, quick: {{}}, paper: {{}}}}
"""


def samples(folder: Path, scale: float) -> None:
    """A million samples made, prepared and run by one worker."""
    size = {**SAMPLES, "N": int(SAMPLES["N"] * scale), "P": int(SAMPLES["P"] * scale)}
    X = 8.0 * size["M"] * size["N"]
    dataset = "{{name: synthetic, M: {M}, N: {N}, K: {K}}}".format(**size)
    print(f"FedMGS, {' '.join(f'{k}={v}' for k, v in size.items())}: X {X / 1e9:.2f} GB")
    done = command(folder, size, dataset, ["fedmgs"])
    ratio = done["resident"] / X
    print(f"  peak {done['resident'] / 1e9:.2f} GB, {ratio:.2f} x X, aim {MEMORY_AIM:g}: {met(ratio <= MEMORY_AIM)}")


def disk(folder: Path, scale: float, cgroup: Path | None) -> None:
    """A file of the user's own, in both orientations, under the limit."""
    size = {**DISK, "N": int(DISK["N"] * scale)}
    X, limit = 8.0 * size["M"] * size["N"], int(LIMIT * max(scale, 0.4))
    for orientation, files in (("rows", 2), ("columns", 3)):
        free = shutil.disk_usage(folder).free
        if free < 1.05 * files * X:
            print(f"left out: {files * X / 1e9:.0f} GB of disk are needed in {folder}, {free / 1e9:.0f} GB are free")
            continue
        path = folder / f"{orientation}.npy"
        write(path, size["M"], size["N"], size["K"], orientation)
        print(
            f"\nX {X / 1e9:.2f} GB, M={size['M']} N={size['N']}, samples in {orientation}, limit {limit / 1e9:.1f} GB"
        )
        dataset = f"{{name: file, path: {path}, orientation: {orientation}}}"
        for where in [None, cgroup] if cgroup else [None]:
            forget(path)
            done = command(folder, size, dataset, ["fedmavg", "fedmgs"], limit, where)
            fits = done["anonymous"] <= limit
            print(f"  allocated at most {done['anonymous'] / 1e9:.2f} GB: {met(fits)}")
        path.unlink()


def write(path: Path, M: int, N: int, K: int, orientation: str) -> None:
    """Non-negative samples around K centroids, written in the order of the file."""
    draw = np.random.default_rng(0)
    centroids, labels = draw.random((K, M)), draw.integers(K, size=N)
    A = centroids if orientation == "rows" else centroids.T
    shape = (N, M) if orientation == "rows" else (M, N)
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": shape})
        for part in np.array_split(np.arange(shape[0]), max(1, N * M // 2_000_000)):
            block = A[labels[part]] if orientation == "rows" else A[part][:, labels]
            file.write(np.maximum(block + 0.5 * draw.standard_normal(block.shape), 0.0).data)


def forget(path: Path) -> None:
    """Drop a file's pages from memory: those read before would count for nobody's limit."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def command(
    folder: Path,
    size: dict[str, int],
    dataset: str,
    methods: list[str],
    limit: int | None = None,
    cgroup: Path | None = None,
) -> dict[str, float]:
    """``fedrepro run`` with one worker; prints its seconds, returns the peak bytes of its largest process."""
    spec, results = folder / "large.yaml", folder / "results"
    curves = ", ".join(f"{{algorithm: {name}}}" for name in methods)
    spec.write_text(SPEC.format(**size, dataset=dataset, curves=curves), encoding="utf-8")

    def set_up() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
        if cgroup is not None:
            (cgroup / "cgroup.procs").write_text(str(os.getpid()))

    began = time.perf_counter()
    words = [sys.executable, "-m", "fedrepro", "run", str(spec), "--jobs", "1", "--quiet", "--results", str(results)]
    try:
        with (
            subprocess.Popen(words, preexec_fn=set_up, stdout=subprocess.PIPE, text=True) as process,
            watched(process.pid) as peaks,
        ):
            said = process.communicate()[0]
        if process.returncode:
            sys.exit(f"{' '.join(words)} ended with {process.returncode}:\n{said}")
        seconds = time.perf_counter() - began
        where = f"in {cgroup.name}, " if cgroup else ""
        print(f"  {where}all {seconds:.0f} s; anonymous {peaks['anonymous'] / 1e9:.2f} GB", end="")
        print(f", resident {peaks['resident'] / 1e9:.2f} GB (largest process)")
        for path in sorted((results / ".runs").rglob("*.npz")):
            with np.load(path) as record:
                meta = json.loads(str(record["meta"]))
            print(f"  {meta['series']}: {meta['seconds'] / size['rounds']:.2f} s a round ({meta['status']})")
        return peaks
    finally:
        shutil.rmtree(results, ignore_errors=True)


@contextlib.contextmanager
def watched(root: int) -> Iterator[dict[str, float]]:
    """Peak anonymous and resident bytes of any one process of a tree, as far as looks ten times a second see them."""
    peaks, over = {"anonymous": 0.0, "resident": 0.0}, threading.Event()

    def look() -> None:
        while not over.wait(0.1):
            for process in tree(root):
                for name, field in (("anonymous", "RssAnon"), ("resident", "VmHWM")):
                    peaks[name] = max(peaks[name], status(process).get(field, 0.0))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield peaks
    finally:
        over.set()
        thread.join()


def tree(root: int) -> Iterator[int]:
    """A process and all its descendants."""
    yield root
    for children in Path(f"/proc/{root}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in children.read_text().split():
                yield from tree(int(child))


def status(process: int) -> dict[str, float]:
    """The sizes in a process' status, in bytes; empty once it has ended."""
    with contextlib.suppress(OSError):
        lines = [line.split() for line in Path(f"/proc/{process}/status").read_text().splitlines()]
        return {line[0][:-1]: 1024.0 * int(line[1]) for line in lines if line[-1] == "kB"}
    return {}


def met(holds: Any) -> str:
    """What to print behind an aim."""
    return "met" if holds else "MISSED"


def main() -> None:
    """Print everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=["samples", "disk"], help="samples, disk")
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of samples")
    parser.add_argument("--folder", type=Path, help="where to lay files (default: that for temporary files)")
    parser.add_argument("--cgroup", type=Path, help="a cgroup with a limit of memory to run in too")
    args = parser.parse_args()
    if not Path("/proc/self/status").exists():
        print("left out: memory is read from /proc, which this system does not have")
        return
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        if "samples" in args.parts:
            samples(Path(folder), args.scale)
        if "disk" in args.parts:
            disk(Path(folder), args.scale, args.cgroup)


if __name__ == "__main__":
    main()
