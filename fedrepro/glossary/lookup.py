"""Look up everything that a name means."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from fedrepro import own_modules, registry
from fedrepro.claims.origin import STUDIES
from fedrepro.errors import UserError
from fedrepro.glossary import entries, output_words
from fedrepro.glossary.entries import Description, Uses
from fedrepro.glossary.uses import uses
from fedrepro.lexicon.vocabulary import lexicon
from fedrepro.spec import discrepancies, keys
from fedrepro.spec.axes import AXES
from fedrepro.spec.claim_grammar import WORDS
from fedrepro.spec.find import claim_ids, names_a_discrepancy, names_of_specs, own_specs
from fedrepro.spec.panels import KINDS

LISTED = "algorithms, problems, datasets, partitions and metrics"

OF_THE_SPEC = "the one that the spec or `fedrepro duel` names"
"""The problem of a method of an installed package."""


@dataclass(frozen=True)
class _Named:
    """A meaning with its names: the name in specs, longer unambiguous names, and other names."""

    name: str
    longer: tuple[str, ...]
    also: tuple[str, ...]
    describe: Callable[[Uses], Description]


def describe(names: Iterable[str], experiments: Path) -> list[Description]:
    """Return the meanings of the names, in their order and without repetition.

    A name is that of an algorithm, problem, dataset, partition, metric, parameter, kind of panel, option of panels,
    axis, key of specs, function of claims, word or dimension of the lexicon, word of the output, also
    ``problem.metric``, ``kind.option`` and the path of a key. Otherwise it can be a class or the label of a method, or
    any of these in other capitals, or a paper, or the id of a discrepancy. A method of an installed package is loaded.
    Raises UserError for unknown names, and if such a method cannot be used.
    """
    names, offered = list(names), own_modules.installed()
    for name in names:
        if name not in registry.methods() and name in offered:
            own_modules.register_installed(name, OF_THE_SPEC)
    known = list(_named())
    matches = {
        name: [*(_matches(name, known) or _discrepancies(name, experiments)), *_papers(name, experiments)]
        for name in names
    }
    if unknown := {name: _elsewhere(name) for name, matching in matches.items() if not matching}:
        own = "methods of your own are known only to the specs that import them"
        hint = "" if all(unknown.values()) else f" (`fedrepro list` shows {LISTED}; {own})"
        raise UserError("\n".join(text or _unknown(name, known) for name, text in unknown.items()) + hint)
    used = uses(experiments)
    distinct = dict.fromkeys(named for matching in matches.values() for named in matching)
    return [named.describe(used) for named in distinct]


def names() -> list[str]:
    """Return every name that a spec can use, then the longer ones, without repetition."""
    known = list(_named())
    longer = (name for named in known for name in named.longer)
    return list(dict.fromkeys([*(named.name for named in known), *longer]))


def _named() -> Iterator[_Named]:
    for algorithm in registry.methods().values():
        also = (algorithm.cls.__name__, algorithm.label)
        yield _Named(algorithm.name, (), also, partial(entries.algorithm, algorithm))
    for problem in registry.problems().values():
        yield _Named(problem.name, (), (problem.cls.__name__,), partial(entries.problem, problem))
    for dataset in registry.datasets().values():
        yield _Named(dataset.name, (), (dataset.cls.__name__,), partial(entries.dataset, dataset))
    for partition in registry.partitions().values():
        yield _Named(partition.name, (), (partition.cls.__name__,), partial(entries.partition, partition))
    for problem in registry.problems().values():
        for metric in problem.metrics:
            yield _Named(metric, (f"{problem.name}.{metric}",), (), partial(entries.metric, problem, metric))
    for kind in KINDS:
        yield _Named(kind, (), (), partial(entries.panel_kind, kind))
    for name in entries.parameter_names():
        owned = tuple(f"{owner}.{name}" for owner in ("problem", *entries.owners_of(name)))
        yield _Named(name, (), owned, partial(entries.parameter, name))
    for option, kinds in entries.options():
        longer = (*(f"{kind}.{option.name}" for kind in kinds), f"panels.options.{option.name}")
        yield _Named(option.name, longer, (), partial(entries.panel_option, option, kinds))
    for axis in AXES.values():
        yield _Named(axis.name, (), (), partial(entries.axis, axis))
    for path, key in keys.paths().items():
        above, _, last = path.rpartition(".")
        yield _Named(last, (path,) if above else (), (), partial(entries.spec_key, path, key))
    for function in WORDS:
        yield _Named(function, (f"claims.check.{function}",), (), partial(entries.claim_word, function))
    for word in lexicon().words.values():
        yield _Named(word.name, (f"lexicon.{word.name}",), word.also, partial(entries.lexicon_word, word))
    for name in lexicon().dimensions:
        yield _Named(name, (f"lexicon.{name}",), (), partial(entries.dimension, name))
    for name in output_words.MEANINGS:
        yield _Named(name, (), output_words.ALSO.get(name, ()), partial(entries.output_word, name))
    for name in lexicon().quantities:
        yield _Named(name, (f"lexicon.{name}",), (), partial(entries.quantity, name))


def _matches(name: str, known: Iterable[_Named]) -> list[_Named]:
    """Return the meanings with this name; else those with this other name; else those in any capitals."""
    word = name.casefold()
    by_name = [named for named in known if name in (named.name, *named.longer)]
    by_other_name = [named for named in known if name in named.also]
    by_word = [named for named in known if word in map(str.casefold, (named.name, *named.longer, *named.also))]
    return by_name or by_other_name or by_word


def _discrepancies(name: str, experiments: Path) -> list[_Named]:
    if not names_a_discrepancy(name):
        return []
    row = discrepancies.find(name, experiments)
    return [_Named(row.id, (), (), lambda _: entries.discrepancy(row))]


def _papers(name: str, experiments: Path) -> list[_Named]:
    if name not in registry.PAPERS or name == STUDIES:
        return []
    rows = [row for row in discrepancies.load_all(experiments) if row.paper == name]
    return [_Named(name, (), (), lambda _: entries.paper(name, rows))]


def _elsewhere(name: str) -> str:
    """Return which command explains a claim or a figure; '' for another name."""
    own = own_specs()
    if name in claim_ids() or any(name in spec.claims for spec in own):
        return f"'{name}' is a claim: `fedrepro why {name}` explains its verdict"
    if name in names_of_specs() or any(name in spec.names for spec in own):
        numbers = f"; `fedrepro show {name}` prints its numbers" if "/" in name else ""
        what = "figure" if numbers else "paper" if name in registry.PAPERS else "set of figures"
        return f"'{name}' is a {what}: `fedrepro verdict {name}` prints its claims{numbers}"
    return ""


def _unknown(name: str, known: Iterable[_Named]) -> str:
    spellings = dict.fromkeys(spelling for named in known for spelling in (named.name, *named.longer))
    close = [f"'{spelling}'" for spelling in difflib.get_close_matches(name.casefold(), spellings, n=3, cutoff=0.7)]
    hint = f", did you mean {', '.join(close[:-1])}{' or ' if close[1:] else ''}{close[-1]}?" if close else ""
    return f"'{name}' is not a registered name{hint}"
