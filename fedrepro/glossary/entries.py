"""Descriptions of everything that a name can mean: registered classes, metrics, and the parts of specs."""

from __future__ import annotations

import dataclasses
import importlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fedrepro import docstrings, registry
from fedrepro.data.copies import source, state
from fedrepro.glossary.output_words import MEANINGS
from fedrepro.glossary.uses import Use
from fedrepro.lexicon.vocabulary import SCALED, Word, lexicon, value_in_words
from fedrepro.parameters import Number, Range, Whole
from fedrepro.parameters import declared as declared_ranges
from fedrepro.protocols import Metric
from fedrepro.spec import claim_grammar
from fedrepro.spec.axes import Axis
from fedrepro.spec.discrepancies import KINDS as KINDS_OF_DISCREPANCIES
from fedrepro.spec.discrepancies import ORIGINS, Discrepancy
from fedrepro.spec.keys import PARTITION, SECTIONS, Key
from fedrepro.spec.panels import KINDS

Uses = Mapping[Use, list[str]]

USED_BY_RELATED = "used_by_other_names_and_derived_methods"
"""The figures that a change of a method also affects, because they use it under another name or a class that derives
from its class."""

_BOUNDED = re.compile(r"\.\.|<=|at (least|most) ([a-z]+)?\d|(greater|less|fewer) than|in \(0, 1\]")
"""A range in the text of a docstring."""


@dataclass(frozen=True)
class Parameter:
    """A key of a spec: its default, if it is not required, and its meaning with its range.

    preset : whether the registered name sets the default; the class itself then has the default ``otherwise``.
    """

    name: str
    default: Any
    meaning: str
    required: bool = False
    preset: bool = False
    otherwise: Any = None


@dataclass(frozen=True)
class Description:
    """What one meaning of a name is, with its facts, parameters and uses.

    facts : further texts, lists, mappings and truth values, in the order in which they are shown. figures : the figures
    that use it, by kind of use.
    """

    kind: str
    name: str
    summary: str
    facts: Mapping[str, Any]
    figures: Mapping[str, list[str]]
    parameters: tuple[Parameter, ...] = ()
    metrics: tuple[Metric, ...] = ()
    keys: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        """Return the entry as mappings and lists, for JSON."""
        facts = {"kind": self.kind, "name": self.name, "summary": self.summary, **self.facts}
        if self.parameters:
            facts["parameters"] = [_plain(parameter) for parameter in self.parameters]
        if self.metrics:
            facts["metrics"] = [dataclasses.asdict(metric) for metric in self.metrics]
        return {**facts, **{title: keys for title, keys in self.keys.items() if keys}, "figures": dict(self.figures)}


def _plain(parameter: Parameter) -> dict[str, Any]:
    facts = dataclasses.asdict(parameter)
    left_out = [key for key in ("required", "preset") if not facts[key]] + ["otherwise"] * (not parameter.preset)
    return {key: value for key, value in facts.items() if key not in (*left_out, *["default"] * parameter.required)}


# -- methods, problems and data ----------------------------------------------------------------------------------------


def algorithm(entry: registry.MethodEntry, uses: Uses) -> Description:
    """Describe a registered method, with the parameter values that its name presets."""
    others = [a.name for a in registry.methods().values() if a.cls is entry.cls and a.name != entry.name]
    derived = [a.name for a in registry.methods().values() if a.cls is not entry.cls and issubclass(a.cls, entry.cls)]
    facts = {
        "label": entry.label,
        **_of_class(entry.cls),
        "other_names": others,
        "derived": derived,
        "problem": entry.problem,
        "papers": [f"{paper}: {registry.PAPERS[paper]}" for paper in entry.papers if paper in registry.PAPERS],
        "rounds": not entry.cls.one_shot,
        "messages": not entry.cls.silent,
        "source": _source(entry.cls),
    }
    own = {f.name: f.default for f in dataclasses.fields(entry.cls)}
    parameters = tuple(
        dataclasses.replace(p, preset=p.name in entry.preset, otherwise=own[p.name])
        for p in _parameters(entry.cls, entry.parameters())
    )
    own_figures = uses.get(("algorithm", entry.name), [])
    related = {figure for name in (*others, *derived) for figure in uses.get(("algorithm", name), [])}
    figures = {"used_by": own_figures, USED_BY_RELATED: sorted(related - set(own_figures))}
    return _described("algorithm", entry.name, entry.summary, facts, uses, parameters=parameters, figures=figures)


def problem(entry: registry.ProblemEntry, uses: Uses) -> Description:
    """Describe a registered problem."""
    facts = {
        **_of_class(entry.cls),
        "data": entry.data_kind,
        "datasets": [d.name for d in registry.datasets().values() if d.kind == entry.data_kind],
        "methods": [a.name for a in registry.methods().values() if registry.runs_on(a, entry)],
        "always_recorded": list(entry.default_metrics),
        "source": _source(entry.cls),
    }
    parameters, metrics = _parameters(entry.cls, entry.parameters), tuple(entry.metrics.values())
    return _described("problem", entry.name, entry.summary, facts, uses, parameters=parameters, metrics=metrics)


def dataset(entry: registry.DatasetEntry, uses: Uses) -> Description:
    """Describe a registered dataset, with the state of its files."""
    facts = {
        **_of_class(entry.cls),
        "data": entry.kind,
        "problems": [p.name for p in registry.problems().values() if p.data_kind == entry.kind],
        "shape": _shape(entry),
        "trials": "each has its own data" if entry.draws else "all have the same data",
        **_files(entry),
        "source": _source(entry.cls),
    }
    parameters = _parameters(entry.cls, entry.parameters())
    return _described("dataset", entry.name, entry.summary, facts, uses, parameters=parameters)


def _files(entry: registry.DatasetEntry) -> dict[str, Any]:
    """Return facts about a dataset's files; none if it is generated, or its parameters name a file."""
    if entry.source is None:
        return {}
    files, now = source(entry.source), state(entry.source)
    return {
        "files": f"{now.state}: {now.note}" if now.note else now.state,
        "homepage": files.homepage,
        "licence": files.licence,
        "stand_in": docstrings.opening(entry.stand_in.__doc__) if entry.stand_in is not None else "none",
    }


def _shape(entry: registry.DatasetEntry) -> dict[str, Any]:
    """Return the sizes of the data with default parameters that are known without reading them."""
    return {} if dataclasses.MISSING in entry.parameters().values() else dict(entry.make().shape())


def partition(entry: registry.PartitionEntry, uses: Uses) -> Description:
    """Describe a registered partition."""
    facts = {**_of_class(entry.cls), "source": _source(entry.cls)}
    own = Parameter("per_trial", False, f"{PARTITION['per_trial'].doc} (a key of every partition)")
    parameters = (*_parameters(entry.cls, entry.parameters()), own)
    return _described("partition", entry.name, entry.summary, facts, uses, parameters=parameters)


def metric(entry: registry.ProblemEntry, name: str, uses: Uses) -> Description:
    """Describe a metric of a problem."""
    defined = entry.metrics[name]
    facts = {
        "label": _label(defined),
        "better": defined.better,
        "problem": entry.name,
        "recorded": "always" if name in entry.default_metrics else "if a figure asks for it",
    }
    full = f"{entry.name}.{name}"
    figures = {"drawn_by": uses.get(("draws", full), []), "only_recorded_by": uses.get(("records", full), [])}
    return _described("metric", full, meaning(defined), facts, uses, figures=figures)


def meaning(metric: Metric) -> str:
    """Return the label of a metric in figures, and its meaning."""
    return metric.summary if _label(metric) == metric.name else f"{_label(metric)}: {metric.summary}"


def _label(metric: Metric) -> str:
    return " ".join(metric.label.split())


# -- panels ------------------------------------------------------------------------------------------------------------


def panel_kind(name: str, uses: Uses) -> Description:
    """Describe a kind of panel with its options."""
    cls = KINDS[name]
    options = tuple(Parameter(o.name, o.default, f"{o.meaning} ({o.values})") for o in options_of(name))
    keys = {"published": cls.published.keys, "lines": cls.marks.keys}
    return _described("panel kind", name, docstrings.opening(cls.__doc__), {}, uses, parameters=options, keys=keys)


class Option(NamedTuple):
    """One option of a kind of panel."""

    name: str
    default: Any
    values: str
    meaning: str


def options_of(kind: str) -> list[Option]:
    """Return the options of a kind of panel, in the order in which messages list them."""
    cls = KINDS[kind]
    ranges, fields = declared_ranges(cls), dataclasses.fields(cls)
    stated = docstrings.meanings(cls, ranges)
    return [Option(f.name, f.default, str(ranges[f.name]), stated[f.name]) for f in fields]


def options() -> list[tuple[Option, tuple[str, ...]]]:
    """Return every option of panels with the kinds that have it, once per explanation."""
    kinds: dict[Option, tuple[str, ...]] = {}
    for kind in KINDS:
        for option in options_of(kind):
            kinds[option] = (*kinds.get(option, ()), kind)
    return list(kinds.items())


def panel_option(option: Option, kinds: Iterable[str], uses: Uses) -> Description:
    """Describe an option of panels of these kinds."""
    facts = {"panels": list(kinds), "default": option.default, "takes": option.values}
    figures = {figure for kind in kinds for figure in uses.get(("panel option", f"{kind}.{option.name}"), [])}
    return Description("panel option", option.name, option.meaning, facts, {"used_by": sorted(figures)})


def parameter_names() -> list[str]:
    """Return the names of all parameters of methods, problems, datasets and partitions, each once."""
    return list(dict.fromkeys(name for _, cls, defaults in _owners() for name in defaults))


def owners_of(name: str) -> list[str]:
    """Return the methods, problems, datasets and partitions that have a parameter of this name."""
    return list(dict.fromkeys(owner for owner, _, defaults in _owners() if name in defaults))


def _owners() -> Iterator[tuple[str, type[Any], Mapping[str, Any]]]:
    """Yield the name, the class and the defaults of everything that has parameters, problems first."""
    yield from ((problem.name, problem.cls, problem.parameters) for problem in registry.problems().values())
    for table in (registry.methods(), registry.datasets(), registry.partitions()):
        yield from ((entry.name, entry.cls, entry.parameters()) for entry in table.values())


def parameter(name: str, _: Uses) -> Description:
    """Describe a parameter: what it means for everything that has one of this name, equal meanings once."""
    alike: dict[tuple[str, str], tuple[list[str], Parameter]] = {}
    for owner, cls, defaults in _owners():
        if name in defaults:
            (found,) = _parameters(cls, {name: defaults[name]})
            alike.setdefault((found.meaning, repr(found.default)), ([], found))[0].append(owner)
    parameters = tuple(dataclasses.replace(found, name=_some(owners)) for owners, found in alike.values())
    return Description("parameter", name, "what it means, and its default", {}, {}, parameters)


def _some(names: list[str]) -> str:
    """Return a name and how many more there are, which is as much as fits beside a meaning."""
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def axis(named: Axis, uses: Uses) -> Description:
    """Describe a named x axis."""
    facts = {
        "reads": named.reads.value,
        "columns": list(named.columns),
        "divided_by": "the panel's option `variables`" if named.divided else "",
        "claims": "may name it" if named.claims else "may not name it",
    }
    summary = named.label or "a value of the curves, named by the panel's option `parameter`"
    return _described("axis", named.name, summary, facts, uses)


# -- specs -------------------------------------------------------------------------------------------------------------


def spec_key(path: str, key: Key, uses: Uses) -> Description:
    """Describe a key of a spec by its path: ``rounds``, ``panels.curves.role``."""
    facts = {"takes": key.takes, "required": "yes" if key.required else "", "default": key.default or ""}
    inside = {name: item.doc for name, item in SECTIONS.get(path, {}).items()}
    return _described("spec key", path, key.doc, facts, uses, keys={"values": key.values, "keys of one": inside})


def claim_word(name: str, uses: Uses) -> Description:
    """Describe a function or keyword of the checks of claims, in each of its forms."""
    what = "keyword" if name in claim_grammar.COMMON else "function"
    forms = {form: text for form, text in claim_grammar.FORMS.items() if re.match(rf"{name}[(=]", form)}
    summary, figures = f"a {what} of the checks of claims", {"used_by": uses.get(("claim word", name), [])}
    return _described(f"claim {what}", name, summary, {}, uses, keys={"forms": forms}, figures=figures)


def lexicon_word(word: Word, uses: Uses) -> Description:
    """Describe a word of the lexicon, with the dimensions in which its readings differ."""
    facts = {"stands for": list(word.also), "compared by": word.measures, "kind": word.kind}
    own = [name for name in dict.fromkeys((word.measures, word.stage)) if name in lexicon().dimensions]
    dimensions = {name: _dimension_in_words(name) for name in (*own, *OF_KIND.get(word.kind, ()))}
    figures = {"used_by": uses.get(("claim word", word.name), [])}
    keys = {"readings": dimensions} if dimensions else {}
    return _described("word of claims", word.name, word.means, facts, uses, keys=keys, figures=figures)


def dimension(name: str, uses: Uses) -> Description:
    """Describe a dimension of the lexicon: what words leave open, and the values that are tried."""
    entry = lexicon().dimensions[name]
    values = [value_in_words(name, value) for value in entry.values]
    facts = {"leading": values[0], "other values": values[1:], "chosen by": entry.rule}
    return _described("dimension of words", name, entry.means, facts, uses)


def quantity(name: str, uses: Uses) -> Description:
    """Describe a quantity that checks in words can compare."""
    figures = {"used_by": uses.get(("claim word", name), [])}
    return _described("quantity of claims", name, lexicon().quantities[name], {}, uses, figures=figures)


def paper(name: str, rows: Iterable[Discrepancy]) -> Description:
    """Describe a paper: where it, its released program and this project differ. rows : its discrepancies."""
    listed = {row.id: f"{row.topic}: paper {row.says}; program {row.code}" for row in rows}
    facts = {"its claims": f"fedrepro verdict {name}", "one point": f"fedrepro describe {next(iter(listed), name)}"}
    where = "where paper, released program and this project differ"
    return Description("paper", name, registry.PAPERS[name], facts, {}, keys={where: listed})


def output_word(name: str, _: Uses) -> Description:
    """Describe a word that the output uses."""
    return Description("word of the output", name, MEANINGS[name], {}, {})


def discrepancy(row: Discrepancy) -> Description:
    """Describe a place where a paper is silent, contradicts itself, or differs from its released program."""
    facts = {
        "paper": row.says,
        "released program": row.code,
        "here": row.taken,
        "kind of difference": f"{row.kind}: {KINDS_OF_DISCREPANCIES[row.kind]}",
        "our value is": row.default and f"{row.default}: {ORIGINS[row.default]}",
        "other values": [
            f"{other.id.removeprefix(f'{row.id}.')} ({other.origin}): {other}" for other in row.alternatives
        ],
        "other readings": [] if row.alternatives else [str(variant) for variant in row.variants],
        "none can be run": row.no_variant,
        "note": row.note,
        "run them": row.command,
        "what they change": f"fedrepro settings show --only {row.id}" if row.alternatives else "",
    }
    return _described("discrepancy", row.id, row.topic, facts, {}, figures={"concerns": list(row.figures)})


OF_KIND: Mapping[str, tuple[str, ...]] = {
    "order": ("level", "end", "several values"),
    "sameness": ("measure of sameness", "level", *SCALED["negligible"]),
    "no loss": ("measure of sameness", "level", *SCALED["negligible"]),
    "negation": SCALED["negligible"],
    "strength": SCALED["strength"],
    "number": ("tolerance, in points", "tolerance, as a ratio"),
    "sequence": ("order",),
    "rounds": ("rounds meant",),
}
"""The dimensions that words of a kind use, in addition to their own."""


def _dimension_in_words(name: str) -> str:
    entry = lexicon().dimensions[name]
    first, *others = (value_in_words(name, value) for value in entry.values)
    return f"{entry.means}: {first}; also {', '.join(others)}"


# -- shared pieces -----------------------------------------------------------------------------------------------------


def _described(kind: str, name: str, summary: str, facts: Mapping[str, Any], uses: Uses, **fields: Any) -> Description:
    """Return a description without empty facts; the figures are by default those that use the name."""
    facts = {key: value for key, value in facts.items() if value not in ("", [], {})}
    return Description(kind, name, summary, facts, **{"figures": {"used_by": uses.get((kind, name), [])}, **fields})


def meanings(cls: type[Any], names: Iterable[str]) -> dict[str, str]:
    """Return the meaning of each parameter of a class, with its declared range unless the docstring states one."""
    stated, ranges = docstrings.meanings(cls, names), declared_ranges(cls)
    return {name: _with_range(text, ranges.get(name)) for name, text in stated.items()}


def _with_range(text: str, range_: Range | None) -> str:
    """Append a numeric range to a text; docstrings state the ranges that depend on other parameters or the data."""
    numeric = isinstance(range_, (Whole, Number))
    return f"{text}; {range_}" if text and numeric and not _BOUNDED.search(text) else text


def _parameters(cls: type[Any], defaults: Mapping[str, Any]) -> tuple[Parameter, ...]:
    texts = meanings(cls, defaults)
    required = [name for name, default in defaults.items() if default is dataclasses.MISSING]
    return tuple(
        Parameter(name, None if name in required else default, texts[name], required=name in required)
        for name, default in defaults.items()
    )


def _of_class(cls: type[Any]) -> dict[str, Any]:
    """Return the title of a class' module, and its full name."""
    about = docstrings.opening(importlib.import_module(cls.__module__).__doc__)
    return {"about": about, "class": f"{cls.__module__}.{cls.__qualname__}"}


def _source(cls: type[Any]) -> str:
    return docstrings.source(importlib.import_module(cls.__module__).__doc__)
