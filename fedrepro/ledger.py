"""Counts the messages between clients and server, and measures how long each node works.

docs/derivations/time-axes.md explains what a time axis counts.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")

FULL_BITS = 32
"""Bits of one unquantized number, as gcca counts (single precision, discrepancy gcca.8)."""

COUNTS = ("uplink_scalars", "uplink_bits", "downlink_scalars", "downlink_bits")
"""The cumulative totals of a run, in the order of records and result columns."""


class Clock:
    """Times the nodes that a run simulates one after another; in parallel they take as long as the slowest one.

    A method marks the work of each node::

        with ledger.clock.nodes() as at:      # all nodes start here and wait for each other at the end
            for i, node in enumerate(nodes):
                with at(i):
                    ...                       # work of node i; work outside ``at`` is the server's

    now : the clock, in seconds. cold : whether the run only warms up, so that its times are not used.
    """

    def __init__(self, now: Callable[[], float] = time.perf_counter, *, cold: bool = False) -> None:
        self.now = now
        self.cold = cold
        self._repeated = 0.0  # work whose result was kept from before
        self._busy = 0.0  # seconds during which nodes worked here
        self._slowest = 0.0  # the same for the slowest nodes alone
        self._all = 0.0  # and for every node, added up

    def times(self, spent: float) -> tuple[float, float]:
        """The time of a run that took ``spent`` seconds here: with nodes in parallel, and one after another."""
        others = spent + self._repeated - self._busy
        return others + self._slowest, others + self._all

    @contextmanager
    def nodes(self) -> Iterator[Callable[[Hashable], _Span]]:
        """Yields ``at``: ``with at(i):`` marks work of node i. Threads may work at several nodes at once."""
        phase = _Phase(self.now)
        yield lambda node: _Span(phase, node)
        self._busy += phase.busy
        self._slowest += max(phase.spent.values(), default=0.0)
        self._all += sum(phase.spent.values())

    def each(self, work: Callable[..., T], *of_nodes: Iterable[Any]) -> list[T]:
        """The results of ``work`` for every node, in order; its arguments are one item of each of ``of_nodes``."""
        with self.nodes() as at:
            results = []
            for i, arguments in enumerate(zip(*of_nodes, strict=True)):
                with at(i):
                    results.append(work(*arguments))
        return results

    def once(self, kept: MutableMapping[str, Any], name: str, key: Any, make: Callable[[], T]) -> T:
        """``make()``, or its result for the same ``key`` in ``kept``; its time counts in both cases.

        A result is kept with its time, unless the clock is cold.
        """
        if name in kept and kept[name][0] == key:
            _, result, took = kept[name]
            self._add(*took)
            return result
        before, began = self._parts(), self.now()
        result = make()
        took = (self.now() - began, *(new - old for new, old in zip(self._parts(), before, strict=True)))
        if not self.cold:
            kept[name] = key, result, took
        return result

    def _parts(self) -> tuple[float, float, float]:
        return self._busy, self._slowest, self._all

    def _add(self, spent: float, busy: float, slowest: float, all_: float) -> None:
        self._repeated += spent
        self._busy += busy
        self._slowest += slowest
        self._all += all_


class _Phase:
    """The time between two waits of all nodes: seconds of each node, and seconds during which any worked."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now
        self.spent: dict[Hashable, float] = {}
        self.busy = 0.0
        self.working = 0
        self.since = 0.0
        self.lock = threading.Lock()


class _Span:
    """A period of work of one node."""

    def __init__(self, phase: _Phase, node: Hashable) -> None:
        self.phase, self.node = phase, node

    def __enter__(self) -> None:
        self.began = self.phase.now()
        with self.phase.lock:
            if self.phase.working == 0:
                self.phase.since = self.began
            self.phase.working += 1

    def __exit__(self, *_: object) -> None:
        phase = self.phase
        ended = phase.now()
        with phase.lock:
            phase.working -= 1
            phase.spent[self.node] = phase.spent.get(self.node, 0.0) + ended - self.began
            if phase.working == 0:
                phase.busy += ended - phase.since


@dataclass
class Ledger:
    """Counts every message of one run. Tests compare the counts with the papers' cost formulas.

    ``uplink_*`` and ``downlink_*`` are cumulative totals. Messages before round 1 that the method's paper does not
    count (for instance the statistics of the initial point) are added to ``setup_scalars`` with ``setup=True``. gcca
    counts its first exchange, which is in full precision. ``clock`` measures the work of the nodes.

    >>> from fedrepro import Ledger
    >>> ledger = Ledger()
    >>> ledger.up(15, kind="W", clients=4)
    >>> ledger.down(15, kind="W", clients=4, bits=60)
    >>> ledger.totals()
    {'uplink_scalars': 60, 'uplink_bits': 1920, 'downlink_scalars': 60, 'downlink_bits': 240}
    """

    uplink_scalars: int = 0
    uplink_bits: int = 0
    downlink_scalars: int = 0
    downlink_bits: int = 0
    setup_scalars: int = 0
    by_kind: dict[str, int] = field(default_factory=dict)
    clock: Clock = field(default_factory=Clock, repr=False, compare=False)

    def up(self, scalars: int, *, kind: str, bits: int | None = None, clients: int = 1, setup: bool = False) -> None:
        """Count one message from each of ``clients`` clients: ``scalars`` numbers, ``bits`` bits (default: 32 each)."""
        self._count("uplink", scalars, kind, bits, clients, setup)

    def down(self, scalars: int, *, kind: str, bits: int | None = None, clients: int = 1, setup: bool = False) -> None:
        """Count one message of ``scalars`` numbers from the server to each of ``clients`` clients."""
        self._count("downlink", scalars, kind, bits, clients, setup)

    def _count(self, way: str, scalars: int, kind: str, bits: int | None, clients: int, setup: bool) -> None:
        if scalars < 0 or clients < 0:
            raise ValueError("a message cannot have a negative size")
        if setup:
            self.setup_scalars += scalars * clients
            return
        size = FULL_BITS * scalars if bits is None else bits
        setattr(self, f"{way}_scalars", getattr(self, f"{way}_scalars") + scalars * clients)
        setattr(self, f"{way}_bits", getattr(self, f"{way}_bits") + size * clients)
        self.by_kind[f"{way}:{kind}"] = self.by_kind.get(f"{way}:{kind}", 0) + scalars * clients

    def totals(self) -> dict[str, int]:
        """The four cumulative totals, in the order of the result columns."""
        return {
            "uplink_scalars": self.uplink_scalars,
            "uplink_bits": self.uplink_bits,
            "downlink_scalars": self.downlink_scalars,
            "downlink_bits": self.downlink_bits,
        }
