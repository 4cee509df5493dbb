"""Summaries of papers: a few sentences written by hand, each with the verdicts that it is based on.

``experiments/<paper>/summary.yml`` is in the folder of the paper's specs::

    paper: fedc
    holds:
      - says: "Sharing gradients keeps its speed where clients differ; averaging models loses it."
        claims: {fedc.5a: reproduced, fedc.5c: reproduced}
    fails: [...]
    depends: [...]
    undecided: [...]

Each sentence states what the runs show, not what the paper claims, so that it is true after its heading ("Found
instead: ..."). It is shown while all of its claims have the verdicts that it names. Otherwise it is omitted, and the
page says so, because a sentence must not contradict the results.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fedrepro.claims.evidence import VERDICTS
from fedrepro.spec import nodes
from fedrepro.spec.error_collector import Collector
from fedrepro.spec.nodes import Node

NAME = "summary.yml"
HEADS = {"holds": "Confirmed", "fails": "Found instead", "depends": "It depends", "undecided": "Undecided"}
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
    """Return the sentences of a paper, () without such a file. Raises SpecErrors if the file is invalid."""
    path = experiments / paper / NAME
    if not path.is_file():
        return ()
    collector, root = Collector(str(path)), nodes.read(path)
    collector.keys(root, ("paper", *HEADS), "a summary")
    sentences = []
    for key, head in HEADS.items():
        for node in collector.items(root.get(key), key):
            collector.keys(node, ("says", "claims"), "a sentence")
            claims = node.get("claims") or Node({}, node.place)
            verdicts = {name: collector.choice(child, VERDICTS, "a verdict", "") for name, child in claims.items()}
            if not verdicts or node.get("says") is None:
                collector.error(node, "a sentence needs says (a text) and claims (a mapping from ids to verdicts)")
            sentences.append(Sentence(head, collector.text(node.get("says"), "says"), verdicts))
    collector.raise_all()
    return tuple(sentences)
