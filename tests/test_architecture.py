"""The architecture: imports point down, without circles; private names stay in their folder; one name for one thing."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import fedrepro

ROOT = Path(fedrepro.__file__).parent

SAME_NAME = {
    "a dataset's arrays and the files they come from": [
        {f"datasets.{name}", f"data.sources.{name}"}
        for name in ("cifar", "europarl", "mnist", "movielens", "netflix", "omniglot", "synpuf", "tcga", "tdt2")
    ],
    "a part and the commands that call it": [
        {"cli.check", "runs.check"},
        {"cli.compute", "runs.compute"},
        {"cli.data", "data"},
        {"cli.failures", "runs.failures"},
        {"cli.provenance", "plotting.provenance"},
        {"cli.receipts", "results.receipts"},
        {"cli.report", "report"},
    ],
    "what both stages do with a file": [{"results.read", "spec.read"}],
}
"""Modules that share their last name, and why."""


def module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module(path): path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py"}


def statements(node: ast.AST, typing: bool = False) -> Iterator[ast.AST]:
    """Everything that is executed, and with ``typing`` what only a type checker reads."""
    for child in ast.iter_child_nodes(node):
        if typing or not (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)):
            yield child
            yield from statements(child, typing)


def imports(path: Path, typing: bool = False) -> Iterator[tuple[str, str]]:
    """(module of this package, name in it) of everything a file imports, wherever it does."""
    for node in statements(ast.parse(path.read_text(encoding="utf-8")), typing):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "fedrepro":
            for alias in node.names:
                yield node.module.removeprefix("fedrepro").removeprefix("."), alias.name


def circles(typing: bool, folders: bool = False) -> list[set[str]]:
    """Groups of modules in which each reaches every other one through imports; with ``folders``, of their folders.

    A folder is its own modules, without those of the folders in it; the modules at the top are no folder.
    """
    graph: dict[str, set[str]] = defaultdict(set)
    for name, path in MODULES.items():
        for origin, what in imports(path, typing):
            target = f"{origin}.{what}".strip(".")
            ends = [_folder(end) if folders else end for end in (name, target if target in MODULES else origin)]
            if not folders or ("" not in ends and ends[0] != ends[1]):
                graph[ends[0]].add(ends[1])
    reached = {name: _reached(graph, name) for name in sorted(graph)}
    groups = {
        frozenset(other for other in reached[name] if name in reached.get(other, ()))
        for name in reached
        if name in reached[name]
    }
    return sorted(map(set, groups), key=sorted)


def _folder(name: str) -> str:
    return name if MODULES.get(name, Path()).name == "__init__.py" else name.rpartition(".")[0]


def _reached(graph: dict[str, set[str]], name: str) -> set[str]:
    seen: set[str] = set()
    waiting = graph[name] - {name}
    while waiting:
        module_name = waiting.pop()
        seen.add(module_name)
        waiting |= graph[module_name] - seen - {module_name}
    return seen


def test_arrows_point_down() -> None:
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c(['--no-logo'])"]
    found = subprocess.run(command, cwd=ROOT.parent, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr
    assert "2 kept, 0 broken" in found.stdout


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert circles(typing=False) == []


def test_imports_for_type_checkers_make_no_circle() -> None:
    assert circles(typing=True) == []


def test_folders_make_no_circle() -> None:
    assert circles(typing=True, folders=True) == []


def test_no_folder_uses_the_private_names_of_another() -> None:
    for name, path in MODULES.items():
        for origin, what in imports(path):
            parts = [*origin.split("."), what]
            private = [p for p in parts if p.startswith("_") and not p.startswith("__")]
            assert not private or origin.rpartition(".")[0] == name.rpartition(".")[0], (
                f"{name} imports {origin}.{what}"
            )


def same_part(names: set[str]) -> bool:
    """Whether all are the same part of different problems (``problems.clustering.state``, ``problems.gcca.state``)."""
    parts = [name.split(".") for name in names]
    return all(p[0] == "problems" and len(p) == 3 for p in parts) and len({p[2] for p in parts}) == 1


def test_modules_share_a_name_only_for_a_reason() -> None:
    named: dict[str, set[str]] = defaultdict(set)
    for name in MODULES:
        named[name.rpartition(".")[2]].add(name)
    shared = [names for names in named.values() if len(names) > 1 and not same_part(names)]
    allowed = [group for groups in SAME_NAME.values() for group in groups]
    assert [sorted(names) for names in shared if names not in allowed] == []
    assert [sorted(group) for group in allowed if group not in shared] == []


def test_only_methods_and_the_registry_know_methods() -> None:
    for name, path in MODULES.items():
        if name.startswith("problems.") and ".methods." not in name:
            assert [origin for origin, _ in imports(path) if ".methods." in origin] == [], name


PUBLIC = {"", "results", "plotting"}
"""Packages that give users a name without loading it before its first use: for example ``fedrepro.results.load``."""


def test_a_package_describes_itself_and_re_exports_nothing() -> None:
    for path in ROOT.rglob("__init__.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert ast.get_docstring(tree), path
        rest = [s for s in tree.body[1:] if not (isinstance(s, ast.Assign) and ast.unparse(s.targets[0]) == "IN_RUNS")]
        package = ".".join(path.relative_to(ROOT).parts[:-1])
        assert not rest or package in PUBLIC, f"{path} defines or imports {ast.unparse(rest[0])}"


def test_parts_of_scipy_are_loaded_when_they_are_used() -> None:
    """``import scipy`` loads almost nothing; ``from scipy import sparse`` takes 0.1 s of commands without a matrix."""
    for name, path in MODULES.items():
        early = [
            text
            for statement in ast.parse(path.read_text(encoding="utf-8")).body
            if (text := ast.unparse(statement)).startswith(("from scipy", "import scipy."))
        ]
        assert early == [], f"{name}: write `import scipy`, and scipy.sparse.issparse(X) where it is used"
