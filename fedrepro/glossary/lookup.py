"""From a name to everything it stands for."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from fedrepro import registry
from fedrepro.errors import UserError
from fedrepro.glossary import things
from fedrepro.glossary.things import Thing, Uses
from fedrepro.glossary.uses import uses
from fedrepro.spec import keys
from fedrepro.spec.axes import AXES
from fedrepro.spec.claim_grammar import WORDS
from fedrepro.spec.panels import KINDS


@dataclass(frozen=True)
class _Named:
    """A thing with its names: the one that specs use, longer ones that leave no doubt, and what else it is called."""

    name: str
    longer: tuple[str, ...]
    also: tuple[str, ...]
    describe: Callable[[Uses], Thing]


def describe(names: Iterable[str], experiments: Path) -> list[Thing]:
    """What each of the names stands for, in their order; nothing twice.

    A name is that of an algorithm, problem, dataset, partition, metric, kind of panel, option of panels, axis, key of
    specs, or function of claims, also ``problem.metric``, ``kind.option`` and the path of a key. A name that is none of
    these may be a class or the label of a method, or any of them in other capitals. Raises UserError for the names that
    mean nothing.
    """
    known = list(_named())
    found = {name: _matches(name, known) for name in names}
    unknown = [_unknown(name, known) for name, matches in found.items() if not matches]
    if unknown:
        listed = "algorithms, problems, datasets, partitions and metrics"
        raise UserError("\n".join(unknown) + f" (`fedrepro list` shows {listed})")
    told = uses(experiments)
    return [one.describe(told) for one in dict.fromkeys(one for matches in found.values() for one in matches)]


def names() -> list[str]:
    """Every name that a spec can use, each once, then the longer ones."""
    known = list(_named())
    return list(dict.fromkeys([*(one.name for one in known), *(long for one in known for long in one.longer)]))


def _named() -> Iterator[_Named]:
    for algorithm in registry.methods().values():
        also = (algorithm.cls.__name__, algorithm.label)
        yield _Named(algorithm.name, (), also, partial(things.algorithm, algorithm))
    for problem in registry.problems().values():
        yield _Named(problem.name, (), (problem.cls.__name__,), partial(things.problem, problem))
    for dataset in registry.datasets().values():
        yield _Named(dataset.name, (), (dataset.cls.__name__,), partial(things.dataset, dataset))
    for partition in registry.partitions().values():
        yield _Named(partition.name, (), (partition.cls.__name__,), partial(things.partition, partition))
    for problem in registry.problems().values():
        for metric in problem.metrics:
            yield _Named(metric, (f"{problem.name}.{metric}",), (), partial(things.metric, problem, metric))
    for kind in KINDS:
        yield _Named(kind, (), (), partial(things.panel_kind, kind))
    for option, kinds in things.options():
        longer = (*(f"{kind}.{option.name}" for kind in kinds), f"panels.options.{option.name}")
        yield _Named(option.name, longer, (), partial(things.panel_option, option, kinds))
    for axis in AXES.values():
        yield _Named(axis.name, (), (), partial(things.axis, axis))
    for path, key in keys.paths().items():
        above, _, last = path.rpartition(".")
        yield _Named(last, (path,) if above else (), (), partial(things.spec_key, path, key))
    for word in WORDS:
        yield _Named(word, (f"claims.check.{word}",), (), partial(things.claim_word, word))


def _matches(name: str, known: Iterable[_Named]) -> list[_Named]:
    """What has this name; else what is called so beside its name; else the same whatever the capitals."""
    word = name.casefold()
    by_name = [one for one in known if name in (one.name, *one.longer)]
    by_call = [one for one in known if name in one.also]
    by_word = [one for one in known if word in (said.casefold() for said in (one.name, *one.longer, *one.also))]
    return by_name or by_call or by_word


def _unknown(name: str, known: Iterable[_Named]) -> str:
    spelled = dict.fromkeys(said for one in known for said in (one.name, *one.longer))
    close = [f"'{said}'" for said in difflib.get_close_matches(name.casefold(), spelled, n=3, cutoff=0.7)]
    hint = f", did you mean {', '.join(close[:-1])}{' or ' if close[1:] else ''}{close[-1]}?" if close else ""
    return f"'{name}' is no name that a spec can use{hint}"
