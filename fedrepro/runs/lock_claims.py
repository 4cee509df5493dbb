"""Lock the claims of a spec, unless it has results: record them with the lexicon, the data and the settings."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fedrepro import __version__, snapshot
from fedrepro.claims import locked_claims
from fedrepro.claims.locked_claims import Lock, LockedData
from fedrepro.errors import UserError
from fedrepro.files import atomically
from fedrepro.results.read import BESIDE, SET_FOLDER, Damaged, beside, place, read_sidecar, results_file
from fedrepro.runs.identity import plan as planning
from fedrepro.runs.identity.plan import Plan
from fedrepro.runs.runner import Folders
from fedrepro.runs.storage.store import Store
from fedrepro.spec import lock_file
from fedrepro.spec.model import Figure


@dataclasses.dataclass(frozen=True)
class Locked:
    """A lock that was written: its path, its digest, and the lock."""

    path: Path
    digest: str
    lock: Lock


def lock_claims(figures: Mapping[str, Figure], root: Path, after_results: bool = False) -> Locked:
    """Write the lock of a spec, given at every tier. root : the folder of results.

    after_results : lock although there are results; the lock then names their tiers. Raises UserError if the spec has
    no claims, or has results, or has results and a lock.
    """
    some = next(iter(figures.values()))
    path = lock_file.path_of(some.path)
    if not some.claims:
        raise UserError(f"{some.path}: has no claims to lock; `fedrepro describe claims` explains how to write one")
    plans = {tier: planning.make([figure], stand_in=False) for tier, figure in figures.items()}
    existing = dict(_existing(figures, root))
    if existing and path.exists():
        raise UserError(
            f"{some.path}: has {_first(existing)}, so its lock {path} is not replaced; "
            "restore the spec with git, or leave the lock as it is: verdicts name what was changed"
        )
    if existing and not after_results:
        raise UserError(
            f"{some.path}: has {_first(existing)}; only a lock before the first run proves that claims came first. "
            "--after-results locks it all the same, and the lock says so"
        )
    lock = _lock(figures, plans, tuple(existing))
    atomically(path, lock.text().encode())
    return Locked(path, lock_file.digest(some.path), lock)


def _first(existing: Mapping[str, str]) -> str:
    return next(iter(existing.values()))


def _lock(figures: Mapping[str, Figure], plans: Mapping[str, Plan], existing: tuple[str, ...]) -> Lock:
    some = next(iter(figures.values()))
    claims = locked_claims.lock_claims(figures)
    return Lock(
        figure=some.name,
        written=datetime.now(UTC).isoformat(timespec="seconds"),
        fedrepro=__version__,
        commit=snapshot.program().commit,
        existing=existing,
        trials={tier: figure.wanted_trials for tier, figure in figures.items()},
        lexicon=locked_claims.definitions(word for claim in claims.values() for word in claim.words),
        data=tuple(_data(plans)),
        claims=claims,
    )


def _data(plans: Mapping[str, Plan]) -> Iterator[LockedData]:
    """Yield the datasets of a spec with their parameters at every tier, each once."""
    known: list[LockedData] = []
    for plan in plans.values():
        for setting in plan.figures[0].settings():
            source = plan.source(setting)
            parameters: dict[str, Any] = json.loads(json.dumps(dict(setting.dataset_params), default=str))
            data = LockedData(setting.dataset, parameters, source.state, source.fingerprint)
            if data not in known:
                known.append(data)
                yield data


# -- results that exist ------------------------------------------------------------------------------------------------


def _existing(figures: Mapping[str, Figure], root: Path) -> Iterator[tuple[str, str]]:
    """Yield each tier that has results or finished runs, and which, in words.

    Tiers with the same table or the same runs, as in a study of one's own, count once.
    """
    store, computed = Store(Folders(root).store), _computed(root)
    tables: set[Path] = set()
    known: set[str] = set()
    for tier, figure in figures.items():
        runs = {run for stand_in in (False, True) for run in planning.make([figure], stand_in).runs} - known
        known |= runs
        if table := next(_tables(figure, root), None):
            if table not in tables:
                yield tier, f"results at the {tier} tier ({table})"
            tables.add(table)
        elif done := sum(run in computed or store.has(run) for run in runs):
            yield tier, f"{done} finished run{'s' if done > 1 else ''} at the {tier} tier (in {root})"


def _tables(figure: Figure, root: Path) -> Iterator[Path]:
    """Yield the tables of results of a figure at its tier, with and without ``--set``."""
    own = place(root, figure.tier, figure.paper, figure.figure, (), figure.path)
    changed = [
        place(folder, figure.tier, figure.paper, figure.figure) for folder in sorted((root / SET_FOLDER).glob("*"))
    ]
    for base in (own, *changed):
        for stem in (base, *(beside(base, why) for why in BESIDE)):
            if table := results_file(stem):
                yield table


def _computed(root: Path) -> set[str]:
    """Return the runs that the results of any figure contain."""
    runs: set[str] = set()
    depths = ("*/*.csv*", "*/*/*.csv*", f"{SET_FOLDER}/*/*/*.csv*", f"{SET_FOLDER}/*/*/*/*.csv*")
    for table in (table for depth in depths for table in root.glob(depth)):
        with contextlib.suppress(Damaged):
            sidecar = read_sidecar(table.with_name(table.name[: table.name.index(".csv")]))
            runs |= {run for listed in (sidecar.runs.values() if sidecar else ()) for run in listed if run}
    return runs
