"""A tiny instance of every problem, for the contract tests that run every method on it.

``TINY`` contains the instances: the data, the partition and the parameters as a spec would have them, and where a
method has to start. ``CASES`` are all registered algorithms, and some of them again with other parameters. ``SENT``
gives what a method sends, according to the papers and from the sizes of the problem's arrays and of the states, not
from what the method counts.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest

from fedrepro import registry
from fedrepro.ledger import Ledger
from fedrepro.problems.clustering.lloyd import random_state, weighted_kmeans
from fedrepro.problems.clustering.methods.bel import BEL
from fedrepro.problems.clustering.methods.cal import CAL
from fedrepro.problems.clustering.methods.fedmavg import FedMAvg
from fedrepro.problems.clustering.methods.fedmgs import FedMGS
from fedrepro.problems.clustering.methods.fedpalm import FedPALM
from fedrepro.problems.clustering.methods.kmeans_parallel import KMeansParallel
from fedrepro.problems.clustering.methods.quantized import FedMAvgQuantized, FedMGSQuantized
from fedrepro.problems.completion.methods.fedmavg_mc import FedMAvgMC
from fedrepro.problems.completion.methods.fedmc_admm import FedMCADMM
from fedrepro.problems.gcca.methods.altmaxvar import AltMaxVar
from fedrepro.problems.gcca.methods.cutemaxvar import CuteMaxVar
from fedrepro.problems.gcca.methods.mvlsa import MVLSA
from fedrepro.problems.gcca.problem import Factors
from fedrepro.problems.gcca_deep.methods.altmaxvar_deep import AltMaxVarDeep
from fedrepro.problems.gcca_deep.methods.cutemaxvar_deep import CuteMaxVarDeep
from fedrepro.problems.imc.methods.imc_perfedsi import IMCPerFedSI
from fedrepro.problems.imc.methods.imc_plain import IMCPlain
from fedrepro.problems.personal.local_training import LocalTraining
from fedrepro.problems.shift.methods.gradient_descent import ShiftAveraging
from fedrepro.runs.compute.drive import randomness
from fedrepro.seeds import streams


@dataclass(frozen=True)
class Tiny:
    """A problem that every method on it runs on in a moment.

    dataset, partition : as in a spec, with their names; partition None where nobody shares. problem : keys of
    ``problem:``. parameters : values that make methods fit, given to those that have the parameter and whose name does
    not preset it. starts : ``(problem, method, init, state)``, fails unless the state is that initial point, before any
    step. explicit : ``(problem, method, state)``, another initial point in the form in which users give one.
    artifacts : what is kept of a run. needs : modules of an extra.
    """

    dataset: Mapping[str, Any]
    partition: Mapping[str, Any] | None
    problem: Mapping[str, Any]
    parameters: Mapping[str, Any]
    starts: Callable[[Any, Any, Any, Any], None]
    explicit: Callable[[Any, Any, Any], Any]
    artifacts: tuple[str, ...]
    needs: tuple[str, ...] = ()

    def values(self, case: str) -> dict[str, Any]:
        """What the algorithm of a case is given."""
        entry = algorithm(case)
        own = {f.name for f in dataclasses.fields(entry.cls)} - set(entry.preset)
        return {key: value for key, value in self.parameters.items() if key in own} | dict(CASES[case][1])

    def spec(self, case: str, metrics: tuple[str, ...]) -> dict[str, Any]:
        """A figure with one curve, of a case."""
        problem, name = algorithm(case).problem, algorithm(case).name
        values = {k: [v] if isinstance(v, list) else v for k, v in self.values(case).items()}  # a bare list is a sweep
        return {
            "paper": "beyond",
            "figure": "tiny",
            "title": "tiny",
            "problem": {"name": problem, **self.problem},
            "trials": 2,
            "rounds": 4,
            "record_every": 2,
            "record_dense": 1,
            "metrics": list(metrics),
            "artifacts": list(self.artifacts),
            "dataset": dict(self.dataset),
            **({} if self.partition is None else {"partition": dict(self.partition)}),
            "panels": {"a": {"y": metrics[0], "curves": [{"algorithm": name, **values}]}},
        }


VARIANTS: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("fedmavg", {"participation": "pcp"}),
    ("fedmavg-quantized", {"participation": "pcp", "feedback": False}),
    ("fedmc-admm", {"beta": "auto", "sends": "sum"}),
    ("cutemaxvar", {"start": "randn", "b": None, "directions": "uplink"}),
    ("cutemaxvar", {"compressor": "top-k", "kept": 0.3}),
    ("cutemaxvar-deep", {"inner_unit": "step"}),
    ("imc-plain", {"reading": "N2"}),
    ("imc-plain", {"reading": "N3"}),
)
"""Parameters beside the defaults that start from another point, draw from another source or send other messages."""

CASES: dict[str, tuple[str, Mapping[str, Any]]] = {
    **{name: (name, {}) for name in registry.methods()},
    **{f"{name} {' '.join(f'{k}={v}' for k, v in more.items())}": (name, more) for name, more in VARIANTS},
}


def algorithm(case: str) -> registry.MethodEntry:
    """The registered algorithm of a case."""
    return registry.methods()[CASES[case][0]]


def of(problem: str) -> Tiny:
    """The tiny instance of a problem."""
    assert problem in TINY, f"the problem '{problem}' has no tiny instance: add one to TINY in tests/tiny.py"
    return TINY[problem]


# -- initial points ----------------------------------------------------------------------------------------------------


def equal(got: Any, wanted: Any) -> None:
    """Fail unless two arrays are the same."""
    np.testing.assert_array_equal(np.asarray(got), np.asarray(wanted), strict=True)


def clustering_starts(problem: Any, method: Any, init: Any, state: Any) -> None:
    """W0 and H0 as given, and statistics that belong to them."""
    W0, H0 = init
    equal(state.W, W0)
    equal(state.H, H0)
    assert state.rho == getattr(method, "rho0", problem.rho)
    fresh = problem.start(init, np.random.default_rng(0))
    fresh.rho = state.rho
    wanted = problem.measure(fresh, ("objective", "curvature_ratio"))
    assert problem.measure(state, ("objective", "curvature_ratio")) == pytest.approx(wanted, rel=1e-11)


def completion_starts(problem: Any, method: Any, init: Any, state: Any) -> None:
    """U0 and V0 as given, every client's copy equal to V0, no work done."""
    U0, V0 = init
    equal(state.U, U0[problem.user])
    equal(state.V, V0)
    assert state.work == 0
    for copy in () if state.W is None else state.W:
        equal(copy, V0)


def gcca_starts(problem: Any, method: Any, init: Any, state: Any) -> None:
    """Explicit factors as given, or drawn; else the warm start: with X_i = A_i S_i B_i' of rank m, M_i = A_i A_i' G."""
    if isinstance(init, Factors):
        for Q, wanted in zip(state.Q, init.Q, strict=True):
            equal(Q, wanted)
        equal(state.G, init.G)
    elif method.start == "randn":
        for i, Q in enumerate(state.Q):
            np.testing.assert_allclose(Q, init.Q(i, *Q.shape) / np.sqrt(problem.J), rtol=1e-15)
        U, _, V = np.linalg.svd(sum(state.M), full_matrices=False)
        np.testing.assert_allclose(state.G, U @ V, atol=1e-10)
    else:
        assert method.start == "warm"
        A = [np.linalg.svd(view.X, full_matrices=False)[0][:, : method.m] for view in problem.views]
        U = np.linalg.svd(np.hstack(A))[0][:, : problem.K]
        np.testing.assert_allclose(state.G @ state.G.T, U @ U.T, atol=1e-10)
        for M_i, A_i in zip(state.M, A, strict=True):
            np.testing.assert_allclose(M_i, A_i @ (A_i.T @ state.G), atol=1e-10)
    for view, Q, M_i in zip(problem.views, state.Q, state.M, strict=True):
        np.testing.assert_allclose(M_i, view.X @ Q, atol=1e-10)
    links_start(state)


def links_start(state: Any) -> None:
    """Both ends of every link hold what was sent in full."""
    for a, b in (*zip(state.near, state.far, strict=True), (state.G_near, state.G_far)):
        equal(a, b)
    equal(state.G_far, state.G)


def deep_starts(problem: Any, method: Any, init: Any, state: Any) -> None:
    """Networks as given or as drawn, their outputs on the rows, and the polar factor of the centred sum."""
    assert len(state.theta) == problem.I
    total = np.zeros((problem.J, problem.K))
    for i, (theta, X, M_i) in enumerate(zip(state.theta, problem.views, state.M, strict=True)):
        for name, values in theta.items():
            equal(values, _deep_array(init, i, name, theta))
        np.testing.assert_allclose(M_i, _forward(theta, X) / np.sqrt(problem.J), atol=1e-10)
        total += M_i - M_i.mean(axis=0)
    U, _, V = np.linalg.svd(total, full_matrices=False)
    np.testing.assert_allclose(state.G, U @ V, atol=1e-8)
    links_start(state)


def _deep_array(init: Any, view: int, name: str, theta: Mapping[str, Any]) -> Any:
    if isinstance(init, list):
        return init[view][name]
    layer, _, part = name.rpartition(".")
    if part in ("kernel", "bias"):
        return init.uniform(view, name, theta[name].shape) / np.sqrt(len(theta[f"{layer}.kernel"]))
    return np.full(theta[name].shape, 1.0 if part in ("scale", "var") else 0.0)


def _forward(theta: Mapping[str, Any], X: np.ndarray) -> np.ndarray:
    x, hidden = X, sum(name.endswith(".scale") for name in theta)
    for name in (f"layer{layer}" for layer in range(1, hidden + 1)):
        a = {part: theta[f"{name}.{part}"] for part in ("kernel", "bias", "scale", "shift", "mean", "var")}
        x = x @ a["kernel"] + a["bias"]
        x = np.maximum((x - a["mean"]) / np.sqrt(a["var"] + 1e-5) * a["scale"] + a["shift"], 0.0)
    return x @ theta["head.kernel"] + theta["head.bias"]


def imc_starts(problem: Any, method: Any, init: Any, state: Any) -> None:
    """U and V as given or as drawn; without side information, clients are identified by their numbers."""
    if getattr(method, "reading", None) == "N3":  # one vector for all
        equal(state.U, init[0] if isinstance(init, tuple) else init.draw("U", (problem.d, 1)))
        equal(state.V @ state.Z.T, np.ones((1, problem.M)))
        return
    equal(state.Z, problem.Z if isinstance(method, IMCPerFedSI) else np.eye(problem.M))
    for i, name in enumerate("UV"):
        got = getattr(state, name)
        equal(got, init[i] if isinstance(init, tuple) else init.draw(name, got.shape))


def personal_starts(problem: Any, method: Any, init: Any, state: Any) -> None:
    """Every client's model as given or as drawn, whatever of it is shared."""
    wanted = init if isinstance(init, dict) else problem.start(state.net, init, np.random.default_rng(0))
    assert {*state.shared, *state.own} == set(state.net.shapes)
    for name, values in state.shared.items():
        equal(values, wanted[name])
    for name, values in state.own.items():
        equal(values, np.repeat(wanted[name][None], problem.M, axis=0))
    for name, values in (state.anchor or {}).items():
        equal(values, wanted[name])
    assert state.round == 0


def shift_starts(problem: Any, method: Any, init: Any, state: Any) -> None:
    """The linear model of the vector given, or of zero."""
    size = problem.d + 1 + (problem.k if method.side else 0)
    p = np.zeros(size) if isinstance(init, str) else init
    equal(state.theta, p[: problem.d])
    np.testing.assert_allclose(state.c, p[problem.d] + problem.z[:, : size - problem.d - 1] @ p[problem.d + 1 :])


def _moved(model: Mapping[str, Any]) -> dict[str, np.ndarray]:
    return {name: np.asarray(values) + np.asarray(values).dtype.type(0.125) for name, values in model.items()}


def _completion_explicit(problem: Any, method: Any, state: Any) -> Any:
    draw = np.random.default_rng(3)
    return draw.random((problem.users, problem.r)), draw.random((problem.n, problem.r))


def _shift_explicit(problem: Any, method: Any, state: Any) -> Any:
    return np.linspace(-1.0, 1.0, problem.d + 1 + (problem.k if method.side else 0))


# -- messages ----------------------------------------------------------------------------------------------------------


@dataclass
class Recorder(Ledger):
    """A ledger that also keeps every call it was made: (way, numbers, bits, clients, setup)."""

    calls: list[tuple[str, int, int, int, bool]] = field(default_factory=list)

    def up(self, scalars: int, *, kind: str, bits: int | None = None, clients: int = 1, setup: bool = False) -> None:
        """See ``Ledger``."""
        super().up(scalars, kind=kind, bits=bits, clients=clients, setup=setup)
        self._note("up", scalars, kind, bits, clients, setup)

    def down(self, scalars: int, *, kind: str, bits: int | None = None, clients: int = 1, setup: bool = False) -> None:
        """See ``Ledger``."""
        super().down(scalars, kind=kind, bits=bits, clients=clients, setup=setup)
        self._note("down", scalars, kind, bits, clients, setup)

    def _note(self, way: str, scalars: int, kind: str, bits: int | None, clients: int, setup: bool) -> None:
        assert kind, "a message must say what it is"
        for value in (scalars, clients):
            assert isinstance(value, int), f"{kind}: {value!r} is not an int"
        self.calls.append((way, scalars, 32 * scalars if bits is None else bits, clients, setup))


class Together(NamedTuple):
    """Messages in full whose sizes the data decide: only the numbers in all of them are known from outside."""

    way: str
    numbers: int


Messages = Counter[Any]
"""How many messages of each kind, (way, numbers, bits, setup), or ``Together``."""


def messages(calls: list[tuple[str, int, int, int, bool]]) -> Messages:
    """The single messages behind a ledger's calls."""
    total: Messages = Counter()
    for way, scalars, bits, clients, setup in calls:
        total[way, scalars, bits, setup] += clients
    return +total


def agree(counted: Messages, wanted: Messages) -> None:
    """Fail unless these are the messages wanted."""
    single = Counter({key: count for key, count in wanted.items() if not isinstance(key, Together)})
    rest = counted - single
    assert not single - counted, f"not counted: {dict(single - counted)}; counted beside: {dict(rest)}"
    for way, numbers in (key for key in wanted if isinstance(key, Together)):
        those = {key: count for key, count in rest.items() if key[0] == way and key[2] == 32 * key[1] and not key[3]}
        assert sum(key[1] * count for key, count in those.items()) == numbers
        rest -= Counter(those)
    assert not rest, f"counted, and not sent: {dict(rest)}"


def up(scalars: int, clients: int = 1, *, bits: int | None = None, setup: bool = False) -> Messages:
    """``clients`` messages to the server."""
    return Counter({("up", scalars, 32 * scalars if bits is None else bits, setup): clients})


def down(scalars: int, clients: int = 1, *, bits: int | None = None, setup: bool = False) -> Messages:
    """``clients`` messages from the server."""
    return Counter({("down", scalars, 32 * scalars if bits is None else bits, setup): clients})


def _H_moved(problem: Any, before: Any, after: Any) -> int:
    """How many clients have other assignments than before: those that took part."""
    return sum(not np.array_equal(before.Hs[problem.client(p)], after.Hs[problem.client(p)]) for p in range(problem.P))


def _uploads(method: Any, problem: Any, before: Any, after: Any) -> tuple[int, int]:
    """FedMAvg's active clients and uploads: all P are active (pcc), m uploads; for pcp, those whose arrays changed."""
    active = _H_moved(problem, before, after)
    assert active == problem.P or method.participation == "pcp"
    return active, problem.P if method.m is None else method.m


def fedmavg(method: Any, problem: Any, s: int, before: Any, after: Any) -> Messages:
    """fedmf Algorithm 1: W to the active clients; W_p from each of the m draws."""
    if s == 0:
        return Counter()
    active, uploads = _uploads(method, problem, before, after)
    return down(after.W.size, active) + up(after.W.size, uploads)


def fedmavg_quantized(method: Any, problem: Any, s: int, before: Any, after: Any) -> Messages:
    """FedMAvg; W_p in q bits an entry and one step size in full."""
    if s == 0:
        return Counter()
    active, uploads = _uploads(method, problem, before, after)
    return down(after.W.size, active) + up(after.W.size, uploads, bits=method.q * after.W.size + 32)


def fedmgs(method: Any, problem: Any, s: int, before: Any, after: Any) -> Messages:
    """fedmf Algorithm 2: W to the m clients; H_p H_p^T and X_p H_p^T back; those of H^0 before the first round."""
    statistics = after.W.size + after.HH.size
    if s == 0:
        return up(statistics, problem.P, setup=True)
    m = _H_moved(problem, before, after)
    assert m == (method.m or problem.P)
    return down(after.W.size, m) + up(statistics, m)


def fedmgs_quantized(method: Any, problem: Any, s: int, before: Any, after: Any) -> Messages:
    """FedMGS; the changes of H_p H_p^T and of X_p H_p^T in q bits an entry, each with a step size in full."""
    if s == 0:
        return fedmgs(method, problem, s, before, after)
    m = _H_moved(problem, before, after)
    assert m == (method.m or problem.P)
    total = down(after.W.size, m)
    for size in (after.W.size, after.HH.size):
        total += up(size, m, bits=method.q * size + 32)
    return total


def fedpalm(method: Any, problem: Any, s: int, before: Any, after: Any) -> Messages:
    """fedmf Remark 1: W to all clients, W_p from all."""
    return Counter() if s == 0 else down(after.W.size, problem.P) + up(after.W.size, problem.P)


def _draw(problem: Any) -> tuple[np.random.Generator, int]:
    """The random generator of a baseline in trial 1, and the seed of the server's K-means, which is drawn first."""
    draw = streams(randomness(problem.name, 1)).other
    return draw, random_state(draw)


def bel(method: Any, problem: Any, s: int, before: Any, after: Any) -> Messages:
    """Balcan et al., Algorithm 1: a cost each way; every client's weighted points; the centres."""
    points, weights = method.coreset(problem, _draw(problem)[0], Ledger())
    assert len(weights) == points.shape[0]
    once = up(1, problem.P) + down(1, problem.P) + down(after.W.size, problem.P)
    return once + Counter([Together("up", points.size + weights.size)])


def cal(method: Any, problem: Any, s: int, before: Any, after: Any) -> Messages:
    """the third algorithm of Chen et al.: every client's weighted points; the centres."""
    points, weights = method.summaries(problem, _draw(problem)[0], Ledger())
    return down(after.W.size, problem.P) + Counter([Together("up", points.size + weights.size)])


def kmeans_parallel(method: Any, problem: Any, s: int, before: Any, after: Any) -> Messages:
    """Bahmani et al., Algorithm 2: a cost each way and pass, candidates both ways, their weights; then Lloyd."""
    draw, seed = _draw(problem)
    C, weights = method.candidates(problem, draw, Ledger())
    X, K, M, P = problem.X, problem.K, problem.M, problem.P
    total = up(1, P * method.passes) + down(1, P * method.passes) + up(M, C.size) + up(C.size, P) + down(K * M, P)
    total += Counter([Together("down", M * C.size * P)])
    centres = weighted_kmeans(X[C], weights, K, seed, seeding=method.seeding)
    for _ in range(method.lloyd):
        near = np.square(X[:, None] - centres[None]).sum(axis=2).argmin(axis=1)
        moved = np.array([X[near == k].mean(axis=0) if (near == k).any() else centres[k] for k in range(K)])
        total += up(K * M + K, P)
        if np.allclose(moved, centres, rtol=1e-13, atol=0):
            break
        centres = moved
        total += down(K * M, P)
    np.testing.assert_allclose(after.W, centres.T, rtol=1e-12)
    return total


def fedmc_admm(method: Any, problem: Any, s: int, before: Any, after: Any) -> Messages:
    """fedmc Algorithm 1: V to the m clients, (W_i, Y_i) back; at the start V^0, Y_i^0, and what ``auto`` measures."""
    size, p = after.V.size, problem.p
    if s == 0:
        total = down(size, p, setup=True)
        total += up(size, p, setup=True) if method.Y0 == "gradient" else Counter()
        return total + (up(1, p, setup=True) if method.beta == "auto" else Counter())
    m = sum(not np.array_equal(a, b) for a, b in zip(before.W, after.W, strict=True))
    assert m == method.m
    return down(size, m) + up(size, m * (2 if method.sends == "pair" else 1))


def fedmavg_mc(method: Any, problem: Any, s: int, before: Any, after: Any) -> Messages:
    """fedmc section 5.2: V to all p clients, W_i from m; the released program sends V once, before the first round."""
    size, p = after.V.size, problem.p
    if s == 0:
        return Counter() if method.broadcast else down(size, p, setup=True)
    return up(size, method.m) + (down(size, p) if method.broadcast else Counter())


def _bits(method: Any, size: int, way: str) -> int:
    """The bits of one message of CuteMaxVar (Sec. III-C.2), of AltMaxVar 32 an entry."""
    q = getattr(method, "q", None)
    if q is None or (way == "down" and method.directions == "uplink"):
        return 32 * size
    if method.compressor == "top-k":  # a number and its place for each entry kept
        return round(method.kept * size) * (32 + math.ceil(math.log2(size)))
    return int(q * size + 32)


def maxvar(method: Any, problem: Any, s: int, before: Any, after: Any) -> Messages:
    """gcca Algorithm 1: M_i from every node, G to every node; the first ones in full (Sec. III-C.1), which count."""
    size, nodes = after.G.size, problem.I
    if s == 0:
        warm = getattr(method, "start", None) == "warm"
        return up(size, nodes) + down(size, nodes) + (
            up(problem.J * method.m, nodes, setup=True) if warm else Counter()
        )  # fmt: skip
    return up(size, nodes, bits=_bits(method, size, "up")) + down(size, nodes, bits=_bits(method, size, "down"))


def mvlsa(method: Any, problem: Any, s: int, before: Any, after: Any) -> Messages:
    """gcca Sec. III-C.1: A_i (J, m) from every node, G to every node."""
    return up(problem.J * method.m, problem.I) + down(after.G.size, problem.I)


def imc(method: Any, problem: Any, s: int, before: Any, after: Any) -> Messages:
    """perfedsi section 3: the factors that are averaged, both ways."""
    kept = isinstance(method, IMCPlain) and method.reading != "N1"
    size, m = after.U.size + (0 if kept else after.V.size), problem.M if method.m is None else method.m
    return Counter() if s == 0 else down(size, m) + up(size, m)


def personal(method: Any, problem: Any, s: int, before: Any, after: Any) -> Messages:
    """perfedsi section 2: what clients share, both ways; weights and running statistics each a message, z in none."""
    shared = after.shared or after.anchor or {}
    clients = max(1, round(method.fraction * problem.M))
    if s == 0 or not shared:
        return Counter()
    if after.own:
        own = next(name for name in after.own if name.endswith("kernel"))
        moved = sum(not np.array_equal(a, b) for a, b in zip(before.own[own], after.own[own], strict=True))
        assert moved == clients
    total: Messages = Counter()
    statistics = sum(v.size for name, v in shared.items() if name.rpartition(".")[2] in ("mean", "var"))
    for size in (sum(v.size for v in shared.values()) - statistics, statistics):
        total += down(size, clients) + up(size, clients)
    return total


def shift(method: Any, problem: Any, s: int, before: Any, after: Any) -> Messages:
    """perfedsi section 2: theta and the offset, with side information also w, both ways."""
    size = problem.x.shape[2] + 1 + (problem.z.shape[1] if method.side else 0)
    m = problem.M if method.m is None else method.m
    return Counter() if s == 0 else down(size, m) + up(size, m)


SENT: dict[type, Callable[[Any, Any, int, Any, Any], Messages]] = {
    FedMAvg: fedmavg,
    FedMAvgQuantized: fedmavg_quantized,
    FedMGS: fedmgs,
    FedMGSQuantized: fedmgs_quantized,
    FedPALM: fedpalm,
    BEL: bel,
    CAL: cal,
    KMeansParallel: kmeans_parallel,
    FedMCADMM: fedmc_admm,
    FedMAvgMC: fedmavg_mc,
    CuteMaxVar: maxvar,
    AltMaxVar: maxvar,
    MVLSA: mvlsa,
    CuteMaxVarDeep: maxvar,
    AltMaxVarDeep: maxvar,
    IMCPerFedSI: imc,
    IMCPlain: imc,
    LocalTraining: personal,
    ShiftAveraging: shift,
}
"""What a method of a class sends up to its state ``after`` round s, from the state ``before``; s = 0: at the start."""


def sent(method: Any) -> Callable[[Any, Any, int, Any, Any], Messages] | None:
    """What the papers say that a method sends, by its class or the nearest class it derives from; None if unknown.

    Methods of no paper need no entry: their tests compare their messages.
    """
    return next((SENT[cls] for cls in type(method).__mro__ if cls in SENT), None)


TINY: dict[str, Tiny] = {
    "clustering": Tiny(
        dataset={"name": "synthetic", "variant": "clean", "M": 9, "N": 48, "K": 3},
        partition={"name": "uniform", "P": 4},
        problem={"rho": 1e-6},
        parameters={"m": 3, "Q1": 2, "Q2": 3, "z": 5, "n_init": 2, "perplexity": 5.0},
        starts=clustering_starts,
        explicit=lambda problem, method, state: (1.5 * state.W, state.H + 0.25),
        artifacts=("W", "H", "found", "labels", "embedding"),
    ),
    "completion": Tiny(
        dataset={"name": "movielens-1m", "users": 12, "min_item_ratings": 2},
        partition={"name": "users", "P": 4},
        problem={"r": 2, "lam": 0.01, "gam": 0.01, "init": 0.5},
        parameters={"m": 2, "N": 2, "Q1": 2, "Q2": 2},
        starts=completion_starts,
        explicit=_completion_explicit,
        artifacts=("U", "V"),
    ),
    "gcca": Tiny(
        dataset={"name": "gcca-synthetic", "J": 30, "N": 6, "D": 4, "I": 3},
        partition=None,
        problem={"K": 2, "test": 6},
        parameters={"m": 4, "T": 2, "b": 8},
        starts=gcca_starts,
        explicit=lambda problem, method, state: Factors([1.5 * Q for Q in state.Q], np.array(state.G)),
        artifacts=("G", "M"),
    ),
    "gcca-deep": Tiny(
        dataset={"name": "gcca-toy", "J": 24, "validation": 8, "test": 8, "cluster": 12},
        partition=None,
        problem={"K": 2},
        parameters={"hidden": [5], "T": 1, "b": 12},
        starts=deep_starts,
        explicit=lambda problem, method, state: [_moved(theta) for theta in state.theta],
        artifacts=("view1", "view2", "view3", "G", "labels", "groups"),
        needs=("jax", "optax"),
    ),
    "imc": Tiny(
        dataset={"name": "imc", "d": 6, "M": 8, "k": 3, "r": 2, "per_client": 4, "least": 0.01},
        partition=None,
        problem={},
        parameters={"m": 3, "tau": 4},
        starts=imc_starts,
        explicit=lambda problem, method, state: (state.U + 0.5, 2.0 * state.V),
        artifacts=("U", "V"),
    ),
    "personal": Tiny(
        dataset={"name": "cifar10", "train": 20, "test": 10, "size": 16},
        partition={"name": "iid_images", "P": 4},
        problem={"widths": [2, 2, 4, 2], "shift": "affine", "side": "shift"},
        parameters={"fraction": 0.5, "batch": 2},
        starts=personal_starts,
        explicit=lambda problem, method, state: _moved(state.shared | {k: v[0] for k, v in state.own.items()}),
        artifacts=("client_accuracy", "side"),
        needs=("jax", "optax"),
    ),
    "shift": Tiny(
        dataset={"name": "shift", "d": 3, "k": 2, "M": 6, "n": 4},
        partition=None,
        problem={"sigma_b": 2.0},
        parameters={"m": 3, "tau": 2},
        starts=shift_starts,
        explicit=_shift_explicit,
        artifacts=("b", "c"),
    ),
}
