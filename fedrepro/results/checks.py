"""The last check of a figure's results: which runs were computed again, by which code, and with what outcome.

``fedrepro check`` writes it to ``<figure>.check.json``, next to the CSV.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fedrepro.errors import UserError
from fedrepro.files import atomically
from fedrepro.results.read import with_suffix
from fedrepro.results.schema import Made, typed

SUFFIX = ".check.json"
CLOSE = 1e-10
"""Relative deviation up to which two computations of a number agree: they may add in another order."""


@dataclass(frozen=True)
class Compared:
    """A run computed again, up to ``round`` (of ``rounds``), and compared in ``values`` numbers.

    deviation : the largest relative deviation, 0 if all bits are equal. start : the first round with a deviation larger
    than ``CLOSE`` (None without one). metric : the metric that deviates there ('' without one).
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
    """A check of one figure's results.

    results : sha256 of their CSV. runs : by series, the identity of each trial's run in the checking program; '' for a
    trial that is missing or could not be computed. former_runs : the identities of the same program in an earlier
    scheme. methods : the algorithms of all runs. made : how and when the check was made.
    """

    results: str = ""
    runs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    methods: tuple[str, ...] = ()
    compared: tuple[Compared, ...] = ()
    made: Made = field(default_factory=Made)
    former_runs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def outcome(self) -> str:
        """The worst outcome of the compared runs; '' if there are none."""
        outcomes = {run.outcome for run in self.compared}
        return next((name for name in ("different", "same to 1e-10", "same bits") if name in outcomes), "")

    @property
    def unseen(self) -> tuple[str, ...]:
        """The algorithms without a compared run."""
        seen = {run.algorithm for run in self.compared}
        return tuple(name for name in self.methods if name not in seen)

    def confirmed(self, results: str) -> dict[str, tuple[str, int]]:
        """Return the runs of the checking program that these results contain: identity -> (series, trial).

        All of them if every method had the same bits; otherwise none.
        """
        if self.results != results or self.outcome != "same bits" or self.unseen:
            return {}
        return {
            run: (series, trial) for series, runs in self.runs.items() for trial, run in enumerate(runs, start=1) if run
        }

    def merged(self, earlier: Check | None) -> Check:
        """Return the check with the runs of an earlier check of the same results by the same code; later runs win."""
        if earlier is None or (earlier.results, earlier.runs) != (self.results, self.runs):
            return self
        by_run = {(run.series, run.trial): run for run in (*earlier.compared, *self.compared)}
        compared = tuple(by_run[key] for key in sorted(by_run))
        return dataclasses.replace(self, compared=compared, former_runs=self.former_runs or earlier.former_runs)

    @property
    def words(self) -> str:
        """The outcome with date and CPU, for a reader of the results."""
        where = self.made.kernels.get("cpu") or self.made.machine
        return f"{self}, on {self.made.written[:10]}" + (f" ({where})" if where else "")

    def __str__(self) -> str:
        held = {run for runs in self.runs.values() for run in runs if run}
        text = f"{self.outcome or 'nothing compared'} in {len(self.compared)} of {len(held)} runs"
        worst = max(self.compared, key=lambda run: run.deviation, default=None)
        if worst is not None and worst.deviation > 0.0:
            text += f"; largest deviation {worst.deviation:.1e} in {worst.series}, trial {worst.trial}"
            text += f", from round {worst.start} on ({worst.metric})" if worst.start is not None else ""
        return text + (f"; of {', '.join(self.unseen)} none" if self.unseen and self.compared else "")


def other_cpu(kept: Made, here: Made) -> str:
    """Return a known reason why results can differ from those of the machine that computed them, or ''."""
    before, now = kept.kernels.get("cpu", ""), here.kernels.get("cpu", "")
    if "jax" not in kept.libraries or not before or before == now:
        return ""
    return f"networks, computed on {before}; JAX computes otherwise on another CPU: docs/results.md"


def read(base: Path) -> Check | None:
    """Return the last check of the results at ``base``, or None. Raises UserError if its file is damaged."""
    path = with_suffix(base, SUFFIX)
    try:
        check: Check = typed(json.loads(path.read_text(encoding="utf-8")), Check, "")
        return check
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise UserError(f"{path}: cannot be read ({error}); remove it, and `fedrepro check` writes it again") from None


def write(base: Path, check: Check) -> None:
    """Store a check next to its results."""
    text = json.dumps(dataclasses.asdict(check), indent=1, sort_keys=True) + "\n"
    atomically(with_suffix(base, SUFFIX), text.encode())
