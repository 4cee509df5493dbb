"""The interfaces of methods, problems, datasets and partitions.

A method is a frozen dataclass of its parameters; it computes no scores. A problem contains the data, provides initial
points and measures the states that a method yields. ``runs.compute.drive`` runs a method on a problem. Datasets and
partitions are frozen dataclasses of their parameters too. The classes of this package derive from the protocols here,
which provide defaults for optional members. Other classes only need the same members.
"""

from __future__ import annotations

import operator
import tempfile
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np

from fedrepro.ledger import Ledger
from fedrepro.parameters import Range, all_of, check, check_fields, check_sizes, check_types
from fedrepro.seeds import Rng

IN_RUNS = "says"  # nothing here computes; see fedrepro.runs.identity.code

Facts = Mapping[str, Any]
"""Sizes of data known before it is read (M, N, K, P, ...); None if only the file contains them."""


@dataclass(frozen=True)
class Work:
    """The work of a computation, in amounts that are the same on every machine.

    flops : floating-point operations of dense products and factorizations. bytes : bytes read from memory by products
    that memory bandwidth limits. singles : operations on one number at a time: stored entries of sparse data, ratings,
    draws, elementwise passes. network : floating-point operations of neural networks. calls : library calls, each of
    about a microsecond of overhead. programs : networks compiled. All are at least 0, and the amounts of a run add up.
    """

    flops: float = 0.0
    bytes: float = 0.0
    singles: float = 0.0
    network: float = 0.0
    calls: float = 0.0
    programs: float = 0.0

    def __add__(self, other: Work) -> Work:
        return Work(*map(operator.add, self._amounts, other._amounts))

    def __mul__(self, times: float) -> Work:
        return Work(*(amount * times for amount in self._amounts))

    __rmul__ = __mul__

    @property
    def _amounts(self) -> tuple[float, ...]:  # ``astuple`` would copy each number deeply
        return self.flops, self.bytes, self.singles, self.network, self.calls, self.programs


@dataclass(frozen=True)
class Cost:
    """The cost of a run or a step: work ``start`` once and ``round`` per round, and at most ``holds`` bytes of memory.

    libraries : import names of the libraries that it loads when it runs (``sklearn``, ``numba``, ``jax``). first : work
    that the first such run on a problem does for all others in the process: compiling, or a start that is kept.
    """

    start: Work = Work()
    round: Work = Work()
    holds: float = 0.0
    libraries: tuple[str, ...] = ()
    first: Work = Work()


@dataclass(frozen=True)
class Metric:
    """A number that a problem can measure on a state: its axis label, which direction is better, and its meaning."""

    name: str
    label: str
    better: str  # "lower" or "higher"
    summary: str


def by_name(*metrics: Metric) -> dict[str, Metric]:
    """The metrics of a problem by their names, in this order."""
    return {metric.name: metric for metric in metrics}


class Method(Protocol):
    """A method: a frozen dataclass whose fields are its parameters.

    one_shot : whether it has no rounds and yields one state. silent : whether it sends no messages. meets : whether it
    is faster if it passes over the data together with other runs (``Problem.joins``). raises : whether it raises a
    penalty of the objective between rounds, so that the objective may end above its start (``Problem.raised``).

    >>> from fedrepro import FedMGS, Method
    >>> Method in FedMGS.__mro__
    True
    >>> FedMGS(m=2)  # its parameters, checked, with their defaults
    FedMGS(m=2, Q1=10, Q2=100, gamma1=1.02, gamma2=1.002)
    """

    one_shot: ClassVar[bool] = False
    meets: ClassVar[bool] = True
    silent: ClassVar[bool] = False
    raises: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Raise ParameterError if a field is outside the range that its annotation declares, or of another type."""
        check_fields(self)
        check_types(self)

    @abstractmethod
    def rounds(
        self, problem: Any, rng: Rng, *, ledger: Ledger | None = None, init: Any = None, clients: Any = None
    ) -> Iterator[Any]:
        """Yield the state at the initial point and after every round, without end or until the method stops.

        problem : the problem, which is not changed. rng : the source of all random numbers. ledger : counts every
        message, and with ``ledger.clock`` the time of nodes that are simulated one after another. init : the initial
        point, ``problem.initial(trial)`` or explicit factors; None for a point drawn by ``rng``. clients : the clients
        of each round, to replay a run; None to draw them.
        """
        ...

    def check(self, **facts: Any) -> None:
        """Raise ParameterError if the parameters cannot work for data with these ``facts``.

        ``facts`` are the known sizes and the problem's parameters. This compares fields with the sizes that their
        annotations name (``AtMost``).
        """
        check_sizes(self, facts)

    def collapsed(self, **facts: Any) -> bool:
        """Whether the local steps of a round are computed at once, by a map formed before round 1.

        The time of such a round is not the time of the steps, so tables that compare it with other methods mark it.
        """
        return False

    @staticmethod
    def cost(params: Mapping[str, Any], facts: Facts) -> Cost:
        """The cost of a run with these parameters on data with these ``facts``, to predict time and memory.

        ``facts`` are sizes (none is None) by their names in shapes, partitions and the problem's parameters. Measuring
        is not included. The default ``Cost()`` means that the cost is not declared.
        """
        return Cost()


class Problem(Protocol):
    """A problem in memory: the data, initial points and measures.

    name : its name in specs and seeds. metrics : the metrics that ``measure`` computes. default_metrics : those
    measured unless a figure requests others. parameters : the keys of ``problem:`` in a spec with their defaults; most
    are keyword arguments of the class too. ranges : their ranges, by name. stored_parameters : the parameters that
    ``prepare`` reads (None for all); runs that differ only in others share its files. joins : whether runs can pass
    over its data together (``together``). probes : a small problem on dense and one on sparse data, if there are any,
    with the keys of a spec (``dataset``, ``partition``, ``problem``); a few rounds on them measure how fast a method is
    on a machine.

    >>> from fedrepro import Clustering, Problem
    >>> Problem in Clustering.__mro__
    True
    >>> Clustering.default_metrics, sorted(Clustering.metrics)[:3]
    (('objective',), ['accuracy', 'ami', 'ari'])
    """

    name: ClassVar[str]
    metrics: ClassVar[Mapping[str, Metric]]
    default_metrics: ClassVar[tuple[str, ...]]
    parameters: ClassVar[Mapping[str, Any]]
    ranges: ClassVar[Mapping[str, Range]] = {}
    stored_parameters: ClassVar[tuple[str, ...] | None] = None
    joins: ClassVar[bool] = False
    probes: ClassVar[Mapping[str, Mapping[str, Any]]] = {}

    @classmethod
    def check(cls, parameters: Mapping[str, Any], facts: Facts) -> None:
        """Raise ParameterError if a parameter cannot work; ``facts`` are the known sizes of the data.

        This compares parameters with their declared ``ranges``; None is allowed if it is the default.
        """
        all_of("parameters", parameters, tuple(cls.parameters))
        for name, default in cls.parameters.items():
            value = parameters.get(name, default)
            if name in cls.ranges and not (value is None and default is None):
                check(name, value, cls.ranges[name])

    @classmethod
    def of(cls, data: Any, client: np.ndarray | None, parameters: Mapping[str, Any]) -> Any:
        """The problem on a dataset's arrays in memory: ``prepare`` and ``stored`` in one call.

        client : the client of each sample, user or image; None if the data are not partitioned.
        """
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # maps outlive the files they show
            cls.prepare(Path(folder), data, client, parameters)
            return cls.stored(Path(folder), parameters)

    @classmethod
    @abstractmethod
    def prepare(cls, folder: Path, data: Any, client: np.ndarray | None, parameters: Mapping[str, Any]) -> None:
        """Write the arrays of the problem into a folder, from which processes memory map them."""

    @classmethod
    @abstractmethod
    def stored(cls, folder: Path, parameters: Mapping[str, Any]) -> Problem:
        """The problem that ``prepare`` wrote."""

    @abstractmethod
    def initial(self, trial: int) -> Any:
        """The initial point number ``trial``, the same for all methods."""
        ...

    @abstractmethod
    def measure(self, state: Any, names: Sequence[str]) -> dict[str, float]:
        """The value of each named metric at a state."""
        ...

    @abstractmethod
    def artifacts(self, state: Any, names: Sequence[str]) -> dict[str, np.ndarray]:
        """Named arrays of a state that are stored with the results, for plots."""
        ...

    def together(self) -> bool:
        """Whether joint runs on this problem give the same bits as solo runs on this machine."""
        return False

    @staticmethod
    def stored_bytes(facts: Facts) -> float:
        """The bytes that ``prepare`` writes and processes share; 0 means not declared."""
        return 0.0

    @staticmethod
    def preparing(facts: Facts) -> Cost:
        """The cost of ``prepare`` without loading the data; ``Cost()`` means not declared."""
        return Cost()

    @staticmethod
    def measuring(names: Sequence[str], facts: Facts) -> Cost:
        """The cost of measuring these metrics of one state, in ``round``; ``Cost()`` means not declared."""
        return Cost()

    @staticmethod
    @abstractmethod
    def diverged(values: Mapping[str, np.ndarray]) -> str | None:
        """Why a run counts as diverged, or None, given the recorded values of each metric and of ``round``."""
        ...

    @classmethod
    def raised(cls, values: Mapping[str, np.ndarray]) -> str | None:
        """``diverged`` for a method that raises a penalty (``Method.raises``)."""
        return cls.diverged(values)


class Dataset(Protocol):
    """A dataset: a frozen dataclass whose fields are its parameters.

    draws : whether ``load`` draws the data, afresh for every trial. files : the parameters that may name the user's own
    files, the data file first. bundled : the library that contains the data, '' for none.
    """

    draws: ClassVar[bool] = False
    files: ClassVar[tuple[str, ...]] = ()
    bundled: ClassVar[str] = ""

    def __post_init__(self) -> None:
        """Raise ParameterError if a field is outside the range that its annotation declares."""
        check_fields(self)

    @abstractmethod
    def shape(self) -> Facts:
        """The sizes of the data, without reading it."""
        ...

    def expected(self) -> Facts:
        """Estimates of the sizes that ``shape`` does not know, and ``density`` of sparse data, for predictions only."""
        return {}

    def making(self) -> Cost:
        """The cost of ``load`` or of the stand-in; ``Cost()`` means a few passes over the data."""
        return Cost()

    def doubts(self) -> Sequence[str]:
        """Warnings about the data that are probably a mistake of the user; they are not errors."""
        return ()

    @abstractmethod
    def load(self, *given: Any, **named: Any) -> Any:
        """The arrays, of a kind in ``fedrepro.datasets.types``.

        Its arguments are ``path``, the folder of arrays in the data home, if the dataset is registered with files, and
        ``rng`` if it draws. Raises ParameterError if the data cannot satisfy the parameters.
        """
        ...


class Partition(Protocol):
    """A partition: a frozen dataclass whose fields are its parameters."""

    def __post_init__(self) -> None:
        """Raise ParameterError if a field is outside the range that its annotation declares."""
        check_fields(self)

    @abstractmethod
    def assign(self, data: Any, rng: Rng) -> np.ndarray:
        """The client of each sample, user or image; for images also the part, 0 for training and 1 for testing."""
        ...

    def sharing(self, facts: Facts) -> Cost:
        """The cost of ``assign``; ``Cost()`` if it is negligible."""
        return Cost()

    def check(self, *, N: int | None = None, K: int | None = None) -> None:
        """Raise ParameterError if N samples of K classes cannot be partitioned so (None: not known yet)."""
        check_sizes(self, {"N": N, "K": K})
