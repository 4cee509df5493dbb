"""Find the curves that moved between two results of one figure, beyond the noise of the trials.

Trials with the same number are paired: if only the code has changed, they share data, initial point and draws. A curve
moved if the interval of the mean difference excludes zero at one of up to ten rounds (the last, and earlier ones with
geometric spacing). The intervals hold jointly with 95 % (Bonferroni), so that ten rounds do not cause false alarms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fedrepro import registry
from fedrepro.errors import UserError, counted, nearest
from fedrepro.results.read import PACKED, frame, read_sidecar

if TYPE_CHECKING:
    import pandas as pd

SAME, NOISE, MOVED, DIFFERS = "same", "within noise", "moved", "differs"
ONLY_A, ONLY_B, EMPTY = "only in A", "only in B", "no numbers"
ROUNDS = 10
"""Number of rounds of a curve that are compared."""


@dataclass(frozen=True)
class Change:
    """One curve and metric in both results. ``differs``: not the same, but with one trial this may be noise.

    a, b : the means over the shared trials at the last common round. mean, low, high : the difference b - a with its
    interval at round ``at``, which is the last one, or for a curve that moved the round with the clearest difference.
    to : the last common round. ends : the last rounds of A and B. of : their numbers of trials.
    """

    series: str
    other: str  # the name in B
    metric: str
    state: str
    trials: int = 0
    a: float = float("nan")
    b: float = float("nan")
    at: int = 0
    mean: float = float("nan")
    low: float = float("nan")
    high: float = float("nan")
    to: int = 0
    ends: tuple[int, int] = (0, 0)
    of: tuple[int, int] = (0, 0)

    @property
    def part(self) -> str:
        """The common rounds and trials in words; '' if both sides have no others."""
        (end_a, end_b), (trials_a, trials_b) = self.ends, self.of
        rounds = f"up to round {self.to} (of {end_a} and {end_b})" if max(self.ends) > self.to else ""
        shared = counted(self.trials, "trial")
        trials = f"in {shared} (of {trials_a} and {trials_b})" if max(self.of) > self.trials else ""
        return ", ".join(filter(None, (rounds, trials)))


def read(path: Path) -> pd.DataFrame:
    """Return a tidy results CSV. Raises UserError if it is not one, or differs from its sidecar's hash."""
    if not path.exists():
        packed = (path.with_name(path.name + suffix) for suffix in PACKED)  # large results are compressed
        path = next((compressed for compressed in packed if compressed.exists()), path)
    if not path.exists():
        duel = f"; `fedrepro duel {path} OTHER --data DATASET` compares methods"
        hint = duel if str(path) in registry.methods() else ""
        raise UserError(f"{path}: no such file; results are stored in results/TIER/PAPER/FIGURE.csv{hint}")
    sidecar = read_sidecar(path.with_name(path.name.removesuffix(".gz").removesuffix(".xz").removesuffix(".csv")))
    return frame(path, sidecar.csv_sha256 if sidecar is not None else "")


def files(a: Path, b: Path, metric: str | None = None) -> list[Change]:
    """Compare every curve of two results files (see ``compare``)."""
    return compare(read(a), read(b), metric)


def compare(a: pd.DataFrame, b: pd.DataFrame, metric: str | None = None) -> list[Change]:
    """Compare every curve of A and B, in A's order, then those that only B has.

    Curves are matched by name. If both sides have the same number of other curves (because a changed parameter changed
    their names), these are matched in order. Raises UserError if neither side has the metric.
    """
    known = list(dict.fromkeys([*a["metric"].dropna(), *b["metric"].dropna()]))
    if metric is not None and metric not in known:
        raise UserError(
            f"--metric {metric}: neither file has it{nearest(metric, known)} (metrics: {', '.join(sorted(known))})"
        )
    metrics = [metric] if metric else known
    changes = []
    for name, other in _pairs(list(dict.fromkeys(a["series"])), list(dict.fromkeys(b["series"]))):
        in_a, in_b = a[a["series"] == name], b[b["series"] == other]
        present = [m for m in metrics if (in_a["metric"] == m).any() or (in_b["metric"] == m).any()]
        if not present:  # every trial failed
            changes.append(Change(name or other, other, metric or "", _lonely(name, other) or EMPTY))
        changes += [_change(name, other, m, in_a[in_a["metric"] == m], in_b[in_b["metric"] == m]) for m in present]
    return changes


def _pairs(a: list[str], b: list[str]) -> list[tuple[str, str]]:
    """Return matched names, '' for a curve without a counterpart."""
    left, right = [n for n in a if n not in b], [n for n in b if n not in a]
    partner = dict(zip(left, right, strict=True)) if len(left) == len(right) else {}
    pairs = [(name, name if name in b else partner.get(name, "")) for name in a]
    return pairs + [("", name) for name in right if not partner]


def _lonely(name: str, other: str) -> str:
    return ONLY_B if not name else ONLY_A if not other else ""


def _change(name: str, other: str, metric: str, a: pd.DataFrame, b: pd.DataFrame) -> Change:
    state = _lonely(name, other)
    if state:
        return Change(name or other, other, metric, state)
    left, right = (f.pivot_table(index="trial", columns="round", values="value", dropna=False) for f in (a, b))
    trials, rounds = left.index.intersection(right.index), left.columns.intersection(right.columns)
    if not len(trials) or not len(rounds):
        return Change(name, other, metric, EMPTY)
    x, y = (f.loc[trials, rounds].to_numpy(dtype=float) for f in (left, right))
    looked = looked_at(len(rounds))
    state, place, mean, low, high = _judge(x, y, looked)
    return Change(
        name, other, metric, state, len(trials),
        a=float(x[:, -1].mean()), b=float(y[:, -1].mean()), at=int(rounds[place]), mean=mean, low=low, high=high,
        to=int(rounds.max()), ends=(int(left.columns.max()), int(right.columns.max())), of=(len(left), len(right)),
    )  # fmt: skip


def looked_at(count: int) -> np.ndarray:
    """Return indices of up to ``ROUNDS`` of ``count`` rounds: the last, and earlier ones with geometric spacing."""
    return np.unique(np.rint(np.geomspace(1, count, min(ROUNDS, count))).astype(int)) - 1


def _judge(x: np.ndarray, y: np.ndarray, looked: np.ndarray) -> tuple[str, int, float, float, float]:
    """Return the state, the index of its round, and the difference there with its interval."""
    equal = (x == y) | (np.isnan(x) & np.isnan(y))
    last = x.shape[1] - 1
    if equal.all():
        return SAME, last, 0.0, 0.0, 0.0
    with np.errstate(invalid="ignore"):
        difference = np.where(equal, 0.0, y - x)
    if not np.isfinite(difference).all():  # one side is no longer finite
        place = int(np.flatnonzero(~np.isfinite(difference).all(axis=0))[0])
        return MOVED, place, float("nan"), float("nan"), float("nan")
    if len(x) < 2:
        place = int(np.argmax(np.abs(difference[0])))
        value = float(difference[0, place])
        return DIFFERS, place, value, value, value
    from scipy.stats import t

    means, sds = difference.mean(axis=0), difference.std(axis=0, ddof=1)
    halves = t.ppf(1 - 0.025 / len(looked), len(x) - 1) * sds / np.sqrt(len(x))
    clear = [i for i in looked.tolist() if abs(means[i]) > halves[i]]
    place = max(clear, key=lambda i: abs(means[i]) / halves[i] if halves[i] else np.inf) if clear else last
    mean, half = float(means[place]), float(halves[place])
    return (MOVED if clear else NOISE), place, mean, mean - half, mean + half


def lines(changes: Sequence[Change], every: bool) -> list[tuple[str, ...]]:
    """Return the rows of the printed table: all curves, or those that are neither the same nor within noise."""
    rows: list[tuple[str, ...]] = []
    for c in changes:
        if not every and c.state in (SAME, NOISE):
            continue
        name = c.series if c.other in ("", c.series) else f"{c.series} -> {c.other}"
        rows.append((c.state, name, c.metric, *_numbers(c)))
    return rows


def _numbers(c: Change) -> tuple[str, ...]:
    if c.state in (ONLY_A, ONLY_B, EMPTY):
        return ()
    end = f"{c.a:.5g} -> {c.b:.5g}"
    if c.state == SAME:
        return (end, f"compared {c.part}" if c.part else "")
    if np.isnan(c.mean):
        return (end, f"one side is not finite from round {c.at} on")
    interval = f" [{c.low:+.3g}, {c.high:+.3g}]" if c.low < c.high else ""
    return (end, f"{c.mean:+.3g}{interval} at round {c.at}, {c.trials} trial{'s' if c.trials > 1 else ''}")
