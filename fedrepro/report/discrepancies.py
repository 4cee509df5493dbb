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

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedrepro import registry
from fedrepro.errors import ParameterError, nearest
from fedrepro.spec import nodes
from fedrepro.spec.axes import CLAIMED
from fedrepro.spec.find import DISCREPANCIES, specs
from fedrepro.spec.nodes import Node, SpecErrors

TOP_KEYS = ("paper", "source", "rows")
TEXTS = ("id", "topic", "paper", "code", "taken")
ROW_KEYS = (*TEXTS, "variant", "no_variant", "run", "figures", "effect", "note")
EFFECT_KEYS = (
    "figure", "panel", "taken", "other", "other_panel", "metric", "other_metric", "at", "reach", "axis",
)  # fmt: skip
KINDS = ("algorithm", "problem", "dataset", "partition")


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
    if reader.errors:
        raise SpecErrors(reader.errors)
    return rows


class _Reader:
    """Reads a file and collects errors, each with its place and the text there."""

    def __init__(self, path: Path, experiments: Path) -> None:
        self.path, self.errors = path, list[str]()
        self.known = [f"{p.parent.name}/{p.stem}" for p in specs(experiments)]
        self.paper = path.parent.name

    def error(self, at: Node | nodes.Place, message: str) -> None:
        place = at.place if isinstance(at, Node) else at
        message = f"{place}: {message}" + (f"  (in: {place.text})" if place.text else "")
        if message not in self.errors:
            self.errors.append(message)

    def mapping(self, node: Node, valid: Iterable[str], what: str) -> bool:
        """Return whether the node is a mapping; report keys that are not keys of ``what``."""
        if not isinstance(node.value, dict):
            self.error(node, f"{what} must be a mapping of keys to values")
            return False
        valid = list(valid)
        for key, child in node.items():
            if key not in valid:
                message = f"'{key}' is not a key of {what}{nearest(key, valid)} (valid: {', '.join(valid)})"
                self.error(child.key or child, message)
        return True

    def text(self, node: Node, key: str, what: str, needed: bool = True) -> str:
        child = node.get(key)
        if child is None or child.value is None:
            if needed:
                self.error(child or node, f"{what} needs '{key}'")
            return ""
        if not isinstance(child.value, str) or not child.value.strip():
            self.error(child, f"{key} must be text, not {child.plain()!r}; put it in quotes")
            return ""
        return child.value.strip()

    def items(self, node: Node | None, what: str) -> list[Node]:
        """Return the items of a list; a single mapping or word counts as a list of one."""
        if node is None:
            return []
        if isinstance(node.value, list):
            return node.value
        if isinstance(node.value, (dict, str)):
            return [node]
        self.error(node, f"{what} must be a list")
        return []

    def rows(self, root: Node) -> list[Discrepancy]:
        if not self.mapping(root, TOP_KEYS, "a file of discrepancies"):
            return []
        paper = root.get("paper")
        if paper is None or paper.value != self.paper:
            given = f"'{paper.value}'" if paper else "missing"
            self.error(paper or root, f"paper is {given}; the file is in the folder of the paper '{self.paper}'")
        table = root.get("rows")
        if table is None or not isinstance(table.value, list):
            self.error(table or root, "a file of discrepancies needs 'rows', a list of rows")
            return []
        rows: list[Discrepancy] = []
        for item in table.value:
            row = self.row(item)
            if row and row.id in {other.id for other in rows}:
                self.error(item.get("id") or item, f"the id '{row.id}' is used twice")
            rows += [row] if row else []
        return rows

    def row(self, item: Node) -> Discrepancy | None:
        if not self.mapping(item, ROW_KEYS, "a row"):
            return None
        texts = {key: self.text(item, key, "a row") for key in TEXTS}
        variants = [v for n in self.items(item.get("variant"), "variant") if (v := self.variant(n))]
        reason = self.text(item, "no_variant", "a row", needed=False)
        if (item.get("variant") is None) == (item.get("no_variant") is None):
            self.error(item, "a row needs 'variant', or 'no_variant' with the reason; one of the two")
        figure, sets = self.run(item.get("run"))
        return Discrepancy(
            self.paper, texts["id"], texts["topic"], texts["paper"], texts["code"], texts["taken"],
            tuple(variants), reason, figure, sets, self.figures(item),
            tuple(e for n in self.items(item.get("effect"), "effect") if (e := self.effect(n))),
            self.text(item, "note", "a row", needed=False),
        )  # fmt: skip

    def variant(self, node: Node) -> Variant | None:
        kind = next((k for k in KINDS if node.get(k)), None)
        if kind is None:
            self.error(node, f"a variant names one of {', '.join(KINDS)}, for instance {{algorithm: fedcavg-literal}}")
            return None
        named = node.value[kind]
        table = _TABLES[kind]()
        if named.value not in table:
            self.error(
                named,
                f"'{named.value}' is not {'an' if kind == 'algorithm' else 'a'} {kind}{nearest(named.value, table)}",
            )
            return None
        entry = table[named.value]
        parameters = entry.parameters if kind == "problem" else entry.parameters()
        self.mapping(node, [kind, *parameters], f"the {kind} '{named.value}'")
        values = {k: v.plain() for k, v in node.items() if k in parameters}
        try:
            _try(kind, entry, values)
        except ParameterError as error:
            self.error(node.get(error.name) or node, str(error))
        return Variant(kind, str(named.value), values)

    def figures(self, item: Node) -> tuple[str, ...]:
        node = item.get("figures")
        if node is None:
            self.error(item, "a row needs 'figures': a list of figures, or all")
            return ()
        if node.value == "all":
            return tuple(name for name in self.known if name.startswith(f"{self.paper}/"))
        return tuple(name for item in self.items(node, "figures") if (name := self.name(item)))

    def name(self, node: Node) -> str:
        """Return ``paper/figure`` of an existing figure; without a paper it is one of the file's paper."""
        name = node.value if "/" in str(node.value) else f"{self.paper}/{node.value}"
        if name not in self.known:
            self.error(node, f"there is no figure '{name}'{nearest(name, self.known)} (`fedrepro list figures`)")
            return ""
        return str(name)

    def run(self, node: Node | None) -> tuple[str, tuple[str, ...]]:
        if node is None or not self.mapping(node, ("figure", "set"), "run"):
            return "", ()
        figure = node.get("figure")
        if figure is None:
            self.error(node, "run needs 'figure'")
            return "", ()
        return self.name(figure), tuple(str(n.value) for n in self.items(node.get("set"), "set"))

    def effect(self, node: Node) -> Effect | None:
        if not self.mapping(node, EFFECT_KEYS, "an effect"):
            return None
        missing = [key for key in ("figure", "panel", "taken", "other") if node.get(key) is None]
        for key in missing:
            self.error(node, f"an effect needs '{key}'")
        for key, kinds, what in (("at", int, "a round"), ("reach", (int, float), "a number")):
            number = node.get(key)
            if number is not None and not isinstance(number.value, kinds):
                self.error(number, f"{key} must be {what}, not {number.plain()!r}")
        axis = node.get("axis")
        if axis is not None and axis.value not in CLAIMED:
            self.error(axis, f"'{axis.value}' is not an axis{nearest(axis.value, CLAIMED)}")
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


def _try(kind: str, entry: Any, values: Mapping[str, Any]) -> None:
    """Raise ParameterError for invalid values, as far as they can be checked without data."""
    if kind == "algorithm":
        entry.make(**values)
    elif kind == "problem":
        entry.check({**entry.parameters, **values}, {})
    else:
        entry.make(**values)


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else str(value)
