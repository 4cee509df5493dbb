"""The command group ``fedrepro data``."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import click

from fedrepro.cli.options import json_option
from fedrepro.data.copies import CopyState, remove, source, state
from fedrepro.data.data_home import home
from fedrepro.data.imports import adopt
from fedrepro.data.source import sources
from fedrepro.errors import UserError
from fedrepro.progress import human
from fedrepro.spec.find import experiments

COLOURS = {"present": "green", "variant": "yellow", "damaged": "red", "absent": None}


@click.group()
def data() -> None:
    """List, download, import and remove datasets.

    They are stored in FEDREPRO_DATA, or by default in the platform's user cache directory.

    \b
    fedrepro data list
    fedrepro data fetch mnist movielens-1m
    fedrepro data import tdt2 ~/Downloads/TDT2.mat
    """


@data.command("list", short_help="List every dataset with files.")
@json_option
@click.option("--verify", is_flag=True, help="Hash every file again instead of comparing sizes and times.")
def list_(as_json: bool, verify: bool) -> None:
    """List every dataset with files: its state, the figures that use it, its licence and its folder.

    \b
    fedrepro data list
    fedrepro data list --verify
    fedrepro data list --json
    """
    from fedrepro import registry
    from fedrepro.glossary.uses import uses

    figures = uses(experiments())
    reads = {entry.source: figures.get(("dataset", entry.name), []) for entry in registry.datasets().values()}
    copies = [state(name, verify=verify) for name in sorted(sources())]
    if as_json:
        rows = [{**dataclasses.asdict(copy), "used_by": reads[copy.name]} for copy in copies]
        click.echo(json.dumps(rows, indent=1))
        return
    click.echo(f"data home: {home()}\n")
    for copy in copies:
        _print_entry(copy, reads[copy.name])


def _print_entry(copy: CopyState, used: list[str]) -> None:
    size = human(copy.size) if copy.size else ""
    click.echo(f"{copy.name:15}{click.style(f'{copy.state:9}', fg=COLOURS[copy.state])}{size:>10}  {', '.join(used)}")
    below = [copy.note, f"licence: {copy.licence}", str(copy.where) if copy.size else ""]
    for line in filter(None, below):
        click.echo(f"{'':15}{line}")


@data.command("import", short_help="Import a local copy of a dataset.")
@click.argument("name")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--variant", is_flag=True, help="Accept a copy that is far smaller or larger than the official one.")
def import_(name: str, paths: tuple[Path, ...], variant: bool) -> None:
    """Import a file, an archive or a folder in any usual layout as dataset NAME, after checking its content.

    A copy whose content differs from the official one is stored as a variant with a note of what differs; a table of
    ratings with very different counts is rejected. Your own data need no import: a spec names their file.

    \b
    fedrepro data import mnist ~/data/mnist
    fedrepro data import cifar10 cifar-10-python.tar.gz
    fedrepro data import omniglot images_background.zip images_evaluation.zip
    """
    _print_copy(adopt(name, paths, variant=variant))


@data.command("fetch", short_help="Download datasets from their official addresses.")
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@click.option("--accept", is_flag=True, help="Keep files without a published hash.")
@click.option("--quiet", is_flag=True, help="Do not show progress.")
def fetch_(names: tuple[str, ...], accept: bool, quiet: bool) -> None:
    """Download datasets from their official addresses; interrupted downloads are resumed.

    \b
    fedrepro data fetch mnist cifar10
    fedrepro data fetch tdt2            print the hash of the download
    fedrepro data fetch tdt2 --accept   keep it
    """
    from fedrepro.data.fetch import fetch

    for name in names:
        source(name)
    failures = []
    for name in names:
        try:
            _print_copy(fetch(name, accept=accept, progress=not quiet, say=lambda text: click.echo(text, err=True)))
        except UserError as error:
            failures.append(str(error))
    if failures:
        raise UserError("\n".join(failures))


@data.command("path")
@click.argument("name", required=False)
def path_(name: str | None) -> None:
    """Print the path of the data home, or of one dataset's folder.

    \b
    fedrepro data path
    fedrepro data path mnist
    """
    click.echo(home() if name is None else state(name).where)


@data.command("remove")
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def remove_(names: tuple[str, ...], yes: bool) -> None:
    """Delete the data home's copy of datasets.

    \b
    fedrepro data remove cifar100
    """
    for name in names:
        source(name)
    for name in names:
        if state(name).state == "absent":
            click.echo(f"{name} is not in the data home")
        elif yes or click.confirm(f"delete {state(name).where}?"):
            remove(name)
            click.echo(f"{name} removed")


def _print_copy(copy: CopyState) -> None:
    note = f": {copy.note}" if copy.note else ""
    click.echo(f"{copy.name} {click.style(copy.state, fg=COLOURS[copy.state])}, {human(copy.size)}{note}")
    click.echo(f"  {copy.where}")
