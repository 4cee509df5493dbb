"""Run one method on one problem held in memory, from Python, and get its history back."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fedrepro import seeds
from fedrepro.errors import UserError
from fedrepro.ledger import Ledger
from fedrepro.registry import Method


@dataclass
class History:
    """What a run did. ``history["objective"][0]`` is the initial point, index s the state after round s.

    rounds : (R + 1,) integers 0 .. R. values : each metric by name, (R + 1,) floats; the ledger's cumulative totals
    (``uplink_scalars``, ``uplink_bits``, ``downlink_scalars``, ``downlink_bits``) stand beside them, (R + 1,) integers.
    state : the last state. ledger : the run's messages. states : every state where they were kept, else None.
    """

    rounds: np.ndarray
    values: dict[str, np.ndarray]
    state: Any
    ledger: Ledger
    states: list[Any] | None = field(default=None, repr=False)

    def __getitem__(self, name: str) -> np.ndarray:
        """The values of one metric or ledger total over the rounds."""
        if name not in self.values:
            raise KeyError(f"'{name}' was not recorded (recorded: {', '.join(self.values)})")
        return self.values[name]


def run(
    method: Method,
    problem: Any,
    rounds: int,
    *,
    rng: np.random.Generator | None = None,
    seed: int = 0,
    init: Any = None,
    clients: Any = None,
    metrics: Sequence[str] = ("objective",),
    keep: bool = False,
) -> History:
    """Run ``method`` on ``problem`` for ``rounds`` rounds, or until it ends by itself, and measure every state.

    rng : source of everything random in the run; made from ``seed`` where it is None. init : explicit initial factors;
    None for the problem's own initial point number ``seed``. clients : clients drawn in each round, to replay a run.
    metrics : names the problem can measure. keep : keep a copy of every state.

    Raises UserError where an argument cannot work.
    """
    if isinstance(rounds, bool) or not isinstance(rounds, int | np.integer) or rounds < 0:
        raise UserError(f"rounds: must be an integer of at least 0, not {rounds!r}")
    if clients is not None and len(clients) < rounds:
        raise UserError(f"clients: gives the draws of {len(clients)} rounds, but {rounds} rounds were asked for")
    rng = seeds.generator("run", seed=seed) if rng is None else rng
    init = problem.initial(seed) if init is None else init
    ledger = Ledger()
    states: list[Any] = []
    columns: dict[str, list[float]] = {name: [] for name in metrics}
    totals: dict[str, list[int]] = {name: [] for name in ledger.totals()}
    state = None
    steps = method.rounds(problem, rng, ledger=ledger, init=init, clients=clients)
    for number, state in enumerate(steps):
        for name, value in problem.measure(state, tuple(metrics)).items():
            columns[name].append(float(value))
        for name, total in ledger.totals().items():
            totals[name].append(total)
        if keep:
            states.append(state.copy() if hasattr(state, "copy") else copy.deepcopy(state))
        if number >= rounds:
            break
    values = {name: np.array(column) for name, column in columns.items()}
    values |= {name: np.array(column, dtype=np.int64) for name, column in totals.items()}
    length = len(totals["uplink_scalars"])
    return History(np.arange(length), values, state, ledger, states if keep else None)
