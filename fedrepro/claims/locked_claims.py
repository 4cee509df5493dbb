"""What a lock records of a spec before its first run: claims, words of the lexicon, data and settings.

A later change of any of them is found by comparing it with the lock (``changes``). Prose that decides nothing (notes,
places in the paper, explanations in the lexicon) is not recorded.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedrepro import registry
from fedrepro.claims import judge
from fedrepro.data.copies import published_fingerprint
from fedrepro.errors import UserError
from fedrepro.lexicon.vocabulary import Dimension, Word, definition, lexicon
from fedrepro.results.consistency import recorded
from fedrepro.results.schema import Sidecar, typed
from fedrepro.spec import claim_grammar, lock_file, nodes, readings, words
from fedrepro.spec.model import Claim, Figure
from fedrepro.spec.references import Scope

VERSION = 1

PARTS: Mapping[str, str] = {
    "says": "its sentence",
    "panel": "its panel",
    "check": "its check",
    "reading": "its reading",
    "theorem": "its part of a theorem",
    "faster": "its check of a faster rate",
    "outside": "the condition that is not met",
    "bound": "the inequality of its theorem",
    "figure_shows": "its check of the paper's figure",
    "or_read": "its second reader's check",
    "earlier": "its earlier check",
    "not_on_stand_in": "what a stand-in cannot say",
    "trials": "its number of trials",
}
"""The keys of a claim that a lock records, and their names for readers."""

OUTSIDE = ("series", "metrics", "artifacts", "explicit")
"""Parts of a setting that other curves or the wording of the spec decide, and that no check depends on."""


@dataclass(frozen=True)
class LockedData:
    """A dataset when the claims were locked: its registered name, parameters, state and fingerprint (``Content``)."""

    dataset: str
    parameters: Mapping[str, Any]
    state: str
    fingerprint: str


@dataclass(frozen=True)
class LockedClaim:
    """A claim when it was locked.

    texts : its keys in ``PARTS`` as the spec has them. names : the spec's names of curves that its checks use. words :
    the words and dimensions of the lexicon that it depends on. panels, datasets : those that its checks read. settings
    : a hash of the settings of the curves that they read, by tier.
    """

    texts: Mapping[str, str]
    names: Mapping[str, Any]
    words: tuple[str, ...]
    panels: tuple[str, ...]
    datasets: tuple[str, ...]
    settings: Mapping[str, str]


@dataclass(frozen=True)
class Lock:
    """A spec's claims, locked.

    figure : ``paper/figure``. written : date and time in UTC. fedrepro, commit : the program's version and commit.
    existing : the tiers that had results or finished runs then, none for a lock before results. trials : by tier.
    lexicon : the definitions of the words and dimensions that the claims depend on.
    """

    figure: str
    written: str
    fedrepro: str
    commit: str
    existing: tuple[str, ...]
    trials: Mapping[str, int]
    lexicon: Mapping[str, Any]
    data: tuple[LockedData, ...]
    claims: Mapping[str, LockedClaim]

    def text(self) -> str:
        """Return the lock as JSON with sorted keys."""
        facts = dataclasses.asdict(self) | {"lock": VERSION}
        return json.dumps(facts, indent=1, sort_keys=True, ensure_ascii=False, default=str) + "\n"


def read(spec: str | Path) -> Lock | None:
    """Return the lock next to a spec, None if there is none. Raises UserError if it is no lock."""
    path = lock_file.path_of(spec)
    try:
        facts = json.loads(path.read_bytes())
        if not isinstance(facts, Mapping) or facts.get("lock") != VERSION:
            raise ValueError(f"it has no key 'lock' of value {VERSION}")
        lock: Lock = typed(facts, Lock, "")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise UserError(f"{path}: is not a lock of `fedrepro lock` ({error}); restore it with git") from None
    return lock


def texts_of(spec: str | Path) -> dict[str, dict[str, str]]:
    """Return the keys in ``PARTS`` of every claim of a spec as it has them, independent of line breaks."""
    listed = nodes.read(Path(spec)).get("claims")
    claims = listed.plain() if listed is not None else []
    return {
        str(claim["id"]): {key: " ".join(str(claim[key]).split()) for key in PARTS if claim.get(key)}
        for claim in claims
    }


def lock_claims(figures: Mapping[str, Figure]) -> dict[str, LockedClaim]:
    """Return what a lock records of every claim of a figure, given at each tier."""
    some = next(iter(figures.values()))
    texts = texts_of(some.path)
    return {claim.id: _lock_claim(claim.id, texts[claim.id], figures) for claim in some.claims}


def _lock_claim(name: str, texts: Mapping[str, str], figures: Mapping[str, Figure]) -> LockedClaim:
    at_tier = {tier: next(c for c in figure.claims if c.id == name) for tier, figure in figures.items()}
    used = {word for tier, claim in at_tier.items() for word in words_used(claim, texts, figures[tier])}
    curves = [curve for tier, claim in at_tier.items() for curve in judge.curves(claim, figures[tier])]
    return LockedClaim(
        texts=texts,
        names=names_used(next(iter(at_tier.values())), texts),
        words=tuple(sorted(used)),
        panels=tuple(sorted({panel for claim in at_tier.values() for panel in claim_grammar.panels_of(claim)})),
        datasets=tuple(sorted({curve.setting.dataset for curve in curves})),
        settings={tier: settings_hash(claim, figures[tier]) for tier, claim in at_tier.items()},
    )


def _checks(texts: Mapping[str, str]) -> list[str]:
    return [texts[key] for key in (*readings.CHECKS, "or_read", "earlier") if key in texts]


def names_used(claim: Claim, texts: Mapping[str, str]) -> dict[str, Any]:
    """Return the spec's names of curves that a claim's checks use, with what they select."""
    identifiers = {word for check in _checks(texts) for word in re.findall(r"\w+", check)}
    names: dict[str, Any] = json.loads(json.dumps(dict(claim.names), default=str))
    return {name: values for name, values in names.items() if name in identifiers}


def words_used(claim: Claim, texts: Mapping[str, str], figure: Figure) -> set[str]:
    """Return the words of the lexicon in a claim's checks, and the dimensions of their readings."""
    panels = {panel.id: panel for panel in figure.panels}
    used = {word for check in _checks(texts) for word in words.words_of(check)}

    def lead(dimension: str) -> Any:
        used.add(dimension)
        return readings.leading(dimension)

    if not claim.inapplicable:
        for check in filter(words.uses_words, _checks(texts)):
            words.literal(check, Scope(claim, panels, claim.names), lead)
        listed, _ = readings.of(claim, panels, figure.wanted_trials)
        used |= {dimension for reading in listed for dimension in reading.values}
    return used


def definitions(names: Iterable[str]) -> dict[str, Any]:
    """Return the definitions of words and dimensions of today's lexicon, without their explanations.

    The windows of rounds of checks without words are among them.
    """
    entries: dict[str, Word | Dimension] = {**lexicon().words, **lexicon().dimensions}
    known = {name: definition(entry) for name, entry in entries.items()} | {readings.WINDOW: readings.WINDOWS}
    return {name: known[name] for name in names if name in known}


def settings_hash(claim: Claim, figure: Figure) -> str:
    """Return a hash of the settings of the curves that a claim's checks read, and of the metrics of their panels."""
    panels = claim_grammar.panels_of(claim)
    metrics = sorted({panel.y for panel in figure.panels if panel.id in panels})
    settings = [
        {key: value for key, value in recorded(curve.setting).items() if key not in OUTSIDE}
        for curve in judge.curves(claim, figure)
    ]
    ordered = sorted(json.dumps(setting, sort_keys=True) for setting in settings)
    return hashlib.sha256(json.dumps([metrics, ordered]).encode()).hexdigest()[:24]


# -- what changed since ------------------------------------------------------------------------------------------------


def changes(lock: Lock, claim: Claim, texts: Mapping[str, str], figure: Figure, sidecar: Sidecar) -> Iterator[str]:
    """Yield, in words, what of a locked claim differs from the lock, in the spec or in the results of a figure."""
    locked = lock.claims[claim.id]
    yield from (name for key, name in PARTS.items() if texts.get(key, "") != locked.texts.get(key, ""))
    if names_used(claim, texts) != locked.names:
        yield "the names of its curves"
    if settings_hash(claim, figure) != locked.settings.get(figure.tier):
        yield "the settings of its curves"
    if figure.wanted_trials != lock.trials.get(figure.tier):
        yield "the number of trials"
    now = definitions(words_used(claim, texts, figure))
    if changed := sorted(name for name, entry in now.items() if entry != lock.lexicon.get(name)):
        yield f"the lexicon ({', '.join(changed)})"
    yield from _changed_data(lock, locked, sidecar)


def _changed_data(lock: Lock, locked: LockedClaim, sidecar: Sidecar) -> Iterator[str]:
    for name in locked.datasets:
        then = [data for data in lock.data if data.dataset == name]
        for content in sidecar.datasets:
            if content.dataset != name or any(
                (data.state, data.fingerprint) == (content.state, content.fingerprint) for data in then
            ):
                continue
            if content.state == "stand-in":
                yield f"the data of {name} (a stand-in)"
            elif not any(data.state == "absent" and _published(data) == content.fingerprint for data in then):
                yield f"the data of {name}"


def _published(data: LockedData) -> str:
    """Return the fingerprint of a dataset's published files, '' if it is not known."""
    entry = registry.datasets()[data.dataset]
    if entry.source is None:
        return ""
    return published_fingerprint(entry.source, {**entry.parameters(), **data.parameters}) or ""
