"""Descriptions of everything that a name can mean: registered classes, metrics, and the parts of specs."""

from __future__ import annotations

import dataclasses
import importlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fedrepro import registry
from fedrepro.data.copies import source, state
from fedrepro.glossary import docstrings
from fedrepro.glossary.uses import Use
from fedrepro.parameters import Number, Range, Whole
from fedrepro.parameters import declared as declared_ranges
from fedrepro.protocols import Metric
from fedrepro.spec import claim_grammar, panels
from fedrepro.spec.axes import Axis
from fedrepro.spec.keys import PARTITION, Key
from fedrepro.spec.panels import KINDS, Explained, Published

Uses = Mapping[Use, list[str]]

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
class Thing:
    """One meaning of a name.

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
        return {**facts, **self.keys, "figures": dict(self.figures)}


def _plain(parameter: Parameter) -> dict[str, Any]:
    facts = dataclasses.asdict(parameter)
    left_out = [key for key in ("required", "preset") if not facts[key]] + ["otherwise"] * (not parameter.preset)
    return {key: value for key, value in facts.items() if key not in (*left_out, *["default"] * parameter.required)}


# -- methods, problems and data ----------------------------------------------------------------------------------------


def algorithm(entry: registry.MethodEntry, uses: Uses) -> Thing:
    """Describe a registered method, with the parameter values that its name presets."""
    others = [a.name for a in registry.methods().values() if a.cls is entry.cls and a.name != entry.name]
    facts = {
        "label": entry.label,
        "about": _about(entry.cls),
        "class": _where(entry.cls),
        "other_names": others,
        "problem": entry.problem,
        "papers": [f"{paper}: {registry.PAPERS[paper]}" for paper in entry.papers if paper in registry.PAPERS],
        "rounds": not entry.cls.one_shot,
        "messages": not entry.cls.silent,
        "source": _source(entry.cls),
    }
    own = {f.name: f.default for f in dataclasses.fields(entry.cls)}
    parameters = [
        dataclasses.replace(p, preset=p.name in entry.preset, otherwise=own[p.name])
        for p in _parameters(entry.cls, entry.parameters())
    ]
    return _thing("algorithm", entry.name, entry.summary, facts, uses, parameters)


def problem(entry: registry.ProblemEntry, uses: Uses) -> Thing:
    """Describe a registered problem."""
    facts = {
        "about": _about(entry.cls),
        "class": _where(entry.cls),
        "data": entry.data_kind,
        "datasets": [d.name for d in registry.datasets().values() if d.kind == entry.data_kind],
        "methods": [a.name for a in registry.methods().values() if registry.runs_on(a, entry)],
        "always_recorded": list(entry.default_metrics),
        "source": _source(entry.cls),
    }
    thing = _thing("problem", entry.name, entry.summary, facts, uses, _parameters(entry.cls, entry.parameters))
    return dataclasses.replace(thing, metrics=tuple(entry.metrics.values()))


def dataset(entry: registry.DatasetEntry, uses: Uses) -> Thing:
    """Describe a registered dataset, with the state of its files."""
    facts = {
        "about": _about(entry.cls),
        "class": _where(entry.cls),
        "data": entry.kind,
        "problems": [p.name for p in registry.problems().values() if p.data_kind == entry.kind],
        "shape": _shape(entry),
        "trials": "each has its own data" if entry.draws else "all have the same data",
        **_files(entry),
        "source": _source(entry.cls),
    }
    return _thing("dataset", entry.name, entry.summary, facts, uses, _parameters(entry.cls, entry.parameters()))


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


def partition(entry: registry.PartitionEntry, uses: Uses) -> Thing:
    """Describe a registered partition."""
    facts = {"about": _about(entry.cls), "class": _where(entry.cls), "source": _source(entry.cls)}
    own = Parameter("per_trial", False, f"{PARTITION['per_trial'].doc} (a key of every partition)")
    parameters = [*_parameters(entry.cls, entry.parameters()), own]
    return _thing("partition", entry.name, entry.summary, facts, uses, parameters)


def metric(entry: registry.ProblemEntry, name: str, uses: Uses) -> Thing:
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
    return Thing("metric", full, meaning(defined), facts, figures)


def meaning(metric: Metric) -> str:
    """Return the label of a metric in figures, and its meaning."""
    return metric.summary if _label(metric) == metric.name else f"{_label(metric)}: {metric.summary}"


def _label(metric: Metric) -> str:
    return " ".join(metric.label.split())


# -- panels ------------------------------------------------------------------------------------------------------------


def panel_kind(name: str, uses: Uses) -> Thing:
    """Describe a kind of panel with its options."""
    cls = KINDS[name]
    options = [Parameter(e.name, e.default, f"{e.doc} ({e.values})") for e in panels.describe(name)]
    thing = _thing("panel kind", name, docstrings.opening(cls.__doc__), {}, uses, options)
    keys = {"published": _keys(cls.published), "lines": _keys(cls.marks)}
    return dataclasses.replace(thing, keys=_nonempty(keys))


def _keys(published: Published) -> dict[str, str]:
    return {**published.texts, **published.numbers}


def options() -> list[tuple[Explained, tuple[str, ...]]]:
    """Return every option of panels with the kinds that have it, once per explanation."""
    kinds: dict[Explained, tuple[str, ...]] = {}
    for kind in KINDS:
        for option in panels.describe(kind):
            kinds[option] = (*kinds.get(option, ()), kind)
    return list(kinds.items())


def panel_option(option: Explained, kinds: Iterable[str], uses: Uses) -> Thing:
    """Describe an option of panels of these kinds."""
    facts = {"panels": list(kinds), "default": option.default, "takes": option.values}
    figures = {figure for kind in kinds for figure in uses.get(("panel option", f"{kind}.{option.name}"), [])}
    return Thing("panel option", option.name, option.doc, facts, {"used_by": sorted(figures)})


def axis(named: Axis, uses: Uses) -> Thing:
    """Describe a named x axis."""
    facts = {
        "reads": named.reads.value,
        "columns": list(named.columns),
        "divided_by": "the panel's option `variables`" if named.divided else "",
        "claims": "may name it" if named.claims else "may not name it",
    }
    summary = named.label or "a value of the curves, named by the panel's option `parameter`"
    return _thing("axis", named.name, summary, facts, uses)


# -- specs -------------------------------------------------------------------------------------------------------------


def spec_key(path: str, key: Key, uses: Uses) -> Thing:
    """Describe a key of a spec by its path: ``rounds``, ``panels.curves.role``."""
    facts = {"takes": key.takes, "required": "yes" if key.required else "", "default": key.default or ""}
    return dataclasses.replace(_thing("spec key", path, key.doc, facts, uses), keys=_nonempty({"values": key.values}))


def claim_word(name: str, uses: Uses) -> Thing:
    """Describe a function or keyword of the checks of claims, in each of its forms."""
    what = "keyword" if name in claim_grammar.COMMON else "function"
    forms = {form: text for form, text in claim_grammar.FORMS.items() if re.match(rf"{name}[(=]", form)}
    thing = _thing(f"claim {what}", name, f"a {what} of the checks of claims", {}, uses)
    return dataclasses.replace(thing, keys={"forms": forms}, figures={"used_by": uses.get(("claim word", name), [])})


# -- shared pieces -----------------------------------------------------------------------------------------------------


def _thing(
    kind: str, name: str, summary: str, facts: Mapping[str, Any], uses: Uses, parameters: Iterable[Parameter] = ()
) -> Thing:
    facts = {key: value for key, value in facts.items() if value not in ("", [], {})}
    return Thing(kind, name, summary, facts, {"used_by": uses.get((kind, name), [])}, tuple(parameters))


def _nonempty(keys: Mapping[str, Mapping[str, str]]) -> dict[str, Mapping[str, str]]:
    return {title: meanings for title, meanings in keys.items() if meanings}


def meanings(cls: type[Any], names: Iterable[str]) -> dict[str, str]:
    """Return the meaning of each parameter of a class, with its declared range unless the docstring states one."""
    stated, ranges = docstrings.meanings(cls, names), declared_ranges(cls)
    return {name: _with_range(text, ranges.get(name)) for name, text in stated.items()}


def _with_range(text: str, range_: Range | None) -> str:
    """Append a numeric range to a text; docstrings state the ranges that depend on other parameters or the data."""
    numeric = isinstance(range_, (Whole, Number))
    return f"{text}; {range_}" if text and numeric and not _BOUNDED.search(text) else text


def _parameters(cls: type[Any], defaults: Mapping[str, Any]) -> list[Parameter]:
    texts = meanings(cls, defaults)
    required = [name for name, default in defaults.items() if default is dataclasses.MISSING]
    return [
        Parameter(name, None if name in required else default, texts[name], required=name in required)
        for name, default in defaults.items()
    ]


def _where(cls: type[Any]) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _about(cls: type[Any]) -> str:
    return docstrings.opening(importlib.import_module(cls.__module__).__doc__)


def _source(cls: type[Any]) -> str:
    return docstrings.source(importlib.import_module(cls.__module__).__doc__)
