"""A figure's results: one tidy CSV, byte for byte the same however it was computed, and a sidecar with everything else.

The CSV holds one measurement a row. The sidecar (``.json`` beside it) holds what may differ between two computations of
the same numbers: timings, machine, versions, commit, data hashes; and what a reader of a partial figure must know.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import platform
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fedrepro import __version__, registry
from fedrepro.files import atomically
from fedrepro.ledger import COUNTS
from fedrepro.results.read import stem
from fedrepro.results.schema import COLUMNS
from fedrepro.runs import code
from fedrepro.runs.plan import Plan, Run
from fedrepro.runs.store import Record, Store
from fedrepro.spec.model import Figure, Setting


def write(plan: Plan, number: int, store: Store, root: Path) -> dict[str, Any]:
    """Write the CSV, the arrays (where panels ask for any) and the sidecar of the plan's ``number``-th figure."""
    figure, series, missing = plan.figures[number], plan.by_figure[number], plan.missing[number]
    records = {name: [(run, store.read(run.id)) for run in runs] for name, runs in series.items()}
    settings = {s.series: s for s in figure.settings()}
    text = _csv(settings, records, store)
    base = stem(root, figure)
    csv_path = base.with_name(base.name + ".csv")
    atomically(csv_path, text.encode())
    _write_arrays(base, records)
    sidecar = _sidecar(plan, number, records, missing, store)
    sidecar["csv_sha256"] = hashlib.sha256(text.encode()).hexdigest()
    body = json.dumps(sidecar, indent=1, sort_keys=True, default=str) + "\n"
    atomically(base.with_name(base.name + ".json"), body.encode())
    return sidecar


def finished(plan: Plan, number: int, root: Path) -> bool:
    """Whether the CSV on disk is the complete result of exactly this plan."""
    base = stem(root, plan.figures[number])
    try:
        sidecar = json.loads(base.with_name(base.name + ".json").read_text(encoding="utf-8"))
        body = base.with_name(base.name + ".csv").read_bytes()
    except (FileNotFoundError, ValueError):
        return False
    return (
        sidecar.get("plan") == plan_id(plan, number)
        and sidecar.get("complete") is True
        and sidecar.get("csv_sha256") == hashlib.sha256(body).hexdigest()
    )


def plan_id(plan: Plan, number: int) -> str:
    """One hash of all run identities of a figure, in order."""
    text = "\n".join(f"{name}\t{run.id}" for name, runs in plan.by_figure[number].items() for run in runs)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _csv(settings: Mapping[str, Setting], records: Mapping[str, list[tuple[Run, Record | None]]], store: Store) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for name, pairs in records.items():
        setting = settings[name]
        for run, record in pairs:
            fixed = [
                name,
                setting.algorithm,
                _parameters(setting),
                _dataset(setting, run.stand_in),
                setting.names.get("partition", ""),
                run.trial,
            ]
            if record is not None:
                writer.writerows(_rows(fixed, record))
            elif store.failure(run.id) is not None:
                writer.writerow([*fixed, "failed", "", *([""] * len(COUNTS)), "", ""])
    return out.getvalue()


def _rows(fixed: list[Any], record: Record) -> Iterable[list[Any]]:
    status = record.meta["status"]
    for i, round_ in enumerate(record.rounds.tolist()):
        counts = record.counts[i].tolist()
        for metric, values in record.metrics.items():
            yield [*fixed, status, round_, *counts, metric, repr(float(values[i]))]


def _parameters(setting: Setting) -> str:
    """What the spec sets, so that a row can be grouped without parsing; the sidecar has every default."""
    return ";".join(f"{k}={setting.params[k]}" for k in setting.explicit)


def _dataset(setting: Setting, stand_in: bool) -> str:
    return f"{setting.names['dataset']} (stand-in)" if stand_in else setting.names["dataset"]


def _write_arrays(base: Path, records: Mapping[str, list[tuple[Run, Record | None]]]) -> None:
    """Arrays that panels draw (labels, embeddings): one row an element, in ``<figure>.points.csv``."""
    rows = [
        [name, run.trial, artifact, i, *(repr(v) if isinstance(v, float) else v for v in row)]
        for name, pairs in records.items()
        for run, record in pairs
        if record is not None
        for artifact, array in sorted(record.artifacts.items())
        for i, row in enumerate(array.reshape(len(array), -1).tolist())
    ]
    path = base.with_name(base.name + ".points.csv")
    if not rows:
        path.unlink(missing_ok=True)
        return
    width = max(len(row) for row in rows) - 4
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["series", "trial", "array", "index", *[f"v{i}" for i in range(width)]])
    writer.writerows(rows)
    atomically(path, out.getvalue().encode())


def _sidecar(
    plan: Plan,
    number: int,
    records: Mapping[str, list[tuple[Run, Record | None]]],
    missing: Mapping[str, str],
    store: Store,
) -> dict[str, Any]:
    figure = plan.figures[number]
    pairs = [pair for found in records.values() for pair in found]
    done = [sum(record is not None for _, record in found) for found in records.values()]
    failures = [
        {"series": run.setting.series, "trial": run.trial, "why": note["why"]}
        for run, record in pairs
        if record is None and (note := store.failure(run.id))
    ]
    diverged = [
        {"series": run.setting.series, "trial": run.trial, "why": record.meta["reason"]}
        for run, record in pairs
        if record is not None and record.meta["status"] == "diverged"
    ]
    timed = {c.setting.series for p in figure.panels if p.x == "seconds" for c in p.curves}
    used = [plan.sources[key] for key in sorted(plan.sources) if _uses(figure, key)]
    return {
        "figure": f"{figure.paper}/{figure.figure}",
        "spec": figure.path,
        "tier": figure.tier,
        "sets": list(figure.sets),
        "plan": plan_id(plan, number),
        "complete": bool(done) and not missing and min(done) == figure.trials and figure.trials >= figure.wanted_trials,
        "trials_done": min(done, default=0),
        "trials_wanted": figure.wanted_trials,
        "missing": [
            *(f"{n} curve{'s' if n > 1 else ''}: {why}" for why, n in Counter(missing.values()).items()),
            *(
                f"{curves} curve{'s' if curves > 1 else ''}: {n} of {figure.trials} trials"
                for n, curves in sorted(Counter(done).items())
                if n < figure.trials
            ),
        ],
        "failed": failures,
        "diverged": diverged,
        "stand_ins": sorted({s.dataset for s in used if s.state == "stand-in"}),
        "variants": [{"dataset": s.dataset, "note": s.note} for s in used if s.state == "variant"],
        "datasets": [asdict(s) for s in used],
        "settings": [_setting_facts(s) for s in figure.settings()],
        "setup_scalars": {name: found[0][1].meta["setup_scalars"] for name, found in records.items() if found[0][1]},
        "timing": _timing({name: found for name, found in records.items() if name in timed}),
        "seconds_per_run": {
            name: [round(r.meta["seconds"], 3) for _, r in found if r] for name, found in records.items()
        },
        "seconds": sum(record.meta["seconds"] for _, record in pairs if record is not None),
        "provenance": provenance(figure.settings()),
    }


def _uses(figure: Figure, key: str) -> bool:
    from fedrepro.seeds import canonical

    return any(canonical([s.dataset, dict(s.dataset_params)]) == key for s in figure.settings())


def _setting_facts(setting: Setting) -> dict[str, Any]:
    facts = asdict(setting)
    facts.pop("names")
    return facts


def _timing(records: Mapping[str, list[tuple[Run, Record | None]]]) -> dict[str, Any]:
    return {
        name: {
            str(run.trial): {"round": record.rounds.tolist(), "seconds": [round(s, 6) for s in record.seconds.tolist()]}
            for run, record in found
            if record is not None
        }
        for name, found in records.items()
    }


def provenance(settings: Iterable[Setting] = ()) -> dict[str, Any]:
    """Where and with what the numbers were made: version, commit, dirty flag, machine, library versions, date."""
    classes = {registry.algorithms()[s.algorithm].cls for s in settings}
    return {
        "fedrepro": __version__,
        **_commit(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "libraries": code.libraries(classes),
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _commit() -> dict[str, Any]:
    folder = Path(__file__).parent
    try:
        head = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True, check=True, timeout=10
        )
        dirty = subprocess.run(
            ["git", "status", "--porcelain", "--", "fedrepro", "experiments"],
            cwd=folder.parent, capture_output=True, text=True, check=True, timeout=10,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return {"commit": "unknown", "dirty": None}
    return {"commit": head.stdout.strip(), "dirty": bool(dirty.stdout.strip())}
