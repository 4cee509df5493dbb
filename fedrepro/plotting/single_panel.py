"""One panel by itself: as wide as a column of text, with its caption in a file; or in axes of the user's own."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedrepro.errors import UserError, nearest
from fedrepro.files import atomically
from fedrepro.plotting import naming, style
from fedrepro.plotting.figure import (
    check_formats,
    lacking,
    literal_dollars,
    panel_notes,
    panel_title,
    prepare,
    save,
    settle,
)
from fedrepro.plotting.header_footer import footer_parts, tags
from fedrepro.plotting.legend import arrange, write
from fedrepro.plotting.panel_axes import Prepared, Room
from fedrepro.plotting.provenance import record
from fedrepro.plotting.series import FigureData
from fedrepro.results.read import points, stem, with_results
from fedrepro.spec.find import find_spec, project
from fedrepro.spec.model import Panel
from fedrepro.spec.panels import check_panel
from fedrepro.spec.tiers import TIERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as MplFigure

LETTERS, SMALLEST = 8.0, 7.0
"""Size of the letters of a panel in a column, and of those that name the curves that leave it, in points."""
SHAPE, LOWEST = 0.74, 2.1
"""Height of such a panel with its labels, as a share of its width, and at least, in inches."""
NARROWEST = 2.0
"""Least width in inches at which labels and numbers have room."""
LABELS = 0.75
"""What the labels of axes take of a panel's width, and of its height, in inches."""
EDGE = 0.03
"""Margin around a panel in a column, in inches."""

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


def draw_alone(
    source: FigureData,
    panel: str,
    width: tuple[float, str],
    stem: Path,
    formats: Sequence[str],
    root: Path | None = None,
) -> list[Path]:
    """Write ``<stem>.<panel>.<format>`` for every format, and ``<stem>.<panel>.caption.txt``; returns the files.

    The picture has no title and no tags: what must be known of its results says the caption, which belongs below it.
    width : in inches, and as the user wrote it. root : as in ``figure.draw``. Raises UserError where there is no such
    panel, it has no results, it is of a kind with other axes than one pair, or the width is none for it.
    """
    check_formats(formats)
    inches, written = width
    if not inches >= NARROWEST:
        raise UserError(f"--width {written}: a panel with its labels needs at least {NARROWEST:g}in")
    one = named(source, panel)
    room = Room(inches, max(SHAPE * inches, LOWEST), LETTERS, SMALLEST)
    prepared = _drawable(one, source, room)
    picture = _build(prepared, inches)
    said = record(source.figure, source.sidecar, root, {"panel": one.id, "width": written})
    base = stem.with_name(f"{stem.name}.{one.id}")
    files = save(picture, base, formats, said)
    text = base.with_name(f"{base.name}.caption.txt")
    atomically(text, f"{caption(source, one, prepared)}\n".encode())
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
    """Draw a panel of a figure's results into axes of one's own; returns its caption.

    Curves, published numbers, scales, labels and limits are those that ``fedrepro plot`` draws; letters and lines have
    the sizes that matplotlib's ``rcParams`` say. There is no title and no tag: what must be known of the results
    (partial trials, stand-in data, a smaller tier) the caption says. Nothing but ``ax`` is changed.

    ax : where to draw; empty, of the size that it will have. figure : ``paper/figure`` or the path of a spec. panel :
    its letter. tier : ``paper``, ``quick`` or ``smoke``; None for the first of these that has results. results : the
    folder with results; None for that of the project one is in. legend : whether ``ax`` gets a legend, which also says
    of which curves there are no results; without it ``ax.legend()`` still makes one of the curves.

    Raises UserError where there is no such figure or panel, it has no results, or it is a table or several pictures.

    Example:
        >>> import matplotlib.pyplot as plt
        >>> from fedrepro.plotting import draw_panel
        >>> fig, (left, right) = plt.subplots(1, 2)
        >>> caption = draw_panel(left, "fedc/fig5", "c", tier="paper")  # doctest: +SKIP
    """
    source = _results_of(figure, tier, results)
    one = named(source, panel)
    prepared = _drawable(one, source, _room_of(ax))
    assert prepared.draw is not None
    prepared.draw(ax, "")
    if legend:
        write(ax, prepared.entries)
    literal_dollars(ax)
    return caption(source, one, prepared)


def named(source: FigureData, panel: str) -> Panel:
    """A panel of the figure by its letter. Raises UserError."""
    found = {one.id: one for one in source.figure.panels}
    if panel not in found:
        name = f"{source.figure.paper}/{source.figure.figure}"
        raise UserError(f"{name} has no panel '{panel}'{nearest(panel, found)} (panels: {', '.join(found)})")
    return found[panel]


def caption(source: FigureData, one: Panel, prepared: Prepared) -> str:
    """One paragraph: what the panel shows, what must be known of its results, notes and footer."""
    figure = source.figure
    title = panel_title(source, figure.panels.index(one))
    own = dataclasses.replace(
        source,
        figure=dataclasses.replace(figure, panels=(one,)),
        sidecar=source.sidecar.only(curve.setting.dataset for curve in one.curves),
    )
    parts = [
        ": ".join(part for part in (figure.title, title) if part),
        figure.source,
        "; ".join(tags(own)),
    ]
    parts.append("; ".join(footer_parts(own, panel_notes(own, [prepared]))))
    said = (part.strip().rstrip(".") for part in parts)
    return " ".join(f"{naming.plain(naming.symbols(part))}." for part in said if part)


def _results_of(figure: str | Path, tier: str | None, results: str | Path | None) -> FigureData:

    root = Path(results) if results is not None else project() / "results"
    path = find_spec(str(figure))
    if tier is not None and tier not in TIERS:
        raise UserError(f"'{tier}' is not a tier{nearest(tier, TIERS)} (tiers: {', '.join(TIERS)})")
    tiers = TIERS[::-1] if tier is None else (tier,)
    found = next((one for name in tiers for one in with_results([path], name, root)), None)
    if found is None:
        raise UserError(
            f"{path}: no results at the {' or the '.join(tiers)} tier in {root}; `fedrepro run {path}` makes them"
        )
    return FigureData(*found, points(stem(root, found[0]), found[2]))


def _room_of(ax: Axes) -> Room:
    """The room of axes of the user's own, and the letters that they are set in."""
    import matplotlib
    from matplotlib.font_manager import FontProperties

    box = ax.get_window_extent()
    dpi = ax.get_figure(root=True).dpi  # type: ignore[union-attr]
    size = FontProperties(size=matplotlib.rcParams["axes.labelsize"]).get_size_in_points()
    return Room(box.width / dpi + LABELS, box.height / dpi + LABELS, size, 0.85 * size, above=False)


def _drawable(one: Panel, source: FigureData, room: Room) -> Prepared:
    """A panel worked out, of one pair of axes and with results. Raises UserError."""
    check_panel(one)
    name = f"panel '{one.id}' of {source.figure.paper}/{source.figure.figure}"
    prepared = prepare(one, source, room)
    if prepared.draw is None:
        kind = "a table" if one.kind == "table" else "several pictures side by side"
        use = "; `fedrepro show FIGURE --format latex` writes tables" if one.kind == "table" else ""
        raise UserError(f"{name} is {kind}, which one pair of axes cannot show{use}")
    if why := lacking(one, prepared, source):
        raise UserError(f"{name}: {why}")
    return prepared


def _build(prepared: Prepared, inches: float) -> MplFigure:
    """The picture: the panel, and below it a legend across its width."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Picture

    with style.context(), matplotlib.rc_context(RC):
        legends = arrange([[prepared]], [inches - 2 * EDGE], LETTERS)[0]
        below = sum(legend.height for legend in legends)
        total = prepared.size[1] + below
        picture = Picture(figsize=(inches, total), dpi=300, layout="constrained")
        FigureCanvasAgg(picture)
        edges = (EDGE / inches, (below + EDGE) / total, 1 - 2 * EDGE / inches, 1 - (below + 2 * EDGE) / total)
        engine: Any = picture.get_layout_engine()
        engine.set(rect=edges, w_pad=0.0, h_pad=0.02, wspace=0.0, hspace=0.02)
        prepared.paint(picture, picture.add_gridspec(1, 1)[0, 0], "")
        for legend in legends:
            legend.draw(picture.add_axes((0.0, 0.0, 1.0, below / total)))
        literal_dollars(picture)
        settle(picture)
    return picture
