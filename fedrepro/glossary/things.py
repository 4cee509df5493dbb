"""Everything a name can stand for, described: what is registered, metrics, and the parts of specs."""

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
    """A key of a spec: its default, where it need not be given, and what it means, its range included.

    ``preset`` says that the default is that of the registered name; the class itself has ``otherwise``.
    """

    name: str
    default: Any
    meaning: str
    required: bool = False
    preset: bool = False
    otherwise: Any = None


@dataclass(frozen=True)
class Thing:
    """One thing that a name stands for.

    ``facts`` are further statements in the order in which they are to be read: texts, lists, mappings and truth values.
    ``figures`` are those that use it, by what they do with it.
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
        """As mappings and lists, for JSON."""
        found = {"kind": self.kind, "name": self.name, "summary": self.summary, **self.facts}
        if self.parameters:
            found["parameters"] = [_plain(parameter) for parameter in self.parameters]
        if self.metrics:
            found["metrics"] = [dataclasses.asdict(metric) for metric in self.metrics]
        return {**found, **self.keys, "figures": dict(self.figures)}


def _plain(parameter: Parameter) -> dict[str, Any]:
    found = dataclasses.asdict(parameter)
    left_out = [key for key in ("required", "preset") if not found[key]] + ["otherwise"] * (not parameter.preset)
    return {key: value for key, value in found.items() if key not in (*left_out, *["default"] * parameter.required)}


# -- methods, and what they run on -------------------------------------------------------------------------------------


def algorithm(entry: registry.MethodEntry, uses: Uses) -> Thing:
    """A registered algorithm: under this name, its parameters have the values the name presets."""
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
    """A registered problem."""
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
    """A registered dataset, and the state of its files."""
    facts = {
        "about": _about(entry.cls),
        "class": _where(entry.cls),
        "data": entry.kind,
        "problems": [p.name for p in registry.problems().values() if p.data_kind == entry.kind],
        "shape": _shape(entry),
        "trials": "each has data of its own" if entry.draws else "all have the same data",
        **_files(entry),
        "source": _source(entry.cls),
    }
    return _thing("dataset", entry.name, entry.summary, facts, uses, _parameters(entry.cls, entry.parameters()))


def _files(entry: registry.DatasetEntry) -> dict[str, Any]:
    """What is known of a dataset's files; one without any is made when it is loaded, or names a file itself."""
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
    """What is known of the data with default parameters before any is read."""
    return {} if dataclasses.MISSING in entry.parameters().values() else dict(entry.make().shape())


def partition(entry: registry.PartitionEntry, uses: Uses) -> Thing:
    """A registered partition."""
    facts = {"about": _about(entry.cls), "class": _where(entry.cls), "source": _source(entry.cls)}
    own = Parameter("per_trial", False, f"{PARTITION['per_trial'].doc} (a key of every partition)")
    parameters = [*_parameters(entry.cls, entry.parameters()), own]
    return _thing("partition", entry.name, entry.summary, facts, uses, parameters)


def metric(entry: registry.ProblemEntry, name: str, uses: Uses) -> Thing:
    """A metric of a problem."""
    found = entry.metrics[name]
    facts = {
        "label": _label(found),
        "better": found.better,
        "problem": entry.name,
        "recorded": "always" if name in entry.default_metrics else "where a figure asks for it",
    }
    full = f"{entry.name}.{name}"
    figures = {"drawn_by": uses.get(("draws", full), []), "only_recorded_by": uses.get(("records", full), [])}
    return Thing("metric", full, meaning(found), facts, figures)


def meaning(metric: Metric) -> str:
    """What a metric is called where it is drawn, and what it means."""
    return metric.summary if _label(metric) == metric.name else f"{_label(metric)}: {metric.summary}"


def _label(metric: Metric) -> str:
    return " ".join(metric.label.split())


# -- panels ------------------------------------------------------------------------------------------------------------


def panel_kind(name: str, uses: Uses) -> Thing:
    """A kind of panel with its options."""
    cls = KINDS[name]
    takes = [Parameter(e.name, e.default, f"{e.doc} ({e.values})") for e in panels.describe(name)]
    thing = _thing("panel kind", name, docstrings.opening(cls.__doc__), {}, uses, takes)
    keys = {"published": _keys(cls.published), "lines": _keys(cls.marks)}
    return dataclasses.replace(thing, keys=_said(keys))


def _keys(published: Published) -> dict[str, str]:
    return {**published.texts, **published.numbers}


def options() -> list[tuple[Explained, tuple[str, ...]]]:
    """Every option of panels with the kinds that know it; it stands there again where kinds explain it differently."""
    found: dict[str, tuple[Explained, tuple[str, ...]]] = {}
    for kind in KINDS:
        for one in panels.describe(kind):
            _, others = found.get(repr(one), (one, ()))
            found[repr(one)] = (one, (*others, kind))
    return list(found.values())


def panel_option(option: Explained, kinds: Iterable[str], uses: Uses) -> Thing:
    """An option of panels, as these kinds know it."""
    facts = {"panels": list(kinds), "default": option.default, "takes": option.values}
    figures = {figure for kind in kinds for figure in uses.get(("panel option", f"{kind}.{option.name}"), [])}
    return Thing("panel option", option.name, option.doc, facts, {"used_by": sorted(figures)})


def axis(found: Axis, uses: Uses) -> Thing:
    """An x axis with a name of its own."""
    facts = {
        "reads": found.reads.value,
        "columns": list(found.columns),
        "divided_by": "the panel's option `variables`" if found.divided else "",
        "claims": "may name it" if found.claims else "may not name it",
    }
    summary = found.label or "a value of the curves, which the panel's option `parameter` names"
    return _thing("axis", found.name, summary, facts, uses)


# -- specs -------------------------------------------------------------------------------------------------------------


def spec_key(path: str, key: Key, uses: Uses) -> Thing:
    """A key of a spec by its path: ``rounds``, ``panels.curves.role``."""
    facts = {"takes": key.takes, "required": "yes" if key.required else "", "default": key.default or ""}
    return dataclasses.replace(_thing("spec key", path, key.doc, facts, uses), keys=_said({"values": key.values}))


def claim_word(name: str, uses: Uses) -> Thing:
    """A function or keyword of the language of claims, in each of its forms."""
    what = "keyword" if name in claim_grammar.COMMON else "function"
    forms = {form: said for form, said in claim_grammar.FORMS.items() if re.match(rf"{name}[(=]", form)}
    thing = _thing(f"claim {what}", name, f"a {what} of the checks of claims", {}, uses)
    return dataclasses.replace(thing, keys={"forms": forms}, figures={"used_by": uses.get(("claim word", name), [])})


# -- shared pieces -----------------------------------------------------------------------------------------------------


def _thing(
    kind: str, name: str, summary: str, facts: Mapping[str, Any], uses: Uses, parameters: Iterable[Parameter] = ()
) -> Thing:
    said = {key: value for key, value in facts.items() if value not in ("", [], {})}
    return Thing(kind, name, summary, said, {"used_by": uses.get((kind, name), [])}, tuple(parameters))


def _said(keys: Mapping[str, Mapping[str, str]]) -> dict[str, Mapping[str, str]]:
    return {title: found for title, found in keys.items() if found}


def meanings(cls: type[Any], names: Iterable[str]) -> dict[str, str]:
    """The meaning of each parameter of a class, with its declared range where the docstring states none."""
    stated, ranges = docstrings.meanings(cls, names), declared_ranges(cls)
    return {name: _with_range(text, ranges.get(name)) for name, text in stated.items()}


def _with_range(text: str, range_: Range | None) -> str:
    """A docstring states the ranges that depend on other parameters or the data, and explains the choices."""
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
