"""Collecting errors: values are read one by one, what is wrong is kept with its place, and all of it raised at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from fedrepro.errors import ParameterError, nearest
from fedrepro.parameters import Whole
from fedrepro.spec import nodes
from fedrepro.spec.nodes import Node, SpecErrors

SLUG = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
"""A name that may stand in the name of a file."""

LONGEST = 3000
"""Characters of a message; of a longer one the middle is left out."""


class Collector:
    """Reads values of nodes; what is wrong with one is told to ``error``, and a default returned in its place."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.told = 0
        """How many errors were met so far, repeated ones too: whoever compares before and after knows of its own."""
        self._errors: list[tuple[str, str]] = []

    # -- errors ------------------------------------------------------------------------------------------------------

    def error(self, at: Node | nodes.Place | None, message: str) -> None:
        """Keep an error at a node or place (None: the whole file)."""
        place = at if isinstance(at, nodes.Place) else at.place if at else nodes.Place(f"{self.path}:1:1")
        shown = f"  (in: {place.text})" if place.text and not place.where.startswith("--set") else ""
        self.keep(place, f"{place}: {message}{shown}")

    def keep(self, at: nodes.Place, message: str) -> None:
        """Keep an error whose message names its place already."""
        self.told += 1
        message = message if len(message) <= LONGEST else f"{message[: LONGEST // 2]} ... {message[-LONGEST // 2 :]}"
        if (str(at), message) not in self._errors:
            self._errors.append((str(at), message))

    def raise_all(self) -> None:
        """Raise SpecErrors with every error kept, in the order of their places; nothing where there is none."""
        if self._errors:
            raise SpecErrors([message for _, message in sorted(self._errors, key=_by_place)])

    def attempt(self, call: Callable[[], Any], given: Mapping[str, Node], at: Node, what: str) -> Any:
        """What ``call`` returns; a ParameterError is kept at the node that gave the parameter, and None returned."""
        try:
            return call()
        except ParameterError as error:
            named = error.message.startswith((f"{error.name} ", f"{error.name}="))
            said = error.message if named else f"{error.name} {error.message}"
            self.error(given.get(error.name) or at, f"{what}: {said}")
        except TypeError as error:
            self.error(at, f"{what}: {error}")
        return None

    # -- values ------------------------------------------------------------------------------------------------------

    def keys(self, node: Node, valid: Iterable[str], what: str) -> bool:
        """Whether the node is a mapping of keys that ``what`` knows; each other key is an error at its own place."""
        valid = list(valid)
        if not isinstance(node.value, dict):
            self.error(node, f"{what} must be a mapping of keys to values, not {_kind(node.value)}")
            return False
        unknown = [(key, child) for key, child in node.value.items() if key not in valid]
        for key, child in unknown:
            self.error(
                child.key or child, f"'{key}' is not a key of {what}{nearest(key, valid)} (valid: {', '.join(valid)})"
            )
        return not unknown

    def text(self, node: Node | None, what: str, default: str = "") -> str:
        """A text; the default where there is none."""
        if node is None or node.value is None:
            return default
        if not isinstance(node.value, str):
            self.error(node, f"{what} must be text, not {_kind(node.value)}")
            return default
        return node.value

    def slug(self, name: str, at: Node | nodes.Place | None, what: str) -> None:
        """Keep an error unless files can be named after ``name``."""
        if not SLUG.fullmatch(name) or name.endswith(".yaml"):
            self.error(
                at,
                f"{what} must start with a letter or digit, go on with up to 99 letters, digits, '_', '-' and '.', and "
                f"not end in .yaml, as files are named after it, not '{name}'",
            )

    def choice(self, node: Node | None, valid: Iterable[str], what: str, default: str) -> str:
        """One of the valid words."""
        if node is None:
            return default
        valid = list(valid)
        if not isinstance(node.value, str) or node.value not in valid:
            self.error(
                node, f"'{node.plain()}' is not a {what}{nearest(node.plain(), valid)} (valid: {', '.join(valid)})"
            )
            return default
        return node.value

    def count(self, node: Node | None, what: str, default: int, low: int = 1, most: int | None = None) -> int:
        """An integer of at least ``low`` and at most ``most``."""
        if node is None:
            return default
        range_ = Whole(low, most)
        if not range_.allows(node.value):
            self.error(node, f"{what} must be {range_}, not {node.plain()!r}")
            return default
        return int(node.value)

    def words(self, node: Node | None, what: str) -> tuple[Node, ...]:
        """The nodes of a list of names."""
        if node is None:
            return ()
        if isinstance(node.value, list) and all(isinstance(n.value, str) for n in node.value):
            return tuple(node.value)
        self.error(node, f"{what} must be a list of names")
        return ()

    def mapping(self, node: Node | None, what: str) -> dict[str, Any]:
        """A mapping of any keys, without places; empty where there is none."""
        if node is None or node.value is None:
            return {}
        if not isinstance(node.value, dict):
            self.error(node, f"{what} must be a mapping, not {_kind(node.value)}")
            return {}
        return dict(node.plain())

    def listed(self, node: Node | None, what: str) -> tuple[Any, ...]:
        """The items of a list, without places; none where there is no list."""
        if node is None or node.value is None:
            return ()
        if not isinstance(node.value, list):
            self.error(node, f"{what} must be a list, not {_kind(node.value)}")
            return ()
        return tuple(node.plain())

    def limits(self, node: Node | None, what: str) -> tuple[float | None, float | None]:
        """Two numbers, either of which may be null."""
        if node is None:
            return (None, None)
        pair = node.plain()
        if isinstance(pair, list) and len(pair) == 2 and all(v is None or _drawable(v) for v in pair):
            return (pair[0], pair[1])
        self.error(node, f"{what} must be two numbers [low, high] up to 1e100 (null for automatic)")
        return (None, None)


def _drawable(value: Any) -> bool:
    """Whether an axis can end at a number, also a logarithmic one."""
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
