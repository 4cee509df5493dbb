"""Checks of a figure's results: which runs were computed again, how far, by which program, where, with what outcome.

``fedrepro check`` writes them to ``<figure>.check.json``, next to the CSV. A finding is what one program found in one
environment (kernels and CPU); findings of different environments or programs are never combined.
"""

from __future__ import annotations

import dataclasses
import functools
import gzip
import json
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fedrepro.errors import UserError
from fedrepro.files import atomically
from fedrepro.results.read import checks_file, unpacked, with_suffix
from fedrepro.results.schema import Made, typed

SUFFIX = ".check.json"
_UNREADABLE = (OSError, EOFError, zlib.error, lzma.LZMAError)
VERSION = 2
"""Version of the file (its key ``schema``). Version 1 had one finding, without ``schema``; it can be read."""

_PACK: dict[str, Callable[[bytes], bytes]] = {".xz": lzma.compress, ".gz": functools.partial(gzip.compress, mtime=0)}

CLOSE = 1e-10
"""Deviation up to which two computations of a number agree: they may add in another order."""

ROUNDING = 64 * float(np.finfo(float).eps)
"""Rounding error of a number, relative to the largest number of its curve, where it is a difference of such numbers."""

SAME, NEAR, DIFFERENT = OUTCOMES = ("same bits", "same to 1e-10", "different")
"""Outcomes of a comparison, best first."""


def deviation(kept: float, computed: float, scale: float) -> float:
    """Return |kept - computed| relative to the larger of both, or to a small part of the curve's ``scale``.

    scale : the largest absolute number of the curve. A residual that falls by many orders of magnitude is a difference
    of numbers of that size, so its rounding error is ``ROUNDING * scale``; this error has the deviation ``CLOSE``.
    Returns 0 if both are equal or NaN, infinity if only one is finite.
    """
    if kept == computed or (np.isnan(kept) and np.isnan(computed)):
        return 0.0
    relative = abs(kept - computed) / max(abs(kept), abs(computed), scale * ROUNDING / CLOSE)
    return relative if np.isfinite(relative) else float("inf")


@dataclass(frozen=True)
class Compared:
    """A run computed again, up to ``round`` (of ``rounds``), and compared in ``values`` numbers.

    deviation : the largest deviation, 0 if all bits are equal. start : the first round with a deviation larger than
    ``CLOSE`` (None without one). metric : the metric that deviates there ('' without one).
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
            return DIFFERENT
        return SAME if self.deviation == 0.0 else NEAR

    @property
    def whole(self) -> bool:
        """Whether the run was computed to its last round."""
        return self.round >= self.rounds

    def after(self, earlier: Compared | None) -> Compared:
        """Return which of two comparisons of a run counts: the worse one, unless the later one saw at least as much."""
        if earlier is None or self.round >= earlier.round:
            return self
        return self if OUTCOMES.index(self.outcome) > OUTCOMES.index(earlier.outcome) else earlier


@dataclass(frozen=True)
class Finding:
    """What one program found in one environment.

    runs : by series, the identity of each trial's run in the checking program; '' for a trial that is missing or could
    not be computed. former_runs : the identities of the same program in an earlier scheme. made : the program, its
    environment, and the date of the last comparison.
    """

    runs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    compared: tuple[Compared, ...] = ()
    made: Made = field(default_factory=Made)
    former_runs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def outcome(self) -> str:
        """The worst outcome of the compared runs; '' if there are none."""
        outcomes = {run.outcome for run in self.compared}
        return next((name for name in reversed(OUTCOMES) if name in outcomes), "")

    @property
    def confirmed(self) -> frozenset[str]:
        """The curves with a run that had the same bits to its last round, and no run that deviated."""
        deviating = {self.id(run) for run in self.compared if run.outcome != SAME}
        return frozenset(name for name in self.whole if not deviating & set(self.runs[name]))

    @property
    def whole(self) -> frozenset[str]:
        """The curves with a run that was computed to its last round; curves can share runs."""
        done = {self.id(run) for run in self.compared if run.whole}
        return frozenset(name for name, runs in self.runs.items() if done & set(runs))

    def id(self, compared: Compared) -> str:
        """Return the identity of a compared run in the checking program."""
        return self.runs[compared.series][compared.trial - 1]

    def same_environment(self, other: Finding) -> bool:
        """Return whether both are of the same program, kernels and CPU."""
        return (self.runs, self.made.kernels) == (other.runs, other.made.kernels)

    def after(self, earlier: Finding) -> Finding:
        """Return this finding with the comparisons of an earlier one of the same environment."""
        by_run = {(run.series, run.trial): run for run in earlier.compared}
        for run in self.compared:
            by_run[run.series, run.trial] = run.after(by_run.get((run.series, run.trial)))
        compared = tuple(by_run[key] for key in sorted(by_run))
        return dataclasses.replace(self, compared=compared, former_runs=self.former_runs or earlier.former_runs)

    @property
    def words(self) -> str:
        """The outcome with date and CPU, for a reader of the results."""
        where = self.made.kernels.get("cpu") or self.made.machine
        return f"{self}, on {self.made.written[:10]}" + (f" ({where})" if where else "")

    def __str__(self) -> str:
        if not self.compared:
            return "nothing compared"
        kept = len({run for runs in self.runs.values() for run in runs if run})
        if self.outcome == SAME:
            return f"{SAME} {_extent(self.compared, kept)}{self._unseen()}"
        deviating = [run for run in self.compared if run.outcome == self.outcome]
        worst = max(deviating, key=lambda run: run.deviation)
        text = f"{self.outcome} in {len(deviating)} of {len(self.compared)} runs compared (of {kept})"
        text += f"; largest deviation {worst.deviation:.1e} in {worst.series}, trial {worst.trial}"
        return text + (f", from round {worst.start} on ({worst.metric})" if worst.start is not None else "")

    def _unseen(self) -> str:
        curves = {series for series, runs in self.runs.items() if any(runs)}
        missing = len(curves - self.whole)
        return f"; {missing} of {len(curves)} curves without a whole run" if missing else ""


def _extent(compared: Iterable[Compared], kept: int) -> str:
    """Return how far runs were computed, in words: ``to round 12 of 500 in 70 of 270 runs, no run to its end``."""
    compared = list(compared)
    parts = [run for run in compared if not run.whole]
    of = f"in {len(compared)} of {kept} runs"
    if not parts:
        return f"{of}, each to its last round"
    upto = f"round{'s' * (len({run.round for run in parts}) > 1)} {_range(run.round for run in parts)}"
    upto += f" of {_range(run.rounds for run in parts)}"
    if len(parts) == len(compared):
        return f"to {upto} {of}, no run to its end"
    return f"{of}, {len(compared) - len(parts)} to their last round, the others to {upto}"


def _range(numbers: Iterable[int]) -> str:
    distinct = sorted(set(numbers))
    return f"{distinct[0]}" if len(distinct) == 1 else f"{distinct[0]} to {distinct[-1]}"


@dataclass(frozen=True)
class Check:
    """All findings about one figure's results, the latest last. results : sha256 of their CSV."""

    results: str = ""
    findings: tuple[Finding, ...] = ()

    def added(self, finding: Finding) -> Check:
        """Return the check with another finding, which continues an earlier one of the same environment."""
        for earlier in self.findings:
            if finding.same_environment(earlier):
                finding = finding.after(earlier)
        others = (earlier for earlier in self.findings if not finding.same_environment(earlier))
        return dataclasses.replace(self, findings=(*others, finding))

    def of(self, results: str) -> Iterator[Finding]:
        """Yield the findings if they are about the results with this hash."""
        yield from self.findings if self.results == results else ()

    def confirmed(self, results: str) -> dict[str, tuple[str, int]]:
        """Return the runs of checking programs that these results contain: identity -> (series, trial).

        They are the runs of each curve that one finding confirms: one run had the same bits to its last round there.
        """
        return {
            run: (series, trial)
            for finding in self.of(results)
            for series in finding.confirmed
            for trial, run in enumerate(finding.runs.get(series, ()), start=1)
            if run
        }

    @property
    def words(self) -> str:
        """The latest finding in words, '' if there is none."""
        return self.findings[-1].words if self.findings else ""


def other_cpu(kept: Made, here: Made) -> str:
    """Return a known reason why results can differ from those of the machine that computed them, or ''."""
    before, now = kept.kernels.get("cpu", ""), here.kernels.get("cpu", "")
    if "jax" not in kept.libraries or not before or before == now:
        return ""
    return f"networks, computed on {before}; another CPU may give other bits: docs/results.md"


def read(base: Path) -> Check | None:
    """Return the checks of the results at ``base``, or None. Raises UserError if their file is damaged."""
    path = checks_file(base)
    if path is None:
        return None
    try:
        check: Check = typed(_current(json.loads(unpacked(path))), Check, "")
        return check
    except FileNotFoundError:
        return None
    except (*_UNREADABLE, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise UserError(f"{path}: cannot be read ({error}); remove it, and `fedrepro check` writes it again") from None


def _current(facts: Any) -> Any:
    """Convert a file of version 1, which had one finding."""
    if isinstance(facts, Mapping) and "schema" not in facts:
        names = (each.name for each in dataclasses.fields(Finding))
        return {"results": facts["results"], "findings": [{name: facts[name] for name in names if name in facts}]}
    if isinstance(facts, Mapping) and facts["schema"] != VERSION:
        raise ValueError(f"version {facts['schema']} is unknown (known: 1 to {VERSION})")
    return facts


def write(base: Path, check: Check) -> Path:
    """Store the checks next to their results, compressed if they were; return the file."""
    text = json.dumps({**dataclasses.asdict(check), "schema": VERSION}, indent=1, sort_keys=True) + "\n"
    path = checks_file(base) or with_suffix(base, SUFFIX)
    atomically(path, _PACK.get(path.suffix, bytes)(text.encode()))
    return path
