"""Which curves of figures depend on a piece of code: those whose runs would get another identity if it changed."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedrepro import own_modules, registry
from fedrepro.errors import UserError, nearest
from fedrepro.runs.identity import code
from fedrepro.runs.identity.code import Definition
from fedrepro.runs.identity.identify import computing_method, computing_problem
from fedrepro.spec.model import Figure, Setting

ROOT = Path(code.__file__).parents[2]
"""The folder of the package."""


@dataclass(frozen=True)
class Affected:
    """A figure with curves that a change affects: their number, the number of all its curves, and their methods."""

    figure: Figure
    curves: int
    total: int
    methods: tuple[str, ...]


def target(name: str) -> Callable[[Definition], bool]:
    """Return which definitions a name means: those of a file, or a registered class.

    name : the path of a Python file of the package or of one that a spec which was read imports, or the name of a
    method, problem, dataset or partition. Raises UserError for another name.
    """
    path = next((path for path in (Path(name), ROOT / name, ROOT.parent / name) if path.is_file()), None)
    if path is not None:
        modules = own_modules.of_file(path)
        if path.resolve().is_relative_to(ROOT):
            modules = [".".join((code.PACKAGE, *path.resolve().relative_to(ROOT).with_suffix("").parts))]
        if not modules:
            raise UserError(f"{name}: is neither a file of the package ({ROOT}) nor a module that your specs import")
        return lambda definition: definition.module in modules
    tables = (registry.methods(), registry.problems(), registry.datasets(), registry.partitions())
    classes = {key: entry.cls for table in tables for key, entry in table.items()}
    if name not in classes:
        raise UserError(
            f"{name}: neither a Python file nor a method, problem, dataset or partition{nearest(name, classes)} "
            "(`fedrepro list` shows all)"
        )
    own = code.definition_of(classes[name])
    return lambda definition: definition == own


def affected(figures: Iterable[Figure], targets: Iterable[Callable[[Definition], bool]]) -> list[Affected]:
    """Return the figures with curves whose runs reach one of the targets."""
    targets = list(targets)
    changed = []
    for figure in figures:
        settings = figure.settings()
        hit = [s for s in settings if any(is_target(d) for d in _reached(s) for is_target in targets)]
        if hit:
            methods = tuple(dict.fromkeys(setting.algorithm for setting in hit))
            changed.append(Affected(figure, len(hit), len(settings), methods))
    return changed


def _reached(setting: Setting) -> frozenset[Definition]:
    return _reached_by((*computing_method(setting), *computing_problem(setting, stand_in=False)))


@functools.cache
def _reached_by(computing: tuple[Any, ...]) -> frozenset[Definition]:
    return frozenset(code.reached_by(computing))
