"""Whether a paper's claims hold: each check is evaluated trial by trial, differences are paired, and noise has a say.

A comparison ``L < R`` gives one margin ``R - L`` per trial (both sides share data, initial point and client draws in a
trial). Its mean and its 95 % t interval over trials decide: above zero it holds, below zero it fails, across zero it is
within noise. A check at several rounds holds only if it holds at each of them, and is as weak as its weakest round.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedrepro.claims import language
from fedrepro.errors import UserError
from fedrepro.results.schema import Sidecar
from fedrepro.spec.axes import CLAIMED
from fedrepro.spec.model import Claim, Curve, Figure, Panel

REPRODUCED, NOT_REPRODUCED, NOISE, NOT_TESTED = "reproduced", "not reproduced", "within noise", "not tested"


@dataclass(frozen=True)
class Row:
    """The verdict on one claim: what was found (``holds``, ``fails``, ``within noise``), and why it counts or not."""

    figure: str
    tier: str
    id: str
    says: str
    where: str
    check: str
    verdict: str
    found: str
    why: str
    margins: tuple[tuple[float, float, float], ...]  # per comparison: mean margin, interval low, interval high
    trials: int


@dataclass(frozen=True)
class Series:
    """One setting's metric and counts, trial by trial: aligned on the rounds recorded in any trial.

    ``values`` (trials, rounds): a run that stopped early keeps its last value; one whose numbers ceased to be finite
    counts as infinitely bad from there on.
    """

    rounds: np.ndarray
    values: np.ndarray
    axes: Mapping[str, np.ndarray]
    planned: int  # the rounds this tier gives the run, which may have ended before
    better: str


class NotTestable(UserError):
    """The check needs something these results do not have."""


def table(figure: Figure, frame: Any, sidecar: Sidecar) -> list[Row]:
    """The verdict on every claim of a figure."""
    return [judge(claim, figure, frame, sidecar) for claim in figure.claims]


def judge(claim: Claim, figure: Figure, frame: Any, sidecar: Sidecar) -> Row:
    """The verdict on one claim from a figure's tidy frame and sidecar."""
    reader = _Reader(claim, figure, frame, sidecar.trials_done or 0)
    try:
        margins = _margins(language.parse(claim.check).body, reader)
        found, text, numbers = _decide(margins)
    except NotTestable as error:
        found, text, numbers = NOT_TESTED, str(error), ()
    doubts = _doubts(claim, figure, sidecar, reader.used)
    if found == NOT_TESTED:
        verdict, why = NOT_TESTED, text
    elif doubts:
        verdict, why = NOT_TESTED, f"{'; '.join(doubts)} (there it {_said(found)}: {text})"
    else:
        verdict = {"holds": REPRODUCED, "fails": NOT_REPRODUCED}.get(found, NOISE)
        why = text
    return Row(
        figure=f"{figure.paper}/{figure.figure}",
        tier=figure.tier,
        id=claim.id,
        says=claim.says,
        where=claim.where,
        check=claim.check,
        verdict=verdict,
        found=found,
        why=why + (f" [{claim.note}]" if claim.note else ""),
        margins=numbers,
        trials=reader.trials,
    )


def _said(found: str) -> str:
    return "is within noise" if found == NOISE else found


def _doubts(claim: Claim, figure: Figure, sidecar: Sidecar, used: list[Curve]) -> list[str]:
    """Why what was found may not count as a verdict on the paper."""
    names = {c.setting.dataset for c in used}
    doubts = [] if figure.tier == "paper" else [f"{figure.tier} tier"]
    doubts += [f"stand-in for {name}" for name in sidecar.stand_ins if name in names]
    doubts += [f"variant of {v.dataset} ({v.note})" for v in sidecar.variants if v.dataset in names]
    doubts += [f"changed by {' '.join('--set ' + s for s in sidecar.sets)}"] if sidecar.sets else []
    done, wanted = sidecar.trials_done or 0, sidecar.trials_wanted or 0
    doubts += [f"{done} of {wanted} trials"] if done < wanted else []
    return doubts


# -- reading curves ----------------------------------------------------------------------------------------------------


class _Reader:
    """Reads curves for one claim; remembers which ones it used."""

    def __init__(self, claim: Claim, figure: Figure, frame: Any, trials: int) -> None:
        self.claim, self.figure, self.frame, self.trials = claim, figure, frame, trials
        self.panels: dict[str, Panel] = {p.id: p for p in figure.panels}
        self.used: list[Curve] = []

    def series(self, keywords: Mapping[str, Any]) -> Series:
        panel = self.panels[keywords.get("panel", self.claim.panel)]
        own = {"panel", "metric", *(k for keys in language.READERS.values() for k in keys)}
        curve = language.pick(panel.curves, {k: v for k, v in keywords.items() if k not in own})
        self.used.append(curve)
        metric = keywords.get("metric", panel.y)
        own = self.frame[(self.frame["series"] == curve.setting.series) & (self.frame["trial"] <= self.trials)]
        rows = own[own["metric"] == metric]
        if self.trials < 1 or rows["trial"].nunique() < self.trials:
            raise NotTestable(f"'{curve.label}' has no finished trials")
        from fedrepro.registry import problems

        others = {
            name: own[own["metric"] == name].set_index(["trial", "round"])["value"] for name in curve.setting.metrics
        }
        better = problems()[curve.setting.problem].metrics[metric].better
        return _align(rows, others, curve.setting.rounds, better)


def _align(rows: Any, others: Mapping[str, Any], planned: int, better: str) -> Series:
    grid = np.array(sorted(set(rows["round"].astype(int))))
    values: list[np.ndarray] = []
    axes: dict[str, list[np.ndarray]] = {axis: [] for axis in (*CLAIMED, *others)}
    for trial, one in rows.groupby("trial", sort=True):
        at = np.searchsorted(one["round"].to_numpy(), grid, side="right") - 1
        finished = one["value"].to_numpy(dtype=float)[at]
        if (one["status"] == "diverged").any() and not np.isfinite(one["value"].iloc[-1]):
            worst = np.inf if better == "lower" else -np.inf
            finished = np.where(grid >= one["round"].iloc[-1], worst, finished)
        values.append(finished)
        for axis, columns in axes.items():
            column = others[axis].loc[trial].reindex(one["round"]) if axis in others else one[axis]
            columns.append(column.to_numpy(dtype=float)[at])
    return Series(grid, np.array(values), {k: np.array(v) for k, v in axes.items()}, planned, better)


def _y(series: Series, at: Any = None, cost: Any = None) -> np.ndarray:
    if cost is not None:
        target = np.broadcast_to(np.asarray(cost, dtype=float).reshape(-1), (len(series.values),))
        index = [
            int(np.searchsorted(a, c, side="right")) - 1
            for a, c in zip(series.axes["uplink_scalars"], target, strict=True)
        ]
        return series.values[np.arange(len(index)), np.maximum(index, 0)][:, None]
    rounds = [series.rounds[-1] if r == "end" else r for r in (at if isinstance(at, list) else [at])]
    late = [r for r in rounds if r > max(series.planned, series.rounds[-1])]
    if late:
        raise NotTestable(f"round {late[0]:g} lies beyond the {series.planned} rounds of this tier")
    return series.values[:, np.searchsorted(series.rounds, rounds, side="right") - 1]


def _total(series: Series, axis: str = "round") -> np.ndarray:
    return series.axes[axis][:, -1:]


def _reach(series: Series, level: Any, axis: str = "round") -> np.ndarray:
    target = np.broadcast_to(np.asarray(level, dtype=float).reshape(-1, 1), (len(series.values), 1))
    hit = series.values <= target if series.better == "lower" else series.values >= target
    first = np.argmax(hit, axis=1)
    there = series.axes[axis][np.arange(len(first)), first]
    return np.where(hit.any(axis=1), there, np.inf)[:, None]


def _since(series: Series, since: float) -> np.ndarray:
    kept = series.values[:, series.rounds >= since]
    if kept.shape[1] == 0:
        raise NotTestable(f"round {since:g} lies beyond the {series.rounds[-1]} rounds of this tier")
    return kept


def _lowest(series: Series, since: float = 0) -> np.ndarray:
    return np.min(_since(series, since), axis=1, keepdims=True)


def _highest(series: Series, since: float = 0) -> np.ndarray:
    return np.max(_since(series, since), axis=1, keepdims=True)


_READERS: dict[str, Callable[..., np.ndarray]] = {
    "y": _y,
    "total": _total,
    "reach": _reach,
    "lowest": _lowest,
    "highest": _highest,
}
_PLAIN: dict[str, Callable[..., Any]] = {
    "abs": np.abs,
    "log10": np.log10,
    "min": lambda *a: _fold(np.minimum, a),
    "max": lambda *a: _fold(np.maximum, a),
}


def _fold(operation: Callable[[Any, Any], Any], values: tuple[Any, ...]) -> Any:
    """Fold values pairwise; trials of differing round counts broadcast."""
    result = values[0]
    for value in values[1:]:
        result = operation(result, value)
    return result


# -- evaluating --------------------------------------------------------------------------------------------------------


def _margins(node: ast.expr, reader: _Reader) -> list[np.ndarray]:
    """One (trials, rounds) array for each comparison of the check; positive where it holds."""
    if isinstance(node, ast.BoolOp):
        return [m for value in node.values for m in _margins(value, reader)]
    if not isinstance(node, ast.Compare):
        raise NotTestable(f"'{ast.unparse(node)}' is not a comparison")
    sides = [_value(side, reader) for side in (node.left, *node.comparators)]
    margins = []
    for left, op, right in zip(sides[:-1], node.ops, sides[1:], strict=True):
        low, high = (left, right) if isinstance(op, (ast.Lt, ast.LtE)) else (right, left)
        with np.errstate(invalid="ignore"):
            margin = np.atleast_2d(np.asarray(high, dtype=float) - np.asarray(low, dtype=float))
        both = np.isinf(high) & np.isinf(low)
        margins.append(np.where(both & (np.sign(high) == np.sign(low)), np.nan, margin))
    return margins


def _value(node: ast.expr, reader: _Reader) -> Any:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        name = node.func.id
        if name in language.READERS:
            return _read(node, name, reader)
        return _PLAIN[name](*(_value(a, reader) for a in node.args))
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left, reader), _value(node.right, reader)
        with np.errstate(divide="ignore", invalid="ignore"):
            return _BINARY[type(node.op)](left, right)
    if isinstance(node, ast.UnaryOp):
        return -_value(node.operand, reader)
    return language.constant(node)


_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
}


def _read(node: ast.Call, name: str, reader: _Reader) -> np.ndarray:
    own = language.READERS[name]
    keywords = {own[i]: a for i, a in enumerate(node.args)} | {k.arg or "": k.value for k in node.keywords}
    computed = {k: _value(v, reader) if k in ("level", "cost") else language.constant(v) for k, v in keywords.items()}
    series = reader.series({k: v for k, v in computed.items() if k not in own})
    return _READERS[name](series, **{k: v for k, v in computed.items() if k in own})


def _decide(margins: list[np.ndarray]) -> tuple[str, str, tuple[tuple[float, float, float], ...]]:
    """What the margins say together: it holds only if every comparison does at every round."""
    weakest = [_weakest(m) for m in margins]
    found = [_found(*w) for w in weakest]
    overall = "fails" if "fails" in found else NOISE if NOISE in found else "holds"
    words = [_words(*w) for w in weakest]
    trials = margins[0].shape[0]
    return overall, f"{', '.join(words)} over {trials} trial{'s' if trials > 1 else ''}", tuple(weakest)


def _words(mean: float, low: float, high: float) -> str:
    if math.isnan(mean):
        return "both sides are infinite (neither reaches its level)"
    if math.isinf(mean):
        return "one side is infinite in every trial (never reached, or diverged)"
    if math.isinf(high):
        return "one side is infinite in some trials, and they disagree"
    return f"margin {mean:.3g}" + (f" [{low:.3g}, {high:.3g}]" if low < high else "")


def _weakest(margin: np.ndarray) -> tuple[float, float, float]:
    """Mean and 95 % t interval over trials, at the round where the mean is lowest."""
    if np.isnan(margin).any():
        return (math.nan, math.nan, math.nan)
    column = margin[:, int(np.argmin(margin.mean(axis=0)))]
    if not np.isfinite(column).all():  # a level never reached, or a run that diverged: only unanimity counts
        end = math.inf if (column > 0).all() else -math.inf if (column < 0).all() else 0.0
        return (end, end, end) if end else (0.0, -math.inf, math.inf)
    mean, n = float(column.mean()), len(column)
    if n < 2:
        return (mean, mean, mean)
    from scipy.stats import t

    half = float(t.ppf(0.975, n - 1) * column.std(ddof=1) / math.sqrt(n))
    return (mean, mean - half, mean + half)


def _found(mean: float, low: float, high: float) -> str:
    if math.isnan(mean):
        return NOISE
    if low > 0 or (low == high == mean and mean >= 0):
        return "holds"
    if high < 0 or (low == high == mean and mean < 0):
        return "fails"
    return NOISE
