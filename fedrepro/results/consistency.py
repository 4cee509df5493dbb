"""Whether the parts of a figure's results agree: the CSV, its sidecar, and the plan that both come from.

Numbers whose origin is not recorded, or is recorded in two ways, say nothing certain about a paper. A forgery in which
all parts agree cannot be found here; ``fedrepro check`` computes runs again and finds it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any

from fedrepro import registry
from fedrepro.data.copies import published_fingerprint
from fedrepro.results.by_run import Runs
from fedrepro.results.schema import Sidecar
from fedrepro.spec.model import Figure, Setting

STAND_IN = " (stand-in)"
"""The end of a dataset's name in the CSV if a stand-in replaced it."""


def recorded(setting: Setting) -> dict[str, Any]:
    """Return a setting as a sidecar records it: everything except the names that the spec gives to things.

    The text of a user's own module is not recorded; the identity of a run includes what it computes.
    """
    facts: dict[str, Any] = json.loads(json.dumps(asdict(replace(setting, own=None)), default=str))
    facts.pop("names")
    facts.pop("own")
    return facts


def plan_hash(runs: Mapping[str, Iterable[str]]) -> str:
    """Return one hash of the identities of all runs of a figure, by series and trial, in order."""
    text = "\n".join(f"{series}\t{run}" for series, ids in runs.items() for run in ids)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def stand_ins(sidecar: Sidecar, runs: Runs, used: Iterable[Setting]) -> list[str]:
    """Return the datasets of these settings that a stand-in replaced, according to the CSV or the sidecar."""
    names = [
        setting.dataset
        for setting in used
        if setting.dataset in sidecar.stand_ins or any(n.endswith(STAND_IN) for n in runs.datasets(setting.series))
    ]
    return list(dict.fromkeys(names))


def doubts(figure: Figure, sidecar: Sidecar, runs: Runs, used: Iterable[Setting]) -> Iterator[str]:
    """Yield, in words, each reason to doubt where the numbers of these settings come from.

    Recorded settings that are no longer the spec's are no doubt: such results are stale, as after a change of code.
    """
    if sidecar == Sidecar():
        yield "from a CSV without a sidecar"
        return
    if not sidecar.csv_sha256:
        yield "with a sidecar that has no hash of the CSV"
    if sidecar.lock and not sidecar.lexicon:
        yield "with a sidecar that names a lock, but no lexicon"
    if not sidecar.runs:
        yield "with a sidecar that names no runs"
        return
    if (sidecar.figure, sidecar.tier) != (f"{figure.paper}/{figure.figure}", figure.tier):
        yield f"with the sidecar of {sidecar.figure or 'an unknown figure'} at the {sidecar.tier or 'unknown'} tier"
    if not _planned(figure, sidecar):
        yield "with a sidecar whose runs are not those of its plan"
    known = {str(facts.get("series")) for facts in sidecar.settings}
    for setting in used:
        if setting.series not in known:
            yield f"with a sidecar that records no settings of {setting.series}"
        named = sidecar.runs.get(setting.series, ())
        for trial in runs.finished(setting.series):
            if trial > len(named) or not named[trial - 1] or named.count(named[trial - 1]) > 1:
                yield f"with a sidecar that names no run for trial {trial} of {setting.series}"
    yield from dict.fromkeys(_about_data(sidecar, used))


def _planned(figure: Figure, sidecar: Sidecar) -> bool:
    """Return whether the runs, in this scheme of identities or a former one, have the hash of the plan."""
    return follows_plan(sidecar, [setting.series for setting in figure.settings()])


def follows_plan(sidecar: Sidecar, order: Iterable[str] = ()) -> bool:
    """Return whether the runs of complete results have the hash of their plan; others need not.

    order : the series in the order of the plan, by default that of the sidecar's settings.
    """
    series = list(order) or [str(facts.get("series")) for facts in sidecar.settings]
    ordered = ({name: runs.get(name, ()) for name in series} for runs in (sidecar.runs, sidecar.former_runs))
    return not sidecar.complete or any(plan_hash(runs) == sidecar.plan for runs in ordered)


def _about_data(sidecar: Sidecar, used: Iterable[Setting]) -> Iterator[str]:
    """Yield what is not certain about the data of these settings."""
    for setting in used:
        name, entry = setting.dataset, registry.datasets()[setting.dataset]
        contents = [content for content in sidecar.datasets if content.dataset == name]
        if not contents:
            yield f"with a sidecar that does not list {name}"
        for content in contents if entry.source is not None else ():
            if content.state != "present":
                continue
            known = published_fingerprint(entry.source or "", {**entry.parameters(), **dict(setting.dataset_params)})
            if not content.fingerprint:
                yield f"on data of {name} without a hash"
            elif len(contents) == 1 and known and content.fingerprint != known:
                yield f"on data of {name} that are recorded as the published ones, but have another hash"
