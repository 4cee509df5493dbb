"""From a YAML file to a Figure: every key checked, every sweep expanded, all errors reported at once.

The format is described in the README ("A figure is one YAML file"); CONTRIBUTING shows how to add one.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fedrepro import registry
from fedrepro.claims import language
from fedrepro.errors import ParameterError, UserError, nearest
from fedrepro.plotting.figure import check as drawable
from fedrepro.spec import nodes
from fedrepro.spec.model import Claim, Curve, Figure, Panel, Setting
from fedrepro.spec.nodes import Node, SpecErrors

TIERS = ("smoke", "quick", "paper")
X_AXES = ("round", "uplink_scalars", "uplink_bits", "bits_per_variable", "seconds", "parameter")
KINDS = ("curves", "scatter", "table", "bars")

TOP_KEYS = (
    "paper", "figure", "title", "source", "note", "problem", "trials", "rounds", "record_every", "record_dense",
    "metrics", "artifacts", "columns", "datasets", "partitions", "dataset", "partition", "panels", "claims", "tiers",
)  # fmt: skip
PANEL_KEYS = (
    "title", "kind", "x", "y", "xscale", "yscale", "xlim", "ylim", "like", "dataset", "partition", "problem", "rounds",
    "metrics", "artifacts", "curves", "published", "options",
)  # fmt: skip
CURVE_KEYS = ("algorithm", "dataset", "partition", "problem", "rounds", "zip", "label", "role")
CLAIM_KEYS = ("id", "says", "where", "panel", "check", "note")


def load(path: Path, tier: str, sets: Iterable[str] = (), only: str | None = None) -> Figure:
    """Read, override, check and expand one spec at one tier; raises SpecErrors with every error found."""
    root = nodes.read(path)
    return build(root, str(path), tier, sets, only)


def build(root: Node, path: str, tier: str, sets: Iterable[str] = (), only: str | None = None) -> Figure:
    """As ``load``, from nodes already read."""
    return _Reader(path).figure(root, tier, list(sets), only)


class _Reader:
    """Collects errors while it reads; nothing is returned unless there are none."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.errors: list[tuple[str, str]] = []

    # -- errors and plain values -------------------------------------------------------------------------------------

    def error(self, at: Node | nodes.Place | None, message: str) -> None:
        place = at if isinstance(at, nodes.Place) else at.place if at else nodes.Place(f"{self.path}:1:1")
        shown = f"  (in: {place.text})" if place.text and not place.where.startswith("--set") else ""
        entry = (str(place), f"{place}: {message}{shown}")
        if entry not in self.errors:
            self.errors.append(entry)

    def keys(self, node: Node, valid: Iterable[str], what: str) -> None:
        """Refuse keys that ``what`` does not know, each at its own place."""
        valid = list(valid)
        if not isinstance(node.value, dict):
            self.error(node, f"{what} must be a mapping of keys to values, not {_kind(node.value)}")
            return
        for key, child in node.value.items():
            if key not in valid:
                self.error(
                    child.key or child,
                    f"'{key}' is not a key of {what}{nearest(key, valid)} (valid: {', '.join(valid)})",
                )

    def text(self, node: Node | None, default: str = "", what: str = "this") -> str:
        if node is None or node.value is None:
            return default
        if not isinstance(node.value, str):
            self.error(node, f"{what} must be text, not {_kind(node.value)}")
            return default
        return node.value

    def choice(self, node: Node | None, valid: Iterable[str], what: str, default: str) -> str:
        if node is None:
            return default
        valid = list(valid)
        if node.value not in valid:
            self.error(node, f"'{node.value}' is not a {what}{nearest(node.value, valid)} (valid: {', '.join(valid)})")
            return default
        return str(node.value)

    def count(self, node: Node | None, what: str, default: int, low: int = 1) -> int:
        if node is None:
            return default
        if not isinstance(node.value, int) or isinstance(node.value, bool) or node.value < low:
            self.error(node, f"{what} must be a whole number of at least {low}, not {node.value!r}")
            return default
        return node.value

    def words(self, node: Node | None, what: str) -> tuple[Node, ...]:
        if node is None:
            return ()
        if isinstance(node.value, list) and all(isinstance(n.value, str) for n in node.value):
            return tuple(node.value)
        self.error(node, f"{what} must be a list of names")
        return ()

    def limits(self, node: Node | None, what: str) -> tuple[float | None, float | None]:
        if node is None:
            return (None, None)
        pair = node.plain()
        if isinstance(pair, list) and len(pair) == 2 and all(v is None or _number(v) for v in pair):
            return (pair[0], pair[1])
        self.error(node, f"{what} must be two numbers [low, high] (null for automatic)")
        return (None, None)

    # -- the figure --------------------------------------------------------------------------------------------------

    def figure(self, root: Node, tier: str, sets: list[str], only: str | None) -> Figure:
        if not isinstance(root.value, dict):
            raise SpecErrors([f"{root.place}: a spec is a mapping; start with 'paper:' and 'figure:'"])
        self.keys(root, TOP_KEYS, "a spec")
        wanted, paper_trials = (getattr(self.at_tier(root, t, []).get("trials"), "value", 0) for t in (tier, "paper"))
        root = self.at_tier(root, tier, sets)
        self.tables(root)
        paper = self.choice(root.get("paper"), [*registry.PAPERS, "beyond"], "paper", "")
        for key in ("paper", "figure", "problem", "trials", "rounds", "panels"):
            if root.get(key) is None:
                self.error(root, f"the key '{key}' is missing")
        trials = self.count(root.get("trials"), "trials", 1)
        self.count(root.get("rounds"), "rounds", 1, low=0)
        panels = self.panels(root, only)
        claims = self.claims(root.get("claims"), panels, only)
        if self.errors:
            raise SpecErrors([message for _, message in sorted(self.errors, key=_by_place)])
        figure = Figure(
            paper=paper,
            figure=self.text(root.get("figure"), what="figure"),
            title=self.text(root.get("title"), what="title"),
            source=self.text(root.get("source"), what="source"),
            tier=tier,
            path=self.path,
            trials=trials,
            wanted_trials=wanted if isinstance(wanted, int) else trials,
            paper_trials=paper_trials if isinstance(paper_trials, int) else trials,
            panels=tuple(panels.values()),
            claims=tuple(claims),
            columns=self.count(root.get("columns"), "columns", 2),
            note=self.text(root.get("note"), what="note"),
            sets=tuple(sets),
        )
        try:
            drawable(figure)
        except ParameterError as error:
            self.error(root.get("panels"), str(error))
            raise SpecErrors([message for _, message in self.errors]) from None
        return figure

    def at_tier(self, root: Node, tier: str, sets: list[str]) -> Node:
        """The spec with the tier's overrides and then the ``--set`` options laid on it."""
        tiers = root.get("tiers")
        if tiers is not None:
            self.keys(tiers, TIERS, "tiers")
            for _, one in tiers.items():
                if one.value is not None:
                    self.keys(one, [k for k in TOP_KEYS if k not in ("tiers", "paper", "figure")], "a tier")
        override = tiers.get(tier) if tiers else None
        if override is not None and isinstance(override.value, dict):
            root = nodes.merge(root, override)
        for option in sets:
            path, node = nodes.setting(option)
            try:
                root = nodes.put(root, path, node)
            except UserError as error:
                self.errors.append((str(node.place), str(error)))
        self.keys(root, TOP_KEYS, "a spec")
        return root

    def tables(self, root: Node) -> None:
        """Check the spec's own datasets and partitions, also those that no curve uses."""
        for what, entries in (("dataset", registry.datasets()), ("partition", registry.partitions())):
            table = root.get(f"{what}s")
            for alias, _ in table.items() if table is not None else ():
                _, node = self.named(table, Node(alias, table.place), what, entries)  # type: ignore[union-attr]
                if node is not None:
                    self.entry_params(entries[self.text(node.get("name"))], node, what)

    # -- panels and curves -------------------------------------------------------------------------------------------

    def panels(self, root: Node, only: str | None) -> dict[str, Panel]:
        table = root.get("panels")
        if table is None:
            return {}
        if not isinstance(table.value, dict) or not table.value:
            self.error(table, "panels must be a mapping from panel names to panels, for instance 'a: {...}'")
            return {}
        if only is not None and only not in table.value:
            self.errors.append(
                (
                    "--only",
                    f"--only {only}: there is no panel '{only}'{nearest(only, table.value)} "
                    f"(panels: {', '.join(table.value)})",
                )
            )
        found: dict[str, Panel] = {}
        for name in table.value:
            node = self.like(table, name, ())
            if node is None:
                continue
            self.keys(node, PANEL_KEYS, "a panel")
            if isinstance(node.value, dict):
                panel = self.panel(root, name, node)
                if panel is not None and only in (None, name):
                    found[name] = panel
        return found

    def like(self, table: Node, name: str, chain: tuple[str, ...]) -> Node | None:
        """A panel laid over the panel it is ``like``."""
        node = table.value[name]
        other = node.get("like")
        if other is None:
            return node
        if other.value not in table.value or other.value in (*chain, name):
            reason = "is like itself" if other.value in (*chain, name) else "does not exist"
            self.error(other, f"like: panel '{other.value}' {reason}{nearest(other.value, table.value)}")
            return None
        base = self.like(table, other.value, (*chain, name))
        return None if base is None else nodes.merge(base, node)

    def panel(self, root: Node, name: str, node: Node) -> Panel | None:
        kind = self.choice(node.get("kind"), KINDS, "panel kind", "curves")
        problem = self.problem_name(root.get("problem"), node.get("problem"))
        metrics = registry.problems()[problem].metrics if problem else {}
        y_node = node.get("y")
        y = self.text(y_node, "objective", "y")
        if problem and y not in metrics:
            self.error(
                y_node or node,
                f"'{y}' is not a metric of the problem '{problem}'{nearest(y, metrics)} "
                f"(metrics: {', '.join(metrics)})",
            )
        curves = self.curves(root, node, y)
        if not curves and not self.errors:
            self.error(node, f"panel '{name}' has no curves")
        published = node.get("published")
        options = node.get("options")
        return Panel(
            id=name,
            title=self.text(node.get("title"), what="title"),
            kind=kind,
            x=self.choice(node.get("x"), [*X_AXES, *metrics], "x axis", "round"),
            y=y,
            xscale=self.choice(node.get("xscale"), ("linear", "log"), "scale", "linear"),
            yscale=self.choice(node.get("yscale"), ("linear", "log"), "scale", "linear"),
            xlim=self.limits(node.get("xlim"), "xlim"),
            ylim=self.limits(node.get("ylim"), "ylim"),
            curves=tuple(curves),
            published=tuple(published.plain()) if published and isinstance(published.value, list) else (),
            options=options.plain() if options and isinstance(options.value, dict) else {},
        )

    def problem_name(self, *nodes_: Node | None) -> str:
        """The problem named by the last of the given nodes that names one; a mapping may only change parameters."""
        given = [node for node in nodes_ if node is not None]
        names = [n.get("name") if isinstance(n.value, dict) else n for n in given]
        found = [name for name in names if name is not None]
        if found:
            return self.choice(found[-1], registry.problems(), "problem", "")
        if given:
            self.error(given[0], "the problem needs a 'name'")
        return ""

    def curves(self, root: Node, panel: Node, y: str) -> list[Curve]:
        listed = panel.get("curves")
        if listed is None:
            self.error(panel, "the key 'curves' is missing")
            return []
        if not isinstance(listed.value, list):
            self.error(listed, "curves must be a list; each item starts with 'algorithm:'")
            return []
        made = [c for item in listed.value for c in self.expand(root, panel, item, y)]
        labels = _labels(made)
        return [
            Curve(label=fixed or label, setting=s, select={**select, "label": fixed or label}, role=role)
            for (s, select, role, fixed, _), label in zip(made, labels, strict=True)
        ]

    def expand(self, root: Node, panel: Node, item: Node, y: str) -> list[_Made]:
        """One item of ``curves`` becomes one curve for each point of its sweep."""
        if not isinstance(item.value, dict):
            self.error(item, "a curve is a mapping that starts with 'algorithm:'")
            return []
        name_node = item.get("algorithm")
        if name_node is None:
            self.error(item, "a curve needs an 'algorithm'")
            return []
        table = registry.algorithms()
        names = name_node.value if isinstance(name_node.value, list) else [name_node]
        made: list[_Made] = []
        for one in names:
            if one.value not in table:
                self.error(
                    one,
                    f"'{one.value}' is not an algorithm{nearest(one.value, table)} "
                    f"(`fedrepro list algorithms` shows all)",
                )
                continue
            entry = table[one.value]
            self.keys(item, [*CURVE_KEYS, *entry.parameters()], f"a curve of '{one.value}'")
            for point in self.sweep(item):
                curve = self.curve(root, panel, item, entry, point, y)
                if curve is not None:
                    made.append(curve)
        return made

    def sweep(self, item: Node) -> list[dict[str, Node]]:
        """The points of a curve's sweep: lists are crossed (a grid), lists under ``zip`` run in step."""
        fixed = {k: v for k, v in item.items() if k not in ("algorithm", "zip", "label", "role")}
        grid = [
            [(key, one) for one in node.value] if isinstance(node.value, list) else [(key, node)]
            for key, node in fixed.items()
        ]
        zipped = item.get("zip")
        steps: list[list[tuple[str, Node]]] = [[]]
        if zipped is not None:
            columns = dict(zipped.items())
            lengths = {k: len(v.value) if isinstance(v.value, list) else None for k, v in columns.items()}
            if not columns or None in lengths.values() or len(set(lengths.values())) != 1:
                self.error(
                    zipped,
                    "zip must hold lists of one length, for instance zip: {m: [10, 100], Q1: [100, 10]} "
                    f"(lengths: {', '.join(f'{k} {v}' for k, v in lengths.items())})",
                )
            else:
                both = sorted(set(columns) & set(fixed))
                if both:
                    self.error(zipped, f"'{both[0]}' stands both in zip and beside it; keep one")
                rows = zip(*(v.value for v in columns.values()), strict=True)
                steps = [list(zip(columns, row, strict=True)) for row in rows]
        return [dict(itertools.chain(point, step)) for step in steps for point in itertools.product(*grid)]

    def curve(
        self, root: Node, panel: Node, item: Node, entry: registry.Algorithm, point: dict[str, Node], y: str
    ) -> _Made | None:
        before = len(self.errors)
        problem, problem_params = self.problem(root, panel, point, item)
        dataset, dataset_alias, dataset_params, shape = self.dataset(root, panel, point, item)
        partition, partition_alias, partition_params = self.partition(root, panel, point, item)
        if problem is not None and entry.problem != problem.name:
            self.error(
                item.get("algorithm"), f"'{entry.name}' solves the problem '{entry.problem}', not '{problem.name}'"
            )
        if problem is not None and dataset is not None and dataset.kind != problem.data_kind:
            self.error(
                point.get("dataset") or item,
                f"the dataset '{dataset.name}' holds {dataset.kind}; the problem "
                f"'{problem.name}' needs {problem.data_kind}",
            )
        params = {k: v for k, v in point.items() if k not in CURVE_KEYS and k in entry.parameters()}
        values = {k: v.plain() for k, v in params.items()}
        method = self.attempt(lambda: entry.make(**values), params, item, f"'{entry.name}'")
        given = point.get("partition") or panel.get("partition") or root.get("partition")
        if problem is None or dataset is None or (given is not None and partition is None):
            return None
        facts = {**shape, "P": partition_params.get("P") if partition else 1}
        if problem_params.get("K") is not None:
            facts["K"] = problem_params["K"]
        if method is not None and hasattr(method, "check"):
            self.attempt(lambda: method.check(**facts), params, item, f"'{entry.name}'")
        if problem.check is not None:
            check = problem.check
            where = _params_node(panel.get("problem") or root.get("problem"))
            self.attempt(lambda: check(problem_params, facts), where, item, f"the problem '{problem.name}'")
        rounds = self.count(point.get("rounds") or panel.get("rounds") or root.get("rounds"), "rounds", 1, low=0)
        metrics = self.metrics(root, panel, problem, y)
        if len(self.errors) > before or method is None:
            return None
        full = {f.name: getattr(method, f.name) for f in dataclasses.fields(method)}
        explicit = {k: values[k] for k in full if k in values}
        names = {"dataset": dataset_alias, "partition": partition_alias or ""}
        default_problem = problem_values(root.get("problem"), problem)
        own_rounds = point.get("rounds") or panel.get("rounds")
        setting = Setting(
            series=_series(
                entry.name, explicit, names, problem_params, default_problem, rounds if own_rounds else None
            ),
            problem=problem.name,
            problem_params=problem_params,
            dataset=dataset.name,
            dataset_params=dataset_params,
            partition=partition.name if partition else None,
            partition_params=partition_params,
            algorithm=entry.name,
            params=full,
            rounds=rounds,
            record_every=self.count(root.get("record_every"), "record_every", 1),
            record_dense=self.count(root.get("record_dense"), "record_dense", 20, low=0),
            metrics=metrics,
            artifacts=tuple(n.value for n in self.words(panel.get("artifacts") or root.get("artifacts"), "artifacts")),
            explicit=tuple(explicit),
            names=names,
        )
        select = {**full, **names, **problem_params, "algorithm": entry.name, "series": setting.series}
        role = self.choice(item.get("role"), ("curve", "level"), "role", "curve")
        return (setting, select, role, self.text(item.get("label"), what="label"), explicit)

    def attempt(self, call: Any, params: Mapping[str, Node], item: Node, what: str) -> Any:
        """Call; a ParameterError is reported at the line that set the parameter."""
        try:
            result = call()
            return True if result is None else result
        except ParameterError as error:
            node = params.get(error.name)
            named = error.message.startswith((f"{error.name} ", f"{error.name}="))
            self.error(node or item, f"{what}: {error.message if named else f'{error.name} {error.message}'}")
        except TypeError as error:
            self.error(item, f"{what}: {error}")
        return None

    # -- what a curve stands on ---------------------------------------------------------------------------------------

    def problem(
        self, root: Node, panel: Node, point: dict[str, Node], item: Node
    ) -> tuple[registry.Problem | None, dict[str, Any]]:
        node = root.get("problem")
        for over in (panel.get("problem"), point.get("problem")):
            if over is not None:
                named = Node({"name": over}, over.place) if not isinstance(over.value, dict) else over
                base = node if node is None or isinstance(node.value, dict) else Node({"name": node}, node.place)
                node = nodes.merge(base, named) if base is not None else named
        name = self.problem_name(node)
        if not name or node is None:
            return None, {}
        problem = registry.problems()[name]
        if isinstance(node.value, dict):
            self.keys(node, ["name", *problem.parameters], f"the problem '{name}'")
        return problem, problem_values(node, problem)

    def dataset(
        self, root: Node, panel: Node, point: dict[str, Node], item: Node
    ) -> tuple[registry.Dataset | None, str, dict[str, Any], dict[str, Any]]:
        node = point.get("dataset") or panel.get("dataset") or root.get("dataset")
        if node is None:
            self.error(item, "no dataset: give 'dataset:' to the curve, the panel or the spec")
            return None, "", {}, {}
        alias, node = self.named(root.get("datasets"), node, "dataset", registry.datasets())
        if node is None:
            return None, alias, {}, {}
        entry = registry.datasets()[self.text(node.get("name"))]
        params = self.entry_params(entry, node, "dataset")
        if params is None:
            return None, alias, {}, {}
        where = dict(node.items())
        if entry.check is not None:
            check = entry.check
            self.attempt(lambda: check(**params), where, node, f"the dataset '{entry.name}'")
        shape = self.attempt(lambda: entry.shape(**params), where, node, f"the dataset '{entry.name}'")
        return entry, alias, params, shape if isinstance(shape, dict) else {}

    def partition(
        self, root: Node, panel: Node, point: dict[str, Node], item: Node
    ) -> tuple[registry.Partition | None, str, dict[str, Any]]:
        node = point.get("partition") or panel.get("partition") or root.get("partition")
        if node is None:
            return None, "", {}
        alias, node = self.named(root.get("partitions"), node, "partition", registry.partitions())
        if node is None:
            return None, alias, {}
        entry = registry.partitions()[self.text(node.get("name"))]
        params = self.entry_params(entry, node, "partition")
        if params is None:
            return None, alias, {}
        _, _, _, shape = self.dataset(root, panel, point, item)
        P, N = params.get("P"), shape.get("N")
        where = dict(node.items())
        if P is not None and (not isinstance(P, int) or P < 1):
            self.error(node.get("P") or node, f"P must be a whole number of at least 1 client, not {P!r}")
        elif P is not None and N is not None and P > N:
            self.error(
                node.get("P") or node,
                f"P = {P} clients are more than the {N} samples of the dataset; use P <= {N} or a larger dataset",
            )
        else:
            if entry.check is not None:
                check, given = entry.check, {k: v for k, v in params.items() if k != "per_trial"}
                call = functools.partial(check, **given, N=N, K=shape.get("K"))
                self.attempt(call, where, node, f"the partition '{entry.name}'")
            return entry, alias, params
        return None, alias, params

    def named(self, table: Node | None, node: Node, what: str, entries: Mapping[str, Any]) -> tuple[str, Node | None]:
        """Resolve a name of the spec's own table, a registered name, or a mapping with a name."""
        if isinstance(node.value, dict):
            alias = self.text(node.get("name"), what=f"the {what}'s name")
        else:
            alias = str(node.value)
            known = [k for k, _ in table.items()] if table is not None else []
            own = table.get(alias) if table is not None else None
            if own is None and alias not in entries:
                valid = [*known, *entries]
                self.error(node, f"'{alias}' is not a {what}{nearest(alias, valid)} (valid: {', '.join(valid)})")
                return alias, None
            node = own if own is not None else Node({"name": node}, node.place)
        if not isinstance(node.value, dict):
            self.error(node, f"a {what} is a mapping with a 'name', for instance {{name: {next(iter(entries))}}}")
            return alias, None
        name = node.get("name")
        if name is None:
            self.error(node, f"the {what} '{alias}' needs a 'name' (valid: {', '.join(entries)})")
            return alias, None
        if name.value not in entries:
            self.error(
                name, f"'{name.value}' is not a {what}{nearest(name.value, entries)} (valid: {', '.join(entries)})"
            )
            return alias, None
        return alias, node

    def entry_params(self, entry: Any, node: Node, what: str) -> dict[str, Any] | None:
        defaults = entry.parameters()
        extra = ["per_trial"] if what == "partition" else []
        before = len(self.errors)
        self.keys(node, ["name", *extra, *defaults], f"the {what} '{entry.name}'")
        given = {k: v.plain() for k, v in node.items() if k != "name"}
        values = {**defaults, **given}
        for key, value in values.items():
            if value is dataclasses.MISSING:
                self.error(node, f"the {what} '{entry.name}' needs '{key}'")
        return None if len(self.errors) > before else values

    def metrics(self, root: Node, panel: Node, problem: registry.Problem, y: str) -> tuple[str, ...]:
        asked = [*self.words(root.get("metrics"), "metrics"), *self.words(panel.get("metrics"), "metrics")]
        for node in asked:
            if node.value not in problem.metrics:
                self.error(
                    node,
                    f"'{node.value}' is not a metric of the problem '{problem.name}'"
                    f"{nearest(node.value, problem.metrics)} (metrics: {', '.join(problem.metrics)})",
                )
        wanted = {y, *problem.default_metrics, *(n.value for n in asked)}
        for _, other in (root.get("panels") or Node({}, root.place)).items():
            for axis in ("x", "y"):
                if isinstance(getattr(other.get(axis), "value", None), str):
                    wanted.add(other.get(axis).value)  # type: ignore[union-attr]
        return tuple(m for m in problem.metrics if m in wanted)

    # -- claims ------------------------------------------------------------------------------------------------------

    def claims(self, node: Node | None, panels: dict[str, Panel], only: str | None) -> list[Claim]:
        if node is None:
            return []
        if not isinstance(node.value, list):
            self.error(node, "claims must be a list")
            return []
        found: list[Claim] = []
        seen: set[str] = set()
        for item in node.value:
            before = len(self.errors)
            self.keys(item, CLAIM_KEYS, "a claim")
            values = {key: self.text(item.get(key), what=key) for key in CLAIM_KEYS}
            for key in ("id", "says", "where", "panel", "check"):
                if isinstance(item.value, dict) and not values[key]:
                    self.error(item, f"a claim needs '{key}'")
            if values["id"] in seen:
                self.error(item.get("id"), f"the claim id '{values['id']}' is used twice")
            seen.add(values["id"])
            if only is not None and only != values["panel"]:
                continue
            if len(self.errors) > before:
                continue
            if values["panel"] not in panels:
                if not self.errors:
                    self.error(
                        item.get("panel"),
                        f"there is no panel '{values['panel']}'"
                        f"{nearest(values['panel'], panels)} (panels: {', '.join(panels)})",
                    )
                continue
            claim = Claim(**values)
            for message in language.problems(claim, panels) if not self.errors else ():
                if only is None or "there is no panel" not in message:
                    self.error(item.get("check"), message)
            if len(self.errors) == before:
                found.append(claim)
        return found


_Made = tuple[Setting, dict[str, Any], str, str, dict[str, Any]]


def problem_values(node: Node | None, problem: registry.Problem) -> dict[str, Any]:
    """Every parameter of the problem: its defaults with the spec's values over them."""
    given = {k: v.plain() for k, v in node.items() if k != "name"} if node is not None else {}
    return {**problem.parameters, **{k: v for k, v in given.items() if k in problem.parameters}}


def _series(
    algorithm: str,
    explicit: Mapping[str, Any],
    names: Mapping[str, str],
    problem: Mapping[str, Any],
    default_problem: Mapping[str, Any],
    rounds: int | None,
) -> str:
    """The setting's name in the results: algorithm, what the spec sets, dataset, partition, and what else differs."""
    changed = {k: v for k, v in problem.items() if default_problem.get(k) != v}
    words = [algorithm, *(f"{k}={_short(v)}" for k, v in explicit.items())]
    words += [f"@ {names['dataset']}", *([f"/ {names['partition']}"] if names["partition"] else [])]
    words += [f"{k}={_short(v)}" for k, v in changed.items()] + ([f"rounds={rounds}"] if rounds is not None else [])
    return " ".join(words)


def _labels(made: list[_Made]) -> list[str]:
    """A curve is named by its method and by what varies among the curves of the panel."""
    table = registry.algorithms()
    labels = []
    for setting, select, _, _, explicit in made:
        same = [other for other in made if other[0].algorithm == setting.algorithm]
        keys = dict.fromkeys(k for other in same for k in other[4])
        words = [table[setting.algorithm].label]
        for key in keys:
            shown = {_short(other[4].get(key)) for other in same}
            if len(shown) > 1 and explicit.get(key) is not None:
                words.append(f"{key}={_short(explicit[key])}")
        for axis in ("dataset", "partition"):
            if len({other[0].names[axis] for other in made}) > 1:
                words.append(setting.names[axis])
        for key in setting.problem_params:
            if len({_short(other[0].problem_params.get(key)) for other in made}) > 1:
                words.append(f"{key}={_short(select[key])}")
        labels.append(" ".join(words))
    return labels


def _params_node(node: Node | None) -> dict[str, Node]:
    return dict(node.items()) if node is not None else {}


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _kind(value: Any) -> str:
    names = {dict: "a mapping", list: "a list", str: f"the text '{value}'", type(None): "empty", bool: "true or false"}
    return names.get(type(value), f"the number {value}")


def _by_place(entry: tuple[str, str]) -> tuple[str, int, int]:
    parts = entry[0].rsplit(":", 2)
    return (parts[0], int(parts[1]), int(parts[2])) if len(parts) == 3 and parts[2].isdigit() else (entry[0], 0, 0)
