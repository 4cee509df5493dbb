"""From names to files: which specs there are, and which one a user means."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from fedrepro.errors import UserError, nearest
from fedrepro.spec.collect import SLUG
from fedrepro.spec.model import Figure
from fedrepro.spec.nodes import Node, SpecErrors, read
from fedrepro.spec.read import load

FOLDER = "experiments"
DISCREPANCIES = "discrepancies.yaml"
"""The file of a paper's discrepancies, which lies beside its figures' specs."""


def project() -> Path:
    """The project one is in: the nearest folder, from the current one upwards, with specs in ``experiments/``.

    The current folder where there is none. Results and pictures lie in it. Relative to the current folder.
    """
    here = Path.cwd()
    found = next((folder for folder in (here, *here.parents) if specs(folder / FOLDER)), here)
    return Path(os.path.relpath(found, here))


def experiments() -> Path:
    """The folder with specs: the project's, or the one that is installed with the package."""
    own = project() / FOLDER
    return own if specs(own) else bundled()


def within(path: str | Path) -> str:
    """A spec's path as it is from any folder and on any machine: in the project it is in, or in the package."""
    whole = Path(path).resolve()
    for root in (project().resolve(), bundled().resolve().parent):
        if whole.is_relative_to(root):
            return whole.relative_to(root).as_posix()
    return str(path)


def is_of_project(path: str | Path, paper: str, figure: str) -> bool:
    """Whether the spec at ``path`` is the project's for this figure, or there is none of the project's."""
    own = experiments() / paper / f"{figure}.yaml"
    return not own.is_file() or own.resolve() == Path(path).resolve()


def bundled() -> Path:
    """The specs that come with the package: inside it where it is installed, beside it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    inside = package / FOLDER
    return inside if inside.is_dir() else package.parent / FOLDER


def specs(folder: Path) -> list[Path]:
    """Every figure's spec in a folder, in order; the papers' discrepancies beside them are none."""
    return sorted(path for path in folder.glob("*/*.yaml") if path.name != DISCREPANCIES)


def find_spec(name: str) -> Path:
    """A spec by its path, or by ``paper/figure`` from any folder of a project, or of none."""
    path = Path(name)
    if path.is_file():
        return path
    folder = experiments()
    short = name.removeprefix(f"{FOLDER}/").removesuffix(".yaml")
    if (folder / f"{short}.yaml").is_file():
        return folder / f"{short}.yaml"
    known = [p.relative_to(folder).with_suffix("").as_posix() for p in specs(folder)]
    near = nearest(short, known)
    raise UserError(f"{name}: no such spec{near} (`fedrepro list figures` shows all)")


def stored_under(root: Node) -> tuple[str, str]:
    """The paper and figure that a spec not yet checked says; '' for what no results can be named after."""
    said = (getattr(root.get(key), "value", "") for key in ("paper", "figure"))
    paper, figure = (name if isinstance(name, str) and SLUG.fullmatch(name) else "" for name in said)
    return paper, figure


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
        if path.parent.parent == experiments().resolve()
        and (path.parent.name, path.stem) != (figure.paper, figure.figure)
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
        named.setdefault(stored_under(read(path)), []).append(str(path))
    if messages := list(_several(named)):
        raise SpecErrors(messages)
    return list(given.values()) or specs(experiments())
