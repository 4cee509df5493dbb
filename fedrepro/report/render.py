"""Templates to markup. What a template is given is escaped, unless it is ``Markup`` already: pictures, CSS, script."""

from __future__ import annotations

import functools
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup


def render(template: str, **values: Any) -> Markup:
    """The template of that name in ``templates/``, filled in; a name it uses and is not given is an error."""
    return Markup(_environment().get_template(template).render(values))


def static(name: str) -> Markup:
    """A style sheet or script of ``static/``, to stand between the tags of a page."""
    return Markup(resources.files(__package__).joinpath("static", name).read_text(encoding="utf-8"))


@functools.cache
def _environment() -> Environment:
    found = Environment(
        loader=PackageLoader(__package__), autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    found.filters["slug"] = slug
    return found


def slug(verdict: str) -> str:
    """A verdict as the name of a class of the style sheet."""
    return verdict.replace(" ", "-")
