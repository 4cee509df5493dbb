"""Find specs: list them, and resolve the names that users give: of a figure, a paper, a claim, or a file."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedrepro import registry
from fedrepro.errors import UserError, nearest
from fedrepro.snapshot import origin
from fedrepro.spec.error_collector import SLUG
from fedrepro.spec.model import Figure
from fedrepro.spec.nodes import Node, SpecErrors, read
from fedrepro.spec.read import load
from fedrepro.spec.tiers import DEFAULT, TIERS

FOLDER = "experiments"
DISCREPANCIES = "discrepancies.yaml"
"""The file of a paper's discrepancies, in the folder of its figures' specs."""
DISCREPANCY = re.compile(r"(?<![\w.])([a-z]+)\.\d+(?!\w|\.\w)")
"""The id of a discrepancy, as texts name it: ``fedc.1``, but neither ``fedc.1b`` nor ``fedc.1.printed-step``."""


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


def is_study(paper: str) -> bool:
    """Return whether figures under this name are a user's own: neither of a paper nor of ``beyond``."""
    return paper not in (*registry.PAPERS, "beyond")


def called(path: str | Path) -> str:
    """Return the shortest name that commands accept for a spec: ``paper/figure`` in ``experiments``, else its path."""
    path = Path(path)
    listed = experiments() / path.parent.name / path.name
    return f"{path.parent.name}/{path.stem}" if listed.is_file() and listed.samefile(path) else str(path)


def with_tier(name: str, tier: str) -> str:
    """Return how messages name results: ``fedc/fig5 (quick)``; without the default tier in a user's own study."""
    return name if of_own_study(name, tier) else f"{name} ({tier})"


def of_own_study(figure: str, tier: str) -> bool:
    """Return whether results of a figure (``study/figure``) are those of a user's study at the default tier.

    Nothing is reduced there, so messages and pictures do not mention the tier.
    """
    return is_study(figure.partition("/")[0]) and tier == DEFAULT


def option_of_tier(figure: str, tier: str) -> str:
    """Return `` --tier TIER`` for a command on results of a figure; '' for a user's study at the default tier."""
    return "" if of_own_study(figure, tier) else f" --tier {tier}"


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


@dataclass(frozen=True)
class Selected:
    """A spec that a user selected. claims : the ids of the selected claims, none for the whole figure."""

    path: Path
    claims: frozenset[str] = frozenset()


def select(names: Iterable[str | Path]) -> list[Selected]:
    """Return what the names select, each spec once in the order of the names; all specs if no name is given.

    A name is the path of a spec, ``paper/figure``, a paper (all of its figures), or the id of a claim (its figure, with
    only that claim). They are found from any folder inside or outside a project; a user's own specs are found up to
    ``DEEPEST`` folders below. Raises UserError for another name.
    """
    names = list(names)
    selected: dict[Path, Selected] = {}
    for item in (item for name in names for item in _named(str(name))):
        known = selected.get(item.path.resolve(), item)
        claims = known.claims | item.claims if known.claims and item.claims else frozenset()
        selected[item.path.resolve()] = Selected(known.path, claims)
    if names and not selected:
        raise UserError(f"{DISCREPANCIES} contains a paper's discrepancies, not a figure; name a figure's spec")
    return list(selected.values()) if names else [Selected(path) for path in specs(experiments())]


def _named(name: str) -> list[Selected]:
    """Return the specs that one name selects."""
    path, folder = Path(name), experiments()
    if path.name == DISCREPANCIES:  # a glob over experiments/ includes them
        return []
    if path.name.endswith((".csv", ".csv.xz")):
        raise UserError(f"{name}: contains results; name their spec or figure instead")
    if path.is_file():
        return [Selected(path)]
    short = name.removeprefix(f"{FOLDER}/").removesuffix(".yaml").removesuffix("/")
    if (folder / f"{short}.yaml").is_file():
        return [Selected(folder / f"{short}.yaml")]
    known = specs(folder)
    of_paper = [path for path in known if path.parent.name == short]
    of_claim = [Selected(path, frozenset([name])) for path in known if name in _claim_ids(path)]
    if of_paper or of_claim:
        return [Selected(path) for path in of_paper] or of_claim
    own = own_specs()
    if outside := _outside_of_experiments(short, own):
        return outside
    if names_a_discrepancy(name) and name in _discrepancy_ids(name.partition(".")[0]):
        raise UserError(
            f"{name}: is a discrepancy, not a figure, paper or claim (`fedrepro describe {name}` explains it)"
        )
    if name in registry.methods() or name in registry.datasets():
        raise UserError(
            f"{name}: is a {'method' if name in registry.methods() else 'dataset'}, not a figure, paper or claim "
            f"(`fedrepro describe {name}` explains it, `fedrepro verdict --about {name}` prints the claims about it)"
        )
    if path.suffix in (".yaml", ".yml"):
        raise UserError(f"{name}: no such file")
    if (results := _folder_of_results(short)) is not None:
        raise UserError(
            f"{name}: its results are in {results}, but no spec in this folder or up to {DEEPEST} folders below has "
            "this name; give the path of its spec instead"
        )
    figures = [*names_of_specs(), *(known for spec in own for known in spec.names)]
    inside = [known for known in figures if known.endswith(f"/{short}")]  # a figure without its paper
    near = f", did you mean '{inside[0]}'?" if len(inside) == 1 else nearest(short, [*figures, *claim_ids()])
    deeper = "" if near else f"; name a spec that is more than {DEEPEST} folders below by its path"
    raise UserError(f"{name}: no such figure, paper or claim{near} (`fedrepro list figures` shows all{deeper})")


def names_a_discrepancy(name: str) -> bool:
    """Return whether a name has the form of the id of a paper's discrepancy."""
    found = DISCREPANCY.fullmatch(name)
    return found is not None and (experiments() / found[1] / DISCREPANCIES).is_file()


def _discrepancy_ids(paper: str) -> list[str]:
    """Return the ids of a paper's discrepancies, from the text of their file."""
    text = (experiments() / paper / DISCREPANCIES).read_text(encoding="utf-8")
    return re.findall(r"^\s*- id: *([\w.]+)", text, re.MULTILINE)


_STORED_UNDER = re.compile(r"^(paper|figure): *[\"']?([\w.-]+)", re.MULTILINE)
"""The keys of a spec that name its results, in its text."""


DEEPEST = 3
"""How many folders below the current one and the project a user's own specs are searched."""


@dataclass(frozen=True)
class OwnSpec:
    """A user's spec outside ``experiments``: its file, its study and figure, and the ids of its claims."""

    path: Path
    study: str
    figure: str
    claims: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names that select it."""
        return (self.study, f"{self.study}/{self.figure}", *self.claims)


def own_specs() -> list[OwnSpec]:
    """Return the user's specs outside ``experiments``, in the current folder, in the project, and below these.

    The example inside the package, which new projects are made from, is left out.
    """
    found: dict[Path, OwnSpec] = {}
    package = origin().resolve()
    listed = {path.resolve() for path in specs(experiments())}
    for path in (path for folder in (Path(), project()) for path in _yaml_files(folder)):
        with contextlib.suppress(OSError, RuntimeError):  # Python 3.11 and 3.12 raise the latter for a loop of links
            if (whole := path.resolve()) in found or whole in listed or whole.is_relative_to(package):
                continue
            text = path.read_text(encoding="utf-8", errors="replace")
            keys = dict(_STORED_UNDER.findall(text))
            if len(keys) == 2:
                found[whole] = OwnSpec(path, keys["paper"], keys["figure"], tuple(_CLAIM_ID.findall(text)))
    return list(found.values())


def of_own_studies() -> list[OwnSpec]:
    """Return the user's specs outside ``experiments`` that are in a study of their own, in the order of their names.

    Copies of the project's specs, which ``fedrepro init`` writes, are left out.
    """
    own = (spec for spec in own_specs() if is_study(spec.study))
    return sorted(own, key=lambda spec: (spec.study, spec.figure, str(spec.path)))


def own_studies() -> dict[str, list[Path]]:
    """Return the user's specs outside ``experiments``, by the name of their study."""
    studies: dict[str, list[Path]] = {}
    for spec in own_specs():
        studies.setdefault(spec.study, []).append(spec.path)
    return dict(sorted(studies.items()))


def _yaml_files(folder: Path) -> Iterator[Path]:
    """Yield the YAML files of a folder and of the folders below, without hidden ones such as an environment."""
    for where, below, names in os.walk(folder, followlinks=True):
        depth = len(Path(where).relative_to(folder).parts)
        below[:] = sorted(name for name in below if not name.startswith(".")) if depth < DEEPEST else []
        yield from (Path(where, name) for name in sorted(names) if name.endswith(".yaml"))


def _outside_of_experiments(name: str, own: Iterable[OwnSpec]) -> list[Selected]:
    """Return which of the user's specs a name selects: ``study/figure``, ``study``, or the id of a claim.

    Raises UserError if two files have the name.
    """
    named: dict[str, list[Selected]] = {}
    for spec in own:
        figure = f"{spec.study}/{spec.figure}"
        if name in (spec.study, figure):
            named.setdefault(figure, []).append(Selected(spec.path))
        elif name in spec.claims:
            named.setdefault(name, []).append(Selected(spec.path, frozenset([name])))
    for known, items in named.items():
        if len(items) > 1:
            files = sorted(str(item.path) for item in items)
            is_claim = any(item.claims for item in items)
            tip = (
                f"use --spec {files[0]} (`why`), or change `id:`" if is_claim else "name the file, or change `figure:`"
            )
            raise UserError(f"{known}: is the name of {' and '.join(files)}; {tip} in one of them")
    return [item for _, items in sorted(named.items()) for item in items]


def _folder_of_results(name: str) -> Path | None:
    """Return the project's folder of results with a name, None if there are none."""
    tables = (project() / "results" / tier / f"{name}{end}" for tier in ("", *TIERS) for end in (".csv", ".csv.xz"))
    return next((table.parent for table in tables if table.is_file()), None)


def names_of_specs() -> list[str]:
    """Return the names of all papers and figures."""
    known = specs(experiments())
    return [*dict.fromkeys(path.parent.name for path in known), *(f"{path.parent.name}/{path.stem}" for path in known)]


def claim_ids() -> Iterator[str]:
    """Yield the ids of all claims."""
    for path in specs(experiments()):
        yield from _claim_ids(path)


_CLAIM_ID = re.compile(r"\bid: *[\"']?([^\s,\"'}]+)")
"""The id of a claim in the text of a spec. No other key of a spec is called ``id``."""


def _claim_ids(path: Path) -> list[str]:
    """Return the ids of a spec's claims, without parsing it: a search through all specs takes milliseconds."""
    return _CLAIM_ID.findall(path.read_text(encoding="utf-8", errors="replace"))


def find_spec(name: str) -> Path:
    """Return the spec of one figure by its path, by ``paper/figure``, or by the id of one of its claims."""
    selected = select([name])
    if len(selected) > 1:
        raise UserError(
            f"{name}: has {len(selected)} figures; name one of them, such as {name}/{selected[0].path.stem} "
            "(`fedrepro list figures` shows all)"
        )
    return selected[0].path


def claim_of(name: str, claim: str) -> Selected:
    """Return one figure's spec with one of its claims. Raises UserError if it has no claim with this id."""
    path = find_spec(name)
    known = _claim_ids(path)
    if claim not in known:
        raise UserError(
            f"{called(path)}: has no claim '{claim}'"
            + (nearest(claim, known) or f" (it has {', '.join(known)})" if known else "; it has no claims")
        )
    return Selected(path, frozenset([claim]))


def find_panel(name: str, panel: str | None) -> tuple[Path, str | None]:
    """Return the spec and the panel of one figure. Without ``panel``, the id of a claim means the claim's panel."""
    path = find_spec(name)
    if panel is None and not Path(name).is_file() and name in _claim_ids(path):
        panel = panel_of_claim(path, name)
    return path, panel


def panel_of_claim(path: Path, claim: str) -> str | None:
    """Return the panel that a claim of a spec is about, None if the spec does not name it."""
    items = unchecked_claims(path)
    return next((str(item["panel"]) for item in items if item.get("id") == claim and "panel" in item), None)


def unchecked_claims(path: Path) -> list[dict[str, Any]]:
    """Return the claims of a spec as they are written. Raises UserError if the file is not valid YAML."""
    claims = read(path).get("claims")
    items = claims.value if claims is not None and isinstance(claims.value, list) else []
    return [plain for item in items if isinstance(plain := item.plain(), dict)]


def stored_under(root: Node) -> tuple[str, str]:
    """Return the paper and figure in an unchecked spec; '' for a value that files cannot be named after."""
    values = (getattr(root.get(key), "value", "") for key in ("paper", "figure"))
    paper, figure = (name if isinstance(name, str) and SLUG.fullmatch(name) else "" for name in values)
    return paper, figure


def load_all(names: Iterable[str | Path], tier: str, sets: Iterable[str] = ()) -> list[Figure]:
    """Read the specs that names select (see ``select``) and report the errors of all of them together.

    Results are stored under the paper and figure in a spec. A spec in the experiments folder must have those of its
    path, and no two specs may have the same.
    """
    figures: dict[Path, Figure] = {}
    messages: list[str] = []
    for path in (item.path for item in select(names)):
        try:
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
        f"those of {figure.name}; write paper: {path.parent.name} and figure: {path.stem}, "
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


def select_distinct(names: Iterable[str | Path]) -> list[Selected]:
    """Return what the names select (see ``select``). Raises UserError if two files are specs of the same figure."""
    selected = select(names)
    paths = [item.path for item in selected]
    if names and len(paths) > 1 and (messages := _doubled((stored_under(read(path)), str(path)) for path in paths)):
        raise SpecErrors(messages)
    return selected


def find_some(names: Iterable[str | Path]) -> list[Path]:
    """Return the specs that the names select, or all specs; see ``select_distinct``."""
    return [item.path for item in select_distinct(names)]
