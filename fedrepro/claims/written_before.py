"""Decide whether claims were written before the results that they are judged on, as far as a lock proves it.

The lock is next to the spec, and the sidecar names the digest of the lock that was there when the first run began. A
lock and results that were forged together cannot be told from others; docs/safety.md lists what it does not exclude.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from fedrepro.claims import locked_claims
from fedrepro.claims.locked_claims import Lock
from fedrepro.claims.precedence import AFTER, FAMILIES, LOCKED, NO_LOCK, Precedence
from fedrepro.errors import UserError
from fedrepro.lexicon.vocabulary import digest as lexicon_digest
from fedrepro.results.schema import Sidecar
from fedrepro.spec import lock_file
from fedrepro.spec.model import Claim, Figure


def of_figure(figure: Figure, sidecar: Sidecar) -> dict[str, Precedence]:
    """Return the precedence of every claim of a figure with respect to these results, by its id."""
    if not sidecar.lock:
        return dict.fromkeys(_ids(figure), _without_lock(figure, sidecar))
    try:
        lock = locked_claims.read(figure.path)
    except UserError:
        return dict.fromkeys(_ids(figure), Precedence(AFTER, f"{AFTER}: its lock cannot be read"))
    if lock is None:
        return dict.fromkeys(_ids(figure), Precedence(AFTER, f"{AFTER}: the lock that its results name is gone"))
    if why := _no_proof(figure, sidecar, lock):
        return dict.fromkeys(_ids(figure), Precedence(AFTER, f"{AFTER}: {why}"))
    texts = locked_claims.texts_of(figure.path)
    return {claim.id: _compared(claim, lock, texts.get(claim.id, {}), figure, sidecar) for claim in figure.claims}


def _ids(figure: Figure) -> list[str]:
    return [claim.id for claim in figure.claims]


def _without_lock(figure: Figure, sidecar: Sidecar) -> Precedence:
    if sidecar == Sidecar():
        return Precedence(NO_LOCK, f"{NO_LOCK}: these results have no sidecar")
    with contextlib.suppress(UserError):  # an unreadable lock proves nothing either
        if (lock := locked_claims.read(figure.path)) is not None:
            return Precedence(AFTER, f"{AFTER}: locked on {lock.written[:10]}, after these results")
    if not sidecar.lexicon:
        return Precedence(FAMILIES, FAMILIES)
    if sidecar.lexicon != lexicon_digest():
        return Precedence(NO_LOCK, f"{NO_LOCK}, and the lexicon was changed after the results")
    return Precedence(NO_LOCK, f"{NO_LOCK}: it may have been written or changed after the results")


def _no_proof(figure: Figure, sidecar: Sidecar, lock: Lock) -> str:
    """Return why a lock proves nothing about any claim, '' if it does."""
    if lock_file.digest(figure.path) != sidecar.lock:
        return "its lock is not the one that was there when its first run began"
    if lock.existing:
        return f"locked when there were results at the {' and '.join(lock.existing)} tier"
    return ""


def _compared(claim: Claim, lock: Lock, texts: Mapping[str, str], figure: Figure, sidecar: Sidecar) -> Precedence:
    date = lock.written[:10]
    if claim.id not in lock.claims:
        return Precedence(AFTER, f"{AFTER}: added after the lock of {date}")
    if changed := list(dict.fromkeys(locked_claims.changes(lock, claim, texts, figure, sidecar))):
        return Precedence(AFTER, f"{AFTER} the lock of {date}: {', '.join(changed)}")
    return Precedence(LOCKED, f"{LOCKED}, on {date}")
