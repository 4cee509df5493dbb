"""Apply ``--set KEY=VALUE`` to a spec: set any key by its path, or a parameter by its name.

A name means the parameter of the methods; else of the problem; else of the datasets and partitions. It is set wherever
there is one. ``--set m=[10,50]`` sets m in every curve whose method has an m; a list is a sweep, as in the spec. Of a
list of methods, those that have the parameter get it.

Parameters that advance together (``zip``) have steps, which the first of them names. ``--set m=50`` keeps the steps of
``zip: {m: [10, 50], Q1: [100, 10]}`` with this m. Other values of m are an error, because Q1 would be unknown.
``--set Q1=5`` replaces Q1 in every step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from fedrepro import registry
from fedrepro.errors import UserError, nearest
from fedrepro.spec import nodes
from fedrepro.spec.error_collector import Collector
from fedrepro.spec.nodes import Node
from fedrepro.spec.resolve import REGISTRIES, curve_items

SEED = (
    "the seed of a trial follows from the spec and the number of the trial; --set dataset.seed=N draws a dataset that "
    "has the parameter seed with another one"
)
"""What to say to a user who wants to set a seed."""


def apply(collect: Collector, root: Node, options: Iterable[str], keys: tuple[str, ...]) -> Node:
    """Return the spec with the options applied. keys : the keys that a spec may have."""
    before = set(root.value)
    for option in _steps_last(root, options):
        path, node = nodes.setting(option)
        try:
            if len(path) > 1 or path[0] in keys:
                root = nodes.put(root, _meant(root, path), node)
            else:
                root = _by_name(root, path[0], node, keys)
        except UserError as error:
            collect.keep(node.place, str(error))
    added = {key: child for key, child in root.items() if key not in before}
    collect.keys(Node(added, root.place), keys, "a spec")
    return root


def is_set(node: Node | None) -> bool:
    """Return whether a value comes from ``--set``."""
    return node is not None and node.place.where.startswith("--set ")


def _steps_last(root: Node, options: Iterable[str]) -> list[str]:
    """Return the options with those last that choose steps: a parameter beside them that is replaced is then known."""
    naming = {next(iter(item.value["zip"].value)) for _, item in curve_items(root) if any(item.under("zip"))}
    return sorted(options, key=lambda option: option.partition("=")[0].strip() in naming)


def _meant(root: Node, path: list[str]) -> list[str]:
    """Return ``datasets.syn.N`` for ``dataset.N`` in a spec with ``dataset: syn``, and any other path as it is."""
    what, alias = path[0], root.get(path[0])
    if (
        len(path) > 1
        and what in REGISTRIES
        and alias is not None
        and str(alias.plain()) in dict(root.under(f"{what}s"))
    ):
        return [f"{what}s", str(alias.plain()), *path[1:]]
    return path


def _by_name(root: Node, name: str, new: Node, keys: tuple[str, ...]) -> Node:
    """Return the spec with a parameter set in all methods that have it, else in the problem, else in the data."""
    root = _divided(root, name)
    curves = [(path, item) for path, item in curve_items(root) if name in _parameters(item)]
    for path, item in curves:
        root = nodes.put(root, path, _with(item, path, name, new), replaced=True)
    if curves:
        return root
    problem = _problem(root)
    if problem is not None and name in problem.parameters:
        named = Node({**root.value, "problem": root.value["problem"].named()}, root.place, root.key)
        return nodes.put(_in_problems(named, name, new), ["problem", name], new)
    data = list(_data(root))
    places = [(path, item) for path, item, parameters in data if name in parameters]
    for path, item in places:
        root = nodes.put(root, path, Node({**item.named().value, name: new}, item.place, item.key), replaced=True)
    if places:
        return root
    own = {parameter for _, item in curve_items(root) for parameter in _parameters(item)}
    own |= {parameter for _, _, parameters in data for parameter in parameters}
    own |= set(problem.parameters) if problem is not None else set()
    close = nearest(name, [*keys, *sorted(own)]) or f"; parameters: {', '.join(sorted(own))}"
    if name == "seed":
        raise UserError(f"{new.place}: neither the methods, the problem nor the data have a parameter 'seed'; {SEED}")
    raise UserError(
        f"{new.place}: '{name}' is neither a key of a spec nor a parameter of its methods, its problem or its data"
        f"{close} (a key inside another: --set datasets.NAME.n=500)"
    )


def _divided(root: Node, name: str) -> Node:
    """Return the spec with lists of methods divided, in their order, where only some methods have the parameter."""
    for panel, node in root.under("panels"):
        listed = node.get("curves")
        if listed is not None and isinstance(listed.value, list):
            items = [part for item in listed.value for part in _parts(item, name)]
            if len(items) > len(listed.value):
                path = ["panels", panel, "curves"]
                root = nodes.put(root, path, Node(items, listed.place, listed.key), replaced=True)
    return root


def _parts(item: Node, name: str) -> list[Node]:
    methods, table = item.get("algorithm"), registry.methods()
    if methods is None or not isinstance(methods.value, list):
        return [item]

    def has_it(method: Node) -> bool:
        word = str(method.plain())
        return word in table and name in table[word].parameters()

    groups = [Node(list(group), methods.place, methods.key) for _, group in groupby(methods.value, has_it)]
    return [Node({**item.value, "algorithm": group}, item.place, item.key) for group in groups]


def _in_problems(node: Node, name: str, new: Node) -> Node:
    """Return a node with the parameter replaced in every mapping under a key ``problem`` inside it that has it."""
    if isinstance(node.value, list):
        return Node([_in_problems(item, name, new) for item in node.value], node.place, node.key)
    if not isinstance(node.value, dict):
        return node
    inside = {key: _in_problems(child, name, new) for key, child in node.items()}
    for key, child in inside.items():
        if key == "problem":
            several = isinstance(child.value, list)
            changed = [
                Node({**item.value, name: new}, item.place, item.key) if item.get(name) is not None else item
                for item in (child.value if several else [child])
            ]
            inside[key] = Node(changed, child.place, child.key) if several else changed[0]
    return Node(inside, node.place, node.key)


def _data(root: Node) -> Iterator[tuple[list[str], Node, Sequence[str]]]:
    """Yield every dataset and partition that a spec writes out, with its path and the names of its parameters."""
    within = [([], root), *((["panels", name], panel) for name, panel in root.under("panels")), *curve_items(root)]
    for what, entries in REGISTRIES.items():
        own = dict(root.under(f"{what}s"))
        places = [([f"{what}s", alias], item) for alias, item in own.items()]
        places += [([*path, what], item) for path, around in within if (item := around.get(what)) is not None]
        for path, item in places:
            word = item.named().get("name")
            name = str(word.plain()) if word is not None else ""
            if name in entries() and (isinstance(item.value, dict) or name not in own):
                yield path, item, list(entries()[name].parameters())


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
    """Return a curve with the parameter set, or with the matching steps if the parameter names those of ``zip``."""
    own = dict(item.value)
    zipped = item.get("zip")
    if zipped is None or zipped.get(name) is None:
        own[name] = new
    elif name == next(iter(zipped.value)) and len(zipped.value) > 1:
        own["zip"] = _steps(zipped, path, name, new)
    else:
        own[name] = new
        rest = {key: steps for key, steps in zipped.items() if key != name}
        own["zip"] = Node(rest, zipped.place, zipped.key)
        if not rest:
            del own["zip"]
    return Node(own, item.place, item.key)


def _steps(zipped: Node, path: list[str], name: str, new: Node) -> Node:
    """Return the steps of ``zip`` at which the parameter has one of the values. Raises UserError for other values."""
    wanted = new.plain() if isinstance(new.value, list) else [new.plain()]
    steps = zipped.value[name]
    lacking = [value for value in wanted if value not in steps.plain()]
    if lacking:
        others = " and ".join(key for key, _ in zipped.items() if key != name)
        raise UserError(
            f"{new.place}: {name} = {lacking[0]} is not a step of {'.'.join(path)}, where {name} advances together "
            f"with {others} ({name}: {steps.plain()}); give all of them: --set '{'.'.join(path)}.zip="
            f"{{{name}: ..., {others.replace(' and ', ': ..., ')}: ...}}'"
        )
    kept = [i for i, step in enumerate(steps.value) if step.plain() in wanted]
    chosen = {key: Node([values.value[i] for i in kept], values.place, values.key) for key, values in zipped.items()}
    return Node(chosen, zipped.place, zipped.key)
