"""Render templates as markup; values are escaped unless they are ``Markup`` (pictures, CSS, scripts)."""

from __future__ import annotations

import functools
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
        loader=PackageLoader(__package__), autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["slug"] = slug
    return environment


def slug(verdict: str) -> str:
    """Return a verdict as the name of a class in the style sheet."""
    return verdict.replace(" ", "-")
