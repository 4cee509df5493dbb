"""From a YAML file to a Figure: every key checked, every sweep expanded, all errors reported at once.

``keys`` describes every key of the format; CONTRIBUTING shows how to add a figure.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path

from fedrepro import registry
from fedrepro.errors import nearest
from fedrepro.spec import axes, claim_grammar, keys, nodes, overrides, panels
from fedrepro.spec.collect import Collector
from fedrepro.spec.expand import MOST_ROUNDS, Expander, Recording
from fedrepro.spec.model import Claim, Curve, Figure, Panel
from fedrepro.spec.nodes import Node, SpecErrors
from fedrepro.spec.resolve import Resolver

MOST_TRIALS = 10_000
MOST_RUNS = 20_000
"""What a figure may ask for, at most: far beyond what is sensible, and before it takes memory or time to plan."""


def load(path: Path, tier: str, sets: Iterable[str] = ()) -> Figure:
    """Read, override, check and expand one spec at one tier; raises SpecErrors with every error found."""
    root = nodes.read(path)
    return build(root, str(path), tier, sets)


def build(root: Node, path: str, tier: str, sets: Iterable[str] = ()) -> Figure:
    """As ``load``, from nodes already read."""
    if not isinstance(root.value, dict):
        raise SpecErrors([f"{root.place}: a spec is a mapping; start with 'paper:' and 'figure:'"])
    return _figure(Collector(path), root, tier, list(sets))


def _slug(collect: Collector, node: Node | None, what: str) -> str:
    """A name that files and folders get."""
    told, name = collect.told, collect.text(node, what)
    if node is not None and collect.told == told:
        collect.slug(name, node, what)
    return name


def _figure(collect: Collector, root: Node, tier: str, sets: Sequence[str]) -> Figure:
    collect.keys(root, keys.SPEC, "a spec")
    _check_tiers(collect, root)
    paper_trials, wanted_trials = (_trials(_at_tier(root, one)) for one in ("paper", tier))
    root = overrides.apply(collect, _at_tier(root, tier), sets, tuple(keys.SPEC))
    for key in keys.required(keys.SPEC):
        if root.get(key) is None:
            collect.error(root, f"the key '{key}' is missing")
    paper, name = (_slug(collect, root.get(key), key) for key in ("paper", "figure"))
    resolve = Resolver(collect, root)
    resolve.tables()
    recording = Recording(
        rounds=collect.count(root.get("rounds"), "rounds", 1, low=0, most=MOST_ROUNDS),
        every=collect.count(root.get("record_every"), "record_every", 1),
        dense=collect.count(root.get("record_dense"), "record_dense", 20, low=0),
    )
    collect.count(root.get("queue"), "queue", 1)
    trials = collect.count(root.get("trials"), "trials", 1, most=MOST_TRIALS)
    read = _Panels(collect, root, resolve, Expander(collect, root, resolve, recording))
    found = read.panels()
    figure = Figure(
        paper=paper,
        figure=name,
        title=collect.text(root.get("title"), "title"),
        source=collect.text(root.get("source"), "source"),
        tier=tier,
        path=collect.path,
        trials=trials,
        wanted_trials=trials if wanted_trials is None else wanted_trials,
        paper_trials=trials if paper_trials is None else paper_trials,
        panels=tuple(found.values()),
        claims=tuple(_claims(collect, root, found, bool(sets))),
        columns=collect.count(root.get("columns"), "columns", 2, most=100),
        note=collect.text(root.get("note"), "note"),
        sets=tuple(sets),
        sizes=resolve.sizes(),
    )
    runs = len(figure.settings()) * trials
    if runs > MOST_RUNS:
        said = f"{len(figure.settings()):,} settings x {trials:,} trials are {runs:,} runs"
        collect.error(root.get("trials"), f"{said}; a figure has at most {MOST_RUNS:,}")
    collect.raise_all()
    return figure


# -- tiers and options -------------------------------------------------------------------------------------------------


def _check_tiers(collect: Collector, root: Node) -> None:
    tiers = root.get("tiers")
    if tiers is not None:
        collect.keys(tiers, keys.TIER, "tiers")
        for _, one in tiers.items():
            if one.value is not None:
                collect.keys(one, [k for k in keys.SPEC if k not in ("tiers", "paper", "figure")], "a tier")


def _at_tier(root: Node, tier: str) -> Node:
    """The spec with the tier's overrides laid on it."""
    tiers = root.get("tiers")
    override = tiers.get(tier) if tiers is not None else None
    return nodes.merge(root, override) if override is not None and isinstance(override.value, dict) else root


def _trials(root: Node) -> int | None:
    value = getattr(root.get("trials"), "value", 0)
    return value if isinstance(value, int) else None


# -- panels ------------------------------------------------------------------------------------------------------------


class _Panels:
    """Reads the panels of a spec, tier and options laid on it."""

    def __init__(self, collect: Collector, root: Node, resolve: Resolver, expand: Expander) -> None:
        self.collect = collect
        self.root = root
        self.resolve = resolve
        self.expand = expand

    def panels(self) -> dict[str, Panel]:
        """The panels by name, those left out in which something is wrong."""
        table = self.root.get("panels")
        if table is None:
            return {}
        if not isinstance(table.value, dict) or not table.value:
            self.collect.error(table, "panels must be a mapping from panel names to panels, for instance 'a: {...}'")
            return {}
        found: dict[str, Panel] = {}
        for name, own in table.value.items():
            told = self.collect.told
            self.collect.slug(name, own.key or own, "the name of a panel")
            node = self._like(table, name, ())
            if node is None:
                continue
            self.collect.keys(node, keys.PANEL, "a panel")
            if not isinstance(node.value, dict):
                continue
            panel = self._panel(name, node)
            if self.collect.told == told:
                self._check(panel, node)
            if self.collect.told == told:
                found[name] = panel
        return found

    def _like(self, table: Node, name: str, chain: tuple[str, ...]) -> Node | None:
        """A panel laid over the panel it is ``like``."""
        node = table.value[name]
        other = node.get("like")
        if other is None:
            return node
        wanted = str(other.plain())
        if wanted not in table.value or wanted in (*chain, name):
            reason = "is like itself" if wanted in (*chain, name) else "does not exist"
            self.collect.error(other, f"like: panel '{wanted}' {reason}{nearest(wanted, table.value)}")
            return None
        base = self._like(table, wanted, (*chain, name))
        return None if base is None else nodes.merge(base, node)

    def _panel(self, name: str, node: Node) -> Panel:
        collect, told = self.collect, self.collect.told
        problem = self.resolve.problem_name(self.root.get("problem"), node.get("problem"))
        metrics = registry.problems()[problem].metrics if problem else {}
        y = collect.text(node.get("y"), "y", "objective")
        if problem and y not in metrics:
            collect.error(
                node.get("y") or node,
                f"'{y}' is not a metric of the problem '{problem}'{nearest(y, metrics)} "
                f"(metrics: {', '.join(metrics)})",
            )
        curves = self.expand.curves(node, y)
        if problem and not curves and collect.told == told:
            collect.error(node, f"panel '{name}' has no curves")
        panel = Panel(
            id=name,
            title=collect.text(node.get("title"), "title"),
            kind=collect.choice(node.get("kind"), panels.KINDS, "panel kind", "curves"),
            x=collect.choice(node.get("x"), [*axes.AXES, *metrics], "x axis", "round") if problem else "round",
            y=y,
            xscale=collect.choice(node.get("xscale"), keys.SCALES, "scale", "linear"),
            yscale=collect.choice(node.get("yscale"), keys.SCALES, "scale", "linear"),
            xlim=collect.limits(node.get("xlim"), "xlim"),
            ylim=collect.limits(node.get("ylim"), "ylim"),
            curves=tuple(curves),
            published=collect.listed(node.get("published"), "published"),
            options=collect.mapping(node.get("options"), "options"),
        )
        along = panel.kind == "curves" and axes.of(panel).along
        return dataclasses.replace(panel, curves=tuple(_with_role(curve, along) for curve in curves))

    def _check(self, panel: Panel, node: Node) -> None:
        """Tell, at the option that is wrong, why a panel could not be drawn whatever its results."""
        options = node.get("options")
        for error in panels.problems(panel):
            own = options.get(error.name) if options is not None else None
            self.collect.error(own or node.get(error.name) or node, str(error))


def _with_role(curve: Curve, along: bool) -> Curve:
    """The curve; one without a role is a level where curves run along the axis and its method has no rounds."""
    level = along and registry.methods()[curve.setting.algorithm].cls.one_shot
    return curve if curve.role else dataclasses.replace(curve, role="level" if level else "curve")


# -- claims ------------------------------------------------------------------------------------------------------------


def _claims(collect: Collector, root: Node, found: dict[str, Panel], changed: bool) -> list[Claim]:
    """The claims of a spec whose intact panels are ``found``; checks that read broken ones are not looked at.

    Of a spec ``changed`` by options a check may read what is no longer there: the claim is then not applicable.
    """
    listed = root.get("claims")
    if listed is None:
        return []
    if not isinstance(listed.value, list):
        collect.error(listed, "claims must be a list")
        return []
    table = root.get("panels")
    named = [name for name, _ in table.items()] if table is not None else []
    claims: list[Claim] = []
    for item in listed.value:
        told = collect.told
        collect.keys(item, keys.CLAIM, "a claim")
        values = {key: collect.text(item.get(key), key) for key in keys.CLAIM}
        for key in keys.required(keys.CLAIM):
            if isinstance(item.value, dict) and not values[key]:
                collect.error(item, f"a claim needs '{key}'")
        if values["id"] and values["id"] in {claim.id for claim in claims}:
            collect.error(item.get("id"), f"the claim id '{values['id']}' is used twice")
        if values["theorem"] and values["theorem"] not in keys.THEOREM:
            words = ", ".join(keys.THEOREM)
            near = nearest(values["theorem"], keys.THEOREM)
            collect.error(
                item.get("theorem"), f"'{values['theorem']}' is not a part of a theorem{near} (one of: {words})"
            )
        if values["faster"] and values["theorem"] != "promise":
            collect.error(item.get("faster"), "'faster' belongs to a claim with `theorem: promise`")
        claim = Claim(**values)
        if claim.panel and claim.panel not in named:
            collect.error(
                item.get("panel"),
                f"there is no panel '{claim.panel}'{nearest(claim.panel, named)} (panels: {', '.join(named)})",
            )
        if collect.told == told and not claim_grammar.panels_of(claim) & (set(named) - set(found)):
            for key in [key for key in ("check", "faster") if values[key]]:
                messages = list(
                    claim_grammar.problems(dataclasses.replace(claim, check=values[key]), found, axes.CLAIMED)
                )
                if messages and changed:
                    claim = dataclasses.replace(claim, inapplicable=messages[0])
                for message in () if changed else messages:
                    collect.error(item.get(key), message)
        claims.append(claim)
    return claims
