"""Why runs failed or diverged: read from the notes of failed runs and from the sidecars of results."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedrepro.errors import UserError
from fedrepro.results.read import read_sidecar, stem, stems
from fedrepro.runs.compute.run import Run
from fedrepro.runs.identity import plan as planning
from fedrepro.runs.runner import Folders
from fedrepro.runs.storage.store import Store
from fedrepro.spec.model import Figure

IN_RUNS = "says"  # see fedrepro.runs.identity.code

NOTE = ".failed.json"
"""Suffix of the notes that the store keeps of failed runs."""


@dataclass(frozen=True)
class Failure:
    """A run that failed or diverged, and why. traceback : of a failed run whose note exists, else empty."""

    series: str
    trial: int
    why: str
    traceback: str = ""


def of_figure(figure: Figure, root: Path) -> list[Failure]:
    """Return the failed and diverged runs of a figure: first those of the current code, then those of its results."""
    store = Store(Folders(root).store)
    plan = planning.make([figure], stand_in=True)
    runs = [run for curve in plan.by_figure[0].values() for run in curve]
    notes = {(run.setting.series, run.trial): store.failure(run.id) for run in runs}
    current = [Failure(*key, note["why"], note["traceback"]) for key, note in notes.items() if note]
    keys = {(failure.series, failure.trial) for failure in current}
    return current + [
        failure for failure in _in_results(stem(root, figure)) if (failure.series, failure.trial) not in keys
    ]


def place(run: Run, root: Path) -> str:
    """Return where a failed run of the user's own module raised its error: ``FILE:LINE``, or ''.

    The line is the last one of the module in the traceback: a library that it calls may have raised the error. If the
    problem raised it as it measured a state, the text says so, and names the module that yields the state. The same
    applies to a ``rounds`` that returns no iterator of states.
    """
    note = Store(Folders(root).store).failure(run.id)
    if note is None or run.setting.own is None:
        return ""
    file = run.setting.own.file
    lines = re.findall(rf'^  File "{re.escape(file)}", line (\d+)', note["traceback"], re.MULTILINE)
    if lines:
        return f"{file}:{lines[-1]}"
    *_, frame = re.findall(r'^  File "(.*)", line \d+, in (\w+)$', note["traceback"], re.MULTILINE) or [("", "")]
    if Path(frame[0]).name == "drive.py" and frame[1] in ("drive", "warm_up") and "not iterable" in note["why"]:
        return f"rounds in {file} returns this instead of yielding states; see docs/own-method.md"
    measuring = re.search(r'drive\.py", line \d+, in measure$', note["traceback"], re.MULTILINE)
    return f'in measuring a state that {file} yields; see docs/own-method.md, "The state"' if measuring else ""


def of_run(name: str, root: Path) -> list[Failure]:
    """Return the failed and diverged runs with this name: ``series, trial 3``, or ``series`` for all of its trials."""
    failures = [Failure(note["series"], note["trial"], note["why"], note["traceback"]) for note in _notes(root)]
    keys = {(failure.series, failure.trial) for failure in failures}
    recorded = [failure for base in stems(root) for failure in _in_results(base)]
    failures += [failure for failure in dict.fromkeys(recorded) if (failure.series, failure.trial) not in keys]
    named = [failure for failure in failures if name in (failure.series, f"{failure.series}, trial {failure.trial}")]
    return sorted(named, key=lambda failure: (failure.series, failure.trial))


def _in_results(base: Path) -> list[Failure]:
    """Return the runs that the results at ``base`` record as failed or diverged."""
    try:
        sidecar = read_sidecar(base)
    except UserError:
        return []  # some other file, or a damaged one
    runs = (*sidecar.failed, *sidecar.diverged) if sidecar is not None else ()
    return [Failure(note.series, note.trial, note.why) for note in runs]


def _notes(root: Path) -> Iterator[dict[str, Any]]:
    """Yield the notes of all runs that failed and have not been computed since."""
    for path in sorted(Folders(root).store.glob(f"*/*{NOTE}")):
        try:
            note = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(note, dict) and {"series", "trial", "why", "traceback"} <= set(note):
            yield note
