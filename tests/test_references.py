"""Every reference resolves: discrepancies to rows, places in a paper to what it has, pages, code and tests to files.

The forms are described in ``docs/derivations/README.md``; ``tests/fixtures/sections.yaml`` lists what each paper has.
"""

from __future__ import annotations

import ast
import functools
import importlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

HOME = Path(__file__).parents[1]
DERIVATIONS = HOME / "docs" / "derivations"
FOLDERS = ("fedrepro", "tests", "experiments", "bench", "docs")
SINGLE = ("README.md", "CONTRIBUTING.md", "Makefile", "pyproject.toml")
SUFFIXES = (".py", ".yaml", ".yml", ".md", ".html", ".css", ".js", ".txt", ".toml")
NOT_READ = ("tests/test_references.py", "tests/fixtures/sections.yaml")  # wrong ones on purpose; the list itself

KNOWN: dict[str, Any] = yaml.safe_load((HOME / "tests" / "fixtures" / "sections.yaml").read_text(encoding="utf-8"))
PAPERS: dict[str, Any] = KNOWN["papers"]
CALLED = {name: key for key, paper in PAPERS.items() for name in (key, *paper.get("called", ()))}

_NAMES = "|".join(sorted(map(re.escape, [*CALLED, *KNOWN["others"]]), key=len, reverse=True))
NAMED = re.compile(rf"(?<!discrepancy )(?<![\w./-])(?:{_NAMES})(?![\w/-]|\.\w)")

_ROMAN = r"[IVX]+(?:-[A-Z](?:\.\d+)?)?"
_ARABIC = r"\d+(?:\.\d+)*"
_AND = r"(?:, and |, | and | or | to |-)"


def _listed(item: str) -> str:
    return rf"{item}(?:{_AND}{item})*"


_EQUATION = r"\(\d+[a-z]?\)"
_FIGURE = r"S?\d+(?:\([a-h]\))?"
PLACES = {
    "section": (rf"\b[Ss]ec(?:tion|tions|s?\.) ({_listed(f'(?:{_ROMAN}|{_ARABIC})')})", rf"{_ROMAN}|{_ARABIC}"),
    "section of": (rf"\b(?:{'|'.join(PAPERS)}) ({_listed(_ROMAN)})\b", _ROMAN),
    "appendix": (rf"\bAppendix ({_listed(r'[A-E](?:[.-][0-9A-Z])?')})", r"\b[A-E](?:[.-][0-9A-Z])?"),
    "equation": (rf"\beq\. ({_listed(f'(?:eq[.] )?{_EQUATION}')})", r"\d+[a-z]?"),
    "equation of": (rf"\b(?:{'|'.join(PAPERS)}) ({_listed(_EQUATION)})", r"\d+[a-z]?"),
    "figure": (rf"\bFig(?:s?\.|ures?)? ({_listed(_FIGURE)})", _FIGURE),
    "table": (r"\bT(?:able|ABLE)s? ([IVX]+|\d)\b", r".+"),
    "statement": (
        rf"\b((?:Theorem|Corollary|Lemma|Remark|Fact|Definition|Assumption|Algorithm)s? "
        rf"{_listed(r'(?:[A-D][.])?[0-9]+(?:[.][0-9]+)?')})",
        r"(?:[A-D]\.)?\d+(?:\.\d+)?",
    ),
}


# -- reading -----------------------------------------------------------------------------------------------------------


def _files() -> list[Path]:
    files = [HOME / name for name in SINGLE]
    for folder in FOLDERS:
        files += [
            p for p in sorted((HOME / folder).rglob("*")) if p.suffix in SUFFIXES and "__pycache__" not in p.parts
        ]
    return [p for p in files if _name(p) not in NOT_READ]


def _name(path: Path) -> str:
    return path.relative_to(HOME).as_posix()


@functools.cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@functools.cache
def _units(path: Path) -> tuple[str, ...]:
    """Pieces of text, each on one line; a paper named in a piece applies to the places after it."""
    read = {".py": _of_python, ".yaml": _of_yaml, ".yml": _of_yaml}.get(path.suffix, _of_prose)
    return tuple(" ".join(unit.split()) for unit in read(_text(path)))


def _of_python(text: str) -> Iterator[str]:
    """Every string, and every run of comments on lines one after the other."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
    block, last = "", -1
    for number, line in enumerate(text.splitlines()):  # part of a string may be taken for a comment; both are read
        if "#" in line and (comment := re.search(r"(?:^|\s)# ?(.*)", line)):
            if number != last + 1:
                yield block
                block = ""
            block, last = f"{block} {comment[1]}", number
    yield block


def _of_yaml(text: str) -> Iterator[str]:
    """Every text among the values, and the comments."""

    def values(node: Any) -> Iterator[str]:
        if isinstance(node, str):
            yield node
        elif isinstance(node, dict | list):
            for child in node.values() if isinstance(node, dict) else node:
                yield from values(child)

    yield from values(yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)))  # the first is ten times faster
    yield from re.findall(r"(?:^|\s)# ?(.*)", text)


def _of_prose(text: str) -> list[str]:
    return re.split(r"\n\s*\n", text)


def _own_papers(path: Path) -> tuple[str, ...]:
    """The papers a place without a key may belong to: the folder's, or those that the file names; in tests any."""
    if path.parent.name in PAPERS and path.is_relative_to(HOME / "experiments"):
        return (path.parent.name,)
    if "tests" in path.parts:
        return tuple(PAPERS)  # figures and tables are made up there
    named = {CALLED.get(match.group()) for unit in _units(path) for match in NAMED.finditer(unit)} & set(PAPERS)
    return tuple(sorted(str(key) for key in named)) or ("no paper",)


# -- places in a paper -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """One place as it is cited: its kind, the text after it, and the papers it may belong to (none: not ours)."""

    kind: str
    number: str
    papers: tuple[str, ...]


def places(unit: str, default: tuple[str, ...]) -> Iterator[Place]:
    """The places that a piece of text cites."""
    names = [(match.start(), match.group()) for match in NAMED.finditer(unit)]
    for kind, (pattern, item) in PLACES.items():
        for match in re.finditer(pattern, unit):
            before = [name for start, name in names if start <= match.start()]
            papers = default if not before else (CALLED[before[-1]],) if before[-1] in CALLED else ()
            stated, _, _ = match.group(1).partition(" ")
            name = stated.rstrip("s") if kind == "statement" else kind.split()[0]
            for number in re.findall(item, match.group(1)):
                yield Place(name, number, papers)


def there(place: Place, paper: dict[str, Any]) -> bool:
    """Whether a paper has that place."""
    number = place.number
    match place.kind:
        case "section":
            return number in paper["sections"]
        case "appendix":
            return number.split("-")[0] in paper.get("appendices", {})
        case "equation":
            return int(number.rstrip("abcdefgh")) <= paper["equations"] and (
                number.isdigit() or number in paper.get("lettered", ())
            )
        case "figure":
            figure, _, panel = number.rstrip(")").partition("(")
            entry = paper["figures"].get(figure)
            return entry is not None and (not panel or panel in entry.get("panels", panel))
        case "table":
            return number in paper.get("tables", {})
        case _:
            return number in paper["statements"].get(place.kind, ())


def missing(unit: str, cited: Iterable[Place]) -> list[str]:
    """The wrong citations among the places that a piece of text cites."""
    return [
        f"{' or '.join(place.papers)} has no {place.kind} {place.number}: {unit[:160]}"
        for place in cited
        if place.papers and not any(key in PAPERS and there(place, PAPERS[key]) for key in place.papers)
    ]


def misplaced(unit: str, default: tuple[str, ...]) -> list[str]:
    """Figures and tables that a text cites with sections of the paper that do not discuss them."""
    cited, wrong = list(places(unit, default)), []
    for place in cited:
        table = {"figure": "figures", "table": "tables"}.get(place.kind)
        for key in set(place.papers) & set(PAPERS) if table else ():
            sections = {p.number for p in cited if p.kind in ("section", "appendix") and p.papers == (key,)}
            entry = PAPERS[key].get(str(table), {}).get(place.number.partition("(")[0])
            where = entry["sections"] if isinstance(entry, dict) else entry
            if sections and where and not sections & set(where):
                wrong.append(f"{key} discusses {place.kind} {place.number} in {', '.join(where)}: {unit[:160]}")
    return wrong


# -- rows, pages, code -------------------------------------------------------------------------------------------------

ROW = re.compile(rf"\b(?:{'|'.join(PAPERS)})\.\d+(?!\.?\w)")
PAGE = re.compile(r"docs/derivations/([\w-]+\.\w+)(?:#([\w-]+))?")
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([\w-]+))?\)")
ONLY_ON_THE_SITE = re.compile(r"\s\(`make\s+docs`\s+builds\s+this\s+page\)")
"""What pages say after a link to a page that is not in the repository; docs/generate/hooks.py removes it."""
CODE = re.compile(r"`(fedrepro(?:\.\w+)+)")
TEST = re.compile(r"`(tests/\w+\.py)(?:::(\w+))?`")


@functools.cache
def _headings(page: Path) -> frozenset[str]:
    """Anchors of a Markdown page, as GitHub makes them."""
    lines = re.findall(r"^#+ (.*)$", _text(page), re.MULTILINE)
    return frozenset(re.sub(r"[^\w\- ]", "", line.lower()).strip().replace(" ", "-") for line in lines)


def unresolved_page(folder: Path, page: str, heading: str | None) -> str | None:
    """What is wrong with a link to a page, or None."""
    path = folder / page
    if not path.exists():
        return f"there is no {page}"
    if heading and heading not in _headings(path):
        return f"{page} has no heading '{heading}'"
    return None


def unresolved_links(path: Path, text: str) -> list[str]:
    """What is wrong with the links of a page, except those of which it says that `make docs` builds their page."""
    links = [m for m in LINK.finditer(text) if not ONLY_ON_THE_SITE.match(text, m.end())]
    return [w for m in links if (w := unresolved_page(path.parent, m[1] or path.name, m[2]))]


def unresolved_code(name: str) -> str | None:
    """What is wrong with a dotted name of the package, or None."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            thing: Any = importlib.import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        for part in parts[count:]:
            fields = getattr(thing, "__dataclass_fields__", {})
            if not hasattr(thing, part) and part not in fields:
                return f"there is no {name}"
            thing = getattr(thing, part, None)
        return None
    return f"there is no {name}"


def unresolved_test(file: str, function: str | None) -> str | None:
    """What is wrong with a test named by its file and function, or None."""
    path = HOME / file
    if not path.exists():
        return f"there is no {file}"
    if function and not re.search(rf"^(?:async )?def {function}\(", _text(path), re.MULTILINE):
        return f"{file} has no {function}"
    return None


# -- the tests ---------------------------------------------------------------------------------------------------------


def test_no_text_speaks_of_notes_that_no_reader_has() -> None:
    notes = r"(?i)\bcards?\s+[A-E]\b|\bsections?\s+\([a-h]\)"
    found = [f"{_name(p)}: {m.group()}" for p in _files() for m in re.finditer(notes, _text(p))]
    assert not found


def test_every_discrepancy_is_a_row() -> None:
    tables = [yaml.safe_load(_text(p))["rows"] for p in (HOME / "experiments").glob("*/discrepancies.yaml")]
    rows = {row["id"] for table in tables for row in table}
    assert len(tables) == len(PAPERS)
    texts = [(_name(p), " ".join(_text(p).split())) for p in _files()]
    named = [(name, match.group()) for name, text in texts for match in ROW.finditer(text)]
    assert len(named) > 150
    assert [pair for pair in named if pair[1] not in rows] == []
    bare = [(n, m.group()) for n, text in texts for m in re.finditer(r"(?i)\bdiscrepanc(?:y|ies),? \(?\d.{0,20}", text)]
    assert bare == []


def test_every_place_in_a_paper_is_there() -> None:
    wrong, counted = [], 0
    for path in _files():
        default = _own_papers(path)
        for unit in _units(path):
            cited = list(places(unit, default))
            counted += sum(bool(place.papers) for place in cited)
            wrong += [f"{_name(path)}: {text}" for text in missing(unit, cited)]
    assert not wrong, "\n".join(wrong)
    assert counted > 500


def test_figures_are_cited_with_the_sections_that_discuss_them() -> None:
    wrong = []
    for path in sorted((HOME / "experiments").rglob("*.yaml")):
        if path.name != "discrepancies.yaml":
            default = _own_papers(path)
            wrong += [f"{_name(path)}: {text}" for unit in _units(path) for text in misplaced(unit, default)]
    assert not wrong, "\n".join(wrong)


def test_every_page_and_heading_is_there() -> None:
    mentions = [(_name(p), *m.groups()) for p in _files() for m in PAGE.finditer(_text(p))]
    assert len(mentions) > 30
    pages = [*HOME.glob("*.md"), *(HOME / "docs").rglob("*.md")]
    assert len(pages) > 40
    broken = [f"{name}: {wrong}" for name, *page in mentions if (wrong := unresolved_page(DERIVATIONS, *page))]
    broken += [f"{_name(page)}: {wrong}" for page in pages for wrong in unresolved_links(page, _text(page))]
    assert not broken, "\n".join(broken)


def test_every_page_is_listed_and_names_code_and_a_test() -> None:
    pages = {p.name for p in DERIVATIONS.glob("*.md")} - {"README.md"}
    listed = re.findall(r"^\| \[[\w-]+\]\(([\w-]+\.md)\) \|", _text(DERIVATIONS / "README.md"), re.MULTILINE)
    assert sorted(listed) == sorted(pages)
    assert [name for name in sorted(pages) if not CODE.search(_text(DERIVATIONS / name))] == []
    assert [name for name in sorted(pages) if not TEST.search(_text(DERIVATIONS / name))] == []


def test_every_name_of_code_and_of_a_test_is_there() -> None:
    unresolved, counted = [], 0
    for path in _files():
        text = _text(path)
        if path.suffix == ".py" and "tests" in path.parts:
            continue  # tests make up names to be refused
        names = sorted(set(CODE.findall(text)))
        tests = TEST.findall(text) if path.suffix == ".md" else []
        counted += len(names) + len(tests)
        wrong = [unresolved_code(name) for name in names] + [unresolved_test(*test) for test in tests]
        unresolved += [f"{_name(path)}: {reason}" for reason in wrong if reason]
    assert not unresolved, "\n".join(unresolved)
    assert counted > 150


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("fedmf section V-A, eq. (57), Fig. 1(d) and Table I", []),
        ("fedmf section V-H", ["section V-H"]),
        ("fedmf V-A, fedmf V-H", ["section V-H"]),
        ("fedc sections IV and VII-A", ["section VII-A"]),
        ("gcca Sec. V-C, Fig. 9", ["section V-C"]),
        ("fedc eq. (104) and eq. (105)", ["equation 105"]),
        ("fedmc (1), (74)", ["equation 74"]),
        ("gcca eq. (7a), (7c)", ["equation 7c"]),
        ("Shrestha and Fu, Sec. III-C.1 and III-C.4", ["section III-C.4"]),
        ("fedmf Fig. 2(c)", ["figure 2(c)"]),
        ("fedmc Fig. 5", ["figure 5"]),
        ("Figs. 4 to 8 of a paper named after them", ["figure 8"]),
        ("perfedsi Appendix C.4, Table 3", ["table 3"]),
        ("perfedsi Appendix E", ["appendix E"]),
        ("fedmf Theorem 2, fedmf Theorem 3", ["Theorem 3"]),
        ("fedc Algorithms 1 and 3", ["Algorithm 3"]),
        ("gcca Fact 6", ["Fact 6"]),
        ("Chen, Azer and Zhang, Algorithm 9", []),
    ],
)
def test_a_wrong_place_is_found(text: str, wrong: list[str]) -> None:
    messages = missing(text, places(text, ("fedmf",)))
    assert [message.partition(" has no ")[2].partition(":")[0] for message in messages] == wrong


def test_a_figure_with_another_section_is_found() -> None:
    assert misplaced("Sec. V-F, Fig. 6(a)", ("fedmf",)) == []
    assert misplaced("Table 2 and Sec. 4", ("perfedsi",)) == []
    assert "fedmf discusses figure 7 in V-G" in misplaced("Sec. V-F, Fig. 7", ("fedmf",))[0]
    assert "gcca discusses table I in V-A.4" in misplaced("Table I; gcca Sec. V-B", ("gcca",))[0]


def test_the_page_of_findings_counts_them() -> None:
    text = (HOME / "docs" / "findings.md").read_text(encoding="utf-8")
    first, on_a_variant = text.split("\n## On a variant of the data\n")
    assert first.startswith("# Findings\n\nTwelve findings come from")
    assert "Two more are [on a" in first
    assert len(re.findall(r"^\d+\. \*\*", first, re.MULTILINE)) == 12
    assert len(re.findall(r"^\*\*", on_a_variant, re.MULTILINE)) == 2


def test_wrong_pages_names_and_tests_are_found() -> None:
    assert unresolved_page(DERIVATIONS, "local-loop.md", "the-loop") is None
    assert unresolved_page(DERIVATIONS, "local-loops.md", None) == "there is no local-loops.md"
    assert unresolved_page(DERIVATIONS, "local-loop.md", "loop") == "local-loop.md has no heading 'loop'"
    index = HOME / "docs" / "index.md"
    assert unresolved_links(index, "[a](reference/spec.md), [b](specs.md)") == ["there is no reference/spec.md"]
    assert unresolved_links(index, "[a](reference/spec.md) (`make docs`\nbuilds this page)") == []
    assert unresolved_code("fedrepro.compression.compressors.Link.send") is None
    assert (
        unresolved_code("fedrepro.compression.compressors.Link.sent")
        == "there is no fedrepro.compression.compressors.Link.sent"
    )
    assert unresolved_code("fedrepro.compressor") == "there is no fedrepro.compressor"
    assert unresolved_test("tests/test_references.py", "test_wrong_pages_names_and_tests_are_found") is None
    assert unresolved_test("tests/test_references.py", "test_nothing") == "tests/test_references.py has no test_nothing"
    assert unresolved_test("tests/test_nothing.py", None) == "there is no tests/test_nothing.py"
    assert ROW.findall("fedmf.6, see gcca.9. Not fedc.5c, fedmc.2.ml1m") == ["fedmf.6", "gcca.9"]
