"""Judge whether a paper's claims hold: evaluate checks on curves averaged over trials, as papers draw them.

A comparison ``L < R`` has one margin ``R - L``, read from the averaged curves of both sides. Trials are paired, because
both sides share data, initial point and client draws in a trial: the interval of the margin results from leaving out
one trial at a time on both sides (``intervals``). The comparison holds if the interval is above zero, fails if it is
below, and is within noise if it contains zero. A margin of exactly zero without an interval satisfies ``<=`` and ``>=``
only. A check at several rounds, or of several comparisons, holds only if each holds, and fails if one fails after
Holm's correction for their number; ``A < min(B, C)`` is such a check: A < B and A < C. ``each(...)`` requires the
comparison for every trial alone, without averaging, and fails if one trial does. ``median(...)`` uses the median of the
trials' own margins.
"""

from __future__ import annotations

import ast
import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import numpy as np

from fedrepro.claims import evidence, units
from fedrepro.claims.classes import Robustness
from fedrepro.claims.evidence import FAILS, HOLDS, NOISE
from fedrepro.claims.intervals import LEVEL, MOST_TRIALS, Interval, jackknife, median
from fedrepro.claims.precedence import Precedence
from fedrepro.errors import UserError
from fedrepro.registry import problems
from fedrepro.results.by_run import Rows, Runs, at_rounds
from fedrepro.results.schema import Sidecar
from fedrepro.spec import claim_grammar
from fedrepro.spec.axes import CLAIMED
from fedrepro.spec.model import Claim, Curve, Figure, Panel


@dataclass(frozen=True)
class Row:
    """The verdict on one claim, the level of its evidence, and how that differs from the paper's (``evidence``).

    why : the margin in words, or why nothing could be read. margins : of each comparison, at the round that decides.
    promise : the outcome of a theorem's promise or condition (``PROMISES``), '' for other claims. measured : what the
    first comparison compares with a number, None if it compares two curves. units : of the margins.
    trials_to_decide : how many trials would decide what is within noise, ``MOST_TRIALS`` + 1 for more; None if that is
    unknown or everything is decided. robustness : how the verdict depends on the reading, None if that was not judged.
    precedence : whether the claim was written before these results, None without results. bound : what the theorem's
    inequality allows and what was measured, in words.
    """

    figure: str
    tier: str
    claim: Claim
    verdict: str
    level: str
    evidence: str
    why: str
    margins: tuple[Interval, ...]
    trials: int
    promise: str = ""
    measured: Interval | None = None
    units: tuple[str, ...] = ()
    trials_to_decide: int | None = None
    robustness: Robustness | None = None
    precedence: Precedence | None = None
    bound: str = ""

    @property
    def reason(self) -> str:
        """The reason for the verdict, in one line."""
        note = f" [{self.claim.note}]" if self.claim.note else ""
        return (f"{self.evidence}: " if self.evidence else "") + self.why + note


@dataclass(frozen=True)
class Series:
    """One setting's metric and counts, aligned on the rounds recorded in any trial.

    Each of ``axes`` and ``values`` is (trials, rounds); ``values`` is (rounds,) once averaged over the ``chosen``
    trials. A run that stopped early keeps its last value; a run with values that are no longer finite counts as
    infinitely bad from there on.
    """

    rounds: np.ndarray
    values: np.ndarray
    axes: Mapping[str, np.ndarray]
    recorded: np.ndarray  # the rounds that this tier records of a complete run
    better: str
    lasts: np.ndarray = field(default_factory=lambda: np.array([math.inf]))  # the last recorded round of each trial
    chosen: np.ndarray | None = None

    def along(self, axis: str) -> np.ndarray:
        """Return one of the axes, averaged like the values. Raises NotTestable if these results do not have it."""
        if axis not in self.axes:
            raise NotTestable(f"these results do not have the metric '{axis}'")
        with np.errstate(invalid="ignore"):
            return self.axes[axis] if self.chosen is None else self.axes[axis][self.chosen].mean(axis=0)

    def over(self, trials: np.ndarray) -> Series:
        """Return the curve averaged over the trials with these numbers, from 0."""
        with np.errstate(invalid="ignore"):
            values = self.values[trials].mean(axis=0)
        return replace(self, values=values, lasts=self.lasts[trials], chosen=trials)


class NotTestable(UserError):
    """The check needs something that these results do not have."""


def table(figure: Figure, frame: Any, sidecar: Sidecar, known: Known | None = None) -> list[Row]:
    """Return the verdict on every claim of a figure. known : what was already looked up in the frame."""
    known = known or Known(frame)
    return [judge(claim, figure, frame, sidecar, known) for claim in figure.claims]


def judge(claim: Claim, figure: Figure, frame: Any, sidecar: Sidecar, known: Known | None = None) -> Row:
    """Return the verdict on one claim from a figure's tidy frame and sidecar; ``known`` as in ``table``."""
    if claim.inapplicable:
        return untested(claim, figure, f"not applicable: {claim.inapplicable}")
    reader = Reader.of(claim, figure, known or Known(frame))
    used = curves(claim, figure)
    weighed = evidence.weigh(figure, sidecar, used, reader.trials, reader.known.runs)
    promise, measured, bound = "", None, ""
    try:
        compared = list(comparisons(claim_grammar.parse(claim.check).body))
        decision = _decide(compared, reader)
        if claim.theorem:
            promise = _promised(claim, decision.outcome, reader)
            if claim.outside:
                promise = f"{NOT_SO if decision.outcome == FAILS else promise}, {OUTSIDE}"
            measured = _measured(compared[0], decision.margins[0], reader)
            shown = f"{promise}: {_with_interval(measured)}" if measured else promise
            bound = _bound(claim, reader)
            decision = replace(decision, words="; ".join(filter(None, (shown, bound, decision.words))))
    except NotTestable as error:
        decision, weighed = Decision(evidence.NOT_TESTED, str(error)), evidence.Evidence(evidence.NONE)
    if claim.not_on_stand_in and weighed.level == evidence.STAND_IN:
        return untested(claim, figure, f"{weighed.words}: {claim.not_on_stand_in}")
    verdict = evidence.verdict(decision.outcome, weighed.level)
    if verdict == evidence.NOT_REPRODUCED and _shown(claim, reader):
        verdict = evidence.AGAINST_FIGURE
    name = f"{figure.paper}/{figure.figure}"
    return Row(
        name,
        figure.tier,
        claim,
        verdict,
        weighed.level,
        weighed.words,
        decision.words,
        decision.margins,
        reader.trials,
        promise,
        measured,
        decision.units,
        decision.trials_to_decide,
        bound=bound,
    )


PROMISES = {
    ("promise", HOLDS): "as promised",
    ("promise", FAILS): "contradicted",
    ("condition", HOLDS): "condition met",
    ("condition", FAILS): "condition not met by the parameters that were run",
}
FASTER, DOUBTFUL = "faster than promised", "undecided"
"""The outcomes of a theorem's promise or condition. Only *contradicted* is certain: data within a bound do not
prove it."""
OUTSIDE, NOT_SO = "outside the conditions", "not as promised"
"""What a promise is called where the runs do not meet a condition of its theorem, and there one that does not hold."""


def _shown(claim: Claim, reader: Reader) -> bool:
    """Return whether the results show what the paper's own figure shows against its text."""
    reader.chosen = np.arange(reader.trials)
    return bool(claim.figure_shows) and decide(claim.figure_shows, reader).outcome == HOLDS


def decide(check: str, reader: Reader) -> Decision:
    """Return the outcome of a check without words, as it is read by a reader of its claim. Raises NotTestable."""
    return _decide(list(comparisons(claim_grammar.parse(check).body)), reader)


def decide_expanded(texts: Iterable[str], reader: Reader) -> Decision:
    """Return the same for the comparisons that words stand for, whose form is right."""
    trees = [claim_grammar.parse_expanded(text) for text in texts]
    return _decide([part for tree in trees for part in comparisons(tree.body)], reader)


def _promised(claim: Claim, outcome: str, reader: Reader) -> str:
    """Return the outcome of a theorem's claim in words, from the outcome of its check."""
    if outcome == HOLDS and claim.faster:
        reader.chosen = np.arange(reader.trials)
        if _decide(list(comparisons(claim_grammar.parse(claim.faster).body)), reader).outcome == HOLDS:
            return FASTER
    return PROMISES.get((claim.theorem, outcome), DOUBTFUL)


def _bound(claim: Claim, reader: Reader) -> str:
    """Return what the theorem's inequality allows and what was measured, '' for a claim without one."""
    if not claim.bound:
        return ""
    reader.chosen = np.arange(reader.trials)
    (comparison,) = comparisons(claim_grammar.parse(claim.bound).body)
    less, more = (float(np.ravel(evaluate(side, reader))[0]) for side in (comparison.left, comparison.right))
    return f"{_rounded(more)} allowed, {_rounded(less)} measured"


def _rounded(number: float) -> str:
    """Return a number with three digits: 1,850 or 2.3e+09."""
    text = f"{number:.3g}"
    return f"{float(text):,.10g}" if 1000 <= abs(number) < 1e6 else text


def _measured(comparison: Comparison, margin: Interval, reader: Reader) -> Interval | None:
    """Return what is compared with a number, with its interval; None if both sides are read from curves."""
    sides = (comparison.left, comparison.right)
    low, high = sides if comparison.sign.startswith("<") else sides[::-1]
    if _reads(low) == _reads(high):
        return None
    number = float(np.ravel(evaluate(high if _reads(low) else low, reader))[0])
    if _reads(low):
        return Interval(number - margin.value, number - margin.high, number - margin.low)
    return Interval(number + margin.value, number + margin.low, number + margin.high)


def _reads(node: ast.expr) -> bool:
    return any(True for _ in claim_grammar.readers(ast.Expression(node)))


def _with_interval(number: Interval) -> str:
    text = f"{number.value:.3g}"
    return text + (f" [{number.low:.3g}, {number.high:.3g}]" if number.low < number.high else "")


def untested(claim: Claim, figure: Figure, why: str) -> Row:
    """Return the row of a claim without readable results."""
    name = f"{figure.paper}/{figure.figure}"
    return Row(name, figure.tier, claim, evidence.NOT_TESTED, evidence.NONE, "", why, (), 0)


def curves(claim: Claim, figure: Figure) -> list[Curve]:
    """Return the curves that a claim's check reads, each once."""
    if claim.inapplicable:
        return []
    panels = {panel.id: panel for panel in figure.panels}
    by_series: dict[str, Curve] = {}
    for check in filter(None, (claim.check, claim.faster, claim.bound, claim.figure_shows)):
        for function, keywords in claim_grammar.read_by(check):
            _, curve = claim_grammar.select(function, keywords, claim, panels)
            by_series.setdefault(curve.setting.series, curve)
    return list(by_series.values())


# -- reading curves ----------------------------------------------------------------------------------------------------


class Known:
    """A figure's results as its claims read them.

    runs : the rows of its table. curves : those already read, by series, metric and trials; claims and readings share
    them. averages : the same, averaged over some of the trials. values, units, selected : what was read from them for
    parts of checks, the units of parts, and the curves that parts select, by the numbers of the parts. margins : the
    margins of comparisons, by the numbers of their sides.
    """

    def __init__(self, frame: Any) -> None:
        self.runs = Runs(frame)
        self.curves: dict[tuple[Any, ...], Series] = {}
        self.averages: dict[tuple[Any, ...], Series] = {}
        self.values: dict[tuple[Any, ...], Any] = {}
        self.margins: dict[tuple[Any, ...], list[Interval]] = {}
        self.units: dict[tuple[Any, ...], str] = {}
        self.selected: dict[tuple[Any, ...], tuple[dict[str, ast.expr], Panel, Curve]] = {}


class Reader:
    """Reads curves for one claim, averaged over the ``chosen`` of its trials."""

    def __init__(self, claim: Claim, figure: Figure, numbers: np.ndarray, known: Known) -> None:
        self.claim, self.numbers, self.trials, self.known = claim, numbers, len(numbers), known
        self.panels: dict[str, Panel] = {p.id: p for p in figure.panels}
        self.chosen = np.arange(self.trials)

    @classmethod
    def of(cls, claim: Claim, figure: Figure, known: Known) -> Reader:
        """Return a reader of the trials that all curves of the claim have finished."""
        finished = [set(known.runs.finished(curve.setting.series)) for curve in curves(claim, figure)]
        return cls(claim, figure, np.array(sorted(set.intersection(*finished)) if finished else []), known)

    def intervals(self, read: Callable[[Reader], Any], alone: str = "", trial: int = 0) -> list[Interval]:
        """Return the intervals of what ``read`` reads: of averages, with ``alone`` of the median or of one trial."""

        def values(chosen: np.ndarray) -> np.ndarray:
            self.chosen = chosen
            return np.atleast_1d(np.asarray(read(self), dtype=np.float64))

        if alone == claim_grammar.EACH:
            return jackknife(lambda _: values(np.array([trial])), 1)
        return (median if alone else jackknife)(values, self.trials)

    def select(self, node: ast.Call, name: str) -> tuple[dict[str, ast.expr], Panel, Curve]:
        """Return the arguments of a call that reads a curve, with the panel and the curve that it selects."""
        key = (claim_grammar.part_number(node), self.claim.panel)
        if key[0] is None or key not in self.known.selected:
            keywords = claim_grammar.arguments(node)
            self.known.selected[key] = (keywords, *claim_grammar.select(name, keywords, self.claim, self.panels))
        return self.known.selected[key]

    def of_call(self, function: str, keywords: Mapping[str, ast.expr]) -> Series:
        """Return the curve that the arguments of a call of a reader select, averaged over the chosen trials."""
        return self.series(keywords, *claim_grammar.select(function, keywords, self.claim, self.panels))

    def series(self, keywords: Mapping[str, ast.expr], panel: Panel, curve: Curve) -> Series:
        """Return a curve as a call in a check reads it, averaged over the chosen trials."""
        metric = claim_grammar.value(keywords, "metric", panel.y)
        checks = self.claim.check + self.claim.faster + self.claim.bound + self.claim.figure_shows
        named = tuple(name for name in curve.setting.metrics if name in checks)  # they may be axes
        key = (curve.setting.series, metric, named, *self.numbers.tolist())
        if key not in self.known.curves:
            self.known.curves[key] = self._read(curve, metric, named)
        chosen = (*key, "averaged over", *self.chosen.tolist())
        if chosen not in self.known.averages:
            self.known.averages[chosen] = self.known.curves[key].over(self.chosen)
        return self.known.averages[chosen]

    def _read(self, curve: Curve, metric: str, named: tuple[str, ...]) -> Series:
        name, runs = curve.setting.series, self.known.runs
        if not runs.finished(name):
            raise NotTestable(f"'{curve.label}' has no finished trials")
        if self.trials < 1:
            raise NotTestable(NO_COMMON_TRIAL)
        numbers = self.numbers.tolist()
        own = {other: [runs.rows(name, trial, other) for trial in numbers] for other in (metric, *named)}
        recorded = {other for other, trials in own.items() if all(rows["round"].size for rows in trials)}
        if metric not in recorded:
            raise NotTestable(f"these results do not have the metric '{metric}'")
        better = problems()[curve.setting.problem].metrics[metric].better
        diverged = [runs.status(name, trial) == "diverged" for trial in numbers]
        others = {other: own[other] for other in named if other in recorded}
        return _align(own[metric], diverged, others, np.array(curve.setting.recorded), better)


def _align(
    runs: list[Rows], diverged: list[bool], others: Mapping[str, list[Rows]], recorded: np.ndarray, better: str
) -> Series:
    """Return the curve of these runs. others : further metrics that are axes."""
    grid = np.unique(np.concatenate([rows["round"] for rows in runs]).astype(int))
    values: list[np.ndarray] = []
    axes: dict[str, list[np.ndarray]] = {axis: [] for axis in (*CLAIMED, *others)}
    for number, rows in enumerate(runs):
        at = np.searchsorted(rows["round"], grid, side="right") - 1
        finished = rows["value"][at]
        if diverged[number] and not np.isfinite(rows["value"][-1]):
            worst = np.inf if better == "lower" else -np.inf
            finished = np.where(grid >= rows["round"][-1], worst, finished)
        values.append(finished)
        for axis, columns in axes.items():
            column = at_rounds(others[axis][number], rows["round"]) if axis in others else rows[axis]
            columns.append(column[at])
    lasts = np.array([int(rows["round"][-1]) for rows in runs])
    return Series(grid, np.array(values), {k: np.array(v) for k, v in axes.items()}, recorded, better, lasts)


def _y(
    series: Series, at: Any = None, cost: Any = None, since: float = 0, of: str = "value", when: Any = None,
    axis: str = "uplink_scalars",
) -> np.ndarray:  # fmt: skip
    if of != "value":
        series = replace(series, values=_SMOOTHED[of](series.rounds.astype(float), series.values))
    if cost is not None:
        return _at_cost(series, np.ravel(cost), axis)
    if when is not None:
        return _at_computed_round(series, float(np.asarray(when).reshape(())))
    last = max(series.recorded[-1], series.rounds[-1])
    rounds = (at if isinstance(at, list) else [at]) if at is not None else series.recorded[series.recorded >= since]
    rounds = [series.rounds[-1] if r == "end" else r for r in rounds]
    late = [since] if not rounds else [r for r in rounds if r > last]
    if late:
        raise NotTestable(f"round {late[0]:g} is after the last of the {last} rounds of this tier")
    return series.values[np.searchsorted(series.rounds, rounds, side="right") - 1]


def _at_cost(series: Series, cost: np.ndarray, axis: str) -> np.ndarray:
    """Return the metric at the last round with at most these costs."""
    sent, name = series.along(axis), axis.replace("_", " ").replace("uplink scalars", "numbers sent")
    if cost.max() > sent[-1] and series.lasts.max() >= series.recorded[-1]:
        raise NotTestable(f"a cost of {cost.max():,.0f} is more than the {sent[-1]:,.0f} {name} in this tier")
    if cost.min() < sent[0]:
        raise NotTestable(f"a cost of {cost.min():,.0f} is less than the {sent[0]:,.0f} {name} at the start")
    return series.values[np.maximum(np.searchsorted(sent, cost, side="right") - 1, 0)]


def _at_computed_round(series: Series, when: float) -> np.ndarray:
    """Return the metric at a round, interpolated as ``_reach`` does."""
    if not math.isfinite(when):
        raise NotTestable("the round at which it is read is never reached")
    rounds, values = series.rounds, series.values
    k = int(np.searchsorted(rounds, when, side="right")) - 1
    if k + 1 >= rounds.size or rounds[k] == when:
        return values[[max(k, 0)]]
    share, (before, after) = (when - rounds[k]) / (rounds[k + 1] - rounds[k]), values[k : k + 2]
    if not (math.isfinite(before) and math.isfinite(after)):
        return values[[k]]
    if min(before, after) > 0:
        return np.exp((1 - share) * np.log(values[[k]]) + share * np.log(after))
    return (1 - share) * values[[k]] + share * after


def _tail(series: Series, share: float) -> np.ndarray:
    kept = series.recorded >= (1 - share) * series.recorded[-1]
    return np.mean(_y(series, at=series.recorded[kept].tolist()), keepdims=True)


def _total(series: Series, axis: str = "round") -> np.ndarray:
    return series.along(axis)[-1:]


def _reach(series: Series, level: Any, axis: str = "round") -> np.ndarray:
    """Return where the curve first reaches the level, interpolated linearly between two recorded rounds.

    The interpolation is on a logarithmic scale if values and level are positive, so that the result for a curve that
    falls by orders of magnitude does not depend on how densely it was recorded.
    """
    level, values, places = float(np.asarray(level).reshape(())), series.values, series.along(axis)
    hit = np.flatnonzero(values <= level if series.better == "lower" else values >= level)
    if not hit.size:
        return np.array([np.inf])
    k = int(hit[0])
    if k == 0 or values[k] == level or not np.isfinite(values[k - 1]):
        return places[[k]]
    before, after, wanted = values[k - 1], values[k], level
    if min(before, after, wanted) > 0:
        before, after, wanted = np.log(before), np.log(after), np.log(wanted)
    share = (before - wanted) / (before - after)
    return np.array([places[k - 1] + share * (places[k] - places[k - 1])])


def _first(series: Series, level: Any, axis: str = "round") -> np.ndarray:
    """Return the first recorded round where the curve is strictly better than the level."""
    level = float(np.asarray(level).reshape(()))
    hit = np.flatnonzero(series.values < level if series.better == "lower" else series.values > level)
    return series.along(axis)[hit[:1]] if hit.size else np.array([np.inf])


def _since(series: Series, since: float) -> np.ndarray:
    kept = series.values[series.rounds >= since]
    if not kept.size:
        raise NotTestable(f"round {since:g} is after the last of the {series.rounds[-1]} rounds of this tier")
    return kept


def _lowest(series: Series, since: float = 0) -> np.ndarray:
    return np.min(_since(series, since), keepdims=True)


def _highest(series: Series, since: float = 0) -> np.ndarray:
    return np.max(_since(series, since), keepdims=True)


def _between(series: Series, since: float, until: float) -> np.ndarray:
    """Return the indices of the recorded rounds from ``since`` to ``until``."""
    chosen = np.flatnonzero((series.rounds >= since) & (series.rounds <= until))
    if chosen.size < 2 or (math.isfinite(until) and series.rounds[-1] < until):
        end = f" to {until:g}" if math.isfinite(until) else ""
        raise NotTestable(f"rounds from {since:g}{end} are not all among the {series.rounds[-1]:g} of this tier")
    return chosen


def _slope(series: Series, since: float = 1, until: float = math.inf, of: str = "value") -> np.ndarray:
    """Return the exponent of a power law in the round: least squares on logarithms, weighted by logarithmic gaps."""
    chosen = _between(series, max(since, 1), until)
    r, v = series.rounds.astype(float), _SMOOTHED[of](series.rounds.astype(float), series.values)
    r, v = r[chosen], v[chosen]
    if not np.isfinite(v).all():
        return np.array([np.inf])
    if (v <= 0).any():
        raise NotTestable("the metric is zero or negative in some round: it has no power law")
    x, y = np.log(r), np.log(v)
    w = np.gradient(x)
    x = x - np.average(x, weights=w)
    return np.array([np.sum(w * x * y) / np.sum(w * x * x)])


def _running_mean(r: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return the mean over the rounds so far, with linear interpolation between recorded rounds."""
    area = np.concatenate(([0.0], np.cumsum(np.diff(r) * (v[1:] + v[:-1]) / 2)))
    return np.concatenate((v[:1], area[1:] / (r[1:] - r[0])))


_SMOOTHED: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "value": lambda r, v: v,
    "mean": _running_mean,
    "squares": lambda r, v: _running_mean(r, v * v),
    "least": lambda r, v: np.minimum.accumulate(v),
}


def _decay(series: Series, since: float = 0, until: float = math.inf) -> np.ndarray:
    chosen = _between(series, since, until)
    first, last = series.values[chosen[[0, -1]]]
    if min(first, last) <= 0 or not math.isfinite(first):
        raise NotTestable("the metric is zero, negative or not finite there: it has no rate")
    rounds = series.rounds[chosen[-1]] - series.rounds[chosen[0]]
    return np.array([np.log10(first / last) / rounds])


def _rise(series: Series, since: float = 0) -> np.ndarray:
    kept = _since(series, since)
    if kept.size < 2:
        raise NotTestable(f"there is only one round from round {since:g} on, so no step")
    return np.max(np.diff(kept), keepdims=True)


_READERS: dict[str, Callable[..., np.ndarray]] = {
    "y": _y,
    "tail": _tail,
    "total": _total,
    "reach": _reach,
    "first": _first,
    "lowest": _lowest,
    "highest": _highest,
    "slope": _slope,
    "decay": _decay,
    "rise": _rise,
}
_PLAIN: dict[str, Callable[..., Any]] = {
    "abs": np.abs,
    "log10": np.log10,
    "mean": lambda a: np.mean(a, keepdims=True),
    "log_between": lambda a, b, share: _log_between(a, b, float(np.asarray(share).reshape(()))),
    "quantile": lambda a, q: np.quantile(a, float(np.asarray(q).reshape(())), keepdims=True),
    "at_most": lambda a, b: _together(np.minimum, a, b),
    "min": lambda *a: functools.reduce(functools.partial(_together, np.minimum), a),
    "max": lambda *a: functools.reduce(functools.partial(_together, np.maximum), a),
}


def _log_between(start: Any, end: Any, share: float) -> Any:
    with np.errstate(invalid="ignore", divide="ignore"):
        if np.min(start) <= 0 or np.min(end) <= 0:
            raise NotTestable("the metric is zero or negative, so that there is no way on a logarithmic scale")
        return np.exp((1 - share) * np.log(start) + share * np.log(end))


def _together(operation: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    if np.size(left) != np.size(right) and min(np.size(left), np.size(right)) > 1:
        fewer, more = sorted((np.size(left), np.size(right)))
        raise NotTestable(f"its sides are read at {fewer} and at {more} rounds")
    return operation(left, right)


# -- evaluating --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Comparison:
    """``left sign right`` as written. alone : ``each`` or ``median`` if trials are compared alone, else ''."""

    left: ast.expr
    sign: str
    right: ast.expr
    alone: str

    @property
    def strict(self) -> bool:
        """Whether equal sides violate it."""
        return "=" not in self.sign

    @property
    def parts(self) -> list[Comparison]:
        """The comparisons that together are equivalent to it, if one of its sides is a minimum or a maximum.

        ``a < min(b, c)`` has the parts ``a < b`` and ``a < c``.
        """
        below = self.sign.startswith("<")
        low, high = (self.left, self.right) if below else (self.right, self.left)
        pairs = list(itertools.product(_arguments(low, "max"), _arguments(high, "min")))
        parts = [replace(self, left=a if below else b, right=b if below else a) for a, b in pairs]
        return parts if len(parts) > 1 else []

    def margin(self, reader: Reader) -> np.ndarray:
        """Return the larger side minus the smaller one at each round that it reads, (k,): positive where it holds.

        nan if both sides are infinite with the same sign, or if the comparison fails only because ``at_most`` limits
        the larger side: a curve that does not reach a level before its run ends can reach it at any later round.
        """
        lower, upper = (self.left, self.right) if self.sign.startswith("<") else (self.right, self.left)
        below, above = (np.asarray(evaluate(side, reader), dtype=np.float64) for side in (lower, upper))
        unlimited = _unlimited(upper)
        with np.errstate(invalid="ignore"):
            least = np.atleast_1d(_together(np.subtract, above, below))
            if unlimited is upper or (least > 0).all():
                return least
            most = np.atleast_1d(_together(np.subtract, evaluate(unlimited, reader), below))
            return np.where((least <= 0) & ~(most <= 0), np.nan, least)


def _unlimited(node: ast.expr) -> ast.expr:
    """Return one side of a comparison without the limits of ``at_most``, itself if it has none.

    Only where a larger argument makes the side larger: alone, times a positive number, or in ``min`` and ``max``.
    """
    if isinstance(node, ast.Call):
        name = claim_grammar.called(node)
        if name == "at_most":
            return node.args[0]
        parts = [_unlimited(part) for part in node.args] if name in ("min", "max") else node.args
        return node if parts == node.args else ast.Call(node.func, parts, [])
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and isinstance(node.left, ast.Constant):
        right = _unlimited(node.right)
        return node if right is node.right else ast.BinOp(node.left, node.op, right)
    return node


def _arguments(node: ast.expr, function: str) -> list[ast.expr]:
    """Return the arguments of a call of ``function``, with nested calls flattened; any other expression as it is."""
    if isinstance(node, ast.Call) and claim_grammar.called(node) == function:
        return [part for value in node.args for part in _arguments(value, function)]
    return [node]


def comparisons(node: ast.expr, alone: str = "") -> Iterator[Comparison]:
    """Yield the comparisons of a check in the order in which they are written."""
    if isinstance(node, ast.BoolOp):
        for value in node.values:
            yield from comparisons(value, alone)
    elif how := claim_grammar.alone(node):
        assert isinstance(node, ast.Call)
        yield from comparisons(node.args[0], how)
    elif isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        for left, op, right in zip(sides[:-1], node.ops, sides[1:], strict=True):
            yield Comparison(left, claim_grammar.SIGNS[type(op)], right, alone)
    else:
        raise NotTestable(f"'{ast.unparse(node)}' is not a comparison")


def evaluate(node: ast.expr, reader: Reader) -> Any:
    """Return the value of a part of a check, (k,) or a number, for the reader's chosen trials."""
    part = claim_grammar.part_number(node)
    if part is None or isinstance(node, ast.Constant):
        return _evaluate(node, reader)
    key = (part, reader.claim.panel, reader.numbers.tobytes(), reader.chosen.tobytes())
    known = reader.known.values
    if key not in known:
        known[key] = _evaluate(node, reader)
    return known[key]


def _evaluate(node: ast.expr, reader: Reader) -> Any:
    if isinstance(node, ast.Call):
        name = claim_grammar.called(node)
        if name in claim_grammar.READERS:
            return _read(node, name, reader)
        return _PLAIN[name](*(evaluate(a, reader) for a in node.args))
    if isinstance(node, ast.BinOp):
        left, right = evaluate(node.left, reader), evaluate(node.right, reader)
        with np.errstate(divide="ignore", invalid="ignore"):
            return _together(_BINARY[type(node.op)], left, right)
    if isinstance(node, ast.UnaryOp):
        return -evaluate(node.operand, reader)
    return np.asarray(claim_grammar.constant(node), dtype=np.float64)


_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
}


def _read(node: ast.Call, name: str, reader: Reader) -> np.ndarray:
    keywords, panel, curve = reader.select(node, name)
    if name == "parameter":
        return np.array([float(curve.setting.params[claim_grammar.constant(keywords["name"])])])
    own = {k: v for k, v in keywords.items() if k in claim_grammar.READERS[name]}
    values = {
        k: evaluate(v, reader) if k in ("level", "cost", "when") else claim_grammar.constant(v) for k, v in own.items()
    }
    return _READERS[name](reader.series(keywords, panel, curve), **values)


@dataclass(frozen=True)
class Decision:
    """The outcome of a check, in words, with the margin that decides each comparison and its unit.

    trials_to_decide : how many trials would decide what is within noise; None if that is unknown or everything is
    decided.
    """

    outcome: str
    words: str
    margins: tuple[Interval, ...] = ()
    units: tuple[str, ...] = ()
    trials_to_decide: int | None = None


NO_COMMON_TRIAL = "no trial has finished on all curves that it compares"
AT_THE_START = (
    "none of its curves is ever better than at the start, so there is no later point at which to compare them"
)

SHOWN_MARGINS = 4
"""The largest number of margins that the reason of a verdict lists; of more it has the one that decides."""


def _raise_what_is_missing(comparisons: list[Comparison], reader: Reader) -> NoReturn:
    """Raise NotTestable with the curve that has no finished trials, or because no trial has finished on all curves."""
    for comparison in comparisons:
        for side in (comparison.left, comparison.right):
            for _, function, keywords in claim_grammar.readers(side):
                reader.of_call(function, keywords)
    raise NotTestable(NO_COMMON_TRIAL)


def _decide(comparisons: list[Comparison], reader: Reader) -> Decision:
    """Return the outcome of all comparisons, in words, and the margin that decides each.

    They hold if each holds at every round, and fail if one fails after Holm's correction for the number of comparisons.
    """
    if reader.trials < 1:
        _raise_what_is_missing(comparisons, reader)
    if any(_read_at_the_start(comparison, reader) for comparison in comparisons):
        raise NotTestable(AT_THE_START)
    judged = [_judged(c, reader) for c in comparisons]
    deciding = [_deciding(margins, c.strict) for c, margins in zip(comparisons, judged, strict=True)]
    outcomes = [outcome_of(interval, c.strict) for c, (interval, _) in zip(comparisons, deciding, strict=True)]
    overall = FAILS if FAILS in outcomes else NOISE if NOISE in outcomes else HOLDS
    words = [
        _words(interval, unit_of(c, reader), c.alone, trial)
        for c, (interval, trial) in zip(comparisons, deciding, strict=True)
    ]
    shown = words
    if len(words) > SHOWN_MARGINS:
        worst = min(range(len(words)), key=lambda k: rank(deciding[k][0], comparisons[k].strict))
        shown = [f"{words[worst]}, the smallest of {len(words)} margins,"]
    text = f"{', '.join(shown)} over {reader.trials} trial{'s' if reader.trials > 1 else ''}"
    decision = Decision(
        overall, text, tuple(interval for interval, _ in deciding), tuple(unit_of(c, reader) for c in comparisons)
    )
    if overall == FAILS and not _fails_after_holm(comparisons, judged):
        text = f"{text}; not below zero after Holm's correction for {_count(judged)} comparisons"
        return replace(decision, outcome=NOISE, words=text)
    undecided = [deciding[k][0] for k, outcome in enumerate(outcomes) if overall == outcome == NOISE]
    return _with_what_would_decide(decision, undecided, reader.trials)


def _read_at_the_start(comparison: Comparison, reader: Reader) -> bool:
    """Return whether both sides read only what curves have at the start.

    That is what they need to a level at which they start, or their values at a stage that is the start.
    """
    left, right = (list(_outermost(side)) for side in (comparison.left, comparison.right))
    with np.errstate(all="ignore"):
        read = left and right and not comparison.alone
        return bool(read) and all(_at_the_start(call, reader) for call in (*left, *right))


def _at_the_start(call: ast.Call, reader: Reader) -> bool:
    function, keywords = claim_grammar.called(call), claim_grammar.arguments(call)
    if function in ("reach", "first"):
        return not np.any(evaluate(call, reader) != 0.0)
    return function == "y" and "when" in keywords and not np.any(evaluate(keywords["when"], reader) != 0.0)


def _outermost(node: ast.AST) -> Iterator[ast.Call]:
    """Yield the calls that read curves for a side, without those that only find a level or a stage."""
    if isinstance(node, ast.Call) and claim_grammar.called(node) in claim_grammar.READERS:
        yield node
    else:
        for part in ast.iter_child_nodes(node):
            yield from _outermost(part)


def _with_what_would_decide(decision: Decision, undecided: list[Interval], trials: int) -> Decision:
    """Add which margins are excluded, and how many trials would decide, for the margins of undecided comparisons.

    No number of trials decides a margin that a level leaves open, because only more rounds can reach it.
    """
    margins = [margin for margin in undecided if is_definite(margin)]
    if not margins:
        return decision
    excluded = ", ".join(f"below {m.low:.3g} and above {m.high:.3g}" for m in margins)
    needed = [number for m in margins if (number := m.trials_to_decide()) is not None]
    open_ = any(math.isnan(margin.value) for margin in undecided)
    most = None if open_ else max(needed, default=None)
    return replace(
        decision, words=f"{decision.words}; excluded: {excluded}{_needed(most, trials)}", trials_to_decide=most
    )


def _needed(needed: int | None, trials: int) -> str:
    if needed is None:
        return ""
    if needed <= trials:
        return "; only the skewness of the trials leaves it open"
    if needed > MOST_TRIALS:
        return f"; at this margin and spread more than {MOST_TRIALS:,} trials would decide"
    return f"; at this margin and spread {needed:,} trials would decide"


def _fails_after_holm(comparisons: list[Comparison], judged: list[Judged]) -> bool:
    """Return whether one comparison at least fails at ``LEVEL`` if all of them are tested together.

    That is the first step of Holm's procedure: the smallest tail times their number. It does not depend on how the
    comparisons are correlated.
    """
    failing = [
        margin.tail
        for comparison, margins in zip(comparisons, judged, strict=True)
        for margin, _ in margins
        if outcome_of(margin, comparison.strict) == FAILS
    ]
    return min(failing) * _count(judged) <= (1 - LEVEL) / 2


def _count(judged: list[Judged]) -> int:
    return sum(map(len, judged))


@dataclass(frozen=True)
class Margins:
    """The margins of a comparison, or of one of its parts, by the number of the place on the curves.

    count : number of all places. trial : number of the trial (from 0) that is judged alone with ``each``.
    """

    part: Comparison
    by_place: Mapping[int, Interval]
    count: int
    trial: int = 0


def margins(comparison: Comparison, reader: Reader) -> list[Margins]:
    """Return the margins among which the worst one decides a comparison; with ``each``, those of every trial.

    Each value of a minimum or maximum over averages is judged separately, because the interval of the minimum is too
    narrow if two values are close and another one is the smallest when a trial is left out. If some values cannot be
    judged, for example because a level is not reached in some selections of trials, the minimum itself is judged
    instead.
    """

    def whole(part: Comparison, trial: int = 0) -> Margins:
        sides = claim_grammar.part_number(part.left), claim_grammar.part_number(part.right)
        key = (*sides, part.sign, part.alone, trial, reader.claim.panel, reader.numbers.tobytes())
        if None in sides or key not in reader.known.margins:
            reader.known.margins[key] = reader.intervals(part.margin, part.alone, trial)
        intervals = reader.known.margins[key]
        return Margins(part, dict(enumerate(intervals)), len(intervals), trial)

    if comparison.alone:
        return [
            whole(comparison, trial) for trial in range(reader.trials if comparison.alone == claim_grammar.EACH else 1)
        ]
    parts = [whole(part) for part in comparison.parts]
    if parts and all(is_definite(margin) for part in parts for margin in part.by_place.values()):
        return parts
    definite = [{k: margin for k, margin in part.by_place.items() if is_definite(margin)} for part in parts]
    return [whole(comparison), *(replace(part, by_place=own) for part, own in zip(parts, definite, strict=True))]


Judged = list[tuple[Interval, int]]
"""The margins of a comparison; for ``each`` with the number of the trial, else 0."""


def _judged(comparison: Comparison, reader: Reader) -> Judged:
    """Return all margins of a comparison that are judged."""
    each = comparison.alone == claim_grammar.EACH
    return [
        (margin, int(reader.numbers[part.trial]) if each else 0)
        for part in margins(comparison, reader)
        for margin in part.by_place.values()
    ]


def _deciding(judged: Judged, strict: bool) -> tuple[Interval, int]:
    """Return the worst margin, which decides a comparison."""
    return min(judged, key=lambda pair: rank(pair[0], strict))


def rank(margin: Interval, strict: bool) -> tuple[int, float]:
    """Return a key that sorts margins from the worst one."""
    low = -math.inf if math.isnan(margin.low) else margin.low
    return (FAILS, NOISE, HOLDS).index(outcome_of(margin, strict)), low


def is_definite(margin: Interval) -> bool:
    """Return whether the margin is finite, or infinite, in every selection of trials."""
    return not (math.isnan(margin.value) or math.isinf(margin.high - margin.low))


def unit_of(comparison: Comparison, reader: Reader) -> str:
    """Return the unit of a comparison's margin, '' if it has none in words."""
    sides = (comparison.left, comparison.right)
    key = (*map(claim_grammar.part_number, sides), reader.claim.panel)
    if None in key or key not in reader.known.units:
        reader.known.units[key] = units.of(*sides, reader.claim, reader.panels)
    return reader.known.units[key]


def _words(margin: Interval, unit: str, alone: str, trial: int) -> str:
    value = f"margin {margin.value:.3g} {unit}".rstrip()
    if math.isnan(margin.value):
        text = "open (a curve ends before it reaches the level)"
    elif math.isinf(margin.value) and margin.low == margin.high:
        text = "one side is infinite" + ("" if alone else " on the averaged curves") + " (never reached, or diverged)"
    elif alone == claim_grammar.MEDIAN and math.isinf(margin.high - margin.low):
        text = f"{value} (an interval needs six trials)"
    elif math.isinf(margin.high):
        text = "infinite in some trials only (never reached, or diverged)"
    else:
        text = value + (f" [{margin.low:.3g}, {margin.high:.3g}]" if margin.low < margin.high else "")
        if margin.skewed and not margin.low < 0 < margin.high:
            text += " (skewed trials: the interval may be too narrow)"
    return f"{text} in the {'worst' if trial else 'median'} trial" + (f" ({trial})" if trial else "") if alone else text


def outcome_of(margin: Interval, strict: bool) -> str:
    """Return the outcome of a comparison with this margin: it holds, fails, or is within noise."""
    if math.isnan(margin.value):
        return NOISE
    if margin.low > 0 or (margin.low >= 0 and not strict):
        return HOLDS
    if margin.high < 0 or (strict and margin.low == margin.high == 0):
        return FAILS
    return NOISE
