"""The addresses of the report's pages: names of files, anchors in a page, and links to lists of claims."""

from __future__ import annotations

import hashlib
import re

LONGEST = 80
"""Largest number of characters of a file's name; longer names are cut and end in a hash."""


def anchor(*parts: str) -> str:
    """Return an id for any attribute and ``url()``: other characters are replaced by their code between ``~``."""
    return "-".join(re.sub(r"[^A-Za-z0-9._-]", lambda c: f"~{ord(c[0]):x}~", part) for part in parts)


def file_name(*parts: str) -> str:
    """Return a name for a file: letters, digits and a few signs, never too long for a file system."""
    name = anchor(*parts).lstrip(".") or "~"
    if len(name) <= LONGEST:
        return name
    return f"{name[:LONGEST]}~{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def figure_page(name: str) -> str:
    """Return the path of the page of the figure ``paper/figure``."""
    return f"figures/{file_name(*name.split('/', 1))}.html"


def settings_page(group: str) -> str:
    """Return the path of the page on what decides the verdicts of a paper."""
    return f"settings/{file_name(group)}.html"


def claim_list(**properties: str) -> str:
    """Return the link to the list of the claims with these properties."""
    query = "&".join(f"{key}={value.replace(' ', '-')}" for key, value in properties.items() if value)
    return f"find.html#{query}" if query else "find.html"
