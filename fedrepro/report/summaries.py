"""What a reader should know of a paper first: a few sentences by hand, each with the verdicts it was written of.

``experiments/<paper>/summary.yml`` lies beside the paper's specs::

    paper: fedc
    holds:
      - says: "Sharing gradients keeps its speed where clients differ; averaging models loses it."
        claims: {fedc.5a: reproduced, fedc.5c: reproduced}
    fails: [...]
    depends: [...]

A sentence is shown while all of its claims have the verdicts it names. Where one has another the sentence is left out,
and the page says so: counts and lists come from the results, and a sentence must not say what these do not.
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
"""The keys of such a file, and what stands before their sentences."""


@dataclass(frozen=True)
class Sentence:
    """A sentence, under which head it stands, and the verdict it names of each claim."""

    head: str
    says: str
    claims: Mapping[str, str]

    def unlike(self, verdicts: Mapping[str, str]) -> list[str]:
        """The claims of which results say something else than the sentence was written of."""
        return [name for name, said in self.claims.items() if verdicts.get(name, said) != said]

    def known(self, verdicts: Mapping[str, str]) -> bool:
        """Whether all of its claims are among these."""
        return all(name in verdicts for name in self.claims)


def load(experiments: Path, paper: str) -> tuple[Sentence, ...]:
    """The sentences of a paper, none where it has no such file. Raises UserError where the file is not one."""
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
        raise UserError(f"{path}: its keys are paper, {', '.join(HEADS)}")
    for head, title in HEADS.items():
        for number, one in enumerate(facts.get(head) or (), start=1):
            place = f"{path}: {head}, sentence {number}"
            if not isinstance(one, dict) or set(one) != {"says", "claims"} or not isinstance(one["says"], str):
                raise UserError(f"{place}: it needs says (a text) and claims (the verdict of each)")
            claims = one["claims"]
            if not isinstance(claims, dict) or not claims:
                raise UserError(f"{place}: claims is a mapping from ids to verdicts")
            for name, verdict in claims.items():
                if verdict not in VERDICTS:
                    raise UserError(f"{place}: the verdict of {name} is one of {', '.join(VERDICTS)}, not '{verdict}'")
            yield Sentence(title, one["says"], {str(name): str(verdict) for name, verdict in claims.items()})
