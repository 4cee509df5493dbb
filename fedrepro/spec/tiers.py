"""The tiers of a spec, which ``tiers:`` overrides: how much of it is computed."""

from __future__ import annotations

TIERS = ("smoke", "quick", "paper")
"""From the smallest to the published sizes, rounds and trials; ``paper`` alone can say that a claim is reproduced."""
