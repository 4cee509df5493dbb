"""The reference has an entry for everything public, with a text, and the stated defaults are right."""

from __future__ import annotations

import dataclasses
import importlib
import json
import lzma
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import fedrepro
from fedrepro import docstrings, registry
from fedrepro.cli.main import main
from fedrepro.glossary import entries as glossary
from fedrepro.ledger import COUNTS
from fedrepro.results import schema
from fedrepro.results.read import read_sidecar
from fedrepro.spec import claim_grammar, keys, nodes, panels
from fedrepro.spec.axes import AXES
from fedrepro.spec.claim_grammar import COMMON, FORMS, READERS, WORDS
from fedrepro.spec.read import build

from .conftest import ROOT, SMALL


@pytest.fixture(scope="module")
def reference() -> Any:
    sys.path.insert(0, str(ROOT / "docs" / "generate"))
    try:
        yield importlib.import_module("reference")
    finally:
        sys.path.pop(0)


@pytest.fixture(scope="module")
def pages(reference: Any) -> dict[str, str]:
    return dict(reference.pages())


def rows(page: str) -> list[list[str]]:
    """The rows of a page's tables."""
    lines = [line for line in page.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in re.split(r"(?<!\\) \| ", line.strip("| "))] for line in lines]


def entries(page: str) -> dict[str, str]:
    """The last cell of each row, by the name in the first one."""
    return {row[0].strip("`"): row[-1] for row in rows(page) if row[0].startswith("`") and len(row) > 1}


def headings(page: str) -> list[str]:
    return re.findall(r"^#+ (.*)$", page, re.MULTILINE)


# Specs ----------------------------------------------------------------------------------------------------------------


def test_every_key_option_and_axis_has_an_entry(pages: dict[str, str]) -> None:
    listed = entries(pages["spec.md"])
    marks = {m for kind in panels.KINDS.values() for m in (*kind.published.keys, *kind.marks.keys)}
    options = {option.name for option, _ in glossary.options()}
    known = {path.rpartition(".")[2] for path in keys.paths()} | options | marks | set(AXES)
    assert known <= set(listed)
    assert all(len(key.doc.split()) >= 3 and key.takes for key in keys.paths().values())
    assert set(headings(pages["spec.md"])) >= {f"kind: {kind}" for kind in panels.KINDS}
    assert set(keys.ROLES) | set(keys.SCALES) <= set(listed)


DEFAULTS = [path for path, key in keys.paths().items() if key.default not in (None, ()) and "." not in path]
OF_PANELS = [name for name, key in keys.PANEL.items() if key.default not in (None, ())]


def read(text: str) -> Any:
    return build(nodes.parse(text, "s.yaml"), "s.yaml", "quick")


def without(text: str, key: str) -> str:
    return re.sub(rf"^ *{key}:.*\n", "", text, flags=re.MULTILINE)


@pytest.mark.parametrize("key", DEFAULTS)
def test_a_key_left_out_is_as_its_default_written_down(key: str) -> None:
    plain = without(SMALL, key) if key == "title" else SMALL
    assert read(f"{plain}{key}: {keys.SPEC[key].default!r}\n") == read(plain)
    other = keys.SPEC[key].default + ("x" if isinstance(keys.SPEC[key].default, str) else 1)
    assert read(f"{plain}{key}: {other!r}\n") != read(plain)


@pytest.mark.parametrize("key", OF_PANELS)
def test_a_key_of_panels_left_out_is_as_its_default_written_down(key: str) -> None:
    plain = without(without(SMALL, "title"), "yscale").replace("figure: small\n", 'figure: small\ntitle: ""\n')
    written = plain.replace("  a:\n", f"  a:\n    {key}: {keys.PANEL[key].default!r}\n")
    assert read(written).panels[0] == read(plain).panels[0]


def test_a_required_key_is_missed_and_no_other() -> None:
    for name, key in keys.SPEC.items():
        text = without(SMALL, name) if name not in ("panels", "tiers", "claims", "datasets", "partitions") else None
        if text is not None and f"\n{name}:" in f"\n{SMALL}":
            if key.required:
                with pytest.raises(nodes.SpecErrors, match=f"the key '{name}' is missing"):
                    read(text)
            elif name not in ("dataset", "partition"):
                read(text)


# Claims ---------------------------------------------------------------------------------------------------------------


def test_every_word_of_claims_has_a_form_and_every_form_can_be_written(pages: dict[str, str]) -> None:
    listed = entries(pages["claims.md"])
    assert set(FORMS) <= set(listed)
    for word in WORDS:
        assert any(re.match(rf"{word}[(=]", form) for form in FORMS), word
    for function, keywords in READERS.items():
        forms = " ".join(form for form in FORMS if form.startswith(f"{function}("))
        assert [k for k in keywords if not re.search(rf"\b{k}\b", forms)] == [], function
    for form in FORMS:
        if not form.startswith(COMMON):
            claim_grammar.parse(form if form.startswith(claim_grammar.ALONE) else f"{form} < 1")


# Results --------------------------------------------------------------------------------------------------------------


def test_every_column_and_field_has_an_entry(pages: dict[str, str]) -> None:
    listed = entries(pages["results.md"])
    assert {*schema.COLUMNS, *schema.POINTS} <= set(listed)
    assert tuple(c for c in schema.COLUMNS if c in COUNTS) == COUNTS
    for cls in (schema.Sidecar, schema.RunNote, schema.Content, schema.Timing, schema.Made):
        names = [f.name for f in dataclasses.fields(cls)]
        said = docstrings.meanings(cls, names)
        assert [name for name in names if not said[name]] == [], cls.__name__
        assert set(names) <= set(listed)
    assert list(schema.VERSIONS) == list(range(1, schema.VERSION + 1))


# Names, commands, what is registered ----------------------------------------------------------------------------------


def test_every_public_name_has_an_entry_with_its_example(pages: dict[str, str]) -> None:
    parts = re.split(r"^### (.*)$", pages["python.md"], flags=re.MULTILINE)
    found = dict(zip(parts[1::2], parts[2::2], strict=True))
    assert set(found) == {name for name in fedrepro.__all__ if not name.startswith("_")}
    assert [name for name, text in found.items() if ">>> " not in text] == []


def test_every_command_and_option_has_an_entry(reference: Any, pages: dict[str, str]) -> None:
    text = pages["command-line.md"]
    for path, command in reference.commands(main, ("fedrepro",)):
        assert " ".join(path) in headings(text)
        assert command.help, path
        for option in command.params:
            if option.param_type_name == "option":
                assert option.help, (path, option.name)  # type: ignore[attr-defined]
                assert all(name in text for name in option.opts)


@pytest.mark.parametrize("what", ["algorithms", "problems", "datasets", "partitions"])
def test_everything_registered_has_an_entry(what: str, pages: dict[str, str]) -> None:
    table = {"algorithms": registry.methods}.get(what, getattr(registry, what, None))()
    text = pages[f"{what}.md"]
    assert set(table) <= set(headings(text))
    if what == "problems":
        assert {metric for problem in table.values() for metric in problem.metrics} <= set(entries(text))
    assert "parameters" not in headings(text)
    assert not re.search(r":math:|(?<!`)``(?!`)|\.\. math", text), "a mark of the docstrings is left"


def test_pages_do_not_say_what_this_machine_has(pages: dict[str, str]) -> None:
    assert not [name for name, text in pages.items() if str(Path.home()) in text or str(ROOT) in text]


def test_a_page_of_a_paper_has_its_claims_and_places() -> None:
    sys.path.insert(0, str(ROOT / "docs" / "generate"))
    try:
        papers = importlib.import_module("papers")
    finally:
        sys.path.pop(0)
    figures = papers.figures((ROOT / "results" / "paper" / "REPORT.md").read_text(encoding="utf-8"))
    assert len(figures) == len(list((ROOT / "experiments").glob("*/*.yaml"))) - len(registry.PAPERS)
    assert all(len(claim) == 6 and claim[0] in papers.ORDER for _, claims in figures.values() for claim in claims)
    pages = papers.pages()
    assert set(pages) == {f"{key}.md" for key in (*registry.PAPERS, "beyond")}
    assert "| (30) | `descent.descend_W(problem, state.W, state.HH, state.XH, d, self.Q2)` |" in pages["fedmf.md"]
    assert "*Read as: " in pages["gcca.md"]
    for key in registry.PAPERS:
        assert f"**{key}.1, " in pages[f"{key}.md"]
        assert list(papers.sources(key))


def test_every_figure_has_its_hours() -> None:
    sys.path.insert(0, str(ROOT / "docs" / "generate"))
    try:
        listed = rows(importlib.import_module("hours").page())
    finally:
        sys.path.pop(0)
    figures = {f"`{path.parent.name}/{path.stem}`" for path in (ROOT / "experiments").glob("*/*.yaml")}
    figures -= {name for name in figures if name.endswith("/discrepancies`")}
    taken = {row[0]: row[1:] for row in listed[2:]}
    assert set(taken) == figures
    assert all(float(predicted) >= 0.0 for _, predicted, *_ in taken.values())
    whole = read_sidecar(ROOT / "results" / "paper" / "gcca" / "fig8")
    assert whole is not None
    assert taken["`gcca/fig8`"][2:4] == [f"{whole.seconds / 3600:.1f}", "30"]


def test_hours_of_other_settings_count_each_run_once_and_not_those_of_the_figure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "generate"))
    hours = importlib.import_module("hours")
    monkeypatch.setattr(hours, "ROOT", tmp_path)
    folder = tmp_path / "results" / "paper" / "fedmf" / "fig1.settings"
    folder.mkdir(parents=True)
    for name, ids in {"one": ["a", "b"], "two": ["b", "c", ""]}.items():
        sidecar = {"runs": {"Q": ids}, "seconds_per_run": {"Q": [3600.0, 1800.0, 0.0][: len(ids)]}}
        (folder / f"{name}.json.xz").write_bytes(lzma.compress(json.dumps(sidecar).encode()))
    assert hours._other_settings("fedmf", "fig1", {"c": 1.0}) == {"sets": 2, "of_sets": 2.0}
    assert hours._other_settings("fedmf", "fig2", {}) == {"sets": 0, "of_sets": 0.0}


def test_hours_do_not_count_a_trial_that_is_left_as_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "generate"))
    assert importlib.import_module("hours")._runs({"runs": {"Q=2": ["a", "b"], "Q=200": ["", ""]}}) == "2"
