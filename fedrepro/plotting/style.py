"""Colours, markers and dashes: one colour and marker per method in every figure, and shades within a method.

A method's registry entry sets them in ``look``. Derived methods share those of their base method (see ``method``), and
different methods of a paper differ. A method without a look is drawn in ``NEUTRAL``, dark grey with octagons.

Colours are Okabe and Ito's palette, without their yellow, which is too pale on white. Several curves of one method in a
panel (a sweep over Q2, over m ...) range from light to dark around the method's own colour, and also differ in dash
pattern and marker fill, so that the picture can be read in grey. If some of them set one parameter and some another one
instead (a constant Q2, or Qhat), ``INSTEAD`` gives the first ones another hue and marker.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fedrepro import registry
from fedrepro.spec import layout
from fedrepro.spec.model import Curve

if TYPE_CHECKING:
    from matplotlib.font_manager import FontProperties

BLUE, VERMILLION, GREEN, ORANGE = "#0072B2", "#D55E00", "#009E73", "#E69F00"
PURPLE, SKY, GREY, BLACK = "#CC79A7", "#56B4E9", "#7F7F7F", "#1A1A1A"
COLOURS = {
    "blue": BLUE,
    "vermillion": VERMILLION,
    "green": GREEN,
    "orange": ORANGE,
    "purple": PURPLE,
    "sky": SKY,
    "grey": GREY,
    "black": BLACK,
}
"""The colours that registry entries can name."""

AMBER, AMBER_EDGE, FAINT = "#FFC533", "#8A5A00", "#5A5A5A"

NEUTRAL = (FAINT, "8")
"""Colour and marker of methods without a look; their curves differ like those of one method."""

INSTEAD: dict[str, tuple[str, str]] = {"Q2": (ORANGE, "v")}
"""Parameter -> colour and marker of curves that set it, if others of their method set another one instead."""

GROUPS: tuple[tuple[str, str], ...] = (
    (BLUE, "o"), (ORANGE, "^"), (GREEN, "s"), (PURPLE, "D"), (VERMILLION, "v"), (SKY, "o"), (BLACK, "^"),
    ("#950159", "s"), ("#48EC98", "D"), ("#285217", "v"), ("#351A93", "o"), ("#EDBBC9", "s"), ("#B337BF", "^"),
    ("#907BF9", "D"), ("#8B5E5A", "o"), ("#1EC132", "D"), ("#720500", "o"), ("#F490FD", "v"), ("#6135D0", "s"),
    ("#494F73", "^"), ("#D41B73", "D"), ("#27E3FD", "^"), ("#4B7B0F", "^"), ("#CAD627", "v"), ("#94B99A", "^"),
    ("#AD1E11", "D"), ("#532557", "v"), ("#A59245", "o"), ("#792190", "D"), ("#FA8882", "v"),
)  # fmt: skip
"""Colour and marker of the groups of points, largest group first. Each colour is as far as can be from those before it
(in OKLab, with normal and with colour-blind eyes), and those of one marker stay apart for all eyes."""

# From light to dark: pale lines stay solid, because a pale dotted line cannot be seen. The long dash starts off its
# beginning, because its gap would lie under the marker of a legend's sample.
DASHES: tuple[Any, ...] = (
    "solid",
    (3.0, (6.0, 1.6)),
    (0, (6.0, 1.6, 1.4, 1.6)),
    (0, (3.0, 1.4)),
    (0, (4.0, 1.3, 1.2, 1.3, 1.2, 1.3)),
    (0, (1.4, 1.2)),
)
FILLS = ("full", "none", "left", "bottom")

FONT, SMALL, TINY, TITLE = 9.5, 8.5, 8.0, 12.0
HANDLE, HANDLE_PAD, COLUMN_GAP = 3.0, 0.6, 1.3  # of a legend, in its font size

RC: dict[str, Any] = {
    "font.family": "DejaVu Sans",  # ships with matplotlib: the same letters on every machine
    "font.size": FONT,
    "axes.titlesize": 10.0,
    "axes.labelsize": FONT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.formatter.use_mathtext": True,
    "axes.formatter.limits": (-3, 4),
    "axes.xmargin": 0.02,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "legend.fontsize": SMALL,
    "legend.frameon": False,
    "legend.handlelength": HANDLE,
    "legend.handletextpad": HANDLE_PAD,
    "legend.columnspacing": COLUMN_GAP,
    "lines.linewidth": 1.7,
    "lines.markersize": 5.0,
    "pdf.fonttype": 42,
    "svg.hashsalt": "fedrepro",  # fixed ids: two draws of one figure are the same file
}


@dataclass(frozen=True)
class Look:
    """The colour, marker, dash and marker fill of one curve."""

    color: str
    marker: str
    dash: Any = "solid"
    fill: str = "full"

    def line(self) -> dict[str, Any]:
        """Return keyword arguments of a line without markers."""
        return {"color": self.color, "linestyle": self.dash}

    def points(self) -> dict[str, Any]:
        """Return keyword arguments of the markers; open markers are white inside, so that they hide the line."""
        hollow = self.fill == "none"
        return {
            "marker": self.marker,
            "fillstyle": "full" if hollow else self.fill,
            "markerfacecolor": "white" if hollow else self.color,
            "markerfacecoloralt": "white",
            "markeredgecolor": self.color,
            "markeredgewidth": 1.1,
        }


@contextmanager
def context() -> Iterator[None]:
    """Use matplotlib's defaults with ``RC`` instead of the user's settings within a block.

    Formulas, including tick labels, are typeset once, whereas matplotlib repeats it for every file. Fonts are embedded
    in PDF files without ``UNUSED`` tables, on which fontTools would spend a fifth of the time of a figure.
    """
    import matplotlib.style
    from fontTools.subset import Options
    from matplotlib.mathtext import MathTextParser

    plain, dropped = MathTextParser.parse, Options._drop_tables_default
    MathTextParser.parse = _once(plain)  # type: ignore[method-assign]
    Options._drop_tables_default = [*dropped, *UNUSED]
    try:
        with matplotlib.style.context(["default", RC]):
            yield
    finally:
        MathTextParser.parse = plain  # type: ignore[method-assign]
        Options._drop_tables_default = dropped


UNUSED = ("GDEF", "GPOS", "GSUB")
"""Tables of a font that place and replace letters; in a PDF file every letter has its place already."""

FORMULAS = 4096
"""Number of cached formulas, each in one size and resolution."""

_formulas: dict[Any, Any] = {}


def _once(plain: Callable[..., Any]) -> Callable[..., Any]:
    """Return matplotlib's typesetting of a formula with a larger cache that is shared by files."""

    def parse(parser: Any, s: str, dpi: float = 72, prop: Any = None, **how: Any) -> Any:
        key = (getattr(parser, "_output_type", parser), s, dpi, prop and prop.copy(), *how.items())
        if key not in _formulas:
            if len(_formulas) >= FORMULAS:
                _formulas.clear()
            _formulas[key] = plain(parser, s, dpi, prop, **how)
        return _formulas[key]

    return parse


def method(name: str) -> tuple[str, str]:
    """Return colour and marker of a method by its registered name.

    They are its entry's ``look``, or that of the method from which it derives: the first registered one with a look and
    the same base label, else the same class, else the closest base class. Otherwise ``NEUTRAL``.
    """
    known = registry.methods()
    if name not in known:
        return NEUTRAL
    entry, looks = known[name], [other for other in known.values() if other.look]
    label = registry.base_label(entry.label)
    kin = [entry, *(other for other in looks if registry.base_label(other.label) == label)]
    kin += [other for cls in entry.cls.__mro__ for other in looks if other.cls is cls]
    color, marker = next((other.look for other in kin if other.look), NEUTRAL)
    return COLOURS.get(color, color), marker


def group(place: int) -> tuple[str, str]:
    """Return colour and marker of a group of points; every pair is used once before any is used again."""
    turn, place = divmod(place, len(GROUPS))
    markers = list(dict.fromkeys(marker for _, marker in GROUPS))
    color, marker = GROUPS[place]
    return color, markers[(markers.index(marker) + turn) % len(markers)]


def looks(curves: Sequence[Curve]) -> list[Look]:
    """Return one look per curve of a panel; curves of one method differ in shade, dash and marker fill.

    If two values are crossed within a method (each m with each Q1), the one with more values sets the shade, and the
    other one dash and fill, so that related curves look similar. Curves that set a parameter of ``INSTEAD`` while
    others set another one form a separate sweep.
    """
    own = [method(curve.setting.algorithm) for curve in curves]
    groups: dict[tuple[str, str], list[int]] = {}
    for i, (curve, pair) in enumerate(zip(curves, own, strict=True)):
        kin = [other for other, others in zip(curves, own, strict=True) if others == pair]
        groups.setdefault(_instead(curve, kin) or pair, []).append(i)
    result: list[Look] = [Look(BLACK, "o")] * len(curves)
    for (color, marker), members in groups.items():
        places = _places([curves[i].select for i in members])
        tones = shades(color, 1 + max(shade for shade, _ in places))
        crossed = any(shade != dash for shade, dash in places)
        for i, (shade, dash) in zip(members, places, strict=True):
            fill = FILLS[(dash if crossed else shade) % len(FILLS)]
            result[i] = Look(tones[shade], marker, DASHES[dash % len(DASHES)], fill)
    return result


def _instead(curve: Curve, kin: Sequence[Curve]) -> tuple[str, str] | None:
    """Return colour and marker of the parameter that a curve sets while others of its method set another one."""
    for name, look in INSTEAD.items():
        if curve.select.get(name) is not None and any(name in c.select and c.select[name] is None for c in kin):
            return look
    return None


def _places(selects: Sequence[Mapping[str, Any]]) -> list[tuple[int, int]]:
    """Return the (shade, dash) numbers of each curve of one method."""
    names = [n for n in dict.fromkeys(name for select in selects for name in select) if n not in layout.UNUSED]
    columns = {name: [repr(select.get(name)) for select in selects] for name in names}
    varying = [name for name in names if len(set(columns[name])) > 1]
    if len(varying) == 2:
        shade, dash = sorted(varying, key=lambda name: -len(set(columns[name])))
        orders = [list(dict.fromkeys(columns[name])) for name in (shade, dash)]
        pairs = [(orders[0].index(a), orders[1].index(b)) for a, b in zip(columns[shade], columns[dash], strict=True)]
        repeated = [place for place in range(len(orders[0])) if sum(shade == place for shade, _ in pairs) > 1]
        if len(set(pairs)) == len(pairs) and len(repeated) > 1:
            return pairs
    return [(i, i) for i in range(len(selects))]


LIGHT, DARK = (0.80, 16.0, 50.0), (0.34, 19.0, 95.0)
"""For the lightest and the darkest of several tones: lightness, degrees of hue shift per additional tone, and the
largest shift."""


def shades(color: str, n: int) -> list[str]:
    """Return ``n`` tones around a colour from light to dark, evenly spaced in OKLab lightness (n = 1: the colour).

    With more tones their hue shifts farther: light ones towards yellow (not beyond), dark ones away from it. Neighbours
    then differ more than tones of one hue can, with every kind of colour vision.
    """
    if n == 1:
        return [color]
    lab = oklab(np.array([int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]))
    chroma, hue = float(np.hypot(*lab[1:])), float(np.degrees(np.arctan2(lab[2], lab[1])))
    way = (YELLOW - hue + 180) % 360 - 180
    light, dark = (min(step * (n - 1), most) for _, step, most in (LIGHT, DARK))
    ends = hue + np.copysign(min(light, abs(way)), way), hue - np.copysign(dark, way)
    hues = np.radians(np.interp(np.linspace(0, 1, n), [0, 0.5, 1], [ends[0], hue, ends[1]]))
    plane = chroma * np.stack([np.cos(hues), np.sin(hues)], axis=1)
    return [_tone(ab, lightness) for ab, lightness in zip(plane, np.linspace(LIGHT[0], DARK[0], n), strict=True)]


YELLOW = 105.0
"""The hue of yellow in OKLab, in degrees."""


# OKLab, B. Ottosson, "A perceptual color space for image processing" (2020).
_TO_CONE = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_TO_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def oklab(rgb: np.ndarray) -> np.ndarray:
    """Return lightness and the two colour coordinates of an sRGB colour with values between 0 and 1."""
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return _TO_LAB @ np.cbrt(_TO_CONE @ linear)


def _tone(ab: np.ndarray, lightness: float) -> str:
    """Return the colour with OKLab's coordinates ``ab`` and a lightness; chroma shrinks until it can be shown."""
    for chroma in np.linspace(1.0, 0.0, 41):
        cone = np.linalg.solve(_TO_LAB, np.array([lightness, *(chroma * ab)])) ** 3
        linear = np.linalg.solve(_TO_CONE, cone)
        if linear.min() >= -1e-6 and linear.max() <= 1 + 1e-6:
            break
    linear = linear.clip(0, 1)
    rgb = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return "#" + "".join(f"{round(255 * v):02X}" for v in rgb)


@functools.lru_cache(maxsize=4096)
def is_math(line: str) -> bool:
    """Return whether matplotlib can typeset the formulas of a line; otherwise its dollar signs are literal."""
    if "$" not in line:
        return True
    try:
        _extent(line, _font(FONT), True)  # cached for ``width``
    except ValueError:
        return False
    return True


def safe(part: str) -> str:
    """Return a part of a longer text, with dollar signs escaped unless they enclose formulas."""
    return part if "$" not in part or is_math(part) else part.replace("$", r"\$")


@functools.lru_cache(maxsize=4096)
def width(text: str, size: float, bold: bool = False) -> float:
    """Return the width in inches of the widest line of ``text`` in ``size`` points."""
    from matplotlib import cbook

    font = _font(size, bold)

    def inches(line: str) -> float:
        formula = bool(cbook.is_math_text(line))
        return _extent(line if formula else line.replace(r"\$", "$"), font, formula)[0] / 72

    return max((inches(safe(line)) for line in text.split("\n") if line.strip()), default=0.0)


def _font(size: float, bold: bool = False) -> FontProperties:
    from matplotlib.font_manager import FontProperties

    return FontProperties(family="DejaVu Sans", size=size, weight="bold" if bold else "normal")


def _extent(line: str, font: FontProperties, formula: bool) -> tuple[float, float, float]:
    """Return width, height and descent of a line in points. Raises ValueError for an invalid formula."""
    from matplotlib.textpath import text_to_path

    width, height, descent = text_to_path.get_text_width_height_descent(line, font, formula)
    return float(width), float(height), float(descent)


LONGEST_WORD = 30
"""Letters of the longest word that is never broken."""


def wrap(text: str, inches: float, size: float, bold: bool = False) -> str:
    """Return ``text`` in lines of at most ``inches``, broken at spaces outside formulas and inside very long words."""
    whole = " ".join(_words(text))
    if width(whole, size, bold) <= inches:  # most texts: one formula to typeset instead of one a word
        return whole
    lines: list[str] = []
    for word in itertools.chain.from_iterable(_pieces(word, inches, size, bold) for word in _words(text)):
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and width(longer, size, bold) <= inches:
            lines[-1] = longer
        else:
            lines.append(word)
    return "\n".join(lines)


def _pieces(word: str, inches: float, size: float, bold: bool) -> Iterator[str]:
    """Yield a word in pieces of at most ``inches``; formulas and words of ordinary length in one piece."""
    while "$" not in word and len(word) > LONGEST_WORD and width(word, size, bold) > inches:
        letters = bisect.bisect(range(1, len(word) + 1), inches, key=lambda n: width(word[:n], size, bold))
        yield word[: max(letters, 1)]
        word = word[max(letters, 1) :]
    yield word


def rows_of(widths: Iterable[float], room: float) -> list[list[int]]:
    """Return the indices of parts with these widths, line by line: as many per line as fit into ``room``."""
    rows: list[list[int]] = []
    used = math.inf
    for i, need in enumerate(widths):
        if used + need > room:
            rows.append([])
            used = 0.0
        rows[-1].append(i)
        used += need
    return rows


def _words(text: str) -> list[str]:
    """Return the words of a text, a formula as one word; without its end a formula is broken at every space."""
    words: list[str] = []
    for word in text.split(" "):
        if words and words[-1].count("$") % 2:
            words[-1] += f" {word}"
        else:
            words.append(word)
    return text.split(" ") if text.count("$") % 2 else words
