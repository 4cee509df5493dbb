"""The tiers of a spec, which ``tiers:`` overrides: how much of it is computed."""

from __future__ import annotations

MEANINGS = {
    "smoke": "seconds: enough to see that everything runs, for tests",
    "quick": "reduced sizes, rounds and trials: a look at everything in minutes",
    "paper": "the published sizes, rounds and trials; only at this tier can a claim be reproduced",
}
TIERS = tuple(MEANINGS)
"""From the smallest to the published sizes, rounds and trials; only at ``paper`` can a claim be reproduced."""

DEFAULT = "quick"
"""The tier of commands that compute, unless another is named."""

BEST = "best"
"""The value of ``--tier`` that means the best results there are."""
