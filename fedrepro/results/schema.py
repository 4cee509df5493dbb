"""The format of results: the columns of a figure's tidy CSV, and the sidecar next to it, typed and versioned.

``<figure>.csv`` contains one measurement per row. ``<figure>.json``, the sidecar, contains what a reader must know
about it and what can differ between two computations of the same numbers: timings, machine, versions, commit, hashes
of the data.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import re
import types
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Union, get_args, get_origin, get_type_hints

MEANINGS: Mapping[str, str] = {
    "series": "the curve: its method with the parameters that the spec sets, `@` its dataset, `/` its partition, etc.",
    "algorithm": "the registered name of the method",
    "dataset": "the spec's name of its data, followed by `(stand-in)` for a stand-in",
    "partition": "the spec's name of its partition; empty without one",
    "trial": "number of the trial, from 1",
    "status": "`ok`, `diverged` (up to the last finite value), or `failed` (one row, empty from here on)",
    "round": "communication rounds done; 0 is the initial point",
    "uplink_scalars": "numbers sent up by all clients so far (those sent before round 1 are in the sidecar)",
    "uplink_bits": "bits of these messages",
    "downlink_scalars": "numbers sent down by the server so far",
    "downlink_bits": "bits of these messages",
    "metric": "the name of a metric of the problem",
    "value": "its value, with enough digits to be exact",
}
"""The meaning of each column of a figure's CSV, except those of parameters, which follow ``partition``."""

COLUMNS = tuple(MEANINGS)
KEYS, MEASURED = COLUMNS[: COLUMNS.index("trial")], COLUMNS[COLUMNS.index("trial") :]
"""The columns before those of the parameters, and after them."""

BESIDE: Mapping[str, str] = {
    "panel": "the panel that shows the row; rows of a curve that several panels show are repeated",
    "label": "the curve as the legend calls it",
}
"""The meaning of the columns that ``load`` adds to those of the CSV."""

POINTS: Mapping[str, str] = {
    "series": "as in the CSV",
    "trial": "as in the CSV",
    "array": "the name of an array that the spec asks for as an artifact",
    "index": "the row of the array, from 0",
}
"""The meaning of the columns of ``<figure>.points.csv`` before the values of the array (``v0``, ``v1``, ...)."""

VERSIONS: Mapping[int, str] = {
    1: "without `schema` and `runs`; `provenance` for `made`",
    2: "has `runs`; times are those of nodes one after another, with loading",
    3: "`timing` has `seconds` for nodes in parallel, and `serial` for nodes one after another",
    4: "`runs` has identities of scheme 2, and `former_runs` the identities of the same runs in scheme 1",
    5: "has `lock` and `lexicon`; older results were computed before there were locks",
    6: "has `columns`; the CSV has a column for each parameter, where older ones have one column `parameters`",
    7: "has `digits`; the CSV of other values of open settings has fewer digits",
}
"""Versions of the sidecar (its key ``schema``) and how they differ; all can be read."""

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
    """A dataset and its state when the runs were computed.

    dataset : its registered name. state : present, variant, stand-in, own file, or none needed (generated).
    fingerprint : a hash of what was read; empty if nothing was. note : how it differs from the published file.
    """

    dataset: str
    state: str
    fingerprint: str = ""
    note: str = ""


@dataclass(frozen=True)
class Timing:
    """Times of a run's recorded rounds, in seconds of the method's own work.

    rounds : the recorded rounds. seconds : for nodes in parallel, where the slowest counts. serial : for nodes one
    after another, as they were computed. Either is empty if it is not known.
    """

    rounds: tuple[int, ...]
    seconds: tuple[float, ...]
    serial: tuple[float, ...] = ()


@dataclass(frozen=True)
class Made:
    """How results were made; '' for what is not known.

    fedrepro, python : their versions. commit : of the program's own repository when it was loaded. dirty : whether the
    program or its specs differed from the commit. without_commit : why there is no commit. program : hash of the files
    of the program. machine : its system and number of cores. libraries : versions by name. kernels : instruction
    level, CPU and BLAS (see ``cpu.kernels``). written : date and time in UTC.
    """

    fedrepro: str = ""
    commit: str = ""
    dirty: bool = False
    without_commit: str = ""
    program: str = ""
    machine: str = ""
    python: str = ""
    libraries: Mapping[str, str] = field(default_factory=dict)
    kernels: Mapping[str, str] = field(default_factory=dict)
    written: str = ""


@dataclass(frozen=True)
class Sidecar:
    """The facts about a figure's results. The default contains none, as for numbers from another source.

    figure : ``paper/figure``. spec : the path of the spec. tier : the tier of the results. plan : one hash of all runs,
    in order. runs : the identities of the runs of each series, by trial. former_runs : the identities of the same runs
    in an earlier scheme. sets : the ``--set`` options. complete : whether every curve has all trials of the tier.
    trials_done : trials of the curve with the fewest. trials_wanted : trials of the tier, None if unknown. missing :
    curves and trials in words. failed : runs that ended with an error. diverged : runs with values that are no longer
    finite. datasets : the state of each. stand_ins : names of datasets that stand-ins replaced. settings : all
    parameters of every series. sizes : the sizes of every real dataset as loaded, by its name in the spec (``N:
    10000``). setup_scalars : numbers sent once before round 1, by series. timing : for panels over seconds, by series
    and trial. seconds_per_run : by series, in the order of trials. seconds : the sum over all runs. made : how they
    were made. columns : the meaning of each column of the CSV. csv_sha256 : hash of the uncompressed CSV.
    points_sha256 : hash of the file of arrays, '' without one. lock : sha256 of the spec's lock when its first run
    began, '' without one. lexicon : hash of the lexicon then, '' if it is not known. digits : significant digits of
    the values in the CSV, 0 if it has all.
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
    columns: Mapping[str, str] = field(default_factory=dict)
    csv_sha256: str = ""
    points_sha256: str = ""
    lock: str = ""
    lexicon: str = ""
    digits: int = 0

    @property
    def changes(self) -> tuple[str, ...]:
        """The options that change what was computed: all but the number of trials."""
        return changes(self.sets)

    @property
    def variants(self) -> tuple[Content, ...]:
        """The datasets that are known variants of the published ones, each difference once."""
        variants = (content for content in self.datasets if content.state == "variant")
        return tuple({(content.dataset, content.note): content for content in variants}.values())

    def only(self, datasets: Iterable[str]) -> Sidecar:
        """Return the sidecar with the facts about these datasets only."""
        names = set(datasets)
        return dataclasses.replace(
            self,
            stand_ins=tuple(name for name in self.stand_ins if name in names),
            datasets=tuple(content for content in self.datasets if content.dataset in names),
        )

    def text(self) -> str:
        """Return the sidecar as JSON with sorted keys; each list of numbers is one line."""
        facts = dataclasses.asdict(self) | {"schema": VERSION}
        text = json.dumps(facts, indent=1, sort_keys=True, default=str) + "\n"
        return _NUMBERS.sub(lambda numbers: "[" + " ".join(numbers[1].split()) + "]", text)

    @classmethod
    def parse(cls, facts: Mapping[str, Any]) -> Sidecar:
        """Return a sidecar from JSON of any version; missing facts have their defaults. Raises ValueError."""
        if not isinstance(facts, Mapping):
            raise ValueError(f"a sidecar is a mapping, not {type(facts).__name__}")
        version = facts.get("schema", 1)
        if version not in range(1, VERSION + 1):
            raise ValueError(f"version {version} of the sidecar is unknown (known: 1 to {VERSION})")
        try:
            for older, convert in enumerate((_from_1, _from_2), start=1):
                facts = convert(facts) if version <= older else facts
            sidecar: Sidecar = typed(facts, cls, "")
        except (TypeError, AttributeError, KeyError, ValueError, RecursionError) as error:
            raise ValueError(f"the sidecar has an invalid value: {error}") from None
        return sidecar


def rounded(value: float, digits: int) -> float:
    """Return the number that is nearest to a value of so many significant digits; the value itself for 0 digits."""
    return float(f"{value:.{digits}g}") if digits else value


def changes(sets: Iterable[str]) -> tuple[str, ...]:
    """Return the options in ``sets`` that change runs; the number of trials does not."""
    return tuple(option for option in sets if option.partition("=")[0].strip() != "trials")


def _from_1(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a sidecar of version 1 to version 2."""
    converted = {name: value for name, value in facts.items() if name not in ("runs", "former_runs")}
    converted["made"] = converted.pop("provenance", {})
    converted["timing"] = {
        series: {trial: {"rounds": timing["round"], "seconds": timing["seconds"]} for trial, timing in runs.items()}
        for series, runs in converted.pop("timing", {}).items()
    }
    variants = converted.pop("variants", [])
    listed = {item["dataset"] for item in converted.get("datasets", [])}
    converted["datasets"] = [
        *converted.get("datasets", []),
        *({**item, "state": "variant"} for item in variants if item["dataset"] not in listed),
    ]
    return converted


def _from_2(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a sidecar of version 2 to version 3: its times are those of nodes one after another."""
    timing = {
        series: {
            trial: {"rounds": times["rounds"], "seconds": [], "serial": times["seconds"]}
            for trial, times in runs.items()
        }
        for series, runs in facts.get("timing", {}).items()
    }
    return {**facts, "timing": timing}


def typed(value: Any, kind: Any, place: str) -> Any:
    """Return a JSON value as an object of a declared type. Raises ValueError with its place if it has another type."""
    if kind in _PLAIN:
        if type(value) is kind or _plain(value, kind):
            return value
        raise ValueError(place)
    origin, inner = _parts(kind)
    if kind is Any or (origin in (Union, types.UnionType) and value is None):
        return value
    if origin in (Union, types.UnionType):
        return typed(value, inner[0], place)
    if origin is tuple and isinstance(value, list):
        of = inner[0]
        return tuple([item if type(item) is of and of in _PLAIN else typed(item, of, place) for item in value])
    if origin is Mapping and isinstance(value, Mapping):
        key = int if inner[0] is int else str
        return {key(name): typed(item, inner[1], f"{place}: {name}") for name, item in value.items()}
    if dataclasses.is_dataclass(kind) and isinstance(value, Mapping):
        hints = _hints(kind)  # type: ignore[arg-type]
        present = {name: item for name, item in value.items() if name in hints and (place == "" or item is not None)}
        return kind(**{name: typed(item, hints[name], name) for name, item in present.items()})  # type: ignore[operator]
    if _plain(value, kind):
        return value
    raise ValueError(place)


_PLAIN = (str, int, float, bool)


def _plain(value: Any, kind: Any) -> bool:
    return isinstance(value, bool) == (kind is bool) and isinstance(value, int | float if kind is float else kind)


@functools.cache
def _parts(kind: Any) -> tuple[Any, tuple[Any, ...]]:
    return get_origin(kind), get_args(kind)


@functools.cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)
