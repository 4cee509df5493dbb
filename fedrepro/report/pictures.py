"""Panels for the pages: curves as SVG with tooltips, large panels as PNG, tables as HTML tables."""

from __future__ import annotations

import colorsys
import dataclasses
import functools
import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from markupsafe import Markup

from fedrepro.plotting import naming, style, tables
from fedrepro.plotting.figure import METADATA, compose, lacking, prepare
from fedrepro.plotting.header_footer import sidecar_of
from fedrepro.plotting.series import FigureData
from fedrepro.report.render import render
from fedrepro.spec.model import Figure, Panel

LARGEST = 300_000
"""Characters of SVG above which a panel becomes a PNG."""

DOTS = 110
"""Resolution of PNGs, per inch."""

THEMED = {
    "#ffffff": "var(--paper)",
    "#000000": "var(--ink)",
    "#1a1a1a": "var(--ink)",
    "#dddddd": "var(--rule)",
    "#5a5a5a": "var(--faint)",
    "#262626": "var(--ink)",
}
"""Colours that follow the page's light or dark theme."""


TAGS = {style.AMBER.lower(), style.AMBER_EDGE.lower()}
"""The colours of the tags, which stay amber."""


@dataclass(frozen=True)
class Drawing:
    """A drawn panel: picture files by format, or HTML for a table or a panel without results.

    spot : returns the place of a data point in the picture, as shares of its width and height from the upper left, and
    whether it is inside the axes. size : width and height in pixels. limits : of the x and the y axis.
    """

    markup: Markup
    files: Mapping[str, bytes] = field(default_factory=dict)
    size: tuple[int, int] = (0, 0)
    spot: Callable[[float, float], tuple[float, float, bool] | None] = lambda x, y: None
    limits: tuple[tuple[float, float], tuple[float, float]] | None = None


def drawing(source: FigureData, panel: Panel, prefix: str, formats: Sequence[str] = ("svg", "pdf")) -> Drawing:
    """Return the panel as files of these formats, but as PNG instead of a large SVG; tables as HTML.

    prefix : makes the ids of an SVG unique in a page.
    """
    if panel.kind == "table":
        return Drawing(table(source, panel))
    sidecar = sidecar_of(panel, source.sidecar)  # only its own tags
    own = source.of(figure_of(source.figure, panel), sidecar)
    with style.context():
        prepared = prepare(own.figure.panels[0], own)
        if why := lacking(panel, prepared, source):
            return Drawing(Markup("<p>{}: {}</p>").format(titled(panel), why))
        picture = compose(own, [prepared])
        tips = _name_curves(picture)
        text = _save(picture, "svg").decode()
        large = len(text) > LARGEST
        files = {"pdf": _save(picture, "pdf")} if "pdf" in formats else {}
        if large:
            files["png"] = _png(picture)
    if not large:
        files["svg"] = _as_file(inline(text, prefix, f"{source.figure.title}: {titled(panel)}", tips)).encode()
    width, height = (round(96 * float(inches)) for inches in picture.get_size_inches())
    shown = picture.axes[0]
    return Drawing(Markup(), files, (width, height), _spots(picture), (shown.get_xlim(), shown.get_ylim()))


def _png(picture: Any) -> bytes:
    """Return the picture as PNG with at most 128 colours, which takes a third of the bytes."""
    from PIL import Image

    out, dpi = io.BytesIO(), picture.get_dpi()
    picture.set_dpi(DOTS)
    picture.canvas.draw()
    picture.set_dpi(dpi)
    with Image.fromarray(np.asarray(picture.canvas.renderer.buffer_rgba())) as drawn:
        drawn.convert("RGB").quantize(128, dither=Image.Dither.NONE).save(out, format="PNG", optimize=True)
    return out.getvalue()


def _spots(picture: Any) -> Callable[[float, float], tuple[float, float, bool] | None]:
    """Return a function from data points to places in a picture (see ``Drawing``), None for those without one."""
    axes = picture.axes[0]

    def spot(x: float, y: float) -> tuple[float, float, bool] | None:
        with np.errstate(divide="ignore", invalid="ignore"):
            across, up = picture.transFigure.inverted().transform(axes.transData.transform((x, y)))
        if not (np.isfinite(across) and np.isfinite(up)):
            return None
        box = axes.get_position()
        inside = box.x0 - 1e-3 <= across <= box.x1 + 1e-3 and box.y0 - 1e-3 <= up <= box.y1 + 1e-3
        return float(np.clip(across, box.x0, box.x1)), 1 - float(np.clip(up, box.y0, box.y1)), bool(inside)

    return spot


STYLE = """<style>:root { color-scheme: light dark; --paper: #ffffff; --ink: #1b1d1f; --faint: #5b6167; --rule: #dcdfe2;
  --plot: "DejaVu Sans", Verdana, "Bitstream Vera Sans", sans-serif; }
@media (prefers-color-scheme: dark) { :root { --paper: #15181b; --ink: #e4e6e8; --faint: #a2a9b0; --rule: #343a40; } }
* { stroke-linejoin: round; stroke-linecap: butt; } text { fill: var(--ink); } .tag text { fill: #2b1d00; }</style>"""
"""The styles of a picture in its own file; in a page the style sheet has them."""


def _as_file(markup: Markup) -> str:
    """Return the picture as its own file."""
    names = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    head, _, rest = str(markup).replace("<svg", names, 1).partition(">")
    return f"{head}>\n{STYLE}{rest}\n"


def titled(panel: Panel) -> str:
    """Return the panel's letter and title."""
    return f"({panel.id}) {panel.title}".strip()


def figure_of(figure: Figure, panel: Panel) -> Figure:
    """Return the figure with this panel only, and without the title, which the page has."""
    return dataclasses.replace(
        figure, panels=(dataclasses.replace(panel, title=titled(panel)),), title="", source="", columns=1
    )


def _save(picture: Any, name: str) -> bytes:
    import matplotlib

    out = io.BytesIO()
    fonts: dict[Any, Any] = {
        "svg.fonttype": "none",
        "pdf.fonttype": 3,
    }  # text stays text; three times as fast as cutting fonts to size
    with matplotlib.rc_context(fonts):
        picture.savefig(out, format=name, metadata=METADATA[name], dpi=DOTS)
    return out.getvalue()


def _name_curves(picture: Any) -> dict[str, str]:
    """Give every labelled line of the picture an id, and return its tooltip."""
    tips: dict[str, str] = {}
    for axes in picture.axes:
        for line in axes.get_lines():
            label = str(line.get_label())
            if label.startswith("_"):
                continue
            gid = f"curve{len(tips)}"
            line.set_gid(gid)
            tips[gid] = _tip(
                naming.plain(label), np.asarray(line.get_xdata(), float), np.asarray(line.get_ydata(), float)
            )
    return tips


def _tip(label: str, x: np.ndarray, y: np.ndarray) -> str:
    keep = np.isfinite(x) & np.isfinite(y)
    if not keep.any():
        return label
    x, y = x[keep], y[keep]
    if len(set(y.tolist())) == 1:
        return f"{label}: {y[0]:.4g}"
    return f"{label}: {y[-1]:.4g} at the end (x = {x[-1]:,.6g}); from {y.min():.4g} to {y.max():.4g}"


def inline(text: str, prefix: str, label: str, tips: Mapping[str, str]) -> Markup:
    """Return a matplotlib SVG as part of a page: unique ids, theme colours, a title on every curve.

    Matplotlib's output is markup with escaped texts; ``label`` and ``tips`` are plain text and are escaped here.
    """
    body = text[text.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->|<defs>\s*<style.*?</style>\s*</defs>", "", body, flags=re.S)
    size = re.search(r'<svg[^>]*?\bwidth="([\d.]+)pt"', body)
    width = float(size.group(1)) * 96 / 72 if size else 500.0
    names = _names(body, prefix, tips)
    body = re.sub(r"<[^>]+>", lambda tag: _themed(_renamed(_shortened(tag[0]), names)), body)  # no text between tags
    opening = Markup('<svg class="picture" role="img" aria-label="{}" viewBox="{}" style="max-width:{}px">')
    written = re.compile(r'<svg[^>]*?viewBox="([^"]+)"[^>]*>')
    body = written.sub(lambda tag: opening.format(label, tag[1], f"{width:.0f}"), body, count=1)
    for gid, tip in tips.items():
        opened = f'<g id="{names[gid]}"'
        body = body.replace(f"{opened}>", Markup('{} class="curve"><title>{}</title>').format(Markup(opened), tip), 1)
    return Markup(re.sub(r"\n\s*", "\n", body).strip())


def _shortened(tag: str) -> str:
    """Return the tag with coordinates cut to hundredths of a point."""
    return re.sub(r"(\d\.\d\d)\d+", r"\1", tag)


def _names(body: str, prefix: str, tips: Mapping[str, str]) -> dict[str, str]:
    """Return the names in the page of curves and of ids with references.

    Matplotlib makes ids from floating-point numbers, whose last digits differ between layouts.
    """
    used = {id_ for tag in re.findall(r"<[^>]+>", body) for id_ in re.findall(r'(?:href="|url\()#([^")]+)', tag)}
    ids = dict.fromkeys(re.findall(r'<[^>]*?\bid="([^"]+)"', body))
    numbered = {name: f"{prefix}-{number}" for number, name in enumerate(name for name in ids if name in used)}
    return numbered | {gid: f"{prefix}-{gid}" for gid in tips}


def _renamed(tag: str, names: Mapping[str, str]) -> str:
    """Return the tag with the page's names for ids and references; ids without references are removed."""
    if 'id="' not in tag and "#" not in tag:
        return tag
    tag = tag.replace('id="tag"', 'class="tag"')
    tag = re.sub(r' id="([^"]+)"', lambda match: f' id="{names[match[1]]}"' if match[1] in names else "", tag)
    return re.sub(r'(href="|url\()#([^")]+)', lambda match: f"{match[1]}#{names[match[2]]}", tag)


def _themed(tag: str) -> str:
    """Return the tag with colours that follow the page's theme, and the page's font."""
    if "font" in tag:
        tag = re.sub(r"font(-family)?: ([^;\"]*?)'DejaVu Sans'[^;\"]*", r"font\1: \2var(--plot)", tag)
    return re.sub(r"(fill|stroke|stop-color): (#[0-9a-f]{6})\b", _both_themes, tag, flags=re.I) if "#" in tag else tag


def _both_themes(match: re.Match[str]) -> str:
    """Return a colour that follows the theme; for a curve, its own and a lighter one of its hue for dark pages."""
    name, color = match.groups()
    if color.lower() in THEMED:
        return f"{name}: {THEMED[color.lower()]}"
    if color.lower() in TAGS or name.lower() == "stop-color":
        return match.group(0)
    return f"{name}: {color}; {name}: light-dark({color}, {lighter(color)})"


@functools.cache
def lighter(color: str) -> str:
    """Return the lighter colour of the same hue for dark pages."""
    red, green, blue = (int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
    hue, lightness, saturation = colorsys.rgb_to_hls(red, green, blue)
    light = colorsys.hls_to_rgb(hue, 0.5 + 0.4 * lightness, saturation)
    return "#" + "".join(f"{round(255 * value):02x}" for value in light)


def table(source: FigureData, panel: Panel) -> Markup:
    """Return a table panel: ours with its spread, and below it the paper's number with the difference."""
    shown = tables.grid(panel, tables.cells_of(source, panel))
    filled = [
        (row, [(*shown.cells[row, column], (row, column) in shown.best) for column in shown.columns])
        for row in shown.rows
    ]
    return render("numbers.html", caption=titled(panel), columns=shown.columns, rows=filled)
