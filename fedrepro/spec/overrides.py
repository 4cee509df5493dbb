"""Apply ``--set KEY=VALUE`` to a spec: set any key by its path, or a parameter of its methods or problem by name.

``--set m=[10,50]`` sets m in every curve whose method has an m; a list is a sweep, as in the spec. If m advances
together with other parameters (``zip``), the steps with one of these values are kept. Other values are an error,
because the values of the other parameters would be unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fedrepro import registry
from fedrepro.errors import UserError, nearest
from fedrepro.spec import nodes
from fedrepro.spec.error_collector import Collector
from fedrepro.spec.nodes import Node
from fedrepro.spec.resolve import curve_items


def apply(collect: Collector, root: Node, options: Iterable[str], keys: tuple[str, ...]) -> Node:
    """Return the spec with the options applied. keys : the keys that a spec may have."""
    before = set(root.value)
    for option in options:
        path, node = nodes.setting(option)
        try:
            if len(path) > 1 or path[0] in keys:
                root = nodes.put(root, path, node)
            else:
                root = _by_name(root, path[0], node, keys)
        except UserError as error:
            collect.keep(node.place, str(error))
    added = {key: child for key, child in root.items() if key not in before}
    collect.keys(Node(added, root.place), keys, "a spec")
    return root


def _by_name(root: Node, name: str, new: Node, keys: tuple[str, ...]) -> Node:
    """Return the spec with a parameter set in all curves whose methods have it, or in the problem."""
    curves = [(path, item) for path, item in curve_items(root) if name in _parameters(item)]
    for path, item in curves:
        root = nodes.put(root, path, _with(item, path, name, new), replaced=True)
    if curves:
        return root
    problem = _problem(root)
    if problem is not None and name in problem.parameters:
        named = Node({**root.value, "problem": root.value["problem"].named()}, root.place, root.key)
        return nodes.put(named, ["problem", name], new)
    known = [*keys, *sorted({parameter for _, item in curve_items(root) for parameter in _parameters(item)})]
    known += list(problem.parameters) if problem is not None else []
    inside = " ".join(f"--set {key}={str(new.place).partition('=')[2]}" for key in _of_data(root, name))
    raise UserError(
        f"{new.place}: '{name}' is neither a key of a spec nor a parameter of its methods or its problem"
        f"{'' if inside else nearest(name, known)} (a key inside another: {inside or '--set datasets.NAME.n=500'})"
    )


def _of_data(root: Node, name: str) -> list[str]:
    """Return the paths under which the spec's datasets and partitions have a parameter of this name."""
    tables: tuple[tuple[str, Mapping[str, Any]], ...] = (
        ("datasets", registry.datasets()),
        ("partitions", registry.partitions()),
    )
    found = []
    for kind, table in tables:
        group = root.get(kind)
        for key, item in group.items() if group is not None and isinstance(group.value, dict) else ():
            word = item.named().get("name")
            if word is not None and str(word.plain()) in table and name in table[str(word.plain())].parameters():
                found.append(f"{kind}.{key}.{name}")
    return found


def _parameters(item: Node) -> list[str]:
    """Return the parameters that all methods of a curve have."""
    table = registry.methods()
    entries = [table[word] for node in item.several("algorithm") if (word := str(node.plain())) in table]
    return sorted(set.intersection(*(set(entry.parameters()) for entry in entries))) if entries else []


def _problem(root: Node) -> registry.ProblemEntry | None:
    problem = root.get("problem")
    name = problem.named().get("name") if problem is not None else None
    return registry.problems().get(str(name.plain())) if name is not None else None


def _with(item: Node, path: list[str], name: str, new: Node) -> Node:
    """Return a curve with the parameter set, or with the matching steps if the parameter is in ``zip``."""
    own = dict(item.value)
    zipped = item.get("zip")
    if zipped is not None and zipped.get(name) is not None:
        wanted = new.plain() if isinstance(new.value, list) else [new.plain()]
        steps = zipped.get(name)
        assert steps is not None
        kept = [i for i, step in enumerate(steps.value) if step.plain() in wanted]
        lacking = [value for value in wanted if value not in steps.plain()]
        if lacking:
            others = " and ".join(key for key, _ in zipped.items() if key != name)
            raise UserError(
                f"{new.place}: {name} = {lacking[0]} is not a step of {'.'.join(path)}, where {name} advances together "
                f"with {others} ({name}: {steps.plain()}); give all of them: --set '{'.'.join(path)}.zip="
                f"{{{name}: ..., {others.replace(' and ', ': ..., ')}: ...}}'"
            )
        chosen = {
            key: Node([values.value[i] for i in kept], values.place, values.key) for key, values in zipped.items()
        }
        own["zip"] = Node(chosen, zipped.place, zipped.key)
    else:
        own[name] = new
    return Node(own, item.place, item.key)
