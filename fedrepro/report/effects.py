"""Measure what a discrepancy changes: compare the two curves of an effect in a figure's results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fedrepro import registry
from fedrepro.claims.intervals import jackknife
from fedrepro.errors import UserError, nearest
from fedrepro.plotting import series, tables
from fedrepro.plotting.series import FigureData, Trial
from fedrepro.spec import axes, claim_grammar
from fedrepro.spec.discrepancies import Effect
from fedrepro.spec.model import Curve, Figure, Panel


@dataclass(frozen=True)
class Measured:
    """The effect of a choice in one figure's results: both values and their paired difference, in words."""

    figure: str
    tier: str
    words: str


def curves(effect: Effect, figure: Figure) -> tuple[Panel, Curve, Curve]:
    """Return the panel and the two curves that an effect compares. Raises UserError if they are not unique."""
    panels = {panel.id: panel for panel in figure.panels}
    for name in (effect.panel, effect.other_panel or effect.panel):
        if name not in panels:
            valid = ", ".join(panels)
            raise UserError(f"{effect.figure} has no panel '{name}'{nearest(name, panels)} (panels: {valid})")
    panel, elsewhere = panels[effect.panel], panels[effect.other_panel or effect.panel]
    pair = claim_grammar.pick(panel.curves, effect.taken), claim_grammar.pick(elsewhere.curves, effect.other)
    for curve, metric in zip(pair, _metrics(effect, panel), strict=True):
        if metric not in curve.setting.metrics:
            raise UserError(f"the metric '{metric}' is not recorded{nearest(metric, curve.setting.metrics)}")
    return panel, *pair


def _metrics(effect: Effect, panel: Panel) -> tuple[str, str]:
    metric = effect.metric or panel.y
    return metric, effect.other_metric or metric


def measure(effect: Effect, source: FigureData) -> Measured:
    """Return the effect in one figure's results: both means, and the paired difference with its 95 % interval.

    If a curve has more trials than the other, for a claim that asks for them, only those of both count.
    """
    panel, *pair = curves(effect, source.figure)
    metrics = _metrics(effect, panel)
    x = effect.axis if effect.reach is not None else "round"
    runs = _in_common([series.trials(source, c, panel, x=x, metric=m) for c, m in zip(pair, metrics, strict=True)])
    better = registry.problems()[pair[0].setting.problem].metrics[metrics[0]].better
    values = [{t.number: _value(t, effect, better) for t in trials if t.status == "ok" and t.y.size} for trials in runs]
    texts = [_in_words(n, v, r) for n, v, r in zip(_names(effect, panel, pair), values, runs, strict=True)]
    words = f"{_what(effect, panel, metrics[0])}: {texts[0]}; {texts[1]}"
    shared = np.array([values[1][n] - values[0][n] for n in values[0] if n in values[1]])
    if shared.size and np.isfinite(shared).all():
        words += f"; difference {_difference(shared)}"
    tier = source.figure.tier + (", stand-in" if source.stands_in(pair) else "")
    return Measured(effect.figure, tier, words)


def _in_common(runs: Sequence[list[Trial]]) -> list[list[Trial]]:
    """Return the trials whose numbers both curves have; all trials if there are none."""
    common = set.intersection(*({trial.number for trial in trials} for trials in runs))
    return [[trial for trial in trials if trial.number in common or not common] for trials in runs]


def _names(effect: Effect, panel: Panel, pair: list[Curve]) -> list[str]:
    """Return names of the two readings: their labels, panels or metrics."""
    if effect.other_panel:
        places = (effect.panel, effect.other_panel)
        return [f"{curve.label} in panel {place}" for curve, place in zip(pair, places, strict=True)]
    if pair[0].label != pair[1].label:
        return [curve.label for curve in pair]
    return [axes.metric_label(panel, metric) for metric in _metrics(effect, panel)]


def _what(effect: Effect, panel: Panel, metric: str) -> str:
    label = axes.metric_label(panel, metric)
    if effect.reach is not None:
        return f"{axes.AXES[effect.axis].label} at which {label} reaches {effect.reach:g}"
    return f"{label} " + ("at the end" if effect.at is None else f"at round {effect.at}")


def _value(trial: Trial, effect: Effect, better: str) -> float:
    if effect.reach is not None:
        return tables.reached(trial, effect.reach, better)
    if effect.at is None:
        return float(trial.y[-1])
    return float(trial.y[max(int(np.searchsorted(trial.x, effect.at, side="right")) - 1, 0)])


def _in_words(name: str, values: Mapping[int, float], runs: list[Trial]) -> str:
    bad = sum(t.status == "diverged" for t in runs)
    notes = f" ({bad} of {len(runs)} trials diverge)" if bad else ""
    if not values:
        return f"{name} " + (notes.strip() or "has no results")
    if not np.isfinite(list(values.values())).all():
        return f"{name} does not reach it in every trial{notes}"
    return f"{np.mean(list(values.values())):.4g} ({name}){notes}"


def _difference(values: np.ndarray) -> str:
    """Return the mean of paired differences with its 95 % interval in words."""
    trials = len(values)
    (interval,) = jackknife(lambda chosen: values[chosen].mean(), trials)
    if trials < 2:
        return f"{interval.value:+.3g} (1 trial)"
    return f"{interval.value:+.3g} [{interval.low:+.3g}, {interval.high:+.3g}] over {trials} trials"
