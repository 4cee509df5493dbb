"""The report as one self-contained page: the pages of the folder as sections of one file.

Nothing is loaded, and everything is readable without scripts. Files to download and interactive pictures are left out.
"""

from __future__ import annotations

import base64
import functools
import posixpath
import re

from markupsafe import Markup

from fedrepro.report.pictures import STYLE
from fedrepro.report.render import render, static
from fedrepro.report.site import STATIC, Site

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
"""What the page may load, enforced by the browser: only its own content."""

LEFT_OUT = re.compile(r'<p class="downloads">.*?</p>|<div class="explore".*?</div>', re.DOTALL)
"""The parts of pages that need other files."""


def page(site: Site) -> str:
    """Return the pages of a site, which are already made, as one page."""
    style, script = map(static, STATIC)
    sections = Markup("\n").join(_sections(site))
    frame = {"root": "", "here": "", "title": "Which claims held", "policy": POLICY, "marker": ""}
    return str(render("single.html", sections=sections, style=style, script=script, **frame, **site.shared))


def _sections(site: Site) -> list[Markup]:
    drawn: dict[str, str] = {}
    sections = []
    for path, content in site.files.items():
        name, ending = posixpath.splitext(path)
        if ending == ".html" and name != "summary":  # the summary repeats what other pages say
            main = content.decode().partition("<main")[2].partition(">")[2].partition("</main>")[0]
            rewrite = functools.partial(_tag, page_name=name, site=site, drawn=drawn)
            body = re.sub("<[a-z][^>]*>", rewrite, LEFT_OUT.sub("", main))
            sections.append(Markup(f'<section class="page" id="{name}">{body}</section>'))
    return sections


def _tag(match: re.Match[str], page_name: str, site: Site, drawn: dict[str, str]) -> str:
    """Return a tag of a page as the single file has it. drawn : the ids of the pictures so far, by path."""
    tag = match[0]
    if tag.startswith("<img"):
        return _picture(tag, page_name, site, drawn)
    tag = re.sub(r' (id|for|aria-labelledby)="', lambda name: f"{name[0]}{page_name}/", tag)
    return re.sub(r' href="([^"#]*)#?([^"]*)"', lambda link: _link(page_name, link[1], link[2]), tag)


def _link(page_name: str, path: str, place: str) -> str:
    """Return the link to a place in a page; lists of claims are filtered by a script."""
    target = _absolute(page_name, path).removesuffix(".html") if path else page_name
    if "=" in place:
        return f' href="#{target}" data-filter="{place}"'
    return f' href="#{target}/{place}"' if place else f' href="#{target}"'


def _picture(tag: str, page_name: str, site: Site, drawn: dict[str, str]) -> str:
    """Return a picture as part of the page; a drawing that is already there is referred to."""
    source = tag.partition(' src="')[2].partition('"')[0]
    path = _absolute(page_name, source)
    if path.endswith(".png"):
        return tag.replace(source, f"data:image/png;base64,{base64.b64encode(site.files[path]).decode()}")
    opening, _, rest = site.files[path].decode().replace(STYLE, "").partition(">")
    if path in drawn:
        return f'{opening}><use href="#{drawn[path]}"/></svg>'
    drawn[path] = f"drawing-{len(drawn)}"
    return f'{opening}><g id="{drawn[path]}">{rest.replace("</svg>", "</g></svg>")}'


def _absolute(page_name: str, path: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(page_name), path))
