"""Expand the items of ``curves`` into curves: expand every sweep; check, name and label every point."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fedrepro import own_modules, registry
from fedrepro.errors import nearest
from fedrepro.parameters import too_large
from fedrepro.spec import keys
from fedrepro.spec.error_collector import Collector
from fedrepro.spec.model import Curve, Setting
from fedrepro.spec.nodes import Node
from fedrepro.spec.overrides import is_set
from fedrepro.spec.resolve import Point, Resolved, Resolver, curve_items, problem_values

MOST_ROUNDS = 10_000_000
MOST_RECORDED = 200_000
MOST_CURVES = 2_000
"""Rounds of a run, rounds recorded of a run, and curves of a figure, at most."""

UNSWEPT = ("algorithm", "zip", "label", "role")
"""Keys of a curve whose lists are not crossed."""


@dataclass(frozen=True)
class Recording:
    """The rounds of a run, unless its panel or curve sets them, and which of them are recorded."""

    rounds: int
    every: int
    dense: int


@dataclass(frozen=True)
class _Draft:
    """A curve before its panel is complete. label : its label in the spec. explicit : the parameters it sets itself."""

    setting: Setting
    select: dict[str, Any]
    explicit: dict[str, Any]
    role: str = ""
    label: str = ""


@dataclass(frozen=True)
class _Parts:
    """What a curve runs on."""

    problem: registry.ProblemEntry
    problem_params: dict[str, Any]
    dataset: Resolved
    partition: Resolved | None

    @property
    def names(self) -> dict[str, str]:
        """The names of the dataset and the partition in the spec."""
        return {"dataset": self.dataset.alias, "partition": self.partition.alias if self.partition else ""}


class Expander:
    """Makes the curves of panels and reports errors to ``collect``."""

    def __init__(
        self,
        collect: Collector,
        root: Node,
        resolve: Resolver,
        recording: Recording,
        changed: bool = False,
        imported: bool = True,
    ) -> None:
        self.collect = collect
        self.root = root
        self.resolve = resolve
        self.recording = recording
        self.changed = changed
        """Whether options have changed the spec: its own values can then be too large for the data."""
        self.imported = imported
        """Whether all of the user's own methods are registered: only then an unknown method is an error."""
        self.reduced: dict[tuple[str, int], dict[str, None]] = {}
        """The values of parameters that were too large, by name and the size that replaces them."""
        self.met = 0
        """Number of curves of the figure so far."""

    def curves(self, panel: Node, y: str) -> list[Curve]:
        """Return the curves of a panel whose y axis is the metric ``y``."""
        listed = panel.get("curves")
        if listed is None:
            self.collect.error(panel, "the key 'curves' is missing")
            return []
        if not isinstance(listed.value, list):
            self.collect.error(listed, "curves must be a list; each item starts with 'algorithm:'")
            return []
        every = (curve for item in listed.value for curve in self._item(panel, item, y))
        drafts = list({repr(curve): curve for curve in every}.values())  # a curve listed twice is one curve
        named = {str(node.plain()) for _, other in curve_items(self.root) for node in other.several("algorithm")}
        called = registry.called(named & set(registry.methods()))  # in all panels: their legends are read together
        return [
            Curve(label, draft.setting, {**draft.select, "label": label}, draft.role, called[draft.setting.algorithm])
            for label, draft in zip(_labels(drafts, called, _is_table(panel)), drafts, strict=True)
        ]

    def adjusted(self) -> tuple[str, ...]:
        """Return, for each parameter of the spec that was too large for the changed data, what it is now."""
        return tuple(
            f"the spec's {name} = {', '.join(values)} became {name} = {size}, the largest value for the changed data; "
            "equal curves are drawn once"
            for (name, size), values in self.reduced.items()
        )

    def _item(self, panel: Node, item: Node, y: str) -> list[_Draft]:
        """Return one curve for each point of the sweep of an item of ``curves``."""
        if not isinstance(item.value, dict):
            self.collect.error(item, "a curve is a mapping that starts with 'algorithm:'")
            return []
        role = self.collect.choice(item.get("role"), keys.ROLES, "a role", "")
        label = self.collect.text(item.get("label"), "label")
        if item.get("algorithm") is None:
            self.collect.error(item, "a curve needs an 'algorithm'")
            return []
        drafts = []
        for entry in self._algorithms(item):
            self.collect.keys(item, [*keys.CURVE, *entry.parameters()], f"a curve of '{entry.name}'")
            zipped = item.get("zip")
            if zipped is not None and isinstance(zipped.value, dict):
                known = [key for key in keys.CURVE if key not in UNSWEPT]
                self.collect.keys(zipped, [*known, *entry.parameters()], f"zip in a curve of '{entry.name}'")
            if not self._few(item):
                break
            for point in sweep(self.collect, item):
                draft = self._point(panel, item, entry, point, y)
                drafts += [dataclasses.replace(draft, role=role, label=label)] if draft is not None else []
        return drafts

    def _few(self, item: Node) -> bool:
        """Return whether the figure, with the points of this sweep, has at most ``MOST_CURVES`` curves."""
        lists = [node.value for key, node in item.items() if key not in UNSWEPT and isinstance(node.value, list)]
        steps = next((node.value for _, node in item.under("zip")), ())
        points = math.prod(map(len, lists)) * (len(steps) if isinstance(steps, list) else 1)
        self.met += points
        if self.met > MOST_CURVES:
            counts = f"this item has {points:,} curves, the figure {self.met:,} so far"
            self.collect.error(item, f"{counts}; a figure has at most {MOST_CURVES:,}")
        return self.met <= MOST_CURVES

    def _algorithms(self, item: Node) -> list[registry.MethodEntry]:
        table, entries = registry.methods(), []
        for node in item.several("algorithm"):
            word = str(node.plain())
            if mistake := own_modules.mistake_of(word):
                self.collect.error(node, mistake)
            elif word in table:
                entries.append(table[word])
            elif not self.imported:
                self.collect.follows()
            else:
                self.collect.error(
                    node, f"'{word}' is not an algorithm{nearest(word, table)} (`fedrepro list algorithms` shows all)"
                )
        return entries

    def _other_problem(self, name: str) -> str:
        """Return how a series' name ends if its problem is another one than the spec's."""
        node = self.root.get("problem")
        usual = self.resolve.problem_name(node.named()) if node is not None else name
        return f" problem={name}" if name != usual else ""

    def _point(self, panel: Node, item: Node, entry: registry.MethodEntry, point: Point, y: str) -> _Draft | None:
        """Return the curve at one point of a sweep; None on errors."""
        problem, problem_params = self.resolve.problem(panel, point)
        dataset = self.resolve.dataset(panel, point, item)
        shape = dataset.shape if dataset else {}
        partition = self.resolve.partition(panel, point, dataset)
        every, own_every = self._every(panel)
        rounds, own_rounds = self._rounds(panel, point, every)
        given = {k: v for k, v in point.items() if k not in keys.CURVE and k in entry.parameters()}
        values = {k: v.plain() for k, v in given.items()}
        method = self.collect.attempt(lambda: entry.make(**values), given, item, f"'{entry.name}'")
        metrics = self._metrics(panel, problem, y) if problem is not None else ()
        artifacts = self._artifacts(panel, problem, shape)
        if problem is None or dataset is None or (partition is None and self.resolve.given("partition", panel, point)):
            return None
        parts = _Parts(problem, problem_params, dataset, partition)
        self._check_kinds(panel, entry, parts, point, item)
        facts = self._facts(panel, parts, item)
        if method is None:
            return None
        fitting = {
            name: size
            for name, size in too_large(method, facts).items()
            if name not in values or (self.changed and not is_set(given[name]))
        }
        method = dataclasses.replace(method, **fitting)  # a value for more clients than there are
        for name in fitting.keys() & values.keys():
            self.reduced.setdefault((name, fitting[name]), {})[_short(values[name])] = None
        values |= {name: size for name, size in fitting.items() if name in values}
        _, valid = self.collect.clean(lambda: self._check_problem(panel, item, parts, facts))
        if valid:
            known = {**facts, **parts.problem_params}
            self.collect.attempt(lambda: method.check(**known), given, item, f"'{entry.name}'")
        params = {field.name: getattr(method, field.name) for field in dataclasses.fields(method)}
        explicit = {k: values[k] for k in params if k in values}
        usual = problem_values(self.root.get("problem"), parts.problem)
        series = _series(entry.name, explicit, parts.names, parts.problem_params, usual, own_rounds, own_every)
        setting = Setting(
            series=series + self._other_problem(parts.problem.name),
            problem=parts.problem.name,
            problem_params=parts.problem_params,
            dataset=parts.dataset.entry.name,
            dataset_params=parts.dataset.params,
            partition=parts.partition.entry.name if parts.partition else None,
            partition_params=parts.partition.params if parts.partition else {},
            algorithm=entry.name,
            params=params,
            rounds=rounds,
            record_every=every,
            record_dense=self.recording.dense,
            metrics=metrics,
            artifacts=artifacts,
            explicit=tuple(explicit),
            names=parts.names,
            own=own_modules.of(entry.name),
        )
        select = {**params, **parts.names, **parts.problem_params, "algorithm": entry.name, "series": setting.series}
        return _Draft(setting, select, explicit)

    def _every(self, panel: Node) -> tuple[int, int | None]:
        """Return every which round of a panel's curves is recorded, and again if the panel states it (else None)."""
        own = panel.get("record_every")
        every = self.collect.count(own, "record_every", self.recording.every)
        return every, every if own else None

    def _rounds(self, panel: Node, point: Point, every: int) -> tuple[int, int | None]:
        """Return the rounds of a curve, and again if the curve or its panel states them (else None)."""
        own = point.get("rounds") or panel.get("rounds")
        rounds = self.collect.count(own, "rounds", self.recording.rounds, low=0, most=MOST_ROUNDS)
        recorded = min(self.recording.dense, rounds) + rounds // every
        if recorded > MOST_RECORDED:
            counts = f"about {recorded:,} of {rounds:,} rounds would be recorded, and at most {MOST_RECORDED:,} can be"
            where = own or self.root.get("rounds")
            self.collect.error(where, f"{counts}; give record_every, or a smaller record_dense")
        return rounds, rounds if own else None

    def _facts(self, panel: Node, parts: _Parts, item: Node) -> dict[str, Any]:
        """Return what is known about the data before they are read: sizes, clients P and classes K."""
        shape, K = parts.dataset.shape, parts.problem_params.get("K")
        P = parts.partition.params.get("P", shape.get("P")) if parts.partition else 1
        facts = {**shape, "P": P} | ({"K": K} if K is not None else {})
        if K is None and facts.get("K") == 0:  # an invalid K of the problem is reported by its check
            alias = parts.dataset.alias
            text = f"the problem '{parts.problem.name}': give K: the dataset '{alias}' has no labels"
            self.collect.error(self._problem_node(panel, item), text)
        return facts

    def _problem_node(self, panel: Node, item: Node) -> Node:
        """Return where a curve's problem is written: one place for all curves, so that one mistake is one error."""
        return panel.get("problem") or self.root.get("problem") or item

    def _check_problem(self, panel: Node, item: Node, parts: _Parts, facts: Mapping[str, Any]) -> None:
        """Check the parameters of the problem against what is known about the data."""
        problem, params = parts.problem, parts.problem_params
        if facts.get("J") is not None and params.get("test") is not None:
            facts = {**facts, "J": facts["J"] + (facts.get("test") or 0)}  # the problem itself holds out rows
        given = dict(self._problem_node(panel, item).items())
        self.collect.attempt(lambda: problem.check(params, facts), given, item, f"the problem '{problem.name}'")

    def _artifacts(
        self, panel: Node, problem: registry.ProblemEntry | None, shape: Mapping[str, Any]
    ) -> tuple[str, ...]:
        """Return the arrays that runs keep for pictures; the problem must have each of them."""
        asked = self.collect.words(panel.get("artifacts") or self.root.get("artifacts"), "artifacts")
        if problem is None:
            return ()
        views = range(1, min(shape.get("I") or 9, 99) + 1)
        known = [name.format(i=i) for name in problem.artifacts for i in (views if "{i}" in name else (0,))]
        for node in asked:
            if node.value not in known:
                what = f"an array that the problem '{problem.name}' keeps"
                self.collect.unknown(node, node.value, known, what, "artifacts")
        return tuple(node.value for node in asked)

    def _check_kinds(self, panel: Node, entry: registry.MethodEntry, parts: _Parts, point: Point, item: Node) -> None:
        """Check that the method and the dataset are of the problem's kind, and that the partition divides such data."""
        problem, dataset = parts.problem, parts.dataset
        if not registry.runs_on(entry, problem):
            self.collect.error(
                item.get("algorithm"), f"'{entry.name}' solves the problem '{entry.problem}', not '{problem.name}'"
            )
        kind = dataset.shape.get("kind", dataset.entry.kind)
        partition = parts.partition.entry if parts.partition else None
        if partition is not None and partition.kinds and kind not in partition.kinds:
            others = [f"'{other.name}'" for other in registry.partitions().values() if kind in other.kinds]
            more = f"use {', '.join(others)} or 'given'" if others else "these data have their own clients"
            self.collect.error(
                self.resolve.given("partition", panel, point),
                f"the partition '{partition.name}' does not divide {kind}; {more}",
            )
        if kind != problem.data_kind:
            kinds = [p for p in registry.problems().values() if p.data_kind == kind]
            others = [other.name for other in kinds if registry.runs_on(entry, other)]
            more = f" (for these data use '{others[0]}')" if others else ""
            self.collect.error(
                point.get("dataset") or item,
                f"the dataset '{dataset.entry.name}' contains {kind}; the problem "
                f"'{problem.name}' needs {problem.data_kind}{more}",
            )

    def _metrics(self, panel: Node, problem: registry.ProblemEntry, y: str) -> tuple[str, ...]:
        """Return the recorded metrics: requested ones, default ones, and those on the axes of all panels.

        With an empty list of its own (``metrics: []``), a panel records none of the other panels' axes.
        """
        asked = [node for where in (self.root, panel) for node in self.collect.words(where.get("metrics"), "metrics")]
        for node in asked:
            if node.value not in problem.metrics:
                what = f"a metric of the problem '{problem.name}'"
                self.collect.unknown(node, node.value, problem.metrics, what, "metrics")
        own = panel.get("metrics")
        alone = own is not None and own.plain() == []
        panels = [("", panel)] if alone else self.root.under("panels")
        drawn = [getattr(other.get(axis), "value", None) for _, other in panels for axis in ("x", "y")]
        wanted = [y, *problem.default_metrics, *(node.value for node in asked), *drawn]
        return tuple(name for name in problem.metrics if name in wanted)


def sweep(collect: Collector, item: Node) -> list[dict[str, Node]]:
    """Return the points of a curve's sweep: lists are crossed (a grid), lists under ``zip`` advance together."""
    fixed = {k: v for k, v in item.items() if k not in UNSWEPT}
    zipped = item.get("zip")
    for key, node in (*fixed.items(), *(zipped.items() if zipped is not None else ())):
        if node.value == []:
            collect.error(node, f"'{key}' is an empty list; give at least one value")
    grid = [
        [(key, value) for value in node.value] if isinstance(node.value, list) else [(key, node)]
        for key, node in fixed.items()
    ]
    steps: list[list[tuple[str, Node]]] = [[]]
    if zipped is not None:
        columns = dict(zipped.items())
        lengths = {k: len(v.value) if isinstance(v.value, list) else None for k, v in columns.items()}
        if not columns or None in lengths.values() or len(set(lengths.values())) != 1:
            collect.error(
                zipped,
                "zip must hold lists of one length, for instance zip: {m: [10, 100], Q1: [100, 10]} "
                f"(lengths: {', '.join(f'{k} {v}' for k, v in lengths.items())})",
            )
        else:
            both = sorted(set(columns) & set(fixed))
            if both:
                collect.error(zipped, f"'{both[0]}' is both in zip and outside it; keep one")
            rows = zip(*(v.value for v in columns.values()), strict=True)
            steps = [list(zip(columns, row, strict=True)) for row in rows]
    return [dict(itertools.chain(point, step)) for step in steps for point in itertools.product(*grid)]


# -- names -------------------------------------------------------------------------------------------------------------


def _series(
    algorithm: str,
    explicit: Mapping[str, Any],
    names: Mapping[str, str],
    problem: Mapping[str, Any],
    usual: Mapping[str, Any],
    rounds: int | None,
    every: int | None,
) -> str:
    """Return the setting's name in the results: algorithm, parameters of the spec, dataset, partition, etc."""
    changed = {k: v for k, v in problem.items() if usual.get(k) != v}
    words = [algorithm, *(f"{k}={_short(v)}" for k, v in explicit.items())]
    words += [f"@ {names['dataset']}", *([f"/ {names['partition']}"] if names["partition"] else [])]
    words += [f"{k}={_short(v)}" for k, v in changed.items()]
    words += [f"{k}={v}" for k, v in (("rounds", rounds), ("record_every", every)) if v is not None]
    return " ".join(words)


def _is_table(panel: Node) -> bool:
    kind = panel.get("kind")
    return kind is not None and kind.value == "table"


def _labels(curves: Sequence[_Draft], called: Mapping[str, str], table: bool) -> list[str]:
    """Return a distinct label for each curve: the spec's own, else the method and what varies in the panel.

    A label of the spec that several curves have (on a sweep) is followed by what varies, except in a ``table``, where
    it names the row or column of all of them.
    """
    given = [curve.label for curve in curves]
    labels = []
    for curve, words in zip(curves, _differences(curves), strict=True):
        if not curve.label:
            labels.append(" ".join([called[curve.setting.algorithm], *words]))
        elif given.count(curve.label) > 1 and not table:
            labels.append(", ".join([curve.label, *(word.replace("=", " = ") for word in words)]))
        else:
            labels.append(curve.label)
    if table:
        return labels
    labels = _distinguish(labels, [f"({called[curve.setting.algorithm]})" for curve in curves])
    labels = _distinguish(labels, [f"rounds={curve.setting.rounds}" for curve in curves])
    labels = _distinguish(labels, [f"role={curve.role or 'curve'}" for curve in curves])
    return _distinguish(labels, [f"({labels[:place].count(label) + 1})" for place, label in enumerate(labels)])


def _differences(curves: Sequence[_Draft]) -> list[list[str]]:
    """Return, for each curve, how it differs from others of its method, and its data and problem from all others."""
    by_method: dict[str, list[Mapping[str, Any]]] = {}
    for curve in curves:
        by_method.setdefault(curve.setting.algorithm, []).append(curve.explicit)
    own = {method: _varying(explicit) for method, explicit in by_method.items()}
    axes = _varying([{axis: curve.setting.names[axis] for axis in ("dataset", "partition")} for curve in curves])
    of_problem = set(_varying([curve.setting.problem_params for curve in curves]))
    return [
        [
            *(f"{k}={_short(v)}" for k in own[c.setting.algorithm] if (v := c.explicit.get(k)) is not None),
            *(c.setting.names[axis] for axis in axes),
            *(f"{key}={_short(c.select[key])}" for key in c.setting.problem_params if key in of_problem),
        ]
        for c in curves
    ]


def _distinguish(labels: Sequence[str], by: Sequence[str]) -> list[str]:
    """Return the labels, with ``by`` appended where curves share a label but differ in ``by``."""
    among: dict[str, set[str]] = {}
    for label, word in zip(labels, by, strict=True):
        among.setdefault(label, set()).add(word)
    return [f"{label} {word}" if len(among[label]) > 1 else label for label, word in zip(labels, by, strict=True)]


def _varying(mappings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the keys whose printed values differ between the mappings, in the order of appearance."""
    keys = dict.fromkeys(key for mapping in mappings for key in mapping)
    return [key for key in keys if len({_short(mapping.get(key)) for mapping in mappings}) > 1]


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
