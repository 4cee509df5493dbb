"""Discrepancies: places where a paper is silent, contradicts itself or differs from its released program.

``experiments/<paper>/discrepancies.yaml`` contains one row for every such place: what the paper says, what the released
program does, our reading, and the variant (a registered name with parameters) that runs the other reading. A row can
name two curves of a figure that differ only in this choice; if results exist, its effect is computed from them.

    paper: fedc
    rows:
      - id: fedc.1
        topic: step size of the local W steps
        paper: "d = L_W"
        code: "d = 5 L_W"
        taken: "d = 5 L_W; the printed one diverges on data that is not i.i.d."
        variant: {algorithm: fedcavg-literal}        # or a list; or no_variant: the reason why there is none
        run: {figure: fedc/fig1, set: ["panels.c.curves.0.gamma2=1.0"]}
        figures: [fig1, beyond/fedcavg_step]         # or all
        effect:
          - {figure: beyond/fedcavg_step, panel: b, taken: {label: "d = 5 L_W"}, other: {label: "d = L_W"}}

An effect compares the panel's metric (or ``metric``, and ``other_metric`` for the other curve) at the end, or at round
``at``, or the first value of ``axis`` (default ``round``) at which the metric reaches ``reach``. ``taken`` and
``other`` each select one curve by any of its values; ``other_panel`` is the panel of the other one, if it differs.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedrepro import registry
from fedrepro.errors import nearest
from fedrepro.spec import nodes
from fedrepro.spec.axes import CLAIMED
from fedrepro.spec.error_collector import Collector
from fedrepro.spec.find import DISCREPANCIES, specs
from fedrepro.spec.nodes import Node, SpecErrors

TOP_KEYS = ("paper", "source", "rows")
TEXTS = ("id", "topic", "paper", "code", "taken")
ROW_KEYS = (*TEXTS, "variant", "no_variant", "run", "figures", "effect", "note")


@dataclass(frozen=True)
class Variant:
    """The other reading in a form that can be run: a registered name of one kind, and values of its parameters."""

    kind: str
    name: str
    values: Mapping[str, Any]

    def __str__(self) -> str:
        values = ", ".join(f"{k}: {_plain(v)}" for k, v in self.values.items())
        return f"{self.kind} {self.name}" + (f" with {values}" if values else "")


@dataclass(frozen=True)
class Effect:
    """Two curves of a panel: the first has our reading, the second the other one."""

    figure: str
    panel: str
    taken: Mapping[str, Any]
    other: Mapping[str, Any]
    other_panel: str = ""
    metric: str = ""
    other_metric: str = ""
    at: int | None = None
    reach: float | None = None
    axis: str = "round"


EFFECT_KEYS = tuple(field.name for field in dataclasses.fields(Effect))


@dataclass(frozen=True)
class Discrepancy:
    """One row of a file of discrepancies. figures : names ``paper/figure``. command : runs the other reading."""

    paper: str
    id: str
    topic: str
    says: str
    code: str
    taken: str
    variants: tuple[Variant, ...]
    no_variant: str
    figure: str
    sets: tuple[str, ...]
    figures: tuple[str, ...]
    effects: tuple[Effect, ...]
    note: str = ""

    @property
    def command(self) -> str:
        """The command that computes a figure with the other reading, beside the existing results."""
        if not self.figure:
            return ""
        sets = " ".join(f"--set '{s}'" for s in self.sets)
        return f"fedrepro run {self.figure} {sets}".rstrip() + (" --results results-other" if sets else "")


def files(experiments: Path) -> list[Path]:
    """Return the files of discrepancies in the experiments folder, in the papers' order."""
    return sorted(experiments.glob(f"*/{DISCREPANCIES}"), key=lambda path: (order(path.parent.name), path))


def order(paper: str) -> int:
    """Return the place of a paper among the papers; other folders come last."""
    papers = list(registry.PAPERS)
    return papers.index(paper) if paper in papers else len(papers)


def load_all(experiments: Path) -> list[Discrepancy]:
    """Return the discrepancies of all papers in order. Raises SpecErrors with the errors of all files."""
    rows: list[Discrepancy] = []
    messages: list[str] = []
    for path in files(experiments):
        try:
            rows += load(path, experiments)
        except SpecErrors as error:
            messages += error.messages
    if messages:
        raise SpecErrors(messages)
    return rows


def load(path: Path, experiments: Path) -> list[Discrepancy]:
    """Return the discrepancies of one paper. Raises SpecErrors with all errors."""
    reader = _Reader(path, experiments)
    rows = reader.rows(nodes.read(path))
    reader.raise_all()
    return rows


class _Reader(Collector):
    """Reads a file and collects errors, each with its place and the text there."""

    def __init__(self, path: Path, experiments: Path) -> None:
        super().__init__(str(path))
        self.known = [f"{p.parent.name}/{p.stem}" for p in specs(experiments)]
        self.paper = path.parent.name

    def required(self, node: Node, key: str) -> str:
        """Return a text that every row has."""
        child = node.get(key)
        text = self.text(child, key).strip()
        if child is None or child.value is None or child.value == "":
            self.error(child or node, f"a row needs '{key}'")
        return text

    def rows(self, root: Node) -> list[Discrepancy]:
        """Return the rows of a file."""
        self.keys(root, TOP_KEYS, "a file of discrepancies")
        paper, table = root.get("paper"), root.get("rows")
        if paper is None or paper.value != self.paper:
            given = f"'{paper.value}'" if paper else "missing"
            self.error(paper or root, f"paper is {given}; the file is in the folder of the paper '{self.paper}'")
        if table is None or not isinstance(table.value, list):
            self.error(table or root, "a file of discrepancies needs 'rows', a list of rows")
            return []
        rows: dict[str, Discrepancy] = {}
        for item in table.value:
            self.keys(item, ROW_KEYS, "a row")
            if not isinstance(item.value, dict):
                continue
            row = self.row(item)
            if row.id in rows:
                self.error(item.get("id") or item, f"the id '{row.id}' is used twice")
            rows[row.id] = row
        return list(rows.values())

    def row(self, item: Node) -> Discrepancy:
        """Return one row."""
        texts = {key: self.required(item, key) for key in TEXTS}
        variants = [variant for node in self.items(item.get("variant"), "variant") if (variant := self.variant(node))]
        if (item.get("variant") is None) == (item.get("no_variant") is None):
            self.error(item, "a row needs 'variant', or 'no_variant' with the reason; one of the two")
        return Discrepancy(
            self.paper, texts["id"], texts["topic"], texts["paper"], texts["code"], texts["taken"], tuple(variants),
            self.text(item.get("no_variant"), "no_variant"), *self.run(item.get("run")), self.figures(item),
            tuple(effect for node in self.items(item.get("effect"), "effect") if (effect := self.effect(node))),
            self.text(item.get("note"), "note"),
        )  # fmt: skip

    def variant(self, node: Node) -> Variant | None:
        """Return another reading, with values that its registered name accepts."""
        kind = next((k for k in _TABLES if node.get(k)), None)
        if kind is None:
            self.error(
                node, f"a variant names one of {', '.join(_TABLES)}, for instance {{algorithm: fedcavg-literal}}"
            )
            return None
        named, table = node.value[kind], _TABLES[kind]()
        if named.value not in table:
            article = "an" if kind == "algorithm" else "a"
            self.error(named, f"'{named.value}' is not {article} {kind}{nearest(named.value, table)}")
            return None
        entry, what = table[named.value], f"the {kind} '{named.value}'"
        parameters = entry.parameters if kind == "problem" else entry.parameters()
        self.keys(node, [kind, *parameters], what)
        values = {k: v.plain() for k, v in node.items() if k in parameters}
        if kind == "problem":  # what can be checked without data
            make = functools.partial(entry.check, {**parameters, **values}, {})
        else:
            make = functools.partial(entry.make, **values)
        self.attempt(make, node.value, node, what)
        return Variant(kind, str(named.value), values)

    def figures(self, item: Node) -> tuple[str, ...]:
        """Return the figures that a row concerns."""
        node = item.get("figures")
        if node is None:
            self.error(item, "a row needs 'figures': a list of figures, or all")
        elif node.value == "all":
            return tuple(name for name in self.known if name.startswith(f"{self.paper}/"))
        return tuple(name for child in self.items(node, "figures") if (name := self.name(child)))

    def name(self, node: Node) -> str:
        """Return ``paper/figure`` of an existing figure; without a paper it is one of the file's paper."""
        name = node.value if "/" in str(node.value) else f"{self.paper}/{node.value}"
        if name not in self.known:
            self.error(node, f"there is no figure '{name}'{nearest(name, self.known)} (`fedrepro list figures`)")
            return ""
        return str(name)

    def run(self, node: Node | None) -> tuple[str, tuple[str, ...]]:
        """Return the figure and the ``--set`` options that run the other reading."""
        if node is None:
            return "", ()
        self.keys(node, ("figure", "set"), "run")
        figure = node.get("figure")
        if figure is None:
            self.error(node, "run needs 'figure'")
            return "", ()
        return self.name(figure), tuple(str(option.value) for option in self.items(node.get("set"), "set"))

    def effect(self, node: Node) -> Effect | None:
        """Return one effect."""
        self.keys(node, EFFECT_KEYS, "an effect")
        missing = [key for key in ("figure", "panel", "taken", "other") if node.get(key) is None]
        for key in missing:
            self.error(node, f"an effect needs '{key}'")
        self.count(node.get("at"), "at", 0, low=0)
        self.choice(node.get("axis"), CLAIMED, "kind of axis", "")
        reach = node.get("reach")
        if reach is not None and not isinstance(reach.value, (int, float)):
            self.error(reach, f"reach must be a number, not {reach.plain()!r}")
        if missing:
            return None
        plain = {key: child.plain() for key, child in node.items() if key in EFFECT_KEYS}
        return Effect(**{**plain, "figure": self.name(node.value["figure"]), "panel": str(plain["panel"])})


_TABLES: dict[str, Callable[[], Mapping[str, Any]]] = {
    "algorithm": registry.methods,
    "problem": registry.problems,
    "dataset": registry.datasets,
    "partition": registry.partitions,
}
"""The registered names of each kind of variant."""


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else str(value)
