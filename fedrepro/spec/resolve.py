"""Resolve the names in a spec to registered problems, datasets and partitions with their parameters."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedrepro import registry
from fedrepro.data import own_paths
from fedrepro.datasets.sizes import NAMES
from fedrepro.parameters import Flag, check
from fedrepro.spec import keys, nodes
from fedrepro.spec.error_collector import Collector
from fedrepro.spec.nodes import Node

Point = Mapping[str, Node]
"""The keys of a curve at one point of its sweep."""


@dataclass(frozen=True)
class Resolved:
    """A registered dataset or partition: its name in the spec, every parameter, and the known sizes of its data."""

    alias: str
    entry: Any
    params: dict[str, Any]
    shape: dict[str, Any] = field(default_factory=dict)


REGISTRIES: Mapping[str, Callable[[], Mapping[str, Any]]] = {
    "dataset": lambda: registry.datasets(),
    "partition": lambda: registry.partitions(),
}
"""The registered datasets and partitions."""


class Resolver:
    """Looks names up in a spec and in the registry, and reports errors to ``collect``."""

    def __init__(self, collect: Collector, root: Node) -> None:
        self.collect = collect
        self.root = root
        self.shapes: dict[str, dict[str, Any]] = {}
        """The sizes of datasets that were already made, by name and parameters: most curves share one."""

    def tables(self) -> None:
        """Check the spec's own datasets and partitions, including those that no curve uses."""
        for what in REGISTRIES:
            self.collect.mapping(self.root.get(f"{what}s"), f"{what}s")
            for alias, mapping in self.root.under(f"{what}s"):
                self._entry(Node(alias, mapping.place), what)

    def sizes(self) -> dict[str, dict[str, int]]:
        """Return the paper's sizes of the spec's own datasets (``published: {N: 10000}``), by their names."""
        stated = {alias: (node.get("name"), node.get("published")) for alias, node in self.root.under("datasets")}
        return {alias: self._sizes(name, node) for alias, (name, node) in stated.items() if node is not None}

    def _sizes(self, name: Node | None, node: Node) -> dict[str, int]:
        if not isinstance(node.value, dict) or not node.value:
            self.collect.error(node, "published must be a mapping of sizes, for instance {N: 10000}")
            return {}
        entry = registry.datasets().get(str(getattr(name, "value", "")))
        if entry is not None:
            self.collect.keys(node, NAMES[entry.kind], f"the published size of '{entry.name}'")
        return {name: self.collect.count(size, f"published.{name}", 1, low=1) for name, size in node.items()}

    # -- problems ----------------------------------------------------------------------------------------------------

    def problem_name(self, *given: Node | None) -> str:
        """Return the problem named by the last of the nodes with a name; a mapping may only change parameters."""
        present = [node for node in given if node is not None]
        names = [name for node in present if (name := node.named().get("name")) is not None]
        if names:
            return self.collect.choice(names[-1], registry.problems(), "a problem", "")
        if present:
            self.collect.error(present[0], "the problem needs a 'name'")
        return ""

    def problem(self, panel: Node, point: Point) -> tuple[registry.ProblemEntry | None, dict[str, Any]]:
        """Return the problem of a curve and all its parameters."""
        given = [self.root.get("problem"), panel.get("problem"), point.get("problem")]
        named = [node.named() for node in given if node is not None]
        node = functools.reduce(nodes.merge, named) if named else None
        name = self.problem_name(node)
        if not name or node is None:
            return None, {}
        entry = registry.problems()[name]
        self.collect.keys(node, [*keys.PROBLEM, *entry.parameters], f"the problem '{name}'")
        return entry, problem_values(node, entry)

    # -- datasets and partitions -------------------------------------------------------------------------------------

    def dataset(self, panel: Node, point: Point, item: Node) -> Resolved | None:
        """Return the dataset of a curve, or None on errors."""
        node = self.given("dataset", panel, point)
        if node is None:
            self.collect.error(item, "no dataset: give 'dataset:' to the curve, the panel or the spec")
            return None
        if (resolved := self._entry(node, "dataset")) is None:
            return None
        alias, node, entry, params = resolved
        params = own_paths.named(entry.cls.files, params, str(Path(self.collect.path).resolve().parent))
        made = f"{entry.name} {params!r}"
        if made not in self.shapes:
            shape = self.collect.attempt(
                lambda: entry.make(**params).shape(), node.value, node, f"the dataset '{entry.name}'"
            )
            if shape is None:
                return None
            self.shapes[made] = dict(shape)
        return Resolved(alias, entry, params, dict(self.shapes[made]))

    def partition(self, panel: Node, point: Point, dataset: Resolved | None) -> Resolved | None:
        """Return the partition of a curve, checked against what is known of its data; None without one or on errors."""
        node = self.given("partition", panel, point)
        if node is None or (resolved := self._entry(node, "partition")) is None:
            return None
        alias, node, entry, params = resolved
        own = {k: v for k, v in params.items() if k != "per_trial"}
        what = f"the partition '{entry.name}'"
        per_trial = params.get("per_trial", False)
        self.collect.attempt(lambda: check("per_trial", per_trial, Flag()), node.value, node, what)
        partition = self.collect.attempt(lambda: entry.make(**own), node.value, node, what)
        if partition is None:
            return None
        shape = dataset.shape if dataset else {}
        self.collect.attempt(lambda: partition.check(N=shape.get("N"), K=shape.get("K")), node.value, node, what)
        if entry.name == "given" and dataset and dataset.params.get("client", "") is None and "P" not in shape:
            advice = f"name them with client: in the dataset '{dataset.alias}', or use another partition"
            self.collect.error(node, f"{what} uses the clients that the data name, and these name none; {advice}")
        return Resolved(alias, entry, params)

    def given(self, what: str, panel: Node, point: Point) -> Node | None:
        """Return the dataset or partition that the curve, its panel or else the spec names."""
        return point.get(what) or panel.get(what) or self.root.get(what)

    def _entry(self, node: Node, what: str) -> tuple[str, Node, Any, dict[str, Any]] | None:
        """Return the name in the spec, the mapping, the registered entry and its parameters; None on errors."""
        entries = REGISTRIES[what]()
        alias, mapping = self._named(node, what, entries)
        if mapping is None:
            return None
        entry = entries[str(mapping.value["name"].value)]
        params = self._params(entry, mapping, what)
        return (alias, mapping, entry, params) if params is not None else None

    def _named(self, node: Node, what: str, entries: Mapping[str, Any]) -> tuple[str, Node | None]:
        """Resolve a name of the spec's own table, a registered name, or a mapping with a name."""
        if isinstance(node.value, dict):
            alias = str(getattr(node.get("name"), "value", ""))
        elif isinstance(node.value, list):
            self.collect.error(node, f"name one {what}; lists are only allowed in a curve")
            return "", None
        else:
            alias = str(node.value)
            table = dict(self.root.under(f"{what}s"))
            if alias not in table and alias not in entries:
                self.collect.unknown(node, alias, [*table, *entries], f"a {what}")
                return alias, None
            node = table.get(alias) or Node(alias, node.place).named()
        if not isinstance(node.value, dict):
            example = f"{{name: {node.value if node.value in list(entries) else next(iter(entries))}}}"
            self.collect.error(node, f"a {what} must be a mapping with a 'name', for instance {example}")
            return alias, None
        name = node.get("name")
        if name is None:
            self.collect.error(node, f"the {what} '{alias}' needs a 'name' (valid: {', '.join(entries)})")
            return alias, None
        return alias, node if self.collect.choice(name, entries, f"a {what}", "") else None

    def _params(self, entry: Any, node: Node, what: str) -> dict[str, Any] | None:
        """Return every parameter of a dataset or partition; None if one is unknown or missing."""
        defaults = entry.parameters()
        own = keys.PARTITION if what == "partition" else keys.DATASET
        valid = self.collect.keys(node, [*own, *defaults], f"the {what} '{entry.name}'")
        values = {**defaults, **{k: v.plain() for k, v in node.items() if k not in ("name", "published")}}
        missing = [key for key, value in values.items() if value is dataclasses.MISSING]
        for key in missing:
            self.collect.error(node, f"the {what} '{entry.name}' needs '{key}'")
        return values if valid and not missing else None


def curve_items(root: Node) -> Iterator[tuple[list[str], Node]]:
    """Yield every item of ``curves`` of every panel, with its path."""
    for name, panel in root.under("panels"):
        listed = panel.get("curves")
        for number, item in enumerate(listed.value if listed is not None and isinstance(listed.value, list) else ()):
            yield ["panels", name, "curves", str(number)], item


def problem_values(node: Node | None, problem: registry.ProblemEntry) -> dict[str, Any]:
    """Return every parameter of the problem: the spec's values over its defaults."""
    given = {k: v.plain() for k, v in node.items() if k != "name"} if node is not None else {}
    return {**problem.parameters, **{k: v for k, v in given.items() if k in problem.parameters}}
