"""What the report reads of the sidecar beside a figure's results. No other module of the report knows its keys."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Dataset:
    """A dataset the results were computed on, in the state it was in then."""

    name: str
    state: str
    fingerprint: str
    note: str


@dataclass(frozen=True)
class Made:
    """Where and with what the results were made; '' for what the sidecar does not say."""

    commit: str
    dirty: bool
    fedrepro: str
    python: str
    libraries: Mapping[str, str]
    machine: str
    written: str


@dataclass(frozen=True)
class Facts:
    """A sidecar. ``diverged`` and ``failed`` are runs in words; ``trials_wanted`` is None where it is not said."""

    plan: str
    csv_sha256: str
    settings: list[Any]
    sets: tuple[str, ...]
    stand_ins: tuple[str, ...]
    datasets: tuple[Dataset, ...]
    trials_done: int
    trials_wanted: int | None
    missing: tuple[str, ...]
    diverged: tuple[str, ...]
    failed: tuple[str, ...]
    seconds: float
    made: Made


def facts(sidecar: Mapping[str, Any]) -> Facts:
    """The sidecar's facts; every one of them may be missing, as in an empty sidecar."""
    return Facts(
        plan=sidecar.get("plan", ""),
        csv_sha256=sidecar.get("csv_sha256", ""),
        settings=sidecar.get("settings", []),
        sets=tuple(sidecar.get("sets", ())),
        stand_ins=tuple(sidecar.get("stand_ins", ())),
        datasets=tuple(
            Dataset(d["dataset"], d["state"], d["fingerprint"], d.get("note") or "")
            for d in sidecar.get("datasets", ())
        ),
        trials_done=sidecar.get("trials_done", 0),
        trials_wanted=sidecar.get("trials_wanted"),
        missing=tuple(sidecar.get("missing", ())),
        diverged=_runs(sidecar.get("diverged", ())),
        failed=_runs(sidecar.get("failed", ())),
        seconds=sidecar.get("seconds", 0.0),
        made=made(sidecar.get("provenance", {})),
    )


def made(provenance: Mapping[str, Any]) -> Made:
    """The part of a sidecar that says where and with what it was made."""
    return Made(
        commit=provenance.get("commit", ""),
        dirty=bool(provenance.get("dirty")),
        fedrepro=provenance.get("fedrepro", ""),
        python=provenance.get("python", ""),
        libraries=provenance.get("libraries", {}),
        machine=provenance.get("machine", ""),
        written=provenance.get("written", ""),
    )


def narrowed(sidecar: Mapping[str, Any], datasets: Collection[str]) -> dict[str, Any]:
    """The sidecar with what it says of these datasets only."""
    return {
        **sidecar,
        "stand_ins": [name for name in sidecar.get("stand_ins", ()) if name in datasets],
        "variants": [item for item in sidecar.get("variants", ()) if item["dataset"] in datasets],
        "datasets": [item for item in sidecar.get("datasets", ()) if item["dataset"] in datasets],
    }


def _runs(found: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    return tuple(f"{run['series']}, trial {run['trial']} ({run['why']})" for run in found)
