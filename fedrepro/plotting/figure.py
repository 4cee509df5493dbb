"""A whole figure: its panels laid out in a grid, legends below them, and files.

``draw`` only reads results and averages them. Tags and footer state what a reader needs to know about the results (see
``header_footer``).
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedrepro.errors import ParameterError, UserError
from fedrepro.files import atomically
from fedrepro.plotting import bars, curves, naming, panel_axes, scatter, style, sweep, tables
from fedrepro.plotting.header_footer import MARGIN, Header, footer, footer_parts, tags
from fedrepro.plotting.legend import arrange
from fedrepro.plotting.panel_axes import ROOM, Prepared, Room
from fedrepro.plotting.provenance import FIELDS, record
from fedrepro.plotting.series import FigureData
from fedrepro.spec import axes, panel_names
from fedrepro.spec.model import Panel
from fedrepro.spec.panels import check_panel

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.figure import Figure as MplFigure

PREPARE: dict[str, Callable[[Panel, FigureData, Room], Prepared]] = {
    "curves": curves.prepare,
    "sweep": sweep.prepare,
    "bars": bars.prepare,
    "table": lambda panel, source, _: tables.prepare(panel, source),
    "scatter": lambda panel, source, _: scatter.prepare(panel, source),
}
"""The function that prepares each kind of panel; ``sweep`` are curves whose x is a parameter."""

METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "svg": {"Date": None, "Creator": None},
}
"""Metadata without dates and versions, so that the same results give the same bytes."""

DECIMALS = 5
"""Decimals of the positions of axes, as shares of the figure."""

NARROWEST = 5.4
"""Smallest width in inches of a figure with one column, with enough room for title, tags and footer."""


def draw(source: FigureData, stem: Path, formats: Sequence[str], root: Path | None = None) -> list[Path]:
    """Write ``<stem>.<format>`` for every format (png, pdf, svg) and CSV and Markdown for every table panel.

    root : the folder of the results, None for results from another source; the pictures record their provenance. Files
    are replaced atomically. Raises ParameterError for an unknown format, or a panel that cannot be drawn.
    """
    check_formats(formats)
    for panel in source.figure.panels:
        check_panel(panel)
    picture = build_from(source)
    return save(picture, stem, formats, record(source.figure, source.sidecar, root)) + _write_tables(source, stem)


def check_formats(formats: Sequence[str]) -> None:
    """Raise ParameterError for an unknown format of pictures."""
    for name in formats:
        if name not in METADATA:
            raise ParameterError("formats", f"'{name}' is none of {', '.join(METADATA)}")


def save(picture: MplFigure, stem: Path, formats: Sequence[str], provenance: str) -> list[Path]:
    """Write a picture as ``<stem>.<format>`` for every format, with its provenance in its metadata."""
    written = []
    with style.context():
        for name in formats:
            target = stem.with_name(f"{stem.name}.{name}")
            metadata = METADATA[name] | {FIELDS[name]: provenance}
            atomically(target, functools.partial(picture.savefig, format=name, metadata=metadata))
            written.append(target)
    return written


def prepare(panel: Panel, source: FigureData, room: Room = ROOM) -> Prepared:
    """Prepare one panel. room : that of a panel with one pair of axes."""
    swept = panel.kind == "curves" and not axes.of(panel).along
    return PREPARE["sweep" if swept else panel.kind](panel, source, room)


def _write_tables(source: FigureData, stem: Path) -> list[Path]:
    panels = [p for p in source.figure.panels if p.kind == "table"]
    written = []
    for panel in panels:
        name = stem.name if len(panels) == 1 else f"{stem.name}.{panel.id}"
        cells = tables.cells_of(source, panel)
        caveats = "; ".join(tags(source))
        text = f"**{source.figure.title}**" + (f" - {panel.title}" if panel.title else "") + "\n\n"
        text += (f"> {caveats}\n\n" if caveats else "") + tables.markdown(panel, cells) + f"\n{footer(source, ())}\n"
        csv = cells.assign(tier=source.figure.tier, caveats=caveats).to_csv(index=False, lineterminator="\n")
        for suffix, content in (("csv", csv), ("md", text)):
            target = stem.with_name(f"{name}.{suffix}")
            atomically(target, content.encode())
            written.append(target)
    return written


def build_from(source: FigureData) -> MplFigure:
    """Return the matplotlib figure of results."""
    with style.context():
        return compose(source, [prepare(panel, source) for panel in source.figure.panels])


def new_picture(size: tuple[float, float], rect: tuple[float, ...], dpi: int, **pads: float) -> MplFigure:
    """Return an empty figure of this size in inches, laid out within a rectangle of shares of its size."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Picture

    picture = Picture(figsize=size, dpi=dpi, layout="constrained")
    FigureCanvasAgg(picture)
    engine: Any = picture.get_layout_engine()
    engine.set(rect=rect, **pads)
    return picture


def compose(source: FigureData, every: Sequence[Prepared]) -> MplFigure:
    """Return the matplotlib figure of prepared panels; call it within ``style.context``."""
    figure = source.figure
    titles = [panel_title(source, place) for place in range(len(every))]
    every = [panel_axes.with_room(*of) for of in zip(every, figure.panels, map(naming.symbols, titles), strict=True)]
    shown = [(panel, title) for panel, title in zip(every, titles, strict=True) if not panel.absent]
    across = min(max(figure.columns, 1), max(len(shown), 1))
    widths = [max((p.size[0] for p, _ in shown[c::across]), default=NARROWEST) for c in range(across)]
    if across == 1:
        widths = [max(widths[0], NARROWEST)]
    rows = [shown[i : i + across] for i in range(0, len(shown), across)]
    legends = arrange([[panel for panel, _ in row] for row in rows], widths)

    ratios, height = [], 0.0
    for row, strip in zip(rows, legends, strict=True):
        tall, decoration = max(p.size[1] for p, _ in row), max(p.decoration for p, _ in row)
        ratios += [tall - decoration, *([max(legend.height for legend in strip)] if strip else [])]
        lines = max(p.lines.above for p, _ in row) + max(p.lines.below for p, _ in row)
        height += tall + lines * panel_axes.LINE
        height += ratios[-1] if strip else 0.0
    width = sum(widths) + 2 * MARGIN
    top = Header(source, width)
    parts = footer_parts(source, panel_notes(source, every), _told(source, every))
    foot = style.wrap(" · ".join(map(style.safe, parts)), width - 2 * MARGIN, style.TINY)
    below = 0.14 * (foot.count("\n") + 1) + 0.13
    absent = _absent(source, every, titles, width - 2 * MARGIN)
    gap = 0.19 * (absent.count("\n") + 1) + 0.12 if absent else 0.0
    total = height + top.height + below + gap

    inside = (MARGIN / width, (below + gap) / total, 1 - 2 * MARGIN / width, height / total)
    picture = new_picture((width, total), inside, 160, w_pad=0.05, h_pad=0.06, wspace=0.03, hspace=0.0)
    grid = picture.add_gridspec(max(len(ratios), 1), across, width_ratios=widths, height_ratios=ratios or None)
    line = 0
    for row, strip in zip(rows, legends, strict=True):
        for column, (panel, title) in enumerate(row):
            panel.paint(picture, grid[line, column], naming.symbols(title))
        for legend in strip:
            legend.paint(picture, grid[line + 1, legend.start : legend.stop])
        line += 2 if strip else 1
    top.paint(picture, total)
    left: dict[str, Any] = {"x": MARGIN / width, "va": "bottom", "in_layout": False}
    picture.text(y=0.09 / total, s=foot, fontsize=style.TINY, color=style.FAINT, gid="footer", **left)
    picture.text(y=(below + 0.06) / total, s=absent, fontsize=style.FONT, gid="absent", **left)
    for ax in picture.axes:
        panel_axes.plain_numbers(ax.xaxis)
        panel_axes.plain_numbers(ax.yaxis)
    literal_dollars(picture)
    settle(picture)
    return picture


def literal_dollars(artist: Artist) -> None:
    """Show the dollar signs of every text in it literally, unless they enclose formulas."""
    from matplotlib.text import Text

    for text in artist.findobj(Text):
        if isinstance(text, Text) and not all(style.is_math(line) for line in text.get_text().split("\n")):
            text.set_parse_math(False)


def panel_notes(source: FigureData, every: Sequence[Prepared]) -> list[str]:
    """Return the notes of panels with results for the footer.

    Notes on bands, or on cells of tables, that differ are preceded by the letters of their panels.
    """
    letters = panel_names.letters(source.figure.panels)
    noted = [(letters.get(panel.id, panel.id), note) for panel, drawn in zip(source.figure.panels, every, strict=True)
            if not drawn.absent for note in drawn.notes]  # fmt: skip
    named: dict[str, str] = {}
    for kind in ("band: ", "cells: "):
        places: dict[str, list[str]] = {}
        for letter, note in noted:
            if note.startswith(kind):
                places.setdefault(note, []).append(letter)
        if len(places) > 1:
            named |= {note: f"{', '.join(of)}: {note}" for note, of in places.items()}
    return [named.get(note, note) for _, note in noted]


def settle(picture: MplFigure) -> None:
    """Compute the layout and fix it, rounded to ``DECIMALS``, because the solver's last digits vary between runs.

    The engine is then removed; with any engine, even "none", every file would be drawn twice. Raises UserError if texts
    leave no room for the axes.
    """
    engine: Any = picture.get_layout_engine()
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "constrained_layout not applied", UserWarning)
        try:
            if picture.axes:
                engine.execute(picture)
        except UserWarning as warning:
            raise UserError(f"the text {_longest_text(picture)} leaves no room for its panel; shorten it") from warning
    picture.set_layout_engine(None)
    for ax in picture.axes:
        ax.apply_aspect()
        x, y, width, height = (round(float(v), DECIMALS) for v in ax.get_position().bounds)
        ax.set_position((x, y, width, height))


def _longest_text(picture: MplFigure) -> str:
    """Return the beginning of the longest title or label of all axes, and its length."""
    titles = [ax.get_title("left") for ax in picture.axes]
    labels = [label for ax in picture.axes for label in (ax.get_xlabel(), ax.get_ylabel())]
    longest = max(titles + labels, key=len).replace("\n", " ")
    return f"'{longest[:60]}...' ({len(longest)} characters)"


def lacking(panel: Panel, prepared: Prepared, source: FigureData) -> str:
    """Return why a panel is empty: its data are absent, or what became of its runs; '' if it shows something."""
    states = {d.dataset: d.state for d in source.sidecar.datasets}
    names = dict.fromkeys(c.setting.dataset for c in panel.curves)
    gone = [naming.dataset(name) for name in names if states.get(name) == "absent"]
    absent = f"the data of {' and '.join(gone)} were absent when this was computed"  # they may be here now
    why = absent if gone else prepared.absent
    return (why if why.startswith("no ") else f"no results: {why}") if prepared.absent else ""


def _told(source: FigureData, every: Sequence[Prepared]) -> set[str]:
    """Return the absent datasets that only empty panels use, whose lines give the reason."""
    pairs = list(zip(source.figure.panels, every, strict=True))
    empty, drawn = (
        {
            curve.setting.dataset
            for panel, prepared in pairs
            if bool(prepared.absent) is absent
            for curve in panel.curves
        }
        for absent in (True, False)
    )
    return empty - drawn


def _absent(source: FigureData, every: Sequence[Prepared], titles: Sequence[str], inches: float) -> str:
    """Return the lines that name the panels without results, one line per reason."""
    reasons = [lacking(panel, drawn, source) for panel, drawn in zip(source.figure.panels, every, strict=True)]
    missing = [(title, why) for title, why in zip(titles, reasons, strict=True) if why]
    lines = []
    for why in dict.fromkeys(why for _, why in missing):
        named = _grouped(title for title, reason in missing if reason == why)
        listed = "; ".join(style.safe(naming.symbols(title)) for title in named)
        lines.append(style.wrap(f"{listed}: {why}", inches, style.FONT))
    return "\n".join(lines)


def _grouped(titles: Iterable[str]) -> list[str]:
    """Return titles that differ in their letter only as one: ``(a), (b) Netflix``."""
    letters: dict[str, list[str]] = {}
    for title in titles:
        letter, end, rest = title.partition(") ")
        lettered = title.startswith("(") and end
        letters.setdefault(rest if lettered else title, []).extend([f"{letter})"] if lettered else [])
    return [f"{', '.join(found)} {rest}".strip() for rest, found in letters.items()]


def bare_title(source: FigureData, panel: Panel) -> str:
    """Return the title of a panel without its letter, and whether its data are a stand-in."""
    return (panel.title + source.stands_in(panel.curves)).strip()


def panel_title(source: FigureData, place: int) -> str:
    """Return the letter and title of a panel, and whether its data are a stand-in."""
    panel = source.figure.panels[place]
    letter = panel_names.letters(source.figure.panels).get(panel.id)
    return " ".join([*([f"({letter})"] if letter else []), bare_title(source, panel)]).strip()
