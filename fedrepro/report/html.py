"""The report as one self-contained HTML page: no other files, nothing from the network, readable without scripts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from markupsafe import Markup

from fedrepro.report import pictures, site, views
from fedrepro.report.gather import Report, Section
from fedrepro.report.render import render, static

ALONE = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
"""What the page may load, enforced by the browser: only its own content."""


def page(report: Report, drawn: Mapping[str, Mapping[str, Markup]], experiments: Path | None = None) -> str:
    """Return the page. drawn : the panels of each section by id, as ``draw`` makes them.

    experiments : the folder of the papers' summaries.
    """
    from fedrepro.runs.storage.write import made

    whole = render(
        "page.html",
        alone=ALONE,
        css=static("report.css"),
        overall=site.overall(report, experiments) if experiments is not None else (),
        script=static("report.js"),
        verdicts=views.verdicts(report),
        levels=views.levels(report),
        papers=views.papers(report, drawn),
        groups=views.groups(report),
        made_by=views.made_by(made(), report),
    )
    return str(whole)


def draw(section: Section) -> dict[str, Markup]:
    """Return every panel of a section as HTML, by its id."""
    if section.source is None:
        return {}
    place = views.figure_anchor(section.name)
    return {
        p.id: pictures.panel_markup(section.source, p, f"{place}-{views.anchor(p.id)}") for p in section.figure.panels
    }
