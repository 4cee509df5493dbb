"""Names in the report: titles, ids and file names are shown as text, never as markup."""

from __future__ import annotations

import itertools
import json
import re
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result

from fedrepro.report import page_data, pictures, single_file, site
from fedrepro.report.contents import Report
from fedrepro.results.schema import Made

from .pages import Page
from .test_report import gathered

Call = Callable[..., Result]
HOSTILE = '</p><script src="x">alert("1")</script><b onclick=\'y\'>&amp; \\g<0> $\\lambda=1$ {{ 7 }} -->'
SHAPES = {"svg", "g", "defs", "path", "use", "clippath", "rect", "text", "tspan", "title"}
"""What a drawing consists of."""


def project(name: str) -> Path:
    """A project in this folder in which all that is text has this name, with a number behind it; returns the spec.

    A second figure, which the discrepancies touch too, is there and is not reported.
    """
    numbers = itertools.count()

    def new() -> str:
        return f"{name} {next(numbers)}"

    alias, labels = new(), (new(), new())
    curves = [{"algorithm": "fedcavg", "Q1": 2, "Q2": 1 + 4 * i, "label": label} for i, label in enumerate(labels)]
    options = {"rows": "label", "columns": "dataset"}
    spec: dict[str, Any] = {
        "paper": "beyond", "figure": "one", "title": new(), "source": new(), "note": new(),
        "problem": {"name": "clustering"}, "trials": 1, "rounds": 2,
        "datasets": {alias: {"name": "synthetic", "M": 12, "N": 60, "K": 3}}, "dataset": alias,
        "partitions": {alias: {"name": "uniform", "P": 6}}, "partition": alias,
        "panels": {
            "a": {"title": new(), "curves": curves, "published": [{"y": 0.3, "label": new()}]},
            "t": {"title": new(), "curves": curves, "kind": "table", "options": options},
        },
        "claims": [{
            "id": new(), "says": new(), "where": new(), "note": new(), "panel": "a",
            "check": f"y(at='end', label={labels[1]!r}) < y(at='end', Q2=1)",
        }],
    }  # fmt: skip
    texts = {key: new() for key in ("topic", "paper", "code", "taken", "note")}
    texts |= {"kind": "text", "figures": ["one", "two"]}
    effect = {"figure": "beyond/one", "panel": "a", "taken": {"Q2": 1}, "other": {"Q2": 5}}
    command = {"figure": "beyond/one", "set": [f"note={new()}"]}
    rows = [
        {"id": new(), **texts, "no_variant": new(), "run": command, "effect": [effect]},
        {"id": new(), **texts, "variant": {"dataset": "file", "path": "own.csv", "key": new()}},
    ]
    Path("own.csv").touch()
    folder = Path("experiments/beyond")
    folder.mkdir(parents=True)
    for figure in ("one", "two"):
        (folder / f"{figure}.yaml").write_text(yaml.safe_dump(spec | {"figure": figure}, sort_keys=False))
    (folder / "discrepancies.yaml").write_text(yaml.safe_dump({"paper": "beyond", "rows": rows}, sort_keys=False))
    return folder / "one.yaml"


def compute(spec: Path, name: str, fedrepro: Call) -> None:
    """Results of the figure, with some runs recorded as failed, diverged or missing."""
    note = "note='{}'".format(name.replace("'", "''"))
    done = fedrepro("run", spec, "--quiet", "--jobs", 1, "--results", "results", "--set", note)
    assert done.exit_code == 0, done.output
    (own,) = Path("results/set").iterdir()  # put in the figure's own place
    shutil.copytree(own / "quick", "results/quick", dirs_exist_ok=True)
    shutil.rmtree(own)
    path = Path("results/quick/beyond/one.json")
    sidecar = json.loads(path.read_text())
    run = {"series": sidecar["settings"][0]["series"], "trial": 1, "why": name}
    sidecar |= {"failed": [run], "diverged": [run], "missing": [name], "complete": False}
    sidecar |= {"csv_sha256": "", "seconds": 0.0, "made": {"machine": name}}  # what differs between two runs
    path.write_text(json.dumps(sidecar))


def renamed(report: Report, name: str) -> Report:
    """The report of one figure with this name for what specs have plain names for: figures, panels and files."""
    (section,) = report.sections
    panels = tuple(replace(panel, id=f"{name} {panel.id}") for panel in section.figure.panels)
    claims = tuple(replace(claim, panel=f"{name} {claim.panel}") for claim in section.figure.claims)
    figure = replace(section.figure, figure=f"{name} one", panels=panels, claims=claims)
    assert section.source
    section = replace(
        section,
        path=Path(f"{name} path"),
        figure=figure,
        source=replace(section.source, figure=figure),
        claims=tuple(replace(row, claim=claim) for row, claim in zip(section.claims, claims, strict=True)),
        published=tuple(replace(item, panel=f"{name} {item.panel}") for item in section.published),
    )
    rows = tuple(replace(row, figures=(section.name, f"{name} two")) for row in report.discrepancies)
    effects = {
        key: tuple(replace(effect, figure=section.name) for effect in of_row) for key, of_row in report.effects.items()
    }
    return Report((section,), rows, effects)


def pages(name: str, folder: Path, fedrepro: Call, monkeypatch: pytest.MonkeyPatch) -> dict[str, Page]:
    """The page of such a project: as it is, then with names that no spec can have; panels as SVG, as PNG, and none."""
    folder.mkdir()
    monkeypatch.chdir(folder)
    spec = project(name)
    compute(spec, name, fedrepro)
    done = fedrepro("report", spec, "--out", "out", "--single", "out/report.html", "--jobs", 1)
    assert done.exit_code == 0, done.output
    report = renamed(gathered([spec], "quick"), name)

    def single(pictured: bool) -> Page:
        prepared = {part.name: page_data.prepare(part, Path("results"), pictured) for part in report.sections}
        pages = site.Site(report, prepared, Path("experiments"), Made())
        pages.build()
        return Page(single_file.page(pages))

    written = {"svg": single(True), "none": single(False)}
    monkeypatch.setattr(pictures, "LARGEST", 0)
    written["png"] = single(True)
    monkeypatch.undo()
    return written | {"written": Page((folder / "out" / "report.html").read_text(encoding="utf-8"))}


def folder_tags(folder: Path) -> Counter[tuple[str, ...]]:
    """All tags of the pages of such a project's report, with the names of their attributes; pictures are drawings."""
    tags: Counter[tuple[str, ...]] = Counter()
    for path in (folder / "out" / "report").rglob("*.html"):
        page = Page(path.read_text(encoding="utf-8"))
        assert len(page.ids) == len(set(page.ids))
        tags.update(page.tags)
    for path in (folder / "out" / "report").rglob("*.svg"):
        drawn = Page(path.read_text(encoding="utf-8")).drawn
        assert {tag for tag, *_ in drawn} <= SHAPES | {"style"}
        assert not [names for _, *names in drawn if any(name.startswith("on") for name in names)]
    return tags


def words(page: Page, name: str) -> str:
    """What is read in a page, with ``Name`` for the name in every form in which a file or a check can hold it.

    How long the runs took is left out: it differs from one time to the next.
    """
    said = page.words + "\n".join(page.labels)
    for form in (name, repr(name)[1:-1], name.replace("'", "''")):
        said = said.replace(form, "Name")
    return re.sub(r"about [\d.]+ seconds? of one core", "about no time", said)


@pytest.mark.slow
def test_names_are_words_whatever_stands_in_them(
    tmp_path: Path, fedrepro: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = pages("Name", tmp_path / "plain", fedrepro, monkeypatch)
    hostile = pages(HOSTILE, tmp_path / "hostile", fedrepro, monkeypatch)
    assert folder_tags(tmp_path / "hostile") == folder_tags(tmp_path / "plain")
    for kind, page in hostile.items():
        assert page.tags == plain[kind].tags
        assert {tag for tag, *_ in page.drawn} <= SHAPES
        assert not [names for _, *names in page.drawn if any(name.startswith("on") for name in names)]
        assert page.fetched == []
        assert len(page.ids) == len(set(page.ids))
        assert set(page.links) <= set(page.ids)
        assert all(re.fullmatch(r"[\w./~-]+", name) for name in page.ids)
        assert words(page, HOSTILE) == words(plain[kind], "Name")
        assert page.words.count(HOSTILE) > 40
    assert hostile["svg"].drawn
    assert not hostile["png"].drawn
