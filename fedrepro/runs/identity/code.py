"""A digest of the code that computes a number: the definitions it reaches, wherever they are defined.

A digest covers a top-level definition (function, class or constant) and every definition of this package that it uses,
directly or through others. Each is read as a syntax tree. These parts of the tree do not count:

* names of definitions of this package and of imports: a name is replaced by the digest of what it refers to, so
  definitions and modules can be moved, split and renamed;
* names of local variables and of arguments: they are numbered in order of appearance. An argument keeps its name if
  a caller may need it: in methods, after ``*``, and in functions that are passed as values. Fields of a dataclass
  and other members keep theirs, because a spec sets them;
* docstrings, annotations, which error is raised and its text, checks of parameters, metadata of fields;
* the order of keywords in a call without ``**`` whose keywords are all constants or plain names.

A change of a constant, an operator or a default in any definition that is reached changes the digest.

A module that no number passes through declares it in a constant ``IN_RUNS`` (in a package's ``__init__`` the constant
applies to all modules of the package): ``"says"`` if the module only names, checks and reports, ``"reads"`` if it only
reads files, whose content has its own fingerprint. The default is ``"computes"``.
"""

from __future__ import annotations

import ast
import copy
import functools
import hashlib
import importlib
import importlib.util
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from fedrepro import cpu, own_modules
from fedrepro.nets import backend

PACKAGE = __name__.split(".", maxsplit=1)[0]
LIBRARIES: Mapping[str, tuple[str, ...]] = {
    "numpy": ("numpy",),
    "scipy": ("scipy",),
    "sklearn": ("scikit-learn",),
    "numba": ("numba", "llvmlite"),
    "jax": ("jax", "jaxlib", "jax-cuda12-plugin", "jax-cuda13-plugin", "jax-rocm7-plugin"),
    "optax": ("optax",),
    "pandas": ("pandas",),
    "PIL": ("pillow",),
}
"""Libraries whose version is part of the identity of a run: import name -> distributions."""

EXTRAS: Mapping[str, str] = {"jax": "deep", "optax": "deep"}
"""Libraries that an extra of this package installs: import name -> extra."""

_SETS_JAX = r"JAX_(?!.*(CACHE|LOG|DEBUG|DUMP|TRACEBACK))"
"""Variables that set JAX, except those of its caches and messages."""

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_SCOPES = (*_FUNCTIONS, *_COMPREHENSIONS, ast.ClassDef)
_PREDICTING = {
    "Method": {"check", "cost", "collapsed", "meets", "one_shot", "silent"},
    "Problem": {
        "check",
        "joins",
        "of",
        "probes",
        "together",
        "stored_bytes",
        "preparing",
        "measuring",
        "metrics",
        "ranges",
    },
    "Dataset": {"shape", "expected", "making", "doubts", "files", "bundled"},
    "Partition": {"check", "sharing"},
}
"""Members of the protocols (``fedrepro.protocols``) that check, predict and describe; no run computes with them.

A member that other members of its class use still counts, except ``check``. ``Problem.of`` builds in memory what runs
open from a folder, with the same bits (a test compares them).
"""
_METADATA = ("metadata", "repr", "doc")
"""Keywords of ``dataclasses.field`` that change no number."""
_SKIPPED = {"annotation", "returns", "type_comment", "type_params", "ctx", "kind"}
"""Fields of syntax nodes that change no number."""


class Definition(NamedTuple):
    """A top-level name of a module of this package; the name ``EFFECTS`` means what importing the module does."""

    module: str
    name: str


class Library(NamedTuple):
    """An object from outside this package."""

    path: str


class Own(NamedTuple):
    """A module of this package."""

    module: str


Meaning = Definition | Library | Own | None
"""What a name refers to; None for a local variable or a builtin."""

EFFECTS = "<effects>"
HOLE = "<definition>"


@dataclass(frozen=True)
class _Module:
    """The definitions, imports and effects of one source file; ``role`` is computes, says or reads."""

    name: str
    role: str
    defined: Mapping[str, list[ast.stmt]]
    imported: Mapping[str, tuple[str, str]]  # local name -> (module, name in it, or "" for the module)
    effects: list[ast.stmt]


@dataclass
class _Reading:
    """One definition as words; each ``HOLE`` is the place of the next definition in ``uses``."""

    words: list[str] = field(default_factory=list)
    uses: list[Definition] = field(default_factory=list)
    libraries: set[str] = field(default_factory=set)


# -- public functions --------------------------------------------------------------------------------------------------


def digest(objects: Iterable[Callable[..., Any] | type]) -> str:
    """Return one hash of the code of functions, methods or classes of this package, given in any order."""
    return _digest_of(tuple(objects))


@functools.cache
def _digest_of(objects: tuple[Callable[..., Any] | type, ...]) -> str:
    return _hash(sorted(_digest(definition_of(thing)) for thing in objects))[:24]


def libraries(
    objects: Iterable[Callable[..., Any] | type], recorded: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the versions of the libraries that the objects compute with, and what the environment tells JAX.

    recorded : such versions of another environment, which count instead of the installed ones.
    """
    used, recorded = _names_of_libraries(tuple(objects)), recorded or {}

    def version_of(name: str) -> str:
        without = "jax" in recorded and name.endswith("-plugin")  # recorded without an accelerator
        return recorded.get(name, "" if without else installed(name))

    distributions = [d for name, several in LIBRARIES.items() if name in used for d in several]
    versions = {d: found for d in distributions if (found := version_of(d))}
    if "jax" not in used:
        return versions
    known = {d for several in LIBRARIES.values() for d in several}
    settings = {k: v for k, v in recorded.items() if k not in known} if "jax" in recorded else jax_environment()
    return versions | settings


@functools.cache
def _names_of_libraries(objects: tuple[Callable[..., Any] | type, ...]) -> frozenset[str]:
    """Return the names, as imported, of the libraries that the objects compute with."""
    return frozenset(name for definition in reached_by(objects) for name in _read(definition).libraries)


@functools.cache
def installed(distribution: str) -> str:
    """Return the version of a distribution that is installed, '' if it is not."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""


def uninstalled(objects: Iterable[Callable[..., Any] | type]) -> list[str]:
    """Return the libraries of an extra that the objects compute with and that are not installed."""
    lacking = [name for name in EXTRAS if importlib.util.find_spec(name) is None]
    if not lacking:
        return []
    used = _names_of_libraries(tuple(objects))
    return [name for name in lacking if name in used]


def outside(objects: Iterable[Callable[..., Any] | type]) -> dict[str, str]:
    """Return a user's own modules outside this package that the objects compute with: name -> file.

    They are no part of a digest, and their version is not known: they are neither installed nor of Python.
    """
    files = {}
    for name in sorted(_names_of_libraries(tuple(objects)) - LIBRARIES.keys() - sys.stdlib_module_names):
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin and not {"site-packages", "dist-packages"} & set(Path(spec.origin).parts):
            files[name] = spec.origin
    return files


def jax_environment() -> dict[str, str]:
    """Return the variables by which the user has set JAX and XLA: they can change what networks compute."""
    settings = {name: value for name, value in os.environ.items() if re.match(_SETS_JAX, name) and value}
    flags = set(os.environ.get("XLA_FLAGS", "").split()) - {cpu.XLA, *backend.FLAGS}
    return settings | ({"XLA_FLAGS": " ".join(sorted(flags))} if flags else {})


def reached(start: Definition) -> set[Definition]:
    """Return a definition and all definitions that it uses, directly or through others."""
    todo, seen = [start], set[Definition]()
    while todo:
        definition = todo.pop()
        if definition not in seen:
            seen.add(definition)
            todo += _read(definition).uses
    return seen


def reached_by(objects: Iterable[Callable[..., Any] | type]) -> set[Definition]:
    """Return the definitions of functions, methods or classes, and all definitions that these use."""
    return set[Definition]().union(*(reached(definition_of(thing)) for thing in objects))


def definition_of(thing: Any) -> Definition:
    """Return the top-level definition that an object belongs to: its function, or the class of a method."""
    thing = getattr(thing, "__func__", thing)
    name = thing.__qualname__.split(".")[0]
    if name == "<lambda>":
        raise TypeError(f"a lambda of {thing.__module__} has no name to find its code by; define a function")
    definition = resolve(thing.__module__, name)
    if not isinstance(definition, Definition):
        raise TypeError(f"{thing.__module__}.{name} is not defined in this package")
    return definition


# -- modules and names -------------------------------------------------------------------------------------------------


@functools.cache
def _source(module: str) -> Path | None:
    """Return the file of a module of this package without importing more than the package itself."""
    package, *parts = module.split(".")
    spec = importlib.util.find_spec(package)
    for root in spec.submodule_search_locations or () if spec is not None else ():
        for path in (Path(root, *parts, "__init__.py"), Path(root, *parts).with_suffix(".py")):
            if path.is_file():
                return path
    return None


@functools.cache
def _module(name: str) -> _Module:
    own, path = own_modules.source(name), _source(name)
    if own is None and path is None:
        raise ModuleNotFoundError(f"{name} has no source file")
    body = ast.parse(path.read_text(encoding="utf-8") if path is not None else own or "").body
    body = [s for s in body if not _is_string(s) and not _only_for_types(s)]
    package = name if path is not None and path.name == "__init__.py" else name.rpartition(".")[0]
    imported = {k: v for s in body if isinstance(s, (ast.Import, ast.ImportFrom)) for k, v in _imports(s, package)}
    body = [s for s in body if not isinstance(s, (ast.Import, ast.ImportFrom))]
    names = {bound for s in body for bound in _bound(s)}
    defined: dict[str, list[ast.stmt]] = {bound: [] for bound in names}
    effects = []
    for statement in body:
        touched = {*_bound(statement), *_changed(statement)} & names
        for touched_name in touched:
            defined[touched_name].append(statement)
        if not touched:
            effects.append(statement)
    return _Module(name, _role(package, name, defined), defined, imported, effects)


def _role(package: str, name: str, defined: Mapping[str, list[ast.stmt]]) -> str:
    for statement in defined.get("IN_RUNS", ()):
        if isinstance(statement, ast.Assign):
            return str(ast.literal_eval(statement.value))
    above = package if package not in (name, own_modules.PACKAGE) else package.rpartition(".")[0]
    return _module(above).role if above else "computes"


def _imports(statement: ast.Import | ast.ImportFrom, package: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield (local name, (module, name in it)) for an import statement of a module of ``package``."""
    if isinstance(statement, ast.Import):
        for alias in statement.names:
            whole = alias.name if alias.asname else alias.name.split(".")[0]
            yield alias.asname or whole, (whole, "")
    else:
        path = importlib.util.resolve_name("." * statement.level + (statement.module or ""), package)
        for alias in statement.names:
            yield alias.asname or alias.name, (path, alias.name)


def resolve(module: str, name: str) -> Meaning:
    """Return what a top-level name of a module of this package refers to."""
    source = _module(module)
    if name in source.defined:
        return Definition(module, name)
    if name in source.imported:
        return _imported(*source.imported[name])
    return Own(f"{module}.{name}") if _source(f"{module}.{name}") is not None else None


def _imported(module: str, name: str) -> Meaning:
    if module.split(".")[0] != PACKAGE:
        return Library(f"{module}.{name}" if name else module)
    if module == PACKAGE and name and resolve(module, name) is None:
        return _public(name)
    return resolve(module, name) if name else Own(module)


def _public(name: str) -> Meaning:
    """Return what ``from fedrepro import NAME`` refers to, for a name that is found on first use."""
    thing = getattr(importlib.import_module(PACKAGE), name, None)
    return definition_of(thing) if isinstance(thing, type) or callable(thing) else None


def _is_string(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _is_post_init(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.FunctionDef) and statement.name == "__post_init__"


def _is_checks_above(value: ast.expr) -> bool:
    """Return whether the expression is ``super().__post_init__()``."""
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "__post_init__"


def _only_for_types(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and ast.unparse(statement.test).endswith("TYPE_CHECKING")


def _bound(node: ast.AST) -> Iterator[str]:
    """Yield the names that a statement binds in its own scope."""
    yield from _bound_in(_within(node))


def _bound_in(parts: Iterable[ast.AST]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield part.name
        elif isinstance(part, ast.Name) and isinstance(part.ctx, (ast.Store, ast.Del)):
            yield part.id
        elif isinstance(part, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and part.name:
            yield part.name
        elif isinstance(part, ast.MatchMapping) and part.rest:
            yield part.rest
        elif isinstance(part, _COMPREHENSIONS):  # a walrus in it binds in the enclosing scope
            yield from (n.target.id for n in ast.walk(part) if isinstance(n, ast.NamedExpr))


@functools.cache
def _keywords(statement: ast.stmt) -> tuple[str, ...]:
    """Return the keywords of all calls in a statement."""
    calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
    return tuple({keyword.arg: None for call in calls for keyword in call.keywords if keyword.arg})


def _changed(node: ast.AST) -> Iterator[str]:
    """Yield the names whose content a statement may change: ``a[i] = ...``, ``a.b = ...``, ``a.update(...)``."""
    for part in _within(node):
        target: ast.AST | None = None
        if isinstance(part, (ast.Subscript, ast.Attribute)) and isinstance(part.ctx, ast.Store):
            target = part.value
        elif isinstance(part, ast.Expr) and isinstance(part.value, ast.Call):
            target = part.value.func if isinstance(part.value.func, ast.Attribute) else None
        while isinstance(target, (ast.Subscript, ast.Attribute)):
            target = target.value
        if isinstance(target, ast.Name):
            yield target.id


def _within(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and the nodes below it in the same scope: not inside functions, classes or comprehensions."""
    todo = [node]
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, _SCOPES):
            todo += reversed(_children(node))  # read in the order in which they are written


def _children(node: ast.AST) -> list[ast.AST]:
    """Return the nodes right below a node, without those that only say how a name is used.

    It takes two thirds of the time of ``ast.iter_child_nodes``; digests visit every node several times.
    """
    found: list[ast.AST] = []
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, list):
            found += [item for item in value if isinstance(item, ast.AST)]
        elif isinstance(value, ast.AST) and name != "ctx":
            found.append(value)
    return found


# -- reading a definition ----------------------------------------------------------------------------------------------


@functools.cache
def _read(definition: Definition) -> _Reading:
    module = _module(definition.module)
    writer = _Writer(definition.module)
    if definition.name == EFFECTS:
        writer.block(module.effects)
        return writer.reading
    for statement in module.defined[definition.name]:
        writer.top(statement, definition.name)
    effects = Definition(definition.module, EFFECTS)
    if _read(effects).words:
        writer.use(effects)
    return writer.reading


@dataclass
class _Scope:
    """The local names of a function or class, with the meanings of imported ones and the numbers given so far."""

    kind: str  # "function" or "class"
    names: dict[str, Meaning]
    depth: int
    numbers: dict[str, int] = field(default_factory=dict)

    def number(self, name: str) -> str:
        """Return the word for a local name: the depth of its scope, and its place in the order of appearance."""
        return f"local {self.depth}.{self.numbers.setdefault(name, len(self.numbers))}"


class _Writer:
    """Writes syntax nodes as words and replaces names by what they refer to."""

    def __init__(self, module: str) -> None:
        self.module = module
        self.reading = _Reading()
        self.scopes: list[_Scope] = []
        self.whole: ast.stmt | None = None

    def put(self, *words: str) -> None:
        self.reading.words += words

    def use(self, definition: Definition) -> None:
        role = _module(definition.module).role
        if role == "computes":
            self.put(HOLE)
            self.reading.uses.append(definition)
        else:
            self.put(role)

    def top(self, statement: ast.stmt, name: str) -> None:
        """Write a statement that defines ``name``, without the name if the statement defines nothing else."""
        self.whole = statement
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            self.write(statement, named=False)
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)) and list(_bound(statement)) == [name]:
            if statement.value is not None:
                self.put("constant")
                self.write(statement.value)
        else:
            names = list(dict.fromkeys(_bound(statement)))
            self.put(f"name {names.index(name)}" if name in names else "changed")
            self.write(statement)

    def block(self, statements: list[ast.stmt]) -> None:
        """Write statements in order, except those that change no number."""
        for statement in statements:
            if not self.idle(statement):
                self.write(statement)

    def idle(self, statement: ast.stmt) -> bool:
        """Return whether a statement changes no number: text, an import, a check, or a loop of such statements."""
        if _is_string(statement) or isinstance(statement, (ast.Pass, ast.Import, ast.ImportFrom)):
            return True
        in_class = bool(self.scopes) and self.scopes[-1].kind == "class"
        if isinstance(statement, ast.AnnAssign) and statement.value is None:
            return not in_class
        if isinstance(statement, ast.For):
            return bool(statement.body) and all(map(self.idle, [*statement.body, *statement.orelse]))
        if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
            return False
        return self.says(statement.value)

    def only_checks(self, node: ast.AST, owner: ast.ClassDef, seen: frozenset[int] = frozenset()) -> bool:
        """Return whether part of a ``__post_init__`` sets nothing, neither itself nor through what it calls."""
        for child in ast.walk(node):
            if isinstance(child, (ast.Attribute, ast.Subscript)) and not isinstance(child.ctx, ast.Load):
                return False
            if isinstance(child, (ast.Return, ast.Yield, ast.YieldFrom, ast.Global, ast.Nonlocal)) and not seen:
                return False
            if isinstance(child, ast.Call) and not self.call_only_checks(child, owner, seen):
                return False
        return True

    def call_only_checks(self, call: ast.Call, owner: ast.ClassDef, seen: frozenset[int]) -> bool:
        """Return whether a call sets nothing: it calls a library, a class, or a function that sets nothing."""
        if ast.unparse(call.func).split(".")[-1] in ("setattr", "__setattr__"):
            return False
        meaning = self.meaning(call.func)
        writer, bodies = self, list[ast.stmt]()
        if isinstance(meaning, Definition) and _module(meaning.module).role == "computes":
            writer, bodies = _Writer(meaning.module), _module(meaning.module).defined[meaning.name]
        elif isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "self":
            bodies = [s for s in owner.body if isinstance(s, ast.FunctionDef) and s.name == call.func.attr]
            if not bodies:
                return False
        functions = [s for s in bodies if isinstance(s, ast.FunctionDef) and id(s) not in seen]
        return all(writer.only_checks(s, owner, seen | {id(s)}) for s in functions)

    def setting(self, function: ast.stmt, owner: ast.ClassDef) -> list[ast.stmt]:
        """Return the statements of a ``__post_init__`` that set something, or bind names for those that do."""
        assert isinstance(function, ast.FunctionDef)
        kept = []
        for statement in function.body:
            binds = isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.With))
            if binds or not (self.idle(statement) or self.only_checks(statement, owner)):
                kept.append(statement)
        return kept if any(not self.only_checks(statement, owner) for statement in kept) else []

    def bases_only_check(self, node: ast.ClassDef) -> bool:
        """Return whether no base class of this package sets anything in ``__post_init__``."""
        for base in node.bases:
            meaning = self.meaning(base)
            if not isinstance(meaning, Definition) or _module(meaning.module).role != "computes":
                continue
            writer = _Writer(meaning.module)
            for statement in _module(meaning.module).defined[meaning.name]:
                if isinstance(statement, ast.ClassDef):
                    own = filter(_is_post_init, statement.body)
                    if any(writer.setting(s, statement) for s in own) or not writer.bases_only_check(statement):
                        return False
        return True

    def says(self, call: ast.Call) -> bool:
        """Return whether a call goes to a module that only names, checks and reports."""
        meaning = self.meaning(call.func)
        return isinstance(meaning, Definition) and _module(meaning.module).role == "says"

    # Names

    def meaning(self, node: ast.AST) -> Meaning:
        """Return what a name, or an attribute of a module, refers to."""
        if isinstance(node, ast.Name):
            scope = self.scope_of(node.id)
            return scope.names[node.id] if scope is not None else resolve(self.module, node.id)
        if isinstance(node, ast.Attribute):
            base = self.meaning(node.value)
            if isinstance(base, Library):
                return Library(f"{base.path}.{node.attr}")
            if isinstance(base, Own):
                return resolve(base.module, node.attr)
        return None

    def scope_of(self, name: str) -> _Scope | None:
        """Return the innermost scope where a name is local; methods do not see the names of their class."""
        for above, scope in enumerate(reversed(self.scopes)):
            if name in scope.names and (scope.kind == "function" or above == 0):
                return scope
        return None

    def local_name(self, name: str) -> None:
        """Write the word for a name that is bound: a number in a function, the name itself elsewhere."""
        scope = self.scope_of(name)
        self.put(scope.number(name) if scope is not None and scope.kind == "function" else f"name {name}")

    def named(self, node: ast.Name | ast.Attribute) -> None:
        meaning = self.meaning(node)
        if isinstance(meaning, Definition):
            self.use(meaning)
            self.put(*_arguments(meaning))  # passed as a value: its caller may name its arguments
        elif isinstance(meaning, Library):
            self.put("library", meaning.path)
            self.reading.libraries.add(meaning.path.split(".")[0])
        elif isinstance(meaning, Own):  # the module itself is passed on: anything in it may be used
            for name in sorted(_module(meaning.module).defined):
                self.use(Definition(meaning.module, name))
        elif isinstance(node, ast.Name):
            self.local_name(node.id)
        else:
            self.fields(node)

    # Nodes

    def write(self, node: ast.AST, named: bool = True) -> None:
        match node:
            case ast.Name() | ast.Attribute():
                self.named(node)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                self.function(node, named)
            case ast.ClassDef():
                self.class_(node, named)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                self.comprehension(node)
            case ast.Raise():
                self.put("raise")
            case ast.Assert(test=test):
                self.put("assert")
                self.write(test)
            case ast.Call():
                self.call(node)
            case ast.AnnAssign(target=target, value=value):
                if self.scopes and self.scopes[-1].kind == "class":  # annotations decide what is a field
                    self.put("shared" if "ClassVar" in ast.unparse(node.annotation) else "field")
                self.put("Assign", "(", "targets=")
                self.write(target)
                if value is not None and not self.is_only_metadata(value):
                    self.put("value=")
                    self.write(value)
                self.put(")")
            case ast.Constant(value=value):
                self.put(f"{type(value).__name__} {value!r}")
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                self.local_name(name)
                self.fields(node, ("name",))
            case ast.MatchMapping(rest=str(name)):
                self.local_name(name)
                self.fields(node, ("rest",))
            case ast.Global() | ast.Nonlocal():
                self.put(type(node).__name__)
                for name in node.names:
                    self.write(ast.Name(name, ast.Load()))
            case _:
                self.fields(node)

    def fields(self, node: ast.AST, without: tuple[str, ...] = ()) -> None:
        """Write a node of any other kind: its type and its fields, without empty ones (Python versions differ)."""
        self.put(type(node).__name__, "(")
        for name, value in ast.iter_fields(node):
            if name in _SKIPPED or name in without or value is None or value == []:
                continue
            self.put(f"{name}=")
            if isinstance(value, ast.AST):
                self.write(value)
            elif isinstance(value, list) and isinstance(value[0], ast.stmt):
                self.block(value)
            elif isinstance(value, list):
                for item in value:
                    self.write(item) if isinstance(item, ast.AST) else self.put(repr(item))
            else:
                self.put(repr(value))
        self.put(")")

    def call(self, node: ast.Call) -> None:
        """Write a call; keywords of a function of this package are written as the places of its arguments."""
        meaning = self.meaning(node.func)
        unknown = any(keyword.arg is None for keyword in node.keywords)  # ** may pass any name
        arguments: tuple[str, ...] = ()
        if isinstance(meaning, Definition) and self.says(node):  # its first argument is a name: the rest explains
            self.put("Call", "says")
            for argument in node.args[:1]:
                self.write(argument)
            return
        if meaning == Library("dataclasses.field"):
            return self.dataclass_field(node)
        self.put("Call", "(")
        if isinstance(meaning, Definition) and not unknown and (arguments := _arguments(meaning)):
            self.use(meaning)
        else:
            self.write(node.func)
        self.put("args=")
        for argument in node.args:
            self.write(argument)
        keywords = [(self.keyword(keyword.arg, arguments), keyword.value) for keyword in node.keywords]
        if not unknown and all(isinstance(value, (ast.Constant, ast.Name)) for _, value in keywords):
            keywords.sort(key=lambda pair: pair[0])
        for name, value in keywords:
            self.put(name)
            self.write(value)
        self.put(")")

    @staticmethod
    def keyword(name: str | None, arguments: tuple[str, ...]) -> str:
        """Return the word for a keyword of a call: its place among the arguments if these are known."""
        if name is None:
            return "**"
        return f"argument {arguments.index(name)}" if name in arguments else f"keyword {name}"

    def is_only_metadata(self, value: ast.expr) -> bool:
        """Return whether the value of a field is ``field(metadata=...)``, which sets no default."""
        is_field = isinstance(value, ast.Call) and self.meaning(value.func) == Library("dataclasses.field")
        return is_field and isinstance(value, ast.Call) and all(k.arg in _METADATA for k in value.keywords)

    def dataclass_field(self, node: ast.Call) -> None:
        """Write ``field(default=x, metadata=...)`` as ``x``: metadata change no number."""
        counted = [keyword for keyword in node.keywords if keyword.arg not in _METADATA]
        if len(counted) == 1 and counted[0].arg == "default":
            return self.write(counted[0].value)
        self.put("dataclass field", "(")
        for keyword in counted:
            self.put(f"keyword {keyword.arg}")
            self.write(keyword.value)
        self.put(")")

    def comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> None:
        self.put(type(node).__name__, "(")
        self.write(node.generators[0].iter)  # evaluated in the enclosing scope
        names = (name for generator in node.generators for name in _bound(generator.target))
        self.scopes.append(_Scope("function", dict.fromkeys(names), len(self.scopes)))
        for number, generator in enumerate(node.generators):
            self.fields(generator, ("iter",) if number == 0 else ())
        for part in ("key", "value", "elt"):
            if isinstance(value := getattr(node, part, None), ast.AST):
                self.write(value)
        self.put(")")
        self.scopes.pop()

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, named: bool) -> None:
        method = bool(self.scopes) and self.scopes[-1].kind == "class"
        self.put("function")
        if named and not isinstance(node, ast.Lambda):
            self.local_name(node.name)
        decorators = [] if isinstance(node, ast.Lambda) else node.decorator_list
        for outside in (*decorators, *node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)):
            self.write(outside)
        a = node.args
        scope = _Scope("function", self.local(node), len(self.scopes))
        self.scopes.append(scope)
        called = () if method else self.called_by_keyword(node)
        for kind, listed in (("positional", a.posonlyargs), ("either", a.args), ("keyword", a.kwonlyargs)):
            keeps = kind != "positional" and (method or (kind == "keyword" and bool(self.scopes[:-1])))
            self.put(kind)
            for argument in listed:
                self.put(scope.number(argument.arg))
                if keeps or argument.arg in called:
                    self.put(argument.arg)
        for star, starred in (("*", a.vararg), ("**", a.kwarg)):
            if starred is not None:
                self.put(star, scope.number(starred.arg))
        required = zip(a.kwonlyargs, a.kw_defaults, strict=True)
        self.put("defaults", str(len(a.defaults)), *(scope.number(k.arg) for k, d in required if d is None))
        if isinstance(node, ast.Lambda):
            self.write(node.body)
        else:
            self.block(node.body)
        self.scopes.pop()
        self.put("end")

    def called_by_keyword(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> tuple[str, ...]:
        """Return the arguments of a nested function that calls in the same definition may name."""
        return () if len(self.scopes) == 1 or self.whole is None else _keywords(self.whole)

    def local(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> dict[str, Meaning]:
        """Return the local names of a function: its arguments, what it binds, and what it imports with its meaning."""
        arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg)
        names: dict[str, Meaning] = {argument.arg: None for argument in arguments if argument is not None}
        if isinstance(node, ast.Lambda):
            return names
        inside = [child for statement in node.body for child in _within(statement)]
        outer = {name for child in inside if isinstance(child, (ast.Global, ast.Nonlocal)) for name in child.names}
        names |= {name: None for name in _bound_in(inside) if name not in outer}
        for child in inside:
            if isinstance(child, (ast.Import, ast.ImportFrom)):
                package = self.module.rpartition(".")[0]
                names |= {name: _imported(*target) for name, target in _imports(child, package)}
        return names

    def class_(self, node: ast.ClassDef, named: bool) -> None:
        self.put("class")
        if named:
            self.local_name(node.name)
        for outside in (*node.decorator_list, *node.bases):
            self.write(outside)
        for keyword in node.keywords:
            self.fields(keyword)
        predicting = {name for kind in self.protocols(node) for name in _PREDICTING.get(kind, ())}
        predicting -= self.used_members(node, predicting) - {"check"}
        body = [s for s in node.body if not set(_bound(s)) & predicting]
        only_checks = self.bases_only_check(node)
        body = [part for s in body for part in (self.post_init(s, node, only_checks) if _is_post_init(s) else [s])]
        self.scopes.append(_Scope("class", {name: None for s in body for name in _bound(s)}, len(self.scopes)))
        self.block(body)
        self.scopes.pop()
        self.put("end")

    def post_init(self, function: ast.stmt, owner: ast.ClassDef, only_checks_above: bool) -> list[ast.stmt]:
        """Return a ``__post_init__`` without its checks, or nothing if it then does what the base classes do."""
        assert isinstance(function, ast.FunctionDef)
        setting = self.setting(function, owner)
        above = [s for s in function.body if isinstance(s, ast.Expr) and _is_checks_above(s.value)]
        if not setting and (only_checks_above or above):  # the same as the one above, or as none
            return []
        reduced = copy.copy(function)
        reduced.body = [*([] if only_checks_above else above), *(s for s in setting if s not in above)]
        return [reduced]

    def used_members(self, node: ast.ClassDef, without: set[str]) -> set[str]:
        """Return the members that other members of a class or its bases use through ``self`` or ``cls``."""
        kept = [s for s in node.body if not set(_bound(s)) & without]
        attributes = (n for s in kept for n in ast.walk(s) if isinstance(n, ast.Attribute))
        used = {n.attr for n in attributes if isinstance(n.value, ast.Name) and n.value.id in ("self", "cls")}
        for base in node.bases:
            meaning = self.meaning(base)
            if isinstance(meaning, Definition) and _module(meaning.module).role == "computes":
                for statement in _module(meaning.module).defined[meaning.name]:
                    if isinstance(statement, ast.ClassDef):
                        used |= _Writer(meaning.module).used_members(statement, without)
        return used

    def protocols(self, node: ast.ClassDef) -> Iterator[str]:
        """Yield the names of the protocols that a class derives from, directly or through other classes."""
        for base in node.bases:
            meaning = self.meaning(base)
            if isinstance(meaning, Definition):
                module = _module(meaning.module)
                if module.role == "says":
                    yield meaning.name
                for statement in module.defined[meaning.name]:
                    if isinstance(statement, ast.ClassDef):
                        yield from _Writer(meaning.module).protocols(statement)


@functools.cache
def _arguments(definition: Definition) -> tuple[str, ...]:
    """Return the arguments of a function of this package that a call can name; () for anything else."""
    statements = _module(definition.module).defined[definition.name]
    if len(statements) != 1 or not isinstance(statements[0], (ast.FunctionDef, ast.AsyncFunctionDef)):
        return ()
    if _module(definition.module).role != "computes":
        return ()
    arguments = statements[0].args
    return tuple(argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs))


# -- digests -----------------------------------------------------------------------------------------------------------


def _hash(words: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(words).encode()).hexdigest()


_DIGESTS: dict[Definition, str] = {}


def _digest(definition: Definition) -> str:
    """Return the digest of a definition: of its words, with the digests of what it uses in their places."""
    if definition not in _DIGESTS:
        _digest_reached(definition, {}, [])
    return _DIGESTS[definition]


def _digest_reached(start: Definition, index: dict[Definition, int], path: list[Definition]) -> int:
    """Digest all that ``start`` reaches, in groups that use each other (Tarjan, 1972).

    index : definitions seen, with their numbers in order. path : those whose group is not complete yet. Returns the
    smallest number among the definitions of ``path`` that ``start`` reaches.
    """
    index[start] = lowest = len(index)
    path.append(start)
    for used in _read(start).uses:
        if used not in index and used not in _DIGESTS:
            lowest = min(lowest, _digest_reached(used, index, path))
        elif used in path:
            lowest = min(lowest, index[used])
    if lowest == index[start]:
        first = path.index(start)
        _DIGESTS.update(_digest_group(path[first:]))
        del path[first:]
    return lowest


def _digest_group(group: list[Definition]) -> dict[Definition, str]:
    """Return the digests of definitions that use each other; all others that they use have digests already.

    Inside the group a definition is identified by its words, then by the words of those it uses, and so on, until
    each has seen all others.
    """
    inside = dict.fromkeys(group, "")
    for _ in range(len(group) + 1):
        inside = {definition: _hash(_filled(_read(definition), inside)) for definition in group}
    return inside


def _filled(reading: _Reading, inside: Mapping[Definition, str]) -> Iterator[str]:
    uses = iter(reading.uses)
    for word in reading.words:
        if word == HOLE:
            used = next(uses)
            yield inside[used] if used in inside else _DIGESTS[used]
        else:
            yield word
