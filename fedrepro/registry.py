"""The tables of names that a spec can use. Importing a module registers what it defines.

Modules are found by their paths: ``problems/<problem>/problem*.py``, ``problems/<problem>/methods/*.py``, and all of
``partitions/`` and ``datasets/``. Adding a file is enough to use it. Heavy libraries (scikit-learn, numba, jax) are
imported inside the functions that need them, so listing names is fast and works without the extras.
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

from fedrepro.errors import UserError
from fedrepro.parameters import check_fields, check_types
from fedrepro.protocols import Metric

IN_RUNS = "says"  # only names things; see fedrepro.runs.identity.code

PAPERS: dict[str, str] = {
    "fedmf": "Federated Matrix Factorization: Algorithm Design and Application to Data Clustering",
    "fedc": "Federated Clustering via Matrix Factorization Models: From Model Averaging to Gradient Sharing",
    "fedmc": "A Linearized Alternating Direction Multiplier Method for Federated Matrix Completion Problems",
    "gcca": "Communication-Efficient Federated Linear and Deep Generalized Canonical Correlation Analysis",
    "perfedsi": "PerFedSI: A Framework for Personalized Federated Learning with Side Information",
}


@dataclass(frozen=True)
class _Entry:
    """A registered name of a class whose fields are parameters."""

    name: str
    cls: type[Any]
    summary: str

    def parameters(self) -> dict[str, Any]:
        """Return every parameter with its default under this name (``dataclasses.MISSING`` if it is required)."""
        return {f.name: f.default for f in dataclasses.fields(self.cls)}

    def make(self, **params: Any) -> Any:
        """Return an object with these parameters. Raises ParameterError for an invalid value."""
        return self.cls(**params)


@dataclass(frozen=True)
class MethodEntry(_Entry):
    """A registered method: its class and the parameter values that this name presets.

    ``problem`` is the name of the problem that it solves. ``suffix`` distinguishes it from other methods with the same
    label in one figure. ``look`` is its colour (a name of ``fedrepro.plotting.style.COLOURS`` or ``#RRGGBB``) and its
    marker (as matplotlib names it) in figures; a method without one is drawn like the method that it derives from (see
    ``fedrepro.plotting.style.method``).
    """

    problem: str
    label: str
    papers: tuple[str, ...]
    preset: Mapping[str, Any] = field(default_factory=dict)
    suffix: str = ""
    look: tuple[str, str] | None = None

    def parameters(self) -> dict[str, Any]:
        """Return every parameter with its default under this name, preset or of the class."""
        return {**super().parameters(), **self.preset}

    def make(self, **params: Any) -> Any:
        """Return the method with ``params`` over the preset. Raises ParameterError for an invalid value."""
        method = super().make(**{**self.preset, **params})
        check_fields(method)  # a class with an __init__ or __post_init__ of its own has not been checked
        check_types(method)
        return method


def base_label(label: str) -> str:
    """Return the label of a method without the additions that follow a comma or are in parentheses."""
    return label.partition(",")[0].partition(" (")[0]


@dataclass(frozen=True)
class ProblemEntry:
    """A registered problem: its class, and the kind of data that it uses (see ``fedrepro.datasets.types``).

    ``artifacts`` are the arrays that its runs can keep; ``{i}`` in a name is the number of a view.
    """

    cls: type[Any]
    summary: str
    data_kind: str
    artifacts: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name in specs and seeds."""
        return self.cls.name

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """The metrics that it can measure."""
        return self.cls.metrics

    @property
    def default_metrics(self) -> tuple[str, ...]:
        """The metrics that are always recorded."""
        return self.cls.default_metrics

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The keys of ``problem:`` in a spec, with their defaults."""
        return self.cls.parameters

    def check(self, parameters: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
        """Raise ParameterError for an invalid parameter. facts : what is known about the data."""
        self.cls.check(parameters, facts)


@dataclass(frozen=True)
class PartitionEntry(_Entry):
    """A registered partition: a class that derives from ``fedrepro.protocols.Partition``.

    ``kinds`` are the kinds of data that it divides; empty if it divides all kinds.
    """

    kinds: tuple[str, ...] = ()


@dataclass(frozen=True)
class DatasetEntry(_Entry):
    """A registered dataset: a class that derives from ``fedrepro.protocols.Dataset``, and the kind of its data.

    ``source`` names the files that it needs, if any; then ``stand_in(wanted, rng)`` makes labelled surrogate data of
    the same kind and shape for a dataset ``wanted`` of this class, from the parameters of ``wanted`` only. It is a
    function next to the class, so that it is not part of the code of runs on real data. ``stand_in_note`` states what
    the stand-in is made of.
    """

    kind: str
    source: str | None = None
    stand_in: Callable[[Any, np.random.Generator], Any] | None = None
    stand_in_note: str = ""

    @property
    def draws(self) -> bool:
        """Whether loading needs a random generator."""
        return bool(self.cls.draws)


_METHODS: dict[str, MethodEntry] = {}
_PROBLEMS: dict[str, ProblemEntry] = {}
_PARTITIONS: dict[str, PartitionEntry] = {}
_DATASETS: dict[str, DatasetEntry] = {}


def add_method(name: str, cls: type[Any], summary: str, **facts: Any) -> None:
    """Register a method. facts : other fields of ``MethodEntry``; the folder of the class names the problem."""
    folder = cls.__module__.rpartition(".methods.")[0].rpartition(".")[2]
    _put(_METHODS, MethodEntry(name, cls, summary, **{"problem": folder.replace("_", "-"), **facts}))


def add_problem(cls: type[Any], summary: str, *, data_kind: str, artifacts: tuple[str, ...] = ()) -> None:
    """Register a problem; see ``ProblemEntry``."""
    _put(_PROBLEMS, ProblemEntry(cls, summary, data_kind, artifacts))


def add_partition(name: str, cls: type[Any], summary: str, *kinds: str) -> None:
    """Register a partition; see ``PartitionEntry``."""
    _put(_PARTITIONS, PartitionEntry(name, cls, summary, kinds))


def add_dataset(name: str, cls: type[Any], summary: str, **facts: Any) -> None:
    """Register a dataset. facts : other fields of ``DatasetEntry``."""
    _put(_DATASETS, DatasetEntry(name, cls, summary, **facts))


def _put(table: dict[str, Any], entry: Any) -> None:
    if entry.name in table:
        raise RuntimeError(f"the name '{entry.name}' is registered twice")
    table[entry.name] = entry


@functools.cache
def _discover(*patterns: str) -> None:
    """Import the modules of this package whose files match a pattern, and sort the tables by them.

    Otherwise lists would depend on what a program imported first.
    """
    root = Path(__file__).parent
    for path in sorted(path for pattern in patterns for path in root.glob(pattern) if path.stem != "__init__"):
        importlib.import_module(".".join(("fedrepro", *path.relative_to(root).with_suffix("").parts)))
    tables: tuple[dict[str, Any], ...] = (_METHODS, _PROBLEMS, _PARTITIONS, _DATASETS)
    for table in tables:
        entries = dict(sorted(table.items(), key=lambda item: item[1].cls.__module__))  # stable: in a module as written
        if list(entries) != list(table):
            table.clear()
            table.update(entries)


def runs_on(algorithm: MethodEntry, problem: ProblemEntry) -> bool:
    """Return whether a method runs on a problem: its own, or one whose class derives from it."""
    return issubclass(problem.cls, problems()[algorithm.problem].cls)


def check_solves(method: Any, problem: Any) -> None:
    """Raise UserError for an instance of a registered method's class that solves other problems than this one."""
    entries = [entry for entry in methods().values() if entry.cls is type(method)]
    known = problems().get(problem.name)
    if entries and known and not any(runs_on(entry, known) for entry in entries):
        raise UserError(f"{type(method).__name__} solves the problem '{entries[0].problem}', not '{problem.name}'")


def methods() -> dict[str, MethodEntry]:
    """Return all methods by name."""
    _discover("problems/*/methods/*.py")
    return _METHODS


def called(names: Iterable[str]) -> dict[str, str]:
    """Return a distinct label of each method: with its suffix if methods share a label and a problem.

    Methods that share all three are distinguished by their names.
    """
    known = {name: methods()[name] for name in names}
    labels: dict[str, str] = {}
    for name, entry in known.items():
        rivals = [e for e in known.values() if (e.label, e.problem) == (entry.label, entry.problem)]
        own = f"{entry.label}, {entry.suffix}" if entry.suffix and len(rivals) > 1 else entry.label
        labels[name] = f"{entry.label} ({name})" if sum(e.suffix == entry.suffix for e in rivals) > 1 else own
    return labels


def problems() -> dict[str, ProblemEntry]:
    """Return all problems by name."""
    _discover("problems/*/problem*.py")
    return _PROBLEMS


def partitions() -> dict[str, PartitionEntry]:
    """Return all partitions by name."""
    _discover("partitions/*.py")
    return _PARTITIONS


def datasets() -> dict[str, DatasetEntry]:
    """Return all datasets by name."""
    _discover("datasets/*.py")
    return _DATASETS
