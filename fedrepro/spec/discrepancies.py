"""Discrepancies: places where a paper is silent, contradicts itself or differs from its released program.

``experiments/<paper>/discrepancies.yaml`` contains one row for every such place: what the paper says, what the released
program does, our reading, and which kind of difference it is (``KINDS``). A row can name two curves of a figure that
differ only in this choice; if results exist, its effect is computed from them.

    paper: fedc
    rows:
      - id: fedc.1
        kind: setting
        topic: step size of the local W steps
        paper: "d = L_W"
        code: "d = 5 L_W"
        taken: "d = 5 L_W; the printed one diverges on data that is not i.i.d."
        default: released
        settings:
          - {name: printed-step, from: printed, change: {algorithm: fedcavg, gamma2: 1.0, where: {partition: uniform}}}
        figures: [fig1, beyond/fedcavg_step]         # or all
        effect:
          - {figure: beyond/fedcavg_step, panel: b, taken: {label: "d = 5 L_W"}, other: {label: "d = L_W"}}

A row of the kind ``setting`` lists the other values under ``settings``; ``default`` is the origin of the value that is
run (``ORIGINS``). Each has a name, its origin (``from``) and one change or a list of changes; ``alone: true`` keeps it
out of the sets of all printed or all released values, and ``instead_of`` is the origin of the value that it replaces if
that is not the row's ``default``. A change names methods (a list is allowed), a problem, a dataset
or a partition, and values of their parameters; with a method, ``rounds`` too. It applies to every curve of the row's
figures on which they are used, or to those that ``where`` selects by any of their values, by the name of a panel, or by
a registered dataset or partition (``fedrepro.alternatives.apply``). Rows of other kinds have ``variant``, a registered
name with parameters that runs the other reading. Either kind can have ``no_variant`` instead: the reason why no other
reading can be run.

An effect compares the panel's metric (or ``metric``, and ``other_metric`` for the other curve) at the end, or at round
``at``, or the first value of ``axis`` (default ``round``) at which the metric reaches ``reach``. ``taken`` and
``other`` each select one curve by any of its values; ``other_panel`` is the panel of the other one, if it differs.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedrepro import registry
from fedrepro.errors import UserError, nearest
from fedrepro.spec import nodes
from fedrepro.spec.axes import CLAIMED
from fedrepro.spec.error_collector import Collector
from fedrepro.spec.find import DISCREPANCIES, DISCREPANCY, specs
from fedrepro.spec.nodes import Node, SpecErrors

TOP_KEYS = ("paper", "source", "rows")
TEXTS = ("id", "topic", "paper", "code", "taken")
ROW_KEYS = (
    *("id", "kind", "topic", "paper", "code", "taken", "default", "settings", "variant", "no_variant", "run"),
    *("figures", "effect", "note"),
)
SETTING = "setting"
KINDS: Mapping[str, str] = {
    SETTING: "a number or a choice of a run that the paper leaves open, or that text and program give differently",
    "text": "what a sentence, a caption or a formula means, where the paper contradicts or misprints itself",
    "measurement": "what is measured or counted; every reading can be read from the same runs",
    "trials": "how many trials are run",
    "values drawn": "which values of a parameter the curves of a figure have",
    "drawing": "how numbers are drawn, or where",
    "theorem": "a condition or a constant of a theorem, outside the experiments",
    "reference": "what is left out, or what a result is compared with",
    "same numbers": "every reading gives the same numbers",
    "other experiment": "the other reading belongs to another experiment",
    "program": "the released program itself: parts that do not run or are not used",
}
"""The kinds of discrepancies. Only a setting changes what is run for a claim."""
ORIGINS: Mapping[str, str] = {
    "printed": "the paper, or the other version of the same work, prints it",
    "released": "the released program has it",
    "ours": "neither has it",
    "inferred": "it was found by fitting the paper's printed results",
}
"""Where the value of a setting comes from."""
ROUNDS = "rounds"
"""The rounds of a run, which a change of methods can set like a parameter."""


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
class Change:
    """Other values of the parameters of methods, or of a problem, dataset or partition.

    kind : what ``names`` are registered as. where : values by which it selects curves.
    """

    kind: str
    names: tuple[str, ...]
    values: Mapping[str, Any]
    where: Mapping[str, Any]

    @property
    def variants(self) -> list[Variant]:
        """Each name with the other values."""
        return [Variant(self.kind, name, self.values) for name in self.names]

    @property
    def valued(self) -> list[str]:
        """Each parameter with its other value: ``Qhat = 1``."""
        return [f"{name} = {_plain(value)}" for name, value in self.values.items()]

    @property
    def parameters(self) -> set[tuple[str, str]]:
        """The parameters that it changes, each with the name of its method, problem, dataset or partition."""
        return {(name, parameter) for name in self.names for parameter in self.values}

    def __str__(self) -> str:
        where = ", ".join(f"{k} = {_plain(v)}" for k, v in self.where.items())
        return f"{' and '.join(self.names)} with {', '.join(self.valued)}" + (f" where {where}" if where else "")


@dataclass(frozen=True)
class Alternative:
    """Another value of an open setting.

    id : that of its row and its name. origin : where it comes from. alone : it is never applied together with the other
    values of its origin, because it excludes one of them. replaces : the origin of the value that is run instead of it.
    """

    id: str
    origin: str
    changes: tuple[Change, ...]
    alone: bool = False
    replaces: str = ""

    @property
    def row(self) -> str:
        """The id of its row: ``gcca.1`` for ``gcca.1.nu-0.01``."""
        return ".".join(self.id.split(".")[:2])

    @property
    def parameters(self) -> set[tuple[str, str]]:
        """The parameters that it changes (``Change.parameters``)."""
        return set().union(*(change.parameters for change in self.changes))

    def __str__(self) -> str:
        return "; ".join(map(str, self.changes))


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
    """One row of a file of discrepancies.

    kind : one of ``KINDS``. default : the origin of the value that is run, '' if it is no setting. figures : names
    ``paper/figure``. command : runs the other reading.
    """

    paper: str
    id: str
    kind: str
    topic: str
    says: str
    code: str
    taken: str
    default: str
    alternatives: tuple[Alternative, ...]
    variants: tuple[Variant, ...]
    no_variant: str
    figure: str
    sets: tuple[str, ...]
    figures: tuple[str, ...]
    effects: tuple[Effect, ...]
    note: str = ""

    def leaves_open(self, alternative: Alternative) -> bool:
        """Whether the paper prints no value of what one of its alternatives changes: not ours, this or another one."""
        printed = (other for other in self.alternatives if other.origin == "printed")
        return alternative.replaces != "printed" and all(
            other is not alternative and other.parameters.isdisjoint(alternative.parameters) for other in printed
        )

    @property
    def command(self) -> str:
        """The command that computes a figure with the other reading, beside the existing results."""
        if self.alternatives:
            return f"fedrepro settings run --only {self.id}"
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


def mentioned(texts: Iterable[str], rows: Iterable[Discrepancy]) -> list[Discrepancy]:
    """Return the rows whose ids the texts contain."""
    ids = {found[0] for text in texts for found in DISCREPANCY.finditer(text)}
    return [row for row in rows if row.id in ids]


def find(name: str, experiments: Path) -> Discrepancy:
    """Return the row with this id. Raises UserError if there is none."""
    rows = {row.id: row for row in load_all(experiments)}
    if name not in rows:
        raise UserError(f"there is no discrepancy '{name}'{nearest(name, rows)}")
    return rows[name]


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
        kind = self.choice(item.get("kind"), KINDS, "a kind of discrepancy", "")
        if item.get("kind") is None:
            self.error(item, f"a row needs 'kind', one of {', '.join(KINDS)}")
        alternatives = self.alternatives(item, texts["id"], kind)
        variants = [variant for node in self.items(item.get("variant"), "variant") if (variant := self.variant(node))]
        variants += [variant for other in alternatives for change in other.changes for variant in change.variants]
        other = "settings" if kind == SETTING else "variant"
        if (item.get(other) is None) == (item.get("no_variant") is None):
            self.error(item, f"a row needs '{other}', or 'no_variant' with the reason; one of the two")
        return Discrepancy(
            self.paper, texts["id"], kind, texts["topic"], texts["paper"], texts["code"], texts["taken"],
            self.choice(item.get("default"), ORIGINS, "a value of 'default'", ""), alternatives, tuple(variants),
            self.text(item.get("no_variant"), "no_variant"), *self.run(item.get("run")), self.figures(item),
            tuple(effect for node in self.items(item.get("effect"), "effect") if (effect := self.effect(node))),
            self.text(item.get("note"), "note"),
        )  # fmt: skip

    def alternatives(self, item: Node, row: str, kind: str) -> tuple[Alternative, ...]:
        """Return the other values of an open setting."""
        for key in ("default", "settings"):
            if kind != SETTING and item.get(key) is not None:
                self.error(item.get(key), f"only a row with 'kind: {SETTING}' has '{key}'")
        for key in ("variant", "run"):
            if kind == SETTING and item.get(key) is not None:
                self.error(item.get(key), f"a row with 'kind: {SETTING}' has no '{key}'; list its values in 'settings'")
        if item.get("settings") is not None and item.get("default") is None:
            self.error(item, f"a setting needs 'default', the origin of the value that is run: {', '.join(ORIGINS)}")
        default = self.choice(item.get("default"), ORIGINS, "a value of 'default'", "")
        listed = [self.alternative(node, row, default) for node in self.items(item.get("settings"), "settings")]
        names = [other.id for other in listed]
        for name in {name for name in names if names.count(name) > 1}:
            self.error(item.get("settings"), f"the setting '{name}' is listed twice")
        return tuple(listed)

    def alternative(self, node: Node, row: str, default: str) -> Alternative:
        """Return one other value of an open setting. default : the origin of the row's value that is run."""
        self.keys(node, ("name", "from", "instead_of", "alone", "change"), "a setting")
        for key in ("name", "from", "change"):
            if node.get(key) is None:
                self.error(node, f"a setting needs '{key}'")
        name = self.text(node.get("name"), "name")
        if name:
            self.slug(name, node.get("name"), "the name of a setting")
        changes = [change for part in self.items(node.get("change"), "change") if (change := self.change(part))]
        origin = self.choice(node.get("from"), ORIGINS, "a value of 'from'", "")
        alone = node.get("alone")
        if alone is not None and not isinstance(alone.value, bool):
            self.error(alone, "alone must be true or false")
        replaces = self.choice(node.get("instead_of"), ORIGINS, "a value of 'instead_of'", default)
        return Alternative(f"{row}.{name}", origin, tuple(changes), alone is not None and alone.value is True, replaces)

    def change(self, node: Node) -> Change | None:
        """Return one change, with values that each registered name accepts."""
        kind = next((k for k in _TABLES if node.get(k)), "")
        values = {key: child for key, child in node.items() if key not in (kind, "where")}
        rounds = values.pop(ROUNDS, None) if kind == "algorithm" else None
        self.count(rounds, ROUNDS, 1)
        variants = [self.variant(Node({kind: name, **values}, node.place)) for name in node.several(kind) or [node]]
        where = self.mapping(node.get("where"), "where")
        if not (values or rounds):
            self.error(node, "a change needs a parameter with its other value")
        if not all(variants):
            return None
        plain = {k: v.plain() for k, v in values.items()} | ({ROUNDS: rounds.plain()} if rounds else {})
        return Change(kind, tuple(variant.name for variant in variants if variant), plain, where)

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
        self.choice(node.get("axis"), CLAIMED, "a kind of axis", "")
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
