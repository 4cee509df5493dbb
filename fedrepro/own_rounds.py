"""Typical mistakes in the generator ``rounds`` of a user's own method, found before anything runs."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from typing import Any

IN_RUNS = "says"  # see fedrepro.runs.identity.code

WRITE = "write `def rounds(self, problem, rng, **given):`"
"""What to write instead, at the start of advice."""

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def mistake(cls: type, text: str) -> str:
    """Return what is wrong with ``rounds`` of a class and what to write instead; '' if nothing is.

    text : the text of the module that defines the class. A function of another module is not searched for a yield.
    """
    held, rounds = inspect.getattr_static(cls, "rounds"), getattr(cls, "rounds", None)
    if not callable(rounds):
        return f"rounds is {type(held).__name__}, not a function; {WRITE}, which yields states"
    function = inspect.unwrap(rounds)
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        return f"rounds is async; {WRITE} without async"
    if why := _not_taken(held, rounds):
        return f"rounds cannot be called with what every method is given ({why}); {WRITE}"
    if not inspect.isgeneratorfunction(function) and _returns_nothing(function, cls.__module__, text):
        return (
            "rounds has no yield and returns nothing, so the method has no states; write `yield state` at the initial "
            "point and after every round"
        )
    return ""


def _not_taken(held: Any, rounds: Callable[..., Any]) -> str:
    """Return why ``rounds`` does not take the arguments of every call of it; '' if it does, or is no plain function."""
    if not (inspect.isfunction(held) or isinstance(held, (staticmethod, classmethod))):
        return ""
    itself = (None,) if inspect.isfunction(held) else ()
    try:
        inspect.signature(rounds).bind(*itself, None, None, ledger=None, init=None, clients=None)
    except TypeError as error:
        return str(error)
    return ""


def _returns_nothing(function: Any, module: str, text: str) -> bool:
    """Return whether a function that is defined in the module, with this text, has no ``return`` with a value."""
    code = getattr(function, "__code__", None)
    if code is None or function.__globals__.get("__name__") != module:
        return False
    defined = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef)
        and node.name == code.co_name
        and min([node.lineno, *(part.lineno for part in node.decorator_list)]) == code.co_firstlineno
    ]
    return bool(defined) and not any(_is_value(part) for node in defined for part in _inside(node))


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a function without those of functions and classes in it."""
    for part in ast.iter_child_nodes(node):
        if not isinstance(part, _SCOPES):
            yield part
            yield from _inside(part)


def _is_value(node: ast.AST) -> bool:
    """Return whether a statement returns something other than None."""
    if not isinstance(node, ast.Return) or node.value is None:
        return False
    return not (isinstance(node.value, ast.Constant) and node.value.value is None)
