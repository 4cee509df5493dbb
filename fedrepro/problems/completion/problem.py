r"""Matrix completion over clients: the problem of the paper ``fedmc``.

Ratings are the observed entries of a users x items matrix. Client i of p holds the rows :math:`M_i` of its users,
observed at :math:`\Omega_i` (training) and :math:`T_i` (test). User factors :math:`U_i` (m_i x r) stay with the client,
item factors V (r x n) are shared (fedmc (1), (2), sections 5.2 and 5.3):

.. math::
    F(U, V) = \frac{1}{p} \sum_{i=1}^p \big[ f_i(U_i, V) + R_i(U_i) \big] + R(V), \qquad
    f_i(U_i, V) = \frac12 \| P_{\Omega_i}(M_i - U_i V) \|_F^2 ,

with :math:`R_i = \frac{\lambda}{2}\|U_i\|_F^2, R = \frac{\gamma}{2}\|V\|_F^2` (``reg: l2``) or
:math:`R_i = \lambda\|U_i\|_1, R = \gamma\|V\|_1` (``reg: l1``, no halves). The data term is not divided by the number
of ratings. An entry is observed if the data lists it; the paper writes "M_tj != 0", which is the same for nonzero
ratings.

**Storage.** V and every local copy W_i are stored transposed, (n, r), one row per item. ``state.U`` is (rows, r), with
the users of client 0 first, then those of client 1, and so on; ``problem.user`` contains the caller's user of each row.
A user whom the partition leaves out (client -1) has no row. A row or item without training ratings is allowed; only the
regulariser changes it.

**Scales.** ``scale: raw`` keeps the ratings; ``zscore`` subtracts the mean and divides by the standard deviation (n -
1) of all ratings, training and test, as the released program does (discrepancy fedmc.3). ``rmse`` and ``rmse_train``
are in rating units in both cases.

**The released program's setting** is ``scale: zscore``, ``init: 2e-4``, ``items: all``, and for FedMC-ADMM also
``gam: 0.1`` and rank ``r: 50`` in Fig. 2 (discrepancy fedmc.5), with the partition rule ``released`` and the methods'
``-released`` presets. It plots ``objective_local`` and ``rmse_truncated``
(docs/derivations/admm-reduction.md#the-released-programs-choices).

**Cost of a measurement.** V changes in every round, and so does the residual of every rating, so no result per client
can be reused. Keeping sum_t u_t u_t^T per item and updating it for the clients that worked would need (r^2 + 3r)/2
multiplications twice for a tenth of the ratings, instead of r for all of them: not less from r = 7 on. The residuals
are therefore summed directly, once over the training and once over the test ratings, in float64.

**Threads.** Kernels release the interpreter lock. ``threads`` clients (or blocks of rows) are processed at a time: by
default one, or the value of the environment variable FEDREPRO_THREADS. Results are the same bits for any number of
threads.

Source: fedmc (1), (2) and sections 5.2, 5.3; docs/derivations/admm-reduction.md#the-released-programs-choices.
"""

from __future__ import annotations

import contextvars
import functools
import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np

from fedrepro.errors import ParameterError, UserError
from fedrepro.parameters import Number, OneOf, Range, Whole, all_of, number, one_of, rows, whole
from fedrepro.problems.completion import rating_buckets, stationarity
from fedrepro.problems.completion.state import State
from fedrepro.protocols import Cost, Metric, Problem, Work, by_name
from fedrepro.registry import add_problem
from fedrepro.seeds import Rng, generator

METRICS = by_name(
    Metric("objective", "objective  F(U, V)", "lower", "F at the server's V, in the problem's rating scale"),
    Metric(
        "objective_local",
        "objective at local copies",
        "lower",
        "as released: data term at (U_i, W_i), l1 norms halved too",
    ),
    Metric("rmse", "test RMSE", "lower", "root mean square error of the test ratings at (U, V), rating units"),
    Metric("rmse_train", "training RMSE", "lower", "the same of the training ratings"),
    Metric(
        "rmse_truncated",
        "test RMSE, truncated targets",
        "lower",
        "as released: scaled targets truncated to integers, problem's scale",
    ),
    Metric("nnz", "nonzero entries", "lower", "fractions of nonzero entries of U and of V, averaged"),
    Metric("nnz_u", "nonzero entries of U", "lower", "fraction of nonzero entries of U"),
    Metric("nnz_v", "nonzero entries of V", "lower", "fraction of nonzero entries of the server's V"),
    Metric("data_term", "data term", "lower", "(1/p) sum_i f_i(U_i, V)"),
    Metric(
        "work",
        "inner passes",
        "lower",
        "half the number of U and W steps of a drawn client in a round, summed over rounds",
    ),
    Metric(
        "gap",
        "dist(0, ∂Φ)²",
        "lower",
        "squared distance from stationarity, fedmc (51), at V and U after one more U step",
    ),
    Metric(
        "beta_scale",
        "max L_U² / min L_U",
        "lower",
        "L_U = ||U_i^T U_i||_F; the 2nd bound of fedmc Theorem 4.7 is at least 8 (8 + N)/m times it",
    ),
    Metric("users", "users", "higher", "users of the data, whatever the state"),
    Metric("items", "items", "higher", "items of the data, whatever the state"),
    Metric("ratings", "ratings", "higher", "ratings of the data, training and test, whatever the state"),
)

PARAMETERS: dict[str, Any] = {
    "r": 5,
    "reg": "l2",
    "lam": 1e-6,
    "gam": 1e-6,
    "scale": "raw",
    "init": 1.0,
    "train": 0.8,
    "range": None,
    "items": "rated",
}

ARTIFACTS = ("U", "V")

T = TypeVar("T")


class Completion(Problem):
    """The completion problem in memory.

    data : ``fedrepro.datasets.types.Ratings``, ids from 0. client : (users,) the client 0 .. p-1 of each *user*, -1 for
    a user who is left out; None for a single client.
    r : rank, 1 .. min(rows, items). reg : the regularisers, ``l2`` (squared) or ``l1``. lam : weight of the regulariser
    of U. gam : weight of the regulariser of V. scale : scale of the ratings: ``raw``, or ``zscore`` for mean 0 and
    standard deviation 1. init : the entries of the initial factors are uniform in [0, init].
    train : fraction of each client's ratings in the training set, rounded down. range : allowed ratings,
    [lowest, highest], or None. items : ``rated``, or ``all`` for all ids up to the largest of the file
    (``data.facts["last_item_id"]``). Items without ratings have no residuals, but they count in R(V), in the Gram
    matrices of V and W_i that set the U steps, and in messages.
    rng : source of the split; None derives it from ``client``. threads : clients processed at a time; None for the
    default.

    Raises UserError if the data cannot work, and ParameterError if a parameter cannot.

    >>> import numpy as np
    >>> from fedrepro import Completion, Ratings
    >>> user, item = np.divmod(np.arange(96), 8)
    >>> data = Ratings(user, item, 1.0 + (user + item) % 5, users=12, items=8)
    >>> problem = Completion(data, client=np.arange(12) % 3, r=2, train=0.75)
    >>> U0, V0 = problem.initial(trial=1)
    >>> U0.shape, V0.shape  # both with one row for each user or item
    ((12, 2), (8, 2))
    """

    name = "completion"
    metrics = METRICS
    default_metrics = ("objective", "rmse")
    parameters = PARAMETERS
    ranges: ClassVar[Mapping[str, Range]] = {
        "r": Whole(),
        "reg": OneOf("l2", "l1"),
        "lam": Number(least=0.0),
        "gam": Number(least=0.0),
        "scale": OneOf("raw", "zscore"),
        "init": Number(above=0.0),
        "train": Number(above=0.0, most=1.0),
        "items": OneOf("rated", "all"),
    }
    probes: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "dense": {
            "dataset": {"name": "movielens-1m", "users": 600},
            "partition": {"name": "users", "P": 20},
            "problem": {"lam": 0.1, "gam": 0.1},
        }
    }
    stored_parameters = ("train", "range", "items")

    def __init__(
        self,
        data: Any,
        client: Any = None,
        *,
        rng: Rng | None = None,
        threads: int | None = None,
        **parameters: Any,
    ) -> None:
        unknown = sorted(set(parameters) - set(PARAMETERS))
        if unknown:
            one_of("parameters", unknown[0], tuple(PARAMETERS))
        Completion.check(parameters, {})
        values = {**PARAMETERS, **parameters}
        self._set_up(_arrange(data, client, values, rng), values, threads)

    @classmethod
    def stored(cls, folder: Path, parameters: Mapping[str, Any], threads: int | None = None) -> Completion:
        """The problem in a folder written by ``prepare``; its ratings are memory mapped, read-only."""
        Completion.check(parameters, {})
        problem = cls.__new__(cls)
        problem._set_up(rating_buckets.read(folder), {**PARAMETERS, **parameters}, threads)
        return problem

    def _set_up(self, stored: rating_buckets.Stored, given: Mapping[str, Any], threads: int | None) -> None:
        self.threads = _threads() if threads is None else threads
        whole("threads", self.threads)
        self.user, self.starts, self.train, self.test = stored.user, stored.starts, stored.train, stored.test
        self._col_ptr, self._col_row, self._col_code = stored.col_ptr, stored.col_row, stored.col_code
        self.users, self.n = stored.facts["users"], stored.facts["items"]
        self.rows, self.p = self.user.size, self.starts.size - 1
        self.P = self.p
        self.r, self.reg = given["r"], given["reg"]
        self.lam, self.gam, self.init = float(given["lam"]), float(given["gam"]), float(given["init"])
        top = min(self.rows, self.n)
        if self.r > top:
            raise ParameterError("r", f"must be at most {top}: {self.rows} users x {self.n} items carry no higher rank")
        self.mean, self.sd = stored.facts["mean"], stored.facts["sd"]
        self.unit = 1.0 if given["scale"] == "raw" else self.sd
        if self.unit == 0.0:
            raise ParameterError("scale", "zscore needs ratings that differ; all of these are equal")
        self.levels = stored.levels if given["scale"] == "raw" else (stored.levels - self.mean) / self.sd
        _freeze(self.levels, self._col_ptr, self._col_row, self._col_code, *self.train.arrays, *self.test.arrays)

    # Parts of the data, as kernels take them

    def client(self, i: int) -> slice:
        """The rows of client i."""
        return slice(int(self.starts[i]), int(self.starts[i + 1]))

    def by_user(self, rows: slice) -> tuple[np.ndarray, ...]:
        """Training buckets of the users ``rows``: ptr, index (item), code, levels."""
        return (*self.train.part(rows), self.levels)

    def by_item(self, i: int) -> tuple[np.ndarray, ...]:
        """Training buckets of client i by item: ptr, index (row within the client), code, levels."""
        return self._col_ptr[i], self._col_row, self._col_code, self.levels

    @functools.cached_property
    def columns(self) -> rating_buckets.Buckets:
        """Training buckets by item over all clients, index = row; computed at the first use by a centralised method."""
        columns = rating_buckets.all_columns(self.train, self.n)
        _freeze(*columns.arrays)
        return columns

    def blocks(self, buckets: rating_buckets.Buckets) -> list[slice]:
        """All buckets in ``threads`` slices with about the same number of entries."""
        ptr, count = buckets.ptr, buckets.ptr.size - 1
        cuts = np.searchsorted(ptr, [buckets.count * b // self.threads for b in range(1, self.threads)])
        edges = [0, *np.minimum(cuts, count).tolist(), count]
        return [slice(a, b) for a, b in itertools.pairwise(edges) if a < b]

    def each(self, function: Callable[[Any], T], tasks: Sequence[Any]) -> list[T]:
        """``function`` of every task, in order, ``threads`` at a time."""
        if self.threads == 1 or len(tasks) < 2:
            return [function(task) for task in tasks]
        settings = [contextvars.copy_context() for _ in tasks]  # carries numpy.errstate to the threads
        return list(_pool(self.threads).map(lambda setting, task: setting.run(function, task), settings, tasks))

    @staticmethod
    def stored_bytes(facts: Mapping[str, Any]) -> float:
        """3 bytes per rating by user and per training rating by item, and the start of each client's items.

        Ratings with more than 256 distinct values need more.
        """
        return facts["ratings"] * (3.0 + 3.0 * facts["train"]) + 8.0 * facts["P"] * facts["items"]

    @staticmethod
    def preparing(facts: Mapping[str, Any]) -> Cost:
        """The cost of counting and sorting all ratings a few times."""
        return Cost(
            Work(singles=60.0 * facts["ratings"], calls=4000.0), holds=40.0 * facts["ratings"], libraries=("numba",)
        )

    @staticmethod
    def measuring(names: Sequence[str], facts: Mapping[str, Any]) -> Cost:
        """The cost of the residuals of all ratings: one pass over the training and one over the test ratings."""
        kinds = sum(
            bool(set(names) & group) for group in ({"objective", "data_term", "rmse_train"}, {"objective_local"})
        )
        share = kinds * facts["train"] + ("rmse" in names) * (1.0 - facts["train"])
        sizes = (facts["users"] + facts["items"]) * facts["r"]
        measured = Work(singles=share * facts["ratings"] * (0.4 * facts["r"] + 1.0) + sizes, calls=60.0)
        if "gap" in names:  # three steps of every client, its own copies of V
            r, P = facts["r"], facts["P"]
            ratings = facts["train"] * facts["ratings"]
            measured += Work(singles=3.0 * ratings * r + 4.0 * P * facts["items"] * r, calls=60.0 * P)
        if "beta_scale" in names:
            measured += Work(singles=facts["users"] * facts["r"] ** 2, calls=10.0 * facts["P"])
        return Cost(round=measured, libraries=("numba",))

    # Initial points

    def initial(self, trial: int) -> tuple[np.ndarray, np.ndarray]:
        """The initial point (U0, V0) number ``trial``: (users, r) in the caller's order of users, and (n, r)."""
        whole("trial", trial, 0)
        return self._uniform(generator("init", problem="completion", trial=trial))

    def _uniform(self, rng: Rng) -> tuple[np.ndarray, np.ndarray]:
        V0 = self.init * rng.random((self.n, self.r))  # fedmc section 5: uniform over [0, 1]
        return self.init * rng.random((self.users, self.r)), V0

    def start(self, init: Any, rng: Rng) -> State:
        """The state at ``init`` = (U0, V0), (users, r) and (n, r); None for a point drawn by ``rng``."""
        U0, V0 = self._uniform(rng) if init is None else (np.asarray(a, dtype=np.float64) for a in init)
        for name, part, shape in (("U0", U0, (self.users, self.r)), ("V0", V0, (self.n, self.r))):
            if part.shape != shape:
                raise UserError(f"init: {name} must have shape {shape}, not {part.shape}")
            if not np.isfinite(part).all():
                raise UserError(f"init: {name} contains values that are not finite")
        return State(np.take(U0, self.user, axis=0), V0.copy(order="C"))

    # Measures

    def residual(self, U: np.ndarray, V: np.ndarray, test: bool = False, levels: np.ndarray | None = None) -> float:
        """sum over the training (or test) ratings of (rating - <U[t], V[j]>)^2, in the problem's scale."""
        from fedrepro.problems.completion.kernels import squared_residuals

        buckets, levels = self.test if test else self.train, self.levels if levels is None else levels
        out = np.empty(self.rows)
        self.each(lambda b: squared_residuals(out[b], U[b], V, *buckets.part(b), levels), self.blocks(buckets))
        return float(out.sum())

    def local_residual(self, U: np.ndarray, W: np.ndarray) -> float:
        """The same over the training ratings with every client's own W_i (n, r) in place of V."""
        from fedrepro.problems.completion.kernels import squared_residuals

        out = np.empty(self.rows)

        def add_client(i: int) -> None:
            b = self.client(i)
            squared_residuals(out[b], U[b], W[i], *self.by_user(b))

        self.each(add_client, range(self.p))
        return float(out.sum())

    def penalty(self, U: np.ndarray, V: np.ndarray, half_l1: bool = False) -> float:
        """(1/p) sum_i R_i(U_i) + R(V); ``half_l1`` halves the l1 norms as the released program does."""
        if self.reg == "l2":
            norms, half = (float(np.vdot(U, U)), float(np.vdot(V, V))), 0.5
        else:
            norms, half = (float(np.abs(U).sum()), float(np.abs(V).sum())), 0.5 if half_l1 else 1.0
        return half * (self.lam * norms[0] / self.p + self.gam * norms[1])

    def measure(self, state: State, names: Sequence[str]) -> dict[str, float]:
        """The value of each named metric at a state; inf or NaN if the state is not finite.

        Raises ParameterError if U does not have a row for each user, or V for each item.
        """
        all_of("metrics", names, tuple(METRICS))
        rows("U", state.U, self.rows)
        rows("V", state.V, self.n)
        with np.errstate(over="ignore", invalid="ignore"):
            seen = _Measured(self, state)
            return {name: float(getattr(seen, name)) for name in names}

    def artifacts(self, state: State, names: Sequence[str]) -> dict[str, np.ndarray]:
        """Arrays of a state: ``U`` (users, r) in the caller's order, NaN for users left out; ``V`` (n, r)."""
        all_of("artifacts", names, ARTIFACTS)
        U = np.full((self.users, self.r), np.nan)
        U[self.user] = state.U
        arrays = {"U": U, "V": state.V.copy()}
        return {name: arrays[name] for name in names}

    @classmethod
    def check(cls, parameters: Mapping[str, Any], facts: Mapping[str, int | None]) -> None:
        """Raise ParameterError if a parameter cannot work; ``facts`` may contain ``users`` and ``items``, or None."""
        super().check(parameters, facts)
        bounds, r = parameters.get("range"), parameters.get("r", PARAMETERS["r"])
        if bounds is not None:
            if not isinstance(bounds, list | tuple) or len(bounds) != 2:
                raise ParameterError("range", f"must be null or [lowest, highest], not {bounds!r}")
            number("range", bounds[0])
            number("range", bounds[1], least=bounds[0])
        for name in ("users", "items"):
            count = facts.get(name)
            if count is not None and r > count:
                raise ParameterError("r", f"must be at most {count}, as {count} {name} carry no higher rank")

    @classmethod
    def prepare(cls, folder: Path, data: Any, client: np.ndarray | None, parameters: Mapping[str, Any]) -> None:
        """Write ``Ratings`` as the problem uses them; ``client`` is that of each *user*."""
        rating_buckets.write(folder, _arrange(data, client, {**PARAMETERS, **parameters}, None))

    @staticmethod
    def diverged(values: Mapping[str, np.ndarray]) -> str | None:
        """Why a run counts as diverged, or None: a value is not finite, or the fit ended worse than it started.

        Worse means that all recorded metrics of ``objective``, ``data_term`` and ``rmse`` ended more than 1 % above
        their starts. One of them alone can do so in a healthy run: the objective because of its regulariser (a large
        gam and a small initial point), the data term by a collapse to zero, the test error by overfitting.
        ``values["round"]`` contains the round of each recorded value; without it they count from 0.
        """
        rounds = values.get("round")
        for name, column in values.items():
            bad = np.flatnonzero(~np.isfinite(column))
            if bad.size:
                return f"{name} is not finite in round {int(bad[0]) if rounds is None else int(rounds[bad[0]])}"
        judges = [n for n in ("objective", "data_term", "rmse") if n in values and len(values[n]) > 1]
        if not judges or any(values[n][-1] <= 1.01 * values[n][0] for n in judges):
            return None
        column = values[judges[0]]
        last = len(column) - 1 if rounds is None else int(rounds[-1])
        return f"{judges[0]} is {column[-1]:.6g} in round {last}, above {column[0]:.6g} at the start"


class _Measured:
    """The metrics at one state; each pass over the ratings is made at most once."""

    def __init__(self, problem: Completion, state: State) -> None:
        self.problem, self.state, self.work = problem, state, state.work

    @property
    def users(self) -> int:
        return self.problem.users

    @property
    def items(self) -> int:
        return self.problem.n

    @property
    def ratings(self) -> int:
        return self.problem.train.count + self.problem.test.count

    @functools.cached_property
    def train(self) -> float:
        return self.problem.residual(self.state.U, self.state.V)

    def test(self, levels: np.ndarray | None = None) -> float:
        """Mean squared error over the test ratings, problem scale."""
        if self.problem.test.count == 0:
            raise ParameterError("train", "leaves no test rating to measure the RMSE on; choose a smaller fraction")
        return self.problem.residual(self.state.U, self.state.V, True, levels) / self.problem.test.count

    @property
    def data_term(self) -> float:
        return 0.5 * self.train / self.problem.p

    @property
    def objective(self) -> float:
        return self.data_term + self.problem.penalty(self.state.U, self.state.V)  # fedmc (1)

    @property
    def objective_local(self) -> float:
        U, W = self.state.U, self.state.W
        residual = self.train if W is None else self.problem.local_residual(U, W)
        return 0.5 * residual / self.problem.p + self.problem.penalty(U, self.state.V, half_l1=True)

    @property
    def rmse(self) -> float:
        return np.sqrt(self.test()) * self.problem.unit  # fedmc section 5.1

    @property
    def rmse_train(self) -> float:
        return np.sqrt(self.train / self.problem.train.count) * self.problem.unit

    @property
    def rmse_truncated(self) -> float:
        cut = np.trunc(self.problem.levels)
        _freeze(cut)
        return np.sqrt(self.test(cut))

    @property
    def gap(self) -> float:
        return stationarity.gap(self.problem, self.state)

    @property
    def beta_scale(self) -> float:
        return stationarity.beta_scale(self.problem, self.state)

    @property
    def nnz_u(self) -> float:
        return np.count_nonzero(self.state.U) / self.state.U.size

    @property
    def nnz_v(self) -> float:
        return np.count_nonzero(self.state.V) / self.state.V.size

    @property
    def nnz(self) -> float:
        return 0.5 * (self.nnz_u + self.nnz_v)


def bucketing(facts: Mapping[str, Any], share: float, rows: float, steps: float) -> Work:
    """The work of ``steps`` steps on ``rows`` rows of a factor, and of the Gram matrices of a share of the ratings."""
    r, entries = facts["r"], share * facts["ratings"] * facts["train"]
    rows = min(rows, entries)  # those without ratings are passed over
    return Work(singles=entries * (0.15 * r * r + 1.5 * r) + 0.3 * steps * rows * r * r + rows * r, calls=20.0)


def client_draws(draw: Rng, m: int, p: int, clients: Any = None) -> Iterator[list[int]]:
    """The clients of each round in increasing order: m of p, uniform without replacement (first m of a permutation).

    The same generator ``draw`` draws a subset for a smaller m. ``clients`` : the ids of each round, instead of drawing
    them; the run ends after the last.
    """
    if clients is not None:
        for k, ids in enumerate(clients, start=1):
            drawn = np.unique(np.asarray(ids))
            named = drawn.dtype.kind in "iu" and 0 < drawn.size == len(ids)
            if not named or drawn[0] < 0 or drawn[-1] >= p:
                raise UserError(f"clients: round {k} must name different clients of 0 to {p - 1}, not {list(ids)}")
            yield drawn.tolist()
        return
    while True:
        yield sorted(draw.permutation(p)[:m].tolist())


def _freeze(*arrays: np.ndarray) -> None:
    """Make arrays read-only like memory-mapped ones, so that kernels are compiled for one kind only."""
    for array in arrays:
        array.flags.writeable = False


def _threads() -> int:
    text = os.environ.get("FEDREPRO_THREADS", "1")
    if not text.isdigit() or int(text) < 1:
        raise UserError(f"FEDREPRO_THREADS: must be a whole number of at least 1, not '{text}'")
    return int(text)


@functools.cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads)


def _arrange(data: Any, client: Any, values: Mapping[str, Any], rng: Rng | None) -> rating_buckets.Stored:
    return rating_buckets.arrange(data, client, values["train"], rng, values["range"], values["items"])


add_problem(
    Completion,
    "Matrix completion with private user factors and shared item factors, users partitioned over clients",
    data_kind="ratings",
    artifacts=ARTIFACTS,
)
