"""Draw one panel: with the width of a column of text and a caption file, or into the user's own axes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedrepro.errors import UserError, nearest
from fedrepro.files import atomically
from fedrepro.plotting import naming, style
from fedrepro.plotting.figure import (
    bare_title,
    check_formats,
    lacking,
    literal_dollars,
    new_picture,
    panel_notes,
    panel_title,
    prepare,
    save,
    settle,
)
from fedrepro.plotting.header_footer import SERIOUS, in_sentences, paint_tags, sidecar_of, tags
from fedrepro.plotting.legend import arrange, write
from fedrepro.plotting.panel_axes import LABELS, Prepared, Room
from fedrepro.plotting.provenance import record
from fedrepro.plotting.series import FigureData
from fedrepro.results import missing
from fedrepro.results.frame import warn_of_stale
from fedrepro.results.read import largest_tier
from fedrepro.spec import panel_names
from fedrepro.spec.find import find_spec, project
from fedrepro.spec.model import Panel
from fedrepro.spec.panels import check_panel
from fedrepro.spec.tiers import BEST, TIERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as MplFigure

LETTERS, SMALLEST = 8.0, 7.0
"""Sizes in points of the letters of a panel in a column, and of the names of curves that leave it."""
SHAPE, LOWEST = 0.74, 2.1
"""Height of such a panel with its labels as a share of its width, and the smallest height in inches."""
NARROWEST = 2.0
"""Smallest width in inches with enough room for labels and numbers."""
EDGE, STRIP = 0.03, 0.24
"""Margin around a panel in a column, and height of its line of tags, in inches."""

RC: Any = {
    "font.size": LETTERS,
    "axes.labelsize": LETTERS,
    "axes.linewidth": 0.6,
    "xtick.labelsize": LETTERS,
    "ytick.labelsize": LETTERS,
    "legend.fontsize": LETTERS,
    "lines.linewidth": 1.3,
    "lines.markersize": 4.0,
}


def draw_single_panel(
    source: FigureData,
    panel: str,
    width: tuple[float, str],
    stem: Path,
    formats: Sequence[str],
    root: Path | None = None,
) -> list[Path]:
    """Write ``<stem>.<panel>.<format>`` for every format, and ``<stem>.<panel>.caption.txt``; return the files.

    The picture has no title, and of the tags only those of stale results and stand-in data; the caption states what
    a reader needs to know about the results. width : in inches, and as the user wrote it. root : as in
    ``figure.draw``. Raises UserError if there is no such panel, it has no results or not exactly one pair of axes, or
    the width is too small.
    """
    check_formats(formats)
    inches, written = width
    if not inches >= NARROWEST:
        raise UserError(f"--width {written}: a panel with its labels needs at least {NARROWEST:g}in")
    shown = named(source, panel)
    room = Room(inches, max(SHAPE * inches, LOWEST), LETTERS, SMALLEST)
    prepared = _drawable(shown, source, room)
    marks = [tag for tag in tags(_only(source, shown)) if tag in SERIOUS]
    picture = _build(prepared, inches, marks)
    provenance = record(source.figure, source.sidecar, root, {"panel": shown.id, "width": written})
    base = stem.with_name(f"{stem.name}.{shown.id}")
    files = save(picture, base, formats, provenance)
    text = base.with_name(f"{base.name}.caption.txt")
    atomically(text, f"{caption(source, shown, prepared)}\n".encode())
    return [*files, text]


def draw_panel(
    ax: Axes,
    figure: str | Path,
    panel: str,
    *,
    tier: str | None = None,
    results: str | Path | None = None,
    legend: bool = True,
) -> str:
    """Draw a panel of a figure's results into your own axes; return its caption.

    Curves, published numbers, scales, labels and limits are those of ``fedrepro plot``; letters and lines have the
    sizes in matplotlib's ``rcParams``. The panel has no title and no tags; the caption states what a reader needs to
    know about the results (partial trials, stand-in data, a smaller tier). Only ``ax`` is changed.

    ax : empty axes with their final size. figure : ``paper/figure`` or the path of a spec. panel : its id or letter.
    tier : ``paper``, ``quick`` or ``smoke``; None for the first of these that has results. results : folder of the
    results; None for that of the current project. legend : whether to add a legend, which also lists curves without
    results; without it ``ax.legend()`` makes one of the curves.

    Warns (``StaleResults``) if the results are stale. Raises UserError if there is no such figure or panel, it has no
    results, or it is a table or several pictures.

    Example:
        >>> import matplotlib.pyplot as plt
        >>> from fedrepro.plotting import draw_panel
        >>> fig, (left, right) = plt.subplots(1, 2)
        >>> caption = draw_panel(left, "fedc/fig5", "c", tier="paper")  # doctest: +SKIP
    """
    source = _results_of(figure, tier, results)
    shown = named(source, panel)
    prepared = _drawable(shown, source, _room_of(ax))
    warn_of_stale(source.figure, source.stale)
    assert prepared.draw is not None
    prepared.draw(ax, "")
    if legend:
        write(ax, prepared.entries)
    literal_dollars(ax)
    return caption(source, shown, prepared)


def named(source: FigureData, panel: str) -> Panel:
    """Return a panel of the figure by its id or letter. Raises UserError."""
    found = panel_names.find(source.figure, panel)
    if found is None:
        raise UserError(f"{source.figure.name} has no panel '{panel}'{panel_names.known([source.figure], panel)}")
    return found


def caption(source: FigureData, shown: Panel, prepared: Prepared) -> str:
    """Return one paragraph: what the panel shows, the state of its results, notes and footer."""
    figure, own = source.figure, _only(source, shown)
    title = panel_title(source, figure.panels.index(shown)) if bare_title(source, shown) else ""
    parts = [
        ": ".join(part for part in (figure.title, title) if part),
        figure.source,
        *in_sentences(own, panel_notes(own, [prepared]), "; "),
    ]
    sentences = (part.strip().rstrip(".") for part in parts)
    return " ".join(f"{naming.plain(naming.symbols(part))}." for part in sentences if part)


def _only(source: FigureData, shown: Panel) -> FigureData:
    """Return a figure's results as those of one panel."""
    figure = dataclasses.replace(source.figure, panels=(shown,))
    return dataclasses.replace(source, figure=figure, sidecar=sidecar_of(shown, source.sidecar))


def _results_of(figure: str | Path, tier: str | None, results: str | Path | None) -> FigureData:
    root = Path(results) if results is not None else project() / "results"
    path = find_spec(str(figure))
    if tier is not None and tier not in TIERS:
        raise UserError(f"'{tier}' is not a tier{nearest(tier, TIERS)} (tiers: {', '.join(TIERS)})")
    chosen = largest_tier(path, tier or BEST, root)
    missing.require(path, tier or BEST, root, named_by=missing.ARGUMENT)
    return FigureData.read(path, chosen, root)


def _room_of(ax: Axes) -> Room:
    """Return the room of the user's own axes, with the sizes of their letters."""
    import matplotlib
    from matplotlib.font_manager import FontProperties

    box = ax.get_window_extent()
    dpi = ax.get_figure(root=True).dpi  # type: ignore[union-attr]
    size = FontProperties(size=matplotlib.rcParams["axes.labelsize"]).get_size_in_points()
    return Room(box.width / dpi + LABELS, box.height / dpi + LABELS, size, 0.85 * size, above=False)


def _drawable(shown: Panel, source: FigureData, room: Room) -> Prepared:
    """Return a prepared panel that has one pair of axes and results. Raises UserError."""
    check_panel(shown)
    name = f"panel '{shown.id}' of {source.figure.name}"
    prepared = prepare(shown, source, room)
    if prepared.draw is None:
        kind = "a table" if shown.kind == "table" else "several pictures side by side"
        use = "; `fedrepro show FIGURE --format latex` writes tables" if shown.kind == "table" else ""
        raise UserError(f"{name} is {kind}, which one pair of axes cannot show{use}")
    if why := lacking(shown, prepared, source):
        raise UserError(f"{name}: {why}")
    return prepared


def _build(prepared: Prepared, inches: float, marks: Sequence[str] = ()) -> MplFigure:
    """Return the picture: tags, the panel, and below it a legend across its width."""
    import matplotlib

    with style.context(), matplotlib.rc_context(RC):
        legends = arrange([[prepared]], [inches - 2 * EDGE], LETTERS)[0]
        below = sum(legend.height for legend in legends)
        above = STRIP if marks else 0.0
        total = above + prepared.size[1] + below
        edges = (EDGE / inches, (below + EDGE) / total, 1 - 2 * EDGE / inches, 1 - (above + below + 2 * EDGE) / total)
        picture = new_picture((inches, total), edges, 300, w_pad=0.0, h_pad=0.02, wspace=0.0, hspace=0.02)
        prepared.paint(picture, picture.add_gridspec(1, 1)[0, 0], "")
        for legend in legends:
            legend.draw(picture.add_axes((0.0, 0.0, 1.0, below / total)))
        paint_tags(picture, marks, inches - EDGE, total - EDGE, total, SMALLEST)
        literal_dollars(picture)
        settle(picture)
    return picture
