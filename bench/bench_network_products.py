"""Where a trained network's sums depend on the CPU: its matrix products and sums, and the library that computes each.

For the networks of gcca Fig. 11 and Fig. 13 and of perfedsi Fig. 1 (FedAvg) the script compiles a round of training as
a run does, and prints every matrix product of the compiled program as rows x columns x k, where k is the length of its
sums, with the lengths of the parts in which the library adds them:

* Eigen computes products that XLA does not give to YNNPACK. It splits sums by the size of the L1 data cache; printed
  for 32 KiB (most AMD EPYC) and 48 KiB (Intel Xeon since Ice Lake). Networks have none (``fedrepro/nets/product.py``).
* YNNPACK computes all others. It splits sums by the block of its kernel, which is wider with AVX-512; printed without
  and with. The flag ``nets.backend.EVERY_CPU`` makes it add as if there were no AVX-512.

In single precision ``rsqrt`` starts from the CPU's own approximation, which is another one on AMD than on Intel; the
flag makes it 1 / sqrt.

``--l1 49152`` also trains each network for a round twice: with the cache size that Eigen reads from the CPU, and with
the given one, which is written into the loaded library (Linux on x86-64). A digest of the parameters shows whether the
bits change. Run ``python bench/bench_network_products.py --l1 49152`` (half a minute).
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import math
import os
import re
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedrepro import cpu, registry
from fedrepro.nets import backend, mlp, training
from fedrepro.nets.convnet import Net, initial
from fedrepro.nets.mlp import Mlp
from fedrepro.nets.weights import trained
from fedrepro.problems.gcca_deep import deep_nodes

CACHES = (32 * 1024, 48 * 1024)
BYTES = {"f32": 4, "f64": 8}
EIGEN_ROWS, EIGEN_COLUMNS = {"f32": 16, "f64": 8}, 4
"""The register block of Eigen's kernel as jaxlib compiles it (AVX without FMA)."""
YNN_CACHE = 128 * 1024
YNN_BYTES = {"AVX2": 64, "AVX-512": 256}
"""YNNPACK's constant, and the bytes of a row of its kernels' widest block."""
CACHE_SIZES = b"_ZZN5Eigen8internal20manage_caching_sizesENS_6ActionEPlS2_S2_E12m_cacheSizes"
INSTRUCTION = re.compile(r"^\s*(?:ROOT )?%(\S+) = (\w+)\[([\d,]*)\]\S* (\S+?)\((.*)$")


@dataclass(frozen=True)
class Program:
    """A network's round of training: the text of its compiled program, and a call that returns new parameters."""

    text: str
    train: Callable[[], Mapping[str, Any]]


def deep(J: int, N: int, K: int, **params: Any) -> Program:
    """A node of deep GCCA with a random view (J, N) and a random target."""
    rng = np.random.default_rng(0)
    method = registry.methods()["altmaxvar-deep"].make(target_scale="none", **params)
    net = Mlp(N, tuple(method.hidden), K)
    model = mlp.initial(net, lambda _, shape: rng.uniform(-1.0, 1.0, shape), np.float64)
    node = deep_nodes.DeepNode(rng.standard_normal((J, N)), model, rng, method)
    G, batches = np.linalg.qr(rng.standard_normal((J, K)))[0], node._batches()
    call = deep_nodes._trainer(method.loss, method.optimizer)
    arguments = (model, node._optimizer, node._X, G, batches, np.float64(method.lr))

    def train() -> Mapping[str, Any]:
        with mlp.computing(True):
            return dict(call(*arguments)[0])

    with mlp.computing(True):
        return Program(call.lower(*arguments).compile().as_text(), train)


def images(clients: int = 2, samples: int = 100) -> Program:
    """Local epochs of the network of perfedsi Fig. 1 on random images."""
    rng, net = np.random.default_rng(0), Net(28, 1, 1623)
    data = training.on_device(rng.integers(0, 256, (200, 28, 28, 1)).astype(np.uint8), rng.integers(0, 1623, 200))
    model = initial(net, lambda _, shape: rng.uniform(-1.0, 1.0, shape), np.float32)
    sgd, number = training.SGD(0.05), np.float32
    order, counts = training.orders(np.split(np.arange(clients * samples), clients), rng, sgd, samples)
    rates = {name: number(sgd.lr) for name in net.shapes if trained(name)}
    models = training.stacked(model, {}, net, np.arange(clients))
    pull = {name: np.zeros(net.shapes[name], number) for name in rates}
    rest = (rates, number(sgd.momentum), number(0.0), data.pixels, data.labels)
    arguments = (models, pull, np.zeros((clients, 0), number), order, counts, *rest)
    call = training._trainer(net, False)
    return Program(call.lower(*arguments).compile().as_text(), lambda: dict(call(*arguments)))


EHR = {"hidden": (512, 256, 128, 64), "inner_unit": "step", "b": 250, "lr": 5e-4}
PROGRAMS: dict[str, Callable[[], Program]] = {
    "gcca fig11": lambda: deep(10_000, 2, 2),
    "gcca fig13": lambda: deep(527, 511, 10, **EHR),
    "perfedsi fig1": images,
}


@dataclass(frozen=True)
class Operation:
    """An operation that a library computes: its sizes, ending with the length of its sums."""

    library: str
    name: str
    dtype: str
    sizes: tuple[int, ...]

    def parts(self) -> str:
        """The lengths of the parts of its sums, in the cases that can differ."""
        k = self.sizes[-1]
        if self.name == "product" and self.library == "Eigen":
            return ", ".join(f"{eigen_part(k, self.dtype, cache)} (L1 {cache // 1024} KiB)" for cache in CACHES)
        if self.name == "product":
            return ", ".join(f"{min(k, YNN_CACHE // width)} ({level})" for level, width in YNN_BYTES.items())
        return ""


def eigen_part(k: int, dtype: str, cache: int) -> int:
    """The number of terms that Eigen adds at a time (evaluateProductBlockingSizesHeuristic, one thread)."""
    rows = EIGEN_ROWS[dtype]
    most = (cache - rows * EIGEN_COLUMNS * BYTES[dtype]) // ((rows + EIGEN_COLUMNS) * BYTES[dtype]) // 8 * 8
    if k <= most:
        return k
    return most if k % most == 0 else most - 8 * ((most - 1 - k % most) // (8 * (k // most + 1)))


def operations(text: str) -> Iterator[Operation]:
    """The products and sums of a compiled program (HLO text)."""
    in_ynn = set(re.findall(r"calls=%(\S+?),.*__ynn_fusion", text))
    shapes: dict[str, tuple[int, ...]] = {}
    computation = ""
    for line in text.splitlines():
        if line.startswith("%"):
            computation = line[1:].split()[0]
        elif not (match := INSTRUCTION.match(line)):
            continue
        else:
            name, dtype, sizes, kind, rest = match.groups()
            shapes[name] = tuple(int(size) for size in sizes.split(",") if size)
            left = shapes.get(rest.split(",")[0].rstrip(")").lstrip("%"), ())
            library = "YNNPACK" if computation in in_ynn else "Eigen"
            if kind == "dot":
                over = int(re.search(r"lhs_contracting_dims={(\d+)}", rest).group(1))  # type: ignore[union-attr]
                yield Operation(library, "product", dtype, (*shapes[name], left[over]))
            elif kind == "reduce" and library == "YNNPACK":
                terms = math.prod(left) // max(1, math.prod(shapes[name]))
                yield Operation(library, "reduce", dtype, (math.prod(shapes[name]), terms))
            elif kind == "rsqrt" and dtype == "f32":
                yield Operation("the CPU", "rsqrt", dtype, shapes[name])


def digest(parameters: Mapping[str, Any]) -> str:
    """A short hash of all bits of a model."""
    hashed = hashlib.sha256()
    for name in sorted(parameters):
        hashed.update(np.ascontiguousarray(parameters[name]).tobytes())
    return hashed.hexdigest()[:12]


def eigen_caches() -> Any:
    """Eigen's sizes of the L1, L2 and L3 caches in the loaded jaxlib, as three writable integers."""
    lines = [line.split() for line in Path("/proc/self/maps").read_text().splitlines() if "libjax_common" in line]
    if not lines:
        raise SystemExit("no library libjax_common.so is loaded; this works with jaxlib for Linux")
    base, library = int(lines[0][0].partition("-")[0], 16), lines[0][-1]
    return (ctypes.c_int64 * 3).from_address(base + _address(Path(library), CACHE_SIZES))


def _address(library: Path, symbol: bytes) -> int:
    """The address of a symbol in the symbol table of a 64-bit ELF file."""
    content = np.memmap(library, mode="r")
    (sections,) = struct.unpack_from("<Q", content, 40)
    size, count = struct.unpack_from("<HH", content, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", content, sections + size * i) for i in range(count)]
    for _, kind, _, _, offset, length, link, *_ in headers:
        if kind == 2:  # the full symbol table; names are in the section that it links to
            names = bytes(content[headers[link][4] : headers[link][4] + headers[link][5]])
            place = names.find(b"\0" + symbol + b"\0") + 1
            fields = np.dtype([("name", "<u4"), ("info", "<u4"), ("value", "<u8"), ("size", "<u8")])
            table = np.frombuffer(content[offset : offset + length], dtype=fields)
            if place and len(rows := table[table["name"] == place]):
                return int(rows["value"][0])
    raise SystemExit(f"{library} has no symbol {symbol.decode()}; this works with jaxlib 0.10.2")


def main() -> None:
    """Print the operations, and with ``--l1`` the digests."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--l1", type=int, help="bytes of the L1 cache that Eigen is to assume for a second round")
    parser.add_argument("--networks", nargs="*", default=list(PROGRAMS), choices=list(PROGRAMS))
    options = parser.parse_args()
    if cpu.available():
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {cpu.XLA}".strip()  # as in a run
    backend.load()
    for name in options.networks:
        program = PROGRAMS[name]()
        print(name)
        for operation, times in Counter(operations(program.text)).items():
            sizes = " x ".join(map(str, operation.sizes))
            print(
                f"  {operation.library:8s} {operation.name:8s} {operation.dtype} {sizes:18s} {times:2d}x  "
                f"{'parts of ' if operation.parts() else ''}{operation.parts()}".rstrip()
            )
        if options.l1:
            before, caches = digest(program.train()), eigen_caches()
            own = caches[0]
            caches[0] = options.l1
            after = digest(program.train())
            caches[0] = own
            outcome = "same bits" if before == after else "other bits"
            print(f"  a round with an L1 cache of {own} bytes: {before}, of {options.l1}: {after}: {outcome}")


if __name__ == "__main__":
    main()
