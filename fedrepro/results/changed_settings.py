"""In what the settings of a figure differ from those that its results were computed with, in words."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fedrepro.errors import counted
from fedrepro.results.consistency import recorded
from fedrepro.results.schema import Sidecar
from fedrepro.spec.model import Figure

SPEC, DEFAULT = "the spec changed, or a default that it uses", "a default changed"
"""How a reason begins. Whether a spec sets a value is known for parameters of methods only."""
MOST = 3
"""Largest number of changes that are named."""
LONGEST = 30
"""Largest number of characters of a value that is printed."""


@dataclass(frozen=True)
class Change:
    """A changed value of some curves. words : the name and both values. is_default : whether no spec sets it."""

    words: str
    is_default: bool


def in_words(figure: Figure, sidecar: Sidecar) -> str:
    """Return the changes, each once with the number of its curves; '' if the settings are those of the results."""
    now = [recorded(setting) for setting in figure.settings()]
    if now == list(sidecar.settings):
        return ""
    pairs = _pairs(now, sidecar)
    changes = Counter(change for old, new in pairs for change in _changes(old, new))
    named = [f"{change.words} ({number} of {counted(len(now), 'curve')})" for change, number in changes.most_common()]
    named += _other_curves(len(now) - len(pairs), len(sidecar.settings) - len(pairs), len(now))
    of_defaults = len(named) == len(changes) > 0 and all(change.is_default for change in changes)
    if len(named) > MOST:
        named[MOST:] = [f"and {counted(len(named) - MOST, 'more change')}"]
    return ": ".join(filter(None, (DEFAULT if of_defaults else SPEC, ", ".join(named))))


def differ(figure: Figure, sidecar: Sidecar) -> bool:
    """Return whether a curve that a figure and its results have in common has other values in one of them."""
    now = [recorded(setting) for setting in figure.settings()]
    return any(True for old, new in _pairs(now, sidecar) for _ in _changes(old, new))


def _pairs(now: Sequence[Mapping[str, Any]], sidecar: Sidecar) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Return the recorded and today's setting of each curve that the results and the figure have in common."""
    before = {str(facts.get("series")): facts for facts in sidecar.settings}
    return [(before[facts["series"]], facts) for facts in now if facts["series"] in before]


def _other_curves(new: int, gone: int, every: int) -> Iterator[str]:
    """Yield how many curves only the spec has, or only the results; a curve that changed its name is both."""
    if new:
        yield f"{new} of {counted(every, 'curve')} {'is' if new == 1 else 'are'} new"
    elif gone:
        yield f"{counted(gone, 'curve')} of the results {'is' if gone == 1 else 'are'} gone"


def _changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    """Yield the changes between two records of one curve."""
    for key in (name for name in new if name != "explicit"):
        before, now = old.get(key), new[key]
        if not isinstance(before, Mapping) or not isinstance(now, Mapping):
            before, now = {key: before}, {key: now}
        for name in dict.fromkeys((*before, *now)):
            if name not in before or name not in now or before[name] != now[name]:
                yield Change(_words(name, before, now), key == "params" and name not in new["explicit"])


def _words(name: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    if name not in before or name not in now:
        return f"{name} is {'new' if name in now else 'gone'}"
    old, new = (value if isinstance(value, str) else json.dumps(value) for value in (before[name], now[name]))
    return f"{name} changed" if max(len(old), len(new)) > LONGEST else f"{name} was {old} and is {new}"
