"""Find checks of a round that no tier reaches. Such a claim could never be tested.

A single tier does not show this, because many claims are about rounds that only the paper tier has.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from fedrepro.spec import claim_grammar, nodes
from fedrepro.spec.error_collector import Collector
from fedrepro.spec.model import Figure
from fedrepro.spec.readings import CHECKS

NAMED_BY = ("at", "since", "until")
"""The arguments of checks that are rounds. Other axes, such as costs, have other arguments."""


def raise_late(tiers: Sequence[Figure]) -> None:
    """Raise SpecErrors for a check of a round that no tier reaches. tiers : the spec at each tier."""
    collect = Collector(tiers[0].path)
    claims = nodes.read(Path(tiers[0].path)).get("claims")
    written = {
        (item.plain().get("id"), key): item.get(key) for item in collect.items(claims, "claims") for key in CHECKS
    }
    for claim in tiers[0].claims:
        for key in CHECKS:
            late = {figure.tier: _late(figure, claim.id, key) for figure in tiers}
            for read in sorted(set.intersection(*map(set, late.values()))):
                lasts = ", ".join(f"{tier} {last[read]}" for tier, last in late.items())
                message = f"{read} is after the last round of every tier ({lasts}); read an earlier one or raise rounds"
                collect.error(written.get((claim.id, key)), message)
    collect.raise_all()


def _late(figure: Figure, id_: str, key: str) -> dict[str, int]:
    """Return the rounds after the last one that a check of a claim reads, each with the last round of its curve."""
    panels = {panel.id: panel for panel in figure.panels}
    checks = [(claim, getattr(claim, key)) for claim in figure.claims if claim.id == id_ and not claim.inapplicable]
    late: dict[str, int] = {}
    for claim, check in checks:
        for node, function, keywords in claim_grammar.readers(claim_grammar.parse(check)) if check else ():
            last = claim_grammar.select(function, keywords, claim, panels)[1].setting.rounds
            late |= {f"round {r:g} of {ast.unparse(node)}": last for r in _rounds(function, keywords) if r > last}
    return late


def _rounds(function: str, keywords: Mapping[str, ast.expr]) -> Iterator[float]:
    """Yield the rounds that a call names by numbers."""
    for name in NAMED_BY:
        if name in claim_grammar.READERS[function] and name in keywords:
            named = claim_grammar.constant(keywords[name])
            yield from (number for number in (named if isinstance(named, list) else [named]) if number != "end")
