"""The five tables of names a spec can use. Importing a module registers what it defines; nothing else has to be edited.

Modules of ``fedrepro.problems``, ``fedrepro.partitions``, ``fedrepro.datasets`` and ``fedrepro.algorithms`` are found
by looking into those folders, so adding a file is enough. Heavy libraries (scikit-learn, numba, jax) are imported
inside the functions that need them: listing names stays fast and works without the extras.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from fedrepro.ledger import Ledger

IN_RUNS = "says"  # names things; see fedrepro.runs.code

PAPERS: dict[str, str] = {
    "fedmf": "Federated Matrix Factorization (2020)",
    "fedc": "Federated Clustering via Matrix Factorization Models (2021)",
    "fedmc": "FedMC-ADMM: Federated Matrix Completion",
    "gcca": "Quantized Federated Generalized CCA, linear and deep",
    "perfedsi": "Personalized Federated Learning with Client Side Information",
}


class Method(Protocol):
    """The calling convention of every algorithm: a frozen dataclass whose fields are its parameters.

    ``rounds`` yields the state at the initial point and then after every round, for ever or until the method has
    nothing more to do. A method scores nothing: its problem measures the states it yields.
    """

    def rounds(
        self,
        problem: Any,
        rng: np.random.Generator,
        *,
        ledger: Ledger | None = None,
        init: Any = None,
        clients: Any = None,
    ) -> Iterator[Any]:
        """Run on ``problem``; ``init`` gives explicit factors, ``clients`` the clients drawn in each round."""
        ...


@dataclass(frozen=True)
class Algorithm:
    """A registered name: a method class and the parameter values this name presets."""

    name: str
    cls: type
    problem: str
    label: str
    papers: tuple[str, ...]
    summary: str
    preset: Mapping[str, Any] = field(default_factory=dict)

    def parameters(self) -> dict[str, Any]:
        """Every parameter with its default under this name (``dataclasses.MISSING`` where one must be given)."""
        values = {f.name: f.default for f in dataclasses.fields(self.cls)}
        return {**values, **self.preset}

    def make(self, **params: Any) -> Any:
        """The method with ``params`` over the preset; raises ParameterError where a value cannot work."""
        return self.cls(**{**self.preset, **params})


@dataclass(frozen=True)
class Metric:
    """A number a problem can measure on a state: its axis label, which way is better, and what it means."""

    name: str
    label: str
    better: str  # "lower" or "higher"
    summary: str


@dataclass(frozen=True)
class Problem:
    """A registered problem: what the runner needs to build it once, share it between processes, and measure states.

    ``parameters``: spec keys under ``problem:`` with their defaults.
    ``prepare(folder, data, client, parameters)``: write the arrays into ``folder`` (``.npy``, to be memory
    mapped); ``client`` is the client of each sample, or None where the problem has no partition.
    ``open(folder, parameters)``: the problem held in memory, large arrays memory mapped.
    ``initial(problem, trial, parameters)``: the initial point every method is given in this trial.
    ``measure(problem, state, names)``: the value of each named metric at a state.
    ``prepare_reads``: the parameters that ``prepare`` looks at (None for all); runs that differ in others share arrays.
    ``diverged(values)``: given the recorded values of each metric over rounds, why the run counts as diverged, or None.
    """

    name: str
    summary: str
    data_kind: str
    metrics: Mapping[str, Metric]
    parameters: Mapping[str, Any]
    prepare: Callable[..., None]
    open: Callable[..., Any]
    initial: Callable[..., Any]
    measure: Callable[..., dict[str, float]]
    diverged: Callable[[Mapping[str, np.ndarray]], str | None]
    default_metrics: tuple[str, ...] = ("objective",)
    check: Callable[[Mapping[str, Any], Mapping[str, int | None]], None] | None = None
    prepare_reads: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Partition:
    """A registered way to share samples out to clients: ``assign(data, rng, **params)`` gives each sample's client."""

    name: str
    summary: str
    assign: Callable[..., np.ndarray]
    check: Callable[..., None] | None = None

    def parameters(self) -> dict[str, Any]:
        """Every parameter with its default (``dataclasses.MISSING`` where one must be given)."""
        return keyword_parameters(self.assign)


@dataclass(frozen=True)
class Dataset:
    """A registered dataset: ``load`` gives arrays (see ``fedrepro.datasets.types``), ``shape`` what is known before.

    ``load(path, **params)`` where ``source`` names the files it needs, else ``load(**params)``; a ``rng`` argument is
    filled with the generator of the data axis. ``shape(**params)`` returns M, N, K, ... (None where only the file
    tells). ``stand_in(rng=..., **params)`` makes labelled surrogate data of the same kind and shape.
    """

    name: str
    kind: str
    summary: str
    load: Callable[..., Any]
    shape: Callable[..., dict[str, int | None]]
    source: str | None = None
    stand_in: Callable[..., Any] | None = None
    check: Callable[..., None] | None = None

    def parameters(self) -> dict[str, Any]:
        """Every parameter with its default (``dataclasses.MISSING`` where one must be given)."""
        return keyword_parameters(self.load)


def keyword_parameters(function: Callable[..., Any]) -> dict[str, Any]:
    """The keyword-only parameters of a function with their defaults, ``rng`` left out."""
    return {
        p.name: dataclasses.MISSING if p.default is inspect.Parameter.empty else p.default
        for p in inspect.signature(function).parameters.values()
        if p.kind is inspect.Parameter.KEYWORD_ONLY and p.name != "rng"
    }


_ALGORITHMS: dict[str, Algorithm] = {}
_PROBLEMS: dict[str, Problem] = {}
_PARTITIONS: dict[str, Partition] = {}
_DATASETS: dict[str, Dataset] = {}


def add_algorithm(entry: Algorithm) -> None:
    """Register an algorithm name."""
    _put(_ALGORITHMS, entry.name, entry)


def add_problem(entry: Problem) -> None:
    """Register a problem."""
    _put(_PROBLEMS, entry.name, entry)


def add_partition(entry: Partition) -> None:
    """Register a partition."""
    _put(_PARTITIONS, entry.name, entry)


def add_dataset(entry: Dataset) -> None:
    """Register a dataset."""
    _put(_DATASETS, entry.name, entry)


def _put(table: dict[str, Any], name: str, entry: Any) -> None:
    if name in table:
        raise RuntimeError(f"the name '{name}' is registered twice")
    table[name] = entry


@functools.cache
def _discover(package: str) -> None:
    root = importlib.import_module(f"fedrepro.{package}")
    for module in sorted(m.name for m in pkgutil.walk_packages(root.__path__, f"{root.__name__}.")):
        importlib.import_module(module)


def algorithms() -> dict[str, Algorithm]:
    """All algorithms by name."""
    _discover("algorithms")
    return _ALGORITHMS


def problems() -> dict[str, Problem]:
    """All problems by name."""
    _discover("problems")
    return _PROBLEMS


def partitions() -> dict[str, Partition]:
    """All partitions by name."""
    _discover("partitions")
    return _PARTITIONS


def datasets() -> dict[str, Dataset]:
    """All datasets by name."""
    _discover("datasets")
    return _DATASETS
