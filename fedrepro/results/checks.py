"""The last check of a figure's results: which of their runs were computed again, by which code, and what came of it.

It lies beside the CSV as ``<figure>.check.json``; ``fedrepro check`` writes it.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedrepro.errors import UserError
from fedrepro.files import atomically
from fedrepro.results.read import with_suffix
from fedrepro.results.schema import Made

SUFFIX = ".check.json"
CLOSE = 1e-10
"""Relative deviation up to which two computations of a number count as the same: they may add in another order."""


@dataclass(frozen=True)
class Compared:
    """A run computed again, up to ``round`` (of ``rounds``), in ``values`` numbers.

    deviation : the largest relative one, 0 where all bits are equal. start : the first round with a deviation over
    ``CLOSE``, and ``metric`` where; None and '' where there is none.
    """

    series: str
    trial: int
    algorithm: str
    round: int
    rounds: int
    values: int
    deviation: float = 0.0
    start: int | None = None
    metric: str = ""

    @property
    def outcome(self) -> str:
        """``same bits``, ``same to 1e-10`` or ``different``."""
        if self.start is not None:
            return "different"
        return "same bits" if self.deviation == 0.0 else "same to 1e-10"


@dataclass(frozen=True)
class Check:
    """What was checked of one figure's results.

    results : sha256 of their CSV. runs : by series, the identity that the checking program gives to the run of each
    trial in the results; '' for a trial that is missing or could not be computed. former_runs : the identities that the
    same program gave them under an earlier scheme. methods : algorithms among all of them. made : with what, and when.
    """

    results: str = ""
    runs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    methods: tuple[str, ...] = ()
    compared: tuple[Compared, ...] = ()
    made: Made = field(default_factory=Made)
    former_runs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def outcome(self) -> str:
        """The worst of the runs compared; '' where there are none."""
        found = {one.outcome for one in self.compared}
        return next((name for name in ("different", "same to 1e-10", "same bits") if name in found), "")

    @property
    def unseen(self) -> tuple[str, ...]:
        """The algorithms of which no run was compared."""
        seen = {one.algorithm for one in self.compared}
        return tuple(name for name in self.methods if name not in seen)

    def confirmed(self, results: str) -> dict[str, tuple[str, int]]:
        """Runs of the checking program that these results hold as well as its own: identity -> (series, trial).

        All, where every method came out with the same bits; else none.
        """
        if self.results != results or self.outcome != "same bits" or self.unseen:
            return {}
        return {
            run: (series, trial) for series, runs in self.runs.items() for trial, run in enumerate(runs, start=1) if run
        }

    def merged(self, earlier: Check | None) -> Check:
        """With what an earlier check of the same results by the same code compared, the later one counting."""
        if earlier is None or (earlier.results, earlier.runs) != (self.results, self.runs):
            return self
        found = {(one.series, one.trial): one for one in (*earlier.compared, *self.compared)}
        compared = tuple(found[key] for key in sorted(found))
        return dataclasses.replace(self, compared=compared, former_runs=self.former_runs or earlier.former_runs)

    @property
    def words(self) -> str:
        """What came out, when and where, for a reader of the results."""
        where = self.made.kernels.get("cpu") or self.made.machine
        return f"{self}, on {self.made.written[:10]}" + (f" ({where})" if where else "")

    def __str__(self) -> str:
        held = {run for runs in self.runs.values() for run in runs if run}
        said = f"{self.outcome or 'nothing compared'} in {len(self.compared)} of {len(held)} runs"
        worst = max(self.compared, key=lambda one: one.deviation, default=None)
        if worst is not None and worst.deviation > 0.0:
            said += f"; largest deviation {worst.deviation:.1e} in {worst.series}, trial {worst.trial}"
            said += f", from round {worst.start} on ({worst.metric})" if worst.start is not None else ""
        return said + (f"; of {', '.join(self.unseen)} none" if self.unseen and self.compared else "")


def other_cpu(kept: Made, here: Made) -> str:
    """Why results may come out otherwise here than where they were computed; '' where nothing is known that says so."""
    before, now = kept.kernels.get("cpu", ""), here.kernels.get("cpu", "")
    if "jax" not in kept.libraries or not before or before == now:
        return ""
    return f"networks, computed on {before}; JAX computes otherwise on another CPU: docs/results.md"


def read(base: Path) -> Check | None:
    """The last check of the results at ``base``, or None. Raises UserError where its file is damaged."""
    path = with_suffix(base, SUFFIX)
    try:
        return _parsed(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise UserError(f"{path}: cannot be read ({error}); remove it, `fedrepro check` writes it again") from None


def write(base: Path, check: Check) -> None:
    """Keep a check beside its results."""
    text = json.dumps(dataclasses.asdict(check), indent=1, sort_keys=True) + "\n"
    atomically(with_suffix(base, SUFFIX), text.encode())


def _parsed(facts: Mapping[str, Any]) -> Check:
    return Check(
        results=str(facts["results"]),
        runs={series: tuple(runs) for series, runs in facts["runs"].items()},
        former_runs={series: tuple(runs) for series, runs in facts.get("former_runs", {}).items()},
        methods=tuple(facts["methods"]),
        compared=tuple(Compared(**one) for one in facts["compared"]),
        made=Made(**facts["made"]),
    )
