"""References to curves in checks: ``fedmgs(m=10)`` names the curves of a panel by their method and values.

The name is one of the spec's ``names``, or a method of the panel with other characters than letters and digits as
underscores (``kmeans`` for ``kmeans++``), or ``curve`` for any curve. Its arguments select curves by their values: one
value, a list of values, or a word that refers to the curve that is compared with: ``larger`` and ``smaller`` stand for
all drawn values on that side of its value, ``same`` for its own value. ``panel`` and ``metric`` name another panel or
metric than the claim's.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fedrepro import registry
from fedrepro.errors import UserError, nearest
from fedrepro.lexicon.vocabulary import lexicon
from fedrepro.spec.claim_grammar import constant
from fedrepro.spec.model import Claim, Curve, Panel

ANY = "curve"
LARGER, SMALLER, SAME = "larger", "smaller", "same"
"""Values of an argument that stand for all drawn values on one side of the other curve's, and for its own value."""

MOST_CURVES = 50
"""The most curves that one reference may name: the text of a check without words grows with their square."""

Names = Mapping[str, Mapping[str, Any]]
"""Short names of curves, with the values that they select."""


@dataclass(frozen=True)
class Reference:
    """One curve of a panel, read in one metric. keywords : the arguments by which a reader selects exactly it."""

    keywords: str
    curve: Curve
    panel: Panel
    metric: str

    @property
    def lower_is_better(self) -> bool:
        """Whether lower values of the metric are better."""
        return registry.problems()[self.curve.setting.problem].metrics[self.metric].better == "lower"

    @property
    def constant(self) -> bool:
        """Whether the curve is one value: its method has no rounds, or it is drawn as a level."""
        return self.curve.role == "level" or registry.methods()[self.curve.setting.algorithm].cls.one_shot

    @property
    def scale(self) -> str:
        """The scale on which values of the metric differ (``lexicon``)."""
        return lexicon().scale(self.curve.setting.problem, self.metric)


@dataclass(frozen=True)
class Scope:
    """What the names of a check refer to: the claim's panel, the figure's panels, and the spec's names of curves."""

    claim: Claim
    panels: Mapping[str, Panel]
    names: Names

    @functools.cached_property
    def known(self) -> dict[str, Mapping[str, Any]]:
        """Every name of curves that checks of this claim can use."""
        curves = [curve for panel in self.panels.values() for curve in panel.curves]
        methods = {identifier(curve.setting.algorithm): {"algorithm": curve.setting.algorithm} for curve in curves}
        return {**methods, ANY: {}, **self.names}


def identifier(method: str) -> str:
    """Return the name of a method in checks: ``fedmgs_sncp`` for ``fedmgs-sncp``, ``kmeans`` for ``kmeans++``."""
    return re.sub(r"\W+", "_", method).strip("_")


def name_of(node: ast.expr) -> str:
    """Return the name of a reference, called or bare, '' for other expressions."""
    function = node.func if isinstance(node, ast.Call) else node
    return function.id if isinstance(function, ast.Name) else ""


def resolve(node: ast.expr, scope: Scope, other: Sequence[Reference] = ()) -> tuple[list[Reference], bool]:
    """Return the curves that a reference names, and whether its words are 'larger' or 'smaller' values.

    other : the curves that they are compared with, to which ``larger`` and ``smaller`` relate. Raises UserError if no
    curve has the values.
    """
    known = scope.known
    name = name_of(node)
    if name not in known:
        raise UserError(f"'{ast.unparse(node)}' is not a curve{nearest(name, known)} (names of curves: {_list(known)})")
    if isinstance(node, ast.Call) and node.args:
        raise UserError(f"'{ast.unparse(node)}': curves are selected by name and value, for instance {name}(m=10)")
    given = {keyword.arg or "**": keyword.value for keyword in node.keywords} if isinstance(node, ast.Call) else {}
    values = {**known[name], **{key: _value(value) for key, value in given.items()}}
    panel_name = values.pop("panel", scope.claim.panel)
    if panel_name not in list(scope.panels):
        raise UserError(f"there is no panel '{panel_name}'{nearest(str(panel_name), scope.panels)}")
    panel = scope.panels[panel_name]
    metric = values.pop("metric", panel.y)
    relative = any(value in (LARGER, SMALLER) for value in values.values() if isinstance(value, str))
    matching = [curve for curve in panel.curves if _matches(curve, values, other, node)]
    if not matching:
        labels = _list(curve.label for curve in panel.curves)
        raise UserError(f"'{ast.unparse(node)}' selects no curve of panel '{panel_name}' (curves: {labels})")
    recorded = [name for name in matching[0].setting.metrics if all(name in c.setting.metrics for c in matching)]
    if metric not in recorded:
        raise UserError(f"'{ast.unparse(node)}': the metric '{metric}' is not recorded{nearest(str(metric), recorded)}")
    if len(matching) > MOST_CURVES:
        raise UserError(f"'{ast.unparse(node)}' names {len(matching):,} curves; at most {MOST_CURVES} can be compared")
    return [_reference(curve, panel, metric, scope, values) for curve in _in_order(matching, values)], relative


def has_same(node: ast.expr) -> bool:
    """Return whether a reference takes values from the curve that it is compared with."""
    return any(isinstance(part, ast.keyword) and _value_is_same(part.value) for part in ast.walk(node))


def _value_is_same(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == SAME


class _Same:
    """The value ``same``: that of the curve that is compared with."""


_SAME = _Same()


def _value(node: ast.expr) -> Any:
    if _value_is_same(node):
        return _SAME
    return node.id if isinstance(node, ast.Name) and node.id in (LARGER, SMALLER) else constant(node)


def _matches(curve: Curve, values: Mapping[str, Any], other: Sequence[Reference], node: ast.expr) -> bool:
    for key, value in values.items():
        if key not in curve.select:
            return False
        own = curve.select[key]
        if value is _SAME:
            if not other or any(own != reference.curve.select.get(key) for reference in other):
                return False
        elif isinstance(value, str) and value in (LARGER, SMALLER):
            if not _is_beyond(own, value, [reference.curve.select.get(key) for reference in other], node, key):
                return False
        elif own not in (value if isinstance(value, list) else [value]):
            return False
    return True


def _is_beyond(own: Any, side: str, bounds: list[Any], node: ast.expr, key: str) -> bool:
    """Return whether a value is larger (or smaller) than those of the curves that are compared with."""
    if not bounds or not all(isinstance(bound, (int, float)) for bound in bounds):
        raise UserError(f"'{ast.unparse(node)}': {key}={side} needs a curve with a number {key} to compare with")
    if not isinstance(own, (int, float)):
        return False
    return bool(own > max(bounds) if side == LARGER else own < min(bounds))


def _in_order(curves: list[Curve], values: Mapping[str, Any]) -> list[Curve]:
    """Return the curves in the order of listed values."""
    for key, value in reversed(list(values.items())):
        if isinstance(value, list):
            curves = sorted(curves, key=lambda curve, key=key, value=value: value.index(curve.select[key]))  # type: ignore[misc]
    return curves


def _reference(curve: Curve, panel: Panel, metric: str, scope: Scope, values: Mapping[str, Any]) -> Reference:
    selectors = {key: curve.select[key] for key in values}
    alike = [c for c in panel.curves if all(c.select.get(k) == v for k, v in selectors.items())]
    if len(alike) > 1:
        shared = [key for key in curve.select if key not in ("series", "label") and all(key in c.select for c in alike)]
        differing = [key for key in shared if any(c.select[key] != curve.select[key] for c in alike)]
        selectors |= {key: curve.select[key] for key in differing}
        alike = [c for c in alike if all(c.select.get(k) == v for k, v in selectors.items())]
    if len(alike) > 1:
        selectors["label"] = curve.label
    own = {**selectors, **({"panel": panel.id} if panel.id != scope.claim.panel else {})}
    own |= {"metric": metric} if metric != panel.y else {}
    return Reference(", ".join(f"{key}={value!r}" for key, value in own.items()), curve, panel, metric)


def _list(names: Any) -> str:
    return ", ".join(sorted(map(str, names)))
