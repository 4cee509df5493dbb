"""The report as one HTML page: no file beside it, nothing from the network, readable without its script."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from markupsafe import Markup

from fedrepro.report import pictures, site, views
from fedrepro.report.gather import Report, Section
from fedrepro.report.render import render, static

ALONE = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
"""What the page may load, enforced by the browser: nothing that is not in it."""


def page(report: Report, drawn: Mapping[str, Mapping[str, Markup]], experiments: Path | None = None) -> str:
    """The whole page. ``drawn``: for each section's name its panels by id, as ``draw`` makes them.

    experiments : where the papers' summaries lie.
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
    """Every panel of a section as HTML, by its id."""
    if section.source is None:
        return {}
    place = views.figure_anchor(section.name)
    return {p.id: pictures.panel(section.source, p, f"{place}-{views.anchor(p.id)}") for p in section.figure.panels}
