"""The tables of ``docs/theorems.md``: the measured value and verdict of every claim on a theorem, from stored results.

``python docs/generate/theorems.py`` rewrites them between their marks; ``tests/test_theorems_page.py`` fails if
they differ from ``results/paper``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from reference import table

from fedrepro.claims.intervals import Interval
from fedrepro.claims.judge import Row
from fedrepro.report import gather_contents
from fedrepro.spec.find import Selected

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "theorems.md"
MARKED = re.compile(r"(<!-- (theory_\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def written(text: str) -> str:
    """Return the page with the tables of the current results."""
    return MARKED.sub(lambda m: m[1] + "\n" + "\n".join(_figure(m[2])) + "\n" + m[3], text)


def _figure(name: str) -> Iterator[str]:
    yield f"`fedrepro run beyond/{name} --tier paper`, `fedrepro verdict beyond/{name} --tier paper`\n"
    spec = ROOT / "experiments" / "beyond" / f"{name}.yaml"
    verdicts = gather_contents.verdicts(Selected(spec), "paper", ROOT / "results").rows
    rows = ([_plain(cell) for cell in _cells(row)] for row in verdicts if row.claim.theorem)
    yield table(["theorem", "promise or condition", "quantity", "measured", "of the bound", "verdict"], rows)
    noted = [row.claim for row in verdicts if row.claim.theorem and row.claim.note]
    if noted:
        yield "Notes:\n"
        yield "\n".join(f"- {claim.says} (`{claim.id}`): {_plain(claim.note)}" for claim in noted) + "\n"


def _cells(row: Row) -> tuple[str, ...]:
    claim = row.claim
    word = f"*{row.promise}*" if row.promise else f"{row.verdict}: {row.why}"
    outside = f"Outside the conditions: {claim.outside}" if claim.outside else ""
    quantity = ". ".join(filter(None, (claim.reading, outside)))
    return claim.where, claim.says, quantity, _shown(row.measured), row.bound, word


def _plain(text: str) -> str:
    return re.sub(r"(?<=\w)\*(?=\w|_)", "\\*", text)


def _shown(measured: Interval | None) -> str:
    if measured is None:
        return ""
    text = f"{measured.value:.3g}"
    return text + (f" [{measured.low:.3g}, {measured.high:.3g}]" if measured.low < measured.high else "")


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
