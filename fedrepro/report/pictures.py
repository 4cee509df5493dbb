"""Panels as they stand in the page: curves as inline SVG with tooltips, large panels as PNG, tables as HTML tables."""

from __future__ import annotations

import base64
import colorsys
import dataclasses
import html
import io
import re
from typing import Any

import numpy as np

from fedrepro.plotting import style, tables
from fedrepro.plotting.data import Source
from fedrepro.plotting.figure import METADATA, build
from fedrepro.spec.model import Figure, Panel

LARGEST = 300_000
"""Characters of SVG above which a panel becomes a PNG."""

THEMED = {
    "#ffffff": "var(--paper)",
    "#000000": "var(--ink)",
    "#1a1a1a": "var(--ink)",
    "#dddddd": "var(--rule)",
    "#5a5a5a": "var(--faint)",
    "#262626": "var(--ink)",
}
"""Colours that follow the page's light or dark theme; those of the curves are the same in both."""


TAGS = {style.AMBER.lower(), style.AMBER_EDGE.lower()}
"""The colours of the tags, which stay amber."""


def panel(source: Source, one: Panel, prefix: str) -> str:
    """The panel as HTML; ``prefix`` makes its ids unique in the page."""
    if one.kind == "table":
        return table(source, one)
    picture = build(alone(source.figure, one), source.frame, _facts(source, one), source.points)
    tips = _name_curves(picture)
    label = html.escape(f"{source.figure.title}: {titled(one)}", quote=True)
    text = _save(picture, "svg").decode()
    if len(text) > LARGEST:
        inches = picture.get_size_inches()
        data = base64.b64encode(_save(picture, "png")).decode()
        return (
            f'<img class="picture" alt="{label}" style="max-width:{inches[0] * 96:.0f}px" '
            f'src="data:image/png;base64,{data}">'
        )
    return inline(text, prefix, label, tips)


def titled(one: Panel) -> str:
    """The panel's letter and title."""
    return f"({one.id}) {one.title}".strip()


def alone(figure: Figure, one: Panel) -> Figure:
    """The figure with this panel only, and without the title that the page has already."""
    return dataclasses.replace(
        figure, panels=(dataclasses.replace(one, title=titled(one)),), title="", source="", columns=1
    )


def _facts(source: Source, one: Panel) -> dict[str, Any]:
    """The sidecar with what concerns this panel's datasets only, so that its tags are its own."""
    names = {curve.setting.dataset for curve in one.curves}
    return {
        **source.sidecar,
        "stand_ins": [name for name in source.sidecar.get("stand_ins", ()) if name in names],
        "variants": [item for item in source.sidecar.get("variants", ()) if item["dataset"] in names],
        "datasets": [item for item in source.sidecar.get("datasets", ()) if item["dataset"] in names],
    }


def _save(picture: Any, name: str) -> bytes:
    import matplotlib

    out = io.BytesIO()
    with style.context(), matplotlib.rc_context({"svg.fonttype": "none"}):  # text stays text: smaller, and selectable
        picture.savefig(out, format=name, metadata=METADATA[name])
    return out.getvalue()


def _name_curves(picture: Any) -> dict[str, str]:
    """Give every labelled line of the picture an id, and return what a tooltip on it says."""
    tips: dict[str, str] = {}
    for axes in picture.axes:
        for line in axes.get_lines():
            label = str(line.get_label())
            if label.startswith("_"):
                continue
            gid = f"curve{len(tips)}"
            line.set_gid(gid)
            tips[gid] = _tip(label, np.asarray(line.get_xdata(), float), np.asarray(line.get_ydata(), float))
    return tips


def _tip(label: str, x: np.ndarray, y: np.ndarray) -> str:
    keep = np.isfinite(x) & np.isfinite(y)
    if not keep.any():
        return label
    x, y = x[keep], y[keep]
    if len(set(y.tolist())) == 1:
        return f"{label}: {y[0]:.4g}"
    return f"{label}: {y[-1]:.4g} at the end (x = {x[-1]:,.6g}); from {y.min():.4g} to {y.max():.4g}"


def inline(text: str, prefix: str, label: str, tips: dict[str, str]) -> str:
    """A matplotlib SVG made part of a page: own ids, theme colours, a title on every curve."""
    body = text[text.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->|<defs>\s*<style.*?</style>\s*</defs>", "", body, flags=re.S)
    body = re.sub(r"<[^>]+>", lambda tag: re.sub(r"(\d\.\d\d)\d+", r"\1", tag[0]), body)  # hundredths of a point
    size = re.search(r'<svg[^>]*?\bwidth="([\d.]+)pt"', body)
    width = float(size.group(1)) * 96 / 72 if size else 500.0
    body = re.sub(
        r"<svg[^>]*?viewBox=\"([^\"]+)\"[^>]*>",
        rf'<svg class="picture" role="img" aria-label="{label}" viewBox="\1" style="max-width:{width:.0f}px">',
        body,
        count=1,
    )
    body = body.replace('id="tag"', 'class="tag"')
    body = re.sub(r' id="[a-z0-9.]+_\d+"', "", body)  # names that nothing refers to
    body = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}-\1"', body)
    body = re.sub(r'(href="|url\()#', rf"\1#{prefix}-", body)
    for color, variable in THEMED.items():
        body = re.sub(rf"(fill|stroke|stop-color): {color}\b", rf"\1: {variable}", body, flags=re.I)
    body = re.sub(r"font(-family)?: ([^;\"]*?)'DejaVu Sans'[^;\"]*", r"font\1: \2var(--plot)", body)
    body = re.sub(r"(fill|stroke): (#[0-9a-f]{6})\b", _both_themes, body, flags=re.I)
    for gid, tip in tips.items():
        body = body.replace(
            f'<g id="{prefix}-{gid}">', f'<g id="{prefix}-{gid}" class="curve"><title>{html.escape(tip)}</title>', 1
        )
    return re.sub(r"\n\s*", "\n", body).strip()


def _both_themes(found: re.Match[str]) -> str:
    """A curve's colour, and beside it the lighter one of the same hue that a dark page takes."""
    name, color = found.groups()
    if color.lower() in TAGS:
        return found.group(0)
    red, green, blue = (int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
    hue, lightness, saturation = colorsys.rgb_to_hls(red, green, blue)
    lifted = colorsys.hls_to_rgb(hue, 0.5 + 0.4 * lightness, saturation)
    light = "#" + "".join(f"{round(255 * value):02x}" for value in lifted)
    return f"{name}: {color}; {name}: light-dark({color}, {light})"


def table(source: Source, one: Panel) -> str:
    """A table panel: ours with its spread, and below it the paper's number with the difference."""
    cells = tables.table(source.figure, one, source.frame, source.sidecar)
    rows, columns, texts = tables.grid(one, cells)
    head = "".join(f"<th scope=col>{html.escape(c)}</th>" for c in columns)
    body = ""
    for row in rows:
        found = [texts.get((row, column), ("", "")) for column in columns]
        filled = "".join(
            f"<td>{html.escape(ours)}" + (f"<small>{html.escape(paper)}</small>" if paper else "") + "</td>"
            for ours, paper in found
        )
        body += f"<tr><th scope=row>{html.escape(row)}</th>{filled}</tr>\n"
    caption = html.escape(titled(one), quote=True)
    return (
        f'<p class="caption">{caption}</p><div class="scroll"><table class="numbers" aria-label="{caption}">'
        f"<thead><tr><td></td>{head}</tr></thead><tbody>\n{body}</tbody></table></div>"
    )
