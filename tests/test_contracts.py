"""What every registered name must keep: found by discovery, so adding a file enrols it."""

from __future__ import annotations

import dataclasses
import inspect
import re
from pathlib import Path

import pytest

from fedrepro import registry

from .conftest import ROOT

ALGORITHMS = registry.algorithms()
DATASETS = registry.datasets()
PARTITIONS = registry.partitions()


@pytest.mark.parametrize("name", ALGORITHMS)
def test_an_algorithm_is_a_frozen_dataclass_that_can_be_made_and_says_what_it_solves(name: str) -> None:
    entry = ALGORITHMS[name]
    method = entry.make()
    assert dataclasses.is_dataclass(method)
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(method, dataclasses.fields(method)[0].name if dataclasses.fields(method) else "x", 1)
    assert set(entry.preset) <= {f.name for f in dataclasses.fields(method)}
    assert entry.problem in registry.problems()
    assert set(entry.papers) <= {*registry.PAPERS, "beyond"}
    assert entry.label
    assert entry.summary
    signature = inspect.signature(entry.cls.rounds)
    assert list(signature.parameters)[:3] == ["self", "problem", "rng"]
    assert {"ledger", "init", "clients"} <= set(signature.parameters)
    module = inspect.getmodule(entry.cls)
    assert module is not None
    said = f"{module.__doc__} {entry.cls.__doc__}"
    assert re.search(r"section|Sec\.|Algorithm|\d{4}", said), f"{name} names no source"


@pytest.mark.parametrize("name", ALGORITHMS)
def test_an_algorithm_has_a_style_of_its_own(name: str) -> None:
    from fedrepro.plotting import style

    assert style.identity(name) in style.METHODS, f"give '{name}' a colour and a marker in fedrepro/plotting/style.py"


@pytest.mark.parametrize("name", DATASETS)
def test_a_dataset_has_documented_keyword_parameters_and_a_shape(name: str) -> None:
    entry = DATASETS[name]
    assert entry.kind in {"samples", "ratings", "views", "images"} | {p.data_kind for p in registry.problems().values()}
    assert entry.load.__doc__
    assert entry.summary
    defaults = {k: v for k, v in entry.parameters().items() if v is not dataclasses.MISSING}
    if len(defaults) == len(entry.parameters()):
        assert isinstance(entry.shape(**defaults), dict)
        if entry.check is not None:
            entry.check(**defaults)
    if entry.source is not None:
        assert entry.stand_in is not None, f"'{name}' needs files and has no stand-in"
        assert set(registry.keyword_parameters(entry.stand_in)) >= set(entry.parameters())


@pytest.mark.parametrize("name", PARTITIONS)
def test_a_partition_has_documented_parameters(name: str) -> None:
    entry = PARTITIONS[name]
    assert entry.assign.__doc__
    assert entry.summary


@pytest.mark.parametrize("module", sorted((ROOT / "fedrepro").rglob("*.py")), ids=lambda p: str(p.relative_to(ROOT)))
def test_every_public_function_and_class_is_documented(module: Path) -> None:
    import ast

    tree = ast.parse(module.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree) or not tree.body, f"{module.name} has no docstring"
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.ClassDef)) and not child.name.startswith("_"):
                assert ast.get_docstring(child), f"{module.name}:{child.lineno}: {child.name} has no docstring"
                if isinstance(child, ast.ClassDef):
                    todo.append(child)
