"""The report as Markdown: overview, claims and discrepancies, to read with the code."""

from __future__ import annotations

import re
from pathlib import Path

from fedrepro import registry
from fedrepro.report.contents import Report
from fedrepro.report.render import render
from fedrepro.report.site import TABLES


def text(report: Report, plots: Path) -> str:
    """Return the file. plots : its folder; pictures that exist there are shown."""
    drawn = (f"{section.figure.tier}/{section.name}.png" for section in report.sections)
    pictures = {name for name in drawn if (plots / name).exists()}
    written = render("report.md", report=report, pictures=pictures, paper_names=registry.PAPERS, **TABLES)
    return re.sub(r"<(?=[A-Za-z/!?])", "&lt;", written).rstrip() + "\n"  # texts of specs are not markup
