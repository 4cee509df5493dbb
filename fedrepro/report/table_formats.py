"""The numbers of a figure's panels as text for other programs: CSV, Markdown, LaTeX (booktabs), JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from typing import Any

from fedrepro.report.render import cell
from fedrepro.spec.model import Panel

Tables = Sequence[tuple[Panel, list[list[str]]]]


def as_csv(tables: Tables, caption: str) -> str:
    """Return one table with the panel's letter in each row, and a new header for panels with other columns."""
    lines: list[list[str]] = []
    header: list[str] = []
    for panel, rows in tables:
        if rows[0] != header:
            header = rows[0]
            lines.append(["panel", *header])
        lines += [[panel.id, *row] for row in rows[1:]]
    return csv_text(lines)


def csv_text(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as the text of a CSV."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def as_markdown(tables: Tables, caption: str) -> str:
    """Return a heading and a table per panel, and the caption."""
    parts = [f"**({panel.id}) {panel.title}**\n\n{_markdown(rows)}" for panel, rows in tables]
    return "\n".join([*parts, f"*{caption}*\n"])


def as_latex(tables: Tables, caption: str) -> str:
    """Return a ``table`` per panel, for ``\\usepackage{booktabs}``; columns of numbers are right-aligned."""
    return "\n".join(_latex(panel, rows, caption) for panel, rows in tables)


def as_json(tables: Tables, caption: str) -> str:
    """Return ``{"caption": ..., "panels": [{"panel", "title", "rows": [{column: text}]}]}``."""
    panels = [
        {"panel": panel.id, "title": panel.title, "rows": [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]}
        for panel, rows in tables
    ]
    facts: dict[str, Any] = {"caption": caption, "panels": panels}
    return json.dumps(facts, indent=1, ensure_ascii=False) + "\n"


FORMATS: dict[str, Callable[[Tables, str], str]] = {
    "csv": as_csv,
    "md": as_markdown,
    "latex": as_latex,
    "json": as_json,
}


def _markdown(rows: list[list[str]]) -> str:
    head, *body = rows
    return "".join("| " + " | ".join(map(cell, row)) + " |\n" for row in (head, ["---"] * len(head), *body))


def _latex(panel: Panel, rows: list[list[str]], caption: str) -> str:
    import pandas as pd

    header, *body = rows
    numbers = [all(_is_number(row[i]) for row in body) for i in range(len(header))]
    frame = pd.DataFrame([[_tex(cell) for cell in row] for row in body], columns=[_tex(name) for name in header])
    text: str = frame.to_latex(
        index=False,
        escape=False,
        column_format="".join("r" if number else "l" for number in numbers),
        caption=f"{_tex(panel.title)}. {_tex(caption)}",
        label=f"tab:{panel.id}",
        position="t",
    )
    return text


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "") or 0)
    except ValueError:
        return False
    return True


_TEX = str.maketrans(
    {char: f"\\{char}" for char in "&%#_{}"}
    | {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}", "²": "$^2$", "−": "$-$"}
    | {"±": r"$\pm$", "·": r"$\cdot$", "×": r"$\times$", "≥": r"$\ge$", "≤": r"$\le$", "<": "$<$", ">": "$>$"}
)
"""LaTeX of characters that have a meaning there, or that its fonts lack."""


def _tex(text: str) -> str:
    """Return text for LaTeX; text between dollar signs is mathematics and is not changed."""
    parts = text.split("$")
    if len(parts) % 2 == 0:  # a lone dollar sign
        return "\\$".join(part.translate(_TEX) for part in parts)
    return "$".join(part if i % 2 else part.translate(_TEX) for i, part in enumerate(parts))
