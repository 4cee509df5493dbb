"""What a case changes for its claims, kept in the file of its figure (``claims.kept_answers``).

Comparing the cases of all figures takes minutes. ``read`` returns what was found before if both results, the claims,
the changed curves and the code that judges are the same as when it was written.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fedrepro import registry
from fedrepro.alternatives.cases import Case
from fedrepro.alternatives.kept_results import Numbers, base
from fedrepro.alternatives.paired import Effect, Shift, Verdict
from fedrepro.claims import kept_answers, robustness
from fedrepro.claims.intervals import Interval
from fedrepro.results.read import content_hash, read_sidecar, results_file

EFFECTS = "effects"
"""The kind of answers in the file; another kind is those of all readings (``claims.robustness``)."""
_JUDGES = (
    "alternatives/cases.py", "alternatives/kept_effects.py", "alternatives/kept_results.py", "alternatives/paired.py",
    "claims/evidence.py", "claims/intervals.py", "claims/judge.py", "claims/units.py", "results/by_run.py",
    "results/consistency.py", "results/read.py", "results/schema.py", "spec/axes.py", "spec/claim_grammar.py",
    "spec/references.py",
)  # fmt: skip
"""The files that decide effects, below the package."""


def key(case: Case, own: Numbers, root: Path) -> str:
    """Return a hash of everything that decides the effects of a case, '' if it has no results."""
    path = base(root, case)
    sidecar, table = read_sidecar(path), results_file(path)
    if sidecar is None or table is None:
        return ""
    own_figure, figure = (dataclasses.replace(f, claims=case.claims, path="") for f in (case.figure, case.changed))
    metrics = {name: registry.problems()[name].metrics for name in sorted({s.problem for s in figure.settings()})}
    better = [(name, metric, about.better) for name, of in metrics.items() for metric, about in sorted(of.items())]
    facts = (own.digest, content_hash(table), sidecar, own_figure, figure, better, robustness.program(_JUDGES))
    return hashlib.sha256(repr(facts).encode()).hexdigest()


def read(case: Case, root: Path, wanted: str) -> list[Effect] | None:
    """Return the kept effects of a case without readings, or None if there are none with the ``wanted`` key."""
    stored = kept_answers.read(base(root, case), EFFECTS)
    if stored.get("key") != wanted:
        return None
    by_id = {claim.id: claim for claim in case.claims}
    return [_loaded(by_id[name], entry) for name, entry in stored["claims"].items()]


def write(case: Case, root: Path, key: str, effects: Iterable[Effect]) -> None:
    """Keep the effects of a case if the folder can be written; they are computed again otherwise."""
    entries = {effect.claim.id: _stored(effect) for effect in effects}
    kept_answers.write(base(root, case), EFFECTS, {"key": key, "claims": entries})


def _stored(effect: Effect) -> list[Any]:
    verdicts = [dataclasses.astuple(verdict) for verdict in (effect.before, effect.after)]
    return [*verdicts, effect.trials, [_kept(shift) for shift in effect.shifts]]


def _kept(shift: Shift) -> list[Any]:
    """Return a shift as it is kept; the margin that decides is left out if it is the one after."""
    before, after, change, decides = (
        [margin.value, margin.low, margin.high] for margin in (shift.before, shift.after, shift.change, shift.decides)
    )
    other = None if shift.decides == shift.after else decides
    return [shift.comparison, shift.unit, before, after, change, other, shift.strict, shift.turned]


def _loaded(claim: Any, entry: list[Any]) -> Effect:
    before, after, trials, shifts = entry
    return Effect(claim, Verdict(*before), Verdict(*after), trials, tuple(map(_shift, shifts)))


def _shift(entry: list[Any]) -> Shift:
    number, unit, *margins, other, strict, turned = entry
    before, after, change = (Interval(*margin) for margin in margins)
    decides = after if other is None else Interval(*other)
    return Shift(number, unit, before, after, change, decides, strict, None if turned is None else tuple(turned))
