"""Read values one by one, collect errors with their places, and raise all of them at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from fedrepro.errors import ParameterError, nearest
from fedrepro.parameters import Whole
from fedrepro.spec import nodes
from fedrepro.spec.nodes import Node, SpecErrors

SLUG = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
"""A name that files can be named after."""

LONGEST = 3000
"""Largest number of characters of a message; longer ones lose their middle."""
VERBS = ("must ", "is ", "leaves ", "differs ", "yields ", "has ", "needs ", "contains ", "of ")
"""The first words of messages whose subject is the parameter's name. In other messages a colon follows the name."""


class Collector:
    """Reads values of nodes; an invalid value is reported to ``error``, and its default is returned."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.count_of_errors = 0
        """Number of errors so far, with repeated ones; see ``clean``."""
        self._errors: list[tuple[str, str]] = []

    # -- errors ------------------------------------------------------------------------------------------------------

    def clean(self, call: Callable[[], Any]) -> tuple[Any, bool]:
        """Return the result of a call, and whether it reported no error."""
        before = self.count_of_errors
        return call(), self.count_of_errors == before

    def error(self, at: Node | nodes.Place | None, message: str) -> None:
        """Report an error at a node or place (None: the whole file)."""
        place = at if isinstance(at, nodes.Place) else at.place if at else nodes.Place(f"{self.path}:1:1")
        shown = f"  (in: {place.text})" if place.text and not place.where.startswith("--set") else ""
        self.keep(place, f"{place}: {message}{shown}")

    def keep(self, at: nodes.Place, message: str) -> None:
        """Report an error whose message already names its place."""
        self.count_of_errors += 1
        message = message if len(message) <= LONGEST else f"{message[: LONGEST // 2]} ... {message[-LONGEST // 2 :]}"
        if (str(at), message) not in self._errors:
            self._errors.append((str(at), message))

    def follows(self) -> None:
        """Count an error without a message: it follows from a reported one, and what depends on it is not checked."""
        self.count_of_errors += 1

    def raise_all(self) -> None:
        """Raise SpecErrors with all reported errors in the order of their places, if there are any."""
        if self._errors:
            raise SpecErrors([message for _, message in sorted(self._errors, key=_by_place)])

    def attempt(self, call: Callable[[], Any], given: Mapping[str, Node], at: Node, what: str) -> Any:
        """Return the result of a call; on a ParameterError report it at the parameter's node and return None."""
        try:
            return call()
        except ParameterError as error:
            named = error.message.startswith((f"{error.name} ", f"{error.name}="))
            joint = " " if error.message.startswith(VERBS) else ": "
            message = error.message if named else f"{error.name}{joint}{error.message}"
            self.error(given.get(error.name) or at, f"{what}: {message}")
        except TypeError as error:
            self.error(at, f"{what}: {error}")
        return None

    # -- values ------------------------------------------------------------------------------------------------------

    def keys(self, node: Node, valid: Iterable[str], what: str) -> bool:
        """Return whether the node is a mapping of valid keys of ``what``; report each other key at its place."""
        valid = list(valid)
        if not isinstance(node.value, dict):
            self.error(node, f"{what} must be a mapping of keys to values, not {_kind(node.value)}")
            return False
        unknown = [(key, child) for key, child in node.value.items() if key not in valid]
        for key, child in unknown:
            self.unknown(Node(key, child.key or child.place), key, valid, f"a key of {what}")
        return not unknown

    def unknown(self, at: Node | None, word: str, valid: Iterable[str], what: str, label: str = "valid") -> None:
        """Report that a word is not ``what``, with the nearest of the ``valid`` words and all of them."""
        valid = list(valid)
        self.error(at, f"'{word}' is not {what}{nearest(word, valid)} ({label}: {', '.join(valid)})")

    def _of_type(self, node: Node | None, type_: type, words: str, what: str, default: Any) -> Any:
        """Return the value without places if it has this type; the default if there is none."""
        if node is None or node.value is None:
            return default
        if not isinstance(node.value, type_):
            self.error(node, f"{what} must be {words}, not {_kind(node.value)}")
            return default
        return node.plain()

    def text(self, node: Node | None, what: str, default: str = "") -> str:
        """Return a text, or the default if there is none."""
        return str(self._of_type(node, str, "text", what, default))

    def mapping(self, node: Node | None, what: str) -> dict[str, Any]:
        """Return a mapping of any keys, without places; empty if there is none."""
        return dict(self._of_type(node, dict, "a mapping", what, {}))

    def listed(self, node: Node | None, what: str) -> tuple[Any, ...]:
        """Return the items of a list, without places; () if there is no list."""
        return tuple(self._of_type(node, list, "a list", what, ()))

    def slug(self, name: str, at: Node | nodes.Place | None, what: str) -> None:
        """Report an error unless files can be named after ``name``."""
        if not SLUG.fullmatch(name) or name.endswith(".yaml"):
            self.error(
                at,
                f"{what} must start with a letter or digit, continue with up to 99 letters, digits, '_', '-' and '.', "
                f"and not end in .yaml, because files are named after it, not '{name}'",
            )

    def choice(self, node: Node | None, valid: Iterable[str], what: str, default: str) -> str:
        """Return one of the valid words. what : what they are, with its article."""
        if node is None:
            return default
        valid = list(valid)
        if not isinstance(node.value, str) or node.value not in valid:
            self.unknown(node, node.plain(), valid, what)
            return default
        return node.value

    def count(self, node: Node | None, what: str, default: int, low: int = 1, most: int | None = None) -> int:
        """Return an integer of at least ``low`` and at most ``most``."""
        if node is None:
            return default
        range_ = Whole(low, most)
        if not range_.allows(node.value):
            self.error(node, f"{what} must be {range_}, not {node.plain()!r}")
            return default
        return int(node.value)

    def words(self, node: Node | None, what: str) -> tuple[Node, ...]:
        """Return the nodes of a list of names."""
        if node is None:
            return ()
        if isinstance(node.value, list) and all(isinstance(n.value, str) for n in node.value):
            return tuple(node.value)
        self.error(node, f"{what} must be a list of names")
        return ()

    def items(self, node: Node | None, what: str) -> list[Node]:
        """Return the items of a list; a single mapping or word counts as a list of one."""
        if node is None:
            return []
        if isinstance(node.value, list):
            return node.value
        if isinstance(node.value, (dict, str)):
            return [node]
        self.error(node, f"{what} must be a list")
        return []

    def limits(self, node: Node | None, what: str) -> tuple[float | None, float | None]:
        """Return two numbers; each can be null."""
        if node is None:
            return (None, None)
        pair = node.plain()
        if isinstance(pair, list) and len(pair) == 2 and all(v is None or _drawable(v) for v in pair):
            return (pair[0], pair[1])
        self.error(node, f"{what} must be two numbers [low, high] up to 1e100 (null for automatic)")
        return (None, None)


def _drawable(value: Any) -> bool:
    """Return whether an axis, linear or logarithmic, can end at a number."""
    return (
        isinstance(value, (int, float))
        and not isinstance(value, bool)
        and (value == 0 or 1e-100 <= abs(value) <= 1e100)
    )


def _kind(value: Any) -> str:
    names = {dict: "a mapping", list: "a list", str: f"the text '{value}'", type(None): "empty", bool: "true or false"}
    return names.get(type(value), f"the number {value}")


def _by_place(entry: tuple[str, str]) -> tuple[str, int, int]:
    parts = entry[0].rsplit(":", 2)
    return (parts[0], int(parts[1]), int(parts[2])) if len(parts) == 3 and parts[2].isdigit() else (entry[0], 0, 0)
