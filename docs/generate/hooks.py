"""Hooks of the site's build: they add generated pages and convert formulas to MathML.

Browsers display MathML without scripts and without a network.
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
import lexicon_pages
import papers
import reference

from fedrepro import registry

ROOT = Path(__file__).parents[2]
COPIED = {"contributing.md": "CONTRIBUTING.md", "changes.md": "CHANGELOG.md"}
"""Pages of the site whose source is at the root of the repository."""

SOURCES = {
    **{f"../{source}": page for page, source in COPIED.items()},
    **{f"generate/papers/{key}.md": f"papers/{key}.md" for key in (*registry.PAPERS, "beyond")},
    "../fedrepro/lexicon/words.yaml": "lexicon.md",
    "generate/second_reader.yaml": "readers.md",
}
"""Pages link to files of the repository, for its readers; on the site these links lead to the pages made from them."""

UNKNOWN = {"\\tfrac": "\\frac", "\\operatorname": "\\mathrm", "\\arg": "\\mathrm{arg}\\,"}
"""Commands of LaTeX that the converter does not know, or draws badly, and what is converted instead."""

ONLY_HERE = r"\s\(`make\s+docs`\s+builds\s+this\s+page\)"
"""What pages say after a link to a page that only the site has."""

FORMULA = re.compile(r'<(span|div) class="arithmatex">(?:\\\((.*?)\\\)|\\\[(.*?)\\\])</\1>', re.DOTALL)


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages."""
    made = {f"reference/{name}": text for name, text in reference.pages().items()}
    made |= {f"papers/{name}": text for name, text in papers.pages().items()}
    made |= {"hours.md": hours.page()}
    made |= {"lexicon.md": lexicon_pages.lexicon_page(), "readers.md": lexicon_pages.readers_page()}
    made |= {name: (ROOT / path).read_text(encoding="utf-8") for name, path in COPIED.items()}
    for name, text in made.items():
        files.append(File.generated(config, name, content=text))
    return files


COUNTS = "<!-- counts -->"
"""Where a page has the tables of ``results/paper/REPORT.md`` that count claims."""


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Return the page with links to generated pages, and the report's counts by class and by evidence."""
    for source, made in SOURCES.items():
        markdown = markdown.replace(f"]({source}", f"]({made}")
    markdown = re.sub(ONLY_HERE, "", markdown)
    return markdown.replace(COUNTS, counts()) if COUNTS in markdown else markdown


def counts() -> str:
    """The tables of the report that count claims by class and by evidence."""
    report = (ROOT / "results" / "paper" / "REPORT.md").read_text(encoding="utf-8")
    return "\n\n".join(re.search(rf"^\| {what} \|.*?\n\n", report, re.M | re.S)[0] for what in ("class", "evidence"))


def on_page_content(content: str, page: Any, **_: Any) -> str:
    """Return the page with its formulas as MathML; its table of contents shows their source."""
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
    known = text
    for command, other in UNKNOWN.items():
        known = known.replace(command, other)
    formula = str(convert(known, display="inline" if inline is not None else "block"))
    if "\\" in formula:
        raise ValueError(f"the converter does not know a command of the formula {text}")
    return formula
