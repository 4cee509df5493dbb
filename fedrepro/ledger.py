"""What is sent between clients and server: scalars and bits, up and down, per message actually sent."""

from __future__ import annotations

from dataclasses import dataclass, field

FULL_BITS = 32
"""Bits of one unquantized number, as the papers count (single precision, discrepancy gcca.8)."""

COUNTS = ("uplink_scalars", "uplink_bits", "downlink_scalars", "downlink_bits")
"""The cumulative totals of a run, in the order in which records and results keep them."""


@dataclass
class Ledger:
    """Counts every message of one run. The papers' cost formulas are tests of this count, never its source.

    ``uplink_*`` and ``downlink_*`` are cumulative totals. Messages sent once before round 1, which no paper counts
    (for instance the statistics of the initial point), go to ``setup_scalars`` with ``setup=True``.
    """

    uplink_scalars: int = 0
    uplink_bits: int = 0
    downlink_scalars: int = 0
    downlink_bits: int = 0
    setup_scalars: int = 0
    by_kind: dict[str, int] = field(default_factory=dict)

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
