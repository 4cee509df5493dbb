"""The keys of a spec: the values, default and meaning of each.

A class lists the keys of one section: the annotation has their values, the docstring their meanings; a key without a
default is required. The reader accepts these keys and no others; messages, ``fedrepro describe`` and the reference use
this list. The options and published numbers of panels are described in ``panels``, parameters of methods, datasets,
etc. in their docstrings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, get_args, get_type_hints

from fedrepro.docstrings import explained
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


def _keys(section: type) -> Keys:
    """Return the keys that a class lists."""
    meanings = explained(section.__doc__ or "")
    keys = {}
    for attribute, hint in get_type_hints(section, include_extras=True).items():
        name = attribute.rstrip("_")  # a key may be a keyword of Python
        values = get_args(hint)[1]
        words = values if isinstance(values, dict) else {}
        takes = " or ".join(words) or str(values)
        default, required = getattr(section, attribute, None), not hasattr(section, attribute)
        keys[name] = Key(takes, meanings[name], default, required, words)
    return keys


ROLES = {
    "curve": "a line over the rounds, with a marker",
    "level": "a horizontal line at its final value, as for a method without rounds",
}
THEOREM = {
    "promise": "as promised, faster than promised, or contradicted; a rate within the bound is no proof",
    "condition": "the condition is met, or not met by the parameters that were run",
}
SCALES = {"linear": "equal distances are equal differences", "log": "equal distances are equal ratios"}

Text = Annotated[str, "a text"]
Count = Annotated[int | None, Whole(1)]
Rounds = Annotated[int | None, Whole(0)]
Names = Annotated[tuple[str, ...] | None, "a list of names"]
Limits = Annotated[Any, "[low, high], null for automatic"]
Options = Annotated[Any, "a mapping"]
Tables = Annotated[Any, "a mapping of own names to {name: ..., parameters}"]
Comparison = Annotated[str, "a comparison in the language of claims"]

_DATASET = "a name of `datasets`, a registered dataset, or {name: ..., parameters}"
_PARTITION = "a name of `partitions`, a registered partition, or {name: ..., parameters}"


class _Spec:
    """The keys of a spec.

    paper : the folder of its results. figure : the name of the figure and of its files of results. title : the title
    above the figure. source : the place of the figure in the paper. note : a note for readers, shown in the report.
    queue : the place in the queue of `make answers`; places from 100 on are computed last.

    import : your own module with methods, whose names are those of their classes in lower case. problem : the problem
    that all curves solve. trials : how often every curve is computed, each time with other random
    numbers. rounds : the number of rounds of a run. record_every : after round `record_dense`, every `record_every`-th
    round is recorded. record_dense : all rounds up to this one are recorded, and always round 0 and the last one.
    metrics : metrics recorded for all curves in addition to the problem's default ones. artifacts : arrays of the final
    state that runs store, for panels of the kind `scatter`. columns : the number of panels per row.

    datasets : the spec's own names of datasets. partitions : the spec's own names of partitions. dataset : the data of
    all curves that name no dataset. partition : how the data are distributed to clients, for all curves that name no
    partition. panels : the sets of axes of the figure, in their order. names : short names of curves for checks, each
    with the values that select it. claims : statements of the paper about the figure, each with a check. tiers : the
    differences at a tier: any key of a spec except paper and figure.
    """

    paper: Annotated[str, "the key of a paper, `beyond`, or a name of your own"]
    figure: Annotated[str, "letters, digits, `_`, `-`, `.`"]
    title: Text = ""
    source: Text = ""
    note: Text = ""
    queue: Count = None
    import_: Annotated[str | None, "a Python file, relative to the spec, or an installed module"] = None
    problem: Annotated[Any, "a registered problem, or {name: ..., parameters}"]
    trials: Count
    rounds: Rounds
    record_every: Count = 1
    record_dense: Rounds = 20
    metrics: Names = ()
    artifacts: Names = ()
    columns: Count = 2
    datasets: Tables = ()
    partitions: Tables = ()
    dataset: Annotated[Any, _DATASET] = None
    partition: Annotated[Any, _PARTITION] = None
    panels: Annotated[Any, "a mapping of names to panels"]
    names: Tables = ()
    claims: Annotated[Any, "a list of claims"] = ()
    tiers: Annotated[Any, "a mapping of tiers to overrides"] = ()


class _Panel:
    """The keys of a panel.

    title : the title above the panel, after its name. kind : how the panel is drawn: `curves`, `scatter`, `table` or
    `bars`. x : the x axis. y : the metric that is drawn; without it the first metric of a problem without an objective.
    xscale : the scale of the x axis. yscale : the scale of the y axis. xlim : the limits of the x axis. ylim : the
    limits of the y axis. like : copies that panel; the keys given here override its keys.

    dataset : the data of the panel's curves, instead of the spec's. partition : the partition of the panel's curves,
    instead of the spec's. problem : overrides the spec's problem. rounds : the rounds of the panel's curves, instead of
    the spec's. record_every : as in the spec, for the panel's curves. metrics : metrics recorded for the panel's curves
    in addition to those of the spec; ``[]`` leaves out what only other panels draw. artifacts : arrays that the panel's
    runs store, instead of the spec's.

    curves : the curves: each item is a method with its parameters. published : numbers printed in the paper, drawn
    beside ours (the keys depend on the kind of panel). options : further options (the keys depend on the kind of
    panel).
    """

    title: Text = ""
    kind: Annotated[str, "a kind of panel"] = "curves"
    x: Annotated[str, "an axis, a metric, or a value in which the curves differ"] = "round"
    y: Annotated[str, "a metric of the problem"] = "objective"
    xscale: Annotated[str, SCALES] = "linear"
    yscale: Annotated[str, SCALES] = "linear"
    xlim: Limits = None
    ylim: Limits = None
    like: Annotated[str | None, "the name of another panel"] = None
    dataset: Annotated[Any, _DATASET] = None
    partition: Annotated[Any, _PARTITION] = None
    problem: Annotated[Any, "parameters of the problem, or another problem"] = None
    rounds: Rounds = None
    record_every: Count = None
    metrics: Names = ()
    artifacts: Names = None
    curves: Annotated[Any, "a list of curves"]
    published: Annotated[Any, "a list of mappings"] = ()
    options: Options = ()


class _Curve:
    """The keys of a curve in addition to the parameters of its method; a list of values is a sweep.

    algorithm : the method; its parameters are keys of the curve. dataset : the data of this curve, instead of the
    panel's. partition : the partition of this curve, instead of the panel's. problem : overrides parameters of the
    panel's problem: {K: 20}. rounds : the rounds of this curve, instead of the panel's. zip : these lists advance
    together, whereas lists outside `zip` are crossed. label : the name in the legend; by default the method and what
    varies among the curves. role : how the curve is drawn; by default a method without rounds is a level.
    """

    algorithm: Annotated[Any, "a registered algorithm, or a list of them"]
    dataset: Annotated[Any, f"{_DATASET}, or a list of these"] = None
    partition: Annotated[Any, f"{_PARTITION}, or a list of these"] = None
    problem: Annotated[Any, "parameters of the problem"] = None
    rounds: Annotated[Any, f"{Whole(0)}, or a list"] = None
    zip: Annotated[Any, "a mapping of keys to lists of one length"] = None
    label: Text = ""
    role: Annotated[str, ROLES] = ""


@dataclass(frozen=True)
class WrittenClaim:
    """A claim as a spec has it: its keys.

    id : the unique name of the claim. says : the paper's sentence in other words, with the same meaning. reading : how
    a vague word of the sentence is interpreted. where : the place of the sentence in the paper. panel : the panel whose
    curves the check reads. check : what the results must satisfy. note : a note shown with the verdict. theorem : the
    part of a theorem that the claim measures; the verdict names it. faster : for a theorem's promise: holds in addition
    if the rate is faster than promised. outside : for a theorem's promise: which condition the runs do not meet; the
    verdict says so. bound : for a theorem's promise: its inequality with the constant, what was measured on the
    smaller side; the verdict has both numbers. literal : why the check uses no word of the lexicon. figure_shows :
    what the paper's own figure shows, where that contradicts its text. or_read : the check in words of a second
    reader, where it is another one; it adds readings. earlier : the check before it was changed with the results
    known, where it asked for something else; it adds readings. not_on_stand_in : why the check says nothing on stand-in
    data, whatever the method does; it is not tested there. trials : the number of trials of the curves that its checks
    read, if that is more than the figure has; tiers with fewer trials than the tier ``paper`` do not use it.
    """

    id: Text
    says: Text
    where: Text
    panel: Annotated[str, "the name of a panel"]
    check: Comparison
    reading: Text = ""
    note: Text = ""
    theorem: Annotated[str, THEOREM] = ""
    faster: Comparison = ""
    outside: Text = ""
    bound: Comparison = ""
    literal: Text = ""
    figure_shows: Comparison = ""
    or_read: Comparison = ""
    earlier: Comparison = ""
    not_on_stand_in: Text = ""
    trials: Count = None


class _Dataset:
    """The keys of an entry of ``datasets`` in addition to the parameters of the dataset.

    name : the dataset; its parameters are keys of the same mapping. published : the sizes in the paper; verdicts on
    data of other sizes are marked.
    """

    name: Annotated[str, "a registered dataset"]
    published: Annotated[Any, "sizes, for instance {N: 10000}"] = ()


class _Partition:
    """The keys of an entry of ``partitions`` in addition to the parameters of the partition.

    name : the partition; its parameters are keys of the same mapping. per_trial : whether every trial draws its own
    partition.
    """

    name: Annotated[str, "a registered partition"]
    per_trial: Annotated[bool, "true or false"] = False


class _Problem:
    """The keys of ``problem`` in addition to the parameters of the problem.

    name : the problem; its parameters are keys of the same mapping.
    """

    name: Annotated[str, "a registered problem"]


SPEC, PANEL, CURVE, CLAIM = map(_keys, (_Spec, _Panel, _Curve, WrittenClaim))
DATASET, PARTITION, PROBLEM = map(_keys, (_Dataset, _Partition, _Problem))
TIER: Keys = {name: Key("a mapping of keys of a spec", meaning, ()) for name, meaning in MEANINGS.items()}

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
