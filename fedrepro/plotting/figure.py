"""A whole figure: its panels laid out in a grid, legends below them, and files.

``draw`` reads results only; it computes nothing that is not an average of them. What the reader must know of the
results stands on the picture (see ``face``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedrepro.errors import ParameterError
from fedrepro.files import atomically
from fedrepro.plotting import bars, curves, naming, panel_axes, scatter, style, sweep, tables
from fedrepro.plotting.header_footer import MARGIN, Header, footer, footer_parts, tags
from fedrepro.plotting.legend import arrange
from fedrepro.plotting.panel_axes import ROOM, Prepared, Room
from fedrepro.plotting.provenance import FIELDS, record
from fedrepro.plotting.series import FigureData
from fedrepro.results.schema import Sidecar
from fedrepro.spec import axes
from fedrepro.spec.model import Figure, Panel
from fedrepro.spec.panels import check_figure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.artist import Artist
    from matplotlib.figure import Figure as MplFigure

PREPARE: dict[str, Callable[[Panel, FigureData, Room], Prepared]] = {
    "curves": curves.prepare,
    "sweep": sweep.prepare,
    "bars": bars.prepare,
    "table": lambda panel, source, _: tables.prepare(panel, source),
    "scatter": lambda panel, source, _: scatter.prepare(panel, source),
}
"""Who draws what: the kinds of panels, and curves whose x is a parameter as ``sweep``."""

METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "svg": {"Date": None, "Creator": None},
}
"""No dates and no versions in the files: the same results give the same bytes."""

PLACES = 5
"""Digits of the positions of axes, as shares of the figure."""

ALONE = 5.4
"""Least width in inches of a figure of one column: room for title, tags and footer."""


def draw(
    figure: Figure,
    frame: pd.DataFrame,
    sidecar: Sidecar,
    stem: Path,
    formats: Sequence[str] = ("png", "pdf"),
    points: pd.DataFrame | None = None,
    root: Path | None = None,
) -> list[Path]:
    """Write ``<stem>.<format>`` for every format (png, pdf, svg) and CSV and Markdown for every table panel.

    ``frame`` is the figure's tidy CSV, ``points`` its points file where it has scatter panels, ``root`` the folder with
    results where they are from there: the pictures say so (``provenance``). Files are replaced atomically. Raises
    ParameterError for an unknown format, or a panel that cannot be drawn.
    """
    check_formats(formats)
    check_figure(figure)
    source = FigureData(figure, frame, sidecar, points)
    stem = Path(stem)
    picture = build_from(source)
    return save(picture, stem, formats, record(figure, sidecar, root)) + _write_tables(source, stem)


def check_formats(formats: Sequence[str]) -> None:
    """Raise ParameterError for a format in which pictures are not written."""
    for name in formats:
        if name not in METADATA:
            raise ParameterError("formats", f"'{name}' is none of png, pdf, svg")


def save(picture: MplFigure, stem: Path, formats: Sequence[str], provenance: str) -> list[Path]:
    """Write a picture as ``<stem>.<format>`` for every format, with what is to be said of it in its metadata."""
    written = []
    with style.context():
        for name in formats:
            target = stem.with_name(f"{stem.name}.{name}")
            metadata = METADATA[name] | {FIELDS[name]: provenance}
            atomically(target, functools.partial(picture.savefig, format=name, metadata=metadata))
            written.append(target)
    return written


def prepare(panel: Panel, source: FigureData, room: Room = ROOM) -> Prepared:
    """Work out one panel; ``room``: of a panel with one pair of axes."""
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
            _write_text(target, content)
            written.append(target)
    return written


def _write_text(target: Path, content: str) -> None:
    atomically(target, lambda stream: stream.write(content.encode()) and None)


def build(figure: Figure, frame: pd.DataFrame, sidecar: Sidecar, points: pd.DataFrame | None = None) -> MplFigure:
    """The matplotlib figure that ``draw`` saves."""
    return build_from(FigureData(figure, frame, sidecar, points))


def build_from(source: FigureData) -> MplFigure:
    """The matplotlib figure of results."""
    with style.context():
        return compose(source, [prepare(panel, source) for panel in source.figure.panels])


def compose(source: FigureData, every: Sequence[Prepared]) -> MplFigure:
    """The matplotlib figure of panels that are worked out; within ``style.context``."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Picture

    figure = source.figure
    titles = [panel_title(source, place) for place in range(len(every))]
    prepared = [panel for panel in every if not panel.absent]
    across = min(max(figure.columns, 1), max(len(prepared), 1))
    widths = [max((p.size[0] for p in prepared[c::across]), default=ALONE) for c in range(across)]
    if across == 1:
        widths = [max(widths[0], ALONE)]
    rows = [prepared[i : i + across] for i in range(0, len(prepared), across)]
    legends = arrange(rows, widths)

    ratios, height = [], 0.0
    for row, strip in zip(rows, legends, strict=True):
        tall, decoration = max(p.size[1] for p in row), max(p.decoration for p in row)
        ratios.append(tall - decoration)
        height += tall
        if strip:
            ratios.append(max(legend.height for legend in strip))
            height += ratios[-1]
    width = sum(widths) + 2 * MARGIN
    top = Header(source, width)
    parts = footer_parts(source, panel_notes(source, every))
    foot = style.wrap(" · ".join(map(style.safe, parts)), width - 2 * MARGIN, style.TINY)
    below = 0.14 * (foot.count("\n") + 1) + 0.13
    gone = _absent(source, every, titles, width - 2 * MARGIN)
    lack = 0.19 * (gone.count("\n") + 1) + 0.12 if gone else 0.0
    total = height + top.height + below + lack

    picture = Picture(figsize=(width, total), dpi=160, layout="constrained")
    FigureCanvasAgg(picture)
    engine: Any = picture.get_layout_engine()
    inside = (MARGIN / width, (below + lack) / total, 1 - 2 * MARGIN / width, height / total)
    engine.set(rect=inside, w_pad=0.05, h_pad=0.06, wspace=0.03, hspace=0.0)
    grid = picture.add_gridspec(max(len(ratios), 1), across, width_ratios=widths, height_ratios=ratios or None)
    shown = iter([title for panel, title in zip(every, titles, strict=True) if not panel.absent])
    line = 0
    for row, strip in zip(rows, legends, strict=True):
        for column, panel in enumerate(row):
            panel.paint(picture, grid[line, column], naming.symbols(next(shown)))
        line += 1
        for legend in strip:
            legend.paint(picture, grid[line, legend.start : legend.stop])
        line += bool(strip)
    top.paint(picture, total)
    left: dict[str, Any] = {"x": MARGIN / width, "va": "bottom", "in_layout": False}
    picture.text(y=0.09 / total, s=foot, fontsize=style.TINY, color=style.FAINT, gid="footer", **left)
    picture.text(y=(below + 0.06) / total, s=gone, fontsize=style.FONT, gid="absent", **left)
    for ax in picture.axes:
        panel_axes.plain_numbers(ax.xaxis)
        panel_axes.plain_numbers(ax.yaxis)
    literal_dollars(picture)
    settle(picture)
    return picture


def literal_dollars(artist: Artist) -> None:
    """Have every text in it shown as it is whose dollar signs are no formulas'."""
    from matplotlib.text import Text

    for text in artist.findobj(Text):
        if isinstance(text, Text) and not all(style.is_math(line) for line in text.get_text().split("\n")):
            text.set_parse_math(False)


def panel_notes(source: FigureData, every: Sequence[Prepared]) -> list[str]:
    """What the panels that show something say in the footer; where their bands differ, of which panels each is."""
    noted = [(panel.id, note) for panel, drawn in zip(source.figure.panels, every, strict=True) if not drawn.absent
            for note in drawn.notes]  # fmt: skip
    bands: dict[str, list[str]] = {}
    for name, note in noted:
        if note.startswith("band: "):
            bands.setdefault(note, []).append(name)
    if len(bands) < 2:
        return [note for _, note in noted]
    named = {note: f"{', '.join(names)}: {note}" for note, names in bands.items()}
    return [named.get(note, note) for _, note in noted]


def settle(picture: MplFigure) -> None:
    """Lay the figure out once and for all, to so many ``PLACES``: the solver's last digits differ from run to run.

    Without an engine: where there is one, even the one called "none", every file is drawn twice.
    """
    engine: Any = picture.get_layout_engine()
    if picture.axes:
        engine.execute(picture)
    picture.set_layout_engine(None)
    for ax in picture.axes:
        ax.apply_aspect()
        x, y, width, height = (round(float(v), PLACES) for v in ax.get_position().bounds)
        ax.set_position((x, y, width, height))


def lacking(panel: Panel, prepared: Prepared, source: FigureData) -> str:
    """Why a panel shows nothing: its data are absent, or what became of its runs; '' where it shows something."""
    there = {d.dataset: d.state for d in source.sidecar.datasets}
    names = dict.fromkeys(c.setting.dataset for c in panel.curves)
    gone = [naming.dataset(name) for name in names if there.get(name) == "absent"]
    why = f"{' and '.join(gone)} {'is' if len(gone) == 1 else 'are'} absent" if gone else prepared.absent
    return (why if why.startswith("no ") else f"no results: {why}") if prepared.absent else ""


def _absent(source: FigureData, every: Sequence[Prepared], titles: Sequence[str], inches: float) -> str:
    """A line for the panels without results, those of one dataset together."""
    reasons = [lacking(panel, drawn, source) for panel, drawn in zip(source.figure.panels, every, strict=True)]
    missing = [(title, why) for title, why in zip(titles, reasons, strict=True) if why]
    lines = []
    for why in dict.fromkeys(why for _, why in missing):
        named = [title for title, reason in missing if reason == why]
        listed = "; ".join(style.safe(naming.symbols(title)) for title in named)
        lines.append(style.wrap(f"{listed}: {why}", inches, style.FONT))
    return "\n".join(lines)


def panel_title(source: FigureData, place: int) -> str:
    """The letter and title of a panel, with what must be said of its data."""
    figure = source.figure
    title = figure.panels[place].title + source.stands_in(figure.panels[place].curves)
    if len(figure.panels) == 1:
        return title
    ids = [panel.id for panel in figure.panels]
    letter = ids[place] if all(len(i) == 1 for i in ids) else chr(ord("a") + place) if place < 26 else str(place + 1)
    return f"({letter}) {title}".strip()
