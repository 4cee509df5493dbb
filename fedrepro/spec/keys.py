"""The keys of a spec: what each takes, its default and what it means.

The reader knows these keys and no others; messages, ``fedrepro describe`` and the reference read them here. The options
and published numbers of panels are described in ``panels``, the parameters of whatever is registered in its docstring.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fedrepro.parameters import Whole
from fedrepro.spec.tiers import MEANINGS


@dataclass(frozen=True)
class Key:
    """One key: the values it takes in words, what it means, and where it may be left out what then holds.

    ``values`` : the words it may have, where these are few, and what each means. ``required`` keys have no default.
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
    "condition": "what it asks for is met, or not met by the experiments' parameters",
}
SCALES = {"linear": "equal steps are equal differences", "log": "equal steps are equal ratios"}

_TEXT, _NAME, _COUNT, _FROM_0 = "a text", "a name", str(Whole(1)), str(Whole(0))
_NAMES = "a list of names"
_LIMITS = "[low, high], null for automatic"
_DATASET = "a name of `datasets`, a registered dataset, or {name: ..., parameters}"
_PARTITION = "a name of `partitions`, a registered partition, or {name: ..., parameters}"

SPEC: Keys = {
    "paper": Key(
        "the key of a paper, `beyond`, or a name of your own", "the folder that results are stored under", required=True
    ),
    "figure": Key(
        "letters, digits, `_`, `-`, `.`", "what the figure is called, and its results' files with it", required=True
    ),
    "title": Key(_TEXT, "what stands above the figure", ""),
    "source": Key(_TEXT, "where the paper has the figure", ""),
    "note": Key(_TEXT, "what else a reader should know; the report shows it", ""),
    "queue": Key(_COUNT, "the place in the queue of `make answers`; places from 100 on are computed last", None),
    "problem": Key(
        "a registered problem, or {name: ..., parameters}", "the problem that all curves solve", required=True
    ),
    "trials": Key(_COUNT, "how often every curve is computed, each time with other draws", required=True),
    "rounds": Key(_FROM_0, "how many rounds a run has", required=True),
    "record_every": Key(_COUNT, "of the rounds after the first `record_dense`, each so-many-th is recorded", 1),
    "record_dense": Key(_FROM_0, "up to this round every one is recorded; so are round 0 and the last one", 20),
    "metrics": Key(_NAMES, "metrics that are recorded of all curves besides the problem's usual ones", ()),
    "artifacts": Key(_NAMES, "arrays of the final state that runs keep, for panels of the kind `scatter`", ()),
    "columns": Key(_COUNT, "panels side by side", 2),
    "datasets": Key("a mapping of own names to {name: ..., parameters}", "datasets under names of the spec's own", ()),
    "partitions": Key("a mapping of own names to {name: ..., parameters}", "partitions under such names", ()),
    "dataset": Key(_DATASET, "the data of all curves that name none"),
    "partition": Key(_PARTITION, "how the data are shared out to clients, for all curves that name no partition"),
    "panels": Key("a mapping of names to panels", "the sets of axes of the figure, in their order", required=True),
    "claims": Key("a list of claims", "what a paper says of the figure, each with a check", ()),
    "tiers": Key(
        "a mapping of tiers to overrides", "what is different at a tier: any key of a spec but paper, figure", ()
    ),
}
"""The keys of a spec."""

PANEL: Keys = {
    "title": Key(_TEXT, "what stands above the panel, behind its name", ""),
    "kind": Key("a kind of panel", "how it is drawn: `curves`, `scatter`, `table` or `bars`", "curves"),
    "x": Key("an axis, a metric, or a value in which the curves differ", "what it is drawn over", "round"),
    "y": Key("a metric of the problem", "what is drawn", "objective"),
    "xscale": Key("linear or log", "the scale of the x axis", "linear", values=SCALES),
    "yscale": Key("linear or log", "the scale of the y axis", "linear", values=SCALES),
    "xlim": Key(_LIMITS, "the part of the x axis that is shown"),
    "ylim": Key(_LIMITS, "the part of the y axis that is shown"),
    "like": Key("the name of another panel", "this panel is that one with the keys given here laid over it"),
    "dataset": Key(_DATASET, "the data of the panel's curves, in place of the spec's"),
    "partition": Key(_PARTITION, "their partition, in place of the spec's"),
    "problem": Key("parameters of the problem, or another problem", "laid over the spec's own problem"),
    "rounds": Key(_FROM_0, "the rounds of the panel's curves, in place of the spec's"),
    "metrics": Key(_NAMES, "metrics recorded of the panel's curves besides those of the spec", ()),
    "artifacts": Key(_NAMES, "arrays that the panel's runs keep, in place of the spec's"),
    "curves": Key("a list of curves", "what is drawn: each item is a method and its parameters", required=True),
    "published": Key(
        "a list of mappings", "numbers that the paper prints, drawn beside ours (keys: by kind of panel)", ()
    ),
    "options": Key("a mapping", "what the kind of panel can be told besides (keys: by kind of panel)", ()),
}
"""The keys of a panel."""

CURVE: Keys = {
    "algorithm": Key(
        "a registered algorithm, or a list of them", "the method; its parameters stand beside it", required=True
    ),
    "dataset": Key(f"{_DATASET}, or a list of these", "the data of this curve, in place of the panel's"),
    "partition": Key(f"{_PARTITION}, or a list of these", "its partition, in place of the panel's"),
    "problem": Key("parameters of the problem", "laid over the panel's problem: {K: 20}"),
    "rounds": Key(f"{_FROM_0}, or a list", "its rounds, in place of the panel's"),
    "zip": Key("a mapping of keys to lists of one length", "these go in step, where lists beside it are crossed"),
    "label": Key(_TEXT, "its name in the legend; without it the method and what varies among the curves", ""),
    "role": Key("curve or level", "how it is drawn; without it a method without rounds is a level", "", values=ROLES),
}
"""The keys of a curve besides the parameters of its method, any of which may be a list: a sweep."""

CLAIM: Keys = {
    "id": Key(_TEXT, "its name, which no other claim has", required=True),
    "says": Key(_TEXT, "what the paper's sentence says, in other words, no less and no more", required=True),
    "reading": Key(_TEXT, "how a vague word of it is read here", ""),
    "where": Key(_TEXT, "where the paper says so", required=True),
    "panel": Key("the name of a panel", "the panel whose curves the check reads", required=True),
    "check": Key("a comparison in the language of claims", "what must hold of the results", required=True),
    "note": Key(_TEXT, "what else is to be said of it; verdicts show it", ""),
    "theorem": Key(
        "promise or condition", "what of a theorem it measures; its verdict says so in words", "", values=THEOREM
    ),
    "faster": Key(
        "a comparison in the language of claims",
        "of a theorem's promise: what holds beside where it is faster than promised",
        "",
    ),
}
"""The keys of a claim."""

DATASET: Keys = {
    "name": Key("a registered dataset", "which dataset; its parameters stand beside it", required=True),
    "published": Key(
        "sizes, for instance {N: 10000}", "the sizes the paper states; a verdict on data of others says so", ()
    ),
}
"""The keys of an entry of ``datasets`` besides the parameters of the dataset."""

PARTITION: Keys = {
    "name": Key("a registered partition", "which partition; its parameters stand beside it", required=True),
    "per_trial": Key("true or false", "whether every trial draws a partition of its own", False),
}
"""The keys of an entry of ``partitions`` besides the parameters of the partition."""

PROBLEM: Keys = {"name": Key("a registered problem", "which problem; its parameters stand beside it", required=True)}
"""The keys of ``problem`` besides the parameters of the problem."""

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
"""Every table of keys by the key of a spec below which its keys stand; names of one's own in between are left out."""


def required(keys: Keys) -> list[str]:
    """The keys that must be given."""
    return [name for name, key in keys.items() if key.required]


def paths() -> dict[str, Key]:
    """Every key by its path: ``rounds``, ``panels.xlim``, ``panels.curves.role``."""
    return {f"{above}.{name}".strip("."): key for above, keys in SECTIONS.items() for name, key in keys.items()}
