"""A spec after it is read and expanded: plain data that planning, results and drawing share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fedrepro.own_modules import OwnModule
from fedrepro.spec.keys import WrittenClaim


@dataclass(frozen=True)
class Setting:
    """One dataset, partition, algorithm and parameters: a run without its trial. Panels share equal settings.

    ``series`` is its name in the results: equal settings have equal names, different settings different names.
    """

    series: str
    problem: str
    problem_params: Mapping[str, Any]
    dataset: str
    dataset_params: Mapping[str, Any]
    partition: str | None
    partition_params: Mapping[str, Any]
    algorithm: str
    params: Mapping[str, Any]
    rounds: int
    record_every: int
    record_dense: int
    metrics: tuple[str, ...]
    artifacts: tuple[str, ...] = ()
    explicit: tuple[str, ...] = ()  # the parameters that the spec itself sets
    names: Mapping[str, str] = field(default_factory=dict)  # the spec's names of the dataset and the partition
    own: OwnModule | None = None  # the user's module that defines the algorithm

    @property
    def recorded(self) -> list[int]:
        """The rounds that a complete run records, 0 first."""
        dense = min(self.record_dense, self.rounds)
        sparse = range((dense // self.record_every + 1) * self.record_every, self.rounds + 1, self.record_every)
        rounds = [*range(dense + 1), *sparse]
        return rounds if rounds[-1] == self.rounds else [*rounds, self.rounds]


@dataclass(frozen=True)
class Curve:
    """One line of a panel: a setting, its label, and the values by which a claim selects it.

    role : ``curve`` or ``level`` (a horizontal line, the default for a method without rounds). method : the name of its
    method in the figure, if it is not the registered label.
    """

    label: str
    setting: Setting
    select: Mapping[str, Any]
    role: str = "curve"
    method: str = ""


@dataclass(frozen=True)
class Panel:
    """One set of axes. ``kind``: ``curves``, ``scatter``, ``table`` or ``bars``; ``options`` belong to the kind."""

    id: str
    title: str
    kind: str
    x: str
    y: str
    xscale: str
    yscale: str
    xlim: tuple[float | None, float | None]
    ylim: tuple[float | None, float | None]
    curves: tuple[Curve, ...]
    published: tuple[Mapping[str, Any], ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Claim(WrittenClaim):
    """A paper's statement, in our words, with a check over the results fixed before the run.

    check : without words of the lexicon; for a check in words, what it stands for at the leading reading. words : the
    check in words as written, '' if it has none. names : the spec's short names of curves. inapplicable : why its check
    cannot be read from a figure that options have changed, or ''. Keys that a claim does not have are ''.
    """

    inapplicable: str = ""
    words: str = ""
    names: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Figure:
    """One figure or table at one tier: everything needed to plan, run, store and draw it.

    trials : trials to run. wanted_trials : trials of the tier before any ``--set``. paper_trials : trials of the paper
    tier. more : the trials of each curve that claims ask to compute more often. sizes : the paper's sizes of each
    dataset (``N: 10000``), by its name in the spec. adjusted : what else had to change so that its ``sets`` can be
    computed.
    """

    paper: str
    figure: str
    title: str
    source: str
    tier: str
    path: str
    trials: int
    wanted_trials: int
    paper_trials: int
    panels: tuple[Panel, ...]
    claims: tuple[Claim, ...]
    columns: int = 2
    note: str = ""
    sets: tuple[str, ...] = ()
    sizes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    adjusted: tuple[str, ...] = ()
    more: Mapping[str, int] = field(default_factory=dict)

    @property
    def trials_are_set(self) -> bool:
        """Whether ``--set trials=N`` names the trials to run or to read."""
        return any(option.partition("=")[0].strip() == "trials" for option in self.sets)

    def trials_of(self, series: str) -> int:
        """Return the trials to run of a curve; with ``--set trials=N`` every curve has N."""
        return self.trials if self.trials_are_set else max(self.trials, self.more.get(series, 0))

    @property
    def name(self) -> str:
        """``paper/figure``."""
        return f"{self.paper}/{self.figure}"

    def settings(self) -> list[Setting]:
        """Return every distinct setting in the order of panels and curves."""
        seen: dict[str, Setting] = {}
        for panel in self.panels:
            for curve in panel.curves:
                seen.setdefault(curve.setting.series, curve.setting)
        return list(seen.values())

    def panels_with(self, wanted: Callable[[str], bool]) -> tuple[Panel, ...]:
        """Return the panels with only the curves whose series are wanted, without those that have none left."""
        kept = ((panel, tuple(c for c in panel.curves if wanted(c.setting.series))) for panel in self.panels)
        return tuple(replace(panel, curves=curves) for panel, curves in kept if curves)

    def timed(self) -> set[str]:
        """Return the series that some panel shows over seconds."""
        times = {"seconds", "serial_seconds"}
        panels = [panel for panel in self.panels if times & {panel.x, panel.options.get("axis")}]
        return {curve.setting.series for panel in panels for curve in panel.curves}
