"""Find specs: list them, and resolve the names that users give."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from fedrepro.errors import UserError, nearest
from fedrepro.snapshot import origin
from fedrepro.spec.error_collector import SLUG
from fedrepro.spec.model import Figure
from fedrepro.spec.nodes import Node, SpecErrors, read
from fedrepro.spec.read import load

FOLDER = "experiments"
DISCREPANCIES = "discrepancies.yaml"
"""The file of a paper's discrepancies, in the folder of its figures' specs."""


def project() -> Path:
    """Return the current project: the nearest folder, from the current one upwards, with specs in ``experiments/``.

    Without such a folder it is the current one. Results and pictures are stored in it. The path is relative.
    """
    here = Path.cwd()
    root = next((folder for folder in (here, *here.parents) if specs(folder / FOLDER)), here)
    return Path(os.path.relpath(root, here))


def experiments() -> Path:
    """Return the folder of specs: the project's, or the one installed with the package."""
    own = project() / FOLDER
    return own if specs(own) else bundled()


def within(path: str | Path) -> str:
    """Return a spec's path relative to its project or the package, the same from any folder and on any machine."""
    whole = Path(path).resolve()
    for root in (project().resolve(), bundled().resolve().parent):
        if whole.is_relative_to(root):
            return whole.relative_to(root).as_posix()
    return str(path)


def is_of_project(path: str | Path, paper: str, figure: str) -> bool:
    """Return whether the spec at ``path`` is the project's for this figure, or the project has none."""
    own = experiments() / paper / f"{figure}.yaml"
    return not own.is_file() or own.resolve() == Path(path).resolve()


def bundled() -> Path:
    """Return the folder of the package's own specs: inside it if it is installed, beside it in a checkout."""
    package = origin()
    inside = package / FOLDER
    return inside if inside.is_dir() else package.parent / FOLDER


def specs(folder: Path) -> list[Path]:
    """Return every figure's spec in a folder, in order, without the papers' discrepancies."""
    return sorted(path for path in folder.glob("*/*.yaml") if path.name != DISCREPANCIES)


def find_spec(name: str) -> Path:
    """Return a spec by its path, or by ``paper/figure`` from any folder inside or outside a project."""
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
    """Return the paper and figure in an unchecked spec; '' for a value that files cannot be named after."""
    values = (getattr(root.get(key), "value", "") for key in ("paper", "figure"))
    paper, figure = (name if isinstance(name, str) and SLUG.fullmatch(name) else "" for name in values)
    return paper, figure


def load_all(names: Iterable[str | Path], tier: str, sets: Iterable[str] = ()) -> list[Figure]:
    """Read several specs and report the errors of all of them together.

    Results are stored under the paper and figure in a spec. A spec in the experiments folder must have those of its
    path, and no two specs may have the same. A file named twice is read once.
    """
    figures: dict[Path, Figure] = {}
    messages: list[str] = []
    given = [name for name in names if Path(name).name != DISCREPANCIES]  # a glob over experiments/ includes them
    if not given:
        raise UserError(f"{DISCREPANCIES} contains a paper's discrepancies, not a figure; name a figure's spec")
    for name in given:
        path = find_spec(str(name))
        try:
            if path.resolve() not in figures:
                figures[path.resolve()] = load(path, tier, sets)
        except SpecErrors as error:
            messages += error.messages
    messages += _misplaced(figures)
    messages += _doubled(((figure.paper, figure.figure), figure.path) for figure in figures.values())
    if messages:
        raise SpecErrors(messages)
    return list(figures.values())


def _misplaced(figures: Mapping[Path, Figure]) -> list[str]:
    return [
        f"{figure.path}: has paper: {figure.paper} and figure: {figure.figure}, so its results would be stored as "
        f"those of {figure.paper}/{figure.figure}; write paper: {path.parent.name} and figure: {path.stem}, "
        "or move the file"
        for path, figure in figures.items()
        if path.parent.parent == experiments().resolve()
        and (path.parent.name, path.stem) != (figure.paper, figure.figure)
    ]


def _doubled(named: Iterable[tuple[tuple[str, str], str]]) -> list[str]:
    """Return an error for each name that several files have. named : the paper and figure of each path."""
    paths: dict[tuple[str, str], list[str]] = {}
    for name, path in named:
        paths.setdefault(name, []).append(path)
    return [
        f"{' and '.join(both)} are both {paper}/{figure}, and results are stored under that name; give each its own"
        for (paper, figure), both in paths.items()
        if len(both) > 1 and figure
    ]


def find_some(names: Iterable[str]) -> list[Path]:
    """Return the specs with these names, or all specs if no name is given, without the papers' discrepancies.

    A file named twice is one spec. Raises UserError if two files are specs of the same figure.
    """
    given = {path.resolve(): path for path in (find_spec(name) for name in names if Path(name).name != DISCREPANCIES)}
    several = given.values() if len(given) > 1 else ()
    if messages := _doubled((stored_under(read(path)), str(path)) for path in several):
        raise SpecErrors(messages)
    return list(given.values()) or specs(experiments())
