"""The numbers of published tables beside ours, with the figure's own values and with other ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedrepro.alternatives import kept_results
from fedrepro.alternatives.cases import Case
from fedrepro.alternatives.kept_results import Numbers
from fedrepro.plotting import tables
from fedrepro.plotting.series import FigureData
from fedrepro.spec import panels
from fedrepro.spec.model import Panel

Place = tuple[str, str]
"""A row and a column of a table."""


@dataclass(frozen=True)
class Other:
    """Our number with other values, nan if there is none.

    name : of their set. note : what became of some trials, '' for nothing. same : the number with the figure's own
    values over the same trials.
    """

    name: str
    value: float
    trials: int
    note: str
    same: float


@dataclass(frozen=True)
class PublishedNumber:
    """A number of a published table, ours, and ours with every set of other values that changes it.

    panel : of the figure. row, column : the place in its table. paper, ours : scaled as in the table. trials : of ours.
    """

    panel: Panel
    row: str
    column: str
    paper: float
    ours: float
    trials: int
    others: tuple[Other, ...]

    @property
    def name(self) -> str:
        """Row and column as one text."""
        return f"{self.row} {self.column}".strip()

    def text(self, value: float) -> str:
        """Return a value with the digits of the table."""
        if np.isnan(value):
            return "none"
        return tables.number(value, panels.TableOptions.of(self.panel).digits)


@dataclass(frozen=True)
class Distance:
    """The mean distance of ``numbers`` numbers from the published ones, with our values and with those of a set."""

    panel: Panel
    name: str
    numbers: int
    ours: float
    others: float


def beside(own: Numbers, cases: Sequence[Case], root: Path) -> list[PublishedNumber]:
    """Return the published numbers of a figure's tables that cases with results change."""
    return [number for panel in own.figure.panels if panel.kind == "table" for number in _of(panel, own, cases, root)]


def _of(panel: Panel, own: Numbers, cases: Sequence[Case], root: Path) -> Iterator[PublishedNumber]:
    published = panels.table(panel).published()
    if not published:
        return
    others: dict[Place, list[Other]] = {}
    for case in cases:
        for place, other in _changed(panel, own, case, root).items():
            others.setdefault(place, []).append(other)
    ours = _cells(panel, own)
    for place, paper in published.items():
        if place in others:
            yield PublishedNumber(panel, *place, float(paper), *ours[place][:2], tuple(others[place]))


def _changed(panel: Panel, own: Numbers, case: Case, root: Path) -> Mapping[Place, Other]:
    """Return our numbers in the cells that a case changes; cells without any number of ours are left out."""
    other = next(shown for shown in case.changed.panels if shown.id == panel.id)
    curves = panels.table(other).cells()
    changed = [place for place, (curve, _) in curves.items() if curve.setting.series in case.series]
    numbers = kept_results.numbers(case, own, root) if changed else None
    if numbers is None:
        return {}
    trials = numbers.frame.loc[numbers.frame["series"].isin(case.series), "trial"].unique().tolist()
    ours, theirs = _cells(panel, own.over(trials)), _cells(other, numbers.over(trials))
    read = {place: (*theirs[place], ours[place][0]) for place in changed}
    return {
        place: Other(case.name, value, len(trials), note, same)
        for place, (value, _, note, same) in read.items()
        if not np.isnan([value, same]).all()
    }


def _cells(panel: Panel, numbers: Numbers) -> dict[Place, tuple[float, int, str]]:
    """Return mean, number of trials and note of every cell."""
    source = FigureData(numbers.figure, numbers.frame, numbers.sidecar)
    cells = tables.cells_of(source, panel)
    notes = cells["status"].replace("ok", "").tolist()
    values = zip(cells["mean"].tolist(), cells["trials"].tolist(), notes, strict=True)
    return dict(zip(panels.table(panel).cells(), values, strict=True))


def distances(numbers: Iterable[PublishedNumber]) -> list[Distance]:
    """Return how far each set is from a table's published numbers, over the numbers and trials that the set has."""
    pairs: dict[tuple[str, str], list[tuple[PublishedNumber, Other]]] = {}
    for number in numbers:
        for other in (other for other in number.others if np.isfinite(other.value - other.same)):
            pairs.setdefault((number.panel.id, other.name), []).append((number, other))
    return [
        Distance(
            of[0][0].panel, name, len(of),
            float(np.mean([abs(other.same - number.paper) for number, other in of])),
            float(np.mean([abs(other.value - number.paper) for number, other in of])),
        )
        for (_, name), of in pairs.items()
    ]  # fmt: skip
