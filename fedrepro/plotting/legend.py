"""Legends: outside the panels, in strips of their own, shared by neighbours that show the same curves."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fedrepro.plotting import style
from fedrepro.plotting.panel_axes import Entry, Prepared

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as MplFigure
    from matplotlib.legend import Legend as MplLegend

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
        self.draw(picture.add_subplot(spec), LABELS / 2)

    def draw(self, ax: Axes, left: float = 0.0) -> None:
        """Draw the legend into the middle of axes that hold nothing else, or so many inches to its left."""
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
    """Write a legend of these entries; one without a sample, of a curve without results, stands back."""
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
    """The legends below each row: one for neighbours with equal entries, one for whole rows with equal entries.

    ``size``: of their letters in points.
    """
    alike = [signatures.pop() if len(signatures := {_signature(p) for p in row}) == 1 else None for row in rows]
    result: list[list[Legend]] = []
    for i, row in enumerate(rows):
        if alike[i] and i + 1 < len(rows) and alike[i + 1] == alike[i]:
            result.append([])  # the row below carries the legend of both
            continue
        runs = _runs([_signature(p) for p in row])
        if alike[i] and i > 0 and alike[i - 1] == alike[i]:
            runs = [(0, len(widths))]
        spans = [(a, b) for a, b in runs if row[a].entries]
        result.append([_legend(a, b, row[a].entries, sum(widths[a:b]), len(runs), size) for a, b in spans])
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


def _legend(start: int, stop: int, entries: tuple[Entry, ...], inches: float, neighbours: int, size: float) -> Legend:
    """Choose the number of columns that fits, and the height that follows."""
    room = inches - (0.15 if neighbours > 1 else 0.0)
    sample = size / 72 * (style.HANDLE + style.HANDLE_PAD)
    gap = size / 72 * style.COLUMN_GAP
    entries = tuple(Entry(style.wrap(e.label, room - sample - 0.1, size), e.line) for e in entries)
    for columns in range(len(entries), 0, -1):
        parts = _columns(entries, columns)
        total = sum(max(style.width(e.label, size) for e in part) + sample for part in parts)
        if total + gap * (len(parts) - 1) <= room or columns == 1:
            break
    parts = _columns(entries, -(-len(entries) // len(parts[0])))  # no more columns than the rows need
    lines = max(sum(e.label.count("\n") + 1 for e in part) for part in parts)
    return Legend(start, stop, entries, len(parts), lines * ROW * size / style.SMALL + 0.08)
