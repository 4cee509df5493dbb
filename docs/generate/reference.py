"""The reference as Markdown, from the docstrings, the registry and the tables that the reader of specs itself uses.

Pages are made when the site is built and stand nowhere else. ``tests/test_reference.py`` fails when a public name, key,
column, field or command has no entry, or one that says nothing.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click

import fedrepro
from fedrepro import registry
from fedrepro.cli.main import main
from fedrepro.glossary import docstrings, entries
from fedrepro.glossary.uses import uses
from fedrepro.results import schema
from fedrepro.spec import claim_grammar, keys, panels
from fedrepro.spec.axes import AXES

EXPERIMENTS = Path(__file__).parents[2] / "experiments"


def pages() -> dict[str, str]:
    """Every page of the reference: its path below ``reference/`` and its text."""
    made: dict[str, Callable[[], Iterator[str]]] = {
        "spec.md": spec,
        "claims.md": claims,
        "results.md": results,
        "command-line.md": command_line,
        "python.md": python,
        "algorithms.md": lambda: registered("Algorithms", registry.methods(), entries.algorithm),
        "problems.md": lambda: registered("Problems and metrics", registry.problems(), entries.problem),
        "datasets.md": lambda: registered("Datasets", registry.datasets(), entries.dataset),
        "partitions.md": lambda: registered("Partitions", registry.partitions(), entries.partition),
    }
    return {name: "\n".join(parts()) for name, parts in made.items()}


# -- specs -------------------------------------------------------------------------------------------------------------

TITLES = {
    "": "Keys of a spec",
    "problem": "`problem`",
    "datasets": "`datasets.NAME`",
    "partitions": "`partitions.NAME`",
    "panels": "`panels.NAME`",
    "panels.curves": "`panels.NAME.curves`",
    "claims": "`claims`",
    "tiers": "`tiers`",
}
"""How the table of keys of each section is headed."""


def spec() -> Iterator[str]:
    """Every key of a spec, the options and published numbers of panels, and the axes."""
    yield "# A spec, key by key\n"
    yield (
        "A spec is one YAML file. `fedrepro validate SPEC` checks it at all tiers; `fedrepro describe KEY` shows any "
        "of these keys (`record_dense`, `panels.curves.role`, `panels.options.zoom`) and the figures that use it.\n"
    )
    for above, found in keys.SECTIONS.items():
        yield f"## {TITLES[above]}\n"
        yield table(["key", "takes", "default", "what it means"], (_key(*item) for item in found.items()))
        for name, key in found.items():
            if key.values:
                yield f"`{name}` may be:\n"
                yield table(["value", "what it means"], ([f"`{v}`", said] for v, said in key.values.items()))
    yield "## `panels.NAME.options` and `panels.NAME.published`\n"
    for kind, cls in panels.KINDS.items():
        yield f"### kind: {kind}\n\n{prose(docstrings.opening(cls.__doc__))}.\n"
        rows = ([f"`{o.name}`", o.values, value(o.default), o.doc] for o in panels.describe(kind))
        yield table(["option", "takes", "default", "what it means"], rows)
        for title, marks in (("published", cls.published), ("options.lines", cls.marks)):
            said = {**marks.texts, **marks.numbers}
            if said:
                yield f"An item of `{title}`:\n"
                yield table(["key", "what it means"], ([f"`{name}`", text] for name, text in said.items()))
    yield "## Axes: what `x` can be\n"
    rows = (
        [f"`{a.name}`", a.label or "a value of the curves, named by the option `parameter`", a.reads.value]
        for a in AXES.values()
    )
    yield table(["axis", "what it counts", "read from"], rows)
    yield "Besides these, a metric that the runs record, or a value in which the curves differ.\n"


def _key(name: str, key: keys.Key) -> list[str]:
    return [f"`{name}`", key.takes, "*required*" if key.required else value(key.default), key.doc]


def claims() -> Iterator[str]:
    """The language of claims."""
    yield "# The language of claims\n"
    yield from blocks(claim_grammar.__doc__ or "", drop=("``FORMS``",))
    yield "Other keywords select exactly one curve, by any of its values: algorithm, a parameter, `label`.\n"
    yield table(["form", "what it means"], ([f"`{form}`", said] for form, said in claim_grammar.FORMS.items()))


# -- results -----------------------------------------------------------------------------------------------------------


def results() -> Iterator[str]:
    """Columns of the CSVs, fields of the sidecar."""
    yield "# Results: columns and fields\n"
    yield "`results/TIER/PAPER/FIGURE.csv` (or `.csv.gz`) holds one measurement a row. Its columns, in this order:\n"
    yield table(["column", "what stands in it"], ([f"`{n}`", s] for n, s in schema.MEANINGS.items()))
    yield "`FIGURE.points.csv` is there where runs keep arrays:\n"
    yield table(["column", "what stands in it"], ([f"`{n}`", s] for n, s in schema.POINTS.items()))
    yield "## The sidecar\n\n`FIGURE.json` lies beside the CSV. Its key `schema` is its version; all are read.\n"
    yield table(["version", "what it is like"], ([str(n), said] for n, said in schema.VERSIONS.items()))
    for cls, title in (
        (schema.Sidecar, "Fields"),
        (schema.RunNote, "An item of `failed` and `diverged`"),
        (schema.Content, "An item of `datasets`"),
        (schema.Timing, "A value of `timing`, by series and trial"),
        (schema.Made, "`made`"),
    ):
        yield f"### {title}\n"
        names = [f.name for f in dataclasses.fields(cls)]
        yield table(["field", "what it says"], ([f"`{n}`", m] for n, m in docstrings.meanings(cls, names).items()))


# -- the command line --------------------------------------------------------------------------------------------------


def command_line() -> Iterator[str]:
    """Every command with its help, as ``--help`` prints it."""
    yield "# The command line\n"
    yield "What `fedrepro COMMAND --help` prints. A user's error is one message and exit code 2.\n"
    for path, command in commands(main, ("fedrepro",)):
        yield f"## {' '.join(path)}\n"
        context = click.Context(command, info_name=" ".join(path), terminal_width=88, max_content_width=88)
        yield f"```text\n{command.get_help(context)}\n```\n"


def commands(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """A command and all below it, with the words that call each."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from commands(found, (*path, name))


# -- Python ------------------------------------------------------------------------------------------------------------


def python() -> Iterator[str]:
    """Every public name with its signature, docstring and example."""
    yield "# From Python\n"
    yield "`from fedrepro import NAME` gives any of these; nothing heavy is loaded before it is used.\n"
    for title, names in public().items():
        yield f"## {title}\n"
        for name in names:
            yield from _public(name, getattr(fedrepro, name))


def public() -> dict[str, list[str]]:
    """The public names by what they are, in the order of ``fedrepro.__all__``."""
    made = {a.cls: f"Methods: {a.problem}" for a in registry.methods().values()}
    made |= {p.cls: "Problems" for p in registry.problems().values()}
    found: dict[str, list[str]] = {"Problems": []}
    for name in fedrepro.__all__:
        if not name.startswith("_"):
            thing = getattr(fedrepro, name)
            title = made.get(thing, "Data" if thing.__module__.startswith("fedrepro.datasets") else "Running")
            found.setdefault(title, []).append(name)
    return found


def _public(name: str, thing: Any) -> Iterator[str]:
    yield f"### {name}\n"
    yield f"`{thing.__module__}.{name}`\n"
    if not getattr(thing, "_is_protocol", False):
        yield f"```python\n{_signature(name, thing)}\n```\n"
    doc, names = thing.__doc__ or "", _parameters(thing)
    yield from blocks(doc, drop=_explaining(doc))
    said = entries.meanings(thing, names) if inspect.isclass(thing) else docstrings.explained(doc)
    rows = [[f"`{n}`", said[n]] for n in (names or said) if said.get(n)]
    if rows:
        yield table(["", "what it is"], rows)
    if inspect.isclass(thing):
        own = [(n, m) for n, m in vars(thing).items() if inspect.isfunction(m) and not n.startswith("_") and m.__doc__]
        if own and not issubclass_of(thing, "Method"):
            rows = [
                [f"`{n}({', '.join(_parameters(m)[1:])})`", f"{prose(docstrings.opening(m.__doc__))}."] for n, m in own
            ]
            yield table(["method", "what it does"], rows)


def issubclass_of(cls: type[Any], name: str) -> bool:
    """Whether a base class further up has this name."""
    return any(one.__name__ == name for one in cls.__mro__[1:])


def _signature(name: str, thing: Any) -> str:
    """How it is called, on one line where that fits."""
    found = list(inspect.signature(thing).parameters.values())
    kinds = [p.kind for p in found]
    inner = [re.sub(r": '([^']*)'", r": \1", str(p)) for p in found]
    if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        inner.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    line = f"{name}({', '.join(inner)})"
    return line if len(line) <= 88 else f"{name}(\n" + "".join(f"    {p},\n" for p in inner) + ")"


def _parameters(thing: Any) -> list[str]:
    return [n for n in inspect.signature(thing).parameters if n not in ("args", "kwargs", "parameters")]


def _explaining(doc: str) -> tuple[str, ...]:
    """The beginnings of the paragraphs that only explain parameters: the table has them."""
    found = [" ".join(p.split()) for p in re.split(r"\n\s*\n", inspect.cleandoc(doc))]
    return tuple(p[:40] for p in found if re.match(r"[A-Za-z_]\w*(, [A-Za-z_]\w*)* : ", p))


# -- what is registered ------------------------------------------------------------------------------------------------

HIDDEN = ("files", "about", "other_names", "class", "messages", "rounds", "papers")
"""Facts that a page leaves out: what this machine has, what stands elsewhere on the page."""


def registered(title: str, table_: Mapping[str, Any], describe: Callable[..., entries.Thing]) -> Iterator[str]:
    """Every registered name of a kind as ``fedrepro describe`` has it, with what its module says."""
    told = uses(EXPERIMENTS)
    yield f"# {title}\n"
    shown: dict[Any, str] = {}
    for name, entry in sorted(table_.items()):
        thing = describe(entry, told)
        yield f"## {name}\n\n{prose(thing.summary[:1].upper() + thing.summary[1:])}.\n"
        if entry.cls in shown:
            yield f"The same class as [{shown[entry.cls]}](#{anchor(shown[entry.cls])}), with other values.\n"
        else:
            shown[entry.cls] = name
            yield from blocks(importlib.import_module(entry.cls.__module__).__doc__ or "")
        facts = [(key, one) for key, one in thing.facts.items() if key not in HIDDEN]
        rows = [[key.replace("_", " "), prose(fact(one))] for key, one in facts if key != "source"]
        yield table(["", ""], [*rows, ["class", f"`{thing.facts['class']}`"]])
        if thing.parameters:
            yield table(["parameter", "default", "what it means"], map(_parameter, thing.parameters))
        if thing.metrics:
            yield table(
                ["metric", "better", "what it means"],
                ([f"`{m.name}`", m.better, prose(entries.meaning(m))] for m in thing.metrics),
            )
        used = [figure for figures in thing.figures.values() for figure in figures]
        yield f"Used by: {', '.join(used) or 'no figure'}.\n"


def _parameter(one: entries.Parameter) -> list[str]:
    default = "*required*" if one.required else value(one.default) + (" (set by this name)" if one.preset else "")
    return [f"`{one.name}`", default, prose(one.meaning)]


def fact(one: Any) -> str:
    """A fact in words."""
    if isinstance(one, Mapping):
        return ", ".join(f"{name} = {'?' if v is None else v}" for name, v in one.items())
    return ", ".join(one) if isinstance(one, list) else str(one)


# -- Markdown ----------------------------------------------------------------------------------------------------------


def table(head: list[str], rows: Iterable[Iterable[str]]) -> str:
    """A table; bars in a cell are escaped."""
    lines = [head, ["---"] * len(head), *rows]
    cells = ([_cell(str(cell)) for cell in line] for line in lines)
    return "\n".join("| " + " | ".join(line) + " |" for line in cells) + "\n"


def _cell(text: str) -> str:
    parts = re.split(r"(`[^`]*`)", " ".join(text.split()))
    return "".join(part if part.startswith("`") else part.replace("|", "\\|") for part in parts)


def value(default: Any) -> str:
    """A default as a spec has it; nothing where there is none."""
    if default is None or default in ("", (), [], {}):
        return ""
    text = (
        str(default).lower() if isinstance(default, bool) else f"{default:g}" if isinstance(default, float) else default
    )
    return f"`{list(text) if isinstance(text, tuple) else text}`"


def prose(text: str) -> str:
    """A piece of a docstring in Markdown: formulas, code, and nothing that could be taken for a tag."""
    text = re.sub(r":math:`([^`]*)`", r"$\1$", text).replace("``", "`")
    parts = re.split(r"(`[^`]*`|\$[^$]*\$)", text)
    return "".join(p if p[:1] in "`$" else p.replace("<", "&lt;") for p in parts if p)


def blocks(doc: str, drop: Iterable[str] = ()) -> Iterator[str]:
    """A docstring in Markdown, paragraph by paragraph: prose, formulas, examples, and what is set off as it stands."""
    dropped = tuple(drop)
    for part in re.split(r"\n\s*\n", inspect.cleandoc(doc)):
        line = " ".join(part.split())
        if dropped and line.startswith(dropped):
            continue
        if part.startswith(">>>"):
            yield f"```pycon\n{part}\n```\n"
        elif part.startswith(".. math::"):
            yield f"$$\n{textwrap.dedent(part.removeprefix('.. math::')).strip()}\n$$\n"
        elif part.startswith(" "):
            yield f"```text\n{textwrap.dedent(part).replace('``', '')}\n```\n"
        else:
            yield prose(line[:-1] if line.endswith("::") else line) + "\n"


def anchor(heading: str) -> str:
    """The anchor that a heading gets."""
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower())
