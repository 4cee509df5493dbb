"""Render templates; values are escaped in HTML unless they are ``Markup`` (pictures, CSS, scripts)."""

from __future__ import annotations

import functools
import re
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup


def render(template: str, **values: Any) -> Markup:
    """Return a template of ``templates/`` with its values; a missing value is an error."""
    return Markup(_environment().get_template(template).render(values))


def static(name: str) -> Markup:
    """Return a style sheet or script of ``static/``, to be inserted into a page."""
    return Markup(resources.files(__package__).joinpath("static", name).read_text(encoding="utf-8"))


@functools.cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader(__package__), autoescape=lambda name: name is None or name.endswith(".html"),
        undefined=StrictUndefined, keep_trailing_newline=True, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {"slug": slug, "line": line, "cell": cell, "sentence": sentence}
    return environment


def slug(verdict: str) -> str:
    """Return a verdict as the name of a class in the style sheet."""
    return verdict.replace(" ", "-")


def line(text: str) -> str:
    """Return a text of several lines as one."""
    return text.replace("\n", " ")


def cell(text: str) -> str:
    """Return a text as the cell of a table in Markdown."""
    return line(text).replace("|", "\\|")


_WORD = re.compile(r"(?:a(?= [a-z]{2})|([a-z]{2,})(?=[\s,.:;?!'’-]|$))(?! *[=<>≤≥])")
"""A word at the beginning of a text. A letter, the left side of an equation and a name with digits are symbols."""
_GREEK = ("alpha", "beta", "gamma", "delta", "eps", "eta", "theta", "kappa", "lam", "mu", "nu", "rho", "sigma", "tau")


def sentence(text: str) -> str:
    """Return a text with a capital first letter, unless it begins with a symbol (``q = 3``, ``beta``, ``w_min``)."""
    word = _WORD.match(text)
    return text[:1].upper() + text[1:] if word and word[1] not in _GREEK else text
