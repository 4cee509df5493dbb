"""Summaries of papers: a few sentences written by hand, each with the verdicts that it is based on.

``experiments/<paper>/summary.yml`` is in the folder of the paper's specs::

    paper: fedc
    holds:
      - says: "Sharing gradients keeps its speed where clients differ; averaging models loses it."
        claims: {fedc.5a: reproduced, fedc.5c: reproduced}
    fails: [...]
    depends: [...]

A sentence is shown while all of its claims have the verdicts that it names. Otherwise it is omitted, and the page says
so, because a sentence must not contradict the results.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from fedrepro.claims.evidence import VERDICTS
from fedrepro.errors import UserError

NAME = "summary.yml"
HEADS = {"holds": "Holds", "fails": "Does not hold", "depends": "It depends"}
"""The keys of such a file, and the headings of their sentences."""


@dataclass(frozen=True)
class Sentence:
    """A sentence, its heading, and the verdict of each claim that it is based on."""

    head: str
    says: str
    claims: Mapping[str, str]

    def unlike(self, verdicts: Mapping[str, str]) -> list[str]:
        """Return the claims whose verdict differs from the one that the sentence is based on."""
        return [name for name, verdict in self.claims.items() if verdicts.get(name, verdict) != verdict]

    def known(self, verdicts: Mapping[str, str]) -> bool:
        """Return whether all of its claims are among these."""
        return all(name in verdicts for name in self.claims)


def load(experiments: Path, paper: str) -> tuple[Sentence, ...]:
    """Return the sentences of a paper, () without such a file. Raises UserError if the file is invalid."""
    path = experiments / paper / NAME
    if not path.is_file():
        return ()
    try:
        facts = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        raise UserError(f"{path}: cannot be read: {' '.join(str(error).split())}") from None
    return tuple(_sentences(path, facts))


def _sentences(path: Path, facts: Any) -> Iterator[Sentence]:
    if not isinstance(facts, dict) or set(facts) - {"paper", *HEADS}:
        raise UserError(f"{path}: its keys must be paper, {', '.join(HEADS)}")
    for head, title in HEADS.items():
        for number, item in enumerate(facts.get(head) or (), start=1):
            place = f"{path}: {head}, sentence {number}"
            if not isinstance(item, dict) or set(item) != {"says", "claims"} or not isinstance(item["says"], str):
                raise UserError(f"{place}: it needs says (a text) and claims (the verdict of each)")
            claims = item["claims"]
            if not isinstance(claims, dict) or not claims:
                raise UserError(f"{place}: claims must be a mapping from ids to verdicts")
            for name, verdict in claims.items():
                if verdict not in VERDICTS:
                    known = ", ".join(VERDICTS)
                    raise UserError(f"{place}: the verdict of {name} must be one of {known}, not '{verdict}'")
            yield Sentence(title, item["says"], {str(name): str(verdict) for name, verdict in claims.items()})
