r"""Clustering by non-negative matrix factorization over clients: the problem of the papers ``fedmf`` and ``fedc``.

Samples are the columns of :math:`X = [X_1, \dots, X_P] \in R^{M \times N}`; client p holds :math:`X_p`, N_p columns,
and :math:`\omega_p = N_p / N`. Centroids W (M x K) are shared, assignments H_p (K x N_p) stay with the client
(fedmf (2), (35); fedc (4), (104)):

.. math::
    F(W, H) = \frac{1}{N} \|X - WH\|_F^2 + \frac{\rho}{2} \sum_j \big( (1^T h_j)^2 - \|h_j\|^2 \big)
              + \frac{\nu}{2} \|H\|_F^2, \qquad W_{min} \le W_{ij} \le W_{max}, \quad H \ge 0,

and :math:`F = \sum_p \omega_p F_p` with local costs
:math:`F_p = \|X_p - W H_p\|^2 / N_p + R(H_p) / \omega_p` and gradients
(docs/derivations/clustering-problem.md)

.. math::
    \nabla_{H_p} F_p = A_p H_p - \frac{2}{N_p} W^T X_p, \quad
        A_p = \frac{1}{N_p} \big[ 2 W^T W + N \rho\, 1 1^T + N (\nu - \rho) I \big], \\
    \nabla_W F_p = W B_p - \frac{2}{N_p} X_p H_p^T, \quad B_p = \frac{2}{N_p} H_p H_p^T .

The metric ``objective`` is the scale-free :math:`\bar F = N F / \|X\|_F^2`, as in the authors' program.

**Penalties.** rho and nu are *relative* to :math:`\|X\|_F^2 / N` (fedmf, section V-A). With ``relative=False`` they are
the absolute rho and nu of the formula (fedc, section V), which the class converts.

**Storage.** Samples are rows, ordered by client (see ``sample_rows``): ``problem.X`` is (N, M), and ``state.Hs`` is H
transposed, (N, K), in the same order. ``state.H`` is H itself, (K, N), in the caller's order of the columns.

**States.** A method yields the same ``State`` object after every round, updated in place. Use ``State.copy`` to keep a
state. Every method reads ``state.rho`` at the start of a round, and so does ``objective``. A procedure that raises rho
between rounds (successive penalties) therefore needs no code in the methods::

    for state in method.rounds(problem, rng, init=init):
        ...                               # measure: the rho in force is still state.rho
        state.rho = min(1.5 * state.rho, cap)    # in force from the next round on

Source: fedmf (2), (35) and section V-A; fedc (4), (104) and section V; docs/derivations/clustering-problem.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import scipy

from fedrepro.errors import ParameterError, UserError
from fedrepro.parameters import Flag, Number, OneOf, Range, Whole, all_of, at_most, one_of, whole
from fedrepro.problems.clustering import passes, sample_rows, stationarity
from fedrepro.problems.clustering.labels import SCORES, from_rows
from fedrepro.problems.clustering.passes import Pass
from fedrepro.problems.clustering.sample_rows import Rows
from fedrepro.problems.clustering.state import State
from fedrepro.protocols import Cost, Metric, Problem, Work, by_name
from fedrepro.registry import add_problem
from fedrepro.seeds import Rng, streams

METRICS = by_name(
    Metric("objective", "objective  N·F/‖X‖²", "lower", "F scaled by N/||X||^2, at the rho in force"),
    Metric("objective_raw", "objective  F", "lower", "F itself, at the rho in force"),
    Metric("accuracy", "clustering accuracy", "higher", "largest fraction matched one to one"),
    Metric("nmi", "normalized mutual information", "higher", "mutual information over mean entropy"),
    Metric("ami", "adjusted mutual information", "higher", "mutual information adjusted for chance"),
    Metric("ari", "adjusted Rand index", "higher", "pairs that agree, adjusted for chance"),
    Metric("purity", "purity", "higher", "fraction in the main class of their cluster"),
    Metric(
        "curvature_ratio",
        "largest local curvature / global",
        "lower",
        "max_p lambda_max(B_p) / L_W: FedMAvg's local loop is stable below 2 gamma2",
    ),
    Metric("rho", "penalty  ρ·N/‖X‖²", "lower", "the relative penalty in force"),
    Metric("gap_h", "G_H", "lower", "distance from stationarity in H, fedmf (21), c_p of the published program"),
    Metric("gap_w", "G_W", "lower", "distance from stationarity in W, fedmf (22), d of gradient sharing"),
    Metric("gap_w_averaging", "G_W  (d = 5 L_W)", "lower", "G_W of fedmf (22) with the d of model averaging, 5 L_W"),
    Metric("moves_h", "H steps, squared", "lower", "sum_p omega_p L_Hp ||next H step||^2 of fedc (15), (75)"),
    Metric("moves_w", "W step, squared", "lower", "L_W ||next W step||^2 of fedc (75)"),
    Metric("phi", "‖∇_W F‖", "lower", "norm of the gradient in W, which phi of fedmf (19) bounds"),
    Metric(
        "zeta",
        "max_p ‖∇_W F_p − ∇_W F‖",
        "lower",
        "distance between the clients' gradients, which zeta of fedmf (18) bounds",
    ),
    Metric(
        "curvature_spread",
        "largest local curvature / smallest",
        "lower",
        "max_p lambda_max(B_p) / min_p lambda_max(B_p): gamma2 of fedmf Theorem 1 grows with it",
    ),
)

PARAMETERS: dict[str, Any] = {
    "K": None,
    "rho": 1e-8,
    "nu": 1e-10,
    "relative": True,
    "w_min": "data_min",
    "init": "authors",
}

ARTIFACTS = ("W", "H", "found", "labels", "embedding")

_RESIDUAL_BELOW = 1e-4
"""Below this share of ||X||^2 the expanded square has lost too many digits, so the residual is formed instead."""

_STATIONARITY: dict[str, Callable[[Any, Any], float]] = {
    "gap_h": stationarity.gap_H,
    "gap_w": lambda problem, state: stationarity.gap_W(problem, state, 0.5 * stationarity.GAMMA_SHARING),
    "gap_w_averaging": lambda problem, state: stationarity.gap_W(problem, state, stationarity.GAMMA_AVERAGING),
    "moves_h": stationarity.moves_H,
    "moves_w": stationarity.moves_W,
    "phi": stationarity.phi,
    "zeta": stationarity.zeta,
    "curvature_spread": stationarity.curvature_spread,
}

_BLOCK_BYTES = 1 << 24
"""Size of a block of samples: it is read from memory once and then stays in the last-level cache."""

_SMALL_BYTES = 1 << 16
"""Clients with fewer bytes of samples on average are gathered: a BLAS call for each costs more than the copy."""


class Clustering(Problem):
    """The clustering problem in memory.

    X : (M, N) real array or scipy.sparse matrix, one column per sample (in any units; nothing is scaled).
    client : (N,) integers 0 .. P-1, the client of each sample; None for a single client.
    K : number of clusters; None for the number of distinct labels. labels : (N,) class of each sample, or None.
    rho : penalty that leaves at most one positive entry in a column of H. nu : penalty on the size of H.
    relative : whether rho and nu are relative to ||X||_F^2 / N; false for the absolute values of the formula.
    w_min : lower bound of W: ``data_min`` (min X), ``zero``, or a number; the upper bound is max X.

    A spec has one more key. init : the initial points: ``authors``, those of the authors' program.

    A dense X is copied once (not at all if its transpose is C-contiguous float64 and ordered by client); a sparse X
    stays sparse. Raises UserError if the data cannot work, and ParameterError if a parameter cannot.

    >>> import numpy as np
    >>> from fedrepro import Clustering
    >>> X = np.random.default_rng(0).random((5, 60))
    >>> problem = Clustering(X, client=np.arange(60) % 4, K=3)
    >>> W0, H0 = problem.initial(trial=1)
    >>> W0.shape, H0.shape
    ((5, 3), (3, 60))
    """

    name = "clustering"
    metrics = METRICS
    default_metrics = ("objective",)
    parameters = PARAMETERS
    ranges: ClassVar[Mapping[str, Range]] = {
        "K": Whole(),
        "rho": Number(least=0.0),
        "nu": Number(least=0.0),
        "relative": Flag(),
        "w_min": Number(words=("data_min", "zero")),
        "init": OneOf("authors"),
    }
    stored_parameters = ()
    joins = True
    probes: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "dense": {
            "dataset": {"name": "synthetic", "M": 400, "N": 2000, "K": 10},
            "partition": {"name": "uniform", "P": 20},
        },
        "sparse": {
            "dataset": {"name": "tdt2", "features": 1000, "classes": 10, "n": 1000},
            "partition": {"name": "uniform", "P": 20},
        },
    }
    meet: Callable[[Pass], None] | None = None
    """Joins the passes of several runs over the samples; None for a solo run."""

    def __init__(
        self,
        X: Any,
        client: Any = None,
        *,
        K: int | None = None,
        labels: Any = None,
        rho: float = 1e-8,
        nu: float = 1e-10,
        relative: bool = True,
        w_min: str | float = "data_min",
    ) -> None:
        parameters = {"K": K, "rho": rho, "nu": nu, "relative": relative, "w_min": w_min}
        Clustering.check(parameters, {})
        self._set_up(sample_rows.arrange(X, client, labels, None), parameters)

    @classmethod
    def stored(cls, folder: Path, parameters: Mapping[str, Any]) -> Clustering:
        """The problem in a folder written by ``prepare``; its samples are memory mapped, read-only."""
        Clustering.check(parameters, {})
        problem = cls.__new__(cls)
        problem._set_up(sample_rows.read(folder), {**PARAMETERS, **parameters})
        return problem

    def _set_up(self, data: sample_rows.Ordered, parameters: Mapping[str, Any]) -> None:
        self.X, self.order, self.starts, self.labels = data.rows, data.order, data.starts, data.labels
        self.N, self.M = self.X.shape
        self.P = self.starts.size - 1
        self.sizes = np.diff(self.starts)
        self.omega = self.sizes / self.N
        self.K = _clusters(parameters["K"], data.facts["K"])
        at_most("K", self.K, self.N, "samples N")
        self.norm2, self.abs_mean = data.facts["norm2"], data.facts["abs_mean"]
        scale = 1.0 if parameters["relative"] else self.N / self.norm2
        self.rho, self.nu = float(parameters["rho"] * scale), float(parameters["nu"] * scale)
        self.w_max = data.facts["max"]
        self.w_min = _lower_bound(parameters["w_min"], data.facts["min"], self.w_max)
        row_bytes = 8.0 * self.M if not scipy.sparse.issparse(self.X) else 12.0 * self.X.nnz / self.N
        self.block = int(np.clip(_BLOCK_BYTES / max(1.0, row_bytes), 64, 4096))
        self.small = row_bytes * self.N / self.P < _SMALL_BYTES

    # Parts of the data

    def blocks(self, clients: Sequence[int] | np.ndarray | None = None) -> list[Rows]:
        """Blocks of rows with the samples of ``clients`` (ids in increasing order; None for all).

        Blocks are slices. If clients are ``small`` and not adjacent, a block is an array of row numbers of many
        clients.
        """
        if clients is None:
            return list(sample_rows.pieces(0, self.N, self.block))
        runs = np.split(np.asarray(clients), np.flatnonzero(np.diff(clients) > 1) + 1)
        spans = [(int(self.starts[r[0]]), int(self.starts[r[-1] + 1])) for r in runs if r.size]
        if self.small and len(spans) > 1:
            rows = np.concatenate([np.arange(first, last) for first, last in spans])
            return [rows[piece] for piece in sample_rows.pieces(0, rows.size, self.block)]
        return [part for first, last in spans for part in sample_rows.pieces(first, last, self.block)]

    def client(self, p: int) -> slice:
        """The rows of client p."""
        return slice(int(self.starts[p]), int(self.starts[p + 1]))

    def samples(self, part: Rows) -> Any:
        """X_p^T for the rows ``part``, (n, M); a view if ``part`` is a slice."""
        return sample_rows.take(self.X, part)

    def over(self, wanted: Pass) -> None:
        """Make a pass over the samples, alone or jointly with other runs on the same samples (``meet``)."""
        if self.meet is None:
            passes.go(self.X, [wanted])
        else:
            self.meet(wanted)

    def together(self) -> bool:
        """Whether joint passes save time, and BLAS gives the same bits as for solo runs."""
        if sample_rows.nbytes(self.X) <= passes.CACHED_BYTES:
            return False  # waiting for other runs costs more than reading the samples
        return scipy.sparse.issparse(self.X) or passes.exact(min(self.block, self.N), self.M, self.K)

    @staticmethod
    def stored_bytes(facts: Mapping[str, Any]) -> float:
        """The samples: 8 bytes per entry, or 12 per nonzero entry of sparse ones."""
        return facts["N"] * (facts["M"] * (12.0 * facts["density"] if "density" in facts else 8.0) + 24.0)

    @staticmethod
    def preparing(facts: Mapping[str, Any]) -> Cost:
        """The cost of sorting, summing and writing: a few passes over the stored numbers."""
        return Cost(Work(singles=6.0 * facts["N"] * facts["M"] * facts.get("density", 1.0), calls=500.0))

    @staticmethod
    def measuring(names: Sequence[str], facts: Mapping[str, Any]) -> Cost:
        """The cost of the objective from kept statistics, and of scores from a table of labels (scikit-learn)."""
        N, K, P = facts["N"], facts["K"], facts["P"]
        scored, checked = sum(name in SCORES for name in names), bool({"nmi", "ami", "ari"} & set(names))
        grams = sum(name in names for name in ("curvature_ratio", "curvature_spread", "zeta"))
        local = Work(flops=grams * (2.0 * N * K * K + 60.0 * P * K**3), calls=10.0 * P * grams)
        at_hand = Work(singles=N * K, calls=30.0)
        scores = Work(singles=20.0 * N * scored, calls=300.0 * scored)
        stepped = sum(name in ("gap_h", "moves_h") for name in names)
        passed = stepped + sum(name in ("gap_w", "gap_w_averaging", "moves_w", "phi", "zeta") for name in names)
        clients = Work(calls=20.0 * P) + passing(facts, N) if "zeta" in names else Work()
        gaps = passing(facts, N, passed) + Work(flops=2.0 * stepped * N * K * K, singles=10.0 * stepped * N * K)
        round_ = at_hand + local + scores + (gaps + clients if passed else Work())
        return Cost(round=round_, libraries=("sklearn",) if checked else ())

    # Initial points

    def initial(self, trial: int) -> tuple[np.ndarray, np.ndarray]:
        """The authors' random initial point (W0, H0) number ``trial``, H0 in the caller's order of samples.

        a = sqrt(mean|X| / K); NumPy's legacy generator seeded with ``trial`` draws W0 (M x K), then H0 as an (N, K)
        block, each entry a U[0,1). Discrepancy fedmf.29.
        """
        whole("trial", trial, 0)
        draw, a = np.random.RandomState(trial), np.sqrt(self.abs_mean / self.K)
        W0 = a * draw.random_sample((self.M, self.K))
        return W0, (a * draw.random_sample((self.N, self.K))).T

    def start(self, init: Any, rng: Rng) -> State:
        """The state at ``init`` = (W0, H0), (M, K) and (K, N) with H0 >= 0; None for a random point."""
        if init is None:
            draw, a = streams(rng).other, np.sqrt(self.abs_mean / self.K)
            init = a * draw.random((self.M, self.K)), a * draw.random((self.K, self.N))
        W, H = (np.asarray(part, dtype=np.float64) for part in init)
        self._check_init(W, H)
        Hs = np.take(H.T, self.order, axis=0)
        return State(W.copy(order="C"), Hs, self.order, self.rho, Hs.T @ Hs)

    def _check_init(self, W: np.ndarray, H: np.ndarray) -> None:
        for name, part, shape in (("W0", W, (self.M, self.K)), ("H0", H, (self.K, self.N))):
            if part.shape != shape:
                raise UserError(f"init: {name} must have shape {shape}, not {part.shape}")
            if not np.isfinite(part).all():
                raise UserError(f"init: {name} contains values that are not finite")
        if (H < 0).any():
            raise UserError("init: H0 must not be negative")

    # Statistics of a state

    def XW(self, state: State) -> np.ndarray:
        """X^T W, (N, K), computed at the first call and kept in the state until W changes."""
        if state.XW is None:
            XW = np.empty((self.N, self.K))

            def keep(part: slice, T: np.ndarray) -> None:
                XW[part] = T

            self.over(Pass(self.blocks(), keep, state.W))
            state.XW = XW
        return state.XW

    def refresh(self, state: State) -> None:
        """Recompute HH and XH of the state."""
        XH = np.zeros((self.M, self.K))
        self.over(Pass(self.blocks(), lambda part, _: state.Hs[part], out=XH))
        state.HH, state.XH, state.lost = state.Hs.T @ state.Hs, XH, 0.0

    def grams(self, state: State, clients: Sequence[int] | np.ndarray) -> np.ndarray:
        """H_p H_p^T for each of ``clients``: (len(clients), K, K)."""
        out = np.empty((len(clients), self.K, self.K))
        for i, p in enumerate(clients):
            Hp = state.Hs[self.client(p)]
            np.matmul(Hp.T, Hp, out=out[i])
        return out

    # Measures

    def objective(self, state: State) -> float:
        """N F(W, H) / ||X||^2 at the state's rho.

        ||X - WH||^2 = ||X||^2 - 2 <W, X H^T> + <W^T W, H H^T>, from statistics that the methods keep.
        """
        cross = np.vdot(state.W, state.XH) if state.XH is not None else np.vdot(self.XW(state), state.Hs)
        fit = self.norm2 - 2.0 * float(cross) + float(np.vdot(state.W.T @ state.W, state.HH))
        if fit < _RESIDUAL_BELOW * self.norm2:
            fit = self.residual(state)
        trace = float(np.trace(state.HH))
        penalty = 0.5 * state.rho * (float(state.HH.sum()) - trace) + 0.5 * self.nu * trace
        return fit / self.norm2 + penalty

    def residual(self, state: State) -> float:
        """||X - W H||_F^2, formed block by block."""
        total = 0.0
        for part in self.blocks():
            error = state.Hs[part] @ state.W.T
            block = self.samples(part)
            error -= block.toarray() if scipy.sparse.issparse(block) else block
            total += float(np.vdot(error, error))
        return total

    def curvature_ratio(self, state: State) -> float:
        """max_p lambda_max(B_p) / lambda_max((2/N) H H^T), NaN if H is zero. Discrepancy fedmf.2."""
        local = np.linalg.eigvalsh(self.grams(state, range(self.P)))[:, -1] / self.sizes
        whole_ = np.linalg.eigvalsh(state.HH)[-1] / self.N
        return float(local.max() / whole_) if whole_ > 0 else float("nan")

    def found(self, state: State) -> np.ndarray:
        """The cluster of every sample in the caller's order, (N,) integers 0 .. K-1."""
        labels = np.empty(self.N, dtype=np.intp)
        labels[self.order] = from_rows(state.Hs)
        return labels

    def measure(self, state: State, names: Sequence[str]) -> dict[str, float]:
        """The value of each named metric at a state. Raises UserError for label scores without labels."""
        values: dict[str, float] = {}
        clusters = from_rows(state.Hs) if set(names) & set(SCORES) else np.empty(0, dtype=np.intp)
        for name in names:
            if name in SCORES:
                if self.labels is None:
                    raise UserError(f"the metric '{name}' needs the samples' true labels, and this dataset has none")
                values[name] = SCORES[name](self.labels, clusters)
            elif name == "objective":
                values[name] = self.objective(state)
            elif name == "objective_raw":
                values[name] = self.objective(state) * self.norm2 / self.N
            elif name == "curvature_ratio":
                values[name] = self.curvature_ratio(state)
            elif name == "rho":
                values[name] = state.rho
            elif name in _STATIONARITY:
                values[name] = _STATIONARITY[name](self, state)
            else:
                one_of("metrics", name, tuple(METRICS))
        return values

    def artifacts(self, state: State, names: Sequence[str]) -> dict[str, np.ndarray]:
        """Named arrays of a state: ``W``, ``H``, ``found`` (clusters), ``labels`` (true classes) and ``embedding``.

        Only states of ``tsne`` have an ``embedding``. Arrays that do not exist are left out.
        """
        all_of("artifacts", names, ARTIFACTS)
        arrays: dict[str, np.ndarray] = {"W": state.W.copy(), "H": state.H, "found": self.found(state)}
        if self.labels is not None:
            arrays["labels"] = np.empty_like(self.labels)
            arrays["labels"][self.order] = self.labels
        if hasattr(state, "embedding"):
            arrays["embedding"] = state.embedding.copy()
        return {name: arrays[name] for name in names if name in arrays}

    @classmethod
    def check(cls, parameters: Mapping[str, Any], facts: Mapping[str, int | None]) -> None:
        """Raise ParameterError if a parameter cannot work; ``facts`` may contain N of the data, or None."""
        super().check(parameters, facts)
        at_most("K", parameters.get("K"), facts.get("N"), "samples N")

    @classmethod
    def prepare(cls, folder: Path, data: Any, client: np.ndarray | None, parameters: Mapping[str, Any]) -> None:
        """Write ``Samples`` for ``Clustering.stored``, block by block."""
        sample_rows.write(folder, data.X, client, data.labels, data.K)

    @staticmethod
    def diverged(values: Mapping[str, np.ndarray]) -> str | None:
        """Why a run counts as diverged, or None: a value is not finite, an objective ended above its start, or H is
        zero.

        An objective that rises and falls again is not a divergence. At H = 0 the scale-free objective is 1 for any W,
        and H stays zero if X, and so W^T X, is mostly negative. ``values["round"]`` contains the round of each recorded
        value; without it they count from 0.
        """
        for name, column in values.items():
            bad = np.flatnonzero(~np.isfinite(column))
            if bad.size and name not in ("curvature_ratio", "curvature_spread"):
                return f"{name} is not finite in round {_round(values, int(bad[0]))}"
        for name in ("objective", "objective_raw"):
            column = values.get(name, np.empty(0))
            if len(column) > 1 and column[-1] > column[0]:
                last = _round(values, len(column) - 1)
                return f"{name} is {column[-1]:.6g} in round {last}, above {column[0]:.6g} at the start"
        fit = values.get("objective", np.empty(0))
        if len(fit) > 1 and fit[-1] == 1.0:
            last = _round(values, len(fit) - 1)
            return (
                f"H is zero everywhere in round {last}: is X mostly negative? Shift it, or give another initial point"
            )
        return None

    @classmethod
    def raised(cls, values: Mapping[str, np.ndarray]) -> str | None:
        """``diverged`` for a rising rho: an objective above its start belongs to another rho and is ignored.

        This happens if a client has not been drawn since rho was small: its H has columns with several nonzero entries,
        whose penalty grows with rho although H no longer changes, until ``stop`` ends the run.
        """
        ends = {name: values.get(name, np.empty(0)) for name in ("objective", "objective_raw")}
        level = {
            name: np.where(np.isfinite(column), np.minimum(column, column[0]), column)
            for name, column in ends.items()
            if len(column) and column[-1] != 1.0  # H = 0, whatever rho
        }
        return cls.diverged({**values, **level})


def parts(facts: Mapping[str, Any], m: float) -> float:
    """The number of blocks of ``m`` clients; 0 for as few as possible."""
    gathered = Clustering.stored_bytes(facts) / facts["P"] < _SMALL_BYTES
    return 0.0 if gathered or m >= facts["P"] else m


def passing(facts: Mapping[str, Any], rows: float, products: int = 1) -> Work:
    """The work of reading ``rows`` samples once for ``products`` products with K columns, such as W^T X and X H^T."""
    entries = float(rows * facts["M"])
    if "density" in facts:
        return Work(singles=0.6 * products * entries * facts["density"] * facts["K"])
    return Work(flops=2.0 * products * entries * facts["K"], bytes=8.0 * entries)


def _clusters(K: int | None, classes: int | None) -> int:
    if K is None and classes is None:
        raise ParameterError("K", "give the number of clusters: these samples have no labels to count")
    return int(K if K is not None else classes)  # type: ignore[arg-type]


def _lower_bound(w_min: str | float, lowest: float, highest: float) -> float:
    bound = {"data_min": lowest, "zero": 0.0}[w_min] if isinstance(w_min, str) else float(w_min)
    if bound > highest:
        raise ParameterError("w_min", f"must not exceed the largest entry of X, {highest:g}; it is {bound:g}")
    return bound


def _round(values: Mapping[str, np.ndarray], index: int) -> int:
    return int(values["round"][index]) if "round" in values else index


add_problem(
    Clustering,
    "Clustering by non-negative matrix factorization, samples partitioned over clients",
    data_kind="samples",
    artifacts=ARTIFACTS,
)
