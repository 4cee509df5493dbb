"""The report as a folder of pages: every link has a target, nothing is loaded from elsewhere, claims state their
reasons."""

from __future__ import annotations

import collections
import json
import os
import pickle
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl, unquote

import numpy as np
import pytest
from click.testing import CliRunner, Result

from fedrepro.claims import evidence
from fedrepro.cli.main import main
from fedrepro.errors import UserError
from fedrepro.plotting.header_footer import footer, tags
from fedrepro.report import (
    addresses,
    claim_index,
    curve_data,
    gather_contents,
    next_steps,
    page_data,
    render,
    site,
    summaries,
)
from fedrepro.report.contents import Report
from fedrepro.results.schema import Made, Sidecar
from fedrepro.spec.find import experiments
from fedrepro.spec.nodes import SpecErrors

from . import test_report
from .conftest import ROOT
from .test_report import DISCREPANCIES, SPEC

Call = Callable[..., Result]
TOO = """\
  - id: "own/claim 2"
    says: "few clients are enough"
    where: "ours"
    panel: b
    check: reach(0.9 * y(at=0, algorithm='fedcgds', m=2), algorithm='fedcgds', m=2) < total(Q1=2, Q2=1)
"""
SUMMARY = """\
paper: beyond
holds: [{says: "It is as we say.", claims: {small.1: undecided}}]
fails: [{says: "Few clients are not enough.", claims: {small.1: undecided}}]
depends: [{says: "It is not.", claims: {small.1: reproduced}}]
"""


PREPARED = page_data.Prepared(sentences=collections.defaultdict(str))


def say(*arguments: object) -> Result:
    """The command line in this process."""
    return CliRunner().invoke(main, [str(one) for one in arguments], catch_exceptions=False)


def lay_out(folder: Path) -> None:
    """A project of two figures with a discrepancy and a summary; one of the figures has no results."""
    specs = folder / "experiments" / "beyond"
    specs.mkdir(parents=True)
    (specs / "small.yaml").write_text(SPEC.replace("tiers:\n", TOO + "tiers:\n"))
    (specs / "later.yaml").write_text(SPEC.replace("figure: small", "figure: later").replace("small.1", "later.1"))
    (specs / "discrepancies.yaml").write_text(DISCREPANCIES)
    (specs / "summary.yml").write_text(SUMMARY)


@pytest.fixture(scope="module")
def computed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Such a project with results and its report, in the folder one is in."""
    folder = tmp_path_factory.mktemp("site")
    before, home = Path.cwd(), os.environ.get("FEDREPRO_DATA")
    lay_out(folder)
    os.chdir(folder)
    os.environ["FEDREPRO_DATA"] = str(folder / "data")
    try:
        done = say("run", "experiments/beyond/small.yaml", "--quiet", "--jobs", 1)
        assert done.exit_code == 0, done.output
        done = say("report", "--jobs", 1, "--out", "out")
        assert done.exit_code == 0, done.output
        yield folder
    finally:
        os.chdir(before)
        os.environ.pop("FEDREPRO_DATA") if home is None else os.environ.update(FEDREPRO_DATA=home)


@pytest.fixture
def pages(computed: Path) -> dict[str, Any]:
    """Every page of the report taken apart, by its path in the folder."""
    folder = computed / "out" / "report"
    return {p.relative_to(folder).as_posix(): Taken(p.read_text(encoding="utf-8")) for p in folder.rglob("*.html")}


class Taken(HTMLParser):
    """A page's ids, what it links to, what it loads, and its words."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text, self.words = text, ""
        self.ids: list[str] = []
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in ((name, value or "") for name, value in attrs):
            if name == "id":
                self.ids.append(value)
            elif name in ("href", "action") and tag in ("a", "form"):
                self.links.append(value)
            elif name in ("src", "href", "srcset", "data-script", "data-library") and not value.startswith("data:"):
                self.loaded.append(value)

    def handle_data(self, data: str) -> None:
        self.words += data


def gathered() -> Report:
    return test_report.gathered([Path(f"experiments/beyond/{name}.yaml") for name in ("later", "small")])


# -- the folder --------------------------------------------------------------------------------------------------------


def test_every_link_leads_to_a_page_and_a_place_in_it(computed: Path, pages: dict[str, Any]) -> None:
    folder = computed / "out" / "report"
    for name, page in pages.items():
        assert len(page.ids) == len(set(page.ids)), name
        for link in page.links:
            path, _, place = link.partition("#")
            target = os.path.normpath(os.path.join(os.path.dirname(name), unquote(path))) if path else name
            assert (folder / target).is_file(), f"{name}: {link}"
            if place and "=" not in place:
                assert place in pages[target].ids, f"{name}: {link}"


def test_links_to_lists_of_claims_name_what_can_be_chosen_and_list_as_many_as_they_say(pages: dict[str, Any]) -> None:
    options = re.findall(r'<option value="([^"]*)"', pages["find.html"].text)
    data = ('paper="(.*?)"', 'total=".*?"', 'verdict="(.*?)"', 'evidence="(.*?)"', 'mark="(.*?)"', 'figure=".*?"')
    claim = f"<li {' '.join(f'data-{part}' for part in data)}>"
    items = re.findall(claim, pages["find.html"].text)
    assert len(items) == 3
    parts = re.findall(r'href="find\.html#(.*?)" title="(\d+) ', pages["index.html"].text)
    assert len(parts) == 3
    for asked, count in parts:
        wanted = dict(parse_qsl(asked.replace("&amp;", "&")))
        assert set(wanted) == {"paper", "verdict", "evidence"}
        assert set(wanted.values()) <= set(options)
        fit = [item for item in items if item[:3] == tuple(wanted[key] for key in ("paper", "verdict", "evidence"))]
        assert len(fit) == int(count)


def test_nothing_is_loaded_from_elsewhere_and_all_of_it_is_there(computed: Path, pages: dict[str, Any]) -> None:
    folder = computed / "out" / "report"
    assert any("small" in name for name in pages)
    for name, page in pages.items():
        assert page.loaded
        for what in page.loaded:
            assert not re.match(r"[a-z]+:|//", what), f"{name}: {what}"
            assert (folder / os.path.dirname(name) / what).resolve().is_file(), f"{name}: {what}"
        assert "<style" not in page.text
        assert not re.search(r"<script(?! src)", page.text)
    for css in (folder / "static").glob("*.css"):
        assert not re.search(r"url\(|@import", css.read_text())


def test_a_claim_says_what_was_compared_what_would_raise_it_and_what_touches_it(
    computed: Path, pages: dict[str, Any]
) -> None:
    page = pages["claims/small.1.html"]
    report = gathered()
    (small,) = (s for s in report.sections if s.name == "beyond/small")
    row = small.claims[0]
    (margin,) = row.margins
    assert site.spread(margin) in page.words
    assert "fedrepro run beyond/small --tier paper" in page.words
    assert "of one core" in page.words
    assert "Evidence: quick" in page.words
    assert "fedrepro check beyond/small --tier quick" in page.words
    assert 'href="../discrepancies.html#discrepancy-beyond.1"' in page.text
    assert "difference " in page.words.partition("Discrepancies that concern it")[2]
    assert row.claim.check in page.words
    assert page.text.count('class="spot"') == 2
    assert '<img class="picture" src="../figures/beyond-small/a.svg"' in page.text
    assert "No results" not in page.words
    assert "Nothing could be read: no results at the paper" in pages["claims/later.1.html"].words
    assert "Means over " in page.words


def test_what_a_check_found_is_a_sentence_on_its_page_and_beside_the_verdict_on_the_figure(
    pages: dict[str, Any],
) -> None:
    found = r"FedCAvg.* ends at 0\.\d+ and FedCAvg.* ends at 0\.\d+; the check requires the first to be less than"
    for path in ("claims/small.1.html", "figures/beyond-small.html"):
        assert re.search(found, pages[path].words), path


def test_a_figure_without_a_source_has_no_place_for_it(pages: dict[str, Any]) -> None:
    assert '<p class="faint">beyond/small · quick</p>' in pages["figures/beyond-small.html"].text


def test_the_first_page_promises_no_lock(pages: dict[str, Any]) -> None:
    words = "The page of a claim states whether the claim was written before its results were known."
    assert words in pages["index.html"].words


def test_a_search_finds_what_a_figure_shows(pages: dict[str, Any]) -> None:
    also = re.findall(r'data-figure="beyond/small" data-also="([^"]*)"', pages["find.html"].text)
    assert len(also) == 1
    assert {"objective", "left", "FedCAvg"} <= set(re.split(r"[ :]", also[0])), also


@pytest.mark.parametrize(("how", "words"), [("median", "Medians of "), ("each", "Each of ")])
def test_a_claim_on_trials_by_themselves_says_so(
    computed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, words: str
) -> None:
    shutil.copytree(computed / "experiments", tmp_path / "experiments")
    shutil.copytree(computed / "results", tmp_path / "results")
    spec = tmp_path / "experiments" / "beyond" / "small.yaml"
    text = spec.read_text(encoding="utf-8")
    (check,) = re.findall(r"- id: small\.1\n(?:.*\n)*?    check: (.*)", text)
    spec.write_text(text.replace(f"check: {check}", f"check: {how}({check})"), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    done = say("report", "--jobs", 1, "--no-pictures", "--out", "out")
    assert done.exit_code == 0, done.output
    page = Taken((tmp_path / "out" / "report" / "claims" / "small.1.html").read_text(encoding="utf-8"))
    assert (words in page.words, "Means over " in page.words) == (True, False)


def test_marks_lie_on_the_curves_that_the_check_reads(computed: Path) -> None:
    (small,) = (s for s in gathered().sections if s.name == "beyond/small")
    assert small.source is not None
    prepared = page_data.prepare(small, Path("results"), True)
    shown = {panel.id: panel for panel in prepared.panels}
    marks = shown["a"].marks["small.1"]
    assert len(marks) == 2
    spots = prepared.reads["small.1"].spots
    assert [(m.round, m.value) for m in marks] == [(s.round, s.value) for s in spots]
    assert all(0 < m.left < 100 and 0 < m.top < 100 for m in marks)
    assert len({m.left for m in marks}) == 1  # both at one round, and the lower value is lower in the picture
    assert (marks[0].value < marks[1].value) == (marks[0].top > marks[1].top)
    data = prepared.data["a"]["curves"]
    for mark in marks:
        curve = data[mark.curve]
        assert curve["y"][curve["x"]["round"].index(mark.round)] == pytest.approx(mark.value, rel=1e-5)
    reached = [m for m in shown["b"].marks["own/claim 2"] if m.round % 1]
    assert [0 < m.left < 100 and m.inside for m in reached] == [True]


def test_an_id_that_two_figures_have_is_told_apart(computed: Path) -> None:
    report = gathered()
    later, small = report.sections
    twice = replace(later, claims=(replace(later.claims[0], claim=small.claims[0].claim),))
    entries = claim_index.entries(Report((twice, small), report.discrepancies, report.effects))
    assert [entry.page for entry in entries] == [
        "claims/beyond-later-small.1.html", "claims/beyond-small-small.1.html", "claims/own~2f~claim~20~2.html",
    ]  # fmt: skip


def test_names_of_files_are_short_and_differ(computed: Path) -> None:
    long = [addresses.file_name("x" * 300 + end) for end in "ab"]
    assert len(set(long)) == 2
    assert all(len(name) < 120 for name in long)
    assert addresses.file_name("..") not in ("", ".", "..")
    assert addresses.file_name("a/../b") == "a~2f~..~2f~b"


def test_a_newer_report_replaces_the_old_one_and_nothing_else(computed: Path, tmp_path: Path) -> None:
    first = {"index.html": site.MARKER.encode(), "claims/old.html": b"old"}
    site.write(tmp_path / "report", first)
    site.write(tmp_path / "report", {"index.html": site.MARKER.encode(), "claims/new.html": b"new"})
    assert [p.name for p in sorted((tmp_path / "report").rglob("*.html"))] == ["new.html", "index.html"]
    assert [p.name for p in tmp_path.iterdir()] == ["report"]
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "letter.txt").write_text("keep me")
    with pytest.raises(UserError, match="contains files that are not a report's"):
        site.write(mine, first)
    assert [p.name for p in mine.iterdir()] == ["letter.txt"]
    (tmp_path / "report" / "report").mkdir()
    (tmp_path / "report" / "report" / "mine.txt").touch()
    refused = say("report", "--no-pictures", "--out", tmp_path / "report")
    assert (refused.exit_code, "contains files that are not" in refused.stderr) == (2, True)


def test_without_the_library_pictures_stand_still_and_it_is_said_how_to_get_it(
    computed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site, "library", lambda: b"")
    done = say("report", "beyond/small", "--jobs", 1, "--out", tmp_path)
    assert 'pip install "fedrepro[report]"' in done.output
    text = (tmp_path / "report" / "figures" / "beyond-small.html").read_text()
    assert 'class="explore"' not in text
    assert "fedrepro[report]" in text
    assert "a.svg" in text
    assert not list((tmp_path / "report").rglob("plotly*"))


def test_files_beside_a_panel_hold_its_numbers(computed: Path) -> None:
    folder = computed / "out" / "report" / "figures" / "beyond-small"
    assert {p.suffix for p in folder.glob("a.*")} == {".csv", ".pdf", ".svg", ".tex"}
    assert (folder / "a.csv").read_text().startswith("curve,round,uplink_scalars,uplink_bits")
    assert r"\begin{table}" in (folder / "a.tex").read_text()
    assert (folder / "a.pdf").read_bytes().startswith(b"%PDF")
    assert {p.suffix for p in folder.glob("t.*")} == {".csv", ".tex"}
    svg = (folder / "a.svg").read_text()
    assert svg.startswith('<svg xmlns="http://www.w3.org/2000/svg"')
    assert "prefers-color-scheme: dark" in svg


# -- counts and sentences ----------------------------------------------------------------------------------------------


def test_the_line_of_a_paper_is_counted() -> None:
    def row(verdict: str, level: str, figure: str = "fedc/fig5") -> Any:
        return SimpleNamespace(verdict=verdict, level=level, figure=figure, tier="quick")

    assert claim_index.count_sentence([row("holds", "quick", "mine/x")] * 2) == "2 claims: 2 holds"

    full = [row("reproduced", "paper")] * 3 + [row("within noise", "paper")]
    less = [row("holds", "quick"), row("fails", "stand-in")]
    assert (
        claim_index.count_sentence(full)
        == "All 4 claims are tested at the published sizes: 3 reproduced, 1 within noise"
    )
    assert claim_index.count_sentence(full + less) == (
        "4 of 6 claims are tested at the published sizes: 3 reproduced, 1 within noise; on less evidence 1 holds, "
        "1 fails (1 on stand-ins, which say nothing about the paper)"
    )
    assert claim_index.count_sentence([*full, row("not tested", "none")]) == (
        "4 of 5 claims are tested at the published sizes: 3 reproduced, 1 within noise; 1 not tested"
    )
    assert (
        claim_index.count_sentence(less[:1])
        == "None of 1 claim is tested at the published sizes yet; on less evidence 1 holds"
    )


@pytest.mark.parametrize("page", ["index.html", "summary.html"])
def test_a_sentence_is_true_after_its_heading(pages: dict[str, Any], page: str) -> None:
    assert "Confirmed: It is as we say." in pages[page].words
    assert "Found instead: Few clients are not enough." in pages[page].words


def test_a_sentence_goes_when_a_verdict_it_was_written_of_does(pages: dict[str, Any]) -> None:
    words = pages["index.html"].words
    assert "It is as we say." in words
    assert "It is not." not in words
    assert re.search(r"have other verdicts in these results: small\.1 \(undecided\)", words)


def test_a_paper_without_results_is_one_line_that_says_what_to_do(computed: Path, tmp_path: Path) -> None:
    done = say("report", "--no-pictures", "--jobs", 1, "--out", tmp_path, "--results", tmp_path / "none")
    assert done.exit_code == 0, done.output
    for name in ("index", "summary"):
        words = Taken((tmp_path / "report" / f"{name}.html").read_text(encoding="utf-8")).words
        assert "There are no results here of beyond. fedrepro run beyond computes the figures" in words
        assert not re.search("left out|later|Our own studies", words)
    assert "No results here: beyond." in (tmp_path / "REPORT.md").read_text(encoding="utf-8")


def test_the_first_page_begins_with_what_was_found_and_explains_its_counts(computed: Path) -> None:
    report = gathered()
    full = [replace(s, claims=tuple(replace(row, level=evidence.PAPER) for row in s.claims)) for s in report.sections]
    files = site.Site(replace(report, sections=tuple(full)), {s.name: PREPARED for s in full}, experiments(), Made())
    page = Taken(files.build()["index.html"].decode())
    found, counts = page.words.index("Confirmed:"), page.words.index("How many claims hold")
    assert found < counts < page.words.index("the opposite in some readings")
    assert "turns round" not in page.words[: page.words.index("How to read it")]
    assert {"#turns-round", "#in-all-but"} <= set(page.links)
    assert {"turns-round", "in-all-but"} <= set(page.ids)


def test_a_claim_of_a_users_own_study_is_not_counted_as_one_of_ours(computed: Path) -> None:
    (small,) = (s for s in gathered().sections if s.name == "beyond/small")
    mine = replace(small, figure=replace(small.figure, paper="mine"), claims=small.claims[-1:])
    mine = replace(mine, claims=tuple(replace(row, figure="mine/small") for row in mine.claims))
    assert mine.claims[0].claim.where == "ours"
    assert [entry.group for entry in claim_index.entries(Report((mine,)))] == ["mine"]


def test_only_words_get_a_capital_letter() -> None:
    symbols = ("d = 5 L_W (released)", "q = 3: parameter 1", "lam=1e-3", "beta of the step", "w_min", "t-SNE", "gamma2")
    assert [render.sentence(text) for text in symbols] == list(symbols)
    words = ("the error", "a tenth", "no", "non-negative", "turns: it", "Qhat = 1")
    assert [render.sentence(text)[0].isupper() for text in words] == [True] * len(words)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("holds: [{says: x}]", ":1:9: a sentence needs says"),
        ("holds: [{says: x, claims: {}}]", "claims \\(a mapping from ids to verdicts\\)"),
        ("fails: [{says: x, claims: {a: perhaps}}]", ":1:31: 'perhaps' is not a verdict \\(valid: reproduced, "),
        (
            "hold: []",
            "'hold' is not a key of a summary, did you mean 'holds'\\?",
        ),
        ("- a", "a summary must be a mapping of keys to values, not a list"),
        ("a: [", "not valid YAML"),
    ],
)
def test_a_summary_that_is_none_says_where(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / summaries.NAME).write_text(text)
    with pytest.raises(UserError, match=said):
        summaries.load(tmp_path, "p")


def test_what_summaries_say_is_what_the_kept_report_says() -> None:
    """A sentence that the kept results no longer support has to be rewritten."""
    report = (ROOT / "results" / "paper" / "REPORT.md").read_text(encoding="utf-8")
    kept = {match[2]: match[1] for match in re.finditer(r"^\| ([a-z ]+?) \| [a-z-]+ \| `([^`]+)` \|", report, re.M)}
    assert len(kept) > 200
    written = {
        paper.name: summaries.load(ROOT / "experiments", paper.name) for paper in (ROOT / "experiments").iterdir()
    }
    assert {name for name, sentences in written.items() if sentences} == {
        "fedmf", "fedc", "fedmc", "gcca", "perfedsi", "beyond",
    }  # fmt: skip
    for sentences in written.values():
        for sentence in sentences:
            assert {name: kept.get(name) for name in sentence.claims} == dict(sentence.claims), sentence.says
            assert len(sentence.says) < 125


# -- what would raise a claim ------------------------------------------------------------------------------------------


def test_missing_trials_take_what_the_others_took() -> None:
    two = {"a": (10.0, 20.0), "b": (1.0,)}
    part = Sidecar(trials_wanted=4, seconds_per_run=two, settings=({}, {}))
    figure = SimpleNamespace(more={"b": 6})
    assert next_steps._by_trials(part, SimpleNamespace(more={})) == pytest.approx(2 * 15 + 3 * 1)
    assert next_steps._by_trials(part, figure) == pytest.approx(2 * 15 + 5 * 1)
    assert next_steps._by_trials(replace(part, settings=({}, {}, {})), figure) is None  # one curve has no trial at all
    assert next_steps.duration(0) == ""
    assert next_steps.duration(5) == "about 5 seconds of one core"
    assert next_steps.duration(3 * 3600) == "about 3 hours of one core"
    assert next_steps.duration(4 * 86_400) == "about 4 days of one core"


@pytest.mark.parametrize(
    ("level", "commands"),
    [
        (evidence.PAPER, []),
        (evidence.PARTIAL, ["fedrepro run beyond/small --tier paper"]),
        (evidence.QUICK, ["fedrepro run beyond/small --tier paper"]),
        (evidence.STAND_IN, ["fedrepro data fetch mnist   # or: fedrepro data import mnist PATH",
                             "fedrepro run beyond/small --tier paper"]),
        (evidence.VARIANT, ["fedrepro data import mnist PATH", "fedrepro run beyond/small --tier paper"]),
        (evidence.UNKNOWN, ["fedrepro run beyond/small --tier paper --fresh"]),
    ],
)  # fmt: skip
def test_what_raises_a_claim_depends_on_its_evidence(computed: Path, level: str, commands: list[str]) -> None:
    (small,) = (s for s in gathered().sections if s.name == "beyond/small")
    assert small.source is not None
    content = SimpleNamespace(dataset="mnist", state="variant", note="")
    sidecar = replace(small.source.sidecar, stand_ins=("netflix", "mnist"), datasets=(content,))  # type: ignore[arg-type]
    figure = small.source.figure  # as if its curves were of MNIST, and another dataset were absent too
    panels = [replace(p, curves=tuple(replace(c, setting=replace(c.setting, dataset="mnist")) for c in p.curves))
              for p in figure.panels]  # fmt: skip
    figure = replace(figure, panels=tuple(panels))
    section = replace(small, figure=figure, source=replace(small.source, figure=figure, sidecar=sidecar))
    row = replace(section.claims[0], level=level)
    assert [step.command for step in next_steps.steps(section, row, 60.0)] == commands
    if level == evidence.VARIANT:
        few = replace(row, trials=row.trials - 1)
        assert [step.command for step in next_steps.steps(section, few, 60.0)] == [commands[-1], *commands]
        complete, lacking = (replace(section, claims=(claim,)) for claim in (row, few))
        assert next_steps.seconds(complete, computed) == 0.0 < next_steps.seconds(lacking, computed)
    for why, command in (("the spec changed", "run"), ("the code that computes it changed", "check")):
        stale = replace(section, stale=(why,))
        assert next_steps.steps(stale, row, 0.0)[0].command == f"fedrepro {command} beyond/small --tier quick"
    assert claim_index.entries(Report((stale,)))[0].marks[0] == "stale"


def test_the_time_for_results_of_a_gpu_is_that_of_all_runs(computed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(next_steps, "_by_trials", lambda sidecar, figure: 1.0)
    (small,) = (s for s in gathered().sections if s.name == "beyond/small")
    claims = tuple(replace(row, level=evidence.PARTIAL) for row in small.claims)
    part = replace(small, figure=replace(small.figure, tier="paper"), claims=claims)
    assert next_steps.seconds(part, computed) == 1.0  # of the missing trials only
    there = replace(part, unchecked=("computed with other libraries: jax 9 (here 8)",))
    assert next_steps.seconds(there, computed) not in (0.0, 1.0)


# -- data of curves ----------------------------------------------------------------------------------------------------


def test_thinning_keeps_the_ends_and_the_early_rounds() -> None:
    assert curve_data.kept(5, 10).tolist() == [0, 1, 2, 3, 4]
    at = curve_data.kept(1000, 40)
    assert (at[0], at[-1], len(at) <= 40) == (0, 999, True)
    assert set(range(4)) <= set(at.tolist())
    assert np.diff(at).max() < 80


def test_the_data_of_a_figure_are_those_of_its_results_and_stay_small(
    computed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (small,) = (s for s in gathered().sections if s.name == "beyond/small")
    source = small.source
    assert source is not None
    data = curve_data.by_panel(source, source.figure.panels)
    assert set(data) == {"a", "b"}
    curve, setting = data["a"]["curves"][0], source.figure.panels[0].curves[0].setting
    rows = source.frame[(source.frame["series"] == setting.series) & (source.frame["metric"] == "objective")]
    for number, values in zip(curve["numbers"], curve["trials"], strict=True):
        assert values == pytest.approx(rows[rows["trial"] == number]["value"].tolist(), rel=1e-3)
    assert curve["y"] == pytest.approx(rows.groupby("round")["value"].mean().tolist(), rel=1e-5)
    assert curve["x"]["uplink_bits"] == pytest.approx(rows.groupby("round")["uplink_bits"].mean().tolist())
    assert data["b"]["axes"][0][0] == "uplink_scalars"
    monkeypatch.setattr(curve_data, "LARGEST", 10)
    monkeypatch.setattr(curve_data, "FEWEST", 5)
    assert len(curve_data.by_panel(source, source.figure.panels)["a"]["curves"][0]["y"]) == 3


def test_data_are_a_script_whatever_stands_in_them() -> None:
    text = page_data.script('a"</script>\u2028', {"x": "</script>\u2029\\"}).decode()
    assert text.isascii()
    match = re.fullmatch(r"fedrepro\.data\((.*?), (\{.*\})\);\n", text)
    assert match
    assert (json.loads(match[1]), json.loads(match[2])) == ('a"</script>\u2028', {"x": "</script>\u2029\\"})


# -- two sets of results -----------------------------------------------------------------------------------------------


def test_folders_are_compared_figure_by_figure_and_shown_side_by_side(computed: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    done = say(
        "run", "experiments/beyond/small.yaml", "--quiet", "--jobs", 1, "--results", other, "--set", "problem.rho=0.1"
    )
    assert done.exit_code == 0, done.output
    (own,) = (other / "set").iterdir()
    shutil.copytree(own / "quick", other / "quick")
    shutil.copy(other / "quick" / "beyond" / "small.csv", other / "quick" / "beyond" / "more.csv")
    done = say("compare", "results/quick", other / "quick", "--html", tmp_path / "pages")
    assert done.exit_code == 0, done.output
    assert "only in B: beyond/more" in done.output
    assert say("compare", "results/quick", other / "quick", "--check").exit_code == 1
    page = Taken((tmp_path / "pages" / "index.html").read_text())
    assert "Only in B: beyond/more." in page.words
    assert {link.partition("#")[2] for link in page.links if link.startswith("#")} <= set(page.ids)
    assert sum(what.endswith(".svg") for what in page.loaded) == 4
    assert all((tmp_path / "pages" / what).is_file() for what in page.loaded)
    assert "moved" in page.words
    same = say("compare", "results/quick", "results/quick", "--html", tmp_path / "pages")
    assert same.exit_code == 0
    text = (tmp_path / "pages" / "index.html").read_text()
    assert "Nothing moved" in text
    assert "0 verdicts differ." in text


def test_a_file_is_not_compared_with_a_folder_nor_with_nothing(computed: Path, tmp_path: Path) -> None:
    mixed = say("compare", "results/quick/beyond/small.csv", "results/quick")
    assert (mixed.exit_code, "two files of results, or two folders" in mixed.stderr) == (2, True)
    empty = say("compare", "results/quick", tmp_path)
    assert (empty.exit_code, "no figure is in both" in empty.stderr) == (2, True)


def test_the_specs_of_a_project_have_their_summaries_beside_them(computed: Path) -> None:
    assert [one.head for one in summaries.load(experiments(), "beyond")] == [
        "Confirmed",
        "Found instead",
        "It depends",
    ]
    assert summaries.load(experiments(), "fedc") == ()


@pytest.mark.slow
def test_the_report_is_the_same_from_two_processes(computed: Path, tmp_path: Path) -> None:
    done = say("report", "--jobs", 2, "--out", tmp_path)
    assert done.exit_code == 0, done.output
    first, second = (
        {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
        for folder in (computed / "out" / "report", tmp_path / "report")
    )
    assert len(first) > 20
    assert first == second


def test_a_spec_that_cannot_be_read_says_so_from_another_process() -> None:
    error = SpecErrors(["x.yaml:3:1: no such key", "x.yaml:4:2: no number"])
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.messages, str(again)) == (SpecErrors, error.messages, str(error))


def test_nothing_measured_goes_from_a_worker_to_the_pages(computed: Path) -> None:
    path = Path("experiments/beyond/small.yaml")
    done, _, _ = page_data.figure(path, gather_contents.BEST, Path("results"), False, ())
    (whole,) = (s for s in gathered().sections if s.name == "beyond/small")
    assert whole.source is not None
    assert done.source is not None
    short, known = done.source, whole.source.runs
    assert len(short.frame) == sum(len(known.trials(name)) for name in known.series()) < len(whole.source.frame)
    assert (tags(short), footer(short, ())) == (tags(whole.source), footer(whole.source, ()))
    assert done.claims == whole.claims
