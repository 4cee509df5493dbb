"""YAML with positions: every value remembers the file, line and column it was written at.

Parsed with the safe loader only. Merge keys (``<<``) and anchors work; a key written twice in one mapping is an error.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from fedrepro.errors import UserError


@dataclass(frozen=True)
class Place:
    """Where something was written: ``file:line:column``, or the ``--set`` option that gave it."""

    where: str
    text: str = ""

    def __str__(self) -> str:
        return self.where


@dataclass
class Node:
    """A value with its place; mappings hold ``dict[str, Node]``, sequences ``list[Node]``, the rest plain scalars."""

    value: Any
    place: Place
    key: Place | None = None  # where its key stands, if it is a mapping's value

    def plain(self) -> Any:
        """The value without places."""
        if isinstance(self.value, dict):
            return {k: v.plain() for k, v in self.value.items()}
        if isinstance(self.value, list):
            return [v.plain() for v in self.value]
        return self.value

    def get(self, key: str) -> Node | None:
        """The node under ``key`` of a mapping, or None."""
        return self.value.get(key) if isinstance(self.value, dict) else None

    def items(self) -> Iterator[tuple[str, Node]]:
        """The entries of a mapping (none for anything else)."""
        yield from self.value.items() if isinstance(self.value, dict) else ()


class SpecErrors(UserError):
    """Every error of one or more specs, in the order of their places."""

    def __init__(self, messages: list[str]) -> None:
        count = f"{len(messages)} errors" if len(messages) > 1 else "1 error"
        super().__init__(f"{count}:\n" + "\n".join(f"  {m}" for m in messages))
        self.messages = messages


class _Loader(yaml.SafeLoader):
    """Reads ``1e-8`` as a number, as everyone writes it (YAML 1.1 alone takes it for text)."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][-+]?[0-9]+$"),
    list("-+0123456789."),
)


def read(path: Path) -> Node:
    """Read one YAML file into nodes; a syntax error is a SpecErrors with its line and column."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; `fedrepro list` shows the figures that exist") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read as a text file ({error})") from None
    return parse(text, str(path))


def parse(text: str, name: str) -> Node:
    """Parse YAML text; ``name`` stands for the file in messages."""
    lines = text.splitlines()
    loader = _Loader(text)
    try:
        root = loader.get_single_node()
        if root is None:
            raise SpecErrors([f"{name}:1:1: the file is empty; start with 'paper:' and 'figure:'"])
        errors: list[str] = []
        node = _convert(loader, root, name, lines, errors)
        if errors:
            raise SpecErrors(errors)
        return node
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else name
        shown = _line(lines, mark.line) if mark else ""
        raise SpecErrors([f"{at}: not valid YAML: {error.problem or error.context}{shown}"]) from None
    except yaml.YAMLError as error:
        raise SpecErrors([f"{name}: not valid YAML: {error}"]) from None
    finally:
        loader.dispose()


def _line(lines: list[str], number: int) -> str:
    return f" (in: {lines[number].strip()})" if 0 <= number < len(lines) and lines[number].strip() else ""


def _place(node: yaml.Node, name: str, lines: list[str]) -> Place:
    mark = node.start_mark
    text = lines[mark.line].strip() if mark.line < len(lines) else ""
    return Place(f"{name}:{mark.line + 1}:{mark.column + 1}", text)


def _convert(loader: _Loader, node: yaml.Node, name: str, lines: list[str], errors: list[str]) -> Node:
    place = _place(node, name, lines)
    if isinstance(node, yaml.MappingNode):
        _refuse_duplicates(node, name, lines, errors)
        loader.flatten_mapping(node)
        value: dict[str, Node] = {}
        for key_node, value_node in node.value:
            child = _convert(loader, value_node, name, lines, errors)
            child.key = _place(key_node, name, lines)
            value[str(loader.construct_object(key_node))] = child
        return Node(value, place)
    if isinstance(node, yaml.SequenceNode):
        return Node([_convert(loader, item, name, lines, errors) for item in node.value], place)
    try:
        return Node(loader.construct_object(node), place)
    except (yaml.YAMLError, ValueError) as error:
        errors.append(f"{place}: '{node.value}' cannot be read: {getattr(error, 'problem', None) or error}")
        return Node(None, place)


def _refuse_duplicates(node: yaml.MappingNode, name: str, lines: list[str], errors: list[str]) -> None:
    seen: dict[str, Place] = {}
    for key_node, _ in node.value:
        if not isinstance(key_node, yaml.ScalarNode):
            errors.append(f"{_place(key_node, name, lines)}: a key must be a plain word")
            continue
        place = _place(key_node, name, lines)
        if key_node.value in seen and key_node.value != "<<" and key_node.tag != "tag:yaml.org,2002:merge":
            errors.append(f"{place}: the key '{key_node.value}' is written twice (first at {seen[key_node.value]})")
        seen.setdefault(key_node.value, place)


def merge(base: Node, over: Node) -> Node:
    """``over`` laid on ``base``: mappings merge key by key, anything else replaces what was there."""
    if isinstance(base.value, dict) and isinstance(over.value, dict):
        value = dict(base.value)
        for key, child in over.value.items():
            value[key] = merge(value[key], child) if key in value else child
        return Node(value, base.place, base.key)
    return Node(copy.copy(over.value), over.place, over.key)


def setting(option: str) -> tuple[list[str], Node]:
    """Read one ``--set KEY=VALUE``: the key's path (dots between names, numbers for list items) and its value."""
    key, equals, text = option.partition("=")
    if not equals or not key.strip():
        raise UserError(
            f"--set {option}: write --set KEY=VALUE, for instance --set rounds=50 or --set datasets.syn.N=400"
        )
    place = Place(f"--set {option}", text)
    node = parse(text, f"--set {option}") if text.strip() else Node(None, place)
    _replace(node, place)
    node.key = place
    return [part.strip() for part in key.split(".")], node


def _replace(node: Node, place: Place) -> None:
    node.place = place
    children = (
        node.value.values() if isinstance(node.value, dict) else node.value if isinstance(node.value, list) else ()
    )
    for child in children:
        child.key = place if child.key else None
        _replace(child, place)


def put(root: Node, path: list[str], new: Node) -> Node:
    """A copy of ``root`` with the value at ``path`` set; what is not there yet is made, list items must exist."""
    if not path:
        return merge(root, new) if isinstance(new.value, dict) else new
    head, rest = path[0], path[1:]
    if isinstance(root.value, list):
        if not head.isdigit() or int(head) >= len(root.value):
            raise UserError(f"{new.place}: '{head}' is not an item of this list (0 to {len(root.value) - 1})")
        items = list(root.value)
        items[int(head)] = put(items[int(head)], rest, new)
        return Node(items, root.place, root.key)
    value = dict(root.value) if isinstance(root.value, dict) else {}
    empty = Node({}, new.place, new.place)
    value[head] = (
        put(value.get(head, empty), rest, new)
        if rest
        else (merge(value[head], new) if head in value and isinstance(new.value, dict) else new)
    )
    return Node(value, root.place, root.key)
