"""What docstrings say: the meaning of parameters, and the source of a module.

A docstring explains parameters as ``name : meaning.``, several of one meaning as ``a, b : meaning.``. An explanation
begins where a paragraph or a sentence does, and goes on to the next one or to the end of its paragraph: what concerns
none of them has a paragraph of its own.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from typing import Any

_BEGINS = re.compile(r"(?:^|(?<=\. ))([A-Za-z_]\w*(?:, [A-Za-z_]\w*)*) : ")


def explained(doc: str) -> dict[str, str]:
    """The meaning of every name that a docstring explains: one line each, without the final full stop."""
    found: dict[str, str] = {}
    for paragraph in _paragraphs(doc):
        _, *pairs = _BEGINS.split(paragraph)
        for names, meaning in zip(pairs[::2], pairs[1::2], strict=True):
            for name in names.split(", "):
                found.setdefault(name, meaning.strip().removesuffix("."))
    return found


def meanings(cls: type[Any], names: Iterable[str]) -> dict[str, str]:
    """The meaning of each parameter of a class from its own docstring, else from that of the nearest base class.

    A parameter that none of them explains has an empty one.
    """
    found: dict[str, str] = {}
    for one in reversed(cls.__mro__):
        found |= explained(one.__dict__.get("__doc__") or "")
    return {name: found.get(name, "") for name in names}


def opening(doc: str | None) -> str:
    """The first paragraph of a docstring as one line, without its full stop."""
    return next(iter(_paragraphs(doc)), "").removesuffix(".")


def source(doc: str | None) -> str:
    """What a module's docstring names as its ``Source:``, as one line without its full stop; empty without one."""
    told = [p.removeprefix("Source:").strip() for p in _paragraphs(doc) if p.startswith("Source:")]
    return " ".join(told).removesuffix(".")


def _paragraphs(doc: str | None) -> list[str]:
    """The paragraphs as one line each, for a terminal: code between single marks, formulas as they are written."""
    text = re.sub(r":math:`([^`]*)`", r"\1", inspect.cleandoc(doc or "")).replace("``", "`")
    return [" ".join(paragraph.split()) for paragraph in re.split(r"\n\s*\n", text)]
