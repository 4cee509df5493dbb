"""Cases: one figure under one set of other values, with the claims that read a changed curve.

A set is one alternative alone, all that are printed or all that are released in a paper, or a pair.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from fedrepro.alternatives.apply import changed
from fedrepro.claims import judge
from fedrepro.errors import UserError
from fedrepro.results.read import OTHER_VALUES
from fedrepro.spec.discrepancies import Alternative, Discrepancy
from fedrepro.spec.model import Claim, Curve, Figure, Panel

TOGETHER = ("printed", "released")
"""Origins whose values are also applied all together."""

CONDITION = "condition"
"""The value of a claim's key ``theorem`` if the claim is about a theorem's condition."""


@dataclass(frozen=True)
class Case:
    """One figure under one set of other values.

    name : of the set. figure : with the figure's own values. changed : with the other ones. claims : those that read a
    changed curve.
    """

    name: str
    alternatives: tuple[Alternative, ...]
    figure: Figure
    changed: Figure
    claims: tuple[Claim, ...]

    @property
    def series(self) -> set[str]:
        """The names of the changed curves that claims read."""
        own = {setting.series for setting in self.figure.settings()}
        return {c.setting.series for claim in self.claims for c in judge.curves(claim, self.changed)} - own

    def to_compute(self, trials: int) -> Figure:
        """Return a figure that contains only these curves, with its own name below that of the figure."""
        return dataclasses.replace(
            self.changed,
            figure=f"{self.figure.figure}{OTHER_VALUES}/{self.name}",
            trials=trials,
            wanted_trials=trials,
            panels=self.changed.panels_with(self.series.__contains__),
            claims=(),
            more={},
        )

    def metrics(self) -> set[str]:
        """Return the metrics that the claims can read: those on axes of panels that they read, and those they name."""
        also = (f"{claim.or_read} {claim.earlier} {claim.figure_shows}" for claim in self.claims)
        texts = f"{self.checks} {' '.join(also)}"
        words = set(re.findall(r"\w+", texts))
        named = {name for setting in self.changed.settings() for name in setting.metrics if name in words}
        read = {claim.panel for claim in self.claims} | words
        return named | {axis for panel in self.changed.panels if panel.id in read for axis in _axes(panel)}

    def rounds(self) -> set[int]:
        """Return the numbers in the checks of the claims, rounds among them."""
        return {int(number) for number in re.findall(r"\b\d{1,9}\b", self.checks)}

    @property
    def checks(self) -> str:
        """The checks of the claims, one after another."""
        return " ".join(f"{claim.check} {claim.words} {claim.faster} {claim.bound}" for claim in self.claims)


def _axes(panel: Panel) -> tuple[str, str]:
    return panel.x, panel.y


def case(figure: Figure, name: str, alternatives: Sequence[Alternative]) -> Case | None:
    """Return a case, or None if no claim of the figure reads a curve that changes.

    Claims that certain values meet a theorem's condition are left out if the case changes these values. So are claims
    whose curves differ only in a value that becomes the same for all.
    """
    other = changed(figure, alternatives)
    own = {setting.series for setting in figure.settings()}
    values = {value for alternative in alternatives for change in alternative.changes for value in change.values}
    read = ((claim, judge.curves(claim, other)) for claim in figure.claims)
    claims = tuple(
        claim
        for claim, curves in read
        if any(c.setting.series not in own for c in curves)
        and not values & _conditions(claim)
        and not _all_the_same(curves)
    )
    return Case(name, tuple(alternatives), figure, other, claims) if claims else None


def _all_the_same(curves: Sequence[Curve]) -> bool:
    """Return whether several curves have the same setting under different names."""
    first, *others = (dataclasses.replace(curve.setting, series="", explicit=()) for curve in curves)
    return bool(others) and all(setting == first for setting in others)


def _conditions(claim: Claim) -> set[str]:
    """Return the parameters that a claim about a theorem's condition reads; none for other claims."""
    return set(re.findall(r"\bparameter\('(\w+)'", claim.check)) if claim.theorem == CONDITION else set()


def singles(figure: Figure, rows: Iterable[Discrepancy]) -> list[Case]:
    """Return one case for each other value that a figure can be run with, changed alone.

    Rows of two papers can name the same change of a figure of ours. It is one case, that of the first row.
    """
    alone = ((alternative.id, (alternative,)) for row in _of(figure, rows) for alternative in row.alternatives)
    first: dict[frozenset[str], Case] = {}
    for one in _cases(figure, alone):
        first.setdefault(frozenset(one.series), one)
    return list(first.values())


def together(figure: Figure, rows: Iterable[Discrepancy]) -> list[Case]:
    """Return the cases of all printed values and of all released ones, where our own values have another origin.

    A set of one alternative is left out, because it is among the ``singles``.
    """
    rows = list(_of(figure, rows))
    sets = []
    for origin in TOGETHER:
        chosen = [a for row in rows for a in row.alternatives if a.origin == origin != a.replaces and not a.alone]
        effective = [a for a in chosen if case(figure, a.id, (a,)) is not None]
        if len(effective) > 1:
            sets.append((f"{figure.paper}.{origin}", tuple(effective)))
    return _cases(figure, sets)


def pairs(figure: Figure, alternatives: Iterable[Alternative]) -> list[Case]:
    """Return the cases of each pair of alternatives from different rows of the discrepancies.

    Each alternative has been applied alone. Two that exclude each other make no pair.
    """
    couples = itertools.combinations(alternatives, 2)
    made = []
    for one, other in (pair for pair in couples if _row(pair[0]) != _row(pair[1])):
        with contextlib.suppress(UserError):
            made += _cases(figure, [(f"{one.id}+{other.id}", (one, other))])
    return made


def named(figure: Figure, rows: Sequence[Discrepancy], names: Iterable[str]) -> list[Case]:
    """Return the cases of a figure with these names; names that are none of a case are left out."""
    alone = singles(figure, rows)
    by_id = {case.name: case.alternatives[0] for case in alone}
    known = {case.name: case for case in (*alone, *together(figure, rows))}
    chosen = []
    for name in names:
        parts = [by_id[part] for part in name.split("+") if part in by_id]
        both = _cases(figure, [(name, tuple(parts))]) if "+" in name and len(parts) == 2 else []
        chosen += [known[name]] if name in known else both
    return chosen


def _row(alternative: Alternative) -> list[str]:
    return alternative.id.split(".")[:2]


def _of(figure: Figure, rows: Iterable[Discrepancy]) -> Iterator[Discrepancy]:
    return (row for row in rows if row.alternatives and figure.name in row.figures)


def _cases(figure: Figure, sets: Iterable[tuple[str, tuple[Alternative, ...]]]) -> list[Case]:
    made = (case(figure, name, alternatives) for name, alternatives in sets)
    return [one for one in made if one is not None]
