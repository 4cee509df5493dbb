"""A digest of the code that computes a number: of the definitions it reaches, wherever they stand.

A digest is taken of top-level definitions (functions, classes, constants) and of every definition of this package they
use, directly or through others. Each is read as a syntax tree in which

* a name that stands for another definition is replaced by that definition's own digest, and one that stands for a
  library by the library's name: modules may be moved, renamed or split, definitions and import aliases renamed;
* strings that are statements, annotations, the texts of errors and the checks of parameters are left out.

Formatting, comments, documentation, annotations and messages therefore leave a digest alone; a constant, an operator or
a default in anything that is reached changes it.

A module that takes no part in a number says so in a constant ``IN_RUNS`` (one in a package's ``__init__`` speaks for
its modules too): ``"says"`` where it only names, checks and complains, ``"reads"`` where it only hands on files, whose
content has a fingerprint of its own. The default is ``"computes"``.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import hashlib
import importlib.util
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

PACKAGE = __name__.split(".", maxsplit=1)[0]
LIBRARIES = {"numpy": "numpy", "scipy": "scipy", "sklearn": "scikit-learn", "numba": "numba", "jax": "jax"}
"""Libraries whose version is part of what computes a number: import name -> distribution."""

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_PREDICTING = {
    "Method": {"cost", "collapsed", "meets", "one_shot", "silent", "raises"},
    "Problem": {"joins", "probes", "together", "stored_bytes", "preparing", "measuring", "raised"},
    "Loader": {"shape", "expected", "making", "doubts", "files", "bundled"},
    "Sharing": {"sharing"},
}
"""Members of classes of these protocols (``fedrepro.protocols``) that predict and describe; no run asks for them."""
_SKIPPED = {"annotation", "returns", "type_comment", "type_params", "ctx", "kind"}
"""Fields of syntax nodes that change no number."""


class Definition(NamedTuple):
    """A top-level name of a module of this package; ``EFFECTS`` stands for what importing the module does."""

    module: str
    name: str


class Library(NamedTuple):
    """Something that comes from outside this package."""

    path: str


class Own(NamedTuple):
    """A module of this package."""

    module: str


Meaning = Definition | Library | Own | None
"""What a name stands for; None for a local variable or a builtin."""

EFFECTS = "<effects>"
HOLE = "<definition>"


@dataclass(frozen=True)
class _Module:
    """What the top level of one source file defines, imports and does; ``role``: computes, says or reads."""

    name: str
    role: str
    defined: Mapping[str, list[ast.stmt]]
    imported: Mapping[str, tuple[str, str]]  # local name -> (module, name in it, or "" for the module)
    effects: list[ast.stmt]


@dataclass
class _Reading:
    """One definition as words; a ``HOLE`` among them stands for the next of the definitions it uses."""

    words: list[str] = field(default_factory=list)
    uses: list[Definition] = field(default_factory=list)
    libraries: set[str] = field(default_factory=set)


# -- what is asked -----------------------------------------------------------------------------------------------------


def digest(objects: Iterable[Callable[..., Any] | type]) -> str:
    """One hash of the code behind functions, methods or classes of this package, in any order."""
    return _hash(sorted(_digest(_definition(o)) for o in objects))[:24]


def libraries(objects: Iterable[Callable[..., Any] | type]) -> dict[str, str]:
    """The versions of the installed libraries whose arithmetic these functions, methods or classes use."""
    used = {name for o in objects for one in reached(_definition(o)) for name in _read(one).libraries}
    found = {}
    for name, distribution in LIBRARIES.items():
        if name in used:
            with contextlib.suppress(PackageNotFoundError):
                found[distribution] = _version(distribution)
    return found


def reached(start: Definition) -> set[Definition]:
    """A definition and all that it uses, directly or through others."""
    todo, seen = [start], set[Definition]()
    while todo:
        one = todo.pop()
        if one not in seen:
            seen.add(one)
            todo += _read(one).uses
    return seen


def _definition(thing: Any) -> Definition:
    """The top-level definition an object belongs to: its function, or the class of a method."""
    thing = getattr(thing, "__func__", thing)
    name = thing.__qualname__.split(".")[0]
    if name == "<lambda>":
        raise TypeError(f"a lambda of {thing.__module__} has no name to find its code by; define a function")
    found = resolve(thing.__module__, name)
    if not isinstance(found, Definition):
        raise TypeError(f"{thing.__module__}.{name} is not defined in this package")
    return found


@functools.cache
def _version(distribution: str) -> str:
    return version(distribution)


# -- modules and names -------------------------------------------------------------------------------------------------


@functools.cache
def _source(module: str) -> Path | None:
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        return None
    return Path(spec.origin) if spec is not None and spec.origin is not None else None


@functools.cache
def _module(name: str) -> _Module:
    path = _source(name)
    if path is None:
        raise ModuleNotFoundError(f"{name} has no source file")
    body = ast.parse(path.read_text(encoding="utf-8")).body
    body = [s for s in body if not _is_string(s) and not _only_for_types(s)]
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    imported = {k: v for s in body if isinstance(s, (ast.Import, ast.ImportFrom)) for k, v in _imports(s, package)}
    body = [s for s in body if not isinstance(s, (ast.Import, ast.ImportFrom))]
    names = {each for s in body for each in _bound(s)}
    defined: dict[str, list[ast.stmt]] = {each: [] for each in names}
    effects = []
    for statement in body:
        touched = {*_bound(statement), *_changed(statement)} & names
        for each in touched:
            defined[each].append(statement)
        if not touched:
            effects.append(statement)
    return _Module(name, _role(package, name, defined), defined, imported, effects)


def _role(package: str, name: str, defined: Mapping[str, list[ast.stmt]]) -> str:
    for statement in defined.get("IN_RUNS", ()):
        if isinstance(statement, ast.Assign):
            return str(ast.literal_eval(statement.value))
    above = package if package != name else name.rpartition(".")[0]
    return _module(above).role if above else "computes"


def _imports(statement: ast.Import | ast.ImportFrom, package: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """(local name, (module, name in it)) of an import statement of a module of ``package``."""
    if isinstance(statement, ast.Import):
        for alias in statement.names:
            whole = alias.name if alias.asname else alias.name.split(".")[0]
            yield alias.asname or whole, (whole, "")
    else:
        path = importlib.util.resolve_name("." * statement.level + (statement.module or ""), package)
        for alias in statement.names:
            yield alias.asname or alias.name, (path, alias.name)


def resolve(module: str, name: str) -> Meaning:
    """What a top-level name of a module of this package stands for."""
    found = _module(module)
    if name in found.defined:
        return Definition(module, name)
    if name in found.imported:
        return _imported(*found.imported[name])
    return Own(f"{module}.{name}") if _source(f"{module}.{name}") is not None else None


def _imported(module: str, name: str) -> Meaning:
    if module.split(".")[0] != PACKAGE:
        return Library(f"{module}.{name}" if name else module)
    return resolve(module, name) if name else Own(module)


def _is_string(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _only_for_types(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and ast.unparse(statement.test).endswith("TYPE_CHECKING")


def _bound(node: ast.AST) -> Iterator[str]:
    """The names that a statement binds in its own scope."""
    for one in _within(node):
        if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield one.name
        elif isinstance(one, ast.Name) and isinstance(one.ctx, (ast.Store, ast.Del)):
            yield one.id
        elif isinstance(one, ast.ExceptHandler) and one.name:
            yield one.name


def _changed(node: ast.AST) -> Iterator[str]:
    """The names whose content a statement may change: ``a[i] = ...``, ``a.b = ...``, ``a.update(...)``."""
    for one in _within(node):
        target: ast.AST | None = None
        if isinstance(one, (ast.Subscript, ast.Attribute)) and isinstance(one.ctx, ast.Store):
            target = one.value
        elif (
            isinstance(one, ast.Expr) and isinstance(one.value, ast.Call) and isinstance(one.value.func, ast.Attribute)
        ):
            target = one.value.func.value
        while isinstance(target, (ast.Subscript, ast.Attribute)):
            target = target.value
        if isinstance(target, ast.Name):
            yield target.id


def _within(node: ast.AST) -> Iterator[ast.AST]:
    """A node and what is below it in the same scope: not inside functions, classes and comprehensions."""
    yield node
    if not isinstance(node, (*_FUNCTIONS, *_COMPREHENSIONS, ast.ClassDef)):
        for child in ast.iter_child_nodes(node):
            yield from _within(child)


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
    """Local names, and what those that a function imports stand for."""

    kind: str  # "function" or "class"
    names: dict[str, Meaning]


class _Writer:
    """Writes syntax nodes as words, names replaced by what they stand for."""

    def __init__(self, module: str) -> None:
        self.module = module
        self.reading = _Reading()
        self.scopes: list[_Scope] = []

    def put(self, *words: str) -> None:
        self.reading.words += words

    def use(self, definition: Definition) -> None:
        role = _module(definition.module).role
        if role == "computes":
            self.put(HOLE)
            self.reading.uses.append(definition)
        else:
            self.put(role, definition.name)

    def top(self, statement: ast.stmt, name: str) -> None:
        """A statement that defines ``name``; the name itself is left out where the statement defines nothing else."""
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
        """Statements in order, without those that change no number."""
        for statement in statements:
            if not self.idle(statement):
                self.write(statement)

    def idle(self, statement: ast.stmt) -> bool:
        """Whether a statement changes no number: text, an import, a check of parameters, or blocks of nothing else."""
        if _is_string(statement) or isinstance(statement, (ast.Pass, ast.Import, ast.ImportFrom)):
            return True
        if isinstance(statement, ast.AnnAssign) and statement.value is None:
            return not (self.scopes and self.scopes[-1].kind == "class")
        if isinstance(statement, ast.For):
            return bool(statement.body) and all(map(self.idle, [*statement.body, *statement.orelse]))
        return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) and self.says(statement.value)

    def says(self, call: ast.Call) -> bool:
        found = self.meaning(call.func)
        return isinstance(found, Definition) and _module(found.module).role == "says"

    # Names

    def meaning(self, node: ast.AST) -> Meaning:
        """What a name, or an attribute of a module, stands for."""
        if isinstance(node, ast.Name):
            return self.lookup(node.id)
        if isinstance(node, ast.Attribute):
            base = self.meaning(node.value)
            if isinstance(base, Library):
                return Library(f"{base.path}.{node.attr}")
            if isinstance(base, Own):
                return resolve(base.module, node.attr)
        return None

    def lookup(self, name: str) -> Meaning:
        for depth, scope in enumerate(reversed(self.scopes)):
            if name in scope.names and (scope.kind == "function" or depth == 0):
                return scope.names[name]
        return resolve(self.module, name)

    def named(self, node: ast.Name | ast.Attribute) -> None:
        found = self.meaning(node)
        if isinstance(found, Definition):
            self.use(found)
        elif isinstance(found, Library):
            self.put("library", found.path)
            self.reading.libraries.add(found.path.split(".")[0])
        elif isinstance(found, Own):  # the module itself is handed on: anything in it may be used
            for name in sorted(_module(found.module).defined):
                self.use(Definition(found.module, name))
        elif isinstance(node, ast.Name):
            self.put("name", node.id)
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
                self.scopes.append(
                    _Scope("function", dict.fromkeys(n for g in node.generators for n in _bound(g.target)))
                )
                self.fields(node)
                self.scopes.pop()
            case ast.Raise(exc=error):
                self.put("raise")
                if error is not None:
                    self.write(error.func if isinstance(error, ast.Call) else error)
            case ast.Assert(test=test):
                self.put("assert")
                self.write(test)
            case ast.Call() if self.says(node):
                self.write(node.func)
                for argument in node.args[:1]:  # what it names: the rest explains
                    self.write(argument)
            case ast.AnnAssign(target=target, value=value):
                if self.scopes and self.scopes[-1].kind == "class":  # a dataclass tells fields by their annotations
                    self.put("shared" if "ClassVar" in ast.unparse(node.annotation) else "field")
                self.put("Assign", "(", "targets=")
                self.write(target)
                if value is not None:
                    self.put("value=")
                    self.write(value)
                self.put(")")
            case ast.Constant(value=value):
                self.put(f"{type(value).__name__} {value!r}")
            case _:
                self.fields(node)

    def fields(self, node: ast.AST) -> None:
        """A node of any other kind: its type and its fields; empty ones are left out, whatever Python's version."""
        self.put(type(node).__name__, "(")
        for name, value in ast.iter_fields(node):
            if name in _SKIPPED or value is None or value == []:
                continue
            self.put(f"{name}=")
            if isinstance(value, ast.AST):
                self.write(value)
            elif isinstance(value, list) and isinstance(value[0], ast.stmt):
                self.block(value)
            elif isinstance(value, list):
                for each in value:
                    self.write(each) if isinstance(each, ast.AST) else self.put(repr(each))
            else:
                self.put(repr(value))
        self.put(")")

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, named: bool) -> None:
        self.put("function", *([node.name] if named and not isinstance(node, ast.Lambda) else []))
        decorators = [] if isinstance(node, ast.Lambda) else node.decorator_list
        for outside in (*decorators, *node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)):
            self.write(outside)
        a = node.args
        for kind, listed in (("positional", a.posonlyargs), ("either", a.args), ("keyword", a.kwonlyargs)):
            self.put(kind, *(one.arg for one in listed))
        self.put(*(f"{star}{one.arg}" for star, one in (("*", a.vararg), ("**", a.kwarg)) if one is not None))
        self.put("required", *(one.arg for one, d in zip(a.kwonlyargs, a.kw_defaults, strict=True) if d is None))
        self.scopes.append(_Scope("function", self.local(node)))
        if isinstance(node, ast.Lambda):
            self.write(node.body)
        else:
            self.block(node.body)
        self.scopes.pop()
        self.put("end")

    def local(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> dict[str, Meaning]:
        """The local names of a function: its arguments, what it binds, and what it imports (with their meaning)."""
        arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg)
        names: dict[str, Meaning] = {one.arg: None for one in arguments if one is not None}
        if isinstance(node, ast.Lambda):
            return names
        inside = [one for statement in node.body for one in _within(statement)]
        outer = {name for one in inside if isinstance(one, (ast.Global, ast.Nonlocal)) for name in one.names}
        names |= {name: None for statement in node.body for name in _bound(statement) if name not in outer}
        for one in inside:
            if isinstance(one, (ast.Import, ast.ImportFrom)):
                package = self.module.rpartition(".")[0]
                names |= {name: _imported(*target) for name, target in _imports(one, package)}
        return names

    def class_(self, node: ast.ClassDef, named: bool) -> None:
        self.put("class", *([node.name] if named else []))
        for outside in (*node.decorator_list, *node.bases):
            self.write(outside)
        for keyword in node.keywords:
            self.fields(keyword)
        predicting = {name for kind in self.protocols(node) for name in _PREDICTING.get(kind, ())}
        body = [s for s in node.body if not set(_bound(s)) & predicting]
        self.scopes.append(_Scope("class", {name: None for s in body for name in _bound(s)}))
        self.block(body)
        self.scopes.pop()
        self.put("end")

    def protocols(self, node: ast.ClassDef) -> Iterator[str]:
        """The names of the protocols that a class derives from, directly or through other classes."""
        for base in node.bases:
            found = self.meaning(base)
            if isinstance(found, Definition):
                module = _module(found.module)
                if module.role == "says":
                    yield found.name
                for statement in module.defined[found.name]:
                    if isinstance(statement, ast.ClassDef):
                        yield from _Writer(found.module).protocols(statement)


# -- digests -----------------------------------------------------------------------------------------------------------


def _hash(words: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(words).encode()).hexdigest()


_DIGESTS: dict[Definition, str] = {}


def _digest(definition: Definition) -> str:
    """The digest of a definition: of its words, with the digests of what it uses in their places."""
    if definition not in _DIGESTS:
        for group in _groups(definition):
            _DIGESTS.update(_digest_group(group))
    return _DIGESTS[definition]


def _digest_group(group: list[Definition]) -> dict[Definition, str]:
    """The digests of definitions that use each other; what they use beyond the group has its digests already.

    Inside the group a definition is told by its words, then by the words of those it uses, and so on, once around.
    """
    inside = dict.fromkeys(group, "")
    for _ in range(len(group) + 1):
        inside = {one: _hash(_filled(_read(one), inside)) for one in group}
    return inside


def _filled(reading: _Reading, inside: Mapping[Definition, str]) -> Iterator[str]:
    uses = iter(reading.uses)
    for word in reading.words:
        if word == HOLE:
            one = next(uses)
            yield inside[one] if one in inside else _DIGESTS[one]
        else:
            yield word


def _groups(start: Definition) -> list[list[Definition]]:
    """What ``start`` reaches and has no digest yet, in groups that use each other, users last (Tarjan, 1972)."""
    index: dict[Definition, int] = {}
    low: dict[Definition, int] = {}
    open_: list[Definition] = []
    found: list[list[Definition]] = []
    path: list[tuple[Definition, Iterator[Definition]]] = []

    def enter(one: Definition) -> None:
        index[one] = low[one] = len(index)
        open_.append(one)
        path.append((one, iter(_read(one).uses)))

    enter(start)
    while path:
        one, rest = path[-1]
        other = next((o for o in rest if o not in _DIGESTS), None)
        if other is None:
            path.pop()
            if path:
                low[path[-1][0]] = min(low[path[-1][0]], low[one])
            if low[one] == index[one]:
                cut = open_.index(one)
                found.append(open_[cut:])
                del open_[cut:]
        elif other not in index:
            enter(other)
        elif other in open_:
            low[one] = min(low[one], index[other])
    return found
