"""Broken and odd specs, made from valid ones, through reading, planning and judging.

``python -m tests.fuzz_specs SEED COUNT [FIRST]`` prints what went wrong with COUNT of them: anything but a figure or a
``UserError`` of printable text, more than ``SECONDS`` of computing, more than ``MEMORY`` bytes, or a number that
differs from the spec. The spec is read a second time here, in the simplest way; so are the checks of claims.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import functools
import itertools
import json
import math
import random
import re
import resource
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fedrepro import registry
from fedrepro.claims import judge
from fedrepro.claims.evidence import FAILS, HOLDS, NOT_REPRODUCED, REPRODUCED
from fedrepro.errors import UserError
from fedrepro.results.schema import Sidecar
from fedrepro.runs.identity import plan
from fedrepro.runs.predict import timings as predict
from fedrepro.runs.predict.machine import Machine
from fedrepro.spec import find, nodes, read
from fedrepro.spec.model import Claim, Curve, Figure
from fedrepro.spec.tiers import TIERS

from .conftest import ROOT, SMALL

SECONDS = 5
MEMORY = 2 << 30

VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, 2, 3, -1, 7, 100, 1000, 10**5, 10**7, 10**9, 10**12, 10**15, 2**63 - 1, 0.5, -0.0, 1e-300,
    1e300, 1.5, "", "x", "a", "a.b", "../../x", "1", "1e3", "end", "null", "round", "label", "metric", "objective",
    "synthetic", "uniform", "clustering", "completion", "fedcavg", "fedmgs", "mean", "log", "parameter", "seconds",
    "uplink_bits", "bits_per_variable", "$\\lambda = 1$", "$\\frac{1$", "<b>&\\g<0>", "{{ x }}", "a\nb", "ä \u2028",
    "n" * 3000, [], {}, [[]], [{}], [None], [0], [1, 1], ["a"], [1, [2]], {"name": "x"}, {"name": None},
    {"a": {"b": 1}}, {"name": {"name": "x"}}, [1, 2, 3], list(range(40)), [[1, 2], [3, 4]], {"y": 1},
    {"x": 1, "y": [1, 2]},
)  # fmt: skip
"""What is put in the place of a value."""

TEXTS = (
    "!!int q", "!!int ''", "!!float x", "!!bool x", "!!null x", "!!timestamp x", "!!binary x",
    "!!python/object:os.x {}", "!!set {a, b}", "!!omap [a: 1]", "!!str 1", "!!map x", "!!seq x", "!x y",
    "2020-99-99", "2020-01-01",
    "12:30:45", "010", "0x1F", "1_000", "+1", "yes", "~", "=", "<<", "? x", "&a [*a]", "&a {x: *a}", "&a {<<: *a}",
    "*a", "*unknown", "[" * 400, "[" * 60 + "]" * 60, "{a: " * 300, "- " * 500, "9" * 5000, "1e999", "-.inf", ".nan",
    '"\\0"', '"\\e[2J"',
    '"\\ud800"', '"\\u202e"', "\x01", "\x85", "\t", "%TAG", "---", "...", "@", "`", "'", '"', "|", ">", "#", ":",
    "x: y", "&b [1, 2, 3]", "[&c [0,0,0,0,0,0,0,0], &d [*c,*c,*c,*c,*c,*c,*c,*c], &e [*d,*d,*d,*d,*d,*d,*d,*d], "
    "&f [*e,*e,*e,*e,*e,*e,*e,*e], &g [*f,*f,*f,*f,*f,*f,*f,*f], &h [*g,*g,*g,*g,*g,*g,*g,*g], [*h,*h,*h,*h,*h,*h,*h]]",
    "z" * 100_000,
)  # fmt: skip
"""What is put in the place of a piece of text."""

KEYS = (
    "name", "like", "curves", "dataset", "partition", "problem", "rounds", "zip", "options", "published", "x", "y",
    "kind", "metrics", "artifacts", "trials", "seed", "N", "M", "K", "P", "m", "Q1", "role", "label", "tiers", "",
    "record_every", "record_dense", "columns", "xlim", "ylim", "reading", "note", "per_trial", "0", "<<", "init",
)  # fmt: skip

TOKENS = (
    "y", "at", "since", "cost", "total", "reach", "first", "lowest", "highest", "abs", "min", "log10", "mean", "each",
    "slope", "decay", "rise", "parameter", "until", "of", "'mean'", "'squares'", "'least'", "'Q1'",
    "and", "or", "not", "<", "<=", ">", ">=", "==", "+", "-", "*", "/", "**", "(", ")", "[", "]", ",", "=", "'x'",
    "'end'", "'round'", "0", "1", "-1", "1e400", "1j", "True", "None", "lambda: 0", "x", ".y", ":", "label", "panel",
    "10**9", "[]", "[1, 2]", "9" * 5000, "'a' * 9", "(" * 120, "-" * 3000, "+1" * 3000, "\\", "²", "é", "{1}",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A spec, what was done to it, the tier it is read at, and the ``--set`` options."""

    name: str
    done: str
    spec: str | Any  # text of YAML, or a tree of plain values
    tier: str
    sets: tuple[str, ...] = ()


# -- making them -------------------------------------------------------------------------------------------------------


@functools.cache
def sources() -> tuple[tuple[str, str, Any], ...]:
    """Name, text and tree of every spec of the project, and of a small one."""
    texts = {f"{p.parent.name}/{p.stem}": p.read_text("utf-8") for p in find.specs(ROOT / "experiments")}
    texts["small"] = SMALL
    return tuple((name, text, nodes.parse(text, name).plain()) for name, text in texts.items())


def case(seed: int, number: int) -> Case:
    """The case of that number; it is the same at every call."""
    draw = random.Random(f"{seed}/{number}")
    weights = [len(text) ** -1.5 for _, text, _ in sources()]  # short specs are fast, and find as many faults
    ((name, text, tree),) = draw.choices(sources(), weights)
    tier = draw.choice(TIERS)
    kind = draw.choices(("structure", "text", "option"), (6, 3, 1))[0]
    if kind == "text":
        done = [change(draw) for change in draw.choices(TEXTUAL, k=draw.choice((1, 1, 2)))]
        for textual in done:
            text = textual(text)
        return Case(name, " + ".join(textual.__name__ for textual in done), text, tier)
    if kind == "option":
        return Case(name, "option", tree, tier, (_option(draw, tree),))
    tree, said = copy.deepcopy(tree), []
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        said.append(draw.choice(STRUCTURAL)(draw, tree))
    return Case(name, " + ".join(said), tree, tier)


def _places(tree: Any) -> list[tuple[Any, Any]]:
    """Every (container, key or index) below a tree."""
    places, todo = [], [tree]
    while todo:
        container = todo.pop()
        keys = (
            list(container)
            if isinstance(container, dict)
            else range(len(container))
            if isinstance(container, list)
            else ()
        )
        places += [(container, key) for key in keys]
        todo += [container[key] for key in keys]
    return places or [({"": None}, "")]


def _value(draw: random.Random) -> Any:
    return copy.deepcopy(draw.choice(VALUES))


def _replace(draw: random.Random, tree: Any) -> str:
    where, key = draw.choice(_places(tree))
    where[key] = _value(draw)
    return f"{key} = {where[key]!r:.60}"


def _nudge(draw: random.Random, tree: Any) -> str:
    """Another number, or another name of the same kind: much of this is valid."""
    numbers = [(w, k) for w, k in _places(tree) if type(w[k]) in (int, float)]
    names = [(w, k) for w, k in _places(tree) if k in ("algorithm", "dataset", "partition", "x", "y", "kind")]
    where, key = draw.choice(names if names and draw.random() < 0.3 else numbers or [([1], 0)])
    if type(where[key]) in (int, float):
        where[key] = draw.choice((where[key] + 1, where[key] * 2, where[key] // 2, where[key] - 1, 1, [1, where[key]]))
    else:
        where[key] = draw.choice([w[k] for w, k in names if k == key])
    return f"{key} = {where[key]!r:.60}"


def _turn(draw: random.Random, tree: Any) -> str:
    """Another order of a mapping's keys, or of a list."""
    where, key = draw.choice([(w, k) for w, k in _places(tree) if isinstance(w[k], (dict, list))] or [({"": []}, "")])
    items = list(where[key].items()) if isinstance(where[key], dict) else where[key]
    draw.shuffle(items)
    where[key] = dict(items) if isinstance(where[key], dict) else items
    return f"{key} in another order"


def _extreme(draw: random.Random, tree: Any) -> str:
    """A parameter that a dataset, partition, problem or method of the spec has, of any size."""
    tables = {**registry.datasets(), **registry.partitions(), **registry.problems(), **registry.methods()}
    mappings = [w[k] for w, k in _places(tree) if isinstance(w[k], dict)]
    said = [(mapping, name) for mapping in mappings for name in (mapping.get("name"), mapping.get("algorithm"))]
    named = [(mapping, tables[name]) for mapping, name in said if isinstance(name, str) and name in tables]
    if not named:
        return "nothing"
    mapping, entry = draw.choice(named)
    known = entry.parameters() if callable(entry.parameters) else entry.parameters
    key = draw.choice([*known, "name"])
    mapping[key] = draw.choice(
        (0, 1, 2, 3, 10**3, 10**5, 10**7, 10**9, 10**12, 10**18, 1e-300, 1e-9, 0.5, 1e9, 1e300, None)
    )
    return f"{entry.name}: {key} = {mapping[key]}"


def _remove(draw: random.Random, tree: Any) -> str:
    where, key = draw.choice(_places(tree))
    del where[key]
    return f"without {key}"


def _add(draw: random.Random, tree: Any) -> str:
    where, _ = draw.choice([(w, k) for w, k in _places(tree) if isinstance(w, dict)] or [({}, "")])
    key = draw.choice((*KEYS, *where))
    where[key] = _value(draw)
    return f"new {key} = {where[key]!r:.60}"


def _swap(draw: random.Random, tree: Any) -> str:
    (a, i), (b, j) = (draw.choice(_places(tree)) for _ in range(2))
    a[i], b[j] = copy.deepcopy(b[j]), copy.deepcopy(a[i])
    return f"{i} for {j}"


def _wrap(draw: random.Random, tree: Any) -> str:
    where, key = draw.choice(_places(tree))
    where[key] = [where[key]] if draw.random() < 0.5 else {draw.choice(KEYS): where[key]}
    return f"{key} wrapped"


def _repeat(draw: random.Random, tree: Any) -> str:
    where, key = draw.choice([(w, k) for w, k in _places(tree) if isinstance(w, list)] or [([0], 0)])
    where[:] = where + [copy.deepcopy(where[key])] * draw.choice((1, 5, 60))
    return f"item {key} repeated"


def _grid(draw: random.Random, tree: Any) -> str:
    """A sweep of many values, or of many parameters."""
    curves = [w[k] for w, k in _places(tree) if isinstance(w[k], dict) and "algorithm" in w[k]]
    item = draw.choice(curves or [{}])
    for key in list(item)[1:] or ["Q1"]:
        if key != "zip":
            item[key] = list(range(1, draw.choice((3, 30, 300, 3000))))
    return "a grid"


def _check(draw: random.Random, tree: Any) -> str:
    claims = tree.get("claims") if isinstance(tree, dict) else None
    listed = (
        [c for c in claims if isinstance(c, dict) and isinstance(c.get("check"), str)]
        if isinstance(claims, list)
        else []
    )
    claim = draw.choice(listed or [{"check": "y(at=1) < 1"}])
    words = re.findall(r"[\w.]+|'[^']*'|\s+|[^\w\s]", claim["check"])
    for _ in range(draw.choice((1, 1, 2))):
        at = draw.randrange(len(words))
        words[at : at + draw.choice((0, 1, 1, 1, 2))] = draw.choice(((draw.choice(TOKENS),), (draw.choice(words),), ()))
        words = words or ["y"]
    claim["check"] = "".join(words)
    return f"check {claim['check']!r:.100}"


STRUCTURAL = (
    _nudge, _nudge, _nudge, _nudge, _turn, _extreme, _extreme, _extreme, _extreme, _replace, _replace, _remove, _add,
    _swap, _wrap, _repeat, _grid, _check, _check, _check,
)  # fmt: skip


def _char(draw: random.Random) -> Callable[[str], str]:
    at, new = draw.random(), draw.choice((*TEXTS, *":,[]{}#&*!|>'\"%@`- \t\n0159xyé", "\x00", "\x7f", "\ufeff"))

    def some_characters(text: str) -> str:
        i = int(at * len(text))
        return text[:i] + new + text[i + draw.choice((0, 0, 1, 3)) :]

    return some_characters


def _scalar(draw: random.Random) -> Callable[[str], str]:
    new, at = draw.choice(TEXTS), draw.random()

    def a_value(text: str) -> str:
        found = list(re.finditer(r"(?<=[:,\[] )[^\s,{}\[\]][^,{}\[\]\n]*", text)) or list(re.finditer("$", text))
        one = found[int(at * len(found))]
        return text[: one.start()] + new + text[one.end() :]

    return a_value


def _lines(draw: random.Random) -> Callable[[str], str]:
    kind, first, second = draw.choice(("drop", "double", "swap", "indent", "cut")), draw.random(), draw.random()

    def lines(text: str) -> str:
        kept = text.splitlines(keepends=True) or ["\n"]
        i, j = int(first * len(kept)), int(second * len(kept))
        if kind == "drop":
            del kept[i]
        elif kind == "double":
            kept.insert(j, kept[i])
        elif kind == "swap":
            kept[i], kept[j] = kept[j], kept[i]
        elif kind == "indent":
            kept[i] = kept[i][1:] if second < 0.5 else f"  {kept[i]}"
        else:
            kept = kept[:i]
        return "".join(kept)

    return lines


TEXTUAL: tuple[Callable[[random.Random], Callable[[str], str]], ...] = (_char, _scalar, _scalar, _lines)


def _option(draw: random.Random, tree: Any) -> str:
    """A ``--set`` option: mostly a key that there is, with an odd value, or odd itself."""
    path: list[str] = []
    at = tree
    while isinstance(at, (dict, list)) and at and (not path or draw.random() < 0.8):
        key = draw.choice(list(at) if isinstance(at, dict) else range(len(at)))
        path.append(str(key))
        at = at[key]
    if draw.random() < 0.4:
        path[draw.randrange(len(path))] = draw.choice((*KEYS, "²", "-1", "9" * 5000, " ", "a b", "٣", "\0", "1e1"))
    value = draw.choice(TEXTS) if draw.random() < 0.5 else json.dumps(draw.choice(VALUES))
    return f"{'.'.join(path)}{draw.choice(('=', '=', '=', '=', '==', ''))}{value}"


# -- trying them -------------------------------------------------------------------------------------------------------


class Hang(BaseException):
    """A case computes for too long."""


class Wrong(Exception):
    """A number differs from the spec."""


def faults(seed: int, count: int, first: int = 0) -> Iterator[str]:
    """Yield the faults of ``count`` cases."""

    def stop(*_: object) -> None:
        raise Hang

    signal.signal(signal.SIGPROF, stop)
    for number in range(first, first + count):
        drawn = case(seed, number)
        try:
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            attempt(drawn, random.Random(number))
        except UserError as error:
            if bad := [c for c in str(error) if not (c.isprintable() or c in "\n\t")]:
                yield f"{seed}/{number} {drawn.name} ({drawn.done}): says {bad[0]!r}"
        except (Hang, Exception) as error:
            where = traceback.extract_tb(error.__traceback__)
            own = [f"{Path(f.filename).name}:{f.lineno}" for f in where if "fedrepro/" in f.filename][-3:]
            title = f"{seed}/{number} {drawn.name} {drawn.tier} ({drawn.done})"
            yield f"{title}: {type(error).__name__} {error!s:.200} {own}"
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)


def node(value: Any) -> nodes.Node:
    """Nodes of plain values, as reading would make them."""
    at = nodes.Place("spec:1:1")
    if isinstance(value, dict):
        return nodes.Node({key: node(item) for key, item in value.items()}, at, at)
    return nodes.Node([node(item) for item in value] if isinstance(value, list) else value, at, at)


def attempt(drawn: Case, draw: random.Random) -> None:
    """Validate, plan and judge; raises what they raise, and Wrong."""
    root = nodes.parse(drawn.spec, "spec") if isinstance(drawn.spec, str) else node(drawn.spec)
    figure = read.build(root, "spec", drawn.tier, drawn.sets)
    if not drawn.sets:
        same(figure, root.plain(), drawn.tier)
    made = plan.make([figure], stand_in=True)
    runs = list(made.runs.values())[:20]
    for number in (predict.Timings(Path("none"), Machine()).total(runs, 2), predict.memory(runs, 2, Machine())):
        if not (math.isfinite(number) and number >= 0):
            raise Wrong(f"predicts {number}")
    if figure.claims:
        judged(draw.choice(figure.claims), figure)


# -- what a spec says, read again --------------------------------------------------------------------------------------


def overlay(base: Any, over: Any) -> Any:
    """``over`` laid on ``base``."""
    if isinstance(base, dict) and isinstance(over, dict):
        return base | {k: overlay(base[k], v) if k in base else v for k, v in over.items()}
    return over


def smallest(tree: Any) -> Any:
    """The tree with at most three rounds everywhere, as the tier smoke has it if the spec does not say otherwise."""
    if isinstance(tree, list):
        return [smallest(item) for item in tree]
    if not isinstance(tree, dict):
        return tree
    few = {k: [min(r, 3) for r in v] if isinstance(v, list) else min(v, 3) for k, v in tree.items() if k == "rounds"}
    return {k: smallest(v) for k, v in tree.items()} | few


def same(figure: Figure, tree: Any, tier: str) -> None:
    """Raise Wrong if the figure differs from the tree of plain values."""
    tiers = tree.get("tiers") or {}
    if tier == "smoke" and tiers.get(tier) is None:
        tree = smallest(tree) | {"trials": 1}
    tree = overlay(tree, tiers.get(tier) or {})
    _equal("trials", figure.trials, tree["trials"])
    _equal("title", figure.title, tree.get("title") or "")
    _equal("panels", [p.id for p in figure.panels], list(tree["panels"]))
    for panel in figure.panels:
        said = _panel(tree["panels"], panel.id)
        listed = {
            repr((item.get("label"), item.get("role"), name, _filled(tree, said, name, point))): _curve(
                tree, said, name, point
            )
            for item in said["curves"]
            for name, point in _points(item)
        }
        wanted = list(listed.values())  # a curve listed twice is one curve
        _equal(f"the curves of {panel.id}", len(panel.curves), len(wanted))
        for curve, want in zip(panel.curves, wanted, strict=True):
            setting = curve.setting
            ours = {
                "algorithm": setting.algorithm, "params": setting.params, "rounds": setting.rounds,
                "dataset": {"name": setting.dataset, **setting.dataset_params},
                "partition": {"name": setting.partition, **setting.partition_params},
                "problem": {"name": setting.problem, **setting.problem_params},
            }  # fmt: skip
            for key, value in want.items():
                read_value = ours[key]
                part = (
                    {k: list(read_value[k]) if isinstance(read_value[k], tuple) else read_value[k] for k in value}
                    if isinstance(value, dict) and isinstance(read_value, dict)
                    else read_value
                )
                _equal(f"{key} of '{curve.label}'", part, value)


def _filled(tree: Any, panel: Any, name: str, point: dict[str, Any]) -> dict[str, Any]:
    """A point of a sweep, its problem with all defaults, so that two points with one meaning are equal."""
    if not isinstance(point.get("problem"), dict):
        return point
    problem = _curve(tree, panel, name, point)["problem"]
    usual = registry.problems()[problem["name"]].cls.parameters
    return point | {"problem": sorted({**usual, **problem}.items())}


def _equal(what: str, ours: Any, said: Any) -> None:
    ours = list(ours) if isinstance(ours, tuple) else ours
    if ours != said or isinstance(ours, bool) != isinstance(said, bool):
        raise Wrong(f"{what}: {ours!r:.100}, the spec says {said!r:.100}")


def _panel(table: Mapping[str, Any], name: str) -> Any:
    own = table[name]
    return overlay(_panel(table, own["like"]), own) if "like" in own else own


def _points(item: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    fixed = {k: v if isinstance(v, list) else [v] for k, v in item.items()
             if k not in ("algorithm", "zip", "label", "role")}  # fmt: skip
    steps = [dict(zip(item["zip"], row, strict=True)) for row in zip(*item["zip"].values(), strict=True)] \
        if "zip" in item else [{}]  # fmt: skip
    for name in item["algorithm"] if isinstance(item["algorithm"], list) else [item["algorithm"]]:
        for step in steps:
            for values in itertools.product(*fixed.values()):
                yield name, {**dict(zip(fixed, values, strict=True)), **step}


def _curve(tree: Any, panel: Any, name: str, point: dict[str, Any]) -> dict[str, Any]:
    def found(what: str) -> Any:
        return next((one[what] for one in (point, panel, tree) if what in one), None)

    def named(what: str) -> Any:
        given = found(what)
        own = given if isinstance(given, dict) else (tree.get(f"{what}s") or {}).get(str(given), {"name": given})
        return {k: v for k, v in own.items() if k != "published"}

    problem: Any = {}
    for level in (tree, panel, point):
        if "problem" in level:
            problem = overlay(
                problem, level["problem"] if isinstance(level["problem"], dict) else {"name": level["problem"]}
            )
    own = {k: v for k, v in point.items() if k not in ("dataset", "partition", "problem", "rounds")}
    return {
        "algorithm": name, "params": own, "rounds": found("rounds"), "dataset": named("dataset"),
        "partition": named("partition"), "problem": problem,
    }  # fmt: skip


# -- what a check asks for, read again ---------------------------------------------------------------------------------

COUNTED = ("uplink_scalars", "uplink_bits", "downlink_scalars", "downlink_bits")
COMPARE = {ast.Lt: np.less, ast.LtE: np.less_equal, ast.Gt: np.greater, ast.GtE: np.greater_equal}


@dataclass(frozen=True)
class Made:
    """Made-up results of a series: trials of every metric, (2, rounds), and the counts, (rounds,)."""

    rounds: np.ndarray
    values: Mapping[str, np.ndarray]
    counts: Mapping[str, np.ndarray]

    def frame(self, series: str) -> pd.DataFrame:
        """As results are read."""
        n, metrics = len(self.rounds), len(self.values)
        columns = {"round": self.rounds, **self.counts}
        return pd.DataFrame({
            "series": series, "status": "ok", "trial": np.repeat([1, 2], n * metrics),
            "metric": np.tile(np.repeat([*self.values], n), 2),
            "value": np.concatenate([v[t] for t in (0, 1) for v in self.values.values()]),
            **{name: np.tile(column, 2 * metrics) for name, column in columns.items()},
        })  # fmt: skip


def judged(claim: Claim, figure: Figure) -> None:
    """Judge a claim on made-up results; raise Wrong if a plain reading of the averages gives another verdict."""
    made = {c.setting.series: _results(c) for c in judge.curves(claim, figure)}
    if not made:  # options have made the claim inapplicable
        return
    frame = pd.concat([results.frame(series) for series, results in made.items()])
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        row = judge.judge(claim, figure, frame, Sidecar(trials_done=2, trials_wanted=2))
        if row.verdict not in (HOLDS, REPRODUCED, FAILS, NOT_REPRODUCED) or re.search(r"\beach\b", claim.check):
            return
        plain = Plain(claim, figure, made)
        outcomes = [plain.holds(*pair) for pair in _pairs(ast.parse(claim.check.strip(), mode="eval").body)]
    if all(outcomes) != (row.verdict in (HOLDS, REPRODUCED)):
        raise Wrong(f"{claim.check}: {row.verdict} ({row.why}), read plainly {outcomes}")


def _results(curve: Curve) -> Made:
    """Two trials that fall, or rise, at some of the rounds that are recorded."""
    setting = curve.setting
    every = setting.recorded
    rounds = np.array(sorted({*every[:: max(1, len(every) // 25)], every[-1]}))
    draw = np.random.default_rng(len(setting.series) + sum(map(ord, setting.series)))
    values = {}
    for metric in setting.metrics:
        fall = np.exp(-4 * rounds / (rounds[-1] + 1)) * (1 + 0.05 * draw.random((2, len(rounds))))
        lower = registry.problems()[setting.problem].metrics[metric].better == "lower"
        values[metric] = draw.uniform(0.1, 3) * (fall if lower else 2 - fall)
    return Made(rounds, values, {axis: rounds * (k + 2.0) for k, axis in enumerate(COUNTED)})


def _pairs(node: ast.expr) -> Iterator[tuple[ast.expr, ast.cmpop, ast.expr]]:
    if isinstance(node, ast.BoolOp):
        for value in node.values:
            yield from _pairs(value)
    elif isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        yield from zip(sides[:-1], node.ops, sides[1:], strict=True)


class Plain:
    """The functions of checks on averaged curves, for ``eval``."""

    def __init__(self, claim: Claim, figure: Figure, made: Mapping[str, Made]) -> None:
        self.claim, self.figure, self.made = claim, figure, made
        self.names = {
            **{name: getattr(self, name) for name in judge._READERS},
            "parameter": self.parameter,
            "abs": np.abs, "log10": np.log10, "mean": np.mean, "__builtins__": {},
            "min": lambda *each: functools.reduce(np.minimum, map(np.asarray, each)),
            "max": lambda *each: functools.reduce(np.maximum, map(np.asarray, each)),
            "at_most": np.minimum, "quantile": np.quantile,
            "log_between": lambda a, b, share: np.asarray(a) ** (1 - share) * np.asarray(b) ** share,
        }  # fmt: skip

    def holds(self, left: ast.expr, sign: ast.cmpop, right: ast.expr) -> bool:
        """Whether a comparison is true at each of its rounds."""
        low, high = (np.asarray(eval(compile(ast.Expression(s), "", "eval"), self.names), float) for s in (left, right))
        return bool(np.all(COMPARE[type(sign)](low, high)))

    def curve(self, keys: dict[str, Any]) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray], Curve, bool]:
        """Rounds, values, what can be an axis, the curve, and whether lower is better."""
        name = keys.pop("panel", self.claim.panel)
        (panel,) = [p for p in self.figure.panels if p.id == name]
        metric = keys.pop("metric", panel.y)
        (curve,) = [c for c in panel.curves if all(k in c.select and c.select[k] == v for k, v in keys.items())]
        made = self.made[curve.setting.series]
        axes = {"round": made.rounds, **made.counts, **{k: v.mean(axis=0) for k, v in made.values.items()}}
        lower = registry.problems()[curve.setting.problem].metrics[metric].better == "lower"
        return made.rounds, made.values[metric].mean(axis=0), axes, curve, lower

    def y(
        self, at: Any = None, cost: Any = None, since: Any = None, of: str = "value", when: Any = None,
        axis: str = "uplink_scalars", **keys: Any,
    ) -> Any:  # fmt: skip
        """The values at rounds, at costs (the last that were recorded by then), or at a computed round."""
        rounds, values, axes, curve, _ = self.curve(keys)
        values = self.smoothed(rounds, values, of)
        if when is not None:
            return self.between(rounds, values, float(np.ravel(when)[0]))
        if cost is not None:
            return values[[max(k for k, sent in enumerate(axes[axis]) if sent <= c) for c in np.ravel(cost)]]
        asked = [r for r in curve.setting.recorded if r >= since] if since is not None else np.ravel(at).tolist()
        asked = [rounds[-1] if r == "end" else float(r) for r in asked]
        return values[[max(k for k, there in enumerate(rounds) if there <= r) for r in asked]]

    def between(self, rounds: np.ndarray, values: np.ndarray, when: float) -> float:
        """The value at a round between two recorded ones, on a logarithmic scale if both are positive."""
        k = max(k for k, there in enumerate(rounds) if there <= when)
        if k + 1 == len(rounds):
            return float(values[k])
        pair, scale = values[k : k + 2], (np.log, np.exp) if min(values[k : k + 2]) > 0 else (np.asarray, np.asarray)
        return float(scale[1](np.interp(when, rounds[k : k + 2], scale[0](pair))))

    def tail(self, share: float, **keys: Any) -> Any:
        """The mean over the last share of the recorded rounds."""
        recorded = self.curve(dict(keys))[3].setting.recorded
        return np.mean(self.y(at=[r for r in recorded if r >= (1 - share) * recorded[-1]], **keys))

    def smoothed(self, rounds: np.ndarray, values: np.ndarray, of: str) -> np.ndarray:
        """The values, the mean or mean square over the rounds so far (trapezoids), or the least so far."""
        if of in ("mean", "squares"):
            v = values if of == "mean" else values**2
            ends = range(1, len(v))
            return np.array(
                [v[0], *(np.trapezoid(v[: k + 1], rounds[: k + 1]) / (rounds[k] - rounds[0]) for k in ends)]
            )
        return np.array([values[: k + 1].min() for k in range(len(values))]) if of == "least" else values

    def slope(self, since: float = 1, until: float = np.inf, of: str = "value", **keys: Any) -> Any:
        """The slope of a weighted line through the logarithms."""
        rounds, values, *_ = self.curve(keys)
        there = (rounds >= max(since, 1)) & (rounds <= until)
        x, y = np.log(rounds[there]), np.log(self.smoothed(rounds, values, of)[there])
        return np.polyfit(x, y, 1, w=np.sqrt(np.gradient(x)))[0]

    def decay(self, since: float = 0, until: float = np.inf, **keys: Any) -> Any:
        """Powers of ten a round from the first to the last of these rounds."""
        rounds, values, *_ = self.curve(keys)
        r, v = (one[(rounds >= since) & (rounds <= until)] for one in (rounds, values))
        return np.log10(v[0] / v[-1]) / (r[-1] - r[0])

    def rise(self, since: float = 0, **keys: Any) -> Any:
        """The largest step up."""
        rounds, values, *_ = self.curve(keys)
        v = values[rounds >= since]
        return np.diff(v).max()

    def parameter(self, name: str, **keys: Any) -> Any:
        """A parameter of the curve's method."""
        return float(self.curve(keys)[3].setting.params[name])

    def total(self, axis: str = "round", **keys: Any) -> Any:
        """The last value of an axis."""
        return self.curve(keys)[2][axis][-1]

    def lowest(self, since: float = 0, **keys: Any) -> Any:
        """The smallest value."""
        rounds, values, *_ = self.curve(keys)
        return values[rounds >= since].min()

    def highest(self, since: float = 0, **keys: Any) -> Any:
        """The largest value."""
        rounds, values, *_ = self.curve(keys)
        return values[rounds >= since].max()

    def first(self, level: Any, axis: str = "round", **keys: Any) -> Any:
        """Where a value is first beyond the level."""
        _, values, axes, _, lower = self.curve(keys)
        level = float(np.squeeze(level))
        return next((x for x, v in zip(axes[axis], values, strict=True) if (v < level if lower else v > level)), np.inf)

    def reach(self, level: Any, axis: str = "round", **keys: Any) -> Any:
        """Where the curve meets the level, between rounds on a logarithmic scale where there is one."""
        _, values, axes, _, lower = self.curve(keys)
        places, level = axes[axis], float(np.squeeze(level))
        for k, value in enumerate(values):
            if value <= level if lower else value >= level:
                if k == 0:
                    return places[0]
                a, b, c = values[k - 1], value, level
                a, b, c = (math.log(a), math.log(b), math.log(c)) if min(a, b, c) > 0 else (a, b, c)
                return places[k - 1] + (a - c) / (a - b) * (places[k] - places[k - 1])
        return np.inf


# -- as a program ------------------------------------------------------------------------------------------------------


def main() -> None:
    """Print every fault of the cases asked for, with no more memory than allowed."""
    seed, count, first = (int(word) for word in [*sys.argv[1:], "0"][:3])
    sources()
    for table in (registry.methods, registry.problems, registry.datasets, registry.partitions):
        table()
    with contextlib.suppress(UserError):
        attempt(Case("small", "nothing", SMALL, "smoke"), random.Random(0))  # what a first time loads
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY,) * 2)
    for fault in faults(seed, count, first):
        print(fault, flush=True)


if __name__ == "__main__":
    main()
