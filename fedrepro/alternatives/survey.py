"""All cases of some figures: those to plan or compute, and the effects of those that have results."""

from __future__ import annotations

import dataclasses
import functools
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from fedrepro.alternatives import cases, costs, kept_effects, kept_results, ranking
from fedrepro.alternatives.cases import Case
from fedrepro.alternatives.deciding import Deciding, Tried, deciding
from fedrepro.alternatives.kept_results import Numbers
from fedrepro.alternatives.paired import Effect, effect
from fedrepro.alternatives.ranking import Entry
from fedrepro.claims import judge
from fedrepro.claims.evidence import HOLDS, REPRODUCED
from fedrepro.errors import UserError, nearest
from fedrepro.results import changed_settings
from fedrepro.results.read import read_sidecar, with_results
from fedrepro.results.schema import Sidecar
from fedrepro.spec.discrepancies import Discrepancy
from fedrepro.spec.model import Figure
from fedrepro.spec.read import load

HELD = (REPRODUCED, HOLDS)


def cases_of(figure: Figure, rows: Sequence[Discrepancy], own: Numbers | None, root: Path) -> list[Case]:
    """Return all cases of a figure: alternatives alone, all printed, all released, and pairs that both move a claim.

    A pair with results stays listed if one of its parts no longer moves a claim, because our values have changed.
    """
    alone = cases.singles(figure, rows)
    listed = [*alone, *cases.together(figure, rows)]
    if own is None:
        return listed
    moved = {case.name: _moved(case, own, root) for case in alone}
    both = cases.pairs(figure, (case.alternatives[0] for case in alone if moved[case.name]))
    listed += [pair for pair in both if set.intersection(*(moved[part.id] for part in pair.alternatives))]
    names = {case.name for case in listed}
    return listed + cases.named(figure, rows, [name for name in kept_results.names(figure, root) if name not in names])


def _moved(case: Case, own: Numbers, root: Path) -> set[str]:
    """Return the claims of which a case moves a margin; none without results."""
    return {change.claim.id for change in effects(case, own, root) if change.moves}


def effects(case: Case, own: Numbers, root: Path, *, readings: bool = False, of: str = "") -> list[Effect]:
    """Return what a case changes for each of its claims that both results can answer.

    The list is empty if the case has no results, or if the values of its curves have changed since.

    readings : with the answers of all readings, where all trials were run. of : the id of the only claim to look at.
    """
    if of and of not in [claim.id for claim in case.claims]:
        return []
    key = kept_effects.key(case, own, root)
    if not key or changed_settings.differ(case.to_compute(1), read_sidecar(kept_results.base(root, case)) or Sidecar()):
        return []
    compared = functools.cache(lambda: _compared(case, own, root))
    changes = kept_effects.read(case, root, key)
    if changes is None:
        asked = [claim for claim in case.claims if of in ("", claim.id)]
        changes = [change for claim in asked if (change := effect(claim, *compared())).trials]
        if not of:
            kept_effects.write(case, root, key, changes)
    judged = kept_results.readings(case, lambda: compared()[1].known, root) if readings else {}
    whole = case.figure.trials
    return [
        dataclasses.replace(change, readings=judged.get(change.claim.id) if change.trials == whole else None)
        for change in changes
        if of in ("", change.claim.id)
    ]


def _compared(case: Case, own: Numbers, root: Path) -> tuple[Numbers, Numbers]:
    """Return a figure's own numbers and those of a case, at the same rounds and with the same digits."""
    own = kept_results.thinned(own, case.rounds())
    other = kept_results.numbers(case, own, root)
    assert other is not None  # there is a key
    return own, other


def numbers(path: Path, tier: str, root: Path) -> Numbers | None:
    """Return a figure's own numbers, or None without results."""
    for figure, rows, sidecar in with_results([path], tier, root):
        return Numbers.of(figure, rows, sidecar)
    return None


def chosen(
    paths: Iterable[Path], rows: Sequence[Discrepancy], tier: str, root: Path, only: str
) -> Iterator[tuple[Numbers | None, list[Case]]]:
    """Yield for each figure its own numbers and its cases that ``only`` names (``matches``).

    Raises UserError if no case has such a name.
    """
    known: set[str] = set()
    found = False
    for path in paths:
        own = numbers(path, tier, root)
        listed = cases_of(own.figure if own is not None else load(path, tier), rows, own, root)
        known |= {case.name for case in listed}
        matching = [case for case in listed if matches(case.name, only)]
        found |= bool(matching)
        yield own, matching
    if only and not found:
        longer = [name for name in known if name.startswith(only)]
        raise UserError(
            f"--only {only}: changes no curve that a claim of these figures reads{nearest(only, longer)} "
            "(`fedrepro settings plan` lists the settings of all figures)"
        )


def computed(
    paths: Iterable[Path], rows: Sequence[Discrepancy], tier: str, root: Path, only: str
) -> Iterator[tuple[Numbers | None, list[Case]]]:
    """Yield the same as ``chosen`` for the cases that have results."""
    for path in paths:
        own = numbers(path, tier, root)
        names = kept_results.names(own.figure, root) if own is not None else []
        yield own, cases.named(own.figure, rows, [n for n in names if matches(n, only)]) if own is not None else []


def matches(name: str, only: str) -> bool:
    """Return whether ``only`` is a set's name, or the row that its name begins with.

    ``fedmf.16`` is that of ``fedmf.16.qhat-10-tdt2``, and of its pairs with other values.
    """
    return not only or name == only or name.startswith(f"{only}.")


def entries(
    gathered: Iterable[tuple[Numbers | None, list[Case]]],
    root: Path,
    report: Callable[[str], None],
    trials: int | None = None,
) -> list[Entry]:
    """Return the cases with their costs, in the order in which they are computed.

    trials : how many to run, instead of what the predicted time suggests.
    """
    gathered = list(gathered)
    open_claims = {claim for own, _ in gathered if own is not None for claim in _open(own)}
    listed = [case for _, several in gathered for case in several]
    priced = zip(listed, costs.costs(listed, root, report, trials), strict=True)
    return ranking.order(Entry(case, cost, len(open_claims & cost.claims)) for case, cost in priced)


def decided(
    gathered: Iterable[tuple[Numbers | None, list[Case]]],
    rows: Sequence[Discrepancy],
    root: Path,
    *,
    readings: bool = False,
    of: str = "",
) -> list[Deciding]:
    """Return what decides the verdict on each claim of the figures that have results.

    readings, of : as in ``effects``.
    """
    decisions = []
    for own, listed in gathered:
        if own is None:
            continue
        changes = [
            Tried(case, change) for case in listed for change in effects(case, own, root, readings=readings, of=of)
        ]
        asked = dataclasses.replace(own.figure, claims=tuple(c for c in own.figure.claims if of in ("", c.id)))
        untried = concerning(asked, rows, {one.effect.claim.id for one in changes})
        for row in judge.table(asked, own.frame, own.sidecar, own.known):
            mine = [one for one in changes if one.effect.claim.id == row.claim.id]
            decisions.append(deciding(row, mine, rows, untried.get(row.claim.id, 0)))
    return decisions


def concerning(figure: Figure, rows: Sequence[Discrepancy], tried: Container[str]) -> Mapping[str, int]:
    """Return the number of single values that change a curve that a claim reads, by claim.

    tried : ids of claims to leave out.
    """
    if all(claim.id in tried for claim in figure.claims):
        return {}
    ids = (claim.id for case in cases.singles(figure, rows) for claim in case.claims)
    return Counter(id_ for id_ in ids if id_ not in tried)


def _open(own: Numbers) -> list[str]:
    """Return the claims that a figure's own results do not hold."""
    rows = judge.table(own.figure, own.frame, own.sidecar, own.known)
    return [row.claim.id for row in rows if row.verdict not in HELD]
