"""YAML with positions: every value has the file, line and column where it was written.

Only the safe loader is used. Merge keys (``<<``) and anchors work; a duplicate key in a mapping is an error.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from fedrepro.errors import UserError

LARGEST = 200_000
"""Largest number of characters in a file."""

MOST = 20_000
"""Largest number of values in a file."""

DEEPEST = 40
"""Largest number of nested lists and mappings."""

TOO_DEEP = f"more than {DEEPEST} nested lists and mappings"
SHOWN = 200
"""Largest number of characters of a line or value in a message."""


@dataclass(frozen=True)
class Place:
    """The place of a value: ``file:line:column``, or its ``--set`` option."""

    where: str
    text: str = ""

    def __str__(self) -> str:
        return self.where


@dataclass
class Node:
    """A value with its place: ``dict[str, Node]`` for mappings, ``list[Node]`` for sequences, else a scalar."""

    value: Any
    place: Place
    key: Place | None = None  # the place of its key, for values of mappings

    def plain(self) -> Any:
        """Return the value without places."""
        if isinstance(self.value, dict):
            return {k: v.plain() for k, v in self.value.items()}
        if isinstance(self.value, list):
            return [v.plain() for v in self.value]
        return self.value

    def get(self, key: str) -> Node | None:
        """Return the node under ``key`` of a mapping, or None."""
        return self.value.get(key) if isinstance(self.value, dict) else None

    def items(self) -> Iterator[tuple[str, Node]]:
        """Yield the entries of a mapping (none for anything else)."""
        yield from self.value.items() if isinstance(self.value, dict) else ()

    def under(self, key: str) -> Iterator[tuple[str, Node]]:
        """Yield the entries of the mapping under ``key`` (none without one)."""
        child = self.get(key)
        yield from child.items() if child is not None else ()

    def several(self, key: str) -> list[Node]:
        """Return the items of the list under ``key``, or the only value; [] if there is none."""
        child = self.get(key)
        if child is None:
            return []
        return child.value if isinstance(child.value, list) else [child]

    def named(self) -> Node:
        """Return the node itself if it is a mapping, else a mapping with the node as its ``name``."""
        return self if isinstance(self.value, dict) else Node({"name": self}, self.place, self.key)


class SpecErrors(UserError):
    """Every error of one or more specs, in the order of their places."""

    def __init__(self, messages: list[str]) -> None:
        count = f"{len(messages)} errors" if len(messages) > 1 else "1 error"
        super().__init__(f"{count}:\n" + "\n".join(f"  {m}" for m in messages))
        self.messages = messages

    def __reduce__(self) -> tuple[type[SpecErrors], tuple[list[str]]]:
        """Let other processes pickle the error."""
        return type(self), (self.messages,)


class _Loader(yaml.SafeLoader):
    """Reads numbers in their usual form, and limits how deep a file nests.

    YAML 1.1 itself reads ``1e-8`` as text, ``010`` as 8, ``1:30`` as 90 and ``2020-01-01`` as a date.
    """

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        self.depth += 1
        if self.depth > DEEPEST:
            raise yaml.MarkedYAMLError(problem=TOO_DEEP, problem_mark=self.peek_event().start_mark)
        try:
            return super().compose_node(parent, index)
        finally:
            self.depth -= 1


_TAG = "tag:yaml.org,2002:"
_PLAIN = {_TAG + name for name in ("str", "int", "float", "bool", "null")}
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in known if tag in (_TAG + "bool", _TAG + "null", _TAG + "merge")]
    for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(_TAG + "int", re.compile(r"^[-+]?(?:0|[1-9][0-9_]*)$"), list("-+0123456789"))
_Loader.add_implicit_resolver(
    _TAG + "float",
    re.compile(
        r"^(?:[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
    ),
    list("-+0123456789."),
)


_Reader = yaml.SafeLoader
"""What constructs scalars, with either parser."""


class _Fast(getattr(yaml, "CSafeLoader", _Loader)):  # type: ignore[misc]
    """Reads the same values with libyaml, in a tenth of the time. It has no limit of depth, and overflows the stack."""

    yaml_implicit_resolvers = _Loader.yaml_implicit_resolvers


SHALLOW = 1000
"""The most brackets, and characters of a line, of texts that libyaml reads: both limit how deep values can nest."""


def _composed(text: str) -> tuple[_Reader, yaml.Node | None]:
    """Return what constructs the scalars of a text, and its root, None if it is empty. Errors are those of _Loader."""
    brackets = text.count("[") + text.count("{")
    if brackets <= SHALLOW and max(map(len, text.splitlines()), default=0) <= SHALLOW:
        with contextlib.suppress(yaml.YAMLError):
            fast = _Fast(text)
            return fast, fast.get_single_node()
    loader = _Loader(text)
    return loader, loader.get_single_node()


def read(path: Path) -> Node:
    """Read one YAML file into nodes. Raises SpecErrors with line and column for a syntax error."""
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(LARGEST + 1)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; `fedrepro list` shows the figures that exist") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read as a text file ({error})") from None
    return _parsed(text, str(path))


def parse(text: str, name: str) -> Node:
    """Parse YAML text. name : name of the file in messages."""
    if len(text) > LARGEST:
        raise SpecErrors([f"{name}: is not a spec: it is longer than {LARGEST:,} characters"])
    reading = _Reading(name, text.splitlines())
    try:
        loader, root = _composed(text)
        if root is None:
            raise SpecErrors([f"{name}:1:1: the file is empty; start with 'paper:' and 'figure:'"])
        node = reading.node(loader, root)
    except yaml.reader.ReaderError as error:
        before = text[: error.position].splitlines(keepends=True) or [""]
        at = f"{name}:{len(before)}:{len(before[-1]) + 1}"
        raise SpecErrors([f"{at}: not valid YAML: it has the character {text[error.position]!a}"]) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else name
        shown = reading.line(mark.line) if mark else ""
        raise SpecErrors([f"{at}: not valid YAML: {error.problem or error.context}{shown}"]) from None
    except yaml.YAMLError as error:
        raise SpecErrors([f"{name}: not valid YAML: {error}"]) from None
    if reading.errors:
        raise SpecErrors(reading.errors)
    return node


_parsed = functools.lru_cache(maxsize=256)(parse)
"""``parse`` with a cache: nodes are never changed, and commands read the same spec at several tiers."""


class _Reading:
    """Turns the YAML library's nodes into ours. Values that aliases repeat are counted each time."""

    def __init__(self, name: str, lines: list[str]) -> None:
        self.name, self.lines = name, lines
        self.errors: list[str] = []
        self.count = 0

    def line(self, number: int) -> str:
        text = self._text(number)
        return f" (in: {text})" if text else ""

    def _text(self, number: int) -> str:
        text = self.lines[number].strip() if 0 <= number < len(self.lines) else ""
        return text if len(text) <= SHOWN else f"{text[:SHOWN]} ..."

    def place(self, node: yaml.Node) -> Place:
        mark = node.start_mark
        return Place(f"{self.name}:{mark.line + 1}:{mark.column + 1}", self._text(mark.line))

    def node(self, loader: _Reader, node: yaml.Node, above: tuple[yaml.Node, ...] = ()) -> Node:
        """Return a node with all nodes inside it. above : the nodes around it. Raises MarkedYAMLError for a cycle."""
        self.count += 1
        for bad, why in (
            (any(node is outer for outer in above), "an alias inside the value that it repeats"),
            (len(above) >= DEEPEST, TOO_DEEP),
            (self.count > MOST, f"more than {MOST:,} values, including those that aliases repeat"),
        ):
            if bad:
                raise yaml.MarkedYAMLError(problem=why, problem_mark=node.start_mark)
        inside = (*above, node)
        place = self.place(node)
        if isinstance(node, yaml.MappingNode):
            self._refuse(node.tag, _TAG + "map", place)
            return Node(self._mapping(loader, node, inside), place)
        if isinstance(node, yaml.SequenceNode):
            self._refuse(node.tag, _TAG + "seq", place)
            return Node([self.node(loader, item, inside) for item in node.value], place)
        return Node(self._scalar(loader, node, place), place)

    def _refuse(self, tag: str, usual: str, place: Place) -> None:
        if tag != usual:
            self.errors.append(f"{place}: the tag {tag.replace(_TAG, '!!')} has no meaning here; remove it")

    def _mapping(self, loader: _Reader, node: yaml.MappingNode, inside: tuple[yaml.Node, ...]) -> dict[str, Node]:
        seen: dict[str, Place] = {}
        own: dict[str, Node] = {}
        merged: dict[str, Node] = {}
        for key_node, value_node in node.value:
            place = self.place(key_node)
            if not isinstance(key_node, yaml.ScalarNode):
                self.errors.append(f"{place}: a key must be a plain word")
                continue
            if key_node.tag == _TAG + "merge":
                for part in value_node.value if isinstance(value_node, yaml.SequenceNode) else [value_node]:
                    base = self.node(loader, part, inside)
                    if not isinstance(base.value, dict):
                        self.errors.append(f"{base.place}: << needs a mapping, or a list of mappings")
                    merged |= {key: child for key, child in base.items() if key not in merged}
                continue
            if key_node.tag not in _PLAIN:
                self._refuse(key_node.tag, "", place)
            key = self._printable(key_node.value, place)
            if key in seen:
                self.errors.append(f"{place}: the key '{key}' is written twice (first at {seen[key]})")
            seen.setdefault(key, place)
            own[key] = self.node(loader, value_node, inside)
            own[key].key = place
        return {**merged, **own}

    def _scalar(self, loader: _Reader, node: yaml.Node, place: Place) -> Any:
        """Return a text, a number, true, false or null; null with an error for anything else."""
        text = node.value if len(node.value) <= SHOWN else f"{node.value[:SHOWN]} ..."
        if node.tag not in _PLAIN:
            self._refuse(node.tag, "", place)
            return None
        try:
            value = loader.construct_object(node)
        except (yaml.YAMLError, ValueError, LookupError):
            kind = node.tag.removeprefix(_TAG)
            self.errors.append(f"{place}: '{text}' cannot be read as !!{kind}")
            return None
        if isinstance(value, int) and abs(value) >= 2**63:
            self.errors.append(f"{place}: the number {text} is too large")
            return None
        return self._printable(value, place) if isinstance(value, str) else value

    def _printable(self, text: str, place: Place) -> str:
        odd = next((c for c in text if not (c.isprintable() or c in "\n\t" or unicodedata.category(c) == "Zs")), "")
        if odd:
            self.errors.append(f"{place}: the character {odd!a} cannot be shown; remove it")
        return text


def merge(base: Node, over: Node) -> Node:
    """Return ``over`` merged over ``base``: mappings merge key by key, other values are replaced."""
    if isinstance(base.value, dict) and isinstance(over.value, dict):
        value = dict(base.value)
        for key, child in over.value.items():
            value[key] = merge(value[key], child) if key in value else child
        return Node(value, base.place, base.key)
    return Node(copy.copy(over.value), over.place, over.key)


def setting(option: str) -> tuple[list[str], Node]:
    """Read one ``--set KEY=VALUE``: return the key's path (names and list indices) and its value."""
    key, equals, text = option.partition("=")
    if not equals or not key.strip():
        raise UserError(
            f"--set {option}: write --set KEY=VALUE, for instance --set rounds=50 or --set datasets.syn.N=400"
        )
    place = Place(f"--set {option}", text)
    node = parse(text, f"--set {option}") if text.strip() else Node(None, place)
    _replace(node, place)
    node.key = place
    path = [part.strip() for part in key.split(".")]
    if len(path) > DEEPEST:
        raise UserError(f"--set {key[:SHOWN]} ...: a key has at most {DEEPEST} parts")
    return path, node


def _replace(node: Node, place: Place) -> None:
    node.place = place
    children = (
        node.value.values() if isinstance(node.value, dict) else node.value if isinstance(node.value, list) else ()
    )
    for child in children:
        child.key = place if child.key else None
        _replace(child, place)


def put(root: Node, path: list[str], new: Node, replaced: bool = False) -> Node:
    """Return a copy of ``root`` with the value at ``path`` set; missing keys are made, list items must exist.

    A mapping is merged over the present one, unless that is to be ``replaced``.
    """
    if not path:
        return new if replaced else merge(root, new)
    head, rest = path[0], path[1:]
    if isinstance(root.value, list):
        if not re.fullmatch("[0-9]{1,6}", head) or int(head) >= len(root.value):
            raise UserError(f"{new.place}: '{head}' is not an item of this list (0 to {len(root.value) - 1})")
        items = list(root.value)
        items[int(head)] = put(items[int(head)], rest, new, replaced)
        return Node(items, root.place, root.key)
    value = dict(root.value) if isinstance(root.value, dict) else {}
    value[head] = put(value.get(head, Node({}, new.place, new.place)), rest, new, replaced)
    return Node(value, root.place, root.key)
