r"""MAX-VAR generalized canonical correlation analysis of I aligned views, and the measures of its iterates.

.. math::  \min_{Q_1, \dots, Q_I, G}\ f = \sum_{i=1}^I \tfrac12 \|X_i Q_i - G\|_F^2
           \quad\text{subject to}\quad G^\top G = I_K

X_i: (J, N_i), Q_i: (N_i, K), G: (J, K). With P = sum_i X_i X_i^+ the optimum is G = the top K eigenvectors of P and
v* = (I K - sum_k lambda_k(P)) / 2.

Source: Shrestha and Fu, eq. (2), Sec. II-A and V-A.3, V-A.5; docs/derivations/maxvar-optimum.md,
docs/derivations/compression-ratio.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import scipy
from threadpoolctl import threadpool_limits

from fedrepro import seeds
from fedrepro.errors import ParameterError, UserError
from fedrepro.ledger import FULL_BITS
from fedrepro.multiview.aligned_views import View, check_columns, check_views, decomposing
from fedrepro.multiview.maxvar import Optimum, solve
from fedrepro.parameters import Flag, Range, Whole, all_of, check
from fedrepro.protocols import Cost, Metric, Problem, Work, by_name
from fedrepro.registry import add_problem


@dataclass(frozen=True)
class Factors:
    """An explicit initial point: Q_i (N_i, K) for every view, and G (J, K), or None for the polar factor, eq. (9)."""

    Q: Sequence[np.ndarray]
    G: np.ndarray | None = None


@dataclass(frozen=True)
class RandomStart:
    """Standard normal draws for a random initial point, the same for all methods of one trial (``key``)."""

    key: int

    def Q(self, view: int, N: int, K: int) -> np.ndarray:
        """(N, K) for the view with this index."""
        return seeds.generator("init", problem="gcca", key=self.key, view=view).standard_normal((N, K))

    def G(self, J: int, K: int) -> np.ndarray:
        """(J, K)."""
        return seeds.generator("init", problem="gcca", key=self.key, view="G").standard_normal((J, K))


METRICS = by_name(
    Metric("cost", "cost value", "lower", "f = sum_i 1/2 ||X_i Q_i - G||_F^2, of the true X_i Q_i and G"),
    Metric("optimum", "optimal cost", "lower", "v*, the exact global optimum: the same at every state"),
    Metric("ratio", "cost / optimal cost", "lower", "f / v*"),
    Metric(
        "consensus", "consensus residual", "lower", "(sum_i ||M_i - mean M||^2 / sum_i ||M_i||^2)^(1/2), M_i = X_i Q_i"
    ),
    Metric(
        "lag", "estimation error", "lower", "distance of the links' estimates from M_i and G, relative to their norm"
    ),
    Metric("stationarity", "KKT residual", "lower", "||Phi(Q, G)||_F, eq. (23)"),
    Metric("subspace", "subspace distance", "lower", "dist(R(G), R(U_1)) of Theorem 3"),
    Metric("ac", "alignment accuracy", "higher", "AC on the held-out rows, both directions of every pair"),
    Metric("ac_one_way", "alignment accuracy", "higher", "the same over pairs i < m, one direction"),
)

PARAMETERS: dict[str, Any] = {"K": 5, "center": False, "test": None, "optimum": True}
"""K, center: as for ``GCCA``. test: rows held out at the end, by default the dataset's number (none for most).
optimum: whether the exact optimum is computed with the data, for the metrics optimum, ratio and subspace."""


class GCCA(Problem):
    """MAX-VAR GCCA on views in memory.

    views : I matrices (J, N_i), rows aligned: NumPy arrays or scipy.sparse matrices, real and finite, none zero
        everywhere and none with a constant column (empty columns of a sparse view are allowed; their rows of Q stay).
    K : dimension of the common representation, 1 .. the smallest rank of a view.
    center : whether to subtract the column means from the (dense) views first (discrepancy gcca.11; this implies
        1'G = 0 without quantization).
    test : number of last rows held out for the alignment accuracy; J counts the others. In a spec, None means the
        dataset's number (none for most).

    A spec has one more key. optimum : whether the exact optimum is computed with the data, for the metrics optimum,
    ratio and subspace.

    Raises UserError or ParameterError if these conditions do not hold. ``views`` are ``View`` objects, one per node;
    ``kept`` contains results that several methods use (the warm start).

    >>> import numpy as np
    >>> from fedrepro import GCCA
    >>> rng = np.random.default_rng(0)
    >>> common = rng.standard_normal((40, 2))
    >>> views = [common @ rng.standard_normal((2, 5)) + 0.1 * rng.standard_normal((40, 5)) for _ in range(3)]
    >>> problem = GCCA(views, K=2)
    >>> bool(0 <= problem.optimum.value <= 3 * 2 / 2)  # at most I K / 2
    True
    >>> [view.X.shape for view in problem.views]
    [(40, 5), (40, 5), (40, 5)]
    """

    name = "gcca"
    metrics = METRICS
    default_metrics = ("cost",)
    parameters = PARAMETERS
    ranges: ClassVar[Mapping[str, Range]] = {"K": Whole(), "center": Flag(), "test": Whole(0), "optimum": Flag()}
    probes: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "dense": {"dataset": {"name": "gcca-synthetic", "J": 500, "N": 50, "D": 20}, "problem": {"test": 50}},
        "sparse": {
            "dataset": {"name": "gcca-sparse", "J": 3000, "N": 200, "D": 40, "densities": [0.05, 0.01, 0.005]},
            "problem": {"test": 50, "optimum": False},
        },
    }

    def __init__(self, views: Sequence[Any], K: int, *, center: bool = False, test: int = 0) -> None:
        _check_parameters({"K": K, "center": center, "test": test})
        matrices = check_views(views)
        J = matrices[0].shape[0] - test
        if J < 1:
            raise ParameterError("test", f"must be fewer than the {J + test} rows there are, not {test}")
        train, held_out = [X[:J] for X in matrices], [X[J:] for X in matrices] if test else []
        check_columns(train)
        if center:
            train, held_out = _centered(train, held_out)
        self.views = [View(X) for X in train]
        self.test_views = [View(X) for X in held_out]
        self.K = int(K)
        self._optimum: Optimum | None = None
        self.kept: dict[str, Any] = {}
        with threadpool_limits(limits=1):  # more threads add in another order
            for i, view in enumerate(self.views, start=1):
                view.check_rank(f"view {i} of {self.I}", self.K)

    @classmethod
    def restore(cls, views: list[View], test_views: list[View], K: int, optimum: Optimum | None) -> GCCA:
        """A problem from parts that are already checked."""
        problem = cls.__new__(cls)
        problem.views, problem.test_views, problem.K, problem._optimum = views, test_views, int(K), optimum
        problem.kept = {}
        return problem

    @property
    def I(self) -> int:  # noqa: E743 (the paper's symbol)
        """Views, each at its own node."""
        return len(self.views)

    @property
    def J(self) -> int:
        """Rows: the samples all views share."""
        return self.views[0].J

    @property
    def N(self) -> list[int]:
        """Columns of each view."""
        return [view.N for view in self.views]

    @property
    def optimum(self) -> Optimum:
        """The exact global optimum, computed at its first use.

        Raises ParameterError if a sparse view has more columns than ``WIDEST``. The reference is then the value of a
        long run of the uncompressed method, as in the released program for Fig. 9 (discrepancy gcca.35).
        """
        if self._optimum is None:
            with threadpool_limits(limits=1):  # as above
                self._optimum = solve(self.views, self.K)
        return self._optimum

    def cost(self, M: Sequence[np.ndarray], G: np.ndarray) -> float:
        """f for the true representations M_i = X_i Q_i, eq. (7a): no 1/J, no mean over views."""
        return 0.5 * sum(_square(M_i - G) for M_i in M)

    def representations(self, Q: Sequence[np.ndarray]) -> list[np.ndarray]:
        """M_i = X_i Q_i."""
        return [view.product(Q_i) for view, Q_i in zip(self.views, Q, strict=True)]

    def stationarity(self, M: Sequence[np.ndarray], G: np.ndarray) -> float:
        """||Phi||_F of eq. (23) for the linear problem (2): the gradients in every Q_i, and in G on the manifold.

        Lambda is the best symmetric one. The multiplier of 1'G = 0 is left out, because (2) has no such constraint.
        """
        squares = sum(_square(view.transposed_product(M_i - G)) for view, M_i in zip(self.views, M, strict=True))
        gradient = self.I * G - np.sum(M, axis=0)
        inner = G.T @ gradient
        return float(np.sqrt(squares + _square(gradient - G @ (inner + inner.T) / 2)))

    def subspace(self, G: np.ndarray) -> float:
        """dist(R(G), R(U_1)) of Theorem 3: the sine of the largest angle to the optimal subspace."""
        U = self.optimum.G
        return min(1.0, float(np.linalg.norm(G - U @ (U.T @ G), 2)))

    def alignment(self, Q: Sequence[np.ndarray]) -> tuple[float, float]:
        """Alignment accuracy on the held-out rows (see ``alignment_accuracy``)."""
        if not self.test_views:
            raise ParameterError("test", "the alignment accuracy needs held-out rows; set test to how many")
        return alignment_accuracy([view.product(Q_i) for view, Q_i in zip(self.test_views, Q, strict=True)])

    def artifacts(self, state: Any, names: Sequence[str]) -> dict[str, np.ndarray]:
        """Arrays of a state: ``G`` (J, K), ``M`` (I, J, K)."""
        kept = {"G": lambda: state.G, "M": lambda: np.stack(state.M)}
        all_of("artifacts", names, tuple(kept))
        return {name: kept[name]() for name in names}

    @classmethod
    def check(cls, parameters: Mapping[str, Any], facts: Mapping[str, int | None]) -> None:
        """Raise ParameterError if a parameter cannot work; ``facts`` may contain J and N, or None."""
        super().check(parameters, facts)
        values = {**PARAMETERS, **parameters}
        J, N = facts.get("J"), facts.get("N")
        for most, what in ((N, "columns of a view"), (J, "rows")):
            if most is not None and values["K"] > most:
                raise ParameterError("K", f"must be at most the number of {what}, {most}, not {values['K']}")
        if J is not None and (values["test"] or 0) >= J:
            raise ParameterError("test", f"must be fewer than the {J} rows there are, not {values['test']}")

    def measure(self, state: Any, names: Sequence[str]) -> dict[str, float]:
        """The named metrics of a state (``multiview.federated.State``), whose M contains the true X_i Q_i."""
        M, G = state.M, state.G
        values: dict[str, float] = {}
        if "cost" in names or "ratio" in names:
            values["cost"] = self.cost(M, G)
        if "optimum" in names or "ratio" in names:
            values["optimum"] = self.optimum.value
        if "ratio" in names:
            values["ratio"] = values["cost"] / values["optimum"] if values["optimum"] > 0 else float("nan")
        values |= agreement(state, [name for name in ("consensus", "lag") if name in names])
        if "stationarity" in names:
            values["stationarity"] = self.stationarity(M, G)
        if "subspace" in names:
            values["subspace"] = self.subspace(G)
        if "ac" in names or "ac_one_way" in names:
            values["ac"], values["ac_one_way"] = self.alignment(state.Q)
        return {name: values[name] for name in names}

    @staticmethod
    def stored_bytes(facts: Mapping[str, Any]) -> float:
        """The views, with 8 bytes per entry or 12 per nonzero entry of sparse ones, and the optimum."""
        J, N, views = facts["J"], facts["N"], facts["I"]
        entry = 12.0 * facts["density"] if "density" in facts else 8.0
        return views * ((J + (facts.get("test") or 0)) * N * entry + 8.0 * facts["K"] * N) + 8.0 * J * facts["K"]

    @staticmethod
    def preparing(facts: Mapping[str, Any]) -> Cost:
        """The cost of the spectrum of each view, and of the exact optimum if it is requested."""
        J, N, K, views, density = facts["J"], facts["N"], facts["K"], facts["I"], facts.get("density")
        work = views * (decomposing(J, N, density, K) + Work(calls=500.0))
        memory = 16.0 * J * max(2 * K + 1, 20) if density is not None else 16.0 * J * N
        if facts.get("optimum"):
            work += optimizing(J, N, density, views)
            memory += 16.0 * N * N * views if density is not None else 16.0 * J * N * views
        return Cost(work, holds=memory)

    @staticmethod
    def measuring(names: Sequence[str], facts: Mapping[str, Any]) -> Cost:
        """The cost of sums over the representations, and of distances between held-out rows of all pairs of views."""
        J, K, views = facts["J"], facts["K"], facts["I"]
        work = Work(singles=2.0 * J * K * views, calls=10.0 * views + 20.0)
        if {"ac", "ac_one_way"} & set(names):
            pairs, rows = views * (views - 1) / 2, facts.get("test") or 0
            work += Work(singles=pairs * rows * rows * (0.3 * K + 3.0), calls=40.0 * pairs)
        if {"stationarity", "subspace"} & set(names):
            work += views * multiplying(facts)
        return Cost(round=work)

    def initial(self, trial: int) -> RandomStart:
        """The random draws of this trial; methods with a warm start ignore them."""
        return RandomStart(trial)

    @classmethod
    def of(cls, data: Any, client: np.ndarray | None, parameters: Mapping[str, Any]) -> GCCA:
        """The problem on ``Views``; without ``test``, the data determine the number of held-out rows."""
        values = {**PARAMETERS, **parameters}
        test = data.facts.get("test", 0) if values["test"] is None else values["test"]
        return cls(data.views, values["K"], center=values["center"], test=test)

    @classmethod
    def prepare(cls, folder: Path, data: Any, client: np.ndarray | None, parameters: Mapping[str, Any]) -> None:
        """Write checked (and centred) views, their largest eigenvalues and the exact optimum, for ``stored``."""
        problem, folder = cls.of(data, client, parameters), Path(folder)
        for name, views in (("view", problem.views), ("test", problem.test_views)):
            for i, view in enumerate(views):
                _write_view(folder / f"{name}{i}", view)
        facts: dict[str, Any] = {"largest": [view.largest for view in problem.views], "test": bool(problem.test_views)}
        if {**PARAMETERS, **parameters}["optimum"]:
            best = problem.optimum
            facts["optimum"] = best.value
            np.save(folder / "optimum_G.npy", best.G)
            np.save(folder / "optimum_eigenvalues.npy", best.eigenvalues)
            for i, Q in enumerate(best.Q):
                np.save(folder / f"optimum_Q{i}.npy", Q)
        (folder / "views.json").write_text(json.dumps(facts, sort_keys=True) + "\n", encoding="utf-8")

    @classmethod
    def stored(cls, folder: Path, parameters: Mapping[str, Any]) -> GCCA:
        """The problem that ``prepare`` wrote, with views memory mapped read-only."""
        folder = Path(folder)
        facts = json.loads((folder / "views.json").read_text(encoding="utf-8"))
        count = len(facts["largest"])
        views = [_read_view(folder / f"view{i}", largest) for i, largest in enumerate(facts["largest"])]
        test_views = [_read_view(folder / f"test{i}") for i in range(count)] if facts["test"] else []
        best = None
        if "optimum" in facts:
            Q = [np.load(folder / f"optimum_Q{i}.npy") for i in range(count)]
            eigenvalues = np.load(folder / "optimum_eigenvalues.npy")
            best = Optimum(facts["optimum"], np.load(folder / "optimum_G.npy"), Q, eigenvalues)
        return GCCA.restore(views, test_views, {**PARAMETERS, **parameters}["K"], best)

    @staticmethod
    def diverged(values: Mapping[str, np.ndarray]) -> str | None:
        """A run diverges if its cost is not finite. A growing cost (as for q = 2) is a result and is plotted."""
        cost = values.get("cost", values.get("ratio"))
        if cost is None or np.isfinite(cost).all():
            return None
        return f"the cost is not finite at recorded point {int(np.flatnonzero(~np.isfinite(cost))[0])}"


def multiplying(facts: Mapping[str, Any]) -> Work:
    """The work of the product of one view with K columns."""
    entries = float(facts["J"]) * facts["N"]
    if "density" in facts:
        return Work(singles=entries * facts["density"] * facts["K"], calls=20.0)
    return Work(flops=2.0 * entries * facts["K"], bytes=8.0 * entries, calls=3.0)


def optimizing(J: float, N: float, density: float | None, views: float) -> Work:
    """The work of the exact optimum (``solve``): SVDs and the spectrum of their bases; Lanczos on sparse views."""
    if density is None:
        columns = views * min(J, N)
        small = min(J, columns)
        return Work(flops=14.0 * views * J * N * min(J, N) + 2.0 * J * columns * small + 10.0 * small**3)
    gram = Work(singles=J * (N * density) ** 2 * 1.5, flops=N**3)
    return views * gram + 400.0 * views * Work(singles=4.0 * J * N * density, flops=4.0 * N * N, calls=60.0)


def agreement(state: Any, names: Sequence[str]) -> dict[str, float]:
    """``consensus`` and ``lag`` of a state of the linear or the deep problem, as defined in METRICS."""
    M, G = state.M, state.G
    values: dict[str, float] = {}
    if "consensus" in names:
        mean = np.mean(M, axis=0)
        values["consensus"] = float(np.sqrt(sum(_square(M_i - mean) for M_i in M) / sum(_square(M_i) for M_i in M)))
    if "lag" in names:
        pairs = [*zip(state.far, M, strict=True), (state.G_far, G)]
        values["lag"] = float(np.sqrt(sum(_square(a - b) for a, b in pairs) / sum(_square(b) for _, b in pairs)))
    return values


def alignment_accuracy(Z: Sequence[np.ndarray]) -> tuple[float, float]:
    """AC of Sec. V-A.5: the share of samples that are their own nearest neighbour in another view, from 0 to 1.

    Z : I representations (n, K) of the same n samples. For views i, m and sample p: 1 if ||Z_i(p) - Z_m(p)|| <=
    ||Z_i(p) - Z_m(q)|| for all q. Returns the mean over ordered pairs i != m (the paper), and over pairs i < m, one
    direction (the authors' code, discrepancy gcca.19). Raises UserError for fewer than two views.
    """
    if len(Z) < 2:
        raise UserError("the alignment accuracy compares views: there must be at least two")
    there, back = [], []
    for i in range(len(Z)):
        for m in range(i + 1, len(Z)):
            hits = _nearest_is_own(Z[i], Z[m])
            there.append(hits[0])
            back.append(hits[1])
    return float(np.mean(there + back)), float(np.mean(there))


def _nearest_is_own(A: np.ndarray, B: np.ndarray, block: int = 1000) -> tuple[float, float]:
    """The share of rows p such that no row of B is nearer to A(p) than B(p), and the same with A and B exchanged."""
    from scipy.spatial.distance import cdist

    own = np.square(A - B).sum(axis=1)
    hits, nearest_to_B = 0, np.full(len(B), np.inf)
    for first in range(0, len(A), block):
        part = slice(first, first + block)
        squared = cdist(A[part], B, "sqeuclidean")
        own[part] = np.diagonal(squared, offset=first)  # as computed there, so that ties are ties
        hits += int((own[part] <= squared.min(axis=1)).sum())
        nearest_to_B = np.minimum(nearest_to_B, squared.min(axis=0))
    return hits / len(A), float((own <= nearest_to_B).mean())


def bits_per_variable(rounds: Any, q: float, *, code_offset: bool = False) -> Any:
    """BPV(r) = 32 + r q of Sec. V-A.3: bits sent for one entry in one direction up to round r (q = 32: AltMaxVar).

    ``code_offset``: the authors' plots draw the initial point, r = 0, at 32 + q already.
    """
    return FULL_BITS + (np.asarray(rounds) + (1 if code_offset else 0)) * q


def bits_per_variable_sent(uplink_bits: Any, downlink_bits: Any, I: int, J: int, K: int) -> Any:  # noqa: E741
    """Bits per variable from a ledger's totals: the mean over both directions and all links, steps included."""
    return (np.asarray(uplink_bits) + np.asarray(downlink_bits)) / (2.0 * I * J * K)


def rounds_to(cost: Any, level: float, *, rounds: Any = None, base: int = 1) -> float:
    """The number of the first recorded point of a curve strictly below ``level``; infinite if there is none.

    cost : (n,), the initial point first. rounds : (n,) the round of each point; without it every round is recorded.
    base : the number of the initial point: 1 in the authors' code (so the paper's numbers are rounds + 1, discrepancy
    gcca.26), 0 to count rounds.
    """
    below = np.flatnonzero(np.asarray(cost) < level)
    if not below.size:
        return float("inf")
    return float((below[0] if rounds is None else np.asarray(rounds)[below[0]]) + base)


def compression_ratio(
    cost_C: Any,
    cost_A: Any,
    optimum: Any,
    q: float,
    *,
    rounds: Any = None,
    factor: float = 1.5,
    base: int = 1,
    per_trial: bool = False,
) -> Any:
    """CR = 1 - q R_C / (32 R_A), Sec. V-A.3, where R is the number of iterations until the cost is below factor v*.

    cost_C, cost_A : (trials, n) of the quantized and the uncompressed method, the initial point first. optimum :
    (trials,) v*. rounds : (n,) the round of each point of both; without it every round is recorded. By default R is
    computed from the mean curve and the mean v*, as in the authors' code; ``per_trial`` gives (trials,) ratios. NaN if
    either curve does not get there.
    """
    cost_C, cost_A = np.atleast_2d(cost_C), np.atleast_2d(cost_A)
    levels = factor * np.broadcast_to(np.asarray(optimum, dtype=np.float64), len(cost_C))
    if not per_trial:
        cost_C, cost_A, levels = cost_C.mean(axis=0)[None], cost_A.mean(axis=0)[None], levels.mean()[None]

    def counted(curves: Any) -> np.ndarray:
        return np.array(
            [rounds_to(curve, level, rounds=rounds, base=base) for curve, level in zip(curves, levels, strict=True)]
        )

    R_C, R_A = counted(cost_C), counted(cost_A)
    reached = np.isfinite(R_C) & np.isfinite(R_A)
    ratio = 1.0 - q * np.where(reached, R_C, np.nan) / (FULL_BITS * np.where(reached, R_A, 1.0))
    return ratio if per_trial else float(ratio[0])


def _square(A: np.ndarray) -> float:
    return float(np.vdot(A, A))


def _centered(train: list[Any], held_out: list[Any]) -> tuple[list[Any], list[Any]]:
    """Dense views minus the column means of their training rows."""
    for i, X in enumerate(train, start=1):
        if scipy.sparse.issparse(X):
            raise ParameterError(
                "center", f"would fill view {i} of {len(train)}, which is sparse; set it to false or give dense views"
            )
    means = [X.mean(axis=0) for X in train]
    return (
        [X - mean for X, mean in zip(train, means, strict=True)],
        [X - mean for X, mean in zip(held_out, means, strict=False)],
    )


def _write_view(stem: Path, view: View) -> None:
    if not view.sparse:
        np.save(f"{stem}.npy", view.X)
        return
    for name, array in zip(("data", "indices", "indptr"), view.parts, strict=True):
        np.save(f"{stem}_{name}.npy", array)
    np.save(f"{stem}_shape.npy", np.array(view.X.shape))


def _read_view(stem: Path, largest: float | None = None) -> View:
    def mapped(name: str) -> np.ndarray:
        return np.asarray(np.load(f"{stem}{name}.npy", mmap_mode="r"))

    if Path(f"{stem}.npy").exists():
        return View(mapped(""), largest)
    parts = tuple(mapped(f"_{name}") for name in ("data", "indices", "indptr"))
    return View(scipy.sparse.csr_matrix(parts, shape=tuple(np.load(f"{stem}_shape.npy"))), largest)


def _check_parameters(parameters: Mapping[str, Any]) -> None:
    values = {**PARAMETERS, **parameters}
    for name in ("K", "center", "optimum"):
        check(name, values[name], GCCA.ranges[name])
    if values["test"] is not None:
        check("test", values["test"], GCCA.ranges["test"])


add_problem(
    GCCA,
    "MAX-VAR generalized CCA: a common representation G of aligned views, min sum_i 1/2 ||X_i Q_i - G||^2",
    data_kind="views",
    artifacts=("G", "M"),
)
