"""The tables of names a spec can use. Importing a module registers what it defines.

Modules are found by their places: ``problems/<problem>/problem*.py``, ``problems/<problem>/methods/*.py``, and all of
``partitions/`` and ``datasets/``. Adding a file is enough to use it. Heavy libraries (scikit-learn, numba, jax) are
imported inside the functions that need them: listing names stays fast and works without the extras.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fedrepro.protocols import Metric

IN_RUNS = "says"  # names things; see fedrepro.runs.identity.code

PAPERS: dict[str, str] = {
    "fedmf": "Federated Matrix Factorization: Algorithm Design and Application to Data Clustering",
    "fedc": "Federated Clustering via Matrix Factorization Models: From Model Averaging to Gradient Sharing",
    "fedmc": "A Linearized Alternating Direction Multiplier Method for Federated Matrix Completion Problems",
    "gcca": "Communication-Efficient Federated Linear and Deep Generalized Canonical Correlation Analysis",
    "perfedsi": "PerFedSI: A Framework for Personalized Federated Learning with Side Information",
}


@dataclass(frozen=True)
class MethodEntry:
    """A registered name: a method class and the parameter values this name presets.

    ``variant`` distinguishes it from other methods with the same label in one figure. ``look`` is its colour (a name of
    ``fedrepro.plotting.style.COLOURS`` or ``#RRGGBB``) and its marker (as matplotlib names it) in figures; a method
    without one is drawn like the method whose variant it is (see ``fedrepro.plotting.style.method``).
    """

    name: str
    cls: type[Any]
    problem: str
    label: str
    papers: tuple[str, ...]
    summary: str
    preset: Mapping[str, Any] = field(default_factory=dict)
    variant: str = ""
    look: tuple[str, str] | None = None

    def parameters(self) -> dict[str, Any]:
        """Every parameter with its default under this name (``dataclasses.MISSING`` where one must be given)."""
        return {**_defaults(self.cls), **self.preset}

    def make(self, **params: Any) -> Any:
        """The method with ``params`` over the preset; raises ParameterError where a value cannot work."""
        return self.cls(**{**self.preset, **params})


def base_label(label: str) -> str:
    """The label of a method without what names its variant, after a comma or in parentheses."""
    return label.partition(",")[0].partition(" (")[0]


@dataclass(frozen=True)
class ProblemEntry:
    """A registered problem: its class, and the kind of data it takes (see ``fedrepro.datasets.types``).

    ``artifacts`` are the arrays that its runs can keep; ``{i}`` in a name stands for the number of a view.
    """

    cls: type[Any]
    data_kind: str
    summary: str
    artifacts: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """As specs and seeds know it."""
        return self.cls.name

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """What it can measure."""
        return self.cls.metrics

    @property
    def default_metrics(self) -> tuple[str, ...]:
        """What is always recorded."""
        return self.cls.default_metrics

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Keys of ``problem:`` in a spec, with their defaults."""
        return self.cls.parameters

    def check(self, parameters: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
        """Raise ParameterError where a parameter cannot work; ``facts`` as far as they are known of the data."""
        self.cls.check(parameters, facts)


@dataclass(frozen=True)
class PartitionEntry:
    """A registered partition: a class that derives from ``fedrepro.protocols.Partition``."""

    name: str
    cls: type[Any]
    summary: str

    def parameters(self) -> dict[str, Any]:
        """Every parameter with its default (``dataclasses.MISSING`` where one must be given)."""
        return _defaults(self.cls)

    def make(self, **params: Any) -> Any:
        """The partition with these parameters; raises ParameterError where a value cannot work."""
        return self.cls(**params)


@dataclass(frozen=True)
class DatasetEntry:
    """A registered dataset: a class that derives from ``fedrepro.protocols.Dataset``, and the kind of data it gives.

    ``source`` names the files it needs, if any; then ``stand_in(wanted, rng)`` makes labelled surrogate data of the
    same kind and shape for a dataset ``wanted`` of this class. It stands beside the class, as the class tells what runs
    on real data compute, and reads the parameters of ``wanted`` only. ``stand_in_note`` says what it is made of.
    """

    name: str
    cls: type[Any]
    kind: str
    summary: str
    source: str | None = None
    stand_in: Callable[[Any, np.random.Generator], Any] | None = None
    stand_in_note: str = ""

    @property
    def draws(self) -> bool:
        """Whether loading takes a generator."""
        return bool(self.cls.draws)

    def parameters(self) -> dict[str, Any]:
        """Every parameter with its default (``dataclasses.MISSING`` where one must be given)."""
        return _defaults(self.cls)

    def make(self, **params: Any) -> Any:
        """The dataset with these parameters; raises ParameterError where a value cannot work."""
        return self.cls(**params)


def _defaults(cls: type[Any]) -> dict[str, Any]:
    return {f.name: f.default for f in dataclasses.fields(cls)}


_METHODS: dict[str, MethodEntry] = {}
_PROBLEMS: dict[str, ProblemEntry] = {}
_PARTITIONS: dict[str, PartitionEntry] = {}
_DATASETS: dict[str, DatasetEntry] = {}


def add_method(entry: MethodEntry) -> None:
    """Register an algorithm name."""
    _put(_METHODS, entry.name, entry)


def add_problem(entry: ProblemEntry) -> None:
    """Register a problem."""
    _put(_PROBLEMS, entry.name, entry)


def add_partition(entry: PartitionEntry) -> None:
    """Register a partition."""
    _put(_PARTITIONS, entry.name, entry)


def add_dataset(entry: DatasetEntry) -> None:
    """Register a dataset."""
    _put(_DATASETS, entry.name, entry)


def _put(table: dict[str, Any], name: str, entry: Any) -> None:
    if name in table:
        raise RuntimeError(f"the name '{name}' is registered twice")
    table[name] = entry


@functools.cache
def _discover(*patterns: str) -> None:
    """Import the modules of this package whose files match a pattern."""
    root = Path(__file__).parent
    for path in sorted(path for pattern in patterns for path in root.glob(pattern) if path.stem != "__init__"):
        importlib.import_module(".".join(("fedrepro", *path.relative_to(root).with_suffix("").parts)))


def runs_on(algorithm: MethodEntry, problem: ProblemEntry) -> bool:
    """Whether a method runs on a problem: on its own, and on those that are forms of it (derived classes)."""
    return issubclass(problem.cls, problems()[algorithm.problem].cls)


def methods() -> dict[str, MethodEntry]:
    """All algorithms by name."""
    _discover("problems/*/methods/*.py")
    return _METHODS


def called(names: Iterable[str]) -> dict[str, str]:
    """What to call each of these algorithms: its label, with its variant where another one has label and problem too.

    Those that differ in neither are told by their names.
    """
    known = {name: methods()[name] for name in names}
    found: dict[str, str] = {}
    for name, entry in known.items():
        rivals = [e for e in known.values() if (e.label, e.problem) == (entry.label, entry.problem)]
        own = f"{entry.label}, {entry.variant}" if entry.variant and len(rivals) > 1 else entry.label
        found[name] = f"{entry.label} ({name})" if sum(e.variant == entry.variant for e in rivals) > 1 else own
    return found


def problems() -> dict[str, ProblemEntry]:
    """All problems by name."""
    _discover("problems/*/problem*.py")
    return _PROBLEMS


def partitions() -> dict[str, PartitionEntry]:
    """All partitions by name."""
    _discover("partitions/*.py")
    return _PARTITIONS


def datasets() -> dict[str, DatasetEntry]:
    """All datasets by name."""
    _discover("datasets/*.py")
    return _DATASETS
