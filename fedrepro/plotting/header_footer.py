"""Header and footer of a figure: title, source, tags for anything short of the published experiment, and notes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fedrepro import registry
from fedrepro.claims import evidence
from fedrepro.plotting import naming, style
from fedrepro.plotting.series import FigureData
from fedrepro.results import lacking_trials
from fedrepro.results.schema import Sidecar
from fedrepro.spec.find import is_study
from fedrepro.spec.model import Figure, Panel
from fedrepro.spec.tiers import TIERS

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MplFigure

MARGIN, TAG = 0.12, 0.32
"""Outer margin of the figure and height of a line of tags, in inches."""

STATES = {"present": "real", "none needed": "generated"}
"""Names for readers of the states of a dataset."""

ABSENT = re.compile(r"the dataset (\S+) is (absent|damaged)")
"""The reason of a sidecar for curves without results."""

COUNTED = re.compile(r"(\d+) curves?: (.+)")
"""What curves lack, in the words of a sidecar."""

NUMBERS = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten")

OWN_FILE = "own file"
"""The state of a user's own file, which is shown by its name."""


SERIOUS = ("STALE", "STAND-IN DATA")
"""Tags of results that say nothing about a paper or about today's code: a picture of one panel shows them too."""


def tags(source: FigureData) -> list[str]:
    """Return how these results differ from the published experiment, most serious first."""
    sidecar, figure = source.sidecar, source.figure
    result = ["STALE"] if source.stale else []
    if sidecar.stand_ins:
        result.append("STAND-IN DATA")
    if sidecar.variants or _sizes(source):
        result.append("VARIANT DATA")
    if sidecar.changes:
        result.append("CHANGED SETTINGS")
    fewest, most, wanted = _trials(source)
    if not sidecar.complete or (sidecar.trials_done is not None and fewest < wanted):
        empty = len({setting.series for setting in figure.settings()} - _with_results(source))
        if fewest < wanted:
            result.append(f"PARTIAL: {_count(fewest, most, wanted)}")
        else:
            result.append(f"PARTIAL: {empty} curve{'s' * (empty != 1)} without results" if empty else "PARTIAL")
    if _is_smaller(figure):
        result.append(f"{figure.tier.upper()} TIER")
    return result


def sidecar_of(panel: Panel, sidecar: Sidecar) -> Sidecar:
    """Return the sidecar with the facts about a panel only: its data, the trials of its curves, and what they lack."""
    series = {curve.setting.series for curve in panel.curves}
    own = sidecar.only(curve.setting.dataset for curve in panel.curves)
    counts = [(sum(map(bool, ids)), len(ids)) for name, ids in sidecar.runs.items() if name in series]
    if not counts:
        return own
    others = filter(None, (_of_panel(text, panel, sidecar) for text in sidecar.missing))
    missing = (*others, *lacking_trials.in_words(counts))
    fewest = min(done for done, _ in counts)
    complete = sidecar.complete or (not missing and fewest >= (sidecar.trials_wanted or 0))
    return replace(own, missing=missing, trials_done=fewest, complete=complete)


def _of_panel(text: str, panel: Panel, sidecar: Sidecar) -> str:
    """Return what a panel lacks besides trials; '' if data are absent that no curve of it without results uses."""
    if lacking_trials.ENDING.search(text):
        return ""
    found = ABSENT.search(text)
    if found is None:
        return text
    lacking = {c.setting.series for c in panel.curves if c.setting.dataset == found[1]} - set(sidecar.runs)
    return f"{len(lacking)} curve{'s' * (len(lacking) > 1)}: {found[0]}" if lacking else ""


def _is_smaller(figure: Figure) -> bool:
    """Return whether results of a figure's tier are smaller than its experiment: not in a study of the user's own."""
    return figure.tier != "paper" and not (is_study(figure.paper) and figure.tier != TIERS[0])


def _sizes(source: FigureData) -> list[str]:
    """Return texts on data whose size is unknown or differs from the paper's, for curves with results."""
    curves, there = [curve for panel in source.figure.panels for curve in panel.curves], _with_results(source)
    shown = (curve for curve in curves if curve.setting.series in there)
    called = naming.aliases(curves, True, ("dataset",))
    for setting in source.figure.settings():  # an alias can consist of differing parameters only
        alias, own = setting.names.get("dataset", ""), naming.dataset(setting.dataset)
        if own not in called.get(alias, own):
            called[alias] = f"{own}, {called[alias]}"
    return list(evidence.sizes(source.figure, source.sidecar, shown, called))


def _with_results(source: FigureData) -> set[str]:
    return {series for series in source.runs.series() if source.runs.finished(series)}


def _trials(source: FigureData) -> tuple[int, int, int]:
    """Return the smallest and largest number of trials with results of a curve, and the number wanted."""
    done, wanted = source.sidecar.trials_done, source.sidecar.trials_wanted
    shown = {setting.series for setting in source.figure.settings()}
    most = max((len(source.runs.finished(series)) for series in source.runs.series() if series in shown), default=0)
    fewest = most if done is None else done
    all_ = fewest if source.figure.more else most  # a claim can ask for more trials of some curves
    return fewest, max(fewest, most), max(source.figure.wanted_trials, wanted or 0, all_)


def _count(fewest: int, most: int, wanted: int) -> str:
    done = str(fewest) if fewest == most else f"{fewest} to {most}"
    if fewest >= wanted:
        return f"{done} trial" + "s" * (most != 1)
    return f"{done} of {wanted} trials"


def footer(source: FigureData, notes: Iterable[str]) -> str:
    """Return tier, data, trials and notes on lines and marks: ``quick tier · MNIST (real) · 2 of 10 trials · ...``."""
    return " · ".join(footer_parts(source, notes))


def footer_parts(source: FigureData, notes: Iterable[str], told: Collection[str] = ()) -> list[str]:
    """Return the parts of the footer. told : datasets whose absence the picture explains elsewhere."""
    missing = [text for text in _missing(source) if not ((found := ABSENT.search(text)) and found[1] in told)]
    more = f"; and {len(missing) - 3} more" if len(missing) > 3 else ""
    return _facts(source, notes) + (["missing: " + "; ".join(missing[:3]) + more] if missing else [])


def _facts(source: FigureData, notes: Iterable[str]) -> list[str]:
    """Return the parts of the footer about the results that are there."""
    sidecar, figure = source.sidecar, source.figure
    count = _count(*_trials(source))
    if figure.tier != "paper" and figure.paper_trials != figure.wanted_trials:
        count += f" (paper tier: {figure.paper_trials})"
    parts = [
        *([f"{figure.tier} tier"] if _is_smaller(figure) or not is_study(figure.paper) else []),
        *_datasets(source),
        count,
        *dict.fromkeys(notes),
    ]
    parts += [f"stale: {reason}" for reason in source.stale]
    parts += [f"changed by --set {item}" for item in sidecar.changes]
    parts += figure.adjusted
    parts += [f"{naming.dataset(item.dataset)}: {item.note}" for item in sidecar.variants if item.note]
    return parts + _sizes(source)


def _missing(source: FigureData) -> list[str]:
    """Return what curves lack: ``10 curves: the dataset tcga is absent``, ``2 curves: 1 of 3 trials``."""
    wanted = _trials(source)[2]  # the tier's: results with fewer trials on purpose name those
    return [
        lacking_trials.ENDING.sub(lambda m: f"{m[1]} of {max(int(m[2]), wanted)} trials", without_command(text))
        for text in source.sidecar.missing
    ]


def in_sentences(source: FigureData, notes: Iterable[str], between: str) -> list[str]:
    """Return what a caption says about the results: tags, footer, and what curves lack. between : separates parts."""
    lacking = [_sentence(text) for text in _missing(source)]
    own = [tag for tag in tags(source) if not (lacking and tag.startswith("PARTIAL"))]
    return [*filter(None, ["; ".join(own)]), between.join(_facts(source, notes)), *lacking]


def _sentence(text: str) -> str:
    """Return what curves lack as a sentence: ``Ten curves have no results: the data of TCGA were absent``."""
    found = COUNTED.fullmatch(text)
    if found is None:
        return f"Missing: {text}"
    number, what = int(found[1]), found[2]
    curves = f"{NUMBERS[number] if number < len(NUMBERS) else number} {'curve has' if number == 1 else 'curves have'}"
    if lacking_trials.ENDING.fullmatch(what):
        return f"{curves} {what}"
    return f"{curves} no results: {ABSENT.sub(lambda m: f'the data of {naming.dataset(m[1])} were {m[2]}', what)}"


def without_command(reason: str) -> str:
    """Return why something is missing, without the commands that would mend it, which belong on a terminal."""
    return re.sub(r"(: |; | \()`fedrepro .*$", "", reason)


def caption(source: FigureData) -> str:
    """Return the caption of a figure's tables: its title and what a reader needs to know about the results."""
    return ". ".join(filter(None, (source.figure.title, *in_sentences(source, (), " · ")))) + "."


def _datasets(source: FigureData) -> list[str]:
    """Return each dataset with its kind: ``MNIST (real)``, ``x.csv (own file)``, generated, variant, stand-in ..."""
    sidecar = source.sidecar
    settings = source.figure.settings()
    own = [(s.dataset, label) for s in settings if (label := naming.called(s.dataset, s.dataset_params))]
    files = dict.fromkeys(f"{label} ({OWN_FILE})" for _, label in own)
    names = [d.dataset for d in sidecar.datasets] or [s.dataset for s in settings]
    names = [name for name in names if name not in dict(own)]
    kinds = {d.dataset: STATES.get(d.state, d.state) for d in sidecar.datasets}
    kinds |= dict.fromkeys(sidecar.stand_ins, "stand-in")
    for name in names:
        entry = registry.datasets().get(name)
        if name not in kinds and entry is not None:
            kinds[name] = "real" if entry.source or entry.cls.bundled else "generated"
    marks = {name: f" ({kinds[name]})" if name in kinds else "" for name in names}
    return [*(f"{naming.dataset(name)}{mark}" for name, mark in marks.items()), *files]


class Header:
    """Title and source at the top left; the tags at the top right, or in lines above if the room is too narrow."""

    def __init__(self, source: FigureData, inches: float) -> None:
        figure, self.inches = source.figure, inches
        room = inches - 2 * MARGIN
        own = tags(source)
        beside = room - sum(_tag_width(tag) for tag in own) - 0.2
        title = naming.symbols(figure.title)
        self.title = style.wrap(title, max(beside, 0.55 * room), style.TITLE, True)
        self.above: list[list[str]] = []
        self.beside = own
        if style.width(self.title, style.TITLE, True) > beside:
            self.title = style.wrap(title, room, style.TITLE, True)
            rows = style.rows_of(map(_tag_width, own), room)
            self.above, self.beside = [[own[i] for i in row] for row in rows], []
        self.source = style.wrap(figure.source, room, 8.5) if figure.source else ""
        self.title_height = 0.21 * (self.title.count("\n") + 1)
        below = 0.16 * (self.source.count("\n") + 1) if self.source else 0
        self.height = 0.22 + TAG * len(self.above) + self.title_height + below

    def paint(self, picture: MplFigure, total: float) -> None:
        """Draw the header at the top of a figure with a height of ``total`` inches."""
        left, y = MARGIN / self.inches, total - 0.1
        for line in self.above:
            paint_tags(picture, line, self.inches - MARGIN, y, total)
            y -= TAG
        paint_tags(picture, self.beside, self.inches - MARGIN, y, total)
        look: dict[str, Any] = {"va": "top", "in_layout": False}
        picture.text(left, y / total, self.title, fontsize=style.TITLE, weight="bold", gid="title", **look)
        y -= self.title_height + 0.03
        if self.source:
            picture.text(left, y / total, self.source, fontsize=8.5, color=style.FAINT, gid="source", **look)


def paint_tags(
    picture: MplFigure, line: Sequence[str], right: float, y: float, total: float, letters: float = 9.0
) -> None:
    """Draw tags in a line that ends at ``right``, below ``y`` in a figure of the height ``total``, all in inches."""
    box = {"boxstyle": "round,pad=0.32", "facecolor": style.AMBER, "edgecolor": style.AMBER_EDGE, "linewidth": 0.9}
    look: dict[str, Any] = {"fontsize": letters, "weight": "bold", "in_layout": False, "bbox": box}
    width, x = picture.get_size_inches()[0], right - 0.05
    for tag in reversed(line):
        picture.text(x / width, (y - 0.04) / total, tag, ha="right", va="top", gid="tag", **look)
        x -= _tag_width(tag, letters)


def _tag_width(tag: str, letters: float = 9.0) -> float:
    return style.width(tag, letters, True) + 0.28
