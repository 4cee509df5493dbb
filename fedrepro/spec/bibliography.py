"""The BibTeX entries of the papers, and of fedrepro itself: ``experiments/papers.bib`` is where they are stored."""

from __future__ import annotations

import re
from collections.abc import Collection

from fedrepro.spec.find import bundled

FILE = "papers.bib"
PROGRAM = "fedrepro"
"""The key of the entry of this program."""


def entries() -> dict[str, str]:
    """Return the BibTeX entry of each paper by its key, and that of this program."""
    text = (bundled() / FILE).read_text(encoding="utf-8")
    return {
        match[1]: match[0].strip() for match in re.finditer(r"^@\w+\{(\w+),\n.*?^\}", text, re.MULTILINE | re.DOTALL)
    }


def cited(papers: Collection[str]) -> str:
    """Return the entries of these papers, in the order of the file, and of this program."""
    return "\n\n".join(entry for key, entry in entries().items() if key in (*papers, PROGRAM))


def fields(entry: str) -> dict[str, str]:
    """Return the fields of a BibTeX entry without their outer braces: ``author``, ``year``, ``url``, etc."""
    return dict(re.findall(r"^  (\w+) = \{(.*)\},?$", entry, re.MULTILINE))
