"""Why runs failed or diverged, for whoever asks: from the notes of failed runs, and from what results say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedrepro.errors import UserError
from fedrepro.results.read import read_sidecar, stem
from fedrepro.runs.identity import plan as planning
from fedrepro.runs.runner import Folders
from fedrepro.runs.storage.store import Store
from fedrepro.spec.model import Figure

IN_RUNS = "says"  # see fedrepro.runs.identity.code

NOTE = ".failed.json"
"""How the names of the notes end that the store keeps of failed runs."""


@dataclass(frozen=True)
class Failure:
    """A run that failed or diverged, and why; the traceback of a failed one, where its note is there."""

    series: str
    trial: int
    why: str
    traceback: str = ""


def of_figure(figure: Figure, root: Path) -> list[Failure]:
    """The failed and diverged runs of a figure, in its order: those of the present code, and those of its results."""
    store = Store(Folders(root).store)
    plan = planning.make([figure], stand_in=True)
    runs = [run for found in plan.by_figure[0].values() for run in found]
    notes = {(run.setting.series, run.trial): store.failure(run.id) for run in runs}
    found = [Failure(*key, note["why"], note["traceback"]) for key, note in notes.items() if note]
    keys = {(one.series, one.trial) for one in found}
    return found + [one for one in _told(stem(root, figure)) if (one.series, one.trial) not in keys]


def of_run(name: str, root: Path) -> list[Failure]:
    """The failed and diverged runs that are called so, as ``series, trial 3``, or without a trial all of the series."""
    found = [Failure(note["series"], note["trial"], note["why"], note["traceback"]) for note in _notes(root)]
    keys = {(one.series, one.trial) for one in found}
    told = [one for path in sorted(root.glob("*/*/*.json")) for one in _told(path.with_suffix(""))]
    found += [one for one in dict.fromkeys(told) if (one.series, one.trial) not in keys]
    wanted = [one for one in found if name in (one.series, f"{one.series}, trial {one.trial}")]
    return sorted(wanted, key=lambda one: (one.series, one.trial))


def _told(base: Path) -> list[Failure]:
    """The runs of which the results at ``base`` say that they failed or diverged."""
    try:
        sidecar = read_sidecar(base)
    except UserError:
        return []  # some other file, or a damaged one
    runs = (*sidecar.failed, *sidecar.diverged) if sidecar is not None else ()
    return [Failure(one.series, one.trial, one.why) for one in runs]


def _notes(root: Path) -> Iterator[dict[str, Any]]:
    """The notes of all runs that failed and have not been computed since."""
    for path in sorted(Folders(root).store.glob(f"*/*{NOTE}")):
        try:
            note = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(note, dict) and {"series", "trial", "why", "traceback"} <= set(note):
            yield note
