"""The loop that runs a method on a problem and measures the states that it yields, round by round.

``run`` is the entry point from Python, for every method and problem, on arrays in memory. The command line calls
``drive`` with the same initial point and the same random numbers, so trial t has the same bits from either.
"""

from __future__ import annotations

import copy
import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from fedrepro import registry, seeds
from fedrepro.errors import UserError, nearest
from fedrepro.ledger import COUNTS, Clock, Ledger
from fedrepro.parameters import some_states, whole
from fedrepro.protocols import Method, Problem


@dataclass
class History:
    """The measurements of a run. ``history["objective"][0]`` belongs to the initial point, the rest to ``rounds[1:]``.

    rounds : (R,) the measured rounds, 0 first. values : each metric by name, (R,) floats, and the ledger's cumulative
    totals (``uplink_scalars``, ``uplink_bits``, ``downlink_scalars``, ``downlink_bits``), (R,) integers. seconds : (R,)
    the method's own work so far if nodes work in parallel, as far as the method marks what a node computes; its start
    counts, measuring does not. serial : the same if nodes work one after another, as here. state : the last state.
    ledger : the run's messages. diverged : why the run counts as diverged, or None. states : a copy of every measured
    state if they were kept, else None.

    >>> import numpy as np
    >>> from fedrepro import Clustering, FedMGS, History, run
    >>> X = np.random.default_rng(0).random((5, 60))
    >>> problem = Clustering(X, np.arange(60) % 4, K=3)
    >>> history: History = run(FedMGS(m=2), problem, rounds=40, record_every=10)
    >>> history.rounds[-3:]
    array([20, 30, 40])
    >>> history["objective"].shape == history["uplink_bits"].shape == history.rounds.shape
    True
    """

    rounds: np.ndarray
    values: dict[str, np.ndarray]
    seconds: np.ndarray
    serial: np.ndarray
    state: Any
    ledger: Ledger
    diverged: str | None = None
    states: list[Any] | None = field(default=None, repr=False)

    def __getitem__(self, name: str) -> np.ndarray:
        """Return the values of one metric or ledger total over the measured rounds."""
        if name not in self.values:
            raise KeyError(f"'{name}' was not recorded (recorded: {', '.join(self.values)})")
        return self.values[name]


def run(
    method: Method,
    problem: Problem,
    rounds: int,
    *,
    trial: int = 1,
    rng: np.random.Generator | None = None,
    init: Any = None,
    clients: Any = None,
    metrics: str | Sequence[str] | None = None,
    record_every: int = 1,
    record_dense: int = 20,
    keep: bool = False,
    warm: bool = False,
) -> History:
    """Run ``method`` on ``problem`` for ``rounds`` rounds, or until it ends by itself, and measure the states.

    trial : number of the trial, at least 0; it determines the initial point and all random numbers, as on the command
    line, where trials count from 1. rng : another source of random numbers. init : initial factors that replace the
    problem's initial point. clients : the clients of each round, to replay a run. metrics : names of the problem's
    metrics, or one name; None for the default ones. record_every, record_dense : rounds up to ``record_dense``, every
    ``record_every``-th round after it and the last are measured. keep : keep a copy of every measured state. warm :
    compute the start and one round first and discard them, as the command line does, so that the times include no
    loading and no compilation; nothing else changes.

    A run ends early if a default metric is no longer finite. It uses one BLAS thread, as workers do, because more
    threads add in another order. Raises UserError for an invalid argument.

    >>> import numpy as np
    >>> from fedrepro import Clustering, FedMGS, run
    >>> X = np.random.default_rng(0).random((5, 60))
    >>> problem = Clustering(X, np.arange(60) % 4, K=3)
    >>> method = FedMGS(m=2, Q1=5)
    >>> first, again = (run(method, problem, rounds=5, trial=7)["objective"] for _ in range(2))
    >>> bool((first == again).all())  # the same trial, the same bits
    True
    >>> init = np.ones((5, 3)), np.ones((3, 60))
    >>> run(method, problem, rounds=2, init=init, metrics=["objective", "curvature_ratio"]).rounds
    array([0, 1, 2])
    """
    whole("rounds", rounds, 0)
    whole("trial", trial, 0)
    whole("record_every", record_every, 1)
    whole("record_dense", record_dense, 0)
    if isinstance(method, type):
        raise UserError(
            f"method: {method.__name__} is a class, not a method with parameters; write {method.__name__}()"
        )
    registry.check_solves(method, problem)
    if clients is not None and len(clients) < rounds:
        raise UserError(f"clients: gives the draws of {len(clients)} rounds, but {rounds} rounds were asked for")
    asked = (metrics,) if isinstance(metrics, str) else metrics
    names = problem.default_metrics if asked is None else tuple(asked)
    for name in names:
        if name not in problem.metrics:
            raise UserError(
                f"metrics: the problem '{problem.name}' does not measure '{name}'{nearest(name, problem.metrics)} "
                f"(metrics: {', '.join(problem.metrics)})"
            )
    history = drive(
        method,
        problem,
        rounds,
        rng=randomness(problem.name, trial) if rng is None else rng,
        init=problem.initial(trial) if init is None else init,
        clients=clients,
        metrics=names,
        record_every=record_every,
        record_dense=record_dense,
        keep=keep,
        warm=warm,
    )
    history.diverged = diverged(method, problem, history.diverged, {"round": history.rounds, **history.values})
    return history


def diverged(
    method: Method | type[Method], problem: Problem | type[Problem], why: str | None, values: Mapping[str, np.ndarray]
) -> str | None:
    """Return why a run counts as diverged: ``why``, or ``Problem.raised`` for methods that raise a penalty."""
    return problem.raised(values) if why and method.raises else why


def randomness(problem: str, trial: int) -> np.random.Generator:
    """Return the random generator of a run: all methods on a problem share it in one trial."""
    return seeds.generator("run", problem=problem, trial=trial)


def drive(
    method: Method,
    problem: Problem,
    rounds: int,
    *,
    rng: np.random.Generator,
    init: Any,
    metrics: Sequence[str],
    clients: Any = None,
    record_every: int = 1,
    record_dense: int = 0,
    keep: bool = False,
    warm: bool = False,
    clock: Callable[[], float] = time.perf_counter,
) -> History:
    """Run the loop; arguments as in ``run``, after its checks. clock : seconds of the method's own work."""
    ledger = Ledger(clock=Clock(clock))
    seen: list[tuple[int, tuple[float, float], list[int], list[float]]] = []
    states: list[Any] = []

    def measure(number: int, state: Any, spent: float) -> None:
        values = problem.measure(state, tuple(metrics))
        times = ledger.clock.times(spent)
        seen.append((number, times, list(ledger.totals().values()), [float(values[name]) for name in metrics]))
        if keep:
            states.append(state.copy() if hasattr(state, "copy") else copy.deepcopy(state))

    with threadpool_limits(limits=1):
        if warm and not method.one_shot:
            warm_up(method, problem, rng, init, clients)
        spent, number, state, waiting = 0.0, -1, None, False
        started = clock()
        for number, state in enumerate(method.rounds(problem, rng, ledger=ledger, init=init, clients=clients)):
            spent += clock() - started
            waiting = not wanted(number, rounds, record_every, record_dense)
            if not waiting:
                measure(number, state, spent)
                if not all(
                    np.isfinite(v) for n, v in zip(metrics, seen[-1][3], strict=True) if n in problem.default_metrics
                ):
                    break
            if number >= rounds:
                break
            started = clock()
        if waiting:  # it ended by itself between two recorded rounds: measure its end
            measure(number, state, spent)
    some_states(number + 1)
    at = np.array([s[0] for s in seen], dtype=np.int64)
    values = {name: np.array([s[3][i] for s in seen], dtype=np.float64) for i, name in enumerate(metrics)}
    counts = {name: np.array([s[2][i] for s in seen], dtype=np.int64) for i, name in enumerate(COUNTS)}
    why = problem.diverged({"round": at, **values})
    seconds, serial = (np.array([s[1][i] for s in seen], dtype=np.float64) for i in range(2))
    return History(at, {**values, **counts}, seconds, serial, state, ledger, why, states if keep else None)


def warm_up(method: Method, problem: Problem, rng: np.random.Generator, init: Any, clients: Any = None) -> None:
    """Compute the start and the first round on the run's own data, with a copy of its generator, and discard them.

    The run then loads no library and compiles nothing. Kernels are compiled for their argument types and networks for
    their shapes, so only a round of the run itself compiles all of it.
    """
    ledger = Ledger(clock=Clock(cold=True))
    states = method.rounds(problem, copy.deepcopy(rng), ledger=ledger, init=init, clients=clients)
    for _ in itertools.islice(states, 2):
        pass


def wanted(round_: int, rounds: int, every: int, dense: int) -> bool:
    """Return whether a round is recorded: all up to ``dense``, then every ``every``-th, and the last."""
    return round_ <= dense or round_ % every == 0 or round_ >= rounds
