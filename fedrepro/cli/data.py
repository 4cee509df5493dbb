"""The command group ``fedrepro data``."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import click

from fedrepro.data import home, remove
from fedrepro.data.copies import CopyState, source, state
from fedrepro.data.home import human
from fedrepro.data.imports import adopt
from fedrepro.data.source import sources
from fedrepro.errors import UserError
from fedrepro.spec.find import specs

COLOURS = {"present": "green", "variant": "yellow", "damaged": "red", "absent": None}


@click.group()
def data() -> None:
    """The datasets: which are here, getting and importing them.

    They lie in FEDREPRO_DATA, else in the platform's user cache directory.

    \b
    fedrepro data list
    fedrepro data fetch mnist movielens-1m
    fedrepro data import tdt2 ~/Downloads/TDT2.mat
    """


@data.command("list")
@click.option("--json", "as_json", is_flag=True, help="Machine-readable output.")
@click.option("--verify", is_flag=True, help="Hash every file again instead of comparing sizes and times.")
def list_(as_json: bool, verify: bool) -> None:
    """Every dataset with files: its state, who uses it, its licence and where it lies.

    \b
    fedrepro data list
    fedrepro data list --verify
    fedrepro data list --json
    """
    used = figures()
    found = [state(name, verify=verify) for name in sorted(sources())]
    if as_json:
        rows = [{**dataclasses.asdict(one), "used_by": used.get(one.name, [])} for one in found]
        click.echo(json.dumps(rows, indent=1))
        return
    click.echo(f"data home: {home()}\n")
    for one in found:
        _show(one, used.get(one.name, []))


def _show(one: CopyState, used: list[str]) -> None:
    size = human(one.size) if one.size else ""
    click.echo(f"{one.name:15}{click.style(f'{one.state:9}', fg=COLOURS[one.state])}{size:>10}  {', '.join(used)}")
    click.echo(f"{'':15}{one.note}" if one.note else "", nl=bool(one.note))
    click.echo(f"{'':15}licence: {one.licence}")
    if one.size:
        click.echo(f"{'':15}{one.where}")


@data.command("import")
@click.argument("name")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--variant", is_flag=True, help="Take a copy that has far fewer or more than the official one, too.")
def import_(name: str, paths: tuple[Path, ...], variant: bool) -> None:
    """Take a file, an archive or a folder as dataset NAME, in any usual layout, after checking that it is that.

    A copy whose content differs from the official one is kept as a variant, and what differs is recorded; a table of
    ratings with other counts altogether is refused. Data of your own need no import: a spec names their file.

    \b
    fedrepro data import mnist ~/data/mnist
    fedrepro data import cifar10 cifar-10-python.tar.gz
    fedrepro data import omniglot images_background.zip images_evaluation.zip
    """
    _report(adopt(name, paths, variant=variant))


@data.command("fetch")
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@click.option("--accept", is_flag=True, help="Keep files for which no hash is published.")
@click.option("--quiet", is_flag=True, help="No progress bars.")
def fetch_(names: tuple[str, ...], accept: bool, quiet: bool) -> None:
    """Download datasets from their official addresses; interrupted downloads go on where they stopped.

    \b
    fedrepro data fetch mnist cifar10
    fedrepro data fetch tdt2            show the hash of what was downloaded
    fedrepro data fetch tdt2 --accept   keep it
    """
    from fedrepro.data.fetch import fetch

    for name in names:
        source(name)
    failures = []
    for name in names:
        try:
            _report(fetch(name, accept=accept, progress=not quiet, say=lambda text: click.echo(text, err=True)))
        except UserError as error:
            failures.append(str(error))
    if failures:
        raise UserError("\n".join(failures))


@data.command("path")
@click.argument("name", required=False)
def path_(name: str | None) -> None:
    """Where the data home is, or the folder of one dataset.

    \b
    fedrepro data path
    fedrepro data path mnist
    """
    click.echo(home() if name is None else state(name).where)


@data.command("remove")
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Do not ask.")
def remove_(names: tuple[str, ...], yes: bool) -> None:
    """Delete the data home's copy of datasets.

    \b
    fedrepro data remove cifar100
    """
    for name in names:
        source(name)
    for name in names:
        if state(name).state == "absent":
            click.echo(f"{name} is not here")
        elif yes or click.confirm(f"delete {state(name).where}?"):
            remove(name)
            click.echo(f"{name} removed")


def _report(found: CopyState) -> None:
    note = f": {found.note}" if found.note else ""
    click.echo(f"{found.name} {click.style(found.state, fg=COLOURS[found.state])}, {human(found.size)}{note}")
    click.echo(f"  {found.where}")


def figures(folder: Path | None = None) -> dict[str, list[str]]:
    """For every source the figures whose YAML names a dataset that reads it, as ``paper/figure``."""
    import yaml

    from fedrepro import registry

    reads = {entry.name: entry.source for entry in registry.datasets().values() if entry.source}
    used: dict[str, list[str]] = {}
    for file in specs(folder or experiments()):
        try:
            words = _words(yaml.safe_load(file.read_text(encoding="utf-8")))
        except (yaml.YAMLError, OSError):
            continue
        for name in sorted({str(reads[word]) for word in words if word in reads}):
            used.setdefault(name, []).append(f"{file.parent.name}/{file.stem}")
    return used


def experiments() -> Path:
    """The folder of specs: of the working directory, else beside the package."""
    here = Path("experiments")
    return here if here.is_dir() else Path(__file__).resolve().parents[2] / "experiments"


def _words(node: object, below: bool = False) -> set[str]:
    """Every text under a key ``dataset`` or ``datasets``."""
    if isinstance(node, dict):
        found: set[str] = set()
        for key, value in node.items():
            found |= _words(value, below or key in ("dataset", "datasets"))
        return found
    if isinstance(node, list):
        return set().union(*(_words(value, below) for value in node)) if node else set()
    return {node} if below and isinstance(node, str) and re.fullmatch(r"[\w.-]+", node) else set()
