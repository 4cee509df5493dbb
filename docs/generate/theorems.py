"""The tables of ``docs/theorems.md``: of every claim on a theorem what was measured and its word, from kept results.

``python docs/generate/theorems.py`` writes them anew between their marks; ``tests/test_theorems_page.py`` fails where
they are not those of ``results/paper``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from reference import table

from fedrepro.claims.intervals import Interval
from fedrepro.claims.judge import Row
from fedrepro.report import gather

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "theorems.md"
MARKED = re.compile(r"(<!-- (theory_\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def written(text: str) -> str:
    """The page with its tables as the kept results have them now."""
    return MARKED.sub(lambda m: m[1] + "\n" + "\n".join(_figure(m[2])) + "\n" + m[3], text)


def _figure(name: str) -> Iterator[str]:
    yield f"`fedrepro run beyond/{name} --tier paper`, `fedrepro verdict beyond/{name} --tier paper`\n"
    found = gather.verdicts(ROOT / "experiments" / "beyond" / f"{name}.yaml", "paper", ROOT / "results")
    rows = ([_plain(cell) for cell in _cells(row)] for row in found if row.claim.theorem)
    yield table(["theorem", "promise or condition", "quantity", "measured", "verdict"], rows)


def _cells(row: Row) -> tuple[str, ...]:
    claim = row.claim
    word = f"*{row.promise}*" if row.promise else f"{row.verdict}: {row.why}"
    return claim.where, claim.says, claim.reading, _shown(row.measured), word


def _plain(text: str) -> str:
    return re.sub(r"(?<=\w)\*(?=\w|_)", "\\*", text)


def _shown(found: Interval | None) -> str:
    if found is None:
        return ""
    text = f"{found.value:.3g}"
    return text + (f" [{found.low:.3g}, {found.high:.3g}]" if found.low < found.high else "")


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
