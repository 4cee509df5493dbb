"""Panels by the names that a user types: the id in the spec, or the letter that a figure shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from fedrepro.errors import nearest
from fedrepro.spec.model import Figure, Panel


def letters(panels: Sequence[Panel]) -> Mapping[str, str]:
    """Return the letter of each panel of a figure by its id: the id if all have one letter, else a, b, c, ...

    A figure with one panel shows no letter.
    """
    ids = [panel.id for panel in panels]
    if len(ids) == 1:
        return {}
    own = all(len(id_) == 1 for id_ in ids)
    numbered = (chr(ord("a") + place) if place < 26 else str(place + 1) for place in range(len(ids)))
    return dict(zip(ids, ids if own else numbered, strict=True))


def find(figure: Figure, name: str) -> Panel | None:
    """Return the panel with this id, or else with this letter; None if there is neither."""
    shown = letters(figure.panels)
    by_name = {shown.get(panel.id): panel for panel in figure.panels} | {panel.id: panel for panel in figure.panels}
    return by_name.get(name)


def known(figures: Iterable[Figure], name: str) -> str:
    """Return what an error says about an unknown name: the nearest one, and all panels with their letters."""
    pairs = [(panel.id, letters(figure.panels).get(panel.id)) for figure in figures for panel in figure.panels]
    named = dict.fromkeys(id_ if letter in (None, id_) else f"{id_} ({letter})" for id_, letter in pairs)
    return f"{nearest(name, [id_ for id_, _ in pairs])} (panels: {', '.join(named)})"
