"""One page per paper: an introduction written by hand, then the verdicts on its claims from the stored report.

``docs/generate/papers/KEY.md`` is the introduction. ``results/paper/REPORT.md``, which ``fedrepro report`` writes, has
the verdicts, and ``experiments/KEY/discrepancies.yaml`` the points with more than one reading.
"""

from __future__ import annotations

import ast
import functools
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from reference import prose, table

from fedrepro import docstrings, registry
from fedrepro.spec import discrepancies

ROOT = Path(__file__).parents[2]
BY_HAND = Path(__file__).parent / "papers"
REPORT = ROOT / "results" / "paper" / "REPORT.md"
ORDER = (
    "reproduced",
    "not reproduced",
    "within noise",
    "text against figure",
    "holds",
    "fails",
    "undecided",
    "not tested",
)


def pages() -> dict[str, str]:
    """Return the page of every paper and of our own figures, by its file name."""
    shown = figures(REPORT.read_text(encoding="utf-8"))
    return {f"{key}.md": "\n".join(_page(key, shown)) for key in (*registry.PAPERS, "beyond")}


def figures(report: str) -> dict[str, tuple[str, list[list[str]]]]:
    """Return by ``paper/figure`` its title, and verdict, evidence, id, sentence, reason and readings of each claim."""
    shown = {}
    for part in re.split(r"^## ", report, flags=re.MULTILINE)[1:]:
        head, _, body = part.partition("\n")
        name, colon, title = head.partition(": ")
        if colon and "/" in name:
            lines = [line for line in body.splitlines() if line.startswith("| ")][2:]
            cells = [re.split(r"(?<!\\) \| ", line.strip("| ")) for line in lines]
            shown[name] = title, [line + [""] * (6 - len(line)) for line in cells]
    return shown


def _page(key: str, shown: dict[str, tuple[str, list[list[str]]]]) -> Iterator[str]:
    yield (BY_HAND / f"{key}.md").read_text(encoding="utf-8").replace("](../../", "](../")  # the page is one folder up
    own = {name: figure for name, figure in shown.items() if name.startswith(f"{key}/")}
    counted = Counter((claim[0], claim[1]) for _, claims in own.values() for claim in claims)
    yield "## Verdicts so far\n"
    yield (
        "[How to read a verdict](../verdicts.md). *Reproduced*, *not reproduced* and *within noise* require the "
        "published sizes, the paper's data and all trials; the other verdicts rest on weaker evidence.\n"
    )
    rows = sorted(counted.items(), key=lambda item: ORDER.index(item[0][0]))
    yield table(["verdict", "evidence", "claims"], ([verdict, level, str(n)] for (verdict, level), n in rows))
    for name, (title, claims) in own.items():
        yield f"### {name.partition('/')[2]}: {title}\n"
        yield f"`fedrepro run {name}`, `fedrepro verdict {name}`\n"
        if claims:
            yield table(
                ["verdict", "evidence", "claim", "why", "readings"],
                ([c[0], c[1], _claim_text(c[3]), _starred(c[4]), _starred(c[5])] for c in claims),
            )
    if key in registry.PAPERS:
        yield from _equations(key)
        yield from _open(key)


def _claim_text(claim: str) -> str:
    """Return a claim, and its reading in italics; stars of their own (v*) stay stars."""
    says, mark, reading = claim.partition(" *Read as: ")
    return _starred(says) + (f" *Read as: {_starred(reading.removesuffix('*'))}*" if mark else "")


def _starred(text: str) -> str:
    return text.replace("*", "\\*")


def _equations(key: str) -> Iterator[str]:
    yield "## Code\n"
    yield table(["file", "source"], ([f"`{path}`", prose(source)] for path, source in sources(key)))
    rows = [[where, f"`{line}`", f"`{path}`"] for where, line, path in equations(key)]
    if rows:
        yield "Equations with the lines that compute them:\n"
        yield table(["place", "line", "file"], rows)


def sources(key: str) -> Iterator[tuple[str, str]]:
    """Yield the files whose docstring names a place in a paper as its source, and that place."""
    named = CALLED.get(key, rf"\b{key}\b")
    for path in sorted((ROOT / "fedrepro").rglob("*.py")):
        source = _source(path)
        if re.search(named, source):
            yield path.relative_to(ROOT).as_posix(), source


@functools.cache
def _source(path: Path) -> str:
    return docstrings.source(ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))))


CALLED = {"gcca": r"\bgcca\b|Shrestha and Fu"}
"""Other names of a paper in texts."""

FOLDERS = {"completion": "fedmc", "gcca": "gcca", "gcca_deep": "gcca", "compressors.py": "gcca"}
"""Parts whose comments give equation numbers without a key -> the paper that they refer to."""

CITED = re.compile(r"^(?:(?P<key>[a-z]+) |eq\\. )?(?P<where>\(\d+[a-z]?\).*)")


def equations(key: str) -> Iterator[tuple[str, str, str]]:
    """Yield the equations of a paper, from the comments: number, line of code and file."""
    for path in sorted((ROOT / "fedrepro").rglob("*.py")):
        for line in path.read_text(encoding="utf-8").splitlines():
            code, mark, comment = line.partition("  # ")
            cited = CITED.match(comment) if mark else None
            own = next((FOLDERS[part] for part in path.parts if part in FOLDERS), None)
            if cited and (cited["key"] or own) == key:
                yield cited["where"], code.strip(), path.relative_to(ROOT).as_posix()


def _open(key: str) -> Iterator[str]:
    yield "## Differences between paper, released program and our reading\n"
    path = ROOT / "experiments" / key / "discrepancies.yaml"
    for row in discrepancies.load(path, ROOT / "experiments"):
        yield f"**{row.id}, {row.topic}.** {prose(row.says)} *Taken here:* {prose(row.taken)}\n"
