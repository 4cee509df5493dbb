"""What is asked of a method, a problem, a dataset and a partition: all of it, in one place.

A method is a frozen dataclass of its parameters and scores nothing; a problem holds the data, gives initial points and
measures the states that a method yields. ``runs.compute.drive`` brings the two together. Datasets and partitions are
frozen dataclasses of their parameters too. Classes of every kind derive from the protocols here, which hold the
defaults of what need not be said; own ones may also just have the same members.
"""

from __future__ import annotations

import tempfile
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np

from fedrepro.ledger import Ledger
from fedrepro.parameters import Range, all_of, check, check_fields
from fedrepro.seeds import Rng

IN_RUNS = "says"  # nothing here computes; see fedrepro.runs.identity.code

Facts = Mapping[str, Any]
"""What is known of data before it is read (M, N, K, P ...); None where only the file tells."""


@dataclass(frozen=True)
class Work:
    """What a piece of computing takes, in amounts that are the same on every machine.

    flops : floating-point operations of dense products and factorizations. bytes : read from memory by products too
    thin to hide it. singles : operations on one number at a time: stored entries of sparse data, ratings, draws,
    elementwise passes. network : floating-point operations of neural networks. calls : library calls that take a
    microsecond whatever they do. programs : compiled networks. All at least 0; amounts of one run add up.
    """

    flops: float = 0.0
    bytes: float = 0.0
    singles: float = 0.0
    network: float = 0.0
    calls: float = 0.0
    programs: float = 0.0

    def __add__(self, other: Work) -> Work:
        return Work(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    def __mul__(self, times: float) -> Work:
        return Work(*(a * times for a in astuple(self)))

    __rmul__ = __mul__


@dataclass(frozen=True)
class Cost:
    """What something takes: ``start`` once, ``round`` in every round, and ``holds`` bytes of memory of its own at most.

    libraries : those it loads only at work, by their import names (``sklearn``, ``numba``, ``jax``). first : what the
    first such run on a problem does for all of them in a process, beside: compiling, a start that is kept.
    """

    start: Work = Work()
    round: Work = Work()
    holds: float = 0.0
    libraries: tuple[str, ...] = ()
    first: Work = Work()


@dataclass(frozen=True)
class Metric:
    """A number a problem can measure on a state: its axis label, which way is better, and what it means."""

    name: str
    label: str
    better: str  # "lower" or "higher"
    summary: str


def by_name(*metrics: Metric) -> dict[str, Metric]:
    """The metrics of a problem by their names, in this order."""
    return {metric.name: metric for metric in metrics}


class Method(Protocol):
    """The calling convention of every algorithm: a frozen dataclass whose fields are its parameters.

    one_shot : it has no rounds and yields one state. silent : it sends no message, so that there is nothing to count.
    meets : it gains by passing over the data together with other runs (``Problem.joins``). raises : it raises a penalty
    of the problem's objective as it goes on, so that the objective may end above its start (``Problem.raised``).

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
        """Raise ParameterError where a field is outside the range that its annotation declares."""
        check_fields(self)

    @abstractmethod
    def rounds(
        self, problem: Any, rng: Rng, *, ledger: Ledger | None = None, init: Any = None, clients: Any = None
    ) -> Iterator[Any]:
        """Yield the state at the initial point and after every round, for ever or until there is nothing more to do.

        problem : what it runs on, which it does not change. rng : source of everything random. ledger : where every
        message is counted, and by ``ledger.clock`` the work of nodes that it simulates one after another. init : the
        initial point, ``problem.initial(trial)`` or explicit factors; None for one drawn by ``rng``. clients : the
        clients of each round, instead of drawing them (to replay a run).
        """
        ...

    def check(self, **facts: Any) -> None:
        """Raise ParameterError where the parameters cannot work for data of which ``facts`` are known."""

    def collapsed(self, **facts: Any) -> bool:
        """Whether on data of which ``facts`` are known a round takes its local steps at once, as a map formed before.

        Its time is then not that of the steps, and is marked where it stands beside methods that take them.
        """
        return False

    @staticmethod
    def cost(params: Mapping[str, Any], facts: Facts) -> Cost:
        """What a run takes with these parameters on data of which ``facts`` are known, to predict time and memory.

        ``facts`` are sizes (none is None) by the names that shapes, partitions and the problem's parameters have.
        Measuring is not part of it. ``Cost()`` where the method does not say.
        """
        return Cost()


class Problem(Protocol):
    """What methods run on, held in memory.

    name : as specs and seeds know it. metrics : what ``measure`` knows. default_metrics : what is measured where
    nothing else is asked for. parameters : keys of ``problem:`` in a spec with their defaults, as ``of`` takes them;
    most are keyword arguments of the class too. ranges : the range of each of these, by name. stored_parameters : those
    that ``prepare`` reads (None for all); runs that differ in others share what it wrote. joins : runs on it can pass
    over its data together (``together``). probes : a small problem on dense data and one on sparse data, as far as
    there are such, with keys as a spec has them (``dataset``, ``partition``, ``problem``); a few rounds on it tell how
    fast a method is on a machine.

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
        """Raise ParameterError where a parameter cannot work; ``facts`` are what is known of the data so far.

        This compares parameters with their declared ``ranges``; None is allowed if it is the default.
        """
        all_of("parameters", parameters, tuple(cls.parameters))
        for name, default in cls.parameters.items():
            value = parameters.get(name, default)
            if name in cls.ranges and not (value is None and default is None):
                check(name, value, cls.ranges[name])

    @classmethod
    def of(cls, data: Any, client: np.ndarray | None, parameters: Mapping[str, Any]) -> Any:
        """The problem on a dataset's arrays in memory: what ``prepare`` writes and ``stored`` opens, in one call.

        client : the client of each sample, user or image; None where the data are not shared.
        """
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # maps outlive the files they show
            cls.prepare(Path(folder), data, client, parameters)
            return cls.stored(Path(folder), parameters)

    @classmethod
    @abstractmethod
    def prepare(cls, folder: Path, data: Any, client: np.ndarray | None, parameters: Mapping[str, Any]) -> None:
        """Write the arrays of ``of`` into a folder, from which processes share them by memory map."""

    @classmethod
    @abstractmethod
    def stored(cls, folder: Path, parameters: Mapping[str, Any]) -> Problem:
        """The problem that ``prepare`` wrote; equal to ``of`` the same data to the last bit."""

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
        """Named arrays of a state to keep, for pictures."""
        ...

    def together(self) -> bool:
        """Whether runs on this problem have the same bits together as alone, on this machine."""
        return False

    @staticmethod
    def stored_bytes(facts: Facts) -> float:
        """The bytes that ``prepare`` writes, which processes share; 0 where the problem does not say."""
        return 0.0

    @staticmethod
    def preparing(facts: Facts) -> Cost:
        """What ``prepare`` takes beyond making the data; ``Cost()`` where the problem does not say."""
        return Cost()

    @staticmethod
    def measuring(names: Sequence[str], facts: Facts) -> Cost:
        """What ``measure`` takes for these metrics of one state, in ``round``; ``Cost()`` where it is not said."""
        return Cost()

    @staticmethod
    @abstractmethod
    def diverged(values: Mapping[str, np.ndarray]) -> str | None:
        """Why a run counts as diverged, or None, from the values recorded of each metric, and of ``round``."""
        ...

    @classmethod
    def raised(cls, values: Mapping[str, np.ndarray]) -> str | None:
        """``diverged`` for a method that raises a penalty (``Method.raises``)."""
        return cls.diverged(values)


class Dataset(Protocol):
    """A dataset: a frozen dataclass whose fields are its parameters, as specs name them; making one checks them.

    draws : ``load`` takes a generator, and every trial has data of its own. files : parameters that name files of the
    user's own, or may do so, the one with the data first. bundled : the library that real data come with, '' for none.
    """

    draws: ClassVar[bool] = False
    files: ClassVar[tuple[str, ...]] = ()
    bundled: ClassVar[str] = ""

    def __post_init__(self) -> None:
        """Raise ParameterError where a field is outside the range that its annotation declares."""
        check_fields(self)

    @abstractmethod
    def shape(self) -> Facts:
        """What is known of the data without reading any."""
        ...

    def expected(self) -> Facts:
        """Sizes about as large as those ``shape`` cannot know, and ``density`` of sparse data, to predict with only."""
        return {}

    def making(self) -> Cost:
        """What ``load``, or the stand-in in its place, takes; nothing said: a few passes over what it gives."""
        return Cost()

    def doubts(self) -> Sequence[str]:
        """What of the data looks like a mistake of the user's, in words; nothing is refused for it."""
        return ()

    @abstractmethod
    def load(self, *given: Any, **named: Any) -> Any:
        """The arrays, of a kind in ``fedrepro.datasets.types``.

        It is given ``path``, the folder of arrays of the copy in the data home, where the dataset is registered with
        files, and ``rng`` where it draws. Raises ParameterError where the data cannot give what is asked for.
        """
        ...


class Partition(Protocol):
    """A partition: a frozen dataclass whose fields are its parameters, as specs name them; making one checks them."""

    def __post_init__(self) -> None:
        """Raise ParameterError where a field is outside the range that its annotation declares."""
        check_fields(self)

    @abstractmethod
    def assign(self, data: Any, rng: Rng) -> np.ndarray:
        """The client of each sample, user or image; images also have a part, 0 to train with and 1 to test with."""
        ...

    def sharing(self, facts: Facts) -> Cost:
        """What ``assign`` takes; nothing said: nothing that matters."""
        return Cost()

    def check(self, *, N: int | None = None, K: int | None = None) -> None:
        """Raise ParameterError where N samples of K classes cannot be shared out so (None: not known yet)."""
