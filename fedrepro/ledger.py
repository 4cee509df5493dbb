"""What is sent between clients and server, per message actually sent, and how long each of them works.

docs/derivations/time-axes.md says what a time axis counts.
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
"""Bits of one unquantized number, as the papers count (single precision, discrepancy gcca.8)."""

COUNTS = ("uplink_scalars", "uplink_bits", "downlink_scalars", "downlink_bits")
"""The cumulative totals of a run, in the order in which records and results keep them."""


class Clock:
    """The work of nodes that a run simulates one after another: side by side, it takes as long as the slowest of them.

    A method says what is a node's work:

        with ledger.clock.nodes() as at:      # until here all nodes are ready, after it they wait for each other
            for i, node in enumerate(nodes):
                with at(i):
                    ...                       # work of node i; what stands outside ``at`` is the server's

    Whoever measures a run hands ``times`` the seconds it took here, by the clock ``now``. ``cold`` : of a run that
    warms up, whose times say nothing.
    """

    def __init__(self, now: Callable[[], float] = time.perf_counter, *, cold: bool = False) -> None:
        self.now = now
        self.cold = cold
        self._repeated = 0.0  # work whose result was kept from before
        self._busy = 0.0  # seconds during which nodes worked here
        self._slowest = 0.0  # the same for the slowest nodes alone
        self._all = 0.0  # and for every node, added up

    def times(self, spent: float) -> tuple[float, float]:
        """Of ``spent`` seconds: what it takes with nodes side by side, and with nodes one after another."""
        others = spent + self._repeated - self._busy
        return others + self._slowest, others + self._all

    @contextmanager
    def nodes(self) -> Iterator[Callable[[Hashable], _Span]]:
        """Gives ``at``: work in ``with at(i):`` is that of node i. Threads may be at several nodes at once."""
        phase = _Phase(self.now)
        yield lambda node: _Span(phase, node)
        self._busy += phase.busy
        self._slowest += max(phase.spent.values(), default=0.0)
        self._all += sum(phase.spent.values())

    def each(self, work: Callable[..., T], *of_nodes: Iterable[Any]) -> list[T]:
        """``work`` of every node, given one thing of each of ``of_nodes``; what it returns, in order."""
        with self.nodes() as at:
            results = []
            for i, arguments in enumerate(zip(*of_nodes, strict=True)):
                with at(i):
                    results.append(work(*arguments))
        return results

    def once(self, kept: MutableMapping[str, Any], name: str, key: Any, make: Callable[[], T]) -> T:
        """``make()``, or what it gave for the same ``key`` before, from ``kept``; its time counts either way.

        A result is kept with the time it took, and not where it was made cold.
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
    """Between two moments at which all nodes wait for each other: seconds of each, and during which any worked."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now
        self.spent: dict[Hashable, float] = {}
        self.busy = 0.0
        self.working = 0
        self.since = 0.0
        self.lock = threading.Lock()


class _Span:
    """A stretch of work of one node."""

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
    """Counts every message of one run. The papers' cost formulas are tests of this count, never its source.

    ``uplink_*`` and ``downlink_*`` are cumulative totals. Messages sent once before round 1, which no paper counts
    (for instance the statistics of the initial point), go to ``setup_scalars`` with ``setup=True``. ``clock``: whose
    work the time between messages is.

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
        """``clients`` clients each send one message of ``scalars`` numbers (``bits`` bits, 32 a number by default)."""
        self._count("uplink", scalars, kind, bits, clients, setup)

    def down(self, scalars: int, *, kind: str, bits: int | None = None, clients: int = 1, setup: bool = False) -> None:
        """The server sends ``clients`` clients one message each of ``scalars`` numbers."""
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
