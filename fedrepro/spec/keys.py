"""The keys of a spec: the values, default and meaning of each.

The reader accepts these keys and no others; messages, ``fedrepro describe`` and the reference use this list. The
options and published numbers of panels are described in ``panels``, parameters of methods, datasets, etc. in their
docstrings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fedrepro.parameters import Whole
from fedrepro.spec.tiers import MEANINGS


@dataclass(frozen=True)
class Key:
    """One key: its values in words, its meaning and its default.

    values : the meaning of each word that it can have, if there are only a few. required : it has no default.
    """

    takes: str
    doc: str
    default: Any = None
    required: bool = False
    values: Mapping[str, str] = field(default_factory=dict)


Keys = Mapping[str, Key]

ROLES = {
    "curve": "a line over the rounds, with a marker",
    "level": "a horizontal line at its final value, as for a method without rounds",
}
THEOREM = {
    "promise": "as promised, faster than promised, or contradicted; a rate within the bound is no proof",
    "condition": "the condition is met, or not met by the experiments' parameters",
}
SCALES = {"linear": "equal distances are equal differences", "log": "equal distances are equal ratios"}

_TEXT, _NAME, _COUNT, _FROM_0 = "a text", "a name", str(Whole(1)), str(Whole(0))
_NAMES = "a list of names"
_LIMITS = "[low, high], null for automatic"
_DATASET = "a name of `datasets`, a registered dataset, or {name: ..., parameters}"
_PARTITION = "a name of `partitions`, a registered partition, or {name: ..., parameters}"

SPEC: Keys = {
    "paper": Key("the key of a paper, `beyond`, or a name of your own", "the folder of its results", required=True),
    "figure": Key(
        "letters, digits, `_`, `-`, `.`", "the name of the figure and of its files of results", required=True
    ),
    "title": Key(_TEXT, "the title above the figure", ""),
    "source": Key(_TEXT, "the place of the figure in the paper", ""),
    "note": Key(_TEXT, "a note for readers, shown in the report", ""),
    "queue": Key(_COUNT, "the place in the queue of `make answers`; places from 100 on are computed last", None),
    "problem": Key(
        "a registered problem, or {name: ..., parameters}", "the problem that all curves solve", required=True
    ),
    "trials": Key(_COUNT, "how often every curve is computed, each time with other random numbers", required=True),
    "rounds": Key(_FROM_0, "the number of rounds of a run", required=True),
    "record_every": Key(_COUNT, "after round `record_dense`, every `record_every`-th round is recorded", 1),
    "record_dense": Key(_FROM_0, "all rounds up to this one are recorded, and always round 0 and the last one", 20),
    "metrics": Key(_NAMES, "metrics recorded for all curves in addition to the problem's default ones", ()),
    "artifacts": Key(_NAMES, "arrays of the final state that runs store, for panels of the kind `scatter`", ()),
    "columns": Key(_COUNT, "the number of panels per row", 2),
    "datasets": Key("a mapping of own names to {name: ..., parameters}", "the spec's own names of datasets", ()),
    "partitions": Key("a mapping of own names to {name: ..., parameters}", "the spec's own names of partitions", ()),
    "dataset": Key(_DATASET, "the data of all curves that name no dataset"),
    "partition": Key(_PARTITION, "how the data are distributed to clients, for all curves that name no partition"),
    "panels": Key("a mapping of names to panels", "the sets of axes of the figure, in their order", required=True),
    "claims": Key("a list of claims", "statements of the paper about the figure, each with a check", ()),
    "tiers": Key(
        "a mapping of tiers to overrides", "the differences at a tier: any key of a spec except paper and figure", ()
    ),
}
"""The keys of a spec."""

PANEL: Keys = {
    "title": Key(_TEXT, "the title above the panel, after its name", ""),
    "kind": Key("a kind of panel", "how the panel is drawn: `curves`, `scatter`, `table` or `bars`", "curves"),
    "x": Key("an axis, a metric, or a value in which the curves differ", "the x axis", "round"),
    "y": Key("a metric of the problem", "the metric that is drawn", "objective"),
    "xscale": Key("linear or log", "the scale of the x axis", "linear", values=SCALES),
    "yscale": Key("linear or log", "the scale of the y axis", "linear", values=SCALES),
    "xlim": Key(_LIMITS, "the limits of the x axis"),
    "ylim": Key(_LIMITS, "the limits of the y axis"),
    "like": Key("the name of another panel", "copies that panel; the keys given here override its keys"),
    "dataset": Key(_DATASET, "the data of the panel's curves, instead of the spec's"),
    "partition": Key(_PARTITION, "the partition of the panel's curves, instead of the spec's"),
    "problem": Key("parameters of the problem, or another problem", "overrides the spec's problem"),
    "rounds": Key(_FROM_0, "the rounds of the panel's curves, instead of the spec's"),
    "metrics": Key(_NAMES, "metrics recorded for the panel's curves in addition to those of the spec", ()),
    "artifacts": Key(_NAMES, "arrays that the panel's runs store, instead of the spec's"),
    "curves": Key("a list of curves", "the curves: each item is a method with its parameters", required=True),
    "published": Key(
        "a list of mappings",
        "numbers printed in the paper, drawn beside ours (the keys depend on the kind of panel)",
        (),
    ),
    "options": Key("a mapping", "further options (the keys depend on the kind of panel)", ()),
}
"""The keys of a panel."""

CURVE: Keys = {
    "algorithm": Key(
        "a registered algorithm, or a list of them", "the method; its parameters are keys of the curve", required=True
    ),
    "dataset": Key(f"{_DATASET}, or a list of these", "the data of this curve, instead of the panel's"),
    "partition": Key(f"{_PARTITION}, or a list of these", "the partition of this curve, instead of the panel's"),
    "problem": Key("parameters of the problem", "overrides parameters of the panel's problem: {K: 20}"),
    "rounds": Key(f"{_FROM_0}, or a list", "the rounds of this curve, instead of the panel's"),
    "zip": Key(
        "a mapping of keys to lists of one length",
        "these lists advance together, whereas lists outside `zip` are crossed",
    ),
    "label": Key(_TEXT, "the name in the legend; by default the method and what varies among the curves", ""),
    "role": Key(
        "curve or level", "how the curve is drawn; by default a method without rounds is a level", "", values=ROLES
    ),
}
"""The keys of a curve in addition to the parameters of its method; a list of values is a sweep."""

CLAIM: Keys = {
    "id": Key(_TEXT, "the unique name of the claim", required=True),
    "says": Key(_TEXT, "the paper's sentence in other words, with the same meaning", required=True),
    "reading": Key(_TEXT, "how a vague word of the sentence is interpreted", ""),
    "where": Key(_TEXT, "the place of the sentence in the paper", required=True),
    "panel": Key("the name of a panel", "the panel whose curves the check reads", required=True),
    "check": Key("a comparison in the language of claims", "what the results must satisfy", required=True),
    "note": Key(_TEXT, "a note shown with the verdict", ""),
    "theorem": Key(
        "promise or condition",
        "the part of a theorem that the claim measures; the verdict names it",
        "",
        values=THEOREM,
    ),
    "faster": Key(
        "a comparison in the language of claims",
        "for a theorem's promise: holds in addition if the rate is faster than promised",
        "",
    ),
}
"""The keys of a claim."""

DATASET: Keys = {
    "name": Key("a registered dataset", "the dataset; its parameters are keys of the same mapping", required=True),
    "published": Key(
        "sizes, for instance {N: 10000}", "the sizes in the paper; verdicts on data of other sizes are marked", ()
    ),
}
"""The keys of an entry of ``datasets`` in addition to the parameters of the dataset."""

PARTITION: Keys = {
    "name": Key("a registered partition", "the partition; its parameters are keys of the same mapping", required=True),
    "per_trial": Key("true or false", "whether every trial draws its own partition", False),
}
"""The keys of an entry of ``partitions`` in addition to the parameters of the partition."""

PROBLEM: Keys = {
    "name": Key("a registered problem", "the problem; its parameters are keys of the same mapping", required=True)
}
"""The keys of ``problem`` in addition to the parameters of the problem."""

TIER: Keys = {name: Key("a mapping of keys of a spec", meaning, ()) for name, meaning in MEANINGS.items()}
"""The keys of ``tiers``."""

SECTIONS: Mapping[str, Keys] = {
    "": SPEC,
    "problem": PROBLEM,
    "datasets": DATASET,
    "partitions": PARTITION,
    "panels": PANEL,
    "panels.curves": CURVE,
    "claims": CLAIM,
    "tiers": TIER,
}
"""Every table of keys by the key of a spec that contains it, without the spec's own names in between."""


def required(keys: Keys) -> list[str]:
    """Return the required keys."""
    return [name for name, key in keys.items() if key.required]


def paths() -> dict[str, Key]:
    """Return every key by its path: ``rounds``, ``panels.xlim``, ``panels.curves.role``."""
    return {f"{above}.{name}".strip("."): key for above, keys in SECTIONS.items() for name, key in keys.items()}
