"""The reference as Markdown, from the docstrings, the registry and the tables that the reader of specs itself uses.

Pages are written when the site is built and are not stored elsewhere. ``tests/test_reference.py`` fails if a public
name, key, column, field or command has no entry, or an empty one.
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
from fedrepro import docstrings, registry
from fedrepro.cli.main import main
from fedrepro.glossary import entries
from fedrepro.glossary.uses import uses
from fedrepro.results import schema
from fedrepro.spec import claim_grammar, keys, panels
from fedrepro.spec.axes import AXES

EXPERIMENTS = Path(__file__).parents[2] / "experiments"


def pages() -> dict[str, str]:
    """Return every page of the reference: its path below ``reference/`` and its text."""
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
"""The heading of each section's table of keys."""


def spec() -> Iterator[str]:
    """Yield every key of a spec, the options and published numbers of panels, and the axes."""
    yield "# A spec, key by key\n"
    yield (
        "A spec is one YAML file. `fedrepro validate SPEC` checks it at all tiers; `fedrepro describe KEY` shows any "
        "of these keys (`record_dense`, `panels.curves.role`, `panels.options.zoom`) and the figures that use it.\n"
    )
    for above, section in keys.SECTIONS.items():
        yield f"## {TITLES[above]}\n"
        yield table(["key", "takes", "default", "meaning"], (_key(*item) for item in section.items()))
        for name, key in section.items():
            if key.values:
                yield f"`{name}` may be:\n"
                yield table(["value", "meaning"], ([f"`{v}`", meaning] for v, meaning in key.values.items()))
    yield "## `panels.NAME.options` and `panels.NAME.published`\n"
    for kind, cls in panels.KINDS.items():
        yield f"### kind: {kind}\n\n{prose(docstrings.opening(cls.__doc__))}.\n"
        rows = ([f"`{o.name}`", o.values, value(o.default), o.meaning] for o in entries.options_of(kind))
        yield table(["option", "takes", "default", "meaning"], rows)
        for title, marks in (("published", cls.published), ("options.lines", cls.marks)):
            if marks.keys:
                yield f"An item of `{title}`:\n"
                yield table(["key", "meaning"], ([f"`{name}`", text] for name, text in marks.keys.items()))
    yield "## Axes: what `x` can be\n"
    rows = (
        [f"`{a.name}`", a.label or "a value of the curves, named by the option `parameter`", a.reads.value]
        for a in AXES.values()
    )
    yield table(["axis", "meaning", "read from"], rows)
    yield "Besides these, a metric that the runs record, or a value in which the curves differ.\n"


def _key(name: str, key: keys.Key) -> list[str]:
    return [f"`{name}`", key.takes, "*required*" if key.required else value(key.default), key.doc]


def claims() -> Iterator[str]:
    """Yield the language of claims."""
    yield "# The language of claims\n"
    yield from blocks(claim_grammar.__doc__ or "", drop=("``FORMS``",))
    yield "Other keywords select exactly one curve, by any of its values: algorithm, a parameter, `label`.\n"
    yield table(["form", "meaning"], ([f"`{form}`", meaning] for form, meaning in claim_grammar.FORMS.items()))


# -- results -----------------------------------------------------------------------------------------------------------


def results() -> Iterator[str]:
    """Yield the columns of the CSVs and the fields of the sidecar."""
    yield "# Results: columns and fields\n"
    yield (
        "`results/TIER/PAPER/FIGURE.csv` (or `.csv.xz`, `.csv.gz`) has one measurement per row. Its columns, in this "
        "order:\n"
    )
    yield table(["column", "meaning"], ([f"`{n}`", s] for n, s in schema.MEANINGS.items()))
    yield (
        "After `partition` there is a column for each parameter that any curve of the figure has, with its default "
        "where the spec does not set it: those of methods (`Q1`), then those of problems (`problem.K`), datasets "
        "(`dataset.N`) and partitions (`partition.P`). A cell is empty if the curve has no such parameter, or a "
        "parameter without a value; a parameter with several values has spaces between them; `true` and `false` are "
        "truth values. A parameter whose name another column has is `method.NAME`. The meaning of every column is in "
        "the sidecar under `columns`.\n"
    )
    yield "`FIGURE.points.csv` contains the arrays that runs store, if there are any:\n"
    yield table(["column", "meaning"], ([f"`{n}`", s] for n, s in schema.POINTS.items()))
    yield "## The sidecar\n\n`FIGURE.json` is stored next to the CSV. Its key `schema` is its version; all are read.\n"
    yield table(["version", "contents"], ([str(n), meaning] for n, meaning in schema.VERSIONS.items()))
    for cls, title in (
        (schema.Sidecar, "Fields"),
        (schema.RunNote, "An item of `failed` and `diverged`"),
        (schema.Content, "An item of `datasets`"),
        (schema.Timing, "A value of `timing`, by series and trial"),
        (schema.Made, "`made`"),
    ):
        yield f"### {title}\n"
        names = [f.name for f in dataclasses.fields(cls)]
        yield table(["field", "meaning"], ([f"`{n}`", m] for n, m in docstrings.meanings(cls, names).items()))


# -- the command line --------------------------------------------------------------------------------------------------


def command_line() -> Iterator[str]:
    """Yield every command with its help, as ``--help`` prints it."""
    yield "# The command line\n"
    yield "The output of `fedrepro COMMAND --help`. A user's error is one message and exit code 2.\n"
    for path, command in commands(main, ("fedrepro",)):
        yield f"## {' '.join(path)}\n"
        context = click.Context(command, info_name=" ".join(path), terminal_width=88, max_content_width=88)
        yield f"```text\n{command.get_help(context)}\n```\n"


def commands(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield a command and all commands below it, each with the words that call it."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from commands(child, (*path, name))


# -- Python ------------------------------------------------------------------------------------------------------------


def python() -> Iterator[str]:
    """Yield every public name with its signature, docstring and example."""
    yield "# From Python\n"
    yield "`from fedrepro import NAME` imports any of these. Large libraries are loaded when they are first used.\n"
    for title, names in public().items():
        yield f"## {title}\n"
        for name in names:
            yield from _public(name, getattr(fedrepro, name))


def public() -> dict[str, list[str]]:
    """Return the public names by kind, in the order of ``fedrepro.__all__``."""
    titles = {a.cls: f"Methods: {a.problem}" for a in registry.methods().values()}
    titles |= {p.cls: "Problems" for p in registry.problems().values()}
    names: dict[str, list[str]] = {"Problems": []}
    for name in fedrepro.__all__:
        if not name.startswith("_"):
            member = getattr(fedrepro, name)
            title = titles.get(member, "Data" if member.__module__.startswith("fedrepro.datasets") else "Running")
            names.setdefault(title, []).append(name)
    return names


def _public(name: str, member: Any) -> Iterator[str]:
    yield f"### {name}\n"
    yield f"`{member.__module__}.{name}`\n"
    if not getattr(member, "_is_protocol", False):
        yield f"```python\n{_signature(name, member)}\n```\n"
    doc, names = member.__doc__ or "", _parameters(member)
    yield from blocks(doc, drop=_explaining(doc))
    meanings = entries.meanings(member, names) if inspect.isclass(member) else docstrings.explained(doc)
    rows = [[f"`{n}`", meanings[n]] for n in (names or meanings) if meanings.get(n)]
    if rows:
        yield table(["", "meaning"], rows)
    if inspect.isclass(member):
        own = [(n, m) for n, m in vars(member).items() if inspect.isfunction(m) and not n.startswith("_") and m.__doc__]
        if own and not issubclass_of(member, "Method"):
            rows = [
                [f"`{n}({', '.join(_parameters(m)[1:])})`", f"{prose(docstrings.opening(m.__doc__))}."] for n, m in own
            ]
            yield table(["method", "what it does"], rows)


def issubclass_of(cls: type[Any], name: str) -> bool:
    """Return whether a base class has this name."""
    return any(base.__name__ == name for base in cls.__mro__[1:])


def _signature(name: str, member: Any) -> str:
    """Return the signature, on one line if that fits."""
    parameters = list(inspect.signature(member).parameters.values())
    kinds = [p.kind for p in parameters]
    inner = [re.sub(r": '([^']*)'", r": \1", str(p)) for p in parameters]
    if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        inner.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    line = f"{name}({', '.join(inner)})"
    return line if len(line) <= 88 else f"{name}(\n" + "".join(f"    {p},\n" for p in inner) + ")"


def _parameters(member: Any) -> list[str]:
    return [n for n in inspect.signature(member).parameters if n not in ("args", "kwargs", "parameters")]


def _explaining(doc: str) -> tuple[str, ...]:
    """Return the beginnings of the paragraphs that only explain parameters, which the table contains."""
    paragraphs = [" ".join(p.split()) for p in re.split(r"\n\s*\n", inspect.cleandoc(doc))]
    return tuple(p[:40] for p in paragraphs if re.match(r"[A-Za-z_]\w*(, [A-Za-z_]\w*)* : ", p))


# -- what is registered ------------------------------------------------------------------------------------------------

HIDDEN = ("files", "about", "other_names", "class", "messages", "rounds", "papers")
"""Facts that pages omit: the state of this machine, and what another part of the page shows."""


def registered(title: str, table_: Mapping[str, Any], describe: Callable[..., entries.Description]) -> Iterator[str]:
    """Yield every registered name of a kind as ``fedrepro describe`` shows it, with the docstring of its module."""
    used = uses(EXPERIMENTS)
    yield f"# {title}\n"
    first_names: dict[Any, str] = {}
    for name, entry in sorted(table_.items()):
        description = describe(entry, used)
        yield f"## {name}\n\n{prose(description.summary[:1].upper() + description.summary[1:])}.\n"
        if entry.cls in first_names:
            first = first_names[entry.cls]
            yield f"The same class as [{first}](#{anchor(first)}), with other values.\n"
        else:
            first_names[entry.cls] = name
            yield from blocks(importlib.import_module(entry.cls.__module__).__doc__ or "")
        facts = {key: content for key, content in description.facts.items() if key not in HIDDEN}
        rows = [[key.replace("_", " "), prose(fact(content))] for key, content in facts.items() if key != "source"]
        yield table(["", ""], [*rows, ["class", f"`{description.facts['class']}`"]])
        if description.parameters:
            yield table(["parameter", "default", "meaning"], map(_parameter, description.parameters))
        if description.metrics:
            yield table(
                ["metric", "better", "meaning"],
                ([f"`{m.name}`", m.better, prose(entries.meaning(m))] for m in description.metrics),
            )
        related = description.figures.get(entries.USED_BY_RELATED, [])
        figures_ = [figure for figures in description.figures.values() if figures is not related for figure in figures]
        further = f" Used by other names and derived methods: {', '.join(related)}." if related else ""
        yield f"Used by: {', '.join(figures_) or 'no figure'}.{further}\n"


def _parameter(parameter: entries.Parameter) -> list[str]:
    default = (
        "*required*"
        if parameter.required
        else value(parameter.default) + (" (set by this name)" if parameter.preset else "")
    )
    return [f"`{parameter.name}`", default, prose(parameter.meaning)]


def fact(content: Any) -> str:
    """Return a fact in words."""
    if isinstance(content, Mapping):
        return ", ".join(f"{name} = {'?' if v is None else v}" for name, v in content.items())
    return ", ".join(content) if isinstance(content, list) else str(content)


# -- Markdown ----------------------------------------------------------------------------------------------------------


def table(head: list[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table; bars in a cell are escaped."""
    lines = [head, ["---"] * len(head), *rows]
    cells = ([_cell(str(cell)) for cell in line] for line in lines)
    return "\n".join("| " + " | ".join(line) + " |" for line in cells) + "\n"


def _cell(text: str) -> str:
    parts = re.split(r"(`[^`]*`)", " ".join(text.split()))
    return "".join(part if part.startswith("`") else part.replace("|", "\\|") for part in parts)


def value(default: Any) -> str:
    """Return a default as a spec has it; '' if there is none."""
    if default is None or default in ("", (), [], {}):
        return ""
    text = (
        str(default).lower() if isinstance(default, bool) else f"{default:g}" if isinstance(default, float) else default
    )
    return f"`{list(text) if isinstance(text, tuple) else text}`"


def prose(text: str) -> str:
    """Return a part of a docstring in Markdown: formulas, code, and no text that looks like a tag."""
    text = re.sub(r":math:`([^`]*)`", r"$\1$", text).replace("``", "`")
    parts = re.split(r"(`[^`]*`|\$[^$]*\$)", text)
    return "".join(p if p[:1] in "`$" else p.replace("<", "&lt;") for p in parts if p)


def blocks(doc: str, drop: Iterable[str] = ()) -> Iterator[str]:
    """Yield a docstring in Markdown, paragraph by paragraph: prose, formulas, examples, and indented text unchanged."""
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
    """Return the anchor of a heading."""
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower())
