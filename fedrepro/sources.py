"""A fingerprint of the code that computes a number: the modules it imports from this package, comments left out.

Editing the drawing code, a comment or a docstring leaves finished runs valid; editing a method, its problem or anything
they import does not.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import hashlib
import importlib.util
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

# These name things and carry messages; no number passes through them.
NOT_COMPUTING = (
    "fedrepro.registry",
    "fedrepro.errors",
    "fedrepro.spec",
    "fedrepro.cli",
    "fedrepro.plotting",
    "fedrepro.data.cli",
    # content fingerprints stand for what these do
    "fedrepro.data.fetch",
    "fedrepro.data.home",
    "fedrepro.data.imports",
    "fedrepro.data.source",
    "fedrepro.data.sources",
    "fedrepro.data.store",
    "fedrepro.data.trees",
    "fedrepro.algorithms._checks",
    "fedrepro.datasets.checks",
)
LIBRARIES = {"numpy": "numpy", "scipy": "scipy", "sklearn": "scikit-learn", "numba": "numba", "jax": "jax"}


@functools.cache
def _tree(module: str) -> ast.Module | None:
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        return None
    return ast.parse(Path(spec.origin).read_text(encoding="utf-8"))


@functools.cache
def _imports(module: str) -> frozenset[str]:
    tree = _tree(module)
    found: set[str] = set()
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Import):
            found |= {a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found.add(node.module)
            found |= {f"{node.module}.{a.name}" for a in node.names}
    return frozenset(name for name in found if name.startswith("fedrepro") and _is_module(name))


@functools.cache
def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def closure(modules: Iterable[str]) -> list[str]:
    """The given modules and everything of this package they import, sorted."""
    todo, seen = list(modules), set[str]()
    while todo:
        name = todo.pop()
        if name in seen or name == "fedrepro" or any(name == n or name.startswith(n + ".") for n in NOT_COMPUTING):
            continue
        seen.add(name)
        todo += _imports(name)
    return sorted(seen)


@functools.cache
def _digest(module: str) -> str:
    tree = _tree(module)
    if tree is None:
        return ""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if (
            isinstance(body, list)
            and body
            and isinstance(body[0], ast.Expr)
            and isinstance(body[0].value, ast.Constant)
        ):
            body[:] = body[1:] or [ast.Pass()]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()


def fingerprint(modules: Iterable[str], without: Iterable[str] = ()) -> str:
    """One hash of the code behind the given modules, leaving out those of ``without``."""
    names = [name for name in closure(modules) if name not in set(without)]
    text = "\n".join(f"{name} {_digest(name)}" for name in names)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def libraries(modules: Iterable[str]) -> dict[str, str]:
    """The versions of the installed libraries whose arithmetic the modules use."""
    used = {name for module in closure(modules) for name in _third_party(module)}
    found = {}
    for name, package in LIBRARIES.items():
        if name in used:
            with contextlib.suppress(PackageNotFoundError):
                found[package] = _version(package)
    return found


def own(modules: Iterable[str]) -> str:
    """One hash of these modules alone, without what they import."""
    return hashlib.sha256("\n".join(_digest(name) for name in modules).encode()).hexdigest()[:16]


@functools.cache
def _version(package: str) -> str:
    return version(package)


@functools.cache
def _third_party(module: str) -> frozenset[str]:
    tree = _tree(module)
    names = (
        [n for node in ast.walk(tree) if isinstance(node, ast.Import) for n in (a.name for a in node.names)]
        if tree
        else []
    )
    names += (
        [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module] if tree else []
    )
    return frozenset(name.split(".")[0] for name in names)
