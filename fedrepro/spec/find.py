"""From names to files: which specs there are, and which one a user means."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from fedrepro.errors import UserError, nearest
from fedrepro.spec.model import Figure
from fedrepro.spec.nodes import SpecErrors
from fedrepro.spec.read import load

EXPERIMENTS = Path("experiments")
DISCREPANCIES = "discrepancies.yaml"
"""The file of a paper's discrepancies, which lies beside its figures' specs."""


def specs(experiments: Path = EXPERIMENTS) -> list[Path]:
    """Every figure's spec, in order; the papers' discrepancies beside them are none."""
    return sorted(path for path in experiments.glob("*/*.yaml") if path.name != DISCREPANCIES)


def find_spec(name: str) -> Path:
    """A spec by its path, or by ``paper/figure``."""
    path = Path(name)
    if path.is_file():
        return path
    short = EXPERIMENTS / (name if name.endswith(".yaml") else f"{name}.yaml")
    if short.is_file():
        return short
    known = [str(p if name.endswith(".yaml") else p.relative_to(EXPERIMENTS).with_suffix("")) for p in specs()]
    raise UserError(f"{name}: no such spec{nearest(name, known)} (`fedrepro list figures` shows all)")


def load_all(names: Iterable[str | Path], tier: str, sets: Iterable[str] = ()) -> list[Figure]:
    """Read several specs; the errors of all of them are reported together."""
    figures, messages = [], []
    given = [name for name in names if Path(name).name != DISCREPANCIES]  # a glob over experiments/ picks them up too
    if not given:
        raise UserError(f"{DISCREPANCIES} holds a paper's discrepancies, not a figure; name a figure's spec")
    for name in given:
        try:
            figures.append(load(find_spec(str(name)), tier, sets))
        except SpecErrors as error:
            messages += error.messages
    if messages:
        raise SpecErrors(messages)
    return figures


def find_some(names: Iterable[str]) -> list[Path]:
    """The specs of these names, all there are where none is given; the papers' discrepancies are passed over."""
    return [find_spec(name) for name in names if Path(name).name != DISCREPANCIES] or specs()
