"""What a spec says once it is read and expanded: plain data that planning, results and drawing share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Setting:
    """One dataset, partition, algorithm and parameters: a run without its trial. Panels share equal settings.

    ``series`` names it in the results: equal settings have equal names, different ones different names.
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
    explicit: tuple[str, ...] = ()  # the parameters the spec itself sets
    names: Mapping[str, str] = field(default_factory=dict)  # how the spec calls the dataset and the partition

    @property
    def recorded(self) -> list[int]:
        """The rounds that a run to the end records, 0 first."""
        dense = min(self.record_dense, self.rounds)
        sparse = range((dense // self.record_every + 1) * self.record_every, self.rounds + 1, self.record_every)
        found = [*range(dense + 1), *sparse]
        return found if found[-1] == self.rounds else [*found, self.rounds]


@dataclass(frozen=True)
class Curve:
    """One line of a panel: a setting, the label that says what varies in it, and the values a claim selects it by.

    ``role`` is ``curve`` or ``level`` (a method without rounds, or asked to be drawn as a horizontal line). ``method``
    is what the figure calls its method, where that is not the registered label.
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
class Claim:
    """A paper's statement, in our words, with a check over the results fixed before the run.

    ``reading``: how a vague word of it is read here, '' where nothing had to be read into it. ``inapplicable``: why its
    check cannot be read from a figure that options have changed; '' where it can. ``theorem``: what of a theorem it is,
    ``promise`` or ``condition``, '' for other claims; ``faster``: the check of a rate beyond the promised one, or ''.
    """

    id: str
    says: str
    where: str
    panel: str
    check: str
    reading: str = ""
    note: str = ""
    inapplicable: str = ""
    theorem: str = ""
    faster: str = ""


@dataclass(frozen=True)
class Figure:
    """One figure or table at one tier: everything needed to plan, run, store and draw it.

    ``trials`` are to be run; ``wanted_trials`` is what the tier asks for before any ``--set``, ``paper_trials`` what
    the paper tier asks for. ``sizes``: by the spec's name of a dataset, the size the paper states (``N: 10000``).
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

    def settings(self) -> list[Setting]:
        """Every distinct setting in the order of panels and curves."""
        seen: dict[str, Setting] = {}
        for panel in self.panels:
            for curve in panel.curves:
                seen.setdefault(curve.setting.series, curve.setting)
        return list(seen.values())

    def timed(self) -> set[str]:
        """The series that some panel draws or tells over seconds."""
        times = {"seconds", "serial_seconds"}
        panels = [panel for panel in self.panels if times & {panel.x, panel.options.get("axis")}]
        return {curve.setting.series for panel in panels for curve in panel.curves}
