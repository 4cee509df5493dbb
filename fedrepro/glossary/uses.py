"""Find which figures use which names, by reading their specs quickly and without checks.

A figure uses a name if one of its curves does at one of the tiers. Specs that cannot be read use nothing; ``fedrepro
validate`` reports their errors.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from fedrepro import registry
from fedrepro.lexicon.vocabulary import lexicon
from fedrepro.spec import keys
from fedrepro.spec.axes import AXES
from fedrepro.spec.claim_grammar import WORDS
from fedrepro.spec.find import specs
from fedrepro.spec.tiers import TIERS

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # several times faster with libyaml

Use = tuple[str, str]
"""A kind of use and a name: ``("algorithm", "fedmgs")``, ``("draws", "clustering.objective")``."""


def uses(experiments: Path) -> dict[Use, list[str]]:
    """Return the figures (``paper/figure``) of every use, in order.

    The kinds of use are ``algorithm``, ``problem``, ``dataset``, ``partition``, ``panel kind``, ``panel option`` (named
    ``kind.option``), ``axis``, ``spec key`` (named by its path), ``claim word``, and for metrics (named
    ``problem.metric``) ``draws`` or ``records``.
    """
    figures: dict[Use, list[str]] = {}
    for path in specs(experiments):
        figure = str(path.relative_to(experiments).with_suffix(""))
        of_file = _of_file(path)
        for what, name in of_file:
            if what != "records" or ("draws", name) not in of_file:
                figures.setdefault((what, name), []).append(figure)
    return figures


def _of_file(path: Path) -> dict[Use, None]:
    try:
        root = yaml.load(path.read_text(encoding="utf-8"), _LOADER)
    except (OSError, ValueError, yaml.YAMLError):
        return {}
    tiers = [_merged(root, _mapping(_get(_get(root, "tiers"), tier))) for tier in TIERS]
    return dict.fromkeys([*(use for at_tier in tiers for use in _of_spec(at_tier)), *_of_keys(root), *_of_checks(root)])


def _of_keys(root: Any) -> Iterator[Use]:
    """Yield the keys in the text itself, before panels are merged."""
    for above, known in keys.SECTIONS.items():
        sections = [root]
        for part in above.split(".") if above else ():
            sections = [child for node in sections for child in _below(_get(node, part), part in _TABLES)]
        yield from (
            ("spec key", f"{above}.{key}".strip(".")) for key in known for node in sections if key in _mapping(node)
        )


_TABLES = ("datasets", "partitions", "panels")
"""Keys whose values are mappings by names of the spec's own."""


def _below(node: Any, named: bool) -> list[Any]:
    return list(_mapping(node).values()) if named else _listed(node)


def _of_checks(root: Any) -> Iterator[Use]:
    for claim in _listed(_get(root, "claims")):
        for word in re.findall(r"(\w+) ?[(=]", str(_get(claim, "check") or "")):
            if word in WORDS or word in lexicon().words or word in lexicon().quantities:
                yield "claim word", word


def _of_spec(root: Any) -> Iterator[Use]:
    panels = _mapping(_get(root, "panels"))
    for name in panels:
        panel = _laid_over(panels, name)
        curves = list(_of_curves(root, panel))
        yield from curves
        yield from _of_panel(panel)
        for problem in dict.fromkeys(name for what, name in curves if what == "problem"):
            yield from _of_metrics(root, panel, problem)


def _of_curves(root: Any, panel: Any) -> Iterator[Use]:
    """Yield what the curves of a panel use: named by the curve itself, its panel, or the spec."""
    for curve in _listed(_get(panel, "curves")):
        yield from (("algorithm", str(name)) for name in _listed(_get(curve, "algorithm")))
        own = {**_mapping(curve), **_mapping(_get(curve, "zip"))}
        for what in ("problem", "dataset", "partition"):
            table = _get(root, f"{what}s")
            given = [_names(_get(part, what), table) for part in (own, panel, root)]
            yield from ((what, name) for name in next(filter(None, given), []))


def _names(node: Any, table: Any) -> list[str]:
    """Return the registered names of a name, a mapping with a name, or a list of them."""
    names = [
        _get(item, "name") if isinstance(item, dict) else _get(_get(table, item), "name") or item
        for item in _listed(node)
    ]
    return [str(name) for name in names if name is not None]


def _of_panel(panel: Any) -> Iterator[Use]:
    """Yield the kind, options and axis of a panel."""
    kind, options = _kind(panel), _mapping(_get(panel, "options"))
    yield "panel kind", kind
    yield from (("panel option", f"{kind}.{name}") for name, value in options.items() if value is not None)
    yield from (("axis", axis) for axis in AXES if axis in _axes(panel))


def _axes(panel: Any) -> list[Any]:
    """Return the axes of a panel: x, or in a table the axis of ``reach``."""
    options = _mapping(_get(panel, "options"))
    if _kind(panel) == "table":
        return [_get(options, "axis") or "round"] if _get(options, "reach") is not None else []
    return [] if _kind(panel) == "scatter" else [_get(panel, "x") or "round"]


def _of_metrics(root: Any, panel: Any, problem: str) -> Iterator[Use]:
    """Yield the metrics that a panel draws, and those recorded for it."""
    entry = registry.problems().get(problem)
    options, y = _mapping(_get(panel, "options")), _get(panel, "y") or "objective"
    cells = {"table": _listed(_get(options, "metrics")) or [y], "scatter": _listed(_get(options, "score"))}
    drawn = [*cells.get(_kind(panel), [y]), *_axes(panel)]
    every = [_get(other, axis) for other in _mapping(_get(root, "panels")).values() for axis in ("x", "y")]
    recorded = [y, *every, *_listed(_get(root, "metrics")), *_listed(_get(panel, "metrics"))]
    for metric in entry.metrics if entry is not None else ():
        if metric in drawn:
            yield "draws", f"{problem}.{metric}"
        if metric in recorded or metric in entry.default_metrics:  # type: ignore[union-attr]
            yield "records", f"{problem}.{metric}"


def _kind(panel: Any) -> str:
    return str(_get(panel, "kind") or "curves")


def _laid_over(panels: Mapping[str, Any], name: Any, chain: tuple[Any, ...] = ()) -> Any:
    """Return a panel merged over the panel that it is ``like``."""
    other = _get(panels[name], "like")
    if _get(panels, other) is None or other in (*chain, name):
        return panels[name]
    return _merged(_laid_over(panels, other, (*chain, name)), panels[name])


def _merged(base: Any, over: Any) -> Any:
    """Return ``over`` merged over ``base``: mappings merge key by key, other values are replaced."""
    if isinstance(base, dict) and isinstance(over, dict):
        return {**base, **{key: _merged(base[key], value) if key in base else value for key, value in over.items()}}
    return over


def _get(node: Any, key: Any) -> Any:
    return node.get(key) if isinstance(node, dict) and isinstance(key, Hashable) else None


def _mapping(node: Any) -> dict[Any, Any]:
    return node if isinstance(node, dict) else {}


def _listed(node: Any) -> list[Any]:
    return node if isinstance(node, list) else [] if node is None else [node]
