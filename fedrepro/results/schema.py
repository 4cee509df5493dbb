"""What results look like: the columns of a figure's tidy CSV, and the sidecar beside it, typed and versioned.

``<figure>.csv`` holds one measurement a row. ``<figure>.json``, the sidecar, says what a reader must know of it and
what may differ between two computations of the same numbers: timings, machine, versions, commit, hashes of the data.
"""

from __future__ import annotations

import dataclasses
import json
import re
import types
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Union, get_args, get_origin, get_type_hints

MEANINGS: Mapping[str, str] = {
    "series": "the curve: its method and what the spec sets of it, `@` its dataset, `/` its partition, and the rest",
    "algorithm": "the registered name of the method",
    "parameters": "what the spec sets of the method, as `m=10;Q1=100`; the sidecar has every parameter",
    "dataset": "what the spec calls its data, with `(stand-in)` where a stand-in stands for them",
    "partition": "what the spec calls its partition; empty without one",
    "trial": "1 for the first",
    "status": "`ok`, `diverged` (up to the last finite value), or `failed` (one row, empty from here on)",
    "round": "communication rounds done; 0 is the initial point",
    "uplink_scalars": "numbers that all clients have sent up by then (those sent before round 1 are in the sidecar)",
    "uplink_bits": "bits of these messages",
    "downlink_scalars": "numbers that the server has sent down by then",
    "downlink_bits": "bits of these messages",
    "metric": "the name of a metric of the problem",
    "value": "its value, with as many digits as tell it from every other number",
}
"""What stands in each column of a figure's CSV."""

COLUMNS = tuple(MEANINGS)

POINTS: Mapping[str, str] = {
    "series": "as in the CSV",
    "trial": "as in the CSV",
    "array": "the name of an array that the spec asks for as an artifact",
    "index": "the row of the array, from 0",
}
"""What stands in each column of ``<figure>.points.csv`` before the values of the array (``v0``, ``v1``, ...)."""

VERSIONS: Mapping[int, str] = {
    1: "without `schema` and `runs`; `provenance` for `made`",
    2: "has `runs`; times are those of nodes one after another, and of loading",
    3: "`timing` has `seconds`, nodes side by side, and `serial`, nodes one after another",
    4: "`runs` has identities of scheme 2, and `former_runs` those of scheme 1 that the same runs had before",
}
"""Of the sidecar (its key ``schema``), and what each was like; all are read."""

VERSION = max(VERSIONS)

_NUMBERS = re.compile(r'\[\n([^][{}":]+)\]')  # a list of numbers; a line never ends inside a string of JSON


@dataclass(frozen=True)
class RunNote:
    """A run that failed or diverged.

    series, trial : as in the CSV. why : the error, or the value that was not finite.
    """

    series: str
    trial: int
    why: str

    def __str__(self) -> str:
        return f"{self.series}, trial {self.trial} ({self.why})"


@dataclass(frozen=True)
class Content:
    """A dataset in the state it was in.

    dataset : its registered name. state : present, variant, stand-in, own file, or none needed (generated).
    fingerprint : a hash of what was read; empty where nothing was. note : in which way it is not the published file.
    """

    dataset: str
    state: str
    fingerprint: str = ""
    note: str = ""


@dataclass(frozen=True)
class Timing:
    """When a run's recorded rounds were done, in seconds of the method's own work.

    rounds : those recorded. seconds : with nodes side by side, of which the slowest counts. serial : with nodes one
    after another, as they were computed. Either is empty where it is not known.
    """

    rounds: tuple[int, ...]
    seconds: tuple[float, ...]
    serial: tuple[float, ...] = ()


@dataclass(frozen=True)
class Made:
    """Where and with what results were made; '' for what is not known.

    fedrepro, python : their versions. commit : of the checkout. dirty : whether it had changes. machine : its system
    and number of cores. libraries : versions by name. kernels : instruction level, CPU, BLAS (``cpu.kernels``). written
    : when, in UTC.
    """

    fedrepro: str = ""
    commit: str = ""
    dirty: bool = False
    machine: str = ""
    python: str = ""
    libraries: Mapping[str, str] = field(default_factory=dict)
    kernels: Mapping[str, str] = field(default_factory=dict)
    written: str = ""


@dataclass(frozen=True)
class Sidecar:
    """What is known of a figure's results. The default says nothing, as for numbers that come from elsewhere.

    figure : ``paper/figure``. spec : the path of the spec. tier : the tier it was computed at. plan : one hash of all
    runs, in order. runs : by series, the identity of the run of each trial. former_runs : the identities that the same
    runs had under an earlier scheme. sets : the ``--set`` options. complete :
    every trial of every curve that the tier asks for. trials_done : of the curve with the fewest. trials_wanted : what
    the tier asks for, None where it is not said. missing : curves and trials in words. failed : runs that ended with an
    error. diverged : runs whose values ceased to be finite. datasets : the state of each. stand_ins : names of datasets
    that stand-ins stood for. settings : every parameter of every series. sizes : of every real dataset, as the spec
    calls it, what was loaded (``N: 10000``). setup_scalars : by series, numbers sent once before round 1. timing : by
    series and trial, of panels over seconds. seconds_per_run : by series, in the order of trials. seconds : of all
    runs, added up. made : where and with what. csv_sha256 : of the CSV, uncompressed. points_sha256 : of
    the file of arrays, '' where there is none.
    """

    figure: str = ""
    spec: str = ""
    tier: str = ""
    sets: tuple[str, ...] = ()
    plan: str = ""
    runs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    former_runs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    complete: bool = True
    trials_done: int | None = None
    trials_wanted: int | None = None
    missing: tuple[str, ...] = ()
    failed: tuple[RunNote, ...] = ()
    diverged: tuple[RunNote, ...] = ()
    stand_ins: tuple[str, ...] = ()
    datasets: tuple[Content, ...] = ()
    settings: tuple[Mapping[str, Any], ...] = ()
    sizes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    setup_scalars: Mapping[str, int] = field(default_factory=dict)
    timing: Mapping[str, Mapping[int, Timing]] = field(default_factory=dict)
    seconds_per_run: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    seconds: float = 0.0
    made: Made = field(default_factory=Made)
    csv_sha256: str = ""
    points_sha256: str = ""

    @property
    def changes(self) -> tuple[str, ...]:
        """The options that change what was computed."""
        return changes(self.sets)

    @property
    def variants(self) -> tuple[Content, ...]:
        """The datasets that are known variants of what was published."""
        return tuple(one for one in self.datasets if one.state == "variant")

    def only(self, datasets: Iterable[str]) -> Sidecar:
        """The sidecar with what it says of these datasets only."""
        names = set(datasets)
        return dataclasses.replace(
            self,
            stand_ins=tuple(name for name in self.stand_ins if name in names),
            datasets=tuple(one for one in self.datasets if one.dataset in names),
        )

    def text(self) -> str:
        """As JSON, in a fixed order of keys; a list of numbers is one line, as there may be thousands."""
        facts = dataclasses.asdict(self) | {"schema": VERSION}
        text = json.dumps(facts, indent=1, sort_keys=True, default=str) + "\n"
        return _NUMBERS.sub(lambda found: "[" + " ".join(found[1].split()) + "]", text)

    @classmethod
    def parse(cls, facts: Mapping[str, Any]) -> Sidecar:
        """From JSON of any version; what it does not say has its default. Raises ValueError where it is no sidecar."""
        if not isinstance(facts, Mapping):
            raise ValueError(f"a sidecar is a mapping, not {type(facts).__name__}")
        version = facts.get("schema", 1)
        if version not in range(1, VERSION + 1):
            raise ValueError(f"version {version} of the sidecar is not known here (known: 1 to {VERSION})")
        try:
            for older, convert in enumerate((_from_1, _from_2), start=1):
                facts = convert(facts) if version <= older else facts
            made = cls(**_fields(facts))
        except (TypeError, AttributeError, KeyError, ValueError, RecursionError) as error:
            raise ValueError(f"the sidecar is not as it should be: {error}") from None
        for name, kind in get_type_hints(cls).items():
            if not _is(getattr(made, name), kind):
                raise ValueError(f"the sidecar is not as it should be: {name}")
        return made


def changes(sets: Iterable[str]) -> tuple[str, ...]:
    """The options among ``sets`` that change runs: not the number of trials, which says how many there are."""
    return tuple(option for option in sets if option.partition("=")[0].strip() != "trials")


def _from_1(facts: Mapping[str, Any]) -> dict[str, Any]:
    """A sidecar of version 1 as one of version 2."""
    found = dict(facts)
    found["made"] = found.pop("provenance", {})
    found["timing"] = {
        series: {trial: {"rounds": one["round"], "seconds": one["seconds"]} for trial, one in runs.items()}
        for series, runs in found.pop("timing", {}).items()
    }
    variants = found.pop("variants", [])
    listed = {item["dataset"] for item in found.get("datasets", [])}
    found["datasets"] = [
        *found.get("datasets", []),
        *({**item, "state": "variant"} for item in variants if item["dataset"] not in listed),
    ]
    return found


def _from_2(facts: Mapping[str, Any]) -> dict[str, Any]:
    """A sidecar of version 2 as one of version 3: what it has is the time of nodes one after another."""
    timing = {
        series: {
            trial: {"rounds": one["rounds"], "seconds": [], "serial": one["seconds"]} for trial, one in runs.items()
        }
        for series, runs in facts.get("timing", {}).items()
    }
    return {**facts, "timing": timing}


def _fields(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The values of the fields a mapping speaks of, typed; other keys are passed over."""
    made: dict[str, Any] = {f.name: facts[f.name] for f in dataclasses.fields(Sidecar) if f.name in facts}
    for name in ("sets", "missing", "stand_ins", "settings"):
        if name in made:
            made[name] = tuple(made[name])
    for name in ("failed", "diverged"):
        if name in made:
            made[name] = tuple(RunNote(n["series"], int(n["trial"]), n["why"]) for n in made[name])
    if "datasets" in made:
        made["datasets"] = tuple(
            Content(d["dataset"], d["state"], d.get("fingerprint") or "", d.get("note") or "") for d in made["datasets"]
        )
    for name in ("runs", "former_runs", "seconds_per_run"):
        if name in made:
            made[name] = {series: tuple(values) for series, values in made[name].items()}
    if "timing" in made:
        made["timing"] = {
            series: {
                int(t): Timing(tuple(one["rounds"]), tuple(one["seconds"]), tuple(one.get("serial", ())))
                for t, one in runs.items()
            }
            for series, runs in made["timing"].items()
        }
    if "made" in made:
        known = {f.name for f in dataclasses.fields(Made)}
        given = {k: v for k, v in made["made"].items() if k in known and v is not None}
        made["made"] = Made(**given)
    return made


_PARTS: dict[Any, dict[str, Any]] = {one: get_type_hints(one) for one in (RunNote, Content, Timing, Made)}


def _is(value: Any, kind: Any) -> bool:
    """Whether a value read from JSON is of the type that a field is declared with."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Any:
        return True
    if origin in (Union, types.UnionType):
        return any(_is(value, one) for one in inner)
    if origin is tuple:
        return isinstance(value, tuple) and all(_is(one, inner[0]) for one in value)
    if origin is Mapping:
        return isinstance(value, Mapping) and all(_is(k, inner[0]) and _is(v, inner[1]) for k, v in value.items())
    if kind in _PARTS:
        return isinstance(value, kind) and all(_is(getattr(value, name), one) for name, one in _PARTS[kind].items())
    if isinstance(value, bool) or kind is bool:
        return isinstance(value, bool) and kind is bool
    return isinstance(value, int | float if kind is float else kind)
