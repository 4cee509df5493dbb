"""The kept results of cases: ``<results>/<tier>/<paper>/<figure>.settings/<set>.csv.xz`` with its sidecar.

A case keeps the curves that change and that claims read, with the metrics that claims read. Its other curves are those
of the figure's own results.
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import hashlib
import io
import itertools
import lzma
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fedrepro.alternatives.cases import Case, named
from fedrepro.claims import robustness
from fedrepro.claims.classes import Robustness
from fedrepro.claims.intervals import Interval
from fedrepro.claims.judge import Known, Row
from fedrepro.files import atomically, writing
from fedrepro.results.read import (
    OTHER_VALUES,
    content,
    content_hash,
    frame,
    place,
    read_sidecar,
    results_file,
    with_suffix,
)
from fedrepro.results.schema import Sidecar, rounded
from fedrepro.spec.discrepancies import Discrepancy
from fedrepro.spec.model import Figure

PRESET = 9 | lzma.PRESET_EXTREME
ENDING = ".csv.xz"
"""The end of the name of a case's table."""
MANY, DENSE, APART = 101, 50, 1.1
"""Runs with at least ``MANY`` recorded rounds keep all up to ``DENSE``, then rounds a ratio of ``APART`` apart."""
DIGITS = 9
"""Significant digits of the values of a case: all digits would need twice the room, and no claim asks for more."""


@dataclass(frozen=True)
class Numbers:
    """A figure's numbers as claims read them: the figure, its tidy frame, its sidecar, and what was looked up.

    parts : the numbers of some of the trials, made once, so that claims with the same trials share what was looked up.
    thin : the numbers as cases keep them (fewer rounds and digits), by the rounds that are kept in any case. judged,
    margins : the verdicts by claim, and the margins by claim and comparison, for all cases that are compared with these
    numbers.
    """

    figure: Figure
    frame: Any
    sidecar: Sidecar
    known: Known
    parts: dict[tuple[int, ...], Numbers] = field(default_factory=dict, repr=False, compare=False)
    thin: dict[frozenset[int], Numbers] = field(default_factory=dict, repr=False, compare=False)
    judged: dict[str, Row] = field(default_factory=dict, repr=False, compare=False)
    margins: dict[tuple[str, int], list[Interval]] = field(default_factory=dict, repr=False, compare=False)

    @functools.cached_property
    def digest(self) -> str:
        """A hash of the numbers and the facts about them."""
        facts = repr(self.sidecar).encode()
        return hashlib.sha256(facts + self.frame["value"].to_numpy(dtype=float).tobytes()).hexdigest()

    @classmethod
    def of(cls, figure: Figure, rows: Any, sidecar: Sidecar) -> Numbers:
        """Return the numbers in these rows."""
        return cls(figure, rows, sidecar, Known(rows))

    def over(self, trials: Iterable[int]) -> Numbers:
        """Return the numbers of these trials only."""
        chosen = tuple(trials)
        if chosen not in self.parts:
            rows = self.frame[self.frame["trial"].isin(chosen)]
            self.parts[chosen] = Numbers.of(self.figure, rows, self.sidecar)
        return self.parts[chosen]


def base(root: Path, case: Case) -> Path:
    """Return the path of a case's results, without suffix."""
    figure = case.to_compute(1)
    return place(root, figure.tier, figure.paper, figure.figure)


def names(figure: Figure, root: Path) -> list[str]:
    """Return the names of the sets with results of a figure."""
    folder = with_suffix(place(root, figure.tier, figure.paper, figure.figure), OTHER_VALUES)
    return sorted({path.name.removesuffix(ENDING) for path in folder.glob(f"*{ENDING}")})


def checkable(figure: Figure, rows: Sequence[Discrepancy], root: Path) -> list[Figure]:
    """Return the figures of the cases that have results, with the trials that these contain, for ``fedrepro check``."""
    kept = named(figure, rows, names(figure, root))
    sidecars = [(case, read_sidecar(base(root, case))) for case in kept]
    return [case.to_compute(max(map(len, sidecar.runs.values()), default=0)) for case, sidecar in sidecars if sidecar]


def keep(path: Path, kept: Path, metrics: Container[str], named: Container[int]) -> None:
    """Write the results at ``path`` to ``kept``, compressed, with only these metrics and fewer rounds of long runs.

    Values have ``DIGITS`` digits, and arrays for pictures are left out. named : rounds that are kept in any case.
    """
    sidecar, table = read_sidecar(path), results_file(path)
    if sidecar is None or table is None:
        return
    rows = csv.DictReader(io.StringIO(content(table).decode()))
    out = io.StringIO()
    writer = csv.DictWriter(out, rows.fieldnames or (), lineterminator="\n")
    writer.writeheader()
    for _, group in itertools.groupby(rows, key=lambda row: (row["series"], row["trial"])):
        measured = [row for row in group if row["metric"] in metrics or row["status"] == "failed"]
        rounds = sorted({int(row["round"]) for row in measured if row["round"]})
        wanted = {str(number) for number in kept_rounds(rounds, named)}
        writer.writerows(_shortened(row) for row in measured if row["round"] in wanted or not row["round"])
    body = out.getvalue().encode()
    thinned = dataclasses.replace(
        sidecar,
        csv_sha256=hashlib.sha256(body).hexdigest(),
        points_sha256="",
        timing={},
        digits=DIGITS,
        columns={**sidecar.columns, "value": f"its value, to {DIGITS} significant digits"},
    )
    for suffix, part in ((".csv", body), (".json", thinned.text().encode())):
        atomically(with_suffix(kept, f"{suffix}.xz"), lzma.compress(part, preset=PRESET))


def _shortened(row: Mapping[str, str]) -> dict[str, str]:
    """Return a row of the CSV with ``DIGITS`` digits of its value."""
    text = row["value"]
    return {**row, "value": repr(rounded(float(text), DIGITS)) if text else text}


def discard(path: Path) -> None:
    """Remove the results of a case as they were computed."""
    for suffix in (".csv", ".json", ".points.csv"):
        with writing(with_suffix(path, suffix)):
            with_suffix(path, suffix).unlink(missing_ok=True)


def kept_rounds(rounds: Sequence[int], named: Container[int] = ()) -> list[int]:
    """Return the recorded rounds that are kept: all of a short run.

    A run with more than ``MANY`` keeps all to round ``DENSE``, then those at least ``APART`` after the one before, the
    ``named`` ones and the last.
    """
    if len(rounds) <= MANY:
        return list(rounds)
    chosen: list[int] = []
    for number in rounds:
        far = not chosen or number <= DENSE or number >= APART * chosen[-1]
        if far or number in named or number == rounds[-1]:
            chosen.append(number)
    return chosen


def thinned(own: Numbers, named: Iterable[int]) -> Numbers:
    """Return a figure's own numbers at the rounds and with the digits that a case keeps, so that both are read alike.

    They are made once for all cases that keep the same rounds.
    """
    chosen = frozenset(named)
    if chosen not in own.thin:
        own.thin[chosen] = _thinned(own, chosen)
    return own.thin[chosen]


def _thinned(own: Numbers, named: Container[int]) -> Numbers:
    rows = own.frame
    runs = rows.groupby(["series", "trial"], sort=False, observed=True).ngroup().to_numpy()
    order = np.argsort(runs, kind="stable")
    if not order.size:
        return own
    starts = np.flatnonzero(np.diff(runs[order], prepend=-1))
    rounds = rows["round"].to_numpy(dtype=float)
    kept = np.ones(len(rows), dtype=bool)
    by_rounds: dict[bytes, list[int]] = {}
    for places in np.split(order, starts[1:]):
        recorded = np.unique(rounds[places])
        recorded = recorded[np.isfinite(recorded)]
        if recorded.size <= MANY:
            continue
        key = recorded.tobytes()
        if key not in by_rounds:
            by_rounds[key] = kept_rounds([int(number) for number in recorded], named)
        kept[places] = np.isin(rounds[places], by_rounds[key]) | np.isnan(rounds[places])
    order = order[kept[order]] if not kept.all() else np.arange(len(rows))
    chosen = rows.iloc[order].reset_index(drop=True)
    values = [rounded(value, DIGITS) for value in chosen["value"].tolist()]
    return Numbers.of(own.figure, chosen.assign(value=np.array(values, dtype=float)), own.sidecar)


def numbers(case: Case, own: Numbers, root: Path) -> Numbers | None:
    """Return the numbers of a figure under a case, or None if the case has no results.

    own : the figure's own numbers, from which the curves that do not change are taken.
    """
    path = base(root, case)
    sidecar, table = read_sidecar(path), results_file(path)
    if sidecar is None or table is None:
        return None
    import pandas as pd

    changed = {setting.series for setting in case.changed.settings()}
    rows = [own.frame[own.frame["series"].isin(changed)], frame(table, sidecar.csv_sha256)]
    return Numbers.of(case.changed, pd.concat(rows, ignore_index=True), _both(own.sidecar, sidecar))


def readings(case: Case, known: Callable[[], Known], root: Path) -> Mapping[str, Robustness]:
    """Return the answers of all readings of the case's claims under its values, by claim, kept beside its results.

    known : makes what the claims read, where they have to be judged.
    """
    path = base(root, case)
    table = results_file(path)
    figure = dataclasses.replace(case.changed, claims=case.claims)
    return robustness.kept(path, figure, known, content_hash(table) if table is not None else "")


def _both(own: Sidecar, other: Sidecar) -> Sidecar:
    """Return the facts about a figure's own results and those of a case together."""
    return dataclasses.replace(
        own,
        complete=False,
        runs={**own.runs, **other.runs},
        settings=(*own.settings, *other.settings),
        datasets=tuple(dict.fromkeys((*own.datasets, *other.datasets))),
        stand_ins=tuple(dict.fromkeys((*own.stand_ins, *other.stand_ins))),
        sizes={**own.sizes, **other.sizes},
        setup_scalars={**own.setup_scalars, **other.setup_scalars},
    )
