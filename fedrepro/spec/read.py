"""Read a YAML file as a Figure: check every key, expand every sweep, and report all errors at once.

``keys`` describes every key of the format; CONTRIBUTING shows how to add a figure.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fedrepro import own_modules, registry
from fedrepro.errors import UserError, nearest
from fedrepro.lexicon.vocabulary import lexicon
from fedrepro.spec import axes, claim_grammar, keys, nodes, overrides, panels, possible_values, readings, words
from fedrepro.spec.error_collector import Collector
from fedrepro.spec.expand import MOST_ROUNDS, Expander, Recording
from fedrepro.spec.model import Claim, Curve, Figure, Panel, Setting
from fedrepro.spec.nodes import Node, SpecErrors
from fedrepro.spec.resolve import Resolver, curve_items
from fedrepro.spec.tiers import TIERS

MOST_TRIALS = 10_000
MOST_RUNS = 20_000
FEWEST_ROUNDS = 3
"""Largest numbers of trials and runs of a figure, far beyond sensible ones, so that planning stays fast; and the rounds
of a spec without a tier ``smoke`` at that tier."""

FOLDERS = (*TIERS, "set", "receipts")
"""Folders of results beside those of the user's own studies, which can therefore not have these names."""


def load(path: Path, tier: str, sets: Iterable[str] = ()) -> Figure:
    """Read, override, check and expand one spec at one tier. Raises SpecErrors with all errors."""
    root = nodes.read(path)
    return build(root, str(path), tier, sets)


def build(root: Node, path: str, tier: str, sets: Iterable[str] = ()) -> Figure:
    """Do the same as ``load`` from nodes already read."""
    if not isinstance(root.value, dict):
        raise SpecErrors([f"{root.place}: a spec must be a mapping; start with 'paper:' and 'figure:'"])
    return _figure(Collector(path), root, tier, list(sets))


def _slug(collect: Collector, node: Node | None, what: str) -> str:
    """Return a name that files and folders can be named after."""
    name, valid = collect.clean(lambda: collect.text(node, what))
    if node is not None and valid:
        collect.slug(name, node, what)
    return str(name)


def _figure(collect: Collector, root: Node, tier: str, sets: Sequence[str]) -> Figure:
    collect.keys(root, keys.SPEC, "a spec")
    _check_tiers(collect, root)
    paper_trials, wanted_trials = (_trials(_at_tier(root, name)) for name in ("paper", tier))
    reduced = tier == TIERS[0] and _override(root, tier) is None
    root = _at_tier(root, tier)
    imported = _import(collect, root)
    _register_installed(collect, root)
    root = overrides.apply(collect, root, sets, tuple(keys.SPEC))
    for key in keys.required(keys.SPEC):
        if root.get(key) is None:
            advice = "; a study of your own has `paper: mine`" if key == "paper" else ""
            collect.error(root, f"the key '{key}' is missing{advice}")
    paper, name = (_slug(collect, root.get(key), key) for key in ("paper", "figure"))
    if paper.lower() in FOLDERS:
        collect.error(root.get("paper"), f"paper must not be '{paper}', a folder of other results; write `paper: mine`")
    resolve = Resolver(collect, root)
    resolve.tables()
    recording = Recording(
        rounds=collect.count(root.get("rounds"), "rounds", 1, low=0, most=MOST_ROUNDS),
        every=collect.count(root.get("record_every"), "record_every", 1),
        dense=collect.count(root.get("record_dense"), "record_dense", 20, low=0),
    )
    collect.count(root.get("queue"), "queue", 1)
    trials = collect.count(root.get("trials"), "trials", 1, most=MOST_TRIALS)
    expand = Expander(collect, root, resolve, recording, changed=bool(sets), imported=imported)
    read = _Panels(collect, root, resolve, expand).panels()
    _check_recorded(collect, root, read)
    claims = tuple(_claims(collect, root, read, bool(sets) or reduced))
    wanted = trials if wanted_trials is None else wanted_trials
    all_ = trials if paper_trials is None else paper_trials
    figure = Figure(
        paper=paper,
        figure=name,
        title=collect.text(root.get("title"), "title"),
        source=collect.text(root.get("source"), "source"),
        tier=tier,
        path=collect.path,
        trials=trials,
        wanted_trials=wanted,
        paper_trials=all_,
        panels=tuple(read.values()),
        claims=claims,
        columns=collect.count(root.get("columns"), "columns", 2, most=100),
        note=collect.text(root.get("note"), "note"),
        sets=tuple(sets),
        sizes=resolve.sizes(),
        adjusted=expand.adjusted(),
        more=_more_trials(claims, read) if wanted >= all_ and not collect.count_of_errors else {},
    )
    each = [figure.trials_of(setting.series) for setting in figure.settings()]
    runs = sum(each)
    if runs > MOST_RUNS:
        or_more = " or more" if max(each) > trials else ""
        counts = f"{len(figure.settings()):,} curves x {trials:,} trials{or_more} are {runs:,} runs"
        collect.error(root.get("trials"), f"{counts}; a figure has at most {MOST_RUNS:,}")
    collect.raise_all()
    return figure


def _check_recorded(collect: Collector, root: Node, read: Mapping[str, Panel]) -> None:
    """Report panels that draw what a run that another panel shows first does not record."""
    first: dict[str, tuple[str, Setting]] = {}
    for name, panel in read.items():
        for curve in panel.curves:
            other, setting = first.setdefault(curve.setting.series, (name, curve.setting))
            drawn = {panel.y, panel.x} & set(curve.setting.metrics)
            for metric in sorted(drawn - set(setting.metrics)):
                error = f"panel '{name}' draws '{metric}' of curves for which panel '{other}' does not record it"
                node = dict(root.under("panels")).get(other)
                collect.error(node or root, f"{error}; remove `metrics: []` from panel '{other}'")


# -- tiers and options -------------------------------------------------------------------------------------------------


def _check_tiers(collect: Collector, root: Node) -> None:
    tiers = root.get("tiers")
    if tiers is not None:
        collect.keys(tiers, keys.TIER, "tiers")
        for _, tier in tiers.items():
            if tier.value is not None:
                collect.keys(tier, [k for k in keys.SPEC if k not in ("tiers", "paper", "figure")], "a tier")


def _at_tier(root: Node, tier: str) -> Node:
    """Return the spec with the tier's overrides applied."""
    override = _override(root, tier)
    if override is None and tier == TIERS[0]:
        return _smallest(root)
    return nodes.merge(root, override) if override is not None and isinstance(override.value, dict) else root


def _override(root: Node, tier: str) -> Node | None:
    """Return what a spec overrides at a tier, or None if it does not have the tier."""
    tiers = root.get("tiers")
    return tiers.get(tier) if tiers is not None else None


def _smallest(root: Node) -> Node:
    """Return a spec without a tier ``smoke`` with one trial of at most ``FEWEST_ROUNDS`` rounds: it takes seconds."""
    if not isinstance(root.value, dict):
        return root
    trials = {key: Node(1, node.place, node.key) for key, node in root.items() if key == "trials"}
    panels_ = {key: _with_few_rounds(node) for key, node in root.items() if key == "panels"}
    rounds = {key: _few(node) for key, node in root.items() if key == "rounds"}
    return Node({**root.value, **trials, **panels_, **rounds}, root.place, root.key)


def _with_few_rounds(node: Node) -> Node:
    """Return a node with every value of a key ``rounds`` below it limited."""
    if isinstance(node.value, list):
        return Node([_with_few_rounds(item) for item in node.value], node.place, node.key)
    if not isinstance(node.value, dict):
        return node
    limited = {key: _few(child) if key == "rounds" else _with_few_rounds(child) for key, child in node.items()}
    return Node(limited, node.place, node.key)


def _few(node: Node) -> Node:
    """Return a number of rounds, or each of a list, limited to ``FEWEST_ROUNDS``; other values are reported later."""
    if isinstance(node.value, list):
        return Node([_few(item) for item in node.value], node.place, node.key)
    is_number = isinstance(node.value, int) and not isinstance(node.value, bool)
    return Node(min(node.value, FEWEST_ROUNDS), node.place, node.key) if is_number else node


def _import(collect: Collector, root: Node) -> bool:
    """Register the methods of the user's own module that the spec names; return whether this reported no error."""
    named = root.get("import")
    if named is None:
        return True
    problem = Resolver(collect, root).problem_name(root.get("problem"))
    text, valid = collect.clean(lambda: collect.text(named, "import"))
    if not (valid and problem):
        return False
    try:
        if text:
            own_modules.register(own_modules.read(text, Path(collect.path).resolve().parent, problem))
    except UserError as error:
        collect.error(named, str(error))
        return False
    return True


def _register_installed(collect: Collector, root: Node) -> None:
    """Register the methods of installed packages that curves name."""
    problem_name = Resolver(collect, root).problem_name
    for (_, panel, *_), item in curve_items(root):
        for node in item.several("algorithm"):
            name = str(node.plain())
            if name in registry.methods() or name not in own_modules.installed():
                continue
            problem = problem_name(root.get("problem"), dict(root.under("panels"))[panel].get("problem"))
            if not problem:
                continue
            try:
                own_modules.register_installed(name, problem)
            except UserError as error:
                collect.error(node, str(error))


def _trials(root: Node) -> int | None:
    value = getattr(root.get("trials"), "value", 0)
    return value if isinstance(value, int) else None


# -- panels ------------------------------------------------------------------------------------------------------------


class _Panels:
    """Reads the panels of a spec after the tier's overrides and options are applied."""

    def __init__(self, collect: Collector, root: Node, resolve: Resolver, expand: Expander) -> None:
        self.collect = collect
        self.root = root
        self.resolve = resolve
        self.expand = expand

    def panels(self) -> dict[str, Panel]:
        """Return the panels by name, without those with errors."""
        table = self.root.get("panels")
        if table is None:
            return {}
        if not isinstance(table.value, dict) or not table.value:
            self.collect.error(table, "panels must be a mapping from panel names to panels, for instance 'a: {...}'")
            return {}
        read = {name: self.collect.clean(functools.partial(self._named, table, name)) for name in table.value}
        return {name: panel for name, (panel, valid) in read.items() if valid and panel is not None}

    def _named(self, table: Node, name: str) -> Panel | None:
        """Return the panel with this name, checked; None if it cannot be read."""
        own = table.value[name]
        self.collect.slug(name, own.key or own, "the name of a panel")
        node = self._like(table, name, ())
        if node is None:
            return None
        known = self.collect.keys(node, keys.PANEL, "a panel")
        if not isinstance(node.value, dict):
            return None
        panel: Panel
        panel, valid = self.collect.clean(lambda: self._panel(name, node))
        if known and valid:
            self._check(panel, node)
        return panel

    def _like(self, table: Node, name: str, chain: tuple[str, ...]) -> Node | None:
        """Return a panel merged over the panel that it is ``like``."""
        node = table.value[name]
        other = node.get("like")
        if other is None:
            return node
        wanted = str(other.plain())
        if wanted not in table.value or wanted in (*chain, name):
            itself = wanted in (*chain, name)
            reason = "is like itself" if itself else f"does not exist{nearest(wanted, table.value)}"
            self.collect.error(other, f"like: panel '{wanted}' {reason}")
            return None
        base = self._like(table, wanted, (*chain, name))
        return None if base is None else nodes.merge(base, node)

    def _panel(self, name: str, node: Node) -> Panel:
        collect = self.collect
        problem = self.resolve.problem_name(self.root.get("problem"), node.get("problem"))
        metrics = registry.problems()[problem].metrics if problem else {}
        if not problem:
            collect.follows()
        usual = (
            "objective" if not problem or "objective" in metrics else registry.problems()[problem].default_metrics[0]
        )
        y = collect.text(node.get("y"), "y", usual)
        if problem and y not in metrics:
            collect.unknown(node.get("y") or node, y, metrics, f"a metric of the problem '{problem}'", "metrics")
        curves, valid = collect.clean(lambda: self.expand.curves(node, y))
        if problem and not curves and valid:
            collect.error(node, f"panel '{name}' has no curves")
        panel = Panel(
            id=name,
            title=collect.text(node.get("title"), "title"),
            kind=collect.choice(node.get("kind"), panels.KINDS, "a panel kind", "curves"),
            x=self._x(node.get("x"), metrics, curves) if problem and curves else "round",
            y=y,
            xscale=collect.choice(node.get("xscale"), keys.SCALES, "a scale", "linear"),
            yscale=collect.choice(node.get("yscale"), keys.SCALES, "a scale", "linear"),
            xlim=collect.limits(node.get("xlim"), "xlim"),
            ylim=collect.limits(node.get("ylim"), "ylim"),
            curves=tuple(curves),
            published=collect.listed(node.get("published"), "published"),
            options=collect.mapping(node.get("options"), "options"),
        )
        if self.expand.changed:
            panel = dataclasses.replace(panel, published=tuple(_with_a_place(panel)))
        along = panel.kind == "curves" and axes.of(panel).along
        return dataclasses.replace(panel, curves=tuple(_with_role(curve, along) for curve in curves))

    def _x(self, node: Node | None, metrics: Iterable[str], curves: Sequence[Curve]) -> str:
        """Return the x axis: an axis, a metric, or a parameter in which the curves differ."""
        valid = [*axes.AXES, *metrics, *_swept(curves)]
        name = str(node.plain()) if node is not None else ""
        if node is not None and name not in valid and any(name in curve.setting.params for curve in curves):
            self.collect.error(node, f"no curve of the panel varies {name}, so it is not an x axis here")
            return "round"
        return self.collect.choice(node, valid, "an x axis", "round")

    def _check(self, panel: Panel, node: Node) -> None:
        """Report, at the wrong option, why a panel could never be drawn."""
        options = node.get("options")
        for error in panels.problems(panel):
            own = options.get(error.name) if options is not None else None
            self.collect.error(own or node.get(error.name) or node, str(error))


def _with_a_place(panel: Panel) -> Iterator[Mapping[str, Any]]:
    """Yield the published numbers that belong to something in a panel whose curves options have changed."""
    for item in panel.published:
        alone = dataclasses.replace(panel, published=(item,))
        if not any(error.name == "published" for error in panels.problems(alone)):
            yield item


def _swept(curves: Sequence[Curve]) -> list[str]:
    """Return the parameters in which curves differ: each can be an x axis, with the end value of every curve."""
    names = dict.fromkeys(name for curve in curves for name in curve.select if name not in ("label", "series"))
    return [name for name in names if len({str(curve.select.get(name)) for curve in curves}) > 1]


def _with_role(curve: Curve, along: bool) -> Curve:
    """Return the curve with a role; without one, a method without rounds is a level where curves run along the axis."""
    level = along and registry.methods()[curve.setting.algorithm].cls.one_shot
    return curve if curve.role else dataclasses.replace(curve, role="level" if level else "curve")


# -- claims ------------------------------------------------------------------------------------------------------------


def _claims(collect: Collector, root: Node, valid: dict[str, Panel], changed: bool) -> list[Claim]:
    """Return the claims of a spec. valid : its panels without errors; checks of other panels are skipped.

    changed : the spec is changed by options, or is reduced for the tier ``smoke``; a claim whose check reads something
    that no longer exists is then not applicable.
    """
    listed = root.get("claims")
    if listed is None:
        return []
    if not isinstance(listed.value, list):
        collect.error(listed, "claims must be a list")
        return []
    named = [name for name, _ in root.under("panels")]
    names = _names(collect, root)
    claims: list[Claim] = []
    for item in listed.value:
        claim: Claim
        claim, intact = collect.clean(functools.partial(_claim, collect, item, {c.id for c in claims}, named))
        if (
            intact
            and named
            and (set(named) == set(valid) or not claim_grammar.panels_of(claim) & (set(named) - set(valid)))
        ):
            claim, failed = _in_words(dataclasses.replace(claim, names=names), valid)
            for key in filter(functools.partial(getattr, claim), readings.CHECKS):
                part = dataclasses.replace(claim, check=getattr(claim, key))
                messages = failed or list(claim_grammar.problems(part, valid, axes.CLAIMED))
                messages = messages or list(possible_values.certain(part, valid))
                if key == "bound" and not messages and not claim_grammar.is_bound(claim.bound):
                    messages = ["a bound is one comparison with < or <=, what was measured on its left"]
                if messages and changed:
                    claim = dataclasses.replace(claim, inapplicable=messages[0])
                for message in () if changed else messages:
                    collect.error(item.get(key), message)
        claims.append(claim)
    return claims


def _more_trials(claims: Sequence[Claim], panels: Mapping[str, Panel]) -> dict[str, int]:
    """Return the trials of each curve that claims with their own number of trials read; the largest number counts."""
    more: dict[str, int] = {}
    for claim in claims:
        if claim.trials and not claim.inapplicable:
            for series in sorted(readings.series_of(claim, panels)):  # the same in every process
                more[series] = max(more.get(series, 0), claim.trials)
    return more


def _in_words(claim: Claim, panels: dict[str, Panel]) -> tuple[Claim, list[str]]:
    """Return a claim with its check without words, and why there is none."""
    try:
        return readings.with_literal_check(claim, panels), []
    except MemoryError:  # of Python's parser, if hundreds of brackets are open
        return claim, [claim_grammar.DEEP]
    except UserError as error:
        return claim, [str(error)]


def _names(collect: Collector, root: Node) -> dict[str, dict[str, Any]]:
    """Return the short names of curves, each with the values that select them."""
    names: dict[str, dict[str, Any]] = {}
    for name, node in root.under("names"):
        if not name.isidentifier() or name in words.RESERVED or name in (*lexicon().words, *claim_grammar.WORDS):
            collect.error(
                node, f"'{name}' cannot be the name of a curve: use letters, digits and _, and no word of checks"
            )
        elif not isinstance(node.value, dict):
            collect.error(
                node, f"the name '{name}' must have values that select curves, for instance {{algorithm: fedmgs}}"
            )
        else:
            names[name] = node.plain()
    return names


def _claim(collect: Collector, item: Node, ids: set[str], panels: list[str]) -> Claim:
    """Return a claim and check everything but its check.

    ids : those of earlier claims. panels : names of panels; without any, which is reported, that of the claim is not.
    """
    collect.keys(item, keys.CLAIM, "a claim")
    texts: dict[str, Any] = {key: collect.text(item.get(key), key) for key in keys.CLAIM if key != "trials"}
    trials = collect.count(item.get("trials"), "trials", 0, most=MOST_TRIALS) if item.get("trials") else None
    claim = Claim(**texts, trials=trials)
    for key in keys.required(keys.CLAIM):
        if isinstance(item.value, dict) and not getattr(claim, key):
            collect.error(item, f"a claim needs '{key}'")
    if claim.id and claim.id in ids:
        collect.error(item.get("id"), f"the claim id '{claim.id}' is used twice")
    if claim.theorem and claim.theorem not in keys.THEOREM:
        collect.unknown(item.get("theorem"), claim.theorem, keys.THEOREM, "a part of a theorem", "one of")
    for key in ("faster", "outside", "bound"):
        if getattr(claim, key) and claim.theorem != "promise":
            collect.error(item.get(key), f"'{key}' is only for a claim with `theorem: promise`")
    if claim.panel and panels and claim.panel not in panels:
        known = f"{nearest(claim.panel, panels)} (panels: {', '.join(panels)})"
        collect.error(item.get("panel"), f"there is no panel '{claim.panel}'{known}")
    return claim
