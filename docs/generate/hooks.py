"""What is done when the site is built: pages that stand nowhere else are made, and formulas become MathML.

Browsers show MathML by themselves, so that a page needs no script and no network to be read.
"""

from __future__ import annotations

import html
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))

import hours
import papers
import reference

ROOT = Path(__file__).parents[2]
COPIED = {"contributing.md": "CONTRIBUTING.md", "changes.md": "CHANGELOG.md"}
"""Pages of the site that lie at the root of the repository."""

FORMULA = re.compile(r'<(span|div) class="arithmatex">(?:\\\((.*?)\\\)|\\\[(.*?)\\\])</\1>', re.DOTALL)


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are made."""
    made = {f"reference/{name}": text for name, text in reference.pages().items()}
    made |= {f"papers/{name}": text for name, text in papers.pages().items()}
    made |= {"hours.md": hours.page()}
    made |= {name: (ROOT / path).read_text(encoding="utf-8") for name, path in COPIED.items()}
    for name, text in made.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_content(content: str, page: Any, **_: Any) -> str:
    """The page with its formulas as MathML; headings in its table of contents as they are written."""
    for item in _below(page.toc.items):
        item.title = re.sub(r"\\\((.*?)\\\)", r"\1", item.title)
    return FORMULA.sub(_formula, content)


def _below(items: Iterable[Any]) -> Iterator[Any]:
    for item in items:
        yield item
        yield from _below(item.children)


def _formula(match: re.Match[str]) -> str:
    _, inline, block = match.groups()
    text = html.unescape(inline if inline is not None else block)
    known = text.replace("\\tfrac", "\\frac").replace("\\operatorname", "\\mathrm")
    return str(convert(known, display="inline" if inline is not None else "block"))
