"""The y limits of a panel of curves, which show the floors but not the blow-ups, and the curves that leave them.

One rule applies to all panels. The core is the range in which the curves start, end and are lowest. A curve blows up if
it climbs from its own minimum by more than three times the height of the core (on a log axis at most by a factor of
50), and above the core by as much. The end of a curve is not part of the core if it is equally far above the curves
that end lower, which must be at least half of all. The limits contain the lowest value of a curve that blows up, and
its last value if that is part of the core, and all values of the other curves. With the option ``zoom`` the starts do
not count, and only values after that share of the x axis do. A metric that is better if higher cannot blow up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from fedrepro.plotting import panel_axes
from fedrepro.plotting.lines import Line
from fedrepro.spec import axes
from fedrepro.spec.model import Panel
from fedrepro.spec.panels import CurvesOptions

FACTOR = 50.0
"""A rise by this factor is a blow-up on a log axis, whatever the core, and even if all curves rise."""


@dataclass(frozen=True)
class Frame:
    """The y limits (None: those of matplotlib or the spec), and the indices of the curves that leave them."""

    bottom: float | None
    top: float | None
    leaving: tuple[int, ...] = ()
    near: bool = False  # the first steep fall is outside


def frame(drawn: Sequence[Line], panel: Panel) -> Frame | None:
    """Return the frame of a panel; None if matplotlib's or the spec's limits show everything."""
    moving = [i for i, line in enumerate(drawn) if not line.level and line.values()]
    if panel.yscale not in ("linear", "log") or not moving:
        return None
    if panel.ylim[1] is not None:
        gone = tuple(i for i in moving if _leaves(drawn[i], panel.ylim[1])) if _may_blow_up(panel) else ()
        return Frame(None, None, gone) if gone else None
    share = CurvesOptions.of(panel).zoom
    view = _View(drawn, panel, moving, share)
    blown = view.blown() if _may_blow_up(panel) else []
    if not blown and share is None:
        return None
    return view.frame(blown, share is not None)


def _may_blow_up(panel: Panel) -> bool:
    """Return whether large values of the metric are bad."""
    metric = axes.metrics(panel).get(panel.y)
    return metric is None or metric.better == "lower"


def _leaves(line: Line, top: float) -> bool:
    """Return whether the average is inside and later above, or rises above both its start and the top."""
    if line.average is None:
        return False
    y = line.average.mean
    above = y > top
    inside = np.flatnonzero(~above)
    return bool((inside.size and above[inside[0] :].any()) or (above.any() and y.max() > y[0]))


class _View:
    """The curves of a panel on the scale of its y axis, after a share of the x axis."""

    def __init__(self, drawn: Sequence[Line], panel: Panel, moving: Sequence[int], share: float | None) -> None:
        self.log = panel.yscale == "log"
        self.scale: Callable[[np.ndarray], np.ndarray] = np.log10 if self.log else np.asarray
        self.moving = moving
        self.whole = {i: [self.scale(y) for y in drawn[i].values()] for i in moving}
        self.averaged = {i for i in moving if drawn[i].average is not None}
        ends = [float(a.x[-1]) for line in drawn if (a := line.average) and not line.level and a.x.size]
        start = (share or 0.0) * max(ends, default=0.0)
        self.late = {i: self._late(drawn[i], start) for i in moving}
        levels = [line.average.mean[-1:] for line in drawn if line.level and line.average]
        known = [v for v in panel_axes.heights(panel) if v > 0 or not self.log] if share is None else []
        self.fixed = [float(self.scale(v)) for v in (*(float(level[0]) for level in levels), *known)]
        self.begins = {i: self._begin(drawn[i]) for i in moving}
        self.start = float(np.median(list(self.begins.values())))
        self.starts = [self.start] if share is None else []
        self.ceiling = self._far() if share is None else self.start
        self.risen = self._risen() if share is None and _may_blow_up(panel) else set()

    def _late(self, line: Line, start: float) -> list[np.ndarray]:
        runs = ([line.average.x] if line.average else []) + [t.x for t in line.strays]
        late = [self.scale(y[x >= start]) for x, y in zip(runs, line.values(), strict=True)]
        return [y for y in late if y.size] or [self.scale(y[-1:]) for y in line.values()]

    def _begin(self, line: Line) -> float:
        """Return the start of a curve, even if the x axis does not show it."""
        begins = np.array([v for v in line.begins if v > 0 or not self.log])
        return float(self.scale(begins.mean()) if begins.size else self.scale(line.values()[0][0]))

    def _far(self) -> float:
        """Return a value that is far above the start, whatever the other curves are."""
        if self.log:
            return self.start + float(np.log10(FACTOR))
        return FACTOR * self.start if self.start > 0 else float("inf")

    def _risen(self) -> set[int]:
        """Return the averaged curves, at most half, that end far above those that end lower.

        Their ends are not part of the core, because one of them alone would flatten all others.
        """
        ends = sorted((float(self.late[i][0][-1]), i) for i in self.averaged)
        lows = [float(self.late[i][0].min()) for i in self.averaged]
        for k, (end, _) in enumerate(ends):
            core = [*self.starts, *lows, *self.fixed, *(e for e, _ in ends[:k])]
            if 2 * k >= len(ends) and end > max(core) + self._reach(min(core), max(core)) > max(core):
                return {i for _, i in ends[k:]}
        return set()

    def core(self) -> tuple[float, float]:
        """Return the range in which the curves start (if it is shown), end and are lowest, without risen ends."""
        known = [(self.late[i][0], i in self.risen) for i in self.averaged]
        known = known or [(y, False) for parts in self.late.values() for y in parts]
        marks = [float(v) for y, risen in known for v in ([] if risen else [y[-1]]) + [y.min()]]
        core = [*self.starts, *(v for v in marks if v <= self.ceiling), *self.fixed] or marks
        return min(core), max(core)

    def _reach(self, low: float, high: float) -> float:
        """Return how far a curve must climb to blow up, for a core from ``low`` to ``high``."""
        reach = max(3 * (high - low), 0.1 * (self.start - low))  # ripples of curves that end at one point do not count
        return min(reach, float(np.log10(FACTOR))) if self.log else reach

    def blown(self) -> list[int]:
        """Return the curves that blow up; none if all do and stay below the ceiling: that is the shape of the data."""
        low, high = self.core()
        reach = self._reach(low, high)
        if reach <= 0:
            return []
        blown = [i for i in self.moving if any(self._climbs(i, y, high, reach) for y in self.whole[i])]
        calm = len(blown) < len(self.moving)
        far = any(y.max() > self._far() for i in blown for y in self.whole[i])
        return blown if calm or far else []

    def _climbs(self, i: int, y: np.ndarray, high: float, reach: float) -> bool:
        """Return whether the values ``y`` of curve ``i`` rise by ``reach``, and above ``high`` by as much."""
        return climb(np.concatenate([[self.begins[i]], y])) > reach and y.max() > high + reach

    def frame(self, blown: Sequence[int], near: bool) -> Frame | None:
        """Return the limits of the calm curves and the floors of the others, and the curves that leave them."""
        low, high = self.core()
        calm = [float(y.max()) for i in self.moving if i not in blown for y in self.late[i]]
        top = max([high, *calm])
        if top <= low:
            return None
        pad = 0.06 * (top - low)
        bottom, top = low - pad, top + pad
        leaving = tuple(i for i in blown if i in self.averaged and self.whole[i][0].max() > top)
        bottom, top = (10.0**v if self.log else v for v in (bottom, top))
        return Frame(float(bottom), float(top), leaving, near)


def climb(y: np.ndarray) -> float:
    """Return the largest rise of a curve above an earlier value."""
    return float((y - np.minimum.accumulate(y)).max())
