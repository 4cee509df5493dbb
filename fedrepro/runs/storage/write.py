"""Write a figure's results: a tidy CSV with the same bytes however it was computed, and a sidecar with the rest.

The CSV contains one measurement per row. The sidecar (``.json``, next to it) contains what can differ between two
computations of the same numbers (timings, machine, versions, commit, data hashes) and what is missing.
"""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import io
import os
import platform
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from fedrepro import __version__, cpu, registry, snapshot
from fedrepro.errors import counted
from fedrepro.files import atomically, writing
from fedrepro.ledger import COUNTS
from fedrepro.lexicon.vocabulary import digest as lexicon_digest
from fedrepro.results import data_dictionary, lacking_trials, parameter_columns
from fedrepro.results.consistency import STAND_IN, recorded
from fedrepro.results.read import (
    BESIDE,
    PACKED,
    as_written,
    beside,
    content,
    points_file,
    read_sidecar,
    results_file,
    stem,
    with_suffix,
)
from fedrepro.results.schema import KEYS, MEASURED, POINTS, Content, Made, RunNote, Sidecar, Timing
from fedrepro.runs.compute.record import Record, rows
from fedrepro.runs.compute.run import Run
from fedrepro.runs.identity import code
from fedrepro.runs.identity.identify import source_key
from fedrepro.runs.identity.plan import Plan
from fedrepro.runs.storage.store import Store
from fedrepro.runs.storage.validity import plan_id
from fedrepro.spec.find import within
from fedrepro.spec.model import Figure, Setting


@dataclass(frozen=True)
class Written:
    """The sidecar that was written, the stem of its files, and why they are stored beside the figure's own results.

    before : trials of the results that these replaced, 0 if they had no more of them. unchanged : nothing was written,
    because the existing results contain these runs and more.
    """

    sidecar: Sidecar
    base: Path
    beside: str = ""
    before: int = 0
    unchanged: bool = False


def write(plan: Plan, number: int, store: Store, root: Path) -> Written:
    """Write the CSV, the arrays that panels ask for, and the sidecar of the plan's ``number``-th figure.

    Existing results are replaced only by results that contain at least as much: not by fewer trials, unless the
    existing ones are among them, and not by results of a stand-in if they come from real data. Otherwise the new
    results are stored beside them, as ``<figure>.incomplete`` or ``<figure>.stand-in``, or nowhere if the existing ones
    contain all of their runs. The lock and the lexicon remain those of the first results.
    """
    figure, series, missing = plan.figures[number], plan.by_figure[number], plan.missing[number]
    records = {name: [(run, store.read(run.id)) for run in runs] for name, runs in series.items()}
    text = _csv({s.series: s for s in figure.settings()}, records, store)
    digest = hashlib.sha256(text.encode()).hexdigest()
    points = _points(records)
    base = stem(root, figure)
    before = read_sidecar(base)
    first = before or (Sidecar() if results_file(base) else Sidecar(lock=plan.locks[number], lexicon=lexicon_digest()))
    sidecar = dataclasses.replace(
        _sidecar(plan, number, records, missing, store),
        csv_sha256=digest,
        points_sha256=hashlib.sha256(points).hexdigest() if points else "",
        lock=first.lock,
        lexicon=first.lexicon,
    )
    if before is None:
        _set_aside(base, text)
    name, why = _beside(before, sidecar) if before is not None else ("", "")
    if name and before is not None and _contains(before, sidecar) and as_written(base, before):
        return Written(sidecar, base, unchanged=True)
    if name:
        base = beside(base, name)
    else:
        for other in BESIDE:
            _remove(beside(base, other))
    _put(base, ".csv", text.encode(), results_file(base))
    _put(base, ".points.csv", points, points_file(base))
    atomically(with_suffix(base, ".json"), sidecar.text().encode())
    _remove(base, *(f".json{packed}" for packed in PACKED))
    trials = 0 if before is None or name else before.trials_done or 0
    return Written(sidecar, base, why, trials if trials > (sidecar.trials_done or 0) else 0)


def _beside(before: Sidecar, now: Sidecar) -> tuple[str, str]:
    """Return the name under which new results are stored beside existing ones, and why; empty if they replace them."""
    if set(now.stand_ins) - set(before.stand_ins) and before.trials_done:
        origin = f"a stand-in for {', '.join(now.stand_ins)}"
        return "stand-in", f"these results come from {origin}, and the existing ones from the data"
    held, holds = (sum(bool(run) for runs in sidecar.runs.values() for run in runs) for sidecar in (before, now))
    if before.runs:
        if _runs(before) - _runs(now) and not now.complete and holds < held:
            runs = counted(holds, "run") if holds else "no run"
            table = f"{now.figure.partition('/')[2]}.csv"
            kept = f"{table} with its {counted(held, 'run')} is kept until these are complete or contain as many"
            return "incomplete", f"they contain {runs}; {kept}"
    elif before.plan != now.plan and not now.complete and (now.trials_done or 0) < (before.trials_done or 0):
        done = f"{now.trials_done} of {now.trials_wanted} trials"
        return (
            "incomplete",
            f"these results contain {done}, and the existing ones {before.trials_done}",
        )
    return "", ""


def _contains(before: Sidecar, now: Sidecar) -> bool:
    """Return whether existing results contain all runs of new ones, of which none failed."""
    return bool(_runs(now)) and not now.failed and _runs(now) <= _runs(before)


def _runs(sidecar: Sidecar) -> set[str]:
    """Return the identities of the runs in results."""
    return {run for runs in sidecar.runs.values() for run in runs if run}


def _put(base: Path, suffix: str, body: bytes, there: Path | None) -> None:
    """Write a file, or none if it is empty; keep a compressed file with the same content."""
    if there is not None and there.suffix in PACKED and content(there) == body:
        return
    if body:
        atomically(with_suffix(base, suffix), body)
    _remove(base, *([] if body else [suffix]), *(suffix + packed for packed in PACKED))


def _remove(base: Path, *suffixes: str) -> None:
    every = (kind + packed for kind in (".csv", ".points.csv") for packed in ("", *PACKED))
    for suffix in suffixes or (*every, *(f".json{packed}" for packed in ("", *PACKED))):
        path = with_suffix(base, suffix)
        with writing(path):
            path.unlink(missing_ok=True)


def _set_aside(base: Path, text: str) -> None:
    """Rename a CSV without a sidecar, unless all of its rows are among the new ones."""
    table = results_file(base)
    if table is not None and not set(content(table).splitlines()) <= set(text.encode().splitlines()):
        with writing(table):
            os.replace(table, table.with_name(f"{table.name}.unknown"))


def _csv(settings: Mapping[str, Setting], records: Mapping[str, list[tuple[Run, Record | None]]], store: Store) -> str:
    facts = {name: recorded(setting) for name, setting in settings.items()}
    parameters = parameter_columns.order(facts.values())
    text = [_lines([[*KEYS, *parameters, *MEASURED]])]
    for name, pairs in records.items():
        setting, own = settings[name], parameter_columns.texts(facts[name])
        for run, record in pairs:
            keys = [name, setting.algorithm, _dataset(setting, run.stand_in), setting.names.get("partition", "")]
            start = _lines([[*keys, *(own.get(column, "") for column in parameters), run.trial]]).rstrip("\n")
            failed = [["failed", "", *([""] * len(COUNTS)), "", ""]] if store.failure(run.id) is not None else []
            measured = _lines(rows(record) if record is not None else failed)
            text += [f"{start},{line}" for line in measured.splitlines(keepends=True)]
    return "".join(text)


def _lines(values: Iterable[Iterable[Any]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(values)
    return out.getvalue()


def _dataset(setting: Setting, stand_in: bool) -> str:
    return setting.names["dataset"] + STAND_IN * stand_in


def _points(records: Mapping[str, list[tuple[Run, Record | None]]]) -> bytes:
    """Return ``<figure>.points.csv``: arrays that panels draw (labels, embeddings), one row per element, or b''."""
    rows = [
        [name, run.trial, artifact, i, *(repr(v) if isinstance(v, float) else v for v in row)]
        for name, pairs in records.items()
        for run, record in pairs
        if record is not None
        for artifact, array in sorted(record.artifacts.items())
        for i, row in enumerate(array.reshape(len(array), -1).tolist())
    ]
    if not rows:
        return b""
    width = max(len(row) for row in rows) - 4
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*POINTS, *[f"v{i}" for i in range(width)]])
    writer.writerows(rows)
    return out.getvalue().encode()


def _sidecar(
    plan: Plan,
    number: int,
    records: Mapping[str, list[tuple[Run, Record | None]]],
    missing: Mapping[str, str],
    store: Store,
) -> Sidecar:
    figure = plan.figures[number]
    pairs = [pair for trials in records.values() for pair in trials]
    done = [sum(record is not None for _, record in trials) for trials in records.values()]
    asked = [max(len(trials), figure.more.get(name, 0)) for name, trials in records.items()]
    timed = figure.timed()
    used = [plan.sources[key] for key in sorted(plan.sources) if _uses(figure, key)]
    return Sidecar(
        figure=f"{figure.paper}/{figure.figure}",
        spec=within(figure.path),
        tier=figure.tier,
        sets=tuple(figure.sets),
        plan=plan_id(plan, number),
        runs={name: tuple(run.id if record else "" for run, record in trials) for name, trials in records.items()},
        complete=bool(done) and not missing and done == asked and figure.trials >= figure.wanted_trials,
        trials_done=min(done, default=0),
        trials_wanted=figure.wanted_trials,
        missing=(
            *(f"{n} curve{'s' if n > 1 else ''}: {why}" for why, n in Counter(missing.values()).items()),
            *lacking_trials.in_words(zip(done, asked, strict=True)),
        ),
        failed=tuple(
            RunNote(run.setting.series, run.trial, note["why"])
            for run, record in pairs
            if record is None and (note := store.failure(run.id))
        ),
        diverged=tuple(
            RunNote(run.setting.series, run.trial, record.meta["reason"])
            for run, record in pairs
            if record is not None and record.meta["status"] == "diverged"
        ),
        stand_ins=tuple(sorted({s.dataset for s in used if s.state == "stand-in"})),
        datasets=tuple(Content(s.dataset, s.state, s.fingerprint, s.note) for s in used),
        settings=tuple(recorded(s) for s in figure.settings()),
        sizes=_sizes(figure, records),
        setup_scalars={
            name: record.meta["setup_scalars"]
            for name, trials in records.items()
            if (record := next((r for _, r in trials if r is not None), None)) is not None
        },
        timing=_timing({name: trials for name, trials in records.items() if name in timed}),
        seconds_per_run={
            name: tuple(round(r.meta["seconds"], 3) for _, r in trials if r) for name, trials in records.items()
        },
        seconds=sum(record.meta["seconds"] for _, record in pairs if record is not None),
        made=made(figure.settings()),
        columns=data_dictionary.meanings(recorded(s) for s in figure.settings()),
    )


def _sizes(figure: Figure, records: Mapping[str, list[tuple[Run, Record | None]]]) -> dict[str, dict[str, int]]:
    """Return the sizes of each real dataset as loaded, by its name in the spec, from the first run that has them."""
    loaded: dict[str, dict[str, int]] = {}
    for setting in figure.settings():
        pairs = records.get(setting.series, ())
        sizes = (record.meta.get("size") for run, record in pairs if record is not None and not run.stand_in)
        if size := next(filter(None, sizes), None):
            loaded.setdefault(setting.names["dataset"], size)
    return loaded


def _uses(figure: Figure, key: str) -> bool:
    return any(source_key(s) == key for s in figure.settings())


def _timing(records: Mapping[str, list[tuple[Run, Record | None]]]) -> dict[str, dict[int, Timing]]:
    return {
        name: {
            run.trial: Timing(
                tuple(record.rounds.tolist()),
                tuple(round(s, 6) for s in record.seconds.tolist()) if _timed(record) else (),
                tuple(round(s, 6) for s in record.meta.get("serial", ())),
            )
            for run, record in trials
            if record is not None and (_timed(record) or record.meta.get("serial"))
        }
        for name, trials in records.items()
    }


def _timed(record: Record) -> bool:
    """Return whether the times of its rounds are known; results restored from older versions have none."""
    return bool(np.isfinite(record.seconds).all())


def made(settings: Iterable[Setting] = ()) -> Made:
    """Return how the numbers were made: version, commit, dirty flag, machine, library versions, date."""
    program = snapshot.program()
    return Made(
        fedrepro=__version__,
        commit=program.commit,
        dirty=program.dirty,
        without_commit=program.without_commit,
        program=program.digest,
        machine=f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        python=platform.python_version(),
        libraries=code.libraries({registry.methods()[s.algorithm].cls for s in settings}),
        kernels=cpu.kernels(),
        written=datetime.now(UTC).isoformat(timespec="seconds"),
    )
