"""Read docstrings: the meaning of parameters, and the source of a module.

A docstring explains parameters as ``name : meaning.``, several of one meaning as ``a, b : meaning.``. An explanation
starts with a paragraph or a sentence and ends at the next explanation or at the end of its paragraph. Other text needs
its own paragraph.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from typing import Any

_BEGINS = re.compile(r"(?:^|(?<=\. ))([A-Za-z_]\w*(?:, [A-Za-z_]\w*)*) : ")


def explained(doc: str) -> dict[str, str]:
    """Return the meaning of every name that a docstring explains, one line each, without the final full stop."""
    meaning_of: dict[str, str] = {}
    for paragraph in _paragraphs(doc):
        _, *pairs = _BEGINS.split(paragraph)
        for names, meaning in zip(pairs[::2], pairs[1::2], strict=True):
            for name in names.split(", "):
                meaning_of.setdefault(name, meaning.strip().removesuffix("."))
    return meaning_of


def meanings(cls: type[Any], names: Iterable[str]) -> dict[str, str]:
    """Return the meaning of each parameter of a class, from its docstring or that of the nearest base class.

    The meaning is '' if none of them explains the parameter.
    """
    meaning_of: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        meaning_of |= explained(base.__dict__.get("__doc__") or "")
    return {name: meaning_of.get(name, "") for name in names}


def opening(doc: str | None) -> str:
    """Return the first paragraph of a docstring as one line, without its full stop."""
    return next(iter(_paragraphs(doc)), "").removesuffix(".")


def source(doc: str | None) -> str:
    """Return the ``Source:`` in a module's docstring as one line without its full stop, or ''."""
    sources = [p.removeprefix("Source:").strip() for p in _paragraphs(doc) if p.startswith("Source:")]
    return " ".join(sources).removesuffix(".")


def _paragraphs(doc: str | None) -> list[str]:
    """Return the paragraphs as one line each, for a terminal: code in single backticks, formulas unchanged."""
    text = re.sub(r":math:`([^`]*)`", r"\1", inspect.cleandoc(doc or "")).replace("``", "`")
    return [" ".join(paragraph.split()) for paragraph in re.split(r"\n\s*\n", text)]
