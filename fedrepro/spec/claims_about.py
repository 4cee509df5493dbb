"""The claims about a method or a dataset: those whose checks read one of its curves."""

from __future__ import annotations

from collections.abc import Sequence

from fedrepro import registry
from fedrepro.errors import UserError, nearest
from fedrepro.spec import readings
from fedrepro.spec.find import Selected
from fedrepro.spec.model import Figure, Setting
from fedrepro.spec.read import load

TIER = "paper"
"""The tier whose curves count: smaller tiers may have fewer."""


def only_about(selected: Sequence[Selected], names: Sequence[str]) -> list[Selected]:
    """Return the selected claims that are about all of these methods and datasets, and the figures that have some.

    A name also means the methods that continue it: ``fedmgs`` includes ``fedmgs-sncp``. Raises UserError for a name
    that is neither a dataset nor a method; methods that a selected spec imports count.
    """
    figures = [load(item.path, TIER) for item in selected]
    known = {*registry.methods(), *registry.datasets()}
    for name in names:
        if name not in known:
            raise UserError(
                f"{name}: is neither a method nor a dataset{nearest(name, known)} (`fedrepro list algorithms` and "
                "`fedrepro list datasets` show all)"
            )
    found = []
    for item, figure in zip(selected, figures, strict=True):
        claims = _about(figure, names)
        if claims := claims & item.claims if item.claims else claims:
            found.append(Selected(item.path, claims))
    return found


def _about(figure: Figure, names: Sequence[str]) -> frozenset[str]:
    """Return the ids of a figure's claims that read curves of all the names."""
    settings = {setting.series: setting for setting in figure.settings()}
    panels = {panel.id: panel for panel in figure.panels}
    claims = set()
    for claim in figure.claims:
        read = [] if claim.inapplicable else [settings[series] for series in readings.series_of(claim, panels)]
        if all(any(_has(setting, name) for setting in read) for name in names):
            claims.add(claim.id)
    return frozenset(claims)


def _has(setting: Setting, name: str) -> bool:
    return name == setting.dataset or setting.algorithm == name or setting.algorithm.startswith(f"{name}-")
