"""From names to files: which specs there are, and which one a user means."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from fedrepro.errors import UserError, nearest
from fedrepro.spec.model import Figure
from fedrepro.spec.nodes import Node, SpecErrors, read
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
    """Read several specs; the errors of all of them are reported together.

    A file of the experiments folder says the paper and figure that its place says, and no two files say the same:
    results are stored under these names. A file named twice is read once.
    """
    figures: dict[Path, Figure] = {}
    messages: list[str] = []
    given = [name for name in names if Path(name).name != DISCREPANCIES]  # a glob over experiments/ picks them up too
    if not given:
        raise UserError(f"{DISCREPANCIES} holds a paper's discrepancies, not a figure; name a figure's spec")
    for name in given:
        path = find_spec(str(name))
        try:
            if path.resolve() not in figures:
                figures[path.resolve()] = load(path, tier, sets)
        except SpecErrors as error:
            messages += error.messages
    messages += _misplaced(figures) + _doubled(figures)
    if messages:
        raise SpecErrors(messages)
    return list(figures.values())


def _misplaced(figures: Mapping[Path, Figure]) -> list[str]:
    return [
        f"{figure.path}: says paper: {figure.paper} and figure: {figure.figure}, so its results would be stored as "
        f"those of {figure.paper}/{figure.figure}; write paper: {path.parent.name} and figure: {path.stem}, "
        "or move the file"
        for path, figure in figures.items()
        if path.parents[1] == EXPERIMENTS.resolve() and (path.parent.name, path.stem) != (figure.paper, figure.figure)
    ]


def _doubled(figures: Mapping[Path, Figure]) -> list[str]:
    found: dict[tuple[str, str], list[str]] = {}
    for figure in figures.values():
        found.setdefault((figure.paper, figure.figure), []).append(figure.path)
    return list(_several(found))


def _several(named: Mapping[tuple[str, str], list[str]]) -> Iterator[str]:
    """What to say of each name that several files have."""
    for (paper, figure), paths in named.items():
        if len(paths) > 1 and figure:
            both = " and ".join(paths)
            yield f"{both} are both {paper}/{figure}, and results are stored under that name; give each its own"


def find_some(names: Iterable[str]) -> list[Path]:
    """The specs of these names, all there are where none is given; the papers' discrepancies are passed over.

    A file named twice is one spec. Raises UserError where two files say that they are the same figure.
    """
    given = {path.resolve(): path for path in (find_spec(name) for name in names if Path(name).name != DISCREPANCIES)}
    named: dict[tuple[str, str], list[str]] = {}
    for path in given.values() if len(given) > 1 else ():
        named.setdefault(named_in(read(path)), []).append(str(path))
    if messages := list(_several(named)):
        raise SpecErrors(messages)
    return list(given.values()) or specs()


def named_in(spec: Node) -> tuple[str, str]:
    """The paper and the figure that a spec says it is, as far as it says so: results lie under these names."""
    paper, figure = (str(getattr(spec.get(key), "value", "")) for key in ("paper", "figure"))
    return paper, figure
