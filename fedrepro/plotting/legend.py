"""Legends: outside the panels, in strips of their own, shared by neighbours that show the same curves."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fedrepro.plotting import style
from fedrepro.plotting.canvas import Entry, Prepared

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as MplFigure

ROW, LABELS = 0.172, 0.5
"""Height of a legend row, and usual width of the labels at the left of a panel, in inches."""


@dataclass(frozen=True)
class Legend:
    """A legend in a strip below the panels of columns ``start`` .. ``stop - 1``."""

    start: int
    stop: int
    entries: tuple[Entry, ...]
    columns: int
    height: float

    def paint(self, picture: MplFigure, spec: Any) -> None:
        """Draw the legend in axes of its own, so that it can lie on no curve."""
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch
        from matplotlib.transforms import ScaledTranslation

        ax: Axes = picture.add_subplot(spec)
        ax.set_axis_off()
        handles: list[Any] = []
        for item in self.entries:
            look = dict(item.line) if item.line is not None else {"linestyle": "none"}
            patch = look.pop("patch", False)
            handles.append(Patch(**look) if patch else Line2D([], [], **look))
        labels = [item.label for item in self.entries]
        legend = ax.legend(
            handles,
            labels,
            loc="upper center",
            bbox_to_anchor=(0.5, 1.0),
            bbox_transform=ax.transAxes + ScaledTranslation(-LABELS / 2, 0, picture.dpi_scale_trans),
            ncols=self.columns,
            borderaxespad=0,
            borderpad=0.1,
            labelspacing=0.45,
        )
        legend.set_in_layout(False)
        for text, item in zip(legend.get_texts(), self.entries, strict=True):
            if item.line is None:
                text.set_color(style.FAINT)
                text.set_fontstyle("italic")


def arrange(rows: Sequence[Sequence[Prepared]], widths: Sequence[float]) -> list[list[Legend]]:
    """The legends below each row: one for neighbours with equal entries, one for whole rows with equal entries."""
    alike = [signatures.pop() if len(signatures := {_signature(p) for p in row}) == 1 else None for row in rows]
    result: list[list[Legend]] = []
    for i, row in enumerate(rows):
        if alike[i] and i + 1 < len(rows) and alike[i + 1] == alike[i]:
            result.append([])  # the row below carries the legend of both
            continue
        runs = _runs([_signature(p) for p in row])
        if alike[i] and i > 0 and alike[i - 1] == alike[i]:
            runs = [(0, len(widths))]
        result.append([_legend(a, b, row[a].entries, sum(widths[a:b]), len(runs)) for a, b in runs if row[a].entries])
    return result


def _runs(values: Sequence[str]) -> list[tuple[int, int]]:
    """Where runs of equal values start and stop."""
    starts = [i for i in range(len(values)) if i == 0 or values[i] != values[i - 1]]
    return list(itertools.pairwise([*starts, len(values)]))


def _signature(panel: Prepared) -> str:
    return repr(panel.entries)


def _columns(entries: Sequence[Entry], columns: int) -> list[Sequence[Entry]]:
    """Entries column by column as matplotlib fills them: the first columns are one longer where they must be."""
    each, more = divmod(len(entries), columns)
    starts = [i * each + min(i, more) for i in range(columns + 1)]
    return [entries[a:b] for a, b in itertools.pairwise(starts)]


def _legend(start: int, stop: int, entries: tuple[Entry, ...], inches: float, neighbours: int) -> Legend:
    """Choose the number of columns that fits, and the height that follows."""
    room = inches - (0.15 if neighbours > 1 else 0.0)
    sample = style.SMALL / 72 * (style.HANDLE + style.HANDLE_PAD)
    gap = style.SMALL / 72 * style.COLUMN_GAP
    entries = tuple(Entry(style.wrap(e.label, room - sample - 0.1, style.SMALL), e.line) for e in entries)
    for columns in range(len(entries), 0, -1):
        parts = _columns(entries, columns)
        total = sum(max(style.width(e.label, style.SMALL) for e in part) + sample for part in parts)
        if total + gap * (len(parts) - 1) <= room or columns == 1:
            break
    parts = _columns(entries, -(-len(entries) // len(parts[0])))  # no more columns than the rows need
    lines = max(sum(e.label.count("\n") + 1 for e in part) for part in parts)
    return Legend(start, stop, entries, len(parts), lines * ROW + 0.08)
