"""Legends: outside the panels, in separate strips, shared by neighbours with the same curves."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from fedrepro.plotting import style
from fedrepro.plotting.panel_axes import LINE, Entry, Prepared

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as MplFigure
    from matplotlib.legend import Legend as MplLegend

ROW, LABELS = 0.172, 0.5
"""Height of a legend row, and usual width of the labels at the left of a panel, in inches."""


@dataclass(frozen=True)
class Legend:
    """A legend in a strip below the panels of columns ``start`` .. ``stop - 1``.

    left : width in inches of the labels at the left of the first of them.
    """

    start: int
    stop: int
    entries: tuple[Entry, ...]
    columns: int
    height: float
    left: float = LABELS

    def paint(self, picture: MplFigure, spec: Any) -> None:
        """Draw the legend into separate axes, so that it covers no curve."""
        self.draw(picture.add_subplot(spec), self.left / 2)

    def draw(self, ax: Axes, left: float = 0.0) -> None:
        """Draw the legend into the middle of empty axes, or ``left`` inches to the left of it."""
        from matplotlib.transforms import ScaledTranslation

        ax.set_axis_off()
        legend = write(
            ax,
            self.entries,
            loc="upper center",
            bbox_to_anchor=(0.5, 1.0),
            bbox_transform=ax.transAxes + ScaledTranslation(-left, 0, ax.figure.dpi_scale_trans),
            ncols=self.columns,
            borderaxespad=0,
            borderpad=0.1,
            labelspacing=0.45,
        )
        legend.set_in_layout(False)


def write(ax: Axes, entries: Sequence[Entry], **where: Any) -> MplLegend:
    """Write a legend; entries without a sample, of curves without results, are grey and in italics."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = []
    for item in entries:
        look = dict(item.line) if item.line is not None else {"linestyle": "none"}
        patch = look.pop("patch", False)
        handles.append(Patch(**look) if patch else Line2D([], [], **look))
    legend = ax.legend(handles, [item.label for item in entries], **where)
    for text, item in zip(legend.get_texts(), entries, strict=True):
        if item.line is None:
            text.set_color(style.FAINT)
            text.set_fontstyle("italic")
    return legend


def arrange(
    rows: Sequence[Sequence[Prepared]], widths: Sequence[float], size: float = style.SMALL
) -> list[list[Legend]]:
    """Return the legends below each row: one for neighbours with equal entries, one for rows with equal entries.

    size : of their letters in points.
    """
    alike = [all(panel.entries == row[0].entries for panel in row) for row in rows]

    def share(i: int, j: int) -> bool:
        """Return whether all panels of two rows have the same legend."""
        return 0 <= j < len(rows) and alike[i] and alike[j] and rows[i][0].entries == rows[j][0].entries

    result: list[list[Legend]] = []
    for i, row in enumerate(rows):
        if share(i, i + 1):
            result.append([])  # the legend is below the next row
            continue
        starts = [k for k in range(len(row)) if k == 0 or row[k].entries != row[k - 1].entries]
        runs = [(0, len(widths))] if share(i, i - 1) else list(itertools.pairwise([*starts, len(row)]))
        spans = [(a, b) for a, b in runs if row[a].entries]
        below = [_legend(a, b, row[a].entries, sum(widths[a:b]), len(runs), size) for a, b in spans]
        result.append([replace(legend, left=LABELS + LINE * row[legend.start].lines.left) for legend in below])
    return result


def _columns(entries: Sequence[Entry], columns: int) -> list[Sequence[Entry]]:
    """Return the entries by column as matplotlib fills them: the first columns can have one more."""
    each, more = divmod(len(entries), columns)
    starts = [i * each + min(i, more) for i in range(columns + 1)]
    return [entries[a:b] for a, b in itertools.pairwise(starts)]


def _rows_of_kin(entries: tuple[Entry, ...], columns: int) -> tuple[Entry, ...]:
    """Return the entries such that neighbours of one colour stand in a row, if the columns are as many as these."""
    colors = [entry.line.get("color") if entry.line is not None else None for entry in entries]
    groups = [len(list(group)) for _, group in itertools.groupby(colors)]
    if columns < 2 or set(groups) != {columns} or len(groups) < 2:
        return entries
    return tuple(entry for column in range(columns) for entry in entries[column::columns])


def _legend(start: int, stop: int, entries: tuple[Entry, ...], inches: float, neighbours: int, size: float) -> Legend:
    """Return a legend with the largest number of columns that fits."""
    room = inches - (0.15 if neighbours > 1 else 0.0)
    sample = size / 72 * (style.HANDLE + style.HANDLE_PAD)
    gap = size / 72 * style.COLUMN_GAP
    entries = tuple(Entry(style.wrap(e.label, room - sample - 0.1, size), e.line) for e in entries)
    for columns in range(len(entries), 0, -1):
        parts = _columns(entries, columns)
        total = sum(max(style.width(e.label, size) for e in part) + sample for part in parts)
        if total + gap * (len(parts) - 1) <= room or columns == 1:
            break
    entries = _rows_of_kin(entries, len(parts))
    parts = _columns(entries, -(-len(entries) // len(parts[0])))  # no more columns than the rows need
    lines = max(sum(e.label.count("\n") + 1 for e in part) for part in parts)
    return Legend(start, stop, entries, len(parts), lines * ROW * size / style.SMALL + 0.08)
