"""The command ``describe``."""

from __future__ import annotations

import json
import re
import shutil
import textwrap
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click

from fedrepro.cli.listing import aligned
from fedrepro.spec.find import experiments

if TYPE_CHECKING:
    from fedrepro.glossary.entries import Description, Parameter

NARROWEST, WIDEST = 60, 100
"""The smallest and largest width of the text, in columns."""
LONG = 18
"""A default with more characters than this is printed after the meaning instead of in its own column."""

PARAMETERS = {"panel kind": "options", "parameter": "of"}
"""What the list of parameters is called for some kinds of names."""

MARKS = ("published", "lines")
"""Lists whose items have keys."""
UNCOUNTED = ("paper", "parameter", "word of the output", "dimension of words")
"""Kinds whose uses are not counted."""

WORDS = {"rounds": ("none: it yields one state", "yes"), "messages": ("none", "counted, up and down")}
"""The texts of a fact that is false, and of one that is true."""


def complete_name(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Return the names that start with ``incomplete``, for shell completion; nested ones once a dot is typed."""
    from fedrepro.glossary.lookup import names

    return [name for name in names() if name.startswith(incomplete) and ("." in incomplete or "." not in name)]


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=complete_name)
@click.option("--json", "as_json", is_flag=True, help="Machine-readable output.")
def describe(names: tuple[str, ...], as_json: bool) -> None:
    """Explain a name: its parameters, metrics, source and figures.

    Parameters are shown with their defaults, meanings and ranges. NAME is an algorithm, problem, dataset, partition,
    metric, parameter, kind or option of panels, axis, key of a spec, or function of claims; if it is several of these,
    all are shown. `problem.metric`, `kind.option` and the path of a key are unambiguous. NAME can also be a
    word of the output (`margin`), a paper, whose discrepancies are listed, or the id of one: a point in which the
    paper, its released program and this project differ.

    \b
    Examples:
      fedrepro describe fedmgs
      fedrepro describe clustering.objective mnist
      fedrepro describe panels.curves.role panels.options.zoom
      fedrepro describe table --json
      fedrepro describe Q2 margin
      fedrepro describe fedmf fedmf.16
    """
    from fedrepro.glossary.lookup import describe as look_up

    entries = look_up(names, experiments())
    if as_json:
        click.echo(json.dumps([entry.plain() for entry in entries], indent=1, ensure_ascii=False))
        return
    width = min(max(shutil.get_terminal_size((WIDEST, 24)).columns, NARROWEST), WIDEST)
    for number, entry in enumerate(entries):
        click.echo("\n" if number else "", nl=False)
        click.secho(f"{entry.kind} {entry.name}", bold=True)
        click.echo("\n".join(page(entry, width)))


def page(entry: Description, width: int) -> list[str]:
    """Return the lines that describe a name, without their heading."""
    from fedrepro.glossary.entries import meaning

    facts = [(_title(key), _fact(key, value)) for key, value in entry.facts.items()]
    head = [*_wrapped(entry.summary, width - 2), *([""] if facts else []), *_columns(facts, width - 2)]
    sections = {
        PARAMETERS.get(entry.kind, "parameters"): _parameters(entry, width - 4),
        "metrics": _columns([(m.name, m.better, meaning(m)) for m in entry.metrics], width - 4),
        **{
            f"an item of {key}" if key in MARKS else key: _columns(list(keys.items()), width - 4)
            for key, keys in entry.keys.items()
        },
    }
    for key, figures in entry.figures.items():
        sections[_title(key)] = _wrapped(", ".join(figures), width - 4)
    if not any(entry.figures.values()) and entry.kind not in UNCOUNTED:
        sections["used by"] = ["no figure"]
    lines = _indented(head, "  ")
    for title, body in sections.items():
        lines += ["", click.style(f"  {title}", bold=True), *_indented(body, "    ")] if body else []
    return lines


def _parameters(entry: Description, width: int) -> list[str]:
    """Return name, default and meaning of each parameter, and notes on the defaults."""
    preset = [p for p in entry.parameters if p.preset]
    rows = [(p.name, _default(p), _meaning(p)) for p in entry.parameters]
    notes = []
    if preset:
        others = [f"{p.name} = {_value(p.otherwise)}" for p in preset if p.default != p.otherwise]
        where = f" ({entry.facts['class'].rpartition('.')[2]} has {', '.join(others)})" if others else ""
        notes.append(f"* set by the name {entry.name}{where}")
    if any(_default(p).startswith("None") for p in entry.parameters):
        notes.append("None is written null in a spec.")
    return [*_columns(rows, width), *(line for note in notes for line in _wrapped(note, width))]


def _default(parameter: Parameter) -> str:
    if parameter.required:
        return "(required)"
    text = _value(parameter.default)
    return ("..." if len(text) > LONG else text) + " *" * parameter.preset


def _meaning(parameter: Parameter) -> str:
    text = _value(parameter.default)
    return f"{parameter.meaning}; default: {text}" if len(text) > LONG else parameter.meaning


def _title(key: str) -> str:
    return {"stand_in": "stand-in"}.get(key, key.replace("_", " "))


def _fact(key: str, value: Any) -> str:
    if isinstance(value, bool) and key in WORDS:
        return WORDS[key][value]
    if isinstance(value, Mapping):
        return ", ".join(f"{name} = {'?' if size is None else _value(size)}" for name, size in value.items())
    if isinstance(value, list):
        return ("; " if any(" " in text for text in value) else ", ").join(value)
    return _value(value)


def _value(value: Any) -> str:
    """Return a value roughly as a spec writes it; an empty text or list is None."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return re.sub(r"e([+-])0+", r"e\1", f"{value:.12g}")
    if isinstance(value, (list, tuple)) and value:
        return f"[{', '.join(map(_value, value))}]"
    return "None" if value in ("", (), []) else str(value)


def _columns(rows: Iterable[tuple[str, ...]], width: int) -> list[str]:
    """Return rows as lines with aligned columns; the last column is wrapped."""
    rows = list(rows)
    heads = aligned(row[:-1] for row in rows)
    margin = max(map(len, heads), default=0) + 2
    lines = []
    for head, row in zip(heads, rows, strict=True):
        first, *others = _wrapped(row[-1], width - margin) or [""]
        lines += [f"{head.ljust(margin)}{first}".rstrip(), *_indented(others, " " * margin)]
    return lines


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


def _indented(lines: list[str], by: str) -> list[str]:
    return [f"{by}{line}".rstrip() for line in lines]
