"""The axes of panels: the values that x can have, their labels, what they read, and whether claims can use them.

``x`` of a panel is one of ``AXES``, or a metric that its runs record, or (as ``parameter``, named in the panel's
options) a value in which its curves differ. Drawing, the reader of specs and the checks of claims use this list.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from fedrepro import registry
from fedrepro.protocols import Metric
from fedrepro.spec.model import Panel


class Reads(enum.Enum):
    """The source of an axis' values."""

    COLUMN = "columns of the results, added up"
    TIMING = "the timings in the sidecar"
    METRIC = "another metric of the same runs"
    PARAMETER = "a value in which the curves differ"


@dataclass(frozen=True)
class Axis:
    """One x axis.

    columns : the columns of the results that it adds up. divided : whether their sum is divided by the panel's option
    ``variables``. claims : whether the check of a claim may name the axis.
    """

    name: str
    label: str
    reads: Reads
    columns: tuple[str, ...] = ()
    divided: bool = False
    claims: bool = False

    @property
    def along(self) -> bool:
        """Whether each curve runs along it; otherwise a curve is one point of a sweep."""
        return self.reads is not Reads.PARAMETER


def _column(name: str, label: str) -> Axis:
    return Axis(name, label, Reads.COLUMN, (name,), claims=True)


AXES: dict[str, Axis] = {
    axis.name: axis
    for axis in (
        _column("round", "communication round"),
        _column("uplink_scalars", "communication cost (real numbers sent up)"),
        _column("uplink_bits", "communication cost (bits sent up)"),
        _column("downlink_scalars", "real numbers sent down"),
        _column("downlink_bits", "bits sent down"),
        Axis(
            "bits_per_variable",
            "bits per variable, up and down",
            Reads.COLUMN,
            ("uplink_bits", "downlink_bits"),
            divided=True,
        ),
        Axis("seconds", "time (s), nodes in parallel: the slowest counts", Reads.TIMING),
        Axis("serial_seconds", "time (s), nodes one after another", Reads.TIMING),
        Axis("parameter", "", Reads.PARAMETER),
    )
}
"""The named axes, in the order in which messages list them."""

CLAIMED: tuple[str, ...] = tuple(name for name, axis in AXES.items() if axis.claims)
"""The axes that the check of a claim may name, in addition to the metrics that its curves record."""


def of(panel: Panel) -> Axis:
    """Return the x axis of a panel; a name that is neither an axis nor a metric is a parameter."""
    return find(panel, panel.x)


def find(panel: Panel, name: str) -> Axis:
    """Return the axis ``name`` of the panel's curves, regardless of the panel's own x."""
    if name in AXES:
        return AXES[name]
    metric = metrics(panel).get(name)
    return Axis(name, metric.label, Reads.METRIC, claims=True) if metric else Axis(name, name, Reads.PARAMETER)


def metrics(panel: Panel) -> Mapping[str, Metric]:
    """Return the metrics of the panel's problem by name; none if the problem is not registered."""
    problem = registry.problems().get(panel.curves[0].setting.problem) if panel.curves else None
    return problem.metrics if problem else {}


def metric_label(panel: Panel, metric: str) -> str:
    """Return the registered label of a metric of the panel's problem, or its name."""
    entry = metrics(panel).get(metric)
    return entry.label if entry else metric
