"""The numbers of a figure's panels as text for papers and programs: CSV, Markdown, LaTeX (booktabs), JSON."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fedrepro.data.formats.csv_table import is_number
from fedrepro.report.end_values import headed, heading, merged
from fedrepro.report.render import cell
from fedrepro.spec.model import Panel

Tables = Sequence[tuple[Panel, list[list[str]]]]


def numbers_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows of numbers (``end_values.numbers``) as a CSV with one header; an empty field where there is none."""
    return csv_text([list(rows[0]), *(["" if v is None else str(v) for v in row.values()] for row in rows)])


def csv_text(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as the text of a CSV."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def as_markdown(tables: Tables, caption: str) -> str:
    """Return a heading and a table per panel, and the caption; panels with equal tables share one."""
    parts = [f"**{above}**\n\n{_markdown(rows)}" for above, rows in headed(tables)]
    return "\n".join([*parts, f"*{caption}*\n"])


def as_latex(tables: Tables, caption: str, figure: str = "") -> str:
    """Return a ``table`` per panel, for ``\\usepackage{booktabs}``; columns of numbers are right-aligned.

    Panels with equal tables share one, with the label of the first. figure : ``paper/figure``, for labels that differ
    between figures.
    """
    prefix = f"{figure.replace('/', '-')}-" if figure else ""
    distinct = merged(tables)
    titles = _titles([panels for panels, _ in distinct])
    return "\n".join(
        _latex((title, caption), rows, f"tab:{prefix}{panels[0].id}")
        for title, (panels, rows) in zip(titles, distinct, strict=True)
    )


def _titles(tables: Sequence[Sequence[Panel]]) -> list[str]:
    """Return the titles of each table's panels, after their letters where titles alone do not distinguish tables."""
    titles = ["; ".join(dict.fromkeys(filter(None, (panel.title for panel in panels)))) for panels in tables]
    if len(tables) == 1 or (all(titles) and len(set(titles)) == len(titles)):
        return titles
    return [heading(panels) for panels in tables]


def numbers_json(panels: Sequence[tuple[Panel, Sequence[Mapping[str, Any]]]], facts: Mapping[str, Any]) -> str:
    """Return the facts and ``"panels": [{"panel", "title", "scale", "rows"}]``, with rows of numbers; null for none.

    scale : the factor of the numbers in a table for readers, 100 for percent; the rows are not scaled.
    """
    listed = [
        {
            "panel": panel.id,
            "title": panel.title,
            "scale": panel.options.get("scale", 1),
            "rows": [{name: _finite(value) for name, value in row.items() if name != "panel"} for row in rows],
        }
        for panel, rows in panels
    ]
    return json.dumps({**facts, "panels": listed}, indent=1, ensure_ascii=False) + "\n"


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


FORMATS: dict[str, Callable[[Tables, str], str]] = {
    "md": as_markdown,
    "latex": as_latex,
}


def _markdown(rows: list[list[str]]) -> str:
    head, *body = rows
    return "".join("| " + " | ".join(map(cell, row)) + " |\n" for row in (head, ["---"] * len(head), *body))


def _latex(caption: Sequence[str], rows: list[list[str]], label: str) -> str:
    import pandas as pd

    header, *body = rows
    numbers = [all(is_number(row[i].replace(",", "").strip("*") or "0") for row in body) for i in range(len(header))]
    frame = pd.DataFrame([[_tex_cell(cell) for cell in row] for row in body], columns=[_tex(name) for name in header])
    text: str = frame.to_latex(
        index=False,
        escape=False,
        column_format="".join("r" if number else "l" for number in numbers),
        caption=". ".join(_tex(part) for part in caption if part),
        label=label,
        position="t",
    )
    return text


_GREEK = (
    "α alpha β beta γ gamma δ delta ε varepsilon ϵ epsilon ζ zeta η eta θ theta ϑ vartheta ι iota κ kappa λ lambda "
    "μ mu ν nu ξ xi π pi ρ rho σ sigma ς varsigma τ tau υ upsilon φ varphi ϕ phi χ chi ψ psi ω omega "
    "Γ Gamma Δ Delta Θ Theta Λ Lambda Ξ Xi Π Pi Σ Sigma Υ Upsilon Φ Phi Ψ Psi Ω Omega"
)
"""Greek letters, each before its name in LaTeX."""

_FORMULAS = {
    **{letter: f"\\{name}" for letter, name in re.findall(r"(\S) (\w+)", _GREEK)},
    **dict(zip("οΑΒΕΖΗΙΚΜΝΟΡΤΧ", "oABEZHIKMNOPTX", strict=True)),
    "±": r"\pm", "·": r"\cdot", "×": r"\times", "÷": r"\div", "−": "-", "<": "<", ">": ">", "|": "|", "‖": r"\|",
    "≥": r"\ge", "≤": r"\le", "≠": r"\ne", "≈": r"\approx", "∝": r"\propto", "∞": r"\infty", "∈": r"\in",
    "∂": r"\partial", "∇": r"\nabla", "∑": r"\sum", "√": r"\surd", "→": r"\to", "←": r"\leftarrow", "µ": r"\mu",
    "½": r"\frac{1}{2}", "⅓": r"\frac{1}{3}", "¼": r"\frac{1}{4}", "¾": r"\frac{3}{4}", "°": r"^\circ", "ᵀ": r"^\top",
    "ℓ": r"\ell", "▲": r"\triangle", "…": r"\ldots", "′": "'",
    **{sign: f"^{{{plain}}}" for sign, plain in zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ", "0123456789+-n", strict=True)},
    **{sign: f"_{{{plain}}}" for sign, plain in zip("₀₁₂₃₄₅₆₇₈₉₊₋ᵢₖ", "0123456789+-ik", strict=True)},
}  # fmt: skip
"""LaTeX of Greek letters and signs in mathematics."""

_TEX = str.maketrans(
    {char: f"\\{char}" for char in "&%#_{}"}
    | {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"}
    | {char: f"${formula}$" for char, formula in _FORMULAS.items()}
)
"""LaTeX of characters that have a meaning there, or that its fonts lack."""

_HAT = re.compile("(\\w)\u0302")
"""A letter below a hat."""


def _tex_cell(text: str) -> str:
    """Return a cell for LaTeX; text between double asterisks is bold, and 1.5e-16 has its power of ten."""
    text = re.sub(r"(?<![\w.])(-?[\d.]+)e([+-]?)0*(\d+)\b", _power_of_ten, text)
    bold = re.fullmatch(r"\*\*(.*)\*\*(.*)", text)
    if bold is None:
        return _tex(text)
    mathematics = "\\boldmath " if "$" in bold[1] else ""
    return f"\\textbf{{{mathematics}{_tex(bold[1])}}}{_tex(bold[2])}"


def _power_of_ten(found: re.Match[str]) -> str:
    return f"${found[1]} \\times 10^{{{found[2].removeprefix('+')}{found[3]}}}$"


def _tex(text: str) -> str:
    """Return text for LaTeX; text between dollar signs is mathematics and is not changed."""
    parts = text.split("$")
    if len(parts) % 2 == 0:  # a lone dollar sign
        return "\\$".join(map(_letters, parts))
    return "$".join(part if i % 2 else _letters(part) for i, part in enumerate(parts))


def _letters(text: str) -> str:
    text = text.replace("||", "‖")  # bars in one formula
    return _HAT.sub(r"$\\hat{\1}$", text.translate(_TEX))
