"""Draw the specification curve of a claim: its margin under every reading, and the values that make up each reading.

Margins have different units and scales under different readings, so each is drawn in half widths of its own 95 %
interval: below -1 the check fails, above 1 it holds, between them it is within noise. Readings are in order of their
margins; a row of marks for every value of every dimension shows which readings have it.

Source: Simonsohn, Simmons and Nelson, "Specification curve analysis", Nature Human Behaviour (2020).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape

from fedrepro.claims.classes import SINGULAR, Answer, Robustness
from fedrepro.claims.evidence import FAILS, HOLDS, NOISE
from fedrepro.lexicon.vocabulary import short_name, value_in_words

LEFT, WIDTH, TOP, HEIGHT, ROW, BELOW = 230, 460, 14, 150, 15, 14
"""Pixels: left of the axes, their width, above them, their height, of a row of marks, between axes and rows."""
MOST = 8.0
"""Margins further from zero, in half widths, are drawn at the edge."""
SCORE = {HOLDS: 2.0, FAILS: -2.0, NOISE: 0.0}
"""Where readings without an interval are drawn."""


def svg(robustness: Robustness) -> str:
    """Return the curve as an SVG element, '' for a claim with one reading."""
    if len(robustness.answers) < 2:
        return ""
    leading = robustness.answers[0]
    ordered = sorted(robustness.answers, key=lambda answer: (_height(answer), answer is not leading))
    rows = list(_rows(robustness))
    step = WIDTH / len(ordered)
    places = [LEFT + (k + 0.5) * step for k in range(len(ordered))]
    height = TOP + HEIGHT + BELOW + ROW * len(rows) + 6
    parts = [*_axes(), *_points(ordered, places, leading, step), *_marks(ordered, places, rows, step)]
    label = f"Margins of {len(ordered)} readings in order, with the values of each reading: {robustness.words}"
    size = f'viewBox="0 0 {LEFT + WIDTH + 10} {height}" width="{LEFT + WIDTH + 10}" height="{height}"'
    return f'<svg class="readings" role="img" aria-label="{escape(label)}" {size}>{"".join(parts)}</svg>'


def _height(answer: Answer) -> float:
    """Return a margin in half widths of its interval, between -MOST and MOST."""
    half = (answer.margin.high - answer.margin.low) / 2
    if not half > 0 or math.isinf(half):
        return math.copysign(MOST, SCORE[answer.outcome]) if SCORE[answer.outcome] else 0.0
    height = max(-MOST, min(MOST, answer.margin.value / half))
    low, high = {HOLDS: (1.0, MOST), FAILS: (-MOST, -1.0), NOISE: (-1.0, 1.0)}[answer.outcome]
    return max(low, min(high, height))  # Holm's correction and skewed intervals move the border a little


def _y(height: float) -> float:
    return TOP + HEIGHT * (MOST - height) / (2 * MOST)


def _rows(robustness: Robustness) -> Iterator[tuple[str, object]]:
    """Yield every dimension with each of its values that some reading has; the most influential dimension first."""
    names = list(robustness.influence)
    names += [name for answer in robustness.answers for name in answer.reading.values if name not in names]
    for name in dict.fromkeys(names):
        values = [a.reading.values[name] for a in robustness.answers if name in a.reading.values]
        distinct = list(dict.fromkeys(values))
        if len(distinct) > 1:
            numbers = sorted(value for value in distinct if not isinstance(value, str))
            yield from ((name, value) for value in (*numbers, *(v for v in distinct if isinstance(v, str))))


def _axes() -> Iterator[str]:
    right = LEFT + WIDTH
    yield f'<rect class="band" x="{LEFT}" y="{_y(1):.1f}" width="{WIDTH}" height="{_y(-1) - _y(1):.1f}"/>'
    yield f'<line class="zero" x1="{LEFT}" x2="{right}" y1="{_y(0):.1f}" y2="{_y(0):.1f}"/>'
    for height, text in ((MOST, "holds"), (0.0, "within noise"), (-MOST, "fails")):
        yield f'<text class="name" x="{LEFT - 8}" y="{_y(height) + 4:.1f}">{text}</text>'


def _points(ordered: list[Answer], places: list[float], leading: Answer, step: float) -> Iterator[str]:
    radius = max(1.5, min(4.0, step / 2.5))
    for answer, x in zip(ordered, places, strict=True):
        middle = _height(answer)
        low, high = max(-MOST, middle - 1), min(MOST, middle + 1)
        kind = SINGULAR[answer.outcome]
        yield f'<line class="{kind}" x1="{x:.1f}" x2="{x:.1f}" y1="{_y(high):.1f}" y2="{_y(low):.1f}"/>'
        yield f'<circle class="{kind}" cx="{x:.1f}" cy="{_y(middle):.1f}" r="{radius:.1f}"/>'
        if answer is leading:
            yield f'<circle class="leading" cx="{x:.1f}" cy="{_y(middle):.1f}" r="{radius + 3:.1f}"/>'


def _marks(ordered: list[Answer], places: list[float], rows: list[tuple[str, object]], step: float) -> Iterator[str]:
    before = ""
    for k, (dimension, value) in enumerate(rows):
        y = TOP + HEIGHT + BELOW + ROW * k
        text = escape(value_in_words(dimension, value))
        shown = f"{escape(short_name(dimension))} = {text}" if dimension != before else f"= {text}"
        before = dimension
        yield f'<text class="name" x="{LEFT - 8}" y="{y + 9}">{shown}</text>'
        for answer, x in zip(ordered, places, strict=True):
            if answer.reading.values.get(dimension) == value:
                kind, wide = SINGULAR[answer.outcome], max(1.0, step * 0.7)
                yield f'<rect class="{kind}" x="{x - wide / 2:.1f}" y="{y}" width="{wide:.1f}" height="{ROW - 5}"/>'
