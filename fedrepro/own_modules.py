"""A user's own modules with methods, which a spec names with ``import: my_method.py``.

An installed package offers methods to every spec with entry points of the group "fedrepro.methods"::

    [project.entry-points."fedrepro.methods"]
    mymethod = "my_package.methods:MyMethod"

The text of a module travels with its runs (``OwnModule`` in their settings), and every process executes that text: an
edit while a command computes changes nothing, and a worker of another machine needs no copy of the file. The identity
of a run includes the definitions of the module that the run reaches, as it does for the package.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import sys
import types
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from fedrepro import own_rounds, registry
from fedrepro.errors import UserError
from fedrepro.parameters import ranges
from fedrepro.protocols import Method
from fedrepro.registry import MethodEntry

IN_RUNS = "says"  # see fedrepro.runs.identity.code

PACKAGE = "fedrepro_own"
"""The package in whose name the modules are executed."""

GROUP = "fedrepro.methods"
"""The group of entry points of installed methods."""

_MODULES: dict[str, OwnModule] = {}
"""The modules that this process has executed, by their names."""


@dataclass(frozen=True)
class OwnModule:
    """A module of a user, as it was when the spec was read.

    file : its path. source : its text. problem : the name of the problem that its methods solve. Reading it from a
    pickle registers its methods.
    """

    file: str
    source: str
    problem: str

    @property
    def name(self) -> str:
        """The name of the module; modules with other texts have other names."""
        stem = "".join(c if c.isalnum() else "_" for c in Path(self.file).stem)
        return f"{PACKAGE}.{stem}_{hashlib.sha256(self.source.encode()).hexdigest()[:12]}"

    def __reduce__(self) -> tuple[object, tuple[str, str, str]]:
        return _registered, (self.file, self.source, self.problem)


def read(named: str, folder: Path, problem: str) -> OwnModule:
    """Return a user's module: a Python file relative to ``folder``, or an installed module such as ``package.module``.

    Raises UserError if there is none.
    """
    path = folder / Path(named).expanduser()
    if not named.endswith(".py"):
        path = _installed(named)
    try:
        return OwnModule(str(path), path.read_text(encoding="utf-8"), problem)
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})") from None


def _installed(named: str) -> Path:
    try:
        spec = importlib.util.find_spec(named)
    except (ImportError, ValueError):
        spec = None
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        raise UserError(f"'{named}' is neither a Python file (its name ends in .py) nor an installed module")
    return Path(spec.origin)


def installed() -> dict[str, EntryPoint]:
    """Return the entry points of methods of installed packages by their names, which specs use."""
    return {point.name: point for point in entry_points(group=GROUP)}


def offered_by(point: EntryPoint) -> str:
    """Return the name of the package that has an entry point."""
    return point.dist.name if point.dist else "(unknown)"


def register_installed(name: str, problem: str) -> None:
    """Register the methods of the module that an entry point names, of which one has the entry point's name.

    Raises UserError if the module has no method of this name, or cannot be used.
    """
    point = installed()[name]
    place = f"the entry point '{name} = {point.value}' of {offered_by(point)}"
    try:
        defined = register(read(point.module, Path(), problem))
    except UserError as error:
        raise UserError(f"{place}: {error}") from None
    if name not in defined:
        raise UserError(f"{place}: its name must be that of its class in lower case ({', '.join(defined)})")


@dataclass(frozen=True)
class IncompleteEntry(MethodEntry):
    """A class of a user's module that cannot run. mistake : what is wrong with it, for a spec that names it."""

    mistake: str = ""

    def parameters(self) -> dict[str, Any]:
        """Return no parameters: they may not be readable."""
        return {}

    def make(self, **params: Any) -> Any:
        """Raise UserError with the mistake."""
        raise UserError(self.mistake)


def register(module: OwnModule) -> list[str]:
    """Execute a module and register its methods under the names of their classes in lower case; return these names.

    A class with a mistake is registered as an ``IncompleteEntry``, so that it is an error only if it is named. Raises
    UserError if the module cannot be executed, has no method without a mistake, or has one with a name of the package.
    """
    loaded = _executed(module)
    own = [thing for thing in vars(loaded).values() if isinstance(thing, type) and thing.__module__ == module.name]
    derived = list(dict.fromkeys(cls for cls in own if Method in cls.__mro__))
    if not derived:
        raise UserError(f"{module.file}: defines no method (a class that derives from fedrepro.Method)")
    methods = [cls for cls in derived if not inspect.isabstract(cls)]
    mistakes = {cls: _mistake(cls, module) for cls in derived}
    if all(mistakes.values()):
        raise UserError(mistakes[(methods or derived)[0]])
    for cls, mistake in mistakes.items():
        name = cls.__name__.lower()
        if registry.methods().get(name) is None or of(name) is not None:
            registry.methods()[name] = _entry(cls, module.problem, mistake)
        elif cls in methods:
            raise UserError(f"{module.file}: the class {cls.__name__} has the name of the method '{name}'; rename it")
    return [cls.__name__.lower() for cls in methods]


def mistake_of(name: str) -> str:
    """Return what is wrong with the class of a registered method of a user's module; '' if it can run."""
    entry = registry.methods().get(name)
    return entry.mistake if isinstance(entry, IncompleteEntry) else ""


def _entry(cls: type, problem: str, mistake: str) -> MethodEntry:
    summary = next(iter((inspect.getdoc(cls) or "").splitlines()), "").rstrip(".")
    common = (cls.__name__.lower(), cls, summary, problem, cls.__name__, ("beyond",))
    return IncompleteEntry(*common, mistake=mistake) if mistake else MethodEntry(*common)


def _mistake(cls: type, module: OwnModule) -> str:
    """Return what is wrong with the class of a method and what to write instead; '' if it can run."""
    named = f"{module.file}: the class {cls.__name__}"
    if inspect.isabstract(cls):
        return f"{named} needs a function rounds, as every method does"
    if not _is_frozen(cls):
        return f"{named} needs the line @dataclass(frozen=True) above it"
    try:
        ranges(cls)
    except (AttributeError, NameError, SyntaxError, TypeError) as error:
        return f"{module.file}: an annotation of the class {cls.__name__} is not valid: {error}"
    why = own_rounds.mistake(cls, module.source)
    return f"{named}: {why} (see docs/own-method.md)" if why else ""


def _is_frozen(cls: type) -> bool:
    """Return whether a class is a frozen dataclass, or derives from one without fields of its own."""
    is_own = "__dataclass_params__" in vars(cls) or not vars(cls).get("__annotations__")
    return is_own and bool(getattr(getattr(cls, "__dataclass_params__", None), "frozen", False))


def of(method: str) -> OwnModule | None:
    """Return the module of a user that defines a registered method; None for a method of the package."""
    entry = registry.methods().get(method)
    return _MODULES.get(entry.cls.__module__) if entry is not None else None


def source(name: str) -> str | None:
    """Return the text of a module that this process has executed, by its name; None for other names."""
    module = _MODULES.get(name)
    return module.source if module is not None else None


def file(name: str) -> str:
    """Return the file of a module that this process has executed."""
    return _MODULES[name].file


def of_file(path: Path) -> list[str]:
    """Return the names of the modules of a file that this process has executed."""
    return [name for name, module in _MODULES.items() if Path(module.file).resolve() == path.resolve()]


def _registered(path: str, text: str, problem: str) -> OwnModule:
    module = OwnModule(path, text, problem)
    register(module)
    return module


def _executed(module: OwnModule) -> types.ModuleType:
    if module.name in _MODULES:
        _MODULES[module.name] = module
        return sys.modules[module.name]
    loaded = types.ModuleType(module.name)
    loaded.__file__ = module.file
    sys.modules[module.name] = loaded  # dataclasses look their module up
    try:
        exec(compile(module.source, module.file, "exec"), vars(loaded))
    except (Exception, SystemExit) as error:
        del sys.modules[module.name]
        why = f"{type(error).__name__}: {error}{_beside(error, Path(module.file))}"
        raise UserError(f"{module.file}{_line(error, module.file)}: {why}") from error
    _MODULES[module.name] = module
    return loaded


def _beside(error: BaseException, path: Path) -> str:
    """Return what to do if the module that is not found is beside the file at ``path``, else ''."""
    name = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    places = (path.with_name(f"{name}.py"), path.parent / name / "__init__.py")
    found = next((place for place in places if name and place.is_file()), None)
    if found is None:
        return ""
    return f" ({found}: put it into the same file, or install it; the folder is not searched)"


def _line(error: BaseException, path: str) -> str:
    """Return ``:line`` of the last line of the file that an error passed through, or ''."""
    if isinstance(error, SyntaxError):
        return f":{error.lineno}" if error.filename == path else ""
    frames = (
        [frame.lineno for frame in inspect.getinnerframes(error.__traceback__) if frame.filename == path]
        if (error.__traceback__)
        else []
    )
    return f":{frames[-1]}" if frames else ""
